-- What an execution keeps beside its record: its finished attempts but the last, and what operators did. Read when
-- something asks for it.
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"

local more = {}

-- The record, read once per plan.
function more.of(tx, rec)
  local known = rec.apart
  if known then return known end
  known = {}
  if rec.more then
    local key = keys.more(tx, rec.id)
    known = packed.open_more(key, tx:record(key) or "")
  end
  rec.apart = known
  return known
end

-- Plans the record; the execution that it belongs to is saved by the caller.
function more.store(tx, rec, m)
  rec.more, rec.apart = 1, m
  tx:set(keys.more(tx, rec.id), packed.close_more(m))
end

-- Remembers what an operator did; the last hundred are kept.
function more.note_action(tx, rec, action, actor, reason)
  local m = more.of(tx, rec)
  local list = m.actions and cmsgpack.unpack(m.actions) or {}
  list[#list + 1] = { action, actor, tx.now, reason or false }
  if #list > limits.operator_actions_max then table.remove(list, 1) end
  m.actions = cmsgpack.pack(list)
  more.store(tx, rec, m)
end

-- Remembers an execution that was forked from this one; the newest are kept.
function more.note_fork(tx, rec, id)
  local m = more.of(tx, rec)
  local list = m.forks and cmsgpack.unpack(m.forks) or {}
  list[#list + 1] = id
  if #list > limits.forks_kept_max then table.remove(list, 1) end
  m.forks = cmsgpack.pack(list)
  more.store(tx, rec, m)
end

function more.forks(tx, rec)
  local m = more.of(tx, rec)
  return m.forks and cmsgpack.unpack(m.forks) or {}
end

function more.actions(tx, rec)
  local out, m = {}, more.of(tx, rec)
  for i, a in ipairs(m.actions and cmsgpack.unpack(m.actions) or {}) do
    out[i] = { action = a[1], actor = a[2], at = a[3], reason = a[4] or nil }
  end
  return out
end

return more
