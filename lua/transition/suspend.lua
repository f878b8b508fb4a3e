-- Sets a running attempt aside until signals arrive, unless those that came early are enough already.
local condition = require "transition.condition"
local event = require "lib.event"
local execution = require "record.execution"
local reply = require "lib.reply"
local signals = require "record.signals"
local step = require "record.step"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local suspend = {}

local function refused(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

-- The entries of a list that the suspension takes over: those named, or all when `wanted` is nil; of those that belong
-- to a step, which stands at `at`, its own. `seen` notes their ids.
local function taken_of(list, at, step, wanted, seen)
  local out = {}
  for _, entry in ipairs(list) do
    local owner = entry[at]
    if (owner and owner == step) or (not owner and (wanted == nil or wanted[entry[1]])) then
      out[#out + 1] = entry
      seen[entry[1]] = true
    end
  end
  return out
end

-- The attempt's pending waitpoints that the suspension takes over, those that were answered before their time was over,
-- and the refusal when it names another.
local function adopted(rec, ids, step)
  local wanted, seen = nil, {}
  if ids then
    wanted = {}
    for _, id in ipairs(ids) do wanted[id] = true end
  end
  local pending = taken_of(waitpoint.open(rec), 4, step, wanted, seen)
  local answered = taken_of(waitpoint.answered(rec), 3, step, wanted, seen)
  for _, id in ipairs(ids or {}) do
    if not seen[id] then return nil, nil, reply.err("waitpoint_not_found", { waitpoint_id = id }) end
  end
  return pending, answered
end

-- The records of the waitpoints taken over, and their early signals in order of arrival.
local function early_signals(tx, pending, answered)
  local loaded, early = {}, {}
  local function look(entry)
    local w = waitpoint.load(tx, entry[1])
    for _, s in ipairs(w and waitpoint.early(w) or {}) do
      early[#early + 1] = { ref = s[1], name = s[2], who = s[3], waitpoint_id = entry[1], key = entry[2] }
    end
    return w
  end
  for i, entry in ipairs(pending) do loaded[i] = look(entry) end
  for _, entry in ipairs(answered) do look(entry) end
  table.sort(early, function(a, b) return signals.number(a.ref) < signals.number(b.ref) end)
  return loaded, early
end

-- The ids the suspension would mint must be new to the store; the first that is not, by the field that gives it.
local function known_id(tx, new, at, review_id)
  local ids, fields = {}, {}
  for i, w in ipairs(new) do ids[i], fields[i] = w.waitpoint_id, string.format(at, i - 1) .. ".waitpoint_id" end
  if review_id then ids[#ids + 1], fields[#fields + 1] = review_id, "review_waitpoint_id" end
  local given = {}
  for i, id in ipairs(ids) do
    if given[id] then return fields[i], "is given twice" end
    given[id] = true
  end
  if not waitpoint.any_known(tx, ids) then return nil end
  for i, id in ipairs(ids) do
    if waitpoint.load(tx, id) then return fields[i], "is taken" end
  end
end

-- The waitpoints of `list` that a step has not opened before, under whose keys it waits.
local function not_yet_open(list, pending, step)
  local known, out = {}, {}
  for _, entry in ipairs(pending) do
    if entry[4] == step then known[entry[2]] = true end
  end
  for _, w in ipairs(list) do
    if not known[w.key] then out[#out + 1] = w end
  end
  return out
end

-- Since when it is waited: since the first of the waitpoints that an earlier run of the handler opened for this step.
local function since(tx, a, loaded)
  local at = tx.now
  for _, w in ipairs(loaded) do
    if a.step and w.step == a.step then at = math.min(at, w.created) end
  end
  return at
end

-- Plans the new waitpoints; answers the field and the problem of one that cannot be opened.
local function open_new(tx, rec, new, at, suspension_id, step)
  for i, w in ipairs(new) do
    local field, problem = waitpoint.problem(rec, w)
    if #w.tokens == 0 then field, problem = "tokens", "must hold a token" end
    if field then return string.format(at, i - 1) .. "." .. field, problem end
    waitpoint.create(tx, rec, w, "active", suspension_id, step)
  end
end

-- The attempt goes on: what it would have waited for has come already.
local function go_on(tx, rec, a, state)
  local refs = condition.satisfying(state, signals.number)
  waitpoint.close(tx, rec, "already_satisfied", function(entry) return waitpoint.takes_part(entry, a.step) end)
  if a.step then step.found(tx, rec, a.step, "signal", { id = a.suspension_id, cause = "signal", refs = refs }) end
  rec.satisfied, rec.waits = cmsgpack.pack({ a.suspension_id, refs }), 1
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.already_satisfied", "suspension_id", a.suspension_id)
  return nil, "satisfied", refs
end

local function set_aside(tx, rec, a, state, adopted_records, asked)
  for _, w in ipairs(adopted_records) do waitpoint.activate(tx, w, a.suspension_id) end
  suspension.store(rec, {
    id = a.suspension_id, reason = a.reason, at = tx.now, behavior = a.timeout_behavior, condition = state,
    review_id = a.review_waitpoint_id, step = a.step or a.wait, recorded = a.step,
  })
  if a.step then step.wait(tx, rec, asked, a.step, "signal", since(tx, a, adopted_records)) end
  suspension.replace_continuation(tx, rec, a.continuation, a.continuation_encoding)
  rec.wait_until = a.timeout_ms and since(tx, a, adopted_records) + a.timeout_ms or nil
  rec.ended_by, rec.ended_value = "suspend", tx.now
  rec.time_left = rec.timeout_at and math.max(rec.timeout_at - tx.now, 1) or nil
  rec.timeout_at, rec.yield, rec.reclaims, rec.satisfied, rec.woken = nil, nil, nil, nil, nil
  rec.phase, rec.attempt_state = "suspended", "suspended"
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.suspended", "reason", a.reason, "suspension_id", a.suspension_id)
  return nil, "suspended"
end

-- Answers a refusal; or nil, "satisfied" or "suspended", and for the first the stream ids of the signals. `asked` is
-- the step of a wait that an earlier run of the handler asked for.
function suspend.attempt(tx, rec, a, asked)
  if a.timeout_behavior == "escalate" and a.review_waitpoint_id == nil then
    return refused("review_waitpoint_id", "is missing: escalation opens a waitpoint")
  end
  local pending, answered, unknown = adopted(rec, a.adopt, a.step)
  if unknown then return unknown end
  local new, at = a.step and not_yet_open(a.waitpoints, pending, a.step) or a.waitpoints, "waitpoints[%d]"
  if #new == 0 and #pending == 0 and a.otherwise then new, at = { a.otherwise }, "otherwise" end
  if #new == 0 and #pending == 0 then
    return refused("waitpoints", "must hold a waitpoint: the attempt has none pending")
  end
  local field, problem = known_id(tx, new, at, a.review_waitpoint_id)
  if field then return refused(field, problem) end
  local part, names = {}, {}
  for _, entry in ipairs(pending) do part[entry[1]], names[entry[2]] = true, true end
  for _, entry in ipairs(answered) do names[entry[2]] = true end
  for _, w in ipairs(new) do names[w.key] = true end
  field, problem = condition.problem(a.condition, names)
  if field then return refused(field, problem) end
  local loaded, early = early_signals(tx, pending, answered)

  -- Pending ones that are not part of it are given up.
  waitpoint.close(tx, rec, "not_adopted", function(entry) return not part[entry[1]] and entry[4] == nil end)
  waitpoint.forget_answered(tx, rec, function(entry) return entry[3] == nil or entry[3] == a.step end)
  field, problem = open_new(tx, rec, new, at, a.suspension_id, a.step)
  if field then return refused(field, problem) end
  local state, enough = condition.new(a.condition), false
  for _, s in ipairs(early) do
    local _, done = condition.arrive(state, s)
    enough = done
  end
  if enough then return go_on(tx, rec, a, state) end
  return set_aside(tx, rec, a, state, loaded, asked)
end

return suspend
