local asks = require "record.asks"
local define = require "lib.define"
local event = require "lib.event"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local more = require "record.more"
local spec = require "record.spec"
local step = require "record.step"
local submit = require "transition.submit"

-- The submission of the origin, with what the fork changes: it is part of nothing and waits for nothing.
local function submission(tx, rec, a)
  local said, asked = spec.of(tx, rec), asks.of(rec)
  return {
    execution_id = a.fork_id, namespace = execution.namespace(rec), lane = a.lane or execution.lane(rec),
    kind = rec.kind, input = a.input or spec.input(tx, rec), priority = a.priority or rec.prio,
    retention_ms = rec.retention, body_digest = a.body_digest,
    more = {
      input_encoding = a.input and (a.input_encoding or "json") or rec.input_in,
      tags = a.tags or spec.unflatten(rec.tags),
      deadline_at = rec.deadline and rec.deadline > tx.now and rec.deadline or nil, start_within_ms = rec.start_within,
      retry = said.retry, attempt_timeout_ms = rec.timeout, max_reclaims = rec.max_reclaims,
      max_replays = rec.max_replays, requires = rec.requires, prefers = rec.prefers, fairness_key = rec.fairness_key,
      budgets = #asked.budgets > 0 and asked.budgets or nil, quotas = #asked.quotas > 0 and asked.quotas or nil,
      fallbacks = said.fallbacks, stream = rec.max_frames and { max_frames = rec.max_frames } or nil,
      trace_parent = said.trace_parent, completion_webhook = rec.webhook, lane_depth = a.lane_depth,
    },
  }
end

define.fn {
  name = "ff_fork_execution",
  doc = "Submits a new execution with the submission of another one and copies of its finished steps: those before a "
    .. "named one, or all. A known id is answered again.",
  flags = {},
  args = {
    execution_id = "execution_id", fork_id = "execution_id", actor = "actor", from_step = "step_name?",
    input = "input?", input_encoding = "encoding?", lane = "lane?", priority = "priority?", tags = "tags?",
    budgets = "budget_refs?", body_digest = "digest", lane_depth = "count?",
  },
  reply = { forked = { state = "public_state?", steps = "count", duplicate = "bool" } },
  errs = {
    "execution_not_found", "step_not_found", "idempotency_conflict", "lane_disabled", "lane_full", "lane_unseen",
    "lane_depth_needed",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.nested then
      return reply.err("invalid_argument", { field = "execution_id", problem = "is a flow: fork one of its members" })
    end
    if string.sub(a.fork_id, -4) ~= string.sub(rec.id, -4) then
      return reply.err("invalid_argument", {
        field = "fork_id", problem = "must end like the execution's id: they share a partition",
      })
    end
    local s, place = submission(tx, rec, a), { budgets = a.budgets }
    local answer = submit.repeated(tx, s, place)
    if answer and answer.err then return answer end
    if answer then
      return reply.ok("forked", {
        state = answer.fields.state, steps = execution.load(tx, a.fork_id).steps or 0, duplicate = true,
      })
    end
    local before = (rec.steps or 0) + 1
    if a.from_step then
      local named = step.find(tx, rec, a.from_step)
      if named == nil then return reply.err("step_not_found", { step = a.from_step }) end
      before = named.number
    end
    local fork, refusal = submit.new(tx, s, place)
    if refusal then return refusal end
    fork.forked_from = rec.id
    refusal = step.copy(tx, rec, fork, before)
    if refusal then return refusal end
    submit.place(tx, fork)
    more.note_fork(tx, rec, fork.id)
    more.note_action(tx, rec, "fork", a.actor, fork.id)
    execution.store(tx, rec)
    event.of_execution(tx, rec, "execution.forked", "fork_id", fork.id, "actor", a.actor)
    return reply.ok("forked", {
      state = execution.public_state(fork), steps = fork.steps or 0, duplicate = false,
    })
  end,
}
