-- A schedule: when something is submitted, and how far that has come.
--
-- Times up to `cursor` are decided. The library reckons the times of `every` itself. Times of a calendar are supplied:
-- `planned` has all of them after the cursor and up to `reckoned`, or all there will ever be when `reckoned` is absent.
-- Nothing behind `reckoned` is decided, so no time of a calendar is passed over.
--
-- A firing that was decided and is not submitted yet is in `flight`: { number, nominal time, time of the decision,
-- cause, id, when it is tried again or false, tries, code of the last refusal or false }. Firings that wait for the end
-- of another one are in `waiting`: { number, nominal time, time of the decision, cause }. What is in flight or was
-- submitted and has not ended is in the sorted set of the live.
local event = require "lib.event"
local id = require "lib.id"
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local packed = require "record.packed"
local reply = require "lib.reply"
local timers = require "index.timers"

local schedule = {}

local pack, unpack_ = cmsgpack.pack, cmsgpack.unpack
local floor, format = math.floor, string.format

function schedule.path(namespace, name) return namespace .. "/" .. name end
function schedule.timer(path) return "schedule:" .. path end

function schedule.split(path)
  return string.match(path, "^([^/]+)/(.+)$")
end

local function list_of(bytes)
  return bytes and unpack_(bytes) or {}
end

local function bytes_of(list)
  return #list > 0 and pack(list) or nil
end

-- What runs, a bounded number.
local function live_ids(tx, path)
  local ids = {}
  for i, entry in ipairs(tx:zlowest(keys.schedule_live(tx, path), "-inf", "+inf", limits.batch_max)) do
    ids[i] = entry.member
  end
  return ids
end

-- True when a time that comes may cancel what runs.
function schedule.cancels(s)
  local b = s.backfill
  return s.overlap == "cancel_previous" or (b ~= nil and not b[9] and b[4] == "cancel_previous")
end

-- The schedule with its lists opened, or nil. What runs is counted before anything is planned.
function schedule.load(tx, path)
  local key = keys.schedule(tx, path)
  local known = tx.memo[key]
  if known then return known end
  local stored = tx:record(key)
  if stored == nil then return nil end
  local s = packed.open_schedule(key, stored)
  s.path, s.live = path, tx:zcard(keys.schedule_live(tx, path))
  s.every, s.planned, s.flight, s.waiting =
    list_of(s.every), list_of(s.planned), list_of(s.flight), list_of(s.waiting)
  s.backfill, s.paused = s.backfill and unpack_(s.backfill), s.paused and unpack_(s.paused)
  s.live_ids = schedule.cancels(s) and s.live > 0 and live_ids(tx, path) or {}
  tx.memo[key] = s
  return s
end

-- The schedule of this name, or nil and the refusal.
function schedule.find(tx, a)
  local s = schedule.load(tx, schedule.path(a.namespace, a.name))
  if s then return s end
  return nil, reply.err("schedule_not_found", { namespace = a.namespace, name = a.name })
end

local function close(s)
  local copy = {}
  for name, value in pairs(s) do copy[name] = value end
  copy.every, copy.planned, copy.flight, copy.waiting =
    bytes_of(s.every), bytes_of(s.planned), bytes_of(s.flight), bytes_of(s.waiting)
  copy.backfill, copy.paused = s.backfill and pack(s.backfill) or nil, s.paused and pack(s.paused) or nil
  return packed.close_schedule(copy)
end

-- Plans the record together with its timer.
function schedule.save(tx, s, wake)
  local member = schedule.timer(s.path)
  if wake ~= s.wake then
    if wake then timers.set(tx, member, wake) else timers.clear(tx, member) end
    s.wake = wake
  end
  local key = keys.schedule(tx, s.path)
  tx.memo[key] = s
  tx:set(key, close(s))
end

-- The id of what a firing submits; `request` tells triggers of one moment apart.
function schedule.run_id(s, at, request)
  return id.made(s.sid, format("%.0f", at), request or "")
end

-- Times ---------------------------------------------------------------------------------------------

-- How much later than its nominal time a firing is due: the same on every server.
function schedule.jitter(s, at)
  if s.jitter == nil or s.jitter == 0 then return 0 end
  local h = redis.sha1hex(s.path .. ":" .. format("%.0f", at))
  return tonumber(string.sub(h, 1, 8), 16) % (s.jitter + 1)
end

-- The next nominal time after the cursor, or nil: none is left, or (the second answer) it is not reckoned yet.
function schedule.next_time(s)
  local best = s.planned[1]
  for i = 1, #s.every, 2 do
    local every, anchor = s.every[i], s.every[i + 1]
    local at = anchor + (floor((s.cursor - anchor) / every) + 1) * every
    if best == nil or at < best then best = at end
  end
  if best and s.ends and best > s.ends then best = nil end
  if s.calendar and s.reckoned and (best == nil or best > s.reckoned) then
    return nil, s.ends == nil or s.reckoned < s.ends
  end
  return best, false
end

-- Times up to this one are decided.
function schedule.pass(s, at)
  s.cursor = at
  local from = 1
  while s.planned[from] and s.planned[from] <= at do from = from + 1 end
  if from > 1 then
    local rest = {}
    for i = from, #s.planned do rest[#rest + 1] = s.planned[i] end
    s.planned = rest
  end
  if s.reckoned and s.reckoned < at then s.reckoned = at end
end

-- What was supplied: the times after `after`, all up to `reckoned`.
function schedule.plan(s, times, reckoned)
  s.planned, s.reckoned, s.asked = times, reckoned, nil
  s.planned_size = #times
  schedule.pass(s, s.cursor)
end

-- Asks the engine for times when half of those it supplied are used.
function schedule.ask(tx, s)
  if s.asked or s.calendar == nil or s.reckoned == nil or s.paused or s.over then return end
  if #s.planned > floor((s.planned_size or 0) / 2) then return end
  schedule.ask_now(tx, s)
end

function schedule.ask_now(tx, s)
  if s.asked then return end
  s.asked = 1
  local namespace, name = schedule.split(s.path)
  outbox.owe(tx, "plan_schedule", { "namespace", namespace, "schedule", name })
end

-- History -------------------------------------------------------------------------------------------

function schedule.kept(s, number)
  return number > s.number - limits.schedule_firings_max
end

local function field(number) return format("%.0f", number) end

-- Keeps what became of a firing, unless newer ones have pushed it out: { nominal, at, cause, state, id, why, outcome,
-- ended, count, tries }.
function schedule.note_firing(tx, s, number, f)
  if not schedule.kept(s, number) then return end
  tx:hput(keys.firings(tx, s.path), field(number), pack(f))
end

-- The number of a firing that comes next.
function schedule.numbered(tx, s)
  s.number = s.number + 1
  if s.number > limits.schedule_firings_max then
    tx:hdel(keys.firings(tx, s.path), field(s.number - limits.schedule_firings_max))
  end
  return s.number
end

-- A firing that is still kept, to be changed and noted again; nil when it is not.
function schedule.firing(tx, s, number)
  if not schedule.kept(s, number) then return nil end
  local bytes = tx:hget(keys.firings(tx, s.path), field(number))
  return bytes and unpack_(bytes) or nil
end

function schedule.typed_firing(number, f)
  return {
    number = number, nominal_at = f[1], fired_at = f[2], cause = f[3], state = f[4], run_id = f[5] or nil,
    why = f[6] or nil, outcome = f[7] or nil, ended_at = f[8] or nil, count = f[9] or nil, tries = f[10] or nil,
  }
end

-- The last firings, newest first.
function schedule.firings(tx, s)
  local found, numbers, out = tx:hgetall(keys.firings(tx, s.path)) or {}, {}, {}
  for number in pairs(found) do numbers[#numbers + 1] = tonumber(number) end
  table.sort(numbers, function(a, b) return a > b end)
  for i, number in ipairs(numbers) do out[i] = schedule.typed_firing(number, unpack_(found[field(number)])) end
  return out
end

-- The firing that a request triggered before, while it is kept: its id is made of both.
function schedule.request(tx, s, request)
  for _, f in ipairs(schedule.firings(tx, s)) do
    if f.cause == "trigger" and f.run_id == schedule.run_id(s, f.nominal_at, request) then
      return { number = f.number, run_id = f.run_id }
    end
  end
end

-- Events --------------------------------------------------------------------------------------------

function schedule.tell(tx, s, kind, ...)
  local namespace, name = schedule.split(s.path)
  event.of_fleet(tx, "schedule." .. kind, namespace, nil, nil, "schedule", name, ...)
end

-- Views ---------------------------------------------------------------------------------------------

local function typed_backfill(b)
  return b and {
    from = b[1], to = b[2], cursor = b[3], overlap = b[4], total = b[5], fired = b[6], skipped = b[7],
    started_at = b[8], ended_at = b[9] or nil, stopped = b[10] == 1, actor = b[11],
  } or nil
end

function schedule.typed(s)
  local namespace, name = schedule.split(s.path)
  local refused
  for _, f in ipairs(s.flight) do refused = refused or f[8] or nil end
  local last = s.last and unpack_(s.last)
  return {
    namespace = namespace, name = name, schedule_id = s.sid, version = s.version, created_at = s.created,
    changed_at = s.changed, definition = s.definition, overlap = s.overlap, catch_up_ms = s.catch_up,
    jitter_ms = s.jitter, starts_at = s.starts, ends_at = s.ends, remaining = s.remaining, cursor = s.cursor,
    next_at = (not s.over and schedule.next_time(s)) or nil,
    paused = s.paused and { reason = s.paused[1] or nil, actor = s.paused[2], at = s.paused[3] } or nil,
    over = s.over ~= nil, fired = s.fired, skipped = s.skipped, missed = s.missed,
    last = last and schedule.typed_firing(last[1], last[2]) or nil, running = s.live - #s.flight,
    waiting = #s.waiting, unsubmitted = #s.flight, refused = refused, backfill = typed_backfill(s.backfill),
  }
end

return schedule
