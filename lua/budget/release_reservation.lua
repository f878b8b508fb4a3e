local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"
local holds = require "record.budget_holds"

define.fn {
  name = "ff_release_reservation",
  doc = "Gives a reservation back unused.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", reservation_id = "reservation_id" },
  reply = { released = {} },
  errs = { "budget_not_found", "reservation_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local hold = holds.reservation(tx, a.budget_id, a.reservation_id)
    local key = "released:" .. a.reservation_id
    if hold == nil and budget.report(tx, path[1], key) then return reply.ok("released") end
    if hold == nil then return reply.err("reservation_not_found", { reservation_id = a.reservation_id }) end
    budget.prune(tx, path[1])
    budget.keep_report(tx, path[1], key, {})
    holds.drop_reservation(tx, path, a.reservation_id, hold)
    holds.give_back(tx, path, hold.amounts)
    budget.save_all(tx, path)
    return reply.ok("released")
  end,
}
