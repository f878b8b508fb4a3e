local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local children = require "record.children"
local dependencies = require "record.dependencies"
local queues = require "index.queues"
local execution = require "record.execution"
local holds = require "record.holds"
local lane = require "record.lane"
local view = require "record.view"

-- How far the edges into a member are, and the first upstreams that have not ended.
local function dependency_facts(tx, rec)
  local d, open = dependencies.load(rec), {}
  for _, item in ipairs(dependencies.upstreams(tx, rec.id, 0, limits.list_looks_max)) do
    if #open >= limits.dependencies_shown_max then break end
    local e = dependencies.edge(tx, item.from, item.number)
    local up = e.state == "pending" and execution.load(tx, item.from, true)
    if up then
      open[#open + 1] = { execution_id = up.id, key = up.key, state = execution.member_state(up), on = e.on }
    end
  end
  local inbound = rec.inbound
  return {
    policy = inbound and inbound.policy or "all_of", needed = dependencies.needed(inbound, d.total), total = d.total,
    met = d.met, dead = d.dead, held = rec.hidden ~= nil, open = open,
  }
end

local function children_facts(rec)
  local k = children.load(rec)
  return { total = k.total, open = k.open, nested = rec.nested }
end

define.fn {
  name = "ff_explain_execution",
  doc = "The facts of this partition that say why an execution is not running.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id" },
  reply = {
    facts = {
      execution = "execution", lane_state = "lane_state?", max_active = "max_active?", ahead = "count?",
      queue = "queue", uncovered = "bool", dependencies = "dependency_facts?", children = "children_facts?",
    },
  },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local path = rec.path
    local copy = lane.load(tx, path)
    local ahead
    if rec.phase == "runnable" and rec.reason == nil and rec.delay == nil and rec.grant == nil then
      ahead = tx:zrank(keys.queue(tx, path, rec.queue, rec.kind), rec.id)
    end
    local name = queues.name(rec.queue, rec.kind)
    local entry = queues.get(tx, path, name)
    local whole = view.whole(tx, rec)
    -- What its budgets have to admit: more than it estimated once a report was refused.
    whole.budgets = holds.asked_budgets(rec) or {}
    return reply.ok("facts", {
      execution = whole, lane_state = copy and copy.state, max_active = copy and copy.max_active, ahead = ahead,
      queue = name, uncovered = entry ~= nil and entry.uncovered,
      dependencies = rec.deps and dependency_facts(tx, rec) or nil,
      children = rec.reason == "waiting_for_children" and children_facts(rec) or nil,
    })
  end,
}
