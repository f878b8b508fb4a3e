local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local finish = require "transition.finish"

define.fn {
  name = "ff_cancel_execution",
  doc = "An operator's or submitter's cancel. A running attempt ends at once, or within `grace_ms` after its worker "
    .. "was asked.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason?", grace_ms = "duration_ms?" },
  reply = { cancelled = {}, requested = { cancel_by = "time_ms" }, already = { outcome = "outcome" } },
  errs = { "execution_not_found" },
  call = function(tx, a, now)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase == "terminal" then return reply.ok("already", { outcome = rec.outcome }) end
    more.note_action(tx, rec, "cancel", a.actor, a.reason)
    if rec.phase == "active" and a.grace_ms and a.grace_ms > 0 then
      rec.cancel_by, rec.cancel_reason = math.min(rec.cancel_by or now + a.grace_ms, now + a.grace_ms), a.reason
      execution.save(tx, rec)
      event.of_execution(tx, rec, "execution.cancel_requested", "actor", a.actor, "reason", a.reason or "")
      return reply.ok("requested", { cancel_by = rec.cancel_by })
    end
    finish.execution(tx, rec, "cancelled", {
      by = "operator", attempt_state = "cancelled", failure = { a.reason or "", "cancelled" }, actor = a.actor,
      data = { "actor", a.actor, "reason", a.reason or "" },
    })
    return reply.ok("cancelled")
  end,
}
