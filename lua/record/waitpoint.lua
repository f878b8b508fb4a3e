-- A waitpoint: where signals for one execution arrive. It is made under a lease, is open until its suspension or its
-- attempt ends, and stays with the execution afterwards, so that a repeated signal gets its answer. One that belongs to
-- a step outlives the attempt: it is open until its wait or the execution has ended.
local inbox = require "index.inbox"
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"

local waitpoint = {}

local open, close = packed.open_waitpoint, packed.close_waitpoint

-- The execution's open waitpoints as a list of { id, key, expires_at or false, the step or nothing }; `open_due` is the
-- first end among them.
function waitpoint.open(rec)
  return rec.open and cmsgpack.unpack(rec.open) or {}
end

local function keep_open(rec, list)
  rec.open, rec.open_due = nil, nil
  if #list == 0 then return end
  rec.open, rec.waits = cmsgpack.pack(list), 1
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
  if #list >= limits.waitpoints_open_max then
    return "key", string.format("an execution has at most %d open waitpoints", limits.waitpoints_open_max)
  end
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

local function fresh_tokens(new)
  local tokens = {}
  for i, token in ipairs(new.tokens) do
    tokens[i] = { token.digest, token.approver or false, new.uses or false, false }
  end
  return tokens
end

-- Gives a waitpoint other tokens in place of those it had, which die.
function waitpoint.replace_tokens(tx, w, new)
  w.tokens = cmsgpack.pack(fresh_tokens(new))
  waitpoint.save(tx, w)
end

-- Plans a new waitpoint. Its tokens are kept as { digest, approver or false, uses left or false, answered }.
function waitpoint.create(tx, rec, new, state, suspension_id, step)
  local tokens = fresh_tokens(new)
  local expires_at = new.expires_in_ms and tx.now + new.expires_in_ms or false
  waitpoint.save(tx, {
    id = new.waitpoint_id, exec = rec.id, key = new.key, state = state, attempt = rec.attempt, created = tx.now,
    expires = expires_at or nil, uses = new.uses, suspension = suspension_id, review = new.review and 1 or nil,
    step = step,
    tokens = cmsgpack.pack(tokens),
    allowed = new.allowed_signals and #new.allowed_signals > 0 and cmsgpack.pack(new.allowed_signals) or nil,
  })
  inbox.add(tx, new.waitpoint_id, tx.now)
  local list = waitpoint.open(rec)
  list[#list + 1] = { new.waitpoint_id, new.key, expires_at, step }
  keep_open(rec, list)
end

-- The waitpoint, read once per plan.
function waitpoint.load(tx, id)
  local key = keys.waitpoint(tx, id)
  local known = tx.memo[key]
  if known then return known end
  local stored = tx:record(key)
  if stored == nil then return nil end
  local w = open(key, stored)
  w.id = id
  tx.memo[key] = w
  return w
end

function waitpoint.save(tx, w)
  local key = keys.waitpoint(tx, w.id)
  tx:put(key, w, close)
  tx.memo[key] = w
end

-- Its tokens: { digest, approver or false, uses left or false, answered } each.
function waitpoint.tokens(w)
  return cmsgpack.unpack(w.tokens)
end

-- Signals that wait for the suspend: { stream id, name, who } each.
function waitpoint.early(w)
  return w.early and cmsgpack.unpack(w.early) or {}
end

-- A pending waitpoint becomes part of a suspension, which has counted its early signals.
function waitpoint.activate(tx, w, suspension_id)
  w.state, w.suspension, w.early = "active", suspension_id, nil
  waitpoint.save(tx, w)
end

-- Its early signals no longer count.
local function drop_early(tx, id)
  local w = waitpoint.load(tx, id)
  if w and w.early then
    w.early = nil
    waitpoint.save(tx, w)
  end
end

-- Waitpoints whose time was over before the suspend but that were answered: { id, key, the step or nothing } each.
-- Their signals came in time and count then.
function waitpoint.answered(rec)
  return rec.answered and cmsgpack.unpack(rec.answered) or {}
end

-- Their early signals no longer count: of those that `which` picks, of all when absent.
function waitpoint.forget_answered(tx, rec, which)
  local stay = {}
  for _, entry in ipairs(waitpoint.answered(rec)) do
    if which == nil or which(entry) then
      drop_early(tx, entry[1])
    else
      stay[#stay + 1] = entry
    end
  end
  rec.answered = #stay > 0 and cmsgpack.pack(stay) or nil
end

local function keep_answered(rec, entry)
  local list = waitpoint.answered(rec)
  list[#list + 1] = { entry[1], entry[2], entry[4] }
  rec.answered, rec.waits = cmsgpack.pack(list), 1
end

-- What becomes of the early signals of a waitpoint that closes; once it is part of a suspension it has none.
local function settle_early(tx, rec, entry, why)
  if why ~= "expired" then return drop_early(tx, entry[1]) end
  local w = waitpoint.load(tx, entry[1])
  if w and w.early then keep_answered(rec, entry) end
end

function waitpoint.remove(tx, id)
  local key = keys.waitpoint(tx, id)
  tx:del(key)
  tx.memo[key] = nil
end

-- Closed waitpoints are kept in number; the oldest leave.
local function keep_closed(tx, rec, ids)
  local kept = rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}
  for _, id in ipairs(ids) do kept[#kept + 1] = id end
  while #kept > limits.waitpoints_kept_max do waitpoint.remove(tx, table.remove(kept, 1)) end
  rec.closed_waits, rec.waits = cmsgpack.pack(kept), 1
end

-- Closes the open waitpoints that `which` picks, all when absent. Answers how many.
function waitpoint.close(tx, rec, why, which)
  if rec.open == nil then return 0 end
  local stay, gone = {}, {}
  for _, entry in ipairs(waitpoint.open(rec)) do
    if which == nil or which(entry) then
      gone[#gone + 1] = entry[1]
      settle_early(tx, rec, entry, why)
      local w = waitpoint.load(tx, entry[1])
      if w then
        w.state, w.closed, w.why = "closed", tx.now, why
        waitpoint.save(tx, w)
      end
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
    waitpoint.remove(tx, entry[1])
  end
  for _, id in ipairs(rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}) do waitpoint.remove(tx, id) end
end

-- Whether an open waitpoint is part of a wait under this step, or of one without a step.
function waitpoint.takes_part(entry, step)
  return entry[4] == nil or entry[4] == step
end

-- The open waitpoints as the execution's owner sees them; `step` is the one that the current suspension belongs to.
function waitpoint.typed_open(rec, step)
  local out = {}
  for i, entry in ipairs(waitpoint.open(rec)) do
    local active = rec.phase == "suspended" and waitpoint.takes_part(entry, step)
    out[i] = {
      waitpoint_id = entry[1], key = entry[2], state = active and "active" or "pending", expires_at = entry[3] or nil,
    }
  end
  return out
end

return waitpoint
