local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local attempt = require "record.attempt"
local execution = require "record.execution"

define.fn {
  name = "ff_read_summary",
  doc = "The summary document of an attempt's stream and its version; version 0 is an empty one.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id", attempt_index = "attempt_index?" },
  reply = { summary = { document = "summary_document?", version = "count", attempt_index = "attempt_index?" } },
  errs = { "execution_not_found", "attempt_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local found = attempt.find(tx, rec, a.attempt_index)
    if found == nil then
      if a.attempt_index then return reply.err("attempt_not_found", { attempt_index = a.attempt_index }) end
      return reply.ok("summary", { version = 0 })
    end
    local packed = tx:get(keys.stream_summary(tx, rec.id, found.index))
    local stored = packed and cmsgpack.unpack(packed) or { 0 }
    return reply.ok("summary", { document = stored[2], version = stored[1], attempt_index = found.index })
  end,
}
