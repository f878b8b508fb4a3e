local define = require "lib.define"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_get_worker",
  doc = "One registered worker.",
  flags = { "no-writes" },
  args = { instance = "instance" },
  reply = { worker = { item = "worker" } },
  errs = { "worker_not_registered" },
  call = function(tx, a, now)
    local w = worker.load(tx, a.instance)
    if w == nil or now >= w.expires_at then return reply.err("worker_not_registered", { instance = a.instance }) end
    return reply.ok("worker", { item = w })
  end,
}
