local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local check = require "maintenance.invariants"
local execution = require "record.execution"
local flow = require "record.flow"
local heads = require "maintenance.head_invariants"
local budgets = require "maintenance.budget_invariants"
local flows = require "maintenance.flow_invariants"
local awaits = require "index.awaits"
local home = require "index.home"
local queues = require "index.queues"
local quota = require "record.quota"
local quotas = require "maintenance.quota_invariants"
local receivers = require "index.receivers"
local schedule = require "record.schedule"
local schedules = require "maintenance.schedule_invariants"
local waitpoint = require "record.waitpoint"
local webhook = require "record.webhook"
local worker = require "record.worker"

-- Members of a sorted set, a bounded number of them.
local function members(tx, key)
  return tx:zrange(key, "0", "999")
end

-- Every entry of an index must belong to a record that its state puts there.
local function check_entries(tx, key, findings, repair, belongs)
  for _, id in ipairs(members(tx, key)) do
    local rec = execution.load(tx, id, true)
    if rec == nil or not belongs(rec) then
      check.found(findings, rec and 10 or 37, key, id .. (rec and " does not belong here" or " has no record"), repair)
      if repair then tx:zrem(key, id) end
    end
  end
end

local function check_timers(tx, key, findings, repair)
  for _, member in ipairs(members(tx, key)) do
    local kind, name = string.match(member, "^(%a+):(.+)$")
    local owner
    if kind == "idem" then
      owner = tx:exists(keys.idempotency(tx, name))
    elseif kind == "flow" then
      owner = flow.load(tx, name)
    elseif kind == "usage" then
      local rec = execution.load(tx, name)
      owner = rec and rec.reports
    elseif kind == "budget" or kind == "hold" then
      owner = budgets.timed(tx, kind, name)
    elseif kind == "owed" then
      local rec = execution.load(tx, name, true)
      owner = rec and rec.owed
    elseif kind == "quota" then
      owner = quota.load(tx, name, true)
    elseif kind == "schedule" then
      owner = schedule.load(tx, name)
    elseif kind == "room" then
      owner = tx:exists(keys.quota_part(tx, string.sub(name, 1, 36), "key", string.sub(name, 38)))
    elseif member == worker.timer or kind == "holders" then
      -- It looks again when it fires, and goes when there is nothing to watch.
      owner = true
    else
      owner = execution.load(tx, member)
    end
    if not owner then
      check.found(findings, 11, key, member .. " has no record", repair)
      if repair then tx:zrem(key, member) end
    end
  end
end

local function check_leases(tx, key, instance, findings, repair)
  for lease_id, id in pairs(tx:hgetall(key) or {}) do
    local rec = execution.load(tx, id)
    if rec == nil or rec.phase ~= "active" or rec.worker ~= instance or rec.lease_id ~= lease_id then
      check.found(findings, 7, key, id .. " is not leased by this worker", repair)
      if repair then tx:hdel(key, lease_id) end
    end
  end
end

-- Which field of an execution says that it has the key.
local owner_field = {
  spec = "said", input = "input", more = "more", waits = "waits", result = "result_far", attempts = "spilled",
  continuation = "continued", signals = "signals", signal_keys = "signals",
  out = "outs", ["in"] = "deps", passed = "passes", children = "kids", usage = "reports",
  steps = "steps", step_results = "step_bytes",
}

local function check_part(tx, key, rest, findings, repair)
  local id = string.sub(rest, 1, 36)
  local rec = execution.load(tx, id, true)
  local part = string.sub(rest, 38)
  if rec == nil then
    check.found(findings, 37, key, "its execution is gone", repair)
  elseif part == "" then
    -- A walk over the list of all executions does not meet one that is not in it.
    if tx:zscore(keys.all(tx), id) == nil then check.record(tx, rec, findings, repair) end
    return
  elseif owner_field[part] and rec[owner_field[part]] then
    return
  else
    check.found(findings, 37, key, "its execution does not know it", repair)
  end
  if repair then tx:del(key) end
end

-- The parts of a flow belong to its record.
local function check_flow(tx, key, rest, findings, repair)
  local f = flow.load(tx, string.sub(rest, 1, 36))
  if f == nil then
    check.found(findings, 37, key, "its flow is gone", repair)
    if repair then tx:del(key) end
  elseif string.sub(rest, 38) == "core" then
    flows.flow(tx, f, findings, check.found)
  end
end

-- Flows in a list are stored.
local function check_flows(tx, key, findings, repair)
  for _, id in ipairs(members(tx, key)) do
    if flow.load(tx, id) == nil then
      check.found(findings, 37, key, id .. " has no record", repair)
      if repair then tx:zrem(key, id) end
    end
  end
end

-- A waitpoint stays with its execution, which lists it.
local function check_waitpoint(tx, key, id, findings, repair)
  local w = waitpoint.load(tx, id)
  local rec = w and execution.load(tx, w.exec)
  local listed = false
  if rec then
    for _, entry in ipairs(waitpoint.open(rec)) do listed = listed or entry[1] == id end
    for _, closed in ipairs(rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}) do
      listed = listed or closed == id
    end
  end
  if listed then
    if w.state == "closed" then check.early(tx, rec, w, findings, repair) end
    return
  end
  check.found(findings, 37, key, "no execution lists this waitpoint", repair)
  if repair then tx:del(key) end
end

-- A stream belongs to an attempt of its execution.
local function check_stream(tx, key, rest, findings, repair)
  local rec = execution.load(tx, string.sub(rest, 1, 36))
  local index = tonumber(string.match(string.sub(rest, 38), "^%d+"))
  local listed = rec and rec.frames and rec.attempt == index
  for _, attempt in ipairs(rec and rec.streams and cmsgpack.unpack(rec.streams) or {}) do
    listed = listed or attempt == index
  end
  if listed then return end
  check.found(findings, 37, key, "no attempt wrote this stream", repair)
  if repair then tx:del(key) end
end

local function check_inbox(tx, key, findings, repair)
  for _, id in ipairs(members(tx, key)) do
    local w = waitpoint.load(tx, id)
    if w == nil or w.state == "closed" then
      check.found(findings, 29, key, id .. " is not open", repair)
      if repair then tx:zrem(key, id) end
    end
  end
end

-- A webhook stands in its receiver's line, by its next try.
local function check_webhook(tx, key, id, findings, repair)
  local d = webhook.load(tx, id)
  if d == nil then return end
  local stored = tx:zscore(keys.receiver(tx, d.receiver), id)
  if stored == d.due then return end
  check.found(findings, 10, key, "should be in line at " .. string.format("%.0f", d.due) .. ", entry says "
    .. (stored and string.format("%.0f", stored) or "none"), repair)
  if repair then receivers.move(tx, d.receiver, id, d.due) end
end

-- What stands in a line is a webhook for this receiver, and the list of receivers knows the head.
local function check_line(tx, key, receiver, findings, repair)
  local listed, head = tx:zscore(keys.receivers(tx), receiver), nil
  for _, entry in ipairs(tx:zlowest(key, "-inf", "+inf", 1000)) do
    local d = webhook.load(tx, entry.member)
    if d and d.receiver == receiver then
      head = head or entry.score
    else
      check.found(findings, 37, key, entry.member .. " has no record", repair)
      if repair then tx:zrem(key, entry.member) end
    end
  end
  if head and listed ~= head then
    check.found(findings, 10, keys.receivers(tx), receiver .. " is not listed by the head of its line", repair)
    if repair then tx:zadd(keys.receivers(tx), head, receiver) end
  end
end

local function check_outbox(tx, key, rest, findings, repair)
  local receiver = string.match(rest, "^receiver:(%x+)$")
  if receiver then return check_line(tx, key, receiver, findings, repair) end
  if rest ~= "receivers" then return check.found(findings, 37, key, "nobody owns this key", false) end
  for _, listed in ipairs(members(tx, key)) do
    if not tx:exists(keys.receiver(tx, listed)) then
      check.found(findings, 37, key, listed .. " has no line", repair)
      if repair then tx:zrem(key, listed) end
    end
  end
end

local function check_index(tx, key, rest, findings, repair)
  local path, place = string.match(rest, "^lane:([^:]+):(.+)$")
  if rest == "waitpoints" then return check_inbox(tx, key, findings, repair) end
  if rest == "flows" or rest == "cancel_backlog" then return check_flows(tx, key, findings, repair) end
  if rest == "budgets" then return budgets.list(tx, key, findings, repair, check.found) end
  if rest == "schedules" then return schedules.list(tx, key, findings, repair, check.found) end
  if rest == "cleared" or rest == "scopes" or rest == "gone" then return end
  if rest == "missing" or string.find(rest, "^awaits:") then
    return check_entries(tx, key, findings, repair, function(rec) return awaits.of(tx, rec) == key end)
  end
  if rest == "timers" then return check_timers(tx, key, findings, repair) end
  if rest == "timers:stuck" then
    for _, member in ipairs(members(tx, key)) do
      check.found(findings, 38, key, member .. " raised and was set aside", false)
    end
    return
  end
  if rest == "all" or string.find(rest, "^kind:") or string.find(rest, "^tag:") then
    return check_entries(tx, key, findings, repair, function() return true end)
  end
  local instance = string.match(rest, "^workers:(.+)$")
  if instance then return check_leases(tx, key, instance, findings, repair) end
  if place == "heads" then return heads.check(tx, key, path, findings, repair, check.found) end
  if place == "queues" then
    for _, name in ipairs(queues.unreadable(tx, path)) do
      check.found(findings, 37, key, "queue " .. name .. " says nothing", repair)
      if repair then queues.drop(tx, path, name) end
    end
    return
  end
  if rest == "quotas" then return quotas.list(tx, key, findings, repair, check.found) end
  if place == "fair" or rest == "lanes" or rest == "workers" or rest == "draining" or rest == "servers"
    or rest == "told"
  then
    return
  end
  if path == nil then return check.found(findings, 37, key, "nobody owns this key", false) end
  return check_entries(tx, key, findings, repair, function(rec)
    return home.key(tx, rec, rec.path, (home.of(rec))) == key
  end)
end

define.fn {
  name = "ff_check_keys",
  doc = "Verifies keys found by a scan of the store: each must belong to a record, and each index entry to its place.",
  flags = { "allow-oom" },
  args = { keys = "store_keys", repair = "bool" },
  reply = { checked = { findings = "[finding]", foreign = "count" } },
  errs = {},
  call = function(tx, a)
    local findings, foreign = {}, 0
    for _, key in ipairs(a.keys) do
      local answer, problem = tx:item(function()
        local family, tag, rest = string.match(key, "^ff:(%a+):(%b{}):(.+)$")
        if tag ~= tx.tag then
          if not string.find(key, tx.tag, 1, true) then foreign = foreign + 1 end
        elseif family == "exec" then
          check_part(tx, key, rest, findings, a.repair)
        elseif family == "idem" then
          if tx:zscore(keys.timers(tx), "idem:" .. rest) == nil then
            check.found(findings, 37, key, "never ends", a.repair)
            if a.repair then tx:del(key) end
          end
        elseif family == "wp" then
          check_waitpoint(tx, key, rest, findings, a.repair)
        elseif family == "stream" then
          check_stream(tx, key, rest, findings, a.repair)
        elseif family == "flow" then
          check_flow(tx, key, rest, findings, a.repair)
        elseif family == "hook" then
          check_webhook(tx, key, rest, findings, a.repair)
        elseif family == "outbox" then
          check_outbox(tx, key, rest, findings, a.repair)
        elseif family == "idx" then
          check_index(tx, key, rest, findings, a.repair)
        elseif family == "budget" then
          budgets.key(tx, key, rest, findings, a.repair, check.found)
        elseif family == "schedule" then
          schedules.key(tx, key, rest, findings, a.repair, check.found)
        elseif family == "quota" then
          quotas.key(tx, key, rest, findings, a.repair, check.found)
        elseif not (family == "events" and rest == "count") and family ~= "lane" and family ~= "worker"
          and family ~= "keyring" and family ~= "access"
        then
          check.found(findings, 37, key, "nobody owns this key", false)
        end
        return reply.ok("looked")
      end)
      if answer == nil then check.found(findings, 38, key, problem, false) end
    end
    return reply.ok("checked", { findings = findings, foreign = foreign })
  end,
}
