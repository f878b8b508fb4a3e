-- Start-time fair queueing over fairness keys: each key's next start lies one share behind its last.
local keys = require "lib.keys"
local lane = require "record.lane"

local fair = {}

local share = 1000 -- virtual milliseconds one execution of weight 1 takes

-- The virtual start of a new execution and its end, where its key's next one begins.
function fair.start(tx, copy, fairness_key, now)
  local virtual = tonumber(lane.recall(tx, copy, "virtual")) or now
  local digest = keys.digest(fairness_key or "")
  local finish = tonumber(tx:hget(keys.fair(tx, copy.path), digest) or nil) or 0
  local start = math.max(virtual, finish)
  local weight = copy.fairness_weights and fairness_key and copy.fairness_weights[fairness_key] or 1
  finish = start + math.max(1, math.floor(share / weight))
  tx:hset(keys.fair(tx, copy.path), { digest, finish })
  lane.remember(tx, copy, "virtual", string.format("%.0f", virtual))
  return start, finish
end

-- Virtual time follows the work that starts. The start is kept with the execution: the lane may weigh priority
-- differently by now.
function fair.started(tx, copy, rec)
  if copy.fairness ~= "fair" or rec.fair == nil then return end
  local virtual = tonumber(lane.recall(tx, copy, "virtual"))
  if virtual and rec.fair > virtual then lane.remember(tx, copy, "virtual", string.format("%.0f", rec.fair)) end
end

-- The execution leaves the lane: its key is forgotten when nothing came after it.
function fair.forget(tx, path, rec)
  if rec.fair_end == nil then return end
  local key, digest = keys.fair(tx, path), keys.digest(rec.fairness_key or "")
  if tonumber(tx:hget(key, digest) or nil) == rec.fair_end then tx:hdel(key, digest) end
end

-- Nothing waits: every key starts afresh.
function fair.idle(tx, copy)
  if lane.recall(tx, copy, "virtual") == nil then return end
  lane.remember(tx, copy, "virtual", nil)
  tx:del(keys.fair(tx, copy.path))
end

return fair
