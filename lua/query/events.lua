local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

define.fn {
  name = "ff_read_events",
  doc = "Events of this partition after an id (exclusive), oldest first; `from_ms` starts at a time instead. Says the oldest and latest kept, whether the stream is trimmed by length, and the time up to which this is complete.",
  flags = { "no-writes" },
  args = { after = "stream_id?", from_ms = "time_ms?", limit = "list_limit" },
  reply = { events = { items = "[event]", oldest = "stream_id?", latest = "stream_id?", full = "bool", now = "time_ms" } },
  errs = {},
  call = function(tx, a)
    local key = keys.events(tx)
    local from = "-"
    if a.after then from = "(" .. a.after elseif a.from_ms then from = string.format("%.0f-0", a.from_ms) end
    local items = {}
    for i, entry in ipairs(tx:xrange(key, from, "+", a.limit)) do items[i] = event.parse(entry) end
    local first, last = tx:xrange(key, "-", "+", 1)[1], tx:xlast(key)
    return reply.ok("events", { items = items, oldest = first and first[1], latest = last and last[1], full = tx:xlen(key) >= limits.events_max, now = tx.now })
  end,
}
