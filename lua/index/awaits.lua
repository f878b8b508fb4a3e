-- Who waits for what is kept in another partition: the line of each budget, by queue score, and those whose quota is
-- not there, by the time they were refused.
local keys = require "lib.keys"
local limits = require "lib.limits"
local spec = require "record.spec"

local awaits = {}

-- The key and score that the state implies; nothing for work that waits for none of these.
function awaits.of(tx, rec)
  if rec.phase ~= "runnable" or rec.detail == nil then return nil end
  if rec.reason == "waiting_for_budget" then
    local id = spec.unflatten(rec.detail).budget_id
    if id then return keys.awaits(tx, id), rec.score end
  elseif rec.reason == "waiting_for_quota" and spec.unflatten(rec.detail).problem then
    return keys.missing(tx), rec.since
  end
end

-- Plans the entry that the record's state implies.
function awaits.keep(tx, rec)
  local key, score = awaits.of(tx, rec)
  local was = rec.was_awaits
  if was == key and rec.was_awaits_at == score then return end
  if was and was ~= key then tx:zrem(was, rec.id) end
  if key then tx:zadd(key, score, rec.id) end
  rec.was_awaits, rec.was_awaits_at = key, score
end

-- Up to `count` entries of a line behind a position, the first to go on first.
function awaits.page(tx, key, after, count)
  local from = after and string.format("%.0f", after.score) or "-inf"
  local out, skip = {}, 0
  while #out < count do
    local found = tx:zlowest(key, from, "+inf", limits.list_looks_max, skip)
    for _, item in ipairs(found) do
      local behind = after == nil or item.score > after.score or item.member > after.execution_id
      if behind and #out < count then out[#out + 1] = item end
    end
    if #found < limits.list_looks_max then break end
    skip = skip + limits.list_looks_max
  end
  return out
end

function awaits.position(item)
  return { score = item.score, execution_id = item.member }
end

return awaits
