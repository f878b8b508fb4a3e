-- The ends of a suspension: by the signals it waited for, by an operator, or by time.
local condition = require "transition.condition"
local event = require "lib.event"
local execution = require "record.execution"
local finish = require "transition.finish"
local ids = require "lib.id"
local runnable = require "transition.runnable"
local signals = require "record.signals"
local step = require "record.step"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local resume = {}

-- The attempt may go on: the next claim continues it. `refs` are the signals its worker gets to see.
function resume.execution(tx, rec, cause, refs, actor)
  local w = suspension.load(rec)
  waitpoint.close(tx, rec, "resumed", function(entry) return waitpoint.takes_part(entry, w.recorded) end)
  suspension.ended(tx, rec, w, cause, actor)
  if w.recorded then
    -- What was signalled until then is the answer of a wait that an operator ended.
    if cause == "operator" then refs = condition.counted(w.condition, signals.number) end
    step.found(tx, rec, w.recorded, "signal", { id = w.id, cause = cause, refs = refs, actor = actor })
  end
  local by = w.recorded and actor or nil
  rec.woken, rec.waits, rec.resume = cmsgpack.pack({ w.id, cause, refs, w.step or false, by }), 1, 1
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  local data = { "cause", cause, "suspension_id", w.id }
  if actor then data[5], data[6] = "actor", actor end
  event.of_execution(tx, rec, "execution.resumed", unpack(data))
end

-- An operator looks at it from now on: the timeout is gone, a waitpoint for the review is open.
local function escalate(tx, rec, w)
  rec.wait_until = nil
  -- The id was free when the suspension named it; whoever took it since keeps it.
  local review_id = w.review_id
  while waitpoint.load(tx, review_id) do review_id = ids.counted(review_id, 1) end
  waitpoint.create(tx, rec, {
    waitpoint_id = review_id, key = "operator_review", tokens = {}, review = true,
  }, "active", w.id)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.escalated", "suspension_id", w.id, "waitpoint_id", review_id)
end

local ends = {
  fail = { "failed", "failed" }, cancel = { "cancelled", "cancelled" }, expire = { "expired", "interrupted" },
}

-- The suspension took too long: what its behavior says.
function resume.timed_out(tx, rec, reason)
  local w = suspension.load(rec)
  if w.behavior == "escalate" then return escalate(tx, rec, w) end
  if w.behavior == "auto_resume_with_timeout_signal" then
    -- The signal's id is the suspension's: it ends by one timeout at most.
    local ref = signals.append(tx, rec, { signal_id = w.id, name = "timeout", category = "timeout", source = "engine" })
    return resume.execution(tx, rec, "timeout", { ref })
  end
  local how = ends[w.behavior]
  finish.execution(tx, rec, how[1], {
    by = "suspension_timeout", attempt_state = how[2], failure = { reason, "suspension_timeout" },
  })
end

-- True while a waitpoint of the current suspension is open.
local function is_answerable(rec)
  local w = suspension.load(rec)
  for _, entry in ipairs(waitpoint.open(rec)) do
    if waitpoint.takes_part(entry, w.recorded) then return true end
  end
  return false
end

-- Waitpoints whose time is over close. A suspension that nobody can answer any more, and that has no timeout, ends as
-- if it had.
function resume.close_expired(tx, rec)
  local closed = waitpoint.close(tx, rec, "expired", function(entry) return entry[3] and entry[3] <= tx.now end)
  if rec.phase == "suspended" and rec.wait_until == nil and not is_answerable(rec) then
    return resume.timed_out(tx, rec, "every waitpoint expired")
  end
  execution.save(tx, rec)
  event.of_execution(tx, rec, "waitpoint.expired", "count", closed)
end

return resume
