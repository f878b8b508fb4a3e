-- A waitpoint: where signals for one execution arrive. It is made under a lease, is open until its suspension or its attempt
-- ends, and stays with the execution afterwards, so that a repeated signal gets its answer.
local inbox = require "index.inbox"
local keys = require "lib.keys"
local limits = require "lib.limits"

local waitpoint = {}

-- The execution's open waitpoints as a list of { id, key, expires_at or false }; `open_due` is the first end among them.
function waitpoint.open(rec)
  return rec.open and cmsgpack.unpack(rec.open) or {}
end

local function keep_open(rec, list)
  rec.open, rec.open_due = nil, nil
  if #list == 0 then return end
  rec.open = cmsgpack.pack(list)
  for _, entry in ipairs(list) do
    if entry[3] and (rec.open_due == nil or entry[3] < rec.open_due) then rec.open_due = entry[3] end
  end
end

-- True when a record of one of these ids exists already, whoever it belongs to.
function waitpoint.any_known(tx, ids)
  local list = {}
  for i, id in ipairs(ids) do list[i] = keys.waitpoint(tx, id) end
  return tx:any_exists(list)
end

-- What is wrong with a waitpoint to be opened beside those already open, or nil.
function waitpoint.problem(rec, new)
  local list = waitpoint.open(rec)
  if #list >= limits.waitpoints_open_max then return "key", string.format("an execution has at most %d open waitpoints", limits.waitpoints_open_max) end
  for _, entry in ipairs(list) do
    if entry[2] == new.key then return "key", "is the key of an open waitpoint" end
    if entry[1] == new.waitpoint_id then return "waitpoint_id", "is given twice" end
  end
  local labels, digests = {}, {}
  for _, token in ipairs(new.tokens) do
    local label = token.approver or ""
    if labels[label] then return "tokens", "hold one approver twice" end
    if digests[token.digest] then return "tokens", "hold one digest twice" end
    labels[label], digests[token.digest] = true, true
  end
end

-- Plans a new waitpoint. Its tokens are kept as { digest, approver or false, uses left or false, answered }.
function waitpoint.create(tx, rec, new, state, suspension_id)
  local tokens = {}
  for i, token in ipairs(new.tokens) do tokens[i] = { token.digest, token.approver or false, new.uses or false, false } end
  local expires_at = new.expires_in_ms and tx.now + new.expires_in_ms or false
  local fields = { "exec", rec.id, "key", new.key, "state", state, "attempt", rec.attempt, "created", tx.now, "tokens", cmsgpack.pack(tokens) }
  local function add(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  if expires_at then add("expires", expires_at) end
  if new.uses then add("uses", new.uses) end
  if new.allowed_signals and #new.allowed_signals > 0 then add("allowed", cmsgpack.pack(new.allowed_signals)) end
  if new.review then add("review", 1) end
  if suspension_id then add("suspension", suspension_id) end
  tx:hset(keys.waitpoint(tx, new.waitpoint_id), fields)
  inbox.add(tx, new.waitpoint_id, tx.now)
  local list = waitpoint.open(rec)
  list[#list + 1] = { new.waitpoint_id, new.key, expires_at }
  keep_open(rec, list)
end

local numbers = { "attempt", "created", "expires", "uses", "closed", "signals" }

function waitpoint.load(tx, id)
  local key = keys.waitpoint(tx, id)
  local w = tx:hgetall(key)
  if w == nil then return nil end
  for _, name in ipairs(numbers) do
    if w[name] then
      w[name] = tonumber(w[name])
      if w[name] == nil then error("CORRUPT " .. key .. " " .. name) end
    end
  end
  for _, name in ipairs({ "exec", "key", "state", "attempt", "created", "tokens" }) do
    if w[name] == nil then error("CORRUPT " .. key .. " " .. name) end
  end
  w.id, w.tokens = id, cmsgpack.unpack(w.tokens)
  w.early = w.early and cmsgpack.unpack(w.early) or {}
  w.allowed = w.allowed and cmsgpack.unpack(w.allowed) or nil
  return w
end

-- A pending waitpoint becomes part of a suspension, which has counted its early signals.
function waitpoint.activate(tx, w, suspension_id)
  tx:hset(keys.waitpoint(tx, w.id), { "state", "active", "suspension", suspension_id })
  if #w.early > 0 then tx:hdel(keys.waitpoint(tx, w.id), "early") end
end

-- Waitpoints whose time was over before the suspend but that were answered: { id, key } each. Their signals came in time and
-- count then.
function waitpoint.answered(rec)
  return rec.answered and cmsgpack.unpack(rec.answered) or {}
end

-- Their early signals no longer count: all of them, or of one waitpoint.
function waitpoint.forget_answered(tx, rec, id)
  local stay = {}
  for _, entry in ipairs(waitpoint.answered(rec)) do
    if id and entry[1] ~= id then
      stay[#stay + 1] = entry
    else
      tx:hdel(keys.waitpoint(tx, entry[1]), "early")
    end
  end
  rec.answered = #stay > 0 and cmsgpack.pack(stay) or nil
end

local function keep_answered(rec, entry)
  local list = waitpoint.answered(rec)
  list[#list + 1] = { entry[1], entry[2] }
  rec.answered = cmsgpack.pack(list)
end

-- What becomes of the early signals of a waitpoint that closes; once it is part of a suspension it has none.
local function settle_early(tx, rec, entry, why)
  if rec.phase == "suspended" then return end
  if why ~= "expired" then return tx:hdel(keys.waitpoint(tx, entry[1]), "early") end
  if #waitpoint.load(tx, entry[1]).early > 0 then keep_answered(rec, entry) end
end

function waitpoint.save_tokens(tx, w)
  tx:hset(keys.waitpoint(tx, w.id), { "tokens", cmsgpack.pack(w.tokens) })
end

-- Closed waitpoints are kept in number; the oldest leave.
local function keep_closed(tx, rec, ids)
  local kept = rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}
  for _, id in ipairs(ids) do kept[#kept + 1] = id end
  while #kept > limits.waitpoints_kept_max do tx:del(keys.waitpoint(tx, table.remove(kept, 1))) end
  rec.closed_waits = cmsgpack.pack(kept)
end

-- Closes the open waitpoints that `which` picks, all when absent. Answers how many.
function waitpoint.close(tx, rec, why, which)
  if rec.open == nil then return 0 end
  local stay, gone = {}, {}
  for _, entry in ipairs(waitpoint.open(rec)) do
    if which == nil or which(entry) then
      gone[#gone + 1] = entry[1]
      settle_early(tx, rec, entry, why)
      tx:hset(keys.waitpoint(tx, entry[1]), { "state", "closed", "closed", tx.now, "why", why })
      inbox.remove(tx, entry[1])
    else
      stay[#stay + 1] = entry
    end
  end
  keep_open(rec, stay)
  if #gone > 0 then keep_closed(tx, rec, gone) end
  return #gone
end

-- Plans the removal of everything the execution's waitpoints left.
function waitpoint.remove_all(tx, rec)
  for _, entry in ipairs(waitpoint.open(rec)) do
    inbox.remove(tx, entry[1])
    tx:del(keys.waitpoint(tx, entry[1]))
  end
  for _, id in ipairs(rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}) do tx:del(keys.waitpoint(tx, id)) end
end

-- The open waitpoints as the execution's owner sees them.
function waitpoint.typed_open(rec)
  local out = {}
  local state = rec.phase == "suspended" and "active" or "pending"
  for i, entry in ipairs(waitpoint.open(rec)) do out[i] = { waitpoint_id = entry[1], key = entry[2], state = state, expires_at = entry[3] or nil } end
  return out
end

return waitpoint
