local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"

define.fn {
  name = "ff_follow_stream",
  doc = "Marks an execution whose stream someone follows, so that the end of an attempt and the start of the next are "
    .. "announced.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id" },
  reply = { following = {} },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.tailed == nil then
      rec.tailed = 1
      execution.save(tx, rec)
    end
    return reply.ok("following")
  end,
}
