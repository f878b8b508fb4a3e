local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local leases = require "index.leases"
local interrupt = require "transition.interrupt"

define.fn {
  name = "ff_drain_leases",
  doc = "Asks a worker to yield every lease it holds in this partition, or takes them away; a bounded batch per call.",
  flags = { "allow-oom" },
  args = { instance = "instance", revoke = "bool", limit = "batch_size", actor = "actor" },
  reply = { drained = { changed = "count", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local changed, more = 0, false
    for _, id in ipairs(leases.ids(tx, a.instance)) do
      if changed >= a.limit then more = true break end
      tx:item(function()
        local rec = execution.load(tx, id)
        if rec == nil or rec.phase ~= "active" or rec.worker ~= a.instance then return reply.err("execution_not_active") end
        if not a.revoke then
          if rec.yield then return reply.err("execution_not_active") end
          rec.yield = 1
          execution.save(tx, rec)
          event.of_execution(tx, rec, "execution.yield_requested", { "actor", a.actor })
        else
          interrupt.lost(tx, rec, "revoked", a.actor)
        end
        changed = changed + 1
        return reply.ok("done")
      end)
    end
    return reply.ok("drained", { changed = changed, more = more })
  end,
}
