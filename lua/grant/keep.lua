local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local holds = require "record.holds"
local grant = require "transition.grant"

define.fn {
  name = "ff_keep_grant",
  doc = "Notes with a grant that is handed on which of its sets stay with the execution while its attempt is set "
    .. "aside: whoever consumes it need not know.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", grant_id = "grant_id", sets = "holder_sets" },
  reply = { kept = {} },
  errs = { "execution_not_found", "grant_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if not grant.open(rec, a.grant_id, tx.now) then return reply.err("grant_not_found", { grant_id = a.grant_id }) end
    holds.keep_aside(rec, a.sets)
    execution.save(tx, rec)
    return reply.ok("kept")
  end,
}
