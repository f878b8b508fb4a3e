-- The stream of an attempt: frames numbered from 0, ids `<start of the attempt in milliseconds>-<number>`, so that a
-- number gives its id. Live frames stand in a stream of their own, so that they can be dropped first. A stream is
-- closed by the end of its attempt.
local keys = require "lib.keys"
local limits = require "lib.limits"

local frames = {}

-- The running attempt's state as stored: number of the next frame, durable and live frames kept, version of the
-- summary, and the last request with the number of its first frame.
function frames.state(rec)
  local f = rec.frames and cmsgpack.unpack(rec.frames) or { 0, 0, 0, 0, false, 0 }
  return { next = f[1], kept = f[2], live = f[3], version = f[4], request = f[5] or nil, request_first = f[6] }
end

local function store(rec, f)
  rec.frames = cmsgpack.pack({ f.next, f.kept, f.live, f.version, f.request or false, f.request_first })
end

-- The id of a frame of the running attempt.
function frames.id(rec, number)
  return string.format("%.0f-%.0f", rec.started, number)
end

function frames.number(id)
  return tonumber(string.match(id, "%-(%d+)$"))
end

-- The id of the first frame that stays when the `count` oldest of a stream leave; it holds `size` frames, those of this
-- call (`planned`) last. The range is read before anything is planned for the key.
local function first_kept(tx, rec, key, count, size, planned)
  local stored = size - #planned
  if count < stored then return tx:xrange(key, "-", "+", count + 1)[count + 1][1] end
  return planned[count - stored + 1] or frames.id(rec, limits.time_ms_max)
end

-- Plans the frames and answers their ids; the oldest leave when the stream holds more than it may, live ones first.
-- `request` is remembered with the number of its first frame.
function frames.append(tx, rec, list, request, request_first)
  local f = frames.state(rec)
  local ids, durable, live = {}, {}, {}
  for i in ipairs(list) do
    ids[i] = frames.id(rec, f.next + i - 1)
    local kind = list[i].mode == "live" and live or durable
    kind[#kind + 1] = ids[i]
  end
  local kept, alive = f.kept + #durable, f.live + #live
  local over = math.max(0, kept + alive - (rec.max_frames or limits.frames_default))
  local drop_live = math.min(over, alive)
  local drop = over - drop_live
  local key, live_key = keys.stream(tx, rec.id, rec.attempt), keys.stream_live(tx, rec.id, rec.attempt)
  local live_from = drop_live > 0 and first_kept(tx, rec, live_key, drop_live, alive, live)
  local from = drop > 0 and first_kept(tx, rec, key, drop, kept, durable)
  for i, frame in ipairs(list) do
    local packed = cmsgpack.pack({
      frame.type, tx.now, frame.payload or false, frame.payload_encoding or false, frame.correlation_id or false,
      frame.mode,
    })
    tx:xput(frame.mode == "live" and live_key or key, ids[i], "f", packed)
  end
  if live_from then tx:xcut(live_key, live_from) end
  if from then tx:xcut(key, from) end
  if request then f.request, f.request_first = request, request_first end
  f.next, f.kept, f.live = f.next + #list, kept - drop, alive - drop_live
  store(rec, f)
  return ids
end

function frames.store_summary(tx, rec, document)
  local f = frames.state(rec)
  f.version = f.version + 1
  store(rec, f)
  tx:set(keys.stream_summary(tx, rec.id, rec.attempt), cmsgpack.pack({ f.version, document }))
end

local function typed(entry)
  local f = cmsgpack.unpack(entry[2][2])
  return {
    id = entry[1], sequence = frames.number(entry[1]), type = f[1], at = f[2], payload = f[3] or nil,
    payload_encoding = f[4] or nil, correlation_id = f[5] or nil, mode = f[6],
  }
end

-- Frames of an attempt between two ids, both kinds in one order; stops after enough bytes. The second answer says
-- whether there may be more. Neither kind is read less far than the answer goes: each alone would fill it.
function frames.read(tx, id, attempt, from, to, limit)
  limit = math.min(limit, limits.stream_page_max)
  local list, cut = tx:xsome(keys.stream(tx, id, attempt), from, to, limit + 1, limits.stream_read_bytes_max)
  local live, live_cut = tx:xsome(keys.stream_live(tx, id, attempt), from, to, limit + 1, limits.stream_read_bytes_max)
  for _, entry in ipairs(live) do list[#list + 1] = entry end
  table.sort(list, function(a, b) return frames.number(a[1]) < frames.number(b[1]) end)
  local out, bytes = {}, 0
  for _, entry in ipairs(list) do
    if #out >= limit or bytes > limits.stream_read_bytes_max then return out, true end
    out[#out + 1] = typed(entry)
    bytes = bytes + #entry[2][2]
  end
  return out, cut or live_cut
end

-- The number of the first frame of a stream written at `at` or later; `count` frames were written in all.
local function first_since(tx, key, started, count, at)
  local low, high, found = 0, count, count
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = tx:xrange(key, string.format("%.0f-%.0f", started, middle), "+", 1)[1]
    local number = entry and frames.number(entry[1]) or count
    if entry and cmsgpack.unpack(entry[2][2])[2] < at then low = number + 1 else high, found = middle, number end
  end
  return found
end

-- A place in the stream of an attempt as the number of a frame. An id of the attempt says its number; any other time
-- stands for the first frame written then or later. `behind` puts a time without a number behind its millisecond.
function frames.place(tx, id, attempt, text, behind)
  local ms, number = string.match(text, "^(%d+)%-(%d+)$")
  ms, number = tonumber(ms), tonumber(number)
  if ms == attempt.started_at and number <= limits.time_ms_max then return number end
  if number > limits.time_ms_max and behind then ms = ms + 1 end
  local key, live_key = keys.stream(tx, id, attempt.index), keys.stream_live(tx, id, attempt.index)
  local durable = first_since(tx, key, attempt.started_at, attempt.frames, ms)
  local live = first_since(tx, live_key, attempt.started_at, attempt.frames, ms)
  return math.min(durable, live), true
end

-- How many frames the running attempt wrote.
function frames.count(rec)
  return rec.frames and frames.state(rec).next or 0
end

local function remove(tx, rec, attempt)
  tx:del(keys.stream(tx, rec.id, attempt))
  tx:del(keys.stream_live(tx, rec.id, attempt))
  tx:del(keys.stream_summary(tx, rec.id, attempt))
end

-- Files the stream with its attempt: `streams` lists the attempts that have one; the oldest leave when there are too
-- many.
function frames.close(tx, rec)
  if rec.frames == nil then return end
  local list = rec.streams and cmsgpack.unpack(rec.streams) or {}
  list[#list + 1] = rec.attempt
  if #list > limits.streams_kept_max then remove(tx, rec, table.remove(list, 1)) end
  rec.streams, rec.attempt_frames, rec.frames = cmsgpack.pack(list), frames.count(rec), nil
end

function frames.remove_all(tx, rec)
  for _, attempt in ipairs(rec.streams and cmsgpack.unpack(rec.streams) or {}) do remove(tx, rec, attempt) end
end

return frames
