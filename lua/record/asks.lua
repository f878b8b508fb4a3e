-- What must admit an execution: the quotas and budgets it names. Stored as one text, which many executions share.
local keys = require "lib.keys"
local spec = require "record.spec"

local asks = {}

local pack, unpack_ = cmsgpack.pack, cmsgpack.unpack

-- The names of the sets in which executions are held.
function asks.set_of_quota(id, digest) return "quota:" .. id .. ":" .. digest end
function asks.set_of_budget(id) return "budget:" .. id end

-- { { quota, key, weight } … }, { { budget, estimate as a flat list or false } … }; nil when nothing is named.
function asks.packed(quotas, budgets)
  if quotas == nil and budgets == nil then return nil end
  local some, others = {}, {}
  for i, ref in ipairs(quotas or {}) do some[i] = { ref.quota_id, ref.key, ref.weight or 1 } end
  for i, ref in ipairs(budgets or {}) do
    others[i] = { ref.budget_id, ref.estimate and spec.flatten(ref.estimate) or false }
  end
  return pack({ some, others })
end

local function map_of(flat)
  local map = {}
  for i = 1, #flat, 2 do map[flat[i]] = flat[i + 1] end
  return map
end

local function opened(text)
  local stored = unpack_(text)
  local o = { quotas = {}, budgets = {}, sets = {} }
  local function enter(set)
    for _, known in ipairs(o.sets) do
      if known == set then return end
    end
    o.sets[#o.sets + 1] = set
  end
  for i, ref in ipairs(stored[1]) do
    o.quotas[i] = { quota_id = ref[1], key = ref[2], weight = ref[3] }
    enter(asks.set_of_quota(ref[1], keys.digest(ref[2])))
  end
  for i, ref in ipairs(stored[2]) do
    o.budgets[i] = { budget_id = ref[1], estimate = ref[2] and map_of(ref[2]) or nil }
    enter(asks.set_of_budget(ref[1]))
  end
  return o
end

local nothing = { quotas = {}, budgets = {}, sets = {} }
-- A few texts as they were opened.
local known, count = {}, 0

-- { quotas, budgets, sets }: references as they were submitted, and the names of the sets that hold the execution while
-- it runs. Nobody changes any of it.
function asks.open(text)
  if not text then return nothing end
  local o = known[text]
  if o == nil then
    if count >= 256 then known, count = {}, 0 end
    o = opened(text)
    known[text], count = o, count + 1
  end
  return o
end

function asks.of(rec)
  return asks.open(rec.asks)
end

return asks
