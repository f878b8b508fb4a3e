local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local queues = require "index.queues"

define.fn {
  name = "ff_count_ahead",
  doc = "How many eligible executions of a lane stand before another of any partition here; `more` when they are more "
    .. "than one call looks at.",
  flags = { "no-writes" },
  args = { namespace = "namespace", lane = "lane", score = "int", execution_id = "execution_id" },
  reply = { ahead = { count = "count", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local path, count, more = a.namespace .. "/" .. a.lane, 0, false
    local function look(queue)
      local key = keys.queue_named(tx, path, queue)
      local found = tx:zlowest(key, "-inf", string.format("%.0f", a.score), limits.list_looks_max)
      for _, item in ipairs(found) do
        if item.score < a.score or item.member < a.execution_id then count = count + 1 end
      end
      more = more or #found == limits.list_looks_max
    end
    for _, entry in ipairs(queues.all(tx, path)) do look(entry.queue) end
    return reply.ok("ahead", { count = count, more = more })
  end,
}
