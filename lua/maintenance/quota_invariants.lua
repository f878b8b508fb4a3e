-- What must hold for quotas and their keys; the numbers are those of the invariants in ARCHITECTURE.md.
local keys = require "lib.keys"
local limits = require "lib.limits"
local quota = require "record.quota"
local holders = require "index.holders"
local quota_key = require "index.quota_key"

local invariants = {}

local function shown(n) return string.format("%.0f", n) end

-- No more holders than the limit; one that was lowered lets those who are in finish.
local function check_holders(tx, q, k, findings, found)
  local cap = q.definition.concurrency
  if cap and q.version == 1 and k.held > cap then
    found(findings, 32, k.holders, shown(k.held) .. " hold it, " .. shown(cap) .. " may", false)
  end
end

-- No more starts in a window than the limit, since the definition is what it is.
local function check_rate(tx, q, k, findings, found)
  local rate = q.definition.rate
  if rate == nil then return end
  local from = math.max(tx.now - rate.window_ms, q.changed)
  local starts = tx:zcount(k.rate, "(" .. shown(from), "+inf")
  if starts > rate.limit then
    found(findings, 33, k.rate, shown(starts) .. " started in a window, " .. shown(rate.limit) .. " may", false)
  end
end

-- The sum is that of the entries, as far as one call counts them.
local function check_weights(tx, q, k, findings, repair, found)
  if q.definition.weighted == nil then return end
  local all = tx:hgetall(k.weights) or {}
  local sum, count = 0, 0
  for _, weight in pairs(all) do sum, count = sum + tonumber(weight), count + 1 end
  local stored = k.was.sum or 0
  if sum ~= stored then
    found(findings, 33, k.weights, "weighs " .. shown(sum) .. ", " .. shown(stored) .. " is counted", repair)
    if repair then quota_key.set_sum(tx, k, sum) end
  end
  if count ~= tx:zcard(k.weighted) then
    found(findings, 33, k.weighted, "entries and weights differ in number", false)
  end
end

-- Everyone in line has said under which holder, and whoever can pass at a time is woken then.
local function check_lines(tx, k, findings, repair, found)
  local asked = tx:hgetall(k.asked) or {}
  local count = 0
  for _ in pairs(asked) do count = count + 1 end
  if count ~= k.waiting + k.too_large then
    found(findings, 33, k.asked, shown(count) .. " have asked, " .. shown(k.waiting + k.too_large) .. " wait", false)
  end
  local timer = quota_key.timer(k.q.id, k.digest)
  local at = tx:zscore(keys.timers(tx), timer)
  if at ~= k.wake then
    found(findings, 11, keys.timers(tx), timer .. " should wake at " .. (k.wake and shown(k.wake) or "no time"), repair)
    if repair then
      if k.wake then tx:zadd(keys.timers(tx), k.wake, timer) else tx:zrem(keys.timers(tx), timer) end
    end
  end
  -- Room for those who wait, with nobody to call them: a slot that nobody holds comes back by nobody.
  if k.waiting > 0 and k.wake == nil and k.held == 0 then
    found(findings, 33, k.waiters, "waits for nothing", repair)
    if repair then tx:zadd(keys.timers(tx), tx.now, timer) end
  end
end

local function check_key(tx, q, digest, findings, repair, found)
  local k = quota_key.load(tx, q, digest)
  if tx:zscore(keys.quota_keys(tx, q.id), digest) == nil then
    found(findings, 37, keys.quota_part(tx, q.id, "key", digest), "its quota does not list it", false)
  end
  check_holders(tx, q, k, findings, found)
  check_rate(tx, q, k, findings, found)
  check_weights(tx, q, k, findings, repair, found)
  check_lines(tx, k, findings, repair, found)
end

-- Quotas in the list are stored.
function invariants.list(tx, key, findings, repair, found)
  for _, item in ipairs(tx:zlowest(key, "-inf", "+inf", limits.list_looks_max)) do
    if quota.load(tx, item.member, true) == nil then
      found(findings, 37, key, item.member .. " has no record", repair)
      if repair then tx:zrem(key, item.member) end
    end
  end
end

-- One key of the family: a quota's, or one of holders. One that nobody used any more may be gone since it was found.
function invariants.key(tx, key, rest, findings, repair, found)
  local id, part = string.match(rest, "^(%x+%-%x+%-%x+%-%x+%-%x+):(.+)$")
  if id == nil then return holders.check(tx, rest, findings, repair, found) end
  if not tx:exists(key) then return end
  local q = quota.load(tx, id, true)
  if q == nil then
    found(findings, 37, key, "its quota is gone", repair)
    if repair then tx:del(key) end
  elseif part == "core" then
    if tx:zscore(keys.quotas(tx), id) == nil then found(findings, 37, key, "is not listed", false) end
  elseif part ~= "keys" then
    local name, digest = string.match(part, "^(%a+):(%x+)$")
    if name == "key" then
      check_key(tx, q, digest, findings, repair, found)
    elseif digest == nil or not tx:exists(keys.quota_part(tx, id, "key", digest)) then
      found(findings, 37, key, "its key is not in use", repair)
      if repair then tx:del(key) end
    end
  end
end

return invariants
