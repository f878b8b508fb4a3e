-- What must hold for the queues of a lane: a claim finds everything that is eligible.
local keys = require "lib.keys"
local queues = require "index.queues"

local heads = {}

-- The heads name queues that are there.
function heads.check(tx, key, path, findings, repair, found)
  for _, name in ipairs(tx:zrange(key, "0", "999")) do
    if queues.get(tx, path, name) == nil then
      found(findings, 37, key, "queue " .. name .. " is not there", repair)
      if repair then tx:zrem(key, name) end
    end
  end
end

-- An eligible execution stands in a queue that claims look at, and not behind the head they know of.
function heads.check_entry(tx, rec, score, findings, repair, found)
  local name = queues.name(rec.queue, rec.kind)
  local entry = queues.get(tx, rec.path, name)
  local main = queues.main(tx, rec.path) == name
  local head = not main and tx:zscore(keys.heads(tx, rec.path), name)
  if entry and (main or (head and head <= score)) then return end
  found(findings, 10, keys.heads(tx, rec.path), rec.id .. " stands in queue " .. name .. " before its head", repair)
  if repair then queues.mend(tx, rec.path, name, rec.requires, score) end
end

return heads
