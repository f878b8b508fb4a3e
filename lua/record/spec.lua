-- What a submitter said that is seldom asked for: a packed value of its own, there only when something of it was said.
-- And the ways in which lists and maps are packed elsewhere.
local keys = require "lib.keys"
local packed = require "record.packed"

local spec = {}

-- What was said, read once per plan.
function spec.of(tx, rec)
  if rec.spec then return rec.spec end
  local said = {}
  if rec.said then
    local key = keys.spec(tx, rec.id)
    said = packed.open_spec(key, tx:record(key) or "")
  end
  rec.spec = said
  return said
end

-- Plans it for a new record.
function spec.store(tx, rec, s)
  if s.retry == nil and s.trace_parent == nil and (s.fallbacks == nil or #s.fallbacks == 0) then return end
  rec.said = 1
  tx:set(keys.spec(tx, rec.id), packed.close_spec({
    retry = s.retry, fallbacks = s.fallbacks, trace_parent = s.trace_parent,
  }))
end

-- Fills the gaps of a retry policy: first from the lane, as it was at submission, then from the engine's defaults.
function spec.retry(tx, rec)
  local given, of_lane = spec.of(tx, rec).retry or {}, rec.lane_retry or {}
  local b = given.backoff or of_lane.backoff or { type = "exponential" }
  local backoff
  if b.type == "fixed" then
    backoff = { type = "fixed", delay_ms = b.delay_ms or 1000 }
  else
    backoff = {
      type = "exponential", initial_ms = b.initial_ms or 1000, factor = b.factor or 2, max_ms = b.max_ms or 60000,
    }
  end
  return {
    max_attempts = given.max_attempts or of_lane.max_attempts or 3, backoff = backoff,
    jitter = given.jitter or of_lane.jitter or "full", retry_on = given.retry_on or of_lane.retry_on,
    never_on = given.never_on or of_lane.never_on,
  }
end

function spec.fallbacks(tx, rec)
  return spec.of(tx, rec).fallbacks or {}
end

-- The input, or an empty text.
function spec.input(tx, rec)
  return rec.input and tx:get(keys.input(tx, rec.id)) or ""
end

local function sorted_names(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names)
  return names
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

function spec.unflatten(bytes)
  local map = {}
  if bytes then
    local flat = cmsgpack.unpack(bytes)
    for i = 1, #flat, 2 do map[flat[i]] = flat[i + 1] end
  end
  return map
end

return spec
