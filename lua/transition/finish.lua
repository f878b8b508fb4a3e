-- The one way into terminal: attempt ended, lease and timers gone, the index moved, waiters told, one event.
local keys = require "lib.keys"
local limits = require "lib.limits"
local event = require "lib.event"
local attempt = require "record.attempt"
local execution = require "record.execution"
local fired = require "record.fired"
local waitpoint = require "record.waitpoint"
local webhook = require "record.webhook"

local finish = {}

local events = {
  success = "execution.completed", failed = "execution.failed", cancelled = "execution.cancelled",
  expired = "execution.expired", skipped = "execution.skipped",
}

local function store_result(tx, rec, result, encoding)
  if result == nil then return end
  rec.result_in = encoding ~= "json" and encoding or nil
  if #result > limits.result_inline_bytes_max then
    rec.result_far = 1
    tx:set(keys.result(tx, rec.id), result)
  else
    rec.result = result
  end
end

-- `how`: by (what ended a live lease), at (when, if not now), attempt_state, failure { reason, category }, result,
-- result_encoding, actor, data.
function finish.execution(tx, rec, outcome, how)
  if rec.phase == "active" then
    rec.ended_by = how.by
    if how.at then rec.ended_value = how.at end
  end
  if attempt.is_open(rec) then
    attempt.finish(tx, rec, how.attempt_state, how.failure, how.actor)
    attempt.ended_together(rec)
  end
  -- Waitpoints of steps outlive attempts, not the execution.
  if rec.open then waitpoint.close(tx, rec, "execution_ended") end
  if rec.answered then waitpoint.forget_answered(tx, rec) end
  rec.phase, rec.outcome, rec.ended = "terminal", outcome, tx.now
  execution.unblock(rec)
  if rec.delay then rec.delay = nil end
  if rec.next then rec.next = nil end
  if rec.resume then rec.resume = nil end
  if rec.cancel_by or rec.cancel_reason then rec.cancel_by, rec.cancel_reason = nil, nil end
  if rec.awaiting then rec.awaiting = nil end
  if rec.wanted then rec.wanted = nil end
  if how.failure then
    rec.failure = cmsgpack.pack(how.failure)
  elseif rec.failure then
    rec.failure = nil
  end
  store_result(tx, rec, how.result, how.result_encoding)
  if rec.waited then
    rec.waited = nil
    tx:announce("done", rec.id)
  end
  if rec.firing then fired.ended(tx, rec, execution.namespace(rec), outcome) end
  if rec.webhook then rec.hook = webhook.of_execution(tx, rec, events[outcome]) end
  execution.save(tx, rec)
  local data, took = how.data, tx.now - rec.created
  if data == nil and how.failure == nil then
    event.of_execution(tx, rec, events[outcome], "took_ms", took)
  else
    data = data or {}
    if how.failure then
      data[#data + 1], data[#data + 2] = "category", how.failure[2]
    end
    data[#data + 1], data[#data + 2] = "took_ms", took
    event.of_execution(tx, rec, events[outcome], unpack(data))
  end
  if rec.flow_id or rec.parent_id or rec.kids then require("transition.aftermath").of(tx, rec) end
end

return finish
