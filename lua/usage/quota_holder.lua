local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local holds = require "record.holds"

define.fn {
  name = "ff_quota_holder",
  doc = "Under which id a quota has let a running execution in, and what time it is. `free`: nothing holds it there.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id", fence = "fence", quota_id = "quota_id", key = "quota_key" },
  reply = { held = { holder_id = "holder_id", now = "time_ms" }, free = { now = "time_ms" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local holder = holds.holder_in(rec, holds.of_quota(a.quota_id, keys.digest(a.key)))
    if holder == nil then return reply.ok("free", { now = tx.now }) end
    return reply.ok("held", { holder_id = holder, now = tx.now })
  end,
}
