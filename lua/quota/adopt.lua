local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local home = require "index.home"
local queues = require "index.queues"
local execution = require "record.execution"
local holds = require "record.holds"

-- Up to `count` running executions of a queue behind a position, oldest first.
local function running(tx, key, after, count)
  local from = string.format("%.0f", home.active_from + (after and after.created_at or 0))
  local out, skip = {}, 0
  while #out < count do
    local page = tx:zlowest(key, from, "+inf", limits.list_looks_max, skip)
    for _, item in ipairs(page) do
      local behind = after == nil or item.score > home.active_from + after.created_at
        or item.member > after.execution_id
      if behind and #out < count then out[#out + 1] = item end
    end
    if #page < limits.list_looks_max then break end
    skip = skip + limits.list_looks_max
  end
  return out
end

-- The execution as a holder. With `note`, one that started before its lane was limited is named a holder now.
local function holder_of(tx, id, set, note)
  return tx:item(function()
    local rec = execution.load(tx, id)
    if rec == nil or rec.phase ~= "active" then return reply.err("execution_not_active") end
    if not holds.in_set(rec, set) then
      if not note then return { ok = false } end
      holds.join(rec, set)
      execution.save(tx, rec)
    end
    return { ok = { execution_id = id, holder_id = holds.of(rec) } }
  end)
end

-- The queues of a lane from the one a walk has reached, in order.
local function queues_from(tx, path, after)
  local names = {}
  for _, entry in ipairs(queues.all(tx, path)) do
    if after == nil or entry.queue >= after.queue then names[#names + 1] = entry.queue end
  end
  return names
end

define.fn {
  name = "ff_adopt_holders",
  doc = "The running executions of a lane as holders of its holder set, a page at a time. Those that started before "
    .. "the lane was limited are made holders with `note`, and counted without.",
  flags = { "allow-oom" },
  args = { namespace = "namespace", lane = "lane", note = "bool", after = "queue_position?", limit = "batch_size" },
  reply = { adopted = { holders = "[holder]", unnoted = "count", next = "queue_position?" } },
  errs = { "try_again" },
  call = function(tx, a)
    local path = a.namespace .. "/" .. a.lane
    local found, unnoted, seen, last = {}, 0, 0, nil
    for _, name in ipairs(queues_from(tx, path, a.after)) do
      local after = a.after and a.after.queue == name and a.after or nil
      for _, item in ipairs(running(tx, keys.queue_named(tx, path, name), after, a.limit - seen)) do
        -- A record that cannot be read is fsck's to report.
        local answer = holder_of(tx, item.member, holds.of_lane(path), a.note)
        if answer and answer.err == "try_again" then
          if last == nil then return answer end
          return reply.ok("adopted", { holders = found, unnoted = unnoted, next = last })
        end
        if answer and answer.ok then found[#found + 1] = answer.ok end
        if answer and answer.ok == false then unnoted = unnoted + 1 end
        seen, last = seen + 1, { queue = name, created_at = item.score - home.active_from, execution_id = item.member }
      end
      if seen == a.limit then return reply.ok("adopted", { holders = found, unnoted = unnoted, next = last }) end
    end
    return reply.ok("adopted", { holders = found, unnoted = unnoted })
  end,
}
