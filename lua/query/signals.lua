local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local signals = require "record.signals"
local suspension = require "record.suspension"

define.fn {
  name = "ff_read_signals",
  doc = "Signals of an execution in order of arrival: all of them, or those that let its attempt go on.",
  flags = { "no-writes" },
  weight = "limit",
  args = { execution_id = "execution_id", resume_only = "bool", after = "stream_id?", limit = "list_limit" },
  reply = { page = { signals = "[signal]", more = "bool" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if not a.resume_only then
      local list, more = signals.after(tx, rec, a.after, math.min(a.limit, limits.stream_page_max))
      return reply.ok("page", { signals = list, more = more })
    end
    local woken = suspension.woken(rec)
    local satisfied = rec.satisfied and cmsgpack.unpack(rec.satisfied)
    -- What was enough without a wait came after the last resume: a suspend forgets it.
    local refs = satisfied and satisfied[2] or woken and woken.refs or {}
    local from = 1
    while a.after and refs[from] and signals.number(refs[from]) <= signals.number(a.after) do from = from + 1 end
    local count = math.min(a.limit, limits.stream_page_max)
    local list, more = signals.named(tx, rec, refs, from, count, limits.stream_read_bytes_max)
    return reply.ok("page", { signals = list, more = more })
  end,
}
