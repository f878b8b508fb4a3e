-- Pays what the operations of a list owe to other partitions of the same store, in the same call: what was held against
-- quotas and budgets comes back, and a quota with room calls those that wait for it. On a cluster these are other
-- nodes, and the partition's outbox owes them.
local execution = require "record.execution"
local give_back = require "transition.give_back"
local holds = require "record.holds"
local quota = require "record.quota"
local line = require "index.quota_line"
local quota_key = require "index.quota_key"
local unblock = require "transition.unblock"

local pay = {}

local match = string.match

-- What the name of a set says: the kind of its owner, its id and the digest of a quota's key. A few are remembered.
local parts, part_count = {}, 0
local function parts_of(set)
  local known = parts[set]
  if known == nil then
    if part_count >= 256 then parts, part_count = {}, 0 end
    known = { match(set, "^(%a+):([^:]+):?(.*)$") }
    parts[set], part_count = known, part_count + 1
  end
  return known
end

-- What is owed to one quota or budget, or to the executions of one partition, in the order in which it was first owed.
local function grouped(tx, debts)
  local groups, known, set, owner, group = {}, {}, nil, nil, nil
  for i = 1, #debts do
    local debt = debts[i]
    local called = debt.what == "call"
    if called or debt.set ~= set then
      owner = parts_of(debt.set)
      local to = called and tx:route_of_execution(debt.execution_id) or owner[2]
      group = known[to]
      if group == nil then
        group = { what = called and "call" or owner[1], id = owner[2], route = to, items = {} }
        known[to], groups[#groups + 1] = group, group
      end
      set = not called and debt.set or nil
    end
    debt.key_digest = owner[3]
    group.items[#group.items + 1] = debt
  end
  return groups
end

-- Calls executions of one partition. A quota does not wait for those that will not come.
local function call(tx, group)
  local absent = {}
  local function one(_, debt)
    local rec, waited = unblock.one(tx, debt.execution_id, "waiting_for_quota", debt.holder_id)
    local state = rec and execution.public_state(rec)
    if not waited and state ~= "waiting" and state ~= "resumable" then absent[#absent + 1] = debt end
  end
  for _, debt in ipairs(group.items) do
    if not tx:pay(group.route, debt, one, debt) then
      tx:pay(debt.home, debt, line.call_later, debt.execution_id, debt.holder_id, debt.set)
    end
  end
  for _, debt in ipairs(absent) do
    local function give_up(_, id)
      local q = quota.load(tx, id)
      local k = q and quota_key.load(tx, q, debt.key_digest)
      if k and line.give_up(k, debt.execution_id) then quota_key.save(tx, k) end
    end
    tx:pay(debt.home, debt, give_up, parts_of(debt.set)[2])
  end
end

-- Gives back to one quota or budget; what it cannot take is owed by the outbox of the partition that owes it.
local function release(tx, group)
  local work, route = give_back.budget, nil
  if group.what == "quota" then
    work, route = give_back.quota, tx:route_of_quota(group.id)
  else
    route = tx:route_of_budget(group.id)
  end
  if tx:pay(route, group.items[1], work, group.id, group.items) then return end
  for _, debt in ipairs(group.items) do
    tx:pay(debt.home, debt, holds.owe_later, debt.execution_id, debt.holder_id, debt.set, debt.unused)
  end
end

-- What is paid may be followed by more that is owed: a release by a call, the call of one that is gone by the call of
-- the next.
function pay.all(tx)
  while tx:owing() > 0 do
    for _, group in ipairs(grouped(tx, tx:settle_debts())) do
      if group.what == "call" then call(tx, group) else release(tx, group) end
    end
  end
end

return pay
