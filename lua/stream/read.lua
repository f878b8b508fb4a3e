local define = require "lib.define"
local reply = require "lib.reply"
local attempt = require "record.attempt"
local execution = require "record.execution"
local frames = require "record.frames"

-- The range asked for, as the store takes it. A place may be the id of a frame or a time.
local function bounds(tx, rec, found, a)
  local function id(number) return string.format("%.0f-%.0f", found.started_at, number) end
  local from, to = "-", "+"
  if a.after then
    local number, by_time = frames.place(tx, rec.id, found, a.after, true)
    from = by_time and id(number) or "(" .. id(number)
  elseif a.from then
    from = id((frames.place(tx, rec.id, found, a.from, true)))
  end
  if a.to then
    local number, by_time = frames.place(tx, rec.id, found, a.to, true)
    to = by_time and "(" .. id(number) or id(number)
  end
  return from, to
end

-- How a stream ends that no attempt ever wrote to, by the outcome of its execution.
local ends_without_attempt = {
  failed = "failed", cancelled = "cancelled", expired = "interrupted", skipped = "cancelled", success = "succeeded",
}

define.fn {
  name = "ff_read_stream",
  doc = "Frames of one attempt after an id, or from and to ids included; a time stands for the frames written then; "
    .. "the latest attempt when none is named. One call answers a page of bounded size; `more` says whether to go on "
    .. "after the last id.",
  flags = { "no-writes" },
  weight = "limit",
  args = {
    execution_id = "execution_id", attempt_index = "attempt_index?", after = "stream_id?", from = "stream_id?",
    to = "stream_id?", limit = "stream_limit",
  },
  reply = {
    page = {
      frames = "[frame]", more = "bool", attempt_index = "attempt_index?", latest_attempt = "attempt_index?",
      terminal = "bool", closed_at = "time_ms?", closed_reason = "attempt_state?",
    },
  },
  errs = { "execution_not_found", "attempt_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local found = attempt.find(tx, rec, a.attempt_index)
    local page = { frames = {}, more = false, latest_attempt = rec.attempt, terminal = rec.phase == "terminal" }
    if found == nil then
      -- An attempt yet to come has an empty stream; only one that cannot come is unknown.
      if a.attempt_index and a.attempt_index > (rec.attempt or -1) + 1 then
        return reply.err("attempt_not_found", { attempt_index = a.attempt_index })
      end
      if page.terminal then page.closed_at, page.closed_reason = rec.ended, ends_without_attempt[rec.outcome] end
      return reply.ok("page", page)
    end
    local from, to = bounds(tx, rec, found, a)
    page.frames, page.more = frames.read(tx, rec.id, found.index, from, to, a.limit)
    page.attempt_index = found.index
    if found.ended_at then page.closed_at, page.closed_reason = found.ended_at, found.state end
    return reply.ok("page", page)
  end,
}
