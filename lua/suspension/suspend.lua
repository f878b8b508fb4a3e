local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local signals = require "record.signals"
local step = require "record.step"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"
local suspend = require "transition.suspend"

-- The signals that were enough already; the first ones with the answer, more are read apart.
local function satisfied(tx, rec, refs)
  local list, more = signals.named(tx, rec, refs, 1, limits.resume_inline_signals_max, limits.resume_inline_bytes_max)
  return reply.ok("already_satisfied", { signals = list, more = more })
end

-- The committed answer of a suspend whose reply was lost, whatever became of the suspension since.
local function replayed(tx, rec)
  local current = suspension.load(rec)
  local past = suspension.past(rec)
  local id = current and current.id or past[#past].suspension_id
  local out, ids = {}, rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}
  for _, entry in ipairs(waitpoint.open(rec)) do ids[#ids + 1] = entry[1] end
  for _, wid in ipairs(ids) do
    local w = waitpoint.load(tx, wid)
    if w and w.suspension == id then
      out[#out + 1] = { waitpoint_id = wid, key = w.key, state = w.state, expires_at = w.expires }
    end
  end
  return reply.ok("suspended", { suspension_id = id, waitpoints = out, timeout_at = rec.wait_until, replayed = true })
end

-- The waitpoints that it waits at.
local function open_here(rec, name)
  local out = {}
  for _, w in ipairs(waitpoint.typed_open(rec, name)) do
    if w.state == "active" then out[#out + 1] = w end
  end
  return out
end

define.fn {
  name = "ff_suspend_execution",
  doc = "Sets the running attempt aside until its condition is met. Adopts the attempt's pending waitpoints, all of "
    .. "them when `adopt` is absent; opens `otherwise` when there is no other. Early signals that are enough leave the "
    .. "lease as it is. `step` makes it a step: it outlives the attempt, and once it is done a later call is answered "
    .. "what it came to. `wait` only names it; whoever continues the attempt finds either in the resume.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", suspension_id = "suspension_id", reason = "suspension_reason",
    waitpoints = "new_waitpoints", adopt = "waitpoint_ids?", otherwise = "new_waitpoint?",
    condition = "condition_nodes", timeout_ms = "duration_ms?", timeout_behavior = "timeout_behavior",
    review_waitpoint_id = "waitpoint_id?", continuation = "continuation?", continuation_encoding = "encoding?",
    step = "step_name?", wait = "step_name?",
  },
  reply = {
    suspended = {
      suspension_id = "suspension_id", waitpoints = "[open_waitpoint]", timeout_at = "time_ms?", replayed = "bool",
    },
    already_satisfied = { signals = "[signal]", more = "bool" }, done = { resume = "resume" },
  },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked",
    "waitpoint_not_found", "step_changed", "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "suspend")
    if refusal == "replay" then return replayed(tx, rec) end
    if refusal then return refusal end
    local known = rec.satisfied and cmsgpack.unpack(rec.satisfied)
    if known and known[1] == a.suspension_id then return satisfied(tx, rec, known[2]) end
    local asked = a.step and step.find(tx, rec, a.step)
    if asked and asked.kind ~= "signal" then return step.changed(asked, "signal") end
    if asked and asked.state == "done" then return reply.ok("done", { resume = step.resume(tx, rec, asked) }) end
    local full = a.step and step.full(rec, asked)
    if full then return full end
    local wrong, outcome, refs = suspend.attempt(tx, rec, a, asked or nil)
    if wrong then return wrong end
    if outcome == "satisfied" then return satisfied(tx, rec, refs) end
    return reply.ok("suspended", {
      suspension_id = a.suspension_id, waitpoints = open_here(rec, a.step), timeout_at = rec.wait_until,
      replayed = false,
    })
  end,
}
