local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_cleared_budgets",
  doc = "Budgets of this partition that had room again after a refusal and whose waiting work was not told yet, oldest "
    .. "first; one that is gone has the highest count of rooms.",
  flags = { "no-writes" },
  args = { offset = "count?", limit = "batch_size" },
  reply = { cleared = { items = "[cleared_budget]", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    local found = tx:zlowest(keys.cleared(tx), "-inf", "+inf", a.limit + 1, a.offset)
    for i = 1, math.min(#found, a.limit) do
      local b = budget.load(tx, found[i].member)
      local calendar = b and (b.reset.type == "day" or b.reset.type == "month")
      if b then
        budget.rolled(tx, b)
        items[i] = {
          budget_id = b.id, rooms = b.rooms, wide = b.wide, told = b.told, free = budget.free(b),
          next_reset_wanted = calendar and b.next_reset == nil or false,
        }
      else
        local all = limits.time_ms_max
        items[i] = {
          budget_id = found[i].member, rooms = all, wide = all, told = 0, free = {}, next_reset_wanted = false,
        }
      end
    end
    return reply.ok("cleared", { items = items, more = #found > a.limit })
  end,
}
