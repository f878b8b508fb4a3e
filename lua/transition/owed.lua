-- What a transition owes other records of its partition: done at once as far as one call's share goes, the rest is kept
-- with the record that owes it and paid by whoever fires timers. Work that leads to more work waits in line: a deep
-- flow is not a deep call.
local limits = require "lib.limits"
local execution = require "record.execution"
local flow = require "record.flow"
local timers = require "index.timers"

local owed = {}

-- Kind of work -> function(tx, rec, from, share) that does it from a place on and answers how many records it touched
-- and where it stopped, or nil when it is done. Filled by those who know how.
owed.steps = {}
-- function(tx, flow) that looks whether a flow has ended; filled as above.
owed.settle_flow = nil

function owed.timer(id)
  return "owed:" .. id
end

local function load_debts(rec)
  return rec.owed and cmsgpack.unpack(rec.owed) or {}
end

local function count_in_flow(tx, rec, by)
  local f = rec.flow_id and flow.load(tx, rec.flow_id)
  if f == nil then return end
  local n = (f.owed or 0) + by
  f.owed = n ~= 0 and n or nil
  flow.save(tx, f)
end

local function store_debts(tx, rec, debts)
  local had = rec.owed ~= nil
  rec.owed = #debts > 0 and cmsgpack.pack(debts) or nil
  if rec.owed and not had then
    timers.set(tx, owed.timer(rec.id), tx.now)
    count_in_flow(tx, rec, 1)
  elseif had and not rec.owed then
    timers.clear(tx, owed.timer(rec.id))
    count_in_flow(tx, rec, -1)
  end
  execution.save(tx, rec)
end

local function keep(tx, rec, kind, from)
  local debts = load_debts(rec)
  debts[#debts + 1] = { kind, from }
  store_debts(tx, rec, debts)
end

-- Works through the line, then looks at the flows it touched; their end may put more in the line.
local function work(tx, line)
  local share, at, settled = limits.consequences_max, 1, 1
  while true do
    local item = line[at]
    if item then
      at = at + 1
      local rec = execution.load(tx, item.id, true)
      if rec then
        local touched, rest = 0, item.from
        if share > 0 then touched, rest = owed.steps[item.kind](tx, rec, item.from, share) end
        share = share - touched
        if rest then keep(tx, rec, item.kind, rest) end
      end
    elseif line.flows[settled] then
      local f = flow.load(tx, line.flows[settled])
      settled = settled + 1
      if f then
        line.waiting[f.id] = nil
        owed.settle_flow(tx, f)
      end
    else
      return
    end
  end
end

-- Runs `body` with a line of work open, and works through it afterwards; one that is open already takes it.
function owed.during(tx, body)
  if tx.memo.line then return body() end
  local line = { flows = {}, waiting = {} }
  tx.memo.line = line
  local answer = body()
  work(tx, line)
  tx.memo.line = nil
  return answer
end

-- Work of a kind for a record, from a place on.
function owed.add(tx, rec, kind, from)
  owed.during(tx, function()
    local line = tx.memo.line
    line[#line + 1] = { id = rec.id, kind = kind, from = from }
  end)
end

-- The flow may have ended: looked at when everything else is done.
function owed.look_at_flow(tx, id)
  owed.during(tx, function()
    local line = tx.memo.line
    if not line.waiting[id] then
      line.waiting[id] = true
      line.flows[#line.flows + 1] = id
    end
  end)
end

-- Pays a share of what a record owes; called when its timer fires.
function owed.pay(tx, id)
  local rec = execution.load(tx, id, true)
  local debts = rec and load_debts(rec) or {}
  if #debts == 0 then return timers.clear(tx, owed.timer(id)) end
  owed.during(tx, function()
    local line = tx.memo.line
    for _, debt in ipairs(debts) do line[#line + 1] = { id = id, kind = debt[1], from = debt[2] } end
    store_debts(tx, rec, {})
    if rec.flow_id then owed.look_at_flow(tx, rec.flow_id) end
  end)
end

return owed
