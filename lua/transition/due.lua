-- What a timer means for an execution: whatever is due now, checked again inside the call, so nothing happens early.
local aftermath = require "transition.aftermath"
local event = require "lib.event"
local execution = require "record.execution"
local finish = require "transition.finish"
local interrupt = require "transition.interrupt"
local retire = require "transition.retire"
local resume = require "transition.resume"
local retry = require "transition.retry"
local runnable = require "transition.runnable"

local due = {}

local function expire(tx, rec, cause)
  finish.execution(tx, rec, "expired", {
    by = "deadline", attempt_state = "interrupted", failure = { cause .. " passed", cause },
  })
end

local function active(tx, rec, draw)
  local now = tx.now
  local timed_out = rec.timeout_at and rec.timeout_at <= now
  if timed_out and rec.timeout_at <= rec.lease_until then
    return retry.after_failure(tx, rec, {
      by = "timed_out", attempt_state = "timed_out", reason = "attempt timeout passed", category = "timeout",
      draw = draw,
    })
  end
  if rec.lease_until <= now then return interrupt.lost(tx, rec, "expired") end
  if rec.open_due and rec.open_due <= now then return resume.close_expired(tx, rec) end
  -- The entry was early: the save puts the timer where the record says.
  execution.save(tx, rec)
end

local function suspended(tx, rec)
  local now = tx.now
  if rec.wait_until and rec.wait_until <= now then return resume.timed_out(tx, rec, "suspension timed out") end
  if rec.open_due and rec.open_due <= now then return resume.close_expired(tx, rec) end
  execution.save(tx, rec)
end

local function waiting(tx, rec)
  local now = tx.now
  if rec.start_by and rec.start_by <= now then return expire(tx, rec, "start_within") end
  -- An attempt that waits for its children keeps its waitpoints.
  if rec.open_due and rec.open_due <= now then return resume.close_expired(tx, rec) end
  local ready = rec.reason == nil and ((rec.delay and rec.delay <= now) or (rec.grant_until and rec.grant_until <= now))
  if ready then
    local cause = rec.delay and "delay" or "grant_expired"
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    if rec.reason then
      event.of_execution(tx, rec, "execution.blocked", "reason", rec.reason)
    else
      event.of_execution(tx, rec, "execution.ready", "cause", cause)
    end
    return
  end
  execution.save(tx, rec)
end

function due.fire(tx, rec, draw)
  local now = tx.now
  if rec.phase == "terminal" then
    if aftermath.still_needed(tx, rec) then
      rec.bound = 1
      return execution.save(tx, rec)
    end
    local retire_at = execution.wake_at(rec)
    if retire_at and retire_at <= now then return retire.execution(tx, rec) end
    return execution.save(tx, rec)
  end
  if rec.deadline and rec.deadline <= now then return expire(tx, rec, "deadline") end
  -- The grace of a cancel is over, wherever the attempt is by now.
  if rec.cancel_by and rec.cancel_by <= now then
    return finish.execution(tx, rec, "cancelled", {
      by = "operator", attempt_state = "cancelled", failure = { rec.cancel_reason or "", "cancelled" },
    })
  end
  if rec.phase == "active" then return active(tx, rec, draw) end
  if rec.phase == "suspended" then return suspended(tx, rec) end
  return waiting(tx, rec)
end

return due
