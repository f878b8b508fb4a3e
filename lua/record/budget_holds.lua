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

-- What a holder holds, as it is stored.
function holds.text(amounts, reservations)
  return cmsgpack.pack({ budget.flat(amounts), reservations })
end

function holds.put_holder(tx, id, member, hold)
  tx:hput(keys.budget_holds(tx, id), member, holds.text(hold.amounts, hold.reservations))
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

-- The amounts, multiplied.
local function times(amounts, count)
  if count == 1 then return amounts end
  local sum = {}
  for name, n in pairs(amounts) do sum[name] = n * count end
  return sum
end
holds.times = times

-- Gives `count` equal holds (default 1) back all the way up, so that refused executions may ask again. Each hold makes
-- a room of its own, as if it had come alone.
function holds.give_back(tx, path, amounts, count)
  if not any(amounts) then return end
  count = count or 1
  budget.hold(path, times(amounts, count), -1)
  for _, b in ipairs(path) do
    for _ = 1, count do budget.room(tx, b) end
  end
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

-- Drops what a holder reserved.
local function drop_reservations(tx, path, reservations)
  local id = path[1].id
  for _, reservation in ipairs(reservations) do
    local r = holds.reservation(tx, id, reservation)
    if r then
      forget_reservation(tx, id, reservation, r)
      holds.give_back(tx, path, r.amounts)
    end
  end
end

-- Drops holders and all they reserved. Returns how many of them held something. What equal holds held is given back in
-- one step.
function holds.drop_holders(tx, path, members)
  local id, count, alike, order = path[1].id, 0, {}, {}
  local all, texts = keys.holders(tx, budget.set(id)), keys.budget_holds(tx, id)
  local stored = tx:hmget(texts, members)
  for i = 1, #members do
    local member, hold = members[i], stored[i]
    tx:zrem(all, member)
    if hold then
      tx:hdel(texts, member)
      if alike[hold] == nil then order[#order + 1] = hold end
      alike[hold], count = (alike[hold] or 0) + 1, count + 1
    end
  end
  for _, text in ipairs(order) do
    local hold = opened(text)
    holds.give_back(tx, path, hold.amounts, alike[text])
    drop_reservations(tx, path, hold.reservations)
  end
  return count
end

-- Enters holders until their deadlines (`expires_at`), after which their executions are asked for. A fresh one was
-- never entered before. `hold` is what each of them holds, as `holds.text` packs it.
function holds.enter(tx, id, entering, hold)
  local set, first = budget.set(id), holders.open_ended
  local all, texts = keys.holders(tx, set), keys.budget_holds(tx, id)
  for i = 1, #entering do
    local one = entering[i]
    local member, deadline = one.member or holders.member(one), one.expires_at
    if one.fresh or tx:zscore(all, member) == nil then
      tx:zadd(all, deadline, member)
      if deadline < first then first = deadline end
    end
    tx:hput(texts, member, hold)
  end
  if first < holders.open_ended then holders.watch(tx, set, first) end
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
