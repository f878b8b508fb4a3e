-- The typed forms of an execution that replies carry.
local keys = require "lib.keys"
local limits = require "lib.limits"
local asks = require "record.asks"
local attempt = require "record.attempt"
local children = require "record.children"
local execution = require "record.execution"
local fired = require "record.fired"
local more = require "record.more"
local signals = require "record.signals"
local spec = require "record.spec"
local suspension = require "record.suspension"
local usage = require "record.usage"
local waitpoint = require "record.waitpoint"

local view = {}

function view.result(tx, rec)
  if rec.result_far then return tx:get(keys.result(tx, rec.id)) end
  return rec.result
end

function view.result_encoding(rec)
  if rec.result or rec.result_far then return rec.result_in or "json" end
end

function view.failure(rec)
  if rec.failure == nil then return nil end
  local f = cmsgpack.unpack(rec.failure)
  return { reason = f[1], category = f[2] }
end

local function progress(rec)
  if rec.progress == nil then return nil end
  local p = cmsgpack.unpack(rec.progress)
  return { pct = p[1], message = p[2] or nil }
end

local function lease(rec)
  if rec.phase ~= "active" then return nil end
  return {
    worker_id = rec.worker_id, worker_instance = rec.worker, lease_id = rec.lease_id, lease_epoch = rec.epoch,
    expires_at = rec.lease_until, cancel_requested = rec.cancel_by ~= nil, yield_requested = rec.yield ~= nil,
  }
end

local function summary(rec)
  return {
    execution_id = rec.id, namespace = execution.namespace(rec), lane = execution.lane(rec), kind = rec.kind,
    state = execution.public_state(rec), phase = rec.phase, blocking_reason = rec.reason, outcome = rec.outcome,
    priority = rec.prio, created_at = rec.created, updated_at = rec.updated, ended_at = rec.ended,
    attempt_index = rec.attempt, worker_instance = rec.phase == "active" and rec.worker or nil, flow_id = rec.flow_id,
    parent_id = rec.parent_id, key = rec.key,
  }
end

function view.whole(tx, rec)
  local v, said = summary(rec), spec.of(tx, rec)
  v.worker_instance, v.attempt_index = nil, nil
  v.blocking_detail = rec.detail and spec.unflatten(rec.detail) or nil
  v.blocked_since = rec.reason and rec.since or nil
  v.attempt_state, v.continues, v.granted_until = rec.attempt_state, rec.resume ~= nil, rec.grant_until
  v.score, v.retire_at = rec.score, rec.phase == "terminal" and rec.wake or nil
  v.delay_until, v.deadline_at, v.start_by, v.attempt_deadline_at =
    rec.delay, rec.deadline, rec.start_by, rec.timeout_at
  v.tags, v.requires, v.prefers, v.fairness_key =
    spec.unflatten(rec.tags), rec.requires or {}, rec.prefers or {}, rec.fairness_key
  v.input, v.input_encoding = spec.input(tx, rec), rec.input_in or "json"
  v.result, v.result_encoding, v.failure = view.result(tx, rec), view.result_encoding(rec), view.failure(rec)
  v.attempts, v.attempts_spilled, v.lease, v.progress =
    attempt.inline(tx, rec), rec.spilled or 0, lease(rec), progress(rec)
  v.retry, v.attempt_timeout_ms = spec.retry(tx, rec), rec.timeout
  v.max_reclaims, v.max_replays = rec.max_reclaims or limits.reclaims_default, rec.max_replays or limits.replays_default
  v.reclaim_count, v.replay_count, v.fallback_index, v.fallbacks =
    rec.reclaims or 0, rec.replays or 0, rec.tier, said.fallbacks or {}
  v.budgets, v.quotas, v.retention_ms, v.max_frames =
    asks.of(rec).budgets, asks.of(rec).quotas, rec.retention, rec.max_frames or limits.frames_default
  v.trace_parent, v.completion_webhook, v.operator_actions = said.trace_parent, rec.webhook, more.actions(tx, rec)
  v.suspension, v.past_suspensions = suspension.typed(rec), suspension.past(rec)
  local current = suspension.load(rec)
  v.waitpoints, v.signals = waitpoint.typed_open(rec, current and current.recorded), signals.count(rec)
  v.steps, v.step_bytes = rec.steps or 0, rec.step_bytes or 0
  v.forked_from, v.forks, v.fired = rec.forked_from, more.forks(tx, rec), fired.typed(rec)
  local k = children.load(rec)
  if rec.reports then v.usage = { ledger = usage.ledger(tx, rec), pending = #usage.pending(tx, rec) } end
  v.inbound, v.nested, v.children, v.children_open = rec.inbound, rec.nested, k.total, k.open
  return v
end

return view
