local define = require "lib.define"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_challenge_worker",
  doc = "Asks whoever holds a worker instance id to say that it lives; asked again with the same nonce it says whether "
    .. "the holder answered.",
  flags = { "allow-oom" },
  args = { instance = "instance", nonce = "uuid" },
  reply = { challenged = {}, answered = {}, unknown = {} },
  errs = {},
  call = function(tx, a, now)
    local w = worker.load(tx, a.instance)
    if w == nil or now >= w.expires_at then return reply.ok("unknown") end
    if worker.answered(tx, a.instance) == a.nonce then return reply.ok("answered") end
    tx:announce("challenge", a.instance, a.nonce)
    return reply.ok("challenged")
  end,
}
