local define = require "lib.define"
local children = require "record.children"
local event = require "lib.event"
local execution = require "record.execution"
local fence = require "record.fence"
local limits = require "lib.limits"
local reply = require "lib.reply"
local runnable = require "transition.runnable"
local step = require "record.step"

define.fn {
  name = "ff_wait_children",
  doc = "Sets the running attempt aside until every child has ended; the next claim continues it with their outcomes. "
    .. "When all have ended already the lease stays, unless `aside` says that the attempt lets go of it all the same. "
    .. "`step` makes it a step: once it is done, a later call is answered the same outcomes.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", wait_id = "suspension_id", aside = "bool?",
    step = "step_name?",
  },
  reply = { waiting = { open = "count" }, ended = { children = "[child]", more = "bool" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "step_changed",
    "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "wait_children")
    if refusal == "replay" then return reply.ok("waiting", { open = children.load(rec).open }) end
    if refusal then return refusal end
    local s = a.step and step.find(tx, rec, a.step)
    if s and s.kind ~= "children" then return step.changed(s, "children") end
    if s and s.state == "done" then
      local told = step.resume(tx, rec, s)
      return reply.ok("ended", { children = told.children, more = told.more_children ~= nil })
    end
    refusal = a.step and step.full(rec, s)
    if refusal then return refusal end
    local k = children.load(rec)
    local open = k.open
    if open == 0 and not a.aside then
      if a.step then
        step.found(tx, rec, a.step, "children", { id = a.wait_id, cause = "children", refs = {}, upto = k.total })
        execution.store(tx, rec)
      end
      local list, rest = children.page(tx, rec, 1, limits.children_inline_max, limits.resume_inline_bytes_max)
      return reply.ok("ended", { children = list, more = rest ~= nil })
    end
    rec.ended_by, rec.ended_value = "wait_children", tx.now
    rec.time_left = rec.timeout_at and math.max(rec.timeout_at - tx.now, 1) or nil
    rec.timeout_at, rec.yield, rec.reclaims, rec.satisfied = nil, nil, nil, nil
    rec.attempt_state, rec.resume, rec.awaiting = "suspended", 1, 1
    rec.woken, rec.waits = cmsgpack.pack({ a.wait_id, "children", {}, a.step or false }), 1
    if a.step then step.wait(tx, rec, s, a.step, "children", tx.now) end
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.waiting", "reason", "waiting_for_children", "open", open)
    return reply.ok("waiting", { open = open })
  end,
}
