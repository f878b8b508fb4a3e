local define = require "lib.define"
local flow = require "record.flow"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

define.fn {
  name = "ff_list_flows",
  doc = "Flows of this partition, newest first, that match every filter given; a page may be short, `more` says "
    .. "whether to go on after `last`.",
  flags = { "no-writes" },
  weight = "limit",
  args = {
    namespace = "namespace?", kind = "kind?", state = "flow_state?", after = "flow_position?", limit = "list_limit",
  },
  reply = { page = { items = "[flow]", last = "flow_position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local looks = limits.list_looks_max
    local top = a.after and string.format("%.0f", a.after.created_at) or "+inf"
    local found = tx:zhighest(keys.flows(tx), top, "-inf", looks)
    -- Entries of one millisecond come in the order of their ids, backwards; those up to `after` have been seen.
    local items, last, more = {}, nil, #found == looks
    for _, item in ipairs(found) do
      local seen = a.after and item.score == a.after.created_at and item.member >= a.after.flow_id
      if not seen then
        if #items >= a.limit then
          more = true
          break
        end
        local f = flow.find(tx, item.member)
        if f and (a.namespace == nil or f.namespace == a.namespace) and (a.kind == nil or f.kind == a.kind)
          and (a.state == nil or flow.state(f) == a.state)
        then
          items[#items + 1] = flow.typed(f)
        end
        last = { created_at = item.score, flow_id = item.member }
      end
    end
    return reply.ok("page", { items = items, last = last, more = more })
  end,
}
