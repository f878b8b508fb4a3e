local define = require "lib.define"
local reply = require "lib.reply"
local limits = require "lib.limits"
local execution = require "record.execution"
local lane = require "record.lane"
local fair = require "index.fair"
local queues = require "index.queues"
local choose = require "transition.choose"
local start = require "transition.start"
local walk = require "transition.walk"

-- `room`: how many bytes the answer has left for tasks; nil for the first one, which is always handed out.
local function take_one(tx, a, copy, entry, ids, room)
  local rec = execution.load(tx, entry.id)
  if rec == nil or rec.phase ~= "runnable" or not start.possible(rec, tx.now) then return reply.err("execution_not_runnable") end
  if start.stopped(tx, rec) then
    walk.cancel_member(tx, rec)
    return { ok = "cancelled" }
  end
  local heavy = start.heavy(tx, rec)
  if room and heavy.bytes > room then return { full = true } end
  start.lease(tx, rec, a, ids)
  fair.started(tx, copy, rec)
  return { ok = rec, heavy = heavy }
end

define.fn {
  name = "ff_claim_executions",
  doc = "Leases up to `max` of the best executions of a lane in this partition to a worker, among those whose requirements it covers and which need no admission. Inputs and passed results together stay within 4 MiB, but one task is always handed out. A lane with max_active is reached by grants only.",
  flags = { "allow-oom" },
  args = {
    namespace = "namespace", lane = "lane", instance = "instance", worker_id = "worker_id", capabilities = "capabilities",
    max = "batch_size", lease_ttl_ms = "lease_ttl_ms", request_id = "request_id", ids = "id_pairs",
  },
  reply = { claimed = { tasks = "[task]", next_score = "int?", admission_needed = "bool?" }, replayed = { tasks = "[task]" }, paused = { state = "lane_state" } },
  errs = { "try_again", "capability_invalid" },
  call = function(tx, a)
    if #a.ids < a.max then return reply.err("invalid_argument", { field = "ids", problem = "must hold max items" }) end
    local again = start.leased(tx, a.instance, a.request_id)
    if #again > 0 then return reply.ok("replayed", { tasks = again }) end
    local copy = lane.load(tx, a.namespace .. "/" .. a.lane)
    if copy == nil then return reply.ok("claimed", { tasks = {} }) end
    if not lane.starts(copy) then return reply.ok("paused", { state = copy.state }) end
    if copy.max_active then return reply.ok("claimed", { tasks = {}, admission_needed = true }) end

    local capabilities = choose.set_of(a.capabilities)
    local found = choose.candidates(tx, copy, capabilities, a.max, false)
    local tasks, first_wake, looks, bytes = {}, nil, 0, 0
    while #tasks < a.max and looks < limits.batch_max do
      local entry = choose.take(tx, found, copy, capabilities)
      if entry == nil then break end
      looks = looks + 1
      local answer = tx:item(function() 
        return take_one(tx, a, copy, entry, a.ids[#tasks + 1], #tasks > 0 and limits.claim_bytes_max - bytes or nil)
      end)
      if answer and answer.full then
        choose.put_back(found, entry)
        break
      end
      if answer and answer.err == "try_again" then
        if #tasks == 0 then return answer end
        break
      end
      if answer and answer.ok and answer.ok ~= "cancelled" then
        local rec = answer.ok
        first_wake = math.min(first_wake or rec.wake, rec.wake)
        bytes = bytes + answer.heavy.bytes
        tasks[#tasks + 1] = start.task(tx, rec, answer.heavy)
      elseif answer == nil or answer.err then
        choose.pass(found, entry)
      end
    end
    local head = choose.remember_rest(tx, copy, found, lane)
    if first_wake then start.announce_wake_up(tx, copy, lane, first_wake) end
    if head == nil and copy.fairness == "fair" and #queues.all(tx, copy.path) == 0 then fair.idle(tx, copy) end
    return reply.ok("claimed", { tasks = tasks, next_score = head })
  end,
}
