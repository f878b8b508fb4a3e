local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_next_due",
  doc = "When this partition's next timer is, and whether it owes anything.",
  flags = { "no-writes" },
  args = {},
  reply = { next = { next_at = "time_ms?", now = "time_ms" } },
  errs = {},
  call = function(tx)
    local head = tx:zhead(keys.timers(tx))
    return reply.ok("next", { next_at = head and head.score, now = tx.now })
  end,
}
