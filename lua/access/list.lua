local access = require "record.access"
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_list_access",
  doc = "Who may act by a token, in the order of their ids; never a token or its digest.",
  flags = { "no-writes" },
  args = { after = "uuid?", limit = "list_limit" },
  reply = { page = { items = "[access]", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local ids, records = {}, tx:hgetall(keys.access(tx)) or {}
    for id in pairs(records) do
      if a.after == nil or id > a.after then ids[#ids + 1] = id end
    end
    table.sort(ids)
    local items = {}
    for i = 1, math.min(#ids, a.limit) do items[i] = access.typed(access.open(records[ids[i]])) end
    return reply.ok("page", { items = items, more = #ids > a.limit })
  end,
}
