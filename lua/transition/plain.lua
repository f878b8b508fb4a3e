-- The three transitions that most executions make, for those that are nothing special: submitted with what every submission says,
-- started for the first time, completed. Each reads and packs the record's values by their places, without a table of them, and plans
-- its writes at once. Whatever is not plain is left to the general transitions, which would do the same step by step: a test runs
-- both ways and compares what is stored.
local keys = require "lib.keys"
local event = require "lib.event"
local home = require "index.home"
local holds = require "record.holds"
local lane = require "record.lane"
local limits = require "lib.limits"
local packed = require "record.packed"
local queues = require "index.queues"

local plain = {}

local pack, unpack_, values = cmsgpack.pack, cmsgpack.unpack, packed.values
local select, floor, pairs = select, math.floor, pairs
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

-- What a record that needs admission has between its first fields and what must admit it; and behind that.
local function admitted_later(budgets, quotas)
  return false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false, false,
    { false, false, false, false, false, false, budgets or false, quotas or false, false, false }, false, false, false, false, false
end

-- The quotas and budgets a submission names, when it says nothing else that is rare; else nil.
local function limits_of(more)
  for name in pairs(more) do
    if name ~= "quotas" and name ~= "budgets" then return nil end
  end
  local quotas, budgets = more.quotas, more.budgets
  if (quotas and #quotas == 0) or (budgets and #budgets ~= 1) then return nil end
  for i = 1, quotas and #quotas or 0 do quotas[i].weight = quotas[i].weight or 1 end
  return true, budgets, quotas
end

-- Accepts a submission that says nothing rare, in a lane that asks for nothing rare. Answers nil when it is not plain.
function plain.submit(tx, s)
  local path, queue, more, budgets, quotas, fine = s.namespace .. "/" .. s.lane, "any", s.more, nil, nil, true
  if more then
    fine, budgets, quotas = limits_of(more)
    queue = "admit.any"
  end
  local copy = fine and lane.load(tx, path)
  if not copy or copy.state ~= "active" or copy.max_depth or copy.fairness ~= "fifo" or copy.retry or copy.attempt_timeout_ms then return nil end
  local id, kind, now, input = s.execution_id, s.kind, tx.now, s.input
  local key = keys.core(tx, id)
  if tx:record(key) then return nil end
  local prio = s.priority or 0
  local score = now - prio * copy.priority_weight
  local has_input, retention = input and input ~= "", s.retention_ms or copy.retention_ms or week_ms
  local fresh = false
  if more then
    tx:set(key, pack({
      path, kind, now, queue, retention, "runnable", prio, score, now, false, s.body_digest, has_input and 1 or false, false, admitted_later(budgets, quotas)
    }))
    fresh = queues.joined(tx, path, queue)
  else
    tx:set(key, pack({ path, kind, now, queue, retention, "runnable", prio, score, now, false, s.body_digest, has_input and 1 or false, false }))
  end
  if has_input then tx:set(key .. ":input", input) end
  tx:zadd(keys.queue(tx, path, queue), score, id)
  tx:zadd(keys.all(tx), now, id)
  tx:zadd(keys.kind(tx, kind), now, id)
  if fresh or prio > 0 or lane.recall(tx, copy, home.quiet[queue]) == nil then tx:announce("ready", path, queue, score) end
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

-- The values of a record in a table, which can be packed again.
local function listed(_, ...)
  return { ... }
end

-- True when nothing is known of why it waited but since when it is ready.
local function only_ready(waited)
  for i = 1, 13 do
    if waited[i] and i ~= 10 then return false end
  end
  return true
end

-- What is needed to ask for an execution that never ran, is part of nothing and needs admission; `v` are its record's values. Answers
-- nil when it is not plain, false when its input needs more than the room there is.
function plain.asking(tx, id, lease_id, room)
  local key = keys.core(tx, id)
  local stored = tx:record(key)
  if stored == nil then return nil end
  local v = listed(values(key, stored))
  local g, waited = v[31], v[30]
  if #v ~= 36 or v[6] ~= "runnable" or v[14] or v[29] or not g or v[32] or v[33] or v[34] or v[35] or v[36] then return nil end
  if g[1] or g[5] or g[6] or (waited and not only_ready(waited)) then return nil end
  local input = v[12] and tx:get(key .. ":input") or ""
  if room and #input > room then return false end
  return {
    id = id, holder = lease_id, number = (g[4] or 0) + 1, score = v[8], quotas = g[8] or nil, budgets = g[7] or nil, entered = {}, keep = {}, v = v, input = input,
  }
end

-- Leases one that was let in. Answers the packed record and when it wakes.
function plain.start_admitted(tx, one, holder, attempt_id)
  local v, id, now = one.v, one.id, tx.now
  local path, kind, created_at, waited, g = v[1], v[2], v[3], v[30], v[31]
  local worker, ttl, lease_id = holder.instance, holder.lease_ttl_ms, one.holder
  local wake = now + ttl
  v[6], v[9], v[10] = "active", now, wake
  v[14], v[15], v[16], v[17], v[18] = 0, attempt_id, "initial", "started", now
  v[19], v[20], v[21], v[22], v[23], v[24] = lease_id, tx.now_us, worker, holder.worker_id, wake, ttl
  v[30], g[4], g[5] = false, one.number, pack({ lease_id, one.entered })
  local record = pack(v)
  tx:set(keys.core(tx, id), record)
  tx:zadd(keys.timers(tx), wake, id)
  tx:zadd(keys.queue(tx, path, v[4]), active_from + created_at, id)
  tx:hput(keys.leases(tx, worker), lease_id, id)
  waited = now - (waited and waited[10] or created_at)
  tx:note(pack({
    "execution.started", now, path, kind, id, false, 0, worker, v[13], "attempt_type", "initial", "continues", false, "waited_ms", waited > 0 and waited or 0,
  }))
  return record, wake
end

-- Completing ------------------------------------------------------------------------------------

local completed = { ok = "completed" }

-- Owes back what an execution holds. False, with nothing planned, when that is not plain.
local function owe_back(tx, id, bytes)
  local list = unpack_(bytes)
  local holder, sets = list[1], list[2]
  if not holder or list[3] then return false end
  for i = 1, #sets do
    if not holds.near(tx, sets[i]) then return false end
  end
  for i = 1, #sets do tx:owe("release", { set = sets[i], execution_id = id, holder_id = holder }) end
  return true
end

local function complete(
  tx, c,
  key, path, kind, created_at, queue, retention, phase, prio, score, _, _, digest, input, tags,
  attempt, attempt_id, attempt_type, _, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl, _, _, _, _,
  part_of, waited, limited, given, waits, streams, links, apart, ...
)
  local f, now, id = c.fence, tx.now, c.execution_id
  if phase ~= "active" or epoch ~= f.lease_epoch or lease_id ~= f.lease_id or attempt_id ~= f.attempt_id or now >= lease_until then return nil end
  if part_of or waited or given or waits or streams or links or apart or select("#", ...) > 0 then return nil end
  if limited then
    if limited[1] or limited[6] then return nil end
    if limited[5] and not owe_back(tx, id, limited[5]) then return nil end
    limited[5] = false
  end
  local result, wake = c.result, now + retention
  if limited then
    tx:set(key, pack({
      path, kind, created_at, queue, retention, "terminal", prio, score, now, wake, digest, input, tags,
      attempt, attempt_id, attempt_type, "succeeded", started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl, "complete",
      now, "success", result or false, false, false, limited, false, false, false, false, false,
    }))
  else
    tx:set(key, pack({
      path, kind, created_at, queue, retention, "terminal", prio, score, now, wake, digest, input, tags,
      attempt, attempt_id, attempt_type, "succeeded", started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl, "complete",
      now, "success", result or false,
    }))
  end
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
