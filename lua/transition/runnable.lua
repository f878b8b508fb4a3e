-- Puts an execution that waits to run where it belongs: blocked by its edges, its children or its route, delayed, or
-- eligible.
local children = require "record.children"
local dependencies = require "record.dependencies"
local event = require "lib.event"
local execution = require "record.execution"
local flow = require "record.flow"
local keys = require "lib.keys"
local queues = require "index.queues"
local step = require "record.step"
local suspension = require "record.suspension"

local runnable = {}

-- A member that is a flow runs while the flow does.
local function start_nested(tx, rec)
  execution.block(rec, "waiting_for_children", { "flow_id", rec.nested }, tx.now)
  local f = flow.load(tx, rec.nested)
  if f == nil then error("CORRUPT " .. keys.flow(tx, rec.nested) .. " core") end
  if f.sealed then return end
  f.sealed = tx.now
  flow.walk_over(tx, f, "release")
  flow.save(tx, f)
  event.of_flow(tx, f, "flow.sealed")
end

-- The step under which it waited for its children is done.
local function children_ended(tx, rec)
  local w = suspension.woken(rec)
  if w == nil or w.step == nil or w.cause ~= "children" then return end
  step.found(tx, rec, w.step, "children", {
    id = w.id, cause = w.cause, refs = {}, upto = children.load(rec).total,
  })
end

-- Clears whatever held the execution back and decides its place anew; an operator's hold is not cleared here
-- but by whoever calls this.
function runnable.settle(tx, rec)
  rec.phase = "runnable"
  execution.unblock(rec)
  if dependencies.waits(rec) then return execution.block(rec, "waiting_for_dependencies", nil, tx.now) end
  if rec.awaiting then
    if children.load(rec).open > 0 then return execution.block(rec, "waiting_for_children", nil, tx.now) end
    rec.awaiting = nil
    children_ended(tx, rec)
  end
  if rec.delay and rec.delay <= tx.now then rec.delay = nil end
  if rec.delay == nil and rec.nested then return start_nested(tx, rec) end
  if rec.delay == nil then
    local entry = queues.without_worker(tx, rec.path, queues.name(rec.queue, rec.kind))
    if entry then runnable.block_route(rec, entry, tx.now) end
  end
end

-- No live worker runs what is in its queue. `kind` is there when none takes the kind at all.
function runnable.block_route(rec, entry, now)
  local detail = { "requires", table.concat(rec.requires or {}, ",") }
  if entry.kind_missing then detail[3], detail[4] = "kind", rec.kind end
  execution.block(rec, "waiting_for_capable_worker", detail, now)
end

return runnable
