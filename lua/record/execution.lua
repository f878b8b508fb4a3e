-- The execution: one packed array with its state, its current lease and its current attempt; what the submitter said is stored
-- apart. A transition edits the record and saves it; saving moves the execution's index entries and its timer along, so they
-- cannot differ.
local keys = require "lib.keys"
local flow = require "record.flow"
local holds = require "record.holds"
local packed = require "record.packed"
local spec = require "record.spec"
local awaits = require "index.awaits"
local home = require "index.home"
local leases = require "index.leases"
local timers = require "index.timers"

local execution = {}

local open, close = packed.open_execution, packed.close_execution

function execution.lane_path(rec)
  return rec.spec.namespace .. "/" .. rec.lane
end

-- A record that is not stored yet.
function execution.new(id, s)
  return { id = id, spec = s, fresh = true, before = {} }
end

-- The record, read once per plan: every function of a call sees what the others changed. A hidden one is found only by those
-- who ask for it.
function execution.load(tx, id, hidden_too)
  local rec = execution.read(tx, id)
  if rec and rec.hidden and not hidden_too then return nil end
  return rec
end

function execution.read(tx, id)
  local key = keys.core(tx, id)
  local known = tx.memo[key]
  if known then return known end
  local stored = tx:get(key)
  if stored == nil then return nil end
  local rec = open(spec.list(key, stored))
  if type(rec.phase) ~= "string" then error("CORRUPT " .. key .. " phase") end
  rec.id = id
  spec.complete(tx, rec)
  local place, score = home.of(tx, rec)
  rec.before = { key = place, score = score, queued = home.queued(rec), worker = rec.phase == "active" and rec.worker or nil, request = rec.request, phase = rec.phase }
  if rec.detail then rec.before.awaits, rec.before.awaits_at = awaits.of(tx, rec) end
  if rec.spec.flow_id then rec.before.state = execution.member_state(rec) end
  tx.memo[key] = rec
  return rec
end

-- When the execution next needs attention without anyone asking, or nil.
function execution.wake_at(rec)
  if rec.hidden then return nil end
  if rec.phase == "terminal" then
    if rec.bound then return nil end
    return (rec.freed or rec.ended) + rec.spec.retention_ms
  end
  local at = rec.deadline
  local function sooner(t)
    if t and (at == nil or t < at) then at = t end
  end
  if rec.phase == "active" then
    sooner(rec.lease_until)
    sooner(rec.timeout_at)
    sooner(rec.cancel_by)
    sooner(rec.open_due)
  elseif rec.phase == "suspended" then
    sooner(rec.wait_until)
    sooner(rec.cancel_by)
    sooner(rec.open_due)
  elseif rec.phase == "runnable" then
    sooner(rec.cancel_by)
    sooner(rec.open_due)
    if not rec.first_started then sooner(rec.start_by) end
    if rec.reason == nil then
      sooner(rec.delay)
      sooner(rec.grant_until)
    end
  end
  return at
end

-- Plans the record's changes together with its place in the indexes, its lease entry, its holds and its timer.
-- `told` says that the caller announces the timer itself.
function execution.save(tx, rec, told)
  local key = keys.core(tx, rec.id)
  rec.updated = tx.now
  local before = rec.before
  -- Since when it stands in line, unless it has stood there since it was made; and how long the lease lasted that ends here. An
  -- epoch is the time of its claim, or later when the clock went back.
  local in_line = rec.phase == "runnable" and home.queued(rec)
  if in_line and not rec.fresh and not (before.queued and before.phase == "runnable") then rec.ready = tx.now end
  if before.phase == "active" and rec.phase ~= "active" then rec.ran = math.max(tx.now - math.floor(rec.epoch / 1000), 0) end
  if rec.spec.flow_id then flow.follow(tx, rec, execution.member_state(rec)) end
  -- Whoever follows the stream hears of every change of phase: of its end, and of the attempt that comes after.
  if rec.tailed and rec.phase ~= rec.before.phase then tx:announce("frames", rec.id) end
  timers.keep(tx, rec, execution.wake_at(rec), told)
  home.move(tx, rec)
  awaits.keep(tx, rec)
  leases.keep(tx, rec)
  holds.keep(tx, rec)
  if rec.fresh then
    spec.store(tx, rec)
    rec.fresh = nil
  end
  execution.store(tx, rec)
  rec.before.phase = rec.phase
  tx.memo[key] = rec
end

-- Plans the record alone, for a change that moves no index.
function execution.store(tx, rec)
  tx:set(keys.core(tx, rec.id), cmsgpack.pack(close(rec)))
end

-- Derived in one place: what a user calls the state.
function execution.public_state(rec)
  if rec.phase == "active" or rec.phase == "suspended" then return rec.phase end
  if rec.phase == "terminal" then
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
  if rec.grant or rec.grant_worker or rec.grant_until then rec.grant, rec.grant_worker, rec.grant_until = nil, nil, nil end
end

function execution.block(rec, reason, detail, now)
  rec.reason, rec.since = reason, now
  rec.detail = detail and cmsgpack.pack(detail) or nil
  rec.grant, rec.grant_worker, rec.grant_until = nil, nil, nil
end

-- Remembers what an operator did; the last hundred are kept.
function execution.note_action(tx, rec, action, actor, reason)
  local limits = require "lib.limits"
  local list = rec.actions and cmsgpack.unpack(rec.actions) or {}
  list[#list + 1] = { action, actor, tx.now, reason or false }
  if #list > limits.operator_actions_max then table.remove(list, 1) end
  rec.actions = cmsgpack.pack(list)
end

return execution
