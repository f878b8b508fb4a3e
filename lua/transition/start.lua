-- Gives a worker the lease: a new attempt, or the same one when it was only waiting.
local keys = require "lib.keys"
local attempt = require "record.attempt"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local event = require "lib.event"
local flow = require "record.flow"
local lane = require "record.lane"
local leases = require "index.leases"
local spec = require "record.spec"
local step = require "record.step"
local suspension = require "record.suspension"

local start = {}

-- True when its flow was stopped: it will not start any more.
function start.stopped(tx, rec)
  local f = rec.flow_id and flow.load(tx, rec.flow_id)
  return f and f.stop ~= nil
end

-- True when the execution may start now; nothing starts past its deadline, its queue time or the grace of a cancel.
function start.possible(rec, now)
  if rec.deadline and rec.deadline <= now then return false end
  if rec.cancel_by and rec.cancel_by <= now then return false end
  if rec.start_by and rec.start_by <= now then return false end
  return true
end

-- A new attempt begins.
local function begin(tx, rec, attempt_id)
  local now = tx.now
  if rec.attempt == nil then
    rec.attempt = 0
  else
    attempt.file(tx, rec)
    rec.attempt = rec.attempt + 1
  end
  rec.attempt_id, rec.attempt_type, rec.started = attempt_id, rec.next or "initial", now
  if rec.progress then rec.progress = nil end
  if rec.timeout then
    rec.timeout_at = now + rec.timeout
  elseif rec.timeout_at then
    rec.timeout_at = nil
  end
end

-- `holder`: { instance, worker_id, lease_ttl_ms }.
function start.lease(tx, rec, holder, lease_id, attempt_id)
  local now = tx.now
  local continues = rec.resume ~= nil
  local waited = now - (rec.ready or rec.created)
  if continues then
    if rec.time_left then rec.timeout_at = now + rec.time_left end
  else
    begin(tx, rec, attempt_id)
  end
  if rec.time_left then rec.time_left = nil end
  if rec.wanted then rec.wanted = nil end
  rec.attempt_state, rec.phase = "started", "active"
  if rec.next then rec.next = nil end
  if rec.resume then rec.resume = nil end
  if rec.delay then rec.delay = nil end
  if rec.ready then rec.ready = nil end
  if rec.start_by then rec.start_by = nil end
  execution.unblock(rec)
  rec.lease_id, rec.worker, rec.worker_id = lease_id, holder.instance, holder.worker_id
  local epoch = (rec.epoch or 0) + 1
  rec.epoch = tx.now_us > epoch and tx.now_us or epoch
  rec.lease_ttl, rec.lease_until = holder.lease_ttl_ms, now + holder.lease_ttl_ms
  if rec.renewals then rec.renewals = nil end
  if rec.ended_by then rec.ended_by, rec.ended_value = nil, nil end
  execution.save(tx, rec, true)
  event.of_execution(tx, rec, "execution.started", "attempt_type", rec.attempt_type, "continues", continues,
    "waited_ms", waited > 0 and waited or 0)
end

-- What its upstreams pass to a member, and how many bytes it is.
local function passed(tx, rec)
  if rec.passes == nil then return nil, 0 end
  local view = require "record.view"
  local out, bytes = {}, 0
  for _, item in ipairs(dependencies.passed(tx, rec)) do
    local up = execution.load(tx, item.from)
    if up and up.phase == "terminal" then
      local value = view.result(tx, up)
      out[item.name] = {
        execution_id = up.id, outcome = up.outcome, value = value, encoding = view.result_encoding(up),
        failure = view.failure(up),
      }
      bytes = bytes + #(value or "")
    end
  end
  return out, bytes
end

-- The parts of a task that can be large: its input and what its upstreams pass, and how many bytes they are.
function start.heavy(tx, rec)
  local input = spec.input(tx, rec)
  local from_upstreams, bytes = passed(tx, rec)
  return input, from_upstreams, #input + bytes + step.weight(rec)
end

-- What the worker gets to see: the id, the stored record, the input, and what only some have: what the submitter said
-- beside it, why the attempt goes on, and what upstreams pass.
function start.task(tx, rec, input, from_upstreams)
  if input == nil then input, from_upstreams = start.heavy(tx, rec) end
  local extras = false
  if rec.said or rec.woken or from_upstreams or rec.steps then
    local steps, more_steps = step.carried(tx, rec)
    extras = {
      spec = rec.said and tx:record(keys.spec(tx, rec.id)) or nil,
      resume = rec.woken and suspension.resume(tx, rec) or nil, passed = from_upstreams,
      steps = steps, steps_more = more_steps,
    }
  end
  return { rec.id, tx:record(keys.core(tx, rec.id)), input, extras }
end

-- The tasks of those of these leases that live: a lost reply is answered again. Nil when none does. Then the places of
-- the leases that are free, when not all are: one that has run out keeps its id until someone looks.
function start.leased(tx, instance, lease_ids)
  local ids, free = leases.held(tx, instance, lease_ids)
  if ids == nil then return nil end
  local tasks = {}
  for _, id in ipairs(ids) do
    local rec = execution.load(tx, id)
    if rec and rec.phase == "active" and tx.now < rec.lease_until then tasks[#tasks + 1] = start.task(tx, rec) end
  end
  return #tasks > 0 and tasks or nil, free
end

-- Whoever sleeps until the partition's next timer must hear of a wake-up before the last one announced for the lane.
-- What was announced is remembered with the lane, read by every claim, and in one hash of the partition, read by every
-- sleeper.
function start.announce_wake_up(tx, copy, at)
  local told = tonumber(lane.recall(tx, copy, "told"))
  if told and told > tx.now and told <= at then return end
  lane.remember(tx, copy, "told", string.format("%.0f", at))
  tx:hput(keys.told(tx), copy.path, at)
  tx:announce("timer", at)
end

-- The sleeper looked and sleeps until `head` now, or until it is told: an announcement before that wakes nobody any
-- more, so the lane's next claim must not rely on it.
function start.forget_announced(tx, head)
  for path, at in pairs(tx:hgetall(keys.told(tx)) or {}) do
    if head == nil or tonumber(at) < head then
      tx:hdel(keys.lane_memory(tx, path), "told")
      tx:hdel(keys.told(tx), path)
      tx.lanes[path] = nil
    end
  end
end

return start
