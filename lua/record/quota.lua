-- A quota: what each of its keys allows, and which keys are in use.
local holds = require "record.holds"
local keys = require "lib.keys"
local packed = require "record.packed"
local timers = require "index.timers"

local quota = {}

-- A definition as a packed list: the same definition is the same text.
function quota.pack(q)
  local rate = q.rate and { q.rate.limit, q.rate.window_ms, q.rate.mode } or false
  local weighted = q.weighted and { q.weighted.limit, q.weighted.window_ms } or false
  return cmsgpack.pack({ q.namespace, rate, q.concurrency or false, weighted, q.hold_while_suspended })
end

local function unpack_definition(id, bytes)
  local list = cmsgpack.unpack(bytes)
  return {
    quota_id = id, namespace = list[1],
    rate = list[2] and { limit = list[2][1], window_ms = list[2][2], mode = list[2][3] } or nil,
    concurrency = list[3] or nil, weighted = list[4] and { limit = list[4][1], window_ms = list[4][2] } or nil,
    hold_while_suspended = list[5],
  }
end

-- The quota, read once per plan; one that is being deleted is found only by those who ask for it.
function quota.load(tx, id, deleted_too)
  local key = keys.quota(tx, id)
  local q = tx.memo[key] or tx:found(key)
  if q == nil then
    local stored = tx:record(key)
    if stored == nil then return nil end
    q = packed.open_quota(key, stored)
    q.id, q.packed = id, q.definition
    q.definition = unpack_definition(id, q.packed)
    tx.memo[key] = q
    tx:keep(key, q)
  end
  if q.deleted and not deleted_too then return nil end
  return q
end

local function close(q)
  return packed.close_quota({
    definition = q.packed, version = q.version, created = q.created, changed = q.changed, last = q.last,
    walked = q.walked, deleted = q.deleted, tail = q.tail,
  })
end

-- Plans the record.
function quota.save(tx, q)
  local key = keys.quota(tx, q.id)
  tx.memo[key] = q
  tx:put(key, q, close)
end

-- A quota that is not stored yet; `bytes` are its packed definition.
function quota.new(tx, id, bytes)
  return { id = id, packed = bytes, version = 1, created = tx.now, changed = tx.now, last = 0 }
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

-- The digest under which a key is kept; those of a few keys are remembered.
local digests, digest_count = {}, 0
function quota.digest(key)
  local digest = digests[key]
  if digest == nil then
    if digest_count >= 256 then digests, digest_count = {}, 0 end
    digest = keys.digest(key)
    digests[key], digest_count = digest, digest_count + 1
  end
  return digest
end

-- The set that stays with an execution under a key while its attempt is set aside; nil when none does.
function quota.kept_set(q, key)
  return q.definition.hold_while_suspended and holds.of_quota(q.id, quota.digest(key)) or nil
end

-- Plans the entry of a key that comes into use.
function quota.enter_key(tx, q, digest)
  q.last = q.last + 1
  quota.save(tx, q)
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
  q.walked = 0
  quota.save(tx, q)
  timers.set(tx, quota.timer(q.id), tx.now)
end

return quota
