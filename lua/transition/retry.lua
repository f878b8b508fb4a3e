-- A failed or timed-out attempt: tried again by the policy, or the end.
local backoff = require "lib.backoff"
local event = require "lib.event"
local attempt = require "record.attempt"
local execution = require "record.execution"
local finish = require "transition.finish"
local spec = require "record.spec"
local runnable = require "transition.runnable"

local retry = {}

local function holds(list, value)
  for _, item in ipairs(list) do
    if item == value then return true end
  end
  return false
end

local function allowed(policy, failures, category)
  if failures >= policy.max_attempts then return false end
  if policy.never_on and holds(policy.never_on, category) then return false end
  if policy.retry_on and not holds(policy.retry_on, category) then return false end
  return true
end

-- `f`: { by, attempt_state, reason, category, retryable, retry_after_ms, draw }. Answers the time of the next attempt,
-- or nil when the execution failed for good.
function retry.after_failure(tx, rec, f)
  local failures = (rec.failures or 0) + 1
  rec.failures = failures
  local policy = spec.retry(tx, rec)
  if f.retryable == false or not allowed(policy, failures, f.category) then
    finish.execution(tx, rec, "failed", {
      by = f.by, attempt_state = f.attempt_state, failure = { f.reason, f.category },
    })
    return nil
  end
  local delay = f.retry_after_ms or backoff.delay_ms(policy, failures, f.draw)
  local at = tx.now + delay
  rec.ended_by, rec.ended_value = f.by == "fail" and "retry" or f.by, at
  attempt.finish(tx, rec, f.attempt_state, { f.reason, f.category })
  rec.next, rec.delay, rec.reclaims = "retry", at, nil
  local tiers = #spec.fallbacks(tx, rec)
  if tiers > 0 then rec.tier = math.min(rec.tier == nil and 0 or rec.tier + 1, tiers - 1) end
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.retried", "category", f.category, "delay_until", at)
  return at
end

return retry
