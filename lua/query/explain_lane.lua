local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local execution = require "record.execution"
local spec = require "record.spec"

-- What says by itself why it waits is only counted, by the stats.
local places = { "blocked:route", "blocked:quota", "blocked:budget", "delayed", "suspended" }

local function is_delayed(rec, path)
  return rec ~= nil and rec.phase == "runnable" and rec.reason == nil and rec.delay ~= nil and rec.path == path
end

define.fn {
  name = "ff_explain_lane",
  doc = "What the work of a lane waits for in this partition: up to `limit` each of those blocked, delayed and "
    .. "suspended, the longest waiting first, and the first delay to end.",
  flags = { "no-writes" },
  args = { namespace = "namespace", lane = "lane", limit = "batch_size" },
  reply = { waiting = { items = "[lane_waiter]", next_delay_at = "time_ms?" } },
  errs = {},
  call = function(tx, a)
    local path, items, first = a.namespace .. "/" .. a.lane, {}, nil
    local function sees(delay)
      if first == nil or delay < first then first = delay end
    end
    for _, place in ipairs(places) do
      for _, item in ipairs(tx:zlowest(keys.place(tx, path, place), "-inf", "+inf", a.limit)) do
        local rec = execution.load(tx, item.member)
        if rec then
          items[#items + 1] = {
            execution_id = rec.id, state = execution.public_state(rec), reason = rec.reason,
            requires = rec.requires or {}, detail = rec.detail and spec.unflatten(rec.detail) or nil,
          }
          if place == "delayed" then sees(rec.delay) end
        end
      end
    end
    -- Delays stand by creation in their place, and by their end among the timers of all lanes.
    for _, item in ipairs(tx:zlowest(keys.timers(tx), "-inf", "+inf", a.limit)) do
      local rec = execution.load(tx, item.member)
      if is_delayed(rec, path) then sees(rec.delay) end
    end
    return reply.ok("waiting", { items = items, next_delay_at = first })
  end,
}
