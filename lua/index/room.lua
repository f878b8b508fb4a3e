-- What one key of a quota has room for: starts in a window, holders, weight in a window; and who waits for it.
--
-- Everything is read when the key is loaded and counted in memory from there on; writes are planned behind that.
-- Waiters leave in the order of their scores when there is room for them, and the partition owes each its call.
local holds = require "record.holds"
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local packed = require "record.packed"
local quota = require "record.quota"
local gone = require "index.gone"
local holders = require "index.holders"
local timers = require "index.timers"

local room = {}

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

-- Who was called a moment ago is expected: until it has come, nobody else is called or let into its place. Whoever has
-- not come by then is not waited for.
local function load_called(tx, k)
  k.expected, k.expects = 0, {}
  if k.called_at == nil then return end
  local long_ago = tx.now - limits.call_again_ms
  if k.called_at > long_ago then
    local found = tx:zlowest(k.called, "(" .. text(long_ago), "+inf", limits.window_sweep_max)
    for _, item in ipairs(found) do k.expects[item.member] = true end
    k.expected = #found
  end
  k.called_passed = tx:zlowest(k.called, "-inf", text(long_ago), limits.window_sweep_max)
  if k.expected == 0 and #k.called_passed < limits.window_sweep_max then k.called_at = nil end
end

-- The record of a key, or nil when it is not in use.
local function opened(tx, id, digest)
  local key = keys.quota_part(tx, id, "key", digest)
  local stored = tx:record(key)
  return stored and packed.open_quota_key(key, stored)
end

-- Until when nothing starts under a key.
function room.throttled(tx, id, digest)
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

-- What a quota knows of a key, by its digest; `key` is the key itself where the caller knows it. Answers nil for a key
-- that is not in use, unless `fresh` says that it is about to be.
function room.load(tx, q, digest, key, fresh)
  local set = holds.of_quota(q.id, digest)
  local known = tx:found(set)
  if known and known.now == tx.now then return again(known) end
  local was = opened(tx, q.id, digest)
  if was == nil and not fresh then return nil end
  local k = {
    q = q, digest = digest, fresh = was == nil, was = was or {}, set = set, now = tx.now,
    -- What has been decided in this call and is written by room.save.
    enters = {}, entered = {}, leaves = {}, started = {}, weighed = {}, waits = {}, calls = {}, absent = {},
  }
  was = k.was
  k.key, k.tat, k.throttled, k.wake, k.called_at = was.key or key, was.tat, was.throttled, was.wake, was.called_at
  k.waiters, k.asked = keys.quota_part(tx, q.id, "waiters", digest), keys.quota_part(tx, q.id, "asked", digest)
  k.oversized = keys.quota_part(tx, q.id, "oversized", digest)
  k.holders, k.called = keys.holders(tx, k.set), keys.quota_part(tx, q.id, "called", digest)
  load_called(tx, k)
  k.held, k.waiting, k.too_large = tx:zcard(k.holders), tx:zcard(k.waiters), tx:zcard(k.oversized)
  if q.definition.rate then load_rate(tx, k, q.definition.rate) end
  if q.definition.weighted then load_weighted(tx, k, q.definition.weighted) end
  return k
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
function room.refusal(tx, k, weight)
  if passes(tx, k, weight) then return nil end
  for _, name in ipairs(order) do
    local use = parts[name](tx, k, weight)
    if use and not use.passes then return use end
  end
end

-- True for what no window has room for, whatever leaves it.
function room.never(k, weight)
  local weighted = k.q.definition.weighted
  return weighted ~= nil and weight > weighted.limit
end

-- Every part but the throttle as it stands.
function room.uses(tx, k)
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

-- Counts one more, without saying who.
local function count(tx, k, weight)
  local d = k.q.definition
  k.held = k.held + 1
  if d.rate then
    k.starts = k.starts + 1
    if d.rate.mode == "smooth" then k.tat = tx.now + math.ceil(d.rate.window_ms / d.rate.limit) end
  end
  if d.weighted then k.sum = k.sum + weight end
end

-- Answers `ask` as if those who are expected had come already.
local function as_if_come(tx, k, ask)
  local held, starts, sum, tat = k.held, k.starts, k.sum, k.tat
  if k.expected > 0 then
    count(tx, k, 0)
    k.held = k.held + k.expected - 1
    if k.starts then k.starts = k.starts + k.expected - 1 end
  end
  local answer = ask()
  k.held, k.starts, k.sum, k.tat = held, starts, sum, tat
  return answer
end

-- True when the holder is in.
function room.holds(tx, k, member)
  return k.entered[member] or tx:zscore(k.holders, member) ~= nil
end

-- What was said about an execution when it entered the line.
local function said(text_of)
  local holder, weight, number = string.match(text_of or "", "^(%S+) (%d+) (%d+)$")
  return holder and { holder = holder, weight = tonumber(weight), number = tonumber(number) } or nil
end

-- Reads who is first in line, and under which grants those stand in it who ask now.
function room.look_at_line(tx, k, ids)
  k.standing = {}
  if k.waiting + k.too_large == 0 then return end
  for i, found in ipairs(tx:hmget(k.asked, ids)) do k.standing[ids[i]] = said(found or nil) end
  local first = k.waiting > 0 and tx:zlowest(k.waiters, "-inf", "+inf", 1)[1]
  k.front = first and first.score or nil
end

-- True when the execution stands in line and asked under a later grant since; or under this very one, when `copy` is
-- asked for.
function room.outdated(k, candidate, copy)
  local standing = k.standing[candidate.execution_id]
  if standing == nil then return false end
  return candidate.number < standing.number or (copy and candidate.holder_id == standing.holder)
end

-- The refusal of one for whom there is room, but others were called into it or stand in line before it.
function room.others_first(tx, k, candidate)
  if k.expects[candidate.execution_id] then return nil end
  local behind = k.front ~= nil and k.front < candidate.score
  if not behind then
    if k.expected == 0 or as_if_come(tx, k, function() return room.refusal(tx, k, candidate.weight) end) == nil then
      return nil
    end
  end
  local at = k.wake or limits.time_ms_max
  if k.expected > 0 or k.wake == nil then at = math.min(at, tx.now + limits.call_again_ms) end
  return { part = "line", next_at = function() return at end }
end

-- One that was called has come, whatever is decided about it.
local function comes(k, id)
  if k.expects[id] then k.expects[id], k.expected = nil, k.expected - 1 end
end

-- Decided about, written by room.save: so that whoever comes next in the call still finds everything it has to read.
function room.admit(tx, k, candidate)
  count(tx, k, candidate.weight)
  comes(k, candidate.execution_id)
  k.enters[#k.enters + 1] = candidate
  if not candidate.fresh then k.entered[candidate.member] = true end
end

-- How many more of a weight a key has room for.
local function room_for(tx, k, weight)
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

-- Admits candidates that were never asked for, each with this weight, when nobody waits and there is room for all of
-- them. False, with nothing decided, when each has to be decided about.
function room.admit_all(tx, k, candidates, weight)
  local n = #candidates
  if k.called_at or k.waiting + k.too_large > 0 or room_for(tx, k, weight) < n then return false end
  for i = 1, n do
    local c = candidates[i]
    if not c.fresh or c.expires_at <= tx.now then return false end
  end
  for i = 1, n do
    local c = candidates[i]
    c.member, c.admitted = holders.member(c), true
    if k.weighted then c.weight = weight end
  end
  count(tx, k, weight * n)
  k.held = k.held + n - 1
  if k.starts then k.starts = k.starts + n - 1 end
  k.enters = candidates
  return true
end

-- Refused: it waits in the order of its score. What can never pass waits for another definition.
function room.wait(k, candidate, next_at)
  local never = room.never(k, candidate.weight)
  comes(k, candidate.execution_id)
  k.waits[#k.waits + 1] = { candidate = candidate, never = never }
  if never then return end
  k.front = math.min(k.front or candidate.score, candidate.score)
  if next_at then k.next_at = math.min(k.next_at or next_at, next_at) end
end

-- One that was called will not come: nobody waits for it.
function room.give_up(k, id)
  if not k.expects[id] then return false end
  comes(k, id)
  k.absent[#k.absent + 1] = id
  return true
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
function room.leave(tx, k, items)
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
function room.reweigh(tx, k, member, weight)
  if k.weighted == nil or not unweigh(tx, k, member) then return false end
  k.sum = k.sum + weight
  k.reweighed = { member, weight }
  return true
end

local function owe_call(tx, k, id, holder)
  if tx.executions then
    tx:owe("call", k.set, id, holder)
  else
    room.call_later(tx, id, holder, k.set)
  end
end

-- The partition owes an execution its call.
function room.call_later(tx, id, holder, set)
  outbox.owe(tx, "unblock", { "execution_id", id, "reason", "waiting_for_quota", "holder_id", holder, "set", set })
end

-- The first of a line: id, the holder it asked under and its weight.
local function first_of(tx, k, line)
  local found, names = tx:zlowest(line, "-inf", "+inf", limits.batch_max), {}
  if #found == 0 then return {} end
  for i, item in ipairs(found) do names[i] = item.member end
  local asked, out = tx:hmget(k.asked, names), {}
  for i, item in ipairs(found) do
    local found = said(asked[i] or nil)
    if found == nil then error("CORRUPT " .. k.asked .. " " .. item.member) end
    out[i] = { id = item.member, holder = found.holder, weight = found.weight }
  end
  return out
end

-- Calls those who are first in line as far as there is room for each, as if those called before them had come already.
-- Who can never pass since the limit was lowered is called as well, into no place: it asks anew and is in nobody's way.
local function call(tx, k)
  local line = k.waiting > 0 and first_of(tx, k, k.waiters) or {}
  if #line == 0 then return end
  -- More may stand in line than one call looks at.
  if #line == limits.batch_max then k.head_at = tx.now end
  as_if_come(tx, k, function()
    for _, one in ipairs(line) do
      one.never = room.never(k, one.weight)
      local use = not one.never and room.refusal(tx, k, one.weight)
      if use then
        k.head_at = use.next_at()
        break
      end
      -- Who is called takes nothing until it comes.
      if not one.never then count(tx, k, one.weight) end
      k.calls[#k.calls + 1] = one
    end
  end)
end

-- After a change of the definition everyone may ask anew whom the old one could never let pass.
function room.call_oversized(tx, k)
  if k.too_large == 0 then return end
  for _, one in ipairs(first_of(tx, k, k.oversized)) do k.calls[#k.calls + 1] = one end
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
function room.timer(id, digest)
  return "room:" .. id .. ":" .. digest
end

-- An execution that asks anew does not stand in line for what it asked before.
local function leave_line(tx, k, id)
  if k.called_at and tx:zscore(k.called, id) then tx:zrem(k.called, id) end
  if k.waiting > 0 and tx:zscore(k.waiters, id) then
    tx:zrem(k.waiters, id)
    tx:hdel(k.asked, id)
    k.waiting = k.waiting - 1
  end
  if k.too_large > 0 and tx:zscore(k.oversized, id) then
    tx:zrem(k.oversized, id)
    tx:hdel(k.asked, id)
    k.too_large = k.too_large - 1
  end
end

local function write_holders(tx, k)
  local d, first = k.q.definition, holders.open_ended
  for i = 1, #k.leaves do tx:zrem(k.holders, k.leaves[i]) end
  for _, member in ipairs(k.started) do tx:zrem(k.rate, member) end
  for _, member in ipairs(k.weighed) do
    tx:zrem(k.weighted, member)
    tx:hdel(k.weights, member)
  end
  local set, now, lines = k.holders, tx.now, k.called_at or k.waiting + k.too_large > 0
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
    if lines then leave_line(tx, k, c.execution_id) end
  end
  if #k.enters > 0 then
    if d.rate then k.newest = { score = now } end
    if d.weighted then k.heaviest = { score = now } end
    if first < holders.open_ended then holders.watch(tx, k.set, first) end
  end
end

local function write_lines(tx, k)
  for _, one in ipairs(k.waits) do
    local c = one.candidate
    leave_line(tx, k, c.execution_id)
    tx:zadd(one.never and k.oversized or k.waiters, c.score, c.execution_id)
    tx:hset(k.asked, { c.execution_id, c.holder_id .. " " .. text(c.weight) .. " " .. text(c.number) })
    if one.never then k.too_large = k.too_large + 1 else k.waiting = k.waiting + 1 end
  end
  for _, one in ipairs(k.calls) do
    leave_line(tx, k, one.id)
    owe_call(tx, k, one.id, one.holder)
    if not one.never then
      tx:zadd(k.called, tx.now, one.id)
      k.called_at = tx.now
    end
  end
end

local function write_passed(tx, k)
  for _, id in ipairs(k.absent) do tx:zrem(k.called, id) end
  for _, item in ipairs(k.called_passed or {}) do
    if tx:zscore(k.called, item.member) == item.score then tx:zrem(k.called, item.member) end
  end
  for _, item in ipairs(k.rate_passed or {}) do tx:zrem(k.rate, item.member) end
  for _, item in ipairs(k.weighted_passed or {}) do
    tx:zrem(k.weighted, item.member)
    tx:hdel(k.weights, item.member)
  end
  if k.reweighed then tx:hset(k.weights, k.reweighed) end
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
function room.set_sum(tx, k, sum)
  k.sum, k.wake = sum, k.was.wake
  write_record(tx, k)
end

-- Nobody uses the key: what is left of it goes.
local function forget(tx, k)
  for _, part in ipairs({ "key", "rate", "weighted", "weights", "waiters", "asked", "oversized", "called" }) do
    tx:del(keys.quota_part(tx, k.q.id, part, k.digest))
  end
  quota.leave_key(tx, k.q, k.digest)
  timers.clear(tx, room.timer(k.q.id, k.digest))
end

-- Plans what has been decided and sets the key's timer. Room that came back calls who waits for it; an admission does
-- not: it leaves less than there was.
function room.save(tx, k, admission)
  if not admission then call(tx, k) end
  local called = 0
  for _, one in ipairs(k.calls) do
    if not one.never then called = called + 1 end
  end
  write_holders(tx, k)
  write_lines(tx, k)
  write_passed(tx, k)
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
  local entry = { id = room.timer(k.q.id, k.digest), wake = k.wake }
  timers.keep(tx, entry, at)
  k.wake = at
  write_record(tx, k)
  -- A key with a line is read anew.
  local quiet = #k.calls == 0 and #k.waits == 0 and #k.absent == 0 and k.called_at == nil and k.waiting == 0
  tx:keep(k.set, quiet and k or nil)
end

-- The quota is gone: whoever waits is called, to be told so; who holds leaves by itself.
local function dissolve(tx, k)
  for _, line in ipairs({ k.waiters, k.oversized }) do
    for _, one in ipairs(first_of(tx, k, line)) do k.calls[#k.calls + 1] = one end
  end
  write_lines(tx, k)
  if k.waiting + k.too_large == 0 then forget(tx, k) end
end

-- The key's timer: room may have come back, or nobody uses the key any more.
function room.fire(tx, id, digest)
  local q = quota.load(tx, id)
  local k = q and room.load(tx, q, digest)
  if k then return room.save(tx, k) end
  timers.clear(tx, room.timer(id, digest))
end

-- The quota's timer: after a change of its definition every key is looked at, a few at a time.
function room.walk(tx, id)
  local q = quota.load(tx, id, true)
  if q == nil or q.walked == nil then return timers.clear(tx, quota.timer(id)) end
  local found = tx:zlowest(keys.quota_keys(tx, id), "(" .. text(q.walked), "+inf", limits.quota_walk_max)
  local walked = q.walked
  for _, item in ipairs(found) do
    local k = room.load(tx, q, item.member)
    if k == nil then error("CORRUPT " .. keys.quota_part(tx, id, "key", item.member) .. " key") end
    if q.deleted then
      dissolve(tx, k)
    else
      room.call_oversized(tx, k)
      room.save(tx, k)
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

return room
