local define = require "lib.define"
local check = require "maintenance.invariants"
local execution = require "record.execution"
local holds = require "record.holds"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_check_executions",
  doc = "Verifies the records of this partition against every index they belong to, a page at a time; `repair` "
    .. "rewrites what differs and says so. Answers the slots of quotas that running executions have, for their "
    .. "partitions to be asked.",
  flags = { "allow-oom" },
  weight = "limit",
  args = { offset = "count", limit = "batch_size", repair = "bool" },
  reply = { checked = { findings = "[finding]", slots = "[quota_slot]", looked = "count", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local page = tx:zrange(keys.all(tx), string.format("%.0f", a.offset), string.format("%.0f", a.offset + a.limit))
    local findings, slots = {}, {}
    for i = 1, math.min(#page, a.limit) do
      local id = page[i]
      local answer, problem = tx:item(function()
        local rec = execution.load(tx, id)
        if rec == nil then
          check.found(findings, 10, keys.core(tx, id), "listed but not stored", a.repair)
          if a.repair then tx:zrem(keys.all(tx), id) end
        else
          check.record(tx, rec, findings, a.repair)
          for _, slot in ipairs(holds.quota_slots(rec)) do slots[#slots + 1] = slot end
        end
        return reply.ok("looked")
      end)
      if answer == nil then check.found(findings, 10, keys.core(tx, id), problem, false) end
    end
    return reply.ok("checked", {
      findings = findings, slots = slots, looked = math.min(#page, a.limit), more = #page > a.limit,
    })
  end,
}
