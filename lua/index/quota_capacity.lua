-- How much of one key of a quota is used, and whether one more passes: starts in a window, holders, weight in a window.
--
-- Everything is read when the key is loaded and counted in memory from there on; `write` plans what has changed.
local holders = require "index.holders"
local keys = require "lib.keys"
local limits = require "lib.limits"

local capacity = {}

local function text(n) return string.format("%.0f", n) end

-- Entries that stand in the window that ends now.
local function inside(tx, window_ms) return "(" .. text(tx.now - window_ms) end

-- Entries the window has passed, a bounded number of them.
local function passed(tx, key, window_ms)
  return tx:zlowest(key, "-inf", text(tx.now - window_ms), limits.window_sweep_max)
end

local function load_rate(tx, k, rate)
  k.rate = keys.quota_part(tx, k.q.id, "rate", k.digest)
  k.starts = tx:zcount(k.rate, inside(tx, rate.window_ms), "+inf")
  k.newest = tx:zhighest(k.rate, "+inf", "-inf", 1)[1]
  k.rate_passed = passed(tx, k.rate, rate.window_ms)
end

-- The sum is kept with the key; what the window has passed is taken off it here. `behind`: more has passed than one
-- call takes off.
local function load_weighted(tx, k, weighted)
  k.weighted, k.weights =
    keys.quota_part(tx, k.q.id, "weighted", k.digest), keys.quota_part(tx, k.q.id, "weights", k.digest)
  k.weighted_passed = passed(tx, k.weighted, weighted.window_ms)
  k.behind = #k.weighted_passed == limits.window_sweep_max
  local gone = {}
  for i, item in ipairs(k.weighted_passed) do gone[i] = item.member end
  k.sum = k.was.sum or 0
  if #gone > 0 then
    for _, weight in ipairs(tx:hmget(k.weights, gone)) do k.sum = k.sum - (tonumber(weight) or 0) end
  end
  k.heaviest = tx:zhighest(k.weighted, "+inf", "-inf", 1)[1]
end

-- Reads what is used of each part that the definition has.
function capacity.load(tx, k)
  local d = k.q.definition
  k.held = tx:zcard(k.holders)
  if d.rate then load_rate(tx, k, d.rate) end
  if d.weighted then load_weighted(tx, k, d.weighted) end
end

-- When the window has passed enough starts for one more; those of this call stand at its end.
local function next_start(tx, k, rate)
  local over = k.starts - rate.limit
  local item = tx:zlowest(k.rate, inside(tx, rate.window_ms), "+inf", 1, over)[1]
  return (item and item.score or tx.now) + rate.window_ms
end

-- When enough weight has left the window for so much more, as far as one call looks; until then it is asked again.
local function next_weight(tx, k, weighted, weight)
  if k.behind then return tx.now end
  local page = tx:zlowest(k.weighted, inside(tx, weighted.window_ms), "+inf", limits.batch_max)
  if #page == 0 then return tx.now + weighted.window_ms end
  local names, sum = {}, k.sum
  for i, item in ipairs(page) do names[i] = item.member end
  for i, amount in ipairs(tx:hmget(k.weights, names)) do
    sum = sum - (tonumber(amount) or 0)
    if sum + weight <= weighted.limit then return page[i].score + weighted.window_ms end
  end
  return page[#page].score + weighted.window_ms
end

-- Each part in turn: whether one more of this weight passes, how much of it is used and, when it does not pass, when it
-- may.
local parts = {}

function parts.throttle(tx, k)
  if k.throttled == nil or k.throttled <= tx.now then return nil end
  return { part = "throttle", used = 0, limit = 0, passes = false, next_at = function() return k.throttled end }
end

function parts.rate(tx, k)
  local rate = k.q.definition.rate
  if rate == nil then return nil end
  local use = { part = "rate", used = k.starts, limit = rate.limit }
  if rate.mode == "smooth" then
    use.passes = k.tat == nil or k.tat <= tx.now
    use.next_at = function() return k.tat end
  else
    use.passes = k.starts < rate.limit
    use.next_at = function() return next_start(tx, k, rate) end
  end
  return use
end

function parts.concurrency(_, k)
  local cap = k.q.definition.concurrency
  if cap == nil then return nil end
  -- Nobody knows when a slot comes back: whoever brings it calls the next.
  return {
    part = "concurrency", used = k.held, limit = cap, passes = k.held < cap, next_at = function() return nil end,
  }
end

function parts.weighted(tx, k, weight)
  local weighted = k.q.definition.weighted
  if weighted == nil then return nil end
  return {
    part = "weighted", used = math.max(k.sum, 0), limit = weighted.limit, passes = k.sum + weight <= weighted.limit,
    next_at = function()
      if weight <= weighted.limit then return next_weight(tx, k, weighted, weight) end
    end,
  }
end

local order = { "throttle", "rate", "concurrency", "weighted" }

-- True when every part lets so much more pass.
local function passes(tx, k, weight)
  local d, now = k.q.definition, tx.now
  local rate, weighted = d.rate, d.weighted
  if k.throttled and k.throttled > now then return false end
  if rate then
    if rate.mode == "smooth" then
      if k.tat and k.tat > now then return false end
    elseif k.starts >= rate.limit then
      return false
    end
  end
  if d.concurrency and k.held >= d.concurrency then return false end
  return weighted == nil or k.sum + weight <= weighted.limit
end

-- The first part that does not let so much more pass, or nil.
function capacity.refusal(tx, k, weight)
  if passes(tx, k, weight) then return nil end
  for _, name in ipairs(order) do
    local use = parts[name](tx, k, weight)
    if use and not use.passes then return use end
  end
end

-- True for what no window has room for, whatever leaves it.
function capacity.never(k, weight)
  local weighted = k.q.definition.weighted
  return weighted ~= nil and weight > weighted.limit
end

-- Every part but the throttle as it stands.
function capacity.uses(tx, k)
  local out = {}
  for i = 2, #order do
    local use = parts[order[i]](tx, k, 1)
    if use then
      out[#out + 1] = {
        part = use.part, used = use.used, limit = use.limit, next_at = not use.passes and use.next_at() or nil,
      }
    end
  end
  return out
end

-- Counts `n` more of this weight each.
function capacity.count(tx, k, weight, n)
  local d = k.q.definition
  k.held = k.held + n
  if d.rate then
    k.starts = k.starts + n
    if d.rate.mode == "smooth" then k.tat = tx.now + math.ceil(d.rate.window_ms / d.rate.limit) end
  end
  if d.weighted then k.sum = k.sum + weight * n end
end

-- How many more of a weight pass.
function capacity.fits(tx, k, weight)
  local d, most = k.q.definition, math.huge
  if k.throttled and k.throttled > tx.now then return 0 end
  if d.rate then
    if d.rate.mode == "smooth" then
      most = (k.tat == nil or k.tat <= tx.now) and 1 or 0
    else
      most = d.rate.limit - k.starts
    end
  end
  if d.concurrency then most = math.min(most, d.concurrency - k.held) end
  if d.weighted and weight > 0 then most = math.min(most, (d.weighted.limit - k.sum) / weight) end
  return most
end

-- True when the holder is in.
function capacity.holds(tx, k, member)
  return k.entered[member] or tx:zscore(k.holders, member) ~= nil
end

-- Takes the weight of an entry in the window off the sum; answers whether there was one.
local function unweigh(tx, k, member)
  local at = tx:zscore(k.weighted, member)
  if at == nil or at <= tx.now - k.q.definition.weighted.window_ms then return false end
  k.sum = k.sum - (tonumber(tx:hget(k.weights, member)) or 0)
  return true
end

-- One that never ran gives its start and its weight back.
local function undo_start(tx, k, member)
  local d = k.q.definition
  local at = d.rate and tx:zscore(k.rate, member)
  if at then
    k.started[#k.started + 1] = member
    if at > tx.now - d.rate.window_ms then k.starts = k.starts - 1 end
    -- The step of the last start alone can be undone: those after it were spaced from each other.
    if d.rate.mode == "smooth" and k.tat == at + math.ceil(d.rate.window_ms / d.rate.limit) then k.tat = at end
  end
  if d.weighted and unweigh(tx, k, member) then k.weighed[#k.weighed + 1] = member end
end

-- Holders leave; answers how many of them were there.
function capacity.leave(tx, k, items)
  local members, leaves, left = {}, k.leaves, {}
  for i = 1, #items do members[i] = holders.member(items[i]) end
  local scores = tx:zscores(k.holders, members)
  for i = 1, #members do
    local member = members[i]
    if scores[i] and not left[member] then
      left[member], leaves[#leaves + 1] = true, member
      if items[i].unused then undo_start(tx, k, member) end
    end
  end
  k.held = k.held - #leaves
  return #leaves
end

-- Sets what an entry in the window really weighed, however much that is; answers whether there is one.
function capacity.reweigh(tx, k, member, weight)
  if k.weighted == nil or not unweigh(tx, k, member) then return false end
  k.sum = k.sum + weight
  k.reweighed = { member, weight }
  return true
end

local function write_holders(tx, k)
  local d, first = k.q.definition, holders.open_ended
  for i = 1, #k.leaves do tx:zrem(k.holders, k.leaves[i]) end
  for _, member in ipairs(k.started) do tx:zrem(k.rate, member) end
  for _, member in ipairs(k.weighed) do
    tx:zrem(k.weighted, member)
    tx:hdel(k.weights, member)
  end
  local set, now = k.holders, tx.now
  for i = 1, #k.enters do
    local c = k.enters[i]
    local member, deadline = c.member, c.expires_at
    tx:zadd(set, deadline, member)
    if deadline < first then first = deadline end
    if d.rate then tx:zadd(k.rate, now, member) end
    if d.weighted then
      tx:zadd(k.weighted, now, member)
      tx:hput(k.weights, member, c.weight)
    end
  end
  if #k.enters > 0 then
    if d.rate then k.newest = { score = now } end
    if d.weighted then k.heaviest = { score = now } end
    if first < holders.open_ended then holders.watch(tx, k.set, first) end
  end
end

-- Plans what has been decided about holders, and drops what the windows have passed.
function capacity.write(tx, k)
  write_holders(tx, k)
  for _, item in ipairs(k.rate_passed or {}) do tx:zrem(k.rate, item.member) end
  for _, item in ipairs(k.weighted_passed or {}) do
    tx:zrem(k.weighted, item.member)
    tx:hdel(k.weights, item.member)
  end
  if k.reweighed then tx:hset(k.weights, k.reweighed) end
end

return capacity
