local define = require "lib.define"
local keys = require "lib.keys"
local quota = require "record.quota"
local reply = require "lib.reply"
local capacity = require "index.quota_capacity"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_list_quota_keys",
  doc = "The keys of a quota that are in use, in the order of their first use, with the holder set of each; `next` "
    .. "says where to go on.",
  flags = { "no-writes" },
  args = { quota_id = "quota_id", after = "count", limit = "batch_size" },
  reply = { page = { items = "[quota_key_use]", next = "count?" } },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local items, last = {}, nil
    local from = "(" .. string.format("%.0f", a.after)
    for i, item in ipairs(tx:zlowest(keys.quota_keys(tx, q.id), from, "+inf", a.limit)) do
      local k = quota_key.load(tx, q, item.member, nil, true)
      local throttled = k.throttled and k.throttled > tx.now and k.throttled or nil
      items[i] = {
        set = k.set,
        state = {
          key = k.key or "?", parts = capacity.uses(tx, k), held = k.held, waiting = k.waiting + k.too_large,
          throttled_until = throttled,
        },
      }
      last = item.score
    end
    return reply.ok("page", { items = items, next = #items == a.limit and last or nil })
  end,
}
