-- The best candidates of a lane in this partition, among the requirement sets a worker covers.
local keys = require "lib.keys"
local limits = require "lib.limits"
local home = require "index.home"
local queues = require "index.queues"
local execution = require "record.execution"
local lane = require "record.lane"

local choose = {}

local eligible_below = "(" .. string.format("%.0f", home.granted_from)

function choose.set_of(tokens)
  local set = {}
  for i = 1, #tokens do set[tokens[i]] = true end
  return set
end

local only_any = { "any" }

local function covered_queues(tx, path, capabilities, admission)
  if next(capabilities) == nil and not admission then return only_any end
  local names = { "any" }
  for _, entry in ipairs(queues.all(tx, path)) do
    if #names >= limits.queues_per_claim_max then break end
    if (admission or not entry.admission) and queues.covered(entry.requires, capabilities) then
      names[#names + 1] = entry.queue
    end
  end
  return names
end

-- The candidates of one queue: a page of ids and scores in turn, as the store has them. `at` is the place of the next
-- one, `passed` how many could not start and still stand at the head, `asking` how many stand there until they are let
-- in or not, `more` that there may be others behind the page.
local function read_page(tx, found, q)
  q.page = tx:zrange(q.key, "-inf", eligible_below, "BYSCORE", "LIMIT", q.passed + q.asking, found.size, "WITHSCORES")
  q.at, q.more = 1, #q.page == 2 * found.size
end

-- Looks at the next page of a queue whose page is used up.
local function next_of(tx, found, q)
  if q.page[q.at] == nil and q.more then read_page(tx, found, q) end
  return q.page[q.at]
end

-- Candidates in order, as many as needed to know the next head. `admission` includes work that needs a grant.
function choose.candidates(tx, copy, capabilities, want, admission)
  local names = covered_queues(tx, copy.path, capabilities, admission)
  local prefers = lane.recall(tx, copy, "prefers") ~= nil and next(capabilities) ~= nil
  local found = { queues = {}, size = want + (prefers and limits.prefer_window or 1), prefers = prefers }
  for i, name in ipairs(names) do
    local q = {
      name = name, key = keys.queue(tx, copy.path, name), passed = 0, asking = 0, admission = queues.admits(name),
    }
    read_page(tx, found, q)
    found.queues[i] = q
  end
  return found
end

-- The names of the queues looked at.
function choose.names(found)
  local names = {}
  for i, q in ipairs(found.queues) do names[i] = q.name end
  return names
end

-- The entry taken last could not start: it stays where it is.
function choose.pass(found, q)
  q.passed = q.passed + 1
end

-- The entry taken last is left to a later claim: it is still the next head of its queue.
function choose.put_back(found, id, q)
  q.at = q.at - 2
end

-- The queue with the best head, and the head's score.
local function best_queue(tx, found)
  local list = found.queues
  if #list == 1 then
    local q = list[1]
    if next_of(tx, found, q) then return q, tonumber(q.page[q.at + 1]) end
    return nil
  end
  local best, least
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
    for at = q.at, math.min(#q.page, q.at + 2 * count - 2), 2 do
      entries[#entries + 1] = { id = q.page[at], score = tonumber(q.page[at + 1]), queue = q, at = at }
    end
  end
  table.sort(entries, function(a, b)
    if a.score ~= b.score then return a.score < b.score end
    return a.id < b.id
  end)
  return entries
end

-- In a lane with preferences: the best liked among the first sixteen of the same priority. It moves to the head of its
-- queue's page.
local function best_liked(tx, found, capabilities)
  local entries = ahead(tx, found, limits.prefer_window)
  local best, most, priority = nil, -1, nil
  for i = 1, math.min(#entries, limits.prefer_window) do
    local rec = execution.load(tx, entries[i].id)
    if rec then
      priority = priority or rec.prio
      if rec.prio ~= priority then break end
      local likes = liking(rec, capabilities)
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
function choose.take(tx, found, copy, capabilities)
  local q
  if found.prefers then q = best_liked(tx, found, capabilities) else q = best_queue(tx, found) end
  if q == nil then return nil end
  q.at = q.at + 2
  return q.page[q.at - 2], q
end

-- After taking: remembers for each queue whether dispatchers will come back for the rest, and answers the next head's
-- score.
function choose.remember_rest(tx, copy, found)
  local list = found.queues
  for i = 1, #list do
    local q = list[i]
    local rest = next_of(tx, found, q)
    lane.remember(tx, copy, "quiet:" .. q.name, rest and "1" or nil)
    if not rest then
      tx:withdraw(copy.path, q.name)
      queues.tidy(tx, copy.path, q.name)
    end
  end
  local _, score = best_queue(tx, found)
  return score
end

return choose
