-- Running an ended member again: what was skipped because of it waits for it again, and the flow goes on.
local children = require "record.children"
local dependencies = require "record.dependencies"
local event = require "lib.event"
local execution = require "record.execution"
local flow = require "record.flow"
local keys = require "lib.keys"
local owed = require "transition.owed"
local reply = require "lib.reply"
local resolve = require "transition.resolve"
local runnable = require "transition.runnable"

local reopen = {}

-- Why the execution cannot run again, or nil.
function reopen.refusal(tx, rec)
  if rec.nested then
    return reply.err("invalid_argument", {
      field = "execution_id", problem = "is a flow: replay a member of " .. rec.nested,
    })
  end
  local f = rec.flow_id and flow.load(tx, rec.flow_id)
  if not f or f.stop == nil then return nil end
  -- A flow that failed with its first failure can go on once all of it has ended; one that an operator cancelled
  -- cannot.
  if f.outcome == "failed" and f.ended then return nil end
  return reply.err("flow_terminal", { state = flow.state(f) })
end

-- The flow of a member that runs again is running again, and so is the one around it.
local function reopen_flow(tx, f)
  if f.outcome == nil and f.ended == nil then return end
  f.outcome, f.ended, f.stop = nil, nil, nil
  flow.walk_done(tx, f)
  flow.save(tx, f)
  event.of_flow(tx, f, "flow.reopened")
  local rec = f.parent and execution.load(tx, f.parent)
  if rec and rec.phase == "terminal" then
    rec.phase, rec.outcome, rec.ended, rec.failure, rec.freed, rec.bound = "runnable", nil, nil, nil, nil, 1
    execution.block(rec, "waiting_for_children", { "flow_id", f.id }, tx.now)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.reopened")
    reopen.member(tx, rec)
  end
end

-- An edge counts anew: what it leads to has not been decided, or was skipped and waits again.
local function take_back(tx, f, up, e)
  -- Also one that nobody sees yet: the edge was decided for it too.
  local down = execution.load(tx, e.to, true)
  if e.state == "pending" or down == nil then return end
  local d = dependencies.load(down)
  local skipped = down.phase == "terminal" and down.outcome == "skipped"
  if d.decided and not skipped then return end
  if e.state == "met" then
    d.met = d.met - 1
    d.bytes = d.bytes - (e.bytes or 0)
  else
    d.dead = d.dead - 1
  end
  if e.hope then d.hopes = math.max(0, d.hopes - 1) end
  e.state, e.hope = "pending", nil
  dependencies.store_edge(tx, e)
  dependencies.promise(tx, e)
  -- Another upstream that ended still stands in the way.
  if skipped and dependencies.judge(down.inbound, d) == "skip" then
    dependencies.store(down, d)
    return execution.save(tx, down)
  end
  d.decided = nil
  dependencies.store(down, d)
  if skipped then
    down.phase, down.outcome, down.ended, down.failure, down.freed, down.bound, down.reached, down.halted =
      "runnable", nil, nil, nil, nil, 1, nil, nil
    execution.block(down, "waiting_for_dependencies", nil, tx.now)
    resolve.weigh(tx, f, down)
    event.of_execution(tx, down, "execution.reopened", "cause", up.key)
    owed.add(tx, down, "reopen", 1)
  else
    execution.save(tx, down)
  end
end

-- The edges out of a member that runs again.
function owed.steps.reopen(tx, up, from, share)
  local f = flow.load(tx, up.flow_id)
  local last = math.min(up.outs or 0, from + share - 1)
  for _, e in ipairs(dependencies.edges(tx, up.id, from, last)) do take_back(tx, f, up, e) end
  if last < (up.outs or 0) then return last - from + 1, last + 1 end
  -- It has ended again before all its edges knew that it ran.
  if up.phase == "terminal" then
    up.reached, up.halted, up.fault = nil, nil, nil
    owed.add(tx, up, "resolve", 1)
  end
  return math.max(0, last - from + 1), nil
end

-- A skipped member that runs again waits for its edges again, also for those that died.
function owed.steps.wait_again(tx, down, from, share)
  local d = dependencies.load(down)
  local list = dependencies.upstreams(tx, down.id, from, share)
  for _, item in ipairs(list) do
    local e = dependencies.edge(tx, item.from, item.number)
    -- An edge that went with its upstream stays as it was.
    if e and e.state == "dead" then
      e.state = "pending"
      if e.hope then d.hopes = math.max(0, d.hopes - 1) end
      e.hope = nil
      dependencies.store_edge(tx, e)
      d.dead = d.dead - 1
    end
  end
  dependencies.store(down, d)
  execution.save(tx, down)
  if #list == share then return #list, from + share end
  resolve.decide(tx, flow.load(tx, down.flow_id), down, d)
  return #list, nil
end

-- A member is about to run again; it has been saved.
function reopen.member(tx, rec)
  local f = flow.load(tx, rec.flow_id)
  reopen_flow(tx, f)
  rec.reached, rec.halted, rec.fault = nil, nil, nil
  resolve.weigh(tx, f, rec)
  owed.add(tx, rec, "reopen", 1)
end

-- Called for every execution that is replayed, before it is placed; `skipped` says that it never ran.
function reopen.execution(tx, rec, skipped)
  rec.freed = nil
  if rec.parent_id then
    local parent = execution.load(tx, rec.parent_id)
    if parent then
      if parent.phase ~= "terminal" then rec.bound = 1 end
      local k = children.load(parent)
      k.open = k.open + 1
      children.store(parent, k)
      if parent.phase == "runnable" and parent.awaiting then runnable.settle(tx, parent) end
      execution.save(tx, parent)
    end
  end
  if rec.flow_id then
    rec.bound = 1
    if skipped and rec.deps then
      local d = dependencies.load(rec)
      d.decided = nil
      dependencies.store(rec, d)
    end
  end
end

return reopen
