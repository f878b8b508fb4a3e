local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local worker = require "record.worker"

define.fn {
  name = "ff_deregister_worker",
  doc = "Ends a registration; given an incarnation, only that one's. The actor is the operator who insists on it.",
  flags = { "allow-oom" },
  args = { instance = "instance", incarnation = "uuid?", actor = "actor?" },
  reply = { deregistered = {}, unknown = {} },
  errs = { "instance_in_use" },
  call = function(tx, a)
    local w = worker.load(tx, a.instance)
    if w == nil then return reply.ok("unknown") end
    if a.incarnation and w.incarnation and a.incarnation ~= w.incarnation then
      return reply.err("instance_in_use", { instance = a.instance, registered_at = w.registered_at })
    end
    worker.remove(tx, w)
    local data = { "worker_id", w.worker_id }
    if a.actor then data[3], data[4] = "actor", a.actor end
    event.of_fleet(tx, "worker.left", w.namespace, nil, w.instance, unpack(data))
    return reply.ok("deregistered")
  end,
}
