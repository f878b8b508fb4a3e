local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local leases = require "index.leases"
local start = require "transition.start"

define.fn {
  name = "ff_find_leases",
  doc = "The live leases a worker instance holds in this partition, at most 1000, and the whole tasks of those that "
    .. "one request claimed: their ids begin alike.",
  flags = { "no-writes" },
  args = { instance = "instance", lease_prefix = "lease_prefix?" },
  reply = { found = { leases = "[held_lease]", tasks = "[task]" } },
  errs = {},
  call = function(tx, a, now)
    local ids = leases.ids(tx, a.instance)
    local found, tasks = {}, {}
    for i = 1, math.min(#ids, limits.list_looks_max) do
      local rec = execution.load(tx, ids[i])
      if rec and rec.phase == "active" and now < rec.lease_until then
        found[#found + 1] = { execution_id = rec.id, lease_id = rec.lease_id, lease_expires_at = rec.lease_until }
        if a.lease_prefix and string.sub(rec.lease_id, 1, 23) == a.lease_prefix and #tasks < limits.batch_max then
          tasks[#tasks + 1] = start.task(tx, rec)
        end
      end
    end
    return reply.ok("found", { leases = found, tasks = tasks })
  end,
}
