-- One operation's view of its partition: reads see the plan, writes are planned.
--
-- What finished operations planned waits and goes out together: before something reads a range of a key it touches,
-- when the list turns to another partition, and at the end of the list. What the running operation plans is dropped
-- when it is refused or raises.
--
-- The plan is kept in lists that are used again and again: they hold nothing that outlives a list of operations.
local limits = require "lib.limits"
local places = require "lib.keys"

local redis_call, redis_pcall, commit = redis.call, redis.pcall, redis.commit
local begin_host, settle_host = redis.begin, redis.settle
local pack = cmsgpack.pack
local floor, format, find, sub, concat = math.floor, string.format, string.find, string.sub, table.concat
local pcall, type, unpack, tonumber, error, ipairs, next = pcall, type, unpack, tonumber, error, ipairs, next

-- The one view there is; an operation begins it anew.
local Tx = {}

-- Planned writes are commands as they will be sent: a list of the word, the key and the arguments. A write joins the
-- last command of its key when that has the same word. `before` leads from a command to the one that precedes it for
-- the same key.
local order, count, last, before = {}, 0, {}, {}
-- How many commands finished operations planned; and the commands that the running operation's writes have joined. A
-- SET has its operation's number as a fourth item.
local settled, joined, join_count, number = 0, {}, 0, 0
-- SETs of records that are packed when the operation is done, each with the function that does it.
local open, closers, open_count = {}, {}, 0
-- Records that operations of the list share, by their keys: each is opened once and is as the plan or the store has it.
-- A SET of one is packed when it is written, by its function here.
local shared, sharing = {}, {}
-- True when a planned text was planned anew.
local renewed = false
-- Events of the partition the list is at, in order; how many there are, how many of finished operations, and how many
-- of those whose writes are done.
local events, event_count, event_settled, event_done = {}, 0, 0, 0
-- How many finished operations have writes that are not done, and the places of the first and the last of them in the
-- list.
local owners, first_owner, last_owner = 0, 0, 0
-- What operations owe to other partitions of the same store, until it is paid; how many debts there are, and how many
-- of finished operations.
local debts, debt_count, debt_settled = {}, 0, 0
-- What is owed in case that the writes of an operation fail: what it took elsewhere for something that then does not
-- happen. Each is three entries: who was let in, and the place and the time of its operation.
local hedges, hedge_count, hedge_settled = {}, 0, 0

-- True when the running operation has planned a command of this key.
local function is_own(command)
  for i = settled + 1, count do
    if order[i] == command then return true end
  end
  for i = 1, join_count do
    if joined[i] == command then return true end
  end
  return false
end

local function add(key, command, previous)
  if previous then
    local word = previous[1]
    if word == "DEL" and is_own(previous) then error("write after delete of " .. key) end
    if word == "SET" then renewed = true end
    before[command] = previous
  end
  last[key] = command
  count = count + 1
  order[count] = command
end

-- Takes the last commands out of the plan, down to the first `n`.
local function cut(n)
  for i = count, n + 1, -1 do
    local command = order[i]
    last[command[2]], before[command], order[i] = before[command], nil, nil
  end
  count = n
end

-- How many arguments one write of a command has that others can join.
local width = { ZADD = 2, HSET = 2, ZREM = 1, HDEL = 1, XDEL = 1 }

-- Takes back what the running operation has planned since its last finished item, and answers it as commands. What
-- joined a command of another operation comes first: what the operation planned for the same key afterwards is in a
-- command of its own, which stays whole.
local function take_back()
  local own, joins, taken = {}, {}, {}
  for i = settled + 1, count do own[order[i]] = true end
  for i = join_count, 1, -1 do
    local command = joined[i]
    joined[i] = nil
    if not own[command] then
      local size, word = #command, command[1]
      local write = { word, command[2] }
      for at = size - width[word] + 1, size do
        write[#write + 1] = command[at]
        command[at] = nil
      end
      joins[#joins + 1] = write
    end
  end
  for i = #joins, 1, -1 do taken[#taken + 1] = joins[i] end
  for i = settled + 1, count do taken[#taken + 1] = order[i] end
  cut(settled)
  join_count, open_count = 0, 0
  return taken
end

-- The host's text of a number.
local function text(v)
  if type(v) == "number" then return format("%.0f", v) end
  return v
end

-- Lists ----------------------------------------------------------------------------------------

local append, say

-- Begins a list. `kind` is the class of the function it came by; `marks` is 1 when slots may move and 2 when someone
-- reads events, or their sum. A test adds 4 to have every transition made step by step. `executions`, `budgets` and
-- `quotas` are how many partitions hold them, where operations may visit others.
function Tx:list(kind, marks, executions, budgets, quotas)
  if count > 0 then cut(0) end
  settled, join_count, open_count, owners = 0, 0, 0, 0
  event_count, event_settled, event_done = 0, 0, 0
  debt_count, debt_settled, hedge_count, hedge_settled = 0, 0, 0, 0
  if next(shared) then shared = {} end
  self.executions, self.budgets, self.quotas = executions, budgets, quotas
  local time = redis_call("TIME")
  local sec, usec = tonumber(time[1]), tonumber(time[2])
  self.kind, self.guard, self.listen = kind, marks % 2 == 1, marks % 4 >= 2
  self.step_by_step = LIBRARY.test and marks >= 4
  self.list_now, self.list_now_us = sec * 1000 + floor(usec / 1000), sec * 1000000 + usec
  self.list_now_packed = pack(self.list_now)
  self.route, self.lanes, self.said, self.answers, self.visited, self.visiting = nil, {}, nil, {}, {}, nil
end

-- Turns to another partition: what was planned for the one before is written. False when it could not be.
local function turn(self, route)
  local fine = self:flush()
  append(self)
  local names = places.of(route)
  self.route, self.names, self.tag = route, names, names.tag
  return fine
end

-- Begins the operation at this place of the list. What visits found may be changed by it in its own way.
function Tx:operation(at, route, now)
  if route ~= self.route then
    self.at = nil
    turn(self, route)
  end
  if not self.visiting and next(self.visited) then self.visited = {} end
  number = number + 1
  self.at, self.calls, self.memo, self.messages, self.lost = at, 1, {}, nil, nil
  self.now, self.now_us, self.now_packed = self.list_now, self.list_now_us, self.list_now_packed
  if now and LIBRARY.test then self.now, self.now_us, self.now_packed = now, now * 1000, pack(now) end
  if begin_host then begin_host(at, route) end
end

-- Drops what the operation planned since its last finished item.
function Tx:reset()
  if join_count > 0 or count > settled then take_back() end
  event_count, debt_count, hedge_count = event_settled, debt_settled, hedge_settled
  self.memo, self.messages, self.lanes, self.visited = {}, nil, {}, {}
end

-- What an earlier visit of this list found under a key, and left there: visits come back to the same quota again and
-- again.
function Tx:found(key)
  return self.visiting and self.visited[key] or nil
end

function Tx:keep(key, record)
  if self.visiting then self.visited[key] = record end
end

function Tx:read(...)
  self.calls = self.calls + 1
  return redis_call(...)
end

-- Reads of keys with planned writes -------------------------------------------------------------

-- The value planned for a name of a key: false when it will be gone, nil when no plan says so.
local function planned(command, name)
  while command do
    local word = command[1]
    if word == "DEL" then return false end
    if word == "ZADD" then
      for at = #command, 4, -2 do
        if command[at] == name then return command[at - 1] end
      end
    elseif word == "HSET" then
      for at = #command - 1, 3, -2 do
        if command[at] == name then return command[at + 1] end
      end
    elseif width[word] then
      for at = 3, #command do
        if command[at] == name then return false end
      end
    end
    command = before[command]
  end
end

-- A range of a key is about to be read: what others planned for it goes out first. What this operation planned cannot
-- be seen by a range.
local function ranged(self, key)
  local command = last[key]
  if command == nil then return end
  if is_own(command) then error("range read of a key with planned writes: " .. key) end
  self:give_way()
end

-- True when this operation has planned a write to the key.
function Tx:plans(key)
  local command = last[key]
  return command ~= nil and is_own(command)
end

-- True when a write to the key is planned and not done yet.
function Tx:touches(key)
  return last[key] ~= nil
end

-- The last command this operation planned for a key; those of others go out first.
local function own_of(self, key)
  local command = last[key]
  if command == nil or (is_own(command) and before[command] == nil and join_count == 0) then return command end
  self:give_way()
  return last[key]
end

-- Hashes ---------------------------------------------------------------------------------------

-- All fields of a hash as a table, or nil when there is none.
function Tx:hgetall(key)
  local command = own_of(self, key)
  if command and command[1] == "DEL" then return nil end
  local flat = self:read("HGETALL", key)
  local fields = {}
  for at = 1, #flat, 2 do fields[flat[at]] = flat[at + 1] end
  if command then
    -- From the first to the last.
    local all = {}
    while command do
      table.insert(all, 1, command)
      command = before[command]
    end
    for _, c in ipairs(all) do
      if c[1] == "HSET" then
        for at = 3, #c, 2 do fields[c[at]] = text(c[at + 1]) end
      else
        for at = 3, #c do fields[c[at]] = nil end
      end
    end
  end
  if next(fields) ~= nil then return fields end
end

function Tx:hget(key, field)
  local command = last[key]
  if command then
    local value = planned(command, field)
    if value then return text(value) end
    if value == false then return nil end
  end
  self.calls = self.calls + 1
  return redis_call("HGET", key, field) or nil
end

function Tx:hlen(key)
  ranged(self, key)
  return self:read("HLEN", key)
end

-- Several fields of a hash this operation has planned nothing for, in this order; an absent one is false.
function Tx:hmget(key, fields)
  ranged(self, key)
  return self:read("HMGET", key, unpack(fields))
end

-- One field of a hash.
function Tx:hput(key, field, value)
  local command = last[key]
  if command and command[1] == "HSET" then
    local n = #command
    command[n + 1], command[n + 2] = field, value
    join_count = join_count + 1
    joined[join_count] = command
  else
    add(key, { "HSET", key, field, value }, command)
  end
end

-- `list` is flat: field, value, field, value, …
function Tx:hset(key, list)
  for i = 1, #list, 2 do self:hput(key, list[i], list[i + 1]) end
end

-- Plans the removal of a name from a key.
local function remove(word, key, name)
  local command = last[key]
  if command and command[1] == word then
    command[#command + 1] = name
    join_count = join_count + 1
    joined[join_count] = command
  elseif not (command and command[1] == "DEL") then
    add(key, { word, key, name }, command)
  end
end

function Tx:hdel(key, field)
  remove("HDEL", key, field)
end

-- Strings --------------------------------------------------------------------------------------

-- The text that a planned SET will leave. A record is packed when its operation is done, or when it is asked for.
local function text_of(command)
  if command[1] == "DEL" then return nil end
  local value = command[3]
  if type(value) == "table" then
    local close = sharing[command]
    if close then return close(value) end
    for i = 1, open_count do
      if open[i] == command then return closers[i](value) end
    end
  end
  return value
end

function Tx:get(key)
  local command = last[key]
  if command then return text_of(command) end
  self.calls = self.calls + 1
  return redis_call("GET", key) or nil
end

-- What a record's key holds, or nil. A key that holds anything else than a text is damaged.
function Tx:record(key)
  local command = last[key]
  if command then return text_of(command) end
  self.calls = self.calls + 1
  local stored = redis_pcall("GET", key)
  if type(stored) == "string" then return stored end
  if stored then
    if find(stored.err, "WRONGTYPE", 1, true) then error("CORRUPT " .. key .. " type", 0) end
    error(stored.err, 0)
  end
end

-- What the keys of several records hold, in this order, read at once: false for a key that holds none, is damaged or
-- could not be read with the others.
function Tx:records(list)
  local out, asked, places = {}, {}, {}
  for i = 1, #list do
    local command = last[list[i]]
    if command then
      out[i] = text_of(command) or false
    else
      asked[#asked + 1], places[#places + 1] = list[i], i
    end
  end
  for from = 1, #asked, 1000 do
    local last_asked = math.min(from + 999, #asked)
    self.calls = self.calls + 1
    local found = redis_pcall("MGET", unpack(asked, from, last_asked))
    for i = from, last_asked do out[places[i]] = found[i - from + 1] or false end
  end
  return out
end

function Tx:set(key, value)
  local command = last[key]
  shared[key] = nil
  if command and command[4] == number and command[1] == "SET" then
    command[3], sharing[command] = value, nil
  else
    add(key, { "SET", key, value, number }, command)
  end
end

-- Plans a record; `close` packs it when the operation is done, however often it is changed until then.
function Tx:put(key, record, close)
  local command = last[key]
  if command and command[3] == record then return end
  shared[key] = nil
  command = { "SET", key, record, number }
  add(key, command, last[key])
  open_count = open_count + 1
  open[open_count], closers[open_count] = command, close
end

-- The record that operations of the list share under a key.
function Tx:shared(key)
  return shared[key]
end

-- Plans a record as all operations of the list share it. **Invariant**: an operation that changes one reads nothing
-- afterwards and is not refused, since its changes cannot be taken back.
function Tx:share(key, record, close)
  shared[key] = record
  local command = last[key]
  if command and command[3] == record then return end
  local fresh = { "SET", key, record, number }
  add(key, fresh, command)
  sharing[fresh] = close
end

-- Removes a whole key, whatever it holds.
function Tx:del(key)
  local command = last[key]
  shared[key] = nil
  if not (command and command[1] == "DEL") then add(key, { "DEL", key }, command) end
end

-- Sorted sets ----------------------------------------------------------------------------------

function Tx:zscore(key, member)
  local command = last[key]
  if command then
    local score = planned(command, member)
    if score then return score end
    if score == false then return nil end
  end
  return tonumber(self:read("ZSCORE", key, member) or nil)
end

-- The scores of several members, in this order; an absent one is false.
function Tx:zscores(key, members)
  local scores = {}
  if last[key] or #members == 0 then
    for i = 1, #members do scores[i] = self:zscore(key, members[i]) or false end
    return scores
  end
  local found = self:read("ZMSCORE", key, unpack(members))
  for i = 1, #members do scores[i] = found[i] and tonumber(found[i]) or false end
  return scores
end

function Tx:zadd(key, score, member)
  if score % 1 ~= 0 then error("a score must be an integer, got " .. score) end
  local command = last[key]
  if command and command[1] == "ZADD" then
    local n = #command
    command[n + 1], command[n + 2] = score, member
    join_count = join_count + 1
    joined[join_count] = command
  else
    add(key, { "ZADD", key, score, member }, command)
  end
end

function Tx:zrem(key, member)
  remove("ZREM", key, member)
end

function Tx:zcard(key)
  ranged(self, key)
  return self:read("ZCARD", key)
end

function Tx:zcount(key, min, max)
  ranged(self, key)
  return self:read("ZCOUNT", key, min, max)
end

function Tx:zrank(key, member)
  ranged(self, key)
  return self:read("ZRANK", key, member) or nil
end

-- The number of entries as stored, whatever this operation plans for them.
function Tx:zstored(key)
  if last[key] then self:give_way() end
  return self:read("ZCARD", key)
end

-- Members between two positions, as the store answers them.
function Tx:zrange(key, ...)
  if last[key] then ranged(self, key) end
  self.calls = self.calls + 1
  return redis_call("ZRANGE", key, ...)
end

local function pairs_of(flat)
  local list = {}
  for i = 1, #flat, 2 do list[#list + 1] = { member = flat[i], score = tonumber(flat[i + 1]) } end
  return list
end

-- Lowest scores first, after the first `skip`: a list of { member, score }.
function Tx:zlowest(key, min, max, limit, skip)
  return pairs_of(self:zrange(key, min, max, "BYSCORE", "LIMIT", skip or 0, limit, "WITHSCORES"))
end

-- Highest scores first, between max and min, after the first `offset`.
function Tx:zhighest(key, max, min, limit, offset)
  return pairs_of(self:zrange(key, max, min, "BYSCORE", "REV", "LIMIT", offset or 0, limit, "WITHSCORES"))
end

function Tx:zhead(key)
  return pairs_of(self:zrange(key, 0, 0, "WITHSCORES"))[1]
end

-- Streams --------------------------------------------------------------------------------------

-- Appends an entry.
function Tx:xadd(key, field, value)
  add(key, { "XADD", key, "*", field, value }, last[key])
end

-- Appends an entry under an id the caller chose; it must come after every id the stream ever held.
function Tx:xput(key, id, field, value)
  add(key, { "XADD", key, id, field, value }, last[key])
end

function Tx:xdel(key, id)
  remove("XDEL", key, id)
end

function Tx:xrange(key, from, to, limit)
  ranged(self, key)
  return self:read("XRANGE", key, from, to, "COUNT", limit)
end

-- As xrange, but in steps, so that large entries are not all read at once: stops after `bytes_max`. The second answer
-- says that it stopped there and more may follow.
function Tx:xsome(key, from, to, limit, bytes_max)
  local out, bytes, step = {}, 0, 16
  while #out < limit do
    local want = math.min(step, limit - #out)
    local page = self:xrange(key, from, to, want)
    for _, entry in ipairs(page) do
      out[#out + 1] = entry
      bytes = bytes + #entry[2][2]
    end
    if #page < want then return out, false end
    if bytes > bytes_max then return out, true end
    from = "(" .. page[#page][1]
    step = floor((bytes_max - bytes) * #out / math.max(bytes, 1)) + 1
  end
  return out, false
end

function Tx:xtrim(key, id)
  add(key, { "XTRIM", key, "MINID", "~", id }, last[key])
end

-- Removes exactly the entries before the id, counting those appended in this call.
function Tx:xcut(key, id)
  add(key, { "XTRIM", key, "MINID", "=", id }, last[key])
end

function Tx:xlen(key)
  ranged(self, key)
  return self:read("XLEN", key)
end

function Tx:xlast(key)
  ranged(self, key)
  return self:read("XREVRANGE", key, "+", "-", "COUNT", 1)[1]
end

function Tx:exists(key)
  local command = own_of(self, key)
  if command then return command[1] ~= "DEL" end
  return self:read("EXISTS", key) == 1
end

-- True when the store holds one of these keys; nothing is planned for them yet.
function Tx:any_exists(list)
  for _, key in ipairs(list) do ranged(self, key) end
  return #list > 0 and self:read("EXISTS", unpack(list)) > 0
end

-- Announcements and events ---------------------------------------------------------------------

-- Says something on the partition's channel after the list; the same thing once.
function Tx:announce(...)
  local messages = self.messages
  if messages == nil then
    messages = {}
    self.messages = messages
  end
  messages[#messages + 1] = { ... }
end

-- What the list announces to the partition it is at.
local function said_of(self, at)
  local said = self.said
  if said == nil then
    said = {}
    self.said = said
  end
  local of_tag = said[self.tag]
  if of_tag == nil then
    of_tag = { at = at, tag = self.tag, messages = {}, known = {} }
    said[self.tag], said[#said + 1] = of_tag, of_tag
  end
  return of_tag
end

-- What makes a message another one: of ready queues the best score counts, of timers the earliest.
local function identity(message)
  local kind = message[1]
  if kind == "ready" or kind == "taken" then return "ready\0" .. message[2] .. "\0" .. message[3], 4 end
  if kind == "timer" then return "timer", 2 end
  return concat(message, "\0"), nil
end

-- Says nothing of a ready queue after all: what came to it in this list was taken in this list.
function Tx:withdraw(path, queue)
  if self.said then self:announce("taken", path, queue) end
end

-- Takes what a finished operation announced into the list's messages.
local function gather(self)
  local of_tag = said_of(self, self.at)
  local messages, known = of_tag.messages, of_tag.known
  for _, message in ipairs(self.messages) do
    local name, least = identity(message)
    local other = known[name]
    if message[1] == "taken" then
      known[name] = nil
      for i = 1, other and #messages or 0 do
        if messages[i] == other then
          table.remove(messages, i)
          break
        end
      end
    elseif other == nil then
      known[name] = message
      messages[#messages + 1] = message
    elseif least and message[least] < other[least] then
      other[least] = message[least]
    end
  end
  self.messages = nil
end

-- Says what the list announced, once per partition.
function say(self)
  for _, of_tag in ipairs(self.said) do
    if #of_tag.messages > 0 then
      if begin_host then begin_host(of_tag.at, "ff:" .. of_tag.tag) end
      redis_call("SPUBLISH", "ff:wake:" .. of_tag.tag, pack(of_tag.messages))
      if settle_host then settle_host("ok") end
    end
  end
end

-- An event for the partition's stream, packed.
function Tx:note(event)
  event_count = event_count + 1
  events[event_count] = event
end

-- Events beyond those that are kept leave, a few at a time. `newest` is the number of the last one.
local function drop_oldest(key, newest)
  local first = redis_call("XRANGE", key, "-", "+", "COUNT", 1)[1]
  local beyond = first and newest - limits.events_max - tonumber(first[2][1]) + 1 or 0
  if beyond <= 0 then return end
  local entries = redis_call("XRANGE", key, "-", "+", "COUNT", math.min(beyond, 128) + 1)
  local keep
  for i = 2, #entries do
    if tonumber(entries[i][2][1]) > newest - limits.events_max + 1 then break end
    keep = entries[i][1]
  end
  if keep then redis_call("XTRIM", key, "MINID", "=", keep) end
end

-- Appends the events of the partition in as few entries as they fit into. The name of an entry's field is the number of
-- its first event.
function append(self)
  local n = event_done
  if n == 0 then return end
  local names = self.names
  if begin_host then begin_host(self.event_owner, self.route) end
  local newest = redis_call("INCRBY", names.event_count, n)
  local first = newest - n + 1
  if floor(newest / 64) > floor((first - 1) / 64) then drop_oldest(names.events, newest) end
  if n == 1 then
    redis_call("XADD", names.events, "MAXLEN", "~", limits.events_max, "*", first, events[1])
  else
    local from, bytes = 1, 0
    for i = 1, n do
      bytes = bytes + #events[i]
      local following = i < n and events[i + 1]
      if not following or i - from + 1 == limits.events_per_entry_max
        or bytes + #following > limits.event_entry_bytes_max
      then
        redis_call(
          "XADD", names.events, "MAXLEN", "~", limits.events_max, "*", first + from - 1, concat(events, "", from, i)
        )
        from, bytes = i + 1, 0
      end
    end
  end
  if settle_host then settle_host("ok") end
  for i = 1, n do events[i] = false end
  event_count, event_settled, event_done = 0, 0, 0
  if self.listen then
    local messages = said_of(self, self.event_owner).messages
    messages[#messages + 1] = { "events" }
  end
end

-- Writing ---------------------------------------------------------------------------------------

-- Touches every key about to be written: in a migrating slot this refuses before the first write.
local function moving(self)
  local keys = {}
  if event_settled > event_done then keys = { self.names.events, self.names.event_count } end
  for i = 1, count do
    local command = order[i]
    if before[command] == nil then keys[#keys + 1] = command[2] end
  end
  for from = 1, #keys, 1000 do
    local answer = redis_pcall("EXISTS", unpack(keys, from, math.min(from + 999, #keys)))
    if type(answer) == "table" and answer.err then return answer.err end
  end
end

-- Of several texts for a key only the last one is sent, and none before its removal.
local function drop_renewed()
  for i = count, 1, -1 do
    local command = order[i]
    local word = command[1]
    if word == "SET" or word == "DEL" then
      local previous = before[command]
      while previous and previous[1] == "SET" do
        local other = before[previous]
        previous[1], before[previous], sharing[previous], before[command] = false, nil, nil, other
        previous = other
      end
    end
  end
  local n = 0
  for i = 1, count do
    local command = order[i]
    order[i] = nil
    if command[1] then
      n = n + 1
      order[n] = command
    end
  end
  count, renewed = n, false
end

-- Sends one command; one with very many arguments in parts.
local function send_one(command)
  local size = #command
  if size <= 1000 then return redis_call(unpack(command, 1, size)) end
  for from = 3, size, 996 do
    redis_call(command[1], command[2], unpack(command, from, math.min(from + 995, size)))
  end
end

-- Sends all commands. Texts are set together, first of all: but for keys that other commands write too.
local function send()
  if commit then
    for i = 1, count do
      if order[i][1] == "SET" then order[i][4] = nil end
    end
    commit(order)
    return
  end
  local sets = 0
  for i = 1, count do
    local command = order[i]
    if command[1] == "SET" and before[command] == nil and last[command[2]] == command then sets = sets + 1 end
  end
  local all, n = sets > 1 and {} or nil, 0
  for i = 1, count do
    local command = order[i]
    if command[1] == "SET" and before[command] == nil and last[command[2]] == command then
      if all then
        all[n + 1], all[n + 2] = command[2], command[3]
        n = n + 2
        if n >= 1000 then
          redis_call("MSET", unpack(all, 1, n))
          all, n = {}, 0
        end
      else
        redis_call("SET", command[2], command[3])
      end
    end
  end
  if n > 0 then redis_call("MSET", unpack(all, 1, n)) end
  for i = 1, count do
    local command = order[i]
    local word = command[1]
    if word ~= "SET" then
      local size = #command
      if size == 4 then
        redis_call(word, command[2], command[3], command[4])
      elseif size == 3 then
        redis_call(word, command[2], command[3])
      else
        send_one(command)
      end
    elseif before[command] or last[command[2]] ~= command then
      redis_call("SET", command[2], command[3])
    end
  end
end

-- What raised, as text.
local function raised(problem)
  if type(problem) == "table" then problem = problem.err or "unknown" end
  return problem
end

-- What finished operations planned could not be written: each of them answers this instead.
local function lose(self, answer)
  if self.paying then
    event_count, event_settled = event_done, event_done
    return
  end
  for at = first_owner, last_owner do
    if at ~= self.at then self.answers[at] = answer end
  end
  for i = 1, debt_settled do
    local at = debts[i].at
    if at >= first_owner and at <= last_owner then debts[i].void = true end
  end
  -- What the running operation owes is dropped with it.
  debt_count = debt_settled
  for i = 1, hedge_settled, 3 do
    local one, at, now = hedges[i], hedges[i + 1], hedges[i + 2]
    for _, set in ipairs(one.entered) do
      debt_count = debt_count + 1
      debts[debt_count] = {
        what = "release", set = set, execution_id = one.execution_id, holder_id = one.holder_id, unused = true,
        at = at, home = self.route, now = now,
      }
    end
  end
  debt_settled = debt_count
  event_count, event_settled = event_done, event_done
  self.lost = answer
end

-- Writes what finished operations planned. False when it could not be written. Nothing else is in the plan.
function Tx:flush()
  if count == 0 and event_settled == event_done then return true end
  if renewed then drop_renewed() end
  for command, close in next, sharing do command[3], sharing[command] = close(command[3]), nil end
  local lost
  if self.guard then
    local busy = moving(self)
    if busy then lost = pack(false, "try_again", { problem = busy }) end
  end
  if lost == nil then
    if begin_host then begin_host(first_owner, self.route) end
    local fine, problem = pcall(send)
    if settle_host then settle_host(fine and "ok" or "raised") end
    if not fine then lost = pack(nil, "raised", raised(problem)) end
  end
  for i = 1, count do
    local command = order[i]
    last[command[2]], before[command], order[i] = nil, nil, nil
  end
  count, settled, owners = 0, 0, 0
  if lost then
    lose(self, lost)
    self.visited, shared = {}, {}
  end
  hedge_count, hedge_settled = 0, 0
  if lost then return false end
  if event_done == 0 then self.event_owner = first_owner end
  event_done = event_settled
  return true
end

-- A flush in the middle of an operation. When it fails the operation ends: it may have seen what was lost.
function Tx:give_way()
  local own, closing = nil, {}
  if join_count > 0 or count > settled then
    for i = 1, open_count do closing[open[i]] = closers[i] end
    own = take_back()
  end
  if settle_host then settle_host("ok") end
  local fine = self:flush()
  if begin_host then begin_host(self.at, self.route) end
  if not fine then error("what the operations before it planned could not be written", 0) end
  for _, command in ipairs(own or {}) do
    add(command[2], command, last[command[2]])
    if closing[command] then
      open_count = open_count + 1
      open[open_count], closers[open_count] = command, closing[command]
    end
  end
end

-- The running operation, or an item of it, is done: what it planned is written with the next flush.
function Tx:finish()
  if self.messages then gather(self) end
  debt_settled, hedge_settled = debt_count, hedge_count
  if count == settled and join_count == 0 and event_count == event_settled then return end
  for i = 1, open_count do
    local command = open[i]
    command[3], open[i] = closers[i](command[3]), nil
  end
  self.calls = self.calls + count - settled + join_count
  local at = self.at
  if owners == 0 then first_owner = at end
  if owners == 0 or last_owner ~= at then owners = owners + 1 end
  last_owner, settled, join_count, open_count, event_settled = at, count, 0, 0, event_count
  number = number + 1
end

-- Other partitions of the store -----------------------------------------------------------------

local unwritten = "what was planned before could not be written"

-- Where something is, by the seed at the end of its id.
local function seated(family, id, partitions)
  return "ff:{" .. family .. ":" .. format("%.0f", tonumber(sub(id, 33), 16) % partitions) .. "}"
end

function Tx:route_of_execution(id) return seated("p", id, self.executions) end
function Tx:route_of_quota(id) return seated("q", id, self.quotas) end
function Tx:route_of_budget(id) return seated("b", id, self.budgets) end

-- Runs `work(tx, ...)` in another partition, as an operation of its own: what it plans is written before this returns.
-- The running operation has planned nothing but finished items. Answers what the work answers, or nil when it raised.
function Tx:visit(route, work, ...)
  local home, messages = self.route, self.messages
  if settle_host then settle_host("ok") end
  local fine, answer = turn(self, route), nil
  self.memo, self.messages = {}, nil
  if begin_host then begin_host(self.at, route) end
  if not fine then error(unwritten, 0) end
  self.visiting = true
  fine, answer = pcall(work, self, ...)
  if fine then self:finish() else self:reset() end
  self.visiting = nil
  if settle_host then settle_host(fine and "ok" or "raised") end
  local written = turn(self, home)
  self.memo, self.messages = {}, messages
  if begin_host then begin_host(self.at, home) end
  if not written then error(unwritten, 0) end
  if fine then return answer end
end

-- The running operation owes something to another partition of the same store: a set the release of a holder that
-- perhaps never ran (`release`), or an execution the call of a quota (`call`).
function Tx:owe(what, set, execution_id, holder_id, unused)
  debt_count = debt_count + 1
  -- Few owe what was never used, or turn out to owe nothing (`void`).
  local debt = {
    what = what, set = set, execution_id = execution_id, holder_id = holder_id, at = self.at, home = self.route,
    now = self.now, key_digest = nil,
  }
  if unused then debt.unused = true end
  debts[debt_count] = debt
end

-- The sets that `one` has `entered` let it in, and it starts now: they get it back if that cannot be written.
function Tx:hedge(one)
  hedges[hedge_count + 1], hedges[hedge_count + 2], hedges[hedge_count + 3] = one, self.at, self.now
  hedge_count = hedge_count + 3
end

-- How much finished operations owe.
function Tx:owing() return debt_settled end

-- Writes what every operation so far has planned: none is running.
function Tx:flush_all()
  self.at = nil
  self:flush()
end

-- The debts of finished operations whose writes are done. From here on they are the caller's to pay.
function Tx:settle_debts()
  local list, n = {}, 0
  self:flush_all()
  for i = 1, debt_settled do
    local debt = debts[i]
    if not debt.void then
      n = n + 1
      list[n] = debt
    end
    debts[i] = false
  end
  debt_count, debt_settled = 0, 0
  return list
end

-- Runs `work(tx, ...)` in a partition on behalf of an operation that was answered. False when it raised, or could not
-- be written.
function Tx:pay(route, debt, work, ...)
  self.visiting, self.paying = true, true
  self:operation(debt.at, route, debt.now)
  local fine = pcall(work, self, ...)
  if fine then self:finish() else self:reset() end
  if settle_host then settle_host(fine and "ok" or "raised") end
  fine = self:flush() and fine
  self.visiting, self.paying, self.at = nil, nil, nil
  return fine
end

-- Ends the list: the rest is written, and each partition gets its events and says what there is to say. Only a damaged
-- stream refuses events; every operation of the list says so then, since no raise may leave it.
function Tx:close()
  self.at = nil
  self:flush()
  local fine, problem = pcall(append, self)
  if not fine then
    if settle_host then settle_host("raised") end
    problem = pack(nil, "raised", raised(problem))
    for at = 1, #self.answers do self.answers[at] = problem end
  end
  if self.said then say(self) end
end

local function is_moving(problem)
  return find(problem, "TRYAGAIN") or find(problem, "ASK ") or find(problem, "MOVED ") or find(problem, "CLUSTERDOWN")
end

-- Plans one item of a batch: `item(...)`. Answers what it answered; `try_again` when the partition is moving; nil and
-- the message when it raised. Of one that is refused or raises nothing stays planned.
function Tx:item(item, ...)
  local fine, answer = pcall(item, ...)
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
  self:finish()
  self.memo = {}
  return answer
end

return Tx
