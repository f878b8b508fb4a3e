local define = require "lib.define"
local keys = require "lib.keys"
local outbox = require "lib.outbox"
local reply = require "lib.reply"
local tally = require "record.tally"

-- What the partition has on hand and how long the oldest of it has waited.
local function on_hand(tx)
  local effects, waitpoints = tx:xlen(keys.outbox(tx)), tx:zcard(keys.inbox(tx))
  local timer = tx:zhead(keys.timers(tx))
  local due = timer and timer.score <= tx.now and tx:zcount(keys.timers(tx), "-inf", string.format("%.0f", tx.now)) or 0
  local owed = effects > 0 and tx:xrange(keys.outbox(tx), "-", "+", 1)[1]
  local asked = waitpoints > 0 and tx:zhead(keys.inbox(tx))
  return {
    outbox = effects, oldest_outbox_at = owed and outbox.parse(owed).at or nil, timers_due = due,
    next_timer_at = timer and timer.score, stuck = tx:zcard(keys.stuck(tx)), waitpoints = waitpoints,
    oldest_waitpoint_at = asked and asked.score or nil,
  }
end

define.fn {
  name = "ff_tally_events",
  doc = "Counts the events that were not counted yet, at most `limit`, and answers everything this partition has "
    .. "counted, with what it has on hand. `more` says that events are left to count, `counted_to` up to when they "
    .. "were.",
  flags = { "allow-oom" },
  args = { limit = "list_limit" },
  reply = {
    tally = {
      names = "[text]", bounds_ms = "[count]", lines = "[tally_line]", gaps = "count", more = "bool",
      counted_to = "time_ms", on_hand = "on_hand", now = "time_ms",
    },
  },
  errs = {},
  call = function(tx, a)
    local t, hand = tally.load(tx), on_hand(tx)
    local more = tally.count(tx, t, "+", a.limit)
    return reply.ok("tally", {
      names = t.names, bounds_ms = tally.bounds_ms, lines = tally.typed(t), gaps = t.gaps, more = more,
      counted_to = more and t.last_at or tx.now, on_hand = hand, now = tx.now,
    })
  end,
}
