local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local keys = require "lib.keys"
local lane = require "record.lane"

define.fn {
  name = "ff_define_lane",
  doc = "Creates or changes a lane's definition in the fleet's record; what is not named stays. Partitions get their "
    .. "copy by ff_install_lane.",
  flags = {},
  args = {
    namespace = "namespace", lane = "lane", actor = "actor", state = "lane_state?",
    priority_weight = "priority_weight?", fairness = "fairness?", fairness_weights = "fairness_weights?",
    max_depth = "count?", clear_max_depth = "bool?", max_active = "max_active?", clear_max_active = "bool?",
    weight = "weight?", retry = "retry?", attempt_timeout_ms = "duration_ms?", retention_ms = "duration_ms?",
    lease_ttl_ms = "lease_ttl_ms?",
  },
  reply = { defined = { entry = "lane_entry", changed = "bool" } },
  errs = {},
  call = function(tx, a)
    local path = a.namespace .. "/" .. a.lane
    local copy = lane.load(tx, path)
    local definition = lane.definition(copy or lane.defaults)
    for _, name in ipairs(lane.fields) do
      if a[name] ~= nil then definition[name] = a[name] end
    end
    if a.clear_max_depth then definition.max_depth = nil end
    if a.clear_max_active then definition.max_active = nil end
    local version = copy and copy.version or 0
    local changed = copy == nil or not lane.same(definition, lane.definition(copy))
    if changed then
      version = version + 1
      lane.store(tx, path, definition, version)
      if copy == nil then tx:zadd(keys.lanes(tx), tx.now, path) end
      event.of_fleet(tx, "lane.changed", a.namespace, a.lane, nil, "actor", a.actor, "state", definition.state)
    end
    return reply.ok("defined", {
      entry = { namespace = a.namespace, lane = a.lane, version = version, definition = definition }, changed = changed,
    })
  end,
}
