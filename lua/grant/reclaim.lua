local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local lane = require "record.lane"
local choose = require "transition.choose"
local consume = require "transition.consume"
local grant = require "transition.grant"
local start = require "transition.start"

local function unserved(rec, a)
  if execution.namespace(rec) == a.namespace and choose.set_of(a.lanes)[execution.lane(rec)] then return nil end
  return reply.err("invalid_argument", {
    field = "instance", problem = a.instance .. " does not serve the lane " .. rec.path,
  })
end

define.fn {
  name = "ff_grant_reclaim",
  doc = "An operator hands an interrupted execution to a chosen worker, who must serve its lane, take its kind and "
    .. "have what it requires.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", grant_id = "grant_id", instance = "instance", ttl_ms = "grant_ttl_ms",
    actor = "actor", namespace = "namespace", lanes = "lane_names", capabilities = "capabilities",
    kinds = "kind_set?",
  },
  reply = { granted = { grant = "grant" } },
  errs = { "execution_not_found", "execution_not_runnable", "not_capable", "capability_invalid" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if grant.asked_as(rec) == a.grant_id and grant.open(rec, rec.grant, tx.now) then
      return reply.ok("granted", { grant = grant.typed(rec) })
    end
    local free = rec.phase == "runnable" and rec.reason == nil and rec.delay == nil and rec.grant == nil
    if not free or rec.next ~= "reclaim" or not start.possible(rec, tx.now) or start.stopped(tx, rec) then
      return reply.err("execution_not_runnable", { lifecycle_phase = rec.phase, blocking_reason = rec.reason })
    end
    local refused = unserved(rec, a) or consume.incapable(rec, choose.worker(a.capabilities, a.kinds))
    if refused then return refused end
    more.note_action(tx, rec, "grant_reclaim", a.actor)
    grant.give(tx, rec, a.grant_id, a.instance, a.ttl_ms, lane.load(tx, rec.path))
    event.of_execution(tx, rec, "execution.granted", "worker_instance", a.instance, "actor", a.actor)
    return reply.ok("granted", { grant = grant.typed(rec) })
  end,
}
