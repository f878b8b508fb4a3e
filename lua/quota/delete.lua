local define = require "lib.define"
local event = require "lib.event"
local gone = require "index.gone"
local quota = require "record.quota"
local reply = require "lib.reply"

define.fn {
  name = "ff_delete_quota",
  doc = "Deletes a quota: nothing that names it is admitted any more. Who waits for it is called and refused; who runs "
    .. "goes on.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", actor = "actor?" },
  reply = { deleted = {} },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then
      if quota.load(tx, a.quota_id, true) or gone.had(tx, a.quota_id) then return reply.ok("deleted") end
      return reply.err("quota_not_found", { quota_id = a.quota_id })
    end
    q.deleted = 1
    quota.walk(tx, q)
    event.of_fleet(tx, "quota.deleted", q.definition.namespace, nil, nil, unpack(quota.told(q.id, a.actor)))
    return reply.ok("deleted")
  end,
}
