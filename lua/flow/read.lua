local define = require "lib.define"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local flow = require "record.flow"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

local function member(rec)
  return {
    key = rec.key, execution_id = rec.id, number = rec.number, state = execution.member_state(rec), kind = rec.kind,
    lane = execution.lane(rec), inbound = rec.inbound, nested = rec.nested, edges_in = dependencies.load(rec).total,
    edges_out = rec.outs or 0,
  }
end

-- Edges of one member after a number, as many as fit; answers where they stopped, or nil when there are no more.
local function edges_of(tx, rec, after, out)
  local last = math.min(rec.outs or 0, after + limits.edges_per_call_max - #out)
  for _, e in ipairs(dependencies.edges(tx, rec.id, after + 1, last)) do
    out[#out + 1] = { from = e.from, to = e.to, on = e.on, pass_as = e.pass_as, state = e.state }
  end
  if last < (rec.outs or 0) then return last end
end

define.fn {
  name = "ff_read_flow",
  doc = "Members of a flow in the order they were added, a page at a time, with the edges out of them when asked for; "
    .. "`next` is where to go on.",
  flags = { "no-writes" },
  weight = "limit",
  args = { flow_id = "flow_id", after = "graph_position?", limit = "list_limit", edges = "bool" },
  reply = { page = { members = "[member]", edges = "[edge]", next = "graph_position?", version = "count" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    local after = a.after or { member = 0, edge = 0 }
    local members, edges = {}, {}
    local answer = { members = members, edges = edges, version = f.version }
    -- With an edge number the page goes on in the middle of that member's edges.
    local from = after.edge > 0 and string.format("%.0f", after.member) or string.format("(%.0f", after.member)
    for _, item in ipairs(tx:zlowest(keys.flow_members(tx, f.id), from, "+inf", a.limit)) do
      local rec = execution.load(tx, item.member, true)
      local within = after.edge > 0 and item.score == after.member
      if rec then
        if not within then members[#members + 1] = member(rec) end
        local stopped = a.edges and edges_of(tx, rec, within and after.edge or 0, edges)
        if stopped then
          -- A place before the member's first edge cannot be named: the member is read again with it.
          if stopped == 0 then
            members[#members] = nil
            answer.next = { member = item.score - 1, edge = 0 }
          else
            answer.next = { member = item.score, edge = stopped }
          end
          return reply.ok("page", answer)
        end
      end
      answer.next = { member = item.score, edge = 0 }
    end
    if answer.next and answer.next.member >= f.last then answer.next = nil end
    return reply.ok("page", answer)
  end,
}
