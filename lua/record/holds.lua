-- The sets an execution stands in while it is granted or runs: its lane's slots, quotas, budgets. The record names them
-- from the grant on, and the call that ends the grant or the lease owes each set its release: no way out of either can
-- forget it.
local asks = require "record.asks"
local keys = require "lib.keys"
local outbox = require "lib.outbox"

local holds = {}

local sub = string.sub

function holds.of_lane(path)
  return "lane:" .. path
end

holds.of_quota, holds.of_budget = asks.set_of_quota, asks.set_of_budget

-- What most executions hold while they run: everything they name, under the id of their lease.
holds.all = "*"

-- Stored as `all`, or as { holder, sets, sets to keep while the attempt is set aside, those kept so far as { { holder,
-- set }, … } }. A kept set outlives the lease that entered it, so it goes with the holder id of that lease.
local function noted(rec)
  if rec.holds == nil then return { sets = {}, keep = {}, kept = {} } end
  if rec.holds == holds.all then return { holder = rec.lease_id, sets = asks.of(rec).sets, keep = {}, kept = {} } end
  local list = cmsgpack.unpack(rec.holds)
  return { holder = list[1] or nil, sets = list[2], keep = list[3] or {}, kept = list[4] or {} }
end

local function store(rec, h)
  if #h.sets == 0 and #h.kept == 0 then
    rec.holds = nil
  elseif #h.keep == 0 and #h.kept == 0 then
    rec.holds = cmsgpack.pack({ h.holder, h.sets })
  else
    rec.holds = cmsgpack.pack({ h.holder or false, h.sets, h.keep, h.kept })
  end
end

local function contains(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then return true end
  end
  return false
end

local function is_kept(h, set)
  for _, entry in ipairs(h.kept) do
    if entry[2] == set then return true end
  end
  return false
end

-- What this execution must enter before it starts, beyond what it has kept: its lane's slots when they are limited, its
-- quotas and its budgets.
function holds.needed(rec, copy)
  local h, sets = noted(rec), {}
  local function add(set)
    if not contains(sets, set) and not is_kept(h, set) then sets[#sets + 1] = set end
  end
  if copy and copy.max_active then add(holds.of_lane(copy.path)) end
  for _, set in ipairs(asks.of(rec).sets) do add(set) end
  return sets
end

-- The quotas of the execution that have to admit it: not those whose slot it kept. Nil when it names none.
function holds.asked_quotas(rec)
  local h, named, refs = noted(rec), asks.of(rec).quotas, {}
  if #h.kept == 0 then return #named > 0 and named or nil end
  for _, ref in ipairs(named) do
    if not is_kept(h, holds.of_quota(ref.quota_id, keys.digest(ref.key))) then refs[#refs + 1] = ref end
  end
  return #named > 0 and refs or nil
end

-- A budget refused a report and set the attempt aside: it is asked for that much before the attempt goes on. Without
-- this, any room would start what meets the same limit again. `amounts` is a flat list of dimensions and numbers.
function holds.want(rec, budget_id, amounts)
  rec.wanted = cmsgpack.pack({ budget_id, amounts })
end

-- The budgets of the execution, with the estimates they have to admit. Nil when it names none.
function holds.asked_budgets(rec)
  local named = asks.of(rec).budgets
  if #named == 0 then return nil end
  if rec.wanted == nil then return named end
  local wanted, refs = cmsgpack.unpack(rec.wanted), {}
  for i, ref in ipairs(named) do
    refs[i] = ref
    if ref.budget_id == wanted[1] then
      local estimate = {}
      for dimension, n in pairs(ref.estimate or {}) do estimate[dimension] = n end
      for at = 1, #wanted[2], 2 do
        local dimension = wanted[2][at]
        estimate[dimension] = math.max(estimate[dimension] or 0, wanted[2][at + 1])
      end
      refs[i] = { budget_id = ref.budget_id, estimate = estimate }
    end
  end
  return refs
end

-- `holder` is the id the execution has in each of the sets.
function holds.note(rec, holder, sets)
  local h = noted(rec)
  h.holder, h.sets, h.keep = #sets > 0 and holder or nil, sets, {}
  store(rec, h)
end

-- None of the sets has taken it in.
function holds.drop(rec)
  holds.note(rec, nil, {})
end

-- Says which of its sets stay with the execution while its attempt is set aside.
function holds.keep_aside(rec, sets)
  local h = noted(rec)
  for _, set in ipairs(sets) do
    if contains(h.sets, set) and not contains(h.keep, set) then h.keep[#h.keep + 1] = set end
  end
  store(rec, h)
end

-- Adds a set to what a running execution holds; one that held nothing is known there by its lease.
function holds.join(rec, set)
  local h = noted(rec)
  local sets = { unpack(h.sets) }
  sets[#sets + 1] = set
  h.sets = sets
  h.holder = h.holder or rec.lease_id
  store(rec, h)
end

-- The holder id and the sets, or nothing.
function holds.of(rec)
  local h = noted(rec)
  if h.holder then return h.holder, h.sets end
end

function holds.sets(rec)
  local _, sets = holds.of(rec)
  return sets
end

function holds.in_set(rec, set)
  return contains(holds.sets(rec) or {}, set)
end

-- The id under which a set holds the execution, or nothing. What was kept goes by the lease that entered it.
function holds.holder_in(rec, set)
  local h = noted(rec)
  if h.holder and contains(h.sets, set) then return h.holder end
  for _, entry in ipairs(h.kept) do
    if entry[2] == set then return entry[1] end
  end
end

-- Under this id the execution keeps the set while its attempt is set aside, and from then on.
function holds.keeps(rec, holder, set)
  for _, entry in ipairs(noted(rec).kept) do
    if entry[1] == holder and entry[2] == set then return true end
  end
  return false
end

-- Its slots in quotas: those it runs under, and those it keeps.
function holds.quota_slots(rec)
  local h, out = noted(rec), {}
  local function add(holder, set)
    if string.sub(set, 1, 6) == "quota:" then
      out[#out + 1] = { set = set, execution_id = rec.id, holder_id = holder }
    end
  end
  if rec.phase == "active" then
    for _, set in ipairs(h.sets) do add(h.holder, set) end
  end
  for _, entry in ipairs(h.kept) do add(entry[1], entry[2]) end
  return out
end

-- True when the record names every set its lane asks for by now.
function holds.covers(rec, copy)
  return not (copy and copy.max_active) or holds.in_set(rec, holds.of_lane(copy.path))
end

-- True when the call itself can give back what a set holds.
function holds.near(tx, set)
  return tx.quotas ~= nil and sub(set, 1, 5) ~= "lane:"
end

local function owe(tx, rec, holder, set, unused)
  if holds.near(tx, set) then return tx:owe("release", set, rec.id, holder, unused or nil) end
  holds.owe_later(tx, rec.id, holder, set, unused)
end

-- The partition owes the set its release.
function holds.owe_later(tx, id, holder, set, unused)
  local data = { "set", set, "execution_id", id, "holder_id", holder }
  if unused then data[7], data[8] = "unused", "1" end
  outbox.owe(tx, "release_holder", data)
end

-- True while the attempt is set aside or about to go on: what it keeps stays.
local function set_aside(rec)
  return rec.phase == "suspended" or rec.phase == "active" or (rec.phase == "runnable" and rec.resume ~= nil)
end

-- True when the record holds something that neither a grant nor a lease nor an attempt set aside accounts for.
function holds.stray(rec)
  local h = noted(rec)
  if h.holder and rec.phase ~= "active" and rec.grant ~= h.holder then return true end
  return #h.kept > 0 and not set_aside(rec)
end

-- Part of every save: what the record no longer holds by a grant or a lease is owed back.
function holds.keep(tx, rec)
  if rec.holds == nil or not holds.stray(rec) then return end
  local h = noted(rec)
  if h.holder and rec.phase ~= "active" and rec.grant ~= h.holder then
    local ran = rec.was_phase == "active"
    local aside = ran and (rec.phase == "suspended" or rec.reason == "waiting_for_children")
    for _, set in ipairs(h.sets) do
      if aside and contains(h.keep, set) then
        h.kept[#h.kept + 1] = { h.holder, set }
      else
        owe(tx, rec, h.holder, set, not ran)
      end
    end
    h.holder, h.sets, h.keep = nil, {}, {}
  end
  if not set_aside(rec) then
    for _, entry in ipairs(h.kept) do owe(tx, rec, entry[1], entry[2], false) end
    h.kept = {}
  end
  store(rec, h)
end

return holds
