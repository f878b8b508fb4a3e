-- The three transitions that most executions make, for those that are nothing special: submitted with what every
-- submission says, started for the first time, completed. Each reads and packs the record's values by their places,
-- without a table of them, and plans its writes at once. Whatever is not plain is left to the general transitions,
-- which would do the same step by step: a test runs both ways and compares what is stored.
local bytes = require "lib.bytes"
local keys = require "lib.keys"
local admit = require "transition.admit"
local asks = require "record.asks"
local home = require "index.home"
local holds = require "record.holds"
local lane = require "record.lane"
local limits = require "lib.limits"
local member = require "transition.member"
local packed = require "record.packed"
local queues = require "index.queues"
local running = require "record.running"

local plain = {}

local pack, values = cmsgpack.pack, packed.values
local select, floor, pairs = select, math.floor, pairs
local started_of, completed_of = bytes.list(27), bytes.list(30)
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

-- The quotas and budgets a submission names, when it says nothing else that is rare; else nil.
local function asks_of(more)
  for name in pairs(more) do
    if name ~= "quotas" and name ~= "budgets" then return nil end
  end
  local quotas, budgets = more.quotas, more.budgets
  if (quotas and #quotas == 0) or (budgets and #budgets ~= 1) then return nil end
  return asks.packed(quotas, budgets)
end

-- Accepts a submission that says nothing rare, in a lane that asks for nothing rare. Answers nil when it is not plain.
function plain.submit(tx, s)
  local path, class, more, named = s.namespace .. "/" .. s.lane, "any", s.more, false
  if more then
    named, class = asks_of(more), "admit.any"
    if not named then return nil end
  end
  local copy = lane.load(tx, path)
  if copy == nil or copy.state ~= "active" or copy.max_depth or copy.fairness ~= "fifo" or copy.retry
    or copy.attempt_timeout_ms
  then
    return nil
  end
  lane.prepare(tx, copy)
  if lane.recall(tx, copy, "uncovered") then return nil end
  local id, kind, now, input = s.execution_id, s.kind, tx.now, s.input
  local key = keys.core(tx, id)
  if tx:record(key) then return nil end
  local prio = s.priority or 0
  local score = now - prio * copy.priority_weight
  local has_input, retention = input and input ~= "", s.retention_ms or copy.retention_ms or week_ms
  local record, told = running.submitted(
    tx, id, path, kind, class, retention, prio, score, s.body_digest, has_input, named
  )
  tx:set(key, record)
  if has_input then tx:set(key .. ":input", input) end
  local name = queues.name(class, kind)
  -- A quiet queue stands among the heads with something older already.
  local quiet = queues.quiet(tx, copy, name)
  if prio > 0 or not quiet then queues.entered(tx, path, name, nil, score) end
  tx:zadd(keys.queue(tx, path, class, kind), score, id)
  tx:zadd(keys.all(tx), now, id)
  tx:zadd(keys.kind(tx, kind), now, id)
  if prio > 0 or not quiet then tx:announce("ready", path, name, score) end
  tx:note(told)
  return created(id)
end

-- Starting --------------------------------------------------------------------------------------

-- Writes the start of an execution; `holds` is what it holds.
local function lease(
  tx, key, id, holder, lease_id, attempt_id, waited_from,
  path, kind, created_at, queue, retention, prio, score, digest, input, tags, named, held
)
  local now, worker, ttl = tx.now, holder.instance, holder.lease_ttl_ms
  local wake = now + ttl
  local record, told = running.started(
    tx, id, attempt_id, lease_id, worker, holder.worker_id, wake, ttl, now - waited_from,
    path, kind, created_at, queue, retention, prio, score, digest, input, tags, named, held, false
  )
  record = started_of .. record
  tx:set(key, record)
  tx:zadd(keys.timers(tx), wake, id)
  tx:zadd(keys.queue(tx, path, queue, kind), active_from + created_at, id)
  tx:hput(keys.leases(tx, worker), lease_id, id)
  tx:note(told)
  return record, wake
end

local function start(
  tx, id, holder, lease_id, attempt_id, room,
  key, path, kind, created_at, queue, retention, phase, prio, score, updated, wake_at, digest, input, tags, named, held,
  ...
)
  if phase ~= "runnable" or named then return nil end
  if select("#", ...) > 0 then
    return member.start(
      tx, id, holder, lease_id, attempt_id, room,
      key, path, kind, created_at, queue, retention, phase, prio, score, updated, wake_at, digest, input, tags, named,
      held, ...
    )
  end
  local bytes = input and tx:get(key .. ":input") or ""
  if room and #bytes > room then return false end
  local record, wake = lease(
    tx, key, id, holder, lease_id, attempt_id, created_at,
    path, kind, created_at, queue, retention, prio, score, digest, input, tags, false, false
  )
  return record, wake, bytes
end

-- Leases an execution that never ran. Answers nil when it is not plain, false when its input needs more than the room
-- there is, else the packed record, when it wakes, and its input.
function plain.start(tx, id, holder, lease_id, attempt_id, room)
  local key = keys.core(tx, id)
  local stored = tx:record(key)
  if stored == nil then return nil end
  return start(tx, id, holder, lease_id, attempt_id, room, values(key, stored))
end

-- The values of a record in a table.
local function listed(_, ...)
  return { ... }
end

-- An execution that never ran, is part of nothing and needs admission, as it asks for it. Answers nil when it is not
-- plain, or its input needs more than the room there is.
function plain.asking(tx, id, lease_id, room)
  local key = keys.core(tx, id)
  local stored = tx:record(key)
  if stored == nil then return nil end
  local v = listed(values(key, stored))
  if #v ~= 15 or v[6] ~= "runnable" or not v[14] or v[15] then return nil end
  local input = v[12] and tx:get(key .. ":input") or ""
  if room and #input > room then return nil end
  return admit.asker(id, lease_id, nil, v[8], asks.open(v[14]), #input, v, input)
end

-- Leases one that was let in. Answers the packed record and when it wakes.
function plain.start_admitted(tx, one, holder, attempt_id)
  local v, id = one.v, one.execution_id
  return lease(
    tx, keys.core(tx, id), id, holder, one.holder_id, attempt_id, v[3],
    v[1], v[2], v[3], v[4], v[5], v[7], v[8], v[11], v[12], v[13], v[14], holds.all
  )
end

-- Completing ------------------------------------------------------------------------------------

local completed = { ok = "completed" }

-- Owes back everything an execution names. False, with nothing planned, when the call cannot do that.
local function owe_back(tx, id, holder, sets)
  for i = 1, #sets do
    if not holds.near(tx, sets[i]) then return false end
  end
  for i = 1, #sets do tx:owe("release", sets[i], id, holder) end
  return true
end

local function complete(
  tx, c,
  key, path, kind, created_at, queue, retention, phase, prio, score, updated, wake_at, digest, input, tags, named, held,
  attempt, attempt_id, attempt_type, state, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl,
  ended_by, ...
)
  local f, now, id = c.fence, tx.now, c.execution_id
  if phase ~= "active" or epoch ~= f.lease_epoch or lease_id ~= f.lease_id
    or attempt_id ~= f.attempt_id or now >= lease_until
  then
    return nil
  end
  if select("#", ...) > 0 then
    return member.complete(
      tx, id, c.result,
      key, path, kind, created_at, queue, retention, phase, prio, score, updated, wake_at, digest, input, tags, named,
      held, attempt, attempt_id, attempt_type, state, started, lease_id, epoch, worker, worker_id, lease_until,
      lease_ttl, ended_by, ...
    ) and completed or nil
  end
  if held and (held ~= holds.all or not owe_back(tx, id, lease_id, asks.open(named).sets)) then return nil end
  local wake = now + retention
  local record, told = running.completed(
    tx, id, wake, now - floor(epoch / 1000), c.result or false, false,
    path, kind, created_at, queue, retention, prio, score, digest, input, tags, named,
    attempt, attempt_id, attempt_type, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl
  )
  tx:set(key, completed_of .. record)
  tx:zadd(keys.timers(tx), wake, id)
  tx:zrem(keys.queue(tx, path, queue, kind), id)
  tx:zadd(keys.place(tx, path, "terminal"), created_at, id)
  tx:hdel(keys.leases(tx, worker), lease_id)
  tx:note(told)
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
