-- Admission inside a claim: where quotas and budgets share the store with executions, they are asked on the way.
--
-- An execution that asks is a candidate of `transition.ask`, with what it names (`quotas`, `budgets`) and what became
-- of it so far: `entered` lists the sets that took it in, `keep` those of them that stay with it while its attempt is
-- set aside. `refused` is why it has to wait, `undecided` that a quota or budget could not be asked.
local ask = require "transition.ask"
local event = require "lib.event"
local execution = require "record.execution"
local holders = require "index.holders"
local holds = require "record.holds"
local quota = require "record.quota"
local spec = require "record.spec"

local admit = {}

local format = string.format
local nothing = {}

-- An execution that asks for what is `named` ({ quotas, budgets }), under the id of the lease it would get. `v` are the
-- values of a plain record, with its input.
function admit.asker(id, lease_id, grants, score, named, bytes, v, input)
  return {
    execution_id = id, holder_id = lease_id, expires_at = holders.open_ended, fresh = true, number = (grants or 0) + 1,
    score = score, named = named, entered = nothing, bytes = bytes, v = v, input = input,
    -- Set while it asks, and by its claim; what is rare is not among them.
    member = nil, admitted = nil, place = nil, turn = nil, queue = nil,
  }
end

local function refuse(one, reason, facts)
  local detail = {}
  for name, value in pairs(facts) do detail[name] = type(value) == "number" and format("%.0f", value) or value end
  one.refused = { reason = reason, detail = detail }
end

-- Says what is asked for, and answers false when that need not be asked.
local function asks_quota(one, ref)
  local set = holds.of_quota(ref.quota_id, quota.digest(ref.key))
  -- Naming a key twice asks for it once.
  for _, entered in ipairs(one.entered) do
    if entered == set then return false end
  end
  one.key, one.weight, one.set = ref.key, ref.weight or 1, set
  return true
end

local function asks_budget(one, ref)
  one.estimate, one.set = ref.estimate, holds.of_budget(ref.budget_id)
  return true
end

-- Those that nothing has refused, ready to ask for what they name under this id. One that names it twice asks in turn.
local function ready_to_ask(asking, field, id_of, id, turn, asks)
  local open, again = {}, false
  for _, one in ipairs(asking) do
    if one.refused == nil and not one.undecided then
      local seen = 0
      for _, ref in ipairs(one.named[field]) do
        if ref[id_of] == id then
          seen = seen + 1
          if seen == turn and asks(one, ref) then open[#open + 1] = one end
        end
      end
      again = again or seen > turn
    end
  end
  return open, again
end

-- The ids that are named, in order.
local function named(asking, field, id_of)
  local ids, known = {}, {}
  for _, one in ipairs(asking) do
    for _, ref in ipairs(one.named[field]) do
      local id = ref[id_of]
      if not known[id] then
        known[id], ids[#ids + 1] = true, id
      end
    end
  end
  if #ids > 1 then table.sort(ids) end
  return ids
end

local function quota_refused(id, one)
  local w = one.wall
  return { quota_id = id, key = one.key, part = w.part, used = w.used, limit = w.limit, next_at = w.next_at }
end

local function budget_refused(_, one)
  local w = one.wall
  return {
    budget_id = w.budget_id, dimension = w.dimension, refusal = w.refusal, used = w.used, limit = w.limit,
    rooms = w.rooms,
  }
end

local function visit_quota(tx, id, asked, same) return ask.quota(tx, id, asked, same) or false end

-- What is asked: quotas first.
local quotas = {
  field = "quotas", id_of = "quota_id", route_of = "route_of_quota", reason = "waiting_for_quota", asks = asks_quota,
  visit = visit_quota, facts = quota_refused,
}
local budgets = {
  field = "budgets", id_of = "budget_id", route_of = "route_of_budget", reason = "waiting_for_budget",
  asks = asks_budget, visit = ask.budget, facts = budget_refused,
}

-- Notes with one that was not let in what was said. `answer` is nil when nothing could be asked, and false when there
-- is nothing of that id.
local function note_wall(kind, one, answer, id)
  if answer == false then
    refuse(one, kind.reason, { [kind.id_of] = id, problem = "not found" })
  elseif one.wall and answer then
    refuse(one, kind.reason, kind.facts(id, one))
  else
    one.undecided = true
  end
end

local function kept_set(answer, key)
  return answer and answer ~= true and quota.kept_set(answer, key) or nil
end

-- A list with one more.
local function with(list, item)
  local longer = { unpack(list) }
  longer[#longer + 1] = item
  return longer
end

local function ask_one_by_one(tx, kind, asking)
  for _, id in ipairs(named(asking, kind.field, kind.id_of)) do
    local turn, again = 1, true
    while again do
      local open
      open, again = ready_to_ask(asking, kind.field, kind.id_of, id, turn, kind.asks)
      local answer = #open > 0 and tx:visit(tx[kind.route_of](tx, id), kind.visit, id, open)
      for _, one in ipairs(open) do
        if one.admitted and answer then
          local kept = kept_set(answer, one.key)
          one.entered, one.admitted = with(one.entered, one.set), nil
          if kept then one.keep = with(one.keep or nothing, kept) end
        else
          note_wall(kind, one, answer, id)
        end
      end
      turn = turn + 1
    end
  end
end

-- The same for those that name the same, once. They share the list of what took them in.
local function ask_together(tx, kind, asking, ref)
  local id, first = ref[kind.id_of], asking[1]
  local answer = tx:visit(tx[kind.route_of](tx, id), kind.visit, id, asking, ref)
  kind.asks(first, ref)
  local entered, kept, open = with(first.entered, first.set), kept_set(answer, ref.key), {}
  local keep = kept and with(first.keep or nothing, kept)
  for i = 1, #asking do
    local one = asking[i]
    if one.admitted and answer then
      one.entered, one.admitted, open[#open + 1] = entered, nil, one
      if keep then one.keep = keep end
    else
      note_wall(kind, one, answer, id)
    end
  end
  return open
end

-- What all of them name, when that is the same and no more than one quota and one budget; else nil.
local function same_of(asking)
  local same = asking[1].named
  if #same.quotas > 1 or #same.budgets > 1 then return nil end
  for i = 2, #asking do
    if asking[i].named ~= same then return nil end
  end
  return same
end

-- Asks every quota that is named, then every budget, the next only for what those before it let pass.
function admit.all(tx, asking)
  local same = same_of(asking)
  if same == nil then
    ask_one_by_one(tx, quotas, asking)
    ask_one_by_one(tx, budgets, asking)
    return
  end
  local ref, open = same.quotas[1], asking
  if ref then open = ask_together(tx, quotas, open, ref) end
  ref = same.budgets[1]
  if ref and #open > 0 then ask_together(tx, budgets, open, ref) end
end

-- Notes with a record what took it in. It starts in the same plan.
function admit.note(rec, one)
  rec.grants = one.number
  holds.note(rec, one.holder_id, one.entered)
  if one.keep then holds.keep_aside(rec, one.keep) end
end

-- One that was let in cannot start: what let it in gets it back.
function admit.withdraw(tx, one)
  for _, set in ipairs(one.entered) do tx:owe("release", set, one.execution_id, one.holder_id, true) end
  return { withdrawn = true }
end

-- An execution that was not let in waits, with the reason; one about which nothing was decided stays where it is. What
-- let it in before gets it back.
function admit.turn_away(tx, one)
  local rec = execution.load(tx, one.execution_id)
  rec.grants = one.number
  if #one.entered > 0 then holds.note(rec, one.holder_id, one.entered) end
  local refused = one.refused
  if refused then execution.block(rec, refused.reason, spec.flatten(refused.detail), tx.now) end
  execution.save(tx, rec)
  if refused then event.of_execution(tx, rec, "execution.blocked", "reason", refused.reason) end
  return { turned_away = true }
end

return admit
