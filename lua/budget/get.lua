local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_get_budget",
  doc = "A budget with its limits, what is used and held, and what operators did to it; how many hold something "
    .. "against it, how many budgets are right below it.",
  flags = { "no-writes" },
  args = { budget_id = "budget_id" },
  reply = { found = { budget = "budget", holders = "count", children = "count", now = "time_ms" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local b = budget.load(tx, a.budget_id)
    if b == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    budget.rolled(tx, b)
    return reply.ok("found", {
      budget = budget.typed(b), holders = tx:zcard(keys.holders(tx, budget.set(b.id))),
      children = tx:zcard(keys.budget_children(tx, b.id)), now = tx.now,
    })
  end,
}
