local define = require "lib.define"
local flow = require "record.flow"
local limits = require "lib.limits"
local reply = require "lib.reply"
local stop = require "transition.stop"
local walk = require "transition.walk"

define.fn {
  name = "ff_cancel_flow",
  doc = "Cancels a flow: from this call on none of its members can be claimed. Members are cancelled in a walk, the "
    .. "first ones here; running ones end at once under cancel_all and finish under the other policies.",
  flags = { "allow-oom" },
  args = { flow_id = "flow_id", policy = "cancel_policy", actor = "actor", reason = "reason?" },
  reply = { cancelled = { flow = "flow", more = "bool" }, already = { flow = "flow" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    if f.stop or f.outcome then return reply.ok("already", { flow = flow.typed(f) }) end
    stop.flow(tx, f, {
      policy = a.policy, reason = a.reason, actor = a.actor, outcome = "cancelled",
      data = { "actor", a.actor, "reason", a.reason or "", "policy", a.policy },
    })
    local more = walk.step(tx, f, limits.batch_max)
    return reply.ok("cancelled", { flow = flow.typed(f), more = more and f.walk == "cancel" })
  end,
}
