-- Ends the running attempt with a result.
local execution = require "record.execution"
local fence = require "record.fence"
local finish = require "transition.finish"
local plain = require "transition.plain"

local complete = {}

-- Answers "replay" when this lease already completed, a refusal, or nil when it is done.
function complete.one(tx, c)
  local answer = not tx.step_by_step and plain.complete(tx, c)
  if answer then return answer end
  local rec = execution.load(tx, c.execution_id)
  local refusal = fence.check(rec, c.fence, tx.now, "complete")
  if refusal then return refusal end
  finish.execution(tx, rec, "success", {
    by = "complete", attempt_state = "succeeded", result = c.result, result_encoding = c.result_encoding,
  })
end

return complete
