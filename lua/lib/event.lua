-- One event per transition, appended to the partition's stream inside the same call.
local keys = require "lib.keys"
local limits = require "lib.limits"

local event = {}

local function append(tx, list)
  tx:xadd(keys.events(tx), limits.events_max, "e", cmsgpack.pack(list))
  if tx.listen then tx:announce("events") end
end

-- `data` is a flat list of texts: name, value, … The order of the list is the order of the fields.
function event.of_execution(tx, rec, kind, data)
  data = data or {}
  -- The change that ended the lease says how long it lasted.
  if rec.ran then
    data[#data + 1], data[#data + 2] = "ran_ms", string.format("%.0f", rec.ran)
    rec.ran = nil
  end
  append(tx, {
    kind, tx.now, rec.spec.namespace, rec.lane, rec.spec.kind, rec.id, rec.spec.flow_id or false,
    rec.attempt or false, rec.worker or false,
    rec.tags and cmsgpack.unpack(rec.tags) or {}, data,
  })
end

function event.of_flow(tx, f, kind, data)
  append(tx, { kind, tx.now, f.namespace, false, f.kind, false, f.id, false, false, {}, data or {} })
end

function event.of_fleet(tx, kind, namespace, lane, worker, data)
  append(tx, { kind, tx.now, namespace or false, lane or false, false, false, false, false, worker or false, {}, data or {} })
end

-- What became of a webhook belongs to what it tells of; `tags` are a flat list.
function event.of_webhook(tx, w, kind, tags, data)
  append(tx, { kind, tx.now, w.namespace, w.lane or false, w.kind, w.execution_id or false, w.flow_id or false, w.attempt_index or false, false, tags, data })
end

local function map_of(flat)
  local map = {}
  for i = 1, #flat, 2 do map[flat[i]] = flat[i + 1] end
  return map
end

-- The typed form of a stored entry.
function event.parse(entry)
  local e = cmsgpack.unpack(entry[2][2])
  return {
    id = entry[1], type = e[1], at = e[2], namespace = e[3] or nil, lane = e[4] or nil, kind = e[5] or nil,
    execution_id = e[6] or nil, flow_id = e[7] or nil, attempt_index = e[8] or nil, worker_instance = e[9] or nil,
    tags = map_of(e[10]), data = map_of(e[11]),
  }
end

return event
