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
  errs = { "try_again" },
  call = function(tx, a)
    local changed, more = 0, false
    for _, id in ipairs(leases.ids(tx, a.instance)) do
      if changed >= a.limit then more = true break end
      local answer = tx:item(function()
        local rec = execution.load(tx, id)
        if rec == nil or rec.phase ~= "active" or rec.worker ~= a.instance then
          return reply.err("execution_not_active")
        end
        if a.revoke then
          interrupt.lost(tx, rec, "revoked", a.actor)
        else
          if rec.yield then return reply.err("execution_not_active") end
          rec.yield = 1
          execution.save(tx, rec)
          event.of_execution(tx, rec, "execution.yield_requested", "actor", a.actor)
        end
        return reply.ok("done")
      end)
      if answer and answer.err == "try_again" then
        if changed == 0 then return answer end
        more = true
        break
      end
      if answer and answer.ok then changed = changed + 1 end
    end
    return reply.ok("drained", { changed = changed, more = more })
  end,
}
