local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local holders = require "index.holders"

define.fn {
  name = "ff_set_capacity",
  doc = "Says how many holders a holder set has room for; without a limit it takes all. An older version never "
    .. "replaces a newer one.",
  flags = { "allow-oom" },
  args = { set = "holder_set", limit = "max_active?", version = "count" },
  reply = { set = { held = "count" }, newer = { version = "count" } },
  errs = {},
  call = function(tx, a)
    local capacity = holders.capacity(tx, a.set)
    local held = tx:zcard(keys.holders(tx, a.set))
    if capacity and capacity.version > a.version then return reply.ok("newer", { version = capacity.version }) end
    local key = keys.capacity(tx, a.set)
    tx:hset(key, { "version", a.version })
    if a.limit then tx:hset(key, { "limit", a.limit }) else tx:hdel(key, "limit") end
    if capacity then holders.announce_room(tx, a.set, capacity.limit, held, a.limit, held) end
    return reply.ok("set", { held = held })
  end,
}
