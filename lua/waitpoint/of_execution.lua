local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local waitpoint = require "record.waitpoint"
local view = require "record.waitpoint_view"

define.fn {
  name = "ff_execution_waitpoints",
  doc = "The waitpoints of one execution, open ones and those kept after they closed.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id" },
  reply = { found = { waitpoints = "[waitpoint]" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local ids, out = rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}, {}
    for _, entry in ipairs(waitpoint.open(rec)) do ids[#ids + 1] = entry[1] end
    for _, id in ipairs(ids) do
      local w = waitpoint.load(tx, id)
      if w then out[#out + 1] = view.typed(rec, w) end
    end
    return reply.ok("found", { waitpoints = out })
  end,
}
