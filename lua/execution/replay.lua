local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local event = require "lib.event"
local attempt = require "record.attempt"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local more = require "record.more"
local owed = require "transition.owed"
local reopen = require "transition.reopen"
local runnable = require "transition.runnable"
local step = require "record.step"

define.fn {
  name = "ff_replay_execution",
  doc = "Runs an ended execution again with a new attempt; a deadline already past no longer applies. It keeps its "
    .. "steps, those before `from_step`, or none with `from_start`.",
  flags = {},
  args = {
    execution_id = "execution_id", actor = "actor", reason = "reason?", from_step = "step_name?",
    from_start = "bool?",
  },
  reply = { replayed = { state = "public_state", replay_count = "count" } },
  errs = { "execution_not_found", "execution_not_terminal", "max_replays", "flow_terminal", "step_not_found" },
  call = function(tx, a, now)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "terminal" then return reply.err("execution_not_terminal", { lifecycle_phase = rec.phase }) end
    local replays = rec.replays or 0
    local max_replays = rec.max_replays or limits.replays_default
    if replays >= max_replays then return reply.err("max_replays", { max_replays = max_replays }) end
    local refusal = reopen.refusal(tx, rec)
    if refusal then return refusal end
    local first = a.from_start and 1 or nil
    if a.from_step then
      local named = step.find(tx, rec, a.from_step)
      if named == nil then return reply.err("step_not_found", { step = a.from_step }) end
      first = first or named.number
    end
    if first then step.forget(tx, rec, first) end
    rec.replays = replays + 1
    -- It ended before its edges had let it run: it waits for them again.
    local skipped = rec.outcome == "skipped" or (rec.deps ~= nil and dependencies.load(rec).decided == nil)
    if rec.result_far then tx:del(keys.result(tx, rec.id)) end
    attempt.apart(rec)
    rec.result, rec.result_far, rec.result_in, rec.failure, rec.progress = nil, nil, nil, nil, nil
    rec.outcome, rec.ended, rec.failures, rec.reclaims, rec.tier = nil, nil, nil, nil, nil
    rec.next = rec.attempt and "replay" or nil
    if rec.deadline and rec.deadline <= now then rec.deadline = nil end
    rec.start_by = rec.start_within and now + rec.start_within or nil
    reopen.execution(tx, rec, skipped)
    runnable.settle(tx, rec)
    if rec.reason == "waiting_for_dependencies" then rec.start_by = nil end
    more.note_action(tx, rec, "replay", a.actor, a.reason)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.replayed", "actor", a.actor)
    if rec.flow_id then
      owed.during(tx, function()
        if skipped and rec.deps then owed.add(tx, rec, "wait_again", 0) end
        reopen.member(tx, rec)
      end)
    end
    return reply.ok("replayed", { state = execution.public_state(rec), replay_count = rec.replays })
  end,
}
