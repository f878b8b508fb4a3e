local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local quota = require "record.quota"
local reply = require "lib.reply"
local outbox = require "lib.outbox"
local gone = require "index.gone"

define.fn {
  name = "ff_put_quota",
  doc = "Creates a quota, or with the version it has now replaces its definition; the same definition again changes "
    .. "nothing. Running work is never stopped by a lower limit.",
  flags = {},
  args = { quota = "quota", version = "count?", actor = "actor?" },
  reply = {
    created = { entry = "quota_entry" }, duplicate = { entry = "quota_entry" }, replaced = { entry = "quota_entry" },
  },
  errs = { "quota_not_found", "quota_version_conflict" },
  call = function(tx, a)
    local n = a.quota
    if not (n.rate or n.concurrency or n.weighted) then
      return reply.err("invalid_argument", {
        field = "quota", problem = "must have a rate, a concurrency or a weighted part",
      })
    end
    local packed = quota.pack(n)
    local known = quota.load(tx, n.quota_id)
    if known == nil then
      if a.version then return reply.err("quota_not_found", { quota_id = n.quota_id }) end
      -- One of the same name is still being taken apart.
      if quota.load(tx, n.quota_id, true) then
        return reply.err("quota_version_conflict", { quota_id = n.quota_id, problem = "is being deleted" })
      end
      quota.save(tx, quota.new(tx, n.quota_id, packed))
      tx:zadd(keys.quotas(tx), tx.now, n.quota_id)
      -- Work may wait for it that was refused because it was not there.
      if gone.back(tx, n.quota_id) then outbox.owe(tx, "quota_returned", { "quota_id", n.quota_id }) end
      event.of_fleet(tx, "quota.created", n.namespace, nil, nil, unpack(quota.told(n.quota_id, a.actor)))
      return reply.ok("created", { entry = { quota = n, version = 1, created_at = tx.now, keys = 0 } })
    end
    local count = tx:zcard(keys.quota_keys(tx, n.quota_id))
    if known.packed == packed then return reply.ok("duplicate", { entry = quota.typed(known, count) }) end
    if a.version ~= known.version then
      return reply.err("quota_version_conflict", { quota_id = n.quota_id, version = known.version })
    end
    local version = known.version + 1
    known.packed, known.version, known.changed = packed, version, tx.now
    if count > 0 then quota.walk(tx, known) else quota.save(tx, known) end
    event.of_fleet(tx, "quota.changed", n.namespace, nil, nil, unpack(quota.told(n.quota_id, a.actor)))
    return reply.ok("replaced", { entry = { quota = n, version = version, created_at = known.created, keys = count } })
  end,
}
