local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local outbox = require "lib.outbox"
local worker = require "record.worker"

define.fn {
  name = "ff_mark_worker_dead",
  doc = "An operator declares a worker dead: its registration ends and its leases are taken away, owed to every "
    .. "partition.",
  flags = { "allow-oom" },
  args = { instance = "instance", actor = "actor" },
  reply = { marked = {} },
  errs = { "worker_not_registered" },
  call = function(tx, a)
    local w = worker.load(tx, a.instance)
    if w == nil then return reply.err("worker_not_registered", { instance = a.instance }) end
    worker.remove(tx, w)
    event.of_fleet(tx, "worker.marked_dead", w.namespace, nil, w.instance, "actor", a.actor)
    outbox.owe(tx, "revoke_leases", { "instance", a.instance, "actor", a.actor })
    return reply.ok("marked")
  end,
}
