local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_reset_budget",
  doc = "An operator starts a new period now: nothing is used in it. What is held stays held; when the period ends by "
    .. "itself does not change. The same request again changes nothing.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", actor = "actor", request_id = "request_id?" },
  reply = { reset = { budget = "budget" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b = path[1]
    if budget.done(b, a.request_id) then return reply.ok("reset", { budget = budget.typed(b) }) end
    budget.start_period(tx, b)
    budget.note_action(tx, b, "reset", a.actor, nil, nil, nil, a.request_id)
    budget.save(tx, b)
    event.of_fleet(tx, "budget.reset", b.namespace, nil, nil, "budget_id", b.id, "cause", "operator", "actor", a.actor)
    return reply.ok("reset", { budget = budget.typed(b) })
  end,
}
