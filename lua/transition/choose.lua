-- The best candidates of a lane in this partition, among the requirement sets a worker covers.
local keys = require "lib.keys"
local limits = require "lib.limits"
local home = require "index.home"
local queues = require "index.queues"
local execution = require "record.execution"

local choose = {}

function choose.set_of(tokens)
  local set = {}
  for _, token in ipairs(tokens) do set[token] = true end
  return set
end

local function covered_queues(tx, path, capabilities, admission)
  local names = { "any" }
  if next(capabilities) == nil and not admission then return names end
  for _, entry in ipairs(queues.all(tx, path)) do
    if #names >= limits.queues_per_claim_max then break end
    if (admission or not entry.admission) and queues.covered(entry.requires, capabilities) then names[#names + 1] = entry.queue end
  end
  return names
end

local function before(a, b)
  if a.score ~= b.score then return a.score < b.score end
  return a.id < b.id
end

-- Looks at the next page of every queue whose page is used up and was full. What was taken has left the queue; what was
-- passed over still stands at its head.
local function refill(tx, found)
  local fresh = false
  for _, name in ipairs(found.queues) do
    if found.left[name] == 0 then
      local page = tx:zlowest(keys.queue(tx, found.path, name), "-inf", "(" .. string.format("%.0f", home.granted_from), found.page, found.passed[name])
      for _, item in ipairs(page) do found.entries[#found.entries + 1] = { id = item.member, score = item.score, queue = name } end
      found.left[name] = #page == found.page and #page or nil
      fresh = true
    end
  end
  if fresh and #found.queues > 1 then table.sort(found.entries, before) end
end

-- Candidates in order, as many as needed to know the next head. `admission` includes work that needs a grant.
-- Answers { entries = { {id, score, queue} }, queues = names } and what it takes to find more.
function choose.candidates(tx, copy, capabilities, want, admission)
  local names = covered_queues(tx, copy.path, capabilities, admission)
  local page = want + 1
  if copy.raw.prefers then page = want + limits.prefer_window end
  -- `left`: entries of the last page not taken yet, absent when the queue holds no more; `passed`: entries that could not start.
  local found = { entries = {}, queues = names, path = copy.path, page = page, left = {}, passed = {} }
  for _, name in ipairs(names) do found.left[name], found.passed[name] = 0, 0 end
  refill(tx, found)
  return found
end

-- The entry taken last could not start: it stays where it is.
function choose.pass(found, entry)
  found.passed[entry.queue] = found.passed[entry.queue] + 1
end

-- The entry taken last is left to a later claim: it is still the next head of its queue.
function choose.put_back(found, entry)
  table.insert(found.entries, 1, entry)
  if found.left[entry.queue] then found.left[entry.queue] = found.left[entry.queue] + 1 end
end

local function liking(rec, capabilities)
  local n = 0
  for _, token in ipairs(rec.spec.prefers or {}) do
    if capabilities[token] then n = n + 1 end
  end
  return n
end

-- Takes the next candidate off the list: the first, or in a lane with preferences the best liked among the first sixteen
-- of the same priority.
function choose.take(tx, found, copy, capabilities)
  refill(tx, found)
  local entries = found.entries
  if #entries == 0 then return nil end
  local best = 1
  if copy.raw.prefers and next(capabilities) then
    local most, priority = -1, nil
    for i = 1, math.min(#entries, limits.prefer_window) do
      local rec = execution.load(tx, entries[i].id)
      if rec then
        priority = priority or rec.prio
        if rec.prio ~= priority then break end
        local likes = liking(rec, capabilities)
        if likes > most then best, most = i, likes end
      end
    end
  end
  local taken = table.remove(entries, best)
  if found.left[taken.queue] then found.left[taken.queue] = found.left[taken.queue] - 1 end
  return taken
end

-- After taking: remembers for each queue whether dispatchers will come back for the rest, and answers the next head's score.
function choose.remember_rest(tx, copy, found, lane)
  refill(tx, found)
  local rest, head = {}, nil
  for _, entry in ipairs(found.entries) do
    rest[entry.queue] = true
    if head == nil or entry.score < head then head = entry.score end
  end
  for _, name in ipairs(found.queues) do lane.remember(tx, copy, "quiet:" .. name, rest[name] and "1" or nil) end
  return head
end

return choose
