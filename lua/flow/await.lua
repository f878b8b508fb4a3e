local define = require "lib.define"
local flow = require "record.flow"
local reply = require "lib.reply"

define.fn {
  name = "ff_await_flow",
  doc = "Says how a flow stands and marks it, so that its end is announced to whoever waits.",
  flags = { "allow-oom" },
  args = { flow_id = "flow_id" },
  reply = { waiting = { flow = "flow" }, ended = { flow = "flow" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    if f.ended then return reply.ok("ended", { flow = flow.typed(f) }) end
    if f.waited == nil then
      f.waited = 1
      flow.save(tx, f)
    end
    return reply.ok("waiting", { flow = flow.typed(f) })
  end,
}
