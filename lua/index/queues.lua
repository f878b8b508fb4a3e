-- The requirement sets a lane has work for: one queue each. The queue `any` (nothing required, nothing to
-- admit) is not registered, since every worker looks at it.
local keys = require "lib.keys"
local lane = require "record.lane"

local queues = {}

local sub = string.sub

-- The queue of a requirement set; work that needs admission has queues of its own.
function queues.name(requires, admission)
  local name = #requires == 0 and "any" or keys.digest(table.concat(requires, ","))
  return admission and "admit." .. name or name
end

-- True for a queue whose work needs admission.
function queues.admits(name)
  return sub(name, 1, 6) == "admit."
end

local function pack(entry)
  return cmsgpack.pack({ entry.requires, entry.admission, entry.uncovered_since or false, entry.uncovered })
end

local function unpack_entry(name, packed)
  local l = cmsgpack.unpack(packed)
  return { queue = name, requires = l[1], admission = l[2], uncovered_since = l[3] or nil, uncovered = l[4] }
end

-- What was read of a lane's queues stays with its copy, like everything the partition remembers of it.
local function know(tx, path, name, entry)
  local copy = lane.load(tx, path)
  if copy then copy.queues[name] = entry end
end

function queues.put(tx, path, entry)
  tx:hput(keys.queues(tx, path), entry.queue, pack(entry))
  know(tx, path, entry.queue, entry)
end

function queues.get(tx, path, name)
  local copy = lane.load(tx, path)
  local entry = copy and copy.queues[name]
  if entry == nil then
    local packed = tx:hget(keys.queues(tx, path), name)
    entry = packed and unpack_entry(name, packed) or false
    know(tx, path, name, entry)
  end
  return entry or nil
end

local function remember_admission(tx, path, mark)
  local copy = lane.load(tx, path)
  if copy then lane.remember(tx, copy, "admits", mark) end
end

-- The lane remembers that some of its work needs admission until its last such queue is gone.
local function forget_admission(tx, path, gone)
  for name in pairs(tx:hgetall(keys.queues(tx, path)) or {}) do
    if name ~= gone and queues.admits(name) then return end
  end
  remember_admission(tx, path, nil)
end

function queues.drop(tx, path, name)
  tx:hdel(keys.queues(tx, path), name)
  know(tx, path, name, false)
  tx:hdel(keys.lane_memory(tx, path), "quiet:" .. name)
  if queues.admits(name) then forget_admission(tx, path, name) end
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

-- True when none of the lane's registered queues holds anything; those that hold nothing are forgotten.
function queues.none(tx, path)
  for _, entry in ipairs(queues.all(tx, path)) do
    queues.tidy(tx, path, entry.queue)
    if queues.get(tx, path, entry.queue) then return false end
  end
  return true
end

-- The names whose entries cannot be read.
function queues.unreadable(tx, path)
  local names = {}
  for name, packed in pairs(tx:hgetall(keys.queues(tx, path)) or {}) do
    if not pcall(unpack_entry, name, packed) then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

function queues.covered(requires, capabilities)
  for _, token in ipairs(requires) do
    if not capabilities[token] then return false end
  end
  return true
end

-- Registers the queue an execution enters; true when it is new to the lane.
function queues.joined(tx, path, name, requires)
  local entry = queues.get(tx, path, name)
  if entry then
    -- Nobody covered what was in it before; that says nothing about what comes now.
    if entry.uncovered_since and not entry.uncovered and tx:zstored(keys.queue(tx, path, name)) == 0 then
      entry.uncovered_since = nil
      queues.put(tx, path, entry)
    end
    return false
  end
  local admission = queues.admits(name)
  queues.put(tx, path, { queue = name, requires = requires or {}, admission = admission, uncovered = false })
  if admission then remember_admission(tx, path, "1") end
  return true
end

-- Forgets a queue that holds nothing any more. Those that look at it do so, and the retirement of what was in it: to
-- look whenever something leaves would cost every end a read. One marked uncovered stays, so that later work goes to
-- route at once.
function queues.tidy(tx, path, name)
  if name == "any" or tx:zstored(keys.queue(tx, path, name)) > 0 then return end
  local entry = queues.get(tx, path, name)
  if entry and not entry.uncovered then queues.drop(tx, path, name) end
end

return queues
