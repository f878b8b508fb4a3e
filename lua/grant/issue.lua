local define = require "lib.define"
local reply = require "lib.reply"
local limits = require "lib.limits"
local event = require "lib.event"
local execution = require "record.execution"
local lane = require "record.lane"
local home = require "index.home"
local keys = require "lib.keys"
local choose = require "transition.choose"
local grant = require "transition.grant"
local start = require "transition.start"
local walk = require "transition.walk"

-- Grants of this very request that are still open, so that a lost reply is answered again.
local function replayed(tx, copy, worker, a)
  local wanted = choose.set_of(a.grant_ids)
  local open, out = {}, {}
  for _, name in ipairs(choose.names(tx, copy, worker)) do
    local from, to = string.format("%.0f", home.granted_from), "(" .. string.format("%.0f", home.active_from)
    for _, item in ipairs(tx:zhighest(keys.queue_named(tx, copy.path, name), to, from, limits.batch_max)) do
      local rec = execution.load(tx, item.member)
      if rec and rec.grant and wanted[grant.asked_as(rec)] and grant.open(rec, rec.grant, tx.now) then
        open[#open + 1] = rec
      end
    end
  end
  table.sort(open, function(x, y)
    if x.score ~= y.score then return x.score < y.score end
    return x.id < y.id
  end)
  for i, rec in ipairs(open) do out[i] = grant.typed(rec) end
  return out
end

-- Grants one candidate.
local function give_one(tx, a, copy, id, grant_id)
  local rec = execution.load(tx, id)
  if rec == nil or rec.phase ~= "runnable" or not start.possible(rec, tx.now) then
    return reply.err("execution_not_runnable")
  end
  if start.stopped(tx, rec) then
    walk.cancel_member(tx, rec)
    return { cancelled = true }
  end
  grant.give(tx, rec, grant_id, a.instance, a.ttl_ms, copy)
  event.of_execution(tx, rec, "execution.granted", "worker_instance", a.instance)
  return { grant = grant.typed(rec) }
end

define.fn {
  name = "ff_issue_grants",
  doc = "Reserves up to `max` of the best executions of a lane for a worker, those that need admission included; an "
    .. "unused grant runs out by itself. The leases that a repetition of this request took already, which have the "
    .. "same ids, are answered instead.",
  flags = { "allow-oom" },
  weight = "max",
  args = {
    namespace = "namespace", lane = "lane", instance = "instance", capabilities = "capabilities", kinds = "kind_set?",
    max = "batch_size", ttl_ms = "grant_ttl_ms", grant_ids = "[grant_id]", lease_ids = "lease_ids?",
  },
  reply = {
    granted = { grants = "[grant]", next_score = "int?" }, replayed = { tasks = "[task]" },
    paused = { state = "lane_state" },
  },
  errs = { "try_again", "capability_invalid" },
  call = function(tx, a)
    if #a.grant_ids < a.max then
      return reply.err("invalid_argument", { field = "grant_ids", problem = "must hold max items" })
    end
    local taken = a.lease_ids and #a.lease_ids > 0 and start.leased(tx, a.instance, a.lease_ids)
    if taken then return reply.ok("replayed", { tasks = taken }) end
    local copy = lane.load(tx, a.namespace .. "/" .. a.lane)
    if copy == nil then return reply.ok("granted", { grants = {} }) end
    if not lane.starts(copy) then return reply.ok("paused", { state = copy.state }) end
    lane.prepare(tx, copy)
    local worker = choose.worker(a.capabilities, a.kinds)
    local grants = replayed(tx, copy, worker, a)
    if #grants > 0 then return reply.ok("granted", { grants = grants }) end
    local found = choose.candidates(tx, copy, worker, a.max, true)

    local looks = 0
    while #grants < a.max and looks < limits.batch_max do
      local id, queue = choose.take(tx, found)
      if id == nil then break end
      looks = looks + 1
      local one = tx:item(give_one, tx, a, copy, id, a.grant_ids[#grants + 1])
      if one and one.err == "try_again" then
        if #grants == 0 then return one end
        break
      end
      if one == nil or one.err then
        choose.pass(found, queue)
      elseif one.grant then
        grants[#grants + 1] = one.grant
      end
    end
    local head = choose.next_score(tx, found)
    choose.remember_rest(tx, copy, found)
    return reply.ok("granted", { grants = grants, next_score = head })
  end,
}
