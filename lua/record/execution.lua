-- The execution: one packed value with its state, its current lease and its current attempt. A transition edits the
-- record and saves it; saving moves the execution's index entries and its timer along, so they cannot differ.
local keys = require "lib.keys"
local flow = require "record.flow"
local holds = require "record.holds"
local packed = require "record.packed"
local waits = require "record.waits"
local awaits = require "index.awaits"
local home = require "index.home"
local leases = require "index.leases"
local timers = require "index.timers"

local execution = {}

local open, close, core = packed.open_execution, packed.close_execution, keys.core
local find, sub, floor, max = string.find, string.sub, math.floor, math.max

-- What the path of its lane is made of.
function execution.namespace(rec)
  return sub(rec.path, 1, find(rec.path, "/", 1, true) - 1)
end

function execution.lane(rec)
  return sub(rec.path, find(rec.path, "/", 1, true) + 1)
end

-- The record, read once per plan: every function of a call sees what the others changed. A hidden one is found only by
-- those who ask for it.
function execution.load(tx, id, hidden_too)
  local rec = execution.read(tx, id)
  if rec and rec.hidden and not hidden_too then return nil end
  return rec
end

local function opened(tx, id, key, stored)
  local rec = open(key, stored)
  rec.id = id
  if rec.waits then waits.load(tx, rec) end
  execution.seen(tx, rec)
  tx.memo[id] = rec
  return rec
end

function execution.read(tx, id)
  local known = tx.memo[id]
  if known ~= nil then return known or nil end
  local key = core(tx, id)
  local stored = tx:record(key)
  if stored then return opened(tx, id, key, stored) end
end

-- Reads at once what is about to be loaded.
function execution.fetch(tx, ids)
  local wanted, names = {}, {}
  for _, id in ipairs(ids) do
    if tx.memo[id] == nil then wanted[#wanted + 1], names[#names + 1] = id, core(tx, id) end
  end
  for i, stored in ipairs(tx:records(names)) do
    if stored then opened(tx, wanted[i], names[i], stored) end
  end
end

-- Looks at once whether any of these is there: most are new.
function execution.expect_new(tx, ids)
  local names = {}
  for i, id in ipairs(ids) do names[i] = core(tx, id) end
  if tx:any_exists(names) then return end
  for _, id in ipairs(ids) do
    if tx.memo[id] == nil then tx.memo[id] = false end
  end
end

-- Notes where the indexes have the record: saving moves them from there.
function execution.seen(tx, rec)
  rec.was_phase = rec.phase
  rec.was_place, rec.was_score = home.of(rec)
  if rec.detail then rec.was_awaits, rec.was_awaits_at = awaits.of(tx, rec) end
  if rec.flow_id then rec.was_state = execution.member_state(rec) end
end

-- When the execution next needs attention without anyone asking, or nil.
function execution.wake_at(rec)
  local phase = rec.phase
  if rec.hidden then return nil end
  if phase == "terminal" then
    if rec.bound then return nil end
    return (rec.freed or rec.ended) + rec.retention
  end
  local at = rec.deadline
  local other = rec.cancel_by
  if other and (at == nil or other < at) then at = other end
  other = rec.open_due
  if other and (at == nil or other < at) then at = other end
  if phase == "active" then
    other = rec.lease_until
    if at == nil or other < at then at = other end
    other = rec.timeout_at
    if other and other < at then at = other end
  elseif phase == "suspended" then
    other = rec.wait_until
    if other and (at == nil or other < at) then at = other end
  else
    other = rec.start_by
    if other and (at == nil or other < at) then at = other end
    if rec.reason == nil then
      other = rec.delay
      if other and (at == nil or other < at) then at = other end
      other = rec.grant_until
      if other and (at == nil or other < at) then at = other end
    end
  end
  return at
end

-- Plans the record's changes together with its place in the indexes, its lease entry, its holds and its timer.
-- `told` says that the caller announces the timer itself.
function execution.save(tx, rec, told)
  local phase, was = rec.phase, rec.was_phase
  rec.updated = tx.now
  -- Since when it stands in line, unless it has stood there since it was made; and how long the lease lasted that ends
  -- here. An epoch is the time of its claim, or later when the clock went back.
  if was ~= phase then
    if was == "active" then rec.ran = max(tx.now - floor(rec.epoch / 1000), 0) end
    -- Whoever follows the stream hears of every change of phase: of its end, and of the attempt that comes after.
    if rec.tailed then tx:announce("frames", rec.id) end
  end
  local place, score = home.of(rec)
  if place == "queue" and phase == "runnable" and was and not (rec.was_place == "queue" and was == "runnable") then
    rec.ready = tx.now
  end
  if rec.flow_id then flow.follow(tx, rec, execution.member_state(rec)) end
  timers.keep(tx, rec, execution.wake_at(rec), told)
  home.move(tx, rec, place, score)
  if rec.detail or rec.was_awaits then awaits.keep(tx, rec) end
  if phase == "active" then
    if was ~= "active" then leases.add(tx, rec) end
  elseif was == "active" then
    leases.remove(tx, rec)
  end
  if rec.holds then holds.keep(tx, rec) end
  rec.was_phase = phase
  execution.store(tx, rec)
end

-- Plans the record alone, for a change that moves no index.
function execution.store(tx, rec)
  if rec.waits or rec.waits_were then waits.store(tx, rec) end
  tx:put(core(tx, rec.id), rec, close)
  tx.memo[rec.id] = rec
end

-- Derived in one place: what a user calls the state.
function execution.public_state(rec)
  local phase = rec.phase
  if phase == "active" or phase == "suspended" then return phase end
  if phase == "terminal" then
    return rec.outcome == "success" and "completed" or rec.outcome
  end
  local reason = rec.reason
  if reason == "waiting_for_quota" or reason == "waiting_for_budget" then return "rate_limited" end
  if reason == "waiting_for_dependencies" or reason == "waiting_for_children" then return "waiting_children" end
  if reason == nil and rec.delay then return "delayed" end
  if reason == nil and rec.resume then return "resumable" end
  return "waiting"
end

-- The state under which its flow counts a member.
function execution.member_state(rec)
  return rec.hidden and "held" or execution.public_state(rec)
end

-- Nothing holds it back any more, and no grant waits for it. To clear a field that is absent would make room for it.
function execution.unblock(rec)
  if rec.reason then rec.reason = nil end
  if rec.detail then rec.detail = nil end
  if rec.since then rec.since = nil end
  if rec.grant then rec.grant, rec.grant_worker, rec.grant_until = nil, nil, nil end
end

function execution.block(rec, reason, detail, now)
  execution.unblock(rec)
  rec.reason, rec.since = reason, now
  if detail then rec.detail = cmsgpack.pack(detail) end
end

return execution
