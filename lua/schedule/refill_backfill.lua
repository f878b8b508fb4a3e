local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_refill_backfill",
  doc = "Supplies the next times of a backfill: all of them after `after` and up to `reckoned`.",
  flags = {},
  args = {
    namespace = "namespace", name = "schedule_name", started_at = "time_ms", after = "time_ms",
    times = "planned_times", reckoned = "time_ms",
  },
  reply = { planned = {}, stale = {} },
  errs = { "schedule_not_found" },
  call = function(tx, a)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    local b = s.backfill
    if b == nil or b[9] or b[8] ~= a.started_at or b[13] ~= a.after then return reply.ok("stale") end
    b[12], b[13], b[14] = a.times, a.reckoned, false
    fire.advance(tx, s)
    return reply.ok("planned")
  end,
}
