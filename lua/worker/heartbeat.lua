local define = require "lib.define"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_heartbeat_workers",
  doc = "Keeps registered worker instances alive, many in one call.",
  flags = { "allow-oom" },
  args = { instances = "instances" },
  reply = { beaten = { items = "[heartbeat_result]" } },
  errs = {},
  call = function(tx, a, now)
    local items = {}
    for i, instance in ipairs(a.instances) do
      local w = worker.load(tx, instance)
      local known = w ~= nil and now < w.expires_at
      if known then worker.touch(tx, w) end
      items[i] = { instance = instance, known = known, draining = known and w.state == "draining" }
    end
    return reply.ok("beaten", { items = items })
  end,
}
