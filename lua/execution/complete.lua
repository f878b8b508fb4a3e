local define = require "lib.define"
local reply = require "lib.reply"
local complete = require "transition.complete"

define.fn {
  name = "ff_complete_execution",
  doc = "Ends the running attempt with a result.",
  flags = { "allow-oom" },
  pays_later = true,
  args = { execution_id = "execution_id", fence = "fence", result = "result?", result_encoding = "encoding?" },
  reply = { completed = {}, replayed = {} },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local answer = complete.one(tx, a)
    if answer == "replay" then return reply.ok("replayed") end
    return answer or reply.ok("completed")
  end,
}
