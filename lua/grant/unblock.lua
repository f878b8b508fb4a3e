local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local grant = require "transition.grant"
local runnable = require "transition.runnable"

define.fn {
  name = "ff_unblock_execution",
  doc = "What the execution waited for has cleared: it is eligible again at the place of its original score. With the grant it was refused under, also before the refusal has arrived.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", reason = "admission_reason", holder_id = "holder_id?" },
  reply = { unblocked = { state = "public_state" }, already = { state = "public_state" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    -- The call may overtake the block: then the grant ends here, and the block finds it gone.
    local refused = a.holder_id and grant.open(rec, a.holder_id, tx.now)
    if rec.phase ~= "runnable" or (rec.reason ~= a.reason and not refused) then return reply.ok("already", { state = execution.public_state(rec) }) end
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.ready", "cause", a.reason)
    return reply.ok("unblocked", { state = execution.public_state(rec) })
  end,
}
