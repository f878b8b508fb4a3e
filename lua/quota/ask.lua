local define = require "lib.define"
local reply = require "lib.reply"
local ask = require "transition.ask"

define.fn {
  name = "ff_admit_quota",
  doc = "Asks a quota for executions, in order, each under its key: every part passes or nothing is taken. Nobody takes the room of those who were called or stand in line before it. Who is refused waits for its turn; who is in stays.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", candidates = "quota_candidates" },
  reply = { answered = { items = "[quota_answer]" } },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local items = ask.quota(tx, a.quota_id, a.candidates)
    if items == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    return reply.ok("answered", { items = items })
  end,
}
