-- Where an execution's state puts it: exactly one entry in exactly one sorted set of its lane.
--
-- Work that could run, is granted, or runs shares one set per requirement set, in three bands of scores:
-- eligible work by its queue score, then granted, then active work by creation time. Starting an
-- execution is thus one write that moves it from band to band, and no execution can stand in two of them.
local keys = require "lib.keys"
local queues = require "index.queues"
local lane = require "record.lane"

local home = {}

home.granted_from = 2000000000000000
home.active_from = 4000000000000000

local blocked = {
  waiting_for_capable_worker = "blocked:route", waiting_for_quota = "blocked:quota", waiting_for_budget = "blocked:budget",
  waiting_for_dependencies = "blocked:dependencies", waiting_for_children = "blocked:children", held_by_operator = "blocked:operator",
}

home.places = { "delayed", "suspended", "terminal", "blocked:route", "blocked:quota", "blocked:budget", "blocked:dependencies", "blocked:children", "blocked:operator" }

-- True while the entry is in a queue: eligible, granted or active.
function home.queued(rec)
  return rec.phase == "active" or (rec.phase == "runnable" and rec.reason == nil and rec.delay == nil)
end

-- The key and score that the state implies.
function home.of(tx, rec)
  local path = rec.spec.namespace .. "/" .. rec.lane
  local created = rec.spec.created_at
  if rec.phase == "terminal" or rec.phase == "suspended" then return keys.place(tx, path, rec.phase), created end
  if rec.phase == "active" then return keys.queue(tx, path, rec.spec.queue), home.active_from + created end
  if rec.reason then return keys.place(tx, path, blocked[rec.reason]), rec.since end
  if rec.delay then return keys.place(tx, path, "delayed"), created end
  local queue = keys.queue(tx, path, rec.spec.queue)
  if rec.grant then return queue, home.granted_from + created end
  return queue, rec.score
end

-- Tells dispatchers that something can be claimed, unless they are known to be coming back anyway.
local function announce(tx, rec, fresh)
  local path = rec.spec.namespace .. "/" .. rec.lane
  local copy = lane.load(tx, path)
  if fresh or rec.prio > 0 or copy == nil or copy.raw["quiet:" .. rec.spec.queue] == nil then
    tx:announce("ready", path, rec.spec.queue, rec.score)
  end
end

-- Plans the move from where the record was loaded to where its state puts it now.
function home.move(tx, rec)
  local key, score = home.of(tx, rec)
  local before = rec.before
  if before.key == key and before.score == score then return end
  local queued, fresh = home.queued(rec), false
  if before.key ~= key then
    if before.key then
      tx:zrem(before.key, rec.id)
      if before.queued then queues.left(tx, rec, before.key) end
    end
    if queued then fresh = queues.joined(tx, rec) end
  end
  tx:zadd(key, score, rec.id)
  if queued and rec.phase == "runnable" and rec.grant == nil then announce(tx, rec, fresh) end
  before.key, before.score, before.queued = key, score, queued
end

-- Plans the removal of the entry.
function home.leave(tx, rec)
  tx:zrem(rec.before.key, rec.id)
  if rec.before.queued then queues.left(tx, rec, rec.before.key) end
end

return home
