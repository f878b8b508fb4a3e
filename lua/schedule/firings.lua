local define = require "lib.define"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_list_firings",
  doc = "The last firings of a schedule with what became of each, newest first.",
  flags = { "no-writes" },
  args = { namespace = "namespace", name = "schedule_name" },
  reply = { firings = { items = "[firing]" } },
  errs = { "schedule_not_found" },
  call = function(tx, a)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    return reply.ok("firings", { items = schedule.firings(tx, s) })
  end,
}
