local asks = require "record.asks"
local define = require "lib.define"
local children = require "record.children"
local execution = require "record.execution"
local fence = require "record.fence"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local step = require "record.step"
local submit = require "transition.submit"

-- Makes one child; answers an item of the reply, or nil and the refusal.
local function spawn(tx, rec, k, c, at)
  local s = c.submission
  if string.sub(s.execution_id, -4) ~= string.sub(rec.id, -4) then
    return nil, reply.err("invalid_argument", {
      field = at .. ".submission.execution_id", problem = "must end like the parent's id: they share a partition",
    })
  end
  local place = {
    parent_id = rec.id, key = c.key, number = k.total + 1, parent_close = c.parent_close or "cancel_children",
    budgets = asks.of(rec).budgets, deadline = rec.deadline,
  }
  local answer = submit.repeated(tx, s, place)
  if answer and answer.err then return nil, answer end
  if answer then return { execution_id = answer.fields.execution_id, state = answer.fields.state, duplicate = true } end
  if k.total >= limits.children_max then return nil, reply.err("flow_full", { children_max = limits.children_max }) end
  local child, refusal = submit.new(tx, s, place)
  if refusal then return nil, refusal end
  child.bound = 1
  k.total, k.open = k.total + 1, k.open + 1
  tx:zadd(keys.children(tx, rec.id), place.number, child.id)
  submit.place(tx, child)
  return { execution_id = child.id, state = execution.public_state(child), duplicate = false }
end

-- The children of a step that is done.
local function spawned_before(tx, s)
  local items = {}
  for i, id in ipairs(step.spawned(s)) do
    local child = execution.load(tx, id)
    items[i] = { execution_id = id, state = child and execution.public_state(child) or nil, duplicate = true }
  end
  return items
end

define.fn {
  name = "ff_spawn_children",
  doc = "Submits children of a running execution, all or none; each shares its parent's budgets and deadline. A known "
    .. "id or key is answered again. `step` makes it a step: once it is done, a later call is answered its children.",
  flags = {},
  args = { execution_id = "execution_id", fence = "fence", children = "new_children", step = "step_name?" },
  reply = { spawned = { items = "[submitted]" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked",
    "idempotency_conflict", "lane_disabled", "lane_full", "lane_unseen", "lane_depth_needed", "capability_invalid",
    "flow_full", "step_changed", "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local s = a.step and step.find(tx, rec, a.step)
    if s and s.kind ~= "spawn" then return step.changed(s, "spawn") end
    if s then return reply.ok("spawned", { items = spawned_before(tx, s) }) end
    refusal = a.step and step.full(rec)
    if refusal then return refusal end
    local k, items = children.load(rec), {}
    for i, c in ipairs(a.children) do
      local item, wrong = spawn(tx, rec, k, c, string.format("children[%d]", i - 1))
      if wrong then return wrong end
      items[i] = item
    end
    children.store(rec, k)
    if a.step then
      local ids = {}
      for i, item in ipairs(items) do ids[i] = item.execution_id end
      step.found(tx, rec, a.step, "spawn", { id = false, cause = "children", refs = ids })
    end
    execution.save(tx, rec)
    return reply.ok("spawned", { items = items })
  end,
}
