local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_list_schedules",
  doc = "Schedules of this partition, newest first; a page may be short, `more` says whether to go on after `last`.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", after = "schedule_position?", limit = "batch_size" },
  reply = { page = { items = "[schedule]", last = "schedule_position?", more = "bool", now = "time_ms" } },
  errs = {},
  call = function(tx, a, now)
    local top = a.after and string.format("%.0f", a.after.created_at) or "+inf"
    local found = tx:zhighest(keys.schedules(tx), top, "-inf", limits.list_looks_max)
    local items, last, more = {}, nil, #found == limits.list_looks_max
    for _, item in ipairs(found) do
      local seen = a.after and item.score == a.after.created_at and item.member >= a.after.path
      if not seen then
        if #items >= a.limit then
          more = true
          break
        end
        if a.namespace == nil or schedule.split(item.member) == a.namespace then
          local s = schedule.load(tx, item.member)
          if s then items[#items + 1] = schedule.typed(s) end
        end
        last = { created_at = item.score, path = item.member }
      end
    end
    return reply.ok("page", { items = items, last = last, more = more, now = now })
  end,
}
