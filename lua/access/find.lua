local access = require "record.access"
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_find_access",
  doc = "What the bearer of the token with this digest may do. A token that has expired is nobody's.",
  flags = { "no-writes" },
  args = { digest = "token_digest" },
  reply = { found = { access = "access" } },
  errs = { "access_not_found" },
  call = function(tx, a, now)
    local id = tx:hget(keys.access_digests(tx), a.digest)
    local record = id and access.load(tx, id)
    if record == nil or (record.expires_at and record.expires_at <= now) then return reply.err("access_not_found") end
    return reply.ok("found", { access = access.typed(record) })
  end,
}
