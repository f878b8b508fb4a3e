local define = require "lib.define"
local reply = require "lib.reply"
local keys = require "lib.keys"
local limits = require "lib.limits"

define.fn {
  name = "ff_heartbeat_server",
  doc = "Keeps a server's record alive and answers every live one: partitions are shared among them.",
  flags = { "allow-oom" },
  args = { server_id = "uuid", listening = "bool", leave = "bool?" },
  reply = { servers = { items = "[server]" } },
  errs = {},
  call = function(tx, a, now)
    local key = keys.servers(tx)
    local ids, found = {}, tx:hgetall(key) or {}
    local mine = { now + limits.server_ttl_ms, a.listening }
    if a.leave then
      tx:hdel(key, a.server_id)
      found[a.server_id] = nil
    else
      found[a.server_id] = cmsgpack.pack(mine)
      tx:hset(key, { a.server_id, found[a.server_id] })
    end
    for id in pairs(found) do ids[#ids + 1] = id end
    table.sort(ids)
    local items = {}
    for _, id in ipairs(ids) do
      local record = cmsgpack.unpack(found[id])
      if record[1] > now then
        items[#items + 1] = { server_id = id, expires_at = record[1], listening = record[2] }
      elseif record[1] + 10 * limits.server_ttl_ms < now then
        tx:hdel(key, id)
      end
    end
    return reply.ok("servers", { items = items })
  end,
}
