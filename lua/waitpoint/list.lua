local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local waitpoint = require "record.waitpoint"
local view = require "record.waitpoint_view"

define.fn {
  name = "ff_list_waitpoints",
  doc = "Open waitpoints of this partition, oldest first: the inbox of whoever is asked. `more` says whether to go on after `last`.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", after = "waitpoint_position?", limit = "list_limit" },
  reply = { page = { items = "[waitpoint]", last = "waitpoint_position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local entries = {}
    if a.after then
      for _, item in ipairs(tx:zlowest(keys.inbox(tx), string.format("%.0f", a.after.created_at), string.format("%.0f", a.after.created_at), limits.list_looks_max)) do
        if item.member > a.after.waitpoint_id then entries[#entries + 1] = item end
      end
    end
    local from = a.after and "(" .. string.format("%.0f", a.after.created_at) or "-inf"
    for _, item in ipairs(tx:zlowest(keys.inbox(tx), from, "+inf", a.limit + 1)) do entries[#entries + 1] = item end
    local items, last = {}, nil
    for _, entry in ipairs(entries) do
      if #items >= a.limit then return reply.ok("page", { items = items, last = last, more = true }) end
      local w = waitpoint.load(tx, entry.member)
      local rec = w and execution.load(tx, w.exec)
      if rec and (a.namespace == nil or rec.spec.namespace == a.namespace) then items[#items + 1] = view.typed(rec, w) end
      last = { created_at = entry.score, waitpoint_id = entry.member }
    end
    return reply.ok("page", { items = items, last = last, more = #entries > a.limit })
  end,
}
