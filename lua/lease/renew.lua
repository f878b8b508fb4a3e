local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local renew = require "transition.renew"

define.fn {
  name = "ff_renew_lease",
  doc = "Moves the end of a lease; says whether the worker is asked to cancel or to yield.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", lease_ttl_ms = "lease_ttl_ms?" },
  reply = { renewed = { lease_expires_at = "time_ms", cancel_requested = "bool", yield_requested = "bool" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = renew.one(tx, rec, a)
    if refusal then return refusal end
    return reply.ok("renewed", {
      lease_expires_at = rec.lease_until, cancel_requested = rec.cancel_by ~= nil, yield_requested = rec.yield ~= nil,
    })
  end,
}
