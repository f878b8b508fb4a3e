-- A budget: its limits, what is used and held per dimension, and its place in a tree. What is used or held in a budget
-- counts in every budget above it; all of a tree shares a partition, so each check sees the whole way up at once.
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local packed = require "record.packed"
local event = require "lib.event"
local reply = require "lib.reply"
local timers = require "index.timers"

local budget = {}

budget.amount_max = limits.time_ms_max

function budget.timer(id) return "budget:" .. id end
function budget.set(id) return "budget:" .. id end

function budget.sorted(amounts)
  local names = {}
  for name in pairs(amounts) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- A map of amounts as a flat list in the order of the names, and back.
function budget.flat(amounts)
  local flat, first, n = {}, next(amounts)
  if first == nil then return flat end
  if next(amounts, first) == nil then
    if n ~= 0 then flat[1], flat[2] = first, n end
    return flat
  end
  for _, name in ipairs(budget.sorted(amounts)) do
    if amounts[name] ~= 0 then
      flat[#flat + 1] = name
      flat[#flat + 1] = amounts[name]
    end
  end
  return flat
end

function budget.map(flat)
  local amounts = {}
  for i = 1, #flat, 2 do amounts[flat[i]] = flat[i + 1] end
  return amounts
end

local function pack_definition(b)
  local dimensions = {}
  for i, d in ipairs(b.dimensions) do dimensions[i] = { d.name, d.hard or false, d.soft or false } end
  return cmsgpack.pack({
    b.namespace, b.parent or false, b.scope.type, b.scope.id or false, dimensions, b.reset.type,
    b.reset.interval_ms or false, b.reset.zone or false, b.on_soft, b.on_hard,
  })
end

budget.pack_definition = pack_definition

local function unpack_definition(bytes)
  local l = cmsgpack.unpack(bytes)
  local dimensions = {}
  for i, d in ipairs(l[5]) do dimensions[i] = { name = d[1], hard = d[2] or nil, soft = d[3] or nil } end
  return {
    namespace = l[1], parent = l[2] or nil, scope = { type = l[3], id = l[4] or nil }, dimensions = dimensions,
    reset = { type = l[6], interval_ms = l[7] or nil, zone = l[8] or nil }, on_soft = l[9], on_hard = l[10],
  }
end

-- A budget that is not stored yet.
function budget.new(tx, definition)
  local b = unpack_definition(pack_definition(definition))
  b.id, b.created, b.version, b.period, b.since = definition.budget_id, tx.now, 1, 1, tx.now
  b.rooms, b.wide, b.told = 0, 0, 0
  b.approved, b.refused, b.soft_told, b.passed = false, false, false, false
  b.used, b.held, b.base, b.actions, b.past = {}, {}, {}, {}, {}
  for _, d in ipairs(b.dimensions) do b.used[d.name], b.held[d.name], b.base[d.name] = 0, 0, 0 end
  tx.memo[keys.budget(tx, b.id)] = b
  return b
end

-- Amounts are stored as a list in the order of the dimensions.
local function amounts_of(b, list, key, field)
  local amounts = {}
  if #list ~= #b.dimensions then error("CORRUPT " .. key .. " " .. field) end
  for i, d in ipairs(b.dimensions) do amounts[d.name] = list[i] end
  return amounts
end

local function list_of(b, amounts)
  local list = {}
  for i, d in ipairs(b.dimensions) do list[i] = amounts[d.name] end
  return list
end

-- The record, read once per plan; nil when there is none.
function budget.load(tx, id)
  local key = keys.budget(tx, id)
  local known = tx.memo[key] or tx:found(key)
  if known then return known end
  local stored = tx:record(key)
  if stored == nil then return nil end
  local r = packed.open_budget(key, stored)
  local b = unpack_definition(r.definition)
  b.id, b.version, b.created, b.period, b.since, b.next_reset =
    id, r.version, r.created, r.period, r.since, r.next_reset
  b.rooms, b.wide, b.told, b.tail = r.rooms, r.wide, r.told, r.tail
  b.approved, b.refused, b.soft_told, b.passed =
    r.approved ~= nil, r.refused ~= nil, r.soft_told ~= nil, r.passed ~= nil
  b.used, b.held, b.base =
    amounts_of(b, r.used, key, "used"), amounts_of(b, r.held, key, "held"), amounts_of(b, r.base, key, "base")
  b.actions, b.past = r.actions and cmsgpack.unpack(r.actions) or {}, r.past and cmsgpack.unpack(r.past) or {}
  tx.memo[key] = b
  tx:keep(key, b)
  return b
end

-- A list as it is stored: an empty one is absent.
local function packed_list(list)
  return #list > 0 and cmsgpack.pack(list) or nil
end

-- `passed` says that an operator put the limit below, or the use above: fsck must not take it for an overshoot.
local function close(b)
  return packed.close_budget({
    definition = pack_definition(b), version = b.version, created = b.created, period = b.period, since = b.since,
    rooms = b.rooms, wide = b.wide, told = b.told, next_reset = b.next_reset, approved = b.approved and 1,
    refused = b.refused and 1, soft_told = b.soft_told and 1, passed = b.passed and 1, used = list_of(b, b.used),
    held = list_of(b, b.held), base = list_of(b, b.base), actions = packed_list(b.actions), past = packed_list(b.past),
    tail = b.tail,
  })
end

-- Plans the whole record.
function budget.save(tx, b)
  tx:put(keys.budget(tx, b.id), b, close)
end

-- Where submissions look for budgets of namespaces, lanes and flows is on another partition: it is told of a budget
-- that comes or goes, whatever becomes of the caller.
function budget.owe_scope(tx, b)
  local kind, id = b.scope.type, b.scope.id
  local scope = kind == "namespace" and "namespace:" .. b.namespace
    or kind == "lane" and id and "lane:" .. b.namespace .. "/" .. id
    or kind == "flow" and id and "flow:" .. id
    or nil
  if scope then outbox.owe(tx, "note_scope", { "budget_id", b.id, "scope", scope }) end
end

function budget.watch(tx, b)
  if b.next_reset then timers.set(tx, budget.timer(b.id), b.next_reset) else timers.clear(tx, budget.timer(b.id)) end
end

local function mark(tx, b)
  tx:zadd(keys.cleared(tx), tx.now, b.id)
  tx:announce("budget", b.id)
end

-- Rooms are counted: who was refused has seen so many, and may ask again when there were more. `wide` is the number of
-- the last room that everyone is told of, because a limit or a period changed; of a room that is only as large as what
-- was given back, as many are told as may fit. Everyone who has seen fewer than `told` was told. The mark stays until
-- that is done, whatever happens to the announcement. A wide room that nobody is known to wait for is counted without a
-- mark: a refusal that is on its way to its execution finds it when all that waits is swept.
function budget.room(tx, b, wide)
  if not b.refused and b.rooms == b.told then
    if wide then
      b.rooms = b.rooms + 1
      b.wide, b.told = b.rooms, b.rooms
    end
    return
  end
  b.refused, b.rooms = false, b.rooms + 1
  if wide then b.wide = b.rooms end
  mark(tx, b)
end

-- One of this name was deleted: whoever waits for it is told that it is there again. The time is more rooms than anyone
-- has seen.
function budget.come_back(tx, b)
  b.rooms, b.wide, b.told = tx.now, tx.now, 0
  mark(tx, b)
end

-- What is left below each hard limit.
function budget.free(b)
  local free = {}
  for _, d in ipairs(b.dimensions) do
    if d.hard then free[d.name] = math.max(d.hard - b.used[d.name] - b.held[d.name], 0) end
  end
  return free
end

-- What was used in a period is kept when it ends.
local function end_period(b, at)
  b.past[#b.past + 1] = { b.since, at, budget.flat(b.used) }
  if #b.past > limits.budget_periods_max then table.remove(b.past, 1) end
end

function budget.start_period(tx, b)
  end_period(b, tx.now)
  local passed = false
  for _, d in ipairs(b.dimensions) do
    b.used[d.name], b.base[d.name] = 0, 0
    -- What is held stays, also above a limit that was lowered since.
    passed = passed or (d.hard ~= nil and b.held[d.name] > d.hard)
  end
  b.period, b.since, b.approved, b.soft_told, b.passed = b.period + 1, tx.now, false, false, passed
  budget.room(tx, b, true)
end

-- Ends a period that is over. An interval goes on in step with its first; the next end of a calendar's period is asked
-- for.
local function roll(tx, b)
  if b.next_reset == nil or b.next_reset > tx.now then return false end
  local every = b.reset.interval_ms
  if b.reset.type == "interval" then
    b.next_reset = b.next_reset + (math.floor((tx.now - b.next_reset) / every) + 1) * every
  else
    b.next_reset = nil
  end
  budget.start_period(tx, b)
  return true
end

-- The same for a reader, who writes nothing.
function budget.rolled(tx, b)
  if b.next_reset == nil or b.next_reset > tx.now then return end
  end_period(b, b.next_reset)
  for _, d in ipairs(b.dimensions) do b.used[d.name] = 0 end
  b.approved = false
end

local function roll_and_save(tx, b)
  if not roll(tx, b) then return end
  if b.next_reset == nil then mark(tx, b) end
  budget.watch(tx, b)
  budget.save(tx, b)
  event.of_fleet(tx, "budget.reset", b.namespace, nil, nil, "budget_id", b.id, "cause", "period")
end

-- The budget and those above it, itself first, each in its current period; nil when there is none.
function budget.path(tx, id)
  local path = {}
  while id do
    local b = budget.load(tx, id)
    if b == nil then
      if #path == 0 then return nil end
      error("CORRUPT " .. keys.budget(tx, id) .. " core")
    end
    roll_and_save(tx, b)
    path[#path + 1] = b
    id = b.parent
  end
  return path
end

function budget.save_all(tx, path)
  for _, b in ipairs(path) do budget.save(tx, b) end
end

function budget.fire(tx, id)
  local b = budget.load(tx, id)
  if b == nil then return timers.clear(tx, budget.timer(id)) end
  roll_and_save(tx, b)
  if b.next_reset == nil then
    timers.clear(tx, budget.timer(id))
  else
    tx:zadd(keys.timers(tx), b.next_reset, budget.timer(id))
  end
end

-- The refusal of amounts in dimensions the budget does not have, or of none at all.
function budget.unknown(b, amounts, field)
  local names = budget.sorted(amounts)
  if #names == 0 then return reply.err("invalid_argument", { field = field, problem = "must hold an entry" }) end
  for _, name in ipairs(names) do
    if b.used[name] == nil then
      return reply.err("invalid_argument", { field = field .. "." .. name, problem = "is no dimension of the budget" })
    end
  end
end

-- The first limit on the way up that the amounts would pass; `own` is the part of them that is held already.
function budget.breach(path, amounts, own)
  for _, b in ipairs(path) do
    for _, d in ipairs(b.dimensions) do
      local n = amounts[d.name]
      if n and d.hard and b.used[d.name] + b.held[d.name] - (own and own[d.name] or 0) + n > d.hard then
        return { budget = b, dimension = d.name, used = b.used[d.name], limit = d.hard }
      end
    end
  end
end

-- The refusal of amounts that no sum could hold.
function budget.overflow(path, amounts, field)
  for _, b in ipairs(path) do
    for _, d in ipairs(b.dimensions) do
      local n = amounts[d.name]
      if n and b.used[d.name] + b.held[d.name] + n > budget.amount_max then
        return reply.err("invalid_argument", {
          field = field .. "." .. d.name,
          problem = string.format("passes %.0f together with what is used and held", budget.amount_max),
        })
      end
    end
  end
end

-- The first hard dimension on the way up of which nothing is left.
function budget.exhausted(path)
  for _, b in ipairs(path) do
    for _, d in ipairs(b.dimensions) do
      if d.hard and b.used[d.name] + b.held[d.name] >= d.hard then
        return { budget = b, dimension = d.name, used = b.used[d.name], limit = d.hard }
      end
    end
  end
end

-- The first soft limit on the way up that is reached; with `unapproved`, one that admits nobody until it is approved.
function budget.soft(path, unapproved)
  for _, b in ipairs(path) do
    if not unapproved or (b.on_soft == "require_approval" and not b.approved) then
      for _, d in ipairs(b.dimensions) do
        if d.soft and b.used[d.name] >= d.soft then
          return { budget = b, dimension = d.name, used = b.used[d.name], limit = d.soft }
        end
      end
    end
  end
end

-- Someone was refused: the budget in the way will say when it has room. The first refusal after a room is an event,
-- those behind it are not. The caller saves the budget.
function budget.note_refusal(tx, wrong, kind)
  local b = wrong.budget
  if b.refused then return false end
  b.refused = true
  if kind == "hard" then
    event.of_fleet(tx, "budget.hard_breach", b.namespace, nil, nil,
      "budget_id", b.id, "dimension", wrong.dimension, "used", string.format("%.0f", wrong.used),
      "held", string.format("%.0f", b.held[wrong.dimension]),
      "limit", string.format("%.0f", wrong.limit), "on_hard", b.on_hard)
  end
  return true
end

function budget.refuse(tx, wrong)
  if budget.note_refusal(tx, wrong, "hard") then budget.save(tx, wrong.budget) end
end

function budget.hold(path, amounts, sign)
  for _, b in ipairs(path) do
    for name, n in pairs(amounts) do
      if b.held[name] then b.held[name] = b.held[name] + sign * n end
    end
  end
end

-- Adds accepted amounts all the way up; the report itself is kept with the budget it was made to.
function budget.spend(tx, path, amounts)
  for i, b in ipairs(path) do
    for name, n in pairs(amounts) do
      if b.used[name] then
        b.used[name] = b.used[name] + n
        if i > 1 then b.base[name] = b.base[name] + n end
      end
    end
    local soft = budget.soft({ b })
    if soft and not b.soft_told then
      b.soft_told = true
      event.of_fleet(tx, "budget.soft_breach", b.namespace, nil, nil, "budget_id", b.id, "dimension", soft.dimension)
    end
  end
end

-- A report is kept with its period, so that what is used can be counted again.
function budget.keep_report(tx, b, key, amounts, origin)
  local digest = redis.sha1hex(key)
  tx:hset(keys.budget_reports(tx, b.id), { digest, cmsgpack.pack({ b.period, budget.flat(amounts), origin or false }) })
  tx:zadd(keys.budget_report_times(tx, b.id), tx.now, digest)
end

-- Whether a report is known by its key, and from where it came.
function budget.report(tx, b, key)
  local packed = tx:hget(keys.budget_reports(tx, b.id), redis.sha1hex(key))
  if packed == nil then return false end
  return true, cmsgpack.unpack(packed)[3] or nil
end

-- Forgets reports that are older than any repetition; what they used stays counted.
function budget.prune(tx, b)
  local times, reports = keys.budget_report_times(tx, b.id), keys.budget_reports(tx, b.id)
  local until_ms = string.format("%.0f", tx.now - limits.usage_key_ttl_ms)
  for _, item in ipairs(tx:zlowest(times, "-inf", until_ms, limits.usage_keys_pruned_max)) do
    local kept = tx:hget(reports, item.member)
    if kept then
      local l = cmsgpack.unpack(kept)
      if l[1] == b.period then
        for name, n in pairs(budget.map(l[2])) do b.base[name] = b.base[name] + n end
      end
      tx:hdel(reports, item.member)
    end
    tx:zrem(times, item.member)
  end
end

function budget.note_action(tx, b, action, actor, dimension, delta, reason, request_id)
  b.actions[#b.actions + 1] = {
    action, actor, tx.now, dimension or false, delta or false, reason or false, request_id or false,
  }
  if #b.actions > limits.budget_actions_max then table.remove(b.actions, 1) end
end

-- True when this very request was done already: its answer was lost, or it comes late.
function budget.done(b, request_id)
  for _, a in ipairs(b.actions) do
    if request_id and a[7] == request_id then return true end
  end
  return false
end

-- The periods that ended, the oldest first.
local function past_of(b)
  local past = {}
  for i, p in ipairs(b.past) do past[i] = { since = p[1], ended_at = p[2], used = budget.map(p[3]) } end
  return past
end

function budget.typed(b)
  local dimensions, actions = {}, {}
  for i, d in ipairs(b.dimensions) do
    dimensions[i] = { name = d.name, hard = d.hard, soft = d.soft, used = b.used[d.name], held = b.held[d.name] }
  end
  for i, a in ipairs(b.actions) do
    actions[i] = {
      action = a[1], actor = a[2], at = a[3], dimension = a[4] or nil, delta = a[5] or nil, reason = a[6] or nil,
    }
  end
  return {
    budget_id = b.id, namespace = b.namespace, parent = b.parent, scope = b.scope, dimensions = dimensions,
    reset = b.reset, on_soft = b.on_soft, on_hard = b.on_hard, version = b.version, created_at = b.created,
    period = b.period, period_since = b.since, next_reset_at = b.next_reset, approved = b.approved, rooms = b.rooms,
    wide = b.wide, actions = actions, past = past_of(b),
  }
end

return budget
