-- What quotas and budgets say to executions that are about to start.
local budget = require "record.budget"
local budget_holds = require "record.budget_holds"
local holders = require "index.holders"
local quota = require "record.quota"
local room = require "index.room"

local ask = {}

-- Quotas ----------------------------------------------------------------------------------------

-- What the key says to one candidate; a fresh one was never asked for under its holder id. One whose grant has run out by now neither enters nor waits.
local function decide(tx, k, c)
  local member = holders.member(c)
  local keep = k.q.definition.hold_while_suspended and k.set or nil
  if not c.fresh and room.holds(tx, k, member) then return { holder_id = c.holder_id, admitted = true, keep = keep } end
  if c.expires_at <= tx.now then return { holder_id = c.holder_id, admitted = false } end
  local use = room.refusal(tx, k, c.weight)
  -- It was refused under this very grant or a later one: a copy of that request comes late. Its execution waits in line and is
  -- called; taken in now, it would stand in nobody's line and hold a place for nobody.
  if room.outdated(k, c, use == nil) then return { holder_id = c.holder_id, admitted = false } end
  use = use or room.others_first(tx, k, c)
  if use == nil then
    room.admit(tx, k, member, c)
    return { holder_id = c.holder_id, admitted = true, keep = keep }
  end
  local next_at = not room.never(k, c.weight) and use.next_at() or nil
  room.wait(k, c, next_at)
  return { holder_id = c.holder_id, admitted = false, part = use.part, used = use.used, limit = use.limit, next_at = next_at }
end

-- Asks a quota for executions, in order: an answer for each; nil when there is no such quota.
function ask.quota(tx, id, candidates)
  local q = quota.load(tx, id)
  if q == nil then return nil end
  local known, order, items = {}, {}, {}
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
  for i, c in ipairs(candidates) do items[i] = decide(tx, known[quota.digest(c.key)], c) end
  for _, k in ipairs(order) do room.save(tx, k, true) end
  return items
end

-- Budgets ---------------------------------------------------------------------------------------

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
  if not c.fresh and budget_holds.of_holder(tx, b.id, member) then return { holder_id = c.holder_id, admitted = true } end
  local strange = unknown_dimension(b, estimate)
  if strange then return { holder_id = c.holder_id, admitted = false, refusal = "unknown_dimension", budget_id = b.id, dimension = strange, rooms = b.rooms } end
  local wrong, kind
  if next(estimate) == nil then wrong = budget.exhausted(path) else wrong = budget.breach(path, estimate) end
  if wrong then kind = "hard" else wrong, kind = budget.soft(path, true), "soft" end
  if wrong == nil then
    local over = budget.overflow(path, estimate, "estimate")
    if over then return { holder_id = c.holder_id, admitted = false, refusal = "hard", budget_id = b.id, rooms = b.rooms } end
    budget_holds.enter(tx, b.id, member, c.expires_at, estimate, c.fresh)
    budget.hold(path, estimate, 1)
    return { holder_id = c.holder_id, admitted = true }
  end
  budget.note_refusal(tx, wrong, kind)
  return verdict(c, kind, wrong)
end

-- Asks a budget for executions, in order: a verdict for each; nil when there is no such budget.
function ask.budget(tx, id, candidates)
  local path = budget.path(tx, id)
  if path == nil then return nil end
  local items = {}
  for i, c in ipairs(candidates) do items[i] = admit(tx, path, c) end
  if #items > 0 then budget.save_all(tx, path) end
  return items
end

return ask
