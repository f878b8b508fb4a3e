-- A webhook that is owed because an execution or a flow has ended: what it says, where it goes, how often it was tried. It says what
-- was so at that end, so it outlives whatever it tells of, and leaves when it was delivered or given up.
local event = require "lib.event"
local ids = require "lib.id"
local keys = require "lib.keys"
local limits = require "lib.limits"
local receivers = require "index.receivers"

local webhook = {}

-- What the record that ended keeps of its webhook: { id, how many it had, state, tries, owed at, updated at, next try, status, error }.
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

-- `of` says what ended: an execution or a flow. `said` is a list: type, namespace, lane, kind, flow, outcome, failure, tags,
-- attempt, replays. Answers what the record that ended keeps.
local function owe(tx, of, owner, url, hook, said)
  local number = hook and cmsgpack.unpack(hook)[2] + 1 or 1
  local id = ids.derived(owner, string.format("%.0f", number), string.format("%.0f", tx.now))
  tx:hset(keys.webhook(tx, id), { "of", of, "owner", owner, "url", url, "said", cmsgpack.pack(said), "owed", tx.now, "due", tx.now, "tries", 0 })
  receivers.add(tx, receivers.of(url), id, tx.now)
  tx:announce("webhook")
  return kept(id, number, "pending", { tries = 0, owed = tx.now, due = tx.now }, tx.now)
end

-- Owes the end of an execution; `kind` is the event that says it.
function webhook.of_execution(tx, rec, kind)
  return owe(tx, "execution", rec.id, rec.spec.webhook, rec.hook, {
    kind, rec.spec.namespace, rec.lane, rec.spec.kind, rec.spec.flow_id or false, rec.outcome,
    rec.failure and cmsgpack.unpack(rec.failure) or false, rec.tags and cmsgpack.unpack(rec.tags) or {}, rec.attempt or false, rec.replays or 0,
  })
end

-- Owes the end of a flow.
function webhook.of_flow(tx, f)
  return owe(tx, "flow", f.id, f.webhook, f.hook, { "flow." .. f.outcome, f.namespace, false, f.kind, f.id, f.outcome, false, {}, false, 0 })
end

local numbers = { "owed", "due", "tries" }

function webhook.load(tx, id)
  local key = keys.webhook(tx, id)
  local d = tx:hgetall(key)
  if d == nil then return nil end
  for _, name in ipairs(numbers) do
    d[name] = tonumber(d[name])
    if d[name] == nil then error("CORRUPT " .. key .. " " .. name) end
  end
  for _, name in ipairs({ "of", "owner", "url", "said" }) do
    if d[name] == nil then error("CORRUPT " .. key .. " " .. name) end
  end
  d.id, d.receiver = id, receivers.of(d.url)
  return d
end

-- Notes that a try begins; nobody else begins one before `again`.
function webhook.begin(tx, d, again)
  d.tries, d.due = d.tries + 1, again
  tx:hset(keys.webhook(tx, d.id), { "tries", d.tries, "due", d.due })
end

function webhook.typed(d)
  local s = cmsgpack.unpack(d.said)
  local tags = {}
  for i = 1, #s[8], 2 do tags[s[8][i]] = s[8][i + 1] end
  return {
    delivery_id = d.id, tries = d.tries, receiver = d.receiver, url = d.url, type = s[1], at = d.owed, namespace = s[2], lane = s[3] or nil, kind = s[4],
    execution_id = d.of == "execution" and d.owner or nil, flow_id = s[5] or nil, outcome = s[6],
    failure = s[7] and { reason = s[7][1], category = s[7][2] } or nil, tags = tags, attempt_index = s[9] or nil, replay_count = s[10],
  }
end

-- When the next try is due after one that failed, or nil when it is given up. A receiver may ask for more patience than there is,
-- never for less.
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
  if d.of == "flow" then
    local key = keys.flow(tx, d.owner)
    local hook = tx:hget(key, "hook")
    local l = hook and cmsgpack.unpack(hook)
    if l and l[1] == d.id then tx:hset(key, { "hook", kept(d.id, l[2], state, d, tx.now) }) end
    return
  end
  local execution = require "record.execution"
  local rec = execution.load(tx, d.owner, true)
  local l = rec and rec.hook and cmsgpack.unpack(rec.hook)
  if l and l[1] == d.id then
    rec.hook = kept(d.id, l[2], state, d, tx.now)
    execution.store(tx, rec)
  end
end

-- A try failed: another one follows.
function webhook.put_off(tx, d, due)
  d.due = due
  tx:hset(keys.webhook(tx, d.id), { "due", due })
  receivers.move(tx, d.receiver, d.id, due)
  tell_owner(tx, d, "pending")
end

-- Nothing more is owed: it was delivered, or given up.
function webhook.close(tx, d, state)
  d.due = nil
  receivers.move(tx, d.receiver, d.id, nil)
  tell_owner(tx, d, state)
  tx:del(keys.webhook(tx, d.id))
  local data = { "delivery_id", d.id, "tries", string.format("%.0f", d.tries) }
  if d.status then data[#data + 1], data[#data + 2] = "status", string.format("%.0f", d.status) end
  if d.error then data[#data + 1], data[#data + 2] = "error", d.error end
  event.of_webhook(tx, webhook.typed(d), "webhook." .. state, cmsgpack.unpack(d.said)[8], data)
end

return webhook
