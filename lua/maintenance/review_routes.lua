local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local home = require "index.home"
local queues = require "index.queues"
local execution = require "record.execution"
local choose = require "transition.choose"
local runnable = require "transition.runnable"

local function covered(requires, sets)
  for _, set in ipairs(sets) do
    if queues.covered(requires, set) then return true end
  end
  return false
end

-- Notes for each queue since when nobody covers it; a second later it counts as uncovered.
local function review_queue(tx, path, entry, sets)
  local now = tx.now
  if not entry.uncovered and tx:zcard(keys.queue(tx, path, entry.queue)) == 0 then
    queues.drop(tx, path, entry.queue)
    return nil
  end
  if covered(entry.requires, sets) then
    if entry.uncovered_since then
      entry.uncovered_since, entry.uncovered = nil, false
      if tx:zcard(keys.queue(tx, path, entry.queue)) == 0 then
        queues.drop(tx, path, entry.queue)
      else
        queues.put(tx, path, entry)
      end
    end
    return nil
  end
  if entry.uncovered_since == nil then
    entry.uncovered_since = now
    queues.put(tx, path, entry)
  elseif not entry.uncovered and now - entry.uncovered_since >= limits.uncovered_grace_ms then
    entry.uncovered = true
    queues.put(tx, path, entry)
  end
  if not entry.uncovered then return entry.uncovered_since + limits.uncovered_grace_ms end
  local nothing_blocked = tx:zcard(keys.place(tx, path, "blocked:route")) == 0
  if nothing_blocked and tx:zcard(keys.queue(tx, path, entry.queue)) == 0 then queues.drop(tx, path, entry.queue) end
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

define.fn {
  name = "ff_review_routes",
  doc = "Compares a lane's waiting requirement sets with the capability sets of live workers: moves what nobody covers "
    .. "to blocked:route and back what somebody covers again. Bounded; `cursor` goes on behind a blocked head.",
  flags = { "allow-oom" },
  args = {
    namespace = "namespace", lane = "lane", capability_sets = "capability_sets", cursor = "count?",
    limit = "batch_size",
  },
  reply = {
    reviewed = { blocked = "count", unblocked = "count", more = "bool", next_cursor = "count?", again_at = "time_ms?" },
  },
  errs = {},
  call = function(tx, a)
    local path = a.namespace .. "/" .. a.lane
    local sets = {}
    for i, list in ipairs(a.capability_sets) do sets[i] = choose.set_of(list) end
    local blocked, unblocked, more, again_at = 0, 0, false, nil

    for _, entry in ipairs(queues.all(tx, path)) do
      if #entry.requires > 0 then
        local due_at
        tx:item(function()
          due_at = review_queue(tx, path, entry, sets)
          return reply.ok("reviewed")
        end)
        if due_at and (again_at == nil or due_at < again_at) then again_at = due_at end
        if entry.uncovered then
          local granted = "(" .. string.format("%.0f", home.granted_from)
          local waiting = tx:zlowest(keys.queue(tx, path, entry.queue), "-inf", granted, a.limit + 1)
          for i, item in ipairs(waiting) do
            if i > a.limit or blocked >= a.limit then more = true break end
            local gone = move(tx, item.member, nil, function(rec)
              runnable.block_route(rec, tx.now)
            end, "execution.blocked", { "reason", "waiting_for_capable_worker" })
            if gone then blocked = blocked + 1 end
          end
        end
      end
    end

    local offset = a.cursor or 0
    local from, to = string.format("%.0f", offset), string.format("%.0f", offset + a.limit)
    local page = tx:zrange(keys.place(tx, path, "blocked:route"), from, to)
    local kept = 0
    for i, id in ipairs(page) do
      if i > a.limit then break end
      local back = move(tx, id, "waiting_for_capable_worker", function(rec)
        if not covered(rec.requires, sets) then return false end
        runnable.settle(tx, rec)
        return rec.reason == nil
      end, "execution.ready", { "cause", "waiting_for_capable_worker" })
      if back then unblocked = unblocked + 1 else kept = kept + 1 end
    end
    local next_cursor = #page > a.limit and offset + kept or nil
    return reply.ok("reviewed", {
      blocked = blocked, unblocked = unblocked, more = more, next_cursor = next_cursor, again_at = again_at,
    })
  end,
}
