-- A flow: members that share its partition, edges between them, and what it does when one of them fails.
local keys = require "lib.keys"
local limits = require "lib.limits"
local fired = require "record.fired"
local packed = require "record.packed"
local timers = require "index.timers"

local flow = {}

local open, close = packed.open_flow, packed.close_flow

-- Every state a member can be counted under, those of members that have not ended first.
flow.open_states = {
  "held", "waiting", "delayed", "rate_limited", "waiting_children", "active", "suspended", "resumable",
}
flow.ended_states = { "completed", "failed", "cancelled", "expired", "skipped" }

-- The field that counts the members of a state.
local count_of = {}
for _, list in ipairs({ flow.open_states, flow.ended_states }) do
  for _, state in ipairs(list) do count_of[state] = "n_" .. state end
end

function flow.new(id)
  return { id = id, last = 0, stored = 0, version = 0, names = {}, fresh = true }
end

-- The flow, read once per plan: every function of a call sees what the others changed.
function flow.load(tx, id)
  local key = keys.flow(tx, id)
  local known = tx.memo[key]
  if known then return known end
  local stored = tx:record(key)
  if stored == nil then return nil end
  local f = open(key, stored)
  f.id = id
  tx.memo[key] = f
  return f
end

-- The flow as everybody but its own walk sees it: one that is being removed is not there any more.
function flow.find(tx, id)
  local f = flow.load(tx, id)
  if f and f.walk ~= "remove" then return f end
end

-- When the flow next needs attention: a walk that is owed, the end of an unsealed flow nobody adds to or nobody made a
-- member for, the end of an empty one.
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
  f.updated = tx.now
  local at = flow.wake_at(f)
  if at ~= f.wake then
    timers.keep(tx, { id = flow.timer(f.id), wake = f.wake }, at)
    f.wake = at
  end
  flow.store(tx, f)
end

-- Plans the record alone, for a change that moves no timer.
function flow.store(tx, f)
  local key = keys.flow(tx, f.id)
  tx:put(key, f, close)
  tx.memo[key] = f
end

-- Defaults for members, as they were given: { lane or false, retry or false, budgets or false }.
function flow.pack_defaults(lane, retry, budgets)
  return cmsgpack.pack({ lane or false, retry or false, budgets or false })
end

function flow.defaults(f)
  local d = f.defaults and cmsgpack.unpack(f.defaults) or { false, false, false }
  return d[1] or nil, d[2] or nil, d[3] or nil
end

function flow.stopped(f)
  if f.stop == nil then return nil end
  local s = cmsgpack.unpack(f.stop)
  return { policy = s[1], reason = s[2] or nil, actor = s[3] or nil, at = s[4] }
end

-- Members that have not ended.
function flow.open(f)
  local open = 0
  for _, state in ipairs(flow.open_states) do open = open + (f[count_of[state]] or 0) end
  return open
end

-- What a user calls the state of the flow.
function flow.state(f)
  if f.outcome then return f.outcome end
  if f.sealed == nil then return "open" end
  local moving = (f.n_waiting or 0) + (f.n_delayed or 0) + (f.n_active or 0) + (f.n_resumable or 0) + (f.n_held or 0)
  return moving == 0 and flow.open(f) > 0 and "blocked" or "running"
end

local function count(f, state, by)
  local name = count_of[state]
  local n = (f[name] or 0) + by
  f[name] = n ~= 0 and n or nil
end

-- Counts a new member.
function flow.enter(f, state)
  count(f, state, 1)
end

-- Counts a member under another state.
function flow.recount(f, was, state)
  count(f, was, -1)
  count(f, state, 1)
end

-- Part of every save of a member: its count follows its state. In a stopped flow a member that lets go of its lease
-- without an end is cancelled by its timer, at once: nothing of the flow starts again.
function flow.follow(tx, rec, state)
  local was = rec.was_state
  local lets_go = rec.was_phase == "active" and rec.phase ~= "active" and rec.phase ~= "terminal"
  if was == state and not lets_go then return end
  local f = flow.load(tx, rec.flow_id)
  if f == nil then error("CORRUPT " .. keys.flow(tx, rec.flow_id) .. " core") end
  if was then count(f, was, -1) end
  count(f, state, 1)
  rec.was_state = state
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
  local f = flow.load(tx, rec.flow_id)
  if f == nil then return end
  count(f, rec.was_state, -1)
  flow.count_verdict(f, rec.verdict, -1)
  f.stored = f.stored - 1
  tx:zrem(keys.flow_members(tx, f.id), rec.id)
  tx:hdel(keys.flow_names(tx, f.id), rec.key)
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
  local id = f.names and f.names[key]
  if id == nil and not f.fresh then id = tx:hget(keys.flow_names(tx, f.id), key) end
  return id or nil
end

-- Reads the records of members by these keys at once. A fresh flow has only those it was given.
function flow.look_up(tx, f, names)
  local known, asked = f.names or {}, {}
  f.names = known
  if f.fresh then return end
  for _, name in ipairs(names) do
    if known[name] == nil then
      known[name], asked[#asked + 1] = false, name
    end
  end
  if #asked == 0 then return end
  for i, id in ipairs(tx:hmget(keys.flow_names(tx, f.id), asked)) do known[asked[i]] = id end
end

function flow.name_member(tx, f, name, id)
  tx:hput(keys.flow_names(tx, f.id), name, id)
  f.names[name] = id
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
    for _, state in ipairs(list) do counts[state] = f[count_of[state]] end
  end
  local lane, retry, budgets = flow.defaults(f)
  return {
    flow_id = f.id, namespace = f.namespace, kind = f.kind, state = flow.state(f), on_member_failure = f.policy,
    counts = counts, members = f.stored, version = f.version, created_at = f.created, updated_at = f.updated,
    sealed_at = f.sealed, finished_at = f.ended, deadline_at = f.deadline, retention_ms = f.retention,
    default_lane = lane, default_retry = retry, budgets = budgets, stop = flow.stopped(f), owed = f.owed or 0,
    walk = f.walk, parent_id = f.parent, uncaught_failures = f.uncaught or 0, completion_webhook = f.webhook,
    fired = fired.typed(f),
  }
end

return flow
