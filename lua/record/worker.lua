-- A registered worker instance: what it serves, what it can do, until when it counts as alive.
local keys = require "lib.keys"
local limits = require "lib.limits"
local timers = require "index.timers"

local worker = {}

function worker.load(tx, instance)
  local raw = tx:hgetall(keys.worker(tx, instance))
  if raw == nil then return nil end
  return {
    instance = instance, worker_id = raw.worker_id, namespace = raw.namespace, lanes = cmsgpack.unpack(raw.lanes),
    capabilities = cmsgpack.unpack(raw.capabilities), slots = tonumber(raw.slots), state = raw.state, incarnation = raw.incarnation,
    registered_at = tonumber(raw.registered_at), expires_at = tonumber(raw.expires_at),
  }
end

-- Plans the record, its list entry and its expiry.
function worker.save(tx, w)
  local key = keys.worker(tx, w.instance)
  tx:hset(key, {
    "worker_id", w.worker_id, "namespace", w.namespace, "lanes", cmsgpack.pack(w.lanes), "capabilities", cmsgpack.pack(w.capabilities),
    "slots", w.slots, "state", w.state, "registered_at", w.registered_at, "expires_at", w.expires_at,
  })
  if w.incarnation then tx:hset(key, { "incarnation", w.incarnation }) else tx:hdel(key, "incarnation") end
  tx:zadd(keys.workers(tx), w.registered_at, w.instance)
  timers.set(tx, "worker:" .. w.instance, w.expires_at)
end

function worker.touch(tx, w)
  w.expires_at = tx.now + limits.worker_ttl_ms
  tx:hset(keys.worker(tx, w.instance), { "expires_at", w.expires_at })
  tx:zadd(keys.timers(tx), w.expires_at, "worker:" .. w.instance)
end

function worker.remove(tx, w)
  tx:del(keys.worker(tx, w.instance))
  tx:zrem(keys.workers(tx), w.instance)
  timers.clear(tx, "worker:" .. w.instance)
  tx:announce("fleet")
end

return worker
