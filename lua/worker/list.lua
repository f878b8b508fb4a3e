local define = require "lib.define"
local reply = require "lib.reply"
local keys = require "lib.keys"
local worker = require "record.worker"

define.fn {
  name = "ff_list_workers",
  doc = "Registered workers that are alive, oldest registration first.",
  flags = { "no-writes" },
  args = { offset = "count", limit = "list_limit" },
  reply = { workers = { items = "[worker]", more = "bool" } },
  errs = {},
  call = function(tx, a, now)
    local found = tx:read("ZRANGE", keys.workers(tx), string.format("%.0f", a.offset), string.format("%.0f", a.offset + a.limit))
    local items = {}
    for i = 1, math.min(#found, a.limit) do
      local w = worker.load(tx, found[i])
      if w and now < w.expires_at then items[#items + 1] = w end
    end
    return reply.ok("workers", { items = items, more = #found > a.limit })
  end,
}
