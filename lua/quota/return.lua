local define = require "lib.define"
local holds = require "record.holds"
local keys = require "lib.keys"
local quota = require "record.quota"
local reply = require "lib.reply"
local holders = require "index.holders"
local room = require "index.room"

-- The quota or its key is gone: only the holder is left to go.
local function leave_alone(tx, a, item)
  local key, member = keys.holders(tx, holds.of_quota(a.quota_id, item.key_digest)), holders.member(item)
  if tx:zscore(key, member) == nil then return false end
  tx:zrem(key, member)
  return true
end

define.fn {
  name = "ff_return_quota",
  doc = "Takes holders out of a quota; who is not in it is passed over. Who never ran gives back what its start took. Whoever waits for the room is called.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", items = "quota_returns" },
  reply = { returned = { count = "count" } },
  errs = {},
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    local known, order, count = {}, {}, 0
    for _, item in ipairs(a.items) do
      local k = known[item.key_digest]
      if k == nil then
        k = q and room.load(tx, q, item.key_digest) or false
        known[item.key_digest] = k
      end
      local left
      if k then
        left = room.leave(tx, k, holders.member(item), item.unused)
        if left and not k.touched then
          k.touched, order[#order + 1] = true, k
        end
      else
        left = leave_alone(tx, a, item)
      end
      if left then count = count + 1 end
    end
    for _, k in ipairs(order) do room.save(tx, k) end
    return reply.ok("returned", { count = count })
  end,
}
