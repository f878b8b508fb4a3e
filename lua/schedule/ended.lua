local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_end_firing",
  doc = "Tells a schedule that an execution or flow it submitted has ended: what waited for that may fire.",
  flags = { "allow-oom" },
  args = {
    namespace = "namespace", name = "schedule_name", number = "count", run_id = "uuid", outcome = "firing_outcome",
  },
  reply = { noted = {} },
  errs = {},
  call = function(tx, a)
    local s = schedule.find(tx, a)
    if s then
      fire.ended(tx, s, a.number, a.run_id, a.outcome)
      fire.advance(tx, s)
    end
    return reply.ok("noted")
  end,
}
