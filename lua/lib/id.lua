-- Ids made from ids that callers gave.
local id = {}

-- The last four digits counted on.
function id.counted(given, count)
  local last = (tonumber(string.sub(given, 33), 16) + count) % 65536
  return string.sub(given, 1, 32) .. string.format("%04x", last)
end

return id
