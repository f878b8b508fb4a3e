local define = require "lib.define"
local reply = require "lib.reply"

define.fn {
  name = "ff_fix_partitions",
  doc = "Fixes the partition counts at first boot; later boots must ask for the same or for what is stored.",
  flags = {},
  args = { executions = "partition_count?", budgets = "partition_count?", quotas = "partition_count?", schedules = "partition_count?", defaults = "partition_defaults" },
  reply = { partitions = { executions = "partition_count", budgets = "partition_count", quotas = "partition_count", schedules = "partition_count" } },
  errs = { "partition_mismatch" },
  call = function(tx, a)
    local names = { "executions", "budgets", "quotas", "schedules" }
    local stored = tx:hgetall(tx.route)
    local counts = {}
    for _, name in ipairs(names) do
      local count = stored and tonumber(stored[name]) or a[name] or a.defaults[name]
      if a[name] and a[name] ~= count then
        return reply.err("partition_mismatch", { family = name, stored = count, asked = a[name] })
      end
      counts[name] = count
    end
    if stored == nil then
      tx:hset(tx.route, { "executions", counts.executions, "budgets", counts.budgets, "quotas", counts.quotas, "schedules", counts.schedules })
    end
    return reply.ok("partitions", counts)
  end,
}
