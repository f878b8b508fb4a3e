-- Every module of the library, in reading order: the bundle is made of these, and booting requires each.
return {
  "lib.limits", "lib.errors", "lib.types", "lib.check", "lib.define", "lib.reply", "lib.tx", "lib.keys", "lib.backoff", "lib.event", "lib.outbox",
  "record.spec", "record.lane", "record.execution", "record.attempt", "record.fence", "record.view", "record.worker",
  "index.queues", "index.home", "index.leases", "index.timers", "index.lists", "index.fair",
  "transition.runnable", "transition.score", "transition.submit", "transition.choose", "transition.grant", "transition.start", "transition.renew",
  "transition.complete", "transition.finish", "transition.retry", "transition.interrupt", "transition.retire", "transition.due",
  "execution.submit", "execution.submit_many", "execution.complete", "execution.complete_many", "execution.fail", "execution.cancel", "execution.cancel_attempt",
  "execution.delay", "execution.yield", "execution.progress", "execution.hold", "execution.release", "execution.change", "execution.replay",
  "execution.delete", "execution.await",
  "lease.claim", "lease.renew", "lease.renew_many", "lease.revoke", "lease.drain",
  "grant.issue", "grant.consume", "grant.release", "grant.block", "grant.unblock", "grant.reclaim",
  "lane.define", "lane.get", "lane.list", "lane.install",
  "worker.register", "worker.heartbeat", "worker.deregister", "worker.challenge", "worker.answer_challenge", "worker.drain", "worker.mark_dead", "worker.list", "worker.get",
  "worker.heartbeat_server",
  "query.describe", "query.attempt", "query.list", "query.events", "query.outbox", "query.explain", "query.leases", "query.stats", "query.depth", "query.library",
  "maintenance.invariants", "maintenance.fire_due", "maintenance.next_due", "maintenance.ack_outbox", "maintenance.trim_events", "maintenance.review_routes",
  "maintenance.fix_partitions", "maintenance.check_executions", "maintenance.check_keys",
}
