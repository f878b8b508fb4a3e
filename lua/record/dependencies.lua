-- What a member of a flow waits for: its inbound policy, how many of its edges are met or dead, and the edges
-- themselves.
local keys = require "lib.keys"

local dependencies = {}

-- Stored with the execution: { edges, met, dead, decided, bytes passed, edges whose failed upstream hopes for it }
-- where decided is false, "ready" or "skip".
function dependencies.load(rec)
  local d = rec.deps and cmsgpack.unpack(rec.deps) or { 0, 0, 0, false, 0, 0 }
  return { total = d[1], met = d[2], dead = d[3], decided = d[4] or nil, bytes = d[5], hopes = d[6] }
end

function dependencies.store(rec, d)
  rec.deps = cmsgpack.pack({ d.total, d.met, d.dead, d.decided or false, d.bytes, d.hopes })
end

-- True while the member may not run because of its edges.
function dependencies.waits(rec)
  return rec.hidden ~= nil or (rec.deps ~= nil and dependencies.load(rec).decided == nil)
end

-- True when one edge too many may fail without harm: the member takes up failures by going on without them.
function dependencies.is_race(rec)
  local inbound = rec.inbound
  return inbound ~= nil and inbound.policy ~= "all_of"
end

-- How many edges must be met.
function dependencies.needed(inbound, total)
  local policy = inbound and inbound.policy or "all_of"
  if policy == "all_of" then return total end
  if policy == "any_of" then return math.min(1, total) end
  return inbound.k
end

-- "ready" when the policy is met, "skip" when it no longer can be, nil while it is open.
function dependencies.judge(inbound, d)
  local needed = dependencies.needed(inbound, d.total)
  if d.met >= needed then return "ready" end
  if d.total - d.dead < needed then return "skip" end
end

-- Whether an outcome of the upstream meets an edge. One that never ran meets none.
function dependencies.meets(on, outcome)
  if on == "success" then return outcome == "success" end
  if on == "failure" then return outcome == "failed" or outcome == "expired" end
  return outcome ~= "skipped"
end

local function number(n) return string.format("%.0f", n) end

-- An edge out of a member is stored as { to, on, pass_as or false, state, hope, bytes passed }: hope says that a
-- failure of `from` may still be taken up by `to`.
local function unpack_edge(from, n, packed)
  local e = cmsgpack.unpack(packed)
  return {
    from = from, number = n, to = e[1], on = e[2], pass_as = e[3] or nil, state = e[4], hope = e[5], bytes = e[6],
  }
end

function dependencies.edge(tx, from, n)
  local packed = tx:hget(keys.edges_out(tx, from), number(n))
  return packed and unpack_edge(from, n, packed) or nil
end

-- The edges out of a member with these numbers.
function dependencies.edges(tx, from, first, last)
  local out = {}
  if last < first then return out end
  local key, fields = keys.edges_out(tx, from), {}
  for n = first, last do fields[#fields + 1] = number(n) end
  if not tx:plans(key) then
    for i, packed in ipairs(tx:hmget(key, fields)) do
      if not packed then error("CORRUPT " .. key .. " " .. fields[i]) end
      out[i] = unpack_edge(from, first + i - 1, packed)
    end
  else
    for n = first, last do out[#out + 1] = dependencies.edge(tx, from, n) end
  end
  return out
end

function dependencies.store_edge(tx, e)
  tx:hset(keys.edges_out(tx, e.from), {
    number(e.number), cmsgpack.pack({ e.to, e.on, e.pass_as or false, e.state, e.hope or false, e.bytes or 0 }),
  })
end

-- The upstreams of a member from a place on, a bounded number, each with the number of the edge there.
function dependencies.upstreams(tx, id, from, count)
  local key, out = keys.edges_in(tx, id), {}
  local flat = tx:zrange(key, number(from), number(from + count - 1), "WITHSCORES")
  for i = 1, #flat, 2 do out[#out + 1] = { from = flat[i], number = tonumber(flat[i + 1]) } end
  return out
end

-- What is passed to a member: name and upstream, with a mark in front until the edge is met.
function dependencies.promise(tx, e)
  if e.pass_as then tx:hset(keys.passed(tx, e.to), { e.pass_as, (e.state == "met" and "" or "?") .. e.from }) end
end

-- Names and upstreams of what has been passed, in the order of the names.
function dependencies.passed(tx, rec)
  local found, out = tx:hgetall(keys.passed(tx, rec.id)) or {}, {}
  for name, from in pairs(found) do
    if string.sub(from, 1, 1) ~= "?" then out[#out + 1] = { name = name, from = from } end
  end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

-- Plans the removal of everything a member's edges and an execution's children left.
function dependencies.remove_all(tx, rec)
  if rec.outs then tx:del(keys.edges_out(tx, rec.id)) end
  if rec.deps then tx:del(keys.edges_in(tx, rec.id)) end
  if rec.passes then tx:del(keys.passed(tx, rec.id)) end
  if rec.kids then tx:del(keys.children(tx, rec.id)) end
end

return dependencies
