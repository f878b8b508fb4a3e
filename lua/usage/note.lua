local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"
local execution = require "record.execution"
local fence = require "record.fence"
local holds = require "record.holds"
local timers = require "index.timers"
local spec = require "record.spec"
local usage = require "record.usage"

local action_of = { cancelled = "cancel", failed = "fail" }

-- The lease ended with an earlier report: its reporter may not have heard so.
local function breached(rec)
  local detail = rec.reason == "waiting_for_budget" and spec.unflatten(rec.detail) or {}
  local action = action_of[rec.outcome] or (rec.attempt_state == "suspended" and "suspend") or "block"
  return reply.err("hard_breach", {
    action = action, budget_id = detail.budget_id, dimension = detail.dimension, used = detail.used,
    limit = detail.limit,
  })
end

define.fn {
  name = "ff_note_usage",
  doc = "A worker says what its attempt used; the report waits for its budget's answer. Without a key it is known by "
    .. "its execution, attempt and sequence; one that waits already under the same key is the same. With a reservation "
    .. "it says what of that was used, and the rest is given back.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", budget_id = "budget_id", dimensions = "amounts",
    dedup_key = "dedup_key?", reservation_id = "reservation_id?",
  },
  reply = { noted = { report = "pending_usage" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "hard_breach",
    "usage_pending",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "budget")
    if refusal == "replay" then return breached(rec) end
    if refusal then return refusal end
    if next(a.dimensions) == nil then
      return reply.err("invalid_argument", { field = "dimensions", problem = "must hold an entry" })
    end
    local list = usage.pending(tx, rec)
    for _, p in ipairs(list) do
      if a.dedup_key and p.dedup_key == a.dedup_key and p.budget_id == a.budget_id then
        return reply.ok("noted", { report = p })
      end
    end
    if #list >= limits.usage_pending_max then return reply.err("usage_pending", { pending = #list }) end
    rec.reports = (rec.reports or 0) + 1
    local p = {
      sequence = rec.reports, budget_id = a.budget_id, attempt_index = rec.attempt, lease_id = rec.lease_id,
      at = tx.now, dimensions = a.dimensions,
      dedup_key = a.dedup_key or string.format("%s:%.0f:%.0f", rec.id, rec.attempt, rec.reports),
      holder_id = holds.in_set(rec, budget.set(a.budget_id)) and holds.of(rec) or nil,
      reservation_id = a.reservation_id,
    }
    list[#list + 1] = p
    usage.store_pending(tx, rec, list)
    if #list == 1 then timers.set(tx, usage.timer(rec.id), tx.now + limits.usage_again_ms) end
    execution.store(tx, rec)
    return reply.ok("noted", { report = p })
  end,
}
