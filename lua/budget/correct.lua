local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"
local budget = require "record.budget"

-- Above the budget that is corrected a period may have ended since: nothing gets below 0 there.
local function shift(b, name, delta)
  local before = b.used[name]
  if before == nil then return end
  local after = math.max(before + delta, 0)
  b.used[name], b.base[name] = after, b.base[name] + after - before
  for _, d in ipairs(b.dimensions) do
    if d.name == name and d.hard and after + b.held[name] > d.hard then b.passed = true end
  end
end

define.fn {
  name = "ff_correct_budget",
  doc = "An operator changes what is used in a dimension, here and in every budget above; kept with actor and reason. "
    .. "It may pass a limit: it says what was spent. The same request again changes nothing.",
  flags = { "allow-oom" },
  args = {
    budget_id = "budget_id", dimension = "dimension", delta = "delta", actor = "actor", reason = "reason",
    request_id = "request_id?",
  },
  reply = { corrected = { budget = "budget" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b = path[1]
    if budget.done(b, a.request_id) then return reply.ok("corrected", { budget = budget.typed(b) }) end
    if b.used[a.dimension] == nil then
      return reply.err("invalid_argument", {
        field = "dimension", problem = "is no dimension of the budget: " .. a.dimension,
      })
    end
    if a.delta == 0 then return reply.err("invalid_argument", { field = "delta", problem = "must not be 0" }) end
    if b.used[a.dimension] + a.delta < 0 then
      return reply.err("invalid_argument", {
        field = "delta", problem = string.format("takes more than the %.0f used", b.used[a.dimension]),
      })
    end
    local over = a.delta > 0 and budget.overflow(path, { [a.dimension] = a.delta }, "delta")
    if over then return reply.err("invalid_argument", { field = "delta", problem = over.detail.problem }) end
    for _, each in ipairs(path) do
      shift(each, a.dimension, a.delta)
      if a.delta < 0 then budget.room(tx, each, true) end
    end
    budget.note_action(tx, b, "correct", a.actor, a.dimension, a.delta, a.reason, a.request_id)
    budget.save_all(tx, path)
    event.of_fleet(tx, "budget.corrected", b.namespace, nil, nil, "budget_id", b.id, "actor", a.actor,
      "dimension", a.dimension, "delta", string.format("%.0f", a.delta), "reason", a.reason)
    return reply.ok("corrected", { budget = budget.typed(b) })
  end,
}
