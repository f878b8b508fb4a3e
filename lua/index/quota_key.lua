-- One key of a quota: how much of it is used, who waits for it, and its timer.
--
--     an execution asks                                        a holder leaves
--     (transition/ask)                                         (transition/give_back)
--            |                                                         |
--            v                                                         v
--     quota_capacity ---- refused ----> quota_line ---- called ----> expected
--     holders, rate, weights            waiters in order             what it needs is kept for it
--            ^                                                         |
--            +------------- asks anew, within call_again_ms -----------+
--
-- A key is loaded once in a call. What is decided about it stands in its table (`enters`, `waits`, `calls`, ...) until
-- `save` plans it all. The timer `room:<quota>:<digest>` wakes the key when the next in line may pass, when those
-- called have not come, and when nobody uses it any more.
local capacity = require "index.quota_capacity"
local gone = require "index.gone"
local holds = require "record.holds"
local keys = require "lib.keys"
local limits = require "lib.limits"
local line = require "index.quota_line"
local packed = require "record.packed"
local quota = require "record.quota"
local timers = require "index.timers"

local quota_key = {}

local function text(n) return string.format("%.0f", n) end

-- The record of a key, or nil when it is not in use.
local function opened(tx, id, digest)
  local key = keys.quota_part(tx, id, "key", digest)
  local stored = tx:record(key)
  return stored and packed.open_quota_key(key, stored)
end

-- Until when nothing starts under a key.
function quota_key.throttled(tx, id, digest)
  local was = opened(tx, id, digest)
  return was and was.throttled
end

-- A key that was saved before in this list, as it is now: nothing is decided yet.
local function again(k)
  k.enters, k.entered, k.leaves, k.started, k.weighed, k.waits, k.calls, k.absent = {}, {}, {}, {}, {}, {}, {}, {}
  k.called_passed, k.rate_passed, k.weighted_passed, k.reweighed, k.next_at, k.head_at, k.standing, k.front =
    nil, nil, nil, nil, nil, nil, nil, nil
  return k
end

-- What a quota knows of a key, by its digest; `key` is the key itself where the caller knows it. Returns nil for a key
-- that is not in use, unless `fresh` says that it is about to be.
function quota_key.load(tx, q, digest, key, fresh)
  local set = holds.of_quota(q.id, digest)
  local known = tx:found(set)
  if known and known.now == tx.now then return again(known) end
  local was = opened(tx, q.id, digest)
  if was == nil and not fresh then return nil end
  local k = {
    q = q, digest = digest, fresh = was == nil, was = was or {}, set = set, now = tx.now,
    -- What has been decided in this call and is written by quota_key.save.
    enters = {}, entered = {}, leaves = {}, started = {}, weighed = {}, waits = {}, calls = {}, absent = {},
  }
  was = k.was
  k.key, k.tat, k.throttled, k.wake, k.called_at = was.key or key, was.tat, was.throttled, was.wake, was.called_at
  k.waiters, k.asked = keys.quota_part(tx, q.id, "waiters", digest), keys.quota_part(tx, q.id, "asked", digest)
  k.oversized = keys.quota_part(tx, q.id, "oversized", digest)
  k.holders, k.called = keys.holders(tx, k.set), keys.quota_part(tx, q.id, "called", digest)
  line.load(tx, k)
  capacity.load(tx, k)
  return k
end

-- When the key needs attention: the next in line may pass, those called have not come, or nobody uses it any more.
local function wake_at(tx, k, called)
  local d, awaited = k.q.definition, called + k.expected > 0
  if k.waiting > 0 then
    if not awaited then return k.head_at end
    return math.min(k.head_at or limits.time_ms_max, tx.now + limits.call_again_ms)
  end
  if k.held > 0 or k.too_large > 0 then return nil end
  local at = math.max(k.throttled or 0, k.tat or 0, tx.now)
  if awaited then at = math.max(at, tx.now + limits.call_again_ms) end
  if d.rate and k.newest then at = math.max(at, k.newest.score + d.rate.window_ms) end
  if d.weighted and k.heaviest then at = math.max(at, k.heaviest.score + d.weighted.window_ms) end
  return at
end

-- The name of its timer entry.
function quota_key.timer(id, digest)
  return "room:" .. id .. ":" .. digest
end

local function write_record(tx, k)
  local was = k.was
  if k.fresh then quota.enter_key(tx, k.q, k.digest) end
  -- Weights that nothing counts any more must not be taken off a sum that begins anew.
  if k.weighted == nil and was.sum then
    for _, part in ipairs({ "weighted", "weights" }) do tx:del(keys.quota_part(tx, k.q.id, part, k.digest)) end
  end
  if k.fresh or k.tat ~= was.tat or k.throttled ~= was.throttled or k.sum ~= was.sum or k.wake ~= was.wake
    or k.called_at ~= was.called_at
  then
    local record = {
      key = k.key, tat = k.tat, throttled = k.throttled, sum = k.sum, wake = k.wake, called_at = k.called_at,
      tail = was.tail,
    }
    tx:set(keys.quota_part(tx, k.q.id, "key", k.digest), packed.close_quota_key(record))
    k.was, k.fresh = record, false
  end
end

-- Corrects the weight in the window.
function quota_key.set_sum(tx, k, sum)
  k.sum, k.wake = sum, k.was.wake
  write_record(tx, k)
end

-- Nobody uses the key: what is left of it goes.
local function forget(tx, k)
  for _, part in ipairs({ "key", "rate", "weighted", "weights", "waiters", "asked", "oversized", "called" }) do
    tx:del(keys.quota_part(tx, k.q.id, part, k.digest))
  end
  quota.leave_key(tx, k.q, k.digest)
  timers.clear(tx, quota_key.timer(k.q.id, k.digest))
end

-- Plans what has been decided and sets the key's timer. What came back calls those who wait for it; an admission calls
-- nobody: it leaves less than there was.
function quota_key.save(tx, k, admission)
  if not admission then line.call(tx, k) end
  local called = 0
  for _, one in ipairs(k.calls) do
    if not one.never then called = called + 1 end
  end
  capacity.write(tx, k)
  line.write(tx, k)
  local at
  if admission and k.waiting > 0 then
    at = k.wake
    if k.next_at then at = math.min(k.next_at, at or k.next_at) end
  else
    at = wake_at(tx, k, called)
  end
  if at and at <= tx.now and k.waiting == 0 then
    if not k.fresh then forget(tx, k) end
    tx:keep(k.set, nil)
    return
  end
  local entry = { id = quota_key.timer(k.q.id, k.digest), wake = k.wake }
  timers.keep(tx, entry, at)
  k.wake = at
  write_record(tx, k)
  -- A key with a line is read anew.
  local quiet = #k.calls == 0 and #k.waits == 0 and #k.absent == 0 and k.called_at == nil and k.waiting == 0
  tx:keep(k.set, quiet and k or nil)
end

-- The key's timer: something may pass again, or nobody uses the key any more.
function quota_key.fire(tx, id, digest)
  local q = quota.load(tx, id)
  local k = q and quota_key.load(tx, q, digest)
  if k then return quota_key.save(tx, k) end
  timers.clear(tx, quota_key.timer(id, digest))
end

-- The quota's timer: after a change of its definition every key is looked at, a few at a time.
function quota_key.walk(tx, id)
  local q = quota.load(tx, id, true)
  if q == nil or q.walked == nil then return timers.clear(tx, quota.timer(id)) end
  local found = tx:zlowest(keys.quota_keys(tx, id), "(" .. text(q.walked), "+inf", limits.quota_walk_max)
  local walked = q.walked
  for _, item in ipairs(found) do
    local k = quota_key.load(tx, q, item.member)
    if k == nil then error("CORRUPT " .. keys.quota_part(tx, id, "key", item.member) .. " key") end
    if q.deleted then
      line.dissolve(tx, k)
      if k.waiting + k.too_large == 0 then forget(tx, k) end
    else
      line.call_oversized(tx, k)
      quota_key.save(tx, k)
      if k.too_large == 0 then walked = item.score end
      if k.too_large > 0 then break end
    end
  end
  if #found > 0 then
    q.walked = walked
    quota.save(tx, q)
    tx:zadd(keys.timers(tx), tx.now, quota.timer(id))
  else
    timers.clear(tx, quota.timer(id))
    if q.deleted then
      tx:del(keys.quota(tx, id))
      tx:zrem(keys.quotas(tx), id)
      gone.note(tx, id)
    else
      q.walked = nil
      quota.save(tx, q)
    end
  end
end

return quota_key
