local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local step = require "record.step"

define.fn {
  name = "ff_list_steps",
  doc = "The steps of an execution, in the order in which they were first recorded, after the step of a number.",
  flags = { "no-writes" },
  weight = "limit",
  args = { execution_id = "execution_id", after = "count?", limit = "list_limit" },
  reply = { page = { steps = "[step]", more = "bool" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local list, rest = step.page(tx, rec, (a.after or 0) + 1, a.limit, limits.stream_read_bytes_max)
    for i, s in ipairs(list) do list[i] = step.typed(s, tx.now) end
    return reply.ok("page", { steps = list, more = rest ~= nil })
  end,
}
