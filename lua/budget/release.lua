local define = require "lib.define"
local reply = require "lib.reply"
local give_back = require "transition.give_back"

define.fn {
  name = "ff_release_budget",
  doc = "Drops what holders hold against a budget, their reservations included; who holds nothing is passed over, and "
    .. "so is a budget that is gone.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", holders = "holders" },
  reply = { released = { count = "count" } },
  errs = {},
  call = function(tx, a)
    return reply.ok("released", { count = give_back.budget(tx, a.budget_id, a.holders) })
  end,
}
