local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"
local gone = require "index.gone"

local function refused(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

-- What no single field can say.
local function problem(n)
  if #n.dimensions == 0 then return refused("budget.dimensions", "must hold a dimension") end
  local seen = {}
  for i, d in ipairs(n.dimensions) do
    if seen[d.name] then
      return refused(string.format("budget.dimensions[%d].name", i - 1), "is given twice: " .. d.name)
    end
    seen[d.name] = true
  end
  local kind = n.reset.type
  if (kind == "interval") ~= (n.reset.interval_ms ~= nil) then
    return refused("budget.reset.interval_ms", "belongs to a reset by interval, and only there")
  end
  if n.reset.zone and kind ~= "day" and kind ~= "month" then
    return refused("budget.reset.zone", "belongs to a reset by calendar")
  end
  if (kind == "day" or kind == "month") and n.next_reset_at == nil then
    return refused("budget.next_reset_at", "is missing: a calendar's reset is supplied")
  end
  if kind == "none" and n.next_reset_at then return refused("budget.next_reset_at", "belongs to a reset") end
end

define.fn {
  name = "ff_create_budget",
  doc = "Creates a budget, below another one when it names a parent; the same again is a duplicate. A calendar's first "
    .. "reset is supplied, an interval starts now.",
  flags = {},
  args = { budget = "new_budget", actor = "actor" },
  reply = { created = { budget = "budget", duplicate = "bool" } },
  errs = { "budget_not_found", "budget_in_use", "idempotency_conflict" },
  call = function(tx, a)
    local n = a.budget
    local wrong = problem(n)
    if wrong then return wrong end
    table.sort(n.dimensions, function(x, y) return x.name < y.name end)
    local known = budget.load(tx, n.budget_id)
    if known then
      -- Limits may have been changed since: what never changes tells whether it is the same.
      local same = known.namespace == n.namespace and known.parent == n.parent and #known.dimensions == #n.dimensions
      for i, d in ipairs(n.dimensions) do
        same = same and known.dimensions[i] ~= nil and known.dimensions[i].name == d.name
      end
      if same and known.version == 1 then same = budget.pack_definition(known) == budget.pack_definition(n) end
      if not same then return reply.err("idempotency_conflict", { budget_id = n.budget_id }) end
      return reply.ok("created", { budget = budget.typed(known), duplicate = true })
    end
    if n.parent then
      local path = budget.path(tx, n.parent)
      if path == nil then return reply.err("budget_not_found", { budget_id = n.parent }) end
      if path[1].namespace ~= n.namespace then return refused("budget.parent", "belongs to another namespace") end
      if #path >= limits.budget_depth_max then
        return refused("budget.parent", string.format("is %d deep already", #path))
      end
      local siblings = tx:zcard(keys.budget_children(tx, n.parent))
      if siblings >= limits.budget_children_max then return reply.err("budget_in_use", { children = siblings }) end
      tx:zadd(keys.budget_children(tx, n.parent), tx.now, n.budget_id)
    end
    local b = budget.new(tx, n)
    b.next_reset = n.next_reset_at
    if n.reset.type == "interval" and b.next_reset == nil then b.next_reset = tx.now + n.reset.interval_ms end
    if gone.back(tx, b.id) then budget.come_back(tx, b) end
    budget.save(tx, b)
    if b.next_reset then budget.watch(tx, b) end
    budget.owe_scope(tx, b)
    tx:zadd(keys.budgets(tx), tx.now, b.id)
    event.of_fleet(tx, "budget.created", b.namespace, nil, nil, "budget_id", b.id, "actor", a.actor)
    return reply.ok("created", { budget = budget.typed(b), duplicate = false })
  end,
}
