-- Finished attempts: the latest ones in the execution's hash, older ones in a hash of their own.
local keys = require "lib.keys"
local limits = require "lib.limits"
local frames = require "record.frames"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local attempt = {}

-- Ends the current attempt and files it: its waitpoints close, its stream closes, and with it ends what it waited for.
-- `failure` is { reason, category } or nil; `actor` is the operator who ended it, if one did.
function attempt.finish(tx, rec, state, failure, actor)
  local list = rec.history and cmsgpack.unpack(rec.history) or {}
  list[#list + 1] = {
    rec.attempt, rec.attempt_id, rec.attempt_type, state, rec.worker, rec.started, tx.now, rec.epoch,
    failure and failure[1] or false, failure and failure[2] or false, frames.count(rec),
  }
  if #list > limits.attempts_inline_max then
    local oldest = table.remove(list, 1)
    tx:hset(keys.attempts(tx, rec.id), { string.format("%.0f", oldest[1]), cmsgpack.pack(oldest) })
    rec.spilled = (rec.spilled or 0) + 1
  end
  rec.history = cmsgpack.pack(list)
  rec.attempt_state = state
  if rec.open then waitpoint.close(tx, rec, "attempt_ended") end
  if rec.wait then suspension.ended(tx, rec, suspension.load(rec), state, actor) end
  if rec.woken or rec.continued then suspension.forget(tx, rec) end
  if rec.answered then waitpoint.forget_answered(tx, rec) end
  if rec.frames then frames.close(tx, rec) end
  -- To clear a field that is absent would make room for it.
  if rec.timeout_at then rec.timeout_at = nil end
  if rec.time_left then rec.time_left = nil end
  if rec.satisfied then rec.satisfied = nil end
  if rec.cancel_by or rec.cancel_reason then rec.cancel_by, rec.cancel_reason = nil, nil end
  if rec.yield then rec.yield = nil end
  if rec.resume then rec.resume = nil end
end

-- The typed form of a filed attempt.
function attempt.typed(a)
  return {
    index = a[1], attempt_id = a[2], type = a[3], state = a[4], worker_instance = a[5], started_at = a[6], ended_at = a[7], lease_epoch = a[8],
    failure = a[9] and { reason = a[9], category = a[10] } or nil, frames = a[11] or 0,
  }
end

-- The attempt that has not ended yet, typed, or nil.
function attempt.current(rec)
  if rec.attempt_state ~= "started" and rec.attempt_state ~= "suspended" then return nil end
  return {
    index = rec.attempt, attempt_id = rec.attempt_id, type = rec.attempt_type, state = rec.attempt_state, worker_instance = rec.worker,
    started_at = rec.started, lease_epoch = rec.epoch, frames = frames.count(rec),
  }
end

-- Every attempt still in the execution's hash, oldest first.
function attempt.inline(rec)
  local out = {}
  for i, a in ipairs(rec.history and cmsgpack.unpack(rec.history) or {}) do out[i] = attempt.typed(a) end
  out[#out + 1] = attempt.current(rec)
  return out
end

function attempt.stored(tx, rec, index)
  for _, a in ipairs(attempt.inline(rec)) do
    if a.index == index then return a end
  end
  local packed = tx:hget(keys.attempts(tx, rec.id), string.format("%.0f", index))
  return packed and attempt.typed(cmsgpack.unpack(packed)) or nil
end

-- The attempt asked for, or the latest one when none is.
function attempt.find(tx, rec, index)
  if index == nil then index = rec.attempt end
  return index and attempt.stored(tx, rec, index) or nil
end

return attempt
