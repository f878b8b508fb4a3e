-- One entry per record that needs attention later: its next wake-up.
local keys = require "lib.keys"

local timers = {}

-- Whoever sleeps until the head must hear of an earlier one.
local function announce(tx, at)
  local key = keys.timers(tx)
  if not tx:touches(key) then
    local head = tx:zhead(key)
    if head and head.score <= at then return end
  end
  tx:announce("timer", at)
end

function timers.set(tx, member, at)
  announce(tx, at)
  tx:zadd(keys.timers(tx), at, member)
end

function timers.clear(tx, member)
  tx:zrem(keys.timers(tx), member)
end

-- Keeps the record's entry at `at`, or none. Only an earlier wake-up than before is announced: the sleeper of a
-- later one wakes at the old time and looks again. `told` says that the caller announces it.
function timers.keep(tx, rec, at, told)
  local wake = rec.wake
  if at == wake then return end
  if at == nil then
    timers.clear(tx, rec.id)
  else
    if not told and (wake == nil or at < wake) then announce(tx, at) end
    tx:zadd(keys.timers(tx), at, rec.id)
  end
  rec.wake = at
end

return timers
