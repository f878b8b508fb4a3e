local define = require "lib.define"
local check = require "lib.check"
local reply = require "lib.reply"
local execution = require "record.execution"
local renew = require "transition.renew"

define.fn {
  name = "ff_renew_leases",
  doc = "Renews up to 64 leases of one partition; each is answered on its own.",
  flags = { "allow-oom" },
  each = "renewals",
  args = { renewals = "renewals" },
  reply = { renewed = { items = "[renewed]" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for i, item in ipairs(a.renewals) do
      local answer = check.value("renewal", item)
      if answer then return answer end
      local problem
      answer, problem = tx:item(function()
        local rec = execution.load(tx, item.execution_id)
        return renew.one(tx, rec, item) or { ok = rec }
      end)
      if answer == nil then error(problem, 0) end
      if answer.ok then
        local rec = answer.ok
        items[i] = { execution_id = item.execution_id, lease_expires_at = rec.lease_until, cancel_requested = rec.cancel_by ~= nil, yield_requested = rec.yield ~= nil }
      else
        items[i] = { execution_id = item.execution_id, refusal = reply.refusal(answer) }
      end
    end
    return reply.ok("renewed", { items = items })
  end,
}
