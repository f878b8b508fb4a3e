local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_ack_outbox",
  doc = "Strikes effects that have been applied.",
  flags = { "allow-oom" },
  args = { ids = "stream_ids" },
  reply = { struck = {} },
  errs = {},
  call = function(tx, a)
    for _, id in ipairs(a.ids) do tx:xdel(keys.outbox(tx), id) end
    return reply.ok("struck")
  end,
}
