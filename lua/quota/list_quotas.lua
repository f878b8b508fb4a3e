local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local quota = require "record.quota"
local reply = require "lib.reply"

define.fn {
  name = "ff_list_quotas",
  doc = "Quotas of this partition, newest first; a page may be short, `more` says whether to go on after `last`.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", after = "quota_position?", limit = "list_limit" },
  reply = { page = { items = "[quota_entry]", last = "quota_position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local looks = limits.list_looks_max
    local top = a.after and string.format("%.0f", a.after.created_at) or "+inf"
    local found = tx:zhighest(keys.quotas(tx), top, "-inf", looks)
    local items, last, more = {}, nil, #found == looks
    for _, item in ipairs(found) do
      local seen = a.after and item.score == a.after.created_at and item.member >= a.after.quota_id
      if not seen then
        if #items >= a.limit then
          more = true
          break
        end
        local q = quota.load(tx, item.member)
        if q and (a.namespace == nil or q.definition.namespace == a.namespace) then
          items[#items + 1] = quota.typed(q, tx:zcard(keys.quota_keys(tx, q.id)))
        end
        last = { created_at = item.score, quota_id = item.member }
      end
    end
    return reply.ok("page", { items = items, last = last, more = more })
  end,
}
