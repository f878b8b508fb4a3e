-- What quotas and budgets say to executions that are about to start.
--
-- A candidate is { execution_id, holder_id, expires_at } with what it asks for. A fresh one was never asked for under
-- its holder id. What is said is noted with it: `admitted`, or `wall`, which is what is in the way. Neither is there
-- for one whose grant has run out, and for a late copy of an older request: these neither enter nor wait.
local budget = require "record.budget"
local budget_holds = require "record.budget_holds"
local holders = require "index.holders"
local quota = require "record.quota"
local capacity = require "index.quota_capacity"
local line = require "index.quota_line"
local quota_key = require "index.quota_key"

local ask = {}

-- Quotas ----------------------------------------------------------------------------------------

-- What a key says to one candidate: { key, weight, number, score }.
local function decide(tx, k, c)
  local member = holders.member(c)
  c.member = member
  if not c.fresh and capacity.holds(tx, k, member) then
    c.admitted = true
    return
  end
  if c.expires_at <= tx.now then return end
  local use = capacity.refusal(tx, k, c.weight)
  -- It was refused under this very grant or a later one: a copy of that request comes late. Its execution waits in line
  -- and is called; taken in now, it would stand in nobody's line and hold a place for nobody.
  if line.outdated(k, c, use == nil) then return end
  use = use or line.others_first(tx, k, c)
  if use == nil then
    line.admit(tx, k, c)
    c.admitted = true
    return
  end
  local next_at = not capacity.never(k, c.weight) and use.next_at() or nil
  line.wait(k, c, next_at)
  c.wall = { part = use.part, used = use.used, limit = use.limit, next_at = next_at }
end

-- Asks a quota for executions, in order. `same` is the reference of all of them when they share one. Answers the quota;
-- nil when there is none, and nothing is said then.
function ask.quota(tx, id, candidates, same)
  local q = quota.load(tx, id)
  if q == nil then return nil end
  local known, order = {}, {}
  if same then
    local digest, weight = quota.digest(same.key), same.weight or 1
    local k = quota_key.load(tx, q, digest, same.key, true)
    if line.admit_all(tx, k, candidates, weight) then
      quota_key.save(tx, k, true)
      return q
    end
    for _, c in ipairs(candidates) do c.key, c.weight = same.key, weight end
    k.asking, known[digest], order[1] = {}, k, k
  end
  for _, c in ipairs(candidates) do
    local digest = quota.digest(c.key)
    local k = known[digest]
    if k == nil then
      k = quota_key.load(tx, q, digest, c.key, true)
      k.asking, known[digest], order[#order + 1] = {}, k, k
    end
    k.asking[#k.asking + 1] = c.execution_id
  end
  for _, k in ipairs(order) do line.look(tx, k, k.asking) end
  for _, c in ipairs(candidates) do decide(tx, known[quota.digest(c.key)], c) end
  for _, k in ipairs(order) do quota_key.save(tx, k, true) end
  return q
end

-- Budgets ---------------------------------------------------------------------------------------

local function wall(kind, b, wrong)
  return {
    refusal = kind, budget_id = b.id, dimension = wrong and wrong.dimension, used = wrong and wrong.used,
    limit = wrong and wrong.limit, rooms = b.rooms,
  }
end

-- The first dimension, in the order of the names, that the budget does not have.
local function unknown_dimension(b, estimate)
  local first
  for name in pairs(estimate) do
    if b.used[name] == nil and (first == nil or name < first) then first = name end
  end
  return first
end

local nothing = {}

-- What keeps candidates with these amounts out, and how: a dimension, and `unknown_dimension`, `hard` or `soft`. Nil
-- when nothing does.
local function in_the_way(path, amounts)
  local strange = unknown_dimension(path[1], amounts)
  if strange then return { dimension = strange }, "unknown_dimension" end
  local wrong
  if next(amounts) == nil then wrong = budget.exhausted(path) else wrong = budget.breach(path, amounts) end
  if wrong then return wrong, "hard" end
  wrong = budget.soft(path, true)
  if wrong then return wrong, "soft" end
  if budget.overflow(path, amounts, "estimate") then return nothing, "hard" end
end

-- Plans a candidate's hold, or says what is in the way; nothing is held then.
local function admit(tx, path, c)
  local b, estimate = path[1], c.estimate or nothing
  if not c.fresh and budget_holds.of_holder(tx, b.id, holders.member(c)) then
    c.admitted = true
    return
  end
  local wrong, kind = in_the_way(path, estimate)
  if wrong == nil then
    budget_holds.enter(tx, b.id, { c }, budget_holds.text(estimate, nothing))
    budget.hold(path, estimate, 1)
    c.admitted = true
    return
  end
  if wrong.budget then budget.note_refusal(tx, wrong, kind) end
  c.wall = wall(kind, wrong.budget or b, wrong)
end

-- Lets candidates in that were never asked for and share one estimate, when there is room for all of them. Returns
-- false, with nothing planned, when they have to be asked for one by one.
local function admit_together(tx, path, candidates)
  local estimate = candidates[1].estimate
  for i = 1, #candidates do
    local c = candidates[i]
    if not c.fresh or c.estimate ~= estimate then return false end
  end
  estimate = estimate or nothing
  local sum = budget_holds.times(estimate, #candidates)
  if in_the_way(path, sum) then return false end
  budget_holds.enter(tx, path[1].id, candidates, budget_holds.text(estimate, nothing))
  budget.hold(path, sum, 1)
  for i = 1, #candidates do candidates[i].admitted = true end
  return true
end

-- Asks a budget for executions, in order; `same` as above. Answers false when there is none, and nothing is said then.
function ask.budget(tx, id, candidates, same)
  local path = budget.path(tx, id)
  if path == nil then return false end
  if #candidates == 0 then return true end
  if same then
    for i = 1, #candidates do candidates[i].estimate = same.estimate end
  end
  if not admit_together(tx, path, candidates) then
    for _, c in ipairs(candidates) do admit(tx, path, c) end
  end
  budget.save_all(tx, path)
  return true
end

return ask
