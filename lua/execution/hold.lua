local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"

define.fn {
  name = "ff_hold_execution",
  doc = "An operator keeps a runnable execution from starting until it is released.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason?" },
  reply = { held = {}, already = {} },
  errs = { "execution_not_found", "execution_not_runnable" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "runnable" then return reply.err("execution_not_runnable", { lifecycle_phase = rec.phase }) end
    if rec.reason == "held_by_operator" then return reply.ok("already") end
    more.note_action(tx, rec, "hold", a.actor, a.reason)
    execution.block(rec, "held_by_operator", { "actor", a.actor, "reason", a.reason or "" }, tx.now)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.held", "actor", a.actor, "reason", a.reason or "")
    return reply.ok("held")
  end,
}
