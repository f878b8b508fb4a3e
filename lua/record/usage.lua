-- What an execution reported to have used: reports that wait for their budget's answer, and the ledger of those that
-- were answered.
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local budget = require "record.budget"
local timers = require "index.timers"

local usage = {}

function usage.timer(id) return "usage:" .. id end

-- Reports that wait, in the order they were made.
function usage.pending(tx, rec)
  local packed = rec.reports and tx:hget(keys.usage(tx, rec.id), "pending")
  local list = {}
  for i, p in ipairs(packed and cmsgpack.unpack(packed) or {}) do
    list[i] = {
      sequence = p[1], budget_id = p[2], attempt_index = p[3], lease_id = p[4], dedup_key = p[5],
      dimensions = budget.map(p[6]), at = p[7], holder_id = p[8] or nil, reservation_id = p[9] or nil,
    }
  end
  return list
end

function usage.store_pending(tx, rec, list)
  local out = {}
  for i, p in ipairs(list) do
    out[i] = {
      p.sequence, p.budget_id, p.attempt_index, p.lease_id, p.dedup_key, budget.flat(p.dimensions), p.at,
      p.holder_id or false, p.reservation_id or false,
    }
  end
  tx:hset(keys.usage(tx, rec.id), { "pending", cmsgpack.pack(out) })
  if #out == 0 then timers.clear(tx, usage.timer(rec.id)) end
end

local function row(attempt, budget_id) return string.format("%.0f:%s", attempt, budget_id) end

-- Adds answered amounts to the ledger, as accepted or as refused.
function usage.enter(tx, rec, p, accepted)
  local key, field = keys.usage(tx, rec.id), row(p.attempt_index, p.budget_id)
  local packed = tx:hget(key, field)
  local lines, at = packed and cmsgpack.unpack(packed) or {}, {}
  for i, line in ipairs(lines) do at[line[1]] = i end
  for _, name in ipairs(budget.sorted(p.dimensions)) do
    if at[name] == nil then
      lines[#lines + 1] = { name, 0, 0 }
      at[name] = #lines
    end
    local line = lines[at[name]]
    local column = accepted and 2 or 3
    line[column] = math.min(line[column] + p.dimensions[name], budget.amount_max)
  end
  tx:hset(key, { field, cmsgpack.pack(lines) })
end

-- The ledger, by attempt, budget and dimension.
function usage.ledger(tx, rec)
  local out = {}
  for field, packed in pairs(rec.reports and tx:hgetall(keys.usage(tx, rec.id)) or {}) do
    local attempt, budget_id = string.match(field, "^(%d+):(.+)$")
    if attempt then
      for _, line in ipairs(cmsgpack.unpack(packed)) do
        out[#out + 1] = {
          attempt_index = tonumber(attempt), budget_id = budget_id, dimension = line[1], accepted = line[2],
          refused = line[3],
        }
      end
    end
  end
  table.sort(out, function(a, b)
    if a.attempt_index ~= b.attempt_index then return a.attempt_index < b.attempt_index end
    if a.budget_id ~= b.budget_id then return a.budget_id < b.budget_id end
    return a.dimension < b.dimension
  end)
  return out
end

-- Whoever noted a report settles it at once; when that did not happen, the outbox does it.
function usage.fire(tx, id)
  local rec = require("record.execution").load(tx, id)
  local list = rec and usage.pending(tx, rec) or {}
  if #list == 0 then return timers.clear(tx, usage.timer(id)) end
  for _, p in ipairs(list) do
    if p.at + limits.usage_again_ms <= tx.now then
      outbox.owe(tx, "apply_usage", { "execution_id", id, "sequence", string.format("%.0f", p.sequence) })
    end
  end
  tx:zadd(keys.timers(tx), tx.now + limits.usage_again_ms, usage.timer(id))
end

function usage.remove_all(tx, rec)
  if rec.reports == nil then return end
  tx:del(keys.usage(tx, rec.id))
  timers.clear(tx, usage.timer(rec.id))
end

return usage
