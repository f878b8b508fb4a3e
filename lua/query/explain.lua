local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local queues = require "index.queues"
local execution = require "record.execution"
local lane = require "record.lane"
local view = require "record.view"

define.fn {
  name = "ff_explain_execution",
  doc = "The facts of this partition that say why an execution is not running.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id" },
  reply = { facts = { execution = "execution", lane_state = "lane_state?", max_active = "max_active?", ahead = "count?", queue = "queue", uncovered = "bool" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local path = execution.lane_path(rec)
    local copy = lane.load(tx, path)
    local ahead
    if rec.phase == "runnable" and rec.reason == nil and rec.delay == nil and rec.grant == nil then
      ahead = tx:zrank(keys.queue(tx, path, rec.spec.queue), rec.id)
    end
    local entry = queues.get(tx, path, rec.spec.queue)
    return reply.ok("facts", {
      execution = view.whole(tx, rec), lane_state = copy and copy.state, max_active = copy and copy.max_active, ahead = ahead, queue = rec.spec.queue, uncovered = entry ~= nil and entry.uncovered,
    })
  end,
}
