local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local holders = require "index.holders"

define.fn {
  name = "ff_list_holders",
  doc = "Who is in a holder set, the earliest deadline first and those without one last, and how much room it has.",
  flags = { "no-writes" },
  args = { set = "holder_set", offset = "count", limit = "list_limit" },
  reply = {
    holders = { items = "[holder]", held = "count", capacity = "max_active?", version = "count?", now = "time_ms" },
  },
  errs = {},
  call = function(tx, a)
    local key = keys.holders(tx, a.set)
    local capacity = holders.capacity(tx, a.set)
    local items = {}
    for i, item in ipairs(tx:zlowest(key, "-inf", "+inf", a.limit, a.offset)) do items[i] = holders.typed(item) end
    return reply.ok("holders", {
      items = items, held = tx:zcard(key), capacity = capacity and capacity.limit,
      version = capacity and capacity.version, now = tx.now,
    })
  end,
}
