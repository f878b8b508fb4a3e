local define = require "lib.define"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_answer_challenge",
  doc = "The holder of a worker instance id says that it lives; only the registered incarnation can.",
  flags = { "allow-oom" },
  args = { instance = "instance", incarnation = "uuid", nonce = "uuid" },
  reply = { answered = {} },
  errs = { "worker_not_registered", "instance_in_use" },
  call = function(tx, a)
    local w = worker.load(tx, a.instance)
    if w == nil then return reply.err("worker_not_registered", { instance = a.instance }) end
    if w.incarnation ~= a.incarnation then
      return reply.err("instance_in_use", { instance = a.instance, registered_at = w.registered_at })
    end
    worker.answer(tx, a.instance, a.nonce)
    worker.touch(tx, a.instance)
    tx:announce("answered", a.instance, a.nonce)
    return reply.ok("answered")
  end,
}
