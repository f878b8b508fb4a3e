-- The fence: a write is accepted from the current lease only, and a lost reply is answered again.
local reply = require "lib.reply"

local fence = {}

local function not_active(rec)
  return reply.err("execution_not_active", {
    lifecycle_phase = rec.phase, terminal_outcome = rec.outcome, lease_epoch = rec.epoch, attempt_id = rec.attempt_id,
  })
end

local function stale(rec, f)
  return reply.err("stale_lease", {
    presented_epoch = f.lease_epoch, current_epoch = rec.epoch or 0,
    worker_instance = rec.phase == "active" and rec.worker or nil,
    lease_expires_at = rec.phase == "active" and rec.lease_until or nil,
  })
end

-- Answers nil when the caller may write; "replay" when this very lease already ended by `operation` (or `other`, its
-- second ending); otherwise the refusal. A wrong fence is reported before anything else.
function fence.check(rec, f, now, operation, other)
  if rec == nil then return reply.err("execution_not_found") end
  if rec.epoch ~= f.lease_epoch or rec.lease_id ~= f.lease_id or rec.attempt_id ~= f.attempt_id then
    return stale(rec, f)
  end
  if rec.phase == "active" then
    if now >= rec.lease_until then return reply.err("lease_expired", { expired_at = rec.lease_until }) end
    return nil
  end
  if operation and rec.ended_by and (rec.ended_by == operation or rec.ended_by == other) then return "replay" end
  if rec.ended_by == "expired" then return reply.err("lease_expired", { expired_at = rec.ended_value }) end
  if rec.ended_by == "revoked" then return reply.err("lease_revoked", {}) end
  return not_active(rec)
end

fence.not_active = not_active

return fence
