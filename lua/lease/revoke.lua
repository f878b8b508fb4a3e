local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local interrupt = require "transition.interrupt"

define.fn {
  name = "ff_revoke_lease",
  doc = "An operator takes the lease away: at once, or by asking the worker to yield when `grace` is set.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason?", grace = "bool?" },
  reply = { revoked = { state = "public_state" }, requested = {} },
  errs = { "execution_not_found", "execution_not_active" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "active" then
      return reply.err("execution_not_active", { lifecycle_phase = rec.phase, terminal_outcome = rec.outcome })
    end
    more.note_action(tx, rec, "revoke", a.actor, a.reason)
    if a.grace then
      rec.yield = 1
      execution.save(tx, rec)
      event.of_execution(tx, rec, "execution.yield_requested", "actor", a.actor)
      return reply.ok("requested")
    end
    interrupt.lost(tx, rec, "revoked", a.actor)
    return reply.ok("revoked", { state = execution.public_state(rec) })
  end,
}
