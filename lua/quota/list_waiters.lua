local define = require "lib.define"
local quota = require "record.quota"
local reply = require "lib.reply"
local awaits = require "index.awaits"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_list_quota_waiters",
  doc = "Who waits under a key of a quota, the next to be called first, and how many do; those that can never pass "
    .. "come last. An execution that ended meanwhile is in line until it is called.",
  flags = { "no-writes" },
  args = { quota_id = "quota_id", key = "quota_key", after = "awaits_position?", limit = "batch_size" },
  reply = { waiting = { items = "[quota_waiter]", count = "count", next = "awaits_position?" } },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local k = quota_key.load(tx, q, quota.digest(a.key), a.key, true)
    local items, last = {}, nil
    for _, line in ipairs({ k.waiters, k.oversized }) do
      local never = line == k.oversized
      -- A position says in which of the two lines it is.
      local after = a.after and (a.after.never or false) == never and a.after or nil
      if not (a.after and a.after.never and not never) then
        for _, item in ipairs(awaits.page(tx, line, after, a.limit - #items)) do
          items[#items + 1] = { execution_id = item.member, score = item.score, never = never }
          last = { score = item.score, execution_id = item.member, never = never }
        end
      end
    end
    return reply.ok("waiting", {
      items = items, count = k.waiting + k.too_large, next = #items == a.limit and last or nil,
    })
  end,
}
