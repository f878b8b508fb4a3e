-- Turns grants into leases.
local reply = require "lib.reply"
local execution = require "record.execution"
local holds = require "record.holds"
local fair = require "index.fair"
local lane = require "record.lane"
local leases = require "index.leases"
local queues = require "index.queues"
local choose = require "transition.choose"
local grant = require "transition.grant"
local start = require "transition.start"

local consume = {}

-- The refusal of a worker that lacks something; `worker` is what it takes.
function consume.incapable(rec, worker)
  local capabilities = worker.capabilities
  if not choose.takes_kind(worker, rec.kind) then return reply.err("not_capable", { kind = rec.kind }) end
  if rec.requires == nil or queues.covered(rec.requires, capabilities) then return nil end
  local missing = {}
  for _, token in ipairs(rec.requires) do
    if not capabilities[token] then missing[#missing + 1] = token end
  end
  return reply.err("not_capable", { missing = table.concat(missing, ",") })
end

-- `holder`: { instance, worker_id, lease_ttl_ms }; `worker`: what it takes; `g`: { execution_id, grant_id, attempt_id,
-- lease_id, keep }. Answers the record and whether this lease was taken already, or nil and a refusal.
function consume.one(tx, holder, worker, g)
  local rec = execution.load(tx, g.execution_id)
  if rec == nil then return nil, reply.err("execution_not_found") end
  if rec.phase == "active" and rec.lease_id == g.lease_id and rec.worker == holder.instance
    and tx.now < rec.lease_until
  then
    return rec, true
  end
  if not grant.open(rec, g.grant_id, tx.now) or rec.grant_worker ~= holder.instance or not start.possible(rec, tx.now)
    or start.stopped(tx, rec)
  then
    return nil, reply.err("grant_not_found", { grant_id = g.grant_id })
  end
  if leases.held(tx, holder.instance, { g.lease_id }) then
    return nil, reply.err("invalid_argument", { field = "lease_id", problem = "is that of another lease" })
  end
  local incapable = consume.incapable(rec, worker)
  if incapable then return nil, incapable end
  local copy = lane.load(tx, rec.path)
  -- The lane was limited after the grant was given: nobody has admitted it.
  if not holds.covers(rec, copy) then return nil, reply.err("grant_not_found", { grant_id = g.grant_id }) end
  if g.keep then holds.keep_aside(rec, g.keep) end
  start.lease(tx, rec, holder, g.lease_id, g.attempt_id)
  if copy then fair.started(tx, copy, rec) end
  return rec, false
end

-- Whoever sleeps until the partition's next timer hears of the first end among new leases of a lane.
function consume.announce(tx, path, wake)
  local copy = lane.load(tx, path)
  if copy then start.announce_wake_up(tx, copy, wake) end
end

return consume
