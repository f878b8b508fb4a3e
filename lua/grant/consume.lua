local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local holds = require "record.holds"
local lane = require "record.lane"
local fair = require "index.fair"
local queues = require "index.queues"
local choose = require "transition.choose"
local grant = require "transition.grant"
local start = require "transition.start"

define.fn {
  name = "ff_consume_grant",
  doc = "Turns a grant into a lease for the worker it was given to. `keep` names the sets that stay with it while its attempt is set aside.",
  flags = {},
  args = {
    execution_id = "execution_id", grant_id = "grant_id", instance = "instance", worker_id = "worker_id", capabilities = "capabilities",
    lease_ttl_ms = "lease_ttl_ms", request_id = "request_id", attempt_id = "attempt_id", lease_id = "lease_id", keep = "holder_sets?",
  },
  reply = { claimed = { task = "task" }, replayed = { task = "task" } },
  errs = { "execution_not_found", "grant_not_found", "not_capable", "capability_invalid" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase == "active" and rec.request == a.request_id and rec.worker == a.instance and tx.now < rec.lease_until then
      return reply.ok("replayed", { task = start.task(tx, rec) })
    end
    if not grant.open(rec, a.grant_id, tx.now) or rec.grant_worker ~= a.instance or not start.possible(rec, tx.now) or start.stopped(tx, rec) then
      return reply.err("grant_not_found", { grant_id = a.grant_id })
    end
    local capabilities = choose.set_of(a.capabilities)
    if not queues.covered(rec.spec.requires or {}, capabilities) then
      local missing = {}
      for _, token in ipairs(rec.spec.requires) do
        if not capabilities[token] then missing[#missing + 1] = token end
      end
      return reply.err("not_capable", { missing = table.concat(missing, ",") })
    end
    local copy = lane.load(tx, execution.lane_path(rec))
    -- The lane was limited after the grant was given: nobody has admitted it.
    if not holds.covers(rec, copy) then return reply.err("grant_not_found", { grant_id = a.grant_id }) end
    if a.keep then holds.keep_aside(rec, a.keep) end
    start.lease(tx, rec, a, a)
    if copy then
      fair.started(tx, copy, rec)
      start.announce_wake_up(tx, copy, lane, rec.wake)
    end
    return reply.ok("claimed", { task = start.task(tx, rec) })
  end,
}
