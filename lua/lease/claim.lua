local define = require "lib.define"
local reply = require "lib.reply"
local lane = require "record.lane"
local fair = require "index.fair"
local choose = require "transition.choose"
local start = require "transition.start"
local take = require "transition.take"

define.fn {
  name = "ff_claim_executions",
  doc = "Leases up to `max` of the best executions of a lane in this partition to a worker, among those of "
    .. "its kinds whose requirements it covers. Quotas and budgets are asked on the way where they share the store; "
    .. "elsewhere what needs admission is reached by grants only. A repetition has the same lease ids and is answered "
    .. "with the leases that live. Inputs and passed results together stay within 4 MiB, but one task is always handed "
    .. "out. A lane with max_active is reached by grants only.",
  flags = { "allow-oom" },
  weight = "max",
  args = {
    namespace = "namespace", lane = "lane", instance = "instance", worker_id = "worker_id",
    capabilities = "capabilities", kinds = "kind_set?", max = "batch_size", lease_ttl_ms = "lease_ttl_ms",
    lease_ids = "lease_ids", attempt_ids = "attempt_ids",
  },
  reply = {
    claimed = { tasks = "[task]", next_score = "int?", admission_needed = "bool?" }, replayed = { tasks = "[task]" },
    paused = { state = "lane_state" },
  },
  errs = { "try_again", "capability_invalid" },
  call = function(tx, a)
    if #a.lease_ids < a.max then
      return reply.err("invalid_argument", { field = "lease_ids", problem = "must hold max items" })
    end
    if #a.attempt_ids < a.max then
      return reply.err("invalid_argument", { field = "attempt_ids", problem = "must hold max items" })
    end
    local again, free = start.leased(tx, a.instance, a.lease_ids)
    if again then return reply.ok("replayed", { tasks = again }) end
    local copy = lane.load(tx, a.namespace .. "/" .. a.lane)
    if copy == nil then return reply.ok("claimed", { tasks = {} }) end
    if not lane.starts(copy) then return reply.ok("paused", { state = copy.state }) end
    if copy.max_active then return reply.ok("claimed", { tasks = {}, admission_needed = true }) end

    lane.prepare(tx, copy)
    local worker = choose.worker(a.capabilities, a.kinds)
    local admission = tx.quotas ~= nil and lane.recall(tx, copy, "admits") ~= nil
    local found = choose.candidates(tx, copy, worker, a.max, admission)
    local tasks, first_wake, refusal = (admission and take.asking or take.plain)(tx, a, copy, found, free)
    if refusal then return refusal end
    local head = choose.next_score(tx, found)
    local idle = copy.fairness == "fair" and choose.nothing_left(tx, found, head)
    choose.remember_rest(tx, copy, found)
    if first_wake then start.announce_wake_up(tx, copy, first_wake) end
    if idle then fair.idle(tx, copy) end
    return reply.ok("claimed", { tasks = tasks, next_score = head })
  end,
}
