local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_pause_schedule",
  doc = "Stops a schedule from firing by itself. What has come by now comes first; a paused one keeps its first "
    .. "reason.",
  flags = { "allow-oom" },
  args = { namespace = "namespace", name = "schedule_name", reason = "reason?", actor = "actor" },
  reply = { paused = { schedule = "schedule" } },
  errs = { "schedule_not_found" },
  call = function(tx, a, now)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    if s.paused == nil then
      fire.advance(tx, s)
      s.paused = { a.reason or false, a.actor, now }
      schedule.tell(tx, s, "paused", "actor", a.actor, "reason", a.reason or "")
      fire.advance(tx, s)
    end
    return reply.ok("paused", { schedule = schedule.typed(s) })
  end,
}
