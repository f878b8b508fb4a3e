-- A quota: what each of its keys allows, and which keys are in use.
local keys = require "lib.keys"
local timers = require "index.timers"

local quota = {}

-- A definition as a packed list: the same definition is the same text.
function quota.pack(q)
  local rate = q.rate and { q.rate.limit, q.rate.window_ms, q.rate.mode } or false
  local weighted = q.weighted and { q.weighted.limit, q.weighted.window_ms } or false
  return cmsgpack.pack({ q.namespace, rate, q.concurrency or false, weighted, q.hold_while_suspended })
end

local function unpack_definition(id, packed)
  local list = cmsgpack.unpack(packed)
  return {
    quota_id = id, namespace = list[1], rate = list[2] and { limit = list[2][1], window_ms = list[2][2], mode = list[2][3] } or nil, concurrency = list[3] or nil,
    weighted = list[4] and { limit = list[4][1], window_ms = list[4][2] } or nil, hold_while_suspended = list[5],
  }
end

-- The quota, read once per plan; one that is being deleted is found only by those who ask for it.
function quota.load(tx, id, deleted_too)
  local key = keys.quota(tx, id)
  local q = tx.memo[key]
  if q == nil then
    local raw = tx:hgetall(key)
    if raw == nil then return nil end
    if raw.definition == nil or tonumber(raw.version) == nil then error("CORRUPT " .. key .. " definition") end
    q = {
      id = id, raw = raw, definition = unpack_definition(id, raw.definition), version = tonumber(raw.version), created = tonumber(raw.created), changed = tonumber(raw.changed),
      -- The number of the last key that came into use; that of the last key a walk has looked at, while one is under way.
      last = tonumber(raw.last), walked = tonumber(raw.walked or nil), deleted = raw.deleted ~= nil,
    }
    tx.memo[key] = q
  end
  if q.deleted and not deleted_too then return nil end
  return q
end

-- How many keys it has that are in use is read by whoever asks: `count`.
function quota.typed(q, count)
  return { quota = q.definition, version = q.version, created_at = q.created, keys = count }
end

-- The facts of an event about a quota.
function quota.told(id, actor, key)
  local data = { "quota_id", id }
  if key then data[3], data[4] = "key", key end
  if actor then data[#data + 1], data[#data + 2] = "actor", actor end
  return data
end

-- The digest under which a key is kept.
function quota.digest(key)
  return keys.digest(key)
end

-- Plans the entry of a key that comes into use.
function quota.enter_key(tx, q, digest)
  q.last = q.last + 1
  tx:hset(keys.quota(tx, q.id), { "last", q.last })
  tx:zadd(keys.quota_keys(tx, q.id), q.last, digest)
end

function quota.leave_key(tx, q, digest)
  tx:zrem(keys.quota_keys(tx, q.id), digest)
end

-- Its timer walks over its keys after a change.
function quota.timer(id)
  return "quota:" .. id
end

function quota.walk(tx, q)
  tx:hset(keys.quota(tx, q.id), { "walked", 0 })
  timers.set(tx, quota.timer(q.id), tx.now)
end

return quota
