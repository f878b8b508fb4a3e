local define = require "lib.define"
local quota = require "record.quota"
local reply = require "lib.reply"
local holders = require "index.holders"
local capacity = require "index.quota_capacity"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_settle_quota",
  doc = "Says what an admitted execution really weighed. It may be more than the limit: later admissions wait for it. "
    .. "`gone`: the window has passed it, or it weighs nothing here.",
  flags = { "allow-oom" },
  args = {
    quota_id = "quota_id", key = "quota_key", execution_id = "execution_id", holder_id = "holder_id", weight = "count",
  },
  reply = { settled = { used = "count", limit = "count" }, gone = {} },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local k = quota_key.load(tx, q, quota.digest(a.key))
    if k == nil or not capacity.reweigh(tx, k, holders.member(a), a.weight) then return reply.ok("gone") end
    quota_key.save(tx, k)
    return reply.ok("settled", { used = math.max(k.sum, 0), limit = q.definition.weighted.limit })
  end,
}
