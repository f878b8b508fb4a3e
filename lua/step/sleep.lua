local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local step = require "record.step"
local suspension = require "record.suspension"
local runnable = require "transition.runnable"

local function rest(tx, rec, a, at)
  rec.ended_by, rec.ended_value = "sleep", at
  rec.time_left = rec.timeout_at and math.max(rec.timeout_at - tx.now, 1) or nil
  rec.timeout_at, rec.yield, rec.reclaims, rec.satisfied = nil, nil, nil, nil
  suspension.replace_continuation(tx, rec, a.continuation, a.continuation_encoding)
  -- It is known by the lease it ended.
  rec.woken, rec.waits = cmsgpack.pack({ rec.lease_id, "timer", {}, a.step or false }), 1
  rec.attempt_state, rec.resume, rec.delay = "suspended", 1, at
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  if a.step then
    event.of_execution(tx, rec, "execution.rested", "until", at, "step", a.step)
  else
    event.of_execution(tx, rec, "execution.rested", "until", at)
  end
end

define.fn {
  name = "ff_sleep_execution",
  doc = "Sets the running attempt aside until a time; the next claim continues it. `step` names the sleep: its "
    .. "wake-up is stored by the first call, and a later one that comes after it keeps the lease.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", wake_at = "time_ms?", wake_in_ms = "duration_ms?",
    step = "step_name?", continuation = "continuation?", continuation_encoding = "encoding?",
  },
  reply = { resting = { wake_at = "time_ms", replayed = "bool" }, done = { wake_at = "time_ms" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "step_changed",
    "steps_full",
  },
  call = function(tx, a)
    if (a.wake_at == nil) == (a.wake_in_ms == nil) then
      return reply.err("invalid_argument", { field = "until", problem = "give until or ms, one of them" })
    end
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "sleep")
    if refusal == "replay" then return reply.ok("resting", { wake_at = rec.ended_value, replayed = true }) end
    if refusal then return refusal end
    local s, at = a.step and step.find(tx, rec, a.step), a.wake_at or tx.now + a.wake_in_ms
    if s and s.kind ~= "sleep" then return step.changed(s, "sleep") end
    if s then
      at = s.due
    elseif a.step then
      refusal = step.full(rec)
      if refusal then return refusal end
      s = step.new(rec, a.step, "sleep", tx.now)
      s.due = at
      step.put(tx, rec, s)
    end
    if at > tx.now then
      rest(tx, rec, a, at)
      return reply.ok("resting", { wake_at = at, replayed = false })
    end
    if a.step then
      rec.updated = tx.now
      execution.store(tx, rec)
    end
    return reply.ok("done", { wake_at = at })
  end,
}
