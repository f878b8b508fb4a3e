local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local spec = require "record.spec"

local waiting = {}

-- Up to `count` entries of a blocked set behind a position, the longest wait first.
function waiting.page(tx, key, after, count)
  local from = after and string.format("%.0f", after.since) or "-inf"
  local out, skip = {}, 0
  while #out < count do
    local found = tx:zlowest(key, from, "+inf", limits.list_looks_max, skip)
    for _, item in ipairs(found) do
      local behind = after == nil or item.score > after.since or item.member > after.execution_id
      if behind and #out < count then out[#out + 1] = item end
    end
    if #found < limits.list_looks_max then break end
    skip = skip + limits.list_looks_max
  end
  return out
end

define.fn {
  name = "ff_waiting_for_budgets",
  doc = "The budgets that executions of a lane wait for, each with the fewest rooms any of them has seen; a page at a "
    .. "time.",
  flags = { "no-writes" },
  args = { namespace = "namespace", lane = "lane", after = "blocked_position?", limit = "batch_size" },
  reply = { waiting = { items = "[awaited_budget]", next = "blocked_position?" } },
  errs = {},
  call = function(tx, a)
    local page = waiting.page(tx, keys.place(tx, a.namespace .. "/" .. a.lane, "blocked:budget"), a.after, a.limit)
    local items, at, last = {}, {}, nil
    for _, entry in ipairs(page) do
      local rec = execution.load(tx, entry.member)
      local detail = rec and rec.reason == "waiting_for_budget" and spec.unflatten(rec.detail) or {}
      local id, rooms = detail.budget_id, tonumber(detail.rooms or nil) or -1
      if id and at[id] then
        items[at[id]].rooms = math.min(items[at[id]].rooms, rooms)
      elseif id then
        items[#items + 1] = { budget_id = id, rooms = rooms }
        at[id] = #items
      end
      last = { since = entry.score, execution_id = entry.member }
    end
    return reply.ok("waiting", { items = items, next = #page == a.limit and last or nil })
  end,
}

return waiting
