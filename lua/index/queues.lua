-- The requirement sets a lane has work for: one queue each. The queue `any` (nothing required, nothing to
-- admit) is not registered, since every worker looks at it.
local keys = require "lib.keys"

local queues = {}

-- The queue of a requirement set; work that needs admission has queues of its own.
function queues.name(requires, admission)
  local name = #requires == 0 and "any" or keys.digest(table.concat(requires, ","))
  return admission and "admit." .. name or name
end

local function pack(entry)
  return cmsgpack.pack({ entry.requires, entry.admission, entry.uncovered_since or false, entry.uncovered })
end

local function unpack_entry(name, packed)
  local l = cmsgpack.unpack(packed)
  return { queue = name, requires = l[1], admission = l[2], uncovered_since = l[3] or nil, uncovered = l[4] }
end

function queues.put(tx, path, entry)
  tx:hput(keys.queues(tx, path), entry.queue, pack(entry))
end

function queues.get(tx, path, name)
  local packed = tx:hget(keys.queues(tx, path), name)
  return packed and unpack_entry(name, packed) or nil
end

function queues.drop(tx, path, name)
  tx:hdel(keys.queues(tx, path), name)
  tx:hdel(keys.lane_memory(tx, path), "quiet:" .. name)
end

-- Every registered queue of a lane, in the order of their names.
function queues.all(tx, path)
  local names, found = {}, tx:hgetall(keys.queues(tx, path)) or {}
  for name in pairs(found) do names[#names + 1] = name end
  table.sort(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = unpack_entry(name, found[name]) end
  return list
end

function queues.covered(requires, capabilities)
  for _, token in ipairs(requires) do
    if not capabilities[token] then return false end
  end
  return true
end

-- By how much this call changes the number of entries of a queue: what is planned cannot be counted yet.
local function planned(tx, key, by)
  local name = "entries:" .. key
  tx.memo[name] = (tx.memo[name] or 0) + by
  return tx.memo[name]
end

-- Registers the queue an execution enters; true when it is new to the lane.
function queues.joined(tx, rec, key)
  planned(tx, key, 1)
  if queues.get(tx, rec.path, rec.queue) then return false end
  local admission = rec.budgets ~= nil or rec.quotas ~= nil
  queues.put(tx, rec.path, { queue = rec.queue, requires = rec.requires or {}, admission = admission, uncovered = false })
  return true
end

-- Forgets the queue when its last entry leaves; one marked uncovered stays, so that later work goes to route at once.
function queues.left(tx, rec, path, key)
  if tx:zstored(key) + planned(tx, key, -1) > 0 then return end
  local entry = queues.get(tx, path, rec.queue)
  if entry and not entry.uncovered then queues.drop(tx, path, rec.queue) end
end

return queues
