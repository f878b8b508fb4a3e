local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local more = require "record.more"
local finish = require "transition.finish"

define.fn {
  name = "ff_fail_suspension",
  doc = "An operator ends a suspended execution as failed.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason", category = "category" },
  reply = { failed = {} },
  errs = { "execution_not_found", "execution_not_suspended" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "suspended" then
      return reply.err("execution_not_suspended", { lifecycle_phase = rec.phase, terminal_outcome = rec.outcome })
    end
    more.note_action(tx, rec, "fail", a.actor, a.reason)
    finish.execution(tx, rec, "failed", {
      by = "operator", attempt_state = "failed", failure = { a.reason, a.category }, actor = a.actor,
      data = { "actor", a.actor },
    })
    return reply.ok("failed")
  end,
}
