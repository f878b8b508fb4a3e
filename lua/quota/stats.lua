local define = require "lib.define"
local holds = require "record.holds"
local keys = require "lib.keys"
local quota = require "record.quota"
local reply = require "lib.reply"
local quota_key = require "index.quota_key"

-- Of the keys that came into use first, a bounded number: how many slots are held, how many executions wait, how many
-- keys are throttled.
local function stats_of(tx, q, keys_max)
  local s = {
    quota_id = q.id, namespace = q.definition.namespace, created_at = q.created,
    keys = tx:zcard(keys.quota_keys(tx, q.id)), looked = 0, held = 0, waiting = 0, throttled = 0,
  }
  if s.keys == 0 then return s end
  for _, item in ipairs(tx:zlowest(keys.quota_keys(tx, q.id), "-inf", "+inf", keys_max)) do
    local function part(name) return keys.quota_part(tx, q.id, name, item.member) end
    local throttled = quota_key.throttled(tx, q.id, item.member)
    s.looked = s.looked + 1
    s.held = s.held + tx:zcard(keys.holders(tx, holds.of_quota(q.id, item.member)))
    s.waiting = s.waiting + tx:zcard(part("waiters")) + tx:zcard(part("oversized"))
    if throttled and throttled > tx.now then s.throttled = s.throttled + 1 end
  end
  return s
end

define.fn {
  name = "ff_quota_stats",
  doc = "The quotas of this partition that were made first, at most `limit`, and how they stand over their keys that "
    .. "came into use first, at most `keys_max` of each; `quotas` is how many there are.",
  flags = { "no-writes" },
  args = { limit = "batch_size", keys_max = "batch_size" },
  reply = { stats = { items = "[quota_standing]", quotas = "count" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for _, item in ipairs(tx:zlowest(keys.quotas(tx), "-inf", "+inf", a.limit)) do
      local q = quota.load(tx, item.member)
      if q then items[#items + 1] = stats_of(tx, q, a.keys_max) end
    end
    return reply.ok("stats", { items = items, quotas = tx:zcard(keys.quotas(tx)) })
  end,
}
