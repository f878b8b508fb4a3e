-- Turns a submission into an execution, or finds the one it repeats.
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local event = require "lib.event"
local lists = require "index.lists"
local queues = require "index.queues"
local timers = require "index.timers"
local execution = require "record.execution"
local lane = require "record.lane"
local spec = require "record.spec"
local runnable = require "transition.runnable"
local score = require "transition.score"

local submit = {}

local day_ms = 86400000

-- Fills the gaps of a retry policy: first from the lane, then from the engine's defaults.
local function whole_retry(given, of_lane)
  given, of_lane = given or {}, of_lane or {}
  local b = given.backoff or of_lane.backoff or { type = "exponential" }
  local backoff
  if b.type == "fixed" then
    backoff = { type = "fixed", delay_ms = b.delay_ms or 1000 }
  else
    backoff = { type = "exponential", initial_ms = b.initial_ms or 1000, factor = b.factor or 2, max_ms = b.max_ms or 60000 }
  end
  return {
    max_attempts = given.max_attempts or of_lane.max_attempts or 3, backoff = backoff, jitter = given.jitter or of_lane.jitter or "full",
    retry_on = given.retry_on or of_lane.retry_on, never_on = given.never_on or of_lane.never_on,
  }
end

local function sorted_set(tokens)
  local list, seen = {}, {}
  for _, token in ipairs(tokens or {}) do
    if not seen[token] then
      seen[token] = true
      list[#list + 1] = token
    end
  end
  table.sort(list)
  return list
end

-- The budgets of the flow or parent come on top of the execution's own.
local function all_budgets(own, shared)
  local list, seen = {}, {}
  for _, refs in ipairs({ own or {}, shared or {} }) do
    for _, ref in ipairs(refs) do
      if not seen[ref.budget_id] then
        seen[ref.budget_id] = true
        list[#list + 1] = ref
      end
    end
  end
  return list
end

-- `place` says what the execution is part of: { flow_id, key, number, inbound, nested } or { parent_id, key, number, parent_close },
-- with the budgets and the deadline it shares.
local function spec_of(s, copy, now, place)
  local requires = sorted_set(s.requires)
  local budgets, quotas = all_budgets(s.budgets, place.budgets), s.quotas or {}
  return {
    namespace = s.namespace, kind = s.kind, input_encoding = s.input_encoding or "json", created_at = now,
    start_within_ms = s.start_within_ms, attempt_timeout_ms = s.attempt_timeout_ms or copy.attempt_timeout_ms,
    max_reclaims = s.max_reclaims or 5, max_replays = s.max_replays or 10, requires = requires, prefers = sorted_set(s.prefers),
    fairness_key = s.fairness_key, budgets = budgets, quotas = quotas, fallbacks = s.fallbacks or {},
    retention_ms = s.retention_ms or copy.retention_ms or 7 * day_ms, max_frames = s.stream and s.stream.max_frames or 10000,
    trace_parent = s.trace_parent, webhook = s.completion_webhook, retry = whole_retry(s.retry, copy.retry), body_digest = s.body_digest,
    queue = queues.name(requires, #budgets > 0 or #quotas > 0),
    flow_id = place.flow_id, key = place.key, number = place.number, inbound = place.inbound, nested = place.nested,
    parent_id = place.parent_id, parent_close = place.parent_close,
  }
end

local function earliest(a, b)
  if a and b then return math.min(a, b) end
  return a or b
end

local function duplicate(tx, id)
  local rec = execution.load(tx, id)
  return reply.ok("duplicate", { execution_id = id, state = rec and execution.public_state(rec) or nil })
end

-- The keys of a flow, of a parent's children and of everything else in a namespace are apart.
local function key_digest(s, place)
  return keys.digest((place.flow_id or place.parent_id or s.namespace) .. "/" .. s.idempotency_key)
end

-- The id belongs to another execution. One of another namespace is nobody's to know about: as if it could not be found.
local function taken(rec, s)
  local code = rec.spec.namespace == s.namespace and "idempotency_conflict" or "execution_not_found"
  return reply.err(code, { execution_id = s.execution_id })
end

-- The execution this submission repeats, as an answer, or nil.
local function known(tx, s, place)
  if s.idempotency_key then
    local record = tx:hgetall(keys.idempotency(tx, key_digest(s, place)))
    if record == nil or tonumber(record.until_ms) <= tx.now then return nil end
    if record.body_digest ~= s.body_digest then return reply.err("idempotency_conflict", { execution_id = record.execution_id }) end
    return duplicate(tx, record.execution_id)
  end
  local rec = execution.load(tx, s.execution_id, true)
  if rec == nil then return nil end
  if rec.spec.namespace ~= s.namespace or rec.spec.body_digest ~= s.body_digest then return taken(rec, s) end
  return reply.ok("duplicate", { execution_id = s.execution_id, state = execution.public_state(rec) })
end

local function remember_key(tx, s, place)
  local digest = key_digest(s, place)
  local until_ms = tx.now + (s.idempotency_ttl_ms or day_ms)
  tx:hset(keys.idempotency(tx, digest), { "execution_id", s.execution_id, "body_digest", s.body_digest, "until_ms", until_ms })
  timers.set(tx, "idem:" .. digest, until_ms)
end

local function refused(copy, s)
  if not lane.accepts(copy) then return reply.err("lane_disabled", { lane = s.lane, state = copy.state }) end
  if copy.max_depth then
    if s.lane_depth == nil then return reply.err("lane_depth_needed", { lane = s.lane }) end
    if s.lane_depth >= copy.max_depth then
      return reply.err("lane_full", { lane = s.lane, depth = s.lane_depth, max_depth = copy.max_depth, depth_age_ms_max = 1000 })
    end
  end
end

local function invalid(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

-- Two ways to say the same thing must not contradict each other.
local function contradiction(s)
  if s.delay_until and s.delay_ms then return invalid("delay_ms", "give delay_until or delay_ms, not both") end
  if s.deadline_at and s.deadline_ms then return invalid("deadline_ms", "give deadline_at or deadline_ms, not both") end
  if s.idempotency_ttl_ms and not s.idempotency_key then return invalid("idempotency_ttl_ms", "needs idempotency_key") end
end

-- What a submission repeats, or why it contradicts itself; nil when it is new.
function submit.repeated(tx, s, place)
  return contradiction(s) or known(tx, s, place)
end

function submit.one(tx, s)
  local answer = submit.repeated(tx, s, {})
  if answer then return answer end
  local rec, refusal = submit.new(tx, s, {})
  if refusal then return refusal end
  submit.place(tx, rec)
  return reply.ok("created", { execution_id = rec.id, state = execution.public_state(rec) })
end

-- A new execution, not saved yet, or nil and the refusal.
function submit.new(tx, s, place)
  local now = tx.now
  local path = s.namespace .. "/" .. s.lane
  local copy = lane.load(tx, path)
  if copy == nil then return nil, reply.err("lane_unseen", { namespace = s.namespace, lane = s.lane }) end
  local refusal = refused(copy, s)
  if refusal then return nil, refusal end
  local other = s.idempotency_key and execution.load(tx, s.execution_id, true)
  if other then return nil, taken(other, s) end

  local rec = execution.new(s.execution_id, spec_of(s, copy, now, place))
  rec.lane, rec.prio = s.lane, s.priority or 0
  rec.deadline = earliest(earliest(s.deadline_at, s.deadline_ms and now + s.deadline_ms), place.deadline)
  rec.delay = s.delay_until or (s.delay_ms and now + s.delay_ms)
  rec.start_by = s.start_within_ms and now + s.start_within_ms
  rec.tags = s.tags and next(s.tags) and cmsgpack.pack(spec.flatten(s.tags)) or nil
  if s.input and #s.input > limits.inline_bytes_max then
    rec.input_far = 1
    tx:set(keys.payload(tx, rec.id), s.input)
  elseif s.input and s.input ~= "" then
    rec.spec.input = s.input
  end
  rec.score = score.of(tx, copy, rec)
  if #rec.spec.prefers > 0 then lane.remember(tx, copy, "prefers", "1") end
  if s.idempotency_key then remember_key(tx, s, place) end
  return rec
end

-- Puts a new execution where it belongs, for everybody to see.
function submit.place(tx, rec)
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  lists.add(tx, rec)
  event.of_execution(tx, rec, "execution.submitted", { "state", execution.public_state(rec) })
end

return submit
