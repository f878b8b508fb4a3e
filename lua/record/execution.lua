-- The execution: one hash with core fields, current lease and current attempt. A transition edits the
-- record and saves it; saving moves the execution's index entries and its timer along, so they cannot differ.
local keys = require "lib.keys"
local flow = require "record.flow"
local holds = require "record.holds"
local spec = require "record.spec"
local awaits = require "index.awaits"
local home = require "index.home"
local leases = require "index.leases"
local timers = require "index.timers"

local execution = {}

-- Stored fields: name and whether it is a number. Packed lists are kept as the text they are stored as.
local fields = {
  { "phase" }, { "reason" }, { "detail" }, { "since", true }, { "outcome" }, { "lane" }, { "prio", true }, { "score", true }, { "fair", true }, { "fair_end", true }, { "updated", true },
  { "deadline", true }, { "delay", true }, { "start_by", true }, { "ready", true }, { "next" }, { "resume", true },
  { "attempt", true }, { "attempt_id" }, { "attempt_type" }, { "attempt_state" }, { "started", true }, { "timeout_at", true }, { "first_started", true },
  { "lease_id" }, { "epoch", true }, { "worker" }, { "worker_id" }, { "lease_until", true }, { "lease_ttl", true }, { "request" }, { "renewals", true },
  { "ended_by" }, { "ended_value", true }, { "cancel_by", true }, { "cancel_reason" }, { "yield", true },
  { "grant" }, { "grant_worker" }, { "grant_until", true }, { "grants", true }, { "holds" },
  { "failures", true }, { "reclaims", true }, { "replays", true }, { "tier", true },
  { "ended", true }, { "result" }, { "result_encoding" }, { "result_far", true }, { "failure" }, { "progress" },
  { "history" }, { "spilled", true }, { "actions" }, { "tags" }, { "wake", true }, { "waited", true },
  { "input" }, { "input_far", true },
  { "wait" }, { "wait_until", true }, { "open" }, { "open_due", true }, { "time_left", true }, { "wanted" }, { "woken" }, { "continued" }, { "past_waits" }, { "closed_waits" }, { "answered" }, { "satisfied" },
  { "signals" }, { "frames" }, { "streams" }, { "tailed", true },
  -- A member: what it waits for, its edges out and how many of them its end has reached, that its flow was stopped before it
  -- reached all, what its outcome means for the flow.
  { "deps" }, { "passes", true }, { "outs", true }, { "reached", true }, { "halted", true }, { "fault" }, { "verdict" },
  -- Not seen by anyone until its flow is sealed; kept while its flow or parent has not ended; kept from then on.
  { "hidden", true }, { "bound", true }, { "freed", true },
  -- Children and the wait for them; what is owed to other records because of this one.
  { "kids" }, { "awaiting", true }, { "owed" },
  -- How many reports of what it used were made.
  { "reports", true },
  -- The webhook of its last end.
  { "hook" },
}

local names, is_number = {}, {}
for i, field in ipairs(fields) do
  names[i] = field[1]
  is_number[field[1]] = field[2]
end

function execution.lane_path(rec)
  return rec.spec.namespace .. "/" .. rec.lane
end

-- A record that is not stored yet.
function execution.new(id, s)
  return { id = id, spec = s, fresh = true, was = {}, before = {} }
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
  local flat = tx:hflat(key)
  if flat == nil then return nil end
  -- `was` keeps what is stored, so that saving writes only what changed.
  local was, packed = {}, nil
  local rec = { id = id, was = was }
  local numeric, number_of = is_number, tonumber
  for i = 1, #flat, 2 do
    local name, value = flat[i], flat[i + 1]
    if name == "spec" then
      packed = value
    else
      if numeric[name] then
        value = number_of(value)
        if value == nil then error("CORRUPT " .. key .. " " .. name) end
      end
      rec[name], was[name] = value, value
    end
  end
  if packed == nil then error("CORRUPT " .. key .. " spec") end
  rec.spec = spec.unpack(packed)
  local place, score = home.of(tx, rec)
  rec.before = { key = place, score = score, queued = home.queued(rec), worker = rec.phase == "active" and rec.worker or nil, phase = rec.phase }
  rec.before.awaits, rec.before.awaits_at = awaits.of(tx, rec)
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
  local changed, count, was, list = {}, 0, rec.was, names
  if rec.fresh then
    changed[1], changed[2] = "spec", spec.pack(rec.spec)
    count, rec.fresh = 2, nil
  end
  for i = 1, #list do
    local name = list[i]
    local value = rec[name]
    if value ~= was[name] then
      if value == nil then
        tx:hdel(key, name)
      else
        changed[count + 1], changed[count + 2] = name, value
        count = count + 2
      end
      was[name] = value
    end
  end
  tx:hset(key, changed)
  rec.before.phase = rec.phase
  tx.memo[key] = rec
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
