local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local interrupt = require "transition.interrupt"

define.fn {
  name = "ff_delay_execution",
  doc = "The worker hands its execution back until a time; counted against neither attempts nor reclaims. A time "
    .. "already past means now.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", delay_until = "time_ms?", delay_ms = "duration_ms?" },
  reply = { delayed = { delay_until = "time_ms", replayed = "bool" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    if (a.delay_until == nil) == (a.delay_ms == nil) then
      return reply.err("invalid_argument", {
        field = "delay_until", problem = "give delay_until or delay_ms, one of them",
      })
    end
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "delay")
    if refusal == "replay" then return reply.ok("delayed", { delay_until = rec.ended_value, replayed = true }) end
    if refusal then return refusal end
    local at = a.delay_until or tx.now + a.delay_ms
    interrupt.handed_back(tx, rec, "delay", at, "execution.delayed")
    return reply.ok("delayed", { delay_until = at, replayed = false })
  end,
}
