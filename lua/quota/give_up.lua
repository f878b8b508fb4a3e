local define = require "lib.define"
local quota = require "record.quota"
local reply = require "lib.reply"
local line = require "index.quota_line"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_give_up_called",
  doc = "Executions that a quota has called ended or went elsewhere meanwhile: nobody waits for them, and the next in "
    .. "line are called. Who is not expected is passed over.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", items = "quota_absences" },
  reply = { given_up = { count = "count" } },
  errs = {},
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    local known, order, count = {}, {}, 0
    for _, item in ipairs(q and a.items or {}) do
      local k = known[item.key_digest]
      if k == nil then
        k = quota_key.load(tx, q, item.key_digest) or false
        known[item.key_digest] = k
      end
      if k and line.give_up(k, item.execution_id) then
        if not k.touched then k.touched, order[#order + 1] = true, k end
        count = count + 1
      end
    end
    for _, k in ipairs(order) do quota_key.save(tx, k) end
    return reply.ok("given_up", { count = count })
  end,
}
