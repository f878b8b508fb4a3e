-- A grant reserves an execution for one worker for a short time; it hides nothing but its own execution.
local execution = require "record.execution"
local holds = require "record.holds"
local ids = require "lib.id"

local grant = {}

-- The id under which the request asked for the execution's grant.
function grant.asked_as(rec)
  return rec.grant and ids.counted(rec.grant, 1 - rec.grants)
end

-- No execution has two grants of one id, however late a copy of a request comes: what the first of them still owes
-- would undo what the second was admitted to. `copy` is the lane's: with the execution it says which sets must be
-- entered before the grant is consumed.
function grant.give(tx, rec, id, instance, ttl_ms, copy)
  local count = rec.grants or 0
  rec.grants = count + 1
  rec.grant, rec.grant_worker, rec.grant_until = ids.counted(id, count), instance, tx.now + ttl_ms
  holds.note(rec, rec.grant, holds.needed(rec, copy))
  execution.save(tx, rec)
end

function grant.typed(rec)
  return {
    execution_id = rec.id, grant_id = rec.grant, expires_at = rec.grant_until, lane = execution.lane(rec),
    kind = rec.kind, score = rec.score, number = rec.grants, budgets = holds.asked_budgets(rec),
    quotas = holds.asked_quotas(rec), holder_sets = holds.sets(rec),
  }
end

-- True while this grant is open.
function grant.open(rec, id, now)
  return rec.phase == "runnable" and rec.grant == id and now < rec.grant_until
end

return grant
