local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_budget_stats",
  doc = "The budgets of this partition that were made first, at most `limit`, without those of flows, which come and "
    .. "go with them; `budgets` is how many there are in all.",
  flags = { "no-writes" },
  args = { limit = "batch_size" },
  reply = { stats = { items = "[budget]", budgets = "count" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for _, item in ipairs(tx:zlowest(keys.budgets(tx), "-inf", "+inf", limits.list_looks_max / 4)) do
      if #items >= a.limit then break end
      local b = budget.load(tx, item.member)
      if b and b.scope.type ~= "flow" then
        budget.rolled(tx, b)
        items[#items + 1] = budget.typed(b)
      end
    end
    return reply.ok("stats", { items = items, budgets = tx:zcard(keys.budgets(tx)) })
  end,
}
