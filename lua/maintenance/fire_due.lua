local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local reply = require "lib.reply"
local budget = require "record.budget"
local budget_holds = require "record.budget_holds"
local execution = require "record.execution"
local usage = require "record.usage"
local worker = require "record.worker"
local holders = require "index.holders"
local quota_key = require "index.quota_key"
local timers = require "index.timers"
local due = require "transition.due"
local owed = require "transition.owed"
local schedules = require "transition.fire"
local start = require "transition.start"
local walk = require "transition.walk"

local function fire_idempotency(tx, digest, member)
  local key = keys.idempotency(tx, digest)
  local record = tx:hgetall(key)
  if record and tonumber(record.until_ms) > tx.now then
    return tx:zadd(keys.timers(tx), tonumber(record.until_ms), member)
  end
  if record then tx:del(key) end
  timers.clear(tx, member)
end

-- Registrations that ran out leave; the timer moves to the next end.
local function fire_workers(tx, member)
  local next_end
  for _, entry in ipairs(worker.all(tx)) do
    if entry.expires_at > tx.now then
      next_end = math.min(next_end or entry.expires_at, entry.expires_at)
    else
      local w = worker.load(tx, entry.instance, entry.expires_at)
      worker.remove(tx, w or entry)
      if w then event.of_fleet(tx, "worker.expired", w.namespace, nil, w.instance, "worker_id", w.worker_id) end
    end
  end
  if next_end then tx:zadd(keys.timers(tx), next_end, member) else timers.clear(tx, member) end
end

local function fire(tx, member, draw)
  local kind, name = string.match(member, "^(%a+):(.+)$")
  if kind == "idem" then
    fire_idempotency(tx, name, member)
  elseif member == worker.timer then
    fire_workers(tx, member)
  elseif kind == "holders" then
    holders.fire(tx, name)
  elseif kind == "room" then
    quota_key.fire(tx, string.sub(name, 1, 36), string.sub(name, 38))
  elseif kind == "quota" then
    quota_key.walk(tx, name)
  elseif kind == "budget" then
    budget.fire(tx, name)
  elseif kind == "usage" then
    usage.fire(tx, name)
  elseif kind == "hold" then
    budget_holds.fire(tx, string.sub(name, 1, 36), string.sub(name, 38))
  elseif kind == "flow" then
    walk.fire(tx, name)
  elseif kind == "owed" then
    owed.pay(tx, name)
  elseif kind == "schedule" then
    schedules.due(tx, name)
  else
    local rec = execution.load(tx, member)
    if rec then due.fire(tx, rec, draw) else timers.clear(tx, member) end
  end
  return reply.ok("fired")
end

-- An entry that raises is set aside, so that it cannot hold up the others; fsck and a metric report it.
local function set_aside(tx, member)
  tx:item(function()
    timers.clear(tx, member)
    tx:zadd(keys.stuck(tx), tx.now, member)
    return reply.ok("aside")
  end)
end

define.fn {
  name = "ff_fire_due",
  doc = "Applies whatever is due in this partition, a bounded number per call, and answers when the next entry is.",
  flags = { "allow-oom" },
  weight = "limit",
  args = { limit = "batch_size", draw = "permille" },
  reply = { fired = { count = "count", stuck = "count", more = "bool", next_at = "time_ms?", now = "time_ms" } },
  errs = { "try_again" },
  call = function(tx, a)
    local entries = tx:zlowest(keys.timers(tx), "-inf", string.format("%.0f", tx.now), a.limit)
    local count, stuck = 0, 0
    for i, entry in ipairs(entries) do
      -- One draw for the call, spread over its items.
      local draw = (a.draw + i * 397) % 1001
      local answer, problem = tx:item(fire, tx, entry.member, draw)
      if answer == nil then
        if LIBRARY.test then error(problem, 0) end
        stuck = stuck + 1
        set_aside(tx, entry.member)
      elseif answer.err then
        if count == 0 then return answer end
        break
      else
        count = count + 1
      end
    end
    local head = tx:zhead(keys.timers(tx))
    start.forget_announced(tx, head and head.score)
    return reply.ok("fired", {
      count = count, stuck = stuck, more = head ~= nil and head.score <= tx.now, next_at = head and head.score,
      now = tx.now,
    })
  end,
}
