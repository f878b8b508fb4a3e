local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_list_budgets",
  doc = "Budgets of this partition, newest first; a page may be short, `more` says whether to go on after `last`.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", scope = "scope_type?", after = "budget_position?", limit = "batch_size" },
  reply = { page = { items = "[budget]", last = "budget_position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local top = a.after and string.format("%.0f", a.after.created_at) or "+inf"
    local found = tx:zhighest(keys.budgets(tx), top, "-inf", limits.list_looks_max)
    local items, last, more, looks = {}, nil, #found == limits.list_looks_max, 0
    for _, item in ipairs(found) do
      local seen = a.after and item.score == a.after.created_at and item.member >= a.after.budget_id
      if not seen then
        if #items >= a.limit or looks >= limits.list_looks_max / 4 then
          more = true
          break
        end
        looks = looks + 1
        local b = budget.load(tx, item.member)
        if b and (a.namespace == nil or b.namespace == a.namespace) and (a.scope == nil or b.scope.type == a.scope) then
          budget.rolled(tx, b)
          items[#items + 1] = budget.typed(b)
        end
        last = { created_at = item.score, budget_id = item.member }
      end
    end
    return reply.ok("page", { items = items, last = last, more = more })
  end,
}
