-- Written by `cargo xtask codegen` from lua/record/fields.lua; do not edit.
local packed = {}

local pack, unpack_limit, byte = cmsgpack.pack, cmsgpack.unpack_limit, string.byte
local pcall, select, error = pcall, select, error

-- The values of an array: as many as it says, and nothing behind them.
local function whole(key, count, fine, _, ...)
  if not fine or count ~= select("#", ...) then error("CORRUPT " .. key .. " array", 0) end
  return key, ...
end

-- The values of a stored array, without a table for it: they begin behind its head. The key comes first.
local function values(key, stored)
  local head, high, low = byte(stored, 1, 3)
  if head == 220 and low then return whole(key, high * 256 + low, pcall(unpack_limit, stored, 1000, 3)) end
  if head and head > 144 and head < 160 then return whole(key, head - 144, pcall(unpack_limit, stored, 1000, 1)) end
  error("CORRUPT " .. key .. " array", 0)
end

packed.values = values

local function missing(key, names, ...)
  for i = 1, #names do
    if (select(i, ...)) == nil then error("CORRUPT " .. key .. " " .. names[i], 0) end
  end
end

-- Packs a record with the values that a newer library put behind the known ones.
local function with_tail(array, known, tail)
  for i = #array + 1, known do array[i] = false end
  for i = 1, #tail do array[known + i] = tail[i] end
  return pack(array)
end

local function open_access(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, ...)
  if not a1 or not a2 or not a3 or not a4 or not a8 or not a9 then missing(key, { "access_id", "digest", "name",
      "roles", "created_at", "created_by" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a8 or nil, a9 or nil) end
  local rec = {
    access_id = a1,
    digest = a2,
    name = a3,
    roles = a4,
    namespaces = a5 or nil,
    lanes = a6 or nil,
    capabilities = a7 or nil,
    created_at = a8,
    created_by = a9,
    expires_at = a10 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_access(key, stored)
  return open_access(values(key, stored))
end

function packed.close_access(rec)
  if rec.tail then return with_tail({ rec.access_id, rec.digest, rec.name, rec.roles, rec.namespaces or false,
      rec.lanes or false, rec.capabilities or false, rec.created_at, rec.created_by, rec.expires_at or false }, 10,
      rec.tail) end
  return pack({ rec.access_id, rec.digest, rec.name, rec.roles, rec.namespaces or false, rec.lanes or false,
      rec.capabilities or false, rec.created_at, rec.created_by, rec.expires_at or false })
end

local function open_budget(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a6 or not a7 or not a8 or not a14 or not a15
      or not a16 then missing(key, { "definition", "version", "created", "period", "since", "rooms", "wide", "told",
      "used", "held", "base" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil, a6 or nil, a7 or nil, a8 or nil,
      a14 or nil, a15 or nil, a16 or nil) end
  local rec = {
    definition = a1,
    version = a2,
    created = a3,
    period = a4,
    since = a5,
    rooms = a6,
    wide = a7,
    told = a8,
    next_reset = a9 or nil,
    approved = a10 or nil,
    refused = a11 or nil,
    soft_told = a12 or nil,
    passed = a13 or nil,
    used = a14,
    held = a15,
    base = a16,
    actions = a17 or nil,
    past = a18 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_budget(key, stored)
  return open_budget(values(key, stored))
end

function packed.close_budget(rec)
  if rec.tail then return with_tail({ rec.definition, rec.version, rec.created, rec.period, rec.since, rec.rooms,
      rec.wide, rec.told, rec.next_reset or false, rec.approved or false, rec.refused or false, rec.soft_told or false,
      rec.passed or false, rec.used, rec.held, rec.base, rec.actions or false, rec.past or false }, 18, rec.tail) end
  return pack({ rec.definition, rec.version, rec.created, rec.period, rec.since, rec.rooms, rec.wide, rec.told,
      rec.next_reset or false, rec.approved or false, rec.refused or false, rec.soft_told or false,
      rec.passed or false, rec.used, rec.held, rec.base, rec.actions or false, rec.past or false })
end

local function open_execution(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,
    a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a6 or not a7 or not a8 or not a9
      or not a11 then missing(key, { "path", "kind", "created", "queue", "retention", "phase", "prio", "score",
      "updated", "digest" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil, a6 or nil, a7 or nil, a8 or nil,
      a9 or nil, a11 or nil) end
  local rec = {
    path = a1,
    kind = a2,
    created = a3,
    queue = a4,
    retention = a5,
    phase = a6,
    prio = a7,
    score = a8,
    updated = a9,
    wake = a10 or nil,
    digest = a11,
    input = a12 or nil,
    tags = a13 or nil,
    asks = a14 or nil,
    holds = a15 or nil,
    attempt = a16 or nil,
    attempt_id = a17 or nil,
    attempt_type = a18 or nil,
    attempt_state = a19 or nil,
    started = a20 or nil,
    lease_id = a21 or nil,
    epoch = a22 or nil,
    worker = a23 or nil,
    worker_id = a24 or nil,
    lease_until = a25 or nil,
    lease_ttl = a26 or nil,
    ended_by = a27 or nil,
    ended = a28 or nil,
    outcome = a29 or nil,
    result = a30 or nil,
    id = nil,
    was_phase = nil,
    was_place = nil,
    was_score = nil,
  }
  if a31 then
    local v
    v = a31[1] if v then rec.flow_id = v end
    v = a31[2] if v then rec.key = v end
    v = a31[3] if v then rec.number = v end
    v = a31[4] if v then rec.nested = v end
    v = a31[5] if v then rec.parent_id = v end
    v = a31[6] if v then rec.parent_close = v end
  end
  if a32 then
    local v
    v = a32[1] if v then rec.reason = v end
    v = a32[2] if v then rec.detail = v end
    v = a32[3] if v then rec.since = v end
    v = a32[4] if v then rec.delay = v end
    v = a32[5] if v then rec.start_by = v end
    v = a32[6] if v then rec.start_within = v end
    v = a32[7] if v then rec.deadline = v end
    v = a32[8] if v then rec.next = v end
    v = a32[9] if v then rec.resume = v end
    v = a32[10] if v then rec.ready = v end
    v = a32[11] if v then rec.fair = v end
    v = a32[12] if v then rec.fair_end = v end
    v = a32[13] if v then rec.fairness_key = v end
  end
  if a33 then
    local v
    v = a33[1] if v then rec.grant = v end
    v = a33[2] if v then rec.grant_worker = v end
    v = a33[3] if v then rec.grant_until = v end
    v = a33[4] if v then rec.grants = v end
    v = a33[5] if v then rec.wanted = v end
    v = a33[6] if v then rec.requires = v end
    v = a33[7] if v then rec.prefers = v end
  end
  if a34 then
    local v
    v = a34[1] if v then rec.timeout = v end
    v = a34[2] if v then rec.timeout_at = v end
    v = a34[3] if v then rec.time_left = v end
    v = a34[4] if v then rec.max_reclaims = v end
    v = a34[5] if v then rec.max_replays = v end
    v = a34[6] if v then rec.failure = v end
    v = a34[7] if v then rec.failures = v end
    v = a34[8] if v then rec.reclaims = v end
    v = a34[9] if v then rec.replays = v end
    v = a34[10] if v then rec.tier = v end
    v = a34[11] if v then rec.progress = v end
    v = a34[12] if v then rec.cancel_by = v end
    v = a34[13] if v then rec.cancel_reason = v end
    v = a34[14] if v then rec.yield = v end
    v = a34[15] if v then rec.renewals = v end
    v = a34[16] if v then rec.ended_value = v end
    v = a34[17] if v then rec.lane_retry = v end
    v = a34[18] if v then rec.attempt_ended = v end
    v = a34[19] if v then rec.attempt_failure = v end
  end
  if a35 then
    local v
    v = a35[1] if v then rec.waits = v end
    v = a35[2] if v then rec.wait_until = v end
    v = a35[3] if v then rec.open_due = v end
    v = a35[4] if v then rec.continued = v end
    v = a35[5] if v then rec.signals = v end
  end
  if a36 then
    local v
    v = a36[1] if v then rec.frames = v end
    v = a36[2] if v then rec.streams = v end
    v = a36[3] if v then rec.tailed = v end
    v = a36[4] if v then rec.max_frames = v end
    v = a36[5] if v then rec.attempt_frames = v end
  end
  if a37 then
    local v
    v = a37[1] if v then rec.deps = v end
    v = a37[2] if v then rec.inbound = v end
    v = a37[3] if v then rec.passes = v end
    v = a37[4] if v then rec.outs = v end
    v = a37[5] if v then rec.reached = v end
    v = a37[6] if v then rec.halted = v end
    v = a37[7] if v then rec.fault = v end
    v = a37[8] if v then rec.verdict = v end
    v = a37[9] if v then rec.hidden = v end
    v = a37[10] if v then rec.bound = v end
    v = a37[11] if v then rec.freed = v end
    v = a37[12] if v then rec.kids = v end
    v = a37[13] if v then rec.awaiting = v end
    v = a37[14] if v then rec.owed = v end
  end
  if a38 then
    local v
    v = a38[1] if v then rec.more = v end
    v = a38[2] if v then rec.spilled = v end
    v = a38[3] if v then rec.waited = v end
    v = a38[4] if v then rec.result_far = v end
    v = a38[5] if v then rec.result_in = v end
    v = a38[6] if v then rec.input_in = v end
    v = a38[7] if v then rec.reports = v end
    v = a38[8] if v then rec.webhook = v end
    v = a38[9] if v then rec.hook = v end
    v = a38[10] if v then rec.said = v end
  end
  if a39 then
    local v
    v = a39[1] if v then rec.steps = v end
    v = a39[2] if v then rec.step_bytes = v end
    v = a39[3] if v then rec.forked_from = v end
  end
  if a40 then
    local v
    v = a40[1] if v then rec.schedule = v end
    v = a40[2] if v then rec.firing = v end
    v = a40[3] if v then rec.nominal = v end
    v = a40[4] if v then rec.fired_at = v end
  end
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_execution(key, stored)
  return open_execution(values(key, stored))
end

function packed.close_execution(rec)
  local g1 = false
  if rec.flow_id or rec.key or rec.number or rec.nested or rec.parent_id or rec.parent_close
  then
    g1 = { rec.flow_id or false, rec.key or false, rec.number or false, rec.nested or false, rec.parent_id or false,
        rec.parent_close or false }
  end
  local g2 = false
  if rec.reason or rec.detail or rec.since or rec.delay or rec.start_by or rec.start_within or rec.deadline
      or rec.next or rec.resume or rec.ready or rec.fair or rec.fair_end or rec.fairness_key
  then
    g2 = { rec.reason or false, rec.detail or false, rec.since or false, rec.delay or false, rec.start_by or false,
        rec.start_within or false, rec.deadline or false, rec.next or false, rec.resume or false, rec.ready or false,
        rec.fair or false, rec.fair_end or false, rec.fairness_key or false }
  end
  local g3 = false
  if rec.grant or rec.grant_worker or rec.grant_until or rec.grants or rec.wanted or rec.requires or rec.prefers
  then
    g3 = { rec.grant or false, rec.grant_worker or false, rec.grant_until or false, rec.grants or false,
        rec.wanted or false, rec.requires or false, rec.prefers or false }
  end
  local g4 = false
  if rec.timeout or rec.timeout_at or rec.time_left or rec.max_reclaims or rec.max_replays or rec.failure
      or rec.failures or rec.reclaims or rec.replays or rec.tier or rec.progress or rec.cancel_by
      or rec.cancel_reason or rec.yield or rec.renewals or rec.ended_value or rec.lane_retry or rec.attempt_ended
      or rec.attempt_failure
  then
    g4 = { rec.timeout or false, rec.timeout_at or false, rec.time_left or false, rec.max_reclaims or false,
        rec.max_replays or false, rec.failure or false, rec.failures or false, rec.reclaims or false,
        rec.replays or false, rec.tier or false, rec.progress or false, rec.cancel_by or false,
        rec.cancel_reason or false, rec.yield or false, rec.renewals or false, rec.ended_value or false,
        rec.lane_retry or false, rec.attempt_ended or false, rec.attempt_failure or false }
  end
  local g5 = false
  if rec.waits or rec.wait_until or rec.open_due or rec.continued or rec.signals
  then
    g5 = { rec.waits or false, rec.wait_until or false, rec.open_due or false, rec.continued or false,
        rec.signals or false }
  end
  local g6 = false
  if rec.frames or rec.streams or rec.tailed or rec.max_frames or rec.attempt_frames
  then
    g6 = { rec.frames or false, rec.streams or false, rec.tailed or false, rec.max_frames or false,
        rec.attempt_frames or false }
  end
  local g7 = false
  if rec.deps or rec.inbound or rec.passes or rec.outs or rec.reached or rec.halted or rec.fault or rec.verdict
      or rec.hidden or rec.bound or rec.freed or rec.kids or rec.awaiting or rec.owed
  then
    g7 = { rec.deps or false, rec.inbound or false, rec.passes or false, rec.outs or false, rec.reached or false,
        rec.halted or false, rec.fault or false, rec.verdict or false, rec.hidden or false, rec.bound or false,
        rec.freed or false, rec.kids or false, rec.awaiting or false, rec.owed or false }
  end
  local g8 = false
  if rec.more or rec.spilled or rec.waited or rec.result_far or rec.result_in or rec.input_in or rec.reports
      or rec.webhook or rec.hook or rec.said
  then
    g8 = { rec.more or false, rec.spilled or false, rec.waited or false, rec.result_far or false,
        rec.result_in or false, rec.input_in or false, rec.reports or false, rec.webhook or false, rec.hook or false,
        rec.said or false }
  end
  local g9 = false
  if rec.steps or rec.step_bytes or rec.forked_from
  then
    g9 = { rec.steps or false, rec.step_bytes or false, rec.forked_from or false }
  end
  local g10 = false
  if rec.schedule or rec.firing or rec.nominal or rec.fired_at
  then
    g10 = { rec.schedule or false, rec.firing or false, rec.nominal or false, rec.fired_at or false }
  end
  if rec.tail then return with_tail({ rec.path, rec.kind, rec.created, rec.queue, rec.retention, rec.phase, rec.prio,
      rec.score, rec.updated, rec.wake or false, rec.digest, rec.input or false, rec.tags or false, rec.asks or false,
      rec.holds or false, rec.attempt or false, rec.attempt_id or false, rec.attempt_type or false,
      rec.attempt_state or false, rec.started or false, rec.lease_id or false, rec.epoch or false, rec.worker or false,
      rec.worker_id or false, rec.lease_until or false, rec.lease_ttl or false, rec.ended_by or false,
      rec.ended or false, rec.outcome or false, rec.result or false, g1, g2, g3, g4, g5, g6, g7, g8, g9, g10 }, 40,
      rec.tail) end
  if g1 or g2 or g3 or g4 or g5 or g6 or g7 or g8 or g9 or g10 then return pack({ rec.path, rec.kind, rec.created,
      rec.queue, rec.retention, rec.phase, rec.prio, rec.score, rec.updated, rec.wake or false, rec.digest,
      rec.input or false, rec.tags or false, rec.asks or false, rec.holds or false, rec.attempt or false,
      rec.attempt_id or false, rec.attempt_type or false, rec.attempt_state or false, rec.started or false,
      rec.lease_id or false, rec.epoch or false, rec.worker or false, rec.worker_id or false, rec.lease_until or false,
      rec.lease_ttl or false, rec.ended_by or false, rec.ended or false, rec.outcome or false, rec.result or false, g1,
      g2, g3, g4, g5, g6, g7, g8, g9, g10 }) end
  if rec.attempt == nil and rec.ended == nil then return pack({ rec.path, rec.kind, rec.created, rec.queue,
      rec.retention, rec.phase, rec.prio, rec.score, rec.updated, rec.wake or false, rec.digest, rec.input or false,
      rec.tags or false, rec.asks or false, rec.holds or false }) end
  if rec.ended == nil then return pack({ rec.path, rec.kind, rec.created, rec.queue, rec.retention, rec.phase,
      rec.prio, rec.score, rec.updated, rec.wake or false, rec.digest, rec.input or false, rec.tags or false,
      rec.asks or false, rec.holds or false, rec.attempt or false, rec.attempt_id or false, rec.attempt_type or false,
      rec.attempt_state or false, rec.started or false, rec.lease_id or false, rec.epoch or false, rec.worker or false,
      rec.worker_id or false, rec.lease_until or false, rec.lease_ttl or false, rec.ended_by or false }) end
  return pack({ rec.path, rec.kind, rec.created, rec.queue, rec.retention, rec.phase, rec.prio, rec.score, rec.updated,
      rec.wake or false, rec.digest, rec.input or false, rec.tags or false, rec.asks or false, rec.holds or false,
      rec.attempt or false, rec.attempt_id or false, rec.attempt_type or false, rec.attempt_state or false,
      rec.started or false, rec.lease_id or false, rec.epoch or false, rec.worker or false, rec.worker_id or false,
      rec.lease_until or false, rec.lease_ttl or false, rec.ended_by or false, rec.ended or false,
      rec.outcome or false, rec.result or false })
end

local function open_flow(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
    a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42,
    a43, a44, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a7 or not a9 or not a14 or not a18
      or not a19 then missing(key, { "namespace", "kind", "policy", "created", "updated", "retention", "digest",
      "version", "last", "stored" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil, a7 or nil, a9 or nil,
      a14 or nil, a18 or nil, a19 or nil) end
  local rec = {
    namespace = a1,
    kind = a2,
    policy = a3,
    created = a4,
    updated = a5,
    deadline = a6 or nil,
    retention = a7,
    defaults = a8 or nil,
    digest = a9,
    parent = a10 or nil,
    adopted = a11 or nil,
    sealed = a12 or nil,
    touched = a13 or nil,
    version = a14,
    backward = a15 or nil,
    outcome = a16 or nil,
    ended = a17 or nil,
    last = a18,
    stored = a19,
    uncaught = a20 or nil,
    sinks = a21 or nil,
    owed = a22 or nil,
    stop = a23 or nil,
    walk = a24 or nil,
    walk_at = a25 or nil,
    walked = a26 or nil,
    wake = a27 or nil,
    waited = a28 or nil,
    webhook = a29 or nil,
    hook = a30 or nil,
    n_held = a31 or nil,
    n_waiting = a32 or nil,
    n_delayed = a33 or nil,
    n_rate_limited = a34 or nil,
    n_waiting_children = a35 or nil,
    n_active = a36 or nil,
    n_suspended = a37 or nil,
    n_resumable = a38 or nil,
    n_completed = a39 or nil,
    n_failed = a40 or nil,
    n_cancelled = a41 or nil,
    n_expired = a42 or nil,
    n_skipped = a43 or nil,
    id = nil,
  }
  if a44 then
    local v
    v = a44[1] if v then rec.schedule = v end
    v = a44[2] if v then rec.firing = v end
    v = a44[3] if v then rec.nominal = v end
    v = a44[4] if v then rec.fired_at = v end
  end
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_flow(key, stored)
  return open_flow(values(key, stored))
end

function packed.close_flow(rec)
  local g1 = false
  if rec.schedule or rec.firing or rec.nominal or rec.fired_at
  then
    g1 = { rec.schedule or false, rec.firing or false, rec.nominal or false, rec.fired_at or false }
  end
  if rec.tail then return with_tail({ rec.namespace, rec.kind, rec.policy, rec.created, rec.updated,
      rec.deadline or false, rec.retention, rec.defaults or false, rec.digest, rec.parent or false,
      rec.adopted or false, rec.sealed or false, rec.touched or false, rec.version, rec.backward or false,
      rec.outcome or false, rec.ended or false, rec.last, rec.stored, rec.uncaught or false, rec.sinks or false,
      rec.owed or false, rec.stop or false, rec.walk or false, rec.walk_at or false, rec.walked or false,
      rec.wake or false, rec.waited or false, rec.webhook or false, rec.hook or false, rec.n_held or false,
      rec.n_waiting or false, rec.n_delayed or false, rec.n_rate_limited or false, rec.n_waiting_children or false,
      rec.n_active or false, rec.n_suspended or false, rec.n_resumable or false, rec.n_completed or false,
      rec.n_failed or false, rec.n_cancelled or false, rec.n_expired or false, rec.n_skipped or false, g1 }, 44,
      rec.tail) end
  if g1 then return pack({ rec.namespace, rec.kind, rec.policy, rec.created, rec.updated, rec.deadline or false,
      rec.retention, rec.defaults or false, rec.digest, rec.parent or false, rec.adopted or false, rec.sealed or false,
      rec.touched or false, rec.version, rec.backward or false, rec.outcome or false, rec.ended or false, rec.last,
      rec.stored, rec.uncaught or false, rec.sinks or false, rec.owed or false, rec.stop or false, rec.walk or false,
      rec.walk_at or false, rec.walked or false, rec.wake or false, rec.waited or false, rec.webhook or false,
      rec.hook or false, rec.n_held or false, rec.n_waiting or false, rec.n_delayed or false,
      rec.n_rate_limited or false, rec.n_waiting_children or false, rec.n_active or false, rec.n_suspended or false,
      rec.n_resumable or false, rec.n_completed or false, rec.n_failed or false, rec.n_cancelled or false,
      rec.n_expired or false, rec.n_skipped or false, g1 }) end
  return pack({ rec.namespace, rec.kind, rec.policy, rec.created, rec.updated, rec.deadline or false, rec.retention,
      rec.defaults or false, rec.digest, rec.parent or false, rec.adopted or false, rec.sealed or false,
      rec.touched or false, rec.version, rec.backward or false, rec.outcome or false, rec.ended or false, rec.last,
      rec.stored, rec.uncaught or false, rec.sinks or false, rec.owed or false, rec.stop or false, rec.walk or false,
      rec.walk_at or false, rec.walked or false, rec.wake or false, rec.waited or false, rec.webhook or false,
      rec.hook or false, rec.n_held or false, rec.n_waiting or false, rec.n_delayed or false,
      rec.n_rate_limited or false, rec.n_waiting_children or false, rec.n_active or false, rec.n_suspended or false,
      rec.n_resumable or false, rec.n_completed or false, rec.n_failed or false, rec.n_cancelled or false,
      rec.n_expired or false, rec.n_skipped or false })
end

local function open_lane(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 then missing(key, { "state", "version", "priority_weight",
      "fairness", "weight" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil) end
  local rec = {
    state = a1,
    version = a2,
    priority_weight = a3,
    fairness = a4,
    weight = a5,
    max_depth = a6 or nil,
    max_active = a7 or nil,
    attempt_timeout_ms = a8 or nil,
    retention_ms = a9 or nil,
    lease_ttl_ms = a10 or nil,
    fairness_weights = a11 or nil,
    retry = a12 or nil,
    path = nil,
    tag = nil,
    remembered = nil,
    queues = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_lane(key, stored)
  return open_lane(values(key, stored))
end

function packed.close_lane(rec)
  if rec.tail then return with_tail({ rec.state, rec.version, rec.priority_weight, rec.fairness, rec.weight,
      rec.max_depth or false, rec.max_active or false, rec.attempt_timeout_ms or false, rec.retention_ms or false,
      rec.lease_ttl_ms or false, rec.fairness_weights or false, rec.retry or false }, 12, rec.tail) end
  return pack({ rec.state, rec.version, rec.priority_weight, rec.fairness, rec.weight, rec.max_depth or false,
      rec.max_active or false, rec.attempt_timeout_ms or false, rec.retention_ms or false, rec.lease_ttl_ms or false,
      rec.fairness_weights or false, rec.retry or false })
end

local function open_more(key, a1, a2, a3, ...)
  local rec = {
    history = a1 or nil,
    actions = a2 or nil,
    forks = a3 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_more(key, stored)
  return open_more(values(key, stored))
end

function packed.close_more(rec)
  if rec.tail then return with_tail({ rec.history or false, rec.actions or false, rec.forks or false }, 3, rec.tail) end
  return pack({ rec.history or false, rec.actions or false, rec.forks or false })
end

local function open_quota(key, a1, a2, a3, a4, a5, a6, a7, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 then missing(key, { "definition", "version", "created", "changed",
      "last" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil) end
  local rec = {
    definition = a1,
    version = a2,
    created = a3,
    changed = a4,
    last = a5,
    walked = a6 or nil,
    deleted = a7 or nil,
    id = nil,
    packed = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_quota(key, stored)
  return open_quota(values(key, stored))
end

function packed.close_quota(rec)
  if rec.tail then return with_tail({ rec.definition, rec.version, rec.created, rec.changed, rec.last,
      rec.walked or false, rec.deleted or false }, 7, rec.tail) end
  return pack({ rec.definition, rec.version, rec.created, rec.changed, rec.last, rec.walked or false,
      rec.deleted or false })
end

local function open_quota_key(key, a1, a2, a3, a4, a5, a6, ...)
  if not a1 then missing(key, { "key" }, a1 or nil) end
  local rec = {
    key = a1,
    tat = a2 or nil,
    throttled = a3 or nil,
    sum = a4 or nil,
    wake = a5 or nil,
    called_at = a6 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_quota_key(key, stored)
  return open_quota_key(values(key, stored))
end

function packed.close_quota_key(rec)
  if rec.tail then return with_tail({ rec.key, rec.tat or false, rec.throttled or false, rec.sum or false,
      rec.wake or false, rec.called_at or false }, 6, rec.tail) end
  return pack({ rec.key, rec.tat or false, rec.throttled or false, rec.sum or false, rec.wake or false,
      rec.called_at or false })
end

local function open_schedule(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
    a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a6 or not a7 or not a8 or not a9 or not a10 or not a11
      or not a12 then missing(key, { "sid", "version", "created", "changed", "definition", "overlap", "catch_up",
      "cursor", "number", "fired", "skipped", "missed" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil,
      a6 or nil, a7 or nil, a8 or nil, a9 or nil, a10 or nil, a11 or nil, a12 or nil) end
  local rec = {
    sid = a1,
    version = a2,
    created = a3,
    changed = a4,
    definition = a5,
    overlap = a6,
    catch_up = a7,
    cursor = a8,
    number = a9,
    fired = a10,
    skipped = a11,
    missed = a12,
    every = a13 or nil,
    calendar = a14 or nil,
    jitter = a15 or nil,
    starts = a16 or nil,
    ends = a17 or nil,
    remaining = a18 or nil,
    planned = a19 or nil,
    planned_size = a20 or nil,
    reckoned = a21 or nil,
    asked = a22 or nil,
    paused = a23 or nil,
    over = a24 or nil,
    wake = a25 or nil,
    flight = a26 or nil,
    waiting = a27 or nil,
    last = a28 or nil,
    backfill = a29 or nil,
    path = nil,
    live = nil,
    live_ids = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_schedule(key, stored)
  return open_schedule(values(key, stored))
end

function packed.close_schedule(rec)
  if rec.tail then return with_tail({ rec.sid, rec.version, rec.created, rec.changed, rec.definition, rec.overlap,
      rec.catch_up, rec.cursor, rec.number, rec.fired, rec.skipped, rec.missed, rec.every or false,
      rec.calendar or false, rec.jitter or false, rec.starts or false, rec.ends or false, rec.remaining or false,
      rec.planned or false, rec.planned_size or false, rec.reckoned or false, rec.asked or false, rec.paused or false,
      rec.over or false, rec.wake or false, rec.flight or false, rec.waiting or false, rec.last or false,
      rec.backfill or false }, 29, rec.tail) end
  return pack({ rec.sid, rec.version, rec.created, rec.changed, rec.definition, rec.overlap, rec.catch_up, rec.cursor,
      rec.number, rec.fired, rec.skipped, rec.missed, rec.every or false, rec.calendar or false, rec.jitter or false,
      rec.starts or false, rec.ends or false, rec.remaining or false, rec.planned or false, rec.planned_size or false,
      rec.reckoned or false, rec.asked or false, rec.paused or false, rec.over or false, rec.wake or false,
      rec.flight or false, rec.waiting or false, rec.last or false, rec.backfill or false })
end

local function open_spec(key, a1, a2, a3, ...)
  local rec = {
    retry = a1 or nil,
    fallbacks = a2 or nil,
    trace_parent = a3 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_spec(key, stored)
  return open_spec(values(key, stored))
end

function packed.close_spec(rec)
  if rec.tail then return with_tail({ rec.retry or false, rec.fallbacks or false, rec.trace_parent or false }, 3,
      rec.tail) end
  return pack({ rec.retry or false, rec.fallbacks or false, rec.trace_parent or false })
end

local function open_step(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 then missing(key, { "name", "kind", "state", "attempt",
      "started" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil) end
  local rec = {
    name = a1,
    kind = a2,
    state = a3,
    attempt = a4,
    started = a5,
    ended = a6 or nil,
    tries = a7 or nil,
    due = a8 or nil,
    bytes = a9 or nil,
    result = a10 or nil,
    far = a11 or nil,
    result_in = a12 or nil,
    digest = a13 or nil,
    failure = a14 or nil,
    found = a15 or nil,
    number = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_step(key, stored)
  return open_step(values(key, stored))
end

function packed.close_step(rec)
  if rec.tail then return with_tail({ rec.name, rec.kind, rec.state, rec.attempt, rec.started, rec.ended or false,
      rec.tries or false, rec.due or false, rec.bytes or false, rec.result or false, rec.far or false,
      rec.result_in or false, rec.digest or false, rec.failure or false, rec.found or false }, 15, rec.tail) end
  return pack({ rec.name, rec.kind, rec.state, rec.attempt, rec.started, rec.ended or false, rec.tries or false,
      rec.due or false, rec.bytes or false, rec.result or false, rec.far or false, rec.result_in or false,
      rec.digest or false, rec.failure or false, rec.found or false })
end

local function open_waitpoint(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a13 then missing(key, { "exec", "key", "state", "attempt",
      "created", "tokens" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil, a13 or nil) end
  local rec = {
    exec = a1,
    key = a2,
    state = a3,
    attempt = a4,
    created = a5,
    expires = a6 or nil,
    uses = a7 or nil,
    closed = a8 or nil,
    why = a9 or nil,
    signals = a10 or nil,
    suspension = a11 or nil,
    review = a12 or nil,
    tokens = a13,
    allowed = a14 or nil,
    early = a15 or nil,
    step = a16 or nil,
    id = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_waitpoint(key, stored)
  return open_waitpoint(values(key, stored))
end

function packed.close_waitpoint(rec)
  if rec.tail then return with_tail({ rec.exec, rec.key, rec.state, rec.attempt, rec.created, rec.expires or false,
      rec.uses or false, rec.closed or false, rec.why or false, rec.signals or false, rec.suspension or false,
      rec.review or false, rec.tokens, rec.allowed or false, rec.early or false, rec.step or false }, 16, rec.tail) end
  return pack({ rec.exec, rec.key, rec.state, rec.attempt, rec.created, rec.expires or false, rec.uses or false,
      rec.closed or false, rec.why or false, rec.signals or false, rec.suspension or false, rec.review or false,
      rec.tokens, rec.allowed or false, rec.early or false, rec.step or false })
end

local function open_waits(key, a1, a2, a3, a4, a5, a6, a7, ...)
  local rec = {
    wait = a1 or nil,
    open = a2 or nil,
    answered = a3 or nil,
    past_waits = a4 or nil,
    satisfied = a5 or nil,
    woken = a6 or nil,
    closed_waits = a7 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_waits(key, stored)
  return open_waits(values(key, stored))
end

function packed.close_waits(rec)
  if rec.tail then return with_tail({ rec.wait or false, rec.open or false, rec.answered or false,
      rec.past_waits or false, rec.satisfied or false, rec.woken or false, rec.closed_waits or false }, 7, rec.tail) end
  return pack({ rec.wait or false, rec.open or false, rec.answered or false, rec.past_waits or false,
      rec.satisfied or false, rec.woken or false, rec.closed_waits or false })
end

local function open_webhook(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a7 then missing(key, { "of", "owner", "url", "said", "owed",
      "tries" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil, a7 or nil) end
  local rec = {
    of = a1,
    owner = a2,
    url = a3,
    said = a4,
    owed = a5,
    due = a6 or nil,
    tries = a7,
    status = a8 or nil,
    error = a9 or nil,
    id = nil,
    receiver = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_webhook(key, stored)
  return open_webhook(values(key, stored))
end

function packed.close_webhook(rec)
  if rec.tail then return with_tail({ rec.of, rec.owner, rec.url, rec.said, rec.owed, rec.due or false, rec.tries,
      rec.status or false, rec.error or false }, 9, rec.tail) end
  return pack({ rec.of, rec.owner, rec.url, rec.said, rec.owed, rec.due or false, rec.tries, rec.status or false,
      rec.error or false })
end

return packed
