local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local home = require "index.home"
local queues = require "index.queues"
local execution = require "record.execution"
local flow = require "record.flow"
local lane = require "record.lane"

local function band(n) return string.format("%.0f", n) end

-- The first that could run, from this score on.
local function eligible_from(tx, key, low, count)
  return tx:zlowest(key, low, "(" .. band(home.granted_from), count)
end

-- Counts and head of one queue.
local function queue_counts(tx, path, name)
  local key = keys.queue_named(tx, path, name)
  -- A host may count a band entry by entry: only the small ones are counted, the backlog is what remains.
  local granted = tx:zcount(key, band(home.granted_from), "(" .. band(home.active_from))
  local active = tx:zcount(key, band(home.active_from), "+inf")
  local eligible = tx:zcard(key) - granted - active
  local head
  if eligible > 0 then head = eligible_from(tx, key, "-inf", 1)[1] end
  return eligible, granted, active, head, key
end

-- When the oldest that waits in a queue was made, as far as a bounded look tells. Age and strict priority keep each
-- priority together, its oldest first, so one entry of each is looked at; elsewhere the next in line are.
local function oldest(tx, copy, key, head)
  local strict = copy.fairness == "fifo" and copy.priority_weight == limits.strict_priority_weight
  local looked_at = strict and { head } or eligible_from(tx, key, "-inf", limits.oldest_looks_max)
  local found
  for i = 1, limits.oldest_looks_max do
    local rec = looked_at[i] and execution.load(tx, looked_at[i].member)
    if not rec then break end
    found = math.min(found or rec.created, rec.created)
    if strict and rec.prio > 0 then
      looked_at[i + 1] = eligible_from(tx, key, "(" .. band(tx.now - rec.prio * copy.priority_weight), 1)[1]
    end
  end
  return found
end

local function lane_counts(tx, path)
  local namespace, name = lane.split(path)
  local copy = lane.load(tx, path)
  local counts = {
    namespace = namespace, lane = name, state = copy.state, eligible = 0, granted = 0, active = 0, queues = {},
  }
  local first
  for _, entry in ipairs(queues.all(tx, path)) do
    local eligible, granted, active, head, key = queue_counts(tx, path, entry.queue)
    counts.eligible, counts.granted, counts.active =
      counts.eligible + eligible, counts.granted + granted, counts.active + active
    if head and (first == nil or head.score < first.score) then first = head end
    local since = head and oldest(tx, copy, key, head)
    if since then counts.oldest_eligible_at = math.min(counts.oldest_eligible_at or since, since) end
    if eligible > 0 or entry.uncovered or #entry.requires > 0 then
      counts.queues[#counts.queues + 1] = {
        queue = entry.queue, kind = entry.kind, requires = entry.requires, admission = entry.admission,
        eligible = eligible, uncovered = entry.uncovered, head_score = head and head.score,
      }
    end
  end
  counts.head_score = first and first.score
  for _, place in ipairs(home.places) do
    counts[string.gsub(place, ":", "_")] = tx:zcard(keys.place(tx, path, place))
  end
  return counts
end

-- Members of stopped flows that have not been cancelled yet; the flows stopped first are counted.
local function pending_cancels(tx)
  local pending = 0
  for _, id in ipairs(tx:zrange(keys.cancel_backlog(tx), "0", string.format("%d", limits.batch_max - 1))) do
    local f = flow.load(tx, id)
    if f then
      pending = pending + flow.open(f)
      if flow.stopped(f).policy ~= "cancel_all" then pending = pending - (f.n_active or 0) end
    end
  end
  return pending
end

-- The paths of the lanes this call is about, and whether more follow: the one that was named, or a page of all.
local function page(tx, a)
  if a.namespace and a.lane then
    local path = a.namespace .. "/" .. a.lane
    return tx:zscore(keys.lanes(tx), path) and { path } or {}, false
  end
  local first = a.offset or 0
  local last = first + limits.lanes_per_call_max
  local found = tx:zrange(keys.lanes(tx), string.format("%.0f", first), string.format("%.0f", last))
  local more = #found > limits.lanes_per_call_max
  if more then found[#found] = nil end
  return found, more
end

define.fn {
  name = "ff_partition_stats",
  doc = "Counts of this partition: timers, events, outbox, what was set aside, and per lane and state; at most 32 "
    .. "lanes from `offset` on.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", lane = "lane?", offset = "count?" },
  reply = {
    stats = {
      lanes = "[lane_counts]", more = "bool", executions = "count", timers = "count", next_timer_at = "time_ms?",
      stuck = "count", events = "count", outbox = "count", flows = "count", cancel_backlog = "count",
      pending_cancels = "count", schedules = "count",
    },
  },
  errs = {},
  call = function(tx, a)
    local lanes = {}
    local paths, more = page(tx, a)
    for _, path in ipairs(paths) do
      local namespace, name = lane.split(path)
      if (a.namespace == nil or a.namespace == namespace) and (a.lane == nil or a.lane == name) then
        lanes[#lanes + 1] = lane_counts(tx, path)
      end
    end
    local head = tx:zhead(keys.timers(tx))
    return reply.ok("stats", {
      lanes = lanes, more = more, executions = tx:zcard(keys.all(tx)), timers = tx:zcard(keys.timers(tx)),
      next_timer_at = head and head.score, stuck = tx:zcard(keys.stuck(tx)), events = event.kept(tx),
      outbox = tx:xlen(keys.outbox(tx)), flows = tx:zcard(keys.flows(tx)),
      cancel_backlog = tx:zcard(keys.cancel_backlog(tx)), pending_cancels = pending_cancels(tx),
      schedules = tx:zcard(keys.schedules(tx)),
    })
  end,
}
