local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_settle_firing",
  doc = "Records what became of a firing's submission: it was accepted (`outcome` says how it has ended already), or "
    .. "refused. A refused one is tried again within the catch-up window unless this is the `last` try, and missed "
    .. "afterwards.",
  flags = { "allow-oom" },
  args = {
    namespace = "namespace", name = "schedule_name", number = "count", refused = "firing_why?",
    outcome = "firing_outcome?", last = "bool?",
  },
  reply = { settled = { again_at = "time_ms?" }, known = {} },
  errs = {},
  call = function(tx, a)
    local s = schedule.find(tx, a)
    if s == nil then return reply.ok("known") end
    local changed, again
    if a.refused then
      changed, again = fire.refused(tx, s, a.number, a.refused, a.last)
    else
      changed = fire.submitted(tx, s, a.number, a.outcome)
    end
    if not changed then return reply.ok("known") end
    fire.advance(tx, s)
    return reply.ok("settled", { again_at = again })
  end,
}
