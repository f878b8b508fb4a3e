local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local runnable = require "transition.runnable"

define.fn {
  name = "ff_release_execution",
  doc = "Ends an operator's hold; the execution takes the place its original score gives it.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason?" },
  reply = { released = { state = "public_state" }, already = { state = "public_state" } },
  errs = { "execution_not_found", "execution_not_runnable" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "runnable" then return reply.err("execution_not_runnable", { lifecycle_phase = rec.phase }) end
    if rec.reason ~= "held_by_operator" then return reply.ok("already", { state = execution.public_state(rec) }) end
    more.note_action(tx, rec, "release", a.actor, a.reason)
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.released", "actor", a.actor)
    return reply.ok("released", { state = execution.public_state(rec) })
  end,
}
