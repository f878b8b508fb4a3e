local define = require "lib.define"
local reply = require "lib.reply"
local limits = require "lib.limits"

local names = { "executions", "budgets", "quotas", "schedules" }
local next_step = "run the import again with --again, or empty the store"

-- **Invariant:** the record says `importing` from before the first key of an import is written until after the last:
-- half a store is never taken for a whole one, nor for none.
define.fn {
  name = "ff_fix_partitions",
  doc = "Fixes the partition counts at first boot; later boots must ask for the same or for what is stored. An import "
    .. "fixes those of its export, with `importing` true before its first key and false after its last; in between no "
    .. "boot succeeds.",
  flags = { "allow-oom" },
  args = {
    executions = "partition_count?", budgets = "partition_count?", quotas = "partition_count?",
    schedules = "partition_count?", defaults = "partition_defaults", importing = "bool?",
  },
  reply = {
    partitions = {
      executions = "partition_count", budgets = "partition_count", quotas = "partition_count",
      schedules = "partition_count",
    },
  },
  errs = { "partition_mismatch", "import_unfinished" },
  call = function(tx, a, now)
    local stored = tx:hgetall(tx.route)
    local begun = stored and stored.importing
    if begun and a.importing == nil then
      return reply.err("import_unfinished", { begun_at = begun, next_step = next_step })
    end
    if a.importing and stored and not begun then
      return reply.err("invalid_argument", { field = "importing", problem = "the store is set up already" })
    end
    -- An import that begins again may be of another export.
    if a.importing then stored = nil end
    local counts = {}
    for _, name in ipairs(names) do
      local count = stored and tonumber(stored[name]) or a[name] or a.defaults[name]
      if a[name] and a[name] ~= count then
        return reply.err("partition_mismatch", { family = name, stored = count, asked = a[name] })
      end
      counts[name] = count
    end
    if stored == nil then
      tx:hset(tx.route, {
        "executions", counts.executions, "budgets", counts.budgets, "quotas", counts.quotas,
        "schedules", counts.schedules, "format", limits.format,
      })
    end
    if a.importing then tx:hset(tx.route, { "importing", now }) end
    if begun and a.importing == false then tx:hdel(tx.route, "importing") end
    return reply.ok("partitions", counts)
  end,
}
