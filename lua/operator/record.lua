local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"

define.fn {
  name = "ff_record_action",
  doc = "Records what an operator did that changes no record of its own: the keys are not in the store, and a repair "
    .. "has no one place.",
  flags = { "allow-oom" },
  args = { action = "recorded_action", actor = "actor", key_id = "key_id?" },
  reply = { recorded = {} },
  errs = {},
  call = function(tx, a)
    local data = { "actor", a.actor }
    if a.key_id then data[3], data[4] = "key_id", a.key_id end
    event.of_fleet(tx, "operator." .. a.action, nil, nil, nil, unpack(data))
    return reply.ok("recorded")
  end,
}
