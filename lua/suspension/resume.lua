local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local more = require "record.more"
local resume = require "transition.resume"

define.fn {
  name = "ff_resume_execution",
  doc = "An operator ends a suspension: the attempt goes on without the signals it waited for.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason?" },
  reply = { resumed = { state = "public_state" } },
  errs = { "execution_not_found", "execution_not_suspended" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "suspended" then
      return reply.err("execution_not_suspended", { lifecycle_phase = rec.phase, terminal_outcome = rec.outcome })
    end
    more.note_action(tx, rec, "resume", a.actor, a.reason)
    resume.execution(tx, rec, "operator", {}, a.actor)
    return reply.ok("resumed", { state = execution.public_state(rec) })
  end,
}
