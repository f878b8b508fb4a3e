local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local frames = require "record.frames"

-- The number of the batch's first frame, and how many of its frames were written before: a lost reply is answered
-- again.
local function already_written(f, a)
  local first = a.first_sequence or f.next
  if a.request_id and f.request == a.request_id then first = f.request_first end
  return first, math.min(#a.frames, f.next - first)
end

define.fn {
  name = "ff_append_frames",
  doc = "Appends frames to the running attempt's stream. A sequence or a request already seen answers its ids; "
    .. "`summary` replaces the folded document when its version is the current one.",
  flags = {},
  args = {
    execution_id = "execution_id", fence = "fence", frames = "new_frames", first_sequence = "count?",
    request_id = "request_id?", summary = "new_summary?",
  },
  reply = { appended = { ids = "[stream_id]", next_sequence = "count", replayed = "bool" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "frames_missing",
    "summary_changed",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    if #a.frames == 0 then return reply.err("invalid_argument", { field = "frames", problem = "must hold a frame" }) end
    local f = frames.state(rec)
    if a.first_sequence and a.first_sequence > f.next then
      return reply.err("frames_missing", { field = "first_sequence", expected = f.next })
    end
    local first, known = already_written(f, a)
    local ids = {}
    for i = 1, known do ids[i] = frames.id(rec, first + i - 1) end
    if known == #a.frames then return reply.ok("appended", { ids = ids, next_sequence = f.next, replayed = true }) end
    if a.summary and a.summary.version ~= f.version then
      return reply.err("summary_changed", { version = f.version })
    end
    local fresh = {}
    for i = known + 1, #a.frames do fresh[#fresh + 1] = a.frames[i] end
    for _, id in ipairs(frames.append(tx, rec, fresh, a.request_id, first)) do ids[#ids + 1] = id end
    if a.summary then frames.store_summary(tx, rec, a.summary.document) end
    tx:announce("frames", rec.id)
    execution.save(tx, rec)
    return reply.ok("appended", { ids = ids, next_sequence = frames.count(rec), replayed = false })
  end,
}
