local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local step = require "record.step"

define.fn {
  name = "ff_note_step",
  doc = "Notes that a step of the running attempt failed, how often it was tried, and when it is tried again. A step "
    .. "that is done stays done.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", name = "step_name", reason = "reason", category = "category",
    tries = "step_tries", retry_at = "time_ms?", started_at = "time_ms?", input_digest = "step_digest?",
  },
  reply = { noted = {}, known = {} },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "step_changed",
    "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local s = step.find(tx, rec, a.name)
    if s and s.kind ~= "run" then return step.changed(s, "run") end
    if s and s.state == "done" then return reply.ok("known") end
    refusal = step.full(rec, s)
    if refusal then return refusal end
    if s == nil then s = step.new(rec, a.name, "run", tx.now) end
    if a.started_at then s.started = math.min(a.started_at, tx.now) end
    s.state, s.attempt, s.ended, s.tries, s.due = "failed", rec.attempt, tx.now, a.tries, a.retry_at
    s.digest, s.failure = a.input_digest, cmsgpack.pack({ a.reason, a.category })
    step.put(tx, rec, s)
    rec.updated = tx.now
    execution.store(tx, rec)
    if rec.tailed then tx:announce("frames", rec.id) end
    return reply.ok("noted")
  end,
}
