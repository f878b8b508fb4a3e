local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local usage = require "record.usage"

define.fn {
  name = "ff_read_usage",
  doc = "What an execution used, by attempt, budget and dimension, and its reports that wait for their budget's "
    .. "answer.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id" },
  reply = { usage = { ledger = "[ledger_line]", pending = "[pending_usage]" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    return reply.ok("usage", { ledger = usage.ledger(tx, rec), pending = usage.pending(tx, rec) })
  end,
}
