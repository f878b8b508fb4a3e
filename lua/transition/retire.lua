-- Removes a terminal execution and everything that belongs to it.
local keys = require "lib.keys"
local event = require "lib.event"
local fair = require "index.fair"
local home = require "index.home"
local lists = require "index.lists"
local queues = require "index.queues"
local timers = require "index.timers"
local children = require "record.children"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local flow = require "record.flow"
local frames = require "record.frames"
local signals = require "record.signals"
local step = require "record.step"
local usage = require "record.usage"
local waitpoint = require "record.waitpoint"

local retire = {}

local function remove(tx, rec)
  home.leave(tx, rec)
  queues.tidy(tx, rec.path, queues.name(rec.queue, rec.kind))
  fair.forget(tx, rec.path, rec)
  timers.clear(tx, rec.id)
  tx:del(keys.core(tx, rec.id))
  tx.memo[rec.id] = nil
  if rec.said then tx:del(keys.spec(tx, rec.id)) end
  if rec.input then tx:del(keys.input(tx, rec.id)) end
  if rec.more then tx:del(keys.more(tx, rec.id)) end
  if rec.waits then tx:del(keys.waits(tx, rec.id)) end
  if rec.result_far then tx:del(keys.result(tx, rec.id)) end
  if rec.spilled then tx:del(keys.attempts(tx, rec.id)) end
  waitpoint.remove_all(tx, rec)
  signals.remove_all(tx, rec)
  usage.remove_all(tx, rec)
  step.remove_all(tx, rec)
  frames.remove_all(tx, rec)
  dependencies.remove_all(tx, rec)
  if rec.flow_id then flow.forget_member(tx, rec) end
  if rec.parent_id then children.forget(tx, rec) end
end

-- `actor` is the operator who asked for it; none when its retention is over.
function retire.execution(tx, rec, actor)
  lists.remove(tx, rec)
  remove(tx, rec)
  if actor then
    event.of_execution(tx, rec, "execution.retired", "actor", actor)
  else
    event.of_execution(tx, rec, "execution.retired")
  end
end

-- A member nobody has seen goes without a word; so does the flow that would have run in its place.
function retire.hidden(tx, rec)
  local nested = rec.nested and flow.load(tx, rec.nested)
  if nested then
    flow.walk_over(tx, nested, "remove")
    flow.save(tx, nested)
  end
  remove(tx, rec)
end

return retire
