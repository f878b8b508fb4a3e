-- What a submitter said, as one packed value: it never changes after submission. What the common path needs of it stands in the
-- execution's own record as well, so that the rest is read only when something asks for it.
local keys = require "lib.keys"
local fields = require "record.fields"

local spec = {}

-- Stored as a list in this order; absent values are false, so that the list has no holes.
local order = {
  "namespace", "kind", "input_encoding", "created_at", "start_within_ms", "attempt_timeout_ms", "max_reclaims", "max_replays",
  "requires", "prefers", "fairness_key", "budgets", "quotas", "fallbacks", "retention_ms", "max_frames", "trace_parent", "webhook",
  "retry", "body_digest", "queue", "input",
  -- Of a member: its flow, its key and number there, when it may run, the flow that runs in its place. Of a child: its parent,
  -- its number there, and what the parent's end means for it.
  "flow_id", "key", "number", "inbound", "nested", "parent_id", "parent_close",
}

local position = {}
for i, name in ipairs(order) do position[name] = i end

-- So many of them belong to an execution that is neither member nor child.
local alone = 22

local function or_false(v)
  if v == nil then return false end
  return v
end

local function pack_retry(r)
  local b = r.backoff
  return {
    r.max_attempts, b.type, or_false(b.delay_ms), or_false(b.initial_ms), or_false(b.factor), or_false(b.max_ms), r.jitter,
    or_false(r.retry_on), or_false(r.never_on),
  }
end

local function unpack_retry(l)
  return {
    max_attempts = l[1],
    backoff = { type = l[2], delay_ms = l[3] or nil, initial_ms = l[4] or nil, factor = l[5] or nil, max_ms = l[6] or nil },
    jitter = l[7], retry_on = l[8] or nil, never_on = l[9] or nil,
  }
end

local function sorted_names(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function pack_budgets(list)
  local out = {}
  for i, ref in ipairs(list) do
    local flat = false
    if ref.estimate then
      flat = {}
      for _, name in ipairs(sorted_names(ref.estimate)) do
        flat[#flat + 1] = name
        flat[#flat + 1] = ref.estimate[name]
      end
    end
    out[i] = { ref.budget_id, flat }
  end
  return out
end

local function unpack_budgets(list)
  local out = {}
  for i, ref in ipairs(list) do
    local estimate
    if ref[2] then
      estimate = {}
      for j = 1, #ref[2], 2 do estimate[ref[2][j]] = ref[2][j + 1] end
    end
    out[i] = { budget_id = ref[1], estimate = estimate }
  end
  return out
end

local function pack_quotas(list)
  local out = {}
  for i, ref in ipairs(list) do out[i] = { ref.quota_id, ref.key, ref.weight or 1 } end
  return out
end

local function unpack_quotas(list)
  local out = {}
  for i, ref in ipairs(list) do out[i] = { quota_id = ref[1], key = ref[2], weight = ref[3] } end
  return out
end

local function pack_inbound(i)
  return { i.policy, i.k or false, i.on_satisfied or "let_run" }
end

local function unpack_inbound(l)
  return { policy = l[1], k = l[2] or nil, on_satisfied = l[3] }
end

function spec.pack(s)
  local list = {
    s.namespace, s.kind, s.input_encoding, s.created_at, s.start_within_ms or false, s.attempt_timeout_ms or false, s.max_reclaims, s.max_replays,
    s.requires, s.prefers, s.fairness_key or false, pack_budgets(s.budgets), pack_quotas(s.quotas), s.fallbacks, s.retention_ms, s.max_frames,
    s.trace_parent or false, s.webhook or false, pack_retry(s.retry), s.body_digest, s.queue, s.input or false,
  }
  if s.flow_id or s.parent_id then
    for i = alone + 1, #order do list[i] = or_false(s[order[i]]) end
    if s.inbound then list[position.inbound] = pack_inbound(s.inbound) end
  end
  return cmsgpack.pack(list)
end

local decode = { budgets = unpack_budgets, quotas = unpack_quotas, retry = unpack_retry, inbound = unpack_inbound }

-- What stands in the execution's record too, as its fields declare: absent there is absent.
local near = {}
local function note_near(field)
  if type(field) == "table" then
    for _, one in ipairs(field) do note_near(one) end
  else
    local name = string.match(field, "^spec%.(.+)$")
    if name then near[name] = true end
  end
end
for _, field in ipairs(fields.execution) do note_near(field) end

-- Anything else is read when it is first asked for, and decoded when it is.
local lazy = {
  __index = function(s, name)
    local at = position[name]
    if near[name] or at == nil then return nil end
    local list = rawget(s, "list")
    if list == nil then
      list = spec.read(rawget(s, "tx"), rawget(s, "id"))
      rawset(s, "list", list)
    end
    local value = list[at] or nil
    if value ~= nil then
      if decode[name] then value = decode[name](value) end
      rawset(s, name, value)
    end
    return value
  end,
}

local function only(key, fine, list, ...)
  if not fine or select("#", ...) > 0 or type(list) ~= "table" then error("CORRUPT " .. key .. " array") end
  return list
end

-- What a key holds as a list: exactly one, and nothing after it.
function spec.list(key, stored)
  return only(key, pcall(cmsgpack.unpack, stored))
end

-- The stored list of values.
function spec.read(tx, id)
  local key = keys.spec(tx, id)
  return spec.list(key, tx:get(key) or "")
end

-- Lets a record that was just opened reach all of it.
function spec.complete(tx, rec)
  local s = rec.spec
  s.tx, s.id = tx, rec.id
  setmetatable(s, lazy)
end

function spec.store(tx, rec)
  tx:set(keys.spec(tx, rec.id), spec.pack(rec.spec))
end

spec.pack_budgets, spec.unpack_budgets = pack_budgets, unpack_budgets

-- A retry policy with gaps, as someone gave it.
function spec.pack_partial_retry(r)
  local b = r.backoff or {}
  return {
    or_false(r.max_attempts), or_false(b.type), or_false(b.delay_ms), or_false(b.initial_ms), or_false(b.factor), or_false(b.max_ms),
    or_false(r.jitter), or_false(r.retry_on), or_false(r.never_on),
  }
end

function spec.unpack_partial_retry(l)
  local r = { max_attempts = l[1] or nil, jitter = l[7] or nil, retry_on = l[8] or nil, never_on = l[9] or nil }
  if l[2] then r.backoff = { type = l[2], delay_ms = l[3] or nil, initial_ms = l[4] or nil, factor = l[5] or nil, max_ms = l[6] or nil } end
  return r
end

-- A map of texts as a flat list with sorted names.
function spec.flatten(map)
  local flat = {}
  for _, name in ipairs(sorted_names(map)) do
    flat[#flat + 1] = name
    flat[#flat + 1] = map[name]
  end
  return flat
end

function spec.unflatten(packed)
  local map = {}
  if packed then
    local flat = cmsgpack.unpack(packed)
    for i = 1, #flat, 2 do map[flat[i]] = flat[i + 1] end
  end
  return map
end

return spec
