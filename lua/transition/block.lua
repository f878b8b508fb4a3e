-- A granted execution was refused: it waits for its quota or budget, with the reason recorded.
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local holds = require "record.holds"
local spec = require "record.spec"
local grant = require "transition.grant"

local block = {}

-- `b`: { execution_id, grant_id, reason, detail, unheld }. Answers "already" when it waits for that, a refusal, or nil
-- when done.
function block.one(tx, b)
  local rec = execution.load(tx, b.execution_id)
  if rec == nil then return reply.err("execution_not_found") end
  if rec.phase == "runnable" and rec.reason == b.reason then return "already" end
  if not grant.open(rec, b.grant_id, tx.now) then return reply.err("grant_not_found", { grant_id = b.grant_id }) end
  if b.unheld then holds.drop(rec) end
  execution.block(rec, b.reason, spec.flatten(b.detail), tx.now)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.blocked", "reason", b.reason)
end

return block
