-- A webhook that is owed because an execution or a flow has ended: what it says, where it goes, how often it was tried.
-- It says what was so at that end, so it outlives whatever it tells of, and leaves when it was delivered or given up.
local event = require "lib.event"
local ids = require "lib.id"
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"
local receivers = require "index.receivers"

local webhook = {}

local open, close = packed.open_webhook, packed.close_webhook

-- What the record that ended keeps of its webhook: { id, how many it had, state, tries, owed at, updated at, next try,
-- status, error }.
local function kept(id, number, state, d, now)
  return cmsgpack.pack({ id, number, state, d.tries, d.owed, now, d.due or false, d.status or false, d.error or false })
end

function webhook.status(hook)
  if hook == nil then return nil end
  local l = cmsgpack.unpack(hook)
  return {
    delivery_id = l[1], state = l[3], tries = l[4], owed_at = l[5], updated_at = l[6],
    next_at = l[7] or nil, status = l[8] or nil, error = l[9] or nil,
  }
end

-- `of` says what ended: an execution or a flow. `said` is a list: type, namespace, lane, kind, flow, outcome, failure,
-- tags, attempt, replays. Answers what the record that ended keeps.
local function owe(tx, of, owner, url, hook, said)
  local number = hook and cmsgpack.unpack(hook)[2] + 1 or 1
  local id = ids.derived(owner, string.format("%.0f", number), string.format("%.0f", tx.now))
  tx:put(keys.webhook(tx, id), {
    of = of, owner = owner, url = url, said = cmsgpack.pack(said), owed = tx.now, due = tx.now, tries = 0,
  }, close)
  receivers.add(tx, receivers.of(url), id, tx.now)
  tx:announce("webhook")
  return kept(id, number, "pending", { tries = 0, owed = tx.now, due = tx.now }, tx.now)
end

-- Owes the end of an execution; `kind` is the event that says it.
function webhook.of_execution(tx, rec, kind)
  local namespace, lane = string.match(rec.path, "^([^/]+)/(.+)$")
  return owe(tx, "execution", rec.id, rec.webhook, rec.hook, {
    kind, namespace, lane, rec.kind, rec.flow_id or false, rec.outcome,
    rec.failure and cmsgpack.unpack(rec.failure) or false, rec.tags and cmsgpack.unpack(rec.tags) or {},
    rec.attempt or false, rec.replays or 0,
  })
end

-- Owes the end of a flow.
function webhook.of_flow(tx, f)
  return owe(tx, "flow", f.id, f.webhook, f.hook, {
    "flow." .. f.outcome, f.namespace, false, f.kind, f.id, f.outcome, false, {}, false, 0,
  })
end

function webhook.load(tx, id)
  local key = keys.webhook(tx, id)
  local stored = tx:record(key)
  if stored == nil then return nil end
  local d = open(key, stored)
  d.id, d.receiver = id, receivers.of(d.url)
  return d
end

-- Notes that a try begins; nobody else begins one before `again`.
function webhook.begin(tx, d, again)
  d.tries, d.due = d.tries + 1, again
  tx:put(keys.webhook(tx, d.id), d, close)
end

function webhook.typed(d)
  local s = cmsgpack.unpack(d.said)
  local tags = {}
  for i = 1, #s[8], 2 do tags[s[8][i]] = s[8][i + 1] end
  return {
    delivery_id = d.id, tries = d.tries, receiver = d.receiver, url = d.url, type = s[1], at = d.owed, namespace = s[2],
    lane = s[3] or nil, kind = s[4], execution_id = d.of == "execution" and d.owner or nil, flow_id = s[5] or nil,
    outcome = s[6], failure = s[7] and { reason = s[7][1], category = s[7][2] } or nil, tags = tags,
    attempt_index = s[9] or nil, replay_count = s[10],
  }
end

-- When the next try is due after one that failed, or nil when it is given up. A receiver may ask for more patience than
-- there is, never for less.
function webhook.again_at(tx, d, retry_after_ms, draw)
  if d.tries >= limits.webhook_tries_max then return nil end
  local delay = limits.webhook_delay_ms_min
  for _ = 2, d.tries do delay = math.min(delay * 2, limits.webhook_delay_ms_max) end
  -- A tenth more or less, so that those that failed together do not come back together.
  delay = math.floor(delay * (4500 + draw) / 5000)
  local at = tx.now + math.max(delay, math.min(retry_after_ms or 0, limits.webhook_delay_ms_max))
  if at > d.owed + limits.webhook_age_ms_max then return nil end
  return at
end

-- The record that ended shows its last webhook, as long as both are there.
local function tell_owner(tx, d, state)
  local records = require(d.of == "flow" and "record.flow" or "record.execution")
  local owner = records.load(tx, d.owner, true)
  local l = owner and owner.hook and cmsgpack.unpack(owner.hook)
  if l and l[1] == d.id then
    owner.hook = kept(d.id, l[2], state, d, tx.now)
    records.store(tx, owner)
  end
end

-- A try failed: another one follows.
function webhook.put_off(tx, d, due)
  d.due = due
  tx:put(keys.webhook(tx, d.id), d, close)
  receivers.move(tx, d.receiver, d.id, due)
  tell_owner(tx, d, "pending")
end

-- Nothing more is owed: it was delivered, or given up.
function webhook.close(tx, d, state)
  d.due = nil
  receivers.move(tx, d.receiver, d.id, nil)
  tell_owner(tx, d, state)
  tx:del(keys.webhook(tx, d.id))
  local data = { "delivery_id", d.id, "tries", d.tries }
  if d.status then data[#data + 1], data[#data + 2] = "status", d.status end
  if d.error then data[#data + 1], data[#data + 2] = "error", d.error end
  local tags = cmsgpack.unpack(d.said)[8]
  event.of_webhook(tx, webhook.typed(d), "webhook." .. state, #tags > 0 and cmsgpack.pack(tags) or nil, unpack(data))
end

return webhook
