-- The best candidates of a lane in this partition, among the kinds and requirement sets a worker takes.
--
-- Queues are looked at in the order of their heads, and only as long as one of them may hold something better than
-- what was found: with thousands of them a claim reads those it takes from and no other.
local keys = require "lib.keys"
local limits = require "lib.limits"
local queues = require "index.queues"
local execution = require "record.execution"
local lane = require "record.lane"

local choose = {}

local eligible_below = "(" .. string.format("%.0f", limits.granted_from)
local ceil, min = math.ceil, math.min

function choose.set_of(tokens)
  local set = {}
  for i = 1, #tokens do set[tokens[i]] = true end
  return set
end

-- The sets of kinds that workers sent lately, by their packed form: a worker sends the same ones with every claim.
local kind_sets, kind_sets_kept = {}, 0

local function kinds_of(packed)
  local known = kind_sets[packed]
  if known then return known end
  local fine, list = pcall(cmsgpack.unpack, packed)
  if not fine or type(list) ~= "table" then return nil end
  if kind_sets_kept >= 64 then kind_sets, kind_sets_kept = {}, 0 end
  kind_sets_kept = kind_sets_kept + 1
  known = { list = list, set = choose.set_of(list) }
  kind_sets[packed] = known
  return known
end

-- What a worker takes: those kinds, or all, whose requirements its capabilities cover. `kinds` is a packed list.
function choose.worker(capabilities, kinds)
  local worker = { capabilities = choose.set_of(capabilities), tokens = capabilities, plain = #capabilities == 0 }
  if kinds and kinds ~= "" then
    local known = kinds_of(kinds)
    worker.kinds, worker.kind_list = known and known.set or {}, known and known.list or {}
  end
  return worker
end

function choose.takes_kind(worker, kind)
  return worker.kinds == nil or worker.kinds[kind] ~= nil
end

-- Queues --------------------------------------------------------------------------------------

-- The candidates of one queue: a page of ids and scores in turn, as the store has them. `at` is the place of the next
-- one, `passed` how many could not start and still stand at the head, `asking` how many stand there until they are let
-- in or not, `more` that there may be others behind the page.
local function read_page(tx, q, size)
  q.page = tx:zrange(q.key, "-inf", eligible_below, "BYSCORE", "LIMIT", q.passed + q.asking, size, "WITHSCORES")
  q.at, q.more = 1, #q.page == 2 * size
end

-- Looks at the next page of a queue whose page is used up.
local function next_of(tx, found, q)
  if q.page[q.at] == nil and q.more then read_page(tx, q, found.size) end
  return q.page[q.at]
end

-- Looks at a queue; `head` is the score it has among the heads, and nothing for the main one.
local function open(tx, found, name, head, size)
  local q = {
    name = name, key = keys.queue_named(tx, found.path, name), passed = 0, asking = 0,
    admission = queues.admits(name), head = head, taken = 0,
  }
  read_page(tx, q, size)
  found.queues[#found.queues + 1] = q
  return q
end

-- Keeps those of a page of names and heads that the worker takes.
local function keep_taken(tx, found, page)
  local worker, asked, at = found.worker, {}, {}
  local list = found.heads
  for i = 1, #page, 2 do
    local name = page[i]
    local class, kind = queues.parts(name)
    if not found.looked[name] and choose.takes_kind(worker, kind) and (found.admission or not queues.admits(name)) then
      if queues.plain(class) then
        list[#list + 1] = { name, tonumber(page[i + 1]) }
      elseif not worker.plain then
        asked[#asked + 1] = name
        list[#list + 1] = { name, tonumber(page[i + 1]) }
        at[#asked] = #list
      end
    end
  end
  if #asked == 0 then return end
  for i, entry in ipairs(queues.several(tx, found.path, asked)) do
    if not entry or not queues.covered(entry.requires, worker.capabilities) then list[at[i]] = false end
  end
  local n = 0
  for i = 1, #list do
    local one = list[i]
    list[i] = nil
    if one then
      n = n + 1
      list[n] = one
    end
  end
end

-- Every name that a queue of what the worker takes can have; nil when they are too many to look for.
local function names_of(worker, admission)
  local kinds = worker.kind_list
  if kinds == nil or #worker.tokens > 7 then return nil end
  local tokens, seen = {}, {}
  for _, token in ipairs(worker.tokens) do
    if not seen[token] then tokens[#tokens + 1] = token end
    seen[token] = true
  end
  table.sort(tokens)
  local sets = { {} }
  for _, token in ipairs(tokens) do
    for i = 1, #sets do
      local more = { unpack(sets[i]) }
      more[#more + 1] = token
      sets[#sets + 1] = more
    end
  end
  if #kinds * #sets * (admission and 2 or 1) > limits.queues_named_max then return nil end
  local names = {}
  for _, set in ipairs(sets) do
    for _, kind in ipairs(kinds) do
      names[#names + 1] = queues.name(queues.class(set, false), kind)
      if admission then names[#names + 1] = queues.name(queues.class(set, true), kind) end
    end
  end
  return names
end

local function by_head(a, b)
  if a[2] ~= b[2] then return a[2] < b[2] end
  return a[1] < b[1]
end

-- Others stand in front of what the worker takes: its queues are asked for by their names.
local function look_by_name(tx, found, names)
  local page = {}
  for i, score in ipairs(tx:zscores(keys.heads(tx, found.path), names)) do
    if score and score < limits.granted_from then page[#page + 1], page[#page + 2] = names[i], score end
  end
  found.heads, found.at, found.all_read = {}, 1, true
  keep_taken(tx, found, page)
  table.sort(found.heads, by_head)
end

-- Reads the next heads, as long as none that the worker takes is known.
local function read_heads(tx, found)
  while found.heads[found.at] == nil and not found.all_read do
    local names = found.read > 0 and not found.named and names_of(found.worker, found.admission)
    found.named = found.named or found.read > 0
    if names then
      look_by_name(tx, found, names)
    else
      local page = tx:zrange(keys.heads(tx, found.path), "-inf", eligible_below, "BYSCORE", "LIMIT", found.read,
        found.heads_size, "WITHSCORES")
      found.read = found.read + found.heads_size
      found.all_read = #page < 2 * found.heads_size or found.read >= limits.heads_looks_max
      found.heads_size = min(2 * found.heads_size, limits.heads_page_max)
      keep_taken(tx, found, page)
    end
  end
end

-- The head of the best queue that was not looked at yet, or nil.
local function next_head(tx, found)
  if found.heads[found.at] == nil then read_heads(tx, found) end
  local one = found.heads[found.at]
  return one and one[2]
end

-- Looks at the best queue that was not looked at yet. Of each of many queues a short page is read.
local function open_next(tx, found)
  local one, known = found.heads[found.at], #found.heads
  found.at = found.at + 1
  found.looked[one[1]] = true
  open(tx, found, one[1], one[2], min(found.size, ceil(2 * found.size / known) + 1))
end

-- Candidates in order, as many as needed to know the next head. `admission` includes work that needs a grant.
function choose.candidates(tx, copy, worker, want, admission)
  local prefers = lane.recall(tx, copy, "prefers") ~= nil and not worker.plain
  local others = lane.recall(tx, copy, "others") ~= nil
  local found = {
    path = copy.path, worker = worker, admission = admission, queues = {}, prefers = prefers,
    size = want + (prefers and limits.prefer_window or 1), heads = {}, at = 1, read = 0, all_read = not others,
    heads_size = want + limits.heads_page_min, looked = {}, named = false,
  }
  local main = lane.recall(tx, copy, "main")
  if main then
    found.looked[main] = true
    local class, kind = queues.parts(main)
    local takes = choose.takes_kind(worker, kind) and (admission or not queues.admits(main))
    if takes and not queues.plain(class) then
      local entry = not worker.plain and queues.get(tx, copy.path, main)
      takes = entry and queues.covered(entry.requires, worker.capabilities)
    end
    if takes then open(tx, found, main, nil, found.size) end
  end
  return found
end

-- The names of the queues that the worker takes, up to a number of them, whether or not there is eligible work.
function choose.names(tx, copy, worker)
  local page = {}
  for _, name in ipairs(queues.page(tx, copy.path, 0, limits.queues_per_grant_max)) do
    page[#page + 1], page[#page + 2] = name, 0
  end
  local found = { path = copy.path, worker = worker, admission = true, heads = {}, looked = {} }
  keep_taken(tx, found, page)
  local names = {}
  for i, one in ipairs(found.heads) do names[i] = one[1] end
  return names
end

-- Candidates ----------------------------------------------------------------------------------

-- The entry taken last could not start: it stays where it is.
function choose.pass(found, q)
  q.passed = q.passed + 1
end

-- The entry taken last is left to a later claim: it is still the next head of its queue.
function choose.put_back(found, id, q)
  q.at = q.at - 2
end

-- The best head among the queues that were looked at.
local function best_opened(tx, found)
  local list, best, least = found.queues, nil, nil
  for i = 1, #list do
    local q = list[i]
    local id = next_of(tx, found, q)
    if id then
      local score = tonumber(q.page[q.at + 1])
      if best == nil or score < least or (score == least and id < best.page[best.at]) then best, least = q, score end
    end
  end
  return best, least
end

-- The queue with the best head, and the head's score.
local function best_queue(tx, found)
  while true do
    local best, least = best_opened(tx, found)
    local head = next_head(tx, found)
    if head == nil or (best and least < head) then return best, least end
    open_next(tx, found)
  end
end

local function liking(rec, capabilities)
  local n = 0
  for _, token in ipairs(rec.prefers or {}) do
    if capabilities[token] then n = n + 1 end
  end
  return n
end

-- The entries ahead, up to `count`, in order: { id, score, queue, place }.
local function ahead(tx, found, count)
  local entries = {}
  for _, q in ipairs(found.queues) do
    next_of(tx, found, q)
    for at = q.at, min(#q.page, q.at + 2 * count - 2), 2 do
      entries[#entries + 1] = { id = q.page[at], score = tonumber(q.page[at + 1]), queue = q, at = at }
    end
  end
  table.sort(entries, function(a, b)
    if a.score ~= b.score then return a.score < b.score end
    return a.id < b.id
  end)
  return entries
end

-- The same among all queues the worker takes.
local function first_of_all(tx, found, count)
  while true do
    local entries = ahead(tx, found, count)
    local head = next_head(tx, found)
    if head == nil or (entries[count] and entries[count].score < head) then return entries end
    local one = found.heads[found.at]
    found.at = found.at + 1
    found.looked[one[1]] = true
    open(tx, found, one[1], one[2], found.size)
  end
end

-- In a lane with preferences: the best liked among the first sixteen of the same priority. It moves to the head of its
-- queue's page.
local function best_liked(tx, found)
  local entries = first_of_all(tx, found, limits.prefer_window)
  local best, most, priority = nil, -1, nil
  for i = 1, min(#entries, limits.prefer_window) do
    local rec = execution.load(tx, entries[i].id)
    if rec then
      priority = priority or rec.prio
      if rec.prio ~= priority then break end
      local likes = liking(rec, found.worker.capabilities)
      if likes > most then best, most = entries[i], likes end
    end
  end
  best = best or entries[1]
  if best == nil then return nil end
  local q, page = best.queue, best.queue.page
  for at = best.at, q.at + 2, -2 do
    page[at], page[at + 1], page[at - 2], page[at - 1] = page[at - 2], page[at - 1], page[at], page[at + 1]
  end
  return q
end

-- Takes the next candidate: its id and its queue, or nil when there is none.
function choose.take(tx, found)
  local q
  if found.prefers then q = best_liked(tx, found) else q = best_queue(tx, found) end
  if q == nil then return nil end
  q.at, q.taken = q.at + 2, q.taken + 1
  return q.page[q.at - 2], q
end

-- What is left ----------------------------------------------------------------------------------

-- True when nothing of the lane is eligible any more, whoever takes it, but for what could not start here. `head` is
-- the next one of what this worker takes. Heads of queues whose work has gone are looked behind, a few of them.
function choose.nothing_left(tx, found, head)
  if head then return false end
  local names, opened, main = {}, {}, queues.main(tx, found.path)
  for _, q in ipairs(found.queues) do opened[q.name] = true end
  if main then names[1] = main end
  local count = #found.queues + limits.heads_page_min
  local page = tx:zrange(keys.heads(tx, found.path), "-inf", eligible_below, "BYSCORE", "LIMIT", 0, count)
  if #page == count then return false end
  for _, name in ipairs(page) do names[#names + 1] = name end
  for _, name in ipairs(names) do
    if not opened[name] and tx:zcount(keys.queue_named(tx, found.path, name), "-inf", eligible_below) > 0 then
      return false
    end
  end
  return true
end

-- The score of the next candidate, or nil when there is none.
function choose.next_score(tx, found)
  local _, score = best_queue(tx, found)
  return score
end

-- After taking: remembers for each queue that was looked at whether dispatchers will come back for the rest, and where
-- it stands among the heads now.
function choose.remember_rest(tx, copy, found)
  local list, names = found.queues, {}
  for i = 1, #list do names[i] = list[i].name end
  queues.prepare_quiet(tx, copy, names)
  for i = 1, #list do
    local q = list[i]
    local rest = next_of(tx, found, q)
    queues.set_quiet(tx, copy, q.name, rest)
    if not rest then tx:withdraw(copy.path, q.name) end
    -- Those that could not start stand in front of the rest.
    if q.head and q.passed == 0 then
      local head = rest and tonumber(q.page[q.at + 1]) or queues.idle
      if head ~= q.head then queues.set_head(tx, copy.path, q.name, head) end
      if not rest and q.taken == 0 then queues.tidy(tx, copy.path, q.name) end
    end
  end
end

return choose
