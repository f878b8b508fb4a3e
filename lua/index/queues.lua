-- The queues of a lane: one for each kind and requirement set it has work of. A queue's name is its class, which stands
-- for what its work requires and whether it needs admission, and its kind.
--
-- The first queue of a lane is its main one, which every claim looks at. The others stand in one sorted set by the
-- score of their head, or of something better that is gone already: so a claim finds the best it may run among
-- thousands of them. Those without eligible work stand behind all others.
local keys = require "lib.keys"
local limits = require "lib.limits"
local lane = require "record.lane"

local queues = {}

local sub, find, concat = string.sub, string.find, table.concat
local idle = limits.granted_from

queues.idle = idle

-- The class of work by what it requires; work that needs admission has classes of its own.
function queues.class(requires, admission)
  local class = #requires == 0 and "any" or keys.digest(concat(requires, ","))
  return admission and "admit." .. class or class
end

function queues.name(class, kind)
  return class .. ":" .. kind
end

-- The class and the kind of a queue.
function queues.parts(name)
  local colon = find(name, ":", 1, true)
  return sub(name, 1, colon - 1), sub(name, colon + 1)
end

-- True for a queue whose work needs admission.
function queues.admits(name)
  return sub(name, 1, 6) == "admit."
end

-- True for work that requires nothing.
function queues.plain(class)
  return class == "any" or class == "admit.any"
end

local function pack(entry)
  return cmsgpack.pack({ entry.requires, entry.uncovered_since or false, entry.uncovered, entry.kind_missing or false })
end

local function unpack_entry(name, packed)
  local l, class, kind = cmsgpack.unpack(packed), queues.parts(name)
  return {
    queue = name, class = class, kind = kind, admission = queues.admits(name), requires = l[1],
    uncovered_since = l[2] or nil, uncovered = l[3], kind_missing = l[4] or nil,
  }
end

-- What was read of a lane's queues stays with its copy, like everything the partition remembers of it.
local function know(tx, path, name, entry)
  local copy = lane.load(tx, path)
  if copy then copy.queues[name] = entry end
end

function queues.put(tx, path, entry)
  tx:hput(keys.queues(tx, path), entry.queue, pack(entry))
  know(tx, path, entry.queue, entry)
  local copy = entry.uncovered_since and lane.load(tx, path)
  if copy then lane.remember(tx, copy, "uncovered", "1") end
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

-- The queue, when it is known that no live worker runs what is in it.
function queues.without_worker(tx, path, name)
  local copy = lane.load(tx, path)
  if copy == nil then return nil end
  lane.prepare(tx, copy)
  local entry = lane.recall(tx, copy, "uncovered") and queues.get(tx, path, name)
  return entry and entry.uncovered and entry or nil
end

-- Several queues at once, in this order; false for one that is not there.
function queues.several(tx, path, names)
  if #names == 0 then return {} end
  local list = {}
  for i, packed in ipairs(tx:hmget(keys.queues(tx, path), names)) do
    list[i] = packed and unpack_entry(names[i], packed) or false
  end
  return list
end

-- What a lane remembers, or nil where the partition does not know the lane.
local function recall(tx, path, name)
  local copy = lane.load(tx, path)
  return copy and lane.recall(tx, copy, name)
end

-- The queue that every claim looks at, or nil.
function queues.main(tx, path)
  return recall(tx, path, "main")
end

-- Quiet queues ----------------------------------------------------------------------------------

-- The name under which a lane remembers that a queue is quiet.
local function quiet_name(tx, copy, name)
  return lane.recall(tx, copy, "main") == name and "quiet" or "quiet:" .. name
end

-- True while dispatchers come back for what is in the queue without being told.
function queues.quiet(tx, copy, name)
  return lane.recall(tx, copy, quiet_name(tx, copy, name)) ~= nil
end

function queues.set_quiet(tx, copy, name, quiet)
  lane.remember(tx, copy, quiet_name(tx, copy, name), quiet and "1" or nil)
end

-- Reads at once what is about to be asked of several queues.
function queues.prepare_quiet(tx, copy, names)
  local wanted = {}
  for i = 1, #names do
    local name = quiet_name(tx, copy, names[i])
    if copy.remembered[name] == nil then wanted[#wanted + 1] = name end
  end
  if #wanted > 1 then lane.recall_all(tx, copy, wanted) end
end

-- Heads -----------------------------------------------------------------------------------------

-- The score under which a queue stands among the heads; nil for one that is not there.
local function head_of(tx, path, name)
  local copy = lane.load(tx, path)
  local known = copy and copy.heads[name]
  if known == nil then
    known = tx:zscore(keys.heads(tx, path), name)
    if copy then copy.heads[name] = known end
  end
  return known
end

function queues.set_head(tx, path, name, score)
  tx:zadd(keys.heads(tx, path), score, name)
  local copy = lane.load(tx, path)
  if copy then copy.heads[name] = score end
end

-- Makes sure that the entry of an execution into a queue reads nothing; false when it is new to the lane.
function queues.foresee(tx, path, name)
  local copy = lane.load(tx, path)
  if copy == nil then return false end
  lane.prepare(tx, copy)
  if lane.recall(tx, copy, "uncovered") then return false end
  queues.quiet(tx, copy, name)
  return lane.recall(tx, copy, "main") == name or head_of(tx, path, name) ~= nil
end

-- Coming and going ------------------------------------------------------------------------------

local function remember(tx, path, name, mark)
  local copy = lane.load(tx, path)
  if copy then lane.remember(tx, copy, name, mark) end
end

-- The lane remembers that some of its work needs admission until its last such queue is gone.
local function forget_admission(tx, path, gone)
  for name in pairs(tx:hgetall(keys.queues(tx, path)) or {}) do
    if name ~= gone and queues.admits(name) then return end
  end
  remember(tx, path, "admits", nil)
end

-- The lane remembers that it has queues beside its main one.
local function forget_others(tx, path)
  local key = keys.heads(tx, path)
  if not tx:plans(key) and tx:zstored(key) <= 1 then remember(tx, path, "others", nil) end
end

function queues.drop(tx, path, name)
  local copy = lane.load(tx, path)
  if queues.main(tx, path) == name then
    lane.remember(tx, copy, "main", nil)
    lane.remember(tx, copy, "quiet", nil)
  else
    forget_others(tx, path)
    tx:zrem(keys.heads(tx, path), name)
    tx:hdel(keys.lane_memory(tx, path), "quiet:" .. name)
    if copy then copy.heads[name], copy.remembered["quiet:" .. name] = nil, false end
  end
  tx:hdel(keys.queues(tx, path), name)
  know(tx, path, name, false)
  if queues.admits(name) then forget_admission(tx, path, name) end
end

-- A lane whose main queue is empty has a new one: so the work of a lane with one kind at a time stays near.
local function becomes_main(tx, path, name)
  local copy = lane.load(tx, path)
  if copy == nil then return false end
  local main = lane.recall(tx, copy, "main")
  if main then
    local key = keys.queue_named(tx, path, main)
    if tx:plans(key) or tx:zstored(key) > 0 then return false end
    queues.set_head(tx, path, main, idle)
    lane.remember(tx, copy, "others", "1")
    lane.remember(tx, copy, "quiet", nil)
  end
  lane.remember(tx, copy, "main", name)
  return true
end

local function register(tx, path, name, requires, score)
  local class, kind = queues.parts(name)
  local main = becomes_main(tx, path, name)
  queues.put(tx, path, { queue = name, class = class, kind = kind, requires = requires or {}, uncovered = false })
  if queues.admits(name) then remember(tx, path, "admits", "1") end
  if main then return end
  remember(tx, path, "others", "1")
  queues.set_head(tx, path, name, score or idle)
end

-- Nobody covered what was in the queue before; that says nothing about what comes now.
local function begin_anew(tx, path, name)
  local entry = queues.get(tx, path, name)
  local key = keys.queue_named(tx, path, name)
  if entry and entry.uncovered_since and not entry.uncovered and not tx:plans(key) and tx:zstored(key) == 0 then
    entry.uncovered_since = nil
    queues.put(tx, path, entry)
  end
end

-- An execution enters a queue, with its `score` when it can be claimed. True when the queue is new to the lane.
function queues.entered(tx, path, name, requires, score)
  local copy = lane.load(tx, path)
  if copy and lane.recall(tx, copy, "uncovered") then begin_anew(tx, path, name) end
  if copy and lane.recall(tx, copy, "main") == name then return false end
  local head = head_of(tx, path, name)
  if head == nil then
    register(tx, path, name, requires, score)
    return true
  end
  if score and score < head then queues.set_head(tx, path, name, score) end
  return false
end

-- Makes a queue known again, with an execution that is eligible in it.
function queues.mend(tx, path, name, requires, score)
  local copy = lane.load(tx, path)
  if copy then copy.heads[name] = nil end
  if queues.get(tx, path, name) == nil then
    local class, kind = queues.parts(name)
    queues.put(tx, path, { queue = name, class = class, kind = kind, requires = requires or {}, uncovered = false })
    if queues.admits(name) then remember(tx, path, "admits", "1") end
  end
  if queues.main(tx, path) == name then return end
  remember(tx, path, "others", "1")
  local head = tx:zscore(keys.heads(tx, path), name)
  if head == nil or score < head then queues.set_head(tx, path, name, score) end
end

-- Forgets a queue of another lane that an execution was moved from: `leaving` of its entries go with this call. Nothing
-- else of that kind may ever end there.
function queues.left(tx, path, name, leaving)
  if tx:zstored(keys.queue_named(tx, path, name)) > leaving then return end
  local entry = queues.get(tx, path, name)
  if entry and not entry.uncovered then queues.drop(tx, path, name) end
end

-- Forgets a queue that holds nothing any more. Those that look at it do so, and the retirement of what was in it: to
-- look whenever something leaves would cost every end a read. One marked uncovered stays, so that later work goes to
-- route at once.
function queues.tidy(tx, path, name)
  queues.left(tx, path, name, 0)
end

-- Walks -----------------------------------------------------------------------------------------

-- Every queue of a lane, in the order of their names.
function queues.all(tx, path)
  local names, found = {}, tx:hgetall(keys.queues(tx, path)) or {}
  for name in pairs(found) do names[#names + 1] = name end
  table.sort(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = unpack_entry(name, found[name]) end
  return list
end

-- The names of the main queue and of up to `count` others behind the first `skip`, by their heads.
function queues.page(tx, path, skip, count)
  local names, main = {}, skip == 0 and queues.main(tx, path)
  if main then names[1] = main end
  local from, to = string.format("%.0f", skip), string.format("%.0f", skip + count - 1)
  for _, name in ipairs(tx:zrange(keys.heads(tx, path), from, to)) do names[#names + 1] = name end
  return names
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

return queues
