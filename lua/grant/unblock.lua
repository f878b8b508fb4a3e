local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local unblock = require "transition.unblock"

define.fn {
  name = "ff_unblock_execution",
  doc = "What the execution waited for has cleared: it is eligible again at the place of its original score. With the "
    .. "grant it was refused under, also before the refusal has arrived.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", reason = "admission_reason", holder_id = "holder_id?" },
  reply = { unblocked = { state = "public_state" }, already = { state = "public_state" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec, waited = unblock.one(tx, a.execution_id, a.reason, a.holder_id)
    if rec == nil then return reply.err("execution_not_found") end
    return reply.ok(waited and "unblocked" or "already", { state = execution.public_state(rec) })
  end,
}
