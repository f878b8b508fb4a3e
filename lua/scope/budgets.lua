local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_budgets_of_scopes",
  doc = "The budgets that apply in scopes, one list for each.",
  flags = { "no-writes" },
  args = { scopes = "scope_names" },
  reply = { scopes = { items = "[scope_budgets]" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for i, scope in ipairs(a.scopes) do
      local packed = tx:hget(keys.scopes(tx), scope)
      items[i] = { scope = scope, budget_ids = packed and cmsgpack.unpack(packed) or {} }
    end
    return reply.ok("scopes", { items = items })
  end,
}
