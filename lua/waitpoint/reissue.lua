local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local waitpoint = require "record.waitpoint"

define.fn {
  name = "ff_reissue_token",
  doc = "An operator replaces the token of one approver, or the waitpoint's one token; the old one dies. A waitpoint "
    .. "without tokens gets its first.",
  flags = { "allow-oom" },
  args = {
    waitpoint_id = "waitpoint_id", execution_id = "execution_id", approver = "approver?", digest = "token_digest",
    actor = "actor",
  },
  reply = { reissued = { expires_at = "time_ms?", uses_left = "count?" } },
  errs = { "waitpoint_not_found", "waitpoint_not_open" },
  call = function(tx, a)
    local w = waitpoint.load(tx, a.waitpoint_id)
    local rec = w and w.exec == a.execution_id and execution.load(tx, w.exec)
    if not rec then return reply.err("waitpoint_not_found", { waitpoint_id = a.waitpoint_id }) end
    if w.state == "closed" or (w.expires and w.expires <= tx.now) then return reply.err("waitpoint_not_open") end
    local found
    local tokens = waitpoint.tokens(w)
    for _, token in ipairs(tokens) do
      if (token[2] or nil) == a.approver then found = token end
    end
    if found == nil and #tokens > 0 then
      return reply.err("invalid_argument", { field = "approver", problem = "is not an approver of this waitpoint" })
    end
    if found and found[1] == a.digest then
      return reply.ok("reissued", { expires_at = w.expires, uses_left = found[3] or nil })
    end
    if found == nil then
      found = { a.digest, a.approver or false, w.uses or false, false }
      tokens[1] = found
    end
    found[1] = a.digest
    w.tokens = cmsgpack.pack(tokens)
    waitpoint.save(tx, w)
    more.note_action(tx, rec, "reissue_token", a.actor, w.key)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "waitpoint.token_reissued", "waitpoint_id", w.id, "actor", a.actor)
    return reply.ok("reissued", { expires_at = w.expires, uses_left = found[3] or nil })
  end,
}
