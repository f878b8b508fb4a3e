local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_set_next_reset",
  doc = "Says when the period of a budget that resets by the calendar ends; only one that waits for it takes it.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", period = "count", next_reset_at = "time_ms" },
  reply = { set = {}, unchanged = {} },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local b = budget.load(tx, a.budget_id)
    if b == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local waits = (b.reset.type == "day" or b.reset.type == "month") and b.next_reset == nil
    if not waits or b.period ~= a.period then return reply.ok("unchanged") end
    b.next_reset = a.next_reset_at
    budget.watch(tx, b)
    budget.save(tx, b)
    return reply.ok("set")
  end,
}
