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
    local active = string.format("%.0f", home.active_from)
    local function waiting(name)
      local key = keys.queue_named(tx, path, name)
      return tx:zcard(key) - tx:zcount(key, active, "+inf")
    end
    local depth = 0
    for _, entry in ipairs(queues.all(tx, path)) do depth = depth + waiting(entry.queue) end
    for _, place in ipairs(home.places) do
      if place ~= "terminal" and place ~= "suspended" then depth = depth + tx:zcard(keys.place(tx, path, place)) end
    end
    return reply.ok("depth", { depth = depth })
  end,
}
