-- A lease that ends without an answer: expired, revoked, yielded or delayed. The attempt ends interrupted.
local limits = require "lib.limits"
local event = require "lib.event"
local attempt = require "record.attempt"
local execution = require "record.execution"
local finish = require "transition.finish"
local runnable = require "transition.runnable"

local interrupt = {}

-- How often the lease was lost in a row; an attempt that renewed often enough starts the count again.
local function in_a_row(rec)
  if (rec.renewals or 0) >= limits.renewals_reset_reclaims then return 0 end
  return rec.reclaims or 0
end

-- The worker gave the execution back on its own: counted nowhere.
function interrupt.handed_back(tx, rec, by, delay_until, kind)
  if rec.reclaims then rec.reclaims = in_a_row(rec) end
  rec.ended_by, rec.ended_value = by, delay_until or tx.now
  attempt.finish(tx, rec, "interrupted", nil)
  rec.next, rec.delay = "reclaim", delay_until
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  if delay_until then
    event.of_execution(tx, rec, kind, "delay_until", delay_until)
  else
    event.of_execution(tx, rec, kind)
  end
end

-- The lease was lost: the execution is offered again at once, or ends poisoned when that happened too often in a row.
function interrupt.lost(tx, rec, by, actor)
  local lost = in_a_row(rec)
  if lost >= (rec.max_reclaims or limits.reclaims_default) then
    finish.execution(tx, rec, "failed", {
      by = by, at = by == "expired" and rec.lease_until or nil, attempt_state = "interrupted",
      failure = { string.format("lease lost %d times in a row", lost + 1), "poisoned" }, data = { "cause", by },
    })
    return
  end
  rec.reclaims = lost + 1
  rec.ended_by, rec.ended_value = by, by == "expired" and rec.lease_until or tx.now
  local worker = rec.worker
  attempt.finish(tx, rec, "interrupted", nil)
  rec.next = "reclaim"
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  local data = { "cause", by, "worker_instance", worker }
  if actor then data[5], data[6] = "actor", actor end
  event.of_execution(tx, rec, "execution.reclaimed", unpack(data))
end

return interrupt
