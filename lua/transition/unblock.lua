-- What an execution waited for has cleared: it is eligible again at the place of its original score.
local event = require "lib.event"
local execution = require "record.execution"
local grant = require "transition.grant"
local runnable = require "transition.runnable"

local unblock = {}

-- Answers the record and whether it waited for this; nil when there is none. `holder_id` is what it was refused under.
function unblock.one(tx, id, reason, holder_id)
  local rec = execution.load(tx, id)
  if rec == nil then return nil end
  -- The call may overtake the block: then the grant ends here, and the block finds it gone.
  local refused = holder_id and grant.open(rec, holder_id, tx.now)
  if rec.phase ~= "runnable" or (rec.reason ~= reason and not refused) then return rec, false end
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.ready", "cause", reason)
  return rec, true
end

return unblock
