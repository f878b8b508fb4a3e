local define = require "lib.define"
local reply = require "lib.reply"
local give_back = require "transition.give_back"

define.fn {
  name = "ff_return_quota",
  doc = "Takes holders out of a quota; who is not in it is passed over. Who never ran gives back what its start took. "
    .. "Whoever waits for the room is called.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", items = "quota_returns" },
  reply = { returned = { count = "count" } },
  errs = {},
  call = function(tx, a)
    return reply.ok("returned", { count = give_back.quota(tx, a.quota_id, a.items) })
  end,
}
