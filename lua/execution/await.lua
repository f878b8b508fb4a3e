local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local view = require "record.view"

define.fn {
  name = "ff_await_result",
  doc = "Answers the outcome of an ended execution, or marks it so that its end is announced.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id" },
  reply = {
    ended = { outcome = "outcome", result = "result?", result_encoding = "encoding?", failure = "failure?" },
    waiting = { state = "public_state" },
  },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase == "terminal" then
      return reply.ok("ended", {
        outcome = rec.outcome, result = view.result(tx, rec), result_encoding = view.result_encoding(rec),
        failure = view.failure(rec),
      })
    end
    if rec.waited == nil then
      rec.waited = 1
      execution.save(tx, rec)
    end
    return reply.ok("waiting", { state = execution.public_state(rec) })
  end,
}
