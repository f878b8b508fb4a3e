-- Adding members and edges to a flow: what is new counts before anything can be claimed.
local dependencies = require "record.dependencies"
local event = require "lib.event"
local execution = require "record.execution"
local flow = require "record.flow"
local home = require "index.home"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local resolve = require "transition.resolve"
local runnable = require "transition.runnable"
local submit = require "transition.submit"

local grow = {}

local function invalid(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

local function member_at(at) return string.format("members[%d]", at - 1) end
local function edge_at(at) return string.format("edges[%d]", at - 1) end

-- The refusal when nothing can be added to the flow any more.
function grow.refusal(f)
  if f == nil then return reply.err("flow_not_found") end
  if f.stop or f.outcome or f.ended then return reply.err("flow_terminal", { state = flow.state(f) }) end
end

local function inbound_problem(inbound)
  if inbound == nil then return nil end
  if inbound.policy == "quorum" and inbound.k == nil then return "k", "is missing: quorum needs it" end
  if inbound.policy ~= "quorum" and inbound.k then return "k", "belongs to quorum" end
end

-- What a member shares with its flow and with nobody else.
local function place_of(f, m, budgets)
  return {
    flow_id = f.id, key = m.key, number = f.last + 1, inbound = m.inbound, nested = m.nested, budgets = budgets,
    deadline = f.deadline,
  }
end

-- Stores a new member, invisible for now. One that is released in the same call stands nowhere until then.
local function hide(tx, f, rec)
  rec.phase, rec.was_phase, rec.hidden, rec.bound = "runnable", "runnable", 1, 1
  -- The time it may wait for a worker begins when it could have one.
  if rec.start_by then rec.start_by = nil end
  f.last, f.stored = rec.number, f.stored + 1
  execution.block(rec, "waiting_for_dependencies", nil, tx.now)
  tx:zadd(keys.flow_members(tx, f.id), rec.number, rec.id)
  flow.name_member(tx, f, rec.key, rec.id)
  flow.enter(f, "held")
  rec.was_state, rec.updated = "held", tx.now
  if not f.releases then home.move(tx, rec, home.of(rec)) end
  execution.store(tx, rec)
end

-- Makes one member; answers { id, rec, duplicate } or nil and the refusal. `at` is its place in the call.
local function member(tx, f, m, at, budgets)
  local s = m.submission
  if string.sub(s.execution_id, -4) ~= string.sub(f.id, -4) then
    return nil, invalid(
      member_at(at) .. ".submission.execution_id", "must end like the flow's id: they share a partition"
    )
  end
  if s.namespace ~= f.namespace then
    return nil, invalid(member_at(at) .. ".submission.namespace", "must be the flow's, " .. f.namespace)
  end
  local field, problem = inbound_problem(m.inbound)
  if field then return nil, invalid(member_at(at) .. ".inbound." .. field, problem) end
  local known = flow.member_id(tx, f, m.key)
  if known then
    local rec = execution.load(tx, known, true)
    if rec and rec.digest == s.body_digest then return { id = known, rec = rec, duplicate = true } end
    return nil, reply.err("idempotency_conflict", { field = member_at(at) .. ".key", execution_id = known })
  end
  if f.stored >= limits.members_max then return nil, reply.err("flow_full", { members_max = limits.members_max }) end
  local nested = m.nested and flow.load(tx, m.nested)
  if m.nested then
    if nested == nil or nested.parent ~= s.execution_id or nested.sealed then
      return nil, invalid(member_at(at) .. ".nested", "must be an unsealed flow made for this member")
    end
  end
  local place = place_of(f, m, budgets)
  local answer = submit.repeated(tx, s, place)
  if answer and answer.err then return nil, answer end
  -- An id or a key that belongs to someone else already.
  if answer then
    return nil, reply.err("idempotency_conflict", {
      field = member_at(at) .. ".submission", execution_id = answer.fields.execution_id,
    })
  end
  local rec, refusal = submit.new(tx, s, place)
  if refusal then return nil, refusal end
  if nested then
    nested.adopted = 1
    flow.save(tx, nested)
  end
  hide(tx, f, rec)
  return { id = rec.id, rec = rec, duplicate = false }
end

local function add_ends(names, edges)
  for _, e in ipairs(edges) do names[#names + 1], names[#names + 2] = e.from, e.to end
end

-- Makes members that these edges belong to; answers a list of { id, rec, duplicate }, or nil and the refusal. The
-- caller saves the flow.
function grow.members(tx, f, list, edges)
  local out, names, ids = {}, {}, {}
  for i, m in ipairs(list) do names[i], ids[i] = m.key, m.submission.execution_id end
  add_ends(names, edges)
  flow.look_up(tx, f, names)
  execution.expect_new(tx, ids)
  local _, _, budgets = flow.defaults(f)
  for i, m in ipairs(list) do
    local made, refusal = member(tx, f, m, i, budgets)
    if refusal then return nil, refusal end
    out[i] = made
  end
  return out
end

local function started(rec)
  return rec.phase ~= "runnable" or (rec.attempt ~= nil and rec.next ~= "replay") or rec.grant ~= nil
    or rec.reason == "waiting_for_children"
end

-- Stores an edge on both sides. `up` and `down` are saved by those who call, with `d`, what `down` waits for.
local function store(tx, up, down, d, e)
  up.outs = (up.outs or 0) + 1
  local edge = { from = up.id, to = down.id, number = up.outs, on = e.on, pass_as = e.pass_as, state = "pending" }
  dependencies.store_edge(tx, edge)
  tx:zadd(keys.edges_in(tx, down.id), edge.number, up.id)
  if e.pass_as then
    down.passes = 1
    dependencies.promise(tx, edge)
  end
  d.total, d.from[up.id] = d.total + 1, edge.number
  -- A member that could have run waits again, unless it needs no more than it has.
  if d.decided and dependencies.judge(down.inbound, d) ~= "ready" then d.decided = nil end
  return edge
end

-- The number of the edge between two members at the first one, or nil.
local function known_edge(tx, d, from, to, fresh)
  return d.from[from] or (not fresh and tx:zscore(keys.edges_in(tx, to), from)) or nil
end

-- What a member waits for while edges are added, with those that this call has added by their upstreams.
local function waits_of(open, down)
  local d = open[down.id]
  if d == nil then
    d = dependencies.load(down)
    d.from, open[down.id] = {}, d
  end
  return d
end

-- `fresh` is the set of members made in this call. An edge between members that were there must not close a cycle:
-- `checked` says that the caller looked at the graph as it is; without it the edge must lead forward, in a flow whose
-- edges all do. `open` is what members wait for that have got edges already.
local function edge(tx, f, e, at, fresh, checked, open)
  local from, to = flow.member_id(tx, f, e.from), flow.member_id(tx, f, e.to)
  if from == nil then return nil, invalid(edge_at(at) .. ".from", "is not the key of a member: " .. e.from) end
  if to == nil then return nil, invalid(edge_at(at) .. ".to", "is not the key of a member: " .. e.to) end
  if from == to then return nil, reply.err("cycle_detected", { field = edge_at(at), key = e.from }) end
  local up, down = execution.load(tx, from, true), execution.load(tx, to, true)
  local d = waits_of(open, down)
  local number = known_edge(tx, d, from, to, fresh[to])
  if number then
    local known = dependencies.edge(tx, from, number)
    if known.on == e.on and known.pass_as == e.pass_as then return { up = up, down = down } end
    return nil, reply.err("idempotency_conflict", {
      field = edge_at(at), problem = "there is another edge between these members",
    })
  end
  local forward = up.number < down.number
  if not checked then
    if not forward then return nil, reply.err("cycle_detected", { field = edge_at(at), key = e.to }) end
    if not fresh[to] and (f.sealed or f.backward) then
      return nil, reply.err("flow_changed", { version = f.version })
    end
  end
  if not fresh[to] and not down.hidden and started(down) then
    return nil, reply.err("member_started", { field = edge_at(at) .. ".to", key = e.to, execution_id = to })
  end
  if e.pass_as and tx:hget(keys.passed(tx, to), e.pass_as) then
    return nil, invalid(edge_at(at) .. ".pass_as", "is passed by another edge")
  end
  if not forward then f.backward = 1 end
  return { up = up, down = down, edge = store(tx, up, down, d, e) }
end

-- Reads at once what the edges lead from and to.
local function read_ends(tx, f, list)
  local names, ids, seen = {}, {}, {}
  add_ends(names, list)
  flow.look_up(tx, f, names)
  for _, name in ipairs(names) do
    local id = flow.member_id(tx, f, name)
    if id and not seen[id] then
      seen[id], ids[#ids + 1] = true, id
    end
  end
  execution.fetch(tx, ids)
end

-- A hidden member stands nowhere that its edges could move it from.
local function save(tx, rec)
  if not rec.hidden then return execution.save(tx, rec) end
  rec.updated = tx.now
  execution.store(tx, rec)
end

-- Adds edges; answers how many were new, or nil and the refusal.
function grow.edges(tx, f, list, fresh, checked)
  local made, touched, order, open = {}, {}, {}, {}
  local function touch(rec)
    if not touched[rec.id] then
      touched[rec.id] = true
      order[#order + 1] = rec
    end
  end
  read_ends(tx, f, list)
  for i, e in ipairs(list) do
    local one, refusal = edge(tx, f, e, i, fresh, checked, open)
    if refusal then return nil, refusal end
    if one.edge then
      made[#made + 1] = one
      touch(one.up)
      touch(one.down)
    end
  end
  for _, rec in ipairs(order) do
    if open[rec.id] then dependencies.store(rec, open[rec.id]) end
    save(tx, rec)
  end
  if #made > 0 then f.version = f.version + 1 end
  return made
end

-- What new edges mean, once the members are visible: those from ended upstreams resolve at once, and a member that
-- could have run may have to wait again.
function grow.count(tx, f, made)
  for _, one in ipairs(made) do
    local up, down = one.up, one.down
    if not down.hidden and down.reason ~= "held_by_operator" and down.phase == "runnable" and dependencies.waits(down)
      and down.reason ~= "waiting_for_dependencies"
    then
      down.start_by = nil
      runnable.settle(tx, down)
      execution.save(tx, down)
      event.of_execution(tx, down, "execution.blocked", "reason", down.reason)
    end
    -- An upstream whose end still reaches its edges one by one will reach this one too.
    if up.phase == "terminal" and (up.reached or 0) == one.edge.number - 1 then
      resolve.edge(tx, f, up, one.edge)
      up.reached = one.edge.number
    end
    resolve.weigh(tx, f, up)
  end
end

return grow
