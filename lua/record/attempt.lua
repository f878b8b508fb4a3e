-- Attempts: the last one stands in the execution's own fields, finished ones before it beside the record, the oldest in
-- a hash of their own.
local keys = require "lib.keys"
local limits = require "lib.limits"
local frames = require "record.frames"
local more = require "record.more"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local attempt = {}

-- True while the attempt has not ended.
function attempt.is_open(rec)
  local state = rec.attempt_state
  return state == "started" or state == "suspended"
end

local function of_attempt(entry) return entry[4] == nil end
local function answered_of_attempt(entry) return entry[3] == nil end

-- Ends the current attempt: its waitpoints close, its stream closes, and with it ends what it waited for. Waitpoints of
-- steps stay.
-- `failure` is { reason, category } or nil; `actor` is the operator who ended it, if one did.
function attempt.finish(tx, rec, state, failure, actor)
  rec.attempt_state, rec.attempt_ended = state, tx.now
  if failure then rec.attempt_failure = cmsgpack.pack(failure) end
  if rec.waits then
    if rec.open then waitpoint.close(tx, rec, "attempt_ended", of_attempt) end
    if rec.wait then suspension.ended(tx, rec, suspension.load(rec), state, actor) end
    if rec.woken or rec.continued then suspension.forget(tx, rec) end
    if rec.answered then waitpoint.forget_answered(tx, rec, answered_of_attempt) end
    rec.satisfied = nil
  elseif rec.continued then
    suspension.forget(tx, rec)
  end
  if rec.frames then frames.close(tx, rec) end
  -- To clear a field that is absent would make room for it.
  if rec.timeout_at then rec.timeout_at = nil end
  if rec.time_left then rec.time_left = nil end
  if rec.cancel_by or rec.cancel_reason then rec.cancel_by, rec.cancel_reason = nil, nil end
  if rec.yield then rec.yield = nil end
  if rec.resume then rec.resume = nil end
end

-- The execution ends as the attempt did: what it says of its end need not be said twice.
function attempt.ended_together(rec)
  rec.attempt_ended = nil
  if rec.attempt_failure then rec.attempt_failure = nil end
end

-- The execution that ended is about to go on: what its attempt says of its end stays with the attempt.
function attempt.apart(rec)
  if rec.attempt == nil or rec.attempt_ended or attempt.is_open(rec) then return end
  rec.attempt_ended, rec.attempt_failure = rec.ended, rec.failure
end

-- The last attempt, as it is filed: a list.
local function last(rec)
  local ended = rec.attempt_ended or rec.ended
  local packed = rec.attempt_failure or (rec.attempt_ended == nil and rec.failure)
  local failure = packed and cmsgpack.unpack(packed)
  return {
    rec.attempt, rec.attempt_id, rec.attempt_type, rec.attempt_state, rec.worker, rec.started, ended, rec.epoch,
    failure and failure[1] or false, failure and failure[2] or false, rec.attempt_frames or 0,
  }
end

-- Another attempt begins: the last one makes room for it.
function attempt.file(tx, rec)
  local m = more.of(tx, rec)
  local list = m.history and cmsgpack.unpack(m.history) or {}
  list[#list + 1] = last(rec)
  if #list >= limits.attempts_inline_max then
    local oldest = table.remove(list, 1)
    tx:hset(keys.attempts(tx, rec.id), { oldest[1], cmsgpack.pack(oldest) })
    rec.spilled = (rec.spilled or 0) + 1
  end
  m.history = cmsgpack.pack(list)
  more.store(tx, rec, m)
  rec.attempt_ended, rec.attempt_failure, rec.attempt_frames = nil, nil, nil
end

-- The typed form of a filed attempt.
local function typed(a)
  return {
    index = a[1], attempt_id = a[2], type = a[3], state = a[4], worker_instance = a[5], started_at = a[6],
    ended_at = a[7], lease_epoch = a[8], failure = a[9] and { reason = a[9], category = a[10] } or nil,
    frames = a[11] or 0,
  }
end

-- The last attempt, typed, or nil when there was none.
function attempt.last(rec)
  if rec.attempt == nil then return nil end
  if not attempt.is_open(rec) then return typed(last(rec)) end
  return {
    index = rec.attempt, attempt_id = rec.attempt_id, type = rec.attempt_type, state = rec.attempt_state,
    worker_instance = rec.worker, started_at = rec.started, lease_epoch = rec.epoch, frames = frames.count(rec),
  }
end

-- Every attempt but those that stand furthest away, oldest first.
function attempt.inline(tx, rec)
  local out, m = {}, more.of(tx, rec)
  for i, a in ipairs(m.history and cmsgpack.unpack(m.history) or {}) do out[i] = typed(a) end
  out[#out + 1] = attempt.last(rec)
  return out
end

function attempt.stored(tx, rec, index)
  if rec.attempt == index then return attempt.last(rec) end
  for _, a in ipairs(attempt.inline(tx, rec)) do
    if a.index == index then return a end
  end
  local packed = tx:hget(keys.attempts(tx, rec.id), string.format("%.0f", index))
  return packed and typed(cmsgpack.unpack(packed)) or nil
end

-- The attempt asked for, or the latest one when none is.
function attempt.find(tx, rec, index)
  if index == nil then index = rec.attempt end
  return index and attempt.stored(tx, rec, index) or nil
end

return attempt
