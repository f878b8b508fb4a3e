local define = require "lib.define"
local reply = require "lib.reply"
local limits = require "lib.limits"
local execution = require "record.execution"
local lane = require "record.lane"
local fair = require "index.fair"
local queues = require "index.queues"
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

    lane.prepare(tx, copy, "told", "prefers", "quiet:any")
    local capabilities = choose.set_of(a.capabilities)
    local max = free and math.min(a.max, #free) or a.max
    local found = choose.candidates(tx, copy, capabilities, max, false)
    local tasks, first_wake, looks, bytes = {}, nil, 0, 0
    while #tasks < max and looks < limits.batch_max do
      local id, queue = choose.take(tx, found, copy, capabilities)
      if id == nil then break end
      looks = looks + 1
      local at = #tasks + 1
      local place = free and free[at] or at
      local one = tx:item(take_one, tx, a, copy, id, a.lease_ids[place], a.attempt_ids[place], at > 1 and limits.claim_bytes_max - bytes or nil)
      if one and one.full then
        choose.put_back(found, id, queue)
        break
      end
      if one and one.err == "try_again" then
        if #tasks == 0 then return one end
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
    local head = choose.remember_rest(tx, copy, found)
    if first_wake then start.announce_wake_up(tx, copy, first_wake) end
    if head == nil and copy.fairness == "fair" and #queues.all(tx, copy.path) == 0 then fair.idle(tx, copy) end
    return reply.ok("claimed", { tasks = tasks, next_score = head })
  end,
}
