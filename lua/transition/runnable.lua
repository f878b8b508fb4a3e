-- Puts an execution that waits to run where it belongs: delayed, blocked by route, or eligible.
local execution = require "record.execution"
local queues = require "index.queues"

local runnable = {}

-- Clears whatever held the execution back and decides its place anew; an operator's hold is not cleared here
-- but by whoever calls this.
function runnable.settle(tx, rec)
  rec.phase = "runnable"
  rec.reason, rec.detail, rec.since = nil, nil, nil
  rec.grant, rec.grant_worker, rec.grant_until = nil, nil, nil
  if rec.delay and rec.delay <= tx.now then rec.delay = nil end
  if rec.delay == nil and rec.spec.queue ~= "any" then
    local entry = queues.get(tx, execution.lane_path(rec), rec.spec.queue)
    if entry and entry.uncovered then runnable.block_route(rec, tx.now) end
  end
end

function runnable.block_route(rec, now)
  execution.block(rec, "waiting_for_capable_worker", { "requires", table.concat(rec.spec.requires or {}, ",") }, now)
end

return runnable
