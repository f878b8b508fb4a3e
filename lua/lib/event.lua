-- One event per transition, appended to the partition's stream with the list that made it.
--
-- An event is a packed array: type, time, path of the lane, kind, execution, flow, attempt, worker, tags (a packed flat
-- list), and then its data, name and value in turn. An entry of the stream holds events one after the other.
local keys = require "lib.keys"

local pack, unpack_ = cmsgpack.pack, cmsgpack.unpack

local event = {}

-- What follows the kind of an event are its data: name, value, … in the order in which they are shown. The change that
-- ended a lease says how long it lasted.
function event.of_execution(tx, rec, kind, ...)
  local ran = rec.ran
  if ran then
    rec.ran = nil
    return tx:note(pack({
      kind, tx.now, rec.path, rec.kind, rec.id, rec.flow_id or false, rec.attempt or false,
      rec.worker or false, rec.tags or false, "ran_ms", ran, ...
    }))
  end
  tx:note(pack({
    kind, tx.now, rec.path, rec.kind, rec.id, rec.flow_id or false, rec.attempt or false,
    rec.worker or false, rec.tags or false, ...
  }))
end

function event.of_flow(tx, f, kind, ...)
  tx:note(pack({ kind, tx.now, f.namespace .. "/", f.kind, false, f.id, false, false, false, ... }))
end

-- Of the fleet: a worker, a budget, a lane or what an operator did.
function event.of_fleet(tx, kind, namespace, lane, worker, ...)
  tx:note(pack({
    kind, tx.now, (namespace or "") .. "/" .. (lane or ""), false, false, false, false, worker or false, false, ...
  }))
end

-- What became of a webhook belongs to what it tells of; `tags` are a packed flat list.
function event.of_webhook(tx, w, kind, tags, ...)
  tx:note(pack({
    kind, tx.now, w.namespace .. "/" .. (w.lane or ""), w.kind, w.execution_id or false, w.flow_id or false,
    w.attempt_index or false, false, tags or false, ...
  }))
end

-- Where the data of an event begin.
event.data_from = 10

-- The events of an entry, each as it was packed.
function event.all(entry)
  return { unpack_(entry) }
end

-- How many events are kept, by their numbers: an entry holds many.
function event.kept(tx)
  local first = tx:xrange(keys.events(tx), "-", "+", 1)[1]
  if first == nil then return 0 end
  return tonumber(tx:get(keys.event_count(tx))) - tonumber(first[2][1]) + 1
end

return event
