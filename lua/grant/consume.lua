local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local choose = require "transition.choose"
local consume = require "transition.consume"
local start = require "transition.start"

define.fn {
  name = "ff_consume_grant",
  doc = "Turns a grant into a lease for the worker it was given to. `keep` names the sets that stay with it while its "
    .. "attempt is set aside.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", grant_id = "grant_id", instance = "instance", worker_id = "worker_id",
    capabilities = "capabilities", kinds = "kind_set?", lease_ttl_ms = "lease_ttl_ms", attempt_id = "attempt_id",
    lease_id = "lease_id", keep = "holder_sets?",
  },
  reply = { claimed = { task = "task" }, replayed = { task = "task" } },
  errs = { "execution_not_found", "grant_not_found", "not_capable", "capability_invalid" },
  call = function(tx, a)
    local rec, replayed = consume.one(tx, a, choose.worker(a.capabilities, a.kinds), a)
    if rec == nil then return replayed end
    if replayed then return reply.ok("replayed", { task = start.task(tx, rec) }) end
    consume.announce(tx, rec.path, rec.wake)
    return reply.ok("claimed", { task = start.task(tx, rec) })
  end,
}
