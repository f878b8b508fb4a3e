local define = require "lib.define"
local fire = require "transition.fire"
local limits = require "lib.limits"
local reply = require "lib.reply"
local schedule = require "record.schedule"

local function invalid(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

define.fn {
  name = "ff_backfill_schedule",
  doc = "Fires the times from `from` to `to`, both included, in order and under the overlap policy. The times are "
    .. "supplied in pieces (`ff_refill_backfill`); `total` says how many there are.",
  flags = {},
  args = {
    namespace = "namespace", name = "schedule_name", from = "time_ms", to = "time_ms", total = "count",
    overlap = "overlap?", actor = "actor",
  },
  reply = { started = { schedule = "schedule" } },
  errs = { "schedule_not_found", "schedule_busy" },
  call = function(tx, a, now)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    local b = s.backfill
    if b and not b[9] then
      return reply.err("schedule_busy", { from = b[1], to = b[2], cursor = b[3], started_at = b[8] })
    end
    if a.to < a.from then return invalid("to", "must not lie before from") end
    if a.to > now then return invalid("to", "must not lie in the future") end
    if a.total > limits.schedule_backfill_max then
      return invalid("from", string.format(
        "leads to %.0f firings, a backfill has at most %.0f", a.total, limits.schedule_backfill_max
      ))
    end
    s.backfill = {
      a.from, a.to, a.from - 1, a.overlap or s.overlap, a.total, 0, 0, now, false, false, a.actor, {}, a.from - 1,
      false,
    }
    schedule.tell(tx, s, "backfill_started", "from", a.from, "to", a.to, "total", a.total, "actor", a.actor)
    fire.advance(tx, s)
    return reply.ok("started", { schedule = schedule.typed(s) })
  end,
}
