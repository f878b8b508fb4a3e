-- Open waitpoints of the partition by creation time: what people are asked for.
local keys = require "lib.keys"

local inbox = {}

function inbox.add(tx, id, created_at)
  tx:zadd(keys.inbox(tx), created_at, id)
end

function inbox.remove(tx, id)
  tx:zrem(keys.inbox(tx), id)
end

return inbox
