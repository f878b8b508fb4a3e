local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_refill_schedule",
  doc = "Supplies the times of a calendar after `after`: all of them up to `reckoned`, or all there will ever be when "
    .. "that is absent. Times up to `missed.to` came too long ago: they are counted. Under another version, or when "
    .. "those were counted by somebody else, nothing changes.",
  flags = {},
  args = {
    namespace = "namespace", name = "schedule_name", version = "count", after = "time_ms", times = "planned_times",
    reckoned = "time_ms?", missed = "missed_times?",
  },
  reply = { planned = {}, stale = {} },
  errs = { "schedule_not_found" },
  call = function(tx, a)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    local m = a.missed
    if a.version ~= s.version or a.after > s.cursor or (m and a.after ~= s.cursor) then
      -- Whoever came first did it; what is still needed is asked for anew.
      s.asked = nil
      fire.advance(tx, s)
      return reply.ok("stale")
    end
    if m then
      if m.count > 0 then
        local number = schedule.numbered(tx, s)
        s.missed = s.missed + m.count
        schedule.note_firing(tx, s, number, {
          m.last, tx.now, "time", "missed", false, "too_late", false, false, m.count,
        })
        schedule.tell(
          tx, s, "missed", "nominal_at", m.last, "first_at", m.first, "count", m.count, "cause", "time",
          "why", "too_late"
        )
      end
      schedule.pass(s, m.to)
    end
    schedule.plan(s, a.times, a.reckoned)
    fire.advance(tx, s)
    return reply.ok("planned")
  end,
}
