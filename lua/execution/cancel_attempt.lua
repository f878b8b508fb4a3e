local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local finish = require "transition.finish"

define.fn {
  name = "ff_cancel_attempt",
  doc = "The worker that holds the lease cancels its execution.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", reason = "reason?" },
  reply = { cancelled = {}, replayed = {} },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "cancel")
    if refusal == "replay" then return reply.ok("replayed") end
    if refusal then return refusal end
    finish.execution(tx, rec, "cancelled", {
      by = "cancel", attempt_state = "cancelled", failure = { a.reason or rec.cancel_reason or "", "cancelled" },
    })
    return reply.ok("cancelled")
  end,
}
