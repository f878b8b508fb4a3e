-- Removes a terminal execution and everything that belongs to it.
local keys = require "lib.keys"
local event = require "lib.event"
local fair = require "index.fair"
local home = require "index.home"
local lists = require "index.lists"
local timers = require "index.timers"
local execution = require "record.execution"
local frames = require "record.frames"
local signals = require "record.signals"
local waitpoint = require "record.waitpoint"

local retire = {}

function retire.execution(tx, rec)
  home.leave(tx, rec)
  fair.forget(tx, execution.lane_path(rec), rec)
  lists.remove(tx, rec)
  timers.clear(tx, rec.id)
  tx:del(keys.core(tx, rec.id))
  if rec.input_far then tx:del(keys.payload(tx, rec.id)) end
  if rec.result_far then tx:del(keys.result(tx, rec.id)) end
  if rec.spilled then tx:del(keys.attempts(tx, rec.id)) end
  waitpoint.remove_all(tx, rec)
  signals.remove_all(tx, rec)
  frames.remove_all(tx, rec)
  event.of_execution(tx, rec, "execution.retired", {})
end

return retire
