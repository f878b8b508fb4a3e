local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"
local execution = require "record.execution"
local holds = require "record.holds"
local park = require "transition.park"
local spec = require "record.spec"
local usage = require "record.usage"

-- Takes the report out of those that wait; nil when it was settled before.
local function take(tx, rec, sequence)
  local rest, found = {}, nil
  for _, p in ipairs(usage.pending(tx, rec)) do
    if p.sequence == sequence then found = p else rest[#rest + 1] = p end
  end
  if found then usage.store_pending(tx, rec, rest) end
  return found
end

local function number(n) return n and string.format("%.0f", n) or nil end

define.fn {
  name = "ff_settle_usage",
  doc = "Notes what a budget answered to a report: the ledger follows, and a hard breach does to the running attempt "
    .. "what the budget says. `counted` says that a report known to the budget is this very one.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", sequence = "count", outcome = "usage_outcome", counted = "bool?",
    breach = "usage_breach?",
  },
  reply = { settled = { state = "public_state", ended = "bool" }, already = { state = "public_state" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if (a.outcome == "hard_breach") ~= (a.breach ~= nil) then
      return reply.err("invalid_argument", { field = "breach", problem = "belongs to a hard breach, and only there" })
    end
    local p = take(tx, rec, a.sequence)
    if p == nil then return reply.ok("already", { state = execution.public_state(rec) }) end
    local accepted = a.outcome == "ok" or a.outcome == "soft_breach" or (a.outcome == "already_applied" and a.counted)
    if accepted or a.outcome == "hard_breach" then usage.enter(tx, rec, p, accepted) end
    local ended = false
    -- A later lease has not spent this: it will hear of the limit with its own report.
    if a.breach and rec.phase == "active" and rec.lease_id == p.lease_id then
      local b = a.breach
      if b.action == "suspend" or b.action == "block" then holds.want(rec, p.budget_id, budget.flat(p.dimensions)) end
      local reason = string.format("budget %s: %.0f of %.0f %s used", b.budget_id, b.used, b.limit, b.dimension)
      park.execution(tx, rec, b.action, reason, spec.flatten({
        budget_id = b.budget_id, dimension = b.dimension, used = number(b.used), limit = number(b.limit),
        rooms = number(b.rooms), asks = number(p.dimensions[b.dimension] or 1), refusal = "hard",
        reported_to = p.budget_id }))
      ended = true
    end
    return reply.ok("settled", { state = execution.public_state(rec), ended = ended })
  end,
}
