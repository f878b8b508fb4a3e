local define = require "lib.define"
local reply = require "lib.reply"
local keys = require "lib.keys"
local home = require "index.home"
local queues = require "index.queues"
local lane = require "record.lane"

-- A lane that starts again, or whose work is claimed directly again, is an edge for each of its queues that holds work.
local function announce_queues(tx, path)
  for _, entry in ipairs(queues.all(tx, path)) do
    local below = "(" .. string.format("%.0f", home.granted_from)
    local head = tx:zlowest(keys.queue_named(tx, path, entry.queue), "-inf", below, 1)[1]
    if head then tx:announce("ready", path, entry.queue, head.score) end
  end
end

define.fn {
  name = "ff_install_lane",
  doc = "Gives a partition its copy of a lane's definition; an older version never replaces a newer one.",
  flags = { "allow-oom" },
  args = { entry = "lane_entry" },
  reply = { installed = {}, newer = { version = "count" } },
  errs = {},
  call = function(tx, a)
    local path = a.entry.namespace .. "/" .. a.entry.lane
    local copy = lane.load(tx, path)
    if copy and copy.version >= a.entry.version then return reply.ok("newer", { version = copy.version }) end
    lane.store(tx, path, a.entry.definition, a.entry.version)
    if copy == nil then
      tx:zadd(keys.lanes(tx), tx.now, path)
    elseif lane.starts(a.entry.definition)
      and (not lane.starts(copy) or (copy.max_active and not a.entry.definition.max_active))
    then
      announce_queues(tx, path)
    end
    return reply.ok("installed")
  end,
}
