-- Effects owed to other partitions; each is applied at least once and is safe to repeat.
local keys = require "lib.keys"

local outbox = {}

-- `data` is a flat list of texts: name, value, …
function outbox.owe(tx, kind, data)
  tx:xadd(keys.outbox(tx), "e", cmsgpack.pack({ kind, tx.now, data }))
  tx:announce("fleet")
end

function outbox.parse(entry)
  local e = cmsgpack.unpack(entry[2][2])
  local data = {}
  for i = 1, #e[3], 2 do data[e[3][i]] = e[3][i + 1] end
  return { id = entry[1], type = e[1], at = e[2], data = data }
end

return outbox
