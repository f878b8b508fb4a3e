local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local limits = require "lib.limits"
local worker = require "record.worker"

define.fn {
  name = "ff_register_worker",
  doc = "Registers a worker instance or replaces what it serves; while another incarnation is alive it is refused "
    .. "unless `take_over` is set.",
  flags = { "allow-oom" },
  args = {
    instance = "instance", worker_id = "worker_id", namespace = "namespace", lanes = "lane_names",
    capabilities = "capabilities", kinds = "kinds?", slots = "slots", incarnation = "uuid?",
    take_over = "bool?", owner = "actor?",
  },
  reply = { registered = { expires_at = "time_ms", heartbeat_ms = "duration_ms" } },
  errs = { "instance_in_use", "capability_invalid" },
  call = function(tx, a, now)
    if #a.lanes == 0 then
      return reply.err("invalid_argument", { field = "lanes", problem = "must name at least one lane" })
    end
    if a.kinds and #a.kinds == 0 then
      return reply.err("invalid_argument", { field = "kinds", problem = "must name at least one kind" })
    end
    local known = worker.load(tx, a.instance)
    local alive = known and now < known.expires_at
    if alive and known.incarnation and a.incarnation and known.incarnation ~= a.incarnation and not a.take_over then
      return reply.err("instance_in_use", { instance = a.instance, registered_at = known.registered_at })
    end
    -- An instance is its owner's while it is alive, whoever else knows its name.
    if alive and known.owner ~= a.owner then
      return reply.err("instance_in_use", { instance = a.instance, registered_at = known.registered_at })
    end
    worker.save(tx, {
      instance = a.instance, worker_id = a.worker_id, namespace = a.namespace, lanes = a.lanes,
      capabilities = a.capabilities, kinds = a.kinds, slots = a.slots, state = "live", incarnation = a.incarnation,
      owner = a.owner,
      registered_at = known and known.registered_at or now, expires_at = now + limits.worker_ttl_ms,
    })
    event.of_fleet(tx, "worker.registered", a.namespace, nil, a.instance, "worker_id", a.worker_id)
    tx:announce("fleet")
    if alive and known.incarnation and known.incarnation ~= a.incarnation then tx:announce("replaced", a.instance) end
    return reply.ok("registered", {
      expires_at = now + limits.worker_ttl_ms, heartbeat_ms = math.floor(limits.worker_ttl_ms / 3),
    })
  end,
}
