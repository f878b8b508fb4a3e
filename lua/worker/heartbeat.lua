local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_heartbeat_workers",
  doc = "Keeps registered worker instances alive: one read and one write, however many there are.",
  flags = { "allow-oom" },
  args = { instances = "instances" },
  reply = { beaten = { items = "[heartbeat_result]" } },
  errs = {},
  call = function(tx, a, now)
    local ends = {}
    for _, entry in ipairs(worker.all(tx)) do ends[entry.instance] = entry.expires_at end
    local draining = tx:hgetall(keys.draining(tx)) or {}
    local items = {}
    for i, instance in ipairs(a.instances) do
      local known = ends[instance] ~= nil and now < ends[instance]
      if known then worker.touch(tx, instance) end
      items[i] = { instance = instance, known = known, draining = known and draining[instance] ~= nil }
    end
    return reply.ok("beaten", { items = items })
  end,
}
