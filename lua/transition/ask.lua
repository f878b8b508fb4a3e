-- What quotas and budgets say to executions that are about to start.
--
-- A candidate is { execution_id, holder_id, expires_at } with what it asks for. A fresh one was never asked for under
-- its holder id. What is said is noted with it: `admitted`, or `wall`, which is what is in the way. Neither is there
-- for one whose grant has run out, and for a late copy of an older request: these neither enter nor wait.
local budget = require "record.budget"
local budget_holds = require "record.budget_holds"
local holders = require "index.holders"
local quota = require "record.quota"
local room = require "index.room"

local ask = {}

-- Quotas ----------------------------------------------------------------------------------------

-- What a key says to one candidate: { key, weight, number, score }.
local function decide(tx, k, c)
  local member = holders.member(c)
  c.member = member
  if not c.fresh and room.holds(tx, k, member) then
    c.admitted = true
    return
  end
  if c.expires_at <= tx.now then return end
  local use = room.refusal(tx, k, c.weight)
  -- It was refused under this very grant or a later one: a copy of that request comes late. Its execution waits in line
  -- and is called; taken in now, it would stand in nobody's line and hold a place for nobody.
  if room.outdated(k, c, use == nil) then return end
  use = use or room.others_first(tx, k, c)
  if use == nil then
    room.admit(tx, k, c)
    c.admitted = true
    return
  end
  local next_at = not room.never(k, c.weight) and use.next_at() or nil
  room.wait(k, c, next_at)
  c.wall = { part = use.part, used = use.used, limit = use.limit, next_at = next_at }
end

-- Asks a quota for executions, in order. Answers the quota; nil when there is none, and nothing is said then.
function ask.quota(tx, id, candidates)
  local q = quota.load(tx, id)
  if q == nil then return nil end
  local known, order = {}, {}
  for _, c in ipairs(candidates) do
    local digest = quota.digest(c.key)
    local k = known[digest]
    if k == nil then
      k = room.load(tx, q, digest, c.key, true)
      k.asking, known[digest], order[#order + 1] = {}, k, k
    end
    k.asking[#k.asking + 1] = c.execution_id
  end
  for _, k in ipairs(order) do room.look_at_line(tx, k, k.asking) end
  for _, c in ipairs(candidates) do decide(tx, known[quota.digest(c.key)], c) end
  for _, k in ipairs(order) do room.save(tx, k, true) end
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

-- Plans a candidate's hold, or says what is in the way; nothing is held then.
local function admit(tx, path, c)
  local b, member, estimate = path[1], holders.member(c), c.estimate or nothing
  if not c.fresh and budget_holds.of_holder(tx, b.id, member) then
    c.admitted = true
    return
  end
  local strange = unknown_dimension(b, estimate)
  if strange then
    c.wall = wall("unknown_dimension", b, { dimension = strange })
    return
  end
  local wrong, kind
  if next(estimate) == nil then wrong = budget.exhausted(path) else wrong = budget.breach(path, estimate) end
  if wrong then kind = "hard" else wrong, kind = budget.soft(path, true), "soft" end
  if wrong then
    budget.note_refusal(tx, wrong, kind)
    c.wall = wall(kind, wrong.budget, wrong)
  elseif budget.overflow(path, estimate, "estimate") then
    c.wall = wall("hard", b)
  else
    budget_holds.enter(tx, b.id, member, c.expires_at, estimate, c.fresh)
    budget.hold(path, estimate, 1)
    c.admitted = true
  end
end

-- Asks a budget for executions, in order. Answers false when there is none, and nothing is said then.
function ask.budget(tx, id, candidates)
  local path = budget.path(tx, id)
  if path == nil then return false end
  for _, c in ipairs(candidates) do admit(tx, path, c) end
  if #candidates > 0 then budget.save_all(tx, path) end
  return true
end

return ask
