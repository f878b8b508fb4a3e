local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local reply = require "lib.reply"
local execution = require "record.execution"
local runnable = require "transition.runnable"
local spec = require "record.spec"
local waiting = require "usage.waiting"

-- Moves one execution if the budget is what it waits for, and had room again since.
local function unblock(tx, id, a)
  return tx:item(function()
    local rec = execution.load(tx, id)
    local detail = rec and rec.phase == "runnable" and rec.reason == "waiting_for_budget" and spec.unflatten(rec.detail)
    if not detail or detail.budget_id ~= a.budget_id or (tonumber(detail.rooms or nil) or -1) >= a.rooms then return { ok = false } end
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.ready", { "cause", "waiting_for_budget" })
    return { ok = true }
  end)
end

define.fn {
  name = "ff_unblock_budget",
  doc = "A budget had room again: executions of a lane that wait for it, refused or parked before that, are eligible again at the place of their original score; a page at a time.",
  flags = { "allow-oom" },
  args = { namespace = "namespace", lane = "lane", budget_id = "budget_id", rooms = "count", after = "blocked_position?", limit = "batch_size" },
  reply = { unblocked = { count = "count", next = "blocked_position?" } },
  errs = { "try_again" },
  call = function(tx, a)
    local page = waiting.page(tx, keys.place(tx, a.namespace .. "/" .. a.lane, "blocked:budget"), a.after, a.limit)
    local count, last = 0, a.after
    for _, item in ipairs(page) do
      -- A record that cannot be read is fsck's to report.
      local answer = unblock(tx, item.member, a)
      if answer and answer.err == "try_again" then
        if count == 0 then return answer end
        return reply.ok("unblocked", { count = count, next = last })
      end
      if answer and answer.ok then count = count + 1 end
      last = { since = item.score, execution_id = item.member }
    end
    return reply.ok("unblocked", { count = count, next = #page == a.limit and last or nil })
  end,
}
