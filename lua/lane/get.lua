local define = require "lib.define"
local reply = require "lib.reply"
local lane = require "record.lane"

define.fn {
  name = "ff_get_lane",
  doc = "A lane's definition as the fleet or a partition has it.",
  flags = { "no-writes" },
  args = { namespace = "namespace", lane = "lane" },
  reply = { lane = { entry = "lane_entry" } },
  errs = { "lane_not_found" },
  call = function(tx, a)
    local copy = lane.load(tx, a.namespace .. "/" .. a.lane)
    if copy == nil then return reply.err("lane_not_found", { lane = a.lane }) end
    local definition = lane.definition(copy)
    return reply.ok("lane", {
      entry = { namespace = a.namespace, lane = a.lane, version = copy.version, definition = definition },
    })
  end,
}
