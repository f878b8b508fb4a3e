local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local holds = require "record.holds"
local grant = require "transition.grant"
local runnable = require "transition.runnable"

define.fn {
  name = "ff_release_grant",
  doc = "Gives a grant back unused; the execution is eligible again at its old place. `unheld` says that no holder set "
    .. "has taken it in.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", grant_id = "grant_id", unheld = "bool?" },
  reply = { released = {} },
  errs = { "execution_not_found", "grant_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if not grant.open(rec, a.grant_id, tx.now) then return reply.err("grant_not_found", { grant_id = a.grant_id }) end
    if a.unheld then holds.drop(rec) end
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.ready", "cause", "grant_released")
    return reply.ok("released")
  end,
}
