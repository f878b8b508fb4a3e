local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local fence = require "record.fence"
local waitpoint = require "record.waitpoint"

define.fn {
  name = "ff_close_waitpoint",
  doc = "The worker gives up a pending waitpoint; its early signals no longer count.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", waitpoint_id = "waitpoint_id" },
  reply = { closed = { replayed = "bool" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked",
    "waitpoint_not_found",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local w = waitpoint.load(tx, a.waitpoint_id)
    if w == nil or w.exec ~= rec.id then return reply.err("waitpoint_not_found", { waitpoint_id = a.waitpoint_id }) end
    if w.state == "closed" then
      if rec.answered and w.early then
        waitpoint.forget_answered(tx, rec, function(entry) return entry[1] == w.id end)
        execution.save(tx, rec)
      end
      return reply.ok("closed", { replayed = true })
    end
    waitpoint.close(tx, rec, "closed", function(entry) return entry[1] == a.waitpoint_id end)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "waitpoint.closed", "waitpoint_id", a.waitpoint_id, "key", w.key)
    return reply.ok("closed", { replayed = false })
  end,
}
