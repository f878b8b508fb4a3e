local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

define.fn {
  name = "ff_trim_events",
  doc = "Drops events older than the age that is kept.",
  flags = { "allow-oom" },
  args = {},
  reply = { trimmed = {} },
  errs = {},
  call = function(tx)
    if tx.now > limits.events_age_ms_max then tx:xtrim(keys.events(tx), string.format("%.0f-0", tx.now - limits.events_age_ms_max)) end
    return reply.ok("trimmed")
  end,
}
