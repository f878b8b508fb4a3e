local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local awaits = require "index.awaits"
local execution = require "record.execution"
local spec = require "record.spec"

define.fn {
  name = "ff_awaiting_budget",
  doc = "Who of this partition waits for a budget, the first to go on first, and how many do; a page at a time.",
  flags = { "no-writes" },
  args = { budget_id = "budget_id", after = "awaits_position?", limit = "batch_size" },
  reply = { waiting = { items = "[awaiting]", count = "count", next = "awaits_position?" } },
  errs = {},
  call = function(tx, a)
    local key = keys.awaits(tx, a.budget_id)
    local page = awaits.page(tx, key, a.after, a.limit)
    local items = {}
    for _, item in ipairs(page) do
      local rec = execution.load(tx, item.member)
      if rec then
        items[#items + 1] = {
          execution_id = rec.id, score = item.score, namespace = execution.namespace(rec), lane = execution.lane(rec),
          kind = rec.kind, blocked_since = rec.since, continues = rec.resume ~= nil,
          detail = rec.detail and spec.unflatten(rec.detail) or nil,
        }
      end
    end
    return reply.ok("waiting", {
      items = items, count = tx:zcard(key), next = #page == a.limit and awaits.position(page[#page]) or nil,
    })
  end,
}
