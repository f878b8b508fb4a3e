local define = require "lib.define"
local reply = require "lib.reply"

define.fn {
  name = "ff_offer_grant",
  doc = "Tells whichever server a worker claims from of a grant that an operator gave the worker.",
  flags = { "allow-oom" },
  args = { instance = "instance", execution_id = "execution_id", grant_id = "grant_id" },
  reply = { offered = {} },
  errs = {},
  call = function(tx, a)
    tx:announce("offered", a.instance, a.execution_id, a.grant_id)
    return reply.ok("offered")
  end,
}
