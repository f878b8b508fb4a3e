-- The leases a worker instance holds in this partition, each with the request that claimed it.
local keys = require "lib.keys"

local leases = {}

-- Plans the entry that the record's state implies.
function leases.keep(tx, rec)
  local holder = rec.phase == "active" and rec.worker or nil
  local before = rec.before.worker
  if before and before ~= holder then tx:hdel(keys.leases(tx, before), rec.id) end
  if holder and (before ~= holder or rec.before.request ~= rec.request) then
    tx:hset(keys.leases(tx, holder), { rec.id, rec.request or "" })
  end
  rec.before.worker, rec.before.request = holder, rec.request
end

-- Execution id → request id of every lease the instance holds here.
function leases.of(tx, instance)
  return tx:hgetall(keys.leases(tx, instance)) or {}
end

-- The ids in order.
function leases.ids(tx, instance)
  local ids = {}
  for id in pairs(leases.of(tx, instance)) do ids[#ids + 1] = id end
  table.sort(ids)
  return ids
end

return leases
