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
    -- Items are committed one by one: a malformed one refuses the call before the first of them.
    for i, item in ipairs(a.renewals) do
      local refusal = check.value("renewal", item, string.format("renewals[%d]", i - 1))
      if refusal then return refusal end
    end
    for i, item in ipairs(a.renewals) do
      local answer, problem = tx:item(function()
        local rec = execution.load(tx, item.execution_id)
        return renew.one(tx, rec, item) or { ok = rec }
      end)
      answer = answer or reply.raised(problem)
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
