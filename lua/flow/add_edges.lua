local define = require "lib.define"
local flow = require "record.flow"
local grow = require "transition.grow"
local owed = require "transition.owed"
local reply = require "lib.reply"

define.fn {
  name = "ff_add_edges",
  doc = "Adds edges between members that are there. `version` is that of the graph the caller checked for cycles; "
    .. "without it every edge must lead to a later member of an unsealed flow.",
  flags = {},
  args = { flow_id = "flow_id", edges = "new_edges", version = "count?" },
  reply = { added = { count = "count", version = "count" } },
  errs = {
    "flow_not_found", "flow_terminal", "flow_changed", "member_started", "cycle_detected", "idempotency_conflict",
  },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    local refusal = grow.refusal(f)
    if refusal then return refusal end
    if a.version and a.version ~= f.version then return reply.err("flow_changed", { version = f.version }) end
    local made
    made, refusal = grow.edges(tx, f, a.edges, {}, a.version ~= nil)
    if refusal then return refusal end
    f.touched = tx.now
    flow.save(tx, f)
    owed.during(tx, function() grow.count(tx, f, made) end)
    return reply.ok("added", { count = #made, version = f.version })
  end,
}
