local define = require "lib.define"
local keys = require "lib.keys"
local outbox = require "lib.outbox"
local reply = require "lib.reply"

define.fn {
  name = "ff_read_outbox",
  doc = "Effects this partition owes, oldest first; with `after`, those behind that one.",
  flags = { "no-writes" },
  args = { after = "stream_id?", limit = "list_limit" },
  reply = { effects = { items = "[effect]" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for i, entry in ipairs(tx:xrange(keys.outbox(tx), a.after and "(" .. a.after or "-", "+", a.limit)) do
      items[i] = outbox.parse(entry)
    end
    return reply.ok("effects", { items = items })
  end,
}
