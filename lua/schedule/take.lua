local define = require "lib.define"
local fire = require "transition.fire"
local keys = require "lib.keys"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_take_firing",
  doc = "What a firing submits, while that is owed: `settled` says that it was submitted, missed or forgotten.",
  flags = { "no-writes" },
  args = { namespace = "namespace", name = "schedule_name", number = "count" },
  reply = { due = { firing = "firing", action = "schedule_action" }, settled = {} },
  errs = {},
  call = function(tx, a)
    local s = schedule.find(tx, a)
    local f = s and fire.find(s, a.number)
    if f == nil then return reply.ok("settled") end
    return reply.ok("due", {
      firing = schedule.typed_firing(a.number, { f[2], f[3], f[4], "due", f[5] }),
      action = tx:get(keys.schedule_action(tx, s.path)),
    })
  end,
}
