-- What a suspension waits for: a tree of conditions over signals.
--
-- A condition is open while neither it nor one above it is satisfied. An arriving signal counts for every open leaf
-- that names it; when none took it, it counts for the first open leaf without a name that it fits, leaves of its own
-- waitpoint first. So two conditions never share a signal unless they name the same one.
local limits = require "lib.limits"

local condition = {}

-- Stored node: { op, parent or false, name or false, waitpoint key or false, n, over or false, taken = list of { stream
-- id, who } }.
local OP, PARENT, NAME, WAITPOINT, N, OVER, TAKEN = 1, 2, 3, 4, 5, 6, 7

local function is_leaf(op) return op == "signal" or op == "count" end

local function node_problem(nodes, i, depth)
  local node = nodes[i]
  if i == 1 then
    if node.parent ~= nil then return "must not have a parent: it is the first" end
    depth[i] = 1
  else
    local parent = node.parent and node.parent < i - 1 and nodes[node.parent + 1]
    if not parent then return "must name a parent listed before it" end
    if is_leaf(parent.op) then return "has a parent that holds no conditions" end
    depth[i] = depth[node.parent + 1] + 1
  end
  if depth[i] > limits.condition_depth_max then
    return string.format("is deeper than %d", limits.condition_depth_max)
  end
  if node.op == "count" and (node.n == nil or node.over == nil) then return "must say n and over" end
  if node.op ~= "count" and (node.n or node.over) then return "has n or over, which belong to a count" end
  if not is_leaf(node.op) and (node.name or node.waitpoint) then
    return "has a name or a waitpoint, which belong to a signal or a count"
  end
end

-- The field and the problem of a tree that cannot be waited for, or nil. `keys` is the set of waitpoint keys it may
-- name.
function condition.problem(nodes, keys)
  local depth, leaves, children = {}, 0, {}
  for i, node in ipairs(nodes) do
    local text = node_problem(nodes, i, depth)
    if text then return string.format("condition[%d]", i - 1), text end
    if node.parent then children[node.parent + 1] = true end
    if is_leaf(node.op) then leaves = leaves + 1 end
    if node.waitpoint and not keys[node.waitpoint] then
      return string.format("condition[%d].waitpoint", i - 1), "is not the key of a waitpoint of this suspension"
    end
  end
  for i, node in ipairs(nodes) do
    if not is_leaf(node.op) and not children[i] then
      return string.format("condition[%d]", i - 1), "holds no conditions"
    end
  end
  if leaves > limits.condition_leaves_max then
    return "condition", string.format("must hold at most %d leaves, got %d", limits.condition_leaves_max, leaves)
  end
end

-- The state of a tree nothing has arrived for; without nodes any signal satisfies it.
function condition.new(nodes)
  if #nodes == 0 then return { { "signal", false, false, false, 1, false, {} } } end
  local state = {}
  for i, node in ipairs(nodes) do
    state[i] = {
      node.op, node.parent or false, node.name or false, node.waitpoint or false, node.op == "count" and node.n or 1,
      node.over or false, {},
    }
  end
  return state
end

-- Per node whether it is satisfied. Children stand after their parents.
local function evaluate(state)
  local done, any, missing = {}, {}, {}
  for i = #state, 1, -1 do
    local node = state[i]
    if is_leaf(node[OP]) then
      done[i] = #node[TAKEN] >= node[N]
    elseif node[OP] == "any_of" then
      done[i] = any[i] == true
    else
      done[i] = not missing[i]
    end
    if node[PARENT] then
      local parent = node[PARENT] + 1
      if done[i] then any[parent] = true else missing[parent] = true end
    end
  end
  return done
end

local function is_open(state, done, i)
  while true do
    if done[i] then return false end
    if not state[i][PARENT] then return true end
    i = state[i][PARENT] + 1
  end
end

local function takes(node, s)
  if node[WAITPOINT] and node[WAITPOINT] ~= s.key then return false end
  if node[OVER] == nil or node[OVER] == false or node[OVER] == "signals" then return true end
  local who = node[OVER] == "waitpoints" and s.waitpoint_id or s.who
  for _, taken in ipairs(node[TAKEN]) do
    if taken[2] == who then return false end
  end
  return true
end

local function take(node, s)
  node[TAKEN][#node[TAKEN] + 1] = { s.ref, node[OVER] == "waitpoints" and s.waitpoint_id or s.who }
end

-- `s`: { ref, name, key, waitpoint_id, who }; `who` is the approver the token was made for. Answers whether it counted
-- and whether the tree is satisfied now.
function condition.arrive(state, s)
  local done = evaluate(state)
  if done[1] then return false, true end
  local counted = false
  for i, node in ipairs(state) do
    if is_leaf(node[OP]) and node[NAME] == s.name and is_open(state, done, i) and takes(node, s) then
      take(node, s)
      counted = true
    end
  end
  for pass = 1, 2 do
    for i, node in ipairs(state) do
      local bound = node[WAITPOINT] ~= false
      if not counted and is_leaf(node[OP]) and not node[NAME] and bound == (pass == 1) and is_open(state, done, i)
        and takes(node, s)
      then
        take(node, s)
        counted = true
      end
    end
  end
  return counted, evaluate(state)[1]
end

-- The signals that satisfied the tree: those of satisfied leaves below satisfied conditions only, in order of arrival.
function condition.satisfying(state, number)
  local done, seen, refs = evaluate(state), {}, {}
  for i, node in ipairs(state) do
    local counts = is_leaf(node[OP])
    local at = i
    while counts and at do
      counts = done[at]
      at = state[at][PARENT] and state[at][PARENT] + 1 or nil
    end
    if counts then
      for _, taken in ipairs(node[TAKEN]) do
        if not seen[taken[1]] then
          seen[taken[1]] = true
          refs[#refs + 1] = taken[1]
        end
      end
    end
  end
  table.sort(refs, function(a, b) return number(a) < number(b) end)
  return refs
end

-- The signals that counted so far, in order of arrival.
function condition.counted(state, number)
  local seen, refs = {}, {}
  for _, node in ipairs(state) do
    for _, taken in ipairs(node[TAKEN]) do
      if not seen[taken[1]] then
        seen[taken[1]] = true
        refs[#refs + 1] = taken[1]
      end
    end
  end
  table.sort(refs, function(a, b) return number(a) < number(b) end)
  return refs
end

-- Per node how far it is.
function condition.progress(state)
  local done, out = evaluate(state), {}
  for i, node in ipairs(state) do
    out[i] = {
      op = node[OP], parent = node[PARENT] or nil, name = node[NAME] or nil, waitpoint = node[WAITPOINT] or nil,
      n = node[OP] == "count" and node[N] or nil, over = node[OVER] or nil, counted = #node[TAKEN], satisfied = done[i],
    }
  end
  return out
end

return condition
