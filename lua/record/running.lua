-- The stored bytes of executions that are submitted, start and complete in the plain way (transition/plain.lua), and of
-- the events that tell it, put together by hand. The values are in the order of record/fields.lua.
local bytes = require "lib.bytes"

local running = {}

local head, list, none, number, text = bytes.head, bytes.list, bytes.none, bytes.number, bytes.text
local one = bytes.number(1)

-- The place and the kind of an execution, as its record and its events have them.
local function place_of(path, kind)
  return head[#path] .. path .. head[#kind] .. kind
end

-- Submitted -------------------------------------------------------------------------------------

local submitted_from = list(11) .. text("execution.submitted")
local submitted_to = none .. none .. none .. none .. text("state") .. text("waiting")
local new, runnable = list(15), text("runnable")

-- The record and the event of a submission.
function running.submitted(tx, id, path, kind, queue, retention, prio, score, digest, input, named)
  local place, now = place_of(path, kind), tx.now_packed
  return new .. place .. now .. head[#queue] .. queue .. number(retention) .. runnable .. number(prio) .. number(score)
    .. now .. none .. head[#digest] .. digest .. (input and one or none) .. none .. text(named) .. none,
    submitted_from .. now .. place .. head[#id] .. id .. submitted_to
end

-- Started ---------------------------------------------------------------------------------------

local active, began = text("active"), text("initial") .. text("started")
local started_from = list(15) .. text("execution.started")
local started_to = text("attempt_type") .. text("initial") .. text("continues") .. none .. text("waited_ms")
local first = number(0)

-- The values up to `ended_by` of the record of a first attempt, and its event.
function running.started(
  tx, id, attempt_id, lease_id, worker, worker_id, wake, ttl, waited,
  path, kind, created_at, queue, retention, prio, score, digest, input, tags, named, held, flow_id
)
  local place, now, wakes, who = place_of(path, kind), tx.now_packed, number(wake), head[#worker] .. worker
  local tagged = text(tags)
  return place .. number(created_at) .. head[#queue] .. queue .. number(retention) .. active .. number(prio)
    .. number(score) .. now .. wakes .. head[#digest] .. digest .. (input and one or none) .. tagged .. text(named)
    .. text(held) .. first .. head[#attempt_id] .. attempt_id .. began .. now .. head[#lease_id] .. lease_id
    .. number(tx.now_us) .. who .. head[#worker_id] .. worker_id .. wakes .. number(ttl) .. none,
    started_from .. now .. place .. head[#id] .. id .. text(flow_id) .. first .. who .. tagged .. started_to
      .. number(waited > 0 and waited or 0)
end

-- Completed -------------------------------------------------------------------------------------

local terminal, succeeded, by_complete, success =
  text("terminal"), text("succeeded"), text("complete"), text("success")
local completed_from = list(13) .. text("execution.completed")
local ran_ms, took_ms = text("ran_ms"), text("took_ms")

-- The values up to the result of the record of an execution that ends well, and its event.
function running.completed(
  tx, id, wake, ran, result, flow_id,
  path, kind, created_at, queue, retention, prio, score, digest, input, tags, named,
  attempt, attempt_id, attempt_type, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl
)
  local place, now, who, number_of = place_of(path, kind), tx.now_packed, head[#worker] .. worker, number(attempt)
  local tagged = text(tags)
  return place .. number(created_at) .. head[#queue] .. queue .. number(retention) .. terminal .. number(prio)
    .. number(score) .. now .. (wake and number(wake) or none) .. head[#digest] .. digest .. (input and one or none)
    .. tagged .. text(named) .. none .. number_of .. head[#attempt_id] .. attempt_id .. text(attempt_type) .. succeeded
    .. number(started) .. head[#lease_id] .. lease_id .. number(epoch) .. who .. head[#worker_id] .. worker_id
    .. number(lease_until) .. number(lease_ttl) .. by_complete .. now .. success .. text(result),
    completed_from .. now .. place .. head[#id] .. id .. text(flow_id) .. number_of .. who .. tagged .. ran_ms
      .. number(ran > 0 and ran or 0) .. took_ms .. number(tx.now - created_at)
end

return running
