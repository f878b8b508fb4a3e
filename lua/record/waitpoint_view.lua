-- The typed form of a waitpoint that replies carry; digests of tokens stay in the store.
local condition = require "transition.condition"
local execution = require "record.execution"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local waitpoint_view = {}

local function approvers(w)
  local out = {}
  for i, token in ipairs(waitpoint.tokens(w)) do
    out[i] = { approver = token[2] or nil, uses_left = token[3] or nil, answered = token[4] }
  end
  return out
end

function waitpoint_view.typed(rec, w)
  local current = suspension.load(rec)
  local part = current ~= nil and current.id == w.suspension
  return {
    waitpoint_id = w.id, execution_id = rec.id, namespace = execution.namespace(rec), lane = execution.lane(rec),
    kind = rec.kind, key = w.key, state = w.state, suspension_id = w.suspension,
    reason = part and current.reason or nil, created_at = w.created, expires_at = w.expires, closed_at = w.closed,
    closed_reason = w.why, allowed_signals = w.allowed and cmsgpack.unpack(w.allowed) or nil, approvers = approvers(w),
    signals = w.signals or 0, condition = part and condition.progress(current.condition) or {},
  }
end

return waitpoint_view
