-- Webhooks in line: each receiver (scheme, host and port) has a line of its own, and the list of receivers goes by the
-- heads of their lines. A receiver that does not answer therefore stands in nobody else's way.
local keys = require "lib.keys"

local receivers = {}

function receivers.of(url)
  return keys.digest(string.lower(string.match(url, "^%a+://[^/%?]+")))
end

function receivers.add(tx, receiver, id, due)
  tx:zadd(keys.receiver(tx, receiver), due, id)
  local head = tx:zscore(keys.receivers(tx), receiver)
  if head == nil or due < head then tx:zadd(keys.receivers(tx), due, receiver) end
end

local function keep_head(tx, receiver, head)
  if head then
    tx:zadd(keys.receivers(tx), head, receiver)
  else
    tx:zrem(keys.receivers(tx), receiver)
  end
end

-- Puts an entry elsewhere in its line, or takes it out.
function receivers.move(tx, receiver, id, due)
  local line, head = keys.receiver(tx, receiver), due
  for _, entry in ipairs(tx:zlowest(line, "-inf", "+inf", 2)) do
    if entry.member ~= id then head = math.min(head or entry.score, entry.score) end
  end
  if due then tx:zadd(line, due, id) else tx:zrem(line, id) end
  keep_head(tx, receiver, head)
end

-- Takes at most `count` entries that are due; nobody else gets them before `again`. Answers their ids and the head of
-- the line.
function receivers.take(tx, receiver, count, again)
  local line, ids, head = keys.receiver(tx, receiver), {}, nil
  for i, entry in ipairs(tx:zlowest(line, "-inf", "+inf", count + 1)) do
    if i <= count and entry.score <= tx.now then
      ids[i] = entry.member
      tx:zadd(line, again, entry.member)
    else
      head = head or entry.score
    end
  end
  if #ids > 0 then head = math.min(head or again, again) end
  keep_head(tx, receiver, head)
  return ids, head
end

return receivers
