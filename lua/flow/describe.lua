local define = require "lib.define"
local flow = require "record.flow"
local reply = require "lib.reply"

define.fn {
  name = "ff_describe_flow",
  doc = "A flow with its state and the counts of its members.",
  flags = { "no-writes" },
  args = { flow_id = "flow_id" },
  reply = { found = { flow = "flow" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    return reply.ok("found", { flow = flow.typed(f) })
  end,
}
