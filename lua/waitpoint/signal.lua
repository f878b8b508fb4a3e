local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local waitpoint = require "record.waitpoint"
local signal = require "transition.signal"

define.fn {
  name = "ff_deliver_signal",
  doc = "Delivers a signal under a waitpoint token, whose mac the caller has verified. Whatever keeps the waitpoint "
    .. "from taking it answers alike.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", waitpoint_id = "waitpoint_id", token_digest = "token_digest",
    signal_id = "signal_id", name = "signal_name", payload = "signal_payload?", payload_encoding = "encoding?",
    category = "source?", source = "source?", source_identity = "source?", correlation_id = "correlation_id?",
    idempotency_key = "idempotency_key?",
  },
  reply = {
    accepted = { signal_id = "signal_id", effect = "signal_effect" }, triggered_resume = { signal_id = "signal_id" },
    duplicate = { signal_id = "signal_id" },
  },
  errs = { "waitpoint_not_open", "signal_not_allowed", "signals_full" },
  call = function(tx, a)
    local w = waitpoint.load(tx, a.waitpoint_id)
    if w == nil or w.exec ~= a.execution_id then return reply.err("waitpoint_not_open") end
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("waitpoint_not_open") end
    return signal.arrive(tx, rec, w, a)
  end,
}
