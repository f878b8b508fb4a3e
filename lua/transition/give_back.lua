-- What executions held against quotas and budgets comes back.
local budget = require "record.budget"
local budget_holds = require "record.budget_holds"
local holders = require "index.holders"
local holds = require "record.holds"
local keys = require "lib.keys"
local quota = require "record.quota"
local room = require "index.room"

local give_back = {}

-- The quota or its key is gone: only the holder is left to go.
local function leave_alone(tx, id, item)
  local key, member = keys.holders(tx, holds.of_quota(id, item.key_digest)), holders.member(item)
  if tx:zscore(key, member) == nil then return false end
  tx:zrem(key, member)
  return true
end

-- Takes holders out of a quota, those that never ran (`unused`) with what their start took. Answers how many there
-- were.
function give_back.quota(tx, id, items)
  local q = quota.load(tx, id)
  local known, order, count = {}, {}, 0
  for _, item in ipairs(items) do
    local k = known[item.key_digest]
    if k == nil then
      k = q and room.load(tx, q, item.key_digest) or false
      known[item.key_digest] = k
    end
    local left
    if k then
      left = room.leave(tx, k, holders.member(item), item.unused)
      if left and not k.touched then
        k.touched, order[#order + 1] = true, k
      end
    else
      left = leave_alone(tx, id, item)
    end
    if left then count = count + 1 end
  end
  for _, k in ipairs(order) do room.save(tx, k) end
  return count
end

-- Drops what holders hold against a budget, their reservations included. Answers how many held something.
function give_back.budget(tx, id, items)
  local path = budget.path(tx, id)
  if path == nil then
    for _, item in ipairs(items) do tx:zrem(keys.holders(tx, budget.set(id)), holders.member(item)) end
    return 0
  end
  local members, seen = {}, {}
  for _, item in ipairs(items) do
    local member = holders.member(item)
    if not seen[member] then
      seen[member], members[#members + 1] = true, member
    end
  end
  if #members == 0 then return 0 end
  local count = budget_holds.drop_holders(tx, path, members)
  if count > 0 then budget.save_all(tx, path) end
  return count
end

return give_back
