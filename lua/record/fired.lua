-- Which firing of a schedule an execution or a flow is; its end is owed to the schedule.
local outbox = require "lib.outbox"

local fired = {}

function fired.note(rec, f)
  rec.schedule, rec.firing, rec.nominal, rec.fired_at = f.schedule, f.number, f.nominal_at, f.fired_at
end

function fired.typed(rec)
  if rec.firing == nil then return nil end
  return { schedule = rec.schedule, number = rec.firing, nominal_at = rec.nominal, fired_at = rec.fired_at }
end

-- Tells the schedule, which may wait for this end before it fires again.
function fired.ended(tx, rec, namespace, outcome)
  outbox.owe(tx, "firing_ended", {
    "namespace", namespace, "schedule", rec.schedule, "number", string.format("%.0f", rec.firing), "run_id", rec.id,
    "outcome", outcome,
  })
end

return fired
