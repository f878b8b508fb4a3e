-- Turns a submission into an execution, or finds the one it repeats.
local asks = require "record.asks"
local keys = require "lib.keys"
local reply = require "lib.reply"
local event = require "lib.event"
local lists = require "index.lists"
local queues = require "index.queues"
local timers = require "index.timers"
local execution = require "record.execution"
local fired = require "record.fired"
local lane = require "record.lane"
local spec = require "record.spec"
local plain = require "transition.plain"
local runnable = require "transition.runnable"
local score = require "transition.score"

local submit = {}

local day_ms = 86400000
local week_ms = 7 * day_ms
local solo, nothing = {}, {}

-- A list of tokens without repetitions, in order; nil when it is empty.
local function sorted_set(tokens)
  if tokens == nil or #tokens == 0 then return nil end
  local list, seen = {}, {}
  for _, token in ipairs(tokens) do
    if not seen[token] then
      seen[token] = true
      list[#list + 1] = token
    end
  end
  table.sort(list)
  return list
end

-- The budgets of the flow or parent come on top of the execution's own; nil when there are none.
local function all_budgets(own, shared)
  if own == nil and shared == nil then return nil end
  local list, seen = {}, {}
  for _, refs in ipairs({ own or {}, shared or {} }) do
    for _, ref in ipairs(refs) do
      if not seen[ref.budget_id] then
        seen[ref.budget_id] = true
        list[#list + 1] = ref
      end
    end
  end
  return #list > 0 and list or nil
end

-- Quotas with their weights; nil when there are none.
local function all_quotas(quotas)
  if quotas == nil or #quotas == 0 then return nil end
  for _, ref in ipairs(quotas) do ref.weight = ref.weight or 1 end
  return quotas
end

-- A record that is not stored yet. Constructed at once, with the fields nearly every execution has.
local function new_record(s, path, copy, now)
  return {
    path = path, kind = s.kind, created = now, queue = "any",
    retention = s.retention_ms or copy.retention_ms or week_ms, phase = nil, outcome = nil, prio = s.priority or 0,
    score = nil, updated = nil, wake = nil, digest = s.body_digest, input = nil, tags = nil, id = s.execution_id,
    was_phase = nil, was_place = nil, was_score = nil,
  }
end

-- What few submissions say, and what few lanes do. To set a field to nothing would make room for it.
local function note_rare(rec, m, copy, now)
  if copy.retry then rec.lane_retry = copy.retry end
  local timeout = m.attempt_timeout_ms or copy.attempt_timeout_ms
  if timeout then rec.timeout = timeout end
  if next(m) == nil then return end
  if m.deadline_at or m.deadline_ms then rec.deadline = m.deadline_at or now + m.deadline_ms end
  if m.delay_until or m.delay_ms then rec.delay = m.delay_until or now + m.delay_ms end
  if m.start_within_ms then rec.start_within, rec.start_by = m.start_within_ms, now + m.start_within_ms end
  if m.max_reclaims then rec.max_reclaims = m.max_reclaims end
  if m.max_replays then rec.max_replays = m.max_replays end
  if m.fairness_key then rec.fairness_key = m.fairness_key end
  if m.completion_webhook then rec.webhook = m.completion_webhook end
  if m.fired then fired.note(rec, m.fired) end
  if m.stream then rec.max_frames = m.stream.max_frames end
  if m.input_encoding and m.input_encoding ~= "json" then rec.input_in = m.input_encoding end
  if m.tags and next(m.tags) then rec.tags = cmsgpack.pack(spec.flatten(m.tags)) end
end

-- What it is part of: { flow_id, key, number, inbound, nested } or { parent_id, key, number, parent_close }, with the
-- budgets and the deadline it shares.
local function note_place(rec, place)
  rec.key, rec.number = place.key, place.number
  if place.flow_id then rec.flow_id = place.flow_id end
  if place.inbound then rec.inbound = place.inbound end
  if place.nested then rec.nested = place.nested end
  if place.parent_id then rec.parent_id, rec.parent_close = place.parent_id, place.parent_close end
  if place.deadline and (rec.deadline == nil or place.deadline < rec.deadline) then rec.deadline = place.deadline end
end

local function duplicate(tx, id)
  local rec = execution.load(tx, id)
  return reply.ok("duplicate", { execution_id = id, state = rec and execution.public_state(rec) or nil })
end

-- The keys of a flow, of a parent's children and of everything else in a namespace are apart.
local function key_digest(s, place)
  return keys.digest((place.flow_id or place.parent_id or s.namespace) .. "/" .. s.more.idempotency_key)
end

local function has_key(s)
  return s.more and s.more.idempotency_key
end

-- The id belongs to another execution. One of another namespace is nobody's to know about: as if it could not be found.
local function taken(rec, s)
  local code = execution.namespace(rec) == s.namespace and "idempotency_conflict" or "execution_not_found"
  return reply.err(code, { execution_id = s.execution_id })
end

-- The execution this submission repeats, as an answer, or nil.
local function known(tx, s, place)
  if has_key(s) then
    local record = tx:hgetall(keys.idempotency(tx, key_digest(s, place)))
    if record == nil or tonumber(record.until_ms) <= tx.now then return nil end
    if record.body_digest ~= s.body_digest then
      return reply.err("idempotency_conflict", { execution_id = record.execution_id })
    end
    return duplicate(tx, record.execution_id)
  end
  local rec = execution.load(tx, s.execution_id, true)
  if rec == nil then return nil end
  if execution.namespace(rec) ~= s.namespace or rec.digest ~= s.body_digest then return taken(rec, s) end
  return reply.ok("duplicate", { execution_id = s.execution_id, state = execution.public_state(rec) })
end

local function remember_key(tx, s, place)
  local digest = key_digest(s, place)
  local until_ms = tx.now + (s.more.idempotency_ttl_ms or day_ms)
  tx:hset(keys.idempotency(tx, digest), {
    "execution_id", s.execution_id, "body_digest", s.body_digest, "until_ms", until_ms,
  })
  timers.set(tx, "idem:" .. digest, until_ms)
end

local function refused(copy, s)
  if not lane.accepts(copy) then return reply.err("lane_disabled", { lane = s.lane, state = copy.state }) end
  if copy.max_depth then
    local depth = s.more and s.more.lane_depth
    if depth == nil then return reply.err("lane_depth_needed", { lane = s.lane }) end
    if depth >= copy.max_depth then
      return reply.err("lane_full", {
        lane = s.lane, depth = depth, max_depth = copy.max_depth, depth_age_ms_max = 1000,
      })
    end
  end
end

local function invalid(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

-- Two ways to say the same thing must not contradict each other.
local function contradiction(m)
  if m.delay_until and m.delay_ms then return invalid("delay_ms", "give delay_until or delay_ms, not both") end
  if m.deadline_at and m.deadline_ms then return invalid("deadline_ms", "give deadline_at or deadline_ms, not both") end
  if m.idempotency_ttl_ms and not m.idempotency_key then
    return invalid("idempotency_ttl_ms", "needs idempotency_key")
  end
end

-- What a submission repeats, or why it contradicts itself; nil when it is new.
function submit.repeated(tx, s, place)
  return s.more and contradiction(s.more) or known(tx, s, place)
end

function submit.one(tx, s)
  if not tx.step_by_step then
    local answer = plain.submit(tx, s)
    if answer then return answer end
  end
  local answer = submit.repeated(tx, s, solo)
  if answer then return answer end
  local rec, refusal = submit.new(tx, s, solo)
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
  local other = has_key(s) and execution.load(tx, s.execution_id, true)
  if other then return nil, taken(other, s) end

  local rec, m = new_record(s, path, copy, now), s.more or nothing
  note_rare(rec, m, copy, now)
  if place ~= solo then note_place(rec, place) end
  local requires, prefers = sorted_set(m.requires), sorted_set(m.prefers)
  local budgets, quotas = all_budgets(m.budgets, place.budgets), all_quotas(m.quotas)
  if requires or budgets or quotas then
    rec.requires, rec.asks = requires, asks.packed(quotas, budgets)
    rec.queue = queues.class(requires or {}, budgets ~= nil or quotas ~= nil)
  end
  if prefers then
    rec.prefers = prefers
    lane.remember(tx, copy, "prefers", "1")
  end
  if s.input and s.input ~= "" then
    rec.input = 1
    tx:set(keys.input(tx, rec.id), s.input)
  end
  spec.store(tx, rec, m)
  rec.score = score.of(tx, copy, rec)
  if has_key(s) then remember_key(tx, s, place) end
  return rec
end

-- Puts a new execution where it belongs, for everybody to see.
function submit.place(tx, rec)
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  lists.add(tx, rec)
  event.of_execution(tx, rec, "execution.submitted", "state", execution.public_state(rec))
end

return submit
