-- The holder sets an execution stands in while it is granted or runs. The record names them from the grant on, and the call
-- that ends the grant or the lease owes each set its release: no way out of either can forget it.
local outbox = require "lib.outbox"

local holds = {}

function holds.of_lane(path)
  return "lane:" .. path
end

-- The sets an execution of this lane must enter before it starts, or nil.
function holds.needed(copy)
  if copy and copy.max_active then return { holds.of_lane(copy.path) } end
end

-- `holder` is the id the execution has in each of the sets.
function holds.note(rec, holder, sets)
  rec.holds = sets and cmsgpack.pack({ holder, sets }) or nil
end

-- Adds a set to what a running execution holds; one that held nothing is known there by its lease.
function holds.join(rec, set)
  local holder, sets = holds.of(rec)
  sets = sets or {}
  sets[#sets + 1] = set
  holds.note(rec, holder or rec.lease_id, sets)
end

-- The holder id and the sets, or nothing.
function holds.of(rec)
  if rec.holds == nil then return nil end
  local noted = cmsgpack.unpack(rec.holds)
  return noted[1], noted[2]
end

function holds.sets(rec)
  local _, sets = holds.of(rec)
  return sets
end

function holds.in_set(rec, set)
  for _, name in ipairs(holds.sets(rec) or {}) do
    if name == set then return true end
  end
  return false
end

-- True when the record names every set its lane asks for by now.
function holds.covers(rec, copy)
  for _, set in ipairs(holds.needed(copy) or {}) do
    if not holds.in_set(rec, set) then return false end
  end
  return true
end

-- Part of every save: what the record no longer holds by a grant or a lease is owed back.
function holds.keep(tx, rec)
  if rec.holds == nil then return end
  local holder, sets = holds.of(rec)
  if rec.phase == "active" or rec.grant == holder then return end
  for _, set in ipairs(sets) do
    outbox.owe(tx, "release_holder", { "set", set, "execution_id", rec.id, "holder_id", holder })
  end
  rec.holds = nil
end

return holds
