local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_heartbeat_workers",
  doc = "Keeps registered worker instances alive: one look at each and one write, however many others there are.",
  flags = { "allow-oom" },
  args = { instances = "instances" },
  reply = { beaten = { items = "[heartbeat_result]" } },
  errs = {},
  call = function(tx, a, now)
    local draining = tx:hgetall(keys.draining(tx)) or {}
    local items = {}
    for i, instance in ipairs(a.instances) do
      local expires_at = tx:zscore(keys.workers(tx), instance)
      local known = expires_at ~= nil and now < expires_at
      items[i] = { instance = instance, known = known, draining = known and draining[instance] ~= nil }
    end
    for _, item in ipairs(items) do
      if item.known then worker.touch(tx, item.instance) end
    end
    return reply.ok("beaten", { items = items })
  end,
}
