-- Budgets and quotas that were deleted: work may wait under their names, and is told when one comes back.
local keys = require "lib.keys"
local limits = require "lib.limits"

local gone = {}

function gone.note(tx, id)
  local until_ms = string.format("%.0f", tx.now - limits.gone_kept_ms)
  for _, old in ipairs(tx:zlowest(keys.gone(tx), "-inf", until_ms, limits.batch_max)) do
    tx:zrem(keys.gone(tx), old.member)
  end
  tx:zadd(keys.gone(tx), tx.now, id)
end

-- True for one that was deleted not long ago: to delete it again is no mistake.
function gone.had(tx, id)
  return tx:zscore(keys.gone(tx), id) ~= nil
end

-- One of this name is made: true when there was one before.
function gone.back(tx, id)
  if tx:zscore(keys.gone(tx), id) == nil then return false end
  tx:zrem(keys.gone(tx), id)
  return true
end

return gone
