local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local waitpoint = require "record.waitpoint"
local view = require "record.waitpoint_view"

-- Entries of the position's own millisecond that come after it.
local function of_same_moment(tx, after, enough)
  local at, out = string.format("%.0f", after.created_at), {}
  for page = 0, limits.list_pages_per_millisecond_max - 1 do
    local list = tx:zlowest(keys.inbox(tx), at, at, limits.list_looks_max, page * limits.list_looks_max)
    for _, item in ipairs(list) do
      if item.member > after.waitpoint_id then out[#out + 1] = item end
    end
    if #list < limits.list_looks_max or #out >= enough then break end
  end
  return out
end

define.fn {
  name = "ff_list_waitpoints",
  doc = "Open waitpoints of this partition, oldest first: the inbox of whoever is asked. `more` says whether to go on "
    .. "after `last`.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", after = "waitpoint_position?", limit = "list_limit" },
  reply = { page = { items = "[waitpoint]", last = "waitpoint_position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local entries = a.after and of_same_moment(tx, a.after, a.limit + 1) or {}
    local from = a.after and "(" .. string.format("%.0f", a.after.created_at) or "-inf"
    for _, item in ipairs(tx:zlowest(keys.inbox(tx), from, "+inf", a.limit + 1)) do entries[#entries + 1] = item end
    local items, last = {}, nil
    for i, entry in ipairs(entries) do
      if #items >= a.limit or i > limits.list_looks_max then
        return reply.ok("page", { items = items, last = last, more = true })
      end
      local w = waitpoint.load(tx, entry.member)
      local rec = w and execution.load(tx, w.exec)
      if rec and (a.namespace == nil or execution.namespace(rec) == a.namespace) then
        items[#items + 1] = view.typed(rec, w)
      end
      last = { created_at = entry.score, waitpoint_id = entry.member }
    end
    return reply.ok("page", { items = items, last = last, more = #entries > a.limit })
  end,
}
