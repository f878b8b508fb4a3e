local define = require "lib.define"
local reply = require "lib.reply"
local ask = require "transition.ask"

define.fn {
  name = "ff_admit_budget",
  doc = "Holds the estimates of executions about to start, in order, as far as every limit up the tree allows; without "
    .. "an estimate something must be left in every hard dimension. A holder that was admitted is admitted again.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", candidates = "budget_candidates" },
  reply = { answered = { items = "[budget_verdict]" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local items = {}
    if not ask.budget(tx, a.budget_id, a.candidates) then
      return reply.err("budget_not_found", { budget_id = a.budget_id })
    end
    for i, c in ipairs(a.candidates) do
      local item = c.wall or {}
      item.holder_id, item.admitted = c.holder_id, c.admitted or false
      items[i] = item
    end
    return reply.ok("answered", { items = items })
  end,
}
