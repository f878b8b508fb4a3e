local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local webhook = require "record.webhook"
local receivers = require "index.receivers"

define.fn {
  name = "ff_take_webhooks",
  doc = "Webhooks that are due, to be tried by the caller and by nobody else for a while. `in_flight` says how many "
    .. "tries each receiver is busy with, `each` how many it may be. `held` says that more is due for receivers that "
    .. "are busy, `more` that more is due for others.",
  flags = { "allow-oom" },
  args = { limit = "batch_size", each = "per_receiver", in_flight = "in_flight" },
  reply = { taken = { items = "[webhook]", more = "bool", held = "bool", next_at = "time_ms?", now = "time_ms" } },
  errs = {},
  call = function(tx, a, now)
    local items, more, held, next_at, busy = {}, false, false, nil, 0
    local again = now + limits.webhook_hold_ms
    local function later(at)
      if at and (next_at == nil or at < next_at) then next_at = at end
    end
    for _ in pairs(a.in_flight) do busy = busy + 1 end
    -- Receivers that are busy may stand before all others.
    for _, entry in ipairs(tx:zlowest(keys.receivers(tx), "-inf", "+inf", a.limit + busy + 1)) do
      local room = a.each - (a.in_flight[entry.member] or 0)
      if entry.score > now then
        later(entry.score)
        break
      elseif #items >= a.limit then
        more = true
        break
      elseif room <= 0 then
        held = true
      else
        local count = math.min(room, a.limit - #items)
        local ids, head = receivers.take(tx, entry.member, count, again)
        for _, id in ipairs(ids) do
          local d = webhook.load(tx, id)
          -- One without a record is left to fsck.
          if d then
            webhook.begin(tx, d, again)
            items[#items + 1] = webhook.typed(d)
          end
        end
        if head and head <= now then
          if count == room then held = true else more = true end
        else
          later(head)
        end
      end
    end
    return reply.ok("taken", { items = items, more = more, held = held, next_at = next_at, now = now })
  end,
}
