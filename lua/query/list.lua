local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local home = require "index.home"
local queues = require "index.queues"
local execution = require "record.execution"
local view = require "record.view"

local by_creation = {
  delayed = "delayed", suspended = "suspended", completed = "terminal", failed = "terminal", cancelled = "terminal",
  expired = "terminal", skipped = "terminal",
}

-- The narrowest indexes that hold every match, each with what its scores add to the creation time.
local function sources(tx, a)
  if a.tag_key then return { { keys.tag(tx, a.tag_key, a.tag_value), 0 } } end
  if a.kind then return { { keys.kind(tx, a.kind), 0 } } end
  if a.namespace and a.lane and a.state then
    local path = a.namespace .. "/" .. a.lane
    if by_creation[a.state] then return { { keys.place(tx, path, by_creation[a.state]), 0 } } end
    if a.state == "active" then
      local list = {}
      for _, entry in ipairs(queues.all(tx, path)) do
        list[#list + 1] = { keys.queue_named(tx, path, entry.queue), home.active_from }
      end
      return list
    end
  end
  return { { keys.all(tx), 0 } }
end

local function before(a, b)
  if a.created_at ~= b.created_at then return a.created_at > b.created_at end
  return a.id > b.id
end

local function number(n) return string.format("%.0f", n) end

-- The entries of the position's own millisecond that come after it: those with a smaller id.
local function same_millisecond(tx, key, at, id)
  local found, offset = {}, 0
  for _ = 1, limits.list_pages_per_millisecond_max do
    local page = tx:zhighest(key, at, at, limits.list_looks_max, offset)
    for _, item in ipairs(page) do
      if item.member < id then found[#found + 1] = item end
    end
    offset = offset + #page
    if #page < limits.list_looks_max then break end
  end
  return found
end

-- Entries of one index after the position, newest first: at most `looks`, and those of the position's own millisecond.
local function entries_of(tx, source, a, looks)
  local key, base = source[1], source[2]
  local high, low = base + limits.time_ms_max / 8, base + (a.created_after or 0)
  if a.created_before then high = base + a.created_before end
  local after = a.after
  local found, full
  if after and base + after.created_at <= high then
    local at = number(base + after.created_at)
    found = same_millisecond(tx, key, at, after.execution_id)
    local older = tx:zhighest(key, "(" .. at, number(low), looks)
    for _, item in ipairs(older) do found[#found + 1] = item end
    full = #older == looks
  else
    found = tx:zhighest(key, number(high), number(low), looks)
    full = #found == looks
  end
  local list = {}
  for _, item in ipairs(found) do
    local entry = { id = item.member, created_at = item.score - base }
    local outside = item.score < low or item.score > high
    if not outside and (after == nil or before({ id = after.execution_id, created_at = after.created_at }, entry)) then
      list[#list + 1] = entry
    end
  end
  return list, full
end

local function tag_matches(rec, a)
  if a.tag_key == nil then return true end
  local flat = rec.tags and cmsgpack.unpack(rec.tags) or {}
  for i = 1, #flat, 2 do
    if flat[i] == a.tag_key then return flat[i + 1] == a.tag_value end
  end
  return false
end

local function matches(rec, a)
  return (a.namespace == nil or execution.namespace(rec) == a.namespace)
    and (a.lane == nil or execution.lane(rec) == a.lane)
    and (a.kind == nil or rec.kind == a.kind)
    and (a.state == nil or execution.public_state(rec) == a.state)
    and (a.worker == nil or (rec.phase == "active" and rec.worker == a.worker))
    and tag_matches(rec, a)
end

local function worker_entries(tx, a)
  local leases = require "index.leases"
  local list = {}
  for _, id in ipairs(leases.ids(tx, a.worker)) do
    local rec = execution.load(tx, id)
    if rec then
      local entry = { id = id, created_at = rec.created }
      local later = a.after == nil or before({ id = a.after.execution_id, created_at = a.after.created_at }, entry)
      local inside = entry.created_at >= (a.created_after or 0)
        and entry.created_at <= (a.created_before or limits.time_ms_max)
      if later and inside then list[#list + 1] = entry end
    end
  end
  return list
end

-- The members of a flow, the one added last first; `after` is the last one looked at.
local function member_entries(tx, a, looks)
  local last = a.after and execution.load(tx, a.after.execution_id)
  if a.after and last == nil then return {}, false end
  local top = last and string.format("(%.0f", last.number) or "+inf"
  local list = {}
  local found = tx:zhighest(keys.flow_members(tx, a.flow_id), top, "-inf", looks)
  for _, item in ipairs(found) do
    local rec = execution.load(tx, item.member)
    local created = rec and rec.created
    if rec and created >= (a.created_after or 0) and created <= (a.created_before or limits.time_ms_max) then
      list[#list + 1] = { id = item.member, created_at = created }
    end
  end
  return list, #found == looks
end

define.fn {
  name = "ff_list_executions",
  doc = "Executions of this partition, newest first, that match every filter given. Looks at a bounded number of index "
    .. "entries; a page may be short, `more` says whether to go on after `last`.",
  flags = { "no-writes" },
  weight = "limit",
  args = {
    namespace = "namespace?", lane = "lane?", kind = "kind?", state = "public_state?", tag_key = "tag_key?",
    tag_value = "tag_value?", worker = "instance?", flow_id = "flow_id?", created_after = "time_ms?",
    created_before = "time_ms?", after = "position?", limit = "list_limit",
  },
  reply = { page = { items = "[summary]", last = "position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    if (a.tag_key == nil) ~= (a.tag_value == nil) then
      return reply.err("invalid_argument", { field = "tag_value", problem = "tag_key and tag_value go together" })
    end
    local entries, more = {}, false
    if a.flow_id then
      entries, more = member_entries(tx, a, math.min(limits.list_looks_max, math.max(a.limit * 2, 64)))
    elseif a.worker and not a.tag_key then
      entries = worker_entries(tx, a)
    else
      local looks = math.min(limits.list_looks_max, math.max(a.limit * 2, 64))
      for _, source in ipairs(sources(tx, a)) do
        local found, full = entries_of(tx, source, a, looks)
        more = more or full
        for _, entry in ipairs(found) do entries[#entries + 1] = entry end
      end
    end
    if not a.flow_id then table.sort(entries, before) end
    local items, last = {}, nil
    for i, entry in ipairs(entries) do
      if #items >= a.limit then more = true break end
      local rec = execution.load(tx, entry.id)
      if rec and matches(rec, a) then items[#items + 1] = { rec.id, tx:record(keys.core(tx, rec.id)) } end
      last = { created_at = entry.created_at, execution_id = entry.id }
      if i >= limits.list_looks_max then more = more or #entries > i break end
    end
    return reply.ok("page", { items = items, last = last, more = more })
  end,
}
