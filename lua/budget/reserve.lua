local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"
local holds = require "record.budget_holds"
local holders = require "index.holders"

local function refused(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

local function same(x, y)
  return cmsgpack.pack(budget.flat(x)) == cmsgpack.pack(budget.flat(y))
end

define.fn {
  name = "ff_reserve_budget",
  doc = "Holds amounts against a budget and all above it, for a time or for as long as a holder holds; the same "
    .. "reservation again is the same. A limit in the way is an answer, and nothing is held.",
  flags = {},
  args = {
    budget_id = "budget_id", reservation_id = "reservation_id", dimensions = "amounts", ttl_ms = "duration_ms?",
    holder = "budget_holder?",
  },
  reply = {
    reserved = { expires_at = "time_ms?", duplicate = "bool" },
    hard_breach = {
      budget_id = "budget_id", dimension = "dimension", used = "count", limit = "count", rooms = "count",
    },
  },
  errs = { "budget_not_found", "idempotency_conflict" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b = path[1]
    local wrong = budget.unknown(b, a.dimensions, "dimensions")
    if wrong then return wrong end
    if (a.ttl_ms == nil) == (a.holder == nil) then
      return refused("ttl_ms", "is needed without a holder, and only then")
    end
    if a.ttl_ms and (a.ttl_ms == 0 or a.ttl_ms > limits.reservation_ttl_ms_max) then
      return refused("ttl_ms", string.format("must be in 1..=%.0f, got %.0f", limits.reservation_ttl_ms_max, a.ttl_ms))
    end
    local member = a.holder and holders.member(a.holder)
    local known = holds.reservation(tx, b.id, a.reservation_id)
    if known then
      if known.member ~= member or not same(known.amounts, a.dimensions) then
        return reply.err("idempotency_conflict", { reservation_id = a.reservation_id })
      end
      return reply.ok("reserved", { expires_at = known.ends, duplicate = true })
    end
    if budget.report(tx, b, "reservation:" .. a.reservation_id) then
      return reply.err("idempotency_conflict", { reservation_id = a.reservation_id })
    end
    local over = budget.overflow(path, a.dimensions, "dimensions")
    if over then return over end
    local breach = budget.breach(path, a.dimensions)
    if breach then
      budget.refuse(tx, breach)
      return reply.ok("hard_breach", {
        budget_id = breach.budget.id, dimension = breach.dimension, used = breach.used, limit = breach.limit,
        rooms = breach.budget.rooms,
      })
    end
    local ends = a.ttl_ms and tx.now + a.ttl_ms or nil
    if member then
      local holder = holds.of_holder(tx, b.id, member)
      if holder == nil then
        -- Nobody admitted it here. Its lease may have ended by now, so it is asked for soon.
        local entering = { member = member, expires_at = tx.now + limits.reservation_asked_after_ms }
        holds.enter(tx, b.id, { entering }, holds.text({}, {}))
        holder = { amounts = {}, reservations = {} }
      end
      if #holder.reservations >= limits.reservations_per_holder_max then
        return refused("holder", string.format("has %d reservations already", #holder.reservations))
      end
      holder.reservations[#holder.reservations + 1] = a.reservation_id
      holds.put_holder(tx, b.id, member, holder)
    end
    holds.reserve(tx, b.id, a.reservation_id, { amounts = a.dimensions, ends = ends, member = member })
    budget.hold(path, a.dimensions, 1)
    budget.save_all(tx, path)
    return reply.ok("reserved", { expires_at = ends, duplicate = false })
  end,
}
