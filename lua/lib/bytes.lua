-- Pieces of msgpack, for what is packed so often that it is put together by hand. To join texts takes a fraction of
-- what it takes to build a list and to pack it. Each piece is what `cmsgpack.pack` makes of the value.
local bytes = {}

local pack, char, floor = cmsgpack.pack, string.char, math.floor

-- What stands in front of a text of so many bytes.
bytes.head = setmetatable({}, { __index = function(_, n)
  if n > 65535 then error("a text of " .. n .. " bytes is too long for a piece") end
  return "\218" .. char(floor(n / 256), n % 256)
end })
for n = 0, 31 do bytes.head[n] = char(160 + n) end
for n = 32, 255 do bytes.head[n] = "\217" .. char(n) end

-- Small numbers, and those that were packed lately: the numbers of one list are much the same.
local small = {}
for n = 0, 127 do small[n] = char(n) end
local lately, count = {}, 0
local lately_max = 256

function bytes.number(n)
  local piece = small[n] or lately[n]
  if piece == nil then
    if count == lately_max then lately, count = {}, 0 end
    piece, count = pack(n), count + 1
    lately[n] = piece
  end
  return piece
end

-- What stands in front of a list of so many values.
function bytes.list(n)
  return n < 16 and char(144 + n) or "\220" .. char(floor(n / 256), n % 256)
end

-- What is absent.
bytes.none = "\194"

-- A text, or nothing.
function bytes.text(s)
  return s and bytes.head[#s] .. s or bytes.none
end

return bytes
