-- Who waits for one key of a quota, and who was called.
--
-- A refused execution waits in the line, in the order of its score; one that no window is wide enough for waits apart.
-- When something comes back, those first in line are called: each asks anew, and what it needs is kept for it until
-- then. Nobody overtakes those who wait, nor takes what is kept for those called.
local capacity = require "index.quota_capacity"
local holders = require "index.holders"
local limits = require "lib.limits"
local outbox = require "lib.outbox"

local line = {}

local function text(n) return string.format("%.0f", n) end

-- Who was called a moment ago is expected: until it has come, nobody else is called or let into its place. Whoever has
-- not come by then is not waited for.
function line.load(tx, k)
  k.waiting, k.too_large = tx:zcard(k.waiters), tx:zcard(k.oversized)
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

-- What `ask` returns as if those who are expected had come already.
local function as_if_come(tx, k, ask)
  local held, starts, sum, tat = k.held, k.starts, k.sum, k.tat
  if k.expected > 0 then capacity.count(tx, k, 0, k.expected) end
  local answer = ask()
  k.held, k.starts, k.sum, k.tat = held, starts, sum, tat
  return answer
end

-- What was said about an execution when it entered the line.
local function said(text_of)
  local holder, weight, number = string.match(text_of or "", "^(%S+) (%d+) (%d+)$")
  return holder and { holder = holder, weight = tonumber(weight), number = tonumber(number) } or nil
end

-- Reads who is first in line, and under which grants those stand in it who ask now.
function line.look(tx, k, ids)
  k.standing = {}
  if k.waiting + k.too_large == 0 then return end
  for i, found in ipairs(tx:hmget(k.asked, ids)) do k.standing[ids[i]] = said(found or nil) end
  local first = k.waiting > 0 and tx:zlowest(k.waiters, "-inf", "+inf", 1)[1]
  k.front = first and first.score or nil
end

-- True when the execution stands in line and asked under a later grant since; or under this very one, when `copy` is
-- asked for.
function line.outdated(k, candidate, copy)
  local standing = k.standing[candidate.execution_id]
  if standing == nil then return false end
  return candidate.number < standing.number or (copy and candidate.holder_id == standing.holder)
end

-- The refusal of one that would pass, but others were called before it or stand in line before it.
function line.others_first(tx, k, candidate)
  if k.expects[candidate.execution_id] then return nil end
  local behind = k.front ~= nil and k.front < candidate.score
  if not behind then
    if k.expected == 0 or as_if_come(tx, k, function() return capacity.refusal(tx, k, candidate.weight) end) == nil then
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

-- Decided about, written by quota_key.save, so that the next candidate of the call still finds everything it has to
-- read.
function line.admit(tx, k, candidate)
  capacity.count(tx, k, candidate.weight, 1)
  comes(k, candidate.execution_id)
  k.enters[#k.enters + 1] = candidate
  if not candidate.fresh then k.entered[candidate.member] = true end
end

-- Admits candidates that were never asked for, each with this weight, when nobody waits and all of them pass.
-- False, with nothing decided, when each has to be decided about.
function line.admit_all(tx, k, candidates, weight)
  local n = #candidates
  if k.called_at or k.waiting + k.too_large > 0 or capacity.fits(tx, k, weight) < n then return false end
  for i = 1, n do
    local c = candidates[i]
    if not c.fresh or c.expires_at <= tx.now then return false end
  end
  for i = 1, n do
    local c = candidates[i]
    c.member, c.admitted = holders.member(c), true
    if k.weighted then c.weight = weight end
  end
  capacity.count(tx, k, weight, n)
  k.enters = candidates
  return true
end

-- Refused: it waits in the order of its score. What can never pass waits for another definition.
function line.wait(k, candidate, next_at)
  local never = capacity.never(k, candidate.weight)
  comes(k, candidate.execution_id)
  k.waits[#k.waits + 1] = { candidate = candidate, never = never }
  if never then return end
  k.front = math.min(k.front or candidate.score, candidate.score)
  if next_at then k.next_at = math.min(k.next_at or next_at, next_at) end
end

-- One that was called will not come: nobody waits for it.
function line.give_up(k, id)
  if not k.expects[id] then return false end
  comes(k, id)
  k.absent[#k.absent + 1] = id
  return true
end

local function owe_call(tx, k, id, holder)
  if tx.executions then
    tx:owe("call", k.set, id, holder)
  else
    line.call_later(tx, id, holder, k.set)
  end
end

-- The partition owes an execution its call.
function line.call_later(tx, id, holder, set)
  outbox.owe(tx, "unblock", { "execution_id", id, "reason", "waiting_for_quota", "holder_id", holder, "set", set })
end

-- The first of those who wait: id, the holder it asked under and its weight.
local function first_of(tx, k, waiters)
  local found, names = tx:zlowest(waiters, "-inf", "+inf", limits.batch_max), {}
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

-- Calls those first in line as far as they pass, as if those called before them had come already. One that can never
-- pass since the limit was lowered is called as well, and nothing is kept for it: it asks anew and is in nobody's way.
function line.call(tx, k)
  local first = k.waiting > 0 and first_of(tx, k, k.waiters) or {}
  if #first == 0 then return end
  -- More may stand in line than one call looks at.
  if #first == limits.batch_max then k.head_at = tx.now end
  as_if_come(tx, k, function()
    for _, one in ipairs(first) do
      one.never = capacity.never(k, one.weight)
      local use = not one.never and capacity.refusal(tx, k, one.weight)
      if use then
        k.head_at = use.next_at()
        break
      end
      -- Who is called takes nothing until it comes.
      if not one.never then capacity.count(tx, k, one.weight, 1) end
      k.calls[#k.calls + 1] = one
    end
  end)
end

-- After a change of the definition everyone may ask anew whom the old one could never let pass.
function line.call_oversized(tx, k)
  if k.too_large == 0 then return end
  for _, one in ipairs(first_of(tx, k, k.oversized)) do k.calls[#k.calls + 1] = one end
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

-- Plans who enters the line, who leaves it, and who is called.
function line.write(tx, k)
  if k.called_at or k.waiting + k.too_large > 0 then
    for i = 1, #k.enters do leave_line(tx, k, k.enters[i].execution_id) end
  end
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
  for _, id in ipairs(k.absent) do tx:zrem(k.called, id) end
  for _, item in ipairs(k.called_passed or {}) do
    if tx:zscore(k.called, item.member) == item.score then tx:zrem(k.called, item.member) end
  end
end

-- The quota is gone: everyone who waits is called, to be told so.
function line.dissolve(tx, k)
  for _, waiters in ipairs({ k.waiters, k.oversized }) do
    for _, one in ipairs(first_of(tx, k, waiters)) do k.calls[#k.calls + 1] = one end
  end
  line.write(tx, k)
end

return line
