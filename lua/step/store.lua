local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local step = require "record.step"

local function known(tx, rec, s)
  return reply.ok("known", {
    result = step.result(tx, rec, s), result_encoding = s.result_in or "json", input_digest = s.digest,
  })
end

define.fn {
  name = "ff_store_step",
  doc = "Stores the result of a step of the running attempt. A step that is known keeps its first result, which is "
    .. "answered; with `rerun` another input digest replaces it.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", name = "step_name", result = "step_result?",
    result_encoding = "encoding?", input_digest = "step_digest?", started_at = "time_ms?", tries = "step_tries?",
    rerun = "bool?",
  },
  reply = {
    stored = {}, known = { result = "step_result?", result_encoding = "encoding?", input_digest = "step_digest?" },
  },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "step_changed",
    "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local s, result = step.find(tx, rec, a.name), a.result or ""
    if s and s.kind ~= "run" then return step.changed(s, "run") end
    local again = s and a.rerun and s.digest ~= a.input_digest
    if s and s.state == "done" and not again then return known(tx, rec, s) end
    refusal = step.full(rec, s, #result - (s and s.bytes or 0))
    if refusal then return refusal end
    if s == nil then s = step.new(rec, a.name, "run", tx.now) end
    -- A worker's clock may be ahead.
    if a.started_at then s.started = math.min(a.started_at, tx.now) end
    s.state, s.attempt, s.ended, s.tries = "done", rec.attempt, tx.now, a.tries or s.tries
    s.digest, s.failure, s.due = a.input_digest, nil, nil
    step.set_result(tx, rec, s, result, a.result_encoding or "json")
    step.put(tx, rec, s)
    rec.updated = tx.now
    execution.store(tx, rec)
    if rec.tailed then tx:announce("frames", rec.id) end
    return reply.ok("stored")
  end,
}
