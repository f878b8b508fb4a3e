-- Firing a schedule: decides the times that have come, a bounded number per call. What is decided is owed to the
-- outbox, under an id made of the schedule and the nominal time, so that nothing is submitted twice.
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local schedule = require "record.schedule"
local timers = require "index.timers"

local fire = {}

local format = string.format

local function owe(tx, s, number)
  local namespace, name = schedule.split(s.path)
  outbox.owe(tx, "fire_schedule", {
    "namespace", namespace, "schedule", name, "number", format("%.0f", number),
  })
end

-- A firing that takes place: from now on it counts as running.
local function start(tx, s, number, at, decided, cause, request)
  local run = schedule.run_id(s, at, request)
  s.live = s.live + 1
  s.flight[#s.flight + 1] = { number, at, decided, cause, run, false, 0, false }
  tx:zadd(keys.schedule_live(tx, s.path), number, run)
  schedule.note_firing(tx, s, number, { at, decided, cause, "due", run })
  if cause == "time" and s.remaining then s.remaining = s.remaining - 1 end
  return run
end

local function skip(tx, s, number, at, decided, cause, why)
  s.skipped = s.skipped + 1
  if cause == "backfill" and s.backfill then s.backfill[7] = s.backfill[7] + 1 end
  schedule.note_firing(tx, s, number, { at, decided, cause, "skipped", false, why })
  schedule.tell(tx, s, "skipped", "nominal_at", at, "cause", cause, "why", why)
end

local function cancel_live(tx, s)
  local namespace, name = schedule.split(s.path)
  for _, run in ipairs(s.live_ids) do
    outbox.owe(tx, "cancel_run", { "namespace", namespace, "schedule", name, "run_id", run })
  end
end

-- One that waits and will not take place.
local function skip_waiting(tx, s, w, why)
  if w[4] == "backfill" and s.backfill then s.backfill[6] = s.backfill[6] - 1 end
  skip(tx, s, w[1], w[2], w[3], w[4], why)
end

-- What the overlap policy makes of a time that has come; "hold" leaves it for later.
local function decide(tx, s, at, cause, overlap)
  local now = tx.now
  if overlap == "allow" or (s.live == 0 and #s.waiting == 0) then
    local number = schedule.numbered(tx, s)
    start(tx, s, number, at, now, cause)
    owe(tx, s, number)
    if cause == "backfill" then s.backfill[6] = s.backfill[6] + 1 end
    return
  end
  if cause == "backfill" and overlap == "queue_all" then return "hold" end
  local number = schedule.numbered(tx, s)
  if overlap == "skip" then return skip(tx, s, number, at, now, cause, "overlap") end
  if overlap == "queue_one" and #s.waiting > 0 then return skip(tx, s, number, at, now, cause, "overlap") end
  if #s.waiting >= limits.schedule_waiting_max then return skip(tx, s, number, at, now, cause, "queue_full") end
  if overlap == "cancel_previous" then
    for _, w in ipairs(s.waiting) do skip_waiting(tx, s, w, "replaced") end
    s.waiting = {}
    cancel_live(tx, s)
  end
  s.waiting[#s.waiting + 1] = { number, at, now, cause }
  if cause == "backfill" then s.backfill[6] = s.backfill[6] + 1 end
  schedule.note_firing(tx, s, number, { at, now, cause, "waiting" })
end

-- A time that came too long ago, or a firing that was refused for too long.
local function miss(tx, s, number, at, decided, cause, why, run)
  s.missed = s.missed + 1
  schedule.note_firing(tx, s, number, { at, decided, cause, "missed", run or false, why })
  schedule.tell(tx, s, "missed", "nominal_at", at, "cause", cause, "why", why)
end

-- Nothing may be decided while a firing is refused, or while too many are not submitted yet.
local function held_back(s)
  if #s.flight >= limits.schedule_flight_max then return true end
  for _, f in ipairs(s.flight) do
    if f[8] then return true end
  end
  return false
end

local function finish(tx, s, why)
  if s.over then return end
  s.over = 1
  for _, w in ipairs(s.waiting) do skip_waiting(tx, s, w, "remaining") end
  s.waiting = {}
  schedule.tell(tx, s, "ended", "why", why)
end

-- Those that wait for an end that has come.
local function go_on(tx, s)
  while #s.waiting > 0 and (s.live == 0 or s.overlap == "allow") and #s.flight < limits.schedule_flight_max do
    local w = table.remove(s.waiting, 1)
    start(tx, s, w[1], w[2], w[3], w[4])
    owe(tx, s, w[1])
    if w[4] == "time" and s.remaining == 0 then return finish(tx, s, "remaining") end
  end
end

-- Times of the schedule itself. Answers how many were decided.
local function times(tx, s, most)
  local count = 0
  while count < most and not s.over and not held_back(s) do
    if s.remaining and s.remaining <= 0 then
      finish(tx, s, "remaining")
      break
    end
    local at, unknown = schedule.next_time(s)
    if at == nil then
      if not unknown then finish(tx, s, s.ends and "ends_at" or "no_times") end
      break
    end
    local due = at + schedule.jitter(s, at)
    if due > tx.now then break end
    if at + (s.jitter or 0) + s.catch_up < tx.now then
      -- Whatever came this long ago is counted by the engine, however much it is.
      schedule.ask_now(tx, s)
      break
    end
    schedule.pass(s, at)
    if due + s.catch_up < tx.now then
      miss(tx, s, schedule.numbered(tx, s), at, tx.now, "time", "too_late")
    else
      decide(tx, s, at, "time", s.overlap)
    end
    count = count + 1
  end
  return count
end

-- Times of a backfill that were supplied: { from, to, cursor, overlap, total, fired, skipped, started, ended, stopped,
-- actor, times, the time up to which all are there, asked }.
local function backfill(tx, s, most)
  local b = s.backfill
  if b == nil or b[9] then return end
  local planned, count = b[12], 0
  while count < most and #planned > 0 and not held_back(s) do
    local at = planned[1]
    if decide(tx, s, at, "backfill", b[4]) == "hold" then break end
    table.remove(planned, 1)
    b[3] = at
    count = count + 1
  end
  if #planned > 0 then return end
  if b[13] >= b[2] then
    b[3], b[9] = b[2], tx.now
    schedule.tell(tx, s, "backfilled", "from", b[1], "to", b[2], "fired", b[6], "skipped", b[7])
  elseif not b[14] then
    b[3], b[14] = b[13], true
    local namespace, name = schedule.split(s.path)
    outbox.owe(tx, "plan_backfill", { "namespace", namespace, "schedule", name })
  end
end

-- When the schedule next needs attention without anyone, or nil.
local function wake_at(s, now)
  local at
  for _, f in ipairs(s.flight) do
    if f[6] and (at == nil or f[6] < at) then at = f[6] end
  end
  if s.paused or held_back(s) then return at end
  local b = s.backfill
  -- More of a backfill can be decided at once, unless it waits for an end.
  if b and not b[9] and #b[12] > 0 and (b[4] ~= "queue_all" or (s.live == 0 and #s.waiting == 0)) then return now end
  if s.over then return at end
  local next_at = schedule.next_time(s)
  if next_at and not (s.asked and next_at + (s.jitter or 0) + s.catch_up < now) then
    local due = next_at + schedule.jitter(s, next_at)
    if at == nil or due < at then at = due end
  end
  return at
end

-- Decides what has come and saves the schedule.
function fire.advance(tx, s)
  if not s.paused then
    go_on(tx, s)
    local count = times(tx, s, limits.schedule_steps_max)
    backfill(tx, s, limits.schedule_steps_max - count)
    schedule.ask(tx, s)
  end
  schedule.save(tx, s, wake_at(s, tx.now))
end

-- The timer of a schedule is due.
function fire.due(tx, path)
  local s = schedule.load(tx, path)
  if s == nil then return timers.clear(tx, schedule.timer(path)) end
  for _, f in ipairs(s.flight) do
    if f[6] and f[6] <= tx.now then
      f[6] = false
      owe(tx, s, f[1])
    end
  end
  -- The entry stands at its time: it moves, or leaves, with the record.
  s.wake = s.wake or 0
  fire.advance(tx, s)
end

fire.skip = skip_waiting

function fire.full(s)
  return #s.flight >= limits.schedule_flight_max
end

-- A firing that a person asked for. The caller submits it; when it does not, the timer does.
function fire.now(tx, s, request)
  local number = schedule.numbered(tx, s)
  local run = start(tx, s, number, tx.now, tx.now, "trigger", request)
  s.flight[#s.flight][6] = tx.now + limits.schedule_again_ms_max
  return number, run
end

-- What became of firings ------------------------------------------------------------------------------

local function in_flight(s, number)
  for i, f in ipairs(s.flight) do
    if f[1] == number then return i, f end
  end
end

-- A firing that is owed, or nil.
function fire.find(s, number)
  local _, f = in_flight(s, number)
  return f
end

local function leave_live(tx, s, run)
  local key = keys.schedule_live(tx, s.path)
  if tx:zscore(key, run) then
    tx:zrem(key, run)
    s.live = s.live - 1
    for i, other in ipairs(s.live_ids) do
      if other == run then
        table.remove(s.live_ids, i)
        break
      end
    end
  end
end

local function submitted(tx, s, i, f)
  table.remove(s.flight, i)
  s.fired = s.fired + 1
  local entry = { f[2], f[3], f[4], "running", f[5] }
  schedule.note_firing(tx, s, f[1], entry)
  s.last = cmsgpack.pack({ f[1], entry })
  schedule.tell(tx, s, "fired", "nominal_at", f[2], "fired_at", f[3], "cause", f[4], "run_id", f[5])
end

local function over(tx, s, number, run, outcome)
  leave_live(tx, s, run)
  local entry = schedule.firing(tx, s, number)
  if entry and entry[5] == run then
    entry[4], entry[6], entry[7], entry[8] = "ended", false, outcome, tx.now
    schedule.note_firing(tx, s, number, entry)
  end
  local last = s.last and cmsgpack.unpack(s.last)
  if last and last[1] == number then
    last[2][4], last[2][6], last[2][7], last[2][8] = "ended", false, outcome, tx.now
    s.last = cmsgpack.pack(last)
  end
end

-- It was submitted, now or before; `outcome` says how it has ended already.
function fire.submitted(tx, s, number, outcome)
  local i, f = in_flight(s, number)
  if i == nil then return false end
  submitted(tx, s, i, f)
  if outcome then over(tx, s, number, f[5], outcome) end
  return true
end

-- It was refused: tried again within the catch-up window, and missed afterwards. The second answer is when.
function fire.refused(tx, s, number, code, final)
  local i, f = in_flight(s, number)
  if i == nil then return false end
  f[7] = f[7] + 1
  local wait = math.min(limits.schedule_again_ms_min * 2 ^ math.min(f[7] - 1, 10), limits.schedule_again_ms_max)
  local again = tx.now + wait
  if not final and again <= f[3] + s.catch_up then
    f[6], f[8] = again, code
    schedule.note_firing(tx, s, number, { f[2], f[3], f[4], "due", f[5], code, false, false, false, f[7] })
    return true, again
  end
  table.remove(s.flight, i)
  leave_live(tx, s, f[5])
  -- It did not take place, so another one may.
  if f[4] == "time" and s.remaining then s.remaining, s.over = s.remaining + 1, nil end
  miss(tx, s, number, f[2], f[3], f[4], code)
  return true
end

-- An execution or flow of the schedule has ended.
function fire.ended(tx, s, number, run, outcome)
  local i, f = in_flight(s, number)
  if i and f[5] == run then submitted(tx, s, i, f) end
  over(tx, s, number, run, outcome)
end

return fire
