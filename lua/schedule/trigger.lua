local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_trigger_schedule",
  doc = "Fires a schedule now, whatever runs, and while it is paused, too. The caller submits what `ff_take_firing` "
    .. "answers; when it does not, a timer does. The same request answers the first firing, while that is kept.",
  flags = {},
  args = { namespace = "namespace", name = "schedule_name", request_id = "request_id", actor = "actor" },
  reply = { triggered = { number = "count", run_id = "uuid" }, known = { number = "count", run_id = "uuid" } },
  errs = { "schedule_not_found", "try_again" },
  call = function(tx, a)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    local known = schedule.request(tx, s, a.request_id)
    if known then return reply.ok("known", known) end
    if fire.full(s) then return reply.err("try_again", { unsubmitted = #s.flight }) end
    local number, run = fire.now(tx, s, a.request_id)
    schedule.tell(tx, s, "triggered", "actor", a.actor, "run_id", run)
    fire.advance(tx, s)
    return reply.ok("triggered", { number = number, run_id = run })
  end,
}
