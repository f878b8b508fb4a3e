local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"
local execution = require "record.execution"
local fence = require "record.fence"
local holds = require "record.holds"

define.fn {
  name = "ff_hold_budget",
  doc = "A running execution is about to reserve from a budget: from now on the end of its lease gives back what it "
    .. "holds there.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", budget_id = "budget_id" },
  reply = { held = { holder_id = "holder_id" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local set = budget.set(a.budget_id)
    if not holds.in_set(rec, set) then
      if #(holds.sets(rec) or {}) >= limits.holder_sets_max then
        return reply.err("invalid_argument", { field = "budget_id", problem = "holds in too many sets already" })
      end
      holds.join(rec, set)
      execution.save(tx, rec)
    end
    return reply.ok("held", { holder_id = holds.of(rec) })
  end,
}
