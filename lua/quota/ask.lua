local define = require "lib.define"
local reply = require "lib.reply"
local quota = require "record.quota"
local ask = require "transition.ask"

define.fn {
  name = "ff_admit_quota",
  doc = "Asks a quota for executions, in order, each under its key: every part passes or nothing is taken. Nobody "
    .. "takes the room of those who were called or stand in line before it. Who is refused waits for its turn; who is "
    .. "in stays.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", candidates = "quota_candidates" },
  reply = { answered = { items = "[quota_answer]" } },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q, items = ask.quota(tx, a.quota_id, a.candidates), {}
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    for i, c in ipairs(a.candidates) do
      local item = c.wall or {}
      item.holder_id, item.admitted = c.holder_id, c.admitted or false
      item.keep = c.admitted and quota.kept_set(q, c.key) or nil
      items[i] = item
    end
    return reply.ok("answered", { items = items })
  end,
}
