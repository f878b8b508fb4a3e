local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local view = require "record.view"

define.fn {
  name = "ff_describe_execution",
  doc = "Everything the store knows about one execution.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id" },
  reply = { found = { execution = "execution" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    return reply.ok("found", { execution = view.whole(tx, rec) })
  end,
}
