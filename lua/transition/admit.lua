-- Admission inside a claim: where quotas and budgets share the store with executions, they are asked on the way.
--
-- An execution that asks is { id, holder, number, score, quotas, budgets }. What becomes of it is noted with it: `entered` lists the
-- sets that took it in, `keep` those of them that stay with it while its attempt is set aside. `refused` is why it has to wait,
-- `undecided` that a quota or budget could not be asked.
local ask = require "transition.ask"
local event = require "lib.event"
local execution = require "record.execution"
local holders = require "index.holders"
local holds = require "record.holds"
local quota = require "record.quota"
local spec = require "record.spec"

local admit = {}

local format = string.format

local function refuse(one, reason, facts)
  local detail = {}
  for name, value in pairs(facts) do detail[name] = type(value) == "number" and format("%.0f", value) or value end
  one.refused = { reason = reason, detail = detail }
end

-- Who asks whom: for each quota or budget, in the order of their ids, the executions that name it, each with its reference.
local function askers(asking, name, id_of)
  local groups, known = {}, {}
  for _, one in ipairs(asking) do
    for _, ref in ipairs(one[name] or {}) do
      local id = ref[id_of]
      local group = known[id]
      if group == nil then
        group = { id = id }
        known[id], groups[#groups + 1] = group, group
      end
      group[#group + 1] = { one = one, ref = ref }
    end
  end
  if #groups > 1 then table.sort(groups, function(a, b) return a.id < b.id end) end
  return groups
end

-- Those of a group that nothing has refused, and what they ask for.
local function still_open(group, candidate_of)
  local open, candidates = {}, {}
  for _, asker in ipairs(group) do
    local one = asker.one
    if one.refused == nil and not one.undecided then
      local candidate = candidate_of(one, asker.ref)
      if candidate then
        open[#open + 1], candidates[#candidates + 1] = asker, candidate
      end
    end
  end
  return open, candidates
end

local function enter(one, set)
  one.entered[#one.entered + 1] = set
end

local function quota_candidate(one, ref)
  local set = holds.of_quota(ref.quota_id, quota.digest(ref.key))
  -- Naming a key twice asks for it once.
  for _, entered in ipairs(one.entered) do
    if entered == set then return nil end
  end
  return {
    execution_id = one.id, holder_id = one.holder, expires_at = holders.open_ended, key = ref.key, number = one.number, score = one.score, weight = ref.weight or 1, set = set, fresh = true,
  }
end

local function budget_candidate(one, ref)
  return { execution_id = one.id, holder_id = one.holder, expires_at = holders.open_ended, estimate = ref.estimate, fresh = true }
end

local function asked_of(tx, work, id, candidates)
  return work(tx, id, candidates) or "absent"
end

local function ask_quota(tx, group)
  local open, candidates = still_open(group, quota_candidate)
  if #open == 0 then return end
  local answers = tx:visit(tx:route_of_quota(group.id), asked_of, ask.quota, group.id, candidates)
  for i, asker in ipairs(open) do
    local one, answer = asker.one, answers and answers[i]
    if answers == "absent" then
      refuse(one, "waiting_for_quota", { quota_id = group.id, problem = "not found" })
    elseif answer == nil or (not answer.admitted and answer.part == nil) then
      one.undecided = true
    elseif answer.admitted then
      enter(one, candidates[i].set)
      if answer.keep then one.keep[#one.keep + 1] = answer.keep end
    else
      refuse(one, "waiting_for_quota", {
        quota_id = group.id, key = candidates[i].key, part = answer.part, used = answer.used, limit = answer.limit, next_at = answer.next_at,
      })
    end
  end
end

local function ask_budget(tx, group)
  local open, candidates = still_open(group, budget_candidate)
  if #open == 0 then return end
  local answers = tx:visit(tx:route_of_budget(group.id), asked_of, ask.budget, group.id, candidates)
  for i, asker in ipairs(open) do
    local one, answer = asker.one, answers and answers[i]
    if answers == "absent" then
      refuse(one, "waiting_for_budget", { budget_id = group.id, problem = "not found" })
    elseif answer == nil then
      one.undecided = true
    elseif answer.admitted then
      enter(one, holds.of_budget(group.id))
    else
      refuse(one, "waiting_for_budget", {
        budget_id = answer.budget_id or group.id, dimension = answer.dimension, refusal = answer.refusal, used = answer.used, limit = answer.limit, rooms = answer.rooms,
      })
    end
  end
end

-- An execution that asks.
function admit.asking(rec, holder)
  return {
    id = rec.id, holder = holder, number = (rec.grants or 0) + 1, score = rec.score, quotas = holds.asked_quotas(rec), budgets = holds.asked_budgets(rec),
    entered = {}, keep = {},
  }
end

-- Asks every quota that is named, then every budget, the next only for what those before it let pass.
function admit.all(tx, asking)
  for _, group in ipairs(askers(asking, "quotas", "quota_id")) do ask_quota(tx, group) end
  for _, group in ipairs(askers(asking, "budgets", "budget_id")) do ask_budget(tx, group) end
end

-- Notes with a record what took it in. It starts in the same plan.
function admit.note(rec, one)
  rec.grants = one.number
  holds.note(rec, one.holder, one.entered)
  if #one.keep > 0 then holds.keep_aside(rec, one.keep) end
end

-- One that was let in cannot start: what let it in gets it back.
function admit.withdraw(tx, one)
  for _, set in ipairs(one.entered) do tx:owe("release", { set = set, execution_id = one.id, holder_id = one.holder, unused = true }) end
  return { withdrawn = true }
end

-- An execution that was not let in waits, with the reason; one about which nothing was decided stays where it is. What let it in
-- before gets it back.
function admit.turn_away(tx, one)
  local rec = execution.load(tx, one.id)
  rec.grants = one.number
  if #one.entered > 0 then holds.note(rec, one.holder, one.entered) end
  local refused = one.refused
  if refused then execution.block(rec, refused.reason, spec.flatten(refused.detail), tx.now) end
  execution.save(tx, rec)
  if refused then event.of_execution(tx, rec, "execution.blocked", "reason", refused.reason) end
  return { turned_away = true }
end

return admit
