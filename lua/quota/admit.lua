local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local holders = require "index.holders"

define.fn {
  name = "ff_admit_holders",
  doc = "Enters holders into a holder set, in order, as far as there is room, each until its deadline; who is in it "
    .. "already stays. `counted` enters executions that run already, room or not.",
  flags = { "allow-oom" },
  args = { set = "holder_set", holders = "candidates", counted = "bool?" },
  reply = { admitted = { holder_ids = "[holder_id]", held = "count", limit = "max_active?" } },
  errs = { "capacity_unknown" },
  call = function(tx, a)
    local capacity = holders.capacity(tx, a.set)
    if capacity == nil and not a.counted then return reply.err("capacity_unknown", { set = a.set }) end
    local limit = capacity and capacity.limit
    local key = keys.holders(tx, a.set)
    local held, admitted, first = tx:zcard(key), {}, nil
    for _, holder in ipairs(a.holders) do
      local member, deadline = holders.member(holder), holder.expires_at
      local inside = tx:zscore(key, member) ~= nil
      if not inside and (a.counted or (deadline > tx.now and (limit == nil or held < limit))) then
        tx:zadd(key, deadline, member)
        held, inside = held + 1, true
        first = math.min(first or deadline, deadline)
      end
      if inside then admitted[#admitted + 1] = holder.holder_id end
    end
    if first then holders.watch(tx, a.set, first) end
    return reply.ok("admitted", { holder_ids = admitted, held = held, limit = limit })
  end,
}
