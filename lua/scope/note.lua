local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

define.fn {
  name = "ff_note_scope",
  doc = "Says that a budget applies to everything in a scope, or with `gone` that it does no longer.",
  flags = { "allow-oom" },
  args = { scope = "scope_name", budget_id = "budget_id", gone = "bool?" },
  reply = { noted = { budget_ids = "[budget_id]" } },
  errs = { "budget_in_use" },
  call = function(tx, a)
    local packed = tx:hget(keys.scopes(tx), a.scope)
    local rest = {}
    for _, id in ipairs(packed and cmsgpack.unpack(packed) or {}) do
      if id ~= a.budget_id then rest[#rest + 1] = id end
    end
    if not a.gone then
      if #rest >= limits.budgets_per_scope_max then
        return reply.err("budget_in_use", { scope = a.scope, budgets = #rest })
      end
      rest[#rest + 1] = a.budget_id
      table.sort(rest)
    end
    if #rest > 0 then
      tx:hset(keys.scopes(tx), { a.scope, cmsgpack.pack(rest) })
    else
      tx:hdel(keys.scopes(tx), a.scope)
    end
    return reply.ok("noted", { budget_ids = rest })
  end,
}
