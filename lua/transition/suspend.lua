-- Sets a running attempt aside until signals arrive, unless those that came early are enough already.
local condition = require "transition.condition"
local event = require "lib.event"
local execution = require "record.execution"
local keys = require "lib.keys"
local reply = require "lib.reply"
local signals = require "record.signals"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local suspend = {}

local function refused(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

-- Which pending waitpoints the suspension takes over: those named, or all when none are.
local function adopted(rec, ids)
  local wanted, out = nil, {}
  if ids then
    wanted = {}
    for _, id in ipairs(ids) do wanted[id] = true end
  end
  for _, entry in ipairs(waitpoint.open(rec)) do
    if wanted == nil or wanted[entry[1]] then
      out[#out + 1] = entry
      if wanted then wanted[entry[1]] = nil end
    end
  end
  return out, wanted and next(wanted)
end

-- The early signals of the adopted waitpoints, in order of arrival.
local function early_signals(tx, taken)
  local early = {}
  for _, entry in ipairs(taken) do
    for _, s in ipairs(waitpoint.load(tx, entry[1]).early) do
      early[#early + 1] = { ref = s[1], name = s[2], who = s[3], waitpoint_id = entry[1], key = entry[2] }
    end
  end
  table.sort(early, function(a, b) return signals.number(a.ref) < signals.number(b.ref) end)
  return early
end

-- Answers a refusal; or nil, "satisfied" or "suspended", and for the first the stream ids of the signals.
function suspend.attempt(tx, rec, a)
  local taken, unknown = adopted(rec, a.adopt)
  if unknown then return reply.err("waitpoint_not_found", { waitpoint_id = unknown }) end
  -- Pending ones that are not part of it are given up.
  local part, names = {}, {}
  for _, entry in ipairs(taken) do
    part[entry[1]], names[entry[2]] = true, true
  end
  waitpoint.close(tx, rec, "not_adopted", function(entry) return not part[entry[1]] end)
  local new = a.waitpoints
  if #new == 0 and #taken == 0 and a.otherwise then new = { a.otherwise } end
  if #new == 0 and #taken == 0 then return refused("waitpoints", "must hold a waitpoint: the attempt has none pending") end
  for i, w in ipairs(new) do
    local field, problem = waitpoint.problem(rec, w)
    if field then return refused(string.format("waitpoints[%d].%s", i - 1, field), problem) end
    if #w.tokens == 0 then return refused(string.format("waitpoints[%d].tokens", i - 1), "must hold a token") end
    names[w.key] = true
    waitpoint.create(tx, rec, w, "active", a.suspension_id)
  end
  local field, problem = condition.problem(a.condition, names)
  if field then return refused(field, problem) end
  if a.timeout_behavior == "escalate" and a.review_waitpoint_id == nil then return refused("review_waitpoint_id", "is missing: escalation opens a waitpoint") end

  local state, enough = condition.new(a.condition), false
  for _, s in ipairs(early_signals(tx, taken)) do
    local _, done = condition.arrive(state, s)
    enough = done
  end
  if enough then
    local refs = condition.satisfying(state, signals.number)
    waitpoint.close(tx, rec, "already_satisfied")
    rec.satisfied = cmsgpack.pack({ a.suspension_id, refs })
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.already_satisfied", { "suspension_id", a.suspension_id })
    return nil, "satisfied", refs
  end

  for _, entry in ipairs(taken) do waitpoint.activate(tx, entry[1], a.suspension_id) end
  suspension.forget(tx, rec)
  if a.continuation then
    tx:set(keys.continuation(tx, rec.id), a.continuation)
    rec.continued = 1
  end
  suspension.store(rec, { id = a.suspension_id, reason = a.reason, at = tx.now, behavior = a.timeout_behavior, condition = state, review_id = a.review_waitpoint_id })
  rec.wait_until = a.timeout_ms and tx.now + a.timeout_ms or nil
  rec.ended_by, rec.ended_value = "suspend", tx.now
  rec.time_left = rec.timeout_at and math.max(rec.timeout_at - tx.now, 1) or nil
  rec.timeout_at, rec.yield, rec.reclaims, rec.satisfied = nil, nil, nil, nil
  rec.phase, rec.attempt_state = "suspended", "suspended"
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.suspended", { "reason", a.reason, "suspension_id", a.suspension_id })
  return nil, "suspended"
end

return suspend
