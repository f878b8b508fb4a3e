local define = require "lib.define"
local reply = require "lib.reply"
local keys = require "lib.keys"
local lane = require "record.lane"

define.fn {
  name = "ff_list_lanes",
  doc = "The fleet's lanes, oldest first.",
  flags = { "no-writes" },
  args = { offset = "count", limit = "list_limit" },
  reply = { lanes = { entries = "[lane_entry]", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local found = tx:zrange(keys.lanes(tx), string.format("%.0f", a.offset), string.format("%.0f", a.offset + a.limit))
    local entries = {}
    for i = 1, math.min(#found, a.limit) do
      local copy = lane.load(tx, found[i])
      if copy then
        local namespace, name = lane.split(found[i])
        entries[#entries + 1] = {
          namespace = namespace, lane = name, version = copy.version, definition = lane.definition(copy),
        }
      end
    end
    return reply.ok("lanes", { entries = entries, more = #found > a.limit })
  end,
}
