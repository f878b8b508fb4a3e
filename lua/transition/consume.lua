-- Turns grants into leases.
local reply = require "lib.reply"
local execution = require "record.execution"
local holds = require "record.holds"
local fair = require "index.fair"
local lane = require "record.lane"
local queues = require "index.queues"
local grant = require "transition.grant"
local start = require "transition.start"

local consume = {}

-- The refusal of a worker that lacks something; `capabilities` is a set.
function consume.incapable(rec, capabilities)
  if queues.covered(rec.spec.requires or {}, capabilities) then return nil end
  local missing = {}
  for _, token in ipairs(rec.spec.requires) do
    if not capabilities[token] then missing[#missing + 1] = token end
  end
  return reply.err("not_capable", { missing = table.concat(missing, ",") })
end

-- `holder`: { instance, worker_id, request_id, lease_ttl_ms }; `capabilities`: a set; `g`: { execution_id, grant_id, attempt_id,
-- lease_id, keep }. Answers the record and whether this request had leased it already, or nil and a refusal.
function consume.one(tx, holder, capabilities, g)
  local rec = execution.load(tx, g.execution_id)
  if rec == nil then return nil, reply.err("execution_not_found") end
  if rec.phase == "active" and rec.request == holder.request_id and rec.worker == holder.instance and tx.now < rec.lease_until then return rec, true end
  if not grant.open(rec, g.grant_id, tx.now) or rec.grant_worker ~= holder.instance or not start.possible(rec, tx.now) or start.stopped(tx, rec) then
    return nil, reply.err("grant_not_found", { grant_id = g.grant_id })
  end
  local incapable = consume.incapable(rec, capabilities)
  if incapable then return nil, incapable end
  local copy = lane.load(tx, execution.lane_path(rec))
  -- The lane was limited after the grant was given: nobody has admitted it.
  if not holds.covers(rec, copy) then return nil, reply.err("grant_not_found", { grant_id = g.grant_id }) end
  if g.keep then holds.keep_aside(rec, g.keep) end
  start.lease(tx, rec, holder, g)
  if copy then fair.started(tx, copy, rec) end
  return rec, false
end

-- Whoever sleeps until the partition's next timer hears of the first end among new leases of a lane.
function consume.announce(tx, path, wake)
  local copy = lane.load(tx, path)
  if copy then start.announce_wake_up(tx, copy, lane, wake) end
end

return consume
