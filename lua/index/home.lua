-- Where an execution's state puts it: exactly one entry in exactly one sorted set of its lane.
--
-- Work that could run, is granted, or runs shares one set per queue, in three bands of scores: eligible work by its
-- queue score, then granted, then active work by creation time. Starting an execution is thus one write that moves it
-- from band to band, and no execution can stand in two of them.
local keys = require "lib.keys"
local limits = require "lib.limits"
local queues = require "index.queues"
local lane = require "record.lane"

local home = {}

local granted_from, active_from = limits.granted_from, limits.active_from
home.granted_from, home.active_from = granted_from, active_from

local blocked = {
  waiting_for_capable_worker = "blocked:route", waiting_for_quota = "blocked:quota",
  waiting_for_budget = "blocked:budget", waiting_for_dependencies = "blocked:dependencies",
  waiting_for_children = "blocked:children", held_by_operator = "blocked:operator",
}

home.places = {
  "delayed", "suspended", "terminal", "blocked:route", "blocked:quota", "blocked:budget", "blocked:dependencies",
  "blocked:children", "blocked:operator",
}

-- The place and score that the state implies. `queue` is the place of what is eligible, granted or active.
function home.of(rec)
  local phase = rec.phase
  if phase == "active" then return "queue", active_from + rec.created end
  if phase == "terminal" or phase == "suspended" then return phase, rec.created end
  if rec.reason then return blocked[rec.reason], rec.since end
  if rec.delay then return "delayed", rec.created end
  if rec.grant then return "queue", granted_from + rec.created end
  return "queue", rec.score
end

-- The sorted set of a place.
function home.key(tx, rec, path, place)
  if place == "queue" then return keys.queue(tx, path, rec.queue, rec.kind) end
  return keys.place(tx, path, place)
end

-- Tells dispatchers that something can be claimed, unless they are known to be coming back anyway.
local function announce(tx, rec, name, fresh)
  local copy = not fresh and rec.prio == 0 and lane.load(tx, rec.path)
  if not copy or not queues.quiet(tx, copy, name) then tx:announce("ready", rec.path, name, rec.score) end
end

-- Plans the move from where the record was loaded to where its state puts it now. `was_path` is there when its lane
-- changed.
function home.move(tx, rec, place, score)
  local was_place, was_path = rec.was_place, rec.was_path or rec.path
  local path = rec.path
  if was_place == place and rec.was_score == score and was_path == path then return end
  local key, moved = home.key(tx, rec, path, place), was_place ~= place or was_path ~= path
  if moved and was_place then tx:zrem(home.key(tx, rec, was_path, was_place), rec.id) end
  if was_path ~= path then
    queues.left(tx, was_path, queues.name(rec.queue, rec.kind), was_place == "queue" and 1 or 0)
  end
  if place == "queue" then
    local eligible = rec.phase == "runnable" and rec.grant == nil
    if moved or eligible then
      local name = queues.name(rec.queue, rec.kind)
      local fresh = queues.entered(tx, path, name, rec.requires, eligible and score or nil)
      if eligible then announce(tx, rec, name, fresh) end
    end
  end
  tx:zadd(key, score, rec.id)
  rec.was_place, rec.was_score = place, score
  if rec.was_path then rec.was_path = nil end
end

-- Plans the removal of the entry.
function home.leave(tx, rec)
  local key = home.key(tx, rec, rec.path, rec.was_place)
  tx:zrem(key, rec.id)
end

return home
