-- Ends the running attempt with a result.
local execution = require "record.execution"
local fence = require "record.fence"
local finish = require "transition.finish"

local complete = {}

-- Answers "replay" when this lease already completed, a refusal, or nil when it is done.
function complete.one(tx, c)
  local rec = execution.load(tx, c.execution_id)
  local refusal = fence.check(rec, c.fence, tx.now, "complete")
  if refusal then return refusal end
  finish.execution(tx, rec, "success", { by = "complete", attempt_state = "succeeded", result = c.result, result_encoding = c.result_encoding })
end

return complete
