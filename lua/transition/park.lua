-- A running execution met the hard limit of a budget: what the budget says happens to it. The lease ends cleanly.
local attempt = require "record.attempt"
local event = require "lib.event"
local execution = require "record.execution"
local finish = require "transition.finish"

local park = {}

local function wait(tx, rec, detail)
  rec.phase = "runnable"
  execution.block(rec, "waiting_for_budget", detail, tx.now)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.blocked", "reason", "waiting_for_budget")
end

-- The attempt is kept: the next claim continues it.
local function suspend(tx, rec, detail)
  rec.ended_by, rec.ended_value = "budget", tx.now
  rec.time_left = rec.timeout_at and math.max(rec.timeout_at - tx.now, 1) or nil
  rec.timeout_at, rec.yield, rec.reclaims, rec.satisfied = nil, nil, nil, nil
  rec.attempt_state, rec.resume = "suspended", 1
  -- It is known by the lease it ended.
  rec.woken, rec.waits = cmsgpack.pack({ rec.lease_id, "budget", {} }), 1
  wait(tx, rec, detail)
end

-- The attempt is over, and counts neither as failed nor as lost.
local function block(tx, rec, detail)
  rec.ended_by, rec.ended_value = "budget", tx.now
  attempt.finish(tx, rec, "interrupted", nil)
  rec.next = "reclaim"
  wait(tx, rec, detail)
end

-- `detail` is a flat list of texts that names the budget in the way.
function park.execution(tx, rec, action, reason, detail)
  if action == "suspend" then return suspend(tx, rec, detail) end
  if action == "block" then return block(tx, rec, detail) end
  if action == "cancel" then
    return finish.execution(tx, rec, "cancelled", {
      by = "budget", attempt_state = "cancelled", failure = { reason, "budget" },
    })
  end
  finish.execution(tx, rec, "failed", { by = "budget", attempt_state = "failed", failure = { reason, "budget" } })
end

return park
