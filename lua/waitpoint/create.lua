local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local fence = require "record.fence"
local step = require "record.step"
local waitpoint = require "record.waitpoint"

-- The answer when an earlier run of the handler has opened it.
local function opened_before(tx, rec, a)
  for _, entry in ipairs(waitpoint.open(rec)) do
    if entry[4] == a.step and entry[2] == a.waitpoint.key then
      if entry[1] ~= a.waitpoint.waitpoint_id then
        return reply.ok("open", { waitpoint_id = entry[1], expires_at = entry[3] or nil })
      end
      waitpoint.replace_tokens(tx, waitpoint.load(tx, entry[1]), a.waitpoint)
      return reply.ok("created", { expires_at = entry[3] or nil, replayed = true })
    end
  end
end

define.fn {
  name = "ff_create_waitpoint",
  doc = "Opens a waitpoint while the attempt still runs; signals that come before the suspend are kept and count then. "
    .. "With `step` it belongs to a wait that outlives the attempt: one that is open already is answered, and asked "
    .. "for by its id it gets these tokens in place of those it had.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", waitpoint = "new_waitpoint", step = "step_name?" },
  reply = {
    created = { expires_at = "time_ms?", replayed = "bool" },
    open = { waitpoint_id = "waitpoint_id", expires_at = "time_ms?" }, done = {},
  },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "step_changed",
    "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local asked = a.step and step.find(tx, rec, a.step)
    if asked and asked.kind ~= "signal" then return step.changed(asked, "signal") end
    if asked and asked.state == "done" then return reply.ok("done") end
    if a.step then
      local answer = opened_before(tx, rec, a) or step.full(rec, asked)
      if answer then return answer end
    end
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
    waitpoint.create(tx, rec, a.waitpoint, "pending", nil, a.step)
    if a.step then step.wait(tx, rec, asked or nil, a.step, "signal", tx.now) end
    execution.save(tx, rec)
    event.of_execution(tx, rec, "waitpoint.created", "waitpoint_id", a.waitpoint.waitpoint_id, "key", a.waitpoint.key)
    local expires_at = a.waitpoint.expires_in_ms and tx.now + a.waitpoint.expires_in_ms or nil
    return reply.ok("created", { expires_at = expires_at, replayed = false })
  end,
}
