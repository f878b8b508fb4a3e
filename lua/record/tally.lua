-- What a partition has counted of its events: how many of each kind in each lane, and how long executions waited, ran
-- and took.
--
-- An event counts once: the place up to which the stream was counted is written together with the counts, so it does
-- not matter who counts, nor how many do.
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"

local tally = {}

-- The upper bounds of the durations that are told apart; a last one has none.
tally.bounds_ms = {
  5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 900000, 3600000, 21600000, 86400000,
}

-- Kinds of events that are counted by one of their facts as well; each fact has a small number of values.
local told_apart = {
  ["execution.started"] = "attempt_type", ["execution.reclaimed"] = "cause", ["execution.failed"] = "cause",
  ["execution.blocked"] = "reason", ["execution.suspended"] = "reason",
}

local durations = { "waited_ms", "ran_ms", "took_ms" }

-- A duration as it is counted: the sum, then how many fell under each bound and not under the one before.
local function no_durations()
  local list = { 0 }
  for i = 1, #tally.bounds_ms + 1 do list[i + 1] = 0 end
  return list
end

-- The tally: `at` is the entry of the stream up to which it goes, nil while nothing was counted, `number` that of its
-- last event; `names` are those of the counts.
function tally.load(tx)
  local raw = tx:hgetall(keys.tally(tx)) or {}
  local t = {
    raw = raw, at = raw.at, number = tonumber(raw.number or nil), gaps = tonumber(raw.gaps or "0"),
    names = raw.names and cmsgpack.unpack(raw.names) or {}, numbers = {}, lines = {}, order = {}, changed = {},
  }
  for i, name in ipairs(t.names) do t.numbers[name] = i end
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
  local number = t.numbers[name]
  if number == nil then
    number = #t.names + 1
    t.names[number], t.numbers[name] = name, number
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
  local data, name = {}, e[1]
  for i = event.data_from, #e, 2 do data[e[i]] = e[i + 1] end
  local apart = told_apart[name]
  if data.continues == true then
    name = name .. ":continuation"
  elseif apart and data[apart] then
    name = name .. ":" .. data[apart]
  end
  local l = line(t, e[3])
  local counts, number = l[1], number_of(t, name)
  for i = #counts + 1, number do counts[i] = 0 end
  counts[number] = counts[number] + 1
  for i, duration in ipairs(durations) do
    if data[duration] then add_duration(l[i + 1], data[duration]) end
  end
end

-- Counts what has not been counted, up to the id `to`, in at most `limit` entries; true when that many were there, so
-- that more may be. Events are numbered: a number that does not follow on the last one counted says that some were cut
-- off before.
function tally.count(tx, t, to, limit)
  local entries = tx:xrange(keys.events(tx), t.at and "(" .. t.at or "-", to, limit)
  if #entries == 0 then return false end
  if t.at and tonumber(entries[1][2][1]) ~= t.number + 1 then t.gaps = t.gaps + 1 end
  local number
  for _, entry in ipairs(entries) do
    number = tonumber(entry[2][1]) - 1
    for _, e in ipairs(event.all(entry[2][2])) do
      add(t, e)
      t.last_at, number = e[2], number + 1
    end
  end
  t.at, t.number = entries[#entries][1], number
  local fields = { "at", t.at, "number", t.number, "gaps", t.gaps, "names", cmsgpack.pack(t.names) }
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
