local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local reply = require "lib.reply"
local budget = require "record.budget"
local gone = require "index.gone"
local timers = require "index.timers"

define.fn {
  name = "ff_delete_budget",
  doc = "Removes a budget that has no children and against which nothing is held. Work that names it is not admitted "
    .. "from then on.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", actor = "actor" },
  reply = { deleted = {} },
  errs = { "budget_not_found", "budget_in_use" },
  call = function(tx, a)
    local b = budget.load(tx, a.budget_id)
    if b == nil then
      if gone.had(tx, a.budget_id) then return reply.ok("deleted") end
      return reply.err("budget_not_found", { budget_id = a.budget_id })
    end
    local children = tx:zcard(keys.budget_children(tx, b.id))
    local held = tx:exists(keys.budget_holds(tx, b.id)) or tx:exists(keys.holders(tx, budget.set(b.id)))
    if children > 0 or held then return reply.err("budget_in_use", { children = children, held = held }) end
    tx:del(keys.budget(tx, b.id))
    tx:del(keys.budget_reports(tx, b.id))
    tx:del(keys.budget_report_times(tx, b.id))
    tx:zrem(keys.budgets(tx), b.id)
    -- What waited for it is told, and refused again by name instead of waiting for good.
    tx:zadd(keys.cleared(tx), tx.now, b.id)
    tx:announce("budget", b.id)
    timers.clear(tx, budget.timer(b.id))
    budget.owe_scope(tx, b)
    gone.note(tx, b.id)
    if b.parent then tx:zrem(keys.budget_children(tx, b.parent), b.id) end
    event.of_fleet(tx, "budget.deleted", b.namespace, nil, nil, "budget_id", b.id, "actor", a.actor)
    return reply.ok("deleted")
  end,
}
