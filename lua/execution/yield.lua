local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local interrupt = require "transition.interrupt"

define.fn {
  name = "ff_yield_execution",
  doc = "The worker hands its execution back: eligible at once, counted nowhere.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence" },
  reply = { yielded = {}, replayed = {} },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "yield")
    if refusal == "replay" then return reply.ok("replayed") end
    if refusal then return refusal end
    interrupt.handed_back(tx, rec, "yield", nil, "execution.yielded")
    return reply.ok("yielded")
  end,
}
