local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"

define.fn {
  name = "ff_update_progress",
  doc = "Notes how far the running attempt is. No event.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", pct = "pct", message = "progress_message?" },
  reply = { noted = {} },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    rec.progress = cmsgpack.pack({ a.pct, a.message or false })
    execution.save(tx, rec)
    return reply.ok("noted")
  end,
}
