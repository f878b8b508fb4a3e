local define = require "lib.define"
local reply = require "lib.reply"
local limits = require "lib.limits"
local execution = require "record.execution"
local lane = require "record.lane"
local fair = require "index.fair"
local queues = require "index.queues"
local admit = require "transition.admit"
local choose = require "transition.choose"
local plain = require "transition.plain"
local start = require "transition.start"
local walk = require "transition.walk"

-- Leases one candidate. `room`: how many bytes the answer has left for tasks; nil for the first one, which is always handed out.
local function take_one(tx, a, copy, id, lease_id, attempt_id, room)
  local record, wake, input
  if not tx.step_by_step then record, wake, input = plain.start(tx, id, a, lease_id, attempt_id, room) end
  if record then return { task = { id, record, input, false }, wake = wake, bytes = #input } end
  if record == false then return { full = true } end
  local rec = execution.load(tx, id)
  if rec == nil or rec.phase ~= "runnable" or not start.possible(rec, tx.now) then return reply.err("execution_not_runnable") end
  if rec.flow_id and start.stopped(tx, rec) then
    walk.cancel_member(tx, rec)
    return { cancelled = true }
  end
  local passed, bytes
  input, passed, bytes = start.heavy(tx, rec)
  if room and bytes > room then return { full = true } end
  start.lease(tx, rec, a, lease_id, attempt_id)
  if copy.fairness == "fair" then fair.started(tx, copy, rec) end
  return { task = start.task(tx, rec, input, passed), wake = rec.wake, bytes = bytes }
end

-- A candidate that needs admission, as it asks for it. `room` as above.
local function ask_one(tx, a, id, lease_id, room)
  local asks = not tx.step_by_step and plain.asking(tx, id, lease_id, room)
  if asks then return { asks = asks, bytes = #asks.input } end
  if asks == false and not tx.step_by_step then return { full = true } end
  local rec = execution.load(tx, id)
  if rec == nil or rec.phase ~= "runnable" or not start.possible(rec, tx.now) then return reply.err("execution_not_runnable") end
  if rec.flow_id and start.stopped(tx, rec) then
    walk.cancel_member(tx, rec)
    return { cancelled = true }
  end
  local _, _, bytes = start.heavy(tx, rec)
  if room and bytes > room then return { full = true } end
  return { asks = admit.asking(rec, lease_id), bytes = bytes }
end

-- Leases one that was let in. What let it in gets it back should this not be written.
local function start_admitted(tx, claim, one)
  local a, asks = claim.a, one.asks
  for _, set in ipairs(asks.entered) do tx:hedge("release", { set = set, execution_id = asks.id, holder_id = asks.holder, unused = true }) end
  if asks.v and #asks.keep == 0 then
    local record, wake = plain.start_admitted(tx, asks, a, a.attempt_ids[one.place])
    return { task = { asks.id, record, asks.input, false }, wake = wake, bytes = one.bytes }
  end
  local rec = execution.load(tx, asks.id)
  admit.note(rec, asks)
  start.lease(tx, rec, a, a.lease_ids[one.place], a.attempt_ids[one.place])
  if claim.copy.fairness == "fair" then fair.started(tx, claim.copy, rec) end
  return { task = start.task(tx, rec), wake = rec.wake, bytes = one.bytes }
end

-- Where the ids of leases and attempts stand that this claim may use, the next one last.
local function places_of(max, free)
  local places, n = {}, free and #free or max
  for i = 1, n do places[i] = free and free[n + 1 - i] or n + 1 - i end
  return places
end

-- One is taken: its task stands where its turn was.
local function note_taken(claim, turn, one)
  claim.taken, claim.bytes = claim.taken + 1, claim.bytes + one.bytes
  if claim.first_wake == nil or one.wake < claim.first_wake then claim.first_wake = one.wake end
  claim.order[#claim.order + 1], claim.tasks[turn] = turn, one.task
end

-- How many bytes the answer has left for tasks; nil for the first one, which is always handed out.
local function room_of(claim, asking)
  if claim.taken + #asking == 0 then return nil end
  return limits.claim_bytes_max - claim.bytes
end

-- Takes candidates while there are leases to give. Those that need admission are not started: they are answered, to be asked for.
-- Then the refusal of one whose partition is moving.
local function take_up(tx, claim)
  local a, asking = claim.a, {}
  while #claim.places > 0 and claim.looks < limits.batch_max do
    local id, queue = choose.take(tx, claim.found, claim.copy, claim.capabilities)
    if id == nil then break end
    claim.looks = claim.looks + 1
    local place, one = claim.places[#claim.places], nil
    if queue.admission then
      one = tx:item(ask_one, tx, a, id, a.lease_ids[place], room_of(claim, asking))
    else
      one = tx:item(take_one, tx, a, claim.copy, id, a.lease_ids[place], a.attempt_ids[place], room_of(claim, asking))
    end
    if one and one.full then
      choose.put_back(claim.found, id, queue)
      break
    end
    if one and one.err == "try_again" then return asking, one end
    if one and (one.task or one.asks) then
      claim.places[#claim.places] = nil
      if one.task then
        note_taken(claim, claim.looks, one)
      else
        one.place, one.turn, one.queue = place, claim.looks, queue
        queue.asking = queue.asking + 1
        claim.bytes = claim.bytes + one.bytes
        asking[#asking + 1] = one
      end
    elseif one == nil or one.err then
      choose.pass(claim.found, queue)
    end
  end
  return asking
end

-- Asks for those that need admission, and starts those that are let in. A lease that was not given is free again.
local function let_in(tx, claim, asking)
  local asks = {}
  claim.asked = true
  for i, one in ipairs(asking) do asks[i] = one.asks end
  admit.all(tx, asks)
  for _, one in ipairs(asking) do
    local started
    claim.bytes, one.queue.asking = claim.bytes - one.bytes, one.queue.asking - 1
    if one.asks.refused or one.asks.undecided then
      tx:item(admit.turn_away, tx, one.asks)
    else
      started = tx:item(start_admitted, tx, claim, one)
    end
    if started and started.task then
      note_taken(claim, one.turn, started)
    else
      claim.places[#claim.places + 1] = one.place
      if not one.asks.refused then
        if not one.asks.undecided then tx:item(admit.withdraw, tx, one.asks) end
        choose.pass(claim.found, one.queue)
      end
    end
  end
end

local function in_order(claim)
  local tasks = {}
  if claim.asked then table.sort(claim.order) end
  for i, turn in ipairs(claim.order) do tasks[i] = claim.tasks[turn] end
  return tasks
end

define.fn {
  name = "ff_claim_executions",
  doc = "Leases up to `max` of the best executions of a lane in this partition to a worker, among those whose requirements it covers and which need no admission. A repetition has the same lease ids and is answered with the leases that live. Inputs and passed results together stay within 4 MiB, but one task is always handed out. A lane with max_active is reached by grants only.",
  flags = { "allow-oom" },
  weight = "max",
  args = {
    namespace = "namespace", lane = "lane", instance = "instance", worker_id = "worker_id", capabilities = "capabilities",
    max = "batch_size", lease_ttl_ms = "lease_ttl_ms", lease_ids = "lease_ids", attempt_ids = "attempt_ids",
  },
  reply = { claimed = { tasks = "[task]", next_score = "int?", admission_needed = "bool?" }, replayed = { tasks = "[task]" }, paused = { state = "lane_state" } },
  errs = { "try_again", "capability_invalid" },
  call = function(tx, a)
    if #a.lease_ids < a.max then return reply.err("invalid_argument", { field = "lease_ids", problem = "must hold max items" }) end
    if #a.attempt_ids < a.max then return reply.err("invalid_argument", { field = "attempt_ids", problem = "must hold max items" }) end
    local again, free = start.leased(tx, a.instance, a.lease_ids)
    if again then return reply.ok("replayed", { tasks = again }) end
    local copy = lane.load(tx, a.namespace .. "/" .. a.lane)
    if copy == nil then return reply.ok("claimed", { tasks = {} }) end
    if not lane.starts(copy) then return reply.ok("paused", { state = copy.state }) end
    if copy.max_active then return reply.ok("claimed", { tasks = {}, admission_needed = true }) end

    lane.prepare(tx, copy)
    local capabilities = choose.set_of(a.capabilities)
    local admission = tx.quotas ~= nil and lane.recall(tx, copy, "admits") ~= nil
    local claim = {
      a = a, copy = copy, capabilities = capabilities, places = places_of(a.max, free), taken = 0, looks = 0, bytes = 0, tasks = {}, order = {},
      found = choose.candidates(tx, copy, capabilities, a.max, admission),
    }
    local refusal
    repeat
      local asking
      asking, refusal = take_up(tx, claim)
      if #asking > 0 then let_in(tx, claim, asking) end
    until #asking == 0
    if refusal and claim.taken == 0 then return refusal end
    local tasks, first_wake, found = in_order(claim), claim.first_wake, claim.found
    local head = choose.remember_rest(tx, copy, found)
    if first_wake then start.announce_wake_up(tx, copy, first_wake) end
    if head == nil and copy.fairness == "fair" and queues.none(tx, copy.path) then fair.idle(tx, copy) end
    return reply.ok("claimed", { tasks = tasks, next_score = head })
  end,
}
