-- The list indexes: every execution by creation time, once under all, under its kind and under each tag.
local keys = require "lib.keys"
local spec = require "record.spec"

local lists = {}

local function tag_keys(tx, packed)
  local out = {}
  local flat = packed and cmsgpack.unpack(packed) or {}
  for i = 1, #flat, 2 do out[#out + 1] = keys.tag(tx, flat[i], flat[i + 1]) end
  return out
end

function lists.add(tx, rec)
  local created = rec.created
  tx:zadd(keys.all(tx), created, rec.id)
  tx:zadd(keys.kind(tx, rec.kind), created, rec.id)
  if rec.tags == nil then return end
  for _, key in ipairs(tag_keys(tx, rec.tags)) do tx:zadd(key, created, rec.id) end
end

function lists.remove(tx, rec)
  tx:zrem(keys.all(tx), rec.id)
  tx:zrem(keys.kind(tx, rec.kind), rec.id)
  for _, key in ipairs(tag_keys(tx, rec.tags)) do tx:zrem(key, rec.id) end
end

-- Replaces the execution's tags.
function lists.retag(tx, rec, tags)
  for _, key in ipairs(tag_keys(tx, rec.tags)) do tx:zrem(key, rec.id) end
  rec.tags = next(tags) and cmsgpack.pack(spec.flatten(tags)) or nil
  for _, key in ipairs(tag_keys(tx, rec.tags)) do tx:zadd(key, rec.created, rec.id) end
end

return lists
