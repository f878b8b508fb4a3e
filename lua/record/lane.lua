-- A lane as one partition sees it: a copy of its definition and what the partition remembers about its queues.
local keys = require "lib.keys"
local limits = require "lib.limits"
local spec = require "record.spec"

local lane = {}

lane.defaults = { state = "active", priority_weight = limits.strict_priority_weight, fairness = "fifo", weight = 1 }

local order = { "state", "priority_weight", "fairness", "max_depth", "weight", "attempt_timeout_ms", "retention_ms", "lease_ttl_ms" }

-- A definition as a packed list; maps are flattened in the order of their names.
function lane.pack(definition)
  local list = {}
  for i, name in ipairs(order) do list[i] = definition[name] or false end
  list[#order + 1] = definition.fairness_weights and spec.flatten(definition.fairness_weights) or false
  list[#order + 2] = definition.retry and spec.pack_partial_retry(definition.retry) or false
  list[#order + 3] = definition.max_active or false
  return cmsgpack.pack(list)
end

function lane.unpack(packed)
  local list = cmsgpack.unpack(packed)
  local definition = {}
  for i, name in ipairs(order) do definition[name] = list[i] or nil end
  local weights = list[#order + 1]
  if weights then
    definition.fairness_weights = {}
    for i = 1, #weights, 2 do definition.fairness_weights[weights[i]] = weights[i + 1] end
  end
  local r = list[#order + 2]
  definition.retry = r and spec.unpack_partial_retry(r) or nil
  definition.max_active = list[#order + 3] or nil
  return definition
end

-- The partition's copy, read once per list as long as nothing changes it; nil when the partition has not seen the lane.
function lane.load(tx, path)
  local key = keys.lane(tx, path)
  local known = tx.memo[key] or (tx.plan[key] == nil and tx.shared.lanes[key])
  if known then
    tx.memo[key] = known
    return known
  end
  local raw = tx:hgetall(key)
  if raw == nil then return nil end
  if raw.definition == nil then error("CORRUPT " .. key .. " definition") end
  known = lane.unpack(raw.definition)
  known.path, known.raw, known.version = path, raw, tonumber(raw.version)
  tx.memo[key] = known
  if tx.plan[key] == nil then tx.shared.lanes[key] = known end
  return known
end

-- Plans a change of what the partition remembers; nil forgets.
function lane.remember(tx, copy, name, value)
  if value == nil then
    if copy.raw[name] ~= nil then tx:hdel(keys.lane(tx, copy.path), name) end
  elseif copy.raw[name] ~= value then
    tx:hset(keys.lane(tx, copy.path), { name, value })
  end
  copy.raw[name] = value
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
