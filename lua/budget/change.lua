local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"
local budget = require "record.budget"

local function refused(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

-- The limits a change names, by dimension; or the refusal.
local function named(b, list)
  local by_name = {}
  for i, d in ipairs(list) do
    local field = string.format("limits[%d].name", i - 1)
    if b.used[d.name] == nil then return nil, refused(field, "is no dimension of the budget: " .. d.name) end
    if by_name[d.name] then return nil, refused(field, "is given twice: " .. d.name) end
    by_name[d.name] = d
  end
  return by_name
end

define.fn {
  name = "ff_change_budget",
  doc = "Changes the limits of the dimensions named, each to exactly what is given, and what happens at a breach; what "
    .. "is not named stays. Says so when there may be room again.",
  flags = { "allow-oom" },
  args = {
    budget_id = "budget_id", limits = "dimension_limits", on_soft = "on_soft?", on_hard = "on_hard?",
    version = "count?", actor = "actor",
  },
  reply = { changed = { budget = "budget", changed = "bool" } },
  errs = { "budget_not_found", "budget_version_conflict" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b = path[1]
    if a.version and a.version ~= b.version then
      return reply.err("budget_version_conflict", { version = b.version })
    end
    local wanted, wrong = named(b, a.limits)
    if wrong then return wrong end
    local before = budget.pack_definition(b)
    for _, d in ipairs(b.dimensions) do
      local to = wanted[d.name]
      if to then
        d.hard, d.soft = to.hard, to.soft
        if d.hard and b.used[d.name] + b.held[d.name] > d.hard then b.passed = true end
      end
    end
    b.on_soft, b.on_hard = a.on_soft or b.on_soft, a.on_hard or b.on_hard
    local changed = budget.pack_definition(b) ~= before
    if changed then
      b.version = b.version + 1
      budget.note_action(tx, b, "change", a.actor)
      budget.room(tx, b, true)
      budget.save(tx, b)
      event.of_fleet(tx, "budget.changed", b.namespace, nil, nil, "budget_id", b.id, "actor", a.actor)
    end
    return reply.ok("changed", { budget = budget.typed(b), changed = changed })
  end,
}
