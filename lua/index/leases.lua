-- The leases a worker instance holds in this partition: lease id → execution id.
local keys = require "lib.keys"

local leases = {}

function leases.add(tx, rec)
  tx:hput(keys.leases(tx, rec.worker), rec.lease_id, rec.id)
end

function leases.remove(tx, rec)
  tx:hdel(keys.leases(tx, rec.worker), rec.lease_id)
end

-- Lease id → execution id of every lease the instance holds here.
function leases.of(tx, instance)
  return tx:hgetall(keys.leases(tx, instance)) or {}
end

-- The ids of the executions, in order.
function leases.ids(tx, instance)
  local ids = {}
  for _, id in pairs(leases.of(tx, instance)) do ids[#ids + 1] = id end
  table.sort(ids)
  return ids
end

-- The executions that some of these leases hold, in the order of the leases, and the places of those that hold none;
-- nil when none does.
function leases.held(tx, instance, lease_ids)
  local found = tx:hmget(keys.leases(tx, instance), lease_ids)
  for i = 1, #lease_ids do
    if found[i] then
      local ids, free = {}, {}
      for at = 1, #lease_ids do
        if found[at] then ids[#ids + 1] = found[at] else free[#free + 1] = at end
      end
      return ids, free
    end
  end
end

return leases
