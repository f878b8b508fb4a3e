local access = require "record.access"
local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

-- Nothing but the digest tells two grants of one id apart.
local function same(known, a)
  return known.digest == a.digest and known.name == a.name
end

define.fn {
  name = "ff_grant_access",
  doc = "Lets the bearer of a token act: its roles, and where. Only the token's digest is kept.",
  flags = {},
  args = {
    access_id = "uuid", digest = "token_digest", name = "access_name", roles = "roles", namespaces = "namespaces?",
    lanes = "lane_names?", capabilities = "capabilities?", expires_at = "time_ms?", actor = "actor",
  },
  reply = { granted = { access = "access" } },
  errs = { "idempotency_conflict" },
  call = function(tx, a, now)
    if #a.roles == 0 then
      return reply.err("invalid_argument", { field = "roles", problem = "must name at least one role" })
    end
    for _, field in ipairs { "namespaces", "lanes" } do
      if a[field] and #a[field] == 0 then
        return reply.err("invalid_argument", { field = field, problem = "must name at least one, or be absent" })
      end
    end
    if a.expires_at and a.expires_at <= now then
      return reply.err("invalid_argument", { field = "expires_at", problem = "has passed" })
    end
    local known = access.load(tx, a.access_id)
    if known then
      if not same(known, a) then return reply.err("idempotency_conflict", { access_id = a.access_id }) end
      return reply.ok("granted", { access = access.typed(known) })
    end
    local taken = tx:hget(keys.access_digests(tx), a.digest)
    if taken then return reply.err("idempotency_conflict", { access_id = taken }) end
    if tx:hlen(keys.access(tx)) >= limits.accesses_max then
      return reply.err("invalid_argument", {
        field = "access_id", problem = string.format("there are %d tokens already", limits.accesses_max),
      })
    end
    local record = {
      access_id = a.access_id, digest = a.digest, name = a.name, roles = a.roles, namespaces = a.namespaces,
      lanes = a.lanes, capabilities = a.capabilities, created_at = now, created_by = a.actor, expires_at = a.expires_at,
    }
    access.save(tx, record)
    event.of_fleet(tx, "operator.token_created", nil, nil, nil, "access_id", a.access_id, "name", a.name,
      "roles", table.concat(a.roles, " "), "actor", a.actor)
    return reply.ok("granted", { access = access.typed(record) })
  end,
}
