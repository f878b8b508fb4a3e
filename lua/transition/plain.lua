-- The three transitions that most executions make, for those that are nothing special: submitted with what every submission says,
-- started for the first time, completed. Each reads and packs the record's values by their places, without a table of them, and plans
-- its writes at once. Whatever is not plain is left to the general transitions, which would do the same step by step: a test runs
-- both ways and compares what is stored.
local keys = require "lib.keys"
local event = require "lib.event"
local home = require "index.home"
local lane = require "record.lane"
local limits = require "lib.limits"
local packed = require "record.packed"

local plain = {}

local pack, values = cmsgpack.pack, packed.values
local select, floor = select, math.floor
local active_from = home.active_from
local week_ms = 604800000

-- Submitting ------------------------------------------------------------------------------------

-- The answer around the id.
local before_id, after_id
local function created(id)
  if before_id == nil then
    local mark = string.rep("#", 36)
    local sample = pack("created", { execution_id = mark, state = "waiting" })
    local from, to = string.find(sample, mark, 1, true)
    before_id, after_id = string.sub(sample, 1, from - 1), string.sub(sample, to + 1)
  end
  return { bytes = before_id .. id .. after_id, ok = "created" }
end

-- Accepts a submission that says nothing rare, in a lane that asks for nothing rare. Answers nil when it is not plain.
function plain.submit(tx, s)
  local path = s.namespace .. "/" .. s.lane
  local copy = lane.load(tx, path)
  if copy == nil or copy.state ~= "active" or copy.max_depth or copy.fairness ~= "fifo" or copy.retry or copy.attempt_timeout_ms then return nil end
  local id, kind, now, input = s.execution_id, s.kind, tx.now, s.input
  local key = keys.core(tx, id)
  if tx:record(key) then return nil end
  local prio = s.priority or 0
  local score = now - prio * copy.priority_weight
  local has_input = input and input ~= ""
  tx:set(key, pack({
    path, kind, now, "any", s.retention_ms or copy.retention_ms or week_ms, "runnable", prio, score, now, false, s.body_digest, has_input and 1 or false, false,
  }))
  if has_input then tx:set(key .. ":input", input) end
  tx:zadd(keys.queue(tx, path, "any"), score, id)
  tx:zadd(keys.all(tx), now, id)
  tx:zadd(keys.kind(tx, kind), now, id)
  if prio > 0 or lane.recall(tx, copy, "quiet:any") == nil then tx:announce("ready", path, "any", score) end
  tx:note(pack({ "execution.submitted", now, path, kind, id, false, false, false, false, "state", "waiting" }))
  return created(id)
end

-- Starting --------------------------------------------------------------------------------------

local function start(
  tx, id, holder, lease_id, attempt_id, room,
  key, path, kind, created_at, queue, retention, phase, prio, score, _, _, digest, input, tags, ...
)
  if phase ~= "runnable" or select("#", ...) > 0 then return nil end
  local bytes = input and tx:get(key .. ":input") or ""
  if room and #bytes > room then return false end
  local now, epoch, worker, worker_id, ttl = tx.now, tx.now_us, holder.instance, holder.worker_id, holder.lease_ttl_ms
  local wake = now + ttl
  local record = pack({
    path, kind, created_at, queue, retention, "active", prio, score, now, wake, digest, input, tags,
    0, attempt_id, "initial", "started", now, lease_id, epoch, worker, worker_id, wake, ttl, false,
  })
  tx:set(key, record)
  tx:zadd(keys.timers(tx), wake, id)
  tx:zadd(keys.queue(tx, path, queue), active_from + created_at, id)
  tx:hput(keys.leases(tx, worker), lease_id, id)
  local waited = now - created_at
  tx:note(pack({
    "execution.started", now, path, kind, id, false, 0, worker, tags, "attempt_type", "initial", "continues", false, "waited_ms", waited > 0 and waited or 0,
  }))
  return record, wake, bytes
end

-- Leases an execution that never ran and is part of nothing. Answers nil when it is not plain, false when its input needs more than
-- the room there is, else the packed record, when it wakes, and its input.
function plain.start(tx, id, holder, lease_id, attempt_id, room)
  local key = keys.core(tx, id)
  local stored = tx:record(key)
  if stored == nil then return nil end
  return start(tx, id, holder, lease_id, attempt_id, room, values(key, stored))
end

-- Completing ------------------------------------------------------------------------------------

local completed = { ok = "completed" }

local function complete(
  tx, c,
  key, path, kind, created_at, queue, retention, phase, prio, score, _, _, digest, input, tags,
  attempt, attempt_id, attempt_type, _, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl, _, ...
)
  local f, now = c.fence, tx.now
  if phase ~= "active" or select("#", ...) > 0 or epoch ~= f.lease_epoch or lease_id ~= f.lease_id or attempt_id ~= f.attempt_id or now >= lease_until then
    return nil
  end
  local id, result = c.execution_id, c.result
  local wake = now + retention
  tx:set(key, pack({
    path, kind, created_at, queue, retention, "terminal", prio, score, now, wake, digest, input, tags,
    attempt, attempt_id, attempt_type, "succeeded", started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl, "complete",
    now, "success", result or false,
  }))
  tx:zadd(keys.timers(tx), wake, id)
  tx:zrem(keys.queue(tx, path, queue), id)
  tx:zadd(keys.place(tx, path, "terminal"), created_at, id)
  tx:hdel(keys.leases(tx, worker), lease_id)
  local ran = now - floor(epoch / 1000)
  tx:note(pack({ "execution.completed", now, path, kind, id, false, attempt, worker, tags, "ran_ms", ran > 0 and ran or 0, "took_ms", now - created_at }))
  return completed
end

-- Ends an attempt with a small result. Answers nil when the execution is not plain, or the fence is not its own.
function plain.complete(tx, c)
  local result, encoding = c.result, c.result_encoding
  if (result and #result > limits.result_inline_bytes_max) or (encoding and encoding ~= "json") then return nil end
  local key = keys.core(tx, c.execution_id)
  local stored = tx:record(key)
  if stored == nil then return nil end
  return complete(tx, c, values(key, stored))
end

return plain
