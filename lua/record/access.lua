-- What the bearer of a token may do. The token itself is nowhere: only its digest, which finds the record.
local keys = require "lib.keys"
local packed = require "record.packed"

local access = {}

function access.open(raw)
  return packed.open_access("access", raw)
end

-- The record by its id; nil when there is none.
function access.load(tx, id)
  local raw = tx:hget(keys.access(tx), id)
  return raw and access.open(raw) or nil
end

function access.save(tx, record)
  tx:hset(keys.access(tx), { record.access_id, packed.close_access(record) })
  tx:hset(keys.access_digests(tx), { record.digest, record.access_id })
end

function access.remove(tx, record)
  tx:hdel(keys.access(tx), record.access_id)
  tx:hdel(keys.access_digests(tx), record.digest)
end

-- The typed form: without the digest.
function access.typed(record)
  return {
    access_id = record.access_id, name = record.name, roles = record.roles, namespaces = record.namespaces,
    lanes = record.lanes, capabilities = record.capabilities, created_at = record.created_at,
    created_by = record.created_by, expires_at = record.expires_at,
  }
end

return access
