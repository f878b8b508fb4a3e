local define = require "lib.define"
local keys = require "lib.keys"
local quota = require "record.quota"
local reply = require "lib.reply"
local capacity = require "index.quota_capacity"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_get_quota",
  doc = "A quota and, of the key asked for, how far each of its parts is used, who holds it and who waits.",
  flags = { "no-writes" },
  args = { quota_id = "quota_id", key = "quota_key?" },
  reply = { quota = { entry = "quota_entry", state = "quota_key_state?", now = "time_ms" } },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local state
    if a.key then
      local k = quota_key.load(tx, q, quota.digest(a.key), a.key, true)
      local throttled = k.throttled and k.throttled > tx.now and k.throttled or nil
      state = {
        key = a.key, parts = capacity.uses(tx, k), held = k.held, waiting = k.waiting + k.too_large,
        throttled_until = throttled,
      }
    end
    return reply.ok("quota", {
      entry = quota.typed(q, tx:zcard(keys.quota_keys(tx, q.id))), state = state, now = tx.now,
    })
  end,
}
