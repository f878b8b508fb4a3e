-- What a partition has counted of its events: how many of each kind in each lane, and how long executions waited, ran and took.
--
-- An event counts once: the place up to which the stream was counted is written together with the counts, so it does not
-- matter who counts, nor how many do.
local keys = require "lib.keys"
local limits = require "lib.limits"

local tally = {}

-- The upper bounds of the durations that are told apart; a last one has none.
tally.bounds_ms = {
  5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 900000, 3600000, 21600000, 86400000,
}

-- Kinds of events that are counted by one of their facts as well; each fact has a small number of values.
local told_apart = {
  ["execution.started"] = "attempt_type", ["execution.reclaimed"] = "cause", ["execution.failed"] = "cause", ["execution.blocked"] = "reason", ["execution.suspended"] = "reason",
}

local durations = { "waited_ms", "ran_ms", "took_ms" }

-- A duration as it is counted: the sum, then how many fell under each bound and not under the one before.
local function no_durations()
  local list = { 0 }
  for i = 1, #tally.bounds_ms + 1 do list[i + 1] = 0 end
  return list
end

-- The tally: `at` is the place in the stream up to which it goes, nil while nothing was counted; `names` are those of the counts.
function tally.load(tx)
  local raw = tx:hgetall(keys.tally(tx)) or {}
  local t = { raw = raw, at = raw.at, gaps = tonumber(raw.gaps or "0"), names = raw.names and cmsgpack.unpack(raw.names) or {}, number = {}, lines = {}, order = {}, changed = {} }
  for i, name in ipairs(t.names) do t.number[name] = i end
  for name in pairs(raw) do
    if string.find(name, "/", 1, true) then t.order[#t.order + 1] = name end
  end
  table.sort(t.order)
  return t
end

-- One line, by the lane's path: its counts in the order of the names, and its durations.
local function line(t, path)
  local known = t.lines[path]
  if known then return known end
  local packed = t.raw[path]
  if packed == nil then
    if #t.order >= limits.tally_lines_max and path ~= "other/other" then return line(t, "other/other") end
    t.order[#t.order + 1] = path
  end
  known = packed and cmsgpack.unpack(packed) or { {}, no_durations(), no_durations(), no_durations() }
  t.lines[path] = known
  return known
end

local function number_of(t, name)
  local number = t.number[name]
  if number == nil then
    number = #t.names + 1
    t.names[number], t.number[name] = name, number
  end
  return number
end

local function add_duration(list, ms)
  list[1] = list[1] + ms
  local place = #tally.bounds_ms + 1
  for i, bound in ipairs(tally.bounds_ms) do
    if ms <= bound then
      place = i
      break
    end
  end
  list[place + 1] = list[place + 1] + 1
end

-- Counts one event as it is stored.
local function add(t, e)
  local data = {}
  for i = 1, #e[11], 2 do data[e[11][i]] = e[11][i + 1] end
  local name, apart = e[1], told_apart[e[1]]
  if data.continues == "true" then
    name = name .. ":continuation"
  elseif apart and data[apart] then
    name = name .. ":" .. data[apart]
  end
  local path = (e[3] or "") .. "/" .. (e[4] or "")
  local l = line(t, path)
  local counts, number = l[1], number_of(t, name)
  for i = #counts + 1, number do counts[i] = 0 end
  counts[number] = counts[number] + 1
  for i, duration in ipairs(durations) do
    if data[duration] then add_duration(l[i + 1], tonumber(data[duration])) end
  end
end

-- True when the stream lost entries that were not counted: it is cut at its length, and what was counted last is behind the cut.
local function lost_some(tx, t, key)
  if t.at == nil or tx:xlen(key) < limits.events_max then return false end
  local function place(id)
    local ms, seq = string.match(id, "^(%d+)-(%d+)$")
    return tonumber(ms), tonumber(seq)
  end
  local first = tx:xrange(key, "-", "+", 1)[1]
  local first_ms, first_seq = place(first[1])
  local ms, seq = place(t.at)
  return first_ms > ms or (first_ms == ms and first_seq > seq)
end

-- Counts what has not been counted, up to the id `to`, at most `limit`; true when that much was there, so that more may be.
function tally.count(tx, t, to, limit)
  local key = keys.events(tx)
  local entries = tx:xrange(key, t.at and "(" .. t.at or "-", to, limit)
  if #entries == 0 then return false end
  if lost_some(tx, t, key) then t.gaps = t.gaps + 1 end
  for _, entry in ipairs(entries) do
    local e = cmsgpack.unpack(entry[2][2])
    add(t, e)
    t.last_at = e[2]
  end
  t.at = entries[#entries][1]
  local fields = { "at", t.at, "gaps", t.gaps, "names", cmsgpack.pack(t.names) }
  for _, path in ipairs(t.order) do
    if t.lines[path] then fields[#fields + 1], fields[#fields + 2] = path, cmsgpack.pack(t.lines[path]) end
  end
  tx:hset(keys.tally(tx), fields)
  return #entries == limit
end

-- Every line, typed, in the order of their lanes.
function tally.typed(t)
  table.sort(t.order)
  local list = {}
  for i, path in ipairs(t.order) do
    local l = line(t, path)
    local namespace, name = string.match(path, "^(.-)/(.*)$")
    list[i] = { namespace = namespace, lane = name, counts = l[1], waited = l[2], ran = l[3], took = l[4] }
  end
  return list
end

return tally
