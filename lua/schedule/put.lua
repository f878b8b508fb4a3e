local define = require "lib.define"
local fire = require "transition.fire"
local keys = require "lib.keys"
local reply = require "lib.reply"
local schedule = require "record.schedule"

local function everies(list)
  local flat = {}
  for i, e in ipairs(list) do flat[2 * i - 1], flat[2 * i] = e.every_ms, e.anchor_at end
  return flat
end

-- A schedule begins now, or right before its first moment.
local function begin(tx, s)
  s.cursor = math.max(tx.now, (s.starts or 0) - 1)
  s.planned, s.planned_size, s.reckoned, s.asked = {}, 0, s.calendar and s.cursor or nil, nil
end

define.fn {
  name = "ff_put_schedule",
  doc = "Creates a schedule, or replaces the definition of one: its pause, its counts and its firings stay. With "
    .. "`version` only if that is its version; 0 means that there is none yet. Other times than before begin now.",
  flags = {},
  args = { schedule = "new_schedule", schedule_id = "uuid", version = "count?", actor = "actor" },
  reply = {
    created = { schedule = "schedule", now = "time_ms" }, changed = { schedule = "schedule", now = "time_ms" },
  },
  errs = { "schedule_version_conflict" },
  call = function(tx, a, now)
    local n = a.schedule
    local path = schedule.path(n.namespace, n.name)
    local s = schedule.load(tx, path)
    local was = s and s.version or 0
    if a.version and a.version ~= was then
      return reply.err("schedule_version_conflict", { name = n.name, version = was, asked = a.version })
    end
    local fresh = s == nil
    if fresh then
      s = {
        path = path, sid = a.schedule_id, version = 0, created = now, number = 0, fired = 0, skipped = 0, missed = 0,
        live = 0, live_ids = {}, every = {}, planned = {}, flight = {}, waiting = {}, cursor = now,
      }
      tx:zadd(keys.schedules(tx), now, path)
    else
      -- What has come by now comes under the old definition.
      fire.advance(tx, s)
    end
    local same = not fresh and s.definition == n.definition and s.starts == n.starts_at and s.ends == n.ends_at
    s.definition, s.every, s.calendar = n.definition, everies(n.every), n.calendar and 1 or nil
    s.overlap, s.catch_up, s.jitter = n.overlap, n.catch_up_ms, n.jitter_ms
    s.starts, s.ends, s.remaining = n.starts_at, n.ends_at, n.remaining
    s.version, s.changed = s.version + 1, now
    s.over = nil
    if not same then begin(tx, s) end
    tx:set(keys.schedule_action(tx, path), n.action)
    schedule.tell(tx, s, fresh and "created" or "changed", "version", s.version, "actor", a.actor)
    fire.advance(tx, s)
    return reply.ok(fresh and "created" or "changed", { schedule = schedule.typed(s), now = now })
  end,
}
