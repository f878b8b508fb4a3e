local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_note_keys",
  doc = "Notes the ids of a process's token keys, never the keys. A process that shares no id with what is noted is "
    .. "told: its tokens would be nobody else's.",
  flags = { "allow-oom" },
  args = { key_ids = "key_ids", gone = "key_ids?" },
  reply = { noted = { key_ids = "key_ids" }, foreign = { key_ids = "key_ids" } },
  errs = {},
  call = function(tx, a)
    local known = tx:hgetall(keys.keyring(tx)) or {}
    local shared = next(known) == nil
    for _, id in ipairs(a.key_ids) do shared = shared or known[id] ~= nil end
    if shared then
      for _, id in ipairs(a.gone or {}) do
        if known[id] then tx:hdel(keys.keyring(tx), id) end
        known[id] = nil
      end
      for _, id in ipairs(a.key_ids) do
        if known[id] == nil then
          tx:hset(keys.keyring(tx), { id, tx.now })
          known[id] = true
        end
      end
    end
    local ids = {}
    for id in pairs(known) do ids[#ids + 1] = id end
    table.sort(ids)
    return reply.ok(shared and "noted" or "foreign", { key_ids = ids })
  end,
}
