-- The current suspension of an execution, its past ones, and what the next claim of the attempt is told.
local keys = require "lib.keys"
local limits = require "lib.limits"
local condition = require "transition.condition"
local signals = require "record.signals"
local waitpoint = require "record.waitpoint"

local suspension = {}

-- Stored as a list: id, reason, since, timeout behavior, condition state, the waitpoint that an escalation
-- opens or false, the name of the wait or false, and 1 when it is a step, which outlives its attempt.
function suspension.load(rec)
  if rec.wait == nil then return nil end
  local w = cmsgpack.unpack(rec.wait)
  return {
    id = w[1], reason = w[2], at = w[3], behavior = w[4], condition = w[5], review_id = w[6] or nil, step = w[7] or nil,
    recorded = w[8] ~= nil and w[7] or nil,
  }
end

function suspension.store(rec, w)
  rec.waits = 1
  rec.wait = cmsgpack.pack({
    w.id, w.reason, w.at, w.behavior, w.condition, w.review_id or false, w.step or false, w.recorded and 1 or nil,
  })
end

-- Files the current suspension as past.
function suspension.ended(tx, rec, w, cause, actor)
  local list = rec.past_waits and cmsgpack.unpack(rec.past_waits) or {}
  list[#list + 1] = { w.id, w.reason, rec.attempt, w.at, tx.now, cause, actor or false }
  if #list > limits.suspensions_kept_max then table.remove(list, 1) end
  rec.past_waits, rec.waits = cmsgpack.pack(list), 1
  rec.wait, rec.wait_until = nil, nil
end

function suspension.past(rec)
  local out = {}
  for i, w in ipairs(rec.past_waits and cmsgpack.unpack(rec.past_waits) or {}) do
    out[i] = {
      suspension_id = w[1], reason = w[2], attempt_index = w[3], suspended_at = w[4], ended_at = w[5], cause = w[6],
      actor = w[7] or nil,
    }
  end
  return out
end

function suspension.typed(rec)
  local w = suspension.load(rec)
  if w == nil then return nil end
  return {
    suspension_id = w.id, reason = w.reason, suspended_at = w.at, timeout_at = rec.wait_until,
    timeout_behavior = w.behavior, waitpoints = waitpoint.typed_open(rec, w.recorded),
    condition = condition.progress(w.condition),
    step = w.step,
  }
end

-- Why the attempt goes on: { suspension id, cause, stream ids of the signals, step that waited or false, the operator
-- who ended a step's wait }; kept until the attempt ends or suspends again.
function suspension.woken(rec)
  if rec.woken == nil then return nil end
  local w = cmsgpack.unpack(rec.woken)
  return { id = w[1], cause = w[2], refs = w[3], step = w[4] or nil, actor = w[5] }
end

-- The end of a wait as a handler gets to see it: its signals from the `from`-th on; more are read apart.
function suspension.told(tx, rec, w, from)
  local list, more = signals.named(
    tx, rec, w.refs, from or 1, limits.resume_inline_signals_max, limits.resume_inline_bytes_max
  )
  return { suspension_id = w.id, cause = w.cause, signals = list, more = more, step = w.step, actor = w.actor }
end

-- What the worker that continues the attempt gets to see.
function suspension.resume(tx, rec)
  local w = suspension.woken(rec)
  if w == nil then return nil end
  local told = suspension.told(tx, rec, w)
  if w.cause == "children" then
    local page, rest = require("record.children").page, nil
    told.children, rest = page(tx, rec, 1, limits.children_inline_max, limits.resume_inline_bytes_max)
    told.more_children = rest and true or nil
  end
  told.continuation = rec.continued and tx:get(keys.continuation(tx, rec.id)) or nil
  told.continuation_encoding = rec.continued ~= "*" and rec.continued or nil
  return told
end

-- What the worker left for whoever continues the attempt, in place of what an earlier wait left.
-- Without an encoding it is kept under `*`, which is none.
function suspension.replace_continuation(tx, rec, bytes, encoding)
  if bytes then
    tx:set(keys.continuation(tx, rec.id), bytes)
  elseif rec.continued then
    tx:del(keys.continuation(tx, rec.id))
  end
  rec.continued = bytes and (encoding or "*") or nil
end

-- Nothing of a wait outlives its attempt.
function suspension.forget(tx, rec)
  if rec.continued then tx:del(keys.continuation(tx, rec.id)) end
  rec.woken, rec.continued = nil, nil
end

return suspension
