-- What the end of a member means for those that wait for it: edges are met or die, members become ready or are skipped,
-- and so on downstream; and what it means for the flow.
local dependencies = require "record.dependencies"
local event = require "lib.event"
local execution = require "record.execution"
local finish = require "transition.finish"
local fired = require "record.fired"
local flow = require "record.flow"
local keys = require "lib.keys"
local limits = require "lib.limits"
local owed = require "transition.owed"
local runnable = require "transition.runnable"
local stop = require "transition.stop"
local webhook = require "record.webhook"

local resolve = {}

local function failed(rec)
  return rec.phase == "terminal" and (rec.outcome == "failed" or rec.outcome == "expired")
end

-- A failure is taken up by an edge on failure or completion, or by an any_of or quorum that is satisfied without it.
-- Kept with a failed member: { taken up, members that may still take it up }.
local function fault_of(rec)
  local f = rec.fault and cmsgpack.unpack(rec.fault) or { false, 0 }
  return { caught = f[1], hopes = f[2] }
end

local function store_fault(rec, fault)
  rec.fault = cmsgpack.pack({ fault.caught, fault.hopes })
end

-- What a member's outcome means for the flow, once all its edges know of it: "uncaught", "good_sink" or nothing.
function resolve.verdict(rec)
  if rec.phase ~= "terminal" or (rec.reached or 0) < (rec.outs or 0) then return nil end
  if failed(rec) then
    local fault = fault_of(rec)
    return not fault.caught and fault.hopes == 0 and "uncaught" or nil
  end
  return rec.outcome == "success" and (rec.outs or 0) == 0 and "good_sink" or nil
end

-- Keeps the flow's sums in step with a member whose outcome, edges or fault changed, and saves it.
function resolve.weigh(tx, f, rec)
  local verdict = resolve.verdict(rec)
  if verdict ~= rec.verdict then
    flow.count_verdict(f, rec.verdict, -1)
    flow.count_verdict(f, verdict, 1)
    rec.verdict = verdict
    flow.save(tx, f)
    if verdict == "uncaught" and f.policy == "fail_flow" then stop.after_failure(tx, f, rec) end
  end
  execution.save(tx, rec)
end

-- The others of a race that was won: work that nobody else waits for is not needed any more.
local function needed_elsewhere(tx, up, down)
  local outs = up.outs or 0
  if outs > limits.consequences_max then return true end
  for _, e in ipairs(dependencies.edges(tx, up.id, 1, outs)) do
    if e.to ~= down.id and e.state == "pending" then return true end
  end
  return false
end

function owed.steps.spare(tx, down, from, share)
  if tx:plans(keys.edges_in(tx, down.id)) then return 0, from end
  local list = dependencies.upstreams(tx, down.id, from, share)
  for _, item in ipairs(list) do
    local up = execution.load(tx, item.from)
    if up and up.phase ~= "terminal" and not needed_elsewhere(tx, up, down) then
      finish.execution(tx, up, "cancelled", {
        by = "flow", attempt_state = "cancelled", failure = { "another one was faster", "cancelled" },
        data = { "cause", "cancel_remaining" },
      })
    end
  end
  return #list, #list == share and from + share or nil
end

-- A race was decided: the failures that hoped for it are taken up, or have one hope less.
function owed.steps.hopes(tx, down, from, share)
  if tx:plans(keys.edges_in(tx, down.id)) then return 0, from end
  local f = flow.load(tx, down.flow_id)
  local ready = dependencies.load(down).decided == "ready"
  local list = dependencies.upstreams(tx, down.id, from, share)
  for _, item in ipairs(list) do
    local e = dependencies.edge(tx, item.from, item.number)
    if e and e.hope then
      e.hope = nil
      dependencies.store_edge(tx, e)
      local up = execution.load(tx, item.from)
      if up and failed(up) then
        local fault = fault_of(up)
        fault.hopes = fault.hopes - 1
        fault.caught = fault.caught or ready
        store_fault(up, fault)
        resolve.weigh(tx, f, up)
      end
    end
  end
  return #list, #list == share and from + share or nil
end

local function too_much(d)
  return {
    string.format("its upstreams pass %.0f bytes, at most %d fit", d.bytes, limits.passed_bytes_max),
    "passed_too_large",
  }
end

-- Decides a member whose edges changed. Nothing is decided before the flow is sealed, nor once it is stopped.
function resolve.decide(tx, f, down, d)
  if d.decided or down.hidden or f.stop or down.phase ~= "runnable" then return end
  local decided = dependencies.judge(down.inbound, d)
  if decided == nil then return end
  local hopes = d.hopes
  d.decided, d.hopes = decided, 0
  dependencies.store(down, d)
  if decided == "skip" then
    finish.execution(tx, down, "skipped", {
      by = "flow", attempt_state = "cancelled", failure = { "its dependencies can no longer be met", "skipped" },
    })
  elseif d.bytes > limits.passed_bytes_max then
    finish.execution(tx, down, "failed", { by = "flow", attempt_state = "cancelled", failure = too_much(d) })
  else
    down.start_by = down.start_within and tx.now + down.start_within or nil
    if down.reason == "waiting_for_dependencies" then
      runnable.settle(tx, down)
      execution.save(tx, down)
      event.of_execution(tx, down, "execution.ready", "cause", "dependencies")
    else
      execution.save(tx, down)
    end
    local inbound = down.inbound
    if inbound and inbound.on_satisfied == "cancel_remaining" and d.total > d.met + d.dead then
      owed.add(tx, down, "spare", 0)
    end
  end
  if hopes > 0 then owed.add(tx, down, "hopes", 0) end
end

local function result_bytes(tx, up)
  if up.result_far then return #(tx:get(keys.result(tx, up.id)) or "") end
  return #(up.result or "")
end

-- Counts an edge of an ended member with the one it leads to.
local function settle_edge(tx, up, e, d)
  e.state = dependencies.meets(e.on, up.outcome) and "met" or "dead"
  if e.state == "met" then
    d.met = d.met + 1
    e.bytes = e.pass_as and result_bytes(tx, up) or 0
    d.bytes = d.bytes + e.bytes
    dependencies.promise(tx, e)
  else
    d.dead = d.dead + 1
  end
end

-- Who takes the failure of `up` up, as far as this edge goes. One that was resolved by an earlier run of it says so as
-- well.
local function blame(up, e, down)
  local fault, race = fault_of(up), dependencies.is_race(down)
  local d = dependencies.load(down)
  if e.on ~= "success" or (race and d.decided == "ready") then
    fault.caught = true
  elseif race and d.decided == nil and not e.hope then
    e.hope = true
    d.hopes = d.hopes + 1
    fault.hopes = fault.hopes + 1
    dependencies.store(down, d)
  end
  store_fault(up, fault)
end

-- One edge of an ended member.
function resolve.edge(tx, f, up, e)
  local down = execution.load(tx, e.to, true)
  if down == nil then
    -- Retired after the flow had ended, before this member was run again: nobody waits for it any more.
    e.state = dependencies.meets(e.on, up.outcome) and "met" or "dead"
    return dependencies.store_edge(tx, e)
  end
  if e.state == "pending" then
    local d = dependencies.load(down)
    settle_edge(tx, up, e, d)
    dependencies.store(down, d)
    execution.save(tx, down)
    resolve.decide(tx, f, down, d)
  end
  if failed(up) then
    blame(up, e, down)
    execution.save(tx, down)
  end
  dependencies.store_edge(tx, e)
end

-- The edges of an ended member; `from` is the number of the first. A stopped flow decides nothing any more.
function owed.steps.resolve(tx, up, from, share)
  local f = flow.load(tx, up.flow_id)
  owed.look_at_flow(tx, f.id)
  if f.stop or up.phase ~= "terminal" then
    if up.phase == "terminal" then
      up.halted = 1
      resolve.weigh(tx, f, up)
    end
    return 0, nil
  end
  local outs = up.outs or 0
  local last = math.min(outs, from + share - 1)
  for _, e in ipairs(dependencies.edges(tx, up.id, from, last)) do resolve.edge(tx, f, up, e) end
  up.reached = last > 0 and last or nil
  resolve.weigh(tx, f, up)
  return math.max(0, last - from + 1), last < outs and last + 1 or nil
end

local flow_event = { completed = "flow.completed", failed = "flow.failed" }
local member_outcome = { completed = "success", failed = "failed", cancelled = "cancelled" }

-- The member a flow runs in place of ends with it.
local function end_parent(tx, f)
  local rec = f.parent and execution.load(tx, f.parent, true)
  if rec == nil or rec.phase == "terminal" then return end
  local failure
  if f.outcome ~= "completed" then
    failure = { "its flow " .. (f.outcome == "failed" and "failed" or "was cancelled"), "flow_" .. f.outcome }
  end
  finish.execution(tx, rec, member_outcome[f.outcome], { by = "flow", attempt_state = "cancelled", failure = failure })
end

-- Ends the flow when nothing of it is left to run.
function owed.settle_flow(tx, f)
  if f.gone or f.sealed == nil or f.ended or f.owed or f.walk == "release" or f.walk == "cancel" then return end
  local open = flow.open(f)
  local leaves_active = f.stop and flow.stopped(f).policy == "cancel_pending" and open == (f.n_active or 0)
  if open > 0 and not leaves_active then return end
  if f.outcome == nil then
    local fine = (f.uncaught or 0) == 0 or (f.policy == "isolate_branch" and (f.sinks or 0) > 0)
    f.outcome = fine and "completed" or "failed"
    event.of_flow(tx, f, flow_event[f.outcome])
  end
  f.ended = tx.now
  if f.firing then fired.ended(tx, f, f.namespace, f.outcome) end
  if f.webhook then f.hook = webhook.of_flow(tx, f) end
  if f.stored > 0 then flow.walk_over(tx, f, "free") end
  flow.save(tx, f)
  if f.waited then tx:announce("done", f.id) end
  end_parent(tx, f)
end

return resolve
