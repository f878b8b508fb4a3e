-- Stopping a flow: final for claims at once; its members are cancelled in a walk that is owed until it is done.
local event = require "lib.event"
local flow = require "record.flow"

local stop = {}

-- `how`: policy, reason, actor, outcome, data for the event.
function stop.flow(tx, f, how)
  f.stop = cmsgpack.pack({ how.policy, how.reason or false, how.actor or false, tx.now })
  f.outcome = how.outcome
  f.sealed = f.sealed or tx.now
  flow.walk_over(tx, f, "cancel")
  flow.save(tx, f)
  event.of_flow(tx, f, "flow." .. how.outcome, unpack(how.data or {}))
end

-- A failure that nobody takes up, in a flow that fails with its first.
function stop.after_failure(tx, f, rec)
  if f.stop then return end
  stop.flow(tx, f, {
    policy = "cancel_all", reason = "flow_failed", outcome = "failed",
    data = { "member", rec.key, "execution_id", rec.id },
  })
end

return stop
