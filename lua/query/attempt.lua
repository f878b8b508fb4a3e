local define = require "lib.define"
local reply = require "lib.reply"
local attempt = require "record.attempt"
local execution = require "record.execution"

define.fn {
  name = "ff_get_attempt",
  doc = "One attempt of an execution, however old.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id", index = "attempt_index" },
  reply = { found = { attempt = "attempt" } },
  errs = { "execution_not_found", "attempt_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local found = attempt.stored(tx, rec, a.index)
    if found == nil then return reply.err("attempt_not_found", { index = a.index }) end
    return reply.ok("found", { attempt = found })
  end,
}
