local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local holders = require "index.holders"

define.fn {
  name = "ff_release_holders",
  doc = "Takes holders out of a holder set; who is not in it is passed over. A full set that has room again says so.",
  flags = { "allow-oom" },
  args = { set = "holder_set", holders = "holders" },
  reply = { released = { count = "count", held = "count" } },
  errs = {},
  call = function(tx, a)
    local key = keys.holders(tx, a.set)
    local before, count = tx:zcard(key), 0
    for _, holder in ipairs(a.holders) do
      local member = holders.member(holder)
      if tx:zscore(key, member) then
        tx:zrem(key, member)
        count = count + 1
      end
    end
    if count > 0 then
      local capacity = holders.capacity(tx, a.set)
      local limit = capacity and capacity.limit
      holders.announce_room(tx, a.set, limit, before, limit, before - count)
    end
    return reply.ok("released", { count = count, held = before - count })
  end,
}
