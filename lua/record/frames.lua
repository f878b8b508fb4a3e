-- The stream of an attempt: frames numbered from 0, ids `<milliseconds>-<number>`. Live frames stand in a stream of their own,
-- so that they can be dropped first. A stream is closed by the end of its attempt.
local keys = require "lib.keys"
local limits = require "lib.limits"

local frames = {}

-- The running attempt's state as stored: number of the next frame, time part of the last id, durable and live frames kept,
-- version of the summary, and the last request with the number of its first frame.
function frames.state(rec)
  local f = rec.frames and cmsgpack.unpack(rec.frames) or { 0, 0, 0, 0, 0, false, 0 }
  return { next = f[1], last = f[2], kept = f[3], live = f[4], version = f[5], request = f[6] or nil, request_first = f[7] }
end

local function store(rec, f)
  rec.frames = cmsgpack.pack({ f.next, f.last, f.kept, f.live, f.version, f.request or false, f.request_first })
end

function frames.id(at, number)
  return string.format("%.0f-%.0f", at, number)
end

function frames.number(id)
  return tonumber(string.match(id, "%-(%d+)$"))
end

-- Plans the removal of the `count` oldest entries of a stream of `size` frames that ends with those of this call.
local function cut(tx, key, count, size, planned)
  local stored = size - #planned
  local first
  if count >= size then
    first = frames.id(limits.time_ms_max, 0)
  elseif count < stored then
    -- The range is read before anything is planned for the key.
    first = tx:xrange(key, "-", "+", count + 1)[count + 1][1]
  else
    first = planned[count - stored + 1]
  end
  return first
end

-- Plans the frames and answers their ids; the oldest leave when the stream holds more than it may, live ones first.
function frames.append(tx, rec, list, request)
  local f = frames.state(rec)
  local at = math.max(tx.now, f.last)
  local ids, durable, live = {}, {}, {}
  for i in ipairs(list) do
    ids[i] = frames.id(at, f.next + i - 1)
    local kind = list[i].mode == "live" and live or durable
    kind[#kind + 1] = ids[i]
  end
  local kept, alive = f.kept + #durable, f.live + #live
  local over = math.max(0, kept + alive - rec.spec.max_frames)
  local drop_live = math.min(over, alive)
  local drop = over - drop_live
  local key, live_key = keys.stream(tx, rec.id, rec.attempt), keys.stream_live(tx, rec.id, rec.attempt)
  local live_from = drop_live > 0 and cut(tx, live_key, drop_live, alive, live) or nil
  local from = drop > 0 and cut(tx, key, drop, kept, durable) or nil
  for i, frame in ipairs(list) do
    local packed = cmsgpack.pack({ frame.type, tx.now, frame.payload or false, frame.payload_encoding or false, frame.correlation_id or false, frame.mode })
    tx:xput(frame.mode == "live" and live_key or key, ids[i], "f", packed)
  end
  if live_from then tx:xcut(live_key, live_from) end
  if from then tx:xcut(key, from) end
  if request then f.request, f.request_first = request, f.next end
  f.next, f.last, f.kept, f.live = f.next + #list, at, kept - drop, alive - drop_live
  store(rec, f)
  return ids
end

function frames.store_summary(tx, rec, document)
  local f = frames.state(rec)
  f.version = f.version + 1
  store(rec, f)
  tx:set(keys.stream_summary(tx, rec.id, rec.attempt), cmsgpack.pack({ f.version, document }))
end

-- The ids of frames already written, from the number `first` on; one that has left answers the id it would have now.
function frames.known(tx, rec, first, count)
  local f = frames.state(rec)
  local found = {}
  for _, key in ipairs({ keys.stream(tx, rec.id, rec.attempt), keys.stream_live(tx, rec.id, rec.attempt) }) do
    for _, entry in ipairs(tx:xlatest(key, math.min(f.next - first, limits.stream_read_max))) do found[frames.number(entry[1])] = entry[1] end
  end
  local ids = {}
  for i = 1, count do ids[i] = found[first + i - 1] or frames.id(f.last, first + i - 1) end
  return ids
end

local function typed(entry)
  local f = cmsgpack.unpack(entry[2][2])
  return {
    id = entry[1], sequence = frames.number(entry[1]), type = f[1], at = f[2], payload = f[3] or nil, payload_encoding = f[4] or nil,
    correlation_id = f[5] or nil, mode = f[6],
  }
end

-- Frames of an attempt between two ids, both kinds in one order; stops after enough bytes. The second answer says whether there are more.
function frames.read(tx, id, attempt, from, to, limit)
  limit = math.min(limit, limits.stream_page_max)
  local list = tx:xrange(keys.stream(tx, id, attempt), from, to, limit + 1)
  for _, entry in ipairs(tx:xrange(keys.stream_live(tx, id, attempt), from, to, limit + 1)) do list[#list + 1] = entry end
  table.sort(list, function(a, b) return frames.number(a[1]) < frames.number(b[1]) end)
  local out, bytes = {}, 0
  for _, entry in ipairs(list) do
    if #out >= limit or bytes > limits.stream_read_bytes_max then return out, true end
    out[#out + 1] = typed(entry)
    bytes = bytes + #entry[2][2]
  end
  return out, false
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

-- Files the stream with its attempt: `streams` lists the attempts that have one; the oldest leave when there are too many.
function frames.close(tx, rec)
  if rec.frames == nil then return end
  local list = rec.streams and cmsgpack.unpack(rec.streams) or {}
  list[#list + 1] = rec.attempt
  if #list > limits.streams_kept_max then remove(tx, rec, table.remove(list, 1)) end
  rec.streams, rec.frames = cmsgpack.pack(list), nil
end

function frames.remove_all(tx, rec)
  for _, attempt in ipairs(rec.streams and cmsgpack.unpack(rec.streams) or {}) do remove(tx, rec, attempt) end
end

return frames
