-- What must hold for a schedule: it is listed, its timer stands where its record says, what it has in flight counts as
-- running, and nothing of it is left without it.
local keys = require "lib.keys"
local limits = require "lib.limits"
local schedule = require "record.schedule"

local invariants = {}

local function check_core(tx, s, key, findings, repair, found)
  if tx:zscore(keys.schedules(tx), s.path) == nil then
    found(findings, 10, key, "is in no list", repair)
    if repair then tx:zadd(keys.schedules(tx), s.created, s.path) end
  end
  local member = schedule.timer(s.path)
  local at = tx:zscore(keys.timers(tx), member)
  if at ~= s.wake then
    found(findings, 11, keys.timers(tx), member .. " does not stand at its time", repair)
    if repair then
      if s.wake then tx:zadd(keys.timers(tx), s.wake, member) else tx:zrem(keys.timers(tx), member) end
    end
  end
  for _, f in ipairs(s.flight) do
    if tx:zscore(keys.schedule_live(tx, s.path), f[5]) ~= f[1] then
      found(findings, 44, key, f[5] .. " is to be submitted and does not count as running", false)
    end
    if f[1] > s.number or f[2] > s.cursor and f[4] == "time" then
      found(findings, 44, key, string.format("firing %.0f was never decided", f[1]), false)
    end
  end
  if #s.waiting > 0 and s.live == 0 and not s.paused and #s.flight < limits.schedule_flight_max then
    found(findings, 44, key, "firings wait for an end, and nothing runs", false)
  end
  if s.remaining and s.remaining < 0 then found(findings, 44, key, "fired more often than it may", false) end
end

function invariants.key(tx, key, rest, findings, repair, found)
  local path, part = string.match(rest, "^(.+):(%a+)$")
  local s = path and schedule.load(tx, path)
  if s == nil then
    found(findings, 37, key, "its schedule is gone", repair)
    if repair then tx:del(key) end
  elseif part == "core" then
    check_core(tx, s, key, findings, repair, found)
  end
end

-- Schedules in the list are stored.
function invariants.list(tx, key, findings, repair, found)
  for _, path in ipairs(tx:zrange(key, "0", "999")) do
    if schedule.load(tx, path) == nil then
      found(findings, 37, key, path .. " has no record", repair)
      if repair then tx:zrem(key, path) end
    end
  end
end

return invariants
