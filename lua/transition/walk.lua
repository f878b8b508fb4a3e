-- Walks over the members of a flow in bounded steps: to release them when it is sealed, to cancel them when it is
-- stopped, to let their retention begin when it has ended, and to remove them when it was never sealed.
local dependencies = require "record.dependencies"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local finish = require "transition.finish"
local flow = require "record.flow"
local keys = require "lib.keys"
local limits = require "lib.limits"
local lists = require "index.lists"
local owed = require "transition.owed"
local resolve = require "transition.resolve"
local retire = require "transition.retire"
local runnable = require "transition.runnable"
local timers = require "index.timers"

local walk = {}

-- From here on everybody sees the member.
local function show(tx, rec)
  rec.hidden = nil
  if not dependencies.waits(rec) then rec.start_by = rec.start_within and tx.now + rec.start_within or nil end
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  lists.add(tx, rec)
  event.of_execution(tx, rec, "execution.submitted", "state", execution.public_state(rec))
end

-- A member of a flow that is sealed: it runs, waits for its edges, or is skipped.
function walk.release(tx, f, rec)
  if not rec.hidden then return end
  show(tx, rec)
  if rec.deps == nil and rec.inbound == nil then return end
  local d = dependencies.load(rec)
  if rec.deps or dependencies.judge(rec.inbound, d) == "skip" then resolve.decide(tx, f, rec, d) end
end

-- What has no lease is cancelled; what runs ends with it or goes on, as the policy says.
function walk.cancel(tx, f, rec)
  if rec.phase == "terminal" then return end
  local how = flow.stopped(f)
  if rec.hidden then show(tx, rec) end
  if rec.phase == "active" and how.policy ~= "cancel_all" then return end
  local actor = how.actor
  if actor then more.note_action(tx, rec, "cancel_flow", actor, how.reason) end
  finish.execution(tx, rec, "cancelled", {
    by = "flow", attempt_state = "cancelled", failure = { how.reason or "", "cancelled" }, actor = actor,
    data = { "cause", "flow_" .. f.outcome, "reason", how.reason or "" },
  })
end

-- A member of a stopped flow that somebody met before the walk did.
function walk.cancel_member(tx, rec)
  walk.cancel(tx, flow.load(tx, rec.flow_id), rec)
end

-- The flow has ended: from now on the member is kept for as long as its retention says.
function walk.free(tx, f, rec)
  if not rec.bound then return end
  rec.bound = nil
  rec.freed = rec.phase == "terminal" and f.ended or nil
  execution.save(tx, rec)
end

-- Nobody sealed the flow: it was never submitted.
function walk.remove(tx, f, rec)
  retire.hidden(tx, rec)
end

-- Releases what the flow held so far: the first members now, the rest in a walk. `all` are its members when they are
-- known.
function walk.seal(tx, f, all)
  f.sealed = tx.now
  event.of_flow(tx, f, "flow.sealed")
  if all == nil then
    flow.walk_over(tx, f, "release")
    return walk.step(tx, f, limits.batch_max)
  end
  flow.save(tx, f)
  owed.during(tx, function()
    for _, one in ipairs(all) do walk.release(tx, f, one.rec) end
    owed.look_at_flow(tx, f.id)
  end)
end

local function number(n) return string.format("%.0f", n) end

-- One step over at most `limit` members; true when there is more to do.
function walk.step(tx, f, limit)
  local what = f.walk
  if what == nil then return false end
  local page, ids = tx:zlowest(keys.flow_members(tx, f.id), "(" .. number(f.walked), "+inf", limit), {}
  for i, item in ipairs(page) do ids[i] = item.member end
  execution.fetch(tx, ids)
  owed.during(tx, function()
    for _, item in ipairs(page) do
      local rec = execution.load(tx, item.member, true)
      if rec then walk[what](tx, f, rec) end
      -- The flow went with its last member, or a member that failed has stopped it: another walk begins.
      if f.gone or f.walk ~= what then return end
      f.walked = item.score
    end
    if #page < limit then
      flow.walk_done(tx, f)
      if what == "remove" then return flow.remove(tx, f) end
      owed.look_at_flow(tx, f.id)
    end
    flow.save(tx, f)
  end)
  return not f.gone and f.walk ~= nil
end

-- What the flow's timer means.
function walk.fire(tx, id)
  local f = flow.load(tx, id)
  if f == nil then return timers.clear(tx, flow.timer(id)) end
  local due = flow.wake_at(f)
  if due == nil or due > tx.now then return flow.save(tx, f) end
  if f.walk == nil and f.ended then return flow.remove(tx, f) end
  if f.walk == nil then flow.walk_over(tx, f, "remove") end
  walk.step(tx, f, limits.batch_max)
end

return walk
