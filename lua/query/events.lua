local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

-- Entries from a place on, until they hold `limit` events or enough bytes.
local function read(tx, key, from, limit)
  local out, bytes, step = {}, 0, math.min(limit, 16)
  while true do
    local page = tx:xrange(key, from, "+", step)
    for _, entry in ipairs(page) do
      out[#out + 1] = { id = entry[1], number = tonumber(entry[2][1]), events = entry[2][2] }
      bytes = bytes + #entry[2][2]
    end
    if #page < step or bytes > limits.stream_read_bytes_max then return out end
    -- How many events the last entry holds is known by the next one only.
    local seen = out[#out].number - out[1].number + 1
    if seen >= limit then return out end
    from, step = "(" .. page[#page][1], math.min(limit - seen, 64)
  end
end

define.fn {
  name = "ff_read_events",
  doc = "Entries of events of this partition, oldest first, that hold at least `limit` events if there are that many. "
    .. "`after` is an entry that was read whole, or a place inside of one, which is answered again; `from_ms` starts "
    .. "at a time instead. Says the oldest and latest entry kept, whether the stream is cut at its length, and the "
    .. "time up to which this is complete.",
  flags = { "no-writes" },
  weight = "limit",
  args = { after = "event_place?", from_ms = "time_ms?", limit = "list_limit" },
  reply = {
    events = {
      entries = "[event_entry]", oldest = "stream_id?", latest = "stream_id?", full = "bool", now = "time_ms",
    },
  },
  errs = {},
  call = function(tx, a)
    local key = keys.events(tx)
    local from = "-"
    if a.after then
      local id, inside = string.match(a.after, "^(%d+%-%d+)(.*)$")
      from = inside == "" and "(" .. id or id
    elseif a.from_ms then
      from = string.format("%.0f-0", a.from_ms)
    end
    local entries = read(tx, key, from, a.limit)
    local first, last = tx:xrange(key, "-", "+", 1)[1], tx:xlast(key)
    local ever = tonumber(tx:get(keys.event_count(tx)) or "0")
    return reply.ok("events", {
      entries = entries, oldest = first and first[1], latest = last and last[1], now = tx.now,
      full = first ~= nil and ever - tonumber(first[2][1]) + 1 >= limits.events_max,
    })
  end,
}
