local define = require "lib.define"
local children = require "record.children"
local execution = require "record.execution"
local limits = require "lib.limits"
local reply = require "lib.reply"

define.fn {
  name = "ff_read_children",
  doc = "The children of an execution in the order they were spawned, a page at a time; `next` is the number to go on "
    .. "from.",
  flags = { "no-writes" },
  weight = "limit",
  args = { execution_id = "execution_id", from = "count?", limit = "list_limit" },
  reply = { page = { children = "[child]", next = "count?" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local list, rest = children.page(tx, rec, a.from or 1, a.limit, limits.stream_read_bytes_max)
    return reply.ok("page", { children = list, next = rest })
  end,
}
