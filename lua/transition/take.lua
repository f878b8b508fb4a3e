-- Takes candidates of a claim: those that need no admission are leased at once, the others when they were let in.
local reply = require "lib.reply"
local limits = require "lib.limits"
local execution = require "record.execution"
local fair = require "index.fair"
local admit = require "transition.admit"
local choose = require "transition.choose"
local plain = require "transition.plain"
local start = require "transition.start"
local walk = require "transition.walk"
local holds = require "record.holds"

local take = {}

-- Leases one candidate. `room`: how many bytes the answer has left for tasks; nil for the first one, which is always
-- handed out.
local function take_one(tx, a, copy, id, lease_id, attempt_id, room)
  local record, wake, input, extras
  if not tx.step_by_step then record, wake, input, extras = plain.start(tx, id, a, lease_id, attempt_id, room) end
  if record then return { task = { id, record, input, extras or false }, wake = wake, bytes = #input } end
  if record == false then return { full = true } end
  local rec = execution.load(tx, id)
  if rec == nil or rec.phase ~= "runnable" or not start.possible(rec, tx.now) then
    return reply.err("execution_not_runnable")
  end
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

-- Leases up to `max` candidates, none of which needs admission; `free` are the places of lease ids that are free, when
-- not all are. Answers the tasks, the first end of a lease, and a refusal when the partition is moving and nothing was
-- leased.
function take.plain(tx, a, copy, found, free)
  local max = free and math.min(a.max, #free) or a.max
  local tasks, first_wake, looks, bytes = {}, nil, 0, 0
  while #tasks < max and looks < limits.batch_max do
    local id, queue = choose.take(tx, found)
    if id == nil then break end
    looks = looks + 1
    local at = #tasks + 1
    local place = free and free[at] or at
    local one = tx:item(take_one, tx, a, copy, id, a.lease_ids[place], a.attempt_ids[place],
      at > 1 and limits.claim_bytes_max - bytes or nil)
    if one and one.full then
      choose.put_back(found, id, queue)
      break
    end
    if one and one.err == "try_again" then
      if #tasks == 0 then return tasks, nil, one end
      break
    end
    if one and one.task then
      if first_wake == nil or one.wake < first_wake then first_wake = one.wake end
      bytes = bytes + one.bytes
      tasks[#tasks + 1] = one.task
    elseif one == nil or one.err then
      choose.pass(found, queue)
    end
  end
  return tasks, first_wake
end

-- With admission ---------------------------------------------------------------------------------

-- A candidate that needs admission, as it asks for it. `room` as above.
local function ask_one(tx, id, lease_id, room)
  local asker = not tx.step_by_step and plain.asking(tx, id, lease_id, room) or nil
  if asker then return asker end
  local rec = execution.load(tx, id)
  if rec == nil or rec.phase ~= "runnable" or not start.possible(rec, tx.now) then
    return reply.err("execution_not_runnable")
  end
  if rec.flow_id and start.stopped(tx, rec) then
    walk.cancel_member(tx, rec)
    return { cancelled = true }
  end
  local _, _, bytes = start.heavy(tx, rec)
  if room and bytes > room then return { full = true } end
  local named = { quotas = holds.asked_quotas(rec) or {}, budgets = holds.asked_budgets(rec) or {} }
  return admit.asker(id, lease_id, rec.grants, rec.score, named, bytes)
end

-- Leases one that was let in. What let it in gets it back should this not be written.
local function start_admitted(tx, claim, one)
  local a, id = claim.a, one.execution_id
  tx:hedge(one)
  if one.v and one.keep == nil then
    local record, wake = plain.start_admitted(tx, one, a, a.attempt_ids[one.place])
    return { task = { id, record, one.input, false }, wake = wake, bytes = one.bytes }
  end
  local rec = execution.load(tx, id)
  admit.note(rec, one)
  start.lease(tx, rec, a, one.holder_id, a.attempt_ids[one.place])
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

-- Takes candidates while there are leases to give. Those that need admission are not started: they are answered, to be
-- asked for. Then the refusal of one whose partition is moving.
local function take_up(tx, claim)
  local a, asking = claim.a, {}
  while #claim.places > 0 and claim.looks < limits.batch_max do
    local id, queue = choose.take(tx, claim.found)
    if id == nil then break end
    claim.looks = claim.looks + 1
    local place, one = claim.places[#claim.places], nil
    if queue.admission then
      one = tx:item(ask_one, tx, id, a.lease_ids[place], room_of(claim, asking))
    else
      one = tx:item(take_one, tx, a, claim.copy, id, a.lease_ids[place], a.attempt_ids[place], room_of(claim, asking))
    end
    if one and one.full then
      choose.put_back(claim.found, id, queue)
      break
    end
    if one and one.err == "try_again" then return asking, one end
    if one and one.task then
      claim.places[#claim.places] = nil
      note_taken(claim, claim.looks, one)
    elseif one and one.entered then
      claim.places[#claim.places] = nil
      one.place, one.turn, one.queue = place, claim.looks, queue
      queue.asking = queue.asking + 1
      claim.bytes = claim.bytes + one.bytes
      asking[#asking + 1] = one
    elseif one == nil or one.err then
      choose.pass(claim.found, queue)
    end
  end
  return asking
end

-- Asks for those that need admission, and starts those that are let in. A lease that was not given is free again.
local function let_in(tx, claim, asking)
  admit.all(tx, asking)
  for _, one in ipairs(asking) do
    local started
    claim.bytes, one.queue.asking = claim.bytes - one.bytes, one.queue.asking - 1
    if one.refused or one.undecided then
      tx:item(admit.turn_away, tx, one)
    else
      started = tx:item(start_admitted, tx, claim, one)
    end
    if started and started.task then
      note_taken(claim, one.turn, started)
    else
      claim.places[#claim.places + 1] = one.place
      if not one.refused then
        if not one.undecided then tx:item(admit.withdraw, tx, one) end
        choose.pass(claim.found, one.queue)
      end
    end
  end
end

local function in_order(claim)
  local tasks = {}
  table.sort(claim.order)
  for i, turn in ipairs(claim.order) do tasks[i] = claim.tasks[turn] end
  return tasks
end

-- The same where some of the candidates need admission.
function take.asking(tx, a, copy, found, free)
  local claim = {
    a = a, copy = copy, places = places_of(a.max, free), taken = 0, looks = 0, bytes = 0, tasks = {}, order = {},
    found = found,
  }
  local refusal
  repeat
    local asking
    asking, refusal = take_up(tx, claim)
    if #asking > 0 then let_in(tx, claim, asking) end
  until #asking == 0
  return in_order(claim), claim.first_wake, claim.taken == 0 and refusal or nil
end

return take
