local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local home = require "index.home"
local queues = require "index.queues"

define.fn {
  name = "ff_lane_depth",
  doc = "How many executions of a lane wait in this partition: eligible, delayed or blocked.",
  flags = { "no-writes" },
  args = { namespace = "namespace", lane = "lane" },
  reply = { depth = { depth = "count" } },
  errs = {},
  call = function(tx, a)
    local path = a.namespace .. "/" .. a.lane
    local top = "(" .. string.format("%.0f", home.active_from)
    local depth = tx:zcount(keys.queue(tx, path, "any"), "-inf", top)
    for _, entry in ipairs(queues.all(tx, path)) do depth = depth + tx:zcount(keys.queue(tx, path, entry.queue), "-inf", top) end
    for _, place in ipairs(home.places) do
      if place ~= "terminal" and place ~= "suspended" then depth = depth + tx:zcard(keys.place(tx, path, place)) end
    end
    return reply.ok("depth", { depth = depth })
  end,
}
