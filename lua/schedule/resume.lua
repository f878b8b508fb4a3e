local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_resume_schedule",
  doc = "Lets a paused schedule fire again. Times that passed meanwhile are not made up for; a backfill does that.",
  flags = {},
  args = { namespace = "namespace", name = "schedule_name", actor = "actor" },
  reply = { resumed = { schedule = "schedule" } },
  errs = { "schedule_not_found" },
  call = function(tx, a, now)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    if s.paused then
      schedule.tell(tx, s, "resumed", "actor", a.actor, "paused_at", s.paused[3])
      s.paused = nil
      schedule.pass(s, math.max(s.cursor, now))
      fire.advance(tx, s)
    end
    return reply.ok("resumed", { schedule = schedule.typed(s) })
  end,
}
