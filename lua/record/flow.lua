-- A flow: members that share its partition, edges between them, and what it does when one of them fails.
local keys = require "lib.keys"
local limits = require "lib.limits"
local spec = require "record.spec"
local timers = require "index.timers"

local flow = {}

-- Stored fields: name and whether it is a number.
local fields = {
  { "namespace" }, { "kind" }, { "policy" }, { "created", true }, { "updated", true }, { "deadline", true }, { "retention", true }, { "defaults" }, { "digest" }, { "parent" },
  -- Made for a member that is there: it goes with the member.
  { "adopted", true },
  { "sealed", true }, { "touched", true }, { "version", true }, { "backward", true }, { "outcome" }, { "ended", true },
  -- The number of the last member made; members still stored; failures nobody took up; sinks that succeeded; records that owe something.
  { "last", true }, { "stored", true }, { "uncaught", true }, { "sinks", true }, { "owed", true },
  -- Why nothing of it may start any more: { policy, reason, actor, at }.
  { "stop" },
  -- A walk over its members that is not done: what it does, since when, and the number of the last member it met.
  { "walk" }, { "walk_at", true }, { "walked", true }, { "wake", true }, { "waited", true },
  -- Where its end is told, and the webhook of its last one.
  { "webhook" }, { "hook" },
}

-- Every state a member can be counted under, those of members that have not ended first.
flow.open_states = { "held", "waiting", "delayed", "rate_limited", "waiting_children", "active", "suspended", "resumable" }
flow.ended_states = { "completed", "failed", "cancelled", "expired", "skipped" }

for _, list in ipairs({ flow.open_states, flow.ended_states }) do
  for _, state in ipairs(list) do fields[#fields + 1] = { "n:" .. state, true } end
end

local names, is_number = {}, {}
for i, field in ipairs(fields) do
  names[i] = field[1]
  is_number[field[1]] = field[2]
end

function flow.new(id)
  return { id = id, was = {}, last = 0, stored = 0, version = 0 }
end

-- The flow, read once per plan: every function of a call sees what the others changed.
function flow.load(tx, id)
  local key = keys.flow(tx, id)
  local known = tx.memo[key]
  if known then return known end
  local flat = tx:hflat(key)
  if flat == nil then return nil end
  local f = { id = id, was = {} }
  for i = 1, #flat, 2 do
    local name, value = flat[i], flat[i + 1]
    if is_number[name] then
      value = tonumber(value)
      if value == nil then error("CORRUPT " .. key .. " " .. name) end
    end
    f[name], f.was[name] = value, value
  end
  tx.memo[key] = f
  return f
end

-- The flow as everybody but its own walk sees it: one that is being removed is not there any more.
function flow.find(tx, id)
  local f = flow.load(tx, id)
  if f and f.walk ~= "remove" then return f end
end

-- When the flow next needs attention: a walk that is owed, the end of an unsealed flow nobody adds to or nobody made a member for,
-- the end of an empty one.
function flow.wake_at(f)
  if f.walk then return f.walk_at end
  if f.ended then return f.stored == 0 and f.ended + f.retention or nil end
  if f.sealed == nil and f.adopted == nil then return f.touched + limits.unsealed_ms_max end
end

-- The name of its timer entry.
function flow.timer(id)
  return "flow:" .. id
end

function flow.save(tx, f)
  local key = keys.flow(tx, f.id)
  f.updated = tx.now
  local entry = { id = flow.timer(f.id), wake = f.wake }
  timers.keep(tx, entry, flow.wake_at(f))
  f.wake = entry.wake
  local changed, was = {}, f.was
  for i = 1, #names do
    local name = names[i]
    local value = f[name]
    if value ~= was[name] then
      if value == nil then
        tx:hdel(key, name)
      else
        changed[#changed + 1] = name
        changed[#changed + 1] = value
      end
      was[name] = value
    end
  end
  if #changed > 0 then tx:hset(key, changed) end
  tx.memo[key] = f
end

-- Defaults for members, as they were given: { lane or false, retry or false, budgets or false }.
function flow.pack_defaults(lane, retry, budgets)
  return cmsgpack.pack({ lane or false, retry and spec.pack_partial_retry(retry) or false, budgets and spec.pack_budgets(budgets) or false })
end

function flow.defaults(f)
  local d = f.defaults and cmsgpack.unpack(f.defaults) or { false, false, false }
  return d[1] or nil, d[2] and spec.unpack_partial_retry(d[2]) or nil, d[3] and spec.unpack_budgets(d[3]) or nil
end

function flow.stopped(f)
  if f.stop == nil then return nil end
  local s = cmsgpack.unpack(f.stop)
  return { policy = s[1], reason = s[2] or nil, actor = s[3] or nil, at = s[4] }
end

-- Members that have not ended.
function flow.open(f)
  local open = 0
  for _, state in ipairs(flow.open_states) do open = open + (f["n:" .. state] or 0) end
  return open
end

-- What a user calls the state of the flow.
function flow.state(f)
  if f.outcome then return f.outcome end
  if f.sealed == nil then return "open" end
  local moving = (f["n:waiting"] or 0) + (f["n:delayed"] or 0) + (f["n:active"] or 0) + (f["n:resumable"] or 0) + (f["n:held"] or 0)
  return moving == 0 and flow.open(f) > 0 and "blocked" or "running"
end

local function count(f, state, by)
  local name = "n:" .. state
  local n = (f[name] or 0) + by
  f[name] = n ~= 0 and n or nil
end

-- Part of every save of a member: its count follows its state. In a stopped flow a member that lets go of its lease without an
-- end is cancelled by its timer, at once: nothing of the flow starts again.
function flow.follow(tx, rec, state)
  local before = rec.before
  local lets_go = before.phase == "active" and rec.phase ~= "active" and rec.phase ~= "terminal"
  if before.state == state and not lets_go then return end
  local f = flow.load(tx, rec.spec.flow_id)
  if f == nil then error("CORRUPT " .. keys.flow(tx, rec.spec.flow_id) .. " core") end
  if before.state then count(f, before.state, -1) end
  count(f, state, 1)
  before.state = state
  if lets_go and f.stop then rec.cancel_by, rec.cancel_reason = tx.now, flow.stopped(f).reason end
  flow.save(tx, f)
end

-- What a member's outcome means for its flow, and the field in which the flow counts it.
local counter = { uncaught = "uncaught", good_sink = "sinks" }

-- Counts a member's verdict in its flow, or takes it back.
function flow.count_verdict(f, verdict, by)
  if verdict == nil then return end
  local name = counter[verdict]
  local n = (f[name] or 0) + by
  f[name] = n ~= 0 and n or nil
end

-- Forgets a member that is retired; the flow goes with its last one.
function flow.forget_member(tx, rec)
  local f = flow.load(tx, rec.spec.flow_id)
  if f == nil then return end
  count(f, rec.before.state, -1)
  flow.count_verdict(f, rec.verdict, -1)
  f.stored = f.stored - 1
  tx:zrem(keys.flow_members(tx, f.id), rec.id)
  tx:hdel(keys.flow_names(tx, f.id), rec.spec.key)
  if f.stored == 0 and (f.ended or f.walk == "remove") then
    flow.remove(tx, f)
  else
    flow.save(tx, f)
  end
end

-- Plans the removal of a flow without members.
function flow.remove(tx, f)
  tx:del(keys.flow(tx, f.id))
  tx.memo[keys.flow(tx, f.id)] = nil
  f.gone = true
  timers.clear(tx, flow.timer(f.id))
  tx:zrem(keys.flows(tx), f.id)
  tx:zrem(keys.cancel_backlog(tx), f.id)
end

-- The record of a member by its key, or nil.
function flow.member_id(tx, f, key)
  return tx:hget(keys.flow_names(tx, f.id), key)
end

-- Asks for a walk over the members, in bounded steps, by whoever fires timers: it is owed until it is done.
function flow.walk_over(tx, f, what)
  f.walk, f.walk_at, f.walked = what, tx.now, 0
  if what == "cancel" then tx:zadd(keys.cancel_backlog(tx), tx.now, f.id) end
end

function flow.walk_done(tx, f)
  if f.walk == "cancel" then tx:zrem(keys.cancel_backlog(tx), f.id) end
  f.walk, f.walk_at, f.walked = nil, nil, nil
end

function flow.typed(f)
  local counts = {}
  for _, list in ipairs({ flow.open_states, flow.ended_states }) do
    for _, state in ipairs(list) do counts[state] = f["n:" .. state] end
  end
  local lane, retry, budgets = flow.defaults(f)
  return {
    flow_id = f.id, namespace = f.namespace, kind = f.kind, state = flow.state(f), on_member_failure = f.policy, counts = counts, members = f.stored, version = f.version,
    created_at = f.created, updated_at = f.updated, sealed_at = f.sealed, finished_at = f.ended, deadline_at = f.deadline, retention_ms = f.retention,
    default_lane = lane, default_retry = retry, budgets = budgets, stop = flow.stopped(f), owed = f.owed or 0, walk = f.walk, parent_id = f.parent, uncaught_failures = f.uncaught or 0,
    completion_webhook = f.webhook,
  }
end

return flow
