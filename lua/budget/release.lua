local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local budget = require "record.budget"
local holds = require "record.budget_holds"
local holders = require "index.holders"

define.fn {
  name = "ff_release_budget",
  doc = "Drops what holders hold against a budget, their reservations included; who holds nothing is passed over, and so is a budget that is gone.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", holders = "holders" },
  reply = { released = { count = "count" } },
  errs = {},
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    local count = 0
    if path == nil then
      for _, holder in ipairs(a.holders) do tx:zrem(keys.holders(tx, budget.set(a.budget_id)), holders.member(holder)) end
    else
      for _, holder in ipairs(a.holders) do
        if holds.drop_holder(tx, path, holders.member(holder)) then count = count + 1 end
      end
      if count > 0 then budget.save_all(tx, path) end
    end
    return reply.ok("released", { count = count })
  end,
}
