local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local lane = require "record.lane"
local fair = require "index.fair"
local lists = require "index.lists"
local runnable = require "transition.runnable"
local score = require "transition.score"

-- Moving or re-prioritising gives a new score; it needs the lane's copy.
local function requeue(tx, rec, a)
  local namespace, name = lane.split(rec.path)
  local path = namespace .. "/" .. (a.lane or name)
  local copy = lane.load(tx, path)
  if copy == nil then return reply.err("lane_unseen", { namespace = namespace, lane = a.lane or name }) end
  if path ~= rec.path then
    if not lane.accepts(copy) then return reply.err("lane_disabled", { lane = a.lane, state = copy.state }) end
    fair.forget(tx, rec.path, rec)
    rec.was_path, rec.path = rec.path, path
  end
  rec.prio = a.priority or rec.prio
  rec.score = score.of(tx, copy, rec)
  if rec.prefers then lane.remember(tx, copy, "prefers", "1") end
end

define.fn {
  name = "ff_change_execution",
  doc = "Changes priority, lane or delay of a runnable execution, tags or deadline of any that has not ended.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", actor = "actor", priority = "priority?", lane = "lane?", tags = "tags?",
    deadline_at = "time_ms?", delay_until = "time_ms?",
  },
  reply = { changed = { state = "public_state" } },
  errs = { "execution_not_found", "execution_not_runnable", "execution_terminal", "lane_unseen", "lane_disabled" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase == "terminal" then return reply.err("execution_terminal", { outcome = rec.outcome }) end
    local moves = a.priority or a.lane
    if (moves or a.delay_until) and rec.phase ~= "runnable" then
      return reply.err("execution_not_runnable", { lifecycle_phase = rec.phase })
    end
    if moves then
      local refusal = requeue(tx, rec, a)
      if refusal then return refusal end
    end
    if a.delay_until then rec.delay = a.delay_until end
    if a.deadline_at then rec.deadline = a.deadline_at end
    if a.tags then lists.retag(tx, rec, a.tags) end
    -- The line of a quota is another partition's: whoever stands in it asks anew, and enters it at its new place.
    local held = rec.reason ~= nil and rec.reason ~= "waiting_for_capable_worker" and rec.reason ~= "waiting_for_quota"
    if (moves or a.delay_until) and not held then runnable.settle(tx, rec) end
    more.note_action(tx, rec, "change", a.actor)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.changed", "actor", a.actor)
    return reply.ok("changed", { state = execution.public_state(rec) })
  end,
}
