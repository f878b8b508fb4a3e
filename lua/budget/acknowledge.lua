local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_acknowledge_cleared",
  doc = "Everyone who has seen fewer rooms of a budget than `told` was told, and of those who had seen fewer than "
    .. "`rooms` as many as may fit; if it had room once more since, or waits for its next reset, the mark stays.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", rooms = "count", told = "count" },
  reply = { acknowledged = { stays = "bool" } },
  errs = {},
  call = function(tx, a)
    local b = budget.load(tx, a.budget_id)
    local calendar = b and (b.reset.type == "day" or b.reset.type == "month")
    local stays = b ~= nil and (b.rooms > a.rooms or (calendar and b.next_reset == nil))
    if not stays then tx:zrem(keys.cleared(tx), a.budget_id) end
    if b and a.told > b.told and a.told <= b.rooms then
      b.told = a.told
      budget.save(tx, b)
    end
    return reply.ok("acknowledged", { stays = stays })
  end,
}
