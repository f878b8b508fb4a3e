local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_get_schedule",
  doc = "A schedule with what it submits.",
  flags = { "no-writes" },
  args = { namespace = "namespace", name = "schedule_name" },
  reply = { found = { schedule = "schedule", action = "schedule_action", now = "time_ms" } },
  errs = { "schedule_not_found" },
  call = function(tx, a, now)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    return reply.ok("found", {
      schedule = schedule.typed(s), action = tx:get(keys.schedule_action(tx, s.path)), now = now,
    })
  end,
}
