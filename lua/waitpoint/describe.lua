local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local waitpoint = require "record.waitpoint"
local view = require "record.waitpoint_view"

define.fn {
  name = "ff_describe_waitpoint",
  doc = "One waitpoint, open or closed.",
  flags = { "no-writes" },
  args = { waitpoint_id = "waitpoint_id" },
  reply = { found = { waitpoint = "waitpoint" } },
  errs = { "waitpoint_not_found" },
  call = function(tx, a)
    local w = waitpoint.load(tx, a.waitpoint_id)
    local rec = w and execution.load(tx, w.exec)
    if not rec then return reply.err("waitpoint_not_found", { waitpoint_id = a.waitpoint_id }) end
    return reply.ok("found", { waitpoint = view.typed(rec, w) })
  end,
}
