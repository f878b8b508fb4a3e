local define = require "lib.define"
local event = require "lib.event"
local quota = require "record.quota"
local reply = require "lib.reply"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_throttle_quota",
  doc = "Nothing starts under this key of a quota until a time: a provider said so. A later time wins over an earlier "
    .. "one; one that has passed changes nothing, and 0 ends the throttle.",
  flags = {},
  args = { quota_id = "quota_id", key = "quota_key", ["until"] = "time_ms", actor = "actor?" },
  reply = { throttled = { ["until"] = "time_ms" }, cleared = {} },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local k = quota_key.load(tx, q, quota.digest(a.key), a.key, true)
    local wanted, before = a["until"], k.throttled and k.throttled > tx.now and k.throttled or nil
    if wanted == 0 then
      k.throttled = nil
    else
      k.throttled = wanted > tx.now and math.max(wanted, before or 0) or before
    end
    quota_key.save(tx, k)
    -- A provider's word that changes nothing is no event.
    if k.throttled ~= before then
      local data = quota.told(q.id, a.actor, a.key)
      if k.throttled then data[#data + 1], data[#data + 2] = "until", string.format("%.0f", k.throttled) end
      local kind = k.throttled and "quota.throttled" or "quota.unthrottled"
      event.of_fleet(tx, kind, q.definition.namespace, nil, nil, unpack(data))
    end
    if k.throttled then return reply.ok("throttled", { ["until"] = k.throttled }) end
    return reply.ok("cleared")
  end,
}
