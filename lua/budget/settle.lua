local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"
local holds = require "record.budget_holds"

define.fn {
  name = "ff_settle_reservation",
  doc = "Turns a reservation into what was really used; the difference returns. What would pass a limit is not "
    .. "accepted, and the reservation stays.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", reservation_id = "reservation_id", dimensions = "amounts" },
  reply = {
    ok = {}, already_applied = {},
    soft_breach = { budget_id = "budget_id", dimension = "dimension", used = "count", limit = "count" },
    hard_breach = {
      budget_id = "budget_id", dimension = "dimension", used = "count", limit = "count", action = "on_hard",
      rooms = "count",
    },
  },
  errs = { "budget_not_found", "reservation_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b, key = path[1], "reservation:" .. a.reservation_id
    if budget.report(tx, b, key) then return reply.ok("already_applied") end
    local hold = holds.reservation(tx, b.id, a.reservation_id)
    if hold == nil then return reply.err("reservation_not_found", { reservation_id = a.reservation_id }) end
    local wrong = budget.unknown(b, a.dimensions, "dimensions")
    if wrong then return wrong end
    local over = budget.overflow(path, a.dimensions, "dimensions")
    if over then return over end
    local breach = budget.breach(path, a.dimensions, hold.amounts)
    if breach then
      budget.refuse(tx, breach)
      return reply.ok("hard_breach", {
        budget_id = breach.budget.id, dimension = breach.dimension, used = breach.used, limit = breach.limit,
        action = breach.budget.on_hard, rooms = breach.budget.rooms })
    end
    budget.prune(tx, b)
    holds.drop_reservation(tx, path, a.reservation_id, hold)
    holds.give_back(tx, path, hold.amounts)
    budget.spend(tx, path, a.dimensions)
    budget.keep_report(tx, b, key, a.dimensions)
    budget.save_all(tx, path)
    local soft = budget.soft(path)
    if soft then
      return reply.ok("soft_breach", {
        budget_id = soft.budget.id, dimension = soft.dimension, used = soft.used, limit = soft.limit,
      })
    end
    return reply.ok("ok")
  end,
}
