local define = require "lib.define"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_list_workers",
  doc = "Registered workers that are alive, in the order of their instance names.",
  flags = { "no-writes" },
  args = { offset = "count", limit = "list_limit" },
  reply = { workers = { items = "[worker]", more = "bool" } },
  errs = {},
  call = function(tx, a, now)
    local all = worker.all(tx)
    local items = {}
    for i = a.offset + 1, math.min(#all, a.offset + a.limit) do
      if now < all[i].expires_at then items[#items + 1] = worker.load(tx, all[i].instance, all[i].expires_at) end
    end
    return reply.ok("workers", { items = items, more = #all > a.offset + a.limit })
  end,
}
