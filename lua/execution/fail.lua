local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local retry = require "transition.retry"

define.fn {
  name = "ff_fail_execution",
  doc = "Ends the running attempt with a failure; the retry policy decides whether another one follows.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", reason = "reason", category = "category", retryable = "bool?",
    retry_after_ms = "duration_ms?", draw = "permille",
  },
  reply = { retry_scheduled = { delay_until = "time_ms", replayed = "bool" }, failed = { replayed = "bool" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "fail", "retry")
    if refusal == "replay" then
      if rec.ended_by == "fail" then return reply.ok("failed", { replayed = true }) end
      return reply.ok("retry_scheduled", { delay_until = rec.ended_value, replayed = true })
    end
    if refusal then return refusal end
    local at = retry.after_failure(tx, rec, {
      by = "fail", attempt_state = "failed", reason = a.reason, category = a.category, retryable = a.retryable,
      retry_after_ms = a.retry_after_ms, draw = a.draw,
    })
    if at then return reply.ok("retry_scheduled", { delay_until = at, replayed = false }) end
    return reply.ok("failed", { replayed = false })
  end,
}
