local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_stop_backfill",
  doc = "Ends a backfill where it is; what it fired goes on. One that has ended stays as it is.",
  flags = { "allow-oom" },
  args = { namespace = "namespace", name = "schedule_name", actor = "actor" },
  reply = { stopped = { schedule = "schedule" } },
  errs = { "schedule_not_found" },
  call = function(tx, a, now)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    local b = s.backfill
    if b and not b[9] then
      b[9], b[10], b[12], b[14] = now, 1, {}, false
      local kept = {}
      for _, w in ipairs(s.waiting) do
        if w[4] == "backfill" then fire.skip(tx, s, w, "stopped") else kept[#kept + 1] = w end
      end
      s.waiting = kept
      schedule.tell(tx, s, "backfill_stopped", "fired", b[6], "skipped", b[7], "actor", a.actor)
      fire.advance(tx, s)
    end
    return reply.ok("stopped", { schedule = schedule.typed(s) })
  end,
}
