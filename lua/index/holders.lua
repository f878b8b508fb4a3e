-- The holders of a concurrency limit: a sorted set of `<execution>:<holder id>` by deadline, never a counter.
--
-- A holder enters with a deadline and stays without one once its execution is known to run. A deadline alone frees
-- nothing: when it has passed, someone asks the execution's partition, which is the only one to know. Until then it
-- counts.
local keys = require "lib.keys"
local limits = require "lib.limits"
local timers = require "index.timers"

local holders = {}

-- The score of a holder without a deadline: behind every time.
holders.open_ended = limits.time_ms_max

function holders.member(holder)
  return holder.execution_id .. ":" .. holder.holder_id
end

function holders.typed(item)
  local deadline = item.score < holders.open_ended and item.score or nil
  return {
    execution_id = string.sub(item.member, 1, 36), holder_id = string.sub(item.member, 38), expires_at = deadline,
  }
end

-- The set's capacity: { limit (nil = none), version }, or nil when it was never given one.
function holders.capacity(tx, set)
  local raw = tx:hgetall(keys.capacity(tx, set))
  if raw == nil then return nil end
  if raw.version == nil then error("CORRUPT " .. keys.capacity(tx, set) .. " version") end
  return { limit = tonumber(raw.limit or nil), version = tonumber(raw.version) }
end

function holders.timer(set)
  return "holders:" .. set
end

-- Plans the wake-up at a deadline, unless an earlier one is set.
function holders.watch(tx, set, deadline)
  local at = tx:zscore(keys.timers(tx), holders.timer(set))
  if at == nil or deadline < at then timers.set(tx, holders.timer(set), deadline) end
end

-- A full set has room again: whoever was told that it is full hears of it.
function holders.announce_room(tx, set, limit_before, held_before, limit, held)
  local was_full = limit_before ~= nil and held_before >= limit_before
  if was_full and (limit == nil or held < limit) then
    tx:announce("slot", set, limit and limit - held or limits.active_max)
  end
end

-- A deadline may have passed. Executions live in other partitions: whoever can ask them is told, again and again until
-- it has, since the asking moves the deadline or removes the holder.
function holders.fire(tx, set)
  local head = tx:zhead(keys.holders(tx, set))
  if head == nil or head.score == holders.open_ended then
    timers.clear(tx, holders.timer(set))
  elseif head.score > tx.now then
    tx:zadd(keys.timers(tx), head.score, holders.timer(set))
  else
    tx:announce("overdue", set)
    tx:zadd(keys.timers(tx), tx.now + limits.overdue_again_ms, holders.timer(set))
  end
end

-- fsck of one key of the family: a deadline needs its timer. Who is in the set is checked against the executions
-- elsewhere.
function holders.check(tx, rest, findings, repair, found)
  local set = string.match(rest, "^(.+):holders$")
  if set == nil then
    if not string.find(rest, ":capacity$") then
      found(findings, 37, "ff:quota:" .. tx.tag .. ":" .. rest, "nobody owns this key", false)
    end
    return
  end
  local head = tx:zhead(keys.holders(tx, set))
  if head == nil or head.score == holders.open_ended then return end
  local at = tx:zscore(keys.timers(tx), holders.timer(set))
  -- A timer that fired for an overdue head stands a moment behind it.
  if at == nil or at > math.max(head.score, tx.now + limits.overdue_again_ms) then
    local problem = holders.timer(set) .. string.format(" should wake at %.0f", head.score)
    found(findings, 11, keys.timers(tx), problem, repair)
    if repair then tx:zadd(keys.timers(tx), head.score, holders.timer(set)) end
  end
end

return holders
