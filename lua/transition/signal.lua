-- A signal arrives at a waitpoint: checked against its token, kept, counted, and followed by the resume it completes.
local condition = require "transition.condition"
local event = require "lib.event"
local execution = require "record.execution"
local limits = require "lib.limits"
local reply = require "lib.reply"
local resume = require "transition.resume"
local signals = require "record.signals"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local signal = {}

-- One answer for every waitpoint that takes no signal: an outsider does not learn why.
local function not_open() return reply.err("waitpoint_not_open") end

-- The token with this digest, and all of them.
local function token_of(w, digest)
  local tokens = waitpoint.tokens(w)
  for _, token in ipairs(tokens) do
    if token[1] == digest then return token, tokens end
  end
end

-- True while the waitpoint takes signals: pending under the attempt that made it, which may wait for its children, or
-- part of the current suspension. One of a step is pending whenever the execution does not wait for it.
local function is_open(rec, w, now)
  if w.state == "closed" or (w.expires and w.expires <= now) then return false end
  if w.step and w.state == "pending" then return rec.phase ~= "terminal" end
  if w.step == nil and w.attempt ~= rec.attempt then return false end
  if w.state == "pending" then return rec.phase == "active" or (rec.phase == "runnable" and rec.resume ~= nil) end
  local current = suspension.load(rec)
  return rec.phase == "suspended" and current ~= nil and current.id == w.suspension
end

local function allowed(w, name)
  if w.allowed == nil then return true end
  for _, known in ipairs(cmsgpack.unpack(w.allowed)) do
    if known == name then return true end
  end
  return false
end

-- The answer of a signal that arrived before, whatever became of its waitpoint since.
local function repeated(tx, rec, a, approver)
  local same, alike = signals.known(tx, rec, a, approver)
  if same and same[5] ~= a.waitpoint_id then return not_open() end
  if same then return reply.ok(same[3], { signal_id = same[1], effect = same[3] == "accepted" and same[4] or nil }) end
  if alike then return reply.ok("duplicate", { signal_id = alike[1] }) end
end

-- Keeps an early signal with its waitpoint until the suspend.
local function buffer(w, ref, s)
  local early = waitpoint.early(w)
  early[#early + 1] = { ref, s.name, s.who }
  w.early = cmsgpack.pack(early)
end

local function accepted(tx, rec, a, approver, effect)
  signals.remember(tx, rec, a, approver, "accepted", effect)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "waitpoint.signalled", "waitpoint_id", a.waitpoint_id, "signal_id", a.signal_id,
    "name", a.name, "effect", effect)
  return reply.ok("accepted", { signal_id = a.signal_id, effect = effect })
end

local function resumed(tx, rec, a, approver, refs)
  signals.remember(tx, rec, a, approver, "triggered_resume", "counted")
  resume.execution(tx, rec, "signal", refs)
  return reply.ok("triggered_resume", { signal_id = a.signal_id })
end

function signal.arrive(tx, rec, w, a)
  local token, tokens = token_of(w, a.token_digest)
  if token == nil then return not_open() end
  local approver = token[2] or nil
  local answer = repeated(tx, rec, a, approver)
  if answer then return answer end
  if not is_open(rec, w, tx.now) or token[3] == 0 then return not_open() end
  if not allowed(w, a.name) then return reply.err("signal_not_allowed", { field = "name", name = a.name }) end
  if signals.count(rec) >= limits.signals_max then
    return reply.err("signals_full", { signals = limits.signals_max })
  end

  if token[3] then token[3] = token[3] - 1 end
  token[4] = true
  w.tokens, w.signals = cmsgpack.pack(tokens), (w.signals or 0) + 1
  waitpoint.save(tx, w)
  -- Approvers are tokens: who answered is what the token was made for, never what the caller says.
  local s = { name = a.name, key = w.key, waitpoint_id = w.id, who = approver or w.id }
  s.ref = signals.append(tx, rec, {
    signal_id = a.signal_id, name = a.name, waitpoint_id = w.id, waitpoint_key = w.key, approver = approver,
    payload = a.payload, payload_encoding = a.payload_encoding, category = a.category, source = a.source,
    source_identity = a.source_identity, correlation_id = a.correlation_id,
  })
  if w.state == "pending" then
    buffer(w, s.ref, s)
    return accepted(tx, rec, a, approver, "buffered")
  end
  if w.review then return resumed(tx, rec, a, approver, { s.ref }) end
  local current = suspension.load(rec)
  local counted, satisfied = condition.arrive(current.condition, s)
  if satisfied then return resumed(tx, rec, a, approver, condition.satisfying(current.condition, signals.number)) end
  if counted then suspension.store(rec, current) end
  return accepted(tx, rec, a, approver, counted and "counted" or "unused")
end

return signal
