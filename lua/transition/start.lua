-- Gives a worker the lease: a new attempt, or the same one when it was only waiting.
local keys = require "lib.keys"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local event = require "lib.event"
local flow = require "record.flow"
local frames = require "record.frames"
local leases = require "index.leases"
local spec = require "record.spec"
local suspension = require "record.suspension"

local start = {}

-- True when its flow was stopped: it will not start any more.
function start.stopped(tx, rec)
  local f = rec.spec.flow_id and flow.load(tx, rec.spec.flow_id)
  return f and f.stop ~= nil
end

-- True when the execution may start now; nothing starts past its deadline, its queue time or the grace of a cancel.
function start.possible(rec, now)
  if rec.deadline and rec.deadline <= now then return false end
  if rec.cancel_by and rec.cancel_by <= now then return false end
  if not rec.first_started and rec.start_by and rec.start_by <= now then return false end
  return true
end

-- `holder`: { instance, worker_id, request_id, lease_ttl_ms }; `ids`: { attempt_id, lease_id }.
function start.lease(tx, rec, holder, ids)
  local now = tx.now
  local continues = rec.resume ~= nil
  local waited = math.max(now - (rec.ready or rec.spec.created_at), 0)
  if not continues then
    rec.attempt = rec.attempt == nil and 0 or rec.attempt + 1
    rec.attempt_id, rec.attempt_type = ids.attempt_id, rec.next or "initial"
    rec.started = now
    if rec.progress then rec.progress = nil end
    local timeout = rec.spec.attempt_timeout_ms
    if timeout then
      rec.timeout_at = now + timeout
    elseif rec.timeout_at then
      rec.timeout_at = nil
    end
  elseif rec.time_left then
    rec.timeout_at = now + rec.time_left
  end
  if rec.time_left then rec.time_left = nil end
  if rec.wanted then rec.wanted = nil end
  rec.attempt_state, rec.phase = "started", "active"
  if rec.next then rec.next = nil end
  if rec.resume then rec.resume = nil end
  if rec.delay then rec.delay = nil end
  execution.unblock(rec)
  rec.first_started = rec.first_started or now
  rec.lease_id, rec.worker, rec.worker_id, rec.request = ids.lease_id, holder.instance, holder.worker_id, holder.request_id
  rec.epoch = math.max((rec.epoch or 0) + 1, tx.now_us)
  rec.lease_ttl, rec.lease_until, rec.renewals = holder.lease_ttl_ms, now + holder.lease_ttl_ms, 0
  if rec.ended_by then rec.ended_by, rec.ended_value = nil, nil end
  execution.save(tx, rec, true)
  event.of_execution(tx, rec, "execution.started", { "attempt_type", rec.attempt_type, "continues", continues and "true" or "false", "waited_ms", string.format("%.0f", waited) })
end

-- What its upstreams pass to a member.
local function passed(tx, rec)
  if rec.passes == nil then return nil end
  local view = require "record.view"
  local out = {}
  for _, item in ipairs(dependencies.passed(tx, rec)) do
    local up = execution.load(tx, item.from)
    if up and up.phase == "terminal" then
      out[item.name] = { execution_id = up.id, outcome = up.outcome, value = view.result(tx, up), encoding = up.result_encoding, failure = view.failure(up) }
    end
  end
  return out
end

-- The parts of a task that can be large: what its upstreams pass and its input, read once; and how many bytes they are.
function start.heavy(tx, rec)
  local input = rec.input_far and tx:get(keys.payload(tx, rec.id)) or rec.spec.input or ""
  local heavy = { input = input, passed = passed(tx, rec), bytes = #input }
  for _, item in pairs(heavy.passed or {}) do heavy.bytes = heavy.bytes + #(item.value or "") end
  return heavy
end

-- What the worker gets to see.
function start.task(tx, rec, heavy)
  local tier = rec.tier
  heavy = heavy or start.heavy(tx, rec)
  return {
    execution_id = rec.id, attempt_index = rec.attempt, attempt_id = rec.attempt_id, attempt_type = rec.attempt_type,
    lease_id = rec.lease_id, lease_epoch = rec.epoch, lease_expires_at = rec.lease_until,
    namespace = rec.spec.namespace, lane = rec.lane, kind = rec.spec.kind,
    input = heavy.input, input_encoding = rec.spec.input_encoding,
    tags = spec.unflatten(rec.tags), priority = rec.prio, created_at = rec.spec.created_at,
    fallback_index = tier, fallback = tier and rec.spec.fallbacks[tier + 1] or nil,
    trace_parent = rec.spec.trace_parent, deadline_at = rec.deadline, attempt_deadline_at = rec.timeout_at,
    resume = rec.woken and suspension.resume(tx, rec) or nil, frames = frames.count(rec),
    passed = heavy.passed, flow_id = rec.spec.flow_id, parent_id = rec.spec.parent_id, key = rec.spec.key,
  }
end

-- The leases this very request already took, so that a lost reply is answered again.
function start.leased(tx, instance, request)
  local ids = {}
  for id, other in pairs(leases.of(tx, instance)) do
    if other == request then ids[#ids + 1] = id end
  end
  table.sort(ids)
  local tasks = {}
  for _, id in ipairs(ids) do
    local rec = execution.load(tx, id)
    if rec and rec.phase == "active" and tx.now < rec.lease_until then tasks[#tasks + 1] = start.task(tx, rec) end
  end
  return tasks
end

-- Whoever sleeps until the partition's next timer must hear of a wake-up before the last one announced for the lane. What
-- was announced stands in the lane's copy, read by every claim, and in one hash of the partition, read by every sleeper.
function start.announce_wake_up(tx, copy, lane, at)
  local told = tonumber(copy.raw.told or nil)
  if told and told > tx.now and told <= at then return end
  lane.remember(tx, copy, "told", string.format("%.0f", at))
  tx:hset(keys.told(tx), { copy.path, at })
  tx:announce("timer", at)
end

-- The sleeper looked and sleeps until `head` now, or until it is told: an announcement before that wakes nobody any more, so
-- the lane's next claim must not rely on it.
function start.forget_announced(tx, lane, head)
  for path, at in pairs(tx:hgetall(keys.told(tx)) or {}) do
    if head == nil or tonumber(at) < head then
      lane.remember(tx, { path = path, raw = { told = at } }, "told", nil)
      tx:hdel(keys.told(tx), path)
    end
  end
end

return start
