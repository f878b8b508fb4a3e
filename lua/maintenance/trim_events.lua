local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local tally = require "record.tally"

-- Where the stream is cut: where the age that is kept begins, but where someone counts, nothing goes that was not
-- counted.
local function cut(tx)
  local kept_from = string.format("%.0f-0", tx.now - limits.events_age_ms_max)
  local t = tally.load(tx)
  if t.at and tally.count(tx, t, kept_from, limits.list_limit_max) then return t.at end
  return kept_from
end

define.fn {
  name = "ff_trim_events",
  doc = "Drops events older than the age that is kept.",
  flags = { "allow-oom" },
  args = {},
  reply = { trimmed = {} },
  errs = {},
  call = function(tx)
    if tx.now > limits.events_age_ms_max then tx:xtrim(keys.events(tx), cut(tx)) end
    return reply.ok("trimmed")
  end,
}
