local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"
local holds = require "record.budget_holds"
local holders = require "index.holders"

define.fn {
  name = "ff_apply_usage",
  doc = "Counts a report once, here and in every budget above: first out of what its reporter holds, then out of what "
    .. "is free. One with a reservation takes it out of that alone and gives the rest of it back. `same` says that the "
    .. "report known by this key came from the same execution and sequence. A report that would pass a limit is not "
    .. "accepted, and may be made again.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", report = "usage_report" },
  reply = {
    ok = {}, already_applied = { same = "bool" },
    soft_breach = { budget_id = "budget_id", dimension = "dimension", used = "count", limit = "count" },
    hard_breach = {
      budget_id = "budget_id", dimension = "dimension", used = "count", limit = "count", action = "on_hard",
      rooms = "count",
    },
  },
  errs = { "budget_not_found", "reservation_not_found" },
  call = function(tx, a)
    local r = a.report
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b, key = path[1], r.reservation_id and "reservation:" .. r.reservation_id or "report:" .. r.dedup_key
    local origin = r.execution_id and r.sequence and string.format("%s:%.0f", r.execution_id, r.sequence) or nil
    local known, from = budget.report(tx, b, key)
    if known then return reply.ok("already_applied", { same = origin ~= nil and from == origin }) end
    local wrong = budget.unknown(b, r.dimensions, "report.dimensions")
    if wrong then return wrong end
    local member = r.execution_id and r.holder_id and holders.member(r) or nil
    local reserved = r.reservation_id and holds.reservation(tx, b.id, r.reservation_id)
    if r.reservation_id and reserved == nil then
      return reply.err("reservation_not_found", { reservation_id = r.reservation_id })
    end
    local own, parts
    if reserved then own = reserved.amounts else own, parts = holds.own(tx, b.id, member, r.dimensions) end
    local over = budget.overflow(path, r.dimensions, "report.dimensions")
    if over then return over end
    local breach = budget.breach(path, r.dimensions, own)
    if breach then
      budget.refuse(tx, breach)
      return reply.ok("hard_breach", {
        budget_id = breach.budget.id, dimension = breach.dimension, used = breach.used, limit = breach.limit,
        action = breach.budget.on_hard, rooms = breach.budget.rooms })
    end
    budget.prune(tx, b)
    if reserved then
      holds.drop_reservation(tx, path, r.reservation_id, reserved)
      holds.give_back(tx, path, reserved.amounts)
    else
      holds.consume(tx, path, own, parts)
    end
    budget.spend(tx, path, r.dimensions)
    budget.keep_report(tx, b, key, r.dimensions, origin)
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
