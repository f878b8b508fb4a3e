local define = require "lib.define"
local flow = require "record.flow"
local reply = require "lib.reply"
local walk = require "transition.walk"

define.fn {
  name = "ff_walk_flow",
  doc = "Goes on with the walk a flow owes its members, before its timer does.",
  flags = { "allow-oom" },
  args = { flow_id = "flow_id", limit = "batch_size" },
  reply = { walked = { flow = "flow?", more = "bool" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    local more = walk.step(tx, f, a.limit)
    return reply.ok("walked", { flow = not f.gone and flow.typed(f) or nil, more = more })
  end,
}
