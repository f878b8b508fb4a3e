local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local reply = require "lib.reply"
local awaits = require "index.awaits"
local asks = require "record.asks"
local execution = require "record.execution"
local runnable = require "transition.runnable"
local spec = require "record.spec"

-- What an execution asks of the budget; nil when it names another one below it, or reported to it unasked.
local function named(rec, id)
  for _, ref in ipairs(asks.of(rec).budgets) do
    if ref.budget_id == id then return ref end
  end
end

-- Whether so much room may help the execution; what it takes of it is taken. Who waits for an approval is told of that.
local function fits(rec, detail, a)
  local free = a.free
  if free == nil or detail.problem then return true end
  if detail.refusal ~= "hard" then return false end
  local ref = named(rec, a.budget_id)
  local estimate = ref and ref.estimate or {}
  if ref and next(estimate) == nil then
    for _, left in pairs(free) do
      if left < 1 then return false end
    end
  end
  if ref == nil and (free[detail.dimension] or 1) < 1 then return false end
  for name, n in pairs(estimate) do
    if (free[name] or n) < n then return false end
  end
  for name, n in pairs(estimate) do
    if free[name] then free[name] = free[name] - n end
  end
  return true
end

-- Moves one execution if the budget is what it waits for, and had room again since.
local function unblock(tx, id, a)
  return tx:item(function()
    local rec = execution.load(tx, id)
    local detail = rec and rec.phase == "runnable" and rec.reason == "waiting_for_budget" and spec.unflatten(rec.detail)
    if not detail or detail.budget_id ~= a.budget_id or (tonumber(detail.rooms or nil) or -1) >= a.rooms then
      return { ok = false }
    end
    if not fits(rec, detail, a) then return { ok = false, passed = true } end
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.ready", "cause", "waiting_for_budget")
    return { ok = true }
  end)
end

define.fn {
  name = "ff_unblock_budget",
  doc = "A budget had room again: executions that wait for it, refused or parked before that, are eligible again at "
    .. "the place of their original score, the first in line first; a page at a time, and no more than `most`. With "
    .. "`free`, whoever does not fit into what is left below the hard limits is passed over; `left` is what the others "
    .. "leave of it.",
  flags = { "allow-oom" },
  args = {
    budget_id = "budget_id", rooms = "count", free = "free?", most = "count?", after = "awaits_position?",
    limit = "batch_size",
  },
  reply = { unblocked = { count = "count", passed_over = "count", left = "free?", next = "awaits_position?" } },
  errs = { "try_again" },
  call = function(tx, a)
    local page = awaits.page(tx, keys.awaits(tx, a.budget_id), a.after, a.limit)
    local count, passed, last, looked = 0, 0, a.after, 0
    for _, item in ipairs(page) do
      if a.most and count >= a.most then break end
      -- A record that cannot be read is fsck's to report.
      local answer = unblock(tx, item.member, a)
      if answer and answer.err == "try_again" then
        if count == 0 then return answer end
        return reply.ok("unblocked", { count = count, passed_over = passed, left = a.free, next = last })
      end
      if answer and answer.ok then count = count + 1 end
      if answer and answer.passed then passed = passed + 1 end
      last, looked = awaits.position(item), looked + 1
    end
    local more = looked < #page or #page == a.limit
    return reply.ok("unblocked", { count = count, passed_over = passed, left = a.free, next = more and last or nil })
  end,
}
