local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local outbox = require "lib.outbox"
local worker = require "record.worker"

define.fn {
  name = "ff_drain_worker",
  doc = "An operator asks a worker to take nothing new and to yield what it holds; the request to its leases is owed "
    .. "to every partition.",
  flags = { "allow-oom" },
  args = { instance = "instance", actor = "actor" },
  reply = { draining = {}, already = {} },
  errs = { "worker_not_registered" },
  call = function(tx, a)
    local w = worker.load(tx, a.instance)
    if w == nil then return reply.err("worker_not_registered", { instance = a.instance }) end
    if w.state == "draining" then return reply.ok("already") end
    worker.drain(tx, a.instance)
    event.of_fleet(tx, "worker.draining", w.namespace, nil, w.instance, "actor", a.actor)
    outbox.owe(tx, "yield_leases", { "instance", a.instance, "actor", a.actor })
    return reply.ok("draining")
  end,
}
