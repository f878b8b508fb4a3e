-- Written by `cargo xtask codegen` from lua/record/fields.lua; do not edit.
local packed = {}

-- Positions a newer library knows are kept as they are.
local function tail(a, known)
  local list = {}
  for i = known + 1, #a do list[i - known] = a[i] end
  return list
end

function packed.open_access(a)
  local rec = {
    access_id = a[1] or nil,
    digest = a[2] or nil,
    name = a[3] or nil,
    roles = a[4] or nil,
    namespaces = a[5] or nil,
    lanes = a[6] or nil,
    capabilities = a[7] or nil,
    created_at = a[8] or nil,
    created_by = a[9] or nil,
    expires_at = a[10] or nil,
  }
  local g
  if a[10 + 1] ~= nil then rec.tail = tail(a, 10) end
  return rec
end

function packed.close_access(rec)
  local a = {
    rec.access_id or false,
    rec.digest or false,
    rec.name or false,
    rec.roles or false,
    rec.namespaces or false,
    rec.lanes or false,
    rec.capabilities or false,
    rec.created_at or false,
    rec.created_by or false,
    rec.expires_at or false,
  }
  if rec.tail then
    for i, value in ipairs(rec.tail) do a[10 + i] = value end
  end
  return a
end

function packed.open_execution(a)
  local rec = {
    phase = a[10] or nil,
    outcome = a[11] or nil,
    lane = a[12] or nil,
    prio = a[13] or nil,
    score = a[14] or nil,
    updated = a[15] or nil,
    ready = a[16] or nil,
    wake = a[17] or nil,
    attempt = a[18] or nil,
    attempt_id = a[19] or nil,
    attempt_type = a[20] or nil,
    attempt_state = a[21] or nil,
    started = a[22] or nil,
    first_started = a[23] or nil,
    timeout_at = a[24] or nil,
    lease_id = a[25] or nil,
    epoch = a[26] or nil,
    worker = a[27] or nil,
    worker_id = a[28] or nil,
    lease_until = a[29] or nil,
    lease_ttl = a[30] or nil,
    request = a[31] or nil,
    renewals = a[32] or nil,
    ended_by = a[33] or nil,
    ended_value = a[34] or nil,
    ended = a[35] or nil,
    result = a[36] or nil,
    result_encoding = a[37] or nil,
    history = a[38] or nil,
    spec = { namespace = a[1] or nil, kind = a[2] or nil, created_at = a[3] or nil, queue = a[4] or nil, retention_ms = a[5] or nil, max_reclaims = a[6] or nil, attempt_timeout_ms = a[7] or nil, max_frames = a[8] or nil, webhook = a[9] or nil },
  }
  local g
  g = a[39]
  if g then
    rec.spec.flow_id = g[1] or nil
    rec.spec.key = g[2] or nil
    rec.spec.number = g[3] or nil
    rec.spec.nested = g[4] or nil
    rec.spec.parent_id = g[5] or nil
    rec.spec.parent_close = g[6] or nil
  end
  g = a[40]
  if g then
    rec.reason = g[1] or nil
    rec.detail = g[2] or nil
    rec.since = g[3] or nil
    rec.delay = g[4] or nil
    rec.start_by = g[5] or nil
    rec.deadline = g[6] or nil
    rec.next = g[7] or nil
    rec.resume = g[8] or nil
    rec.fair = g[9] or nil
    rec.fair_end = g[10] or nil
  end
  g = a[41]
  if g then
    rec.grant = g[1] or nil
    rec.grant_worker = g[2] or nil
    rec.grant_until = g[3] or nil
    rec.grants = g[4] or nil
    rec.holds = g[5] or nil
    rec.wanted = g[6] or nil
  end
  g = a[42]
  if g then
    rec.failure = g[1] or nil
    rec.failures = g[2] or nil
    rec.reclaims = g[3] or nil
    rec.replays = g[4] or nil
    rec.tier = g[5] or nil
    rec.progress = g[6] or nil
    rec.cancel_by = g[7] or nil
    rec.cancel_reason = g[8] or nil
    rec.yield = g[9] or nil
  end
  g = a[43]
  if g then
    rec.wait = g[1] or nil
    rec.wait_until = g[2] or nil
    rec.open = g[3] or nil
    rec.open_due = g[4] or nil
    rec.time_left = g[5] or nil
    rec.woken = g[6] or nil
    rec.continued = g[7] or nil
    rec.past_waits = g[8] or nil
    rec.closed_waits = g[9] or nil
    rec.answered = g[10] or nil
    rec.satisfied = g[11] or nil
    rec.signals = g[12] or nil
  end
  g = a[44]
  if g then
    rec.frames = g[1] or nil
    rec.streams = g[2] or nil
    rec.tailed = g[3] or nil
  end
  g = a[45]
  if g then
    rec.deps = g[1] or nil
    rec.passes = g[2] or nil
    rec.outs = g[3] or nil
    rec.reached = g[4] or nil
    rec.halted = g[5] or nil
    rec.fault = g[6] or nil
    rec.verdict = g[7] or nil
    rec.hidden = g[8] or nil
    rec.bound = g[9] or nil
    rec.freed = g[10] or nil
    rec.kids = g[11] or nil
    rec.awaiting = g[12] or nil
    rec.owed = g[13] or nil
  end
  g = a[46]
  if g then
    rec.spilled = g[1] or nil
    rec.actions = g[2] or nil
    rec.tags = g[3] or nil
    rec.waited = g[4] or nil
    rec.input_far = g[5] or nil
    rec.result_far = g[6] or nil
    rec.reports = g[7] or nil
    rec.hook = g[8] or nil
  end
  if a[46 + 1] ~= nil then rec.tail = tail(a, 46) end
  return rec
end

function packed.close_execution(rec)
  local spec = rec.spec
  local g1 = (spec.flow_id or spec.key or spec.number or spec.nested or spec.parent_id or spec.parent_close) and true or false
  if g1 then g1 = { spec.flow_id or false, spec.key or false, spec.number or false, spec.nested or false, spec.parent_id or false, spec.parent_close or false } end
  local g2 = (rec.reason or rec.detail or rec.since or rec.delay or rec.start_by or rec.deadline or rec.next or rec.resume or rec.fair or rec.fair_end) and true or false
  if g2 then g2 = { rec.reason or false, rec.detail or false, rec.since or false, rec.delay or false, rec.start_by or false, rec.deadline or false, rec.next or false, rec.resume or false, rec.fair or false, rec.fair_end or false } end
  local g3 = (rec.grant or rec.grant_worker or rec.grant_until or rec.grants or rec.holds or rec.wanted) and true or false
  if g3 then g3 = { rec.grant or false, rec.grant_worker or false, rec.grant_until or false, rec.grants or false, rec.holds or false, rec.wanted or false } end
  local g4 = (rec.failure or rec.failures or rec.reclaims or rec.replays or rec.tier or rec.progress or rec.cancel_by or rec.cancel_reason or rec.yield) and true or false
  if g4 then g4 = { rec.failure or false, rec.failures or false, rec.reclaims or false, rec.replays or false, rec.tier or false, rec.progress or false, rec.cancel_by or false, rec.cancel_reason or false, rec.yield or false } end
  local g5 = (rec.wait or rec.wait_until or rec.open or rec.open_due or rec.time_left or rec.woken or rec.continued or rec.past_waits or rec.closed_waits or rec.answered or rec.satisfied or rec.signals) and true or false
  if g5 then g5 = { rec.wait or false, rec.wait_until or false, rec.open or false, rec.open_due or false, rec.time_left or false, rec.woken or false, rec.continued or false, rec.past_waits or false, rec.closed_waits or false, rec.answered or false, rec.satisfied or false, rec.signals or false } end
  local g6 = (rec.frames or rec.streams or rec.tailed) and true or false
  if g6 then g6 = { rec.frames or false, rec.streams or false, rec.tailed or false } end
  local g7 = (rec.deps or rec.passes or rec.outs or rec.reached or rec.halted or rec.fault or rec.verdict or rec.hidden or rec.bound or rec.freed or rec.kids or rec.awaiting or rec.owed) and true or false
  if g7 then g7 = { rec.deps or false, rec.passes or false, rec.outs or false, rec.reached or false, rec.halted or false, rec.fault or false, rec.verdict or false, rec.hidden or false, rec.bound or false, rec.freed or false, rec.kids or false, rec.awaiting or false, rec.owed or false } end
  local g8 = (rec.spilled or rec.actions or rec.tags or rec.waited or rec.input_far or rec.result_far or rec.reports or rec.hook) and true or false
  if g8 then g8 = { rec.spilled or false, rec.actions or false, rec.tags or false, rec.waited or false, rec.input_far or false, rec.result_far or false, rec.reports or false, rec.hook or false } end
  local a = {
    spec.namespace or false,
    spec.kind or false,
    spec.created_at or false,
    spec.queue or false,
    spec.retention_ms or false,
    spec.max_reclaims or false,
    spec.attempt_timeout_ms or false,
    spec.max_frames or false,
    spec.webhook or false,
    rec.phase or false,
    rec.outcome or false,
    rec.lane or false,
    rec.prio or false,
    rec.score or false,
    rec.updated or false,
    rec.ready or false,
    rec.wake or false,
    rec.attempt or false,
    rec.attempt_id or false,
    rec.attempt_type or false,
    rec.attempt_state or false,
    rec.started or false,
    rec.first_started or false,
    rec.timeout_at or false,
    rec.lease_id or false,
    rec.epoch or false,
    rec.worker or false,
    rec.worker_id or false,
    rec.lease_until or false,
    rec.lease_ttl or false,
    rec.request or false,
    rec.renewals or false,
    rec.ended_by or false,
    rec.ended_value or false,
    rec.ended or false,
    rec.result or false,
    rec.result_encoding or false,
    rec.history or false,
    g1,
    g2,
    g3,
    g4,
    g5,
    g6,
    g7,
    g8,
  }
  if rec.tail then
    for i, value in ipairs(rec.tail) do a[46 + i] = value end
  end
  return a
end

return packed
