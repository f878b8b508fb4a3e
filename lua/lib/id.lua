-- Ids made from ids that callers gave.
local id = {}

-- The last four digits counted on.
function id.counted(given, count)
  local last = (tonumber(string.sub(given, 33), 16) + count) % 65536
  return string.sub(given, 1, 32) .. string.format("%04x", last)
end

-- An id that only these make, of the same partition.
function id.derived(given, ...)
  local h = redis.sha1hex(table.concat({ given, ... }, ":"))
  local function part(from, to) return string.sub(h, from, to) end
  return part(1, 8) .. "-" .. part(9, 12) .. "-8" .. part(13, 15) .. "-a" .. part(16, 18) .. "-" .. part(19, 26)
    .. string.sub(given, 33)
end

-- An id that only these make, of any partition.
function id.made(...)
  local h = redis.sha1hex(table.concat({ ... }, ":"))
  local function part(from, to) return string.sub(h, from, to) end
  return part(1, 8) .. "-" .. part(9, 12) .. "-8" .. part(13, 15) .. "-a" .. part(16, 18) .. "-" .. part(19, 30)
end

return id
