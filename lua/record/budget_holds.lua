-- What is held against a budget: the estimates of work that was admitted, and reservations. A hold under a holder goes
-- when the holder is released; a reservation without one goes when its time is over.
local keys = require "lib.keys"
local budget = require "record.budget"
local holders = require "index.holders"
local timers = require "index.timers"

local holds = {}

local function timer(id, reservation) return "hold:" .. id .. ":" .. reservation end

-- Fields of the hash: a holder as `<execution>:<holder>` with its amounts and the reservations made under it; a
-- reservation as its id with its amounts, its end or false, and its holder or false.
local function opened(packed)
  local l = cmsgpack.unpack(packed)
  return { amounts = budget.map(l[1]), reservations = l[2] }
end

function holds.of_holder(tx, id, member)
  local packed = tx:hget(keys.budget_holds(tx, id), member)
  return packed and opened(packed) or nil
end

-- What some holders hold, as it is stored; false for one that holds nothing. None of it has changed in this plan.
function holds.of_holders(tx, id, members)
  return tx:hmget(keys.budget_holds(tx, id), members)
end

function holds.put_holder(tx, id, member, hold)
  tx:hset(keys.budget_holds(tx, id), { member, cmsgpack.pack({ budget.flat(hold.amounts), hold.reservations }) })
end

function holds.reservation(tx, id, reservation)
  local packed = tx:hget(keys.budget_holds(tx, id), reservation)
  if packed == nil then return nil end
  local l = cmsgpack.unpack(packed)
  return { amounts = budget.map(l[1]), ends = l[2] or nil, member = l[3] or nil }
end

local function put_reservation(tx, id, reservation, hold)
  tx:hset(keys.budget_holds(tx, id), {
    reservation, cmsgpack.pack({ budget.flat(hold.amounts), hold.ends or false, hold.member or false }),
  })
end

function holds.reserve(tx, id, reservation, hold)
  put_reservation(tx, id, reservation, hold)
  if hold.ends then timers.set(tx, timer(id, reservation), hold.ends) end
end

local function forget_reservation(tx, id, reservation, hold)
  tx:hdel(keys.budget_holds(tx, id), reservation)
  if hold.ends then timers.clear(tx, timer(id, reservation)) end
end

local function any(amounts)
  for _, n in pairs(amounts) do
    if n > 0 then return true end
  end
  return false
end

-- Gives amounts back all the way up; whoever was refused may ask again.
function holds.give_back(tx, path, amounts)
  if not any(amounts) then return end
  budget.hold(path, amounts, -1)
  for _, b in ipairs(path) do budget.room(tx, b) end
end

-- Drops a reservation; its holder stays with what else it holds.
function holds.drop_reservation(tx, path, reservation, hold)
  local id = path[1].id
  forget_reservation(tx, id, reservation, hold)
  local holder = hold.member and holds.of_holder(tx, id, hold.member)
  if holder then
    local rest = {}
    for _, other in ipairs(holder.reservations) do
      if other ~= reservation then rest[#rest + 1] = other end
    end
    holder.reservations = rest
    holds.put_holder(tx, id, hold.member, holder)
  end
end

-- Drops a holder and all it reserved; `stored` is what it holds. Answers whether it held anything.
function holds.drop_holder(tx, path, member, stored)
  local id = path[1].id
  tx:zrem(keys.holders(tx, budget.set(id)), member)
  if not stored then return false end
  local hold = opened(stored)
  tx:hdel(keys.budget_holds(tx, id), member)
  holds.give_back(tx, path, hold.amounts)
  for _, reservation in ipairs(hold.reservations) do
    local r = holds.reservation(tx, id, reservation)
    if r then
      forget_reservation(tx, id, reservation, r)
      holds.give_back(tx, path, r.amounts)
    end
  end
  return true
end

-- Enters a holder until a deadline, after which its execution is asked for. A fresh one was never entered before.
function holds.enter(tx, id, member, deadline, amounts, fresh)
  local set = budget.set(id)
  if fresh or tx:zscore(keys.holders(tx, set), member) == nil then
    tx:zadd(keys.holders(tx, set), deadline, member)
    if deadline < holders.open_ended then holders.watch(tx, set, deadline) end
  end
  holds.put_holder(tx, id, member, { amounts = amounts, reservations = {} })
end

-- How much of the amounts the holder's own holds cover: its estimate first, then its reservations in their order.
function holds.own(tx, id, member, amounts)
  local parts, sum = {}, {}
  local function look(name, hold)
    local part = {}
    for dimension, n in pairs(amounts) do
      local take = math.min(hold.amounts[dimension] or 0, n - (sum[dimension] or 0))
      if take > 0 then part[dimension], sum[dimension] = take, (sum[dimension] or 0) + take end
    end
    parts[#parts + 1] = { name = name, hold = hold, take = part }
  end
  local holder = member and holds.of_holder(tx, id, member)
  if holder then
    look(member, holder)
    for _, reservation in ipairs(holder.reservations) do look(reservation, holds.reservation(tx, id, reservation)) end
  end
  return sum, parts
end

-- Takes what `own` found out of the holds.
function holds.consume(tx, path, sum, parts)
  local id = path[1].id
  for _, part in ipairs(parts) do
    if any(part.take) then
      for dimension, n in pairs(part.take) do part.hold.amounts[dimension] = part.hold.amounts[dimension] - n end
      if part.hold.reservations then
        holds.put_holder(tx, id, part.name, part.hold)
      else
        put_reservation(tx, id, part.name, part.hold)
      end
    end
  end
  budget.hold(path, sum, -1)
end

-- The time of a reservation is over.
function holds.fire(tx, id, reservation)
  local path = budget.path(tx, id)
  local hold = path and holds.reservation(tx, id, reservation)
  if hold == nil then return timers.clear(tx, timer(id, reservation)) end
  if hold.ends and hold.ends > tx.now then return tx:zadd(keys.timers(tx), hold.ends, timer(id, reservation)) end
  holds.drop_reservation(tx, path, reservation, hold)
  holds.give_back(tx, path, hold.amounts)
  budget.save_all(tx, path)
end

return holds
