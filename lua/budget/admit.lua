local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"
local holds = require "record.budget_holds"
local holders = require "index.holders"

local function verdict(c, kind, wrong)
  return {
    holder_id = c.holder_id, admitted = false, refusal = kind, budget_id = wrong.budget.id, dimension = wrong.dimension, used = wrong.used, limit = wrong.limit, rooms = wrong.budget.rooms,
  }
end

local function unknown_dimension(b, estimate)
  for _, name in ipairs(budget.sorted(estimate)) do
    if b.used[name] == nil then return name end
  end
end

-- Plans a candidate's hold, or answers what is in the way; nothing is held then.
local function admit(tx, path, c)
  local b, member, estimate = path[1], holders.member(c), c.estimate or {}
  if holds.of_holder(tx, b.id, member) then return { holder_id = c.holder_id, admitted = true } end
  local strange = unknown_dimension(b, estimate)
  if strange then return { holder_id = c.holder_id, admitted = false, refusal = "unknown_dimension", budget_id = b.id, dimension = strange, rooms = b.rooms } end
  local wrong, kind
  if next(estimate) == nil then wrong = budget.exhausted(path) else wrong = budget.breach(path, estimate) end
  if wrong then kind = "hard" else wrong, kind = budget.soft(path, true), "soft" end
  if wrong == nil then
    local over = budget.overflow(path, estimate, "estimate")
    if over then return { holder_id = c.holder_id, admitted = false, refusal = "hard", budget_id = b.id, rooms = b.rooms } end
    holds.enter(tx, b.id, member, c.expires_at, estimate)
    budget.hold(path, estimate, 1)
    return { holder_id = c.holder_id, admitted = true }
  end
  budget.note_refusal(tx, wrong, kind)
  return verdict(c, kind, wrong)
end

define.fn {
  name = "ff_admit_budget",
  doc = "Holds the estimates of executions about to start, in order, as far as every limit up the tree allows; without an estimate something must be left in every hard dimension. A holder that was admitted is admitted again.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", candidates = "budget_candidates" },
  reply = { answered = { items = "[budget_verdict]" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local items = {}
    for i, c in ipairs(a.candidates) do items[i] = admit(tx, path, c) end
    if #items > 0 then budget.save_all(tx, path) end
    return reply.ok("answered", { items = items })
  end,
}
