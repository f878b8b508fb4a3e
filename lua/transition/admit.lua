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

-- An execution that asks for what is `named` ({ quotas, budgets }), under the id of the lease it would get. `v` are the
-- values of a plain record, with its input.
function admit.asker(id, lease_id, grants, score, named, bytes, v, input)
  return {
    execution_id = id, holder_id = lease_id, expires_at = holders.open_ended, fresh = true, number = (grants or 0) + 1,
    score = score, named = named, entered = {}, bytes = bytes, v = v, input = input,
    -- Set while it asks, and by its claim.
    key = nil, weight = nil, estimate = nil, set = nil, member = nil, admitted = nil, wall = nil, refused = nil,
    undecided = nil, keep = nil, place = nil, turn = nil, queue = nil,
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
          if seen == turn then
            one.admitted, one.wall = nil, nil
            if asks(one, ref) then open[#open + 1] = one end
          end
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

-- Notes what was said. `answer` is nil when nothing could be asked, and false when there is nothing of that id.
local function note(asked, answer, id, reason, id_of, facts)
  for _, one in ipairs(asked) do
    if answer == false then
      refuse(one, reason, { [id_of] = id, problem = "not found" })
    elseif one.admitted and answer then
      one.entered[#one.entered + 1] = one.set
      local kept = answer ~= true and quota.kept_set(answer, one.key)
      if kept then
        one.keep = one.keep or {}
        one.keep[#one.keep + 1] = kept
      end
    elseif one.wall and answer then
      refuse(one, reason, facts(id, one))
    else
      one.undecided = true
    end
  end
end

local function visit_quota(tx, id, asked) return ask.quota(tx, id, asked) or false end

local function ask_all(tx, asking, field, id_of, asks, route_of, visit, reason, facts)
  for _, id in ipairs(named(asking, field, id_of)) do
    local turn, again = 1, true
    while again do
      local open
      open, again = ready_to_ask(asking, field, id_of, id, turn, asks)
      if #open > 0 then note(open, tx:visit(route_of(tx, id), visit, id, open), id, reason, id_of, facts) end
      turn = turn + 1
    end
  end
end

-- Asks every quota that is named, then every budget, the next only for what those before it let pass.
function admit.all(tx, asking)
  ask_all(
    tx, asking, "quotas", "quota_id", asks_quota,
    tx.route_of_quota, visit_quota, "waiting_for_quota", quota_refused
  )
  ask_all(
    tx, asking, "budgets", "budget_id", asks_budget,
    tx.route_of_budget, ask.budget, "waiting_for_budget", budget_refused
  )
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
