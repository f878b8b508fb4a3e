-- The signals of an execution, in order of arrival: one stream, whose ids are `<milliseconds>-<number of the signal>`.
local keys = require "lib.keys"
local limits = require "lib.limits"

local signals = {}

-- How many arrived, and the time part of the last id.
local function counted(rec)
  local c = rec.signals and cmsgpack.unpack(rec.signals) or { 0, 0 }
  return c[1], c[2]
end

function signals.count(rec)
  return (counted(rec))
end

-- Plans the entry of a signal and answers its stream id.
function signals.append(tx, rec, s)
  local count, last = counted(rec)
  local at = math.max(tx.now, last)
  local ref = string.format("%.0f-%.0f", at, count + 1)
  rec.signals = cmsgpack.pack({ count + 1, at })
  tx:xput(keys.signals(tx, rec.id), ref, "s", cmsgpack.pack({
    s.signal_id, s.name, s.waitpoint_id or false, s.waitpoint_key or false, s.approver or false,
    s.payload or false, s.payload_encoding or false, s.category or false, s.source or false,
    s.source_identity or false, s.correlation_id or false, tx.now,
  }))
  return ref
end

-- The number of a signal, from its stream id.
function signals.number(ref)
  return tonumber(string.match(ref, "%-(%d+)$"))
end

local function typed(entry)
  local s = cmsgpack.unpack(entry[2][2])
  return {
    id = entry[1], signal_id = s[1], name = s[2], waitpoint_id = s[3] or nil, waitpoint_key = s[4] or nil,
    approver = s[5] or nil, payload = s[6] or nil, payload_encoding = s[7] or nil, category = s[8] or nil,
    source = s[9] or nil, source_identity = s[10] or nil, correlation_id = s[11] or nil, received_at = s[12],
  }
end

-- The signals after an id, oldest first; stops after enough bytes. The second answer says whether there are more.
function signals.after(tx, rec, after, limit)
  local out, bytes = {}, 0
  local from = after and "(" .. after or "-"
  local list, cut = tx:xsome(keys.signals(tx, rec.id), from, "+", limit + 1, limits.stream_read_bytes_max)
  for _, entry in ipairs(list) do
    if #out >= limit or bytes > limits.stream_read_bytes_max then return out, true end
    out[#out + 1] = typed(entry)
    bytes = bytes + #entry[2][2]
  end
  return out, cut
end

-- The signals with these ids, in order: at most `count`, and until `bytes_max` is passed. The second answer says
-- whether some are left out.
function signals.named(tx, rec, refs, from, count, bytes_max)
  local out, bytes = {}, 0
  for i = from, #refs do
    if #out >= count or bytes > bytes_max then return out, true end
    local entry = tx:xrange(keys.signals(tx, rec.id), refs[i], refs[i], 1)[1]
    if entry == nil then error("CORRUPT " .. keys.signals(tx, rec.id) .. " " .. refs[i]) end
    out[#out + 1] = typed(entry)
    bytes = bytes + #entry[2][2]
  end
  return out, false
end

-- What is remembered of a signal, by its id and by its idempotency key: { signal_id, at, outcome, effect, waitpoint_id
-- }. An idempotency key is the sender's: two approvers of one waitpoint may choose the same one.
local function key_field(waitpoint_id, approver, idempotency_key)
  return "k:"
    .. keys.digest(string.format("%s%d:", waitpoint_id, #(approver or "")) .. (approver or "") .. idempotency_key)
end

-- What is remembered of a signal with this id, and of one with this idempotency key that is not too long ago.
function signals.known(tx, rec, s, approver)
  if rec.signals == nil then return nil, nil end
  local fields = { s.signal_id }
  if s.idempotency_key then fields[2] = key_field(s.waitpoint_id, approver, s.idempotency_key) end
  local found = tx:hmget(keys.signal_keys(tx, rec.id), fields)
  local same = found[1] and cmsgpack.unpack(found[1]) or nil
  local alike = found[2] and cmsgpack.unpack(found[2]) or nil
  if alike and alike[2] + limits.signal_key_ttl_ms <= tx.now then alike = nil end
  return same, alike
end

function signals.remember(tx, rec, s, approver, outcome, effect)
  local packed = cmsgpack.pack({ s.signal_id, tx.now, outcome, effect, s.waitpoint_id })
  local fields = { s.signal_id, packed }
  if s.idempotency_key then fields[3], fields[4] = key_field(s.waitpoint_id, approver, s.idempotency_key), packed end
  tx:hset(keys.signal_keys(tx, rec.id), fields)
end

function signals.remove_all(tx, rec)
  if rec.signals == nil then return end
  tx:del(keys.signals(tx, rec.id))
  tx:del(keys.signal_keys(tx, rec.id))
end

return signals
