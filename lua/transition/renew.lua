-- Moves the end of a lease.
local execution = require "record.execution"
local fence = require "record.fence"

local renew = {}

function renew.one(tx, rec, a)
  local refusal = fence.check(rec, a.fence, tx.now)
  if refusal then return refusal end
  rec.lease_ttl = a.lease_ttl_ms or rec.lease_ttl
  rec.lease_until = tx.now + rec.lease_ttl
  rec.renewals = (rec.renewals or 0) + 1
  execution.save(tx, rec)
end

return renew
