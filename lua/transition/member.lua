-- The start and the end of a member of a flow that is nothing special, as in transition/plain.lua. The flow and the
-- members that wait for it are shared by all operations of a list: a member that ends is counted in records that are
-- open already.
local bytes = require "lib.bytes"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local flow = require "record.flow"
local home = require "index.home"
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"
local queues = require "index.queues"
local running = require "record.running"

local member = {}

local pack, unpack_ = cmsgpack.pack, cmsgpack.unpack
local select, floor, ipairs = select, math.floor, ipairs
local close_execution, close_flow = packed.close_execution, packed.close_flow
local active_from = home.active_from
local whole, none = bytes.list(38), bytes.none
local no_end, no_groups = none .. none .. none, none .. none .. none .. none .. none

-- Members that one end may reach here.
local reached_max = 4

-- The groups of a record, by their places in record/fields.lua: true when they hold nothing that is special here.

local function is_member(g)
  return g[1] and not (g[4] or g[5])
end

-- At most since when it stands in line.
local function only_ready(g)
  return not (g[1] or g[2] or g[3] or g[4] or g[5] or g[6] or g[7] or g[8] or g[9] or g[11] or g[12] or g[13])
end

-- What it waited for, how many edges lead out of it, and that it is kept for its flow.
local function only_edges(g)
  return g[10] and not (g[5] or g[6] or g[7] or g[8] or g[9] or g[11] or g[12] or g[13] or g[14])
end

-- At most that it has a spec.
local function only_said(g)
  return not (g[1] or g[2] or g[3] or g[4] or g[5] or g[6] or g[7] or g[8] or g[9])
end

-- The flow of a member while it runs as planned: sealed, not stopped, and with nothing due that it does not know of.
local function open_flow(tx, id)
  local f = tx:shared(keys.flow(tx, id)) or flow.load(tx, id)
  if f and f.sealed and not f.stop and not f.ended and flow.wake_at(f) == f.wake then return f end
end

-- Counts a member under another state.
local function recount(tx, f, was, state)
  flow.recount(f, was, state)
  f.updated = tx.now
  tx:share(keys.flow(tx, f.id), f, close_flow)
end

-- Starting --------------------------------------------------------------------------------------

-- Leases a member that never ran. Answers as `plain.start`, and the extras of its task.
function member.start(
  tx, id, holder, lease_id, attempt_id, room,
  key, path, kind, created_at, queue, retention, _, prio, score, _, wake, digest, input, tags, named, held,
  attempt, _, _, _, _, _, _, _, _, _, _, _, _, _, _, part, pending, wants, bounds, waits, frames, edges, more, ...
)
  if attempt or named or held or wake or wants or bounds or waits or frames or select("#", ...) > 0
    or not part or not is_member(part) or not edges or edges[3] or not only_edges(edges)
    or (pending and not only_ready(pending)) or (more and not only_said(more))
  then
    return nil
  end
  local f = open_flow(tx, part[1])
  if f == nil then return nil end
  local given = input and tx:get(key .. ":input") or ""
  if room and #given > room then return false end
  local extras = more and { spec = tx:record(keys.spec(tx, id)) } or false
  local now, worker, ttl = tx.now, holder.instance, holder.lease_ttl_ms
  local wake_at = now + ttl
  local record, told = running.started(
    tx, id, attempt_id, lease_id, worker, holder.worker_id, wake_at, ttl, now - (pending and pending[10] or created_at),
    path, kind, created_at, queue, retention, prio, score, digest, input, tags, false, false, f.id
  )
  record = whole .. record .. no_end .. pack(part) .. no_groups .. pack(edges) .. (more and pack(more) or none)
  recount(tx, f, "waiting", "active")
  tx:set(key, record)
  tx:zadd(keys.timers(tx), wake_at, id)
  tx:zadd(keys.queue(tx, path, queue, kind), active_from + created_at, id)
  tx:hput(keys.leases(tx, worker), lease_id, id)
  tx:note(told)
  return record, wake_at, given, extras
end

-- Completing ------------------------------------------------------------------------------------

-- Packs a member with what it waits for, which stays open as long as it is shared.
local function close_waiting(rec)
  if rec.waits_for then dependencies.store(rec, rec.waits_for) end
  return close_execution(rec)
end

-- A member that waits for nothing but its edges, all of which must be met. Answers it with what it waits for.
local function waiting(tx, f, id)
  local rec = tx:shared(keys.core(tx, id)) or execution.load(tx, id, true)
  if rec == nil or rec.hidden or rec.phase ~= "runnable" or rec.reason ~= "waiting_for_dependencies" or rec.inbound
    or rec.flow_id ~= f.id
  then
    return nil
  end
  local d = rec.waits_for or dependencies.load(rec)
  if d.decided or d.dead > 0 or d.hopes > 0 then return nil end
  if d.met + 1 < d.total then return rec, d end
  -- It is about to be ready, and must be able to stand in line at once.
  if rec.wake or rec.delay or rec.start_within or rec.deadline or rec.awaiting or rec.nested or rec.grant
    or rec.queue ~= "any" or d.bytes > limits.passed_bytes_max
  then
    return nil
  end
  if not queues.foresee(tx, rec.path, queues.name(rec.queue, rec.kind)) then return nil end
  return rec, d
end

-- The edges out of a member that ends well, with those they lead to; nil when one of them is special.
local function reach(tx, f, id, outs)
  local out, key = {}, keys.edges_out(tx, id)
  for n = 1, outs do
    local stored = tx:hget(key, n == 1 and "1" or string.format("%.0f", n))
    if stored == nil then return nil end
    local e = unpack_(stored)
    if e[3] or e[4] ~= "pending" or e[5] or e[2] == "failure" then return nil end
    local rec, d = waiting(tx, f, e[1])
    if rec == nil then return nil end
    out[n] = { rec = rec, d = d, on = e[2] }
  end
  return out
end

-- One edge is met.
local function meet(tx, f, key, n, one)
  local rec, d, now = one.rec, one.d, tx.now
  d.met = d.met + 1
  local ready = d.met == d.total
  if ready then d.decided = "ready" end
  rec.waits_for, rec.updated = d, now
  if ready then
    recount(tx, f, "waiting_children", "waiting")
    rec.reason, rec.since, rec.ready, rec.was_state = nil, nil, now, "waiting"
    home.move(tx, rec, "queue", rec.score)
    tx:note(pack({
      "execution.ready", now, rec.path, rec.kind, rec.id, f.id, rec.attempt or false, rec.worker or false,
      rec.tags or false, "cause", "dependencies",
    }))
  end
  tx:share(keys.core(tx, rec.id), rec, close_waiting)
  tx:hput(key, n, pack({ rec.id, one.on, false, "met", false, 0 }))
end

-- Ends the attempt of a member whose fence was checked. Answers nil, with nothing planned, when it is special.
function member.complete(
  tx, id, result,
  key, path, kind, created_at, queue, retention, _, prio, score, _, _, digest, input, tags, named, held,
  attempt, attempt_id, attempt_type, _, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl, ended_by,
  _, _, _, part, pending, wants, bounds, waits, frames, edges, more, ...
)
  if named or held or ended_by or pending or wants or bounds or waits or frames or select("#", ...) > 0
    or not part or not is_member(part) or not edges or not only_edges(edges) or (more and not only_said(more))
  then
    return false
  end
  local outs, f = edges[4] or 0, open_flow(tx, part[1])
  if f == nil or outs > reached_max or (outs == 0 and flow.open(f) <= 1) then return false end
  local reached = reach(tx, f, id, outs)
  if reached == nil then return false end
  local now = tx.now
  if outs > 0 then
    edges[5] = outs
  else
    edges[8] = "good_sink"
    flow.count_verdict(f, "good_sink", 1)
  end
  recount(tx, f, "active", "completed")
  local record, told = running.completed(
    tx, id, nil, now - floor(epoch / 1000), result or false, f.id,
    path, kind, created_at, queue, retention, prio, score, digest, input, tags, false,
    attempt, attempt_id, attempt_type, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl
  )
  tx:set(key, whole .. record .. pack(part) .. no_groups .. pack(edges) .. (more and pack(more) or none))
  tx:zrem(keys.timers(tx), id)
  tx:zrem(keys.queue(tx, path, queue, kind), id)
  tx:zadd(keys.place(tx, path, "terminal"), created_at, id)
  tx:hdel(keys.leases(tx, worker), lease_id)
  tx:note(told)
  for n, one in ipairs(reached) do meet(tx, f, keys.edges_out(tx, id), n, one) end
  return true
end

return member
