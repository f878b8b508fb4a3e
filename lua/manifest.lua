-- Every module of the library in reading order. The bundle is made of these, and booting requires each.
return {
  "lib.limits", "lib.errors", "lib.types", "lib.check", "lib.define", "lib.reply", "lib.tx", "lib.keys", "lib.id",
  "lib.bytes", "lib.backoff", "lib.event", "lib.outbox",

  "record.fields", "record.packed", "record.spec", "record.asks", "record.more", "record.waits", "record.lane",
  "record.holds", "record.fired", "record.quota", "record.flow", "record.execution", "record.running",
  "record.dependencies", "record.children", "record.signals", "record.waitpoint", "record.suspension", "record.step",
  "record.frames", "record.attempt",
  "record.fence", "record.view", "record.waitpoint_view", "record.worker", "record.tally",

  "index.queues", "index.awaits", "index.gone", "index.home", "index.leases", "index.timers", "index.lists",
  "index.fair", "index.holders", "index.quota_capacity", "index.quota_line", "index.quota_key", "index.inbox",
  "record.budget", "record.budget_holds",

  "transition.runnable", "transition.score", "transition.member", "transition.plain", "transition.submit",
  "transition.owed", "transition.stop", "transition.resolve", "transition.aftermath", "transition.walk",
  "transition.grow", "transition.reopen", "transition.choose", "transition.grant", "transition.start",
  "transition.consume", "transition.block", "transition.renew", "transition.unblock", "transition.ask",
  "transition.give_back", "transition.admit", "transition.take", "transition.pay", "transition.complete",
  "transition.finish", "transition.retry", "transition.interrupt", "transition.retire", "transition.condition",
  "transition.suspend", "transition.resume", "transition.signal", "transition.due",

  "execution.submit", "execution.complete", "execution.fail", "execution.cancel", "execution.cancel_attempt",
  "execution.delay", "execution.yield", "execution.progress", "execution.hold", "execution.release",
  "execution.change", "execution.replay", "execution.delete", "execution.await",

  "lease.claim", "lease.renew", "lease.revoke", "lease.drain",

  "grant.issue", "grant.consume", "grant.keep", "grant.release", "grant.block", "grant.unblock", "grant.reclaim",

  "suspension.suspend", "suspension.resume", "suspension.fail",

  "waitpoint.create", "waitpoint.close", "waitpoint.signal", "waitpoint.reissue", "waitpoint.list",
  "waitpoint.describe", "waitpoint.of_execution",

  "stream.append", "stream.read", "stream.summary", "stream.follow",

  "flow.submit", "flow.add_members", "flow.add_edges", "flow.seal", "flow.cancel", "flow.walk", "flow.describe",
  "flow.await", "flow.read", "flow.list",

  "child.spawn", "child.wait", "child.read",

  "step.store", "step.note", "step.get", "step.list", "step.sleep", "step.fork",

  "index.receivers", "record.webhook", "webhook.take", "webhook.note", "webhook.describe",

  "record.schedule", "transition.fire", "schedule.put", "schedule.get", "schedule.list", "schedule.delete",
  "schedule.pause", "schedule.resume", "schedule.trigger", "schedule.backfill", "schedule.stop_backfill",
  "schedule.refill", "schedule.refill_backfill", "schedule.firings", "schedule.take", "schedule.settle",
  "schedule.ended",

  "keyring.note", "operator.record",

  "record.access", "access.grant", "access.find", "access.list", "access.revoke",

  "quota.set_capacity", "quota.admit", "quota.confirm", "quota.release", "quota.list", "quota.check", "quota.adopt",
  "quota.put", "quota.get", "quota.list_quotas", "quota.list_keys", "quota.delete", "quota.ask", "quota.return",
  "quota.give_up", "quota.settle", "quota.throttle", "quota.list_waiters", "quota.stats",

  "budget.create", "budget.change", "budget.get", "budget.list", "budget.stats", "budget.delete", "budget.reset",
  "budget.approve", "budget.correct", "budget.admit", "budget.release", "budget.reserve", "budget.settle",
  "budget.release_reservation", "budget.apply", "budget.set_next_reset", "budget.cleared", "budget.acknowledge",

  "record.usage", "transition.park", "usage.note", "usage.settle", "usage.read", "usage.hold", "usage.quota_holder",
  "usage.waiting", "usage.unblock", "usage.awaiting", "usage.missing", "scope.note", "scope.budgets",

  "lane.define", "lane.get", "lane.list", "lane.install",

  "worker.register", "worker.heartbeat", "worker.deregister", "worker.challenge", "worker.answer_challenge",
  "worker.drain", "worker.mark_dead", "worker.list", "worker.get", "worker.offer", "worker.heartbeat_server",

  "query.describe", "query.attempt", "query.list", "query.events", "query.outbox", "query.explain",
  "query.explain_lane", "query.ahead", "query.leases", "query.signals", "query.stats", "query.depth", "query.library",

  "maintenance.flow_invariants", "maintenance.head_invariants", "maintenance.quota_invariants",
  "maintenance.budget_invariants", "maintenance.schedule_invariants", "maintenance.invariants", "maintenance.fire_due",
  "maintenance.next_due", "maintenance.ack_outbox", "maintenance.tally_events", "maintenance.trim_events",
  "maintenance.review_routes", "maintenance.fix_partitions", "maintenance.check_executions", "maintenance.check_keys",
}
