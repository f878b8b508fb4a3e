-- A registered worker instance: what it serves and what it can do. Until when it counts as alive stands in one sorted
-- set for the whole fleet, so that a server keeps all its workers alive with one write; one timer watches its head.
local keys = require "lib.keys"
local limits = require "lib.limits"
local timers = require "index.timers"

local worker = {}

worker.timer = "fleet:workers"

-- The registration, with its end when it is alive or not yet swept.
function worker.load(tx, instance, expires_at)
  local raw = tx:hgetall(keys.worker(tx, instance))
  if raw == nil then return nil end
  return {
    instance = instance, worker_id = raw.worker_id, namespace = raw.namespace, lanes = cmsgpack.unpack(raw.lanes),
    capabilities = cmsgpack.unpack(raw.capabilities), slots = tonumber(raw.slots), state = raw.state,
    incarnation = raw.incarnation, owner = raw.owner, registered_at = tonumber(raw.registered_at),
    kinds = raw.kinds and cmsgpack.unpack(raw.kinds) or nil,
    expires_at = expires_at or tx:zscore(keys.workers(tx), instance) or 0,
  }
end

-- Plans the registration and its end.
function worker.save(tx, w)
  local key = keys.worker(tx, w.instance)
  tx:hset(key, {
    "worker_id", w.worker_id, "namespace", w.namespace, "lanes", cmsgpack.pack(w.lanes),
    "capabilities", cmsgpack.pack(w.capabilities), "slots", w.slots, "state", w.state,
    "registered_at", w.registered_at,
  })
  if w.incarnation then tx:hset(key, { "incarnation", w.incarnation }) else tx:hdel(key, "incarnation") end
  if w.kinds then tx:hset(key, { "kinds", cmsgpack.pack(w.kinds) }) else tx:hdel(key, "kinds") end
  if w.owner then tx:hset(key, { "owner", w.owner }) else tx:hdel(key, "owner") end
  if w.state ~= "draining" then tx:hdel(keys.draining(tx), w.instance) end
  worker.touch(tx, w.instance)
  if tx:zscore(keys.timers(tx), worker.timer) == nil then timers.set(tx, worker.timer, w.expires_at) end
end

-- Moves the end of a registration. The timer stays: it looks again when it fires.
function worker.touch(tx, instance)
  tx:zadd(keys.workers(tx), tx.now + limits.worker_ttl_ms, instance)
end

function worker.drain(tx, instance)
  tx:hset(keys.worker(tx, instance), { "state", "draining" })
  tx:hset(keys.draining(tx), { instance, "1" })
end

-- The nonce of the challenge the holder answered last.
function worker.answered(tx, instance)
  return tx:hget(keys.worker(tx, instance), "answered")
end

function worker.answer(tx, instance, nonce)
  tx:hset(keys.worker(tx, instance), { "answered", nonce })
end

function worker.remove(tx, w)
  tx:del(keys.worker(tx, w.instance))
  tx:zrem(keys.workers(tx), w.instance)
  tx:hdel(keys.draining(tx), w.instance)
  tx:announce("fleet")
end

-- Instances in the order of their names, each with its end.
function worker.all(tx)
  local flat = tx:zrange(keys.workers(tx), "0", "-1", "WITHSCORES")
  local list = {}
  for i = 1, #flat, 2 do list[#list + 1] = { instance = flat[i], expires_at = tonumber(flat[i + 1]) } end
  table.sort(list, function(a, b) return a.instance < b.instance end)
  return list
end

return worker
