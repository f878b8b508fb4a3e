-- What the end of an execution means for others: the members that wait for it, its children, its parent, and a flow
-- that runs in its place.
local children = require "record.children"
local event = require "lib.event"
local execution = require "record.execution"
local finish = require "transition.finish"
local flow = require "record.flow"
local owed = require "transition.owed"
local runnable = require "transition.runnable"
local stop = require "transition.stop"

local aftermath = {}

-- True while an ended execution must be kept: others may still ask what became of it.
function aftermath.still_needed(tx, rec)
  if rec.flow_id then
    local f = flow.load(tx, rec.flow_id)
    return f ~= nil and f.ended == nil
  end
  local parent = rec.parent_id and execution.load(tx, rec.parent_id)
  return parent ~= nil and parent ~= false and parent.phase ~= "terminal"
end

-- The parent goes on when the last child it waits for has ended. One that has ended counts on: it may run again.
local function tell_parent(tx, rec)
  local parent = execution.load(tx, rec.parent_id)
  if parent == nil then return end
  local k = children.load(parent)
  k.open = k.open - 1
  children.store(parent, k)
  local over = k.open == 0 and parent.awaiting ~= nil
  if over and parent.reason == "waiting_for_children" then
    runnable.settle(tx, parent)
    execution.save(tx, parent)
    event.of_execution(tx, parent, "execution.resumed", "cause", "children")
  else
    execution.save(tx, parent)
  end
end

-- The parent has ended: children that are not abandoned are cancelled, and those that have ended are kept by their own
-- retention now.
function owed.steps.close(tx, rec, from, share)
  if rec.phase ~= "terminal" then return 0, nil end
  local ids = children.ids(tx, rec, from, share)
  local last = from
  for _, id in ipairs(ids) do
    local child = execution.load(tx, id)
    if child then
      last = child.number
      child.bound = nil
      if child.phase == "terminal" then
        child.freed = tx.now
        execution.save(tx, child)
      elseif child.parent_close == "abandon" then
        execution.save(tx, child)
      else
        finish.execution(tx, child, "cancelled", {
          by = "parent", attempt_state = "cancelled", failure = { "its parent ended", "cancelled" },
          data = { "cause", "parent_ended" },
        })
      end
    end
  end
  return #ids, #ids == share and last + 1 or nil
end

function aftermath.of(tx, rec)
  owed.during(tx, function()
    if rec.bound and not aftermath.still_needed(tx, rec) then
      rec.bound = nil
      execution.save(tx, rec)
    end
    if rec.flow_id then owed.add(tx, rec, "resolve", 1) end
    if rec.parent_id then tell_parent(tx, rec) end
    if rec.kids then owed.add(tx, rec, "close", 1) end
    local nested = rec.nested and flow.load(tx, rec.nested)
    if nested and nested.ended == nil and nested.stop == nil then
      -- The flow inside is as gentle as the cancel that reached its member.
      local outer = rec.flow_id and flow.stopped(flow.load(tx, rec.flow_id))
      stop.flow(tx, nested, {
        policy = outer and outer.policy or "cancel_all", reason = "its member ended: " .. rec.outcome,
        outcome = "cancelled", data = { "cause", "member_ended" },
      })
    end
  end)
end

return aftermath
