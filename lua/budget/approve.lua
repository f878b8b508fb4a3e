local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_approve_budget",
  doc = "An operator lets work start past the soft limits until the period ends.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", actor = "actor" },
  reply = { approved = { budget = "budget" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b = path[1]
    if not b.approved then
      b.approved = true
      budget.note_action(tx, b, "approve", a.actor)
      budget.room(tx, b, true)
      budget.save(tx, b)
      event.of_fleet(tx, "budget.approved", b.namespace, nil, nil, "budget_id", b.id, "actor", a.actor)
    end
    return reply.ok("approved", { budget = budget.typed(b) })
  end,
}
