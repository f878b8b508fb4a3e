-- What an execution waits for, stored apart from it: a wait may hold many signals, and a renewal must not carry them
-- along. It is read with the execution, whose fields it fills, and written when it changed.
local keys = require "lib.keys"
local packed = require "record.packed"

local waits = {}

local open, close = packed.open_waits, packed.close_waits
local names = { "wait", "open", "answered", "past_waits", "satisfied", "woken", "closed_waits" }

function waits.load(tx, rec)
  local key = keys.waits(tx, rec.id)
  local stored = tx:record(key)
  if stored == nil then error("CORRUPT " .. key .. " fields", 0) end
  local w = open(key, stored)
  for i = 1, #names do
    local name = names[i]
    rec[name] = w[name]
  end
  rec.waits_were, rec.waits_tail = stored, w.tail
end

function waits.any(rec)
  return rec.wait or rec.open or rec.answered or rec.past_waits or rec.satisfied or rec.woken or rec.closed_waits
end

-- Plans what changed; part of every store of an execution that has waited. One that begins to says so by `rec.waits`.
function waits.store(tx, rec)
  local key = keys.waits(tx, rec.id)
  if not waits.any(rec) then
    if rec.waits_were then tx:del(key) end
    rec.waits, rec.waits_were = nil, nil
    return
  end
  local bytes = close({
    wait = rec.wait, open = rec.open, answered = rec.answered, past_waits = rec.past_waits, satisfied = rec.satisfied,
    woken = rec.woken, closed_waits = rec.closed_waits, tail = rec.waits_tail,
  })
  if bytes ~= rec.waits_were then tx:set(key, bytes) end
  rec.waits, rec.waits_were = 1, bytes
end

return waits
