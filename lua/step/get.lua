local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local step = require "record.step"

define.fn {
  name = "ff_get_step",
  doc = "A step of an execution with its result. Of a wait that is done, what it came to: its signals or children from "
    .. "the `from`-th on.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id", name = "step_name", from = "step_tries?" },
  reply = {
    found = { step = "step", result = "step_result?", result_encoding = "encoding?", resume = "resume?" },
  },
  errs = { "execution_not_found", "step_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local s = step.find(tx, rec, a.name)
    if s == nil then return reply.err("step_not_found", { step = a.name }) end
    local ran = s.kind == "run" and s.bytes ~= nil
    local waited = (s.kind == "signal" or s.kind == "children") and s.found
    return reply.ok("found", {
      step = step.typed(s, tx.now), result = ran and step.result(tx, rec, s) or nil,
      result_encoding = ran and (s.result_in or "json") or nil,
      resume = waited and step.resume(tx, rec, s, a.from) or nil,
    })
  end,
}
