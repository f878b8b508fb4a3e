-- What executions held against quotas and budgets comes back.
local budget = require "record.budget"
local budget_holds = require "record.budget_holds"
local holders = require "index.holders"
local holds = require "record.holds"
local keys = require "lib.keys"
local quota = require "record.quota"
local capacity = require "index.quota_capacity"
local quota_key = require "index.quota_key"

local give_back = {}

-- Holders without those that are listed twice, as members of their set.
local function members_of(items)
  local members, seen, n = {}, {}, 0
  for i = 1, #items do
    local member = holders.member(items[i])
    if not seen[member] then
      n = n + 1
      seen[member], members[n] = true, member
    end
  end
  return members
end

-- The quota or its key is gone: only the holders are left to go.
local function leave_alone(tx, set, items)
  local key, members, count = keys.holders(tx, set), members_of(items), 0
  for i, score in ipairs(tx:zscores(key, members)) do
    if score then
      tx:zrem(key, members[i])
      count = count + 1
    end
  end
  return count
end

-- Takes holders out of a quota, those that never ran (`unused`) with what their start took. Answers how many there
-- were.
function give_back.quota(tx, id, items)
  local q, digests, count = quota.load(tx, id), {}, 0
  local digest, of_key, by_key = nil, nil, {}
  for i = 1, #items do
    local item = items[i]
    if item.key_digest ~= digest then
      digest = item.key_digest
      of_key = by_key[digest]
      if of_key == nil then
        of_key = {}
        by_key[digest], digests[#digests + 1] = of_key, digest
      end
    end
    of_key[#of_key + 1] = item
  end
  for _, one in ipairs(digests) do
    local k, left = q and quota_key.load(tx, q, one), nil
    if k then
      left = capacity.leave(tx, k, by_key[one])
      if left > 0 then quota_key.save(tx, k) end
    else
      left = leave_alone(tx, holds.of_quota(id, one), by_key[one])
    end
    count = count + left
  end
  return count
end

-- Drops what holders hold against a budget, their reservations included. Answers how many held something.
function give_back.budget(tx, id, items)
  local path, members = budget.path(tx, id), members_of(items)
  if path == nil then
    for _, member in ipairs(members) do tx:zrem(keys.holders(tx, budget.set(id)), member) end
    return 0
  end
  if #members == 0 then return 0 end
  local count = budget_holds.drop_holders(tx, path, members)
  if count > 0 then budget.save_all(tx, path) end
  return count
end

return give_back
