-- A lane as one partition sees it: a copy of its definition, and what the partition remembers about its queues.
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"

local lane = {}

local open, close = packed.open_lane, packed.close_lane

lane.defaults = { state = "active", priority_weight = limits.strict_priority_weight, fairness = "fifo", weight = 1 }

-- The partition's copy, read once per list as long as nothing changes it; nil when the partition has not seen the lane.
function lane.load(tx, path)
  local known = tx.lanes[path]
  if known and known.tag == tx.tag then return known end
  local key = keys.lane(tx, path)
  local stored = tx:record(key)
  if stored == nil then return nil end
  known = open(key, stored)
  known.path, known.tag, known.remembered, known.queues, known.heads = path, tx.tag, {}, {}, {}
  tx.lanes[path] = known
  return known
end

-- Plans a definition; `version` counts its changes.
function lane.store(tx, path, definition, version)
  local record = { version = version }
  for name, value in pairs(definition) do record[name] = value end
  tx:set(keys.lane(tx, path), close(record))
  tx.lanes[path] = nil
end

lane.fields = {
  "state", "priority_weight", "fairness", "fairness_weights", "max_depth", "max_active", "weight", "retry",
  "attempt_timeout_ms", "retention_ms", "lease_ttl_ms",
}

-- The definition as it was given.
function lane.definition(copy)
  local definition = {}
  for _, name in ipairs(lane.fields) do definition[name] = copy[name] end
  return definition
end

-- True when two definitions say the same.
function lane.same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for name, value in pairs(a) do
    if not lane.same(value, b[name]) then return false end
  end
  for name in pairs(b) do
    if a[name] == nil then return false end
  end
  return true
end

-- What the partition remembers of a lane, each under a name:
--   main           the queue that every claim looks at; the others stand among the heads
--   quiet          dispatchers come back for what is in the main queue without being told
--   quiet:<queue>  the same of another queue
--   others         it has queues beside the main one
--   uncovered      some queue was found to have no worker, now or lately
--   told           the wake-up that was announced last
--   prefers        some of its work prefers some workers
--   admits         some of its work needs admission
--   virtual        virtual time of a fair lane
-- What was read of it stays with the copy; false stands for nothing.
function lane.recall(tx, copy, name)
  local value = copy.remembered[name]
  if value == nil then
    value = tx:hget(keys.lane_memory(tx, copy.path), name) or false
    copy.remembered[name] = value
  end
  return value or nil
end

-- What was remembered under several names, read in one go unless something is planned for it.
function lane.recall_all(tx, copy, names)
  local key = keys.lane_memory(tx, copy.path)
  if tx:touches(key) then return end
  local found = tx:read("HMGET", key, unpack(names))
  for i = 1, #names do copy.remembered[names[i]] = found[i] end
end

local common = { "told", "prefers", "quiet", "admits", "main", "others", "uncovered" }

-- Reads in one go what submissions and claims ask for.
function lane.prepare(tx, copy)
  local remembered = copy.remembered
  for i = 1, #common do
    if remembered[common[i]] == nil then return lane.recall_all(tx, copy, common) end
  end
end

-- Plans a change of what the partition remembers; nil forgets.
function lane.remember(tx, copy, name, value)
  local known = lane.recall(tx, copy, name)
  if value == known then return end
  if value == nil then
    tx:hdel(keys.lane_memory(tx, copy.path), name)
  else
    tx:hput(keys.lane_memory(tx, copy.path), name, value)
  end
  copy.remembered[name] = value or false
end

function lane.split(path)
  local namespace, name = string.match(path, "^([^/]+)/(.+)$")
  return namespace, name
end

function lane.starts(copy)
  return copy.state == "active" or copy.state == "draining"
end

function lane.accepts(copy)
  return copy.state == "active" or copy.state == "paused"
end

return lane
