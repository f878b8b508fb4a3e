-- The children an execution spawned: how many, how many are still open, and what became of each.
local keys = require "lib.keys"
local execution = require "record.execution"

local children = {}

-- Stored with the parent: { spawned, not ended yet }.
function children.load(rec)
  local k = rec.kids and cmsgpack.unpack(rec.kids) or { 0, 0 }
  return { total = k[1], open = k[2] }
end

function children.store(rec, k)
  rec.kids = cmsgpack.pack({ k.total, k.open })
end

local function number(n) return string.format("%.0f", n) end

-- The ids of children from a number on, in the order they were spawned.
function children.ids(tx, rec, from, count)
  local ids = {}
  for i, item in ipairs(tx:zlowest(keys.children(tx, rec.id), number(from), "+inf", count)) do ids[i] = item.member end
  return ids
end

-- Forgets a child that is retired.
function children.forget(tx, rec)
  local parent = execution.load(tx, rec.parent_id)
  if parent then tx:zrem(keys.children(tx, parent.id), rec.id) end
end

function children.typed(tx, rec)
  local view = require "record.view"
  return {
    execution_id = rec.id, number = rec.number, key = rec.key, state = execution.public_state(rec),
    outcome = rec.outcome, result = view.result(tx, rec), result_encoding = view.result_encoding(rec),
    failure = view.failure(rec),
  }
end

-- Children from a number on, until so many or so many bytes of results; the second answer is where to go on, or nil.
function children.page(tx, rec, from, count, bytes_max)
  local out, bytes = {}, 0
  local total = children.load(rec).total
  for _, id in ipairs(children.ids(tx, rec, from, count)) do
    local child = execution.load(tx, id)
    if child then
      local typed = children.typed(tx, child)
      bytes = bytes + #(typed.result or "")
      if #out > 0 and bytes > bytes_max then return out, typed.number end
      out[#out + 1] = typed
      from = typed.number + 1
    end
  end
  return out, #out == count and from <= total and from or nil
end

return children
