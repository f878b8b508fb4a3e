-- What must hold for one record and for one key; the numbers are those of the invariants in ARCHITECTURE.md.
local keys = require "lib.keys"
local attempt = require "record.attempt"
local execution = require "record.execution"
local flows = require "maintenance.flow_invariants"
local heads = require "maintenance.head_invariants"
local frames = require "record.frames"
local holds = require "record.holds"
local awaits = require "index.awaits"
local home = require "index.home"
local leases = require "index.leases"
local limits = require "lib.limits"
local signals = require "record.signals"
local spec = require "record.spec"
local step = require "record.step"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local invariants = {}

function invariants.found(findings, number, key, problem, repaired)
  findings[#findings + 1] = { invariant = number, key = key, problem = problem, repaired = repaired }
end

local function check_place(tx, rec, findings, repair)
  local place, score = home.of(rec)
  local key = home.key(tx, rec, rec.path, place)
  local stored = tx:zscore(key, rec.id)
  if stored ~= score then
    local has = stored and string.format("%.0f", stored) or "no entry"
    local problem = string.format("%s should have score %.0f, has %s", rec.id, score, has)
    invariants.found(findings, 10, key, problem, repair)
    if repair then tx:zadd(key, score, rec.id) end
  end
  if place == "queue" and rec.phase == "runnable" and rec.grant == nil then
    heads.check_entry(tx, rec, score, findings, repair, invariants.found)
  end
  local path = rec.path
  local others = { keys.queue(tx, path, rec.queue, rec.kind) }
  for _, place in ipairs(home.places) do others[#others + 1] = keys.place(tx, path, place) end
  for _, other in ipairs(others) do
    if other ~= key and tx:zscore(other, rec.id) then
      invariants.found(findings, 10, other, rec.id .. " is also here", repair)
      if repair then tx:zrem(other, rec.id) end
    end
  end
end

-- Whoever waits for something of another partition stands in its line.
local function check_awaits(tx, rec, findings, repair)
  local key, score = awaits.of(tx, rec)
  if key and tx:zscore(key, rec.id) ~= score then
    invariants.found(findings, 10, key, rec.id .. " waits and is not in line", repair)
    if repair then tx:zadd(key, score, rec.id) end
  end
end

-- What was attached at submission is what a running execution was admitted against.
local function check_attached(rec, key, findings)
  if rec.phase ~= "active" then return end
  for _, set in ipairs(holds.needed(rec)) do
    if not holds.in_set(rec, set) then
      invariants.found(findings, 34, key, "runs and was not admitted to " .. set, false)
    end
  end
end

local function check_timer(tx, rec, findings, repair)
  local stored = tx:zscore(keys.timers(tx), rec.id)
  local expected = execution.wake_at(rec)
  if stored ~= expected then
    local function shown(n) return n and string.format("%.0f", n) or "none" end
    local problem = rec.id .. " should wake at " .. shown(expected) .. ", entry says " .. shown(stored)
    invariants.found(findings, 11, keys.timers(tx), problem, repair)
    if repair then
      if expected then tx:zadd(keys.timers(tx), expected, rec.id) else tx:zrem(keys.timers(tx), rec.id) end
      rec.wake = expected
      execution.save(tx, rec)
    end
  end
end

local function check_lease(tx, rec, findings, repair)
  local key = rec.worker and keys.leases(tx, rec.worker)
  if key == nil then return end
  local held = rec.lease_id ~= nil and tx:hget(key, rec.lease_id) == rec.id
  if held ~= (rec.phase == "active") then
    local problem = held and " is held but not active" or " is active but not held"
    invariants.found(findings, 7, key, rec.id .. problem, repair)
    if repair then
      if held then leases.remove(tx, rec) else leases.add(tx, rec) end
    end
  end
end

local function check_attempts(tx, rec, key, findings)
  local expected = rec.spilled or 0
  for _, a in ipairs(attempt.inline(tx, rec)) do
    if a.index ~= expected then
      invariants.found(findings, 4, key, string.format("attempt %d stands where %d belongs", a.index, expected), false)
    end
    expected = expected + 1
  end
  local count = rec.attempt == nil and 0 or rec.attempt + 1
  if expected ~= count then
    invariants.found(findings, 4, key, string.format("%d attempts filed, %d made", expected, count), false)
  end
  if rec.phase == "active" and rec.attempt_state ~= "started" then
    invariants.found(findings, 4, key, "active without a running attempt", false)
  end
  if rec.phase == "terminal" and attempt.is_open(rec) then
    invariants.found(findings, 9, key, "terminal with a running attempt", false)
  end
end

local function check_state(tx, rec, key, findings)
  if (rec.phase == "terminal") ~= (rec.outcome ~= nil) then
    invariants.found(findings, 8, key, "outcome and phase disagree", false)
  end
  if rec.phase == "active" and (rec.lease_id == nil or rec.lease_until == nil or rec.worker == nil) then
    invariants.found(findings, 1, key, "active without a lease", false)
  end
  local failures = rec.failures or 0
  local allowed = failures > 0 and spec.retry(tx, rec).max_attempts or 0
  if failures > allowed then
    invariants.found(findings, 14, key, string.format("%d failures, %d allowed", failures, allowed), false)
  end
end

-- Slots are held by a grant or a lease. Whether each set counts its holders is checked across partitions.
local function check_holds(tx, rec, key, findings, repair)
  if holds.stray(rec) then
    invariants.found(findings, 32, key, "holds slots without a grant or a lease", repair)
    if repair then execution.save(tx, rec) end
  end
end

local function check_lists(tx, rec, findings, repair)
  if rec.hidden then return end
  local created = rec.created
  local expected = { keys.all(tx), keys.kind(tx, rec.kind) }
  local flat = rec.tags and cmsgpack.unpack(rec.tags) or {}
  for i = 1, #flat, 2 do expected[#expected + 1] = keys.tag(tx, flat[i], flat[i + 1]) end
  for _, key in ipairs(expected) do
    if tx:zscore(key, rec.id) ~= created then
      invariants.found(findings, 10, key, rec.id .. " is missing from this list", repair)
      if repair then tx:zadd(key, created, rec.id) end
    end
  end
end

-- An early signal waits for the suspend that counts it, and is forgotten then.
function invariants.early(tx, rec, w, findings, repair)
  if w.early == nil or w.state == "pending" then return end
  for _, entry in ipairs(waitpoint.answered(rec)) do
    if entry[1] == w.id then return end
  end
  invariants.found(findings, 27, keys.waitpoint(tx, w.id), w.state .. " with early signals", repair)
  if repair then
    w.early = nil
    waitpoint.save(tx, w)
  end
end

-- Open waitpoints are those of the attempt, whether it runs or waits for its children, of a step, or of the current
-- suspension.
local function check_waitpoints(tx, rec, key, findings, repair)
  if (rec.phase == "suspended") ~= (rec.wait ~= nil) then
    invariants.found(findings, 29, key, "suspension and phase disagree", false)
  end
  local current = suspension.load(rec)
  for _, entry in ipairs(waitpoint.open(rec)) do
    local at = keys.waitpoint(tx, entry[1])
    local w = waitpoint.load(tx, entry[1])
    if w == nil or w.exec ~= rec.id then
      invariants.found(findings, 29, at, "is listed as open but not stored", false)
    else
      local attempts = rec.phase == "active" or (rec.phase == "runnable" and rec.resume ~= nil)
      local pending = attempts or (w.step ~= nil and rec.phase ~= "terminal")
      local fits = (pending and w.state == "pending")
        or (current and w.state == "active" and w.suspension == current.id)
      if not fits then invariants.found(findings, 29, at, w.state .. " while the execution is " .. rec.phase, false) end
      invariants.early(tx, rec, w, findings, repair)
      if tx:zscore(keys.inbox(tx), entry[1]) ~= w.created then
        local problem = entry[1] .. " is missing from the list of open waitpoints"
        invariants.found(findings, 10, keys.inbox(tx), problem, repair)
        if repair then tx:zadd(keys.inbox(tx), w.created, entry[1]) end
      end
    end
  end
end

local function check_counts(tx, rec, findings)
  local function same(key, counted)
    local stored = tx:xlen(key)
    if stored ~= counted then
      invariants.found(findings, 36, key, string.format("%d entries, %d counted", stored, counted), false)
    end
  end
  if rec.signals then same(keys.signals(tx, rec.id), signals.count(rec)) end
  if rec.frames then
    local f = frames.state(rec)
    same(keys.stream(tx, rec.id, rec.attempt), f.kept)
    same(keys.stream_live(tx, rec.id, rec.attempt), f.live)
  end
end

-- A step stands under its number and its name leads there; the execution counts them and their bytes.
local function check_steps(tx, rec, findings)
  local key, count, bytes, at = keys.steps(tx, rec.id), 0, 0, 1
  local function wrong(problem) invariants.found(findings, 43, key, problem, false) end
  while at and rec.steps do
    local list
    list, at = step.page(tx, rec, at, limits.steps_max, limits.steps_carried_bytes_max)
    for _, s in ipairs(list) do
      count, bytes = count + 1, bytes + (s.bytes or 0)
      local named = step.find(tx, rec, s.name)
      if named == nil or named.number ~= s.number then wrong(s.name .. " is not found by its name") end
      local lost = s.bytes and #(step.result(tx, rec, s) or "") ~= s.bytes
      if lost then wrong("the result of " .. s.name .. " is missing") end
    end
  end
  local fields = tx:hlen(key)
  if fields ~= 2 * count then wrong(string.format("%d fields, %d steps counted", fields, count)) end
  if bytes ~= (rec.step_bytes or 0) then
    wrong(string.format("%d bytes of results, %d counted", bytes, rec.step_bytes or 0))
  end
end

function invariants.record(tx, rec, findings, repair)
  local key = keys.core(tx, rec.id)
  check_state(tx, rec, key, findings)
  check_attempts(tx, rec, key, findings)
  check_place(tx, rec, findings, repair)
  check_timer(tx, rec, findings, repair)
  check_lease(tx, rec, findings, repair)
  check_lists(tx, rec, findings, repair)
  check_waitpoints(tx, rec, key, findings, repair)
  check_counts(tx, rec, findings)
  if rec.steps then check_steps(tx, rec, findings) end
  check_holds(tx, rec, key, findings, repair)
  check_awaits(tx, rec, findings, repair)
  check_attached(rec, key, findings)
  flows.member(tx, rec, findings, invariants.found)
  if rec.input and not tx:exists(keys.input(tx, rec.id)) then
    invariants.found(findings, 13, keys.input(tx, rec.id), "input is missing", false)
  end
  if rec.result_far and not tx:exists(keys.result(tx, rec.id)) then
    invariants.found(findings, 13, keys.result(tx, rec.id), "result is missing", false)
  end
end

return invariants
