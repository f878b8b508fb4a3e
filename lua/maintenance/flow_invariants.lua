-- What must hold for a flow and for the part of a member that its flow knows; the numbers are those of ARCHITECTURE.md.
local keys = require "lib.keys"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local children = require "record.children"
local flow = require "record.flow"
local owed = require "transition.owed"
local resolve = require "transition.resolve"

local check = {}

-- Edges looked at of one member or child list; a longer one is checked as far.
local looks = 1024

local function expect(found, findings, number, key, what, stored, counted)
  if stored ~= counted then
    local problem = string.format("%s is %s, counted %s", what, tostring(stored), tostring(counted))
    found(findings, number, key, problem, false)
  end
end

-- The edges into a member: its counts are those of the edges, and what it is follows from them.
local function check_inbound(tx, rec, findings, found)
  local key = keys.edges_in(tx, rec.id)
  local d, total = dependencies.load(rec), tx:zcard(key)
  expect(found, findings, 21, key, "total", d.total, total)
  if total > looks then return end
  local met, dead, hopes, bytes, gone = 0, 0, 0, 0, false
  for _, item in ipairs(dependencies.upstreams(tx, rec.id, 0, looks)) do
    local e, up = dependencies.edge(tx, item.from, item.number), execution.load(tx, item.from, true)
    if up == nil then
      -- Retired before this one, with its edges: what they said counts on.
      gone = true
    elseif e == nil or e.to ~= rec.id then
      found(findings, 19, key, item.from .. " has no such edge", false)
    else
      if e.state == "met" then met, bytes = met + 1, bytes + (e.bytes or 0) end
      if e.state == "dead" then dead = dead + 1 end
      if e.hope then hopes = hopes + 1 end
      if e.state ~= "pending" and up.phase ~= "terminal" and d.decided == nil and rec.phase ~= "terminal"
        and up.owed == nil
      then
        found(findings, 19, key, "edge from " .. item.from .. " is " .. e.state .. " before it ended", false)
      end
    end
  end
  if gone then return end
  expect(found, findings, 21, key, "met", d.met, met)
  expect(found, findings, 21, key, "dead", d.dead, dead)
  expect(found, findings, 23, key, "bytes", d.bytes, bytes)
  if d.decided == nil then expect(found, findings, 21, key, "hopes", d.hopes, hopes) end
end

-- Nothing runs before its policy is satisfied, and what can no longer run is skipped.
local function check_decision(tx, rec, f, findings, found)
  local key, d = keys.core(tx, rec.id), dependencies.load(rec)
  local judged = dependencies.judge(rec.inbound, d)
  if ((rec.attempt ~= nil and rec.next ~= "replay") or rec.phase == "active") and d.decided ~= "ready" then
    found(findings, 18, key, "started although its edges do not let it", false)
  end
  if d.decided == nil and judged and not rec.hidden and rec.phase == "runnable" and f.stop == nil and rec.owed == nil
    and f.owed == nil
  then
    found(findings, judged == "skip" and 20 or 18, key, "is not decided, should be " .. judged, false)
  end
end

local function check_outbound(tx, rec, f, findings, found)
  local key = keys.edges_out(tx, rec.id)
  local outs = rec.outs or 0
  for _, e in ipairs(dependencies.edges(tx, rec.id, 1, math.min(outs, looks))) do
    local down = execution.load(tx, e.to, true)
    if down and tx:zscore(keys.edges_in(tx, e.to), rec.id) ~= e.number then
      found(findings, 19, key, "edge to " .. e.to .. " is not known there", false)
    end
    -- A skipped member that was run again waits until its upstreams are run again.
    if down and down.replays == nil and rec.phase == "terminal" and e.state == "pending"
      and e.number <= (rec.reached or 0)
    then
      found(findings, 19, key, "edge to " .. e.to .. " was passed over", false)
    end
  end
  -- What ended while its flow was stopped decides nothing, also after the flow was opened again.
  if rec.phase == "terminal" and (rec.reached or 0) < outs and not rec.halted and rec.owed == nil and f.stop == nil
    and f.outcome == nil
  then
    found(findings, 19, key, "its end has not reached all its edges", false)
  end
  if f.stop == nil then
    expect(found, findings, 21, keys.core(tx, rec.id), "verdict", rec.verdict, resolve.verdict(rec))
  end
end

local function check_debts(tx, rec, findings, found)
  local due = tx:zscore(keys.timers(tx), owed.timer(rec.id)) ~= nil
  if due ~= (rec.owed ~= nil) then
    local problem = due and " owes nothing" or " owes something and nothing wakes it"
    found(findings, 11, keys.timers(tx), rec.id .. problem, false)
  end
end

local function check_children(tx, rec, findings, found)
  local key, k = keys.children(tx, rec.id), children.load(rec)
  local open, seen = 0, 0
  for _, id in ipairs(children.ids(tx, rec, 1, looks)) do
    seen = seen + 1
    local child = execution.load(tx, id)
    if child == nil or child.parent_id ~= rec.id then
      found(findings, 37, key, id .. " is no child of this execution", false)
    elseif child.phase ~= "terminal" then
      open = open + 1
    end
  end
  if seen < looks then expect(found, findings, 36, key, "open", k.open, open) end
  if rec.phase ~= "terminal" then
    if rec.reason == "waiting_for_children" and rec.nested == nil and k.open == 0 then
      found(findings, 10, keys.core(tx, rec.id), "waits for children that have ended", false)
    end
  end
end

function check.member(tx, rec, findings, found)
  check_debts(tx, rec, findings, found)
  if rec.kids then check_children(tx, rec, findings, found) end
  if rec.flow_id == nil then return end
  local f = flow.load(tx, rec.flow_id)
  if f == nil then return found(findings, 37, keys.core(tx, rec.id), "its flow is gone", false) end
  if tx:zscore(keys.flow_members(tx, f.id), rec.id) ~= rec.number then
    found(findings, 21, keys.flow_members(tx, f.id), rec.id .. " is missing", false)
  end
  if tx:hget(keys.flow_names(tx, f.id), rec.key) ~= rec.id then
    found(findings, 21, keys.flow_names(tx, f.id), rec.key .. " does not name " .. rec.id, false)
  end
  if rec.deps then
    check_inbound(tx, rec, findings, found)
    check_decision(tx, rec, f, findings, found)
  end
  check_outbound(tx, rec, f, findings, found)
  if f.stop and rec.phase == "active" and flow.stopped(f).policy == "cancel_all" and f.walk ~= "cancel" then
    found(findings, 17, keys.core(tx, rec.id), "runs although its flow is cancelled", false)
  end
end

-- A flow: its counts are those of its members, and it is over when they are.
function check.flow(tx, f, findings, found)
  local key = keys.flow(tx, f.id)
  local members = keys.flow_members(tx, f.id)
  local total = tx:zcard(members)
  expect(found, findings, 21, key, "stored", f.stored, total)
  if tx:zscore(keys.flows(tx), f.id) ~= f.created then
    found(findings, 10, keys.flows(tx), f.id .. " is missing", false)
  end
  if tx:zscore(keys.timers(tx), flow.timer(f.id)) ~= flow.wake_at(f) then
    found(findings, 11, keys.timers(tx), flow.timer(f.id) .. " should wake at another time", false)
  end
  if (tx:zscore(keys.cancel_backlog(tx), f.id) ~= nil) ~= (f.walk == "cancel") then
    found(findings, 11, keys.cancel_backlog(tx), f.id .. " and its walk disagree", false)
  end
  if f.ended == nil and f.sealed and f.walk == nil and f.owed == nil and flow.open(f) == 0 then
    found(findings, 21, key, "is not over although its members are", false)
  end
  local counts, uncaught, sinks, owing, last, page = {}, 0, 0, 0, 0, nil
  repeat
    page = tx:zlowest(members, string.format("(%.0f", last), "+inf", looks)
    for _, item in ipairs(page) do
      last = item.score
      local rec = execution.load(tx, item.member, true)
      if rec == nil then
        found(findings, 37, members, item.member .. " has no record", false)
      else
        local state = execution.member_state(rec)
        counts[state] = (counts[state] or 0) + 1
        if rec.verdict == "uncaught" then uncaught = uncaught + 1 end
        if rec.verdict == "good_sink" then sinks = sinks + 1 end
        if rec.owed then owing = owing + 1 end
      end
    end
  until #page < looks
  for _, list in ipairs({ flow.open_states, flow.ended_states }) do
    for _, state in ipairs(list) do expect(found, findings, 21, key, state, f["n_" .. state], counts[state]) end
  end
  expect(found, findings, 21, key, "uncaught", f.uncaught or 0, uncaught)
  expect(found, findings, 21, key, "sinks", f.sinks or 0, sinks)
  expect(found, findings, 21, key, "owed", f.owed or 0, owing)
end

return check
