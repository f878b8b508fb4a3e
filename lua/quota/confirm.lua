local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local holders = require "index.holders"

define.fn {
  name = "ff_confirm_holders",
  doc = "Moves the deadlines of holders whose executions were asked for: without one they stay until released. Who has "
    .. "left does not come back.",
  flags = { "allow-oom" },
  args = { set = "holder_set", holders = "holders" },
  reply = { confirmed = { count = "count" } },
  errs = {},
  call = function(tx, a)
    local key = keys.holders(tx, a.set)
    local count, first = 0, nil
    for _, holder in ipairs(a.holders) do
      local member = holders.member(holder)
      if tx:zscore(key, member) then
        tx:zadd(key, holder.expires_at or holders.open_ended, member)
        count = count + 1
        if holder.expires_at then first = math.min(first or holder.expires_at, holder.expires_at) end
      end
    end
    if first then holders.watch(tx, a.set, first) end
    return reply.ok("confirmed", { count = count })
  end,
}
