-- What must hold for a budget: what is used can be counted again from its reports, what is held from its holds, and no
-- limit is passed.
local keys = require "lib.keys"
local limits = require "lib.limits"
local budget = require "record.budget"

local invariants = {}

local function add(sum, flat)
  for name, n in pairs(budget.map(flat)) do sum[name] = (sum[name] or 0) + n end
end

-- 30: what is used is the sum of the reports accepted in this period, and of what is known about those that are kept
-- elsewhere.
local function check_used(tx, b, key, findings, found)
  local sum = {}
  for _, packed in pairs(tx:hgetall(keys.budget_reports(tx, b.id)) or {}) do
    local l = cmsgpack.unpack(packed)
    if l[1] == b.period then add(sum, l[2]) end
  end
  for _, d in ipairs(b.dimensions) do
    local counted = b.base[d.name] + (sum[d.name] or 0)
    if counted ~= b.used[d.name] then
      found(findings, 30, key, string.format("%s: %.0f used, reports say %.0f", d.name, b.used[d.name], counted), false)
    end
  end
end

-- What is held is the sum of the holds here and of what is held right below. Repaired from the holds, which are what
-- counts.
local function check_held(tx, b, key, findings, repair, found)
  local sum = {}
  for _, packed in pairs(tx:hgetall(keys.budget_holds(tx, b.id)) or {}) do add(sum, cmsgpack.unpack(packed)[1]) end
  for _, item in ipairs(tx:zlowest(keys.budget_children(tx, b.id), "-inf", "+inf", limits.budget_children_max)) do
    local child = budget.load(tx, item.member)
    for name, n in pairs(child and child.held or {}) do sum[name] = (sum[name] or 0) + n end
  end
  local wrong = false
  for _, d in ipairs(b.dimensions) do
    local counted = sum[d.name] or 0
    if counted ~= b.held[d.name] then
      found(findings, 32, key, string.format("%s: %.0f held, holds say %.0f", d.name, b.held[d.name], counted), repair)
      b.held[d.name], wrong = counted, true
    end
  end
  if wrong and repair then budget.save(tx, b) end
end

local function check_limits(b, key, findings, found)
  for _, d in ipairs(b.dimensions) do
    local n = b.used[d.name] + b.held[d.name]
    if d.hard and n > d.hard and not b.passed then
      found(findings, 31, key, string.format("%s: %.0f used and held, the limit is %.0f", d.name, n, d.hard), false)
    end
  end
end

local function check_core(tx, b, key, findings, repair, found)
  check_used(tx, b, key, findings, found)
  check_limits(b, key, findings, found)
  check_held(tx, b, key, findings, repair, found)
  local at = tx:zscore(keys.timers(tx), budget.timer(b.id))
  if at ~= b.next_reset then
    found(findings, 11, keys.timers(tx), budget.timer(b.id) .. " does not stand at the next reset", repair)
    if repair then budget.watch(tx, b) end
  end
  if tx:zscore(keys.budgets(tx), b.id) ~= b.created then
    found(findings, 10, keys.budgets(tx), b.id .. " is missing from this list", repair)
    if repair then tx:zadd(keys.budgets(tx), b.created, b.id) end
  end
end

-- Who holds something is a holder, and who is a holder has a hold.
local function check_holders(tx, b, key, findings, found)
  local set = keys.holders(tx, budget.set(b.id))
  for name in pairs(tx:hgetall(key) or {}) do
    if #name > 36 and tx:zscore(set, name) == nil then
      found(findings, 32, key, name .. " is no holder of the budget", false)
    end
  end
end

-- One key of the family: `<id>:<part>`.
function invariants.key(tx, key, rest, findings, repair, found)
  local b = budget.load(tx, string.sub(rest, 1, 36))
  local part = string.sub(rest, 38)
  if b == nil then
    found(findings, 37, key, "its budget is gone", repair)
    if repair then tx:del(key) end
  elseif part == "core" then
    check_core(tx, b, key, findings, repair, found)
  elseif part == "holds" then
    check_holders(tx, b, key, findings, found)
  end
end

-- Entries of a list of budgets must be stored; one that was just removed may still have to be told of.
function invariants.list(tx, key, findings, repair, found)
  for _, item in ipairs(tx:zlowest(key, "-inf", "+inf", limits.list_looks_max)) do
    if budget.load(tx, item.member) == nil then
      found(findings, 37, key, item.member .. " has no record", repair)
      if repair then tx:zrem(key, item.member) end
    end
  end
end

-- True when a timer of the family has something to wake.
function invariants.timed(tx, kind, name)
  local id = string.sub(name, 1, 36)
  if budget.load(tx, id) == nil then return false end
  return kind == "budget" or tx:hget(keys.budget_holds(tx, id), string.sub(name, 38)) ~= nil
end

return invariants
