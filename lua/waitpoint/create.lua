local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local fence = require "record.fence"
local waitpoint = require "record.waitpoint"

define.fn {
  name = "ff_create_waitpoint",
  doc = "Opens a waitpoint while the attempt still runs; signals that come before the suspend are kept and count then.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", waitpoint = "new_waitpoint" },
  reply = { created = { expires_at = "time_ms?", replayed = "bool" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local known = waitpoint.load(tx, a.waitpoint.waitpoint_id)
    if known and known.exec == rec.id and known.key == a.waitpoint.key then
      return reply.ok("created", { expires_at = known.expires, replayed = true })
    end
    if known then return reply.err("invalid_argument", { field = "waitpoint.waitpoint_id", problem = "is taken" }) end
    local field, problem = waitpoint.problem(rec, a.waitpoint)
    if field then return reply.err("invalid_argument", { field = "waitpoint." .. field, problem = problem }) end
    if #a.waitpoint.tokens == 0 then
      return reply.err("invalid_argument", { field = "waitpoint.tokens", problem = "must hold a token" })
    end
    waitpoint.create(tx, rec, a.waitpoint, "pending")
    execution.save(tx, rec)
    event.of_execution(tx, rec, "waitpoint.created", "waitpoint_id", a.waitpoint.waitpoint_id, "key", a.waitpoint.key)
    local expires_at = a.waitpoint.expires_in_ms and tx.now + a.waitpoint.expires_in_ms or nil
    return reply.ok("created", { expires_at = expires_at, replayed = false })
  end,
}
