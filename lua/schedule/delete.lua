local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local schedule = require "record.schedule"
local timers = require "index.timers"

define.fn {
  name = "ff_delete_schedule",
  doc = "Removes a schedule with its firings. What it submitted goes on; what it has not submitted yet is not "
    .. "submitted any more.",
  flags = { "allow-oom" },
  args = { namespace = "namespace", name = "schedule_name", actor = "actor" },
  reply = { deleted = {} },
  errs = { "schedule_not_found" },
  call = function(tx, a)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    schedule.tell(tx, s, "deleted", "actor", a.actor)
    tx:del(keys.schedule(tx, s.path))
    tx:del(keys.schedule_action(tx, s.path))
    tx:del(keys.firings(tx, s.path))
    tx:del(keys.schedule_live(tx, s.path))
    tx:zrem(keys.schedules(tx), s.path)
    timers.clear(tx, schedule.timer(s.path))
    return reply.ok("deleted")
  end,
}
