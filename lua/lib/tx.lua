-- One operation's view of its partition: reads see the plan, writes are planned and happen together at commit.
local Tx = {}
Tx.__index = Tx

local function text(v)
  if type(v) == "number" then
    if v ~= math.floor(v) then error("a stored number must be an integer, got " .. v) end
    return string.format("%.0f", v)
  end
  if type(v) ~= "string" then error("a stored value must be text or an integer, got " .. type(v)) end
  return v
end

-- A score, which travels as the number it is.
local function whole(v)
  if type(v) ~= "number" or v ~= math.floor(v) then error("a score must be an integer, got " .. tostring(v)) end
  return v
end

-- What the operations of one list have in common: the time, the lanes they met and what they announce. `marks` is 1 when slots may
-- move and 2 when someone reads events, or their sum.
function Tx.share(kind, marks)
  local time = redis.call("TIME")
  local sec, usec = tonumber(time[1]), tonumber(time[2])
  return {
    Tx = Tx, kind = kind, guard = marks % 2 == 1, listen = marks >= 2,
    now = sec * 1000 + math.floor(usec / 1000), now_us = sec * 1000000 + usec,
    said = {}, tags = {},
    lanes = {}, -- copies of lanes, by key, as they are stored
  }
end

function Tx.new(shared, route, now, at)
  local tx = setmetatable({
    shared = shared,
    at = at,
    route = route,
    tag = string.match(route, "{.-}"),
    guard = shared.guard,
    listen = shared.listen,
    now = shared.now,
    now_us = shared.now_us,
    calls = 1, -- the time
  }, Tx)
  if now and LIBRARY.test then tx.now, tx.now_us = now, now * 1000 end
  tx:reset()
  return tx
end

-- `memo`: records read once per plan, by key.
function Tx:reset()
  self.plan, self.order, self.messages, self.memo = {}, {}, {}, {}
end

function Tx:read(...)
  self.calls = self.calls + 1
  return redis.call(...)
end

local first_word = { hash = "HSET", zset = "ZADD", string = "SET", stream = "XADD", key = "DEL" }

-- What is planned for one key: the command that will write it, as it grows, and where in it each name's value stands: `at`, or as
-- long as there is only one, `only` and `place`. `gone` (names that go) is made when first needed.
local function begin(self, key, kind, command, size, only, place)
  local entry = { key = key, kind = kind, command = command, size = size, only = only, place = place }
  self.plan[key] = entry
  self.order[#self.order + 1] = entry
  self.shared.lanes[key] = nil
  return entry
end

local function planned(self, key, kind)
  local entry = self.plan[key]
  if entry == nil then return begin(self, key, kind, { first_word[kind], key }, 2) end
  if entry.kind ~= kind then error("planned " .. kind .. " write on " .. entry.kind .. " key " .. key) end
  if entry.deleted then error("write after delete of " .. key) end
  return entry
end

-- Where the values of an entry stand, by name.
local function places(entry)
  local at = entry.at
  if not at then
    at = {}
    if entry.only then at[entry.only] = entry.place end
    entry.at, entry.only = at, nil
  end
  return at
end

-- A command without one of its pairs; `at` follows.
local function without(entry, name)
  if not entry.at and entry.only ~= name then return end
  local places = places(entry)
  local at = places[name]
  if at == nil then return end
  local first = entry.kind == "zset" and at or at - 1
  table.remove(entry.command, first)
  table.remove(entry.command, first)
  places[name], entry.size = nil, entry.size - 2
  for other, place in pairs(places) do
    if place > at then places[other] = place - 2 end
  end
end

local function take(self, key, kind, name)
  local entry = self.plan[key]
  if entry and entry.deleted then return end
  entry = planned(self, key, kind)
  without(entry, name)
  if not entry.gone then
    entry.gone, entry.gone_order = { [name] = true }, { name }
  elseif not entry.gone[name] then
    entry.gone[name] = true
    entry.gone_order[#entry.gone_order + 1] = name
  end
end

local function is_gone(entry, name)
  return entry.deleted or (entry.gone and entry.gone[name])
end

-- The value planned under a name, or nil.
local function planned_value(entry, name)
  if entry.at then
    local at = entry.at[name]
    return at and entry.command[at]
  end
  if entry.only == name then return entry.command[entry.place] end
end

local function refuse_planned(self, key)
  if self.plan[key] then error("range read of a key with planned writes: " .. key) end
end

-- Hashes ---------------------------------------------------------------------------------------

-- All fields of a hash as a flat list of names and values, or nil when there is none.
function Tx:hflat(key)
  if self.plan[key] == nil then
    local flat = self:read("HGETALL", key)
    if #flat > 0 then return flat end
    return nil
  end
  local fields = self:hgetall(key)
  if fields == nil then return nil end
  local flat = {}
  for name, value in pairs(fields) do
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  return flat
end

-- All fields of a hash as a table, or nil when there is none.
function Tx:hgetall(key)
  local entry = self.plan[key]
  if entry and entry.deleted then return nil end
  local flat = self:read("HGETALL", key)
  local fields, any = {}, false
  for i = 1, #flat, 2 do fields[flat[i]] = flat[i + 1]; any = true end
  if entry then
    for name, at in pairs(places(entry)) do fields[name] = entry.command[at]; any = true end
    if entry.gone then
      for name in pairs(entry.gone) do fields[name] = nil end
    end
  end
  if any then return fields end
end

function Tx:hget(key, field)
  local entry = self.plan[key]
  if entry then
    if is_gone(entry, field) then return nil end
    local value = planned_value(entry, field)
    if value then return value end
  end
  return self:read("HGET", key, field) or nil
end

-- Several fields of a hash nothing is planned for, in this order; an absent one is false.
function Tx:hmget(key, fields)
  refuse_planned(self, key)
  return self:read("HMGET", key, unpack(fields))
end

-- `list` is flat: field, value, field, value, …
function Tx:hset(key, list)
  if self.plan[key] == nil and #list == 2 then
    begin(self, key, "hash", { "HSET", key, list[1], text(list[2]) }, 4, list[1], 4)
    return
  end
  local entry = planned(self, key, "hash")
  local command, at, gone, size = entry.command, places(entry), entry.gone, entry.size
  for i = 1, #list, 2 do
    local name, value = list[i], list[i + 1]
    if type(value) ~= "string" then value = text(value) end
    local place = at[name]
    if place then
      command[place] = value
    else
      command[size + 1], command[size + 2] = name, value
      size = size + 2
      at[name] = size
    end
    if gone then gone[name] = nil end
  end
  entry.size = size
end

function Tx:hdel(key, field)
  take(self, key, "hash", field)
end

-- Strings --------------------------------------------------------------------------------------

function Tx:get(key)
  local entry = self.plan[key]
  if entry then
    if entry.deleted then return nil end
    return entry.command[3]
  end
  return self:read("GET", key) or nil
end

function Tx:set(key, value)
  if self.plan[key] == nil then
    begin(self, key, "string", { "SET", key, text(value) }, 3)
    return
  end
  local entry = planned(self, key, "string")
  entry.command[3], entry.size = text(value), 3
end

-- Removes a whole key, whatever it holds.
function Tx:del(key)
  local entry = self.plan[key] or planned(self, key, "key")
  entry.deleted = true
  entry.command, entry.size, entry.at, entry.only, entry.gone, entry.gone_order = { "DEL", key }, 2, nil, nil, nil, nil
end

-- Sorted sets ----------------------------------------------------------------------------------

function Tx:zscore(key, member)
  local entry = self.plan[key]
  if entry then
    if is_gone(entry, member) then return nil end
    local score = planned_value(entry, member)
    if score then return tonumber(score) end
  end
  return tonumber(self:read("ZSCORE", key, member) or nil)
end

function Tx:zadd(key, score, member)
  if self.plan[key] == nil then
    begin(self, key, "zset", { "ZADD", key, whole(score), member }, 4, member, 3)
    return
  end
  local entry = planned(self, key, "zset")
  local at = places(entry)
  local place = at[member]
  if place then
    entry.command[place] = whole(score)
  else
    local size = entry.size
    entry.command[size + 1], entry.command[size + 2] = whole(score), member
    at[member], entry.size = size + 1, size + 2
  end
  if entry.gone then entry.gone[member] = nil end
end

function Tx:zrem(key, member)
  take(self, key, "zset", member)
end

function Tx:zcard(key)
  refuse_planned(self, key)
  return self:read("ZCARD", key)
end

function Tx:zcount(key, min, max)
  refuse_planned(self, key)
  return self:read("ZCOUNT", key, min, max)
end

function Tx:zrank(key, member)
  refuse_planned(self, key)
  return self:read("ZRANK", key, member) or nil
end

local function pairs_of(flat)
  local list = {}
  for i = 1, #flat, 2 do list[#list + 1] = { member = flat[i], score = tonumber(flat[i + 1]) } end
  return list
end

-- Lowest scores first, after the first `skip`: a list of { member, score }.
function Tx:zlowest(key, min, max, count, skip)
  refuse_planned(self, key)
  return pairs_of(self:read("ZRANGE", key, min, max, "BYSCORE", "LIMIT", text(skip or 0), text(count), "WITHSCORES"))
end

-- Highest scores first, between max and min, after the first `offset`.
function Tx:zhighest(key, max, min, count, offset)
  refuse_planned(self, key)
  return pairs_of(self:read("ZRANGE", key, max, min, "BYSCORE", "REV", "LIMIT", text(offset or 0), text(count), "WITHSCORES"))
end

function Tx:zhead(key)
  refuse_planned(self, key)
  return pairs_of(self:read("ZRANGE", key, "0", "0", "WITHSCORES"))[1]
end

-- Streams --------------------------------------------------------------------------------------

-- Appends an entry; the stream is kept near `max` entries when given.
function Tx:xadd(key, max, field, value)
  local entry = planned(self, key, "stream")
  entry.appended = entry.appended or {}
  entry.appended[#entry.appended + 1] = { max and text(max), field, value }
end

-- Appends an entry under an id the caller chose; it must come after every id the stream ever held.
function Tx:xput(key, id, field, value)
  local entry = planned(self, key, "stream")
  entry.appended = entry.appended or {}
  entry.appended[#entry.appended + 1] = { false, field, value, id }
end

function Tx:xdel(key, id)
  take(self, key, "stream", id)
end

function Tx:xrange(key, from, to, count)
  refuse_planned(self, key)
  return self:read("XRANGE", key, from, to, "COUNT", text(count))
end

-- As xrange, but in steps, so that large entries are not all read at once: stops after `bytes_max`. The second answer says
-- that it stopped there and more may follow.
function Tx:xsome(key, from, to, count, bytes_max)
  local out, bytes, step = {}, 0, 16
  while #out < count do
    local want = math.min(step, count - #out)
    local page = self:xrange(key, from, to, want)
    for _, entry in ipairs(page) do
      out[#out + 1] = entry
      bytes = bytes + #entry[2][2]
    end
    if #page < want then return out, false end
    if bytes > bytes_max then return out, true end
    from = "(" .. page[#page][1]
    step = math.floor((bytes_max - bytes) * #out / math.max(bytes, 1)) + 1
  end
  return out, false
end

function Tx:xtrim(key, id)
  planned(self, key, "stream").trim = { "~", id }
end

-- Removes exactly the entries before the id, counting those appended in this call.
function Tx:xcut(key, id)
  planned(self, key, "stream").trim = { "=", id }
end

function Tx:xlen(key)
  refuse_planned(self, key)
  return self:read("XLEN", key)
end

function Tx:xlast(key)
  refuse_planned(self, key)
  return self:read("XREVRANGE", key, "+", "-", "COUNT", "1")[1]
end

function Tx:exists(key)
  local entry = self.plan[key]
  if entry then return not entry.deleted and entry.size > 2 end
  return self:read("EXISTS", key) == 1
end

-- True when the store holds one of these keys; nothing is planned for them yet.
function Tx:any_exists(list)
  for _, key in ipairs(list) do refuse_planned(self, key) end
  return #list > 0 and self:read("EXISTS", unpack(list)) > 0
end

-- Announcements --------------------------------------------------------------------------------

-- Says something on the partition's channel after the list; the same thing once.
function Tx:announce(...)
  self.messages[#self.messages + 1] = { ... }
end

-- What makes a message another one: of ready queues the best score counts, of timers the earliest.
local function identity(message)
  local kind = message[1]
  if kind == "ready" then return "ready\0" .. message[2] .. "\0" .. message[3], 4 end
  if kind == "timer" then return "timer", 2 end
  return table.concat(message, "\0"), nil
end

-- Takes what a committed plan announced into the list's messages.
local function gather(self)
  local shared = self.shared
  local of_tag = shared.said[self.tag]
  if of_tag == nil then
    of_tag = { at = self.at, messages = {}, known = {} }
    shared.said[self.tag] = of_tag
    shared.tags[#shared.tags + 1] = self.tag
  end
  local messages, known = of_tag.messages, of_tag.known
  for _, message in ipairs(self.messages) do
    local name, least = identity(message)
    local other = known[name]
    if other == nil then
      known[name] = message
      messages[#messages + 1] = message
    elseif least and message[least] < other[least] then
      other[least] = message[least]
    end
  end
end

-- Says what the list announced, once per partition.
function Tx.say(shared)
  for _, tag in ipairs(shared.tags) do
    local of_tag = shared.said[tag]
    if redis.begin then redis.begin(of_tag.at) end
    redis.call("SPUBLISH", "ff:wake:" .. tag, cmsgpack.pack(of_tag.messages))
    if redis.settle then redis.settle("ok") end
  end
end

-- Commit ---------------------------------------------------------------------------------------

local remove = { hash = "HDEL", zset = "ZREM", stream = "XDEL" }

local function appends(list, entry)
  for _, item in ipairs(entry.appended or {}) do
    if item[1] then
      list[#list + 1] = { "XADD", entry.key, "MAXLEN", "~", item[1], "*", item[2], item[3] }
    else
      list[#list + 1] = { "XADD", entry.key, item[4] or "*", item[2], item[3] }
    end
  end
  if entry.trim then list[#list + 1] = { "XTRIM", entry.key, "MINID", entry.trim[1], entry.trim[2] } end
end

local function removal(entry)
  local command
  for _, name in ipairs(entry.gone_order) do
    if entry.gone[name] then
      command = command or { remove[entry.kind], entry.key }
      command[#command + 1] = name
    end
  end
  return command
end

local function commands(self)
  local list, removals, order = {}, nil, self.order
  for i = 1, #order do
    local entry = order[i]
    if entry.deleted then
      removals = removals or {}
      removals[#removals + 1] = entry.command
    else
      if entry.kind == "stream" then
        appends(list, entry)
      elseif entry.size > 2 then
        list[#list + 1] = entry.command
      end
      if entry.gone then
        removals = removals or {}
        removals[#removals + 1] = removal(entry)
      end
    end
  end
  if removals then
    for i = 1, #removals do list[#list + 1] = removals[i] end
  end
  return list
end

-- Touches every key about to be written: in a migrating slot this refuses before the first write.
local function moving(self)
  local keys = {}
  for _, entry in ipairs(self.order) do keys[#keys + 1] = entry.key end
  if #keys == 0 then return nil end
  local answer = redis.pcall("EXISTS", unpack(keys))
  if type(answer) == "table" and answer.err then return answer.err end
end

-- Executes the plan; returns the reason when the partition is moving and nothing was written.
function Tx:commit()
  if #self.order == 0 and #self.messages == 0 then return nil end
  if self.guard then
    local busy = moving(self)
    if busy then
      self:reset()
      return busy
    end
  end
  local list = commands(self)
  self.calls = self.calls + #list
  if redis.commit then
    redis.commit(list)
  else
    local call = redis.call
    for i = 1, #list do call(unpack(list[i])) end
  end
  if #self.messages > 0 then gather(self) end
  self:reset()
end

local function raised(problem)
  if type(problem) == "table" then problem = problem.err or "unknown" end
  return problem
end

local function is_moving(problem)
  return string.find(problem, "TRYAGAIN") or string.find(problem, "ASK ") or string.find(problem, "MOVED ") or string.find(problem, "CLUSTERDOWN")
end

-- Plans one item of a batch and commits it. Answers what `plan` answered; `try_again` when the partition is
-- moving; nil and the message when it raised, with nothing written.
function Tx:item(plan)
  local fine, answer = pcall(plan)
  if not fine then
    self:reset()
    local problem = raised(answer)
    if is_moving(problem) then return { err = "try_again", detail = { problem = problem } } end
    return nil, problem
  end
  if answer.err then
    self:reset()
    return answer
  end
  local busy = self:commit()
  if busy then return { err = "try_again", detail = { problem = busy } } end
  return answer
end

return Tx
