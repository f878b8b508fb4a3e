local access = require "record.access"
local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"

define.fn {
  name = "ff_revoke_access",
  doc = "The token's bearer may do nothing any more; servers that remember it are told.",
  flags = { "allow-oom" },
  args = { access_id = "uuid", actor = "actor" },
  reply = { revoked = { access = "access" } },
  errs = { "access_not_found" },
  call = function(tx, a)
    local record = access.load(tx, a.access_id)
    if record == nil then return reply.err("access_not_found", { access_id = a.access_id }) end
    access.remove(tx, record)
    event.of_fleet(tx, "operator.token_revoked", nil, nil, nil, "access_id", a.access_id, "name", record.name,
      "actor", a.actor)
    tx:announce("access")
    return reply.ok("revoked", { access = access.typed(record) })
  end,
}
