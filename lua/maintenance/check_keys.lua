local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local check = require "maintenance.invariants"
local execution = require "record.execution"
local holders = require "index.holders"
local home = require "index.home"
local queues = require "index.queues"
local worker = require "record.worker"

-- Members of a sorted set, a bounded number of them.
local function members(tx, key)
  return tx:read("ZRANGE", key, "0", "999")
end

-- Every entry of an index must belong to a record that its state puts there.
local function check_entries(tx, key, findings, repair, belongs)
  for _, id in ipairs(members(tx, key)) do
    local rec = execution.load(tx, id)
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
    if kind == "idem" then owner = tx:exists(keys.idempotency(tx, name))
    elseif member == worker.timer or kind == "holders" then owner = true -- it looks again when it fires, and leaves when there is nobody to watch
    else owner = execution.load(tx, member) end
    if not owner then
      check.found(findings, 11, key, member .. " has no record", repair)
      if repair then tx:zrem(key, member) end
    end
  end
end

local function check_leases(tx, key, instance, findings, repair)
  for id in pairs(tx:hgetall(key) or {}) do
    local rec = execution.load(tx, id)
    if rec == nil or rec.phase ~= "active" or rec.worker ~= instance then
      check.found(findings, 7, key, id .. " is not leased by this worker", repair)
      if repair then tx:hdel(key, id) end
    end
  end
end

local function check_index(tx, key, rest, findings, repair)
  local path, place = string.match(rest, "^lane:([^:]+):(.+)$")
  if rest == "timers" then return check_timers(tx, key, findings, repair) end
  if rest == "timers:stuck" then
    for _, member in ipairs(members(tx, key)) do check.found(findings, 38, key, member .. " raised and was set aside", false) end
    return
  end
  if rest == "all" or string.find(rest, "^kind:") or string.find(rest, "^tag:") then
    return check_entries(tx, key, findings, repair, function() return true end)
  end
  local instance = string.match(rest, "^workers:(.+)$")
  if instance then return check_leases(tx, key, instance, findings, repair) end
  if place == "queues" then
    for _, entry in ipairs(queues.all(tx, path)) do
      if not entry.uncovered and tx:zcard(keys.queue(tx, path, entry.queue)) == 0 then
        check.found(findings, 37, key, "queue " .. entry.queue .. " is empty", repair)
        if repair then queues.drop(tx, path, entry.queue) end
      end
    end
    return
  end
  if place == "fair" or rest == "lanes" or rest == "workers" or rest == "draining" or rest == "servers" or rest == "told" then return end
  if path == nil then return check.found(findings, 37, key, "nobody owns this key", false) end
  return check_entries(tx, key, findings, repair, function(rec)
    return home.of(tx, rec) == key
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
          local id = string.sub(rest, 1, 36)
          if not tx:exists(keys.core(tx, id)) then
            check.found(findings, 37, key, "its execution is gone", a.repair)
            if a.repair then tx:del(key) end
          elseif key == keys.core(tx, id) and tx:zscore(keys.all(tx), id) == nil then
            -- A walk over the list of all executions does not meet it.
            check.record(tx, execution.load(tx, id), findings, a.repair)
          end
        elseif family == "idem" then
          if tx:zscore(keys.timers(tx), "idem:" .. rest) == nil then
            check.found(findings, 37, key, "never ends", a.repair)
            if a.repair then tx:del(key) end
          end
        elseif family == "idx" then
          check_index(tx, key, rest, findings, a.repair)
        elseif family == "quota" then
          holders.check(tx, rest, findings, a.repair, check.found)
        elseif family ~= "lane" and family ~= "worker" then
          check.found(findings, 37, key, "nobody owns this key", false)
        end
        return reply.ok("looked")
      end)
      if answer == nil then check.found(findings, 38, key, problem, false) end
    end
    return reply.ok("checked", { findings = findings, foreign = foreign })
  end,
}
