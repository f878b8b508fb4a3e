local define = require "lib.define"
local flow = require "record.flow"
local reply = require "lib.reply"
local walk = require "transition.walk"

define.fn {
  name = "ff_seal_flow",
  doc = "Releases the members a flow holds: the first in this call, the rest in a walk that is owed. The flow may "
    .. "still grow.",
  flags = {},
  args = { flow_id = "flow_id" },
  reply = { sealed = { flow = "flow" }, already = { flow = "flow" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    if f.parent then
      return reply.err("invalid_argument", {
        field = "flow_id", problem = "is sealed when the turn of its member " .. f.parent .. " comes",
      })
    end
    if f.sealed then return reply.ok("already", { flow = flow.typed(f) }) end
    walk.seal(tx, f)
    return reply.ok("sealed", { flow = flow.typed(f) })
  end,
}
