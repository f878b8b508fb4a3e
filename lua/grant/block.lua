local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local holds = require "record.holds"
local spec = require "record.spec"
local grant = require "transition.grant"

define.fn {
  name = "ff_block_execution",
  doc = "Admission refused a granted execution: it waits for its quota or budget, with the reason recorded. `unheld` says that no set has taken it in.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", grant_id = "grant_id", reason = "admission_reason", detail = "detail", unheld = "bool?" },
  reply = { blocked = {}, already = {} },
  errs = { "execution_not_found", "grant_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase == "runnable" and rec.reason == a.reason then return reply.ok("already") end
    if not grant.open(rec, a.grant_id, tx.now) then return reply.err("grant_not_found", { grant_id = a.grant_id }) end
    if a.unheld then holds.drop(rec) end
    execution.block(rec, a.reason, spec.flatten(a.detail), tx.now)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.blocked", { "reason", a.reason })
    return reply.ok("blocked")
  end,
}
