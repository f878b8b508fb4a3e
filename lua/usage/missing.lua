local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local reply = require "lib.reply"
local awaits = require "index.awaits"
local execution = require "record.execution"
local runnable = require "transition.runnable"
local spec = require "record.spec"

local function detail_of(rec)
  return rec and rec.phase == "runnable" and rec.reason == "waiting_for_quota" and spec.unflatten(rec.detail) or {}
end

define.fn {
  name = "ff_missing_quotas",
  doc = "The quotas that executions of this partition wait for because they were not there; a page of executions at a "
    .. "time.",
  flags = { "no-writes" },
  args = { after = "awaits_position?", limit = "batch_size" },
  reply = { missing = { quota_ids = "[quota_id]", next = "awaits_position?" } },
  errs = {},
  call = function(tx, a)
    local page = awaits.page(tx, keys.missing(tx), a.after, a.limit)
    local ids, seen = {}, {}
    for _, item in ipairs(page) do
      local id = detail_of(execution.load(tx, item.member)).quota_id
      if id and not seen[id] then ids[#ids + 1], seen[id] = id, true end
    end
    return reply.ok("missing", { quota_ids = ids, next = #page == a.limit and awaits.position(page[#page]) or nil })
  end,
}

define.fn {
  name = "ff_unblock_quota",
  doc = "A quota that was not there is: executions that were refused because of that are eligible again; a page at a "
    .. "time.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", after = "awaits_position?", limit = "batch_size" },
  reply = { unblocked = { count = "count", next = "awaits_position?" } },
  errs = { "try_again" },
  call = function(tx, a)
    local page = awaits.page(tx, keys.missing(tx), a.after, a.limit)
    local count, last = 0, a.after
    for _, item in ipairs(page) do
      local answer = tx:item(function()
        local rec = execution.load(tx, item.member)
        if detail_of(rec).quota_id ~= a.quota_id then return { ok = false } end
        runnable.settle(tx, rec)
        execution.save(tx, rec)
        event.of_execution(tx, rec, "execution.ready", "cause", "waiting_for_quota")
        return { ok = true }
      end)
      if answer and answer.err == "try_again" then
        if count == 0 then return answer end
        return reply.ok("unblocked", { count = count, next = last })
      end
      if answer and answer.ok then count = count + 1 end
      last = awaits.position(item)
    end
    return reply.ok("unblocked", { count = count, next = #page == a.limit and last or nil })
  end,
}
