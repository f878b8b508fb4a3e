local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local choose = require "transition.choose"
local consume = require "transition.consume"
local start = require "transition.start"

define.fn {
  name = "ff_consume_grants",
  doc = "Turns up to 64 grants of one partition into leases for the worker they were given to; each is answered on its own.",
  flags = {},
  args = {
    grants = "grants_to_consume", instance = "instance", worker_id = "worker_id", capabilities = "capabilities", lease_ttl_ms = "lease_ttl_ms", request_id = "request_id",
  },
  reply = { consumed = { items = "[consumed_grant]" } },
  errs = { "capability_invalid" },
  call = function(tx, a)
    local capabilities, items, wakes, paths = choose.set_of(a.capabilities), {}, {}, {}
    for i, item in ipairs(a.grants) do
      local answer, problem = tx:item(function()
        local rec, replayed = consume.one(tx, a, capabilities, item)
        if rec == nil then return replayed end
        return { ok = rec, replayed = replayed }
      end)
      answer = answer or reply.raised(problem)
      if answer.ok then
        local rec, path = answer.ok, execution.lane_path(answer.ok)
        if not answer.replayed then
          if wakes[path] == nil then paths[#paths + 1] = path end
          wakes[path] = math.min(wakes[path] or rec.wake, rec.wake)
        end
        items[i] = { execution_id = item.execution_id, task = start.task(tx, rec), replayed = answer.replayed }
      else
        items[i] = { execution_id = item.execution_id, refusal = reply.refusal(answer) }
      end
    end
    for _, path in ipairs(paths) do consume.announce(tx, path, wakes[path]) end
    return reply.ok("consumed", { items = items })
  end,
}
