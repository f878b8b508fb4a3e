local define = require "lib.define"
local event = require "lib.event"
local fired = require "record.fired"
local flow = require "record.flow"
local grow = require "transition.grow"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local walk = require "transition.walk"

local week_ms = 604800000

local function create(tx, n)
  local f = flow.new(n.flow_id)
  f.namespace, f.kind, f.policy, f.digest, f.parent =
    n.namespace, n.kind, n.on_member_failure, n.body_digest, n.parent_id
  f.webhook = n.completion_webhook
  if n.fired then fired.note(f, n.fired) end
  f.created, f.touched, f.retention = tx.now, tx.now, n.retention_ms or week_ms
  f.deadline = n.deadline_at or (n.deadline_ms and tx.now + n.deadline_ms) or nil
  if n.default_lane or n.default_retry or n.budgets then
    f.defaults = flow.pack_defaults(n.default_lane, n.default_retry, n.budgets)
  end
  tx:zadd(keys.flows(tx), tx.now, f.id)
  flow.save(tx, f)
  event.of_flow(tx, f, "flow.created")
  return f
end

define.fn {
  name = "ff_submit_flow",
  doc = "Creates a flow with its first members and the edges between them, each leading to a member listed later. "
    .. "Members are hidden until the flow is sealed; `seal` does it in the same call. The same id with the same body "
    .. "answers the first one.",
  flags = {},
  args = { flow = "new_flow", members = "new_members", edges = "new_edges", seal = "bool" },
  reply = { created = { flow = "flow" }, duplicate = { flow = "flow" } },
  errs = {
    "try_again", "execution_not_found", "flow_not_found", "idempotency_conflict", "lane_disabled", "lane_full",
    "lane_unseen", "lane_depth_needed", "capability_invalid", "cycle_detected", "flow_full", "flow_changed",
    "member_started",
  },
  call = function(tx, a)
    local n = a.flow
    if n.deadline_at and n.deadline_ms then
      return reply.err("invalid_argument", {
        field = "flow.deadline_ms", problem = "give deadline_at or deadline_ms, not both",
      })
    end
    if n.parent_id and a.seal then
      return reply.err("invalid_argument", {
        field = "seal", problem = "a flow that runs in place of a member is sealed when the member's turn comes",
      })
    end
    local known = flow.load(tx, n.flow_id)
    if known then
      -- One of another namespace is nobody's to know about.
      if known.namespace ~= n.namespace then return reply.err("flow_not_found", { flow_id = n.flow_id }) end
      -- What is left of an unsealed one goes first.
      if known.walk == "remove" then return reply.err("try_again", { flow_id = n.flow_id }) end
      if known.digest ~= n.body_digest then return reply.err("idempotency_conflict", { flow_id = n.flow_id }) end
      return reply.ok("duplicate", { flow = flow.typed(known) })
    end
    local f = create(tx, n)
    f.releases = a.seal
    local made, refusal = grow.members(tx, f, a.members, a.edges)
    if refusal then return refusal end
    local fresh = {}
    for _, one in ipairs(made) do fresh[one.id] = true end
    local _, wrong = grow.edges(tx, f, a.edges, fresh, false)
    if wrong then return wrong end
    flow.save(tx, f)
    if a.seal then walk.seal(tx, f, made) end
    return reply.ok("created", { flow = flow.typed(f) })
  end,
}
