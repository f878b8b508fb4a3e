local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local aftermath = require "transition.aftermath"
local retire = require "transition.retire"

define.fn {
  name = "ff_delete_execution",
  doc = "An operator removes an ended execution before its retention is over.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor" },
  reply = { deleted = {} },
  errs = { "execution_not_found", "execution_not_terminal", "flow_not_terminal" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "terminal" then return reply.err("execution_not_terminal", { lifecycle_phase = rec.phase }) end
    if aftermath.still_needed(tx, rec) then
      return reply.err("flow_not_terminal", { flow_id = rec.flow_id, parent_id = rec.parent_id })
    end
    retire.execution(tx, rec, a.actor)
    return reply.ok("deleted")
  end,
}
