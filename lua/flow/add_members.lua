local define = require "lib.define"
local execution = require "record.execution"
local flow = require "record.flow"
local grow = require "transition.grow"
local owed = require "transition.owed"
local reply = require "lib.reply"
local walk = require "transition.walk"

define.fn {
  name = "ff_add_members",
  doc = "Adds members with the edges into them, whole or not at all; a member of a sealed flow can run as soon as its "
    .. "edges let it. A known key with the same body is answered again.",
  flags = {},
  args = { flow_id = "flow_id", members = "new_members", edges = "new_edges" },
  reply = { added = { items = "[added_member]", version = "count" } },
  errs = {
    "flow_not_found", "flow_terminal", "execution_not_found", "idempotency_conflict", "lane_disabled", "lane_full",
    "lane_unseen", "lane_depth_needed", "capability_invalid", "cycle_detected", "flow_full", "flow_changed",
    "member_started",
  },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    local refusal = grow.refusal(f)
    if refusal then return refusal end
    local made
    f.releases = f.sealed ~= nil
    made, refusal = grow.members(tx, f, a.members, a.edges)
    if refusal then return refusal end
    local fresh, edges = {}, nil
    for _, one in ipairs(made) do
      if not one.duplicate then fresh[one.id] = true end
    end
    edges, refusal = grow.edges(tx, f, a.edges, fresh, false)
    if refusal then return refusal end
    f.touched = tx.now
    flow.save(tx, f)
    owed.during(tx, function()
      grow.count(tx, f, edges)
      if f.sealed then
        for _, one in ipairs(made) do walk.release(tx, f, one.rec) end
      end
    end)
    local items = {}
    for i, one in ipairs(made) do
      items[i] = {
        key = one.rec.key, execution_id = one.id, state = execution.member_state(one.rec), duplicate = one.duplicate,
      }
    end
    return reply.ok("added", { items = items, version = f.version })
  end,
}
