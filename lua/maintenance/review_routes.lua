local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local queues = require "index.queues"
local execution = require "record.execution"
local lane = require "record.lane"
local choose = require "transition.choose"
local runnable = require "transition.runnable"

-- What the workers of a lane take, one sort of them after the other.
local function classes_of(workers)
  local classes = {}
  for i, one in ipairs(workers) do
    classes[i] = { capabilities = choose.set_of(one.capabilities), kinds = one.kinds and choose.set_of(one.kinds) }
  end
  return classes
end

-- Whether somebody takes work of a kind with these requirements, and whether somebody takes the kind at all.
local function covered(kind, requires, classes)
  local taken = false
  for _, one in ipairs(classes) do
    if choose.takes_kind(one, kind) then
      taken = true
      if queues.covered(requires, one.capabilities) then return true, true end
    end
  end
  return false, taken
end

local function is_empty(tx, path, name)
  return tx:zcard(keys.queue_named(tx, path, name)) == 0
end

-- Notes for a queue since when nobody covers it; a second later it counts as uncovered. Answers when to look again.
-- While a lane has no worker at all, work that requires nothing waits where it is: the next worker may take any kind.
local function review_queue(tx, path, entry, classes)
  local now, name = tx.now, entry.queue
  local is_covered, kind_taken = covered(entry.kind, entry.requires, classes)
  local empty = (entry.uncovered_since or not is_covered or queues.main(tx, path) ~= name) and is_empty(tx, path, name)
  if is_covered or (empty and not entry.uncovered) then
    local known = entry.uncovered_since
    entry.uncovered_since, entry.uncovered, entry.kind_missing = nil, false, nil
    if empty and queues.main(tx, path) ~= name then
      queues.drop(tx, path, name)
    elseif known then
      queues.put(tx, path, entry)
    end
    return nil
  end
  if #classes == 0 and #entry.requires == 0 then return nil end
  local missing = not kind_taken and #classes > 0 or nil
  if entry.uncovered_since == nil then
    entry.uncovered_since = now
    queues.put(tx, path, entry)
  elseif not entry.uncovered and now - entry.uncovered_since >= limits.uncovered_grace_ms
    or entry.uncovered and entry.kind_missing ~= missing
  then
    entry.uncovered, entry.kind_missing = true, missing
    queues.put(tx, path, entry)
  end
  if not entry.uncovered then return entry.uncovered_since + limits.uncovered_grace_ms end
  local nothing_blocked = tx:zcard(keys.place(tx, path, "blocked:route")) == 0
  if nothing_blocked and empty then queues.drop(tx, path, name) end
  return nil
end

local function move(tx, id, expected, change, kind, data)
  local answer = tx:item(function()
    local rec = execution.load(tx, id)
    if rec == nil or rec.phase ~= "runnable" or rec.reason ~= expected then
      return reply.err("execution_not_runnable")
    end
    if change(rec) == false then return reply.err("execution_not_runnable") end
    execution.save(tx, rec)
    event.of_execution(tx, rec, kind, unpack(data))
    return reply.ok("moved")
  end)
  return answer ~= nil and answer.ok ~= nil
end

-- Moves what is eligible in an uncovered queue to blocked:route, up to `limit` of it. Answers how many moved, and
-- whether more wait.
local function block_queue(tx, path, entry, limit)
  local below, moved = "(" .. string.format("%.0f", limits.granted_from), 0
  local waiting = tx:zlowest(keys.queue_named(tx, path, entry.queue), "-inf", below, limit + 1)
  for i, item in ipairs(waiting) do
    if i > limit then return moved, true end
    local gone = move(tx, item.member, nil, function(rec)
      runnable.block_route(rec, entry, tx.now)
    end, "execution.blocked", { "reason", "waiting_for_capable_worker" })
    if gone then moved = moved + 1 end
  end
  return moved, false
end

-- Moves a page of what is blocked back where somebody takes it. Answers how many moved, and how many did not.
local function unblock_page(tx, path, ids, classes)
  local moved, kept = 0, 0
  for _, id in ipairs(ids) do
    local back = move(tx, id, "waiting_for_capable_worker", function(rec)
      if not covered(rec.kind, rec.requires or {}, classes) then return false end
      runnable.settle(tx, rec)
      return rec.reason == nil
    end, "execution.ready", { "cause", "waiting_for_capable_worker" })
    if back then moved = moved + 1 else kept = kept + 1 end
  end
  return moved, kept
end

-- Once no queue of a lane is without a worker, nothing needs to be asked at submissions.
local function forget_uncovered(tx, path)
  local copy = lane.load(tx, path)
  if copy == nil or lane.recall(tx, copy, "uncovered") == nil then return end
  for _, entry in ipairs(queues.all(tx, path)) do
    if entry.uncovered_since then return end
  end
  lane.remember(tx, copy, "uncovered", nil)
end

define.fn {
  name = "ff_review_routes",
  doc = "Compares the queues of a lane with what live workers take: moves what nobody takes to blocked:route and back "
    .. "what somebody takes again. Bounded; `cursor` goes on behind a blocked head, `skip` behind the queues that were "
    .. "compared.",
  flags = { "allow-oom" },
  args = {
    namespace = "namespace", lane = "lane", workers = "worker_classes", cursor = "count?", skip = "count?",
    limit = "batch_size",
  },
  reply = {
    reviewed = {
      blocked = "count", unblocked = "count", more = "bool", next_cursor = "count?", next_skip = "count?",
      again_at = "time_ms?",
    },
  },
  errs = {},
  call = function(tx, a)
    local path, classes, skip = a.namespace .. "/" .. a.lane, classes_of(a.workers), a.skip or 0
    local blocked, more, again_at, dropped = 0, false, nil, 0
    local names = queues.page(tx, path, skip, limits.queues_per_review_max)
    table.sort(names)
    for i, entry in ipairs(queues.several(tx, path, names)) do
      if entry then
        local due_at
        tx:item(function()
          due_at = review_queue(tx, path, entry, classes)
          return reply.ok("reviewed")
        end)
        if due_at and (again_at == nil or due_at < again_at) then again_at = due_at end
        if queues.get(tx, path, names[i]) == nil then dropped = dropped + 1 end
        if entry.uncovered then
          local moved, rest = block_queue(tx, path, entry, a.limit - blocked)
          blocked, more = blocked + moved, more or rest
        end
      end
    end
    local full = #names >= limits.queues_per_review_max
    local next_skip = full and skip + limits.queues_per_review_max - dropped or nil
    if not full then
      tx:item(function()
        forget_uncovered(tx, path)
        return reply.ok("reviewed")
      end)
    end

    local offset = a.cursor or 0
    local from, to = string.format("%.0f", offset), string.format("%.0f", offset + a.limit)
    local page = tx:zrange(keys.place(tx, path, "blocked:route"), from, to)
    local full_page = #page > a.limit
    if full_page then page[#page] = nil end
    local unblocked, kept = unblock_page(tx, path, page, classes)
    return reply.ok("reviewed", {
      blocked = blocked, unblocked = unblocked, more = more, again_at = again_at,
      next_cursor = full_page and offset + kept or nil, next_skip = next_skip,
    })
  end,
}
