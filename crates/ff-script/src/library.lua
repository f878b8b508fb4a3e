#!lua name=flowfabric
-- Written by `cargo xtask codegen` from lua/; do not edit.
local LIBRARY = { number = 65, hash = "003789992dbc14a9d5fb9203ad88d7c434f5a25c6a5fbb3f0c126ed021e8238a" }
local source = {} -- module name -> function that returns the module

source["manifest"] = function(require, LIBRARY)
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
end

source["lib.limits"] = function(require, LIBRARY)
-- Every bound of the library, named once; contracts and loops refer to these.
return {
  format = 3, -- of what is stored
  input_bytes_max = 1048576,
  result_bytes_max = 1048576,
  result_inline_bytes_max = 512, -- a result up to this size stands in the execution's record
  reason_bytes_max = 4096,
  progress_message_bytes_max = 1024,
  kind_bytes_max = 128,
  name_bytes_max = 64, -- lane, namespace, worker, instance
  tags_max = 64,
  tag_key_bytes_max = 128,
  tag_value_bytes_max = 1024,
  capabilities_max = 64,
  capability_bytes_max = 4096,
  idempotency_key_bytes_max = 256,
  fairness_key_bytes_max = 256,
  priority_max = 9000,
  attempts_max = 10000,
  reclaims_default = 5,
  replays_default = 10,
  frames_default = 10000,
  fallbacks_max = 16,
  fallback_bytes_max = 4096,
  budgets_max = 16,
  quotas_max = 16,
  accesses_max = 10000,
  dimensions_max = 32,
  weights_max = 256, -- fairness weights of one lane
  lanes_per_worker_max = 64,
  lanes_per_call_max = 32, -- lanes whose work one call counts
  active_max = 1000000, -- the highest max_active of a lane
  holder_set_bytes_max = 512,
  rate_max = 1000000, -- the highest limit of a quota's rate
  window_ms_max = 2678400000, -- 31 days
  window_sweep_max = 1000, -- entries behind a window that one call removes
  call_again_ms = 500, -- when a quota looks whether those it called have come
  quota_walk_max = 16, -- keys of a changed quota that one step looks at
  overdue_again_ms = 1000, -- how often it is said that holders are overdue, until someone has asked for them
  duration_ms_max = 315360000000, -- ten years
  time_ms_max = 9007199254740991, -- 2^53 - 1
  lease_ttl_ms_min = 1000,
  lease_ttl_ms_max = 3600000,
  grant_ttl_ms_min = 100,
  grant_ttl_ms_max = 60000,
  batch_max = 64, -- items of one call
  claim_bytes_max = 4194304, -- inputs and passed results of the tasks of one claim
  prefer_window = 16, -- candidates compared by preferred capabilities
  -- attempts kept at hand: the last one in the record of the execution, the others beside it; older ones spill
  attempts_inline_max = 8,
  operator_actions_max = 100,
  list_looks_max = 1000, -- index entries one list call looks at
  list_limit_max = 1000,
  list_pages_per_millisecond_max = 64,
  kinds_max = 1000, -- of one worker
  queues_per_grant_max = 256, -- queues in which a repeated request for grants is looked for
  queues_per_review_max = 256, -- queues one call compares with the workers there are
  queues_named_max = 128, -- queues a claim looks for by name when others stand in front of them
  heads_page_min = 16, -- heads of queues a claim reads at first, beyond those it needs
  heads_page_max = 1024, -- and at most at once
  heads_looks_max = 16384, -- heads of queues one claim looks at
  -- The bands of a queue's scores: eligible work stands below the granted, and that below the active.
  granted_from = 2000000000000000,
  active_from = 4000000000000000,
  renewals_reset_reclaims = 3,
  uncovered_grace_ms = 1000,
  events_max = 1000000,
  events_per_entry_max = 64,
  event_entry_bytes_max = 65536,
  events_age_ms_max = 604800000,
  tally_lines_max = 512, -- lanes a partition counts apart
  oldest_looks_max = 8, -- entries of a queue looked at for the oldest
  worker_ttl_ms = 30000,
  server_ttl_ms = 2000,
  strict_priority_weight = 1000000000000,
  waitpoints_open_max = 64, -- of one execution at a time
  waitpoints_kept_max = 100, -- closed ones kept with their execution
  waitpoint_key_bytes_max = 128,
  approvers_max = 64, -- of one waitpoint
  approver_bytes_max = 128,
  condition_nodes_max = 256,
  condition_leaves_max = 64,
  condition_depth_max = 4,
  condition_count_max = 1000,
  continuation_bytes_max = 262144,
  step_name_bytes_max = 256,
  steps_max = 10000, -- of one execution
  step_result_bytes_max = 1048576,
  step_inline_bytes_max = 4096, -- a step's result up to this size stands in its record
  steps_bytes_max = 67108864, -- results of the steps of one execution, in sum
  steps_page_max = 64, -- steps that one read looks at
  steps_carried_bytes_max = 262144, -- steps a claim carries; the rest is read apart
  forks_kept_max = 100, -- of one execution, the newest
  suspensions_kept_max = 32,
  signals_max = 10000, -- of one execution
  signal_name_bytes_max = 128,
  signal_payload_bytes_max = 262144,
  signal_key_ttl_ms = 86400000,
  resume_inline_bytes_max = 65536, -- signal payloads a claim carries; the rest is read apart
  resume_inline_signals_max = 64,
  frame_bytes_max = 65536,
  frame_type_bytes_max = 64,
  summary_bytes_max = 1048576,
  stream_read_bytes_max = 1048576, -- one read stops after this much
  stream_read_max = 10000,
  stream_page_max = 256, -- frames of one call; a longer read is made of several
  streams_kept_max = 100, -- attempts of one execution whose frames are kept
  members_max = 100000, -- of one flow
  member_key_bytes_max = 128,
  pass_as_bytes_max = 128,
  members_per_call_max = 128,
  edges_per_call_max = 1024,
  passed_bytes_max = 4194304, -- results passed to one member, in sum
  unsealed_ms_max = 600000, -- an unsealed flow that nobody adds to is removed
  consequences_max = 64, -- records one call touches because another one ended; the rest is owed
  children_max = 10000, -- of one execution
  children_inline_max = 64, -- outcomes a claim carries; the rest is read apart
  dependencies_shown_max = 16,
  budgets_per_scope_max = 8,
  holder_sets_max = 64, -- of one execution
  budget_depth_max = 8, -- budgets from one to the root of its tree
  budget_children_max = 1000,
  budget_actions_max = 100,
  budget_periods_max = 30,
  reservations_per_holder_max = 16,
  reservation_ttl_ms_max = 86400000,
  reservation_asked_after_ms = 5000, -- when a holder that reserved is asked for
  usage_key_ttl_ms = 604800000, -- how long a report is known by its key
  -- For so long it is known that a budget or quota was deleted.
  gone_kept_ms = 2592000000,
  usage_keys_pruned_max = 64, -- of one call
  usage_pending_max = 64, -- reports of one execution that wait for their budget
  usage_again_ms = 5000, -- a report not settled by then is owed by the outbox
  url_bytes_max = 2048,
  webhook_error_bytes_max = 512,
  webhook_hold_ms = 20000, -- so long nobody else tries what somebody has taken
  webhook_delay_ms_min = 1000, -- after the first try that failed; doubled after each further one
  webhook_delay_ms_max = 3600000,
  webhook_age_ms_max = 86400000, -- no try begins later than this after the end it tells of, but the first
  webhook_tries_max = 40,
  receivers_busy_max = 256, -- receivers a courier may say it is busy with
  schedule_definition_bytes_max = 65536,
  schedule_action_bytes_max = 2097152,
  schedule_times_max = 16, -- of one schedule
  schedule_every_ms_min = 1000,
  schedule_planned_max = 64, -- times of a calendar that are written ahead
  schedule_steps_max = 64, -- times that one call decides
  schedule_flight_max = 64, -- firings of one schedule that are not submitted yet
  schedule_waiting_max = 1000, -- firings of one schedule that wait for the end of another
  schedule_firings_max = 100, -- kept with a schedule
  schedule_backfill_max = 10000, -- firings of one backfill
  schedule_again_ms_min = 1000, -- after the first submission that was refused; doubled after each further one
  schedule_again_ms_max = 60000,
}
end

source["lib.errors"] = function(require, LIBRARY)
-- Every refusal the library can answer: its class says what a caller can do about it.
return {
  {
    code = "invalid_argument", class = "Invalid",
    doc = "An argument is missing, unknown, mistyped or out of bounds; detail names the field.",
  },
  {
    code = "capability_invalid", class = "Invalid",
    doc = "A capability token is empty or holds a comma, white space or a control character.",
  },
  { code = "execution_not_found", class = "NotFound", doc = "No execution has this id, or it was retired." },
  { code = "attempt_not_found", class = "NotFound", doc = "The execution has no attempt with this index." },
  {
    code = "worker_not_registered", class = "NotFound",
    doc = "The worker instance is unknown or its registration ran out.",
  },
  { code = "lane_not_found", class = "NotFound", doc = "The lane has never been used or configured." },
  { code = "grant_not_found", class = "NotFound", doc = "The grant is unknown, was consumed or ran out." },
  { code = "schedule_not_found", class = "NotFound", doc = "The namespace has no schedule of this name." },
  {
    code = "schedule_version_conflict", class = "Conflict",
    doc = "The schedule has another version than the one named; detail says which.",
  },
  { code = "schedule_busy", class = "Conflict", doc = "A backfill of the schedule is under way; detail says which." },
  { code = "flow_not_found", class = "NotFound", doc = "No flow has this id, or it was retired." },
  { code = "budget_not_found", class = "NotFound", doc = "No budget has this id." },
  {
    code = "reservation_not_found", class = "NotFound",
    doc = "The reservation is unknown, was settled, released or ran out.",
  },
  { code = "budget_version_conflict", class = "Conflict", doc = "The budget's definition changed in between." },
  {
    code = "budget_in_use", class = "Conflict",
    doc = "The budget has children, or something is held; detail says how many.",
  },
  {
    code = "hard_breach", class = "Conflict",
    doc = "The lease ended when a report met the hard limit of a budget; detail says which and what followed.",
  },
  { code = "usage_pending", class = "Retryable", doc = "Too many reports of the execution wait for their budgets." },
  { code = "flow_terminal", class = "Conflict", doc = "The flow has ended or was stopped; detail says how." },
  {
    code = "flow_not_terminal", class = "Conflict",
    doc = "The operation needs an execution whose flow or parent has ended.",
  },
  { code = "flow_changed", class = "Retryable", doc = "The flow's graph changed in between; the client checks again." },
  { code = "member_started", class = "Conflict", doc = "The member has started: nothing can be put before it." },
  { code = "cycle_detected", class = "Invalid", doc = "The edge would close a cycle." },
  { code = "flow_full", class = "Conflict", doc = "The flow or the parent holds as many members as it can." },
  {
    code = "execution_not_active", class = "Conflict",
    doc = "The execution is not running, or another outcome won; detail says which.",
  },
  {
    code = "execution_not_runnable", class = "Conflict",
    doc = "The operation needs an execution that has not started or has stopped waiting to start.",
  },
  { code = "execution_not_terminal", class = "Conflict", doc = "The operation needs an execution that has ended." },
  { code = "execution_terminal", class = "Conflict", doc = "The execution has ended; replay it instead." },
  { code = "stale_lease", class = "Conflict", doc = "The fence is not the current one: a newer lease exists." },
  { code = "lease_expired", class = "Conflict", doc = "The lease ran out before this call arrived." },
  { code = "lease_revoked", class = "Conflict", doc = "An operator took the lease away." },
  {
    code = "idempotency_conflict", class = "Conflict", doc = "The same key or id was submitted with a different body.",
  },
  { code = "max_replays", class = "Conflict", doc = "The execution was replayed as often as it allows." },
  { code = "lane_disabled", class = "Conflict", doc = "The lane is disabled or draining and accepts no work." },
  {
    code = "lane_full", class = "Retryable",
    doc = "The lane holds as much as max_depth allows; the depth is at most one second old.",
  },
  { code = "lane_version_conflict", class = "Conflict", doc = "The lane's definition changed in between." },
  { code = "instance_in_use", class = "Conflict", doc = "Another live process holds this worker instance id." },
  { code = "not_capable", class = "Conflict", doc = "The worker lacks required capabilities; detail lists them." },
  {
    code = "waitpoint_not_open", class = "NotFound",
    doc = "The waitpoint takes no signal with this token; whether it is unknown, closed, expired or spent is not said.",
  },
  {
    code = "invalid_token", class = "Invalid",
    doc = "The token was not signed with a key of this store; answered before the store is asked.",
  },
  { code = "waitpoint_not_found", class = "NotFound", doc = "The execution has no such waitpoint." },
  { code = "signal_not_allowed", class = "Conflict", doc = "The waitpoint does not take signals of this name." },
  { code = "signals_full", class = "Conflict", doc = "The execution took as many signals as it can hold." },
  { code = "execution_not_suspended", class = "Conflict", doc = "The operation needs a suspended execution." },
  {
    code = "frames_missing", class = "Conflict",
    doc = "The first sequence leaves a gap; detail says which is expected.",
  },
  { code = "summary_changed", class = "Retryable", doc = "The summary changed in between; the client folds again." },
  { code = "partition_mismatch", class = "Terminal", doc = "The store was set up with other partition counts." },
  { code = "import_unfinished", class = "Terminal", doc = "An import into the store was begun and has not ended." },
  {
    code = "lane_unseen", class = "Retryable",
    doc = "The partition has no copy of the lane yet; the client installs it and asks again.",
  },
  {
    code = "lane_depth_needed", class = "Retryable",
    doc = "The lane has a max_depth; the client adds the lane's depth and asks again.",
  },
  {
    code = "capacity_unknown", class = "Retryable",
    doc = "The holder set has no capacity yet; the client counts what runs, sets it and asks again.",
  },
  { code = "at_capacity", class = "Retryable", doc = "Every slot of a concurrency limit is held; detail names it." },
  { code = "quota_not_found", class = "NotFound", doc = "No quota has this id." },
  {
    code = "quota_version_conflict", class = "Conflict",
    doc = "The quota exists, or its definition changed in between; detail says which version it has.",
  },
  { code = "access_not_found", class = "NotFound", doc = "No access token has this id, or it was revoked." },
  { code = "step_not_found", class = "NotFound", doc = "The execution has recorded no step of this name." },
  {
    code = "step_changed", class = "Conflict",
    doc = "The step was recorded with another input, or as another kind of step; detail says what is stored.",
  },
  { code = "steps_full", class = "Conflict", doc = "The execution has recorded as many steps, or bytes, as it can." },
  { code = "try_again", class = "Retryable", doc = "The partition is moving; nothing was written." },
  { code = "corrupt_record", class = "Corrupt", doc = "A stored record cannot be read; detail names key and field." },
}
end

source["lib.types"] = function(require, LIBRARY)
-- The named types of contracts: scalars with their bounds, lists, maps and structs.
local limits = require "lib.limits"

local name_pattern = "^[%w%._%-]+$"
-- In a path, `.` and `..` mean something else to HTTP clients, so a name of dots only is refused.
local dots = { pattern = "^%.+$", problem = "must not be made of dots only" }

local scalar = {
  { name = "bool", base = "bool" },
  { name = "int", base = "int", min = -limits.time_ms_max, max = limits.time_ms_max },
  { name = "count", base = "int", min = 0, max = limits.time_ms_max },
  { name = "text", base = "text", min = 0, max = 65536 },
  { name = "bytes", base = "bytes", min = 0, max = limits.input_bytes_max },
  { name = "uuid", base = "uuid" },
  { name = "execution_id", base = "uuid", rust = "ExecutionId" },
  { name = "attempt_id", base = "uuid", rust = "AttemptId" },
  { name = "lease_id", base = "uuid", rust = "LeaseId" },
  { name = "lease_prefix", base = "text", min = 23, max = 23, pattern = "^[%x%-]+$",
    doc = "What the ids of the leases of one request begin with." },
  { name = "grant_id", base = "uuid" },
  { name = "request_id", base = "uuid" },
  { name = "time_ms", base = "int", min = 0, max = limits.time_ms_max, doc = "Milliseconds since the epoch." },
  { name = "duration_ms", base = "int", min = 0, max = limits.duration_ms_max },
  { name = "epoch", base = "int", min = 0, max = limits.time_ms_max },
  { name = "lease_ttl_ms", base = "int", min = limits.lease_ttl_ms_min, max = limits.lease_ttl_ms_max },
  { name = "grant_ttl_ms", base = "int", min = limits.grant_ttl_ms_min, max = limits.grant_ttl_ms_max },
  { name = "priority", base = "int", min = 0, max = limits.priority_max },
  { name = "priority_weight", base = "int", min = 0, max = limits.strict_priority_weight,
    doc = "Milliseconds of age one point of priority is worth." },
  { name = "permille", base = "int", min = 0, max = 1000, doc = "A random draw, supplied by the caller." },
  { name = "pct", base = "int", min = 0, max = 100 },
  { name = "attempt_index", base = "int", min = 0, max = limits.time_ms_max },
  { name = "attempts_limit", base = "int", min = 1, max = limits.attempts_max },
  { name = "times_limit", base = "int", min = 0, max = limits.attempts_max },
  { name = "backoff_factor", base = "int", min = 1, max = 100 },
  { name = "batch_size", base = "int", min = 1, max = limits.batch_max },
  { name = "list_limit", base = "int", min = 1, max = limits.list_limit_max },
  { name = "frames_limit", base = "int", min = 1, max = 1000000 },
  { name = "weight", base = "int", min = 1, max = 1000000 },
  { name = "slots", base = "int", min = 1, max = 4096 },
  { name = "max_active", base = "int", min = 1, max = limits.active_max,
    doc = "How many executions of a lane may run at once." },
  { name = "holder_set", base = "text", min = 1, max = limits.holder_set_bytes_max, refuse = { pattern = "[%s%c]" },
    doc = "Where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`." },
  { name = "holder_id", base = "uuid",
    doc = "The grant by which an execution came to hold a slot, or the lease it was counted with." },
  { name = "quota_id", base = "uuid", rust = "QuotaPolicyId" },
  { name = "key_digest", base = "text", min = 20, max = 20, pattern = "^%x+$",
    doc = "The digest under which a quota keeps what it knows of a key." },
  { name = "rate_mode", base = "enum", values = { "sliding", "smooth" } },
  { name = "quota_part", base = "enum", values = { "throttle", "rate", "concurrency", "weighted", "line" } },
  { name = "rate_limit", base = "int", min = 1, max = limits.rate_max },
  { name = "window_ms", base = "int", min = 1, max = limits.window_ms_max },
  { name = "holder_state", base = "enum", values = { "granted", "running", "owed", "gone" } },
  { name = "partition_count", base = "int", min = 1, max = 4096 },
  { name = "namespace", base = "text", min = 1, max = limits.name_bytes_max, pattern = name_pattern, refuse = dots },
  { name = "lane", base = "text", min = 1, max = limits.name_bytes_max, pattern = name_pattern, refuse = dots },
  { name = "worker_id", base = "text", min = 1, max = limits.name_bytes_max, pattern = name_pattern, refuse = dots },
  { name = "instance", base = "text", min = 1, max = limits.name_bytes_max, pattern = name_pattern, refuse = dots },
  { name = "actor", base = "text", min = 1, max = 128 },
  { name = "queue", base = "text", min = 1, max = 200,
    doc = "The name of a queue: the class of what its work requires, a colon, and its kind." },
  { name = "kind_set", base = "bytes", min = 0, max = limits.kinds_max * (limits.kind_bytes_max + 2) + 5,
    doc = "A packed list of kinds: a worker sends the same one with every claim, so it is read as it is." },
  { name = "kind", base = "text", min = 1, max = limits.kind_bytes_max, pattern = "^[%w%p ]+$" },
  { name = "encoding", base = "text", min = 1, max = 64, pattern = "^[%w%._%-/%+]+$" },
  { name = "digest", base = "text", min = 32, max = 64, pattern = "^%x+$" },
  { name = "input", base = "bytes", min = 0, max = limits.input_bytes_max },
  { name = "result", base = "bytes", min = 0, max = limits.result_bytes_max },
  { name = "reason", base = "text", min = 0, max = limits.reason_bytes_max },
  { name = "category", base = "text", min = 1, max = 128 },
  { name = "progress_message", base = "text", min = 0, max = limits.progress_message_bytes_max },
  { name = "tag_key", base = "text", min = 1, max = limits.tag_key_bytes_max },
  { name = "tag_value", base = "text", min = 0, max = limits.tag_value_bytes_max },
  { name = "capability", base = "text", min = 1, max = limits.capability_bytes_max, refuse = { pattern = "[%s%c,]" },
    code = "capability_invalid" },
  { name = "idempotency_key", base = "text", min = 1, max = limits.idempotency_key_bytes_max },
  { name = "fairness_key", base = "text", min = 1, max = limits.fairness_key_bytes_max },
  { name = "fallback", base = "bytes", min = 0, max = limits.fallback_bytes_max },
  { name = "trace_parent", base = "text", min = 1, max = 256 },
  { name = "url", base = "text", min = 1, max = limits.url_bytes_max, pattern = "^https?://[^/%?#%s%c]+[^#%s%c]*$",
    doc = "Where a webhook goes: an address without a fragment." },
  { name = "delivery_id", base = "uuid", doc = "A webhook that is owed; the same in every try." },
  { name = "webhook_result", base = "enum",
    doc = "What a try came to; one that was refused is not tried again.",
    values = {
      "delivered", "failed", "refused",
    } },
  { name = "webhook_state", base = "enum", values = { "pending", "delivered", "failed" } },
  { name = "webhook_error", base = "text", min = 0, max = limits.webhook_error_bytes_max },
  { name = "http_status", base = "int", min = 100, max = 999 },
  { name = "per_receiver", base = "int", min = 1, max = limits.batch_max },
  { name = "dimension", base = "text", min = 1, max = 64 },
  { name = "quota_key", base = "text", min = 1, max = 256 },
  { name = "amount", base = "int", min = 1, max = limits.time_ms_max },
  { name = "stream_id", base = "text", min = 1, max = 64, pattern = "^%d+%-%d+$", digits_max = "18446744073709551615" },
  { name = "event_place", base = "text", min = 1, max = 64, pattern = "^%d+%-%d+%.?%d*$",
    digits_max = "18446744073709551615",
    doc = "An entry of events, or with a dot and a number one of its events, counted from 0." },
  { name = "task", base = "native", rust = "Task",
    doc = "A claimed execution, as its worker sees it: its id, its stored record, its input, and what only some "
      .. "have." },
  { name = "summary", base = "native", rust = "Summary",
    doc = "An execution in a list: its id and its stored record." },
  { name = "suspension_id", base = "uuid", rust = "SuspensionId" },
  { name = "waitpoint_id", base = "uuid", rust = "WaitpointId" },
  { name = "signal_id", base = "uuid", rust = "SignalId" },
  { name = "waitpoint_key", base = "text", min = 1, max = limits.waitpoint_key_bytes_max },
  { name = "approver", base = "text", min = 1, max = limits.approver_bytes_max },
  { name = "uses", base = "int", min = 1, max = 1000000 },
  { name = "key_id", base = "text", min = 1, max = 64, pattern = name_pattern, refuse = dots },
  { name = "token_digest", base = "text", min = 64, max = 64, pattern = "^%x+$" },
  { name = "signal_name", base = "text", min = 1, max = limits.signal_name_bytes_max },
  { name = "signal_payload", base = "bytes", min = 0, max = limits.signal_payload_bytes_max },
  { name = "source", base = "text", min = 0, max = 256 },
  { name = "correlation_id", base = "text", min = 1, max = 256 },
  { name = "continuation", base = "bytes", min = 0, max = limits.continuation_bytes_max },
  { name = "condition_count", base = "int", min = 1, max = limits.condition_count_max },
  { name = "frame_type", base = "text", min = 1, max = limits.frame_type_bytes_max },
  { name = "frame_payload", base = "bytes", min = 0, max = limits.frame_bytes_max },
  { name = "summary_document", base = "bytes", min = 0, max = limits.summary_bytes_max },
  { name = "stream_limit", base = "int", min = 1, max = limits.stream_read_max },
  { name = "suspension_reason", base = "enum", values = {
    "waiting_for_signal", "waiting_for_approval", "waiting_for_callback", "waiting_for_tool_result",
    "waiting_for_operator_review", "paused_by_policy", "paused_by_budget", "step_boundary", "manual_pause",
  } },
  { name = "timeout_behavior", base = "enum", values = {
    "fail", "cancel", "expire", "auto_resume_with_timeout_signal", "escalate",
  } },
  { name = "condition_op", base = "enum", values = { "signal", "any_of", "all_of", "count" } },
  { name = "count_over", base = "enum", values = { "signals", "waitpoints", "approvers" } },
  { name = "waitpoint_state", base = "enum", values = { "pending", "active", "closed" } },
  { name = "signal_effect", base = "enum", values = { "counted", "buffered", "unused" } },
  { name = "step_name", base = "text", min = 1, max = limits.step_name_bytes_max, refuse = { pattern = "%c" },
    doc = "A step of a handler, by which a later run finds it again." },
  { name = "resume_cause", base = "enum", values = { "signal", "timeout", "operator", "children", "budget", "timer" } },
  { name = "step_kind", base = "enum", values = { "run", "sleep", "signal", "children", "spawn" } },
  { name = "step_state", base = "enum", values = { "waiting", "done", "failed" } },
  { name = "step_result", base = "bytes", min = 0, max = limits.step_result_bytes_max },
  { name = "step_digest", base = "text", min = 1, max = 128, pattern = "^[%w%+/=_%-]+$",
    doc = "What a caller makes of a step's input, to find out whether it changed." },
  { name = "step_tries", base = "int", min = 1, max = limits.time_ms_max },
  { name = "flow_id", base = "uuid", rust = "FlowId" },
  { name = "member_key", base = "text", min = 1, max = limits.member_key_bytes_max },
  { name = "pass_as", base = "text", min = 1, max = limits.pass_as_bytes_max },
  { name = "edge_on", base = "enum", values = { "success", "completion", "failure" } },
  { name = "edge_state", base = "enum", values = { "pending", "met", "dead" } },
  { name = "inbound_policy", base = "enum", values = { "all_of", "any_of", "quorum" } },
  { name = "on_satisfied", base = "enum", values = { "cancel_remaining", "let_run" } },
  { name = "on_member_failure", base = "enum", values = { "continue", "fail_flow", "isolate_branch" } },
  { name = "cancel_policy", base = "enum", values = { "cancel_all", "cancel_pending", "let_active_finish" } },
  { name = "parent_close", base = "enum", values = { "cancel_children", "abandon" } },
  { name = "flow_state", base = "enum", values = { "open", "running", "blocked", "completed", "failed", "cancelled" } },
  { name = "member_state", base = "enum", values = {
    "held", "waiting", "delayed", "rate_limited", "waiting_children", "active", "suspended", "resumable", "completed",
    "failed", "cancelled", "expired", "skipped",
  } },
  { name = "quorum", base = "int", min = 1, max = limits.members_max },
  { name = "frame_mode", base = "enum", values = { "durable", "summary", "live" } },
  { name = "backoff_type", base = "enum", values = { "fixed", "exponential" } },
  { name = "jitter", base = "enum", values = { "full", "none" } },
  { name = "lane_state", base = "enum", values = { "active", "paused", "draining", "disabled" } },
  { name = "fairness", base = "enum", values = { "fifo", "fair" } },
  { name = "phase", base = "enum", values = { "runnable", "active", "suspended", "terminal" } },
  { name = "outcome", base = "enum", values = { "success", "failed", "cancelled", "expired", "skipped" } },
  { name = "public_state", base = "enum", values = {
    "waiting", "delayed", "rate_limited", "waiting_children", "active", "suspended", "resumable", "completed", "failed",
    "cancelled", "expired", "skipped",
  } },
  { name = "blocking_reason", base = "enum", values = {
    "waiting_for_capable_worker", "waiting_for_quota", "waiting_for_budget", "waiting_for_dependencies",
    "waiting_for_children", "held_by_operator",
  } },
  { name = "admission_reason", base = "enum", values = { "waiting_for_quota", "waiting_for_budget" } },
  { name = "budget_id", base = "uuid", rust = "BudgetId" },
  { name = "reservation_id", base = "uuid" },
  { name = "limit_amount", base = "int", min = 0, max = limits.time_ms_max },
  { name = "scope_type", base = "enum", values = { "namespace", "tenant", "flow", "lane", "custom" } },
  { name = "scope_id", base = "text", min = 1, max = 256 },
  { name = "reset_type", base = "enum", values = { "none", "interval", "day", "month" } },
  { name = "interval_ms", base = "int", min = 1000, max = limits.duration_ms_max },
  { name = "zone", base = "text", min = 1, max = 64, pattern = "^[%w_/%+%-]+$", doc = "A time zone by its IANA name." },
  { name = "on_soft", base = "enum", values = { "notify", "require_approval" } },
  { name = "on_hard", base = "enum", values = { "suspend", "block", "cancel", "fail" } },
  { name = "budget_refusal", base = "enum", values = { "hard", "soft", "unknown_dimension" } },
  { name = "dedup_key", base = "text", min = 1, max = limits.idempotency_key_bytes_max },
  { name = "usage_outcome", base = "enum", values = {
    "ok", "already_applied", "soft_breach", "hard_breach", "invalid",
  } },
  { name = "delta", base = "int", min = -limits.time_ms_max, max = limits.time_ms_max },
  { name = "scope_name", base = "text", min = 1, max = limits.holder_set_bytes_max, refuse = { pattern = "[%s%c]" },
    doc = "`namespace:<namespace>`, `lane:<namespace>/<lane>` or `flow:<flow id>`." },
  { name = "schedule_name", base = "text", min = 1, max = limits.name_bytes_max, pattern = name_pattern, refuse = dots,
    doc = "A schedule, unique in its namespace." },
  { name = "schedule_path", base = "text", min = 3, max = 2 * limits.name_bytes_max + 1, doc = "`namespace/name`." },
  { name = "schedule_definition", base = "bytes", min = 1, max = limits.schedule_definition_bytes_max },
  { name = "schedule_action", base = "bytes", min = 1, max = limits.schedule_action_bytes_max },
  { name = "every_ms", base = "int", min = limits.schedule_every_ms_min, max = limits.duration_ms_max },
  { name = "overlap", base = "enum",
    doc = "What happens when a time comes and the last firing has not ended.",
    values = { "skip", "queue_one", "queue_all", "cancel_previous", "allow" } },
  { name = "firing_cause", base = "enum", values = { "time", "trigger", "backfill" } },
  { name = "firing_state", base = "enum",
    doc = "What became of a firing: it waits for the end of another one, is being submitted, runs, or has ended.",
    values = { "waiting", "due", "running", "ended", "skipped", "missed" } },
  { name = "firing_why", base = "text", min = 1, max = 64, doc = "Why a firing was skipped or missed." },
  { name = "firing_outcome", base = "text", min = 1, max = 32, doc = "How the execution or flow ended." },
  { name = "attempt_type", base = "enum", values = { "initial", "retry", "reclaim", "replay" } },
  { name = "attempt_state", base = "enum", values = {
    "started", "suspended", "succeeded", "failed", "cancelled", "interrupted", "timed_out",
  } },
  { name = "recorded_action", base = "enum", values = { "keys_rotated", "key_revoked", "store_repaired" } },
  { name = "worker_state", base = "enum", values = { "live", "draining" } },
  { name = "role", base = "enum", values = { "read", "submit", "signal", "worker", "operator", "admin", "metrics" } },
  { name = "access_name", base = "text", min = 1, max = limits.name_bytes_max, pattern = name_pattern,
    refuse = dots,
    doc = "Who acts with a token: the actor of what is done with it." },
}

local list = {
  { name = "capabilities", of = "capability", max = limits.capabilities_max, bytes_max = limits.capability_bytes_max },
  { name = "kinds", of = "kind", max = limits.kinds_max },
  { name = "worker_classes", of = "worker_class", max = 4096 },
  { name = "fallbacks", of = "fallback", max = limits.fallbacks_max },
  { name = "categories", of = "category", max = 64 },
  { name = "budget_refs", of = "budget_ref", max = limits.budgets_max },
  { name = "quota_refs", of = "quota_ref", max = limits.quotas_max },
  { name = "lane_names", of = "lane", max = limits.lanes_per_worker_max },
  { name = "lease_ids", of = "lease_id", max = limits.batch_max },
  { name = "attempt_ids", of = "attempt_id", max = limits.batch_max },
  { name = "instances", of = "instance", max = 1024 },
  { name = "stream_ids", of = "stream_id", max = 1024 },
  { name = "key_ids", of = "key_id", max = 256 },
  { name = "roles", of = "role", max = 7 },
  { name = "namespaces", of = "namespace", max = limits.lanes_per_worker_max },
  { name = "condition_nodes", of = "condition_node", max = limits.condition_nodes_max },
  { name = "new_waitpoints", of = "new_waitpoint", max = limits.waitpoints_open_max },
  { name = "waitpoint_ids", of = "waitpoint_id", max = limits.waitpoints_open_max },
  { name = "signal_names", of = "signal_name", max = 64 },
  { name = "tokens", of = "token", max = limits.approvers_max },
  { name = "new_frames", of = "new_frame", max = limits.batch_max },
  { name = "holders", of = "holder", max = limits.batch_max },
  { name = "candidates", of = "candidate", max = limits.batch_max },
  { name = "holder_sets", of = "holder_set", max = limits.quotas_max + limits.budgets_max + 1 },
  { name = "quota_candidates", of = "quota_candidate", max = limits.batch_max },
  { name = "quota_returns", of = "quota_return", max = limits.batch_max },
  { name = "quota_absences", of = "quota_absence", max = limits.batch_max },
  { name = "store_keys", of = "bytes", max = 1024 },
  { name = "new_members", of = "new_member", max = limits.members_per_call_max },
  { name = "new_edges", of = "new_edge", max = limits.edges_per_call_max },
  { name = "new_children", of = "new_child", max = limits.batch_max },
  { name = "scope_names", of = "scope_name", max = limits.batch_max },
  { name = "dimension_limits", of = "dimension_limit", max = limits.dimensions_max },
  { name = "schedule_everies", of = "schedule_every", max = limits.schedule_times_max },
  { name = "planned_times", of = "time_ms", max = limits.schedule_planned_max },
  { name = "budget_candidates", of = "budget_candidate", max = limits.batch_max },
}

local map = {
  { name = "amounts", key = "dimension", value = "amount", max = limits.dimensions_max },
  { name = "tags", key = "tag_key", value = "tag_value", max = limits.tags_max },
  { name = "estimate", key = "dimension", value = "amount", max = limits.dimensions_max },
  { name = "free", key = "dimension", value = "count", max = limits.dimensions_max },
  { name = "in_flight", key = "key_digest", value = "count", max = limits.receivers_busy_max },
  { name = "fairness_weights", key = "fairness_key", value = "weight", max = limits.weights_max },
  { name = "detail", key = "text", value = "text", max = 64 },
  { name = "passed", key = "pass_as", value = "passed_value" },
  { name = "member_counts", key = "member_state", value = "count" },
}

local struct = {
  { name = "fence", doc = "Proof of the current lease.", fields = {
    { "attempt_id", "attempt_id" }, { "lease_id", "lease_id" }, { "lease_epoch", "epoch" },
  } },
  { name = "backoff", fields = {
    { "type", "backoff_type" }, { "delay_ms", "duration_ms?" }, { "initial_ms", "duration_ms?" },
    { "factor", "backoff_factor?" }, { "max_ms", "duration_ms?" },
  } },
  { name = "retry", doc = "When and how often a failed attempt is tried again.", fields = {
    { "max_attempts", "attempts_limit?" }, { "backoff", "backoff?" }, { "jitter", "jitter?" },
    { "retry_on", "categories?" }, { "never_on", "categories?" },
  } },
  { name = "budget_ref", fields = { { "budget_id", "uuid" }, { "estimate", "estimate?" } } },
  { name = "quota_ref", fields = { { "quota_id", "uuid" }, { "key", "quota_key" }, { "weight", "amount?" } } },
  { name = "stream_options", fields = { { "max_frames", "frames_limit?" } } },
  { name = "submission", doc = "Everything a submitter may say about one execution.", fields = {
    { "execution_id", "execution_id" }, { "namespace", "namespace" }, { "lane", "lane" }, { "kind", "kind" },
    { "input", "input?" }, { "priority", "priority?" }, { "retention_ms", "duration_ms?" }, { "body_digest", "digest" },
    -- What few submissions say. In Rust these are fields of the submission itself.
    { "more", "submission_more?", flat = true },
  } },
  { name = "submission_more", doc = "What few submissions say.", fields = {
    { "input_encoding", "encoding?" }, { "tags", "tags?" }, { "delay_until", "time_ms?" },
    { "delay_ms", "duration_ms?" }, { "deadline_at", "time_ms?" }, { "deadline_ms", "duration_ms?" },
    { "start_within_ms", "duration_ms?" }, { "idempotency_key", "idempotency_key?" },
    { "idempotency_ttl_ms", "duration_ms?" }, { "retry", "retry?" }, { "attempt_timeout_ms", "duration_ms?" },
    { "max_reclaims", "times_limit?" }, { "max_replays", "times_limit?" }, { "requires", "capabilities?" },
    { "prefers", "capabilities?" }, { "fairness_key", "fairness_key?" }, { "budgets", "budget_refs?" },
    { "quotas", "quota_refs?" }, { "fallbacks", "fallbacks?" }, { "stream", "stream_options?" },
    { "trace_parent", "trace_parent?" }, { "completion_webhook", "url?" }, { "lane_depth", "count?" },
    { "fired", "fired?" },
  } },
  { name = "fired", doc = "The firing of a schedule that submits this.", fields = {
    { "schedule", "schedule_name" }, { "number", "count" }, { "nominal_at", "time_ms" }, { "fired_at", "time_ms" },
  } },
  { name = "schedule_every", doc = "A time every so many milliseconds, counted from the anchor.", fields = {
    { "every_ms", "every_ms" }, { "anchor_at", "time_ms" },
  } },
  { name = "new_schedule",
    doc = "A schedule's definition. The library reckons `every`; times of a `calendar` are supplied.",
    fields = {
      { "namespace", "namespace" }, { "name", "schedule_name" }, { "definition", "schedule_definition" },
      { "action", "schedule_action" }, { "every", "schedule_everies" }, { "calendar", "bool" },
      { "overlap", "overlap" }, { "catch_up_ms", "duration_ms" }, { "jitter_ms", "duration_ms?" },
      { "starts_at", "time_ms?" }, { "ends_at", "time_ms?" }, { "remaining", "count?" },
    } },
  { name = "firing", doc = "One firing of a schedule; a missed one may stand for several (`count`).", fields = {
    { "number", "count" }, { "nominal_at", "time_ms" }, { "fired_at", "time_ms" }, { "cause", "firing_cause" },
    { "state", "firing_state" }, { "run_id", "uuid?" }, { "why", "firing_why?" }, { "outcome", "firing_outcome?" },
    { "ended_at", "time_ms?" }, { "count", "count?" }, { "tries", "count?" },
  } },
  { name = "missed_times", doc = "Times up to `to` that came too long ago, and how many they are.", fields = {
    { "count", "count" }, { "first", "time_ms" }, { "last", "time_ms" }, { "to", "time_ms" },
  } },
  { name = "schedule_pause", fields = { { "reason", "reason?" }, { "actor", "actor" }, { "at", "time_ms" } } },
  { name = "backfill",
    doc = "A backfill and how far it is: times up to `cursor` are decided.",
    fields = {
      { "from", "time_ms" }, { "to", "time_ms" }, { "cursor", "time_ms" }, { "overlap", "overlap" },
      { "total", "count" }, { "fired", "count" }, { "skipped", "count" }, { "started_at", "time_ms" },
      { "ended_at", "time_ms?" }, { "stopped", "bool" }, { "actor", "actor" },
    } },
  { name = "schedule",
    doc = "A schedule: times up to `cursor` are decided. `next_at` is the next nominal time, if it is known.",
    fields = {
      { "namespace", "namespace" }, { "name", "schedule_name" }, { "schedule_id", "uuid" }, { "version", "count" },
      { "created_at", "time_ms" }, { "changed_at", "time_ms" }, { "definition", "schedule_definition" },
      { "overlap", "overlap" }, { "catch_up_ms", "duration_ms" }, { "jitter_ms", "duration_ms?" },
      { "starts_at", "time_ms?" }, { "ends_at", "time_ms?" }, { "remaining", "count?" }, { "cursor", "time_ms" },
      { "next_at", "time_ms?" }, { "paused", "schedule_pause?" }, { "over", "bool" }, { "fired", "count" },
      { "skipped", "count" }, { "missed", "count" }, { "last", "firing?" }, { "running", "count" },
      { "waiting", "count" }, { "unsubmitted", "count" }, { "refused", "firing_why?" }, { "backfill", "backfill?" },
    } },
  { name = "schedule_position", doc = "Where a list of schedules goes on.", fields = {
    { "created_at", "time_ms" }, { "path", "schedule_path" },
  } },
  { name = "submitted", doc = "What became of one submission of several.", fields = {
    { "execution_id", "execution_id?" }, { "state", "public_state?" }, { "duplicate", "bool?" },
  } },
  { name = "token", doc = "A waitpoint token: its digest, never the token.", fields = {
    { "digest", "token_digest" }, { "approver", "approver?" },
  } },
  { name = "new_waitpoint", doc = "A waitpoint to open; `uses` bounds each of its tokens.", fields = {
    { "waitpoint_id", "waitpoint_id" }, { "key", "waitpoint_key" }, { "expires_in_ms", "duration_ms?" },
    { "allowed_signals", "signal_names?" }, { "uses", "uses?" }, { "tokens", "tokens" },
  } },
  { name = "condition_node",
    doc = "One node of a condition tree, listed parents first; `parent` is the place of its parent in the list, "
      .. "counted from 0.",
    fields = {
      { "op", "condition_op" }, { "parent", "count?" }, { "name", "signal_name?" }, { "waitpoint", "waitpoint_key?" },
      { "n", "condition_count?" }, { "over", "count_over?" },
    } },
  { name = "condition_progress", doc = "How far one node of a condition is.", fields = {
    { "op", "condition_op" }, { "parent", "count?" }, { "name", "signal_name?" }, { "waitpoint", "waitpoint_key?" },
    { "n", "condition_count?" }, { "over", "count_over?" }, { "counted", "count" }, { "satisfied", "bool" },
  } },
  { name = "signal", doc = "A signal that arrived.", fields = {
    { "id", "stream_id" }, { "signal_id", "signal_id" }, { "name", "signal_name" }, { "waitpoint_id", "waitpoint_id?" },
    { "waitpoint_key", "waitpoint_key?" }, { "approver", "approver?" }, { "payload", "signal_payload?" },
    { "payload_encoding", "encoding?" }, { "category", "source?" }, { "source", "source?" },
    { "source_identity", "source?" }, { "correlation_id", "correlation_id?" }, { "received_at", "time_ms" },
  } },
  { name = "resume", doc = "Why a waiting attempt goes on; `more` says that further signals are read apart.", fields = {
    { "suspension_id", "suspension_id" }, { "cause", "resume_cause" }, { "signals", "[signal]" }, { "more", "bool" },
    { "continuation", "continuation?" }, { "continuation_encoding", "encoding?" }, { "children", "[child]?" },
    { "more_children", "bool?" }, { "step", "step_name?" }, { "actor", "actor?" },
  } },
  { name = "step",
    doc = "A step that a handler recorded. `due_at` is when a sleep ends, or when a failed step is tried again.",
    fields = {
      { "name", "step_name" }, { "number", "count" }, { "kind", "step_kind" }, { "state", "step_state" },
      { "tries", "count" }, { "started_at", "time_ms" }, { "ended_at", "time_ms?" },
      { "attempt_index", "attempt_index" }, { "result_bytes", "count?" }, { "failure", "failure?" },
      { "due_at", "time_ms?" }, { "input_digest", "step_digest?" },
    } },
  { name = "passed_value", doc = "What an upstream member passes: its result, or its failure.", fields = {
    { "execution_id", "execution_id" }, { "outcome", "outcome" }, { "value", "result?" }, { "encoding", "encoding?" },
    { "failure", "failure?" },
  } },
  { name = "inbound", doc = "When a member may run: after all, any or `k` of its edges.", fields = {
    { "policy", "inbound_policy" }, { "k", "quorum?" }, { "on_satisfied", "on_satisfied?" },
  } },
  { name = "new_member", doc = "A member of a flow; `nested` is a flow that runs in its place.", fields = {
    { "key", "member_key" }, { "submission", "submission" }, { "inbound", "inbound?" }, { "nested", "flow_id?" },
  } },
  { name = "new_edge", doc = "An edge between two members, by their keys.", fields = {
    { "from", "member_key" }, { "to", "member_key" }, { "on", "edge_on" }, { "pass_as", "pass_as?" },
  } },
  { name = "new_flow", doc = "A flow to create; `parent_id` is the member it runs in place of.", fields = {
    { "flow_id", "flow_id" }, { "namespace", "namespace" }, { "kind", "kind" },
    { "on_member_failure", "on_member_failure" }, { "deadline_at", "time_ms?" }, { "deadline_ms", "duration_ms?" },
    { "retention_ms", "duration_ms?" }, { "default_lane", "lane?" }, { "default_retry", "retry?" },
    { "budgets", "budget_refs?" }, { "completion_webhook", "url?" }, { "body_digest", "digest" },
    { "parent_id", "execution_id?" }, { "fired", "fired?" },
  } },
  { name = "added_member", fields = {
    { "key", "member_key" }, { "execution_id", "execution_id" }, { "state", "member_state" }, { "duplicate", "bool" },
  } },
  { name = "member", doc = "A member in a list.", fields = {
    { "key", "member_key" }, { "execution_id", "execution_id" }, { "number", "count" }, { "state", "member_state" },
    { "kind", "kind" }, { "lane", "lane" }, { "inbound", "inbound?" }, { "nested", "flow_id?" },
    { "edges_in", "count" }, { "edges_out", "count" },
  } },
  { name = "edge", fields = {
    { "from", "execution_id" }, { "to", "execution_id" }, { "on", "edge_on" }, { "pass_as", "pass_as?" },
    { "state", "edge_state" },
  } },
  { name = "flow_stop", doc = "Why nothing of a flow may start any more.", fields = {
    { "policy", "cancel_policy" }, { "reason", "reason?" }, { "actor", "actor?" }, { "at", "time_ms" },
  } },
  { name = "flow", doc = "A flow and its counts.", fields = {
    { "flow_id", "flow_id" }, { "namespace", "namespace" }, { "kind", "kind" }, { "state", "flow_state" },
    { "on_member_failure", "on_member_failure" }, { "counts", "member_counts" }, { "members", "count" },
    { "version", "count" }, { "created_at", "time_ms" }, { "updated_at", "time_ms" }, { "sealed_at", "time_ms?" },
    { "finished_at", "time_ms?" }, { "deadline_at", "time_ms?" }, { "retention_ms", "duration_ms" },
    { "default_lane", "lane?" }, { "default_retry", "retry?" }, { "budgets", "budget_refs?" }, { "stop", "flow_stop?" },
    { "owed", "count" }, { "walk", "text?" }, { "parent_id", "execution_id?" }, { "uncaught_failures", "count" },
    { "completion_webhook", "url?" }, { "fired", "fired?" },
  } },
  { name = "flow_position", doc = "Where a list of flows goes on.", fields = {
    { "created_at", "time_ms" }, { "flow_id", "flow_id" },
  } },
  { name = "graph_position", doc = "Where a walk over members and their edges goes on.", fields = {
    { "member", "count" }, { "edge", "count" },
  } },
  { name = "new_child", doc = "A child to spawn.", fields = {
    { "submission", "submission" }, { "key", "member_key?" }, { "parent_close", "parent_close?" },
  } },
  { name = "child", doc = "What became of a child.", fields = {
    { "execution_id", "execution_id" }, { "number", "count" }, { "key", "member_key?" }, { "state", "public_state" },
    { "outcome", "outcome?" }, { "result", "result?" }, { "result_encoding", "encoding?" }, { "failure", "failure?" },
  } },
  { name = "upstream", doc = "An edge a member waits for.", fields = {
    { "execution_id", "execution_id" }, { "key", "member_key" }, { "state", "member_state" }, { "on", "edge_on" },
  } },
  { name = "dependency_facts", doc = "What a member waits for.", fields = {
    { "policy", "inbound_policy" }, { "needed", "count" }, { "total", "count" }, { "met", "count" },
    { "dead", "count" }, { "held", "bool" }, { "open", "[upstream]" },
  } },
  { name = "children_facts", doc = "The children an execution waits for.", fields = {
    { "total", "count" }, { "open", "count" }, { "nested", "flow_id?" },
  } },
  { name = "open_waitpoint", doc = "A waitpoint as its owner sees it.", fields = {
    { "waitpoint_id", "waitpoint_id" }, { "key", "waitpoint_key" }, { "state", "waitpoint_state" },
    { "expires_at", "time_ms?" },
  } },
  { name = "approver_state", doc = "Who may answer; no label means whoever holds the one token.", fields = {
    { "approver", "approver?" }, { "uses_left", "count?" }, { "answered", "bool" },
  } },
  { name = "waitpoint", doc = "A waitpoint in a list.", fields = {
    { "waitpoint_id", "waitpoint_id" }, { "execution_id", "execution_id" }, { "namespace", "namespace" },
    { "lane", "lane" }, { "kind", "kind" }, { "key", "waitpoint_key" }, { "state", "waitpoint_state" },
    { "suspension_id", "suspension_id?" }, { "reason", "suspension_reason?" }, { "created_at", "time_ms" },
    { "expires_at", "time_ms?" }, { "closed_at", "time_ms?" }, { "closed_reason", "text?" },
    { "allowed_signals", "signal_names?" }, { "approvers", "[approver_state]" }, { "signals", "count" },
    { "condition", "[condition_progress]" },
  } },
  { name = "suspension", doc = "What a suspended execution waits for.", fields = {
    { "suspension_id", "suspension_id" }, { "reason", "suspension_reason" }, { "suspended_at", "time_ms" },
    { "timeout_at", "time_ms?" }, { "timeout_behavior", "timeout_behavior" }, { "waitpoints", "[open_waitpoint]" },
    { "condition", "[condition_progress]" }, { "step", "step_name?" },
  } },
  { name = "past_suspension", fields = {
    { "suspension_id", "suspension_id" }, { "reason", "suspension_reason" }, { "attempt_index", "attempt_index" },
    { "suspended_at", "time_ms" }, { "ended_at", "time_ms" }, { "cause", "text" }, { "actor", "actor?" },
  } },
  { name = "new_frame", fields = {
    { "type", "frame_type" }, { "payload", "frame_payload?" }, { "payload_encoding", "encoding?" },
    { "correlation_id", "correlation_id?" }, { "mode", "frame_mode" },
  } },
  { name = "frame", doc = "One frame of an attempt's stream.", fields = {
    { "id", "stream_id" }, { "sequence", "count" }, { "type", "frame_type" }, { "at", "time_ms" },
    { "payload", "frame_payload?" }, { "payload_encoding", "encoding?" }, { "correlation_id", "correlation_id?" },
    { "mode", "frame_mode" },
  } },
  { name = "new_summary", doc = "The summary after these frames, folded from the version named.", fields = {
    { "document", "summary_document" }, { "version", "count" },
  } },
  { name = "grant",
    doc = "A reserved execution, waiting for its worker; `number` says how many grants it had, this one included.",
    fields = {
      { "execution_id", "execution_id" }, { "grant_id", "grant_id" }, { "expires_at", "time_ms" }, { "lane", "lane" },
      { "kind", "kind" }, { "score", "int" }, { "number", "count" }, { "budgets", "budget_refs?" },
      { "quotas", "quota_refs?" }, { "holder_sets", "holder_sets?" }, { "keep", "holder_sets?" },
    } },
  { name = "holder",
    doc = "An execution in a holder set: until a time, or without one for as long as it runs.",
    fields = {
      { "execution_id", "execution_id" }, { "holder_id", "holder_id" }, { "expires_at", "time_ms?" },
    } },
  { name = "candidate", doc = "An execution that asks for a slot until a time.", fields = {
    { "execution_id", "execution_id" }, { "holder_id", "holder_id" }, { "expires_at", "time_ms" },
  } },
  { name = "quota_rate", doc = "So many starts in a window: anywhere in it, or evenly spaced.", fields = {
    { "limit", "rate_limit" }, { "window_ms", "window_ms" }, { "mode", "rate_mode" },
  } },
  { name = "quota_weights", doc = "So much weight in a window.", fields = {
    { "limit", "amount" }, { "window_ms", "window_ms" },
  } },
  { name = "quota", doc = "What each key of a quota allows; everything named has to pass.", fields = {
    { "quota_id", "quota_id" }, { "namespace", "namespace" }, { "rate", "quota_rate?" },
    { "concurrency", "max_active?" }, { "weighted", "quota_weights?" }, { "hold_while_suspended", "bool" },
  } },
  { name = "quota_entry", doc = "A quota as it is stored.", fields = {
    { "quota", "quota" }, { "version", "count" }, { "created_at", "time_ms" }, { "keys", "count" },
  } },
  { name = "quota_candidate",
    doc = "An execution that asks a quota to start under a key; `number` is that of its grant.",
    fields = {
      { "execution_id", "execution_id" }, { "holder_id", "holder_id" }, { "expires_at", "time_ms" },
      { "key", "quota_key" }, { "weight", "amount" }, { "score", "int" }, { "number", "count" },
    } },
  { name = "quota_answer",
    doc = "What a quota said to a candidate: the part that refused it, and when to ask again.",
    fields = {
      { "holder_id", "holder_id" }, { "admitted", "bool" }, { "part", "quota_part?" }, { "used", "count?" },
      { "limit", "count?" }, { "next_at", "time_ms?" }, { "keep", "holder_set?" },
    } },
  { name = "quota_return", doc = "A holder that leaves a key of a quota; unused when it never ran.", fields = {
    { "execution_id", "execution_id" }, { "holder_id", "holder_id" }, { "key_digest", "key_digest" },
    { "unused", "bool" },
  } },
  { name = "quota_absence", doc = "An execution that was called under a key and does not come.", fields = {
    { "execution_id", "execution_id" }, { "key_digest", "key_digest" },
  } },
  { name = "quota_use", doc = "How far one part of a quota is used under a key.", fields = {
    { "part", "quota_part" }, { "used", "count" }, { "limit", "count" }, { "next_at", "time_ms?" },
  } },
  { name = "quota_key_state", doc = "What a quota knows of one key.", fields = {
    { "key", "quota_key" }, { "parts", "[quota_use]" }, { "held", "count" }, { "waiting", "count" },
    { "throttled_until", "time_ms?" },
  } },
  { name = "quota_key_use", doc = "A key in use, and where its holders are.", fields = {
    { "set", "holder_set" }, { "state", "quota_key_state" },
  } },
  { name = "quota_position", doc = "Where a list of quotas goes on.", fields = {
    { "created_at", "time_ms" }, { "quota_id", "quota_id" },
  } },
  { name = "quota_slot", doc = "A slot of a quota that an execution has.", fields = {
    { "set", "holder_set" }, { "execution_id", "execution_id" }, { "holder_id", "holder_id" },
  } },
  { name = "held_slot", doc = "What an execution's partition knows about a holder.", fields = {
    { "execution_id", "execution_id" }, { "holder_id", "holder_id" }, { "state", "holder_state" },
    { "expires_at", "time_ms?" },
  } },
  { name = "queue_position", doc = "Where a walk over a lane's running executions goes on.", fields = {
    { "queue", "queue" }, { "created_at", "time_ms" }, { "execution_id", "execution_id" },
  } },
  { name = "dimension_limit", doc = "What a budget measures, and how much of it may be used.", fields = {
    { "name", "dimension" }, { "hard", "limit_amount?" }, { "soft", "limit_amount?" },
  } },
  { name = "budget_scope", fields = { { "type", "scope_type" }, { "id", "scope_id?" } } },
  { name = "budget_reset",
    doc = "When a period ends: after an interval, or with the day or month of a time zone.",
    fields = {
      { "type", "reset_type" }, { "interval_ms", "interval_ms?" }, { "zone", "zone?" },
    } },
  { name = "new_budget", doc = "A budget to create; the first reset of a calendar is supplied.", fields = {
    { "budget_id", "budget_id" }, { "namespace", "namespace" }, { "parent", "budget_id?" }, { "scope", "budget_scope" },
    { "dimensions", "dimension_limits" }, { "reset", "budget_reset" }, { "next_reset_at", "time_ms?" },
    { "on_soft", "on_soft" }, { "on_hard", "on_hard" },
  } },
  { name = "dimension_status", fields = {
    { "name", "dimension" }, { "hard", "limit_amount?" }, { "soft", "limit_amount?" }, { "used", "count" },
    { "held", "count" },
  } },
  { name = "budget_action", doc = "What an operator did to a budget.", fields = {
    { "action", "text" }, { "actor", "actor" }, { "at", "time_ms" }, { "dimension", "dimension?" },
    { "delta", "delta?" }, { "reason", "reason?" },
  } },
  { name = "budget_period", doc = "A period that ended, and what was used in it.", fields = {
    { "since", "time_ms" }, { "ended_at", "time_ms" }, { "used", "free" },
  } },
  { name = "budget",
    doc = "A budget and how much of it is used and held; `rooms` counts how often it had room again after a refusal, "
      .. "`wide` is the number of the last room that everyone is told of.",
    fields = {
      { "budget_id", "budget_id" }, { "namespace", "namespace" }, { "parent", "budget_id?" },
      { "scope", "budget_scope" }, { "dimensions", "[dimension_status]" }, { "reset", "budget_reset" },
      { "on_soft", "on_soft" }, { "on_hard", "on_hard" }, { "version", "count" }, { "created_at", "time_ms" },
      { "period", "count" }, { "period_since", "time_ms" }, { "next_reset_at", "time_ms?" }, { "approved", "bool" },
      { "rooms", "count" }, { "wide", "count" }, { "actions", "[budget_action]" }, { "past", "[budget_period]" },
    } },
  { name = "budget_candidate", doc = "An execution that asks to start under a budget.", fields = {
    { "execution_id", "execution_id" }, { "holder_id", "holder_id" }, { "expires_at", "time_ms" },
    { "estimate", "estimate?" },
  } },
  { name = "budget_verdict",
    doc = "Whether a budget lets a candidate start; else which budget of its tree is in the way.",
    fields = {
      { "holder_id", "holder_id" }, { "admitted", "bool" }, { "refusal", "budget_refusal?" },
      { "budget_id", "budget_id?" }, { "dimension", "text?" }, { "used", "count?" }, { "limit", "count?" },
      { "rooms", "count?" },
    } },
  { name = "budget_holder", doc = "The grant or lease whose end drops a hold.", fields = {
    { "execution_id", "execution_id" }, { "holder_id", "holder_id" },
  } },
  { name = "usage_report", doc = "What an execution used; counted once per key.", fields = {
    { "dedup_key", "dedup_key" }, { "execution_id", "execution_id?" }, { "holder_id", "holder_id?" },
    { "sequence", "count?" }, { "dimensions", "amounts" }, { "reservation_id", "reservation_id?" },
  } },
  { name = "pending_usage", doc = "A report that waits for its budget's answer.", fields = {
    { "sequence", "count" }, { "budget_id", "budget_id" }, { "attempt_index", "attempt_index" },
    { "lease_id", "lease_id" }, { "holder_id", "holder_id?" }, { "dedup_key", "dedup_key" },
    { "dimensions", "amounts" }, { "at", "time_ms" }, { "reservation_id", "reservation_id?" },
  } },
  { name = "usage_breach",
    doc = "The limit in the way of a report, and what its budget says to do about it.",
    fields = {
      { "budget_id", "budget_id" }, { "dimension", "dimension" }, { "used", "count" }, { "limit", "count" },
      { "rooms", "count" }, { "action", "on_hard" },
    } },
  { name = "ledger_line", doc = "What an attempt used of a budget's dimension, and what it was refused.", fields = {
    { "attempt_index", "attempt_index" }, { "budget_id", "budget_id" }, { "dimension", "dimension" },
    { "accepted", "count" }, { "refused", "count" },
  } },
  { name = "usage",
    doc = "What an execution used, and how many of its reports wait for their budget's answer.",
    fields = {
      { "ledger", "[ledger_line]" }, { "pending", "count" },
    } },
  { name = "blocked_position", doc = "Where a walk over blocked executions goes on.", fields = {
    { "since", "time_ms" }, { "execution_id", "execution_id" },
  } },
  { name = "awaits_position",
    doc = "Where a walk over a line goes on; `never` is the line of those that can never pass.",
    fields = {
      { "score", "int" }, { "execution_id", "execution_id" }, { "never", "bool?" },
    } },
  { name = "awaiting",
    doc = "An execution that waits for a budget; one that `continues` was parked while it ran.",
    fields = {
      { "execution_id", "execution_id" }, { "score", "int" }, { "namespace", "namespace" }, { "lane", "lane" },
      { "kind", "kind" }, { "blocked_since", "time_ms" }, { "continues", "bool" }, { "detail", "detail?" },
    } },
  { name = "quota_waiter", fields = { { "execution_id", "execution_id" }, { "score", "int" }, { "never", "bool" } } },
  { name = "awaited_budget",
    doc = "A budget that someone waits for; -1 rooms were seen by whoever found none of this name.",
    fields = {
      { "budget_id", "budget_id" }, { "rooms", "int" },
    } },
  { name = "scope_budgets", fields = { { "scope", "scope_name" }, { "budget_ids", "[budget_id]" } } },
  { name = "cleared_budget",
    doc = "A budget that had room again after it refused something, or whose next reset is to be supplied. Everyone "
      .. "refused before room number `wide` is to be told unless `told` says it was done, and of those before `rooms` "
      .. "as many as fit into what is `free` below the hard limits.",
    fields = {
      { "budget_id", "budget_id" }, { "rooms", "count" }, { "wide", "count" }, { "told", "count" }, { "free", "free" },
      { "next_reset_wanted", "bool" },
    } },
  { name = "budget_position", doc = "Where a list of budgets goes on.", fields = {
    { "created_at", "time_ms" }, { "budget_id", "budget_id" },
  } },
  { name = "failure", fields = { { "reason", "reason" }, { "category", "category" } } },
  { name = "attempt", fields = {
    { "index", "attempt_index" }, { "attempt_id", "attempt_id" }, { "type", "attempt_type" },
    { "state", "attempt_state" }, { "worker_instance", "instance" }, { "started_at", "time_ms" },
    { "ended_at", "time_ms?" }, { "lease_epoch", "epoch" }, { "failure", "failure?" }, { "frames", "count" },
  } },
  { name = "lease", fields = {
    { "worker_id", "worker_id" }, { "worker_instance", "instance" }, { "lease_id", "lease_id" },
    { "lease_epoch", "epoch" }, { "expires_at", "time_ms" }, { "cancel_requested", "bool" },
    { "yield_requested", "bool" },
  } },
  { name = "held_lease", doc = "A lease a worker holds.", fields = {
    { "execution_id", "execution_id" }, { "lease_id", "lease_id" }, { "lease_expires_at", "time_ms" },
  } },
  { name = "progress", fields = { { "pct", "pct" }, { "message", "progress_message?" } } },
  { name = "operator_action", fields = {
    { "action", "text" }, { "actor", "actor" }, { "at", "time_ms" }, { "reason", "reason?" },
  } },
  { name = "execution", doc = "Everything the store knows about one execution.", fields = {
    { "execution_id", "execution_id" }, { "namespace", "namespace" }, { "lane", "lane" }, { "kind", "kind" },
    { "state", "public_state" }, { "phase", "phase" }, { "blocking_reason", "blocking_reason?" },
    { "blocking_detail", "detail?" }, { "blocked_since", "time_ms?" }, { "outcome", "outcome?" },
    { "attempt_state", "attempt_state?" }, { "continues", "bool" }, { "granted_until", "time_ms?" },
    { "priority", "priority" }, { "score", "int" }, { "created_at", "time_ms" }, { "updated_at", "time_ms" },
    { "ended_at", "time_ms?" }, { "retire_at", "time_ms?" }, { "delay_until", "time_ms?" },
    { "deadline_at", "time_ms?" }, { "start_by", "time_ms?" }, { "attempt_deadline_at", "time_ms?" },
    { "tags", "tags" }, { "requires", "capabilities" }, { "prefers", "capabilities" },
    { "fairness_key", "fairness_key?" }, { "input", "input" }, { "input_encoding", "encoding" },
    { "result", "result?" }, { "result_encoding", "encoding?" }, { "failure", "failure?" }, { "attempts", "[attempt]" },
    { "attempts_spilled", "count" }, { "lease", "lease?" }, { "progress", "progress?" }, { "retry", "retry" },
    { "attempt_timeout_ms", "duration_ms?" }, { "max_reclaims", "times_limit" }, { "max_replays", "times_limit" },
    { "reclaim_count", "count" }, { "replay_count", "count" }, { "fallback_index", "count?" },
    { "fallbacks", "fallbacks" }, { "budgets", "budget_refs" }, { "quotas", "quota_refs" },
    { "retention_ms", "duration_ms" }, { "max_frames", "count" }, { "trace_parent", "trace_parent?" },
    { "completion_webhook", "url?" }, { "operator_actions", "[operator_action]" }, { "suspension", "suspension?" },
    { "waitpoints", "[open_waitpoint]" }, { "past_suspensions", "[past_suspension]" }, { "signals", "count" },
    { "flow_id", "flow_id?" }, { "parent_id", "execution_id?" }, { "key", "member_key?" }, { "inbound", "inbound?" },
    { "nested", "flow_id?" }, { "children", "count" }, { "children_open", "count" }, { "usage", "usage?" },
    { "steps", "count" }, { "step_bytes", "count" }, { "forked_from", "execution_id?" },
    { "forks", "[execution_id]" }, { "fired", "fired?" },
  } },
  { name = "waitpoint_position", doc = "Where a list of waitpoints goes on.", fields = {
    { "created_at", "time_ms" }, { "waitpoint_id", "waitpoint_id" },
  } },
  { name = "position", doc = "Where a list goes on.", fields = {
    { "created_at", "time_ms" }, { "execution_id", "execution_id" },
  } },
  { name = "lane_definition", doc = "How a lane behaves.", fields = {
    { "state", "lane_state" }, { "priority_weight", "priority_weight" }, { "fairness", "fairness" },
    { "fairness_weights", "fairness_weights?" }, { "max_depth", "count?" }, { "weight", "weight" },
    { "retry", "retry?" }, { "attempt_timeout_ms", "duration_ms?" }, { "retention_ms", "duration_ms?" },
    { "lease_ttl_ms", "lease_ttl_ms?" }, { "max_active", "max_active?" },
  } },
  { name = "lane_entry", fields = {
    { "namespace", "namespace" }, { "lane", "lane" }, { "version", "count" }, { "definition", "lane_definition" },
  } },
  { name = "worker", fields = {
    { "instance", "instance" }, { "worker_id", "worker_id" }, { "namespace", "namespace" }, { "lanes", "lane_names" },
    { "capabilities", "capabilities" }, { "slots", "slots" }, { "state", "worker_state" }, { "incarnation", "uuid?" },
    { "owner", "actor?" }, { "registered_at", "time_ms" }, { "expires_at", "time_ms" }, { "kinds", "kinds?" },
  } },
  { name = "worker_class", doc = "What workers of one sort take: these kinds, or all, that need no more than this.",
    fields = { { "capabilities", "capabilities" }, { "kinds", "kinds?" } } },
  { name = "access", doc = "What the bearer of a token may do. A scope that is absent is everything.", fields = {
    { "access_id", "uuid" }, { "name", "access_name" }, { "roles", "roles" }, { "namespaces", "namespaces?" },
    { "lanes", "lane_names?" }, { "capabilities", "capabilities?" }, { "created_at", "time_ms" },
    { "created_by", "actor" }, { "expires_at", "time_ms?" },
  } },
  { name = "heartbeat_result", fields = { { "instance", "instance" }, { "known", "bool" }, { "draining", "bool" } } },
  { name = "server", fields = { { "server_id", "uuid" }, { "expires_at", "time_ms" }, { "listening", "bool" } } },
  { name = "queue_facts", fields = {
    { "queue", "queue" }, { "requires", "capabilities" }, { "admission", "bool" }, { "eligible", "count" },
    { "uncovered", "bool" }, { "head_score", "int?" }, { "kind", "kind" },
  } },
  { name = "lane_counts", fields = {
    { "namespace", "namespace" }, { "lane", "lane" }, { "state", "lane_state" }, { "eligible", "count" },
    { "granted", "count" }, { "active", "count" }, { "delayed", "count" }, { "suspended", "count" },
    { "terminal", "count" }, { "blocked_route", "count" }, { "blocked_quota", "count" }, { "blocked_budget", "count" },
    { "blocked_dependencies", "count" }, { "blocked_children", "count" }, { "blocked_operator", "count" },
    { "head_score", "int?" }, { "oldest_eligible_at", "time_ms?" }, { "queues", "[queue_facts]" },
  } },
  { name = "lane_waiter", doc = "One that waits in a lane, and for what.", fields = {
    { "execution_id", "execution_id" }, { "state", "public_state" }, { "reason", "blocking_reason?" },
    { "requires", "capabilities" }, { "detail", "detail?" },
  } },
  { name = "event_entry",
    doc = "Events that were appended together, packed one after the other; `number` is that of the first.",
    fields = {
      { "id", "stream_id" }, { "number", "count" }, { "events", "bytes" },
    } },
  { name = "tally_line",
    doc = "What was counted of one lane, or of what has none: how many events of each name, in the order of the names; "
      .. "of each duration the sum in milliseconds and how many fell under each bound.",
    fields = {
      { "namespace", "text" }, { "lane", "text" }, { "counts", "[count]" }, { "waited", "[count]" },
      { "ran", "[count]" }, { "took", "[count]" },
    } },
  { name = "on_hand", doc = "What a partition has to do, and since when.", fields = {
    { "outbox", "count" }, { "oldest_outbox_at", "time_ms?" }, { "timers_due", "count" },
    { "next_timer_at", "time_ms?" }, { "stuck", "count" }, { "waitpoints", "count" },
    { "oldest_waitpoint_at", "time_ms?" },
  } },
  { name = "quota_standing", doc = "How a quota stands over the keys looked at.", fields = {
    { "quota_id", "quota_id" }, { "namespace", "namespace" }, { "created_at", "time_ms" }, { "keys", "count" },
    { "looked", "count" }, { "held", "count" }, { "waiting", "count" }, { "throttled", "count" },
  } },
  { name = "effect", doc = "Something owed to other partitions.", fields = {
    { "id", "stream_id" }, { "type", "text" }, { "at", "time_ms" }, { "data", "detail" },
  } },
  { name = "webhook", doc = "A webhook to deliver: what ended, and how. `tries` counts this one.", fields = {
    { "delivery_id", "delivery_id" }, { "tries", "count" }, { "receiver", "key_digest" }, { "url", "url" },
    { "type", "text" }, { "at", "time_ms" }, { "namespace", "namespace" }, { "lane", "lane?" }, { "kind", "kind" },
    { "execution_id", "execution_id?" }, { "flow_id", "flow_id?" }, { "outcome", "text" }, { "failure", "failure?" },
    { "tags", "tags" }, { "attempt_index", "attempt_index?" }, { "replay_count", "count" },
  } },
  { name = "webhook_status", doc = "How far the webhook of the last end is.", fields = {
    { "delivery_id", "delivery_id" }, { "state", "webhook_state" }, { "tries", "count" }, { "owed_at", "time_ms" },
    { "updated_at", "time_ms" }, { "next_at", "time_ms?" }, { "status", "http_status?" }, { "error", "webhook_error?" },
  } },
  { name = "partition_defaults", fields = {
    { "executions", "partition_count" }, { "budgets", "partition_count" }, { "quotas", "partition_count" },
    { "schedules", "partition_count" },
  } },
  { name = "finding", doc = "A broken invariant.", fields = {
    { "invariant", "count" }, { "key", "bytes" }, { "problem", "text" }, { "repaired", "bool" },
  } },
}

return { scalar = scalar, list = list, map = map, struct = struct }
end

source["lib.check"] = function(require, LIBRARY)
-- Checks values against the types of contracts; a failure names the field and the bound.
local types = require "lib.types"

local check = {}
local named = {} -- type name -> function(value) -> problem, path, code

local function problem(text, code)
  return text, "", code
end

local function integer(v)
  return type(v) == "number" and v == math.floor(v) and v >= -9007199254740991 and v <= 9007199254740991
end

local scalars = {}

function scalars.bool()
  return function(v)
    if type(v) ~= "boolean" then return problem("must be true or false") end
  end
end

function scalars.int(t)
  return function(v)
    if not integer(v) then return problem("must be an integer") end
    if v < t.min or v > t.max then
      return problem(string.format("must be in %.0f..=%.0f, got %.0f", t.min, t.max, v))
    end
  end
end

-- True when every run of digits in a text is a number no larger than `max`, given as digits.
local function digits_within(v, max)
  for run in string.gmatch(v, "%d+") do
    local digits = string.gsub(run, "^0+", "")
    if #digits > #max or (#digits == #max and digits > max) then return false end
  end
  return true
end

function scalars.text(t)
  return function(v)
    if type(v) ~= "string" then return problem("must be text") end
    if #v < t.min or #v > t.max then
      return problem(string.format("must be %d to %d bytes long, got %d", t.min, t.max, #v), t.code)
    end
    if t.pattern and not string.find(v, t.pattern) then
      return problem("holds a character that is not allowed", t.code)
    end
    if t.digits_max and not digits_within(v, t.digits_max) then
      return problem("holds a number that is too large", t.code)
    end
    if t.refuse and string.find(v, t.refuse.pattern) then
      return problem(t.refuse.problem or "holds a character that is not allowed", t.code)
    end
  end
end

function scalars.bytes(t)
  return function(v)
    if type(v) ~= "string" then return problem("must be bytes") end
    if #v > t.max then return problem(string.format("must be at most %d bytes long, got %d", t.max, #v)) end
  end
end

function scalars.uuid()
  local pattern = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"
  return function(v)
    if type(v) ~= "string" or #v ~= 36 or not string.find(v, pattern) or string.find(v, "%u") then
      return problem("must be a UUID in lower case")
    end
  end
end

scalars["enum"] = function(t)
  local known = {}
  for _, value in ipairs(t.values) do known[value] = true end
  return function(v)
    if type(v) ~= "string" or not known[v] then return problem("must be one of " .. table.concat(t.values, ", ")) end
  end
end

-- Only in replies, which nothing checks.
function scalars.native()
  return function() return problem("is not for arguments") end
end

local compile

-- How many items a list holds, or nil when it is none. Entries are counted: the length operator may stop at either side
-- of a hole, and where depends on how the host built the table.
function check.list_length(v)
  if type(v) ~= "table" then return nil end
  local n, last = 0, 0
  for key in pairs(v) do
    if not integer(key) or key < 1 then return nil end
    n, last = n + 1, math.max(last, key)
  end
  if n == last then return n end
end

local function list_of(of, max, bytes_max)
  return function(v)
    local n = check.list_length(v)
    if n == nil then return problem("must be a list") end
    if max and n > max then return problem(string.format("must hold at most %d items, got %d", max, n)) end
    local bytes = 0
    for i = 1, n do
      local text, path, code = of(v[i])
      if text then return text, string.format("[%d]", i - 1) .. path, code end
      if bytes_max then bytes = bytes + #v[i] end
    end
    if bytes_max and bytes > bytes_max then
      return problem(string.format("must hold at most %d bytes in all, got %d", bytes_max, bytes))
    end
  end
end

local function map_of(key_check, value_check, max)
  return function(v)
    if type(v) ~= "table" then return problem("must be a map") end
    local n, worst, text, code = 0, nil, nil, nil
    for key, value in pairs(v) do
      n = n + 1
      local t, p, c = key_check(key)
      if not t then t, p, c = value_check(value) end
      local name = type(key) == "string" and key or "?"
      if t and (worst == nil or name .. p < worst) then worst, text, code = name .. p, t, c end
    end
    if max and n > max then return problem(string.format("must hold at most %d entries, got %d", max, n)) end
    if worst then return text, "." .. worst, code end
  end
end

-- `fields` is a list of { name, type }; the order decides which of two mistakes is reported.
function check.struct(fields)
  local checks, known, required = {}, {}, {}
  for i, field in ipairs(fields) do
    local spec = field[2]
    local optional = string.sub(spec, -1) == "?"
    if optional then spec = string.sub(spec, 1, -2) else required[#required + 1] = field[1] end
    local of = compile(spec)
    checks[i] = { field[1], of, optional, field.flat }
    known[field[1]] = of
  end

  -- Looks only at what is there, in any order: good enough to know that nothing is wrong.
  local function is_fine(v)
    for name, value in pairs(v) do
      local of = known[name]
      if of == nil or of(value) then return false end
    end
    for i = 1, #required do
      if v[required[i]] == nil then return false end
    end
    return true
  end

  return function(v)
    if type(v) ~= "table" then return problem("must be a map") end
    if is_fine(v) then return nil end
    local unknown
    for key in pairs(v) do
      if not known[key] then
        local name = type(key) == "string" and key or "?"
        if unknown == nil or name < unknown then unknown = name end
      end
    end
    if unknown then return "is not a known field", "." .. unknown end
    for i = 1, #checks do
      local name, of, optional = checks[i][1], checks[i][2], checks[i][3]
      local value = v[name]
      if value == nil then
        if not optional then return "is missing", "." .. name end
      else
        local text, path, code = of(value)
        -- A caller knows the fields of a flat struct as fields of this one.
        if text then return text, (checks[i][4] and "" or "." .. name) .. path, code end
      end
    end
  end
end

function compile(spec)
  local first = string.sub(spec, 1, 1)
  if first == "[" then return list_of(compile(string.sub(spec, 2, -2))) end
  if first == "{" then
    local key, value = string.match(spec, "^{([^:]+):(.+)}$")
    return map_of(compile(key), compile(value))
  end
  local known = named[spec]
  if known == nil then error("unknown type " .. spec) end
  return known
end

for _, t in ipairs(types.scalar) do named[t.name] = scalars[t.base](t) end
-- Lists, maps and structs may name each other in any order: each is compiled on first use.
local function later(name, make)
  local real
  named[name] = function(v)
    if real == nil then real = make() end
    return real(v)
  end
end
for _, t in ipairs(types.list) do
  later(t.name, function() return list_of(compile(t.of), t.max, t.bytes_max) end)
end
for _, t in ipairs(types.map) do
  later(t.name, function() return map_of(compile(t.key), compile(t.value), t.max) end)
end
for _, t in ipairs(types.struct) do
  later(t.name, function() return check.struct(t.fields) end)
end

function check.refusal(text, path, code)
  if string.sub(path, 1, 1) == "." then path = string.sub(path, 2) end
  return { err = code or "invalid_argument", detail = { field = path, problem = text } }
end

return check
end

source["lib.define"] = function(require, LIBRARY)
-- Binds contracts to operations, and runs lists of them: each is checked, planned and answered on its own.
local define = {}

local functions = {} -- name -> contract
local order = {}
local plain = {} -- variant without fields -> its packed answer
local tx -- the view of the partition that every operation gets
local pay -- pays what operations owe to other partitions

local pack, unpack_, pcall, type = cmsgpack.pack, cmsgpack.unpack, pcall, type
local settle_host = redis.settle

-- Makes an operation known by its contract.
function define.fn(contract)
  functions[contract.name] = contract
  order[#order + 1] = contract.name
end

function define.contracts()
  local list = {}
  for i, name in ipairs(order) do list[i] = functions[name] end
  return list
end

local function argument_fields(contract)
  local fields = {}
  for name, spec in pairs(contract.args) do
    fields[#fields + 1] = { name, spec }
  end
  table.sort(fields, function(a, b) return a[1] < b[1] end)
  return fields
end

local function compile(contract)
  local check = require "lib.check"
  local whole = check.struct(argument_fields(contract))
  contract.check = function(args)
    local problem, at, code = whole(args)
    if problem then return check.refusal(problem, at, code) end
  end
  for _, flag in ipairs(contract.flags or {}) do
    if flag == "no-writes" then contract.read_only = true end
  end
end

local function boot()
  for _, module in ipairs(require "manifest") do require(module) end
  for _, name in ipairs(order) do compile(functions[name]) end
  tx, pay = require "lib.tx", require "transition.pay"
end

-- A packed answer: the variant and its fields, or false, the code of a refusal and its detail. What raised, and what is
-- not known, is nil, the word and a text. The number of store calls comes last when it was asked for.
local function packed(answer, calls)
  local fields, variant = answer.fields, answer.ok
  if answer.bytes then return calls and answer.bytes .. pack(calls) or answer.bytes end
  if answer.err then return pack(false, answer.err, answer.detail, calls) end
  if calls == nil and fields == nil then
    local known = plain[variant]
    if known == nil then
      known = pack(variant, nil)
      plain[variant] = known
    end
    return known
  end
  return pack(variant, fields, calls)
end

-- The answer of an operation that raised.
local function raised(problem)
  if type(problem) == "table" then problem = problem.err or "unknown" end
  local refusal = require("lib.reply").corrupt(problem)
  return refusal and packed(refusal) or pack(nil, "raised", problem), refusal and "refused" or "raised"
end

-- An operation: its name, its route, its arguments, the time or nil, and whether its store calls are counted. `trusted`
-- says that the arguments were checked by the same rules.
local function operate(trusted, at, name, route, args, now, counted)
  local contract = functions[name]
  if contract == nil then return pack(nil, "unknown", name) end
  if tx.kind == "read" and not contract.read_only then
    return pack(nil, "raised", name .. " writes and cannot be called read-only")
  end
  if not trusted then
    local refusal = contract.check(args)
    if refusal then return packed(refusal, counted and 0 or nil) end
  end
  if tx:owing() > 0 and not contract.pays_later then pay.all(tx) end
  tx:operation(at, route, now)
  local fine, answer = pcall(contract.call, tx, args, tx.now)
  local reply, outcome
  if not fine then
    tx:reset()
    reply, outcome = raised(answer)
  elseif answer.err then
    tx:reset()
    reply, outcome = packed(answer, counted and tx.calls or nil), "refused"
  else
    if not contract.read_only then tx:finish() end
    reply, outcome = packed(answer, counted and tx.calls or nil), "ok"
  end
  if settle_host then settle_host(outcome) end
  return tx.lost or reply
end

-- Runs a list: `argv` holds what is true for all of it, then its operations. `kind` is the class of the function it
-- came by.
function define.run(kind, argv)
  if tx == nil then boot() end
  local marks, number, executions, budgets, quotas = unpack_(argv[1])
  tx:list(kind, marks, executions, budgets, quotas)
  local answers, trusted = tx.answers, number == LIBRARY.number
  for i = 2, #argv do
    -- An answer may be replaced while those behind it run.
    answers[i - 1] = operate(trusted, i - 1, unpack_(argv[i]))
  end
  tx:flush_all()
  if tx:owing() > 0 then pay.all(tx) end
  tx:close()
  return answers
end

-- The one function that is called by its own name: what is loaded, asked before anything else is. Every version reads
-- its reply, so it has a shape of its own.
function define.library()
  if tx == nil then boot() end
  return pack({ ok = functions.ff_library.call().fields })
end

return define
end

source["lib.reply"] = function(require, LIBRARY)
-- The two shapes of an answer: a variant with its fields, or a refusal with its detail.
local reply = {}

function reply.ok(variant, fields)
  return { ok = variant, fields = fields }
end

-- Details are texts, so that every host and client reads them alike.
function reply.err(code, detail)
  local texts = {}
  for name, value in pairs(detail or {}) do
    if type(value) == "number" then value = string.format("%.0f", value) end
    if type(value) == "boolean" then value = value and "true" or "false" end
    texts[name] = value
  end
  return { err = code, detail = texts }
end

-- The refusal for a record that cannot be read; nil for any other raise, which is a defect.
function reply.corrupt(problem)
  local key, field = string.match(problem, "CORRUPT (%S+) (%S+)")
  return key and reply.err("corrupt_record", { key = key, field = field }) or nil
end

return reply
end

source["lib.tx"] = function(require, LIBRARY)
-- One operation's view of its partition: reads see the plan, writes are planned.
--
-- What finished operations planned waits and goes out together: before something reads a range of a key it touches,
-- when the list turns to another partition, and at the end of the list. What the running operation plans is dropped
-- when it is refused or raises.
--
-- The plan is kept in lists that are used again and again: they hold nothing that outlives a list of operations.
local limits = require "lib.limits"
local places = require "lib.keys"

local redis_call, redis_pcall, commit = redis.call, redis.pcall, redis.commit
local begin_host, settle_host = redis.begin, redis.settle
local pack = cmsgpack.pack
local floor, format, find, sub, concat = math.floor, string.format, string.find, string.sub, table.concat
local pcall, type, unpack, tonumber, error, ipairs, next = pcall, type, unpack, tonumber, error, ipairs, next

-- The one view there is; an operation begins it anew.
local Tx = {}

-- Planned writes are commands as they will be sent: a list of the word, the key and the arguments. A write joins the
-- last command of its key when that has the same word. `before` leads from a command to the one that precedes it for
-- the same key.
local order, count, last, before = {}, 0, {}, {}
-- How many commands finished operations planned; and the commands that the running operation's writes have joined. A
-- SET has its operation's number as a fourth item.
local settled, joined, join_count, number = 0, {}, 0, 0
-- SETs of records that are packed when the operation is done, each with the function that does it.
local open, closers, open_count = {}, {}, 0
-- Records that operations of the list share, by their keys: each is opened once and is as the plan or the store has it.
-- A SET of one is packed when it is written, by its function here.
local shared, sharing = {}, {}
-- True when a planned text was planned anew.
local renewed = false
-- Events of the partition the list is at, in order; how many there are, how many of finished operations, and how many
-- of those whose writes are done.
local events, event_count, event_settled, event_done = {}, 0, 0, 0
-- How many finished operations have writes that are not done, and the places of the first and the last of them in the
-- list.
local owners, first_owner, last_owner = 0, 0, 0
-- What operations owe to other partitions of the same store, until it is paid; how many debts there are, and how many
-- of finished operations.
local debts, debt_count, debt_settled = {}, 0, 0
-- What is owed in case that the writes of an operation fail: what it took elsewhere for something that then does not
-- happen. Each is three entries: who was let in, and the place and the time of its operation.
local hedges, hedge_count, hedge_settled = {}, 0, 0

-- True when the running operation has planned a command of this key.
local function is_own(command)
  for i = settled + 1, count do
    if order[i] == command then return true end
  end
  for i = 1, join_count do
    if joined[i] == command then return true end
  end
  return false
end

local function add(key, command, previous)
  if previous then
    local word = previous[1]
    if word == "DEL" and is_own(previous) then error("write after delete of " .. key) end
    if word == "SET" then renewed = true end
    before[command] = previous
  end
  last[key] = command
  count = count + 1
  order[count] = command
end

-- Takes the last commands out of the plan, down to the first `n`.
local function cut(n)
  for i = count, n + 1, -1 do
    local command = order[i]
    last[command[2]], before[command], order[i] = before[command], nil, nil
  end
  count = n
end

-- How many arguments one write of a command has that others can join.
local width = { ZADD = 2, HSET = 2, ZREM = 1, HDEL = 1, XDEL = 1 }

-- Takes back what the running operation has planned since its last finished item, and answers it as commands. What
-- joined a command of another operation comes first: what the operation planned for the same key afterwards is in a
-- command of its own, which stays whole.
local function take_back()
  local own, joins, taken = {}, {}, {}
  for i = settled + 1, count do own[order[i]] = true end
  for i = join_count, 1, -1 do
    local command = joined[i]
    joined[i] = nil
    if not own[command] then
      local size, word = #command, command[1]
      local write = { word, command[2] }
      for at = size - width[word] + 1, size do
        write[#write + 1] = command[at]
        command[at] = nil
      end
      joins[#joins + 1] = write
    end
  end
  for i = #joins, 1, -1 do taken[#taken + 1] = joins[i] end
  for i = settled + 1, count do taken[#taken + 1] = order[i] end
  cut(settled)
  join_count, open_count = 0, 0
  return taken
end

-- The host's text of a number.
local function text(v)
  if type(v) == "number" then return format("%.0f", v) end
  return v
end

-- Lists ----------------------------------------------------------------------------------------

local append, say

-- Begins a list. `kind` is the class of the function it came by; `marks` is 1 when slots may move and 2 when someone
-- reads events, or their sum. A test adds 4 to have every transition made step by step. `executions`, `budgets` and
-- `quotas` are how many partitions hold them, where operations may visit others.
function Tx:list(kind, marks, executions, budgets, quotas)
  if count > 0 then cut(0) end
  settled, join_count, open_count, owners = 0, 0, 0, 0
  event_count, event_settled, event_done = 0, 0, 0
  debt_count, debt_settled, hedge_count, hedge_settled = 0, 0, 0, 0
  if next(shared) then shared = {} end
  self.executions, self.budgets, self.quotas = executions, budgets, quotas
  local time = redis_call("TIME")
  local sec, usec = tonumber(time[1]), tonumber(time[2])
  self.kind, self.guard, self.listen = kind, marks % 2 == 1, marks % 4 >= 2
  self.step_by_step = LIBRARY.test and marks >= 4
  self.list_now, self.list_now_us = sec * 1000 + floor(usec / 1000), sec * 1000000 + usec
  self.list_now_packed = pack(self.list_now)
  self.route, self.lanes, self.said, self.answers, self.visited, self.visiting = nil, {}, nil, {}, {}, nil
end

-- Turns to another partition: what was planned for the one before is written. False when it could not be.
local function turn(self, route)
  local fine = self:flush()
  append(self)
  local names = places.of(route)
  self.route, self.names, self.tag = route, names, names.tag
  return fine
end

-- Begins the operation at this place of the list. What visits found may be changed by it in its own way.
function Tx:operation(at, route, now)
  if route ~= self.route then
    self.at = nil
    turn(self, route)
  end
  if not self.visiting and next(self.visited) then self.visited = {} end
  number = number + 1
  self.at, self.calls, self.memo, self.messages, self.lost = at, 1, {}, nil, nil
  self.now, self.now_us, self.now_packed = self.list_now, self.list_now_us, self.list_now_packed
  if now and LIBRARY.test then self.now, self.now_us, self.now_packed = now, now * 1000, pack(now) end
  if begin_host then begin_host(at, route) end
end

-- Drops what the operation planned since its last finished item.
function Tx:reset()
  if join_count > 0 or count > settled then take_back() end
  event_count, debt_count, hedge_count = event_settled, debt_settled, hedge_settled
  self.memo, self.messages, self.lanes, self.visited = {}, nil, {}, {}
end

-- What an earlier visit of this list found under a key, and left there: visits come back to the same quota again and
-- again.
function Tx:found(key)
  return self.visiting and self.visited[key] or nil
end

function Tx:keep(key, record)
  if self.visiting then self.visited[key] = record end
end

function Tx:read(...)
  self.calls = self.calls + 1
  return redis_call(...)
end

-- Reads of keys with planned writes -------------------------------------------------------------

-- The value planned for a name of a key: false when it will be gone, nil when no plan says so.
local function planned(command, name)
  while command do
    local word = command[1]
    if word == "DEL" then return false end
    if word == "ZADD" then
      for at = #command, 4, -2 do
        if command[at] == name then return command[at - 1] end
      end
    elseif word == "HSET" then
      for at = #command - 1, 3, -2 do
        if command[at] == name then return command[at + 1] end
      end
    elseif width[word] then
      for at = 3, #command do
        if command[at] == name then return false end
      end
    end
    command = before[command]
  end
end

-- A range of a key is about to be read: what others planned for it goes out first. What this operation planned cannot
-- be seen by a range.
local function ranged(self, key)
  local command = last[key]
  if command == nil then return end
  if is_own(command) then error("range read of a key with planned writes: " .. key) end
  self:give_way()
end

-- True when this operation has planned a write to the key.
function Tx:plans(key)
  local command = last[key]
  return command ~= nil and is_own(command)
end

-- True when a write to the key is planned and not done yet.
function Tx:touches(key)
  return last[key] ~= nil
end

-- The last command this operation planned for a key; those of others go out first.
local function own_of(self, key)
  local command = last[key]
  if command == nil or (is_own(command) and before[command] == nil and join_count == 0) then return command end
  self:give_way()
  return last[key]
end

-- Hashes ---------------------------------------------------------------------------------------

-- All fields of a hash as a table, or nil when there is none.
function Tx:hgetall(key)
  local command = own_of(self, key)
  if command and command[1] == "DEL" then return nil end
  local flat = self:read("HGETALL", key)
  local fields = {}
  for at = 1, #flat, 2 do fields[flat[at]] = flat[at + 1] end
  if command then
    -- From the first to the last.
    local all = {}
    while command do
      table.insert(all, 1, command)
      command = before[command]
    end
    for _, c in ipairs(all) do
      if c[1] == "HSET" then
        for at = 3, #c, 2 do fields[c[at]] = text(c[at + 1]) end
      else
        for at = 3, #c do fields[c[at]] = nil end
      end
    end
  end
  if next(fields) ~= nil then return fields end
end

function Tx:hget(key, field)
  local command = last[key]
  if command then
    local value = planned(command, field)
    if value then return text(value) end
    if value == false then return nil end
  end
  self.calls = self.calls + 1
  return redis_call("HGET", key, field) or nil
end

function Tx:hlen(key)
  ranged(self, key)
  return self:read("HLEN", key)
end

-- Several fields of a hash this operation has planned nothing for, in this order; an absent one is false.
function Tx:hmget(key, fields)
  ranged(self, key)
  return self:read("HMGET", key, unpack(fields))
end

-- One field of a hash.
function Tx:hput(key, field, value)
  local command = last[key]
  if command and command[1] == "HSET" then
    local n = #command
    command[n + 1], command[n + 2] = field, value
    join_count = join_count + 1
    joined[join_count] = command
  else
    add(key, { "HSET", key, field, value }, command)
  end
end

-- `list` is flat: field, value, field, value, …
function Tx:hset(key, list)
  for i = 1, #list, 2 do self:hput(key, list[i], list[i + 1]) end
end

-- Plans the removal of a name from a key.
local function remove(word, key, name)
  local command = last[key]
  if command and command[1] == word then
    command[#command + 1] = name
    join_count = join_count + 1
    joined[join_count] = command
  elseif not (command and command[1] == "DEL") then
    add(key, { word, key, name }, command)
  end
end

function Tx:hdel(key, field)
  remove("HDEL", key, field)
end

-- Strings --------------------------------------------------------------------------------------

-- The text that a planned SET will leave. A record is packed when its operation is done, or when it is asked for.
local function text_of(command)
  if command[1] == "DEL" then return nil end
  local value = command[3]
  if type(value) == "table" then
    local close = sharing[command]
    if close then return close(value) end
    for i = 1, open_count do
      if open[i] == command then return closers[i](value) end
    end
  end
  return value
end

function Tx:get(key)
  local command = last[key]
  if command then return text_of(command) end
  self.calls = self.calls + 1
  return redis_call("GET", key) or nil
end

-- What a record's key holds, or nil. A key that holds anything else than a text is damaged.
function Tx:record(key)
  local command = last[key]
  if command then return text_of(command) end
  self.calls = self.calls + 1
  local stored = redis_pcall("GET", key)
  if type(stored) == "string" then return stored end
  if stored then
    if find(stored.err, "WRONGTYPE", 1, true) then error("CORRUPT " .. key .. " type", 0) end
    error(stored.err, 0)
  end
end

-- What the keys of several records hold, in this order, read at once: false for a key that holds none, is damaged or
-- could not be read with the others.
function Tx:records(list)
  local out, asked, places = {}, {}, {}
  for i = 1, #list do
    local command = last[list[i]]
    if command then
      out[i] = text_of(command) or false
    else
      asked[#asked + 1], places[#places + 1] = list[i], i
    end
  end
  for from = 1, #asked, 1000 do
    local last_asked = math.min(from + 999, #asked)
    self.calls = self.calls + 1
    local found = redis_pcall("MGET", unpack(asked, from, last_asked))
    for i = from, last_asked do out[places[i]] = found[i - from + 1] or false end
  end
  return out
end

function Tx:set(key, value)
  local command = last[key]
  shared[key] = nil
  if command and command[4] == number and command[1] == "SET" then
    command[3], sharing[command] = value, nil
  else
    add(key, { "SET", key, value, number }, command)
  end
end

-- Plans a record; `close` packs it when the operation is done, however often it is changed until then.
function Tx:put(key, record, close)
  local command = last[key]
  if command and command[3] == record then return end
  shared[key] = nil
  command = { "SET", key, record, number }
  add(key, command, last[key])
  open_count = open_count + 1
  open[open_count], closers[open_count] = command, close
end

-- The record that operations of the list share under a key.
function Tx:shared(key)
  return shared[key]
end

-- Plans a record as all operations of the list share it. **Invariant**: an operation that changes one reads nothing
-- afterwards and is not refused, since its changes cannot be taken back.
function Tx:share(key, record, close)
  shared[key] = record
  local command = last[key]
  if command and command[3] == record then return end
  local fresh = { "SET", key, record, number }
  add(key, fresh, command)
  sharing[fresh] = close
end

-- Removes a whole key, whatever it holds.
function Tx:del(key)
  local command = last[key]
  shared[key] = nil
  if not (command and command[1] == "DEL") then add(key, { "DEL", key }, command) end
end

-- Sorted sets ----------------------------------------------------------------------------------

function Tx:zscore(key, member)
  local command = last[key]
  if command then
    local score = planned(command, member)
    if score then return score end
    if score == false then return nil end
  end
  return tonumber(self:read("ZSCORE", key, member) or nil)
end

-- The scores of several members, in this order; an absent one is false.
function Tx:zscores(key, members)
  local scores = {}
  if last[key] or #members == 0 then
    for i = 1, #members do scores[i] = self:zscore(key, members[i]) or false end
    return scores
  end
  local found = self:read("ZMSCORE", key, unpack(members))
  for i = 1, #members do scores[i] = found[i] and tonumber(found[i]) or false end
  return scores
end

function Tx:zadd(key, score, member)
  if score % 1 ~= 0 then error("a score must be an integer, got " .. score) end
  local command = last[key]
  if command and command[1] == "ZADD" then
    local n = #command
    command[n + 1], command[n + 2] = score, member
    join_count = join_count + 1
    joined[join_count] = command
  else
    add(key, { "ZADD", key, score, member }, command)
  end
end

function Tx:zrem(key, member)
  remove("ZREM", key, member)
end

function Tx:zcard(key)
  ranged(self, key)
  return self:read("ZCARD", key)
end

function Tx:zcount(key, min, max)
  ranged(self, key)
  return self:read("ZCOUNT", key, min, max)
end

function Tx:zrank(key, member)
  ranged(self, key)
  return self:read("ZRANK", key, member) or nil
end

-- The number of entries as stored, whatever this operation plans for them.
function Tx:zstored(key)
  if last[key] then self:give_way() end
  return self:read("ZCARD", key)
end

-- Members between two positions, as the store answers them.
function Tx:zrange(key, ...)
  if last[key] then ranged(self, key) end
  self.calls = self.calls + 1
  return redis_call("ZRANGE", key, ...)
end

local function pairs_of(flat)
  local list = {}
  for i = 1, #flat, 2 do list[#list + 1] = { member = flat[i], score = tonumber(flat[i + 1]) } end
  return list
end

-- Lowest scores first, after the first `skip`: a list of { member, score }.
function Tx:zlowest(key, min, max, limit, skip)
  return pairs_of(self:zrange(key, min, max, "BYSCORE", "LIMIT", skip or 0, limit, "WITHSCORES"))
end

-- Highest scores first, between max and min, after the first `offset`.
function Tx:zhighest(key, max, min, limit, offset)
  return pairs_of(self:zrange(key, max, min, "BYSCORE", "REV", "LIMIT", offset or 0, limit, "WITHSCORES"))
end

function Tx:zhead(key)
  return pairs_of(self:zrange(key, 0, 0, "WITHSCORES"))[1]
end

-- Streams --------------------------------------------------------------------------------------

-- Appends an entry.
function Tx:xadd(key, field, value)
  add(key, { "XADD", key, "*", field, value }, last[key])
end

-- Appends an entry under an id the caller chose; it must come after every id the stream ever held.
function Tx:xput(key, id, field, value)
  add(key, { "XADD", key, id, field, value }, last[key])
end

function Tx:xdel(key, id)
  remove("XDEL", key, id)
end

function Tx:xrange(key, from, to, limit)
  ranged(self, key)
  return self:read("XRANGE", key, from, to, "COUNT", limit)
end

-- As xrange, but in steps, so that large entries are not all read at once: stops after `bytes_max`. The second answer
-- says that it stopped there and more may follow.
function Tx:xsome(key, from, to, limit, bytes_max)
  local out, bytes, step = {}, 0, 16
  while #out < limit do
    local want = math.min(step, limit - #out)
    local page = self:xrange(key, from, to, want)
    for _, entry in ipairs(page) do
      out[#out + 1] = entry
      bytes = bytes + #entry[2][2]
    end
    if #page < want then return out, false end
    if bytes > bytes_max then return out, true end
    from = "(" .. page[#page][1]
    step = floor((bytes_max - bytes) * #out / math.max(bytes, 1)) + 1
  end
  return out, false
end

function Tx:xtrim(key, id)
  add(key, { "XTRIM", key, "MINID", "~", id }, last[key])
end

-- Removes exactly the entries before the id, counting those appended in this call.
function Tx:xcut(key, id)
  add(key, { "XTRIM", key, "MINID", "=", id }, last[key])
end

function Tx:xlen(key)
  ranged(self, key)
  return self:read("XLEN", key)
end

function Tx:xlast(key)
  ranged(self, key)
  return self:read("XREVRANGE", key, "+", "-", "COUNT", 1)[1]
end

function Tx:exists(key)
  local command = own_of(self, key)
  if command then return command[1] ~= "DEL" end
  return self:read("EXISTS", key) == 1
end

-- True when the store holds one of these keys; nothing is planned for them yet.
function Tx:any_exists(list)
  for _, key in ipairs(list) do ranged(self, key) end
  return #list > 0 and self:read("EXISTS", unpack(list)) > 0
end

-- Announcements and events ---------------------------------------------------------------------

-- Says something on the partition's channel after the list; the same thing once.
function Tx:announce(...)
  local messages = self.messages
  if messages == nil then
    messages = {}
    self.messages = messages
  end
  messages[#messages + 1] = { ... }
end

-- What the list announces to the partition it is at.
local function said_of(self, at)
  local said = self.said
  if said == nil then
    said = {}
    self.said = said
  end
  local of_tag = said[self.tag]
  if of_tag == nil then
    of_tag = { at = at, tag = self.tag, messages = {}, known = {} }
    said[self.tag], said[#said + 1] = of_tag, of_tag
  end
  return of_tag
end

-- What makes a message another one: of ready queues the best score counts, of timers the earliest.
local function identity(message)
  local kind = message[1]
  if kind == "ready" or kind == "taken" then return "ready\0" .. message[2] .. "\0" .. message[3], 4 end
  if kind == "timer" then return "timer", 2 end
  return concat(message, "\0"), nil
end

-- Says nothing of a ready queue after all: what came to it in this list was taken in this list.
function Tx:withdraw(path, queue)
  if self.said then self:announce("taken", path, queue) end
end

-- Takes what a finished operation announced into the list's messages.
local function gather(self)
  local of_tag = said_of(self, self.at)
  local messages, known = of_tag.messages, of_tag.known
  for _, message in ipairs(self.messages) do
    local name, least = identity(message)
    local other = known[name]
    if message[1] == "taken" then
      known[name] = nil
      for i = 1, other and #messages or 0 do
        if messages[i] == other then
          table.remove(messages, i)
          break
        end
      end
    elseif other == nil then
      known[name] = message
      messages[#messages + 1] = message
    elseif least and message[least] < other[least] then
      other[least] = message[least]
    end
  end
  self.messages = nil
end

-- Says what the list announced, once per partition.
function say(self)
  for _, of_tag in ipairs(self.said) do
    if #of_tag.messages > 0 then
      if begin_host then begin_host(of_tag.at, "ff:" .. of_tag.tag) end
      redis_call("SPUBLISH", "ff:wake:" .. of_tag.tag, pack(of_tag.messages))
      if settle_host then settle_host("ok") end
    end
  end
end

-- An event for the partition's stream, packed.
function Tx:note(event)
  event_count = event_count + 1
  events[event_count] = event
end

-- Events beyond those that are kept leave, a few at a time. `newest` is the number of the last one.
local function drop_oldest(key, newest)
  local first = redis_call("XRANGE", key, "-", "+", "COUNT", 1)[1]
  local beyond = first and newest - limits.events_max - tonumber(first[2][1]) + 1 or 0
  if beyond <= 0 then return end
  local entries = redis_call("XRANGE", key, "-", "+", "COUNT", math.min(beyond, 128) + 1)
  local keep
  for i = 2, #entries do
    if tonumber(entries[i][2][1]) > newest - limits.events_max + 1 then break end
    keep = entries[i][1]
  end
  if keep then redis_call("XTRIM", key, "MINID", "=", keep) end
end

-- Appends the events of the partition in as few entries as they fit into. The name of an entry's field is the number of
-- its first event.
function append(self)
  local n = event_done
  if n == 0 then return end
  local names = self.names
  if begin_host then begin_host(self.event_owner, self.route) end
  local newest = redis_call("INCRBY", names.event_count, n)
  local first = newest - n + 1
  if floor(newest / 64) > floor((first - 1) / 64) then drop_oldest(names.events, newest) end
  if n == 1 then
    redis_call("XADD", names.events, "MAXLEN", "~", limits.events_max, "*", first, events[1])
  else
    local from, bytes = 1, 0
    for i = 1, n do
      bytes = bytes + #events[i]
      local following = i < n and events[i + 1]
      if not following or i - from + 1 == limits.events_per_entry_max
        or bytes + #following > limits.event_entry_bytes_max
      then
        redis_call(
          "XADD", names.events, "MAXLEN", "~", limits.events_max, "*", first + from - 1, concat(events, "", from, i)
        )
        from, bytes = i + 1, 0
      end
    end
  end
  if settle_host then settle_host("ok") end
  for i = 1, n do events[i] = false end
  event_count, event_settled, event_done = 0, 0, 0
  if self.listen then
    local messages = said_of(self, self.event_owner).messages
    messages[#messages + 1] = { "events" }
  end
end

-- Writing ---------------------------------------------------------------------------------------

-- Touches every key about to be written: in a migrating slot this refuses before the first write.
local function moving(self)
  local keys = {}
  if event_settled > event_done then keys = { self.names.events, self.names.event_count } end
  for i = 1, count do
    local command = order[i]
    if before[command] == nil then keys[#keys + 1] = command[2] end
  end
  for from = 1, #keys, 1000 do
    local answer = redis_pcall("EXISTS", unpack(keys, from, math.min(from + 999, #keys)))
    if type(answer) == "table" and answer.err then return answer.err end
  end
end

-- Of several texts for a key only the last one is sent, and none before its removal.
local function drop_renewed()
  for i = count, 1, -1 do
    local command = order[i]
    local word = command[1]
    if word == "SET" or word == "DEL" then
      local previous = before[command]
      while previous and previous[1] == "SET" do
        local other = before[previous]
        previous[1], before[previous], sharing[previous], before[command] = false, nil, nil, other
        previous = other
      end
    end
  end
  local n = 0
  for i = 1, count do
    local command = order[i]
    order[i] = nil
    if command[1] then
      n = n + 1
      order[n] = command
    end
  end
  count, renewed = n, false
end

-- Sends one command; one with very many arguments in parts.
local function send_one(command)
  local size = #command
  if size <= 1000 then return redis_call(unpack(command, 1, size)) end
  for from = 3, size, 996 do
    redis_call(command[1], command[2], unpack(command, from, math.min(from + 995, size)))
  end
end

-- Sends all commands. Texts are set together, first of all: but for keys that other commands write too.
local function send()
  if commit then
    for i = 1, count do
      if order[i][1] == "SET" then order[i][4] = nil end
    end
    commit(order)
    return
  end
  local sets = 0
  for i = 1, count do
    local command = order[i]
    if command[1] == "SET" and before[command] == nil and last[command[2]] == command then sets = sets + 1 end
  end
  local all, n = sets > 1 and {} or nil, 0
  for i = 1, count do
    local command = order[i]
    if command[1] == "SET" and before[command] == nil and last[command[2]] == command then
      if all then
        all[n + 1], all[n + 2] = command[2], command[3]
        n = n + 2
        if n >= 1000 then
          redis_call("MSET", unpack(all, 1, n))
          all, n = {}, 0
        end
      else
        redis_call("SET", command[2], command[3])
      end
    end
  end
  if n > 0 then redis_call("MSET", unpack(all, 1, n)) end
  for i = 1, count do
    local command = order[i]
    local word = command[1]
    if word ~= "SET" then
      local size = #command
      if size == 4 then
        redis_call(word, command[2], command[3], command[4])
      elseif size == 3 then
        redis_call(word, command[2], command[3])
      else
        send_one(command)
      end
    elseif before[command] or last[command[2]] ~= command then
      redis_call("SET", command[2], command[3])
    end
  end
end

-- What raised, as text.
local function raised(problem)
  if type(problem) == "table" then problem = problem.err or "unknown" end
  return problem
end

-- What finished operations planned could not be written: each of them answers this instead.
local function lose(self, answer)
  if self.paying then
    event_count, event_settled = event_done, event_done
    return
  end
  for at = first_owner, last_owner do
    if at ~= self.at then self.answers[at] = answer end
  end
  for i = 1, debt_settled do
    local at = debts[i].at
    if at >= first_owner and at <= last_owner then debts[i].void = true end
  end
  -- What the running operation owes is dropped with it.
  debt_count = debt_settled
  for i = 1, hedge_settled, 3 do
    local one, at, now = hedges[i], hedges[i + 1], hedges[i + 2]
    for _, set in ipairs(one.entered) do
      debt_count = debt_count + 1
      debts[debt_count] = {
        what = "release", set = set, execution_id = one.execution_id, holder_id = one.holder_id, unused = true,
        at = at, home = self.route, now = now,
      }
    end
  end
  debt_settled = debt_count
  event_count, event_settled = event_done, event_done
  self.lost = answer
end

-- Writes what finished operations planned. False when it could not be written. Nothing else is in the plan.
function Tx:flush()
  if count == 0 and event_settled == event_done then return true end
  if renewed then drop_renewed() end
  for command, close in next, sharing do command[3], sharing[command] = close(command[3]), nil end
  local lost
  if self.guard then
    local busy = moving(self)
    if busy then lost = pack(false, "try_again", { problem = busy }) end
  end
  if lost == nil then
    if begin_host then begin_host(first_owner, self.route) end
    local fine, problem = pcall(send)
    if settle_host then settle_host(fine and "ok" or "raised") end
    if not fine then lost = pack(nil, "raised", raised(problem)) end
  end
  for i = 1, count do
    local command = order[i]
    last[command[2]], before[command], order[i] = nil, nil, nil
  end
  count, settled, owners = 0, 0, 0
  if lost then
    lose(self, lost)
    self.visited, shared = {}, {}
  end
  hedge_count, hedge_settled = 0, 0
  if lost then return false end
  if event_done == 0 then self.event_owner = first_owner end
  event_done = event_settled
  return true
end

-- A flush in the middle of an operation. When it fails the operation ends: it may have seen what was lost.
function Tx:give_way()
  local own, closing = nil, {}
  if join_count > 0 or count > settled then
    for i = 1, open_count do closing[open[i]] = closers[i] end
    own = take_back()
  end
  if settle_host then settle_host("ok") end
  local fine = self:flush()
  if begin_host then begin_host(self.at, self.route) end
  if not fine then error("what the operations before it planned could not be written", 0) end
  for _, command in ipairs(own or {}) do
    add(command[2], command, last[command[2]])
    if closing[command] then
      open_count = open_count + 1
      open[open_count], closers[open_count] = command, closing[command]
    end
  end
end

-- The running operation, or an item of it, is done: what it planned is written with the next flush.
function Tx:finish()
  if self.messages then gather(self) end
  debt_settled, hedge_settled = debt_count, hedge_count
  if count == settled and join_count == 0 and event_count == event_settled then return end
  for i = 1, open_count do
    local command = open[i]
    command[3], open[i] = closers[i](command[3]), nil
  end
  self.calls = self.calls + count - settled + join_count
  local at = self.at
  if owners == 0 then first_owner = at end
  if owners == 0 or last_owner ~= at then owners = owners + 1 end
  last_owner, settled, join_count, open_count, event_settled = at, count, 0, 0, event_count
  number = number + 1
end

-- Other partitions of the store -----------------------------------------------------------------

local unwritten = "what was planned before could not be written"

-- Where something is, by the seed at the end of its id.
local function seated(family, id, partitions)
  return "ff:{" .. family .. ":" .. format("%.0f", tonumber(sub(id, 33), 16) % partitions) .. "}"
end

function Tx:route_of_execution(id) return seated("p", id, self.executions) end
function Tx:route_of_quota(id) return seated("q", id, self.quotas) end
function Tx:route_of_budget(id) return seated("b", id, self.budgets) end

-- Runs `work(tx, ...)` in another partition, as an operation of its own: what it plans is written before this returns.
-- The running operation has planned nothing but finished items. Answers what the work answers, or nil when it raised.
function Tx:visit(route, work, ...)
  local home, messages = self.route, self.messages
  if settle_host then settle_host("ok") end
  local fine, answer = turn(self, route), nil
  self.memo, self.messages = {}, nil
  if begin_host then begin_host(self.at, route) end
  if not fine then error(unwritten, 0) end
  self.visiting = true
  fine, answer = pcall(work, self, ...)
  if fine then self:finish() else self:reset() end
  self.visiting = nil
  if settle_host then settle_host(fine and "ok" or "raised") end
  local written = turn(self, home)
  self.memo, self.messages = {}, messages
  if begin_host then begin_host(self.at, home) end
  if not written then error(unwritten, 0) end
  if fine then return answer end
end

-- The running operation owes something to another partition of the same store: a set the release of a holder that
-- perhaps never ran (`release`), or an execution the call of a quota (`call`).
function Tx:owe(what, set, execution_id, holder_id, unused)
  debt_count = debt_count + 1
  -- Few owe what was never used, or turn out to owe nothing (`void`).
  local debt = {
    what = what, set = set, execution_id = execution_id, holder_id = holder_id, at = self.at, home = self.route,
    now = self.now, key_digest = nil,
  }
  if unused then debt.unused = true end
  debts[debt_count] = debt
end

-- The sets that `one` has `entered` let it in, and it starts now: they get it back if that cannot be written.
function Tx:hedge(one)
  hedges[hedge_count + 1], hedges[hedge_count + 2], hedges[hedge_count + 3] = one, self.at, self.now
  hedge_count = hedge_count + 3
end

-- How much finished operations owe.
function Tx:owing() return debt_settled end

-- Writes what every operation so far has planned: none is running.
function Tx:flush_all()
  self.at = nil
  self:flush()
end

-- The debts of finished operations whose writes are done. From here on they are the caller's to pay.
function Tx:settle_debts()
  local list, n = {}, 0
  self:flush_all()
  for i = 1, debt_settled do
    local debt = debts[i]
    if not debt.void then
      n = n + 1
      list[n] = debt
    end
    debts[i] = false
  end
  debt_count, debt_settled = 0, 0
  return list
end

-- Runs `work(tx, ...)` in a partition on behalf of an operation that was answered. False when it raised, or could not
-- be written.
function Tx:pay(route, debt, work, ...)
  self.visiting, self.paying = true, true
  self:operation(debt.at, route, debt.now)
  local fine = pcall(work, self, ...)
  if fine then self:finish() else self:reset() end
  if settle_host then settle_host(fine and "ok" or "raised") end
  fine = self:flush() and fine
  self.visiting, self.paying, self.at = nil, nil, nil
  return fine
end

-- Ends the list: the rest is written, and each partition gets its events and says what there is to say. Only a damaged
-- stream refuses events; every operation of the list says so then, since no raise may leave it.
function Tx:close()
  self.at = nil
  self:flush()
  local fine, problem = pcall(append, self)
  if not fine then
    if settle_host then settle_host("raised") end
    problem = pack(nil, "raised", raised(problem))
    for at = 1, #self.answers do self.answers[at] = problem end
  end
  if self.said then say(self) end
end

local function is_moving(problem)
  return find(problem, "TRYAGAIN") or find(problem, "ASK ") or find(problem, "MOVED ") or find(problem, "CLUSTERDOWN")
end

-- Plans one item of a batch: `item(...)`. Answers what it answered; `try_again` when the partition is moving; nil and
-- the message when it raised. Of one that is refused or raises nothing stays planned.
function Tx:item(item, ...)
  local fine, answer = pcall(item, ...)
  if not fine then
    self:reset()
    local problem = raised(answer)
    if is_moving(problem) then return { err = "try_again", detail = { problem = problem } } end
    return nil, problem
  end
  if answer.err then
    self:reset()
    return answer
  end
  self:finish()
  self.memo = {}
  return answer
end

return Tx
end

source["lib.keys"] = function(require, LIBRARY)
-- Every key of the store; all but the configuration record carry the partition's tag.
local keys = {}

local sub, match, sha1hex = string.sub, string.match, redis.sha1hex

-- Names that are made over and over are kept, up to a number.
local routes = {}
local kept_max = 4096

-- The names of a partition that hold nothing but its tag, and those of its lanes. The configuration record has no tag:
-- whoever asks for a key of a partition there has the wrong route.
function keys.of(route)
  local names = routes[route]
  if names then return names end
  local tag = match(route, "{.-}")
  names = { tag = tag, kinds = {}, lanes = {}, kept = 0 }
  if tag then
    local idx, events = "ff:idx:" .. tag .. ":", "ff:events:" .. tag
    names.exec, names.idx, names.lane, names.workers = "ff:exec:" .. tag .. ":", idx, idx .. "lane:", idx .. "workers:"
    names.timers, names.all, names.outbox = idx .. "timers", idx .. "all", "ff:outbox:" .. tag
    names.events, names.event_count = events, events .. ":count"
  end
  routes[route] = names
  return names
end

function keys.digest(s)
  return sub(sha1hex(s), 1, 20)
end

-- The names of one lane, by what they are for.
local function of_lane(names, path)
  local lane = names.lanes[path]
  if lane then return lane end
  if names.kept >= kept_max then names.lanes, names.kinds, names.kept = {}, {}, 0 end
  names.kept = names.kept + 1
  local copy = "ff:lane:" .. names.tag .. ":" .. path
  lane = { copy = copy, memory = copy .. ":memory", place = names.lane .. path .. ":", places = {}, queues = {} }
  names.lanes[path] = lane
  return lane
end

function keys.core(tx, id) return tx.names.exec .. id end
function keys.spec(tx, id) return tx.names.exec .. id .. ":spec" end
function keys.input(tx, id) return tx.names.exec .. id .. ":input" end
function keys.more(tx, id) return tx.names.exec .. id .. ":more" end
function keys.waits(tx, id) return tx.names.exec .. id .. ":waits" end
function keys.result(tx, id) return tx.names.exec .. id .. ":result" end
function keys.attempts(tx, id) return tx.names.exec .. id .. ":attempts" end

function keys.continuation(tx, id) return tx.names.exec .. id .. ":continuation" end
function keys.signals(tx, id) return tx.names.exec .. id .. ":signals" end
-- What makes a signal known: its id, and its idempotency key at its waitpoint.
function keys.signal_keys(tx, id) return tx.names.exec .. id .. ":signal_keys" end

function keys.waitpoint(tx, id) return "ff:wp:" .. tx.tag .. ":" .. id end
function keys.inbox(tx) return "ff:idx:" .. tx.tag .. ":waitpoints" end

function keys.flow(tx, id) return "ff:flow:" .. tx.tag .. ":" .. id .. ":core" end
-- Members by their number, and their ids by key.
function keys.flow_members(tx, id) return "ff:flow:" .. tx.tag .. ":" .. id .. ":members" end
function keys.flow_names(tx, id) return "ff:flow:" .. tx.tag .. ":" .. id .. ":names" end
function keys.flows(tx) return "ff:idx:" .. tx.tag .. ":flows" end
-- Flows that still owe their members a cancel.
function keys.cancel_backlog(tx) return "ff:idx:" .. tx.tag .. ":cancel_backlog" end
-- Edges out of a member by number; those into it, as upstreams with the edge's number there; what is passed along them;
-- children.
function keys.edges_out(tx, id) return tx.names.exec .. id .. ":out" end
function keys.edges_in(tx, id) return tx.names.exec .. id .. ":in" end
function keys.passed(tx, id) return tx.names.exec .. id .. ":passed" end
function keys.children(tx, id) return tx.names.exec .. id .. ":children" end

-- What its handler has done, by name and by number, and results that are too large to stand there.
function keys.steps(tx, id) return tx.names.exec .. id .. ":steps" end
function keys.step_results(tx, id) return tx.names.exec .. id .. ":step_results" end

-- What it used: reports that wait, and the ledger.
function keys.usage(tx, id) return tx.names.exec .. id .. ":usage" end

function keys.stream(tx, id, attempt) return string.format("ff:stream:%s:%s:%.0f", tx.tag, id, attempt) end
function keys.stream_live(tx, id, attempt) return keys.stream(tx, id, attempt) .. ":live" end
function keys.stream_summary(tx, id, attempt) return keys.stream(tx, id, attempt) .. ":summary" end

function keys.idempotency(tx, digest) return "ff:idem:" .. tx.tag .. ":" .. digest end

function keys.lane(tx, path) return of_lane(tx.names, path).copy end
-- What a partition remembers of a lane.
function keys.lane_memory(tx, path) return of_lane(tx.names, path).memory end
function keys.lanes(tx) return "ff:idx:" .. tx.tag .. ":lanes" end
-- The queues of a lane, and the heads of those beside its main one.
function keys.queues(tx, lane) return "ff:idx:" .. tx.tag .. ":lane:" .. lane .. ":queues" end
function keys.heads(tx, path) return keys.place(tx, path, "heads") end
-- A queue by its name, which is its class and its kind.
function keys.queue_named(tx, path, name) return of_lane(tx.names, path).place .. "queue:" .. name end
function keys.queue(tx, path, class, kind)
  local lane = of_lane(tx.names, path)
  local known = lane.queues[class]
  local key = known and known[kind]
  if key == nil then
    key = lane.place .. "queue:" .. class .. ":" .. kind
    if tx.names.kept >= kept_max then return key end
    tx.names.kept = tx.names.kept + 1
    if known == nil then
      known = {}
      lane.queues[class] = known
    end
    known[kind] = key
  end
  return key
end
function keys.fair(tx, lane) return "ff:idx:" .. tx.tag .. ":lane:" .. lane .. ":fair" end
-- `place`: delayed, suspended, terminal, blocked:route, …
function keys.place(tx, path, place)
  local lane = of_lane(tx.names, path)
  local key = lane.places[place]
  if key == nil then
    key = lane.place .. place
    lane.places[place] = key
  end
  return key
end

-- Who waits for a budget, by queue score; who waits for a quota that is not there.
function keys.awaits(tx, id) return "ff:idx:" .. tx.tag .. ":awaits:" .. id end
function keys.missing(tx) return "ff:idx:" .. tx.tag .. ":missing" end

function keys.timers(tx) return tx.names.timers end
function keys.stuck(tx) return "ff:idx:" .. tx.tag .. ":timers:stuck" end
function keys.told(tx) return "ff:idx:" .. tx.tag .. ":told" end
function keys.leases(tx, instance) return tx.names.workers .. instance end

function keys.all(tx) return tx.names.all end
function keys.kind(tx, kind)
  local names = tx.names
  local key = names.kinds[kind]
  if key == nil then
    if names.kept >= kept_max then names.lanes, names.kinds, names.kept = {}, {}, 0 end
    key = names.idx .. "kind:" .. keys.digest(kind)
    names.kept = names.kept + 1
    names.kinds[kind] = key
  end
  return key
end
function keys.tag(tx, name, value)
  return "ff:idx:" .. tx.tag .. ":tag:" .. keys.digest(#name .. ":" .. name .. value)
end

function keys.events(tx) return tx.names.events end
-- How many events the partition ever had.
function keys.event_count(tx) return tx.names.event_count end
function keys.outbox(tx) return tx.names.outbox end
-- What was counted of the events.
function keys.tally(tx) return "ff:tally:" .. tx.tag end
-- What is owed to receivers outside: a webhook, each receiver's line of them by the time of the next try, and the
-- receivers by the heads of their lines.
function keys.webhook(tx, id) return "ff:hook:" .. tx.tag .. ":" .. id end
function keys.receiver(tx, digest) return "ff:outbox:" .. tx.tag .. ":receiver:" .. digest end
function keys.receivers(tx) return "ff:outbox:" .. tx.tag .. ":receivers" end

-- A schedule, what it submits, its last firings by number, and what it submitted and has not ended, by number.
-- `path` is "namespace/name".
function keys.schedules(tx) return "ff:idx:" .. tx.tag .. ":schedules" end
function keys.schedule(tx, path) return "ff:schedule:" .. tx.tag .. ":" .. path .. ":core" end
function keys.schedule_action(tx, path) return "ff:schedule:" .. tx.tag .. ":" .. path .. ":action" end
function keys.firings(tx, path) return "ff:schedule:" .. tx.tag .. ":" .. path .. ":firings" end
function keys.schedule_live(tx, path) return "ff:schedule:" .. tx.tag .. ":" .. path .. ":live" end

function keys.quotas(tx) return "ff:idx:" .. tx.tag .. ":quotas" end
function keys.quota(tx, id) return "ff:quota:" .. tx.tag .. ":" .. id .. ":core" end
-- The keys of a quota that are in use, by the order of their first use.
function keys.quota_keys(tx, id) return "ff:quota:" .. tx.tag .. ":" .. id .. ":keys" end
-- `part`: key, rate, weighted, weights, waiters, asked, oversized, called; `digest` is that of the quota's key.
function keys.quota_part(tx, id, part, digest)
  return "ff:quota:" .. tx.tag .. ":" .. id .. ":" .. part .. ":" .. digest
end

-- `set` names where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest>`, …
function keys.capacity(tx, set) return "ff:quota:" .. tx.tag .. ":" .. set .. ":capacity" end
function keys.holders(tx, set) return "ff:quota:" .. tx.tag .. ":" .. set .. ":holders" end

-- A budget, what is held against it, the reports it knows by their keys and by time, and the budgets right below it.
function keys.budget(tx, id) return "ff:budget:" .. tx.tag .. ":" .. id .. ":core" end
function keys.budget_holds(tx, id) return "ff:budget:" .. tx.tag .. ":" .. id .. ":holds" end
function keys.budget_reports(tx, id) return "ff:budget:" .. tx.tag .. ":" .. id .. ":reports" end
function keys.budget_report_times(tx, id) return "ff:budget:" .. tx.tag .. ":" .. id .. ":report_times" end
function keys.budget_children(tx, id) return "ff:budget:" .. tx.tag .. ":" .. id .. ":children" end
function keys.budgets(tx) return "ff:idx:" .. tx.tag .. ":budgets" end
-- Budgets that had room again, until whoever waits for them was told.
function keys.cleared(tx) return "ff:idx:" .. tx.tag .. ":cleared" end

-- Budgets or quotas that were deleted, by time.
function keys.gone(tx) return "ff:idx:" .. tx.tag .. ":gone" end

-- Of the fleet: the budgets of namespaces, lanes and flows.
function keys.scopes(tx) return "ff:idx:" .. tx.tag .. ":scopes" end

function keys.worker(tx, instance) return "ff:worker:" .. tx.tag .. ":" .. instance end
function keys.workers(tx) return "ff:idx:" .. tx.tag .. ":workers" end
function keys.draining(tx) return "ff:idx:" .. tx.tag .. ":draining" end
function keys.keyring(tx) return "ff:keyring:" .. tx.tag end
-- Of the fleet: who may do what by the token they bear, and the digests of those tokens.
function keys.access(tx) return "ff:access:" .. tx.tag end
function keys.access_digests(tx) return "ff:access:" .. tx.tag .. ":digests" end
function keys.servers(tx) return "ff:idx:" .. tx.tag .. ":servers" end

return keys
end

source["lib.id"] = function(require, LIBRARY)
-- Ids made from ids that callers gave.
local id = {}

-- The last four digits counted on.
function id.counted(given, count)
  local last = (tonumber(string.sub(given, 33), 16) + count) % 65536
  return string.sub(given, 1, 32) .. string.format("%04x", last)
end

-- An id that only these make, of the same partition.
function id.derived(given, ...)
  local h = redis.sha1hex(table.concat({ given, ... }, ":"))
  local function part(from, to) return string.sub(h, from, to) end
  return part(1, 8) .. "-" .. part(9, 12) .. "-8" .. part(13, 15) .. "-a" .. part(16, 18) .. "-" .. part(19, 26)
    .. string.sub(given, 33)
end

-- An id that only these make, of any partition.
function id.made(...)
  local h = redis.sha1hex(table.concat({ ... }, ":"))
  local function part(from, to) return string.sub(h, from, to) end
  return part(1, 8) .. "-" .. part(9, 12) .. "-8" .. part(13, 15) .. "-a" .. part(16, 18) .. "-" .. part(19, 30)
end

return id
end

source["lib.bytes"] = function(require, LIBRARY)
-- Pieces of msgpack, for what is packed so often that it is put together by hand. To join texts takes a fraction of
-- what it takes to build a list and to pack it. Each piece is what `cmsgpack.pack` makes of the value.
local bytes = {}

local pack, char, floor = cmsgpack.pack, string.char, math.floor

-- What stands in front of a text of so many bytes.
bytes.head = setmetatable({}, { __index = function(_, n)
  if n > 65535 then error("a text of " .. n .. " bytes is too long for a piece") end
  return "\218" .. char(floor(n / 256), n % 256)
end })
for n = 0, 31 do bytes.head[n] = char(160 + n) end
for n = 32, 255 do bytes.head[n] = "\217" .. char(n) end

-- Small numbers, and those that were packed lately: the numbers of one list are much the same.
local small = {}
for n = 0, 127 do small[n] = char(n) end
local lately, count = {}, 0
local lately_max = 256

function bytes.number(n)
  local piece = small[n] or lately[n]
  if piece == nil then
    if count == lately_max then lately, count = {}, 0 end
    piece, count = pack(n), count + 1
    lately[n] = piece
  end
  return piece
end

-- What stands in front of a list of so many values.
function bytes.list(n)
  return n < 16 and char(144 + n) or "\220" .. char(floor(n / 256), n % 256)
end

-- What is absent.
bytes.none = "\194"

-- A text, or nothing.
function bytes.text(s)
  return s and bytes.head[#s] .. s or bytes.none
end

return bytes
end

source["lib.backoff"] = function(require, LIBRARY)
-- How long a failed attempt waits before the next one, in whole milliseconds.
local backoff = {}

-- `failures` counts the failed attempts so far (1 after the first); `draw` is 0..=1000 from the caller.
function backoff.delay_ms(retry, failures, draw)
  local delay
  if retry.backoff.type == "fixed" then
    delay = retry.backoff.delay_ms
  else
    delay = retry.backoff.initial_ms
    for _ = 2, failures do
      delay = delay * retry.backoff.factor
      if delay >= retry.backoff.max_ms then break end
    end
    if delay > retry.backoff.max_ms then delay = retry.backoff.max_ms end
  end
  if retry.jitter == "full" then delay = math.floor(delay * draw / 1000) end
  return delay
end

return backoff
end

source["lib.event"] = function(require, LIBRARY)
-- One event per transition, appended to the partition's stream with the list that made it.
--
-- An event is a packed array: type, time, path of the lane, kind, execution, flow, attempt, worker, tags (a packed flat
-- list), and then its data, name and value in turn. An entry of the stream holds events one after the other.
local keys = require "lib.keys"

local pack, unpack_ = cmsgpack.pack, cmsgpack.unpack

local event = {}

-- What follows the kind of an event are its data: name, value, … in the order in which they are shown. The change that
-- ended a lease says how long it lasted.
function event.of_execution(tx, rec, kind, ...)
  local ran = rec.ran
  if ran then
    rec.ran = nil
    return tx:note(pack({
      kind, tx.now, rec.path, rec.kind, rec.id, rec.flow_id or false, rec.attempt or false,
      rec.worker or false, rec.tags or false, "ran_ms", ran, ...
    }))
  end
  tx:note(pack({
    kind, tx.now, rec.path, rec.kind, rec.id, rec.flow_id or false, rec.attempt or false,
    rec.worker or false, rec.tags or false, ...
  }))
end

function event.of_flow(tx, f, kind, ...)
  tx:note(pack({ kind, tx.now, f.namespace .. "/", f.kind, false, f.id, false, false, false, ... }))
end

-- Of the fleet: a worker, a budget, a lane or what an operator did.
function event.of_fleet(tx, kind, namespace, lane, worker, ...)
  tx:note(pack({
    kind, tx.now, (namespace or "") .. "/" .. (lane or ""), false, false, false, false, worker or false, false, ...
  }))
end

-- What became of a webhook belongs to what it tells of; `tags` are a packed flat list.
function event.of_webhook(tx, w, kind, tags, ...)
  tx:note(pack({
    kind, tx.now, w.namespace .. "/" .. (w.lane or ""), w.kind, w.execution_id or false, w.flow_id or false,
    w.attempt_index or false, false, tags or false, ...
  }))
end

-- Where the data of an event begin.
event.data_from = 10

-- The events of an entry, each as it was packed.
function event.all(entry)
  return { unpack_(entry) }
end

-- How many events are kept, by their numbers: an entry holds many.
function event.kept(tx)
  local first = tx:xrange(keys.events(tx), "-", "+", 1)[1]
  if first == nil then return 0 end
  return tonumber(tx:get(keys.event_count(tx))) - tonumber(first[2][1]) + 1
end

return event
end

source["lib.outbox"] = function(require, LIBRARY)
-- Effects owed to other partitions; each is applied at least once and is safe to repeat.
local keys = require "lib.keys"

local outbox = {}

-- `data` is a flat list of texts: name, value, …
function outbox.owe(tx, kind, data)
  tx:xadd(keys.outbox(tx), "e", cmsgpack.pack({ kind, tx.now, data }))
  tx:announce("fleet")
end

function outbox.parse(entry)
  local e = cmsgpack.unpack(entry[2][2])
  local data = {}
  for i = 1, #e[3], 2 do data[e[3][i]] = e[3][i + 1] end
  return { id = entry[1], type = e[1], at = e[2], data = data }
end

return outbox
end

source["record.fields"] = function(require, LIBRARY)
-- The fields of stored records. A record is one packed array with its values in the order of this list. An absent
-- value is stored as false. A list in place of a field is a group: it shares one position and is absent as a whole.
-- The lists are append only, because a position never changes its meaning.
--
-- A field is its name and its type. A record must have a field marked `!`. A record may end before a field marked `|`:
-- without that field, all later single fields are absent too.
return {
  access = {
    "access_id uuid!", "digest text!", "name text!", "roles [text]!", "namespaces [text]", "lanes [text]",
    "capabilities [text]", "created_at time_ms!", "created_by text!", "expires_at time_ms",
  },

  execution = {
    -- `path` is "namespace/lane". `digest` is the digest of the submission. `input` is 1 when there is one. `tags` is a
    -- packed flat list.
    "path text!", "kind kind!", "created time_ms!", "queue queue!", "retention duration_ms!",
    "phase phase!", "prio priority!", "score int!", "updated time_ms!", "wake time_ms", "digest text!", "input count",
    "tags bytes",
    -- The quotas and budgets that must admit it (record/asks.lua), and those that have (record/holds.lua).
    "asks bytes", "holds bytes",
    -- The last attempt with its lease, and what ended it.
    "attempt attempt_index|", "attempt_id attempt_id", "attempt_type attempt_type", "attempt_state attempt_state",
    "started time_ms", "lease_id lease_id", "epoch epoch", "worker instance", "worker_id worker_id",
    "lease_until time_ms", "lease_ttl lease_ttl_ms", "ended_by text",
    -- The end, and the result unless it is stored separately.
    "ended time_ms|", "outcome outcome", "result bytes",
    -- Of a member: its flow, its key and number there, and the flow that runs in its place. Of a child: its parent, its
    -- key and number there, and what the parent's end does to it.
    { "flow_id flow_id", "key text", "number count", "nested flow_id", "parent_id execution_id", "parent_close text" },
    -- Why it does not run, since when and until when, and how it goes on.
    {
      "reason blocking_reason", "detail bytes", "since time_ms", "delay time_ms", "start_by time_ms",
      "start_within duration_ms", "deadline time_ms", "next text", "resume count", "ready time_ms", "fair int",
      "fair_end int", "fairness_key text",
    },
    -- Its grant, how many grants it had, what a budget refused it (`wanted`), and which workers it wants.
    {
      "grant grant_id", "grant_worker instance", "grant_until time_ms", "grants count", "wanted bytes",
      "requires [text]", "prefers [text]",
    },
    -- The limits it was given, and what went wrong so far. `attempt_ended` and `attempt_failure` say when and why the
    -- last attempt ended, unless it ended with the execution.
    {
      "timeout duration_ms", "timeout_at time_ms", "time_left duration_ms", "max_reclaims count", "max_replays count",
      "failure bytes", "failures count", "reclaims count", "replays count", "tier count", "progress bytes",
      "cancel_by time_ms", "cancel_reason text", "yield count", "renewals count", "ended_value int", "lane_retry retry",
      "attempt_ended time_ms", "attempt_failure bytes",
    },
    -- How it waits for signals, and what came of it. The wait itself is in the record `waits`.
    { "waits count", "wait_until time_ms", "open_due time_ms", "continued text", "signals bytes" },
    -- The frames of the running attempt, and the attempts that have frames. Whether someone follows them, how many are
    -- kept, and how many the last attempt wrote.
    { "frames bytes", "streams bytes", "tailed count", "max_frames count", "attempt_frames count" },
    -- Of a member: `deps` to `passes` are what it waits for. `outs` counts its edges out, `reached` those that its end
    -- has reached, and `halted` is set when its flow was stopped before that. `fault` and `verdict` are what its
    -- outcome means for the flow. A `hidden` member is invisible until its flow is sealed. A `bound` one is kept until
    -- its flow or parent has ended, which happened at `freed`. Then its children, whether it waits for them, and what
    -- it owes to other records.
    {
      "deps bytes", "inbound inbound", "passes count", "outs count", "reached count", "halted count", "fault bytes",
      "verdict text", "hidden count", "bound count", "freed time_ms", "kids bytes", "awaiting count", "owed bytes",
    },
    -- What is stored separately: `more` (older attempts and operator actions), `spilled` (how many attempts are in the
    -- hash), `result_far` (the result), `said` (the spec). `waited` is set when someone waits for its end. Then
    -- encodings other than json, the number of usage reports, the address of its webhook, and the webhook of its last
    -- end.
    {
      "more count", "spilled count", "waited count", "result_far count", "result_in text", "input_in text",
      "reports count", "webhook text", "hook bytes", "said count",
    },
    -- How many steps its handler has recorded, and the bytes of their results; the execution it was forked from.
    { "steps count", "step_bytes count", "forked_from execution_id" },
    -- The schedule that submitted it, in its namespace, and which firing it is (record/fired.lua).
    { "schedule text", "firing count", "nominal time_ms", "fired_at time_ms" },
    -- Not stored: its id, and its state when it was read.
    beside = { "id", "was_phase", "was_place", "was_score" },
  },

  -- What a submitter gave that is seldom read. It is stored as it came.
  spec = { "retry retry", "fallbacks [fallback]", "trace_parent text" },

  -- What an execution waits for: the suspension, its open waitpoints, and those answered before they expired. Past
  -- suspensions, the signals that satisfied a condition before the wait began, why it goes on, and closed waitpoints.
  waits = {
    "wait bytes", "open bytes", "answered bytes", "past_waits bytes", "satisfied bytes", "woken bytes",
    "closed_waits bytes",
  },

  -- Finished attempts except the last, operator actions, and the executions forked from it.
  more = { "history bytes", "actions bytes", "forks bytes" },

  -- A step of a handler. `due` is when a sleep ends, or when a failed step is tried again. A result is stored here
  -- (`result`) or beside (`far`). `found` is what a wait came to, or the children that were spawned.
  step = {
    "name step_name!", "kind step_kind!", "state step_state!", "attempt attempt_index!", "started time_ms!",
    "ended time_ms", "tries count", "due time_ms", "bytes count", "result bytes", "far count", "result_in text",
    "digest step_digest", "failure bytes", "found bytes",
    beside = { "number" },
  },

  flow = {
    "namespace namespace!", "kind kind!", "policy on_member_failure!", "created time_ms!", "updated time_ms!",
    "deadline time_ms", "retention duration_ms!", "defaults bytes", "digest text!", "parent execution_id",
    -- The flow was made for an existing member, and is removed with it.
    "adopted count",
    "sealed time_ms", "touched time_ms", "version count!", "backward count", "outcome text", "ended time_ms",
    -- The number of the last member made, and how many members are still stored. Then failures that no edge took up,
    -- sinks that succeeded, and records that owe something.
    "last count!", "stored count!", "uncaught count", "sinks count", "owed count",
    -- Why none of its members may start any more: { policy, reason, actor, at }.
    "stop bytes",
    -- A walk over its members that is not done: what it does, since when, and the number of the last member it met.
    "walk text", "walk_at time_ms", "walked count", "wake time_ms", "waited count",
    -- The address of its webhook, and the webhook of its last end.
    "webhook text", "hook bytes",
    -- Members by state.
    "n_held count", "n_waiting count", "n_delayed count", "n_rate_limited count", "n_waiting_children count",
    "n_active count", "n_suspended count", "n_resumable count", "n_completed count", "n_failed count",
    "n_cancelled count", "n_expired count", "n_skipped count",
    -- The schedule that submitted it, and which firing it is.
    { "schedule text", "firing count", "nominal time_ms", "fired_at time_ms" },
    beside = { "id" },
  },

  -- A token is { digest, approver or false, uses left or false, answered }. Early signals are kept until a suspension
  -- counts them.
  waitpoint = {
    "exec execution_id!", "key waitpoint_key!", "state waitpoint_state!", "attempt attempt_index!", "created time_ms!",
    "expires time_ms", "uses uses", "closed time_ms", "why text", "signals count", "suspension suspension_id",
    "review count", "tokens bytes!", "allowed bytes", "early bytes", "step step_name",
    beside = { "id" },
  },

  webhook = {
    "of text!", "owner uuid!", "url url!", "said bytes!", "owed time_ms!", "due time_ms", "tries count!",
    "status http_status", "error webhook_error",
    beside = { "id", "receiver" },
  },

  -- `last` is the number of the last key that came into use. During a walk over the keys, `walked` is the number of the
  -- last key that was visited.
  quota = {
    "definition bytes!", "version count!", "created time_ms!", "changed time_ms!", "last count!", "walked count",
    "deleted count",
    beside = { "id", "packed" },
  },

  -- One key of a quota that is in use; index/quota_key explains its life.
  --   key        the key itself
  --   tat        when a smooth rate allows the next start ("theoretical arrival time")
  --   throttled  nothing starts before this time
  --   sum        the weight in the window
  --   wake       when the key's timer is due
  --   called_at  when an execution was called last
  quota_key = {
    "key quota_key!", "tat time_ms", "throttled time_ms", "sum int", "wake time_ms", "called_at time_ms",
  },

  -- Amounts are lists in the order of the dimensions. record/budget.lua explains rooms.
  budget = {
    "definition bytes!", "version count!", "created time_ms!", "period count!", "since time_ms!", "rooms count!",
    "wide count!", "told count!", "next_reset time_ms", "approved count", "refused count", "soft_told count",
    "passed count", "used [int]!", "held [int]!", "base [int]!", "actions bytes", "past bytes",
  },

  -- A schedule; record/schedule.lua explains `cursor`, `planned` and `reckoned`. `calendar` is set when it has times
  -- that the engine reckons, `asked` while the engine has been asked for them, `over` when no time is left.
  schedule = {
    "sid uuid!", "version count!", "created time_ms!", "changed time_ms!", "definition bytes!", "overlap overlap!",
    "catch_up duration_ms!", "cursor time_ms!", "number count!", "fired count!", "skipped count!", "missed count!",
    "every bytes", "calendar count", "jitter duration_ms", "starts time_ms", "ends time_ms", "remaining count",
    "planned bytes", "planned_size count", "reckoned time_ms", "asked count", "paused bytes", "over count",
    "wake time_ms", "flight bytes", "waiting bytes", "last bytes", "backfill bytes",
    beside = { "path", "live", "live_ids" },
  },

  lane = {
    "state lane_state!", "version count!", "priority_weight priority_weight!", "fairness fairness!", "weight weight!",
    "max_depth count", "max_active max_active", "attempt_timeout_ms duration_ms", "retention_ms duration_ms",
    "lease_ttl_ms lease_ttl_ms", "fairness_weights fairness_weights", "retry retry",
    beside = { "path", "tag", "remembered", "queues" },
  },
}
end

source["record.packed"] = function(require, LIBRARY)
-- Written by `cargo xtask codegen` from lua/record/fields.lua; do not edit.
local packed = {}

local pack, unpack_limit, byte = cmsgpack.pack, cmsgpack.unpack_limit, string.byte
local pcall, select, error = pcall, select, error

-- The values of an array: as many as it says, and nothing behind them.
local function whole(key, count, fine, _, ...)
  if not fine or count ~= select("#", ...) then error("CORRUPT " .. key .. " array", 0) end
  return key, ...
end

-- The values of a stored array, without a table for it: they begin behind its head. The key comes first.
local function values(key, stored)
  local head, high, low = byte(stored, 1, 3)
  if head == 220 and low then return whole(key, high * 256 + low, pcall(unpack_limit, stored, 1000, 3)) end
  if head and head > 144 and head < 160 then return whole(key, head - 144, pcall(unpack_limit, stored, 1000, 1)) end
  error("CORRUPT " .. key .. " array", 0)
end

packed.values = values

local function missing(key, names, ...)
  for i = 1, #names do
    if (select(i, ...)) == nil then error("CORRUPT " .. key .. " " .. names[i], 0) end
  end
end

-- Packs a record with the values that a newer library put behind the known ones.
local function with_tail(array, known, tail)
  for i = #array + 1, known do array[i] = false end
  for i = 1, #tail do array[known + i] = tail[i] end
  return pack(array)
end

local function open_access(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, ...)
  if not a1 or not a2 or not a3 or not a4 or not a8 or not a9 then missing(key, { "access_id", "digest", "name",
      "roles", "created_at", "created_by" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a8 or nil, a9 or nil) end
  local rec = {
    access_id = a1,
    digest = a2,
    name = a3,
    roles = a4,
    namespaces = a5 or nil,
    lanes = a6 or nil,
    capabilities = a7 or nil,
    created_at = a8,
    created_by = a9,
    expires_at = a10 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_access(key, stored)
  return open_access(values(key, stored))
end

function packed.close_access(rec)
  if rec.tail then return with_tail({ rec.access_id, rec.digest, rec.name, rec.roles, rec.namespaces or false,
      rec.lanes or false, rec.capabilities or false, rec.created_at, rec.created_by, rec.expires_at or false }, 10,
      rec.tail) end
  return pack({ rec.access_id, rec.digest, rec.name, rec.roles, rec.namespaces or false, rec.lanes or false,
      rec.capabilities or false, rec.created_at, rec.created_by, rec.expires_at or false })
end

local function open_budget(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a6 or not a7 or not a8 or not a14 or not a15
      or not a16 then missing(key, { "definition", "version", "created", "period", "since", "rooms", "wide", "told",
      "used", "held", "base" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil, a6 or nil, a7 or nil, a8 or nil,
      a14 or nil, a15 or nil, a16 or nil) end
  local rec = {
    definition = a1,
    version = a2,
    created = a3,
    period = a4,
    since = a5,
    rooms = a6,
    wide = a7,
    told = a8,
    next_reset = a9 or nil,
    approved = a10 or nil,
    refused = a11 or nil,
    soft_told = a12 or nil,
    passed = a13 or nil,
    used = a14,
    held = a15,
    base = a16,
    actions = a17 or nil,
    past = a18 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_budget(key, stored)
  return open_budget(values(key, stored))
end

function packed.close_budget(rec)
  if rec.tail then return with_tail({ rec.definition, rec.version, rec.created, rec.period, rec.since, rec.rooms,
      rec.wide, rec.told, rec.next_reset or false, rec.approved or false, rec.refused or false, rec.soft_told or false,
      rec.passed or false, rec.used, rec.held, rec.base, rec.actions or false, rec.past or false }, 18, rec.tail) end
  return pack({ rec.definition, rec.version, rec.created, rec.period, rec.since, rec.rooms, rec.wide, rec.told,
      rec.next_reset or false, rec.approved or false, rec.refused or false, rec.soft_told or false,
      rec.passed or false, rec.used, rec.held, rec.base, rec.actions or false, rec.past or false })
end

local function open_execution(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,
    a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a6 or not a7 or not a8 or not a9
      or not a11 then missing(key, { "path", "kind", "created", "queue", "retention", "phase", "prio", "score",
      "updated", "digest" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil, a6 or nil, a7 or nil, a8 or nil,
      a9 or nil, a11 or nil) end
  local rec = {
    path = a1,
    kind = a2,
    created = a3,
    queue = a4,
    retention = a5,
    phase = a6,
    prio = a7,
    score = a8,
    updated = a9,
    wake = a10 or nil,
    digest = a11,
    input = a12 or nil,
    tags = a13 or nil,
    asks = a14 or nil,
    holds = a15 or nil,
    attempt = a16 or nil,
    attempt_id = a17 or nil,
    attempt_type = a18 or nil,
    attempt_state = a19 or nil,
    started = a20 or nil,
    lease_id = a21 or nil,
    epoch = a22 or nil,
    worker = a23 or nil,
    worker_id = a24 or nil,
    lease_until = a25 or nil,
    lease_ttl = a26 or nil,
    ended_by = a27 or nil,
    ended = a28 or nil,
    outcome = a29 or nil,
    result = a30 or nil,
    id = nil,
    was_phase = nil,
    was_place = nil,
    was_score = nil,
  }
  if a31 then
    local v
    v = a31[1] if v then rec.flow_id = v end
    v = a31[2] if v then rec.key = v end
    v = a31[3] if v then rec.number = v end
    v = a31[4] if v then rec.nested = v end
    v = a31[5] if v then rec.parent_id = v end
    v = a31[6] if v then rec.parent_close = v end
  end
  if a32 then
    local v
    v = a32[1] if v then rec.reason = v end
    v = a32[2] if v then rec.detail = v end
    v = a32[3] if v then rec.since = v end
    v = a32[4] if v then rec.delay = v end
    v = a32[5] if v then rec.start_by = v end
    v = a32[6] if v then rec.start_within = v end
    v = a32[7] if v then rec.deadline = v end
    v = a32[8] if v then rec.next = v end
    v = a32[9] if v then rec.resume = v end
    v = a32[10] if v then rec.ready = v end
    v = a32[11] if v then rec.fair = v end
    v = a32[12] if v then rec.fair_end = v end
    v = a32[13] if v then rec.fairness_key = v end
  end
  if a33 then
    local v
    v = a33[1] if v then rec.grant = v end
    v = a33[2] if v then rec.grant_worker = v end
    v = a33[3] if v then rec.grant_until = v end
    v = a33[4] if v then rec.grants = v end
    v = a33[5] if v then rec.wanted = v end
    v = a33[6] if v then rec.requires = v end
    v = a33[7] if v then rec.prefers = v end
  end
  if a34 then
    local v
    v = a34[1] if v then rec.timeout = v end
    v = a34[2] if v then rec.timeout_at = v end
    v = a34[3] if v then rec.time_left = v end
    v = a34[4] if v then rec.max_reclaims = v end
    v = a34[5] if v then rec.max_replays = v end
    v = a34[6] if v then rec.failure = v end
    v = a34[7] if v then rec.failures = v end
    v = a34[8] if v then rec.reclaims = v end
    v = a34[9] if v then rec.replays = v end
    v = a34[10] if v then rec.tier = v end
    v = a34[11] if v then rec.progress = v end
    v = a34[12] if v then rec.cancel_by = v end
    v = a34[13] if v then rec.cancel_reason = v end
    v = a34[14] if v then rec.yield = v end
    v = a34[15] if v then rec.renewals = v end
    v = a34[16] if v then rec.ended_value = v end
    v = a34[17] if v then rec.lane_retry = v end
    v = a34[18] if v then rec.attempt_ended = v end
    v = a34[19] if v then rec.attempt_failure = v end
  end
  if a35 then
    local v
    v = a35[1] if v then rec.waits = v end
    v = a35[2] if v then rec.wait_until = v end
    v = a35[3] if v then rec.open_due = v end
    v = a35[4] if v then rec.continued = v end
    v = a35[5] if v then rec.signals = v end
  end
  if a36 then
    local v
    v = a36[1] if v then rec.frames = v end
    v = a36[2] if v then rec.streams = v end
    v = a36[3] if v then rec.tailed = v end
    v = a36[4] if v then rec.max_frames = v end
    v = a36[5] if v then rec.attempt_frames = v end
  end
  if a37 then
    local v
    v = a37[1] if v then rec.deps = v end
    v = a37[2] if v then rec.inbound = v end
    v = a37[3] if v then rec.passes = v end
    v = a37[4] if v then rec.outs = v end
    v = a37[5] if v then rec.reached = v end
    v = a37[6] if v then rec.halted = v end
    v = a37[7] if v then rec.fault = v end
    v = a37[8] if v then rec.verdict = v end
    v = a37[9] if v then rec.hidden = v end
    v = a37[10] if v then rec.bound = v end
    v = a37[11] if v then rec.freed = v end
    v = a37[12] if v then rec.kids = v end
    v = a37[13] if v then rec.awaiting = v end
    v = a37[14] if v then rec.owed = v end
  end
  if a38 then
    local v
    v = a38[1] if v then rec.more = v end
    v = a38[2] if v then rec.spilled = v end
    v = a38[3] if v then rec.waited = v end
    v = a38[4] if v then rec.result_far = v end
    v = a38[5] if v then rec.result_in = v end
    v = a38[6] if v then rec.input_in = v end
    v = a38[7] if v then rec.reports = v end
    v = a38[8] if v then rec.webhook = v end
    v = a38[9] if v then rec.hook = v end
    v = a38[10] if v then rec.said = v end
  end
  if a39 then
    local v
    v = a39[1] if v then rec.steps = v end
    v = a39[2] if v then rec.step_bytes = v end
    v = a39[3] if v then rec.forked_from = v end
  end
  if a40 then
    local v
    v = a40[1] if v then rec.schedule = v end
    v = a40[2] if v then rec.firing = v end
    v = a40[3] if v then rec.nominal = v end
    v = a40[4] if v then rec.fired_at = v end
  end
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_execution(key, stored)
  return open_execution(values(key, stored))
end

function packed.close_execution(rec)
  local g1 = false
  if rec.flow_id or rec.key or rec.number or rec.nested or rec.parent_id or rec.parent_close
  then
    g1 = { rec.flow_id or false, rec.key or false, rec.number or false, rec.nested or false, rec.parent_id or false,
        rec.parent_close or false }
  end
  local g2 = false
  if rec.reason or rec.detail or rec.since or rec.delay or rec.start_by or rec.start_within or rec.deadline
      or rec.next or rec.resume or rec.ready or rec.fair or rec.fair_end or rec.fairness_key
  then
    g2 = { rec.reason or false, rec.detail or false, rec.since or false, rec.delay or false, rec.start_by or false,
        rec.start_within or false, rec.deadline or false, rec.next or false, rec.resume or false, rec.ready or false,
        rec.fair or false, rec.fair_end or false, rec.fairness_key or false }
  end
  local g3 = false
  if rec.grant or rec.grant_worker or rec.grant_until or rec.grants or rec.wanted or rec.requires or rec.prefers
  then
    g3 = { rec.grant or false, rec.grant_worker or false, rec.grant_until or false, rec.grants or false,
        rec.wanted or false, rec.requires or false, rec.prefers or false }
  end
  local g4 = false
  if rec.timeout or rec.timeout_at or rec.time_left or rec.max_reclaims or rec.max_replays or rec.failure
      or rec.failures or rec.reclaims or rec.replays or rec.tier or rec.progress or rec.cancel_by
      or rec.cancel_reason or rec.yield or rec.renewals or rec.ended_value or rec.lane_retry or rec.attempt_ended
      or rec.attempt_failure
  then
    g4 = { rec.timeout or false, rec.timeout_at or false, rec.time_left or false, rec.max_reclaims or false,
        rec.max_replays or false, rec.failure or false, rec.failures or false, rec.reclaims or false,
        rec.replays or false, rec.tier or false, rec.progress or false, rec.cancel_by or false,
        rec.cancel_reason or false, rec.yield or false, rec.renewals or false, rec.ended_value or false,
        rec.lane_retry or false, rec.attempt_ended or false, rec.attempt_failure or false }
  end
  local g5 = false
  if rec.waits or rec.wait_until or rec.open_due or rec.continued or rec.signals
  then
    g5 = { rec.waits or false, rec.wait_until or false, rec.open_due or false, rec.continued or false,
        rec.signals or false }
  end
  local g6 = false
  if rec.frames or rec.streams or rec.tailed or rec.max_frames or rec.attempt_frames
  then
    g6 = { rec.frames or false, rec.streams or false, rec.tailed or false, rec.max_frames or false,
        rec.attempt_frames or false }
  end
  local g7 = false
  if rec.deps or rec.inbound or rec.passes or rec.outs or rec.reached or rec.halted or rec.fault or rec.verdict
      or rec.hidden or rec.bound or rec.freed or rec.kids or rec.awaiting or rec.owed
  then
    g7 = { rec.deps or false, rec.inbound or false, rec.passes or false, rec.outs or false, rec.reached or false,
        rec.halted or false, rec.fault or false, rec.verdict or false, rec.hidden or false, rec.bound or false,
        rec.freed or false, rec.kids or false, rec.awaiting or false, rec.owed or false }
  end
  local g8 = false
  if rec.more or rec.spilled or rec.waited or rec.result_far or rec.result_in or rec.input_in or rec.reports
      or rec.webhook or rec.hook or rec.said
  then
    g8 = { rec.more or false, rec.spilled or false, rec.waited or false, rec.result_far or false,
        rec.result_in or false, rec.input_in or false, rec.reports or false, rec.webhook or false, rec.hook or false,
        rec.said or false }
  end
  local g9 = false
  if rec.steps or rec.step_bytes or rec.forked_from
  then
    g9 = { rec.steps or false, rec.step_bytes or false, rec.forked_from or false }
  end
  local g10 = false
  if rec.schedule or rec.firing or rec.nominal or rec.fired_at
  then
    g10 = { rec.schedule or false, rec.firing or false, rec.nominal or false, rec.fired_at or false }
  end
  if rec.tail then return with_tail({ rec.path, rec.kind, rec.created, rec.queue, rec.retention, rec.phase, rec.prio,
      rec.score, rec.updated, rec.wake or false, rec.digest, rec.input or false, rec.tags or false, rec.asks or false,
      rec.holds or false, rec.attempt or false, rec.attempt_id or false, rec.attempt_type or false,
      rec.attempt_state or false, rec.started or false, rec.lease_id or false, rec.epoch or false, rec.worker or false,
      rec.worker_id or false, rec.lease_until or false, rec.lease_ttl or false, rec.ended_by or false,
      rec.ended or false, rec.outcome or false, rec.result or false, g1, g2, g3, g4, g5, g6, g7, g8, g9, g10 }, 40,
      rec.tail) end
  if g1 or g2 or g3 or g4 or g5 or g6 or g7 or g8 or g9 or g10 then return pack({ rec.path, rec.kind, rec.created,
      rec.queue, rec.retention, rec.phase, rec.prio, rec.score, rec.updated, rec.wake or false, rec.digest,
      rec.input or false, rec.tags or false, rec.asks or false, rec.holds or false, rec.attempt or false,
      rec.attempt_id or false, rec.attempt_type or false, rec.attempt_state or false, rec.started or false,
      rec.lease_id or false, rec.epoch or false, rec.worker or false, rec.worker_id or false, rec.lease_until or false,
      rec.lease_ttl or false, rec.ended_by or false, rec.ended or false, rec.outcome or false, rec.result or false, g1,
      g2, g3, g4, g5, g6, g7, g8, g9, g10 }) end
  if rec.attempt == nil and rec.ended == nil then return pack({ rec.path, rec.kind, rec.created, rec.queue,
      rec.retention, rec.phase, rec.prio, rec.score, rec.updated, rec.wake or false, rec.digest, rec.input or false,
      rec.tags or false, rec.asks or false, rec.holds or false }) end
  if rec.ended == nil then return pack({ rec.path, rec.kind, rec.created, rec.queue, rec.retention, rec.phase,
      rec.prio, rec.score, rec.updated, rec.wake or false, rec.digest, rec.input or false, rec.tags or false,
      rec.asks or false, rec.holds or false, rec.attempt or false, rec.attempt_id or false, rec.attempt_type or false,
      rec.attempt_state or false, rec.started or false, rec.lease_id or false, rec.epoch or false, rec.worker or false,
      rec.worker_id or false, rec.lease_until or false, rec.lease_ttl or false, rec.ended_by or false }) end
  return pack({ rec.path, rec.kind, rec.created, rec.queue, rec.retention, rec.phase, rec.prio, rec.score, rec.updated,
      rec.wake or false, rec.digest, rec.input or false, rec.tags or false, rec.asks or false, rec.holds or false,
      rec.attempt or false, rec.attempt_id or false, rec.attempt_type or false, rec.attempt_state or false,
      rec.started or false, rec.lease_id or false, rec.epoch or false, rec.worker or false, rec.worker_id or false,
      rec.lease_until or false, rec.lease_ttl or false, rec.ended_by or false, rec.ended or false,
      rec.outcome or false, rec.result or false })
end

local function open_flow(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
    a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42,
    a43, a44, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a7 or not a9 or not a14 or not a18
      or not a19 then missing(key, { "namespace", "kind", "policy", "created", "updated", "retention", "digest",
      "version", "last", "stored" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil, a7 or nil, a9 or nil,
      a14 or nil, a18 or nil, a19 or nil) end
  local rec = {
    namespace = a1,
    kind = a2,
    policy = a3,
    created = a4,
    updated = a5,
    deadline = a6 or nil,
    retention = a7,
    defaults = a8 or nil,
    digest = a9,
    parent = a10 or nil,
    adopted = a11 or nil,
    sealed = a12 or nil,
    touched = a13 or nil,
    version = a14,
    backward = a15 or nil,
    outcome = a16 or nil,
    ended = a17 or nil,
    last = a18,
    stored = a19,
    uncaught = a20 or nil,
    sinks = a21 or nil,
    owed = a22 or nil,
    stop = a23 or nil,
    walk = a24 or nil,
    walk_at = a25 or nil,
    walked = a26 or nil,
    wake = a27 or nil,
    waited = a28 or nil,
    webhook = a29 or nil,
    hook = a30 or nil,
    n_held = a31 or nil,
    n_waiting = a32 or nil,
    n_delayed = a33 or nil,
    n_rate_limited = a34 or nil,
    n_waiting_children = a35 or nil,
    n_active = a36 or nil,
    n_suspended = a37 or nil,
    n_resumable = a38 or nil,
    n_completed = a39 or nil,
    n_failed = a40 or nil,
    n_cancelled = a41 or nil,
    n_expired = a42 or nil,
    n_skipped = a43 or nil,
    id = nil,
  }
  if a44 then
    local v
    v = a44[1] if v then rec.schedule = v end
    v = a44[2] if v then rec.firing = v end
    v = a44[3] if v then rec.nominal = v end
    v = a44[4] if v then rec.fired_at = v end
  end
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_flow(key, stored)
  return open_flow(values(key, stored))
end

function packed.close_flow(rec)
  local g1 = false
  if rec.schedule or rec.firing or rec.nominal or rec.fired_at
  then
    g1 = { rec.schedule or false, rec.firing or false, rec.nominal or false, rec.fired_at or false }
  end
  if rec.tail then return with_tail({ rec.namespace, rec.kind, rec.policy, rec.created, rec.updated,
      rec.deadline or false, rec.retention, rec.defaults or false, rec.digest, rec.parent or false,
      rec.adopted or false, rec.sealed or false, rec.touched or false, rec.version, rec.backward or false,
      rec.outcome or false, rec.ended or false, rec.last, rec.stored, rec.uncaught or false, rec.sinks or false,
      rec.owed or false, rec.stop or false, rec.walk or false, rec.walk_at or false, rec.walked or false,
      rec.wake or false, rec.waited or false, rec.webhook or false, rec.hook or false, rec.n_held or false,
      rec.n_waiting or false, rec.n_delayed or false, rec.n_rate_limited or false, rec.n_waiting_children or false,
      rec.n_active or false, rec.n_suspended or false, rec.n_resumable or false, rec.n_completed or false,
      rec.n_failed or false, rec.n_cancelled or false, rec.n_expired or false, rec.n_skipped or false, g1 }, 44,
      rec.tail) end
  if g1 then return pack({ rec.namespace, rec.kind, rec.policy, rec.created, rec.updated, rec.deadline or false,
      rec.retention, rec.defaults or false, rec.digest, rec.parent or false, rec.adopted or false, rec.sealed or false,
      rec.touched or false, rec.version, rec.backward or false, rec.outcome or false, rec.ended or false, rec.last,
      rec.stored, rec.uncaught or false, rec.sinks or false, rec.owed or false, rec.stop or false, rec.walk or false,
      rec.walk_at or false, rec.walked or false, rec.wake or false, rec.waited or false, rec.webhook or false,
      rec.hook or false, rec.n_held or false, rec.n_waiting or false, rec.n_delayed or false,
      rec.n_rate_limited or false, rec.n_waiting_children or false, rec.n_active or false, rec.n_suspended or false,
      rec.n_resumable or false, rec.n_completed or false, rec.n_failed or false, rec.n_cancelled or false,
      rec.n_expired or false, rec.n_skipped or false, g1 }) end
  return pack({ rec.namespace, rec.kind, rec.policy, rec.created, rec.updated, rec.deadline or false, rec.retention,
      rec.defaults or false, rec.digest, rec.parent or false, rec.adopted or false, rec.sealed or false,
      rec.touched or false, rec.version, rec.backward or false, rec.outcome or false, rec.ended or false, rec.last,
      rec.stored, rec.uncaught or false, rec.sinks or false, rec.owed or false, rec.stop or false, rec.walk or false,
      rec.walk_at or false, rec.walked or false, rec.wake or false, rec.waited or false, rec.webhook or false,
      rec.hook or false, rec.n_held or false, rec.n_waiting or false, rec.n_delayed or false,
      rec.n_rate_limited or false, rec.n_waiting_children or false, rec.n_active or false, rec.n_suspended or false,
      rec.n_resumable or false, rec.n_completed or false, rec.n_failed or false, rec.n_cancelled or false,
      rec.n_expired or false, rec.n_skipped or false })
end

local function open_lane(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 then missing(key, { "state", "version", "priority_weight",
      "fairness", "weight" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil) end
  local rec = {
    state = a1,
    version = a2,
    priority_weight = a3,
    fairness = a4,
    weight = a5,
    max_depth = a6 or nil,
    max_active = a7 or nil,
    attempt_timeout_ms = a8 or nil,
    retention_ms = a9 or nil,
    lease_ttl_ms = a10 or nil,
    fairness_weights = a11 or nil,
    retry = a12 or nil,
    path = nil,
    tag = nil,
    remembered = nil,
    queues = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_lane(key, stored)
  return open_lane(values(key, stored))
end

function packed.close_lane(rec)
  if rec.tail then return with_tail({ rec.state, rec.version, rec.priority_weight, rec.fairness, rec.weight,
      rec.max_depth or false, rec.max_active or false, rec.attempt_timeout_ms or false, rec.retention_ms or false,
      rec.lease_ttl_ms or false, rec.fairness_weights or false, rec.retry or false }, 12, rec.tail) end
  return pack({ rec.state, rec.version, rec.priority_weight, rec.fairness, rec.weight, rec.max_depth or false,
      rec.max_active or false, rec.attempt_timeout_ms or false, rec.retention_ms or false, rec.lease_ttl_ms or false,
      rec.fairness_weights or false, rec.retry or false })
end

local function open_more(key, a1, a2, a3, ...)
  local rec = {
    history = a1 or nil,
    actions = a2 or nil,
    forks = a3 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_more(key, stored)
  return open_more(values(key, stored))
end

function packed.close_more(rec)
  if rec.tail then return with_tail({ rec.history or false, rec.actions or false, rec.forks or false }, 3, rec.tail) end
  return pack({ rec.history or false, rec.actions or false, rec.forks or false })
end

local function open_quota(key, a1, a2, a3, a4, a5, a6, a7, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 then missing(key, { "definition", "version", "created", "changed",
      "last" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil) end
  local rec = {
    definition = a1,
    version = a2,
    created = a3,
    changed = a4,
    last = a5,
    walked = a6 or nil,
    deleted = a7 or nil,
    id = nil,
    packed = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_quota(key, stored)
  return open_quota(values(key, stored))
end

function packed.close_quota(rec)
  if rec.tail then return with_tail({ rec.definition, rec.version, rec.created, rec.changed, rec.last,
      rec.walked or false, rec.deleted or false }, 7, rec.tail) end
  return pack({ rec.definition, rec.version, rec.created, rec.changed, rec.last, rec.walked or false,
      rec.deleted or false })
end

local function open_quota_key(key, a1, a2, a3, a4, a5, a6, ...)
  if not a1 then missing(key, { "key" }, a1 or nil) end
  local rec = {
    key = a1,
    tat = a2 or nil,
    throttled = a3 or nil,
    sum = a4 or nil,
    wake = a5 or nil,
    called_at = a6 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_quota_key(key, stored)
  return open_quota_key(values(key, stored))
end

function packed.close_quota_key(rec)
  if rec.tail then return with_tail({ rec.key, rec.tat or false, rec.throttled or false, rec.sum or false,
      rec.wake or false, rec.called_at or false }, 6, rec.tail) end
  return pack({ rec.key, rec.tat or false, rec.throttled or false, rec.sum or false, rec.wake or false,
      rec.called_at or false })
end

local function open_schedule(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
    a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a6 or not a7 or not a8 or not a9 or not a10 or not a11
      or not a12 then missing(key, { "sid", "version", "created", "changed", "definition", "overlap", "catch_up",
      "cursor", "number", "fired", "skipped", "missed" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil,
      a6 or nil, a7 or nil, a8 or nil, a9 or nil, a10 or nil, a11 or nil, a12 or nil) end
  local rec = {
    sid = a1,
    version = a2,
    created = a3,
    changed = a4,
    definition = a5,
    overlap = a6,
    catch_up = a7,
    cursor = a8,
    number = a9,
    fired = a10,
    skipped = a11,
    missed = a12,
    every = a13 or nil,
    calendar = a14 or nil,
    jitter = a15 or nil,
    starts = a16 or nil,
    ends = a17 or nil,
    remaining = a18 or nil,
    planned = a19 or nil,
    planned_size = a20 or nil,
    reckoned = a21 or nil,
    asked = a22 or nil,
    paused = a23 or nil,
    over = a24 or nil,
    wake = a25 or nil,
    flight = a26 or nil,
    waiting = a27 or nil,
    last = a28 or nil,
    backfill = a29 or nil,
    path = nil,
    live = nil,
    live_ids = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_schedule(key, stored)
  return open_schedule(values(key, stored))
end

function packed.close_schedule(rec)
  if rec.tail then return with_tail({ rec.sid, rec.version, rec.created, rec.changed, rec.definition, rec.overlap,
      rec.catch_up, rec.cursor, rec.number, rec.fired, rec.skipped, rec.missed, rec.every or false,
      rec.calendar or false, rec.jitter or false, rec.starts or false, rec.ends or false, rec.remaining or false,
      rec.planned or false, rec.planned_size or false, rec.reckoned or false, rec.asked or false, rec.paused or false,
      rec.over or false, rec.wake or false, rec.flight or false, rec.waiting or false, rec.last or false,
      rec.backfill or false }, 29, rec.tail) end
  return pack({ rec.sid, rec.version, rec.created, rec.changed, rec.definition, rec.overlap, rec.catch_up, rec.cursor,
      rec.number, rec.fired, rec.skipped, rec.missed, rec.every or false, rec.calendar or false, rec.jitter or false,
      rec.starts or false, rec.ends or false, rec.remaining or false, rec.planned or false, rec.planned_size or false,
      rec.reckoned or false, rec.asked or false, rec.paused or false, rec.over or false, rec.wake or false,
      rec.flight or false, rec.waiting or false, rec.last or false, rec.backfill or false })
end

local function open_spec(key, a1, a2, a3, ...)
  local rec = {
    retry = a1 or nil,
    fallbacks = a2 or nil,
    trace_parent = a3 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_spec(key, stored)
  return open_spec(values(key, stored))
end

function packed.close_spec(rec)
  if rec.tail then return with_tail({ rec.retry or false, rec.fallbacks or false, rec.trace_parent or false }, 3,
      rec.tail) end
  return pack({ rec.retry or false, rec.fallbacks or false, rec.trace_parent or false })
end

local function open_step(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 then missing(key, { "name", "kind", "state", "attempt",
      "started" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil) end
  local rec = {
    name = a1,
    kind = a2,
    state = a3,
    attempt = a4,
    started = a5,
    ended = a6 or nil,
    tries = a7 or nil,
    due = a8 or nil,
    bytes = a9 or nil,
    result = a10 or nil,
    far = a11 or nil,
    result_in = a12 or nil,
    digest = a13 or nil,
    failure = a14 or nil,
    found = a15 or nil,
    number = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_step(key, stored)
  return open_step(values(key, stored))
end

function packed.close_step(rec)
  if rec.tail then return with_tail({ rec.name, rec.kind, rec.state, rec.attempt, rec.started, rec.ended or false,
      rec.tries or false, rec.due or false, rec.bytes or false, rec.result or false, rec.far or false,
      rec.result_in or false, rec.digest or false, rec.failure or false, rec.found or false }, 15, rec.tail) end
  return pack({ rec.name, rec.kind, rec.state, rec.attempt, rec.started, rec.ended or false, rec.tries or false,
      rec.due or false, rec.bytes or false, rec.result or false, rec.far or false, rec.result_in or false,
      rec.digest or false, rec.failure or false, rec.found or false })
end

local function open_waitpoint(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a13 then missing(key, { "exec", "key", "state", "attempt",
      "created", "tokens" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil, a13 or nil) end
  local rec = {
    exec = a1,
    key = a2,
    state = a3,
    attempt = a4,
    created = a5,
    expires = a6 or nil,
    uses = a7 or nil,
    closed = a8 or nil,
    why = a9 or nil,
    signals = a10 or nil,
    suspension = a11 or nil,
    review = a12 or nil,
    tokens = a13,
    allowed = a14 or nil,
    early = a15 or nil,
    step = a16 or nil,
    id = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_waitpoint(key, stored)
  return open_waitpoint(values(key, stored))
end

function packed.close_waitpoint(rec)
  if rec.tail then return with_tail({ rec.exec, rec.key, rec.state, rec.attempt, rec.created, rec.expires or false,
      rec.uses or false, rec.closed or false, rec.why or false, rec.signals or false, rec.suspension or false,
      rec.review or false, rec.tokens, rec.allowed or false, rec.early or false, rec.step or false }, 16, rec.tail) end
  return pack({ rec.exec, rec.key, rec.state, rec.attempt, rec.created, rec.expires or false, rec.uses or false,
      rec.closed or false, rec.why or false, rec.signals or false, rec.suspension or false, rec.review or false,
      rec.tokens, rec.allowed or false, rec.early or false, rec.step or false })
end

local function open_waits(key, a1, a2, a3, a4, a5, a6, a7, ...)
  local rec = {
    wait = a1 or nil,
    open = a2 or nil,
    answered = a3 or nil,
    past_waits = a4 or nil,
    satisfied = a5 or nil,
    woken = a6 or nil,
    closed_waits = a7 or nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_waits(key, stored)
  return open_waits(values(key, stored))
end

function packed.close_waits(rec)
  if rec.tail then return with_tail({ rec.wait or false, rec.open or false, rec.answered or false,
      rec.past_waits or false, rec.satisfied or false, rec.woken or false, rec.closed_waits or false }, 7, rec.tail) end
  return pack({ rec.wait or false, rec.open or false, rec.answered or false, rec.past_waits or false,
      rec.satisfied or false, rec.woken or false, rec.closed_waits or false })
end

local function open_webhook(key, a1, a2, a3, a4, a5, a6, a7, a8, a9, ...)
  if not a1 or not a2 or not a3 or not a4 or not a5 or not a7 then missing(key, { "of", "owner", "url", "said", "owed",
      "tries" }, a1 or nil, a2 or nil, a3 or nil, a4 or nil, a5 or nil, a7 or nil) end
  local rec = {
    of = a1,
    owner = a2,
    url = a3,
    said = a4,
    owed = a5,
    due = a6 or nil,
    tries = a7,
    status = a8 or nil,
    error = a9 or nil,
    id = nil,
    receiver = nil,
  }
  if select("#", ...) > 0 then rec.tail = { ... } end
  return rec
end

function packed.open_webhook(key, stored)
  return open_webhook(values(key, stored))
end

function packed.close_webhook(rec)
  if rec.tail then return with_tail({ rec.of, rec.owner, rec.url, rec.said, rec.owed, rec.due or false, rec.tries,
      rec.status or false, rec.error or false }, 9, rec.tail) end
  return pack({ rec.of, rec.owner, rec.url, rec.said, rec.owed, rec.due or false, rec.tries, rec.status or false,
      rec.error or false })
end

return packed

end

source["record.spec"] = function(require, LIBRARY)
-- What a submitter said that is seldom asked for: a packed value of its own, there only when something of it was said.
-- And the ways in which lists and maps are packed elsewhere.
local keys = require "lib.keys"
local packed = require "record.packed"

local spec = {}

-- What was said, read once per plan.
function spec.of(tx, rec)
  if rec.spec then return rec.spec end
  local said = {}
  if rec.said then
    local key = keys.spec(tx, rec.id)
    said = packed.open_spec(key, tx:record(key) or "")
  end
  rec.spec = said
  return said
end

-- Plans it for a new record.
function spec.store(tx, rec, s)
  if s.retry == nil and s.trace_parent == nil and (s.fallbacks == nil or #s.fallbacks == 0) then return end
  rec.said = 1
  tx:set(keys.spec(tx, rec.id), packed.close_spec({
    retry = s.retry, fallbacks = s.fallbacks, trace_parent = s.trace_parent,
  }))
end

-- Fills the gaps of a retry policy: first from the lane, as it was at submission, then from the engine's defaults.
function spec.retry(tx, rec)
  local given, of_lane = spec.of(tx, rec).retry or {}, rec.lane_retry or {}
  local b = given.backoff or of_lane.backoff or { type = "exponential" }
  local backoff
  if b.type == "fixed" then
    backoff = { type = "fixed", delay_ms = b.delay_ms or 1000 }
  else
    backoff = {
      type = "exponential", initial_ms = b.initial_ms or 1000, factor = b.factor or 2, max_ms = b.max_ms or 60000,
    }
  end
  return {
    max_attempts = given.max_attempts or of_lane.max_attempts or 3, backoff = backoff,
    jitter = given.jitter or of_lane.jitter or "full", retry_on = given.retry_on or of_lane.retry_on,
    never_on = given.never_on or of_lane.never_on,
  }
end

function spec.fallbacks(tx, rec)
  return spec.of(tx, rec).fallbacks or {}
end

-- The input, or an empty text.
function spec.input(tx, rec)
  return rec.input and tx:get(keys.input(tx, rec.id)) or ""
end

local function sorted_names(map)
  local names = {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- A map of texts as a flat list with sorted names.
function spec.flatten(map)
  local flat = {}
  for _, name in ipairs(sorted_names(map)) do
    flat[#flat + 1] = name
    flat[#flat + 1] = map[name]
  end
  return flat
end

function spec.unflatten(bytes)
  local map = {}
  if bytes then
    local flat = cmsgpack.unpack(bytes)
    for i = 1, #flat, 2 do map[flat[i]] = flat[i + 1] end
  end
  return map
end

return spec
end

source["record.asks"] = function(require, LIBRARY)
-- What must admit an execution: the quotas and budgets it names. Stored as one text, which many executions share.
local keys = require "lib.keys"
local spec = require "record.spec"

local asks = {}

local pack, unpack_ = cmsgpack.pack, cmsgpack.unpack

-- The names of the sets in which executions are held.
function asks.set_of_quota(id, digest) return "quota:" .. id .. ":" .. digest end
function asks.set_of_budget(id) return "budget:" .. id end

-- { { quota, key, weight } … }, { { budget, estimate as a flat list or false } … }; nil when nothing is named.
function asks.packed(quotas, budgets)
  if quotas == nil and budgets == nil then return nil end
  local some, others = {}, {}
  for i, ref in ipairs(quotas or {}) do some[i] = { ref.quota_id, ref.key, ref.weight or 1 } end
  for i, ref in ipairs(budgets or {}) do
    others[i] = { ref.budget_id, ref.estimate and spec.flatten(ref.estimate) or false }
  end
  return pack({ some, others })
end

local function map_of(flat)
  local map = {}
  for i = 1, #flat, 2 do map[flat[i]] = flat[i + 1] end
  return map
end

local function opened(text)
  local stored = unpack_(text)
  local o = { quotas = {}, budgets = {}, sets = {} }
  local function enter(set)
    for _, known in ipairs(o.sets) do
      if known == set then return end
    end
    o.sets[#o.sets + 1] = set
  end
  for i, ref in ipairs(stored[1]) do
    o.quotas[i] = { quota_id = ref[1], key = ref[2], weight = ref[3] }
    enter(asks.set_of_quota(ref[1], keys.digest(ref[2])))
  end
  for i, ref in ipairs(stored[2]) do
    o.budgets[i] = { budget_id = ref[1], estimate = ref[2] and map_of(ref[2]) or nil }
    enter(asks.set_of_budget(ref[1]))
  end
  return o
end

local nothing = { quotas = {}, budgets = {}, sets = {} }
-- A few texts as they were opened.
local known, count = {}, 0

-- { quotas, budgets, sets }: references as they were submitted, and the names of the sets that hold the execution while
-- it runs. Nobody changes any of it.
function asks.open(text)
  if not text then return nothing end
  local o = known[text]
  if o == nil then
    if count >= 256 then known, count = {}, 0 end
    o = opened(text)
    known[text], count = o, count + 1
  end
  return o
end

function asks.of(rec)
  return asks.open(rec.asks)
end

return asks
end

source["record.more"] = function(require, LIBRARY)
-- What an execution keeps beside its record: its finished attempts but the last, and what operators did. Read when
-- something asks for it.
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"

local more = {}

-- The record, read once per plan.
function more.of(tx, rec)
  local known = rec.apart
  if known then return known end
  known = {}
  if rec.more then
    local key = keys.more(tx, rec.id)
    known = packed.open_more(key, tx:record(key) or "")
  end
  rec.apart = known
  return known
end

-- Plans the record; the execution that it belongs to is saved by the caller.
function more.store(tx, rec, m)
  rec.more, rec.apart = 1, m
  tx:set(keys.more(tx, rec.id), packed.close_more(m))
end

-- Remembers what an operator did; the last hundred are kept.
function more.note_action(tx, rec, action, actor, reason)
  local m = more.of(tx, rec)
  local list = m.actions and cmsgpack.unpack(m.actions) or {}
  list[#list + 1] = { action, actor, tx.now, reason or false }
  if #list > limits.operator_actions_max then table.remove(list, 1) end
  m.actions = cmsgpack.pack(list)
  more.store(tx, rec, m)
end

-- Remembers an execution that was forked from this one; the newest are kept.
function more.note_fork(tx, rec, id)
  local m = more.of(tx, rec)
  local list = m.forks and cmsgpack.unpack(m.forks) or {}
  list[#list + 1] = id
  if #list > limits.forks_kept_max then table.remove(list, 1) end
  m.forks = cmsgpack.pack(list)
  more.store(tx, rec, m)
end

function more.forks(tx, rec)
  local m = more.of(tx, rec)
  return m.forks and cmsgpack.unpack(m.forks) or {}
end

function more.actions(tx, rec)
  local out, m = {}, more.of(tx, rec)
  for i, a in ipairs(m.actions and cmsgpack.unpack(m.actions) or {}) do
    out[i] = { action = a[1], actor = a[2], at = a[3], reason = a[4] or nil }
  end
  return out
end

return more
end

source["record.waits"] = function(require, LIBRARY)
-- What an execution waits for, stored apart from it: a wait may hold many signals, and a renewal must not carry them
-- along. It is read with the execution, whose fields it fills, and written when it changed.
local keys = require "lib.keys"
local packed = require "record.packed"

local waits = {}

local open, close = packed.open_waits, packed.close_waits
local names = { "wait", "open", "answered", "past_waits", "satisfied", "woken", "closed_waits" }

function waits.load(tx, rec)
  local key = keys.waits(tx, rec.id)
  local stored = tx:record(key)
  if stored == nil then error("CORRUPT " .. key .. " fields", 0) end
  local w = open(key, stored)
  for i = 1, #names do
    local name = names[i]
    rec[name] = w[name]
  end
  rec.waits_were, rec.waits_tail = stored, w.tail
end

function waits.any(rec)
  return rec.wait or rec.open or rec.answered or rec.past_waits or rec.satisfied or rec.woken or rec.closed_waits
end

-- Plans what changed; part of every store of an execution that has waited. One that begins to says so by `rec.waits`.
function waits.store(tx, rec)
  local key = keys.waits(tx, rec.id)
  if not waits.any(rec) then
    if rec.waits_were then tx:del(key) end
    rec.waits, rec.waits_were = nil, nil
    return
  end
  local bytes = close({
    wait = rec.wait, open = rec.open, answered = rec.answered, past_waits = rec.past_waits, satisfied = rec.satisfied,
    woken = rec.woken, closed_waits = rec.closed_waits, tail = rec.waits_tail,
  })
  if bytes ~= rec.waits_were then tx:set(key, bytes) end
  rec.waits, rec.waits_were = 1, bytes
end

return waits
end

source["record.lane"] = function(require, LIBRARY)
-- A lane as one partition sees it: a copy of its definition, and what the partition remembers about its queues.
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"

local lane = {}

local open, close = packed.open_lane, packed.close_lane

lane.defaults = { state = "active", priority_weight = limits.strict_priority_weight, fairness = "fifo", weight = 1 }

-- The partition's copy, read once per list as long as nothing changes it; nil when the partition has not seen the lane.
function lane.load(tx, path)
  local known = tx.lanes[path]
  if known and known.tag == tx.tag then return known end
  local key = keys.lane(tx, path)
  local stored = tx:record(key)
  if stored == nil then return nil end
  known = open(key, stored)
  known.path, known.tag, known.remembered, known.queues, known.heads = path, tx.tag, {}, {}, {}
  tx.lanes[path] = known
  return known
end

-- Plans a definition; `version` counts its changes.
function lane.store(tx, path, definition, version)
  local record = { version = version }
  for name, value in pairs(definition) do record[name] = value end
  tx:set(keys.lane(tx, path), close(record))
  tx.lanes[path] = nil
end

lane.fields = {
  "state", "priority_weight", "fairness", "fairness_weights", "max_depth", "max_active", "weight", "retry",
  "attempt_timeout_ms", "retention_ms", "lease_ttl_ms",
}

-- The definition as it was given.
function lane.definition(copy)
  local definition = {}
  for _, name in ipairs(lane.fields) do definition[name] = copy[name] end
  return definition
end

-- True when two definitions say the same.
function lane.same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for name, value in pairs(a) do
    if not lane.same(value, b[name]) then return false end
  end
  for name in pairs(b) do
    if a[name] == nil then return false end
  end
  return true
end

-- What the partition remembers of a lane, each under a name:
--   main           the queue that every claim looks at; the others stand among the heads
--   quiet          dispatchers come back for what is in the main queue without being told
--   quiet:<queue>  the same of another queue
--   others         it has queues beside the main one
--   uncovered      some queue was found to have no worker, now or lately
--   told           the wake-up that was announced last
--   prefers        some of its work prefers some workers
--   admits         some of its work needs admission
--   virtual        virtual time of a fair lane
-- What was read of it stays with the copy; false stands for nothing.
function lane.recall(tx, copy, name)
  local value = copy.remembered[name]
  if value == nil then
    value = tx:hget(keys.lane_memory(tx, copy.path), name) or false
    copy.remembered[name] = value
  end
  return value or nil
end

-- What was remembered under several names, read in one go unless something is planned for it.
function lane.recall_all(tx, copy, names)
  local key = keys.lane_memory(tx, copy.path)
  if tx:touches(key) then return end
  local found = tx:read("HMGET", key, unpack(names))
  for i = 1, #names do copy.remembered[names[i]] = found[i] end
end

local common = { "told", "prefers", "quiet", "admits", "main", "others", "uncovered" }

-- Reads in one go what submissions and claims ask for.
function lane.prepare(tx, copy)
  local remembered = copy.remembered
  for i = 1, #common do
    if remembered[common[i]] == nil then return lane.recall_all(tx, copy, common) end
  end
end

-- Plans a change of what the partition remembers; nil forgets.
function lane.remember(tx, copy, name, value)
  local known = lane.recall(tx, copy, name)
  if value == known then return end
  if value == nil then
    tx:hdel(keys.lane_memory(tx, copy.path), name)
  else
    tx:hput(keys.lane_memory(tx, copy.path), name, value)
  end
  copy.remembered[name] = value or false
end

function lane.split(path)
  local namespace, name = string.match(path, "^([^/]+)/(.+)$")
  return namespace, name
end

function lane.starts(copy)
  return copy.state == "active" or copy.state == "draining"
end

function lane.accepts(copy)
  return copy.state == "active" or copy.state == "paused"
end

return lane
end

source["record.holds"] = function(require, LIBRARY)
-- The sets an execution stands in while it is granted or runs: its lane's slots, quotas, budgets. The record names them
-- from the grant on, and the call that ends the grant or the lease owes each set its release: no way out of either can
-- forget it.
local asks = require "record.asks"
local keys = require "lib.keys"
local outbox = require "lib.outbox"

local holds = {}

local sub = string.sub

function holds.of_lane(path)
  return "lane:" .. path
end

holds.of_quota, holds.of_budget = asks.set_of_quota, asks.set_of_budget

-- What most executions hold while they run: everything they name, under the id of their lease.
holds.all = "*"

-- Stored as `all`, or as { holder, sets, sets to keep while the attempt is set aside, those kept so far as { { holder,
-- set }, … } }. A kept set outlives the lease that entered it, so it goes with the holder id of that lease.
local function noted(rec)
  if rec.holds == nil then return { sets = {}, keep = {}, kept = {} } end
  if rec.holds == holds.all then return { holder = rec.lease_id, sets = asks.of(rec).sets, keep = {}, kept = {} } end
  local list = cmsgpack.unpack(rec.holds)
  return { holder = list[1] or nil, sets = list[2], keep = list[3] or {}, kept = list[4] or {} }
end

local function store(rec, h)
  if #h.sets == 0 and #h.kept == 0 then
    rec.holds = nil
  elseif #h.keep == 0 and #h.kept == 0 then
    rec.holds = cmsgpack.pack({ h.holder, h.sets })
  else
    rec.holds = cmsgpack.pack({ h.holder or false, h.sets, h.keep, h.kept })
  end
end

local function contains(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then return true end
  end
  return false
end

local function is_kept(h, set)
  for _, entry in ipairs(h.kept) do
    if entry[2] == set then return true end
  end
  return false
end

-- What this execution must enter before it starts, beyond what it has kept: its lane's slots when they are limited, its
-- quotas and its budgets.
function holds.needed(rec, copy)
  local h, sets = noted(rec), {}
  local function add(set)
    if not contains(sets, set) and not is_kept(h, set) then sets[#sets + 1] = set end
  end
  if copy and copy.max_active then add(holds.of_lane(copy.path)) end
  for _, set in ipairs(asks.of(rec).sets) do add(set) end
  return sets
end

-- The quotas of the execution that have to admit it: not those whose slot it kept. Nil when it names none.
function holds.asked_quotas(rec)
  local h, named, refs = noted(rec), asks.of(rec).quotas, {}
  if #h.kept == 0 then return #named > 0 and named or nil end
  for _, ref in ipairs(named) do
    if not is_kept(h, holds.of_quota(ref.quota_id, keys.digest(ref.key))) then refs[#refs + 1] = ref end
  end
  return #named > 0 and refs or nil
end

-- A budget refused a report and set the attempt aside: it is asked for that much before the attempt goes on. Without
-- this, any room would start what meets the same limit again. `amounts` is a flat list of dimensions and numbers.
function holds.want(rec, budget_id, amounts)
  rec.wanted = cmsgpack.pack({ budget_id, amounts })
end

-- The budgets of the execution, with the estimates they have to admit. Nil when it names none.
function holds.asked_budgets(rec)
  local named = asks.of(rec).budgets
  if #named == 0 then return nil end
  if rec.wanted == nil then return named end
  local wanted, refs = cmsgpack.unpack(rec.wanted), {}
  for i, ref in ipairs(named) do
    refs[i] = ref
    if ref.budget_id == wanted[1] then
      local estimate = {}
      for dimension, n in pairs(ref.estimate or {}) do estimate[dimension] = n end
      for at = 1, #wanted[2], 2 do
        local dimension = wanted[2][at]
        estimate[dimension] = math.max(estimate[dimension] or 0, wanted[2][at + 1])
      end
      refs[i] = { budget_id = ref.budget_id, estimate = estimate }
    end
  end
  return refs
end

-- `holder` is the id the execution has in each of the sets.
function holds.note(rec, holder, sets)
  local h = noted(rec)
  h.holder, h.sets, h.keep = #sets > 0 and holder or nil, sets, {}
  store(rec, h)
end

-- None of the sets has taken it in.
function holds.drop(rec)
  holds.note(rec, nil, {})
end

-- Says which of its sets stay with the execution while its attempt is set aside.
function holds.keep_aside(rec, sets)
  local h = noted(rec)
  for _, set in ipairs(sets) do
    if contains(h.sets, set) and not contains(h.keep, set) then h.keep[#h.keep + 1] = set end
  end
  store(rec, h)
end

-- Adds a set to what a running execution holds; one that held nothing is known there by its lease.
function holds.join(rec, set)
  local h = noted(rec)
  local sets = { unpack(h.sets) }
  sets[#sets + 1] = set
  h.sets = sets
  h.holder = h.holder or rec.lease_id
  store(rec, h)
end

-- The holder id and the sets, or nothing.
function holds.of(rec)
  local h = noted(rec)
  if h.holder then return h.holder, h.sets end
end

function holds.sets(rec)
  local _, sets = holds.of(rec)
  return sets
end

function holds.in_set(rec, set)
  return contains(holds.sets(rec) or {}, set)
end

-- The id under which a set holds the execution, or nothing. What was kept goes by the lease that entered it.
function holds.holder_in(rec, set)
  local h = noted(rec)
  if h.holder and contains(h.sets, set) then return h.holder end
  for _, entry in ipairs(h.kept) do
    if entry[2] == set then return entry[1] end
  end
end

-- Under this id the execution keeps the set while its attempt is set aside, and from then on.
function holds.keeps(rec, holder, set)
  for _, entry in ipairs(noted(rec).kept) do
    if entry[1] == holder and entry[2] == set then return true end
  end
  return false
end

-- Its slots in quotas: those it runs under, and those it keeps.
function holds.quota_slots(rec)
  local h, out = noted(rec), {}
  local function add(holder, set)
    if string.sub(set, 1, 6) == "quota:" then
      out[#out + 1] = { set = set, execution_id = rec.id, holder_id = holder }
    end
  end
  if rec.phase == "active" then
    for _, set in ipairs(h.sets) do add(h.holder, set) end
  end
  for _, entry in ipairs(h.kept) do add(entry[1], entry[2]) end
  return out
end

-- True when the record names every set its lane asks for by now.
function holds.covers(rec, copy)
  return not (copy and copy.max_active) or holds.in_set(rec, holds.of_lane(copy.path))
end

-- True when the call itself can give back what a set holds.
function holds.near(tx, set)
  return tx.quotas ~= nil and sub(set, 1, 5) ~= "lane:"
end

local function owe(tx, rec, holder, set, unused)
  if holds.near(tx, set) then return tx:owe("release", set, rec.id, holder, unused or nil) end
  holds.owe_later(tx, rec.id, holder, set, unused)
end

-- The partition owes the set its release.
function holds.owe_later(tx, id, holder, set, unused)
  local data = { "set", set, "execution_id", id, "holder_id", holder }
  if unused then data[7], data[8] = "unused", "1" end
  outbox.owe(tx, "release_holder", data)
end

-- True while the attempt is set aside or about to go on: what it keeps stays.
local function set_aside(rec)
  return rec.phase == "suspended" or rec.phase == "active" or (rec.phase == "runnable" and rec.resume ~= nil)
end

-- True when the record holds something that neither a grant nor a lease nor an attempt set aside accounts for.
function holds.stray(rec)
  local h = noted(rec)
  if h.holder and rec.phase ~= "active" and rec.grant ~= h.holder then return true end
  return #h.kept > 0 and not set_aside(rec)
end

-- Part of every save: what the record no longer holds by a grant or a lease is owed back.
function holds.keep(tx, rec)
  if rec.holds == nil or not holds.stray(rec) then return end
  local h = noted(rec)
  if h.holder and rec.phase ~= "active" and rec.grant ~= h.holder then
    local ran = rec.was_phase == "active"
    local aside = ran and (rec.phase == "suspended" or rec.reason == "waiting_for_children")
    for _, set in ipairs(h.sets) do
      if aside and contains(h.keep, set) then
        h.kept[#h.kept + 1] = { h.holder, set }
      else
        owe(tx, rec, h.holder, set, not ran)
      end
    end
    h.holder, h.sets, h.keep = nil, {}, {}
  end
  if not set_aside(rec) then
    for _, entry in ipairs(h.kept) do owe(tx, rec, entry[1], entry[2], false) end
    h.kept = {}
  end
  store(rec, h)
end

return holds
end

source["record.fired"] = function(require, LIBRARY)
-- Which firing of a schedule an execution or a flow is; its end is owed to the schedule.
local outbox = require "lib.outbox"

local fired = {}

function fired.note(rec, f)
  rec.schedule, rec.firing, rec.nominal, rec.fired_at = f.schedule, f.number, f.nominal_at, f.fired_at
end

function fired.typed(rec)
  if rec.firing == nil then return nil end
  return { schedule = rec.schedule, number = rec.firing, nominal_at = rec.nominal, fired_at = rec.fired_at }
end

-- Tells the schedule, which may wait for this end before it fires again.
function fired.ended(tx, rec, namespace, outcome)
  outbox.owe(tx, "firing_ended", {
    "namespace", namespace, "schedule", rec.schedule, "number", string.format("%.0f", rec.firing), "run_id", rec.id,
    "outcome", outcome,
  })
end

return fired
end

source["record.quota"] = function(require, LIBRARY)
-- A quota: what each of its keys allows, and which keys are in use.
local holds = require "record.holds"
local keys = require "lib.keys"
local packed = require "record.packed"
local timers = require "index.timers"

local quota = {}

-- A definition as a packed list: the same definition is the same text.
function quota.pack(q)
  local rate = q.rate and { q.rate.limit, q.rate.window_ms, q.rate.mode } or false
  local weighted = q.weighted and { q.weighted.limit, q.weighted.window_ms } or false
  return cmsgpack.pack({ q.namespace, rate, q.concurrency or false, weighted, q.hold_while_suspended })
end

local function unpack_definition(id, bytes)
  local list = cmsgpack.unpack(bytes)
  return {
    quota_id = id, namespace = list[1],
    rate = list[2] and { limit = list[2][1], window_ms = list[2][2], mode = list[2][3] } or nil,
    concurrency = list[3] or nil, weighted = list[4] and { limit = list[4][1], window_ms = list[4][2] } or nil,
    hold_while_suspended = list[5],
  }
end

-- The quota, read once per plan; one that is being deleted is found only by those who ask for it.
function quota.load(tx, id, deleted_too)
  local key = keys.quota(tx, id)
  local q = tx.memo[key] or tx:found(key)
  if q == nil then
    local stored = tx:record(key)
    if stored == nil then return nil end
    q = packed.open_quota(key, stored)
    q.id, q.packed = id, q.definition
    q.definition = unpack_definition(id, q.packed)
    tx.memo[key] = q
    tx:keep(key, q)
  end
  if q.deleted and not deleted_too then return nil end
  return q
end

local function close(q)
  return packed.close_quota({
    definition = q.packed, version = q.version, created = q.created, changed = q.changed, last = q.last,
    walked = q.walked, deleted = q.deleted, tail = q.tail,
  })
end

-- Plans the record.
function quota.save(tx, q)
  local key = keys.quota(tx, q.id)
  tx.memo[key] = q
  tx:put(key, q, close)
end

-- A quota that is not stored yet; `bytes` are its packed definition.
function quota.new(tx, id, bytes)
  return { id = id, packed = bytes, version = 1, created = tx.now, changed = tx.now, last = 0 }
end

-- How many keys it has that are in use is read by whoever asks: `count`.
function quota.typed(q, count)
  return { quota = q.definition, version = q.version, created_at = q.created, keys = count }
end

-- The facts of an event about a quota.
function quota.told(id, actor, key)
  local data = { "quota_id", id }
  if key then data[3], data[4] = "key", key end
  if actor then data[#data + 1], data[#data + 2] = "actor", actor end
  return data
end

-- The digest under which a key is kept; those of a few keys are remembered.
local digests, digest_count = {}, 0
function quota.digest(key)
  local digest = digests[key]
  if digest == nil then
    if digest_count >= 256 then digests, digest_count = {}, 0 end
    digest = keys.digest(key)
    digests[key], digest_count = digest, digest_count + 1
  end
  return digest
end

-- The set that stays with an execution under a key while its attempt is set aside; nil when none does.
function quota.kept_set(q, key)
  return q.definition.hold_while_suspended and holds.of_quota(q.id, quota.digest(key)) or nil
end

-- Plans the entry of a key that comes into use.
function quota.enter_key(tx, q, digest)
  q.last = q.last + 1
  quota.save(tx, q)
  tx:zadd(keys.quota_keys(tx, q.id), q.last, digest)
end

function quota.leave_key(tx, q, digest)
  tx:zrem(keys.quota_keys(tx, q.id), digest)
end

-- Its timer walks over its keys after a change.
function quota.timer(id)
  return "quota:" .. id
end

function quota.walk(tx, q)
  q.walked = 0
  quota.save(tx, q)
  timers.set(tx, quota.timer(q.id), tx.now)
end

return quota
end

source["record.flow"] = function(require, LIBRARY)
-- A flow: members that share its partition, edges between them, and what it does when one of them fails.
local keys = require "lib.keys"
local limits = require "lib.limits"
local fired = require "record.fired"
local packed = require "record.packed"
local timers = require "index.timers"

local flow = {}

local open, close = packed.open_flow, packed.close_flow

-- Every state a member can be counted under, those of members that have not ended first.
flow.open_states = {
  "held", "waiting", "delayed", "rate_limited", "waiting_children", "active", "suspended", "resumable",
}
flow.ended_states = { "completed", "failed", "cancelled", "expired", "skipped" }

-- The field that counts the members of a state.
local count_of = {}
for _, list in ipairs({ flow.open_states, flow.ended_states }) do
  for _, state in ipairs(list) do count_of[state] = "n_" .. state end
end

function flow.new(id)
  return { id = id, last = 0, stored = 0, version = 0, names = {}, fresh = true }
end

-- The flow, read once per plan: every function of a call sees what the others changed.
function flow.load(tx, id)
  local key = keys.flow(tx, id)
  local known = tx.memo[key]
  if known then return known end
  local stored = tx:record(key)
  if stored == nil then return nil end
  local f = open(key, stored)
  f.id = id
  tx.memo[key] = f
  return f
end

-- The flow as everybody but its own walk sees it: one that is being removed is not there any more.
function flow.find(tx, id)
  local f = flow.load(tx, id)
  if f and f.walk ~= "remove" then return f end
end

-- When the flow next needs attention: a walk that is owed, the end of an unsealed flow nobody adds to or nobody made a
-- member for, the end of an empty one.
function flow.wake_at(f)
  if f.walk then return f.walk_at end
  if f.ended then return f.stored == 0 and f.ended + f.retention or nil end
  if f.sealed == nil and f.adopted == nil then return f.touched + limits.unsealed_ms_max end
end

-- The name of its timer entry.
function flow.timer(id)
  return "flow:" .. id
end

function flow.save(tx, f)
  f.updated = tx.now
  local at = flow.wake_at(f)
  if at ~= f.wake then
    timers.keep(tx, { id = flow.timer(f.id), wake = f.wake }, at)
    f.wake = at
  end
  flow.store(tx, f)
end

-- Plans the record alone, for a change that moves no timer.
function flow.store(tx, f)
  local key = keys.flow(tx, f.id)
  tx:put(key, f, close)
  tx.memo[key] = f
end

-- Defaults for members, as they were given: { lane or false, retry or false, budgets or false }.
function flow.pack_defaults(lane, retry, budgets)
  return cmsgpack.pack({ lane or false, retry or false, budgets or false })
end

function flow.defaults(f)
  local d = f.defaults and cmsgpack.unpack(f.defaults) or { false, false, false }
  return d[1] or nil, d[2] or nil, d[3] or nil
end

function flow.stopped(f)
  if f.stop == nil then return nil end
  local s = cmsgpack.unpack(f.stop)
  return { policy = s[1], reason = s[2] or nil, actor = s[3] or nil, at = s[4] }
end

-- Members that have not ended.
function flow.open(f)
  local open = 0
  for _, state in ipairs(flow.open_states) do open = open + (f[count_of[state]] or 0) end
  return open
end

-- What a user calls the state of the flow.
function flow.state(f)
  if f.outcome then return f.outcome end
  if f.sealed == nil then return "open" end
  local moving = (f.n_waiting or 0) + (f.n_delayed or 0) + (f.n_active or 0) + (f.n_resumable or 0) + (f.n_held or 0)
  return moving == 0 and flow.open(f) > 0 and "blocked" or "running"
end

local function count(f, state, by)
  local name = count_of[state]
  local n = (f[name] or 0) + by
  f[name] = n ~= 0 and n or nil
end

-- Counts a new member.
function flow.enter(f, state)
  count(f, state, 1)
end

-- Counts a member under another state.
function flow.recount(f, was, state)
  count(f, was, -1)
  count(f, state, 1)
end

-- Part of every save of a member: its count follows its state. In a stopped flow a member that lets go of its lease
-- without an end is cancelled by its timer, at once: nothing of the flow starts again.
function flow.follow(tx, rec, state)
  local was = rec.was_state
  local lets_go = rec.was_phase == "active" and rec.phase ~= "active" and rec.phase ~= "terminal"
  if was == state and not lets_go then return end
  local f = flow.load(tx, rec.flow_id)
  if f == nil then error("CORRUPT " .. keys.flow(tx, rec.flow_id) .. " core") end
  if was then count(f, was, -1) end
  count(f, state, 1)
  rec.was_state = state
  if lets_go and f.stop then rec.cancel_by, rec.cancel_reason = tx.now, flow.stopped(f).reason end
  flow.save(tx, f)
end

-- What a member's outcome means for its flow, and the field in which the flow counts it.
local counter = { uncaught = "uncaught", good_sink = "sinks" }

-- Counts a member's verdict in its flow, or takes it back.
function flow.count_verdict(f, verdict, by)
  if verdict == nil then return end
  local name = counter[verdict]
  local n = (f[name] or 0) + by
  f[name] = n ~= 0 and n or nil
end

-- Forgets a member that is retired; the flow goes with its last one.
function flow.forget_member(tx, rec)
  local f = flow.load(tx, rec.flow_id)
  if f == nil then return end
  count(f, rec.was_state, -1)
  flow.count_verdict(f, rec.verdict, -1)
  f.stored = f.stored - 1
  tx:zrem(keys.flow_members(tx, f.id), rec.id)
  tx:hdel(keys.flow_names(tx, f.id), rec.key)
  if f.stored == 0 and (f.ended or f.walk == "remove") then
    flow.remove(tx, f)
  else
    flow.save(tx, f)
  end
end

-- Plans the removal of a flow without members.
function flow.remove(tx, f)
  tx:del(keys.flow(tx, f.id))
  tx.memo[keys.flow(tx, f.id)] = nil
  f.gone = true
  timers.clear(tx, flow.timer(f.id))
  tx:zrem(keys.flows(tx), f.id)
  tx:zrem(keys.cancel_backlog(tx), f.id)
end

-- The record of a member by its key, or nil.
function flow.member_id(tx, f, key)
  local id = f.names and f.names[key]
  if id == nil and not f.fresh then id = tx:hget(keys.flow_names(tx, f.id), key) end
  return id or nil
end

-- Reads the records of members by these keys at once. A fresh flow has only those it was given.
function flow.look_up(tx, f, names)
  local known, asked = f.names or {}, {}
  f.names = known
  if f.fresh then return end
  for _, name in ipairs(names) do
    if known[name] == nil then
      known[name], asked[#asked + 1] = false, name
    end
  end
  if #asked == 0 then return end
  for i, id in ipairs(tx:hmget(keys.flow_names(tx, f.id), asked)) do known[asked[i]] = id end
end

function flow.name_member(tx, f, name, id)
  tx:hput(keys.flow_names(tx, f.id), name, id)
  f.names[name] = id
end

-- Asks for a walk over the members, in bounded steps, by whoever fires timers: it is owed until it is done.
function flow.walk_over(tx, f, what)
  f.walk, f.walk_at, f.walked = what, tx.now, 0
  if what == "cancel" then tx:zadd(keys.cancel_backlog(tx), tx.now, f.id) end
end

function flow.walk_done(tx, f)
  if f.walk == "cancel" then tx:zrem(keys.cancel_backlog(tx), f.id) end
  f.walk, f.walk_at, f.walked = nil, nil, nil
end

function flow.typed(f)
  local counts = {}
  for _, list in ipairs({ flow.open_states, flow.ended_states }) do
    for _, state in ipairs(list) do counts[state] = f[count_of[state]] end
  end
  local lane, retry, budgets = flow.defaults(f)
  return {
    flow_id = f.id, namespace = f.namespace, kind = f.kind, state = flow.state(f), on_member_failure = f.policy,
    counts = counts, members = f.stored, version = f.version, created_at = f.created, updated_at = f.updated,
    sealed_at = f.sealed, finished_at = f.ended, deadline_at = f.deadline, retention_ms = f.retention,
    default_lane = lane, default_retry = retry, budgets = budgets, stop = flow.stopped(f), owed = f.owed or 0,
    walk = f.walk, parent_id = f.parent, uncaught_failures = f.uncaught or 0, completion_webhook = f.webhook,
    fired = fired.typed(f),
  }
end

return flow
end

source["record.execution"] = function(require, LIBRARY)
-- The execution: one packed value with its state, its current lease and its current attempt. A transition edits the
-- record and saves it; saving moves the execution's index entries and its timer along, so they cannot differ.
local keys = require "lib.keys"
local flow = require "record.flow"
local holds = require "record.holds"
local packed = require "record.packed"
local waits = require "record.waits"
local awaits = require "index.awaits"
local home = require "index.home"
local leases = require "index.leases"
local timers = require "index.timers"

local execution = {}

local open, close, core = packed.open_execution, packed.close_execution, keys.core
local find, sub, floor, max = string.find, string.sub, math.floor, math.max

-- What the path of its lane is made of.
function execution.namespace(rec)
  return sub(rec.path, 1, find(rec.path, "/", 1, true) - 1)
end

function execution.lane(rec)
  return sub(rec.path, find(rec.path, "/", 1, true) + 1)
end

-- The record, read once per plan: every function of a call sees what the others changed. A hidden one is found only by
-- those who ask for it.
function execution.load(tx, id, hidden_too)
  local rec = execution.read(tx, id)
  if rec and rec.hidden and not hidden_too then return nil end
  return rec
end

local function opened(tx, id, key, stored)
  local rec = open(key, stored)
  rec.id = id
  if rec.waits then waits.load(tx, rec) end
  execution.seen(tx, rec)
  tx.memo[id] = rec
  return rec
end

function execution.read(tx, id)
  local known = tx.memo[id]
  if known ~= nil then return known or nil end
  local key = core(tx, id)
  local stored = tx:record(key)
  if stored then return opened(tx, id, key, stored) end
end

-- Reads at once what is about to be loaded.
function execution.fetch(tx, ids)
  local wanted, names = {}, {}
  for _, id in ipairs(ids) do
    if tx.memo[id] == nil then wanted[#wanted + 1], names[#names + 1] = id, core(tx, id) end
  end
  for i, stored in ipairs(tx:records(names)) do
    if stored then opened(tx, wanted[i], names[i], stored) end
  end
end

-- Looks at once whether any of these is there: most are new.
function execution.expect_new(tx, ids)
  local names = {}
  for i, id in ipairs(ids) do names[i] = core(tx, id) end
  if tx:any_exists(names) then return end
  for _, id in ipairs(ids) do
    if tx.memo[id] == nil then tx.memo[id] = false end
  end
end

-- Notes where the indexes have the record: saving moves them from there.
function execution.seen(tx, rec)
  rec.was_phase = rec.phase
  rec.was_place, rec.was_score = home.of(rec)
  if rec.detail then rec.was_awaits, rec.was_awaits_at = awaits.of(tx, rec) end
  if rec.flow_id then rec.was_state = execution.member_state(rec) end
end

-- When the execution next needs attention without anyone asking, or nil.
function execution.wake_at(rec)
  local phase = rec.phase
  if rec.hidden then return nil end
  if phase == "terminal" then
    if rec.bound then return nil end
    return (rec.freed or rec.ended) + rec.retention
  end
  local at = rec.deadline
  local other = rec.cancel_by
  if other and (at == nil or other < at) then at = other end
  other = rec.open_due
  if other and (at == nil or other < at) then at = other end
  if phase == "active" then
    other = rec.lease_until
    if at == nil or other < at then at = other end
    other = rec.timeout_at
    if other and other < at then at = other end
  elseif phase == "suspended" then
    other = rec.wait_until
    if other and (at == nil or other < at) then at = other end
  else
    other = rec.start_by
    if other and (at == nil or other < at) then at = other end
    if rec.reason == nil then
      other = rec.delay
      if other and (at == nil or other < at) then at = other end
      other = rec.grant_until
      if other and (at == nil or other < at) then at = other end
    end
  end
  return at
end

-- Plans the record's changes together with its place in the indexes, its lease entry, its holds and its timer.
-- `told` says that the caller announces the timer itself.
function execution.save(tx, rec, told)
  local phase, was = rec.phase, rec.was_phase
  rec.updated = tx.now
  -- Since when it stands in line, unless it has stood there since it was made; and how long the lease lasted that ends
  -- here. An epoch is the time of its claim, or later when the clock went back.
  if was ~= phase then
    if was == "active" then rec.ran = max(tx.now - floor(rec.epoch / 1000), 0) end
    -- Whoever follows the stream hears of every change of phase: of its end, and of the attempt that comes after.
    if rec.tailed then tx:announce("frames", rec.id) end
  end
  local place, score = home.of(rec)
  if place == "queue" and phase == "runnable" and was and not (rec.was_place == "queue" and was == "runnable") then
    rec.ready = tx.now
  end
  if rec.flow_id then flow.follow(tx, rec, execution.member_state(rec)) end
  timers.keep(tx, rec, execution.wake_at(rec), told)
  home.move(tx, rec, place, score)
  if rec.detail or rec.was_awaits then awaits.keep(tx, rec) end
  if phase == "active" then
    if was ~= "active" then leases.add(tx, rec) end
  elseif was == "active" then
    leases.remove(tx, rec)
  end
  if rec.holds then holds.keep(tx, rec) end
  rec.was_phase = phase
  execution.store(tx, rec)
end

-- Plans the record alone, for a change that moves no index.
function execution.store(tx, rec)
  if rec.waits or rec.waits_were then waits.store(tx, rec) end
  tx:put(core(tx, rec.id), rec, close)
  tx.memo[rec.id] = rec
end

-- Derived in one place: what a user calls the state.
function execution.public_state(rec)
  local phase = rec.phase
  if phase == "active" or phase == "suspended" then return phase end
  if phase == "terminal" then
    return rec.outcome == "success" and "completed" or rec.outcome
  end
  local reason = rec.reason
  if reason == "waiting_for_quota" or reason == "waiting_for_budget" then return "rate_limited" end
  if reason == "waiting_for_dependencies" or reason == "waiting_for_children" then return "waiting_children" end
  if reason == nil and rec.delay then return "delayed" end
  if reason == nil and rec.resume then return "resumable" end
  return "waiting"
end

-- The state under which its flow counts a member.
function execution.member_state(rec)
  return rec.hidden and "held" or execution.public_state(rec)
end

-- Nothing holds it back any more, and no grant waits for it. To clear a field that is absent would make room for it.
function execution.unblock(rec)
  if rec.reason then rec.reason = nil end
  if rec.detail then rec.detail = nil end
  if rec.since then rec.since = nil end
  if rec.grant then rec.grant, rec.grant_worker, rec.grant_until = nil, nil, nil end
end

function execution.block(rec, reason, detail, now)
  execution.unblock(rec)
  rec.reason, rec.since = reason, now
  if detail then rec.detail = cmsgpack.pack(detail) end
end

return execution
end

source["record.running"] = function(require, LIBRARY)
-- The stored bytes of executions that are submitted, start and complete in the plain way (transition/plain.lua), and of
-- the events that tell it, put together by hand. The values are in the order of record/fields.lua.
local bytes = require "lib.bytes"

local running = {}

local head, list, none, number, text = bytes.head, bytes.list, bytes.none, bytes.number, bytes.text
local one = bytes.number(1)

-- The place and the kind of an execution, as its record and its events have them.
local function place_of(path, kind)
  return head[#path] .. path .. head[#kind] .. kind
end

-- Submitted -------------------------------------------------------------------------------------

local submitted_from = list(11) .. text("execution.submitted")
local submitted_to = none .. none .. none .. none .. text("state") .. text("waiting")
local new, runnable = list(15), text("runnable")

-- The record and the event of a submission.
function running.submitted(tx, id, path, kind, queue, retention, prio, score, digest, input, named)
  local place, now = place_of(path, kind), tx.now_packed
  return new .. place .. now .. head[#queue] .. queue .. number(retention) .. runnable .. number(prio) .. number(score)
    .. now .. none .. head[#digest] .. digest .. (input and one or none) .. none .. text(named) .. none,
    submitted_from .. now .. place .. head[#id] .. id .. submitted_to
end

-- Started ---------------------------------------------------------------------------------------

local active, began = text("active"), text("initial") .. text("started")
local started_from = list(15) .. text("execution.started")
local started_to = text("attempt_type") .. text("initial") .. text("continues") .. none .. text("waited_ms")
local first = number(0)

-- The values up to `ended_by` of the record of a first attempt, and its event.
function running.started(
  tx, id, attempt_id, lease_id, worker, worker_id, wake, ttl, waited,
  path, kind, created_at, queue, retention, prio, score, digest, input, tags, named, held, flow_id
)
  local place, now, wakes, who = place_of(path, kind), tx.now_packed, number(wake), head[#worker] .. worker
  local tagged = text(tags)
  return place .. number(created_at) .. head[#queue] .. queue .. number(retention) .. active .. number(prio)
    .. number(score) .. now .. wakes .. head[#digest] .. digest .. (input and one or none) .. tagged .. text(named)
    .. text(held) .. first .. head[#attempt_id] .. attempt_id .. began .. now .. head[#lease_id] .. lease_id
    .. number(tx.now_us) .. who .. head[#worker_id] .. worker_id .. wakes .. number(ttl) .. none,
    started_from .. now .. place .. head[#id] .. id .. text(flow_id) .. first .. who .. tagged .. started_to
      .. number(waited > 0 and waited or 0)
end

-- Completed -------------------------------------------------------------------------------------

local terminal, succeeded, by_complete, success =
  text("terminal"), text("succeeded"), text("complete"), text("success")
local completed_from = list(13) .. text("execution.completed")
local ran_ms, took_ms = text("ran_ms"), text("took_ms")

-- The values up to the result of the record of an execution that ends well, and its event.
function running.completed(
  tx, id, wake, ran, result, flow_id,
  path, kind, created_at, queue, retention, prio, score, digest, input, tags, named,
  attempt, attempt_id, attempt_type, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl
)
  local place, now, who, number_of = place_of(path, kind), tx.now_packed, head[#worker] .. worker, number(attempt)
  local tagged = text(tags)
  return place .. number(created_at) .. head[#queue] .. queue .. number(retention) .. terminal .. number(prio)
    .. number(score) .. now .. (wake and number(wake) or none) .. head[#digest] .. digest .. (input and one or none)
    .. tagged .. text(named) .. none .. number_of .. head[#attempt_id] .. attempt_id .. text(attempt_type) .. succeeded
    .. number(started) .. head[#lease_id] .. lease_id .. number(epoch) .. who .. head[#worker_id] .. worker_id
    .. number(lease_until) .. number(lease_ttl) .. by_complete .. now .. success .. text(result),
    completed_from .. now .. place .. head[#id] .. id .. text(flow_id) .. number_of .. who .. tagged .. ran_ms
      .. number(ran > 0 and ran or 0) .. took_ms .. number(tx.now - created_at)
end

return running
end

source["record.dependencies"] = function(require, LIBRARY)
-- What a member of a flow waits for: its inbound policy, how many of its edges are met or dead, and the edges
-- themselves.
local keys = require "lib.keys"

local dependencies = {}

-- Stored with the execution: { edges, met, dead, decided, bytes passed, edges whose failed upstream hopes for it }
-- where decided is false, "ready" or "skip".
function dependencies.load(rec)
  local d = rec.deps and cmsgpack.unpack(rec.deps) or { 0, 0, 0, false, 0, 0 }
  return { total = d[1], met = d[2], dead = d[3], decided = d[4] or nil, bytes = d[5], hopes = d[6] }
end

function dependencies.store(rec, d)
  rec.deps = cmsgpack.pack({ d.total, d.met, d.dead, d.decided or false, d.bytes, d.hopes })
end

-- True while the member may not run because of its edges.
function dependencies.waits(rec)
  return rec.hidden ~= nil or (rec.deps ~= nil and dependencies.load(rec).decided == nil)
end

-- True when one edge too many may fail without harm: the member takes up failures by going on without them.
function dependencies.is_race(rec)
  local inbound = rec.inbound
  return inbound ~= nil and inbound.policy ~= "all_of"
end

-- How many edges must be met.
function dependencies.needed(inbound, total)
  local policy = inbound and inbound.policy or "all_of"
  if policy == "all_of" then return total end
  if policy == "any_of" then return math.min(1, total) end
  return inbound.k
end

-- "ready" when the policy is met, "skip" when it no longer can be, nil while it is open.
function dependencies.judge(inbound, d)
  local needed = dependencies.needed(inbound, d.total)
  if d.met >= needed then return "ready" end
  if d.total - d.dead < needed then return "skip" end
end

-- Whether an outcome of the upstream meets an edge. One that never ran meets none.
function dependencies.meets(on, outcome)
  if on == "success" then return outcome == "success" end
  if on == "failure" then return outcome == "failed" or outcome == "expired" end
  return outcome ~= "skipped"
end

local function number(n) return string.format("%.0f", n) end

-- An edge out of a member is stored as { to, on, pass_as or false, state, hope, bytes passed }: hope says that a
-- failure of `from` may still be taken up by `to`.
local function unpack_edge(from, n, packed)
  local e = cmsgpack.unpack(packed)
  return {
    from = from, number = n, to = e[1], on = e[2], pass_as = e[3] or nil, state = e[4], hope = e[5], bytes = e[6],
  }
end

function dependencies.edge(tx, from, n)
  local packed = tx:hget(keys.edges_out(tx, from), number(n))
  return packed and unpack_edge(from, n, packed) or nil
end

-- The edges out of a member with these numbers.
function dependencies.edges(tx, from, first, last)
  local out = {}
  if last < first then return out end
  local key, fields = keys.edges_out(tx, from), {}
  for n = first, last do fields[#fields + 1] = number(n) end
  if not tx:plans(key) then
    for i, packed in ipairs(tx:hmget(key, fields)) do
      if not packed then error("CORRUPT " .. key .. " " .. fields[i]) end
      out[i] = unpack_edge(from, first + i - 1, packed)
    end
  else
    for n = first, last do out[#out + 1] = dependencies.edge(tx, from, n) end
  end
  return out
end

function dependencies.store_edge(tx, e)
  tx:hset(keys.edges_out(tx, e.from), {
    number(e.number), cmsgpack.pack({ e.to, e.on, e.pass_as or false, e.state, e.hope or false, e.bytes or 0 }),
  })
end

-- The upstreams of a member from a place on, a bounded number, each with the number of the edge there.
function dependencies.upstreams(tx, id, from, count)
  local key, out = keys.edges_in(tx, id), {}
  local flat = tx:zrange(key, number(from), number(from + count - 1), "WITHSCORES")
  for i = 1, #flat, 2 do out[#out + 1] = { from = flat[i], number = tonumber(flat[i + 1]) } end
  return out
end

-- What is passed to a member: name and upstream, with a mark in front until the edge is met.
function dependencies.promise(tx, e)
  if e.pass_as then tx:hset(keys.passed(tx, e.to), { e.pass_as, (e.state == "met" and "" or "?") .. e.from }) end
end

-- Names and upstreams of what has been passed, in the order of the names.
function dependencies.passed(tx, rec)
  local found, out = tx:hgetall(keys.passed(tx, rec.id)) or {}, {}
  for name, from in pairs(found) do
    if string.sub(from, 1, 1) ~= "?" then out[#out + 1] = { name = name, from = from } end
  end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

-- Plans the removal of everything a member's edges and an execution's children left.
function dependencies.remove_all(tx, rec)
  if rec.outs then tx:del(keys.edges_out(tx, rec.id)) end
  if rec.deps then tx:del(keys.edges_in(tx, rec.id)) end
  if rec.passes then tx:del(keys.passed(tx, rec.id)) end
  if rec.kids then tx:del(keys.children(tx, rec.id)) end
end

return dependencies
end

source["record.children"] = function(require, LIBRARY)
-- The children an execution spawned: how many, how many are still open, and what became of each.
local keys = require "lib.keys"
local execution = require "record.execution"

local children = {}

-- Stored with the parent: { spawned, not ended yet }.
function children.load(rec)
  local k = rec.kids and cmsgpack.unpack(rec.kids) or { 0, 0 }
  return { total = k[1], open = k[2] }
end

function children.store(rec, k)
  rec.kids = cmsgpack.pack({ k.total, k.open })
end

local function number(n) return string.format("%.0f", n) end

-- The ids of children from a number on, in the order they were spawned.
function children.ids(tx, rec, from, count)
  local ids = {}
  for i, item in ipairs(tx:zlowest(keys.children(tx, rec.id), number(from), "+inf", count)) do ids[i] = item.member end
  return ids
end

-- Forgets a child that is retired.
function children.forget(tx, rec)
  local parent = execution.load(tx, rec.parent_id)
  if parent then tx:zrem(keys.children(tx, parent.id), rec.id) end
end

function children.typed(tx, rec)
  local view = require "record.view"
  return {
    execution_id = rec.id, number = rec.number, key = rec.key, state = execution.public_state(rec),
    outcome = rec.outcome, result = view.result(tx, rec), result_encoding = view.result_encoding(rec),
    failure = view.failure(rec),
  }
end

-- Children from a number on, until so many or so many bytes of results; the second answer is where to go on, or nil.
function children.page(tx, rec, from, count, bytes_max)
  local out, bytes = {}, 0
  local total = children.load(rec).total
  for _, id in ipairs(children.ids(tx, rec, from, count)) do
    local child = execution.load(tx, id)
    if child then
      local typed = children.typed(tx, child)
      bytes = bytes + #(typed.result or "")
      if #out > 0 and bytes > bytes_max then return out, typed.number end
      out[#out + 1] = typed
      from = typed.number + 1
    end
  end
  return out, #out == count and from <= total and from or nil
end

return children
end

source["record.signals"] = function(require, LIBRARY)
-- The signals of an execution, in order of arrival: one stream, whose ids are `<milliseconds>-<number of the signal>`.
local keys = require "lib.keys"
local limits = require "lib.limits"

local signals = {}

-- How many arrived, and the time part of the last id.
local function counted(rec)
  local c = rec.signals and cmsgpack.unpack(rec.signals) or { 0, 0 }
  return c[1], c[2]
end

function signals.count(rec)
  return (counted(rec))
end

-- Plans the entry of a signal and answers its stream id.
function signals.append(tx, rec, s)
  local count, last = counted(rec)
  local at = math.max(tx.now, last)
  local ref = string.format("%.0f-%.0f", at, count + 1)
  rec.signals = cmsgpack.pack({ count + 1, at })
  tx:xput(keys.signals(tx, rec.id), ref, "s", cmsgpack.pack({
    s.signal_id, s.name, s.waitpoint_id or false, s.waitpoint_key or false, s.approver or false,
    s.payload or false, s.payload_encoding or false, s.category or false, s.source or false,
    s.source_identity or false, s.correlation_id or false, tx.now,
  }))
  return ref
end

-- The number of a signal, from its stream id.
function signals.number(ref)
  return tonumber(string.match(ref, "%-(%d+)$"))
end

local function typed(entry)
  local s = cmsgpack.unpack(entry[2][2])
  return {
    id = entry[1], signal_id = s[1], name = s[2], waitpoint_id = s[3] or nil, waitpoint_key = s[4] or nil,
    approver = s[5] or nil, payload = s[6] or nil, payload_encoding = s[7] or nil, category = s[8] or nil,
    source = s[9] or nil, source_identity = s[10] or nil, correlation_id = s[11] or nil, received_at = s[12],
  }
end

-- The signals after an id, oldest first; stops after enough bytes. The second answer says whether there are more.
function signals.after(tx, rec, after, limit)
  local out, bytes = {}, 0
  local from = after and "(" .. after or "-"
  local list, cut = tx:xsome(keys.signals(tx, rec.id), from, "+", limit + 1, limits.stream_read_bytes_max)
  for _, entry in ipairs(list) do
    if #out >= limit or bytes > limits.stream_read_bytes_max then return out, true end
    out[#out + 1] = typed(entry)
    bytes = bytes + #entry[2][2]
  end
  return out, cut
end

-- The signals with these ids, in order: at most `count`, and until `bytes_max` is passed. The second answer says
-- whether some are left out.
function signals.named(tx, rec, refs, from, count, bytes_max)
  local out, bytes = {}, 0
  for i = from, #refs do
    if #out >= count or bytes > bytes_max then return out, true end
    local entry = tx:xrange(keys.signals(tx, rec.id), refs[i], refs[i], 1)[1]
    if entry == nil then error("CORRUPT " .. keys.signals(tx, rec.id) .. " " .. refs[i]) end
    out[#out + 1] = typed(entry)
    bytes = bytes + #entry[2][2]
  end
  return out, false
end

-- What is remembered of a signal, by its id and by its idempotency key: { signal_id, at, outcome, effect, waitpoint_id
-- }. An idempotency key is the sender's: two approvers of one waitpoint may choose the same one.
local function key_field(waitpoint_id, approver, idempotency_key)
  return "k:"
    .. keys.digest(string.format("%s%d:", waitpoint_id, #(approver or "")) .. (approver or "") .. idempotency_key)
end

-- What is remembered of a signal with this id, and of one with this idempotency key that is not too long ago.
function signals.known(tx, rec, s, approver)
  if rec.signals == nil then return nil, nil end
  local fields = { s.signal_id }
  if s.idempotency_key then fields[2] = key_field(s.waitpoint_id, approver, s.idempotency_key) end
  local found = tx:hmget(keys.signal_keys(tx, rec.id), fields)
  local same = found[1] and cmsgpack.unpack(found[1]) or nil
  local alike = found[2] and cmsgpack.unpack(found[2]) or nil
  if alike and alike[2] + limits.signal_key_ttl_ms <= tx.now then alike = nil end
  return same, alike
end

function signals.remember(tx, rec, s, approver, outcome, effect)
  local packed = cmsgpack.pack({ s.signal_id, tx.now, outcome, effect, s.waitpoint_id })
  local fields = { s.signal_id, packed }
  if s.idempotency_key then fields[3], fields[4] = key_field(s.waitpoint_id, approver, s.idempotency_key), packed end
  tx:hset(keys.signal_keys(tx, rec.id), fields)
end

function signals.remove_all(tx, rec)
  if rec.signals == nil then return end
  tx:del(keys.signals(tx, rec.id))
  tx:del(keys.signal_keys(tx, rec.id))
end

return signals
end

source["record.waitpoint"] = function(require, LIBRARY)
-- A waitpoint: where signals for one execution arrive. It is made under a lease, is open until its suspension or its
-- attempt ends, and stays with the execution afterwards, so that a repeated signal gets its answer. One that belongs to
-- a step outlives the attempt: it is open until its wait or the execution has ended.
local inbox = require "index.inbox"
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"

local waitpoint = {}

local open, close = packed.open_waitpoint, packed.close_waitpoint

-- The execution's open waitpoints as a list of { id, key, expires_at or false, the step or nothing }; `open_due` is the
-- first end among them.
function waitpoint.open(rec)
  return rec.open and cmsgpack.unpack(rec.open) or {}
end

local function keep_open(rec, list)
  rec.open, rec.open_due = nil, nil
  if #list == 0 then return end
  rec.open, rec.waits = cmsgpack.pack(list), 1
  for _, entry in ipairs(list) do
    if entry[3] and (rec.open_due == nil or entry[3] < rec.open_due) then rec.open_due = entry[3] end
  end
end

-- True when a record of one of these ids exists already, whoever it belongs to.
function waitpoint.any_known(tx, ids)
  local list = {}
  for i, id in ipairs(ids) do list[i] = keys.waitpoint(tx, id) end
  return tx:any_exists(list)
end

-- What is wrong with a waitpoint to be opened beside those already open, or nil.
function waitpoint.problem(rec, new)
  local list = waitpoint.open(rec)
  if #list >= limits.waitpoints_open_max then
    return "key", string.format("an execution has at most %d open waitpoints", limits.waitpoints_open_max)
  end
  for _, entry in ipairs(list) do
    if entry[2] == new.key then return "key", "is the key of an open waitpoint" end
    if entry[1] == new.waitpoint_id then return "waitpoint_id", "is given twice" end
  end
  local labels, digests = {}, {}
  for _, token in ipairs(new.tokens) do
    local label = token.approver or ""
    if labels[label] then return "tokens", "hold one approver twice" end
    if digests[token.digest] then return "tokens", "hold one digest twice" end
    labels[label], digests[token.digest] = true, true
  end
end

local function fresh_tokens(new)
  local tokens = {}
  for i, token in ipairs(new.tokens) do
    tokens[i] = { token.digest, token.approver or false, new.uses or false, false }
  end
  return tokens
end

-- Gives a waitpoint other tokens in place of those it had, which die.
function waitpoint.replace_tokens(tx, w, new)
  w.tokens = cmsgpack.pack(fresh_tokens(new))
  waitpoint.save(tx, w)
end

-- Plans a new waitpoint. Its tokens are kept as { digest, approver or false, uses left or false, answered }.
function waitpoint.create(tx, rec, new, state, suspension_id, step)
  local tokens = fresh_tokens(new)
  local expires_at = new.expires_in_ms and tx.now + new.expires_in_ms or false
  waitpoint.save(tx, {
    id = new.waitpoint_id, exec = rec.id, key = new.key, state = state, attempt = rec.attempt, created = tx.now,
    expires = expires_at or nil, uses = new.uses, suspension = suspension_id, review = new.review and 1 or nil,
    step = step,
    tokens = cmsgpack.pack(tokens),
    allowed = new.allowed_signals and #new.allowed_signals > 0 and cmsgpack.pack(new.allowed_signals) or nil,
  })
  inbox.add(tx, new.waitpoint_id, tx.now)
  local list = waitpoint.open(rec)
  list[#list + 1] = { new.waitpoint_id, new.key, expires_at, step }
  keep_open(rec, list)
end

-- The waitpoint, read once per plan.
function waitpoint.load(tx, id)
  local key = keys.waitpoint(tx, id)
  local known = tx.memo[key]
  if known then return known end
  local stored = tx:record(key)
  if stored == nil then return nil end
  local w = open(key, stored)
  w.id = id
  tx.memo[key] = w
  return w
end

function waitpoint.save(tx, w)
  local key = keys.waitpoint(tx, w.id)
  tx:put(key, w, close)
  tx.memo[key] = w
end

-- Its tokens: { digest, approver or false, uses left or false, answered } each.
function waitpoint.tokens(w)
  return cmsgpack.unpack(w.tokens)
end

-- Signals that wait for the suspend: { stream id, name, who } each.
function waitpoint.early(w)
  return w.early and cmsgpack.unpack(w.early) or {}
end

-- A pending waitpoint becomes part of a suspension, which has counted its early signals.
function waitpoint.activate(tx, w, suspension_id)
  w.state, w.suspension, w.early = "active", suspension_id, nil
  waitpoint.save(tx, w)
end

-- Its early signals no longer count.
local function drop_early(tx, id)
  local w = waitpoint.load(tx, id)
  if w and w.early then
    w.early = nil
    waitpoint.save(tx, w)
  end
end

-- Waitpoints whose time was over before the suspend but that were answered: { id, key, the step or nothing } each.
-- Their signals came in time and count then.
function waitpoint.answered(rec)
  return rec.answered and cmsgpack.unpack(rec.answered) or {}
end

-- Their early signals no longer count: of those that `which` picks, of all when absent.
function waitpoint.forget_answered(tx, rec, which)
  local stay = {}
  for _, entry in ipairs(waitpoint.answered(rec)) do
    if which == nil or which(entry) then
      drop_early(tx, entry[1])
    else
      stay[#stay + 1] = entry
    end
  end
  rec.answered = #stay > 0 and cmsgpack.pack(stay) or nil
end

local function keep_answered(rec, entry)
  local list = waitpoint.answered(rec)
  list[#list + 1] = { entry[1], entry[2], entry[4] }
  rec.answered, rec.waits = cmsgpack.pack(list), 1
end

-- What becomes of the early signals of a waitpoint that closes; once it is part of a suspension it has none.
local function settle_early(tx, rec, entry, why)
  if why ~= "expired" then return drop_early(tx, entry[1]) end
  local w = waitpoint.load(tx, entry[1])
  if w and w.early then keep_answered(rec, entry) end
end

function waitpoint.remove(tx, id)
  local key = keys.waitpoint(tx, id)
  tx:del(key)
  tx.memo[key] = nil
end

-- Closed waitpoints are kept in number; the oldest leave.
local function keep_closed(tx, rec, ids)
  local kept = rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}
  for _, id in ipairs(ids) do kept[#kept + 1] = id end
  while #kept > limits.waitpoints_kept_max do waitpoint.remove(tx, table.remove(kept, 1)) end
  rec.closed_waits, rec.waits = cmsgpack.pack(kept), 1
end

-- Closes the open waitpoints that `which` picks, all when absent. Answers how many.
function waitpoint.close(tx, rec, why, which)
  if rec.open == nil then return 0 end
  local stay, gone = {}, {}
  for _, entry in ipairs(waitpoint.open(rec)) do
    if which == nil or which(entry) then
      gone[#gone + 1] = entry[1]
      settle_early(tx, rec, entry, why)
      local w = waitpoint.load(tx, entry[1])
      if w then
        w.state, w.closed, w.why = "closed", tx.now, why
        waitpoint.save(tx, w)
      end
      inbox.remove(tx, entry[1])
    else
      stay[#stay + 1] = entry
    end
  end
  keep_open(rec, stay)
  if #gone > 0 then keep_closed(tx, rec, gone) end
  return #gone
end

-- Plans the removal of everything the execution's waitpoints left.
function waitpoint.remove_all(tx, rec)
  for _, entry in ipairs(waitpoint.open(rec)) do
    inbox.remove(tx, entry[1])
    waitpoint.remove(tx, entry[1])
  end
  for _, id in ipairs(rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}) do waitpoint.remove(tx, id) end
end

-- Whether an open waitpoint is part of a wait under this step, or of one without a step.
function waitpoint.takes_part(entry, step)
  return entry[4] == nil or entry[4] == step
end

-- The open waitpoints as the execution's owner sees them; `step` is the one that the current suspension belongs to.
function waitpoint.typed_open(rec, step)
  local out = {}
  for i, entry in ipairs(waitpoint.open(rec)) do
    local active = rec.phase == "suspended" and waitpoint.takes_part(entry, step)
    out[i] = {
      waitpoint_id = entry[1], key = entry[2], state = active and "active" or "pending", expires_at = entry[3] or nil,
    }
  end
  return out
end

return waitpoint
end

source["record.suspension"] = function(require, LIBRARY)
-- The current suspension of an execution, its past ones, and what the next claim of the attempt is told.
local keys = require "lib.keys"
local limits = require "lib.limits"
local condition = require "transition.condition"
local signals = require "record.signals"
local waitpoint = require "record.waitpoint"

local suspension = {}

-- Stored as a list: id, reason, since, timeout behavior, condition state, the waitpoint that an escalation
-- opens or false, the name of the wait or false, and 1 when it is a step, which outlives its attempt.
function suspension.load(rec)
  if rec.wait == nil then return nil end
  local w = cmsgpack.unpack(rec.wait)
  return {
    id = w[1], reason = w[2], at = w[3], behavior = w[4], condition = w[5], review_id = w[6] or nil, step = w[7] or nil,
    recorded = w[8] ~= nil and w[7] or nil,
  }
end

function suspension.store(rec, w)
  rec.waits = 1
  rec.wait = cmsgpack.pack({
    w.id, w.reason, w.at, w.behavior, w.condition, w.review_id or false, w.step or false, w.recorded and 1 or nil,
  })
end

-- Files the current suspension as past.
function suspension.ended(tx, rec, w, cause, actor)
  local list = rec.past_waits and cmsgpack.unpack(rec.past_waits) or {}
  list[#list + 1] = { w.id, w.reason, rec.attempt, w.at, tx.now, cause, actor or false }
  if #list > limits.suspensions_kept_max then table.remove(list, 1) end
  rec.past_waits, rec.waits = cmsgpack.pack(list), 1
  rec.wait, rec.wait_until = nil, nil
end

function suspension.past(rec)
  local out = {}
  for i, w in ipairs(rec.past_waits and cmsgpack.unpack(rec.past_waits) or {}) do
    out[i] = {
      suspension_id = w[1], reason = w[2], attempt_index = w[3], suspended_at = w[4], ended_at = w[5], cause = w[6],
      actor = w[7] or nil,
    }
  end
  return out
end

function suspension.typed(rec)
  local w = suspension.load(rec)
  if w == nil then return nil end
  return {
    suspension_id = w.id, reason = w.reason, suspended_at = w.at, timeout_at = rec.wait_until,
    timeout_behavior = w.behavior, waitpoints = waitpoint.typed_open(rec, w.recorded),
    condition = condition.progress(w.condition),
    step = w.step,
  }
end

-- Why the attempt goes on: { suspension id, cause, stream ids of the signals, step that waited or false, the operator
-- who ended a step's wait }; kept until the attempt ends or suspends again.
function suspension.woken(rec)
  if rec.woken == nil then return nil end
  local w = cmsgpack.unpack(rec.woken)
  return { id = w[1], cause = w[2], refs = w[3], step = w[4] or nil, actor = w[5] }
end

-- The end of a wait as a handler gets to see it: its signals from the `from`-th on; more are read apart.
function suspension.told(tx, rec, w, from)
  local list, more = signals.named(
    tx, rec, w.refs, from or 1, limits.resume_inline_signals_max, limits.resume_inline_bytes_max
  )
  return { suspension_id = w.id, cause = w.cause, signals = list, more = more, step = w.step, actor = w.actor }
end

-- What the worker that continues the attempt gets to see.
function suspension.resume(tx, rec)
  local w = suspension.woken(rec)
  if w == nil then return nil end
  local told = suspension.told(tx, rec, w)
  if w.cause == "children" then
    local page, rest = require("record.children").page, nil
    told.children, rest = page(tx, rec, 1, limits.children_inline_max, limits.resume_inline_bytes_max)
    told.more_children = rest and true or nil
  end
  told.continuation = rec.continued and tx:get(keys.continuation(tx, rec.id)) or nil
  told.continuation_encoding = rec.continued ~= "*" and rec.continued or nil
  return told
end

-- What the worker left for whoever continues the attempt, in place of what an earlier wait left.
-- Without an encoding it is kept under `*`, which is none.
function suspension.replace_continuation(tx, rec, bytes, encoding)
  if bytes then
    tx:set(keys.continuation(tx, rec.id), bytes)
  elseif rec.continued then
    tx:del(keys.continuation(tx, rec.id))
  end
  rec.continued = bytes and (encoding or "*") or nil
end

-- Nothing of a wait outlives its attempt.
function suspension.forget(tx, rec)
  if rec.continued then tx:del(keys.continuation(tx, rec.id)) end
  rec.woken, rec.continued = nil, nil
end

return suspension
end

source["record.step"] = function(require, LIBRARY)
-- The steps of an execution: what its handler has done, and what it waits for under a name. One hash holds them: the
-- number of a step under its name, the step under its number. Large results are in a hash of their own, by number.
--
-- **Invariant:** steps are numbered 1, 2, 3, … in the order in which they were first recorded. The execution's record
-- counts them and the bytes of their results, so a write reads no other step.
local children = require "record.children"
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"
local reply = require "lib.reply"
local signals = require "record.signals"
local suspension = require "record.suspension"

local step = {}

local open, close = packed.open_step, packed.close_step

local function by_number(n) return string.format("%.0f", n) end
-- Names are marked, since a name may look like a number.
local function by_name(name) return "=" .. name end

local function opened(tx, rec, number, stored)
  local key = keys.steps(tx, rec.id)
  if not stored then error("CORRUPT " .. key .. " " .. by_number(number), 0) end
  local s = open(key .. " " .. by_number(number), stored)
  s.number = number
  return s
end

-- The step of this name, or nil.
function step.find(tx, rec, name)
  if rec.steps == nil then return nil end
  local key = keys.steps(tx, rec.id)
  local number = tonumber(tx:hget(key, by_name(name)))
  return number and opened(tx, rec, number, tx:hget(key, by_number(number)))
end

-- Steps as they are stored, from a number on: at most so many, and until so many bytes; a page has one at least. The
-- second answer is where to go on, or nil.
function step.stored(tx, rec, from, count, bytes_max)
  local out, bytes, number, last = {}, 0, from, rec.steps or 0
  while number <= last and #out < count do
    local fields = {}
    for n = number, math.min(last, number + limits.steps_page_max - 1) do fields[#fields + 1] = by_number(n) end
    for i, stored in ipairs(tx:hmget(keys.steps(tx, rec.id), fields)) do
      if not stored then error("CORRUPT " .. keys.steps(tx, rec.id) .. " " .. fields[i], 0) end
      bytes = bytes + #stored
      if #out == count or (#out > 0 and bytes > bytes_max) then return out, number + i - 1 end
      out[#out + 1] = stored
    end
    number = number + #fields
  end
  return out, number <= last and number or nil
end

-- The same, opened.
function step.page(tx, rec, from, count, bytes_max)
  local list, rest = step.stored(tx, rec, from, count, bytes_max)
  for i, stored in ipairs(list) do list[i] = opened(tx, rec, from + i - 1, stored) end
  return list, rest
end

-- What a claim carries, and how many bytes it is at most.
function step.carried(tx, rec)
  if rec.steps == nil then return nil, nil end
  local list, rest = step.stored(tx, rec, 1, limits.steps_max, limits.steps_carried_bytes_max)
  return list, rest and true or nil
end

function step.weight(rec)
  if rec.steps == nil then return 0 end
  return math.min(rec.steps * 128 + (rec.step_bytes or 0), limits.steps_carried_bytes_max)
end

-- A sleep is over when its time has come: nobody has to write that down.
function step.state(s, now)
  if s.kind == "sleep" and s.state == "waiting" and s.due <= now then return "done" end
  return s.state
end

function step.typed(s, now)
  local state, failure = step.state(s, now), s.failure and cmsgpack.unpack(s.failure)
  return {
    name = s.name, number = s.number, kind = s.kind, state = state, tries = s.tries or 1, started_at = s.started,
    ended_at = s.ended or (state == "done" and s.due) or nil, attempt_index = s.attempt, result_bytes = s.bytes,
    failure = failure and { reason = failure[1], category = failure[2] } or nil, due_at = s.due,
    input_digest = s.digest,
  }
end

-- The result of a step, wherever it is stored.
function step.result(tx, rec, s)
  if s.far then return tx:hget(keys.step_results(tx, rec.id), by_number(s.number)) end
  return s.result
end

-- The refusal of one that is recorded as something else.
function step.changed(s, what)
  return reply.err("step_changed", { step = s.name, kind = s.kind, input_digest = s.digest, asked = what })
end

-- The refusal when there is no room for a step, or for so many bytes more; `s` is the step when it is known.
function step.full(rec, s, bytes)
  if s == nil and (rec.steps or 0) >= limits.steps_max then
    return reply.err("steps_full", { steps = rec.steps, steps_max = limits.steps_max })
  end
  if bytes and bytes > 0 and (rec.step_bytes or 0) + bytes > limits.steps_bytes_max then
    return reply.err("steps_full", { bytes = rec.step_bytes or 0, bytes_max = limits.steps_bytes_max })
  end
end

-- A new step gets its number.
local function enter(tx, rec, s)
  if s.number then return end
  rec.steps = (rec.steps or 0) + 1
  s.number = rec.steps
  tx:hput(keys.steps(tx, rec.id), by_name(s.name), by_number(s.number))
end

-- Plans a step. The execution that it belongs to is stored by the caller.
function step.put(tx, rec, s)
  enter(tx, rec, s)
  tx:hput(keys.steps(tx, rec.id), by_number(s.number), close(s))
end

-- Gives a step its result, in place of the one it had; the step is put by the caller.
function step.set_result(tx, rec, s, result, encoding)
  enter(tx, rec, s)
  local was_far = s.far
  rec.step_bytes = (rec.step_bytes or 0) - (s.bytes or 0) + #result
  s.bytes, s.result, s.far, s.result_in = #result, nil, nil, encoding ~= "json" and encoding or nil
  if #result > limits.step_inline_bytes_max then
    s.far = 1
    tx:hput(keys.step_results(tx, rec.id), by_number(s.number), result)
  else
    s.result = result
    if was_far then tx:hdel(keys.step_results(tx, rec.id), by_number(s.number)) end
  end
end

-- A new step of this attempt.
function step.new(rec, name, kind, now)
  return { name = name, kind = kind, state = "waiting", attempt = rec.attempt, started = now, tries = 1 }
end

-- Waits -----------------------------------------------------------------------------------------

-- The attempt waits under this name; asked for anew, it has begun now.
function step.wait(tx, rec, s, name, kind, started)
  s = s or step.new(rec, name, kind, started)
  s.state, s.attempt, s.started = "waiting", rec.attempt, started
  step.put(tx, rec, s)
end

-- What a wait came to: { id, cause, refs, actor, upto }; `upto` is how many children there were.
function step.found(tx, rec, name, kind, found)
  local s = step.find(tx, rec, name) or step.new(rec, name, kind, tx.now)
  s.state, s.ended = "done", tx.now
  s.found = cmsgpack.pack({ found.id, found.cause, found.refs, found.actor or false, found.upto or false })
  step.put(tx, rec, s)
end

-- The children that outlive their execution in a fork of it, as they were when it was forked.
local function kept_children(tx, rec, s, from)
  local all, out = cmsgpack.unpack(step.result(tx, rec, s)), {}
  for i = from, math.min(#all, from + limits.children_inline_max - 1) do out[#out + 1] = all[i] end
  return out, from + #out <= #all and from + #out or nil
end

local function outcomes(tx, rec, s, upto, from)
  if s.bytes then return kept_children(tx, rec, s, from) end
  local count = math.min(limits.children_inline_max, upto - from + 1)
  if count <= 0 then return {}, nil end
  local list, rest = children.page(tx, rec, from, count, limits.resume_inline_bytes_max)
  return list, rest and rest <= upto and rest or nil
end

-- What a wait that is done came to, as its handler gets to see it, from the so many-th signal or child on.
function step.resume(tx, rec, s, from)
  local w, list, rest = cmsgpack.unpack(s.found), nil, nil
  local ended = { id = w[1], cause = w[2], refs = w[3], step = s.name, actor = w[4] or nil }
  local told = suspension.told(tx, rec, ended, from)
  if w[2] == "children" then
    list, rest = outcomes(tx, rec, s, w[5], from or 1)
    told.children, told.more_children = list, rest and true or nil
  end
  return told
end

-- The ids of the children that a step spawned.
function step.spawned(s)
  return cmsgpack.unpack(s.found)[3]
end

-- Forgetting and copying --------------------------------------------------------------------------

-- Forgets the steps from a number on.
function step.forget(tx, rec, from)
  if rec.steps == nil then return end
  local key, far = keys.steps(tx, rec.id), keys.step_results(tx, rec.id)
  if from == 1 then
    tx:del(key)
    tx:del(far)
    rec.steps, rec.step_bytes = nil, nil
    return
  end
  local gone, next_one = {}, from
  while next_one do
    local list
    list, next_one = step.page(tx, rec, next_one, limits.steps_page_max, limits.steps_bytes_max)
    for _, s in ipairs(list) do gone[#gone + 1] = s end
  end
  for _, s in ipairs(gone) do
    tx:hdel(key, by_name(s.name))
    tx:hdel(key, by_number(s.number))
    if s.far then tx:hdel(far, by_number(s.number)) end
    rec.step_bytes = (rec.step_bytes or 0) - (s.bytes or 0)
  end
  rec.steps = from - 1
end

-- The signals that a wait found, in the copy's own stream.
local function copy_signals(tx, rec, copy, refs)
  local out = {}
  for i, s in ipairs((signals.named(tx, rec, refs, 1, limits.signals_max, limits.steps_bytes_max))) do
    out[i] = signals.append(tx, copy, s)
  end
  return out
end

-- Copies one finished step. Answers the refusal when what it waited for is too large to be kept.
local function copy_one(tx, rec, copy, s)
  local result, found = s.bytes and step.result(tx, rec, s), s.found and cmsgpack.unpack(s.found)
  local encoding, state = s.result_in or "json", step.state(s, tx.now)
  s.number, s.attempt, s.bytes, s.result, s.far = nil, 0, nil, nil, nil
  s.state, s.ended = state, s.ended or s.due
  if s.kind == "signal" then
    s.found = cmsgpack.pack({ found[1], found[2], copy_signals(tx, rec, copy, found[3]), found[4], false })
  elseif s.kind == "children" and result == nil then
    local list, rest = children.page(tx, rec, 1, math.max(found[5], 1), limits.step_result_bytes_max)
    if rest and rest <= found[5] then
      return reply.err("invalid_argument", {
        field = "from_step",
        problem = string.format("must not come after %s: the results of its children are too large", s.name),
      })
    end
    result = cmsgpack.pack(list)
  end
  if result then step.set_result(tx, copy, s, result, encoding) end
  step.put(tx, copy, s)
end

-- The number of the last wait for children among the steps that are copied, or 0.
local function last_join(tx, rec, before)
  local at, last = 1, 0
  while at and at < before do
    local list, rest = step.page(tx, rec, at, math.min(limits.steps_page_max, before - at), limits.steps_bytes_max)
    for _, s in ipairs(list) do
      if s.kind == "children" and s.state == "done" then last = s.number end
    end
    at = rest
  end
  return last
end

-- Copies the finished steps before a number to another execution of this partition. Spawned children belong to the
-- execution that they were spawned by, so a spawn is copied together with a later wait that has their outcomes; without
-- one the copy spawns children of its own.
function step.copy(tx, rec, copy, before)
  local at, joined = 1, last_join(tx, rec, before)
  while at and at < before do
    local list, rest = step.page(tx, rec, at, math.min(limits.steps_page_max, before - at), limits.steps_bytes_max)
    for _, s in ipairs(list) do
      local kept = s.kind ~= "spawn" or s.number < joined
      if kept and step.state(s, tx.now) == "done" then
        local refusal = copy_one(tx, rec, copy, s)
        if refusal then return refusal end
      end
    end
    at = rest
  end
end

function step.remove_all(tx, rec)
  if rec.steps == nil then return end
  tx:del(keys.steps(tx, rec.id))
  tx:del(keys.step_results(tx, rec.id))
end

return step
end

source["record.frames"] = function(require, LIBRARY)
-- The stream of an attempt: frames numbered from 0, ids `<start of the attempt in milliseconds>-<number>`, so that a
-- number gives its id. Live frames stand in a stream of their own, so that they can be dropped first. A stream is
-- closed by the end of its attempt.
local keys = require "lib.keys"
local limits = require "lib.limits"

local frames = {}

-- The running attempt's state as stored: number of the next frame, durable and live frames kept, version of the
-- summary, and the last request with the number of its first frame.
function frames.state(rec)
  local f = rec.frames and cmsgpack.unpack(rec.frames) or { 0, 0, 0, 0, false, 0 }
  return { next = f[1], kept = f[2], live = f[3], version = f[4], request = f[5] or nil, request_first = f[6] }
end

local function store(rec, f)
  rec.frames = cmsgpack.pack({ f.next, f.kept, f.live, f.version, f.request or false, f.request_first })
end

-- The id of a frame of the running attempt.
function frames.id(rec, number)
  return string.format("%.0f-%.0f", rec.started, number)
end

function frames.number(id)
  return tonumber(string.match(id, "%-(%d+)$"))
end

-- The id of the first frame that stays when the `count` oldest of a stream leave; it holds `size` frames, those of this
-- call (`planned`) last. The range is read before anything is planned for the key.
local function first_kept(tx, rec, key, count, size, planned)
  local stored = size - #planned
  if count < stored then return tx:xrange(key, "-", "+", count + 1)[count + 1][1] end
  return planned[count - stored + 1] or frames.id(rec, limits.time_ms_max)
end

-- Plans the frames and answers their ids; the oldest leave when the stream holds more than it may, live ones first.
-- `request` is remembered with the number of its first frame.
function frames.append(tx, rec, list, request, request_first)
  local f = frames.state(rec)
  local ids, durable, live = {}, {}, {}
  for i in ipairs(list) do
    ids[i] = frames.id(rec, f.next + i - 1)
    local kind = list[i].mode == "live" and live or durable
    kind[#kind + 1] = ids[i]
  end
  local kept, alive = f.kept + #durable, f.live + #live
  local over = math.max(0, kept + alive - (rec.max_frames or limits.frames_default))
  local drop_live = math.min(over, alive)
  local drop = over - drop_live
  local key, live_key = keys.stream(tx, rec.id, rec.attempt), keys.stream_live(tx, rec.id, rec.attempt)
  local live_from = drop_live > 0 and first_kept(tx, rec, live_key, drop_live, alive, live)
  local from = drop > 0 and first_kept(tx, rec, key, drop, kept, durable)
  for i, frame in ipairs(list) do
    local packed = cmsgpack.pack({
      frame.type, tx.now, frame.payload or false, frame.payload_encoding or false, frame.correlation_id or false,
      frame.mode,
    })
    tx:xput(frame.mode == "live" and live_key or key, ids[i], "f", packed)
  end
  if live_from then tx:xcut(live_key, live_from) end
  if from then tx:xcut(key, from) end
  if request then f.request, f.request_first = request, request_first end
  f.next, f.kept, f.live = f.next + #list, kept - drop, alive - drop_live
  store(rec, f)
  return ids
end

function frames.store_summary(tx, rec, document)
  local f = frames.state(rec)
  f.version = f.version + 1
  store(rec, f)
  tx:set(keys.stream_summary(tx, rec.id, rec.attempt), cmsgpack.pack({ f.version, document }))
end

local function typed(entry)
  local f = cmsgpack.unpack(entry[2][2])
  return {
    id = entry[1], sequence = frames.number(entry[1]), type = f[1], at = f[2], payload = f[3] or nil,
    payload_encoding = f[4] or nil, correlation_id = f[5] or nil, mode = f[6],
  }
end

-- Frames of an attempt between two ids, both kinds in one order; stops after enough bytes. The second answer says
-- whether there may be more. Neither kind is read less far than the answer goes: each alone would fill it.
function frames.read(tx, id, attempt, from, to, limit)
  limit = math.min(limit, limits.stream_page_max)
  local list, cut = tx:xsome(keys.stream(tx, id, attempt), from, to, limit + 1, limits.stream_read_bytes_max)
  local live, live_cut = tx:xsome(keys.stream_live(tx, id, attempt), from, to, limit + 1, limits.stream_read_bytes_max)
  for _, entry in ipairs(live) do list[#list + 1] = entry end
  table.sort(list, function(a, b) return frames.number(a[1]) < frames.number(b[1]) end)
  local out, bytes = {}, 0
  for _, entry in ipairs(list) do
    if #out >= limit or bytes > limits.stream_read_bytes_max then return out, true end
    out[#out + 1] = typed(entry)
    bytes = bytes + #entry[2][2]
  end
  return out, cut or live_cut
end

-- The number of the first frame of a stream written at `at` or later; `count` frames were written in all.
local function first_since(tx, key, started, count, at)
  local low, high, found = 0, count, count
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = tx:xrange(key, string.format("%.0f-%.0f", started, middle), "+", 1)[1]
    local number = entry and frames.number(entry[1]) or count
    if entry and cmsgpack.unpack(entry[2][2])[2] < at then low = number + 1 else high, found = middle, number end
  end
  return found
end

-- A place in the stream of an attempt as the number of a frame. An id of the attempt says its number; any other time
-- stands for the first frame written then or later. `behind` puts a time without a number behind its millisecond.
function frames.place(tx, id, attempt, text, behind)
  local ms, number = string.match(text, "^(%d+)%-(%d+)$")
  ms, number = tonumber(ms), tonumber(number)
  if ms == attempt.started_at and number <= limits.time_ms_max then return number end
  if number > limits.time_ms_max and behind then ms = ms + 1 end
  local key, live_key = keys.stream(tx, id, attempt.index), keys.stream_live(tx, id, attempt.index)
  local durable = first_since(tx, key, attempt.started_at, attempt.frames, ms)
  local live = first_since(tx, live_key, attempt.started_at, attempt.frames, ms)
  return math.min(durable, live), true
end

-- How many frames the running attempt wrote.
function frames.count(rec)
  return rec.frames and frames.state(rec).next or 0
end

local function remove(tx, rec, attempt)
  tx:del(keys.stream(tx, rec.id, attempt))
  tx:del(keys.stream_live(tx, rec.id, attempt))
  tx:del(keys.stream_summary(tx, rec.id, attempt))
end

-- Files the stream with its attempt: `streams` lists the attempts that have one; the oldest leave when there are too
-- many.
function frames.close(tx, rec)
  if rec.frames == nil then return end
  local list = rec.streams and cmsgpack.unpack(rec.streams) or {}
  list[#list + 1] = rec.attempt
  if #list > limits.streams_kept_max then remove(tx, rec, table.remove(list, 1)) end
  rec.streams, rec.attempt_frames, rec.frames = cmsgpack.pack(list), frames.count(rec), nil
end

function frames.remove_all(tx, rec)
  for _, attempt in ipairs(rec.streams and cmsgpack.unpack(rec.streams) or {}) do remove(tx, rec, attempt) end
end

return frames
end

source["record.attempt"] = function(require, LIBRARY)
-- Attempts: the last one stands in the execution's own fields, finished ones before it beside the record, the oldest in
-- a hash of their own.
local keys = require "lib.keys"
local limits = require "lib.limits"
local frames = require "record.frames"
local more = require "record.more"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local attempt = {}

-- True while the attempt has not ended.
function attempt.is_open(rec)
  local state = rec.attempt_state
  return state == "started" or state == "suspended"
end

local function of_attempt(entry) return entry[4] == nil end
local function answered_of_attempt(entry) return entry[3] == nil end

-- Ends the current attempt: its waitpoints close, its stream closes, and with it ends what it waited for. Waitpoints of
-- steps stay.
-- `failure` is { reason, category } or nil; `actor` is the operator who ended it, if one did.
function attempt.finish(tx, rec, state, failure, actor)
  rec.attempt_state, rec.attempt_ended = state, tx.now
  if failure then rec.attempt_failure = cmsgpack.pack(failure) end
  if rec.waits then
    if rec.open then waitpoint.close(tx, rec, "attempt_ended", of_attempt) end
    if rec.wait then suspension.ended(tx, rec, suspension.load(rec), state, actor) end
    if rec.woken or rec.continued then suspension.forget(tx, rec) end
    if rec.answered then waitpoint.forget_answered(tx, rec, answered_of_attempt) end
    rec.satisfied = nil
  elseif rec.continued then
    suspension.forget(tx, rec)
  end
  if rec.frames then frames.close(tx, rec) end
  -- To clear a field that is absent would make room for it.
  if rec.timeout_at then rec.timeout_at = nil end
  if rec.time_left then rec.time_left = nil end
  if rec.cancel_by or rec.cancel_reason then rec.cancel_by, rec.cancel_reason = nil, nil end
  if rec.yield then rec.yield = nil end
  if rec.resume then rec.resume = nil end
end

-- The execution ends as the attempt did: what it says of its end need not be said twice.
function attempt.ended_together(rec)
  rec.attempt_ended = nil
  if rec.attempt_failure then rec.attempt_failure = nil end
end

-- The execution that ended is about to go on: what its attempt says of its end stays with the attempt.
function attempt.apart(rec)
  if rec.attempt == nil or rec.attempt_ended or attempt.is_open(rec) then return end
  rec.attempt_ended, rec.attempt_failure = rec.ended, rec.failure
end

-- The last attempt, as it is filed: a list.
local function last(rec)
  local ended = rec.attempt_ended or rec.ended
  local packed = rec.attempt_failure or (rec.attempt_ended == nil and rec.failure)
  local failure = packed and cmsgpack.unpack(packed)
  return {
    rec.attempt, rec.attempt_id, rec.attempt_type, rec.attempt_state, rec.worker, rec.started, ended, rec.epoch,
    failure and failure[1] or false, failure and failure[2] or false, rec.attempt_frames or 0,
  }
end

-- Another attempt begins: the last one makes room for it.
function attempt.file(tx, rec)
  local m = more.of(tx, rec)
  local list = m.history and cmsgpack.unpack(m.history) or {}
  list[#list + 1] = last(rec)
  if #list >= limits.attempts_inline_max then
    local oldest = table.remove(list, 1)
    tx:hset(keys.attempts(tx, rec.id), { oldest[1], cmsgpack.pack(oldest) })
    rec.spilled = (rec.spilled or 0) + 1
  end
  m.history = cmsgpack.pack(list)
  more.store(tx, rec, m)
  rec.attempt_ended, rec.attempt_failure, rec.attempt_frames = nil, nil, nil
end

-- The typed form of a filed attempt.
local function typed(a)
  return {
    index = a[1], attempt_id = a[2], type = a[3], state = a[4], worker_instance = a[5], started_at = a[6],
    ended_at = a[7], lease_epoch = a[8], failure = a[9] and { reason = a[9], category = a[10] } or nil,
    frames = a[11] or 0,
  }
end

-- The last attempt, typed, or nil when there was none.
function attempt.last(rec)
  if rec.attempt == nil then return nil end
  if not attempt.is_open(rec) then return typed(last(rec)) end
  return {
    index = rec.attempt, attempt_id = rec.attempt_id, type = rec.attempt_type, state = rec.attempt_state,
    worker_instance = rec.worker, started_at = rec.started, lease_epoch = rec.epoch, frames = frames.count(rec),
  }
end

-- Every attempt but those that stand furthest away, oldest first.
function attempt.inline(tx, rec)
  local out, m = {}, more.of(tx, rec)
  for i, a in ipairs(m.history and cmsgpack.unpack(m.history) or {}) do out[i] = typed(a) end
  out[#out + 1] = attempt.last(rec)
  return out
end

function attempt.stored(tx, rec, index)
  if rec.attempt == index then return attempt.last(rec) end
  for _, a in ipairs(attempt.inline(tx, rec)) do
    if a.index == index then return a end
  end
  local packed = tx:hget(keys.attempts(tx, rec.id), string.format("%.0f", index))
  return packed and typed(cmsgpack.unpack(packed)) or nil
end

-- The attempt asked for, or the latest one when none is.
function attempt.find(tx, rec, index)
  if index == nil then index = rec.attempt end
  return index and attempt.stored(tx, rec, index) or nil
end

return attempt
end

source["record.fence"] = function(require, LIBRARY)
-- The fence: a write is accepted from the current lease only, and a lost reply is answered again.
local reply = require "lib.reply"

local fence = {}

local function not_active(rec)
  return reply.err("execution_not_active", {
    lifecycle_phase = rec.phase, terminal_outcome = rec.outcome, lease_epoch = rec.epoch, attempt_id = rec.attempt_id,
  })
end

local function stale(rec, f)
  return reply.err("stale_lease", {
    presented_epoch = f.lease_epoch, current_epoch = rec.epoch or 0,
    worker_instance = rec.phase == "active" and rec.worker or nil,
    lease_expires_at = rec.phase == "active" and rec.lease_until or nil,
  })
end

-- Answers nil when the caller may write; "replay" when this very lease already ended by `operation` (or `other`, its
-- second ending); otherwise the refusal. A wrong fence is reported before anything else.
function fence.check(rec, f, now, operation, other)
  if rec == nil then return reply.err("execution_not_found") end
  if rec.epoch ~= f.lease_epoch or rec.lease_id ~= f.lease_id or rec.attempt_id ~= f.attempt_id then
    return stale(rec, f)
  end
  if rec.phase == "active" then
    if now >= rec.lease_until then return reply.err("lease_expired", { expired_at = rec.lease_until }) end
    return nil
  end
  if operation and rec.ended_by and (rec.ended_by == operation or rec.ended_by == other) then return "replay" end
  if rec.ended_by == "expired" then return reply.err("lease_expired", { expired_at = rec.ended_value }) end
  if rec.ended_by == "revoked" then return reply.err("lease_revoked", {}) end
  return not_active(rec)
end

fence.not_active = not_active

return fence
end

source["record.view"] = function(require, LIBRARY)
-- The typed forms of an execution that replies carry.
local keys = require "lib.keys"
local limits = require "lib.limits"
local asks = require "record.asks"
local attempt = require "record.attempt"
local children = require "record.children"
local execution = require "record.execution"
local fired = require "record.fired"
local more = require "record.more"
local signals = require "record.signals"
local spec = require "record.spec"
local suspension = require "record.suspension"
local usage = require "record.usage"
local waitpoint = require "record.waitpoint"

local view = {}

function view.result(tx, rec)
  if rec.result_far then return tx:get(keys.result(tx, rec.id)) end
  return rec.result
end

function view.result_encoding(rec)
  if rec.result or rec.result_far then return rec.result_in or "json" end
end

function view.failure(rec)
  if rec.failure == nil then return nil end
  local f = cmsgpack.unpack(rec.failure)
  return { reason = f[1], category = f[2] }
end

local function progress(rec)
  if rec.progress == nil then return nil end
  local p = cmsgpack.unpack(rec.progress)
  return { pct = p[1], message = p[2] or nil }
end

local function lease(rec)
  if rec.phase ~= "active" then return nil end
  return {
    worker_id = rec.worker_id, worker_instance = rec.worker, lease_id = rec.lease_id, lease_epoch = rec.epoch,
    expires_at = rec.lease_until, cancel_requested = rec.cancel_by ~= nil, yield_requested = rec.yield ~= nil,
  }
end

local function summary(rec)
  return {
    execution_id = rec.id, namespace = execution.namespace(rec), lane = execution.lane(rec), kind = rec.kind,
    state = execution.public_state(rec), phase = rec.phase, blocking_reason = rec.reason, outcome = rec.outcome,
    priority = rec.prio, created_at = rec.created, updated_at = rec.updated, ended_at = rec.ended,
    attempt_index = rec.attempt, worker_instance = rec.phase == "active" and rec.worker or nil, flow_id = rec.flow_id,
    parent_id = rec.parent_id, key = rec.key,
  }
end

function view.whole(tx, rec)
  local v, said = summary(rec), spec.of(tx, rec)
  v.worker_instance, v.attempt_index = nil, nil
  v.blocking_detail = rec.detail and spec.unflatten(rec.detail) or nil
  v.blocked_since = rec.reason and rec.since or nil
  v.attempt_state, v.continues, v.granted_until = rec.attempt_state, rec.resume ~= nil, rec.grant_until
  v.score, v.retire_at = rec.score, rec.phase == "terminal" and rec.wake or nil
  v.delay_until, v.deadline_at, v.start_by, v.attempt_deadline_at =
    rec.delay, rec.deadline, rec.start_by, rec.timeout_at
  v.tags, v.requires, v.prefers, v.fairness_key =
    spec.unflatten(rec.tags), rec.requires or {}, rec.prefers or {}, rec.fairness_key
  v.input, v.input_encoding = spec.input(tx, rec), rec.input_in or "json"
  v.result, v.result_encoding, v.failure = view.result(tx, rec), view.result_encoding(rec), view.failure(rec)
  v.attempts, v.attempts_spilled, v.lease, v.progress =
    attempt.inline(tx, rec), rec.spilled or 0, lease(rec), progress(rec)
  v.retry, v.attempt_timeout_ms = spec.retry(tx, rec), rec.timeout
  v.max_reclaims, v.max_replays = rec.max_reclaims or limits.reclaims_default, rec.max_replays or limits.replays_default
  v.reclaim_count, v.replay_count, v.fallback_index, v.fallbacks =
    rec.reclaims or 0, rec.replays or 0, rec.tier, said.fallbacks or {}
  v.budgets, v.quotas, v.retention_ms, v.max_frames =
    asks.of(rec).budgets, asks.of(rec).quotas, rec.retention, rec.max_frames or limits.frames_default
  v.trace_parent, v.completion_webhook, v.operator_actions = said.trace_parent, rec.webhook, more.actions(tx, rec)
  v.suspension, v.past_suspensions = suspension.typed(rec), suspension.past(rec)
  local current = suspension.load(rec)
  v.waitpoints, v.signals = waitpoint.typed_open(rec, current and current.recorded), signals.count(rec)
  v.steps, v.step_bytes = rec.steps or 0, rec.step_bytes or 0
  v.forked_from, v.forks, v.fired = rec.forked_from, more.forks(tx, rec), fired.typed(rec)
  local k = children.load(rec)
  if rec.reports then v.usage = { ledger = usage.ledger(tx, rec), pending = #usage.pending(tx, rec) } end
  v.inbound, v.nested, v.children, v.children_open = rec.inbound, rec.nested, k.total, k.open
  return v
end

return view
end

source["record.waitpoint_view"] = function(require, LIBRARY)
-- The typed form of a waitpoint that replies carry; digests of tokens stay in the store.
local condition = require "transition.condition"
local execution = require "record.execution"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local waitpoint_view = {}

local function approvers(w)
  local out = {}
  for i, token in ipairs(waitpoint.tokens(w)) do
    out[i] = { approver = token[2] or nil, uses_left = token[3] or nil, answered = token[4] }
  end
  return out
end

function waitpoint_view.typed(rec, w)
  local current = suspension.load(rec)
  local part = current ~= nil and current.id == w.suspension
  return {
    waitpoint_id = w.id, execution_id = rec.id, namespace = execution.namespace(rec), lane = execution.lane(rec),
    kind = rec.kind, key = w.key, state = w.state, suspension_id = w.suspension,
    reason = part and current.reason or nil, created_at = w.created, expires_at = w.expires, closed_at = w.closed,
    closed_reason = w.why, allowed_signals = w.allowed and cmsgpack.unpack(w.allowed) or nil, approvers = approvers(w),
    signals = w.signals or 0, condition = part and condition.progress(current.condition) or {},
  }
end

return waitpoint_view
end

source["record.worker"] = function(require, LIBRARY)
-- A registered worker instance: what it serves and what it can do. Until when it counts as alive stands in one sorted
-- set for the whole fleet, so that a server keeps all its workers alive with one write; one timer watches its head.
local keys = require "lib.keys"
local limits = require "lib.limits"
local timers = require "index.timers"

local worker = {}

worker.timer = "fleet:workers"

-- The registration, with its end when it is alive or not yet swept.
function worker.load(tx, instance, expires_at)
  local raw = tx:hgetall(keys.worker(tx, instance))
  if raw == nil then return nil end
  return {
    instance = instance, worker_id = raw.worker_id, namespace = raw.namespace, lanes = cmsgpack.unpack(raw.lanes),
    capabilities = cmsgpack.unpack(raw.capabilities), slots = tonumber(raw.slots), state = raw.state,
    incarnation = raw.incarnation, owner = raw.owner, registered_at = tonumber(raw.registered_at),
    kinds = raw.kinds and cmsgpack.unpack(raw.kinds) or nil,
    expires_at = expires_at or tx:zscore(keys.workers(tx), instance) or 0,
  }
end

-- Plans the registration and its end.
function worker.save(tx, w)
  local key = keys.worker(tx, w.instance)
  tx:hset(key, {
    "worker_id", w.worker_id, "namespace", w.namespace, "lanes", cmsgpack.pack(w.lanes),
    "capabilities", cmsgpack.pack(w.capabilities), "slots", w.slots, "state", w.state,
    "registered_at", w.registered_at,
  })
  if w.incarnation then tx:hset(key, { "incarnation", w.incarnation }) else tx:hdel(key, "incarnation") end
  if w.kinds then tx:hset(key, { "kinds", cmsgpack.pack(w.kinds) }) else tx:hdel(key, "kinds") end
  if w.owner then tx:hset(key, { "owner", w.owner }) else tx:hdel(key, "owner") end
  if w.state ~= "draining" then tx:hdel(keys.draining(tx), w.instance) end
  worker.touch(tx, w.instance)
  if tx:zscore(keys.timers(tx), worker.timer) == nil then timers.set(tx, worker.timer, w.expires_at) end
end

-- Moves the end of a registration. The timer stays: it looks again when it fires.
function worker.touch(tx, instance)
  tx:zadd(keys.workers(tx), tx.now + limits.worker_ttl_ms, instance)
end

function worker.drain(tx, instance)
  tx:hset(keys.worker(tx, instance), { "state", "draining" })
  tx:hset(keys.draining(tx), { instance, "1" })
end

-- The nonce of the challenge the holder answered last.
function worker.answered(tx, instance)
  return tx:hget(keys.worker(tx, instance), "answered")
end

function worker.answer(tx, instance, nonce)
  tx:hset(keys.worker(tx, instance), { "answered", nonce })
end

function worker.remove(tx, w)
  tx:del(keys.worker(tx, w.instance))
  tx:zrem(keys.workers(tx), w.instance)
  tx:hdel(keys.draining(tx), w.instance)
  tx:announce("fleet")
end

-- Instances in the order of their names, each with its end.
function worker.all(tx)
  local flat = tx:zrange(keys.workers(tx), "0", "-1", "WITHSCORES")
  local list = {}
  for i = 1, #flat, 2 do list[#list + 1] = { instance = flat[i], expires_at = tonumber(flat[i + 1]) } end
  table.sort(list, function(a, b) return a.instance < b.instance end)
  return list
end

return worker
end

source["record.tally"] = function(require, LIBRARY)
-- What a partition has counted of its events: how many of each kind in each lane, and how long executions waited, ran
-- and took.
--
-- An event counts once: the place up to which the stream was counted is written together with the counts, so it does
-- not matter who counts, nor how many do.
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"

local tally = {}

-- The upper bounds of the durations that are told apart; a last one has none.
tally.bounds_ms = {
  5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 900000, 3600000, 21600000, 86400000,
}

-- Kinds of events that are counted by one of their facts as well; each fact has a small number of values.
local told_apart = {
  ["execution.started"] = "attempt_type", ["execution.reclaimed"] = "cause", ["execution.failed"] = "cause",
  ["execution.blocked"] = "reason", ["execution.suspended"] = "reason",
}

local durations = { "waited_ms", "ran_ms", "took_ms" }

-- A duration as it is counted: the sum, then how many fell under each bound and not under the one before.
local function no_durations()
  local list = { 0 }
  for i = 1, #tally.bounds_ms + 1 do list[i + 1] = 0 end
  return list
end

-- The tally: `at` is the entry of the stream up to which it goes, nil while nothing was counted, `number` that of its
-- last event; `names` are those of the counts.
function tally.load(tx)
  local raw = tx:hgetall(keys.tally(tx)) or {}
  local t = {
    raw = raw, at = raw.at, number = tonumber(raw.number or nil), gaps = tonumber(raw.gaps or "0"),
    names = raw.names and cmsgpack.unpack(raw.names) or {}, numbers = {}, lines = {}, order = {}, changed = {},
  }
  for i, name in ipairs(t.names) do t.numbers[name] = i end
  for name in pairs(raw) do
    if string.find(name, "/", 1, true) then t.order[#t.order + 1] = name end
  end
  table.sort(t.order)
  return t
end

-- One line, by the lane's path: its counts in the order of the names, and its durations.
local function line(t, path)
  local known = t.lines[path]
  if known then return known end
  local packed = t.raw[path]
  if packed == nil then
    if #t.order >= limits.tally_lines_max and path ~= "other/other" then return line(t, "other/other") end
    t.order[#t.order + 1] = path
  end
  known = packed and cmsgpack.unpack(packed) or { {}, no_durations(), no_durations(), no_durations() }
  t.lines[path] = known
  return known
end

local function number_of(t, name)
  local number = t.numbers[name]
  if number == nil then
    number = #t.names + 1
    t.names[number], t.numbers[name] = name, number
  end
  return number
end

local function add_duration(list, ms)
  list[1] = list[1] + ms
  local place = #tally.bounds_ms + 1
  for i, bound in ipairs(tally.bounds_ms) do
    if ms <= bound then
      place = i
      break
    end
  end
  list[place + 1] = list[place + 1] + 1
end

-- Counts one event as it is stored.
local function add(t, e)
  local data, name = {}, e[1]
  for i = event.data_from, #e, 2 do data[e[i]] = e[i + 1] end
  local apart = told_apart[name]
  if data.continues == true then
    name = name .. ":continuation"
  elseif apart and data[apart] then
    name = name .. ":" .. data[apart]
  end
  local l = line(t, e[3])
  local counts, number = l[1], number_of(t, name)
  for i = #counts + 1, number do counts[i] = 0 end
  counts[number] = counts[number] + 1
  for i, duration in ipairs(durations) do
    if data[duration] then add_duration(l[i + 1], data[duration]) end
  end
end

-- Counts what has not been counted, up to the id `to`, in at most `limit` entries; true when that many were there, so
-- that more may be. Events are numbered: a number that does not follow on the last one counted says that some were cut
-- off before.
function tally.count(tx, t, to, limit)
  local entries = tx:xrange(keys.events(tx), t.at and "(" .. t.at or "-", to, limit)
  if #entries == 0 then return false end
  if t.at and tonumber(entries[1][2][1]) ~= t.number + 1 then t.gaps = t.gaps + 1 end
  local number
  for _, entry in ipairs(entries) do
    number = tonumber(entry[2][1]) - 1
    for _, e in ipairs(event.all(entry[2][2])) do
      add(t, e)
      t.last_at, number = e[2], number + 1
    end
  end
  t.at, t.number = entries[#entries][1], number
  local fields = { "at", t.at, "number", t.number, "gaps", t.gaps, "names", cmsgpack.pack(t.names) }
  for _, path in ipairs(t.order) do
    if t.lines[path] then fields[#fields + 1], fields[#fields + 2] = path, cmsgpack.pack(t.lines[path]) end
  end
  tx:hset(keys.tally(tx), fields)
  return #entries == limit
end

-- Every line, typed, in the order of their lanes.
function tally.typed(t)
  table.sort(t.order)
  local list = {}
  for i, path in ipairs(t.order) do
    local l = line(t, path)
    local namespace, name = string.match(path, "^(.-)/(.*)$")
    list[i] = { namespace = namespace, lane = name, counts = l[1], waited = l[2], ran = l[3], took = l[4] }
  end
  return list
end

return tally
end

source["index.queues"] = function(require, LIBRARY)
-- The queues of a lane: one for each kind and requirement set it has work of. A queue's name is its class, which stands
-- for what its work requires and whether it needs admission, and its kind.
--
-- The first queue of a lane is its main one, which every claim looks at. The others stand in one sorted set by the
-- score of their head, or of something better that is gone already: so a claim finds the best it may run among
-- thousands of them. Those without eligible work stand behind all others.
local keys = require "lib.keys"
local limits = require "lib.limits"
local lane = require "record.lane"

local queues = {}

local sub, find, concat = string.sub, string.find, table.concat
local idle = limits.granted_from

queues.idle = idle

-- The class of work by what it requires; work that needs admission has classes of its own.
function queues.class(requires, admission)
  local class = #requires == 0 and "any" or keys.digest(concat(requires, ","))
  return admission and "admit." .. class or class
end

function queues.name(class, kind)
  return class .. ":" .. kind
end

-- The class and the kind of a queue.
function queues.parts(name)
  local colon = find(name, ":", 1, true)
  return sub(name, 1, colon - 1), sub(name, colon + 1)
end

-- True for a queue whose work needs admission.
function queues.admits(name)
  return sub(name, 1, 6) == "admit."
end

-- True for work that requires nothing.
function queues.plain(class)
  return class == "any" or class == "admit.any"
end

local function pack(entry)
  return cmsgpack.pack({ entry.requires, entry.uncovered_since or false, entry.uncovered, entry.kind_missing or false })
end

local function unpack_entry(name, packed)
  local l, class, kind = cmsgpack.unpack(packed), queues.parts(name)
  return {
    queue = name, class = class, kind = kind, admission = queues.admits(name), requires = l[1],
    uncovered_since = l[2] or nil, uncovered = l[3], kind_missing = l[4] or nil,
  }
end

-- What was read of a lane's queues stays with its copy, like everything the partition remembers of it.
local function know(tx, path, name, entry)
  local copy = lane.load(tx, path)
  if copy then copy.queues[name] = entry end
end

function queues.put(tx, path, entry)
  tx:hput(keys.queues(tx, path), entry.queue, pack(entry))
  know(tx, path, entry.queue, entry)
  local copy = entry.uncovered_since and lane.load(tx, path)
  if copy then lane.remember(tx, copy, "uncovered", "1") end
end

function queues.get(tx, path, name)
  local copy = lane.load(tx, path)
  local entry = copy and copy.queues[name]
  if entry == nil then
    local packed = tx:hget(keys.queues(tx, path), name)
    entry = packed and unpack_entry(name, packed) or false
    know(tx, path, name, entry)
  end
  return entry or nil
end

-- The queue, when it is known that no live worker runs what is in it.
function queues.without_worker(tx, path, name)
  local copy = lane.load(tx, path)
  if copy == nil then return nil end
  lane.prepare(tx, copy)
  local entry = lane.recall(tx, copy, "uncovered") and queues.get(tx, path, name)
  return entry and entry.uncovered and entry or nil
end

-- Several queues at once, in this order; false for one that is not there.
function queues.several(tx, path, names)
  if #names == 0 then return {} end
  local list = {}
  for i, packed in ipairs(tx:hmget(keys.queues(tx, path), names)) do
    list[i] = packed and unpack_entry(names[i], packed) or false
  end
  return list
end

-- What a lane remembers, or nil where the partition does not know the lane.
local function recall(tx, path, name)
  local copy = lane.load(tx, path)
  return copy and lane.recall(tx, copy, name)
end

-- The queue that every claim looks at, or nil.
function queues.main(tx, path)
  return recall(tx, path, "main")
end

-- Quiet queues ----------------------------------------------------------------------------------

-- The name under which a lane remembers that a queue is quiet.
local function quiet_name(tx, copy, name)
  return lane.recall(tx, copy, "main") == name and "quiet" or "quiet:" .. name
end

-- True while dispatchers come back for what is in the queue without being told.
function queues.quiet(tx, copy, name)
  return lane.recall(tx, copy, quiet_name(tx, copy, name)) ~= nil
end

function queues.set_quiet(tx, copy, name, quiet)
  lane.remember(tx, copy, quiet_name(tx, copy, name), quiet and "1" or nil)
end

-- Reads at once what is about to be asked of several queues.
function queues.prepare_quiet(tx, copy, names)
  local wanted = {}
  for i = 1, #names do
    local name = quiet_name(tx, copy, names[i])
    if copy.remembered[name] == nil then wanted[#wanted + 1] = name end
  end
  if #wanted > 1 then lane.recall_all(tx, copy, wanted) end
end

-- Heads -----------------------------------------------------------------------------------------

-- The score under which a queue stands among the heads; nil for one that is not there.
local function head_of(tx, path, name)
  local copy = lane.load(tx, path)
  local known = copy and copy.heads[name]
  if known == nil then
    known = tx:zscore(keys.heads(tx, path), name)
    if copy then copy.heads[name] = known end
  end
  return known
end

function queues.set_head(tx, path, name, score)
  tx:zadd(keys.heads(tx, path), score, name)
  local copy = lane.load(tx, path)
  if copy then copy.heads[name] = score end
end

-- Makes sure that the entry of an execution into a queue reads nothing; false when it is new to the lane.
function queues.foresee(tx, path, name)
  local copy = lane.load(tx, path)
  if copy == nil then return false end
  lane.prepare(tx, copy)
  if lane.recall(tx, copy, "uncovered") then return false end
  queues.quiet(tx, copy, name)
  return lane.recall(tx, copy, "main") == name or head_of(tx, path, name) ~= nil
end

-- Coming and going ------------------------------------------------------------------------------

local function remember(tx, path, name, mark)
  local copy = lane.load(tx, path)
  if copy then lane.remember(tx, copy, name, mark) end
end

-- The lane remembers that some of its work needs admission until its last such queue is gone.
local function forget_admission(tx, path, gone)
  for name in pairs(tx:hgetall(keys.queues(tx, path)) or {}) do
    if name ~= gone and queues.admits(name) then return end
  end
  remember(tx, path, "admits", nil)
end

-- The lane remembers that it has queues beside its main one.
local function forget_others(tx, path)
  local key = keys.heads(tx, path)
  if not tx:plans(key) and tx:zstored(key) <= 1 then remember(tx, path, "others", nil) end
end

function queues.drop(tx, path, name)
  local copy = lane.load(tx, path)
  if queues.main(tx, path) == name then
    lane.remember(tx, copy, "main", nil)
    lane.remember(tx, copy, "quiet", nil)
  else
    forget_others(tx, path)
    tx:zrem(keys.heads(tx, path), name)
    tx:hdel(keys.lane_memory(tx, path), "quiet:" .. name)
    if copy then copy.heads[name], copy.remembered["quiet:" .. name] = nil, false end
  end
  tx:hdel(keys.queues(tx, path), name)
  know(tx, path, name, false)
  if queues.admits(name) then forget_admission(tx, path, name) end
end

-- A lane whose main queue is empty has a new one: so the work of a lane with one kind at a time stays near.
local function becomes_main(tx, path, name)
  local copy = lane.load(tx, path)
  if copy == nil then return false end
  local main = lane.recall(tx, copy, "main")
  if main then
    local key = keys.queue_named(tx, path, main)
    if tx:plans(key) or tx:zstored(key) > 0 then return false end
    queues.set_head(tx, path, main, idle)
    lane.remember(tx, copy, "others", "1")
    lane.remember(tx, copy, "quiet", nil)
  end
  lane.remember(tx, copy, "main", name)
  return true
end

local function register(tx, path, name, requires, score)
  local class, kind = queues.parts(name)
  local main = becomes_main(tx, path, name)
  queues.put(tx, path, { queue = name, class = class, kind = kind, requires = requires or {}, uncovered = false })
  if queues.admits(name) then remember(tx, path, "admits", "1") end
  if main then return end
  remember(tx, path, "others", "1")
  queues.set_head(tx, path, name, score or idle)
end

-- Nobody covered what was in the queue before; that says nothing about what comes now.
local function begin_anew(tx, path, name)
  local entry = queues.get(tx, path, name)
  local key = keys.queue_named(tx, path, name)
  if entry and entry.uncovered_since and not entry.uncovered and not tx:plans(key) and tx:zstored(key) == 0 then
    entry.uncovered_since = nil
    queues.put(tx, path, entry)
  end
end

-- An execution enters a queue, with its `score` when it can be claimed. True when the queue is new to the lane.
function queues.entered(tx, path, name, requires, score)
  local copy = lane.load(tx, path)
  if copy and lane.recall(tx, copy, "uncovered") then begin_anew(tx, path, name) end
  if copy and lane.recall(tx, copy, "main") == name then return false end
  local head = head_of(tx, path, name)
  if head == nil then
    register(tx, path, name, requires, score)
    return true
  end
  if score and score < head then queues.set_head(tx, path, name, score) end
  return false
end

-- Makes a queue known again, with an execution that is eligible in it.
function queues.mend(tx, path, name, requires, score)
  local copy = lane.load(tx, path)
  if copy then copy.heads[name] = nil end
  if queues.get(tx, path, name) == nil then
    local class, kind = queues.parts(name)
    queues.put(tx, path, { queue = name, class = class, kind = kind, requires = requires or {}, uncovered = false })
    if queues.admits(name) then remember(tx, path, "admits", "1") end
  end
  if queues.main(tx, path) == name then return end
  remember(tx, path, "others", "1")
  local head = tx:zscore(keys.heads(tx, path), name)
  if head == nil or score < head then queues.set_head(tx, path, name, score) end
end

-- Forgets a queue of another lane that an execution was moved from: `leaving` of its entries go with this call. Nothing
-- else of that kind may ever end there.
function queues.left(tx, path, name, leaving)
  if tx:zstored(keys.queue_named(tx, path, name)) > leaving then return end
  local entry = queues.get(tx, path, name)
  if entry and not entry.uncovered then queues.drop(tx, path, name) end
end

-- Forgets a queue that holds nothing any more. Those that look at it do so, and the retirement of what was in it: to
-- look whenever something leaves would cost every end a read. One marked uncovered stays, so that later work goes to
-- route at once.
function queues.tidy(tx, path, name)
  queues.left(tx, path, name, 0)
end

-- Walks -----------------------------------------------------------------------------------------

-- Every queue of a lane, in the order of their names.
function queues.all(tx, path)
  local names, found = {}, tx:hgetall(keys.queues(tx, path)) or {}
  for name in pairs(found) do names[#names + 1] = name end
  table.sort(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = unpack_entry(name, found[name]) end
  return list
end

-- The names of the main queue and of up to `count` others behind the first `skip`, by their heads.
function queues.page(tx, path, skip, count)
  local names, main = {}, skip == 0 and queues.main(tx, path)
  if main then names[1] = main end
  local from, to = string.format("%.0f", skip), string.format("%.0f", skip + count - 1)
  for _, name in ipairs(tx:zrange(keys.heads(tx, path), from, to)) do names[#names + 1] = name end
  return names
end

-- The names whose entries cannot be read.
function queues.unreadable(tx, path)
  local names = {}
  for name, packed in pairs(tx:hgetall(keys.queues(tx, path)) or {}) do
    if not pcall(unpack_entry, name, packed) then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

function queues.covered(requires, capabilities)
  for _, token in ipairs(requires) do
    if not capabilities[token] then return false end
  end
  return true
end

return queues
end

source["index.awaits"] = function(require, LIBRARY)
-- Who waits for what is kept in another partition: the line of each budget, by queue score, and those whose quota is
-- not there, by the time they were refused.
local keys = require "lib.keys"
local limits = require "lib.limits"
local spec = require "record.spec"

local awaits = {}

-- The key and score that the state implies; nothing for work that waits for none of these.
function awaits.of(tx, rec)
  if rec.phase ~= "runnable" or rec.detail == nil then return nil end
  if rec.reason == "waiting_for_budget" then
    local id = spec.unflatten(rec.detail).budget_id
    if id then return keys.awaits(tx, id), rec.score end
  elseif rec.reason == "waiting_for_quota" and spec.unflatten(rec.detail).problem then
    return keys.missing(tx), rec.since
  end
end

-- Plans the entry that the record's state implies.
function awaits.keep(tx, rec)
  local key, score = awaits.of(tx, rec)
  local was = rec.was_awaits
  if was == key and rec.was_awaits_at == score then return end
  if was and was ~= key then tx:zrem(was, rec.id) end
  if key then tx:zadd(key, score, rec.id) end
  rec.was_awaits, rec.was_awaits_at = key, score
end

-- Up to `count` entries of a line behind a position, the first to go on first.
function awaits.page(tx, key, after, count)
  local from = after and string.format("%.0f", after.score) or "-inf"
  local out, skip = {}, 0
  while #out < count do
    local found = tx:zlowest(key, from, "+inf", limits.list_looks_max, skip)
    for _, item in ipairs(found) do
      local behind = after == nil or item.score > after.score or item.member > after.execution_id
      if behind and #out < count then out[#out + 1] = item end
    end
    if #found < limits.list_looks_max then break end
    skip = skip + limits.list_looks_max
  end
  return out
end

function awaits.position(item)
  return { score = item.score, execution_id = item.member }
end

return awaits
end

source["index.gone"] = function(require, LIBRARY)
-- Budgets and quotas that were deleted: work may wait under their names, and is told when one comes back.
local keys = require "lib.keys"
local limits = require "lib.limits"

local gone = {}

function gone.note(tx, id)
  local until_ms = string.format("%.0f", tx.now - limits.gone_kept_ms)
  for _, old in ipairs(tx:zlowest(keys.gone(tx), "-inf", until_ms, limits.batch_max)) do
    tx:zrem(keys.gone(tx), old.member)
  end
  tx:zadd(keys.gone(tx), tx.now, id)
end

-- True for one that was deleted not long ago: to delete it again is no mistake.
function gone.had(tx, id)
  return tx:zscore(keys.gone(tx), id) ~= nil
end

-- One of this name is made: true when there was one before.
function gone.back(tx, id)
  if tx:zscore(keys.gone(tx), id) == nil then return false end
  tx:zrem(keys.gone(tx), id)
  return true
end

return gone
end

source["index.home"] = function(require, LIBRARY)
-- Where an execution's state puts it: exactly one entry in exactly one sorted set of its lane.
--
-- Work that could run, is granted, or runs shares one set per queue, in three bands of scores: eligible work by its
-- queue score, then granted, then active work by creation time. Starting an execution is thus one write that moves it
-- from band to band, and no execution can stand in two of them.
local keys = require "lib.keys"
local limits = require "lib.limits"
local queues = require "index.queues"
local lane = require "record.lane"

local home = {}

local granted_from, active_from = limits.granted_from, limits.active_from
home.granted_from, home.active_from = granted_from, active_from

local blocked = {
  waiting_for_capable_worker = "blocked:route", waiting_for_quota = "blocked:quota",
  waiting_for_budget = "blocked:budget", waiting_for_dependencies = "blocked:dependencies",
  waiting_for_children = "blocked:children", held_by_operator = "blocked:operator",
}

home.places = {
  "delayed", "suspended", "terminal", "blocked:route", "blocked:quota", "blocked:budget", "blocked:dependencies",
  "blocked:children", "blocked:operator",
}

-- The place and score that the state implies. `queue` is the place of what is eligible, granted or active.
function home.of(rec)
  local phase = rec.phase
  if phase == "active" then return "queue", active_from + rec.created end
  if phase == "terminal" or phase == "suspended" then return phase, rec.created end
  if rec.reason then return blocked[rec.reason], rec.since end
  if rec.delay then return "delayed", rec.created end
  if rec.grant then return "queue", granted_from + rec.created end
  return "queue", rec.score
end

-- The sorted set of a place.
function home.key(tx, rec, path, place)
  if place == "queue" then return keys.queue(tx, path, rec.queue, rec.kind) end
  return keys.place(tx, path, place)
end

-- Tells dispatchers that something can be claimed, unless they are known to be coming back anyway.
local function announce(tx, rec, name, fresh)
  local copy = not fresh and rec.prio == 0 and lane.load(tx, rec.path)
  if not copy or not queues.quiet(tx, copy, name) then tx:announce("ready", rec.path, name, rec.score) end
end

-- Plans the move from where the record was loaded to where its state puts it now. `was_path` is there when its lane
-- changed.
function home.move(tx, rec, place, score)
  local was_place, was_path = rec.was_place, rec.was_path or rec.path
  local path = rec.path
  if was_place == place and rec.was_score == score and was_path == path then return end
  local key, moved = home.key(tx, rec, path, place), was_place ~= place or was_path ~= path
  if moved and was_place then tx:zrem(home.key(tx, rec, was_path, was_place), rec.id) end
  if was_path ~= path then
    queues.left(tx, was_path, queues.name(rec.queue, rec.kind), was_place == "queue" and 1 or 0)
  end
  if place == "queue" then
    local eligible = rec.phase == "runnable" and rec.grant == nil
    if moved or eligible then
      local name = queues.name(rec.queue, rec.kind)
      local fresh = queues.entered(tx, path, name, rec.requires, eligible and score or nil)
      if eligible then announce(tx, rec, name, fresh) end
    end
  end
  tx:zadd(key, score, rec.id)
  rec.was_place, rec.was_score = place, score
  if rec.was_path then rec.was_path = nil end
end

-- Plans the removal of the entry.
function home.leave(tx, rec)
  local key = home.key(tx, rec, rec.path, rec.was_place)
  tx:zrem(key, rec.id)
end

return home
end

source["index.leases"] = function(require, LIBRARY)
-- The leases a worker instance holds in this partition: lease id → execution id.
local keys = require "lib.keys"

local leases = {}

function leases.add(tx, rec)
  tx:hput(keys.leases(tx, rec.worker), rec.lease_id, rec.id)
end

function leases.remove(tx, rec)
  tx:hdel(keys.leases(tx, rec.worker), rec.lease_id)
end

-- Lease id → execution id of every lease the instance holds here.
function leases.of(tx, instance)
  return tx:hgetall(keys.leases(tx, instance)) or {}
end

-- The ids of the executions, in order.
function leases.ids(tx, instance)
  local ids = {}
  for _, id in pairs(leases.of(tx, instance)) do ids[#ids + 1] = id end
  table.sort(ids)
  return ids
end

-- The executions that some of these leases hold, in the order of the leases, and the places of those that hold none;
-- nil when none does.
function leases.held(tx, instance, lease_ids)
  local found = tx:hmget(keys.leases(tx, instance), lease_ids)
  for i = 1, #lease_ids do
    if found[i] then
      local ids, free = {}, {}
      for at = 1, #lease_ids do
        if found[at] then ids[#ids + 1] = found[at] else free[#free + 1] = at end
      end
      return ids, free
    end
  end
end

return leases
end

source["index.timers"] = function(require, LIBRARY)
-- One entry per record that needs attention later: its next wake-up.
local keys = require "lib.keys"

local timers = {}

-- Whoever sleeps until the head must hear of an earlier one.
local function announce(tx, at)
  local key = keys.timers(tx)
  if not tx:touches(key) then
    local head = tx:zhead(key)
    if head and head.score <= at then return end
  end
  tx:announce("timer", at)
end

function timers.set(tx, member, at)
  announce(tx, at)
  tx:zadd(keys.timers(tx), at, member)
end

function timers.clear(tx, member)
  tx:zrem(keys.timers(tx), member)
end

-- Keeps the record's entry at `at`, or none. Only an earlier wake-up than before is announced: the sleeper of a
-- later one wakes at the old time and looks again. `told` says that the caller announces it.
function timers.keep(tx, rec, at, told)
  local wake = rec.wake
  if at == wake then return end
  if at == nil then
    timers.clear(tx, rec.id)
  else
    if not told and (wake == nil or at < wake) then announce(tx, at) end
    tx:zadd(keys.timers(tx), at, rec.id)
  end
  rec.wake = at
end

return timers
end

source["index.lists"] = function(require, LIBRARY)
-- The list indexes: every execution by creation time, once under all, under its kind and under each tag.
local keys = require "lib.keys"
local spec = require "record.spec"

local lists = {}

local function tag_keys(tx, packed)
  local out = {}
  local flat = packed and cmsgpack.unpack(packed) or {}
  for i = 1, #flat, 2 do out[#out + 1] = keys.tag(tx, flat[i], flat[i + 1]) end
  return out
end

function lists.add(tx, rec)
  local created = rec.created
  tx:zadd(keys.all(tx), created, rec.id)
  tx:zadd(keys.kind(tx, rec.kind), created, rec.id)
  if rec.tags == nil then return end
  for _, key in ipairs(tag_keys(tx, rec.tags)) do tx:zadd(key, created, rec.id) end
end

function lists.remove(tx, rec)
  tx:zrem(keys.all(tx), rec.id)
  tx:zrem(keys.kind(tx, rec.kind), rec.id)
  for _, key in ipairs(tag_keys(tx, rec.tags)) do tx:zrem(key, rec.id) end
end

-- Replaces the execution's tags.
function lists.retag(tx, rec, tags)
  for _, key in ipairs(tag_keys(tx, rec.tags)) do tx:zrem(key, rec.id) end
  rec.tags = next(tags) and cmsgpack.pack(spec.flatten(tags)) or nil
  for _, key in ipairs(tag_keys(tx, rec.tags)) do tx:zadd(key, rec.created, rec.id) end
end

return lists
end

source["index.fair"] = function(require, LIBRARY)
-- Start-time fair queueing over fairness keys: each key's next start lies one share behind its last.
local keys = require "lib.keys"
local lane = require "record.lane"

local fair = {}

local share = 1000 -- virtual milliseconds one execution of weight 1 takes

-- The virtual start of a new execution and its end, where its key's next one begins.
function fair.start(tx, copy, fairness_key, now)
  local virtual = tonumber(lane.recall(tx, copy, "virtual")) or now
  local digest = keys.digest(fairness_key or "")
  local finish = tonumber(tx:hget(keys.fair(tx, copy.path), digest) or nil) or 0
  local start = math.max(virtual, finish)
  local weight = copy.fairness_weights and fairness_key and copy.fairness_weights[fairness_key] or 1
  finish = start + math.max(1, math.floor(share / weight))
  tx:hset(keys.fair(tx, copy.path), { digest, finish })
  lane.remember(tx, copy, "virtual", string.format("%.0f", virtual))
  return start, finish
end

-- Virtual time follows the work that starts. The start is kept with the execution: the lane may weigh priority
-- differently by now.
function fair.started(tx, copy, rec)
  if copy.fairness ~= "fair" or rec.fair == nil then return end
  local virtual = tonumber(lane.recall(tx, copy, "virtual"))
  if virtual and rec.fair > virtual then lane.remember(tx, copy, "virtual", string.format("%.0f", rec.fair)) end
end

-- The execution leaves the lane: its key is forgotten when nothing came after it.
function fair.forget(tx, path, rec)
  if rec.fair_end == nil then return end
  local key, digest = keys.fair(tx, path), keys.digest(rec.fairness_key or "")
  if tonumber(tx:hget(key, digest) or nil) == rec.fair_end then tx:hdel(key, digest) end
end

-- Nothing waits: every key starts afresh.
function fair.idle(tx, copy)
  if lane.recall(tx, copy, "virtual") == nil then return end
  lane.remember(tx, copy, "virtual", nil)
  tx:del(keys.fair(tx, copy.path))
end

return fair
end

source["index.holders"] = function(require, LIBRARY)
-- The holders of a concurrency limit: a sorted set of `<execution>:<holder id>` by deadline, never a counter.
--
-- A holder enters with a deadline and stays without one once its execution is known to run. A deadline alone frees
-- nothing: when it has passed, someone asks the execution's partition, which is the only one to know. Until then it
-- counts.
local keys = require "lib.keys"
local limits = require "lib.limits"
local timers = require "index.timers"

local holders = {}

-- The score of a holder without a deadline: behind every time.
holders.open_ended = limits.time_ms_max

function holders.member(holder)
  return holder.execution_id .. ":" .. holder.holder_id
end

function holders.typed(item)
  local deadline = item.score < holders.open_ended and item.score or nil
  return {
    execution_id = string.sub(item.member, 1, 36), holder_id = string.sub(item.member, 38), expires_at = deadline,
  }
end

-- The set's capacity: { limit (nil = none), version }, or nil when it was never given one.
function holders.capacity(tx, set)
  local raw = tx:hgetall(keys.capacity(tx, set))
  if raw == nil then return nil end
  if raw.version == nil then error("CORRUPT " .. keys.capacity(tx, set) .. " version") end
  return { limit = tonumber(raw.limit or nil), version = tonumber(raw.version) }
end

function holders.timer(set)
  return "holders:" .. set
end

-- Plans the wake-up at a deadline, unless an earlier one is set.
function holders.watch(tx, set, deadline)
  local at = tx:zscore(keys.timers(tx), holders.timer(set))
  if at == nil or deadline < at then timers.set(tx, holders.timer(set), deadline) end
end

-- A full set has room again: whoever was told that it is full hears of it.
function holders.announce_room(tx, set, limit_before, held_before, limit, held)
  local was_full = limit_before ~= nil and held_before >= limit_before
  if was_full and (limit == nil or held < limit) then
    tx:announce("slot", set, limit and limit - held or limits.active_max)
  end
end

-- A deadline may have passed. Executions live in other partitions: whoever can ask them is told, again and again until
-- it has, since the asking moves the deadline or removes the holder.
function holders.fire(tx, set)
  local head = tx:zhead(keys.holders(tx, set))
  if head == nil or head.score == holders.open_ended then
    timers.clear(tx, holders.timer(set))
  elseif head.score > tx.now then
    tx:zadd(keys.timers(tx), head.score, holders.timer(set))
  else
    tx:announce("overdue", set)
    tx:zadd(keys.timers(tx), tx.now + limits.overdue_again_ms, holders.timer(set))
  end
end

-- fsck of one key of the family: a deadline needs its timer. Who is in the set is checked against the executions
-- elsewhere.
function holders.check(tx, rest, findings, repair, found)
  local set = string.match(rest, "^(.+):holders$")
  if set == nil then
    if not string.find(rest, ":capacity$") then
      found(findings, 37, "ff:quota:" .. tx.tag .. ":" .. rest, "nobody owns this key", false)
    end
    return
  end
  local head = tx:zhead(keys.holders(tx, set))
  if head == nil or head.score == holders.open_ended then return end
  local at = tx:zscore(keys.timers(tx), holders.timer(set))
  -- A timer that fired for an overdue head stands a moment behind it.
  if at == nil or at > math.max(head.score, tx.now + limits.overdue_again_ms) then
    local problem = holders.timer(set) .. string.format(" should wake at %.0f", head.score)
    found(findings, 11, keys.timers(tx), problem, repair)
    if repair then tx:zadd(keys.timers(tx), head.score, holders.timer(set)) end
  end
end

return holders
end

source["index.quota_capacity"] = function(require, LIBRARY)
-- How much of one key of a quota is used, and whether one more passes: starts in a window, holders, weight in a window.
--
-- Everything is read when the key is loaded and counted in memory from there on; `write` plans what has changed.
local holders = require "index.holders"
local keys = require "lib.keys"
local limits = require "lib.limits"

local capacity = {}

local function text(n) return string.format("%.0f", n) end

-- Entries that stand in the window that ends now.
local function inside(tx, window_ms) return "(" .. text(tx.now - window_ms) end

-- Entries the window has passed, a bounded number of them.
local function passed(tx, key, window_ms)
  return tx:zlowest(key, "-inf", text(tx.now - window_ms), limits.window_sweep_max)
end

local function load_rate(tx, k, rate)
  k.rate = keys.quota_part(tx, k.q.id, "rate", k.digest)
  k.starts = tx:zcount(k.rate, inside(tx, rate.window_ms), "+inf")
  k.newest = tx:zhighest(k.rate, "+inf", "-inf", 1)[1]
  k.rate_passed = passed(tx, k.rate, rate.window_ms)
end

-- The sum is kept with the key; what the window has passed is taken off it here. `behind`: more has passed than one
-- call takes off.
local function load_weighted(tx, k, weighted)
  k.weighted, k.weights =
    keys.quota_part(tx, k.q.id, "weighted", k.digest), keys.quota_part(tx, k.q.id, "weights", k.digest)
  k.weighted_passed = passed(tx, k.weighted, weighted.window_ms)
  k.behind = #k.weighted_passed == limits.window_sweep_max
  local gone = {}
  for i, item in ipairs(k.weighted_passed) do gone[i] = item.member end
  k.sum = k.was.sum or 0
  if #gone > 0 then
    for _, weight in ipairs(tx:hmget(k.weights, gone)) do k.sum = k.sum - (tonumber(weight) or 0) end
  end
  k.heaviest = tx:zhighest(k.weighted, "+inf", "-inf", 1)[1]
end

-- Reads what is used of each part that the definition has.
function capacity.load(tx, k)
  local d = k.q.definition
  k.held = tx:zcard(k.holders)
  if d.rate then load_rate(tx, k, d.rate) end
  if d.weighted then load_weighted(tx, k, d.weighted) end
end

-- When the window has passed enough starts for one more; those of this call stand at its end.
local function next_start(tx, k, rate)
  local over = k.starts - rate.limit
  local item = tx:zlowest(k.rate, inside(tx, rate.window_ms), "+inf", 1, over)[1]
  return (item and item.score or tx.now) + rate.window_ms
end

-- When enough weight has left the window for so much more, as far as one call looks; until then it is asked again.
local function next_weight(tx, k, weighted, weight)
  if k.behind then return tx.now end
  local page = tx:zlowest(k.weighted, inside(tx, weighted.window_ms), "+inf", limits.batch_max)
  if #page == 0 then return tx.now + weighted.window_ms end
  local names, sum = {}, k.sum
  for i, item in ipairs(page) do names[i] = item.member end
  for i, amount in ipairs(tx:hmget(k.weights, names)) do
    sum = sum - (tonumber(amount) or 0)
    if sum + weight <= weighted.limit then return page[i].score + weighted.window_ms end
  end
  return page[#page].score + weighted.window_ms
end

-- Each part in turn: whether one more of this weight passes, how much of it is used and, when it does not pass, when it
-- may.
local parts = {}

function parts.throttle(tx, k)
  if k.throttled == nil or k.throttled <= tx.now then return nil end
  return { part = "throttle", used = 0, limit = 0, passes = false, next_at = function() return k.throttled end }
end

function parts.rate(tx, k)
  local rate = k.q.definition.rate
  if rate == nil then return nil end
  local use = { part = "rate", used = k.starts, limit = rate.limit }
  if rate.mode == "smooth" then
    use.passes = k.tat == nil or k.tat <= tx.now
    use.next_at = function() return k.tat end
  else
    use.passes = k.starts < rate.limit
    use.next_at = function() return next_start(tx, k, rate) end
  end
  return use
end

function parts.concurrency(_, k)
  local cap = k.q.definition.concurrency
  if cap == nil then return nil end
  -- Nobody knows when a slot comes back: whoever brings it calls the next.
  return {
    part = "concurrency", used = k.held, limit = cap, passes = k.held < cap, next_at = function() return nil end,
  }
end

function parts.weighted(tx, k, weight)
  local weighted = k.q.definition.weighted
  if weighted == nil then return nil end
  return {
    part = "weighted", used = math.max(k.sum, 0), limit = weighted.limit, passes = k.sum + weight <= weighted.limit,
    next_at = function()
      if weight <= weighted.limit then return next_weight(tx, k, weighted, weight) end
    end,
  }
end

local order = { "throttle", "rate", "concurrency", "weighted" }

-- True when every part lets so much more pass.
local function passes(tx, k, weight)
  local d, now = k.q.definition, tx.now
  local rate, weighted = d.rate, d.weighted
  if k.throttled and k.throttled > now then return false end
  if rate then
    if rate.mode == "smooth" then
      if k.tat and k.tat > now then return false end
    elseif k.starts >= rate.limit then
      return false
    end
  end
  if d.concurrency and k.held >= d.concurrency then return false end
  return weighted == nil or k.sum + weight <= weighted.limit
end

-- The first part that does not let so much more pass, or nil.
function capacity.refusal(tx, k, weight)
  if passes(tx, k, weight) then return nil end
  for _, name in ipairs(order) do
    local use = parts[name](tx, k, weight)
    if use and not use.passes then return use end
  end
end

-- True for what no window has room for, whatever leaves it.
function capacity.never(k, weight)
  local weighted = k.q.definition.weighted
  return weighted ~= nil and weight > weighted.limit
end

-- Every part but the throttle as it stands.
function capacity.uses(tx, k)
  local out = {}
  for i = 2, #order do
    local use = parts[order[i]](tx, k, 1)
    if use then
      out[#out + 1] = {
        part = use.part, used = use.used, limit = use.limit, next_at = not use.passes and use.next_at() or nil,
      }
    end
  end
  return out
end

-- Counts `n` more of this weight each.
function capacity.count(tx, k, weight, n)
  local d = k.q.definition
  k.held = k.held + n
  if d.rate then
    k.starts = k.starts + n
    if d.rate.mode == "smooth" then k.tat = tx.now + math.ceil(d.rate.window_ms / d.rate.limit) end
  end
  if d.weighted then k.sum = k.sum + weight * n end
end

-- How many more of a weight pass.
function capacity.fits(tx, k, weight)
  local d, most = k.q.definition, math.huge
  if k.throttled and k.throttled > tx.now then return 0 end
  if d.rate then
    if d.rate.mode == "smooth" then
      most = (k.tat == nil or k.tat <= tx.now) and 1 or 0
    else
      most = d.rate.limit - k.starts
    end
  end
  if d.concurrency then most = math.min(most, d.concurrency - k.held) end
  if d.weighted and weight > 0 then most = math.min(most, (d.weighted.limit - k.sum) / weight) end
  return most
end

-- True when the holder is in.
function capacity.holds(tx, k, member)
  return k.entered[member] or tx:zscore(k.holders, member) ~= nil
end

-- Takes the weight of an entry in the window off the sum; answers whether there was one.
local function unweigh(tx, k, member)
  local at = tx:zscore(k.weighted, member)
  if at == nil or at <= tx.now - k.q.definition.weighted.window_ms then return false end
  k.sum = k.sum - (tonumber(tx:hget(k.weights, member)) or 0)
  return true
end

-- One that never ran gives its start and its weight back.
local function undo_start(tx, k, member)
  local d = k.q.definition
  local at = d.rate and tx:zscore(k.rate, member)
  if at then
    k.started[#k.started + 1] = member
    if at > tx.now - d.rate.window_ms then k.starts = k.starts - 1 end
    -- The step of the last start alone can be undone: those after it were spaced from each other.
    if d.rate.mode == "smooth" and k.tat == at + math.ceil(d.rate.window_ms / d.rate.limit) then k.tat = at end
  end
  if d.weighted and unweigh(tx, k, member) then k.weighed[#k.weighed + 1] = member end
end

-- Holders leave; answers how many of them were there.
function capacity.leave(tx, k, items)
  local members, leaves, left = {}, k.leaves, {}
  for i = 1, #items do members[i] = holders.member(items[i]) end
  local scores = tx:zscores(k.holders, members)
  for i = 1, #members do
    local member = members[i]
    if scores[i] and not left[member] then
      left[member], leaves[#leaves + 1] = true, member
      if items[i].unused then undo_start(tx, k, member) end
    end
  end
  k.held = k.held - #leaves
  return #leaves
end

-- Sets what an entry in the window really weighed, however much that is; answers whether there is one.
function capacity.reweigh(tx, k, member, weight)
  if k.weighted == nil or not unweigh(tx, k, member) then return false end
  k.sum = k.sum + weight
  k.reweighed = { member, weight }
  return true
end

local function write_holders(tx, k)
  local d, first = k.q.definition, holders.open_ended
  for i = 1, #k.leaves do tx:zrem(k.holders, k.leaves[i]) end
  for _, member in ipairs(k.started) do tx:zrem(k.rate, member) end
  for _, member in ipairs(k.weighed) do
    tx:zrem(k.weighted, member)
    tx:hdel(k.weights, member)
  end
  local set, now = k.holders, tx.now
  for i = 1, #k.enters do
    local c = k.enters[i]
    local member, deadline = c.member, c.expires_at
    tx:zadd(set, deadline, member)
    if deadline < first then first = deadline end
    if d.rate then tx:zadd(k.rate, now, member) end
    if d.weighted then
      tx:zadd(k.weighted, now, member)
      tx:hput(k.weights, member, c.weight)
    end
  end
  if #k.enters > 0 then
    if d.rate then k.newest = { score = now } end
    if d.weighted then k.heaviest = { score = now } end
    if first < holders.open_ended then holders.watch(tx, k.set, first) end
  end
end

-- Plans what has been decided about holders, and drops what the windows have passed.
function capacity.write(tx, k)
  write_holders(tx, k)
  for _, item in ipairs(k.rate_passed or {}) do tx:zrem(k.rate, item.member) end
  for _, item in ipairs(k.weighted_passed or {}) do
    tx:zrem(k.weighted, item.member)
    tx:hdel(k.weights, item.member)
  end
  if k.reweighed then tx:hset(k.weights, k.reweighed) end
end

return capacity
end

source["index.quota_line"] = function(require, LIBRARY)
-- Who waits for one key of a quota, and who was called.
--
-- A refused execution waits in the line, in the order of its score; one that no window is wide enough for waits apart.
-- When something comes back, those first in line are called: each asks anew, and what it needs is kept for it until
-- then. Nobody overtakes those who wait, nor takes what is kept for those called.
local capacity = require "index.quota_capacity"
local holders = require "index.holders"
local limits = require "lib.limits"
local outbox = require "lib.outbox"

local line = {}

local function text(n) return string.format("%.0f", n) end

-- Who was called a moment ago is expected: until it has come, nobody else is called or let into its place. Whoever has
-- not come by then is not waited for.
function line.load(tx, k)
  k.waiting, k.too_large = tx:zcard(k.waiters), tx:zcard(k.oversized)
  k.expected, k.expects = 0, {}
  if k.called_at == nil then return end
  local long_ago = tx.now - limits.call_again_ms
  if k.called_at > long_ago then
    local found = tx:zlowest(k.called, "(" .. text(long_ago), "+inf", limits.window_sweep_max)
    for _, item in ipairs(found) do k.expects[item.member] = true end
    k.expected = #found
  end
  k.called_passed = tx:zlowest(k.called, "-inf", text(long_ago), limits.window_sweep_max)
  if k.expected == 0 and #k.called_passed < limits.window_sweep_max then k.called_at = nil end
end

-- What `ask` returns as if those who are expected had come already.
local function as_if_come(tx, k, ask)
  local held, starts, sum, tat = k.held, k.starts, k.sum, k.tat
  if k.expected > 0 then capacity.count(tx, k, 0, k.expected) end
  local answer = ask()
  k.held, k.starts, k.sum, k.tat = held, starts, sum, tat
  return answer
end

-- What was said about an execution when it entered the line.
local function said(text_of)
  local holder, weight, number = string.match(text_of or "", "^(%S+) (%d+) (%d+)$")
  return holder and { holder = holder, weight = tonumber(weight), number = tonumber(number) } or nil
end

-- Reads who is first in line, and under which grants those stand in it who ask now.
function line.look(tx, k, ids)
  k.standing = {}
  if k.waiting + k.too_large == 0 then return end
  for i, found in ipairs(tx:hmget(k.asked, ids)) do k.standing[ids[i]] = said(found or nil) end
  local first = k.waiting > 0 and tx:zlowest(k.waiters, "-inf", "+inf", 1)[1]
  k.front = first and first.score or nil
end

-- True when the execution stands in line and asked under a later grant since; or under this very one, when `copy` is
-- asked for.
function line.outdated(k, candidate, copy)
  local standing = k.standing[candidate.execution_id]
  if standing == nil then return false end
  return candidate.number < standing.number or (copy and candidate.holder_id == standing.holder)
end

-- The refusal of one that would pass, but others were called before it or stand in line before it.
function line.others_first(tx, k, candidate)
  if k.expects[candidate.execution_id] then return nil end
  local behind = k.front ~= nil and k.front < candidate.score
  if not behind then
    if k.expected == 0 or as_if_come(tx, k, function() return capacity.refusal(tx, k, candidate.weight) end) == nil then
      return nil
    end
  end
  local at = k.wake or limits.time_ms_max
  if k.expected > 0 or k.wake == nil then at = math.min(at, tx.now + limits.call_again_ms) end
  return { part = "line", next_at = function() return at end }
end

-- One that was called has come, whatever is decided about it.
local function comes(k, id)
  if k.expects[id] then k.expects[id], k.expected = nil, k.expected - 1 end
end

-- Decided about, written by quota_key.save, so that the next candidate of the call still finds everything it has to
-- read.
function line.admit(tx, k, candidate)
  capacity.count(tx, k, candidate.weight, 1)
  comes(k, candidate.execution_id)
  k.enters[#k.enters + 1] = candidate
  if not candidate.fresh then k.entered[candidate.member] = true end
end

-- Admits candidates that were never asked for, each with this weight, when nobody waits and all of them pass.
-- False, with nothing decided, when each has to be decided about.
function line.admit_all(tx, k, candidates, weight)
  local n = #candidates
  if k.called_at or k.waiting + k.too_large > 0 or capacity.fits(tx, k, weight) < n then return false end
  for i = 1, n do
    local c = candidates[i]
    if not c.fresh or c.expires_at <= tx.now then return false end
  end
  for i = 1, n do
    local c = candidates[i]
    c.member, c.admitted = holders.member(c), true
    if k.weighted then c.weight = weight end
  end
  capacity.count(tx, k, weight, n)
  k.enters = candidates
  return true
end

-- Refused: it waits in the order of its score. What can never pass waits for another definition.
function line.wait(k, candidate, next_at)
  local never = capacity.never(k, candidate.weight)
  comes(k, candidate.execution_id)
  k.waits[#k.waits + 1] = { candidate = candidate, never = never }
  if never then return end
  k.front = math.min(k.front or candidate.score, candidate.score)
  if next_at then k.next_at = math.min(k.next_at or next_at, next_at) end
end

-- One that was called will not come: nobody waits for it.
function line.give_up(k, id)
  if not k.expects[id] then return false end
  comes(k, id)
  k.absent[#k.absent + 1] = id
  return true
end

local function owe_call(tx, k, id, holder)
  if tx.executions then
    tx:owe("call", k.set, id, holder)
  else
    line.call_later(tx, id, holder, k.set)
  end
end

-- The partition owes an execution its call.
function line.call_later(tx, id, holder, set)
  outbox.owe(tx, "unblock", { "execution_id", id, "reason", "waiting_for_quota", "holder_id", holder, "set", set })
end

-- The first of those who wait: id, the holder it asked under and its weight.
local function first_of(tx, k, waiters)
  local found, names = tx:zlowest(waiters, "-inf", "+inf", limits.batch_max), {}
  if #found == 0 then return {} end
  for i, item in ipairs(found) do names[i] = item.member end
  local asked, out = tx:hmget(k.asked, names), {}
  for i, item in ipairs(found) do
    local found = said(asked[i] or nil)
    if found == nil then error("CORRUPT " .. k.asked .. " " .. item.member) end
    out[i] = { id = item.member, holder = found.holder, weight = found.weight }
  end
  return out
end

-- Calls those first in line as far as they pass, as if those called before them had come already. One that can never
-- pass since the limit was lowered is called as well, and nothing is kept for it: it asks anew and is in nobody's way.
function line.call(tx, k)
  local first = k.waiting > 0 and first_of(tx, k, k.waiters) or {}
  if #first == 0 then return end
  -- More may stand in line than one call looks at.
  if #first == limits.batch_max then k.head_at = tx.now end
  as_if_come(tx, k, function()
    for _, one in ipairs(first) do
      one.never = capacity.never(k, one.weight)
      local use = not one.never and capacity.refusal(tx, k, one.weight)
      if use then
        k.head_at = use.next_at()
        break
      end
      -- Who is called takes nothing until it comes.
      if not one.never then capacity.count(tx, k, one.weight, 1) end
      k.calls[#k.calls + 1] = one
    end
  end)
end

-- After a change of the definition everyone may ask anew whom the old one could never let pass.
function line.call_oversized(tx, k)
  if k.too_large == 0 then return end
  for _, one in ipairs(first_of(tx, k, k.oversized)) do k.calls[#k.calls + 1] = one end
end

-- An execution that asks anew does not stand in line for what it asked before.
local function leave_line(tx, k, id)
  if k.called_at and tx:zscore(k.called, id) then tx:zrem(k.called, id) end
  if k.waiting > 0 and tx:zscore(k.waiters, id) then
    tx:zrem(k.waiters, id)
    tx:hdel(k.asked, id)
    k.waiting = k.waiting - 1
  end
  if k.too_large > 0 and tx:zscore(k.oversized, id) then
    tx:zrem(k.oversized, id)
    tx:hdel(k.asked, id)
    k.too_large = k.too_large - 1
  end
end

-- Plans who enters the line, who leaves it, and who is called.
function line.write(tx, k)
  if k.called_at or k.waiting + k.too_large > 0 then
    for i = 1, #k.enters do leave_line(tx, k, k.enters[i].execution_id) end
  end
  for _, one in ipairs(k.waits) do
    local c = one.candidate
    leave_line(tx, k, c.execution_id)
    tx:zadd(one.never and k.oversized or k.waiters, c.score, c.execution_id)
    tx:hset(k.asked, { c.execution_id, c.holder_id .. " " .. text(c.weight) .. " " .. text(c.number) })
    if one.never then k.too_large = k.too_large + 1 else k.waiting = k.waiting + 1 end
  end
  for _, one in ipairs(k.calls) do
    leave_line(tx, k, one.id)
    owe_call(tx, k, one.id, one.holder)
    if not one.never then
      tx:zadd(k.called, tx.now, one.id)
      k.called_at = tx.now
    end
  end
  for _, id in ipairs(k.absent) do tx:zrem(k.called, id) end
  for _, item in ipairs(k.called_passed or {}) do
    if tx:zscore(k.called, item.member) == item.score then tx:zrem(k.called, item.member) end
  end
end

-- The quota is gone: everyone who waits is called, to be told so.
function line.dissolve(tx, k)
  for _, waiters in ipairs({ k.waiters, k.oversized }) do
    for _, one in ipairs(first_of(tx, k, waiters)) do k.calls[#k.calls + 1] = one end
  end
  line.write(tx, k)
end

return line
end

source["index.quota_key"] = function(require, LIBRARY)
-- One key of a quota: how much of it is used, who waits for it, and its timer.
--
--     an execution asks                                        a holder leaves
--     (transition/ask)                                         (transition/give_back)
--            |                                                         |
--            v                                                         v
--     quota_capacity ---- refused ----> quota_line ---- called ----> expected
--     holders, rate, weights            waiters in order             what it needs is kept for it
--            ^                                                         |
--            +------------- asks anew, within call_again_ms -----------+
--
-- A key is loaded once in a call. What is decided about it stands in its table (`enters`, `waits`, `calls`, ...) until
-- `save` plans it all. The timer `room:<quota>:<digest>` wakes the key when the next in line may pass, when those
-- called have not come, and when nobody uses it any more.
local capacity = require "index.quota_capacity"
local gone = require "index.gone"
local holds = require "record.holds"
local keys = require "lib.keys"
local limits = require "lib.limits"
local line = require "index.quota_line"
local packed = require "record.packed"
local quota = require "record.quota"
local timers = require "index.timers"

local quota_key = {}

local function text(n) return string.format("%.0f", n) end

-- The record of a key, or nil when it is not in use.
local function opened(tx, id, digest)
  local key = keys.quota_part(tx, id, "key", digest)
  local stored = tx:record(key)
  return stored and packed.open_quota_key(key, stored)
end

-- Until when nothing starts under a key.
function quota_key.throttled(tx, id, digest)
  local was = opened(tx, id, digest)
  return was and was.throttled
end

-- A key that was saved before in this list, as it is now: nothing is decided yet.
local function again(k)
  k.enters, k.entered, k.leaves, k.started, k.weighed, k.waits, k.calls, k.absent = {}, {}, {}, {}, {}, {}, {}, {}
  k.called_passed, k.rate_passed, k.weighted_passed, k.reweighed, k.next_at, k.head_at, k.standing, k.front =
    nil, nil, nil, nil, nil, nil, nil, nil
  return k
end

-- What a quota knows of a key, by its digest; `key` is the key itself where the caller knows it. Returns nil for a key
-- that is not in use, unless `fresh` says that it is about to be.
function quota_key.load(tx, q, digest, key, fresh)
  local set = holds.of_quota(q.id, digest)
  local known = tx:found(set)
  if known and known.now == tx.now then return again(known) end
  local was = opened(tx, q.id, digest)
  if was == nil and not fresh then return nil end
  local k = {
    q = q, digest = digest, fresh = was == nil, was = was or {}, set = set, now = tx.now,
    -- What has been decided in this call and is written by quota_key.save.
    enters = {}, entered = {}, leaves = {}, started = {}, weighed = {}, waits = {}, calls = {}, absent = {},
  }
  was = k.was
  k.key, k.tat, k.throttled, k.wake, k.called_at = was.key or key, was.tat, was.throttled, was.wake, was.called_at
  k.waiters, k.asked = keys.quota_part(tx, q.id, "waiters", digest), keys.quota_part(tx, q.id, "asked", digest)
  k.oversized = keys.quota_part(tx, q.id, "oversized", digest)
  k.holders, k.called = keys.holders(tx, k.set), keys.quota_part(tx, q.id, "called", digest)
  line.load(tx, k)
  capacity.load(tx, k)
  return k
end

-- When the key needs attention: the next in line may pass, those called have not come, or nobody uses it any more.
local function wake_at(tx, k, called)
  local d, awaited = k.q.definition, called + k.expected > 0
  if k.waiting > 0 then
    if not awaited then return k.head_at end
    return math.min(k.head_at or limits.time_ms_max, tx.now + limits.call_again_ms)
  end
  if k.held > 0 or k.too_large > 0 then return nil end
  local at = math.max(k.throttled or 0, k.tat or 0, tx.now)
  if awaited then at = math.max(at, tx.now + limits.call_again_ms) end
  if d.rate and k.newest then at = math.max(at, k.newest.score + d.rate.window_ms) end
  if d.weighted and k.heaviest then at = math.max(at, k.heaviest.score + d.weighted.window_ms) end
  return at
end

-- The name of its timer entry.
function quota_key.timer(id, digest)
  return "room:" .. id .. ":" .. digest
end

local function write_record(tx, k)
  local was = k.was
  if k.fresh then quota.enter_key(tx, k.q, k.digest) end
  -- Weights that nothing counts any more must not be taken off a sum that begins anew.
  if k.weighted == nil and was.sum then
    for _, part in ipairs({ "weighted", "weights" }) do tx:del(keys.quota_part(tx, k.q.id, part, k.digest)) end
  end
  if k.fresh or k.tat ~= was.tat or k.throttled ~= was.throttled or k.sum ~= was.sum or k.wake ~= was.wake
    or k.called_at ~= was.called_at
  then
    local record = {
      key = k.key, tat = k.tat, throttled = k.throttled, sum = k.sum, wake = k.wake, called_at = k.called_at,
      tail = was.tail,
    }
    tx:set(keys.quota_part(tx, k.q.id, "key", k.digest), packed.close_quota_key(record))
    k.was, k.fresh = record, false
  end
end

-- Corrects the weight in the window.
function quota_key.set_sum(tx, k, sum)
  k.sum, k.wake = sum, k.was.wake
  write_record(tx, k)
end

-- Nobody uses the key: what is left of it goes.
local function forget(tx, k)
  for _, part in ipairs({ "key", "rate", "weighted", "weights", "waiters", "asked", "oversized", "called" }) do
    tx:del(keys.quota_part(tx, k.q.id, part, k.digest))
  end
  quota.leave_key(tx, k.q, k.digest)
  timers.clear(tx, quota_key.timer(k.q.id, k.digest))
end

-- Plans what has been decided and sets the key's timer. What came back calls those who wait for it; an admission calls
-- nobody: it leaves less than there was.
function quota_key.save(tx, k, admission)
  if not admission then line.call(tx, k) end
  local called = 0
  for _, one in ipairs(k.calls) do
    if not one.never then called = called + 1 end
  end
  capacity.write(tx, k)
  line.write(tx, k)
  local at
  if admission and k.waiting > 0 then
    at = k.wake
    if k.next_at then at = math.min(k.next_at, at or k.next_at) end
  else
    at = wake_at(tx, k, called)
  end
  if at and at <= tx.now and k.waiting == 0 then
    if not k.fresh then forget(tx, k) end
    tx:keep(k.set, nil)
    return
  end
  local entry = { id = quota_key.timer(k.q.id, k.digest), wake = k.wake }
  timers.keep(tx, entry, at)
  k.wake = at
  write_record(tx, k)
  -- A key with a line is read anew.
  local quiet = #k.calls == 0 and #k.waits == 0 and #k.absent == 0 and k.called_at == nil and k.waiting == 0
  tx:keep(k.set, quiet and k or nil)
end

-- The key's timer: something may pass again, or nobody uses the key any more.
function quota_key.fire(tx, id, digest)
  local q = quota.load(tx, id)
  local k = q and quota_key.load(tx, q, digest)
  if k then return quota_key.save(tx, k) end
  timers.clear(tx, quota_key.timer(id, digest))
end

-- The quota's timer: after a change of its definition every key is looked at, a few at a time.
function quota_key.walk(tx, id)
  local q = quota.load(tx, id, true)
  if q == nil or q.walked == nil then return timers.clear(tx, quota.timer(id)) end
  local found = tx:zlowest(keys.quota_keys(tx, id), "(" .. text(q.walked), "+inf", limits.quota_walk_max)
  local walked = q.walked
  for _, item in ipairs(found) do
    local k = quota_key.load(tx, q, item.member)
    if k == nil then error("CORRUPT " .. keys.quota_part(tx, id, "key", item.member) .. " key") end
    if q.deleted then
      line.dissolve(tx, k)
      if k.waiting + k.too_large == 0 then forget(tx, k) end
    else
      line.call_oversized(tx, k)
      quota_key.save(tx, k)
      if k.too_large == 0 then walked = item.score end
      if k.too_large > 0 then break end
    end
  end
  if #found > 0 then
    q.walked = walked
    quota.save(tx, q)
    tx:zadd(keys.timers(tx), tx.now, quota.timer(id))
  else
    timers.clear(tx, quota.timer(id))
    if q.deleted then
      tx:del(keys.quota(tx, id))
      tx:zrem(keys.quotas(tx), id)
      gone.note(tx, id)
    else
      q.walked = nil
      quota.save(tx, q)
    end
  end
end

return quota_key
end

source["index.inbox"] = function(require, LIBRARY)
-- Open waitpoints of the partition by creation time: what people are asked for.
local keys = require "lib.keys"

local inbox = {}

function inbox.add(tx, id, created_at)
  tx:zadd(keys.inbox(tx), created_at, id)
end

function inbox.remove(tx, id)
  tx:zrem(keys.inbox(tx), id)
end

return inbox
end

source["record.budget"] = function(require, LIBRARY)
-- A budget: its limits, what is used and held per dimension, and its place in a tree. What is used or held in a budget
-- counts in every budget above it; all of a tree shares a partition, so each check sees the whole way up at once.
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local packed = require "record.packed"
local event = require "lib.event"
local reply = require "lib.reply"
local timers = require "index.timers"

local budget = {}

budget.amount_max = limits.time_ms_max

function budget.timer(id) return "budget:" .. id end
function budget.set(id) return "budget:" .. id end

function budget.sorted(amounts)
  local names = {}
  for name in pairs(amounts) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- A map of amounts as a flat list in the order of the names, and back.
function budget.flat(amounts)
  local flat, first, n = {}, next(amounts)
  if first == nil then return flat end
  if next(amounts, first) == nil then
    if n ~= 0 then flat[1], flat[2] = first, n end
    return flat
  end
  for _, name in ipairs(budget.sorted(amounts)) do
    if amounts[name] ~= 0 then
      flat[#flat + 1] = name
      flat[#flat + 1] = amounts[name]
    end
  end
  return flat
end

function budget.map(flat)
  local amounts = {}
  for i = 1, #flat, 2 do amounts[flat[i]] = flat[i + 1] end
  return amounts
end

local function pack_definition(b)
  local dimensions = {}
  for i, d in ipairs(b.dimensions) do dimensions[i] = { d.name, d.hard or false, d.soft or false } end
  return cmsgpack.pack({
    b.namespace, b.parent or false, b.scope.type, b.scope.id or false, dimensions, b.reset.type,
    b.reset.interval_ms or false, b.reset.zone or false, b.on_soft, b.on_hard,
  })
end

budget.pack_definition = pack_definition

local function unpack_definition(bytes)
  local l = cmsgpack.unpack(bytes)
  local dimensions = {}
  for i, d in ipairs(l[5]) do dimensions[i] = { name = d[1], hard = d[2] or nil, soft = d[3] or nil } end
  return {
    namespace = l[1], parent = l[2] or nil, scope = { type = l[3], id = l[4] or nil }, dimensions = dimensions,
    reset = { type = l[6], interval_ms = l[7] or nil, zone = l[8] or nil }, on_soft = l[9], on_hard = l[10],
  }
end

-- A budget that is not stored yet.
function budget.new(tx, definition)
  local b = unpack_definition(pack_definition(definition))
  b.id, b.created, b.version, b.period, b.since = definition.budget_id, tx.now, 1, 1, tx.now
  b.rooms, b.wide, b.told = 0, 0, 0
  b.approved, b.refused, b.soft_told, b.passed = false, false, false, false
  b.used, b.held, b.base, b.actions, b.past = {}, {}, {}, {}, {}
  for _, d in ipairs(b.dimensions) do b.used[d.name], b.held[d.name], b.base[d.name] = 0, 0, 0 end
  tx.memo[keys.budget(tx, b.id)] = b
  return b
end

-- Amounts are stored as a list in the order of the dimensions.
local function amounts_of(b, list, key, field)
  local amounts = {}
  if #list ~= #b.dimensions then error("CORRUPT " .. key .. " " .. field) end
  for i, d in ipairs(b.dimensions) do amounts[d.name] = list[i] end
  return amounts
end

local function list_of(b, amounts)
  local list = {}
  for i, d in ipairs(b.dimensions) do list[i] = amounts[d.name] end
  return list
end

-- The record, read once per plan; nil when there is none.
function budget.load(tx, id)
  local key = keys.budget(tx, id)
  local known = tx.memo[key] or tx:found(key)
  if known then return known end
  local stored = tx:record(key)
  if stored == nil then return nil end
  local r = packed.open_budget(key, stored)
  local b = unpack_definition(r.definition)
  b.id, b.version, b.created, b.period, b.since, b.next_reset =
    id, r.version, r.created, r.period, r.since, r.next_reset
  b.rooms, b.wide, b.told, b.tail = r.rooms, r.wide, r.told, r.tail
  b.approved, b.refused, b.soft_told, b.passed =
    r.approved ~= nil, r.refused ~= nil, r.soft_told ~= nil, r.passed ~= nil
  b.used, b.held, b.base =
    amounts_of(b, r.used, key, "used"), amounts_of(b, r.held, key, "held"), amounts_of(b, r.base, key, "base")
  b.actions, b.past = r.actions and cmsgpack.unpack(r.actions) or {}, r.past and cmsgpack.unpack(r.past) or {}
  tx.memo[key] = b
  tx:keep(key, b)
  return b
end

-- A list as it is stored: an empty one is absent.
local function packed_list(list)
  return #list > 0 and cmsgpack.pack(list) or nil
end

-- `passed` says that an operator put the limit below, or the use above: fsck must not take it for an overshoot.
local function close(b)
  return packed.close_budget({
    definition = pack_definition(b), version = b.version, created = b.created, period = b.period, since = b.since,
    rooms = b.rooms, wide = b.wide, told = b.told, next_reset = b.next_reset, approved = b.approved and 1,
    refused = b.refused and 1, soft_told = b.soft_told and 1, passed = b.passed and 1, used = list_of(b, b.used),
    held = list_of(b, b.held), base = list_of(b, b.base), actions = packed_list(b.actions), past = packed_list(b.past),
    tail = b.tail,
  })
end

-- Plans the whole record.
function budget.save(tx, b)
  tx:put(keys.budget(tx, b.id), b, close)
end

-- Where submissions look for budgets of namespaces, lanes and flows is on another partition: it is told of a budget
-- that comes or goes, whatever becomes of the caller.
function budget.owe_scope(tx, b)
  local kind, id = b.scope.type, b.scope.id
  local scope = kind == "namespace" and "namespace:" .. b.namespace
    or kind == "lane" and id and "lane:" .. b.namespace .. "/" .. id
    or kind == "flow" and id and "flow:" .. id
    or nil
  if scope then outbox.owe(tx, "note_scope", { "budget_id", b.id, "scope", scope }) end
end

function budget.watch(tx, b)
  if b.next_reset then timers.set(tx, budget.timer(b.id), b.next_reset) else timers.clear(tx, budget.timer(b.id)) end
end

local function mark(tx, b)
  tx:zadd(keys.cleared(tx), tx.now, b.id)
  tx:announce("budget", b.id)
end

-- Rooms are counted: who was refused has seen so many, and may ask again when there were more. `wide` is the number of
-- the last room that everyone is told of, because a limit or a period changed; of a room that is only as large as what
-- was given back, as many are told as may fit. Everyone who has seen fewer than `told` was told. The mark stays until
-- that is done, whatever happens to the announcement. A wide room that nobody is known to wait for is counted without a
-- mark: a refusal that is on its way to its execution finds it when all that waits is swept.
function budget.room(tx, b, wide)
  if not b.refused and b.rooms == b.told then
    if wide then
      b.rooms = b.rooms + 1
      b.wide, b.told = b.rooms, b.rooms
    end
    return
  end
  b.refused, b.rooms = false, b.rooms + 1
  if wide then b.wide = b.rooms end
  mark(tx, b)
end

-- One of this name was deleted: whoever waits for it is told that it is there again. The time is more rooms than anyone
-- has seen.
function budget.come_back(tx, b)
  b.rooms, b.wide, b.told = tx.now, tx.now, 0
  mark(tx, b)
end

-- What is left below each hard limit.
function budget.free(b)
  local free = {}
  for _, d in ipairs(b.dimensions) do
    if d.hard then free[d.name] = math.max(d.hard - b.used[d.name] - b.held[d.name], 0) end
  end
  return free
end

-- What was used in a period is kept when it ends.
local function end_period(b, at)
  b.past[#b.past + 1] = { b.since, at, budget.flat(b.used) }
  if #b.past > limits.budget_periods_max then table.remove(b.past, 1) end
end

function budget.start_period(tx, b)
  end_period(b, tx.now)
  local passed = false
  for _, d in ipairs(b.dimensions) do
    b.used[d.name], b.base[d.name] = 0, 0
    -- What is held stays, also above a limit that was lowered since.
    passed = passed or (d.hard ~= nil and b.held[d.name] > d.hard)
  end
  b.period, b.since, b.approved, b.soft_told, b.passed = b.period + 1, tx.now, false, false, passed
  budget.room(tx, b, true)
end

-- Ends a period that is over. An interval goes on in step with its first; the next end of a calendar's period is asked
-- for.
local function roll(tx, b)
  if b.next_reset == nil or b.next_reset > tx.now then return false end
  local every = b.reset.interval_ms
  if b.reset.type == "interval" then
    b.next_reset = b.next_reset + (math.floor((tx.now - b.next_reset) / every) + 1) * every
  else
    b.next_reset = nil
  end
  budget.start_period(tx, b)
  return true
end

-- The same for a reader, who writes nothing.
function budget.rolled(tx, b)
  if b.next_reset == nil or b.next_reset > tx.now then return end
  end_period(b, b.next_reset)
  for _, d in ipairs(b.dimensions) do b.used[d.name] = 0 end
  b.approved = false
end

local function roll_and_save(tx, b)
  if not roll(tx, b) then return end
  if b.next_reset == nil then mark(tx, b) end
  budget.watch(tx, b)
  budget.save(tx, b)
  event.of_fleet(tx, "budget.reset", b.namespace, nil, nil, "budget_id", b.id, "cause", "period")
end

-- The budget and those above it, itself first, each in its current period; nil when there is none.
function budget.path(tx, id)
  local path = {}
  while id do
    local b = budget.load(tx, id)
    if b == nil then
      if #path == 0 then return nil end
      error("CORRUPT " .. keys.budget(tx, id) .. " core")
    end
    roll_and_save(tx, b)
    path[#path + 1] = b
    id = b.parent
  end
  return path
end

function budget.save_all(tx, path)
  for _, b in ipairs(path) do budget.save(tx, b) end
end

function budget.fire(tx, id)
  local b = budget.load(tx, id)
  if b == nil then return timers.clear(tx, budget.timer(id)) end
  roll_and_save(tx, b)
  if b.next_reset == nil then
    timers.clear(tx, budget.timer(id))
  else
    tx:zadd(keys.timers(tx), b.next_reset, budget.timer(id))
  end
end

-- The refusal of amounts in dimensions the budget does not have, or of none at all.
function budget.unknown(b, amounts, field)
  local names = budget.sorted(amounts)
  if #names == 0 then return reply.err("invalid_argument", { field = field, problem = "must hold an entry" }) end
  for _, name in ipairs(names) do
    if b.used[name] == nil then
      return reply.err("invalid_argument", { field = field .. "." .. name, problem = "is no dimension of the budget" })
    end
  end
end

-- The first limit on the way up that the amounts would pass; `own` is the part of them that is held already.
function budget.breach(path, amounts, own)
  for _, b in ipairs(path) do
    for _, d in ipairs(b.dimensions) do
      local n = amounts[d.name]
      if n and d.hard and b.used[d.name] + b.held[d.name] - (own and own[d.name] or 0) + n > d.hard then
        return { budget = b, dimension = d.name, used = b.used[d.name], limit = d.hard }
      end
    end
  end
end

-- The refusal of amounts that no sum could hold.
function budget.overflow(path, amounts, field)
  for _, b in ipairs(path) do
    for _, d in ipairs(b.dimensions) do
      local n = amounts[d.name]
      if n and b.used[d.name] + b.held[d.name] + n > budget.amount_max then
        return reply.err("invalid_argument", {
          field = field .. "." .. d.name,
          problem = string.format("passes %.0f together with what is used and held", budget.amount_max),
        })
      end
    end
  end
end

-- The first hard dimension on the way up of which nothing is left.
function budget.exhausted(path)
  for _, b in ipairs(path) do
    for _, d in ipairs(b.dimensions) do
      if d.hard and b.used[d.name] + b.held[d.name] >= d.hard then
        return { budget = b, dimension = d.name, used = b.used[d.name], limit = d.hard }
      end
    end
  end
end

-- The first soft limit on the way up that is reached; with `unapproved`, one that admits nobody until it is approved.
function budget.soft(path, unapproved)
  for _, b in ipairs(path) do
    if not unapproved or (b.on_soft == "require_approval" and not b.approved) then
      for _, d in ipairs(b.dimensions) do
        if d.soft and b.used[d.name] >= d.soft then
          return { budget = b, dimension = d.name, used = b.used[d.name], limit = d.soft }
        end
      end
    end
  end
end

-- Someone was refused: the budget in the way will say when it has room. The first refusal after a room is an event,
-- those behind it are not. The caller saves the budget.
function budget.note_refusal(tx, wrong, kind)
  local b = wrong.budget
  if b.refused then return false end
  b.refused = true
  if kind == "hard" then
    event.of_fleet(tx, "budget.hard_breach", b.namespace, nil, nil,
      "budget_id", b.id, "dimension", wrong.dimension, "used", string.format("%.0f", wrong.used),
      "held", string.format("%.0f", b.held[wrong.dimension]),
      "limit", string.format("%.0f", wrong.limit), "on_hard", b.on_hard)
  end
  return true
end

function budget.refuse(tx, wrong)
  if budget.note_refusal(tx, wrong, "hard") then budget.save(tx, wrong.budget) end
end

function budget.hold(path, amounts, sign)
  for _, b in ipairs(path) do
    for name, n in pairs(amounts) do
      if b.held[name] then b.held[name] = b.held[name] + sign * n end
    end
  end
end

-- Adds accepted amounts all the way up; the report itself is kept with the budget it was made to.
function budget.spend(tx, path, amounts)
  for i, b in ipairs(path) do
    for name, n in pairs(amounts) do
      if b.used[name] then
        b.used[name] = b.used[name] + n
        if i > 1 then b.base[name] = b.base[name] + n end
      end
    end
    local soft = budget.soft({ b })
    if soft and not b.soft_told then
      b.soft_told = true
      event.of_fleet(tx, "budget.soft_breach", b.namespace, nil, nil, "budget_id", b.id, "dimension", soft.dimension)
    end
  end
end

-- A report is kept with its period, so that what is used can be counted again.
function budget.keep_report(tx, b, key, amounts, origin)
  local digest = redis.sha1hex(key)
  tx:hset(keys.budget_reports(tx, b.id), { digest, cmsgpack.pack({ b.period, budget.flat(amounts), origin or false }) })
  tx:zadd(keys.budget_report_times(tx, b.id), tx.now, digest)
end

-- Whether a report is known by its key, and from where it came.
function budget.report(tx, b, key)
  local packed = tx:hget(keys.budget_reports(tx, b.id), redis.sha1hex(key))
  if packed == nil then return false end
  return true, cmsgpack.unpack(packed)[3] or nil
end

-- Forgets reports that are older than any repetition; what they used stays counted.
function budget.prune(tx, b)
  local times, reports = keys.budget_report_times(tx, b.id), keys.budget_reports(tx, b.id)
  local until_ms = string.format("%.0f", tx.now - limits.usage_key_ttl_ms)
  for _, item in ipairs(tx:zlowest(times, "-inf", until_ms, limits.usage_keys_pruned_max)) do
    local kept = tx:hget(reports, item.member)
    if kept then
      local l = cmsgpack.unpack(kept)
      if l[1] == b.period then
        for name, n in pairs(budget.map(l[2])) do b.base[name] = b.base[name] + n end
      end
      tx:hdel(reports, item.member)
    end
    tx:zrem(times, item.member)
  end
end

function budget.note_action(tx, b, action, actor, dimension, delta, reason, request_id)
  b.actions[#b.actions + 1] = {
    action, actor, tx.now, dimension or false, delta or false, reason or false, request_id or false,
  }
  if #b.actions > limits.budget_actions_max then table.remove(b.actions, 1) end
end

-- True when this very request was done already: its answer was lost, or it comes late.
function budget.done(b, request_id)
  for _, a in ipairs(b.actions) do
    if request_id and a[7] == request_id then return true end
  end
  return false
end

-- The periods that ended, the oldest first.
local function past_of(b)
  local past = {}
  for i, p in ipairs(b.past) do past[i] = { since = p[1], ended_at = p[2], used = budget.map(p[3]) } end
  return past
end

function budget.typed(b)
  local dimensions, actions = {}, {}
  for i, d in ipairs(b.dimensions) do
    dimensions[i] = { name = d.name, hard = d.hard, soft = d.soft, used = b.used[d.name], held = b.held[d.name] }
  end
  for i, a in ipairs(b.actions) do
    actions[i] = {
      action = a[1], actor = a[2], at = a[3], dimension = a[4] or nil, delta = a[5] or nil, reason = a[6] or nil,
    }
  end
  return {
    budget_id = b.id, namespace = b.namespace, parent = b.parent, scope = b.scope, dimensions = dimensions,
    reset = b.reset, on_soft = b.on_soft, on_hard = b.on_hard, version = b.version, created_at = b.created,
    period = b.period, period_since = b.since, next_reset_at = b.next_reset, approved = b.approved, rooms = b.rooms,
    wide = b.wide, actions = actions, past = past_of(b),
  }
end

return budget
end

source["record.budget_holds"] = function(require, LIBRARY)
-- What is held against a budget: the estimates of work that was admitted, and reservations. A hold under a holder goes
-- when the holder is released; a reservation without one goes when its time is over.
local keys = require "lib.keys"
local budget = require "record.budget"
local holders = require "index.holders"
local timers = require "index.timers"

local holds = {}

local function timer(id, reservation) return "hold:" .. id .. ":" .. reservation end

-- Fields of the hash: a holder as `<execution>:<holder>` with its amounts and the reservations made under it; a
-- reservation as its id with its amounts, its end or false, and its holder or false.
local function opened(packed)
  local l = cmsgpack.unpack(packed)
  return { amounts = budget.map(l[1]), reservations = l[2] }
end

function holds.of_holder(tx, id, member)
  local packed = tx:hget(keys.budget_holds(tx, id), member)
  return packed and opened(packed) or nil
end

-- What a holder holds, as it is stored.
function holds.text(amounts, reservations)
  return cmsgpack.pack({ budget.flat(amounts), reservations })
end

function holds.put_holder(tx, id, member, hold)
  tx:hput(keys.budget_holds(tx, id), member, holds.text(hold.amounts, hold.reservations))
end

function holds.reservation(tx, id, reservation)
  local packed = tx:hget(keys.budget_holds(tx, id), reservation)
  if packed == nil then return nil end
  local l = cmsgpack.unpack(packed)
  return { amounts = budget.map(l[1]), ends = l[2] or nil, member = l[3] or nil }
end

local function put_reservation(tx, id, reservation, hold)
  tx:hset(keys.budget_holds(tx, id), {
    reservation, cmsgpack.pack({ budget.flat(hold.amounts), hold.ends or false, hold.member or false }),
  })
end

function holds.reserve(tx, id, reservation, hold)
  put_reservation(tx, id, reservation, hold)
  if hold.ends then timers.set(tx, timer(id, reservation), hold.ends) end
end

local function forget_reservation(tx, id, reservation, hold)
  tx:hdel(keys.budget_holds(tx, id), reservation)
  if hold.ends then timers.clear(tx, timer(id, reservation)) end
end

local function any(amounts)
  for _, n in pairs(amounts) do
    if n > 0 then return true end
  end
  return false
end

-- The amounts, multiplied.
local function times(amounts, count)
  if count == 1 then return amounts end
  local sum = {}
  for name, n in pairs(amounts) do sum[name] = n * count end
  return sum
end
holds.times = times

-- Gives `count` equal holds (default 1) back all the way up, so that refused executions may ask again. Each hold makes
-- a room of its own, as if it had come alone.
function holds.give_back(tx, path, amounts, count)
  if not any(amounts) then return end
  count = count or 1
  budget.hold(path, times(amounts, count), -1)
  for _, b in ipairs(path) do
    for _ = 1, count do budget.room(tx, b) end
  end
end

-- Drops a reservation; its holder stays with what else it holds.
function holds.drop_reservation(tx, path, reservation, hold)
  local id = path[1].id
  forget_reservation(tx, id, reservation, hold)
  local holder = hold.member and holds.of_holder(tx, id, hold.member)
  if holder then
    local rest = {}
    for _, other in ipairs(holder.reservations) do
      if other ~= reservation then rest[#rest + 1] = other end
    end
    holder.reservations = rest
    holds.put_holder(tx, id, hold.member, holder)
  end
end

-- Drops what a holder reserved.
local function drop_reservations(tx, path, reservations)
  local id = path[1].id
  for _, reservation in ipairs(reservations) do
    local r = holds.reservation(tx, id, reservation)
    if r then
      forget_reservation(tx, id, reservation, r)
      holds.give_back(tx, path, r.amounts)
    end
  end
end

-- Drops holders and all they reserved. Returns how many of them held something. What equal holds held is given back in
-- one step.
function holds.drop_holders(tx, path, members)
  local id, count, alike, order = path[1].id, 0, {}, {}
  local all, texts = keys.holders(tx, budget.set(id)), keys.budget_holds(tx, id)
  local stored = tx:hmget(texts, members)
  for i = 1, #members do
    local member, hold = members[i], stored[i]
    tx:zrem(all, member)
    if hold then
      tx:hdel(texts, member)
      if alike[hold] == nil then order[#order + 1] = hold end
      alike[hold], count = (alike[hold] or 0) + 1, count + 1
    end
  end
  for _, text in ipairs(order) do
    local hold = opened(text)
    holds.give_back(tx, path, hold.amounts, alike[text])
    drop_reservations(tx, path, hold.reservations)
  end
  return count
end

-- Enters holders until their deadlines (`expires_at`), after which their executions are asked for. A fresh one was
-- never entered before. `hold` is what each of them holds, as `holds.text` packs it.
function holds.enter(tx, id, entering, hold)
  local set, first = budget.set(id), holders.open_ended
  local all, texts = keys.holders(tx, set), keys.budget_holds(tx, id)
  for i = 1, #entering do
    local one = entering[i]
    local member, deadline = one.member or holders.member(one), one.expires_at
    if one.fresh or tx:zscore(all, member) == nil then
      tx:zadd(all, deadline, member)
      if deadline < first then first = deadline end
    end
    tx:hput(texts, member, hold)
  end
  if first < holders.open_ended then holders.watch(tx, set, first) end
end

-- How much of the amounts the holder's own holds cover: its estimate first, then its reservations in their order.
function holds.own(tx, id, member, amounts)
  local parts, sum = {}, {}
  local function look(name, hold)
    local part = {}
    for dimension, n in pairs(amounts) do
      local take = math.min(hold.amounts[dimension] or 0, n - (sum[dimension] or 0))
      if take > 0 then part[dimension], sum[dimension] = take, (sum[dimension] or 0) + take end
    end
    parts[#parts + 1] = { name = name, hold = hold, take = part }
  end
  local holder = member and holds.of_holder(tx, id, member)
  if holder then
    look(member, holder)
    for _, reservation in ipairs(holder.reservations) do look(reservation, holds.reservation(tx, id, reservation)) end
  end
  return sum, parts
end

-- Takes what `own` found out of the holds.
function holds.consume(tx, path, sum, parts)
  local id = path[1].id
  for _, part in ipairs(parts) do
    if any(part.take) then
      for dimension, n in pairs(part.take) do part.hold.amounts[dimension] = part.hold.amounts[dimension] - n end
      if part.hold.reservations then
        holds.put_holder(tx, id, part.name, part.hold)
      else
        put_reservation(tx, id, part.name, part.hold)
      end
    end
  end
  budget.hold(path, sum, -1)
end

-- The time of a reservation is over.
function holds.fire(tx, id, reservation)
  local path = budget.path(tx, id)
  local hold = path and holds.reservation(tx, id, reservation)
  if hold == nil then return timers.clear(tx, timer(id, reservation)) end
  if hold.ends and hold.ends > tx.now then return tx:zadd(keys.timers(tx), hold.ends, timer(id, reservation)) end
  holds.drop_reservation(tx, path, reservation, hold)
  holds.give_back(tx, path, hold.amounts)
  budget.save_all(tx, path)
end

return holds
end

source["transition.runnable"] = function(require, LIBRARY)
-- Puts an execution that waits to run where it belongs: blocked by its edges, its children or its route, delayed, or
-- eligible.
local children = require "record.children"
local dependencies = require "record.dependencies"
local event = require "lib.event"
local execution = require "record.execution"
local flow = require "record.flow"
local keys = require "lib.keys"
local queues = require "index.queues"
local step = require "record.step"
local suspension = require "record.suspension"

local runnable = {}

-- A member that is a flow runs while the flow does.
local function start_nested(tx, rec)
  execution.block(rec, "waiting_for_children", { "flow_id", rec.nested }, tx.now)
  local f = flow.load(tx, rec.nested)
  if f == nil then error("CORRUPT " .. keys.flow(tx, rec.nested) .. " core") end
  if f.sealed then return end
  f.sealed = tx.now
  flow.walk_over(tx, f, "release")
  flow.save(tx, f)
  event.of_flow(tx, f, "flow.sealed")
end

-- The step under which it waited for its children is done.
local function children_ended(tx, rec)
  local w = suspension.woken(rec)
  if w == nil or w.step == nil or w.cause ~= "children" then return end
  step.found(tx, rec, w.step, "children", {
    id = w.id, cause = w.cause, refs = {}, upto = children.load(rec).total,
  })
end

-- Clears whatever held the execution back and decides its place anew; an operator's hold is not cleared here
-- but by whoever calls this.
function runnable.settle(tx, rec)
  rec.phase = "runnable"
  execution.unblock(rec)
  if dependencies.waits(rec) then return execution.block(rec, "waiting_for_dependencies", nil, tx.now) end
  if rec.awaiting then
    if children.load(rec).open > 0 then return execution.block(rec, "waiting_for_children", nil, tx.now) end
    rec.awaiting = nil
    children_ended(tx, rec)
  end
  if rec.delay and rec.delay <= tx.now then rec.delay = nil end
  if rec.delay == nil and rec.nested then return start_nested(tx, rec) end
  if rec.delay == nil then
    local entry = queues.without_worker(tx, rec.path, queues.name(rec.queue, rec.kind))
    if entry then runnable.block_route(rec, entry, tx.now) end
  end
end

-- No live worker runs what is in its queue. `kind` is there when none takes the kind at all.
function runnable.block_route(rec, entry, now)
  local detail = { "requires", table.concat(rec.requires or {}, ",") }
  if entry.kind_missing then detail[3], detail[4] = "kind", rec.kind end
  execution.block(rec, "waiting_for_capable_worker", detail, now)
end

return runnable
end

source["transition.score"] = function(require, LIBRARY)
-- An execution's place in its queue: lower goes first.
local fair = require "index.fair"

local score = {}

-- Age against priority: a point of priority is worth `priority_weight` milliseconds of age. In a fair lane the
-- virtual start of the fairness key stands for the age.
function score.of(tx, copy, rec)
  rec.fair, rec.fair_end = nil, nil
  if copy.fairness == "fair" then rec.fair, rec.fair_end = fair.start(tx, copy, rec.fairness_key, tx.now) end
  return (rec.fair or rec.created) - rec.prio * copy.priority_weight
end

return score
end

source["transition.member"] = function(require, LIBRARY)
-- The start and the end of a member of a flow that is nothing special, as in transition/plain.lua. The flow and the
-- members that wait for it are shared by all operations of a list: a member that ends is counted in records that are
-- open already.
local bytes = require "lib.bytes"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local flow = require "record.flow"
local home = require "index.home"
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"
local queues = require "index.queues"
local running = require "record.running"

local member = {}

local pack, unpack_ = cmsgpack.pack, cmsgpack.unpack
local select, floor, ipairs = select, math.floor, ipairs
local close_execution, close_flow = packed.close_execution, packed.close_flow
local active_from = home.active_from
local whole, none = bytes.list(38), bytes.none
local no_end, no_groups = none .. none .. none, none .. none .. none .. none .. none

-- Members that one end may reach here.
local reached_max = 4

-- The groups of a record, by their places in record/fields.lua: true when they hold nothing that is special here.

local function is_member(g)
  return g[1] and not (g[4] or g[5])
end

-- At most since when it stands in line.
local function only_ready(g)
  return not (g[1] or g[2] or g[3] or g[4] or g[5] or g[6] or g[7] or g[8] or g[9] or g[11] or g[12] or g[13])
end

-- What it waited for, how many edges lead out of it, and that it is kept for its flow.
local function only_edges(g)
  return g[10] and not (g[5] or g[6] or g[7] or g[8] or g[9] or g[11] or g[12] or g[13] or g[14])
end

-- At most that it has a spec.
local function only_said(g)
  return not (g[1] or g[2] or g[3] or g[4] or g[5] or g[6] or g[7] or g[8] or g[9])
end

-- The flow of a member while it runs as planned: sealed, not stopped, and with nothing due that it does not know of.
local function open_flow(tx, id)
  local f = tx:shared(keys.flow(tx, id)) or flow.load(tx, id)
  if f and f.sealed and not f.stop and not f.ended and flow.wake_at(f) == f.wake then return f end
end

-- Counts a member under another state.
local function recount(tx, f, was, state)
  flow.recount(f, was, state)
  f.updated = tx.now
  tx:share(keys.flow(tx, f.id), f, close_flow)
end

-- Starting --------------------------------------------------------------------------------------

-- Leases a member that never ran. Answers as `plain.start`, and the extras of its task.
function member.start(
  tx, id, holder, lease_id, attempt_id, room,
  key, path, kind, created_at, queue, retention, _, prio, score, _, wake, digest, input, tags, named, held,
  attempt, _, _, _, _, _, _, _, _, _, _, _, _, _, _, part, pending, wants, bounds, waits, frames, edges, more, ...
)
  if attempt or named or held or wake or wants or bounds or waits or frames or select("#", ...) > 0
    or not part or not is_member(part) or not edges or edges[3] or not only_edges(edges)
    or (pending and not only_ready(pending)) or (more and not only_said(more))
  then
    return nil
  end
  local f = open_flow(tx, part[1])
  if f == nil then return nil end
  local given = input and tx:get(key .. ":input") or ""
  if room and #given > room then return false end
  local extras = more and { spec = tx:record(keys.spec(tx, id)) } or false
  local now, worker, ttl = tx.now, holder.instance, holder.lease_ttl_ms
  local wake_at = now + ttl
  local record, told = running.started(
    tx, id, attempt_id, lease_id, worker, holder.worker_id, wake_at, ttl, now - (pending and pending[10] or created_at),
    path, kind, created_at, queue, retention, prio, score, digest, input, tags, false, false, f.id
  )
  record = whole .. record .. no_end .. pack(part) .. no_groups .. pack(edges) .. (more and pack(more) or none)
  recount(tx, f, "waiting", "active")
  tx:set(key, record)
  tx:zadd(keys.timers(tx), wake_at, id)
  tx:zadd(keys.queue(tx, path, queue, kind), active_from + created_at, id)
  tx:hput(keys.leases(tx, worker), lease_id, id)
  tx:note(told)
  return record, wake_at, given, extras
end

-- Completing ------------------------------------------------------------------------------------

-- Packs a member with what it waits for, which stays open as long as it is shared.
local function close_waiting(rec)
  if rec.waits_for then dependencies.store(rec, rec.waits_for) end
  return close_execution(rec)
end

-- A member that waits for nothing but its edges, all of which must be met. Answers it with what it waits for.
local function waiting(tx, f, id)
  local rec = tx:shared(keys.core(tx, id)) or execution.load(tx, id, true)
  if rec == nil or rec.hidden or rec.phase ~= "runnable" or rec.reason ~= "waiting_for_dependencies" or rec.inbound
    or rec.flow_id ~= f.id
  then
    return nil
  end
  local d = rec.waits_for or dependencies.load(rec)
  if d.decided or d.dead > 0 or d.hopes > 0 then return nil end
  if d.met + 1 < d.total then return rec, d end
  -- It is about to be ready, and must be able to stand in line at once.
  if rec.wake or rec.delay or rec.start_within or rec.deadline or rec.awaiting or rec.nested or rec.grant
    or rec.queue ~= "any" or d.bytes > limits.passed_bytes_max
  then
    return nil
  end
  if not queues.foresee(tx, rec.path, queues.name(rec.queue, rec.kind)) then return nil end
  return rec, d
end

-- The edges out of a member that ends well, with those they lead to; nil when one of them is special.
local function reach(tx, f, id, outs)
  local out, key = {}, keys.edges_out(tx, id)
  for n = 1, outs do
    local stored = tx:hget(key, n == 1 and "1" or string.format("%.0f", n))
    if stored == nil then return nil end
    local e = unpack_(stored)
    if e[3] or e[4] ~= "pending" or e[5] or e[2] == "failure" then return nil end
    local rec, d = waiting(tx, f, e[1])
    if rec == nil then return nil end
    out[n] = { rec = rec, d = d, on = e[2] }
  end
  return out
end

-- One edge is met.
local function meet(tx, f, key, n, one)
  local rec, d, now = one.rec, one.d, tx.now
  d.met = d.met + 1
  local ready = d.met == d.total
  if ready then d.decided = "ready" end
  rec.waits_for, rec.updated = d, now
  if ready then
    recount(tx, f, "waiting_children", "waiting")
    rec.reason, rec.since, rec.ready, rec.was_state = nil, nil, now, "waiting"
    home.move(tx, rec, "queue", rec.score)
    tx:note(pack({
      "execution.ready", now, rec.path, rec.kind, rec.id, f.id, rec.attempt or false, rec.worker or false,
      rec.tags or false, "cause", "dependencies",
    }))
  end
  tx:share(keys.core(tx, rec.id), rec, close_waiting)
  tx:hput(key, n, pack({ rec.id, one.on, false, "met", false, 0 }))
end

-- Ends the attempt of a member whose fence was checked. Answers nil, with nothing planned, when it is special.
function member.complete(
  tx, id, result,
  key, path, kind, created_at, queue, retention, _, prio, score, _, _, digest, input, tags, named, held,
  attempt, attempt_id, attempt_type, _, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl, ended_by,
  _, _, _, part, pending, wants, bounds, waits, frames, edges, more, ...
)
  if named or held or ended_by or pending or wants or bounds or waits or frames or select("#", ...) > 0
    or not part or not is_member(part) or not edges or not only_edges(edges) or (more and not only_said(more))
  then
    return false
  end
  local outs, f = edges[4] or 0, open_flow(tx, part[1])
  if f == nil or outs > reached_max or (outs == 0 and flow.open(f) <= 1) then return false end
  local reached = reach(tx, f, id, outs)
  if reached == nil then return false end
  local now = tx.now
  if outs > 0 then
    edges[5] = outs
  else
    edges[8] = "good_sink"
    flow.count_verdict(f, "good_sink", 1)
  end
  recount(tx, f, "active", "completed")
  local record, told = running.completed(
    tx, id, nil, now - floor(epoch / 1000), result or false, f.id,
    path, kind, created_at, queue, retention, prio, score, digest, input, tags, false,
    attempt, attempt_id, attempt_type, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl
  )
  tx:set(key, whole .. record .. pack(part) .. no_groups .. pack(edges) .. (more and pack(more) or none))
  tx:zrem(keys.timers(tx), id)
  tx:zrem(keys.queue(tx, path, queue, kind), id)
  tx:zadd(keys.place(tx, path, "terminal"), created_at, id)
  tx:hdel(keys.leases(tx, worker), lease_id)
  tx:note(told)
  for n, one in ipairs(reached) do meet(tx, f, keys.edges_out(tx, id), n, one) end
  return true
end

return member
end

source["transition.plain"] = function(require, LIBRARY)
-- The three transitions that most executions make, for those that are nothing special: submitted with what every
-- submission says, started for the first time, completed. Each reads and packs the record's values by their places,
-- without a table of them, and plans its writes at once. Whatever is not plain is left to the general transitions,
-- which would do the same step by step: a test runs both ways and compares what is stored.
local bytes = require "lib.bytes"
local keys = require "lib.keys"
local admit = require "transition.admit"
local asks = require "record.asks"
local home = require "index.home"
local holds = require "record.holds"
local lane = require "record.lane"
local limits = require "lib.limits"
local member = require "transition.member"
local packed = require "record.packed"
local queues = require "index.queues"
local running = require "record.running"

local plain = {}

local pack, values = cmsgpack.pack, packed.values
local select, floor, pairs = select, math.floor, pairs
local started_of, completed_of = bytes.list(27), bytes.list(30)
local active_from = home.active_from
local week_ms = 604800000

-- Submitting ------------------------------------------------------------------------------------

-- The answer around the id.
local before_id, after_id
local function created(id)
  if before_id == nil then
    local mark = string.rep("#", 36)
    local sample = pack("created", { execution_id = mark, state = "waiting" })
    local from, to = string.find(sample, mark, 1, true)
    before_id, after_id = string.sub(sample, 1, from - 1), string.sub(sample, to + 1)
  end
  return { bytes = before_id .. id .. after_id, ok = "created" }
end

-- The quotas and budgets a submission names, when it says nothing else that is rare; else nil.
local function asks_of(more)
  for name in pairs(more) do
    if name ~= "quotas" and name ~= "budgets" then return nil end
  end
  local quotas, budgets = more.quotas, more.budgets
  if (quotas and #quotas == 0) or (budgets and #budgets ~= 1) then return nil end
  return asks.packed(quotas, budgets)
end

-- Accepts a submission that says nothing rare, in a lane that asks for nothing rare. Answers nil when it is not plain.
function plain.submit(tx, s)
  local path, class, more, named = s.namespace .. "/" .. s.lane, "any", s.more, false
  if more then
    named, class = asks_of(more), "admit.any"
    if not named then return nil end
  end
  local copy = lane.load(tx, path)
  if copy == nil or copy.state ~= "active" or copy.max_depth or copy.fairness ~= "fifo" or copy.retry
    or copy.attempt_timeout_ms
  then
    return nil
  end
  lane.prepare(tx, copy)
  if lane.recall(tx, copy, "uncovered") then return nil end
  local id, kind, now, input = s.execution_id, s.kind, tx.now, s.input
  local key = keys.core(tx, id)
  if tx:record(key) then return nil end
  local prio = s.priority or 0
  local score = now - prio * copy.priority_weight
  local has_input, retention = input and input ~= "", s.retention_ms or copy.retention_ms or week_ms
  local record, told = running.submitted(
    tx, id, path, kind, class, retention, prio, score, s.body_digest, has_input, named
  )
  tx:set(key, record)
  if has_input then tx:set(key .. ":input", input) end
  local name = queues.name(class, kind)
  -- A quiet queue stands among the heads with something older already.
  local quiet = queues.quiet(tx, copy, name)
  if prio > 0 or not quiet then queues.entered(tx, path, name, nil, score) end
  tx:zadd(keys.queue(tx, path, class, kind), score, id)
  tx:zadd(keys.all(tx), now, id)
  tx:zadd(keys.kind(tx, kind), now, id)
  if prio > 0 or not quiet then tx:announce("ready", path, name, score) end
  tx:note(told)
  return created(id)
end

-- Starting --------------------------------------------------------------------------------------

-- Writes the start of an execution; `holds` is what it holds.
local function lease(
  tx, key, id, holder, lease_id, attempt_id, waited_from,
  path, kind, created_at, queue, retention, prio, score, digest, input, tags, named, held
)
  local now, worker, ttl = tx.now, holder.instance, holder.lease_ttl_ms
  local wake = now + ttl
  local record, told = running.started(
    tx, id, attempt_id, lease_id, worker, holder.worker_id, wake, ttl, now - waited_from,
    path, kind, created_at, queue, retention, prio, score, digest, input, tags, named, held, false
  )
  record = started_of .. record
  tx:set(key, record)
  tx:zadd(keys.timers(tx), wake, id)
  tx:zadd(keys.queue(tx, path, queue, kind), active_from + created_at, id)
  tx:hput(keys.leases(tx, worker), lease_id, id)
  tx:note(told)
  return record, wake
end

local function start(
  tx, id, holder, lease_id, attempt_id, room,
  key, path, kind, created_at, queue, retention, phase, prio, score, updated, wake_at, digest, input, tags, named, held,
  ...
)
  if phase ~= "runnable" or named then return nil end
  if select("#", ...) > 0 then
    return member.start(
      tx, id, holder, lease_id, attempt_id, room,
      key, path, kind, created_at, queue, retention, phase, prio, score, updated, wake_at, digest, input, tags, named,
      held, ...
    )
  end
  local bytes = input and tx:get(key .. ":input") or ""
  if room and #bytes > room then return false end
  local record, wake = lease(
    tx, key, id, holder, lease_id, attempt_id, created_at,
    path, kind, created_at, queue, retention, prio, score, digest, input, tags, false, false
  )
  return record, wake, bytes
end

-- Leases an execution that never ran. Answers nil when it is not plain, false when its input needs more than the room
-- there is, else the packed record, when it wakes, and its input.
function plain.start(tx, id, holder, lease_id, attempt_id, room)
  local key = keys.core(tx, id)
  local stored = tx:record(key)
  if stored == nil then return nil end
  return start(tx, id, holder, lease_id, attempt_id, room, values(key, stored))
end

-- The values of a record in a table.
local function listed(_, ...)
  return { ... }
end

-- An execution that never ran, is part of nothing and needs admission, as it asks for it. Answers nil when it is not
-- plain, or its input needs more than the room there is.
function plain.asking(tx, id, lease_id, room)
  local key = keys.core(tx, id)
  local stored = tx:record(key)
  if stored == nil then return nil end
  local v = listed(values(key, stored))
  if #v ~= 15 or v[6] ~= "runnable" or not v[14] or v[15] then return nil end
  local input = v[12] and tx:get(key .. ":input") or ""
  if room and #input > room then return nil end
  return admit.asker(id, lease_id, nil, v[8], asks.open(v[14]), #input, v, input)
end

-- Leases one that was let in. Answers the packed record and when it wakes.
function plain.start_admitted(tx, one, holder, attempt_id)
  local v, id = one.v, one.execution_id
  return lease(
    tx, keys.core(tx, id), id, holder, one.holder_id, attempt_id, v[3],
    v[1], v[2], v[3], v[4], v[5], v[7], v[8], v[11], v[12], v[13], v[14], holds.all
  )
end

-- Completing ------------------------------------------------------------------------------------

local completed = { ok = "completed" }

-- Owes back everything an execution names. False, with nothing planned, when the call cannot do that.
local function owe_back(tx, id, holder, sets)
  for i = 1, #sets do
    if not holds.near(tx, sets[i]) then return false end
  end
  for i = 1, #sets do tx:owe("release", sets[i], id, holder) end
  return true
end

local function complete(
  tx, c,
  key, path, kind, created_at, queue, retention, phase, prio, score, updated, wake_at, digest, input, tags, named, held,
  attempt, attempt_id, attempt_type, state, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl,
  ended_by, ...
)
  local f, now, id = c.fence, tx.now, c.execution_id
  if phase ~= "active" or epoch ~= f.lease_epoch or lease_id ~= f.lease_id
    or attempt_id ~= f.attempt_id or now >= lease_until
  then
    return nil
  end
  if select("#", ...) > 0 then
    return member.complete(
      tx, id, c.result,
      key, path, kind, created_at, queue, retention, phase, prio, score, updated, wake_at, digest, input, tags, named,
      held, attempt, attempt_id, attempt_type, state, started, lease_id, epoch, worker, worker_id, lease_until,
      lease_ttl, ended_by, ...
    ) and completed or nil
  end
  if held and (held ~= holds.all or not owe_back(tx, id, lease_id, asks.open(named).sets)) then return nil end
  local wake = now + retention
  local record, told = running.completed(
    tx, id, wake, now - floor(epoch / 1000), c.result or false, false,
    path, kind, created_at, queue, retention, prio, score, digest, input, tags, named,
    attempt, attempt_id, attempt_type, started, lease_id, epoch, worker, worker_id, lease_until, lease_ttl
  )
  tx:set(key, completed_of .. record)
  tx:zadd(keys.timers(tx), wake, id)
  tx:zrem(keys.queue(tx, path, queue, kind), id)
  tx:zadd(keys.place(tx, path, "terminal"), created_at, id)
  tx:hdel(keys.leases(tx, worker), lease_id)
  tx:note(told)
  return completed
end

-- Ends an attempt with a small result. Answers nil when the execution is not plain, or the fence is not its own.
function plain.complete(tx, c)
  local result, encoding = c.result, c.result_encoding
  if (result and #result > limits.result_inline_bytes_max) or (encoding and encoding ~= "json") then return nil end
  local key = keys.core(tx, c.execution_id)
  local stored = tx:record(key)
  if stored == nil then return nil end
  return complete(tx, c, values(key, stored))
end

return plain
end

source["transition.submit"] = function(require, LIBRARY)
-- Turns a submission into an execution, or finds the one it repeats.
local asks = require "record.asks"
local keys = require "lib.keys"
local reply = require "lib.reply"
local event = require "lib.event"
local lists = require "index.lists"
local queues = require "index.queues"
local timers = require "index.timers"
local execution = require "record.execution"
local fired = require "record.fired"
local lane = require "record.lane"
local spec = require "record.spec"
local plain = require "transition.plain"
local runnable = require "transition.runnable"
local score = require "transition.score"

local submit = {}

local day_ms = 86400000
local week_ms = 7 * day_ms
local solo, nothing = {}, {}

-- A list of tokens without repetitions, in order; nil when it is empty.
local function sorted_set(tokens)
  if tokens == nil or #tokens == 0 then return nil end
  local list, seen = {}, {}
  for _, token in ipairs(tokens) do
    if not seen[token] then
      seen[token] = true
      list[#list + 1] = token
    end
  end
  table.sort(list)
  return list
end

-- The budgets of the flow or parent come on top of the execution's own; nil when there are none.
local function all_budgets(own, shared)
  if own == nil and shared == nil then return nil end
  local list, seen = {}, {}
  for _, refs in ipairs({ own or {}, shared or {} }) do
    for _, ref in ipairs(refs) do
      if not seen[ref.budget_id] then
        seen[ref.budget_id] = true
        list[#list + 1] = ref
      end
    end
  end
  return #list > 0 and list or nil
end

-- Quotas with their weights; nil when there are none.
local function all_quotas(quotas)
  if quotas == nil or #quotas == 0 then return nil end
  for _, ref in ipairs(quotas) do ref.weight = ref.weight or 1 end
  return quotas
end

-- A record that is not stored yet. Constructed at once, with the fields nearly every execution has.
local function new_record(s, path, copy, now)
  return {
    path = path, kind = s.kind, created = now, queue = "any",
    retention = s.retention_ms or copy.retention_ms or week_ms, phase = nil, outcome = nil, prio = s.priority or 0,
    score = nil, updated = nil, wake = nil, digest = s.body_digest, input = nil, tags = nil, id = s.execution_id,
    was_phase = nil, was_place = nil, was_score = nil,
  }
end

-- What few submissions say, and what few lanes do. To set a field to nothing would make room for it.
local function note_rare(rec, m, copy, now)
  if copy.retry then rec.lane_retry = copy.retry end
  local timeout = m.attempt_timeout_ms or copy.attempt_timeout_ms
  if timeout then rec.timeout = timeout end
  if next(m) == nil then return end
  if m.deadline_at or m.deadline_ms then rec.deadline = m.deadline_at or now + m.deadline_ms end
  if m.delay_until or m.delay_ms then rec.delay = m.delay_until or now + m.delay_ms end
  if m.start_within_ms then rec.start_within, rec.start_by = m.start_within_ms, now + m.start_within_ms end
  if m.max_reclaims then rec.max_reclaims = m.max_reclaims end
  if m.max_replays then rec.max_replays = m.max_replays end
  if m.fairness_key then rec.fairness_key = m.fairness_key end
  if m.completion_webhook then rec.webhook = m.completion_webhook end
  if m.fired then fired.note(rec, m.fired) end
  if m.stream then rec.max_frames = m.stream.max_frames end
  if m.input_encoding and m.input_encoding ~= "json" then rec.input_in = m.input_encoding end
  if m.tags and next(m.tags) then rec.tags = cmsgpack.pack(spec.flatten(m.tags)) end
end

-- What it is part of: { flow_id, key, number, inbound, nested } or { parent_id, key, number, parent_close }, with the
-- budgets and the deadline it shares.
local function note_place(rec, place)
  rec.key, rec.number = place.key, place.number
  if place.flow_id then rec.flow_id = place.flow_id end
  if place.inbound then rec.inbound = place.inbound end
  if place.nested then rec.nested = place.nested end
  if place.parent_id then rec.parent_id, rec.parent_close = place.parent_id, place.parent_close end
  if place.deadline and (rec.deadline == nil or place.deadline < rec.deadline) then rec.deadline = place.deadline end
end

local function duplicate(tx, id)
  local rec = execution.load(tx, id)
  return reply.ok("duplicate", { execution_id = id, state = rec and execution.public_state(rec) or nil })
end

-- The keys of a flow, of a parent's children and of everything else in a namespace are apart.
local function key_digest(s, place)
  return keys.digest((place.flow_id or place.parent_id or s.namespace) .. "/" .. s.more.idempotency_key)
end

local function has_key(s)
  return s.more and s.more.idempotency_key
end

-- The id belongs to another execution. One of another namespace is nobody's to know about: as if it could not be found.
local function taken(rec, s)
  local code = execution.namespace(rec) == s.namespace and "idempotency_conflict" or "execution_not_found"
  return reply.err(code, { execution_id = s.execution_id })
end

-- The execution this submission repeats, as an answer, or nil.
local function known(tx, s, place)
  if has_key(s) then
    local record = tx:hgetall(keys.idempotency(tx, key_digest(s, place)))
    if record == nil or tonumber(record.until_ms) <= tx.now then return nil end
    if record.body_digest ~= s.body_digest then
      return reply.err("idempotency_conflict", { execution_id = record.execution_id })
    end
    return duplicate(tx, record.execution_id)
  end
  local rec = execution.load(tx, s.execution_id, true)
  if rec == nil then return nil end
  if execution.namespace(rec) ~= s.namespace or rec.digest ~= s.body_digest then return taken(rec, s) end
  return reply.ok("duplicate", { execution_id = s.execution_id, state = execution.public_state(rec) })
end

local function remember_key(tx, s, place)
  local digest = key_digest(s, place)
  local until_ms = tx.now + (s.more.idempotency_ttl_ms or day_ms)
  tx:hset(keys.idempotency(tx, digest), {
    "execution_id", s.execution_id, "body_digest", s.body_digest, "until_ms", until_ms,
  })
  timers.set(tx, "idem:" .. digest, until_ms)
end

local function refused(copy, s)
  if not lane.accepts(copy) then return reply.err("lane_disabled", { lane = s.lane, state = copy.state }) end
  if copy.max_depth then
    local depth = s.more and s.more.lane_depth
    if depth == nil then return reply.err("lane_depth_needed", { lane = s.lane }) end
    if depth >= copy.max_depth then
      return reply.err("lane_full", {
        lane = s.lane, depth = depth, max_depth = copy.max_depth, depth_age_ms_max = 1000,
      })
    end
  end
end

local function invalid(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

-- Two ways to say the same thing must not contradict each other.
local function contradiction(m)
  if m.delay_until and m.delay_ms then return invalid("delay_ms", "give delay_until or delay_ms, not both") end
  if m.deadline_at and m.deadline_ms then return invalid("deadline_ms", "give deadline_at or deadline_ms, not both") end
  if m.idempotency_ttl_ms and not m.idempotency_key then
    return invalid("idempotency_ttl_ms", "needs idempotency_key")
  end
end

-- What a submission repeats, or why it contradicts itself; nil when it is new.
function submit.repeated(tx, s, place)
  return s.more and contradiction(s.more) or known(tx, s, place)
end

function submit.one(tx, s)
  if not tx.step_by_step then
    local answer = plain.submit(tx, s)
    if answer then return answer end
  end
  local answer = submit.repeated(tx, s, solo)
  if answer then return answer end
  local rec, refusal = submit.new(tx, s, solo)
  if refusal then return refusal end
  submit.place(tx, rec)
  return reply.ok("created", { execution_id = rec.id, state = execution.public_state(rec) })
end

-- A new execution, not saved yet, or nil and the refusal.
function submit.new(tx, s, place)
  local now = tx.now
  local path = s.namespace .. "/" .. s.lane
  local copy = lane.load(tx, path)
  if copy == nil then return nil, reply.err("lane_unseen", { namespace = s.namespace, lane = s.lane }) end
  local refusal = refused(copy, s)
  if refusal then return nil, refusal end
  local other = has_key(s) and execution.load(tx, s.execution_id, true)
  if other then return nil, taken(other, s) end

  local rec, m = new_record(s, path, copy, now), s.more or nothing
  note_rare(rec, m, copy, now)
  if place ~= solo then note_place(rec, place) end
  local requires, prefers = sorted_set(m.requires), sorted_set(m.prefers)
  local budgets, quotas = all_budgets(m.budgets, place.budgets), all_quotas(m.quotas)
  if requires or budgets or quotas then
    rec.requires, rec.asks = requires, asks.packed(quotas, budgets)
    rec.queue = queues.class(requires or {}, budgets ~= nil or quotas ~= nil)
  end
  if prefers then
    rec.prefers = prefers
    lane.remember(tx, copy, "prefers", "1")
  end
  if s.input and s.input ~= "" then
    rec.input = 1
    tx:set(keys.input(tx, rec.id), s.input)
  end
  spec.store(tx, rec, m)
  rec.score = score.of(tx, copy, rec)
  if has_key(s) then remember_key(tx, s, place) end
  return rec
end

-- Puts a new execution where it belongs, for everybody to see.
function submit.place(tx, rec)
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  lists.add(tx, rec)
  event.of_execution(tx, rec, "execution.submitted", "state", execution.public_state(rec))
end

return submit
end

source["transition.owed"] = function(require, LIBRARY)
-- What a transition owes other records of its partition: done at once as far as one call's share goes, the rest is kept
-- with the record that owes it and paid by whoever fires timers. Work that leads to more work waits in line: a deep
-- flow is not a deep call.
local limits = require "lib.limits"
local execution = require "record.execution"
local flow = require "record.flow"
local timers = require "index.timers"

local owed = {}

-- Kind of work -> function(tx, rec, from, share) that does it from a place on and answers how many records it touched
-- and where it stopped, or nil when it is done. Filled by those who know how.
owed.steps = {}
-- function(tx, flow) that looks whether a flow has ended; filled as above.
owed.settle_flow = nil

function owed.timer(id)
  return "owed:" .. id
end

local function load_debts(rec)
  return rec.owed and cmsgpack.unpack(rec.owed) or {}
end

local function count_in_flow(tx, rec, by)
  local f = rec.flow_id and flow.load(tx, rec.flow_id)
  if f == nil then return end
  local n = (f.owed or 0) + by
  f.owed = n ~= 0 and n or nil
  flow.save(tx, f)
end

local function store_debts(tx, rec, debts)
  local had = rec.owed ~= nil
  rec.owed = #debts > 0 and cmsgpack.pack(debts) or nil
  if rec.owed and not had then
    timers.set(tx, owed.timer(rec.id), tx.now)
    count_in_flow(tx, rec, 1)
  elseif had and not rec.owed then
    timers.clear(tx, owed.timer(rec.id))
    count_in_flow(tx, rec, -1)
  end
  execution.save(tx, rec)
end

local function keep(tx, rec, kind, from)
  local debts = load_debts(rec)
  debts[#debts + 1] = { kind, from }
  store_debts(tx, rec, debts)
end

-- Works through the line, then looks at the flows it touched; their end may put more in the line.
local function work(tx, line)
  local share, at, settled = limits.consequences_max, 1, 1
  while true do
    local item = line[at]
    if item then
      at = at + 1
      local rec = execution.load(tx, item.id, true)
      if rec then
        local touched, rest = 0, item.from
        if share > 0 then touched, rest = owed.steps[item.kind](tx, rec, item.from, share) end
        share = share - touched
        if rest then keep(tx, rec, item.kind, rest) end
      end
    elseif line.flows[settled] then
      local f = flow.load(tx, line.flows[settled])
      settled = settled + 1
      if f then
        line.waiting[f.id] = nil
        owed.settle_flow(tx, f)
      end
    else
      return
    end
  end
end

-- Runs `body` with a line of work open, and works through it afterwards; one that is open already takes it.
function owed.during(tx, body)
  if tx.memo.line then return body() end
  local line = { flows = {}, waiting = {} }
  tx.memo.line = line
  local answer = body()
  work(tx, line)
  tx.memo.line = nil
  return answer
end

-- Work of a kind for a record, from a place on.
function owed.add(tx, rec, kind, from)
  owed.during(tx, function()
    local line = tx.memo.line
    line[#line + 1] = { id = rec.id, kind = kind, from = from }
  end)
end

-- The flow may have ended: looked at when everything else is done.
function owed.look_at_flow(tx, id)
  owed.during(tx, function()
    local line = tx.memo.line
    if not line.waiting[id] then
      line.waiting[id] = true
      line.flows[#line.flows + 1] = id
    end
  end)
end

-- Pays a share of what a record owes; called when its timer fires.
function owed.pay(tx, id)
  local rec = execution.load(tx, id, true)
  local debts = rec and load_debts(rec) or {}
  if #debts == 0 then return timers.clear(tx, owed.timer(id)) end
  owed.during(tx, function()
    local line = tx.memo.line
    for _, debt in ipairs(debts) do line[#line + 1] = { id = id, kind = debt[1], from = debt[2] } end
    store_debts(tx, rec, {})
    if rec.flow_id then owed.look_at_flow(tx, rec.flow_id) end
  end)
end

return owed
end

source["transition.stop"] = function(require, LIBRARY)
-- Stopping a flow: final for claims at once; its members are cancelled in a walk that is owed until it is done.
local event = require "lib.event"
local flow = require "record.flow"

local stop = {}

-- `how`: policy, reason, actor, outcome, data for the event.
function stop.flow(tx, f, how)
  f.stop = cmsgpack.pack({ how.policy, how.reason or false, how.actor or false, tx.now })
  f.outcome = how.outcome
  f.sealed = f.sealed or tx.now
  flow.walk_over(tx, f, "cancel")
  flow.save(tx, f)
  event.of_flow(tx, f, "flow." .. how.outcome, unpack(how.data or {}))
end

-- A failure that nobody takes up, in a flow that fails with its first.
function stop.after_failure(tx, f, rec)
  if f.stop then return end
  stop.flow(tx, f, {
    policy = "cancel_all", reason = "flow_failed", outcome = "failed",
    data = { "member", rec.key, "execution_id", rec.id },
  })
end

return stop
end

source["transition.resolve"] = function(require, LIBRARY)
-- What the end of a member means for those that wait for it: edges are met or die, members become ready or are skipped,
-- and so on downstream; and what it means for the flow.
local dependencies = require "record.dependencies"
local event = require "lib.event"
local execution = require "record.execution"
local finish = require "transition.finish"
local fired = require "record.fired"
local flow = require "record.flow"
local keys = require "lib.keys"
local limits = require "lib.limits"
local owed = require "transition.owed"
local runnable = require "transition.runnable"
local stop = require "transition.stop"
local webhook = require "record.webhook"

local resolve = {}

local function failed(rec)
  return rec.phase == "terminal" and (rec.outcome == "failed" or rec.outcome == "expired")
end

-- A failure is taken up by an edge on failure or completion, or by an any_of or quorum that is satisfied without it.
-- Kept with a failed member: { taken up, members that may still take it up }.
local function fault_of(rec)
  local f = rec.fault and cmsgpack.unpack(rec.fault) or { false, 0 }
  return { caught = f[1], hopes = f[2] }
end

local function store_fault(rec, fault)
  rec.fault = cmsgpack.pack({ fault.caught, fault.hopes })
end

-- What a member's outcome means for the flow, once all its edges know of it: "uncaught", "good_sink" or nothing.
function resolve.verdict(rec)
  if rec.phase ~= "terminal" or (rec.reached or 0) < (rec.outs or 0) then return nil end
  if failed(rec) then
    local fault = fault_of(rec)
    return not fault.caught and fault.hopes == 0 and "uncaught" or nil
  end
  return rec.outcome == "success" and (rec.outs or 0) == 0 and "good_sink" or nil
end

-- Keeps the flow's sums in step with a member whose outcome, edges or fault changed, and saves it.
function resolve.weigh(tx, f, rec)
  local verdict = resolve.verdict(rec)
  if verdict ~= rec.verdict then
    flow.count_verdict(f, rec.verdict, -1)
    flow.count_verdict(f, verdict, 1)
    rec.verdict = verdict
    flow.save(tx, f)
    if verdict == "uncaught" and f.policy == "fail_flow" then stop.after_failure(tx, f, rec) end
  end
  execution.save(tx, rec)
end

-- The others of a race that was won: work that nobody else waits for is not needed any more.
local function needed_elsewhere(tx, up, down)
  local outs = up.outs or 0
  if outs > limits.consequences_max then return true end
  for _, e in ipairs(dependencies.edges(tx, up.id, 1, outs)) do
    if e.to ~= down.id and e.state == "pending" then return true end
  end
  return false
end

function owed.steps.spare(tx, down, from, share)
  if tx:plans(keys.edges_in(tx, down.id)) then return 0, from end
  local list = dependencies.upstreams(tx, down.id, from, share)
  for _, item in ipairs(list) do
    local up = execution.load(tx, item.from)
    if up and up.phase ~= "terminal" and not needed_elsewhere(tx, up, down) then
      finish.execution(tx, up, "cancelled", {
        by = "flow", attempt_state = "cancelled", failure = { "another one was faster", "cancelled" },
        data = { "cause", "cancel_remaining" },
      })
    end
  end
  return #list, #list == share and from + share or nil
end

-- A race was decided: the failures that hoped for it are taken up, or have one hope less.
function owed.steps.hopes(tx, down, from, share)
  if tx:plans(keys.edges_in(tx, down.id)) then return 0, from end
  local f = flow.load(tx, down.flow_id)
  local ready = dependencies.load(down).decided == "ready"
  local list = dependencies.upstreams(tx, down.id, from, share)
  for _, item in ipairs(list) do
    local e = dependencies.edge(tx, item.from, item.number)
    if e and e.hope then
      e.hope = nil
      dependencies.store_edge(tx, e)
      local up = execution.load(tx, item.from)
      if up and failed(up) then
        local fault = fault_of(up)
        fault.hopes = fault.hopes - 1
        fault.caught = fault.caught or ready
        store_fault(up, fault)
        resolve.weigh(tx, f, up)
      end
    end
  end
  return #list, #list == share and from + share or nil
end

local function too_much(d)
  return {
    string.format("its upstreams pass %.0f bytes, at most %d fit", d.bytes, limits.passed_bytes_max),
    "passed_too_large",
  }
end

-- Decides a member whose edges changed. Nothing is decided before the flow is sealed, nor once it is stopped.
function resolve.decide(tx, f, down, d)
  if d.decided or down.hidden or f.stop or down.phase ~= "runnable" then return end
  local decided = dependencies.judge(down.inbound, d)
  if decided == nil then return end
  local hopes = d.hopes
  d.decided, d.hopes = decided, 0
  dependencies.store(down, d)
  if decided == "skip" then
    finish.execution(tx, down, "skipped", {
      by = "flow", attempt_state = "cancelled", failure = { "its dependencies can no longer be met", "skipped" },
    })
  elseif d.bytes > limits.passed_bytes_max then
    finish.execution(tx, down, "failed", { by = "flow", attempt_state = "cancelled", failure = too_much(d) })
  else
    down.start_by = down.start_within and tx.now + down.start_within or nil
    if down.reason == "waiting_for_dependencies" then
      runnable.settle(tx, down)
      execution.save(tx, down)
      event.of_execution(tx, down, "execution.ready", "cause", "dependencies")
    else
      execution.save(tx, down)
    end
    local inbound = down.inbound
    if inbound and inbound.on_satisfied == "cancel_remaining" and d.total > d.met + d.dead then
      owed.add(tx, down, "spare", 0)
    end
  end
  if hopes > 0 then owed.add(tx, down, "hopes", 0) end
end

local function result_bytes(tx, up)
  if up.result_far then return #(tx:get(keys.result(tx, up.id)) or "") end
  return #(up.result or "")
end

-- Counts an edge of an ended member with the one it leads to.
local function settle_edge(tx, up, e, d)
  e.state = dependencies.meets(e.on, up.outcome) and "met" or "dead"
  if e.state == "met" then
    d.met = d.met + 1
    e.bytes = e.pass_as and result_bytes(tx, up) or 0
    d.bytes = d.bytes + e.bytes
    dependencies.promise(tx, e)
  else
    d.dead = d.dead + 1
  end
end

-- Who takes the failure of `up` up, as far as this edge goes. One that was resolved by an earlier run of it says so as
-- well.
local function blame(up, e, down)
  local fault, race = fault_of(up), dependencies.is_race(down)
  local d = dependencies.load(down)
  if e.on ~= "success" or (race and d.decided == "ready") then
    fault.caught = true
  elseif race and d.decided == nil and not e.hope then
    e.hope = true
    d.hopes = d.hopes + 1
    fault.hopes = fault.hopes + 1
    dependencies.store(down, d)
  end
  store_fault(up, fault)
end

-- One edge of an ended member.
function resolve.edge(tx, f, up, e)
  local down = execution.load(tx, e.to, true)
  if down == nil then
    -- Retired after the flow had ended, before this member was run again: nobody waits for it any more.
    e.state = dependencies.meets(e.on, up.outcome) and "met" or "dead"
    return dependencies.store_edge(tx, e)
  end
  if e.state == "pending" then
    local d = dependencies.load(down)
    settle_edge(tx, up, e, d)
    dependencies.store(down, d)
    execution.save(tx, down)
    resolve.decide(tx, f, down, d)
  end
  if failed(up) then
    blame(up, e, down)
    execution.save(tx, down)
  end
  dependencies.store_edge(tx, e)
end

-- The edges of an ended member; `from` is the number of the first. A stopped flow decides nothing any more.
function owed.steps.resolve(tx, up, from, share)
  local f = flow.load(tx, up.flow_id)
  owed.look_at_flow(tx, f.id)
  if f.stop or up.phase ~= "terminal" then
    if up.phase == "terminal" then
      up.halted = 1
      resolve.weigh(tx, f, up)
    end
    return 0, nil
  end
  local outs = up.outs or 0
  local last = math.min(outs, from + share - 1)
  for _, e in ipairs(dependencies.edges(tx, up.id, from, last)) do resolve.edge(tx, f, up, e) end
  up.reached = last > 0 and last or nil
  resolve.weigh(tx, f, up)
  return math.max(0, last - from + 1), last < outs and last + 1 or nil
end

local flow_event = { completed = "flow.completed", failed = "flow.failed" }
local member_outcome = { completed = "success", failed = "failed", cancelled = "cancelled" }

-- The member a flow runs in place of ends with it.
local function end_parent(tx, f)
  local rec = f.parent and execution.load(tx, f.parent, true)
  if rec == nil or rec.phase == "terminal" then return end
  local failure
  if f.outcome ~= "completed" then
    failure = { "its flow " .. (f.outcome == "failed" and "failed" or "was cancelled"), "flow_" .. f.outcome }
  end
  finish.execution(tx, rec, member_outcome[f.outcome], { by = "flow", attempt_state = "cancelled", failure = failure })
end

-- Ends the flow when nothing of it is left to run.
function owed.settle_flow(tx, f)
  if f.gone or f.sealed == nil or f.ended or f.owed or f.walk == "release" or f.walk == "cancel" then return end
  local open = flow.open(f)
  local leaves_active = f.stop and flow.stopped(f).policy == "cancel_pending" and open == (f.n_active or 0)
  if open > 0 and not leaves_active then return end
  if f.outcome == nil then
    local fine = (f.uncaught or 0) == 0 or (f.policy == "isolate_branch" and (f.sinks or 0) > 0)
    f.outcome = fine and "completed" or "failed"
    event.of_flow(tx, f, flow_event[f.outcome])
  end
  f.ended = tx.now
  if f.firing then fired.ended(tx, f, f.namespace, f.outcome) end
  if f.webhook then f.hook = webhook.of_flow(tx, f) end
  if f.stored > 0 then flow.walk_over(tx, f, "free") end
  flow.save(tx, f)
  if f.waited then tx:announce("done", f.id) end
  end_parent(tx, f)
end

return resolve
end

source["transition.aftermath"] = function(require, LIBRARY)
-- What the end of an execution means for others: the members that wait for it, its children, its parent, and a flow
-- that runs in its place.
local children = require "record.children"
local event = require "lib.event"
local execution = require "record.execution"
local finish = require "transition.finish"
local flow = require "record.flow"
local owed = require "transition.owed"
local runnable = require "transition.runnable"
local stop = require "transition.stop"

local aftermath = {}

-- True while an ended execution must be kept: others may still ask what became of it.
function aftermath.still_needed(tx, rec)
  if rec.flow_id then
    local f = flow.load(tx, rec.flow_id)
    return f ~= nil and f.ended == nil
  end
  local parent = rec.parent_id and execution.load(tx, rec.parent_id)
  return parent ~= nil and parent ~= false and parent.phase ~= "terminal"
end

-- The parent goes on when the last child it waits for has ended. One that has ended counts on: it may run again.
local function tell_parent(tx, rec)
  local parent = execution.load(tx, rec.parent_id)
  if parent == nil then return end
  local k = children.load(parent)
  k.open = k.open - 1
  children.store(parent, k)
  local over = k.open == 0 and parent.awaiting ~= nil
  if over and parent.reason == "waiting_for_children" then
    runnable.settle(tx, parent)
    execution.save(tx, parent)
    event.of_execution(tx, parent, "execution.resumed", "cause", "children")
  else
    execution.save(tx, parent)
  end
end

-- The parent has ended: children that are not abandoned are cancelled, and those that have ended are kept by their own
-- retention now.
function owed.steps.close(tx, rec, from, share)
  if rec.phase ~= "terminal" then return 0, nil end
  local ids = children.ids(tx, rec, from, share)
  local last = from
  for _, id in ipairs(ids) do
    local child = execution.load(tx, id)
    if child then
      last = child.number
      child.bound = nil
      if child.phase == "terminal" then
        child.freed = tx.now
        execution.save(tx, child)
      elseif child.parent_close == "abandon" then
        execution.save(tx, child)
      else
        finish.execution(tx, child, "cancelled", {
          by = "parent", attempt_state = "cancelled", failure = { "its parent ended", "cancelled" },
          data = { "cause", "parent_ended" },
        })
      end
    end
  end
  return #ids, #ids == share and last + 1 or nil
end

function aftermath.of(tx, rec)
  owed.during(tx, function()
    if rec.bound and not aftermath.still_needed(tx, rec) then
      rec.bound = nil
      execution.save(tx, rec)
    end
    if rec.flow_id then owed.add(tx, rec, "resolve", 1) end
    if rec.parent_id then tell_parent(tx, rec) end
    if rec.kids then owed.add(tx, rec, "close", 1) end
    local nested = rec.nested and flow.load(tx, rec.nested)
    if nested and nested.ended == nil and nested.stop == nil then
      -- The flow inside is as gentle as the cancel that reached its member.
      local outer = rec.flow_id and flow.stopped(flow.load(tx, rec.flow_id))
      stop.flow(tx, nested, {
        policy = outer and outer.policy or "cancel_all", reason = "its member ended: " .. rec.outcome,
        outcome = "cancelled", data = { "cause", "member_ended" },
      })
    end
  end)
end

return aftermath
end

source["transition.walk"] = function(require, LIBRARY)
-- Walks over the members of a flow in bounded steps: to release them when it is sealed, to cancel them when it is
-- stopped, to let their retention begin when it has ended, and to remove them when it was never sealed.
local dependencies = require "record.dependencies"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local finish = require "transition.finish"
local flow = require "record.flow"
local keys = require "lib.keys"
local limits = require "lib.limits"
local lists = require "index.lists"
local owed = require "transition.owed"
local resolve = require "transition.resolve"
local retire = require "transition.retire"
local runnable = require "transition.runnable"
local timers = require "index.timers"

local walk = {}

-- From here on everybody sees the member.
local function show(tx, rec)
  rec.hidden = nil
  if not dependencies.waits(rec) then rec.start_by = rec.start_within and tx.now + rec.start_within or nil end
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  lists.add(tx, rec)
  event.of_execution(tx, rec, "execution.submitted", "state", execution.public_state(rec))
end

-- A member of a flow that is sealed: it runs, waits for its edges, or is skipped.
function walk.release(tx, f, rec)
  if not rec.hidden then return end
  show(tx, rec)
  if rec.deps == nil and rec.inbound == nil then return end
  local d = dependencies.load(rec)
  if rec.deps or dependencies.judge(rec.inbound, d) == "skip" then resolve.decide(tx, f, rec, d) end
end

-- What has no lease is cancelled; what runs ends with it or goes on, as the policy says.
function walk.cancel(tx, f, rec)
  if rec.phase == "terminal" then return end
  local how = flow.stopped(f)
  if rec.hidden then show(tx, rec) end
  if rec.phase == "active" and how.policy ~= "cancel_all" then return end
  local actor = how.actor
  if actor then more.note_action(tx, rec, "cancel_flow", actor, how.reason) end
  finish.execution(tx, rec, "cancelled", {
    by = "flow", attempt_state = "cancelled", failure = { how.reason or "", "cancelled" }, actor = actor,
    data = { "cause", "flow_" .. f.outcome, "reason", how.reason or "" },
  })
end

-- A member of a stopped flow that somebody met before the walk did.
function walk.cancel_member(tx, rec)
  walk.cancel(tx, flow.load(tx, rec.flow_id), rec)
end

-- The flow has ended: from now on the member is kept for as long as its retention says.
function walk.free(tx, f, rec)
  if not rec.bound then return end
  rec.bound = nil
  rec.freed = rec.phase == "terminal" and f.ended or nil
  execution.save(tx, rec)
end

-- Nobody sealed the flow: it was never submitted.
function walk.remove(tx, f, rec)
  retire.hidden(tx, rec)
end

-- Releases what the flow held so far: the first members now, the rest in a walk. `all` are its members when they are
-- known.
function walk.seal(tx, f, all)
  f.sealed = tx.now
  event.of_flow(tx, f, "flow.sealed")
  if all == nil then
    flow.walk_over(tx, f, "release")
    return walk.step(tx, f, limits.batch_max)
  end
  flow.save(tx, f)
  owed.during(tx, function()
    for _, one in ipairs(all) do walk.release(tx, f, one.rec) end
    owed.look_at_flow(tx, f.id)
  end)
end

local function number(n) return string.format("%.0f", n) end

-- One step over at most `limit` members; true when there is more to do.
function walk.step(tx, f, limit)
  local what = f.walk
  if what == nil then return false end
  local page, ids = tx:zlowest(keys.flow_members(tx, f.id), "(" .. number(f.walked), "+inf", limit), {}
  for i, item in ipairs(page) do ids[i] = item.member end
  execution.fetch(tx, ids)
  owed.during(tx, function()
    for _, item in ipairs(page) do
      local rec = execution.load(tx, item.member, true)
      if rec then walk[what](tx, f, rec) end
      -- The flow went with its last member, or a member that failed has stopped it: another walk begins.
      if f.gone or f.walk ~= what then return end
      f.walked = item.score
    end
    if #page < limit then
      flow.walk_done(tx, f)
      if what == "remove" then return flow.remove(tx, f) end
      owed.look_at_flow(tx, f.id)
    end
    flow.save(tx, f)
  end)
  return not f.gone and f.walk ~= nil
end

-- What the flow's timer means.
function walk.fire(tx, id)
  local f = flow.load(tx, id)
  if f == nil then return timers.clear(tx, flow.timer(id)) end
  local due = flow.wake_at(f)
  if due == nil or due > tx.now then return flow.save(tx, f) end
  if f.walk == nil and f.ended then return flow.remove(tx, f) end
  if f.walk == nil then flow.walk_over(tx, f, "remove") end
  walk.step(tx, f, limits.batch_max)
end

return walk
end

source["transition.grow"] = function(require, LIBRARY)
-- Adding members and edges to a flow: what is new counts before anything can be claimed.
local dependencies = require "record.dependencies"
local event = require "lib.event"
local execution = require "record.execution"
local flow = require "record.flow"
local home = require "index.home"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local resolve = require "transition.resolve"
local runnable = require "transition.runnable"
local submit = require "transition.submit"

local grow = {}

local function invalid(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

local function member_at(at) return string.format("members[%d]", at - 1) end
local function edge_at(at) return string.format("edges[%d]", at - 1) end

-- The refusal when nothing can be added to the flow any more.
function grow.refusal(f)
  if f == nil then return reply.err("flow_not_found") end
  if f.stop or f.outcome or f.ended then return reply.err("flow_terminal", { state = flow.state(f) }) end
end

local function inbound_problem(inbound)
  if inbound == nil then return nil end
  if inbound.policy == "quorum" and inbound.k == nil then return "k", "is missing: quorum needs it" end
  if inbound.policy ~= "quorum" and inbound.k then return "k", "belongs to quorum" end
end

-- What a member shares with its flow and with nobody else.
local function place_of(f, m, budgets)
  return {
    flow_id = f.id, key = m.key, number = f.last + 1, inbound = m.inbound, nested = m.nested, budgets = budgets,
    deadline = f.deadline,
  }
end

-- Stores a new member, invisible for now. One that is released in the same call stands nowhere until then.
local function hide(tx, f, rec)
  rec.phase, rec.was_phase, rec.hidden, rec.bound = "runnable", "runnable", 1, 1
  -- The time it may wait for a worker begins when it could have one.
  if rec.start_by then rec.start_by = nil end
  f.last, f.stored = rec.number, f.stored + 1
  execution.block(rec, "waiting_for_dependencies", nil, tx.now)
  tx:zadd(keys.flow_members(tx, f.id), rec.number, rec.id)
  flow.name_member(tx, f, rec.key, rec.id)
  flow.enter(f, "held")
  rec.was_state, rec.updated = "held", tx.now
  if not f.releases then home.move(tx, rec, home.of(rec)) end
  execution.store(tx, rec)
end

-- Makes one member; answers { id, rec, duplicate } or nil and the refusal. `at` is its place in the call.
local function member(tx, f, m, at, budgets)
  local s = m.submission
  if string.sub(s.execution_id, -4) ~= string.sub(f.id, -4) then
    return nil, invalid(
      member_at(at) .. ".submission.execution_id", "must end like the flow's id: they share a partition"
    )
  end
  if s.namespace ~= f.namespace then
    return nil, invalid(member_at(at) .. ".submission.namespace", "must be the flow's, " .. f.namespace)
  end
  local field, problem = inbound_problem(m.inbound)
  if field then return nil, invalid(member_at(at) .. ".inbound." .. field, problem) end
  local known = flow.member_id(tx, f, m.key)
  if known then
    local rec = execution.load(tx, known, true)
    if rec and rec.digest == s.body_digest then return { id = known, rec = rec, duplicate = true } end
    return nil, reply.err("idempotency_conflict", { field = member_at(at) .. ".key", execution_id = known })
  end
  if f.stored >= limits.members_max then return nil, reply.err("flow_full", { members_max = limits.members_max }) end
  local nested = m.nested and flow.load(tx, m.nested)
  if m.nested then
    if nested == nil or nested.parent ~= s.execution_id or nested.sealed then
      return nil, invalid(member_at(at) .. ".nested", "must be an unsealed flow made for this member")
    end
  end
  local place = place_of(f, m, budgets)
  local answer = submit.repeated(tx, s, place)
  if answer and answer.err then return nil, answer end
  -- An id or a key that belongs to someone else already.
  if answer then
    return nil, reply.err("idempotency_conflict", {
      field = member_at(at) .. ".submission", execution_id = answer.fields.execution_id,
    })
  end
  local rec, refusal = submit.new(tx, s, place)
  if refusal then return nil, refusal end
  if nested then
    nested.adopted = 1
    flow.save(tx, nested)
  end
  hide(tx, f, rec)
  return { id = rec.id, rec = rec, duplicate = false }
end

local function add_ends(names, edges)
  for _, e in ipairs(edges) do names[#names + 1], names[#names + 2] = e.from, e.to end
end

-- Makes members that these edges belong to; answers a list of { id, rec, duplicate }, or nil and the refusal. The
-- caller saves the flow.
function grow.members(tx, f, list, edges)
  local out, names, ids = {}, {}, {}
  for i, m in ipairs(list) do names[i], ids[i] = m.key, m.submission.execution_id end
  add_ends(names, edges)
  flow.look_up(tx, f, names)
  execution.expect_new(tx, ids)
  local _, _, budgets = flow.defaults(f)
  for i, m in ipairs(list) do
    local made, refusal = member(tx, f, m, i, budgets)
    if refusal then return nil, refusal end
    out[i] = made
  end
  return out
end

local function started(rec)
  return rec.phase ~= "runnable" or (rec.attempt ~= nil and rec.next ~= "replay") or rec.grant ~= nil
    or rec.reason == "waiting_for_children"
end

-- Stores an edge on both sides. `up` and `down` are saved by those who call, with `d`, what `down` waits for.
local function store(tx, up, down, d, e)
  up.outs = (up.outs or 0) + 1
  local edge = { from = up.id, to = down.id, number = up.outs, on = e.on, pass_as = e.pass_as, state = "pending" }
  dependencies.store_edge(tx, edge)
  tx:zadd(keys.edges_in(tx, down.id), edge.number, up.id)
  if e.pass_as then
    down.passes = 1
    dependencies.promise(tx, edge)
  end
  d.total, d.from[up.id] = d.total + 1, edge.number
  -- A member that could have run waits again, unless it needs no more than it has.
  if d.decided and dependencies.judge(down.inbound, d) ~= "ready" then d.decided = nil end
  return edge
end

-- The number of the edge between two members at the first one, or nil.
local function known_edge(tx, d, from, to, fresh)
  return d.from[from] or (not fresh and tx:zscore(keys.edges_in(tx, to), from)) or nil
end

-- What a member waits for while edges are added, with those that this call has added by their upstreams.
local function waits_of(open, down)
  local d = open[down.id]
  if d == nil then
    d = dependencies.load(down)
    d.from, open[down.id] = {}, d
  end
  return d
end

-- `fresh` is the set of members made in this call. An edge between members that were there must not close a cycle:
-- `checked` says that the caller looked at the graph as it is; without it the edge must lead forward, in a flow whose
-- edges all do. `open` is what members wait for that have got edges already.
local function edge(tx, f, e, at, fresh, checked, open)
  local from, to = flow.member_id(tx, f, e.from), flow.member_id(tx, f, e.to)
  if from == nil then return nil, invalid(edge_at(at) .. ".from", "is not the key of a member: " .. e.from) end
  if to == nil then return nil, invalid(edge_at(at) .. ".to", "is not the key of a member: " .. e.to) end
  if from == to then return nil, reply.err("cycle_detected", { field = edge_at(at), key = e.from }) end
  local up, down = execution.load(tx, from, true), execution.load(tx, to, true)
  local d = waits_of(open, down)
  local number = known_edge(tx, d, from, to, fresh[to])
  if number then
    local known = dependencies.edge(tx, from, number)
    if known.on == e.on and known.pass_as == e.pass_as then return { up = up, down = down } end
    return nil, reply.err("idempotency_conflict", {
      field = edge_at(at), problem = "there is another edge between these members",
    })
  end
  local forward = up.number < down.number
  if not checked then
    if not forward then return nil, reply.err("cycle_detected", { field = edge_at(at), key = e.to }) end
    if not fresh[to] and (f.sealed or f.backward) then
      return nil, reply.err("flow_changed", { version = f.version })
    end
  end
  if not fresh[to] and not down.hidden and started(down) then
    return nil, reply.err("member_started", { field = edge_at(at) .. ".to", key = e.to, execution_id = to })
  end
  if e.pass_as and tx:hget(keys.passed(tx, to), e.pass_as) then
    return nil, invalid(edge_at(at) .. ".pass_as", "is passed by another edge")
  end
  if not forward then f.backward = 1 end
  return { up = up, down = down, edge = store(tx, up, down, d, e) }
end

-- Reads at once what the edges lead from and to.
local function read_ends(tx, f, list)
  local names, ids, seen = {}, {}, {}
  add_ends(names, list)
  flow.look_up(tx, f, names)
  for _, name in ipairs(names) do
    local id = flow.member_id(tx, f, name)
    if id and not seen[id] then
      seen[id], ids[#ids + 1] = true, id
    end
  end
  execution.fetch(tx, ids)
end

-- A hidden member stands nowhere that its edges could move it from.
local function save(tx, rec)
  if not rec.hidden then return execution.save(tx, rec) end
  rec.updated = tx.now
  execution.store(tx, rec)
end

-- Adds edges; answers how many were new, or nil and the refusal.
function grow.edges(tx, f, list, fresh, checked)
  local made, touched, order, open = {}, {}, {}, {}
  local function touch(rec)
    if not touched[rec.id] then
      touched[rec.id] = true
      order[#order + 1] = rec
    end
  end
  read_ends(tx, f, list)
  for i, e in ipairs(list) do
    local one, refusal = edge(tx, f, e, i, fresh, checked, open)
    if refusal then return nil, refusal end
    if one.edge then
      made[#made + 1] = one
      touch(one.up)
      touch(one.down)
    end
  end
  for _, rec in ipairs(order) do
    if open[rec.id] then dependencies.store(rec, open[rec.id]) end
    save(tx, rec)
  end
  if #made > 0 then f.version = f.version + 1 end
  return made
end

-- What new edges mean, once the members are visible: those from ended upstreams resolve at once, and a member that
-- could have run may have to wait again.
function grow.count(tx, f, made)
  for _, one in ipairs(made) do
    local up, down = one.up, one.down
    if not down.hidden and down.reason ~= "held_by_operator" and down.phase == "runnable" and dependencies.waits(down)
      and down.reason ~= "waiting_for_dependencies"
    then
      down.start_by = nil
      runnable.settle(tx, down)
      execution.save(tx, down)
      event.of_execution(tx, down, "execution.blocked", "reason", down.reason)
    end
    -- An upstream whose end still reaches its edges one by one will reach this one too.
    if up.phase == "terminal" and (up.reached or 0) == one.edge.number - 1 then
      resolve.edge(tx, f, up, one.edge)
      up.reached = one.edge.number
    end
    resolve.weigh(tx, f, up)
  end
end

return grow
end

source["transition.reopen"] = function(require, LIBRARY)
-- Running an ended member again: what was skipped because of it waits for it again, and the flow goes on.
local children = require "record.children"
local dependencies = require "record.dependencies"
local event = require "lib.event"
local execution = require "record.execution"
local flow = require "record.flow"
local keys = require "lib.keys"
local owed = require "transition.owed"
local reply = require "lib.reply"
local resolve = require "transition.resolve"
local runnable = require "transition.runnable"

local reopen = {}

-- Why the execution cannot run again, or nil.
function reopen.refusal(tx, rec)
  if rec.nested then
    return reply.err("invalid_argument", {
      field = "execution_id", problem = "is a flow: replay a member of " .. rec.nested,
    })
  end
  local f = rec.flow_id and flow.load(tx, rec.flow_id)
  if not f or f.stop == nil then return nil end
  -- A flow that failed with its first failure can go on once all of it has ended; one that an operator cancelled
  -- cannot.
  if f.outcome == "failed" and f.ended then return nil end
  return reply.err("flow_terminal", { state = flow.state(f) })
end

-- The flow of a member that runs again is running again, and so is the one around it.
local function reopen_flow(tx, f)
  if f.outcome == nil and f.ended == nil then return end
  f.outcome, f.ended, f.stop = nil, nil, nil
  flow.walk_done(tx, f)
  flow.save(tx, f)
  event.of_flow(tx, f, "flow.reopened")
  local rec = f.parent and execution.load(tx, f.parent)
  if rec and rec.phase == "terminal" then
    rec.phase, rec.outcome, rec.ended, rec.failure, rec.freed, rec.bound = "runnable", nil, nil, nil, nil, 1
    execution.block(rec, "waiting_for_children", { "flow_id", f.id }, tx.now)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.reopened")
    reopen.member(tx, rec)
  end
end

-- An edge counts anew: what it leads to has not been decided, or was skipped and waits again.
local function take_back(tx, f, up, e)
  -- Also one that nobody sees yet: the edge was decided for it too.
  local down = execution.load(tx, e.to, true)
  if e.state == "pending" or down == nil then return end
  local d = dependencies.load(down)
  local skipped = down.phase == "terminal" and down.outcome == "skipped"
  if d.decided and not skipped then return end
  if e.state == "met" then
    d.met = d.met - 1
    d.bytes = d.bytes - (e.bytes or 0)
  else
    d.dead = d.dead - 1
  end
  if e.hope then d.hopes = math.max(0, d.hopes - 1) end
  e.state, e.hope = "pending", nil
  dependencies.store_edge(tx, e)
  dependencies.promise(tx, e)
  -- Another upstream that ended still stands in the way.
  if skipped and dependencies.judge(down.inbound, d) == "skip" then
    dependencies.store(down, d)
    return execution.save(tx, down)
  end
  d.decided = nil
  dependencies.store(down, d)
  if skipped then
    down.phase, down.outcome, down.ended, down.failure, down.freed, down.bound, down.reached, down.halted =
      "runnable", nil, nil, nil, nil, 1, nil, nil
    execution.block(down, "waiting_for_dependencies", nil, tx.now)
    resolve.weigh(tx, f, down)
    event.of_execution(tx, down, "execution.reopened", "cause", up.key)
    owed.add(tx, down, "reopen", 1)
  else
    execution.save(tx, down)
  end
end

-- The edges out of a member that runs again.
function owed.steps.reopen(tx, up, from, share)
  local f = flow.load(tx, up.flow_id)
  local last = math.min(up.outs or 0, from + share - 1)
  for _, e in ipairs(dependencies.edges(tx, up.id, from, last)) do take_back(tx, f, up, e) end
  if last < (up.outs or 0) then return last - from + 1, last + 1 end
  -- It has ended again before all its edges knew that it ran.
  if up.phase == "terminal" then
    up.reached, up.halted, up.fault = nil, nil, nil
    owed.add(tx, up, "resolve", 1)
  end
  return math.max(0, last - from + 1), nil
end

-- A skipped member that runs again waits for its edges again, also for those that died.
function owed.steps.wait_again(tx, down, from, share)
  local d = dependencies.load(down)
  local list = dependencies.upstreams(tx, down.id, from, share)
  for _, item in ipairs(list) do
    local e = dependencies.edge(tx, item.from, item.number)
    -- An edge that went with its upstream stays as it was.
    if e and e.state == "dead" then
      e.state = "pending"
      if e.hope then d.hopes = math.max(0, d.hopes - 1) end
      e.hope = nil
      dependencies.store_edge(tx, e)
      d.dead = d.dead - 1
    end
  end
  dependencies.store(down, d)
  execution.save(tx, down)
  if #list == share then return #list, from + share end
  resolve.decide(tx, flow.load(tx, down.flow_id), down, d)
  return #list, nil
end

-- A member is about to run again; it has been saved.
function reopen.member(tx, rec)
  local f = flow.load(tx, rec.flow_id)
  reopen_flow(tx, f)
  rec.reached, rec.halted, rec.fault = nil, nil, nil
  resolve.weigh(tx, f, rec)
  owed.add(tx, rec, "reopen", 1)
end

-- Called for every execution that is replayed, before it is placed; `skipped` says that it never ran.
function reopen.execution(tx, rec, skipped)
  rec.freed = nil
  if rec.parent_id then
    local parent = execution.load(tx, rec.parent_id)
    if parent then
      if parent.phase ~= "terminal" then rec.bound = 1 end
      local k = children.load(parent)
      k.open = k.open + 1
      children.store(parent, k)
      if parent.phase == "runnable" and parent.awaiting then runnable.settle(tx, parent) end
      execution.save(tx, parent)
    end
  end
  if rec.flow_id then
    rec.bound = 1
    if skipped and rec.deps then
      local d = dependencies.load(rec)
      d.decided = nil
      dependencies.store(rec, d)
    end
  end
end

return reopen
end

source["transition.choose"] = function(require, LIBRARY)
-- The best candidates of a lane in this partition, among the kinds and requirement sets a worker takes.
--
-- Queues are looked at in the order of their heads, and only as long as one of them may hold something better than
-- what was found: with thousands of them a claim reads those it takes from and no other.
local keys = require "lib.keys"
local limits = require "lib.limits"
local queues = require "index.queues"
local execution = require "record.execution"
local lane = require "record.lane"

local choose = {}

local eligible_below = "(" .. string.format("%.0f", limits.granted_from)
local ceil, min = math.ceil, math.min

function choose.set_of(tokens)
  local set = {}
  for i = 1, #tokens do set[tokens[i]] = true end
  return set
end

-- The sets of kinds that workers sent lately, by their packed form: a worker sends the same ones with every claim.
local kind_sets, kind_sets_kept = {}, 0

local function kinds_of(packed)
  local known = kind_sets[packed]
  if known then return known end
  local fine, list = pcall(cmsgpack.unpack, packed)
  if not fine or type(list) ~= "table" then return nil end
  if kind_sets_kept >= 64 then kind_sets, kind_sets_kept = {}, 0 end
  kind_sets_kept = kind_sets_kept + 1
  known = { list = list, set = choose.set_of(list) }
  kind_sets[packed] = known
  return known
end

-- What a worker takes: those kinds, or all, whose requirements its capabilities cover. `kinds` is a packed list.
function choose.worker(capabilities, kinds)
  local worker = { capabilities = choose.set_of(capabilities), tokens = capabilities, plain = #capabilities == 0 }
  if kinds and kinds ~= "" then
    local known = kinds_of(kinds)
    worker.kinds, worker.kind_list = known and known.set or {}, known and known.list or {}
  end
  return worker
end

function choose.takes_kind(worker, kind)
  return worker.kinds == nil or worker.kinds[kind] ~= nil
end

-- Queues --------------------------------------------------------------------------------------

-- The candidates of one queue: a page of ids and scores in turn, as the store has them. `at` is the place of the next
-- one, `passed` how many could not start and still stand at the head, `asking` how many stand there until they are let
-- in or not, `more` that there may be others behind the page.
local function read_page(tx, q, size)
  q.page = tx:zrange(q.key, "-inf", eligible_below, "BYSCORE", "LIMIT", q.passed + q.asking, size, "WITHSCORES")
  q.at, q.more = 1, #q.page == 2 * size
end

-- Looks at the next page of a queue whose page is used up.
local function next_of(tx, found, q)
  if q.page[q.at] == nil and q.more then read_page(tx, q, found.size) end
  return q.page[q.at]
end

-- Looks at a queue; `head` is the score it has among the heads, and nothing for the main one.
local function open(tx, found, name, head, size)
  local q = {
    name = name, key = keys.queue_named(tx, found.path, name), passed = 0, asking = 0,
    admission = queues.admits(name), head = head, taken = 0,
  }
  read_page(tx, q, size)
  found.queues[#found.queues + 1] = q
  return q
end

-- Keeps those of a page of names and heads that the worker takes.
local function keep_taken(tx, found, page)
  local worker, asked, at = found.worker, {}, {}
  local list = found.heads
  for i = 1, #page, 2 do
    local name = page[i]
    local class, kind = queues.parts(name)
    if not found.looked[name] and choose.takes_kind(worker, kind) and (found.admission or not queues.admits(name)) then
      if queues.plain(class) then
        list[#list + 1] = { name, tonumber(page[i + 1]) }
      elseif not worker.plain then
        asked[#asked + 1] = name
        list[#list + 1] = { name, tonumber(page[i + 1]) }
        at[#asked] = #list
      end
    end
  end
  if #asked == 0 then return end
  for i, entry in ipairs(queues.several(tx, found.path, asked)) do
    if not entry or not queues.covered(entry.requires, worker.capabilities) then list[at[i]] = false end
  end
  local n = 0
  for i = 1, #list do
    local one = list[i]
    list[i] = nil
    if one then
      n = n + 1
      list[n] = one
    end
  end
end

-- Every name that a queue of what the worker takes can have; nil when they are too many to look for.
local function names_of(worker, admission)
  local kinds = worker.kind_list
  if kinds == nil or #worker.tokens > 7 then return nil end
  local tokens, seen = {}, {}
  for _, token in ipairs(worker.tokens) do
    if not seen[token] then tokens[#tokens + 1] = token end
    seen[token] = true
  end
  table.sort(tokens)
  local sets = { {} }
  for _, token in ipairs(tokens) do
    for i = 1, #sets do
      local more = { unpack(sets[i]) }
      more[#more + 1] = token
      sets[#sets + 1] = more
    end
  end
  if #kinds * #sets * (admission and 2 or 1) > limits.queues_named_max then return nil end
  local names = {}
  for _, set in ipairs(sets) do
    for _, kind in ipairs(kinds) do
      names[#names + 1] = queues.name(queues.class(set, false), kind)
      if admission then names[#names + 1] = queues.name(queues.class(set, true), kind) end
    end
  end
  return names
end

local function by_head(a, b)
  if a[2] ~= b[2] then return a[2] < b[2] end
  return a[1] < b[1]
end

-- Others stand in front of what the worker takes: its queues are asked for by their names.
local function look_by_name(tx, found, names)
  local page = {}
  for i, score in ipairs(tx:zscores(keys.heads(tx, found.path), names)) do
    if score and score < limits.granted_from then page[#page + 1], page[#page + 2] = names[i], score end
  end
  found.heads, found.at, found.all_read = {}, 1, true
  keep_taken(tx, found, page)
  table.sort(found.heads, by_head)
end

-- Reads the next heads, as long as none that the worker takes is known.
local function read_heads(tx, found)
  while found.heads[found.at] == nil and not found.all_read do
    local names = found.read > 0 and not found.named and names_of(found.worker, found.admission)
    found.named = found.named or found.read > 0
    if names then
      look_by_name(tx, found, names)
    else
      local page = tx:zrange(keys.heads(tx, found.path), "-inf", eligible_below, "BYSCORE", "LIMIT", found.read,
        found.heads_size, "WITHSCORES")
      found.read = found.read + found.heads_size
      found.all_read = #page < 2 * found.heads_size or found.read >= limits.heads_looks_max
      found.heads_size = min(2 * found.heads_size, limits.heads_page_max)
      keep_taken(tx, found, page)
    end
  end
end

-- The head of the best queue that was not looked at yet, or nil.
local function next_head(tx, found)
  if found.heads[found.at] == nil then read_heads(tx, found) end
  local one = found.heads[found.at]
  return one and one[2]
end

-- Looks at the best queue that was not looked at yet. Of each of many queues a short page is read.
local function open_next(tx, found)
  local one, known = found.heads[found.at], #found.heads
  found.at = found.at + 1
  found.looked[one[1]] = true
  open(tx, found, one[1], one[2], min(found.size, ceil(2 * found.size / known) + 1))
end

-- Candidates in order, as many as needed to know the next head. `admission` includes work that needs a grant.
function choose.candidates(tx, copy, worker, want, admission)
  local prefers = lane.recall(tx, copy, "prefers") ~= nil and not worker.plain
  local others = lane.recall(tx, copy, "others") ~= nil
  local found = {
    path = copy.path, worker = worker, admission = admission, queues = {}, prefers = prefers,
    size = want + (prefers and limits.prefer_window or 1), heads = {}, at = 1, read = 0, all_read = not others,
    heads_size = want + limits.heads_page_min, looked = {}, named = false,
  }
  local main = lane.recall(tx, copy, "main")
  if main then
    found.looked[main] = true
    local class, kind = queues.parts(main)
    local takes = choose.takes_kind(worker, kind) and (admission or not queues.admits(main))
    if takes and not queues.plain(class) then
      local entry = not worker.plain and queues.get(tx, copy.path, main)
      takes = entry and queues.covered(entry.requires, worker.capabilities)
    end
    if takes then open(tx, found, main, nil, found.size) end
  end
  return found
end

-- The names of the queues that the worker takes, up to a number of them, whether or not there is eligible work.
function choose.names(tx, copy, worker)
  local page = {}
  for _, name in ipairs(queues.page(tx, copy.path, 0, limits.queues_per_grant_max)) do
    page[#page + 1], page[#page + 2] = name, 0
  end
  local found = { path = copy.path, worker = worker, admission = true, heads = {}, looked = {} }
  keep_taken(tx, found, page)
  local names = {}
  for i, one in ipairs(found.heads) do names[i] = one[1] end
  return names
end

-- Candidates ----------------------------------------------------------------------------------

-- The entry taken last could not start: it stays where it is.
function choose.pass(found, q)
  q.passed = q.passed + 1
end

-- The entry taken last is left to a later claim: it is still the next head of its queue.
function choose.put_back(found, id, q)
  q.at = q.at - 2
end

-- The best head among the queues that were looked at.
local function best_opened(tx, found)
  local list, best, least = found.queues, nil, nil
  for i = 1, #list do
    local q = list[i]
    local id = next_of(tx, found, q)
    if id then
      local score = tonumber(q.page[q.at + 1])
      if best == nil or score < least or (score == least and id < best.page[best.at]) then best, least = q, score end
    end
  end
  return best, least
end

-- The queue with the best head, and the head's score.
local function best_queue(tx, found)
  while true do
    local best, least = best_opened(tx, found)
    local head = next_head(tx, found)
    if head == nil or (best and least < head) then return best, least end
    open_next(tx, found)
  end
end

local function liking(rec, capabilities)
  local n = 0
  for _, token in ipairs(rec.prefers or {}) do
    if capabilities[token] then n = n + 1 end
  end
  return n
end

-- The entries ahead, up to `count`, in order: { id, score, queue, place }.
local function ahead(tx, found, count)
  local entries = {}
  for _, q in ipairs(found.queues) do
    next_of(tx, found, q)
    for at = q.at, min(#q.page, q.at + 2 * count - 2), 2 do
      entries[#entries + 1] = { id = q.page[at], score = tonumber(q.page[at + 1]), queue = q, at = at }
    end
  end
  table.sort(entries, function(a, b)
    if a.score ~= b.score then return a.score < b.score end
    return a.id < b.id
  end)
  return entries
end

-- The same among all queues the worker takes.
local function first_of_all(tx, found, count)
  while true do
    local entries = ahead(tx, found, count)
    local head = next_head(tx, found)
    if head == nil or (entries[count] and entries[count].score < head) then return entries end
    local one = found.heads[found.at]
    found.at = found.at + 1
    found.looked[one[1]] = true
    open(tx, found, one[1], one[2], found.size)
  end
end

-- In a lane with preferences: the best liked among the first sixteen of the same priority. It moves to the head of its
-- queue's page.
local function best_liked(tx, found)
  local entries = first_of_all(tx, found, limits.prefer_window)
  local best, most, priority = nil, -1, nil
  for i = 1, min(#entries, limits.prefer_window) do
    local rec = execution.load(tx, entries[i].id)
    if rec then
      priority = priority or rec.prio
      if rec.prio ~= priority then break end
      local likes = liking(rec, found.worker.capabilities)
      if likes > most then best, most = entries[i], likes end
    end
  end
  best = best or entries[1]
  if best == nil then return nil end
  local q, page = best.queue, best.queue.page
  for at = best.at, q.at + 2, -2 do
    page[at], page[at + 1], page[at - 2], page[at - 1] = page[at - 2], page[at - 1], page[at], page[at + 1]
  end
  return q
end

-- Takes the next candidate: its id and its queue, or nil when there is none.
function choose.take(tx, found)
  local q
  if found.prefers then q = best_liked(tx, found) else q = best_queue(tx, found) end
  if q == nil then return nil end
  q.at, q.taken = q.at + 2, q.taken + 1
  return q.page[q.at - 2], q
end

-- What is left ----------------------------------------------------------------------------------

-- True when nothing of the lane is eligible any more, whoever takes it, but for what could not start here. `head` is
-- the next one of what this worker takes. Heads of queues whose work has gone are looked behind, a few of them.
function choose.nothing_left(tx, found, head)
  if head then return false end
  local names, opened, main = {}, {}, queues.main(tx, found.path)
  for _, q in ipairs(found.queues) do opened[q.name] = true end
  if main then names[1] = main end
  local count = #found.queues + limits.heads_page_min
  local page = tx:zrange(keys.heads(tx, found.path), "-inf", eligible_below, "BYSCORE", "LIMIT", 0, count)
  if #page == count then return false end
  for _, name in ipairs(page) do names[#names + 1] = name end
  for _, name in ipairs(names) do
    if not opened[name] and tx:zcount(keys.queue_named(tx, found.path, name), "-inf", eligible_below) > 0 then
      return false
    end
  end
  return true
end

-- The score of the next candidate, or nil when there is none.
function choose.next_score(tx, found)
  local _, score = best_queue(tx, found)
  return score
end

-- After taking: remembers for each queue that was looked at whether dispatchers will come back for the rest, and where
-- it stands among the heads now.
function choose.remember_rest(tx, copy, found)
  local list, names = found.queues, {}
  for i = 1, #list do names[i] = list[i].name end
  queues.prepare_quiet(tx, copy, names)
  for i = 1, #list do
    local q = list[i]
    local rest = next_of(tx, found, q)
    queues.set_quiet(tx, copy, q.name, rest)
    if not rest then tx:withdraw(copy.path, q.name) end
    -- Those that could not start stand in front of the rest.
    if q.head and q.passed == 0 then
      local head = rest and tonumber(q.page[q.at + 1]) or queues.idle
      if head ~= q.head then queues.set_head(tx, copy.path, q.name, head) end
      if not rest and q.taken == 0 then queues.tidy(tx, copy.path, q.name) end
    end
  end
end

return choose
end

source["transition.grant"] = function(require, LIBRARY)
-- A grant reserves an execution for one worker for a short time; it hides nothing but its own execution.
local execution = require "record.execution"
local holds = require "record.holds"
local ids = require "lib.id"

local grant = {}

-- The id under which the request asked for the execution's grant.
function grant.asked_as(rec)
  return rec.grant and ids.counted(rec.grant, 1 - rec.grants)
end

-- No execution has two grants of one id, however late a copy of a request comes: what the first of them still owes
-- would undo what the second was admitted to. `copy` is the lane's: with the execution it says which sets must be
-- entered before the grant is consumed.
function grant.give(tx, rec, id, instance, ttl_ms, copy)
  local count = rec.grants or 0
  rec.grants = count + 1
  rec.grant, rec.grant_worker, rec.grant_until = ids.counted(id, count), instance, tx.now + ttl_ms
  holds.note(rec, rec.grant, holds.needed(rec, copy))
  execution.save(tx, rec)
end

function grant.typed(rec)
  return {
    execution_id = rec.id, grant_id = rec.grant, expires_at = rec.grant_until, lane = execution.lane(rec),
    kind = rec.kind, score = rec.score, number = rec.grants, budgets = holds.asked_budgets(rec),
    quotas = holds.asked_quotas(rec), holder_sets = holds.sets(rec),
  }
end

-- True while this grant is open.
function grant.open(rec, id, now)
  return rec.phase == "runnable" and rec.grant == id and now < rec.grant_until
end

return grant
end

source["transition.start"] = function(require, LIBRARY)
-- Gives a worker the lease: a new attempt, or the same one when it was only waiting.
local keys = require "lib.keys"
local attempt = require "record.attempt"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local event = require "lib.event"
local flow = require "record.flow"
local lane = require "record.lane"
local leases = require "index.leases"
local spec = require "record.spec"
local step = require "record.step"
local suspension = require "record.suspension"

local start = {}

-- True when its flow was stopped: it will not start any more.
function start.stopped(tx, rec)
  local f = rec.flow_id and flow.load(tx, rec.flow_id)
  return f and f.stop ~= nil
end

-- True when the execution may start now; nothing starts past its deadline, its queue time or the grace of a cancel.
function start.possible(rec, now)
  if rec.deadline and rec.deadline <= now then return false end
  if rec.cancel_by and rec.cancel_by <= now then return false end
  if rec.start_by and rec.start_by <= now then return false end
  return true
end

-- A new attempt begins.
local function begin(tx, rec, attempt_id)
  local now = tx.now
  if rec.attempt == nil then
    rec.attempt = 0
  else
    attempt.file(tx, rec)
    rec.attempt = rec.attempt + 1
  end
  rec.attempt_id, rec.attempt_type, rec.started = attempt_id, rec.next or "initial", now
  if rec.progress then rec.progress = nil end
  if rec.timeout then
    rec.timeout_at = now + rec.timeout
  elseif rec.timeout_at then
    rec.timeout_at = nil
  end
end

-- `holder`: { instance, worker_id, lease_ttl_ms }.
function start.lease(tx, rec, holder, lease_id, attempt_id)
  local now = tx.now
  local continues = rec.resume ~= nil
  local waited = now - (rec.ready or rec.created)
  if continues then
    if rec.time_left then rec.timeout_at = now + rec.time_left end
  else
    begin(tx, rec, attempt_id)
  end
  if rec.time_left then rec.time_left = nil end
  if rec.wanted then rec.wanted = nil end
  rec.attempt_state, rec.phase = "started", "active"
  if rec.next then rec.next = nil end
  if rec.resume then rec.resume = nil end
  if rec.delay then rec.delay = nil end
  if rec.ready then rec.ready = nil end
  if rec.start_by then rec.start_by = nil end
  execution.unblock(rec)
  rec.lease_id, rec.worker, rec.worker_id = lease_id, holder.instance, holder.worker_id
  local epoch = (rec.epoch or 0) + 1
  rec.epoch = tx.now_us > epoch and tx.now_us or epoch
  rec.lease_ttl, rec.lease_until = holder.lease_ttl_ms, now + holder.lease_ttl_ms
  if rec.renewals then rec.renewals = nil end
  if rec.ended_by then rec.ended_by, rec.ended_value = nil, nil end
  execution.save(tx, rec, true)
  event.of_execution(tx, rec, "execution.started", "attempt_type", rec.attempt_type, "continues", continues,
    "waited_ms", waited > 0 and waited or 0)
end

-- What its upstreams pass to a member, and how many bytes it is.
local function passed(tx, rec)
  if rec.passes == nil then return nil, 0 end
  local view = require "record.view"
  local out, bytes = {}, 0
  for _, item in ipairs(dependencies.passed(tx, rec)) do
    local up = execution.load(tx, item.from)
    if up and up.phase == "terminal" then
      local value = view.result(tx, up)
      out[item.name] = {
        execution_id = up.id, outcome = up.outcome, value = value, encoding = view.result_encoding(up),
        failure = view.failure(up),
      }
      bytes = bytes + #(value or "")
    end
  end
  return out, bytes
end

-- The parts of a task that can be large: its input and what its upstreams pass, and how many bytes they are.
function start.heavy(tx, rec)
  local input = spec.input(tx, rec)
  local from_upstreams, bytes = passed(tx, rec)
  return input, from_upstreams, #input + bytes + step.weight(rec)
end

-- What the worker gets to see: the id, the stored record, the input, and what only some have: what the submitter said
-- beside it, why the attempt goes on, and what upstreams pass.
function start.task(tx, rec, input, from_upstreams)
  if input == nil then input, from_upstreams = start.heavy(tx, rec) end
  local extras = false
  if rec.said or rec.woken or from_upstreams or rec.steps then
    local steps, more_steps = step.carried(tx, rec)
    extras = {
      spec = rec.said and tx:record(keys.spec(tx, rec.id)) or nil,
      resume = rec.woken and suspension.resume(tx, rec) or nil, passed = from_upstreams,
      steps = steps, steps_more = more_steps,
    }
  end
  return { rec.id, tx:record(keys.core(tx, rec.id)), input, extras }
end

-- The tasks of those of these leases that live: a lost reply is answered again. Nil when none does. Then the places of
-- the leases that are free, when not all are: one that has run out keeps its id until someone looks.
function start.leased(tx, instance, lease_ids)
  local ids, free = leases.held(tx, instance, lease_ids)
  if ids == nil then return nil end
  local tasks = {}
  for _, id in ipairs(ids) do
    local rec = execution.load(tx, id)
    if rec and rec.phase == "active" and tx.now < rec.lease_until then tasks[#tasks + 1] = start.task(tx, rec) end
  end
  return #tasks > 0 and tasks or nil, free
end

-- Whoever sleeps until the partition's next timer must hear of a wake-up before the last one announced for the lane.
-- What was announced is remembered with the lane, read by every claim, and in one hash of the partition, read by every
-- sleeper.
function start.announce_wake_up(tx, copy, at)
  local told = tonumber(lane.recall(tx, copy, "told"))
  if told and told > tx.now and told <= at then return end
  lane.remember(tx, copy, "told", string.format("%.0f", at))
  tx:hput(keys.told(tx), copy.path, at)
  tx:announce("timer", at)
end

-- The sleeper looked and sleeps until `head` now, or until it is told: an announcement before that wakes nobody any
-- more, so the lane's next claim must not rely on it.
function start.forget_announced(tx, head)
  for path, at in pairs(tx:hgetall(keys.told(tx)) or {}) do
    if head == nil or tonumber(at) < head then
      tx:hdel(keys.lane_memory(tx, path), "told")
      tx:hdel(keys.told(tx), path)
      tx.lanes[path] = nil
    end
  end
end

return start
end

source["transition.consume"] = function(require, LIBRARY)
-- Turns grants into leases.
local reply = require "lib.reply"
local execution = require "record.execution"
local holds = require "record.holds"
local fair = require "index.fair"
local lane = require "record.lane"
local leases = require "index.leases"
local queues = require "index.queues"
local choose = require "transition.choose"
local grant = require "transition.grant"
local start = require "transition.start"

local consume = {}

-- The refusal of a worker that lacks something; `worker` is what it takes.
function consume.incapable(rec, worker)
  local capabilities = worker.capabilities
  if not choose.takes_kind(worker, rec.kind) then return reply.err("not_capable", { kind = rec.kind }) end
  if rec.requires == nil or queues.covered(rec.requires, capabilities) then return nil end
  local missing = {}
  for _, token in ipairs(rec.requires) do
    if not capabilities[token] then missing[#missing + 1] = token end
  end
  return reply.err("not_capable", { missing = table.concat(missing, ",") })
end

-- `holder`: { instance, worker_id, lease_ttl_ms }; `worker`: what it takes; `g`: { execution_id, grant_id, attempt_id,
-- lease_id, keep }. Answers the record and whether this lease was taken already, or nil and a refusal.
function consume.one(tx, holder, worker, g)
  local rec = execution.load(tx, g.execution_id)
  if rec == nil then return nil, reply.err("execution_not_found") end
  if rec.phase == "active" and rec.lease_id == g.lease_id and rec.worker == holder.instance
    and tx.now < rec.lease_until
  then
    return rec, true
  end
  if not grant.open(rec, g.grant_id, tx.now) or rec.grant_worker ~= holder.instance or not start.possible(rec, tx.now)
    or start.stopped(tx, rec)
  then
    return nil, reply.err("grant_not_found", { grant_id = g.grant_id })
  end
  if leases.held(tx, holder.instance, { g.lease_id }) then
    return nil, reply.err("invalid_argument", { field = "lease_id", problem = "is that of another lease" })
  end
  local incapable = consume.incapable(rec, worker)
  if incapable then return nil, incapable end
  local copy = lane.load(tx, rec.path)
  -- The lane was limited after the grant was given: nobody has admitted it.
  if not holds.covers(rec, copy) then return nil, reply.err("grant_not_found", { grant_id = g.grant_id }) end
  if g.keep then holds.keep_aside(rec, g.keep) end
  start.lease(tx, rec, holder, g.lease_id, g.attempt_id)
  if copy then fair.started(tx, copy, rec) end
  return rec, false
end

-- Whoever sleeps until the partition's next timer hears of the first end among new leases of a lane.
function consume.announce(tx, path, wake)
  local copy = lane.load(tx, path)
  if copy then start.announce_wake_up(tx, copy, wake) end
end

return consume
end

source["transition.block"] = function(require, LIBRARY)
-- A granted execution was refused: it waits for its quota or budget, with the reason recorded.
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local holds = require "record.holds"
local spec = require "record.spec"
local grant = require "transition.grant"

local block = {}

-- `b`: { execution_id, grant_id, reason, detail, unheld }. Answers "already" when it waits for that, a refusal, or nil
-- when done.
function block.one(tx, b)
  local rec = execution.load(tx, b.execution_id)
  if rec == nil then return reply.err("execution_not_found") end
  if rec.phase == "runnable" and rec.reason == b.reason then return "already" end
  if not grant.open(rec, b.grant_id, tx.now) then return reply.err("grant_not_found", { grant_id = b.grant_id }) end
  if b.unheld then holds.drop(rec) end
  execution.block(rec, b.reason, spec.flatten(b.detail), tx.now)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.blocked", "reason", b.reason)
end

return block
end

source["transition.renew"] = function(require, LIBRARY)
-- Moves the end of a lease.
local execution = require "record.execution"
local fence = require "record.fence"

local renew = {}

function renew.one(tx, rec, a)
  local refusal = fence.check(rec, a.fence, tx.now)
  if refusal then return refusal end
  rec.lease_ttl = a.lease_ttl_ms or rec.lease_ttl
  rec.lease_until = tx.now + rec.lease_ttl
  rec.renewals = (rec.renewals or 0) + 1
  execution.save(tx, rec)
end

return renew
end

source["transition.unblock"] = function(require, LIBRARY)
-- What an execution waited for has cleared: it is eligible again at the place of its original score.
local event = require "lib.event"
local execution = require "record.execution"
local grant = require "transition.grant"
local runnable = require "transition.runnable"

local unblock = {}

-- Answers the record and whether it waited for this; nil when there is none. `holder_id` is what it was refused under.
function unblock.one(tx, id, reason, holder_id)
  local rec = execution.load(tx, id)
  if rec == nil then return nil end
  -- The call may overtake the block: then the grant ends here, and the block finds it gone.
  local refused = holder_id and grant.open(rec, holder_id, tx.now)
  if rec.phase ~= "runnable" or (rec.reason ~= reason and not refused) then return rec, false end
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.ready", "cause", reason)
  return rec, true
end

return unblock
end

source["transition.ask"] = function(require, LIBRARY)
-- What quotas and budgets say to executions that are about to start.
--
-- A candidate is { execution_id, holder_id, expires_at } with what it asks for. A fresh one was never asked for under
-- its holder id. What is said is noted with it: `admitted`, or `wall`, which is what is in the way. Neither is there
-- for one whose grant has run out, and for a late copy of an older request: these neither enter nor wait.
local budget = require "record.budget"
local budget_holds = require "record.budget_holds"
local holders = require "index.holders"
local quota = require "record.quota"
local capacity = require "index.quota_capacity"
local line = require "index.quota_line"
local quota_key = require "index.quota_key"

local ask = {}

-- Quotas ----------------------------------------------------------------------------------------

-- What a key says to one candidate: { key, weight, number, score }.
local function decide(tx, k, c)
  local member = holders.member(c)
  c.member = member
  if not c.fresh and capacity.holds(tx, k, member) then
    c.admitted = true
    return
  end
  if c.expires_at <= tx.now then return end
  local use = capacity.refusal(tx, k, c.weight)
  -- It was refused under this very grant or a later one: a copy of that request comes late. Its execution waits in line
  -- and is called; taken in now, it would stand in nobody's line and hold a place for nobody.
  if line.outdated(k, c, use == nil) then return end
  use = use or line.others_first(tx, k, c)
  if use == nil then
    line.admit(tx, k, c)
    c.admitted = true
    return
  end
  local next_at = not capacity.never(k, c.weight) and use.next_at() or nil
  line.wait(k, c, next_at)
  c.wall = { part = use.part, used = use.used, limit = use.limit, next_at = next_at }
end

-- Asks a quota for executions, in order. `same` is the reference of all of them when they share one. Answers the quota;
-- nil when there is none, and nothing is said then.
function ask.quota(tx, id, candidates, same)
  local q = quota.load(tx, id)
  if q == nil then return nil end
  local known, order = {}, {}
  if same then
    local digest, weight = quota.digest(same.key), same.weight or 1
    local k = quota_key.load(tx, q, digest, same.key, true)
    if line.admit_all(tx, k, candidates, weight) then
      quota_key.save(tx, k, true)
      return q
    end
    for _, c in ipairs(candidates) do c.key, c.weight = same.key, weight end
    k.asking, known[digest], order[1] = {}, k, k
  end
  for _, c in ipairs(candidates) do
    local digest = quota.digest(c.key)
    local k = known[digest]
    if k == nil then
      k = quota_key.load(tx, q, digest, c.key, true)
      k.asking, known[digest], order[#order + 1] = {}, k, k
    end
    k.asking[#k.asking + 1] = c.execution_id
  end
  for _, k in ipairs(order) do line.look(tx, k, k.asking) end
  for _, c in ipairs(candidates) do decide(tx, known[quota.digest(c.key)], c) end
  for _, k in ipairs(order) do quota_key.save(tx, k, true) end
  return q
end

-- Budgets ---------------------------------------------------------------------------------------

local function wall(kind, b, wrong)
  return {
    refusal = kind, budget_id = b.id, dimension = wrong and wrong.dimension, used = wrong and wrong.used,
    limit = wrong and wrong.limit, rooms = b.rooms,
  }
end

-- The first dimension, in the order of the names, that the budget does not have.
local function unknown_dimension(b, estimate)
  local first
  for name in pairs(estimate) do
    if b.used[name] == nil and (first == nil or name < first) then first = name end
  end
  return first
end

local nothing = {}

-- What keeps candidates with these amounts out, and how: a dimension, and `unknown_dimension`, `hard` or `soft`. Nil
-- when nothing does.
local function in_the_way(path, amounts)
  local strange = unknown_dimension(path[1], amounts)
  if strange then return { dimension = strange }, "unknown_dimension" end
  local wrong
  if next(amounts) == nil then wrong = budget.exhausted(path) else wrong = budget.breach(path, amounts) end
  if wrong then return wrong, "hard" end
  wrong = budget.soft(path, true)
  if wrong then return wrong, "soft" end
  if budget.overflow(path, amounts, "estimate") then return nothing, "hard" end
end

-- Plans a candidate's hold, or says what is in the way; nothing is held then.
local function admit(tx, path, c)
  local b, estimate = path[1], c.estimate or nothing
  if not c.fresh and budget_holds.of_holder(tx, b.id, holders.member(c)) then
    c.admitted = true
    return
  end
  local wrong, kind = in_the_way(path, estimate)
  if wrong == nil then
    budget_holds.enter(tx, b.id, { c }, budget_holds.text(estimate, nothing))
    budget.hold(path, estimate, 1)
    c.admitted = true
    return
  end
  if wrong.budget then budget.note_refusal(tx, wrong, kind) end
  c.wall = wall(kind, wrong.budget or b, wrong)
end

-- Lets candidates in that were never asked for and share one estimate, when there is room for all of them. Returns
-- false, with nothing planned, when they have to be asked for one by one.
local function admit_together(tx, path, candidates)
  local estimate = candidates[1].estimate
  for i = 1, #candidates do
    local c = candidates[i]
    if not c.fresh or c.estimate ~= estimate then return false end
  end
  estimate = estimate or nothing
  local sum = budget_holds.times(estimate, #candidates)
  if in_the_way(path, sum) then return false end
  budget_holds.enter(tx, path[1].id, candidates, budget_holds.text(estimate, nothing))
  budget.hold(path, sum, 1)
  for i = 1, #candidates do candidates[i].admitted = true end
  return true
end

-- Asks a budget for executions, in order; `same` as above. Answers false when there is none, and nothing is said then.
function ask.budget(tx, id, candidates, same)
  local path = budget.path(tx, id)
  if path == nil then return false end
  if #candidates == 0 then return true end
  if same then
    for i = 1, #candidates do candidates[i].estimate = same.estimate end
  end
  if not admit_together(tx, path, candidates) then
    for _, c in ipairs(candidates) do admit(tx, path, c) end
  end
  budget.save_all(tx, path)
  return true
end

return ask
end

source["transition.give_back"] = function(require, LIBRARY)
-- What executions held against quotas and budgets comes back.
local budget = require "record.budget"
local budget_holds = require "record.budget_holds"
local holders = require "index.holders"
local holds = require "record.holds"
local keys = require "lib.keys"
local quota = require "record.quota"
local capacity = require "index.quota_capacity"
local quota_key = require "index.quota_key"

local give_back = {}

-- Holders without those that are listed twice, as members of their set.
local function members_of(items)
  local members, seen, n = {}, {}, 0
  for i = 1, #items do
    local member = holders.member(items[i])
    if not seen[member] then
      n = n + 1
      seen[member], members[n] = true, member
    end
  end
  return members
end

-- The quota or its key is gone: only the holders are left to go.
local function leave_alone(tx, set, items)
  local key, members, count = keys.holders(tx, set), members_of(items), 0
  for i, score in ipairs(tx:zscores(key, members)) do
    if score then
      tx:zrem(key, members[i])
      count = count + 1
    end
  end
  return count
end

-- Takes holders out of a quota, those that never ran (`unused`) with what their start took. Answers how many there
-- were.
function give_back.quota(tx, id, items)
  local q, digests, count = quota.load(tx, id), {}, 0
  local digest, of_key, by_key = nil, nil, {}
  for i = 1, #items do
    local item = items[i]
    if item.key_digest ~= digest then
      digest = item.key_digest
      of_key = by_key[digest]
      if of_key == nil then
        of_key = {}
        by_key[digest], digests[#digests + 1] = of_key, digest
      end
    end
    of_key[#of_key + 1] = item
  end
  for _, one in ipairs(digests) do
    local k, left = q and quota_key.load(tx, q, one), nil
    if k then
      left = capacity.leave(tx, k, by_key[one])
      if left > 0 then quota_key.save(tx, k) end
    else
      left = leave_alone(tx, holds.of_quota(id, one), by_key[one])
    end
    count = count + left
  end
  return count
end

-- Drops what holders hold against a budget, their reservations included. Answers how many held something.
function give_back.budget(tx, id, items)
  local path, members = budget.path(tx, id), members_of(items)
  if path == nil then
    for _, member in ipairs(members) do tx:zrem(keys.holders(tx, budget.set(id)), member) end
    return 0
  end
  if #members == 0 then return 0 end
  local count = budget_holds.drop_holders(tx, path, members)
  if count > 0 then budget.save_all(tx, path) end
  return count
end

return give_back
end

source["transition.admit"] = function(require, LIBRARY)
-- Admission inside a claim: where quotas and budgets share the store with executions, they are asked on the way.
--
-- An execution that asks is a candidate of `transition.ask`, with what it names (`quotas`, `budgets`) and what became
-- of it so far: `entered` lists the sets that took it in, `keep` those of them that stay with it while its attempt is
-- set aside. `refused` is why it has to wait, `undecided` that a quota or budget could not be asked.
local ask = require "transition.ask"
local event = require "lib.event"
local execution = require "record.execution"
local holders = require "index.holders"
local holds = require "record.holds"
local quota = require "record.quota"
local spec = require "record.spec"

local admit = {}

local format = string.format
local nothing = {}

-- An execution that asks for what is `named` ({ quotas, budgets }), under the id of the lease it would get. `v` are the
-- values of a plain record, with its input.
function admit.asker(id, lease_id, grants, score, named, bytes, v, input)
  return {
    execution_id = id, holder_id = lease_id, expires_at = holders.open_ended, fresh = true, number = (grants or 0) + 1,
    score = score, named = named, entered = nothing, bytes = bytes, v = v, input = input,
    -- Set while it asks, and by its claim; what is rare is not among them.
    member = nil, admitted = nil, place = nil, turn = nil, queue = nil,
  }
end

local function refuse(one, reason, facts)
  local detail = {}
  for name, value in pairs(facts) do detail[name] = type(value) == "number" and format("%.0f", value) or value end
  one.refused = { reason = reason, detail = detail }
end

-- Says what is asked for, and answers false when that need not be asked.
local function asks_quota(one, ref)
  local set = holds.of_quota(ref.quota_id, quota.digest(ref.key))
  -- Naming a key twice asks for it once.
  for _, entered in ipairs(one.entered) do
    if entered == set then return false end
  end
  one.key, one.weight, one.set = ref.key, ref.weight or 1, set
  return true
end

local function asks_budget(one, ref)
  one.estimate, one.set = ref.estimate, holds.of_budget(ref.budget_id)
  return true
end

-- Those that nothing has refused, ready to ask for what they name under this id. One that names it twice asks in turn.
local function ready_to_ask(asking, field, id_of, id, turn, asks)
  local open, again = {}, false
  for _, one in ipairs(asking) do
    if one.refused == nil and not one.undecided then
      local seen = 0
      for _, ref in ipairs(one.named[field]) do
        if ref[id_of] == id then
          seen = seen + 1
          if seen == turn and asks(one, ref) then open[#open + 1] = one end
        end
      end
      again = again or seen > turn
    end
  end
  return open, again
end

-- The ids that are named, in order.
local function named(asking, field, id_of)
  local ids, known = {}, {}
  for _, one in ipairs(asking) do
    for _, ref in ipairs(one.named[field]) do
      local id = ref[id_of]
      if not known[id] then
        known[id], ids[#ids + 1] = true, id
      end
    end
  end
  if #ids > 1 then table.sort(ids) end
  return ids
end

local function quota_refused(id, one)
  local w = one.wall
  return { quota_id = id, key = one.key, part = w.part, used = w.used, limit = w.limit, next_at = w.next_at }
end

local function budget_refused(_, one)
  local w = one.wall
  return {
    budget_id = w.budget_id, dimension = w.dimension, refusal = w.refusal, used = w.used, limit = w.limit,
    rooms = w.rooms,
  }
end

local function visit_quota(tx, id, asked, same) return ask.quota(tx, id, asked, same) or false end

-- What is asked: quotas first.
local quotas = {
  field = "quotas", id_of = "quota_id", route_of = "route_of_quota", reason = "waiting_for_quota", asks = asks_quota,
  visit = visit_quota, facts = quota_refused,
}
local budgets = {
  field = "budgets", id_of = "budget_id", route_of = "route_of_budget", reason = "waiting_for_budget",
  asks = asks_budget, visit = ask.budget, facts = budget_refused,
}

-- Notes with one that was not let in what was said. `answer` is nil when nothing could be asked, and false when there
-- is nothing of that id.
local function note_wall(kind, one, answer, id)
  if answer == false then
    refuse(one, kind.reason, { [kind.id_of] = id, problem = "not found" })
  elseif one.wall and answer then
    refuse(one, kind.reason, kind.facts(id, one))
  else
    one.undecided = true
  end
end

local function kept_set(answer, key)
  return answer and answer ~= true and quota.kept_set(answer, key) or nil
end

-- A list with one more.
local function with(list, item)
  local longer = { unpack(list) }
  longer[#longer + 1] = item
  return longer
end

local function ask_one_by_one(tx, kind, asking)
  for _, id in ipairs(named(asking, kind.field, kind.id_of)) do
    local turn, again = 1, true
    while again do
      local open
      open, again = ready_to_ask(asking, kind.field, kind.id_of, id, turn, kind.asks)
      local answer = #open > 0 and tx:visit(tx[kind.route_of](tx, id), kind.visit, id, open)
      for _, one in ipairs(open) do
        if one.admitted and answer then
          local kept = kept_set(answer, one.key)
          one.entered, one.admitted = with(one.entered, one.set), nil
          if kept then one.keep = with(one.keep or nothing, kept) end
        else
          note_wall(kind, one, answer, id)
        end
      end
      turn = turn + 1
    end
  end
end

-- The same for those that name the same, once. They share the list of what took them in.
local function ask_together(tx, kind, asking, ref)
  local id, first = ref[kind.id_of], asking[1]
  local answer = tx:visit(tx[kind.route_of](tx, id), kind.visit, id, asking, ref)
  kind.asks(first, ref)
  local entered, kept, open = with(first.entered, first.set), kept_set(answer, ref.key), {}
  local keep = kept and with(first.keep or nothing, kept)
  for i = 1, #asking do
    local one = asking[i]
    if one.admitted and answer then
      one.entered, one.admitted, open[#open + 1] = entered, nil, one
      if keep then one.keep = keep end
    else
      note_wall(kind, one, answer, id)
    end
  end
  return open
end

-- What all of them name, when that is the same and no more than one quota and one budget; else nil.
local function same_of(asking)
  local same = asking[1].named
  if #same.quotas > 1 or #same.budgets > 1 then return nil end
  for i = 2, #asking do
    if asking[i].named ~= same then return nil end
  end
  return same
end

-- Asks every quota that is named, then every budget, the next only for what those before it let pass.
function admit.all(tx, asking)
  local same = same_of(asking)
  if same == nil then
    ask_one_by_one(tx, quotas, asking)
    ask_one_by_one(tx, budgets, asking)
    return
  end
  local ref, open = same.quotas[1], asking
  if ref then open = ask_together(tx, quotas, open, ref) end
  ref = same.budgets[1]
  if ref and #open > 0 then ask_together(tx, budgets, open, ref) end
end

-- Notes with a record what took it in. It starts in the same plan.
function admit.note(rec, one)
  rec.grants = one.number
  holds.note(rec, one.holder_id, one.entered)
  if one.keep then holds.keep_aside(rec, one.keep) end
end

-- One that was let in cannot start: what let it in gets it back.
function admit.withdraw(tx, one)
  for _, set in ipairs(one.entered) do tx:owe("release", set, one.execution_id, one.holder_id, true) end
  return { withdrawn = true }
end

-- An execution that was not let in waits, with the reason; one about which nothing was decided stays where it is. What
-- let it in before gets it back.
function admit.turn_away(tx, one)
  local rec = execution.load(tx, one.execution_id)
  rec.grants = one.number
  if #one.entered > 0 then holds.note(rec, one.holder_id, one.entered) end
  local refused = one.refused
  if refused then execution.block(rec, refused.reason, spec.flatten(refused.detail), tx.now) end
  execution.save(tx, rec)
  if refused then event.of_execution(tx, rec, "execution.blocked", "reason", refused.reason) end
  return { turned_away = true }
end

return admit
end

source["transition.take"] = function(require, LIBRARY)
-- Takes candidates of a claim: those that need no admission are leased at once, the others when they were let in.
local reply = require "lib.reply"
local limits = require "lib.limits"
local execution = require "record.execution"
local fair = require "index.fair"
local admit = require "transition.admit"
local choose = require "transition.choose"
local plain = require "transition.plain"
local start = require "transition.start"
local walk = require "transition.walk"
local holds = require "record.holds"

local take = {}

-- Leases one candidate. `room`: how many bytes the answer has left for tasks; nil for the first one, which is always
-- handed out.
local function take_one(tx, a, copy, id, lease_id, attempt_id, room)
  local record, wake, input, extras
  if not tx.step_by_step then record, wake, input, extras = plain.start(tx, id, a, lease_id, attempt_id, room) end
  if record then return { task = { id, record, input, extras or false }, wake = wake, bytes = #input } end
  if record == false then return { full = true } end
  local rec = execution.load(tx, id)
  if rec == nil or rec.phase ~= "runnable" or not start.possible(rec, tx.now) then
    return reply.err("execution_not_runnable")
  end
  if rec.flow_id and start.stopped(tx, rec) then
    walk.cancel_member(tx, rec)
    return { cancelled = true }
  end
  local passed, bytes
  input, passed, bytes = start.heavy(tx, rec)
  if room and bytes > room then return { full = true } end
  start.lease(tx, rec, a, lease_id, attempt_id)
  if copy.fairness == "fair" then fair.started(tx, copy, rec) end
  return { task = start.task(tx, rec, input, passed), wake = rec.wake, bytes = bytes }
end

-- Leases up to `max` candidates, none of which needs admission; `free` are the places of lease ids that are free, when
-- not all are. Answers the tasks, the first end of a lease, and a refusal when the partition is moving and nothing was
-- leased.
function take.plain(tx, a, copy, found, free)
  local max = free and math.min(a.max, #free) or a.max
  local tasks, first_wake, looks, bytes = {}, nil, 0, 0
  while #tasks < max and looks < limits.batch_max do
    local id, queue = choose.take(tx, found)
    if id == nil then break end
    looks = looks + 1
    local at = #tasks + 1
    local place = free and free[at] or at
    local one = tx:item(take_one, tx, a, copy, id, a.lease_ids[place], a.attempt_ids[place],
      at > 1 and limits.claim_bytes_max - bytes or nil)
    if one and one.full then
      choose.put_back(found, id, queue)
      break
    end
    if one and one.err == "try_again" then
      if #tasks == 0 then return tasks, nil, one end
      break
    end
    if one and one.task then
      if first_wake == nil or one.wake < first_wake then first_wake = one.wake end
      bytes = bytes + one.bytes
      tasks[#tasks + 1] = one.task
    elseif one == nil or one.err then
      choose.pass(found, queue)
    end
  end
  return tasks, first_wake
end

-- With admission ---------------------------------------------------------------------------------

-- A candidate that needs admission, as it asks for it. `room` as above.
local function ask_one(tx, id, lease_id, room)
  local asker = not tx.step_by_step and plain.asking(tx, id, lease_id, room) or nil
  if asker then return asker end
  local rec = execution.load(tx, id)
  if rec == nil or rec.phase ~= "runnable" or not start.possible(rec, tx.now) then
    return reply.err("execution_not_runnable")
  end
  if rec.flow_id and start.stopped(tx, rec) then
    walk.cancel_member(tx, rec)
    return { cancelled = true }
  end
  local _, _, bytes = start.heavy(tx, rec)
  if room and bytes > room then return { full = true } end
  local named = { quotas = holds.asked_quotas(rec) or {}, budgets = holds.asked_budgets(rec) or {} }
  return admit.asker(id, lease_id, rec.grants, rec.score, named, bytes)
end

-- Leases one that was let in. What let it in gets it back should this not be written.
local function start_admitted(tx, claim, one)
  local a, id = claim.a, one.execution_id
  tx:hedge(one)
  if one.v and one.keep == nil then
    local record, wake = plain.start_admitted(tx, one, a, a.attempt_ids[one.place])
    return { task = { id, record, one.input, false }, wake = wake, bytes = one.bytes }
  end
  local rec = execution.load(tx, id)
  admit.note(rec, one)
  start.lease(tx, rec, a, one.holder_id, a.attempt_ids[one.place])
  if claim.copy.fairness == "fair" then fair.started(tx, claim.copy, rec) end
  return { task = start.task(tx, rec), wake = rec.wake, bytes = one.bytes }
end

-- Where the ids of leases and attempts stand that this claim may use, the next one last.
local function places_of(max, free)
  local places, n = {}, free and #free or max
  for i = 1, n do places[i] = free and free[n + 1 - i] or n + 1 - i end
  return places
end

-- One is taken: its task stands where its turn was.
local function note_taken(claim, turn, one)
  claim.taken, claim.bytes = claim.taken + 1, claim.bytes + one.bytes
  if claim.first_wake == nil or one.wake < claim.first_wake then claim.first_wake = one.wake end
  claim.order[#claim.order + 1], claim.tasks[turn] = turn, one.task
end

-- How many bytes the answer has left for tasks; nil for the first one, which is always handed out.
local function room_of(claim, asking)
  if claim.taken + #asking == 0 then return nil end
  return limits.claim_bytes_max - claim.bytes
end

-- Takes candidates while there are leases to give. Those that need admission are not started: they are answered, to be
-- asked for. Then the refusal of one whose partition is moving.
local function take_up(tx, claim)
  local a, asking = claim.a, {}
  while #claim.places > 0 and claim.looks < limits.batch_max do
    local id, queue = choose.take(tx, claim.found)
    if id == nil then break end
    claim.looks = claim.looks + 1
    local place, one = claim.places[#claim.places], nil
    if queue.admission then
      one = tx:item(ask_one, tx, id, a.lease_ids[place], room_of(claim, asking))
    else
      one = tx:item(take_one, tx, a, claim.copy, id, a.lease_ids[place], a.attempt_ids[place], room_of(claim, asking))
    end
    if one and one.full then
      choose.put_back(claim.found, id, queue)
      break
    end
    if one and one.err == "try_again" then return asking, one end
    if one and one.task then
      claim.places[#claim.places] = nil
      note_taken(claim, claim.looks, one)
    elseif one and one.entered then
      claim.places[#claim.places] = nil
      one.place, one.turn, one.queue = place, claim.looks, queue
      queue.asking = queue.asking + 1
      claim.bytes = claim.bytes + one.bytes
      asking[#asking + 1] = one
    elseif one == nil or one.err then
      choose.pass(claim.found, queue)
    end
  end
  return asking
end

-- Asks for those that need admission, and starts those that are let in. A lease that was not given is free again.
local function let_in(tx, claim, asking)
  admit.all(tx, asking)
  for _, one in ipairs(asking) do
    local started
    claim.bytes, one.queue.asking = claim.bytes - one.bytes, one.queue.asking - 1
    if one.refused or one.undecided then
      tx:item(admit.turn_away, tx, one)
    else
      started = tx:item(start_admitted, tx, claim, one)
    end
    if started and started.task then
      note_taken(claim, one.turn, started)
    else
      claim.places[#claim.places + 1] = one.place
      if not one.refused then
        if not one.undecided then tx:item(admit.withdraw, tx, one) end
        choose.pass(claim.found, one.queue)
      end
    end
  end
end

local function in_order(claim)
  local tasks = {}
  table.sort(claim.order)
  for i, turn in ipairs(claim.order) do tasks[i] = claim.tasks[turn] end
  return tasks
end

-- The same where some of the candidates need admission.
function take.asking(tx, a, copy, found, free)
  local claim = {
    a = a, copy = copy, places = places_of(a.max, free), taken = 0, looks = 0, bytes = 0, tasks = {}, order = {},
    found = found,
  }
  local refusal
  repeat
    local asking
    asking, refusal = take_up(tx, claim)
    if #asking > 0 then let_in(tx, claim, asking) end
  until #asking == 0
  return in_order(claim), claim.first_wake, claim.taken == 0 and refusal or nil
end

return take
end

source["transition.pay"] = function(require, LIBRARY)
-- Pays what the operations of a list owe to other partitions of the same store, in the same call: what was held against
-- quotas and budgets comes back, and a quota with room calls those that wait for it. On a cluster these are other
-- nodes, and the partition's outbox owes them.
local execution = require "record.execution"
local give_back = require "transition.give_back"
local holds = require "record.holds"
local quota = require "record.quota"
local line = require "index.quota_line"
local quota_key = require "index.quota_key"
local unblock = require "transition.unblock"

local pay = {}

local match = string.match

-- What the name of a set says: the kind of its owner, its id and the digest of a quota's key. A few are remembered.
local parts, part_count = {}, 0
local function parts_of(set)
  local known = parts[set]
  if known == nil then
    if part_count >= 256 then parts, part_count = {}, 0 end
    known = { match(set, "^(%a+):([^:]+):?(.*)$") }
    parts[set], part_count = known, part_count + 1
  end
  return known
end

-- What is owed to one quota or budget, or to the executions of one partition, in the order in which it was first owed.
local function grouped(tx, debts)
  local groups, known, set, owner, group = {}, {}, nil, nil, nil
  for i = 1, #debts do
    local debt = debts[i]
    local called = debt.what == "call"
    if called or debt.set ~= set then
      owner = parts_of(debt.set)
      local to = called and tx:route_of_execution(debt.execution_id) or owner[2]
      group = known[to]
      if group == nil then
        group = { what = called and "call" or owner[1], id = owner[2], route = to, items = {} }
        known[to], groups[#groups + 1] = group, group
      end
      set = not called and debt.set or nil
    end
    debt.key_digest = owner[3]
    group.items[#group.items + 1] = debt
  end
  return groups
end

-- Calls executions of one partition. A quota does not wait for those that will not come.
local function call(tx, group)
  local absent = {}
  local function one(_, debt)
    local rec, waited = unblock.one(tx, debt.execution_id, "waiting_for_quota", debt.holder_id)
    local state = rec and execution.public_state(rec)
    if not waited and state ~= "waiting" and state ~= "resumable" then absent[#absent + 1] = debt end
  end
  for _, debt in ipairs(group.items) do
    if not tx:pay(group.route, debt, one, debt) then
      tx:pay(debt.home, debt, line.call_later, debt.execution_id, debt.holder_id, debt.set)
    end
  end
  for _, debt in ipairs(absent) do
    local function give_up(_, id)
      local q = quota.load(tx, id)
      local k = q and quota_key.load(tx, q, debt.key_digest)
      if k and line.give_up(k, debt.execution_id) then quota_key.save(tx, k) end
    end
    tx:pay(debt.home, debt, give_up, parts_of(debt.set)[2])
  end
end

-- Gives back to one quota or budget; what it cannot take is owed by the outbox of the partition that owes it.
local function release(tx, group)
  local work, route = give_back.budget, nil
  if group.what == "quota" then
    work, route = give_back.quota, tx:route_of_quota(group.id)
  else
    route = tx:route_of_budget(group.id)
  end
  if tx:pay(route, group.items[1], work, group.id, group.items) then return end
  for _, debt in ipairs(group.items) do
    tx:pay(debt.home, debt, holds.owe_later, debt.execution_id, debt.holder_id, debt.set, debt.unused)
  end
end

-- What is paid may be followed by more that is owed: a release by a call, the call of one that is gone by the call of
-- the next.
function pay.all(tx)
  while tx:owing() > 0 do
    for _, group in ipairs(grouped(tx, tx:settle_debts())) do
      if group.what == "call" then call(tx, group) else release(tx, group) end
    end
  end
end

return pay
end

source["transition.complete"] = function(require, LIBRARY)
-- Ends the running attempt with a result.
local execution = require "record.execution"
local fence = require "record.fence"
local finish = require "transition.finish"
local plain = require "transition.plain"

local complete = {}

-- Answers "replay" when this lease already completed, a refusal, or nil when it is done.
function complete.one(tx, c)
  local answer = not tx.step_by_step and plain.complete(tx, c)
  if answer then return answer end
  local rec = execution.load(tx, c.execution_id)
  local refusal = fence.check(rec, c.fence, tx.now, "complete")
  if refusal then return refusal end
  finish.execution(tx, rec, "success", {
    by = "complete", attempt_state = "succeeded", result = c.result, result_encoding = c.result_encoding,
  })
end

return complete
end

source["transition.finish"] = function(require, LIBRARY)
-- The one way into terminal: attempt ended, lease and timers gone, the index moved, waiters told, one event.
local keys = require "lib.keys"
local limits = require "lib.limits"
local event = require "lib.event"
local attempt = require "record.attempt"
local execution = require "record.execution"
local fired = require "record.fired"
local waitpoint = require "record.waitpoint"
local webhook = require "record.webhook"

local finish = {}

local events = {
  success = "execution.completed", failed = "execution.failed", cancelled = "execution.cancelled",
  expired = "execution.expired", skipped = "execution.skipped",
}

local function store_result(tx, rec, result, encoding)
  if result == nil then return end
  rec.result_in = encoding ~= "json" and encoding or nil
  if #result > limits.result_inline_bytes_max then
    rec.result_far = 1
    tx:set(keys.result(tx, rec.id), result)
  else
    rec.result = result
  end
end

-- `how`: by (what ended a live lease), at (when, if not now), attempt_state, failure { reason, category }, result,
-- result_encoding, actor, data.
function finish.execution(tx, rec, outcome, how)
  if rec.phase == "active" then
    rec.ended_by = how.by
    if how.at then rec.ended_value = how.at end
  end
  if attempt.is_open(rec) then
    attempt.finish(tx, rec, how.attempt_state, how.failure, how.actor)
    attempt.ended_together(rec)
  end
  -- Waitpoints of steps outlive attempts, not the execution.
  if rec.open then waitpoint.close(tx, rec, "execution_ended") end
  if rec.answered then waitpoint.forget_answered(tx, rec) end
  rec.phase, rec.outcome, rec.ended = "terminal", outcome, tx.now
  execution.unblock(rec)
  if rec.delay then rec.delay = nil end
  if rec.next then rec.next = nil end
  if rec.resume then rec.resume = nil end
  if rec.cancel_by or rec.cancel_reason then rec.cancel_by, rec.cancel_reason = nil, nil end
  if rec.awaiting then rec.awaiting = nil end
  if rec.wanted then rec.wanted = nil end
  if how.failure then
    rec.failure = cmsgpack.pack(how.failure)
  elseif rec.failure then
    rec.failure = nil
  end
  store_result(tx, rec, how.result, how.result_encoding)
  if rec.waited then
    rec.waited = nil
    tx:announce("done", rec.id)
  end
  if rec.firing then fired.ended(tx, rec, execution.namespace(rec), outcome) end
  if rec.webhook then rec.hook = webhook.of_execution(tx, rec, events[outcome]) end
  execution.save(tx, rec)
  local data, took = how.data, tx.now - rec.created
  if data == nil and how.failure == nil then
    event.of_execution(tx, rec, events[outcome], "took_ms", took)
  else
    data = data or {}
    if how.failure then
      data[#data + 1], data[#data + 2] = "category", how.failure[2]
    end
    data[#data + 1], data[#data + 2] = "took_ms", took
    event.of_execution(tx, rec, events[outcome], unpack(data))
  end
  if rec.flow_id or rec.parent_id or rec.kids then require("transition.aftermath").of(tx, rec) end
end

return finish
end

source["transition.retry"] = function(require, LIBRARY)
-- A failed or timed-out attempt: tried again by the policy, or the end.
local backoff = require "lib.backoff"
local event = require "lib.event"
local attempt = require "record.attempt"
local execution = require "record.execution"
local finish = require "transition.finish"
local spec = require "record.spec"
local runnable = require "transition.runnable"

local retry = {}

local function holds(list, value)
  for _, item in ipairs(list) do
    if item == value then return true end
  end
  return false
end

local function allowed(policy, failures, category)
  if failures >= policy.max_attempts then return false end
  if policy.never_on and holds(policy.never_on, category) then return false end
  if policy.retry_on and not holds(policy.retry_on, category) then return false end
  return true
end

-- `f`: { by, attempt_state, reason, category, retryable, retry_after_ms, draw }. Answers the time of the next attempt,
-- or nil when the execution failed for good.
function retry.after_failure(tx, rec, f)
  local failures = (rec.failures or 0) + 1
  rec.failures = failures
  local policy = spec.retry(tx, rec)
  if f.retryable == false or not allowed(policy, failures, f.category) then
    finish.execution(tx, rec, "failed", {
      by = f.by, attempt_state = f.attempt_state, failure = { f.reason, f.category },
    })
    return nil
  end
  local delay = f.retry_after_ms or backoff.delay_ms(policy, failures, f.draw)
  local at = tx.now + delay
  rec.ended_by, rec.ended_value = f.by == "fail" and "retry" or f.by, at
  attempt.finish(tx, rec, f.attempt_state, { f.reason, f.category })
  rec.next, rec.delay, rec.reclaims = "retry", at, nil
  local tiers = #spec.fallbacks(tx, rec)
  if tiers > 0 then rec.tier = math.min(rec.tier == nil and 0 or rec.tier + 1, tiers - 1) end
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.retried", "category", f.category, "delay_until", at)
  return at
end

return retry
end

source["transition.interrupt"] = function(require, LIBRARY)
-- A lease that ends without an answer: expired, revoked, yielded or delayed. The attempt ends interrupted.
local limits = require "lib.limits"
local event = require "lib.event"
local attempt = require "record.attempt"
local execution = require "record.execution"
local finish = require "transition.finish"
local runnable = require "transition.runnable"

local interrupt = {}

-- How often the lease was lost in a row; an attempt that renewed often enough starts the count again.
local function in_a_row(rec)
  if (rec.renewals or 0) >= limits.renewals_reset_reclaims then return 0 end
  return rec.reclaims or 0
end

-- The worker gave the execution back on its own: counted nowhere.
function interrupt.handed_back(tx, rec, by, delay_until, kind)
  if rec.reclaims then rec.reclaims = in_a_row(rec) end
  rec.ended_by, rec.ended_value = by, delay_until or tx.now
  attempt.finish(tx, rec, "interrupted", nil)
  rec.next, rec.delay = "reclaim", delay_until
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  if delay_until then
    event.of_execution(tx, rec, kind, "delay_until", delay_until)
  else
    event.of_execution(tx, rec, kind)
  end
end

-- The lease was lost: the execution is offered again at once, or ends poisoned when that happened too often in a row.
function interrupt.lost(tx, rec, by, actor)
  local lost = in_a_row(rec)
  if lost >= (rec.max_reclaims or limits.reclaims_default) then
    finish.execution(tx, rec, "failed", {
      by = by, at = by == "expired" and rec.lease_until or nil, attempt_state = "interrupted",
      failure = { string.format("lease lost %d times in a row", lost + 1), "poisoned" }, data = { "cause", by },
    })
    return
  end
  rec.reclaims = lost + 1
  rec.ended_by, rec.ended_value = by, by == "expired" and rec.lease_until or tx.now
  local worker = rec.worker
  attempt.finish(tx, rec, "interrupted", nil)
  rec.next = "reclaim"
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  local data = { "cause", by, "worker_instance", worker }
  if actor then data[5], data[6] = "actor", actor end
  event.of_execution(tx, rec, "execution.reclaimed", unpack(data))
end

return interrupt
end

source["transition.retire"] = function(require, LIBRARY)
-- Removes a terminal execution and everything that belongs to it.
local keys = require "lib.keys"
local event = require "lib.event"
local fair = require "index.fair"
local home = require "index.home"
local lists = require "index.lists"
local queues = require "index.queues"
local timers = require "index.timers"
local children = require "record.children"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local flow = require "record.flow"
local frames = require "record.frames"
local signals = require "record.signals"
local step = require "record.step"
local usage = require "record.usage"
local waitpoint = require "record.waitpoint"

local retire = {}

local function remove(tx, rec)
  home.leave(tx, rec)
  queues.tidy(tx, rec.path, queues.name(rec.queue, rec.kind))
  fair.forget(tx, rec.path, rec)
  timers.clear(tx, rec.id)
  tx:del(keys.core(tx, rec.id))
  tx.memo[rec.id] = nil
  if rec.said then tx:del(keys.spec(tx, rec.id)) end
  if rec.input then tx:del(keys.input(tx, rec.id)) end
  if rec.more then tx:del(keys.more(tx, rec.id)) end
  if rec.waits then tx:del(keys.waits(tx, rec.id)) end
  if rec.result_far then tx:del(keys.result(tx, rec.id)) end
  if rec.spilled then tx:del(keys.attempts(tx, rec.id)) end
  waitpoint.remove_all(tx, rec)
  signals.remove_all(tx, rec)
  usage.remove_all(tx, rec)
  step.remove_all(tx, rec)
  frames.remove_all(tx, rec)
  dependencies.remove_all(tx, rec)
  if rec.flow_id then flow.forget_member(tx, rec) end
  if rec.parent_id then children.forget(tx, rec) end
end

-- `actor` is the operator who asked for it; none when its retention is over.
function retire.execution(tx, rec, actor)
  lists.remove(tx, rec)
  remove(tx, rec)
  if actor then
    event.of_execution(tx, rec, "execution.retired", "actor", actor)
  else
    event.of_execution(tx, rec, "execution.retired")
  end
end

-- A member nobody has seen goes without a word; so does the flow that would have run in its place.
function retire.hidden(tx, rec)
  local nested = rec.nested and flow.load(tx, rec.nested)
  if nested then
    flow.walk_over(tx, nested, "remove")
    flow.save(tx, nested)
  end
  remove(tx, rec)
end

return retire
end

source["transition.condition"] = function(require, LIBRARY)
-- What a suspension waits for: a tree of conditions over signals.
--
-- A condition is open while neither it nor one above it is satisfied. An arriving signal counts for every open leaf
-- that names it; when none took it, it counts for the first open leaf without a name that it fits, leaves of its own
-- waitpoint first. So two conditions never share a signal unless they name the same one.
local limits = require "lib.limits"

local condition = {}

-- Stored node: { op, parent or false, name or false, waitpoint key or false, n, over or false, taken = list of { stream
-- id, who } }.
local OP, PARENT, NAME, WAITPOINT, N, OVER, TAKEN = 1, 2, 3, 4, 5, 6, 7

local function is_leaf(op) return op == "signal" or op == "count" end

local function node_problem(nodes, i, depth)
  local node = nodes[i]
  if i == 1 then
    if node.parent ~= nil then return "must not have a parent: it is the first" end
    depth[i] = 1
  else
    local parent = node.parent and node.parent < i - 1 and nodes[node.parent + 1]
    if not parent then return "must name a parent listed before it" end
    if is_leaf(parent.op) then return "has a parent that holds no conditions" end
    depth[i] = depth[node.parent + 1] + 1
  end
  if depth[i] > limits.condition_depth_max then
    return string.format("is deeper than %d", limits.condition_depth_max)
  end
  if node.op == "count" and (node.n == nil or node.over == nil) then return "must say n and over" end
  if node.op ~= "count" and (node.n or node.over) then return "has n or over, which belong to a count" end
  if not is_leaf(node.op) and (node.name or node.waitpoint) then
    return "has a name or a waitpoint, which belong to a signal or a count"
  end
end

-- The field and the problem of a tree that cannot be waited for, or nil. `keys` is the set of waitpoint keys it may
-- name.
function condition.problem(nodes, keys)
  local depth, leaves, children = {}, 0, {}
  for i, node in ipairs(nodes) do
    local text = node_problem(nodes, i, depth)
    if text then return string.format("condition[%d]", i - 1), text end
    if node.parent then children[node.parent + 1] = true end
    if is_leaf(node.op) then leaves = leaves + 1 end
    if node.waitpoint and not keys[node.waitpoint] then
      return string.format("condition[%d].waitpoint", i - 1), "is not the key of a waitpoint of this suspension"
    end
  end
  for i, node in ipairs(nodes) do
    if not is_leaf(node.op) and not children[i] then
      return string.format("condition[%d]", i - 1), "holds no conditions"
    end
  end
  if leaves > limits.condition_leaves_max then
    return "condition", string.format("must hold at most %d leaves, got %d", limits.condition_leaves_max, leaves)
  end
end

-- The state of a tree nothing has arrived for; without nodes any signal satisfies it.
function condition.new(nodes)
  if #nodes == 0 then return { { "signal", false, false, false, 1, false, {} } } end
  local state = {}
  for i, node in ipairs(nodes) do
    state[i] = {
      node.op, node.parent or false, node.name or false, node.waitpoint or false, node.op == "count" and node.n or 1,
      node.over or false, {},
    }
  end
  return state
end

-- Per node whether it is satisfied. Children stand after their parents.
local function evaluate(state)
  local done, any, missing = {}, {}, {}
  for i = #state, 1, -1 do
    local node = state[i]
    if is_leaf(node[OP]) then
      done[i] = #node[TAKEN] >= node[N]
    elseif node[OP] == "any_of" then
      done[i] = any[i] == true
    else
      done[i] = not missing[i]
    end
    if node[PARENT] then
      local parent = node[PARENT] + 1
      if done[i] then any[parent] = true else missing[parent] = true end
    end
  end
  return done
end

local function is_open(state, done, i)
  while true do
    if done[i] then return false end
    if not state[i][PARENT] then return true end
    i = state[i][PARENT] + 1
  end
end

local function takes(node, s)
  if node[WAITPOINT] and node[WAITPOINT] ~= s.key then return false end
  if node[OVER] == nil or node[OVER] == false or node[OVER] == "signals" then return true end
  local who = node[OVER] == "waitpoints" and s.waitpoint_id or s.who
  for _, taken in ipairs(node[TAKEN]) do
    if taken[2] == who then return false end
  end
  return true
end

local function take(node, s)
  node[TAKEN][#node[TAKEN] + 1] = { s.ref, node[OVER] == "waitpoints" and s.waitpoint_id or s.who }
end

-- `s`: { ref, name, key, waitpoint_id, who }; `who` is the approver the token was made for. Answers whether it counted
-- and whether the tree is satisfied now.
function condition.arrive(state, s)
  local done = evaluate(state)
  if done[1] then return false, true end
  local counted = false
  for i, node in ipairs(state) do
    if is_leaf(node[OP]) and node[NAME] == s.name and is_open(state, done, i) and takes(node, s) then
      take(node, s)
      counted = true
    end
  end
  for pass = 1, 2 do
    for i, node in ipairs(state) do
      local bound = node[WAITPOINT] ~= false
      if not counted and is_leaf(node[OP]) and not node[NAME] and bound == (pass == 1) and is_open(state, done, i)
        and takes(node, s)
      then
        take(node, s)
        counted = true
      end
    end
  end
  return counted, evaluate(state)[1]
end

-- The signals that satisfied the tree: those of satisfied leaves below satisfied conditions only, in order of arrival.
function condition.satisfying(state, number)
  local done, seen, refs = evaluate(state), {}, {}
  for i, node in ipairs(state) do
    local counts = is_leaf(node[OP])
    local at = i
    while counts and at do
      counts = done[at]
      at = state[at][PARENT] and state[at][PARENT] + 1 or nil
    end
    if counts then
      for _, taken in ipairs(node[TAKEN]) do
        if not seen[taken[1]] then
          seen[taken[1]] = true
          refs[#refs + 1] = taken[1]
        end
      end
    end
  end
  table.sort(refs, function(a, b) return number(a) < number(b) end)
  return refs
end

-- The signals that counted so far, in order of arrival.
function condition.counted(state, number)
  local seen, refs = {}, {}
  for _, node in ipairs(state) do
    for _, taken in ipairs(node[TAKEN]) do
      if not seen[taken[1]] then
        seen[taken[1]] = true
        refs[#refs + 1] = taken[1]
      end
    end
  end
  table.sort(refs, function(a, b) return number(a) < number(b) end)
  return refs
end

-- Per node how far it is.
function condition.progress(state)
  local done, out = evaluate(state), {}
  for i, node in ipairs(state) do
    out[i] = {
      op = node[OP], parent = node[PARENT] or nil, name = node[NAME] or nil, waitpoint = node[WAITPOINT] or nil,
      n = node[OP] == "count" and node[N] or nil, over = node[OVER] or nil, counted = #node[TAKEN], satisfied = done[i],
    }
  end
  return out
end

return condition
end

source["transition.suspend"] = function(require, LIBRARY)
-- Sets a running attempt aside until signals arrive, unless those that came early are enough already.
local condition = require "transition.condition"
local event = require "lib.event"
local execution = require "record.execution"
local reply = require "lib.reply"
local signals = require "record.signals"
local step = require "record.step"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local suspend = {}

local function refused(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

-- The entries of a list that the suspension takes over: those named, or all when `wanted` is nil; of those that belong
-- to a step, which stands at `at`, its own. `seen` notes their ids.
local function taken_of(list, at, step, wanted, seen)
  local out = {}
  for _, entry in ipairs(list) do
    local owner = entry[at]
    if (owner and owner == step) or (not owner and (wanted == nil or wanted[entry[1]])) then
      out[#out + 1] = entry
      seen[entry[1]] = true
    end
  end
  return out
end

-- The attempt's pending waitpoints that the suspension takes over, those that were answered before their time was over,
-- and the refusal when it names another.
local function adopted(rec, ids, step)
  local wanted, seen = nil, {}
  if ids then
    wanted = {}
    for _, id in ipairs(ids) do wanted[id] = true end
  end
  local pending = taken_of(waitpoint.open(rec), 4, step, wanted, seen)
  local answered = taken_of(waitpoint.answered(rec), 3, step, wanted, seen)
  for _, id in ipairs(ids or {}) do
    if not seen[id] then return nil, nil, reply.err("waitpoint_not_found", { waitpoint_id = id }) end
  end
  return pending, answered
end

-- The records of the waitpoints taken over, and their early signals in order of arrival.
local function early_signals(tx, pending, answered)
  local loaded, early = {}, {}
  local function look(entry)
    local w = waitpoint.load(tx, entry[1])
    for _, s in ipairs(w and waitpoint.early(w) or {}) do
      early[#early + 1] = { ref = s[1], name = s[2], who = s[3], waitpoint_id = entry[1], key = entry[2] }
    end
    return w
  end
  for i, entry in ipairs(pending) do loaded[i] = look(entry) end
  for _, entry in ipairs(answered) do look(entry) end
  table.sort(early, function(a, b) return signals.number(a.ref) < signals.number(b.ref) end)
  return loaded, early
end

-- The ids the suspension would mint must be new to the store; the first that is not, by the field that gives it.
local function known_id(tx, new, at, review_id)
  local ids, fields = {}, {}
  for i, w in ipairs(new) do ids[i], fields[i] = w.waitpoint_id, string.format(at, i - 1) .. ".waitpoint_id" end
  if review_id then ids[#ids + 1], fields[#fields + 1] = review_id, "review_waitpoint_id" end
  local given = {}
  for i, id in ipairs(ids) do
    if given[id] then return fields[i], "is given twice" end
    given[id] = true
  end
  if not waitpoint.any_known(tx, ids) then return nil end
  for i, id in ipairs(ids) do
    if waitpoint.load(tx, id) then return fields[i], "is taken" end
  end
end

-- The waitpoints of `list` that a step has not opened before, under whose keys it waits.
local function not_yet_open(list, pending, step)
  local known, out = {}, {}
  for _, entry in ipairs(pending) do
    if entry[4] == step then known[entry[2]] = true end
  end
  for _, w in ipairs(list) do
    if not known[w.key] then out[#out + 1] = w end
  end
  return out
end

-- Since when it is waited: since the first of the waitpoints that an earlier run of the handler opened for this step.
local function since(tx, a, loaded)
  local at = tx.now
  for _, w in ipairs(loaded) do
    if a.step and w.step == a.step then at = math.min(at, w.created) end
  end
  return at
end

-- Plans the new waitpoints; answers the field and the problem of one that cannot be opened.
local function open_new(tx, rec, new, at, suspension_id, step)
  for i, w in ipairs(new) do
    local field, problem = waitpoint.problem(rec, w)
    if #w.tokens == 0 then field, problem = "tokens", "must hold a token" end
    if field then return string.format(at, i - 1) .. "." .. field, problem end
    waitpoint.create(tx, rec, w, "active", suspension_id, step)
  end
end

-- The attempt goes on: what it would have waited for has come already.
local function go_on(tx, rec, a, state)
  local refs = condition.satisfying(state, signals.number)
  waitpoint.close(tx, rec, "already_satisfied", function(entry) return waitpoint.takes_part(entry, a.step) end)
  if a.step then step.found(tx, rec, a.step, "signal", { id = a.suspension_id, cause = "signal", refs = refs }) end
  rec.satisfied, rec.waits = cmsgpack.pack({ a.suspension_id, refs }), 1
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.already_satisfied", "suspension_id", a.suspension_id)
  return nil, "satisfied", refs
end

local function set_aside(tx, rec, a, state, adopted_records, asked)
  for _, w in ipairs(adopted_records) do waitpoint.activate(tx, w, a.suspension_id) end
  suspension.store(rec, {
    id = a.suspension_id, reason = a.reason, at = tx.now, behavior = a.timeout_behavior, condition = state,
    review_id = a.review_waitpoint_id, step = a.step or a.wait, recorded = a.step,
  })
  if a.step then step.wait(tx, rec, asked, a.step, "signal", since(tx, a, adopted_records)) end
  suspension.replace_continuation(tx, rec, a.continuation, a.continuation_encoding)
  rec.wait_until = a.timeout_ms and since(tx, a, adopted_records) + a.timeout_ms or nil
  rec.ended_by, rec.ended_value = "suspend", tx.now
  rec.time_left = rec.timeout_at and math.max(rec.timeout_at - tx.now, 1) or nil
  rec.timeout_at, rec.yield, rec.reclaims, rec.satisfied, rec.woken = nil, nil, nil, nil, nil
  rec.phase, rec.attempt_state = "suspended", "suspended"
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.suspended", "reason", a.reason, "suspension_id", a.suspension_id)
  return nil, "suspended"
end

-- Answers a refusal; or nil, "satisfied" or "suspended", and for the first the stream ids of the signals. `asked` is
-- the step of a wait that an earlier run of the handler asked for.
function suspend.attempt(tx, rec, a, asked)
  if a.timeout_behavior == "escalate" and a.review_waitpoint_id == nil then
    return refused("review_waitpoint_id", "is missing: escalation opens a waitpoint")
  end
  local pending, answered, unknown = adopted(rec, a.adopt, a.step)
  if unknown then return unknown end
  local new, at = a.step and not_yet_open(a.waitpoints, pending, a.step) or a.waitpoints, "waitpoints[%d]"
  if #new == 0 and #pending == 0 and a.otherwise then new, at = { a.otherwise }, "otherwise" end
  if #new == 0 and #pending == 0 then
    return refused("waitpoints", "must hold a waitpoint: the attempt has none pending")
  end
  local field, problem = known_id(tx, new, at, a.review_waitpoint_id)
  if field then return refused(field, problem) end
  local part, names = {}, {}
  for _, entry in ipairs(pending) do part[entry[1]], names[entry[2]] = true, true end
  for _, entry in ipairs(answered) do names[entry[2]] = true end
  for _, w in ipairs(new) do names[w.key] = true end
  field, problem = condition.problem(a.condition, names)
  if field then return refused(field, problem) end
  local loaded, early = early_signals(tx, pending, answered)

  -- Pending ones that are not part of it are given up.
  waitpoint.close(tx, rec, "not_adopted", function(entry) return not part[entry[1]] and entry[4] == nil end)
  waitpoint.forget_answered(tx, rec, function(entry) return entry[3] == nil or entry[3] == a.step end)
  field, problem = open_new(tx, rec, new, at, a.suspension_id, a.step)
  if field then return refused(field, problem) end
  local state, enough = condition.new(a.condition), false
  for _, s in ipairs(early) do
    local _, done = condition.arrive(state, s)
    enough = done
  end
  if enough then return go_on(tx, rec, a, state) end
  return set_aside(tx, rec, a, state, loaded, asked)
end

return suspend
end

source["transition.resume"] = function(require, LIBRARY)
-- The ends of a suspension: by the signals it waited for, by an operator, or by time.
local condition = require "transition.condition"
local event = require "lib.event"
local execution = require "record.execution"
local finish = require "transition.finish"
local ids = require "lib.id"
local runnable = require "transition.runnable"
local signals = require "record.signals"
local step = require "record.step"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local resume = {}

-- The attempt may go on: the next claim continues it. `refs` are the signals its worker gets to see.
function resume.execution(tx, rec, cause, refs, actor)
  local w = suspension.load(rec)
  waitpoint.close(tx, rec, "resumed", function(entry) return waitpoint.takes_part(entry, w.recorded) end)
  suspension.ended(tx, rec, w, cause, actor)
  if w.recorded then
    -- What was signalled until then is the answer of a wait that an operator ended.
    if cause == "operator" then refs = condition.counted(w.condition, signals.number) end
    step.found(tx, rec, w.recorded, "signal", { id = w.id, cause = cause, refs = refs, actor = actor })
  end
  local by = w.recorded and actor or nil
  rec.woken, rec.waits, rec.resume = cmsgpack.pack({ w.id, cause, refs, w.step or false, by }), 1, 1
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  local data = { "cause", cause, "suspension_id", w.id }
  if actor then data[5], data[6] = "actor", actor end
  event.of_execution(tx, rec, "execution.resumed", unpack(data))
end

-- An operator looks at it from now on: the timeout is gone, a waitpoint for the review is open.
local function escalate(tx, rec, w)
  rec.wait_until = nil
  -- The id was free when the suspension named it; whoever took it since keeps it.
  local review_id = w.review_id
  while waitpoint.load(tx, review_id) do review_id = ids.counted(review_id, 1) end
  waitpoint.create(tx, rec, {
    waitpoint_id = review_id, key = "operator_review", tokens = {}, review = true,
  }, "active", w.id)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.escalated", "suspension_id", w.id, "waitpoint_id", review_id)
end

local ends = {
  fail = { "failed", "failed" }, cancel = { "cancelled", "cancelled" }, expire = { "expired", "interrupted" },
}

-- The suspension took too long: what its behavior says.
function resume.timed_out(tx, rec, reason)
  local w = suspension.load(rec)
  if w.behavior == "escalate" then return escalate(tx, rec, w) end
  if w.behavior == "auto_resume_with_timeout_signal" then
    -- The signal's id is the suspension's: it ends by one timeout at most.
    local ref = signals.append(tx, rec, { signal_id = w.id, name = "timeout", category = "timeout", source = "engine" })
    return resume.execution(tx, rec, "timeout", { ref })
  end
  local how = ends[w.behavior]
  finish.execution(tx, rec, how[1], {
    by = "suspension_timeout", attempt_state = how[2], failure = { reason, "suspension_timeout" },
  })
end

-- True while a waitpoint of the current suspension is open.
local function is_answerable(rec)
  local w = suspension.load(rec)
  for _, entry in ipairs(waitpoint.open(rec)) do
    if waitpoint.takes_part(entry, w.recorded) then return true end
  end
  return false
end

-- Waitpoints whose time is over close. A suspension that nobody can answer any more, and that has no timeout, ends as
-- if it had.
function resume.close_expired(tx, rec)
  local closed = waitpoint.close(tx, rec, "expired", function(entry) return entry[3] and entry[3] <= tx.now end)
  if rec.phase == "suspended" and rec.wait_until == nil and not is_answerable(rec) then
    return resume.timed_out(tx, rec, "every waitpoint expired")
  end
  execution.save(tx, rec)
  event.of_execution(tx, rec, "waitpoint.expired", "count", closed)
end

return resume
end

source["transition.signal"] = function(require, LIBRARY)
-- A signal arrives at a waitpoint: checked against its token, kept, counted, and followed by the resume it completes.
local condition = require "transition.condition"
local event = require "lib.event"
local execution = require "record.execution"
local limits = require "lib.limits"
local reply = require "lib.reply"
local resume = require "transition.resume"
local signals = require "record.signals"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local signal = {}

-- One answer for every waitpoint that takes no signal: an outsider does not learn why.
local function not_open() return reply.err("waitpoint_not_open") end

-- The token with this digest, and all of them.
local function token_of(w, digest)
  local tokens = waitpoint.tokens(w)
  for _, token in ipairs(tokens) do
    if token[1] == digest then return token, tokens end
  end
end

-- True while the waitpoint takes signals: pending under the attempt that made it, which may wait for its children, or
-- part of the current suspension. One of a step is pending whenever the execution does not wait for it.
local function is_open(rec, w, now)
  if w.state == "closed" or (w.expires and w.expires <= now) then return false end
  if w.step and w.state == "pending" then return rec.phase ~= "terminal" end
  if w.step == nil and w.attempt ~= rec.attempt then return false end
  if w.state == "pending" then return rec.phase == "active" or (rec.phase == "runnable" and rec.resume ~= nil) end
  local current = suspension.load(rec)
  return rec.phase == "suspended" and current ~= nil and current.id == w.suspension
end

local function allowed(w, name)
  if w.allowed == nil then return true end
  for _, known in ipairs(cmsgpack.unpack(w.allowed)) do
    if known == name then return true end
  end
  return false
end

-- The answer of a signal that arrived before, whatever became of its waitpoint since.
local function repeated(tx, rec, a, approver)
  local same, alike = signals.known(tx, rec, a, approver)
  if same and same[5] ~= a.waitpoint_id then return not_open() end
  if same then return reply.ok(same[3], { signal_id = same[1], effect = same[3] == "accepted" and same[4] or nil }) end
  if alike then return reply.ok("duplicate", { signal_id = alike[1] }) end
end

-- Keeps an early signal with its waitpoint until the suspend.
local function buffer(w, ref, s)
  local early = waitpoint.early(w)
  early[#early + 1] = { ref, s.name, s.who }
  w.early = cmsgpack.pack(early)
end

local function accepted(tx, rec, a, approver, effect)
  signals.remember(tx, rec, a, approver, "accepted", effect)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "waitpoint.signalled", "waitpoint_id", a.waitpoint_id, "signal_id", a.signal_id,
    "name", a.name, "effect", effect)
  return reply.ok("accepted", { signal_id = a.signal_id, effect = effect })
end

local function resumed(tx, rec, a, approver, refs)
  signals.remember(tx, rec, a, approver, "triggered_resume", "counted")
  resume.execution(tx, rec, "signal", refs)
  return reply.ok("triggered_resume", { signal_id = a.signal_id })
end

function signal.arrive(tx, rec, w, a)
  local token, tokens = token_of(w, a.token_digest)
  if token == nil then return not_open() end
  local approver = token[2] or nil
  local answer = repeated(tx, rec, a, approver)
  if answer then return answer end
  if not is_open(rec, w, tx.now) or token[3] == 0 then return not_open() end
  if not allowed(w, a.name) then return reply.err("signal_not_allowed", { field = "name", name = a.name }) end
  if signals.count(rec) >= limits.signals_max then
    return reply.err("signals_full", { signals = limits.signals_max })
  end

  if token[3] then token[3] = token[3] - 1 end
  token[4] = true
  w.tokens, w.signals = cmsgpack.pack(tokens), (w.signals or 0) + 1
  waitpoint.save(tx, w)
  -- Approvers are tokens: who answered is what the token was made for, never what the caller says.
  local s = { name = a.name, key = w.key, waitpoint_id = w.id, who = approver or w.id }
  s.ref = signals.append(tx, rec, {
    signal_id = a.signal_id, name = a.name, waitpoint_id = w.id, waitpoint_key = w.key, approver = approver,
    payload = a.payload, payload_encoding = a.payload_encoding, category = a.category, source = a.source,
    source_identity = a.source_identity, correlation_id = a.correlation_id,
  })
  if w.state == "pending" then
    buffer(w, s.ref, s)
    return accepted(tx, rec, a, approver, "buffered")
  end
  if w.review then return resumed(tx, rec, a, approver, { s.ref }) end
  local current = suspension.load(rec)
  local counted, satisfied = condition.arrive(current.condition, s)
  if satisfied then return resumed(tx, rec, a, approver, condition.satisfying(current.condition, signals.number)) end
  if counted then suspension.store(rec, current) end
  return accepted(tx, rec, a, approver, counted and "counted" or "unused")
end

return signal
end

source["transition.due"] = function(require, LIBRARY)
-- What a timer means for an execution: whatever is due now, checked again inside the call, so nothing happens early.
local aftermath = require "transition.aftermath"
local event = require "lib.event"
local execution = require "record.execution"
local finish = require "transition.finish"
local interrupt = require "transition.interrupt"
local retire = require "transition.retire"
local resume = require "transition.resume"
local retry = require "transition.retry"
local runnable = require "transition.runnable"

local due = {}

local function expire(tx, rec, cause)
  finish.execution(tx, rec, "expired", {
    by = "deadline", attempt_state = "interrupted", failure = { cause .. " passed", cause },
  })
end

local function active(tx, rec, draw)
  local now = tx.now
  local timed_out = rec.timeout_at and rec.timeout_at <= now
  if timed_out and rec.timeout_at <= rec.lease_until then
    return retry.after_failure(tx, rec, {
      by = "timed_out", attempt_state = "timed_out", reason = "attempt timeout passed", category = "timeout",
      draw = draw,
    })
  end
  if rec.lease_until <= now then return interrupt.lost(tx, rec, "expired") end
  if rec.open_due and rec.open_due <= now then return resume.close_expired(tx, rec) end
  -- The entry was early: the save puts the timer where the record says.
  execution.save(tx, rec)
end

local function suspended(tx, rec)
  local now = tx.now
  if rec.wait_until and rec.wait_until <= now then return resume.timed_out(tx, rec, "suspension timed out") end
  if rec.open_due and rec.open_due <= now then return resume.close_expired(tx, rec) end
  execution.save(tx, rec)
end

local function waiting(tx, rec)
  local now = tx.now
  if rec.start_by and rec.start_by <= now then return expire(tx, rec, "start_within") end
  -- An attempt that waits for its children keeps its waitpoints.
  if rec.open_due and rec.open_due <= now then return resume.close_expired(tx, rec) end
  local ready = rec.reason == nil and ((rec.delay and rec.delay <= now) or (rec.grant_until and rec.grant_until <= now))
  if ready then
    local cause = rec.delay and "delay" or "grant_expired"
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    if rec.reason then
      event.of_execution(tx, rec, "execution.blocked", "reason", rec.reason)
    else
      event.of_execution(tx, rec, "execution.ready", "cause", cause)
    end
    return
  end
  execution.save(tx, rec)
end

function due.fire(tx, rec, draw)
  local now = tx.now
  if rec.phase == "terminal" then
    if aftermath.still_needed(tx, rec) then
      rec.bound = 1
      return execution.save(tx, rec)
    end
    local retire_at = execution.wake_at(rec)
    if retire_at and retire_at <= now then return retire.execution(tx, rec) end
    return execution.save(tx, rec)
  end
  if rec.deadline and rec.deadline <= now then return expire(tx, rec, "deadline") end
  -- The grace of a cancel is over, wherever the attempt is by now.
  if rec.cancel_by and rec.cancel_by <= now then
    return finish.execution(tx, rec, "cancelled", {
      by = "operator", attempt_state = "cancelled", failure = { rec.cancel_reason or "", "cancelled" },
    })
  end
  if rec.phase == "active" then return active(tx, rec, draw) end
  if rec.phase == "suspended" then return suspended(tx, rec) end
  return waiting(tx, rec)
end

return due
end

source["execution.submit"] = function(require, LIBRARY)
local define = require "lib.define"
local submit = require "transition.submit"

define.fn {
  name = "ff_submit_execution",
  doc = "Accepts one execution whole, or refuses it whole. The same id or idempotency key with the same body answers "
    .. "the first one.",
  flags = {},
  args = { submission = "submission" },
  reply = {
    created = { execution_id = "execution_id", state = "public_state" },
    duplicate = { execution_id = "execution_id", state = "public_state?" },
  },
  errs = {
    "execution_not_found", "idempotency_conflict", "lane_disabled", "lane_full", "lane_unseen", "lane_depth_needed",
    "capability_invalid",
  },
  call = function(tx, a)
    return submit.one(tx, a.submission)
  end,
}
end

source["execution.complete"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local complete = require "transition.complete"

define.fn {
  name = "ff_complete_execution",
  doc = "Ends the running attempt with a result.",
  flags = { "allow-oom" },
  pays_later = true,
  args = { execution_id = "execution_id", fence = "fence", result = "result?", result_encoding = "encoding?" },
  reply = { completed = {}, replayed = {} },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local answer = complete.one(tx, a)
    if answer == "replay" then return reply.ok("replayed") end
    return answer or reply.ok("completed")
  end,
}
end

source["execution.fail"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local retry = require "transition.retry"

define.fn {
  name = "ff_fail_execution",
  doc = "Ends the running attempt with a failure; the retry policy decides whether another one follows.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", reason = "reason", category = "category", retryable = "bool?",
    retry_after_ms = "duration_ms?", draw = "permille",
  },
  reply = { retry_scheduled = { delay_until = "time_ms", replayed = "bool" }, failed = { replayed = "bool" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "fail", "retry")
    if refusal == "replay" then
      if rec.ended_by == "fail" then return reply.ok("failed", { replayed = true }) end
      return reply.ok("retry_scheduled", { delay_until = rec.ended_value, replayed = true })
    end
    if refusal then return refusal end
    local at = retry.after_failure(tx, rec, {
      by = "fail", attempt_state = "failed", reason = a.reason, category = a.category, retryable = a.retryable,
      retry_after_ms = a.retry_after_ms, draw = a.draw,
    })
    if at then return reply.ok("retry_scheduled", { delay_until = at, replayed = false }) end
    return reply.ok("failed", { replayed = false })
  end,
}
end

source["execution.cancel"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local finish = require "transition.finish"

define.fn {
  name = "ff_cancel_execution",
  doc = "An operator's or submitter's cancel. A running attempt ends at once, or within `grace_ms` after its worker "
    .. "was asked.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason?", grace_ms = "duration_ms?" },
  reply = { cancelled = {}, requested = { cancel_by = "time_ms" }, already = { outcome = "outcome" } },
  errs = { "execution_not_found" },
  call = function(tx, a, now)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase == "terminal" then return reply.ok("already", { outcome = rec.outcome }) end
    more.note_action(tx, rec, "cancel", a.actor, a.reason)
    if rec.phase == "active" and a.grace_ms and a.grace_ms > 0 then
      rec.cancel_by, rec.cancel_reason = math.min(rec.cancel_by or now + a.grace_ms, now + a.grace_ms), a.reason
      execution.save(tx, rec)
      event.of_execution(tx, rec, "execution.cancel_requested", "actor", a.actor, "reason", a.reason or "")
      return reply.ok("requested", { cancel_by = rec.cancel_by })
    end
    finish.execution(tx, rec, "cancelled", {
      by = "operator", attempt_state = "cancelled", failure = { a.reason or "", "cancelled" }, actor = a.actor,
      data = { "actor", a.actor, "reason", a.reason or "" },
    })
    return reply.ok("cancelled")
  end,
}
end

source["execution.cancel_attempt"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local finish = require "transition.finish"

define.fn {
  name = "ff_cancel_attempt",
  doc = "The worker that holds the lease cancels its execution.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", reason = "reason?" },
  reply = { cancelled = {}, replayed = {} },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "cancel")
    if refusal == "replay" then return reply.ok("replayed") end
    if refusal then return refusal end
    finish.execution(tx, rec, "cancelled", {
      by = "cancel", attempt_state = "cancelled", failure = { a.reason or rec.cancel_reason or "", "cancelled" },
    })
    return reply.ok("cancelled")
  end,
}
end

source["execution.delay"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local interrupt = require "transition.interrupt"

define.fn {
  name = "ff_delay_execution",
  doc = "The worker hands its execution back until a time; counted against neither attempts nor reclaims. A time "
    .. "already past means now.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", delay_until = "time_ms?", delay_ms = "duration_ms?" },
  reply = { delayed = { delay_until = "time_ms", replayed = "bool" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    if (a.delay_until == nil) == (a.delay_ms == nil) then
      return reply.err("invalid_argument", {
        field = "delay_until", problem = "give delay_until or delay_ms, one of them",
      })
    end
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "delay")
    if refusal == "replay" then return reply.ok("delayed", { delay_until = rec.ended_value, replayed = true }) end
    if refusal then return refusal end
    local at = a.delay_until or tx.now + a.delay_ms
    interrupt.handed_back(tx, rec, "delay", at, "execution.delayed")
    return reply.ok("delayed", { delay_until = at, replayed = false })
  end,
}
end

source["execution.yield"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local interrupt = require "transition.interrupt"

define.fn {
  name = "ff_yield_execution",
  doc = "The worker hands its execution back: eligible at once, counted nowhere.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence" },
  reply = { yielded = {}, replayed = {} },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "yield")
    if refusal == "replay" then return reply.ok("replayed") end
    if refusal then return refusal end
    interrupt.handed_back(tx, rec, "yield", nil, "execution.yielded")
    return reply.ok("yielded")
  end,
}
end

source["execution.progress"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"

define.fn {
  name = "ff_update_progress",
  doc = "Notes how far the running attempt is. No event.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", pct = "pct", message = "progress_message?" },
  reply = { noted = {} },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    rec.progress = cmsgpack.pack({ a.pct, a.message or false })
    execution.save(tx, rec)
    return reply.ok("noted")
  end,
}
end

source["execution.hold"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"

define.fn {
  name = "ff_hold_execution",
  doc = "An operator keeps a runnable execution from starting until it is released.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason?" },
  reply = { held = {}, already = {} },
  errs = { "execution_not_found", "execution_not_runnable" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "runnable" then return reply.err("execution_not_runnable", { lifecycle_phase = rec.phase }) end
    if rec.reason == "held_by_operator" then return reply.ok("already") end
    more.note_action(tx, rec, "hold", a.actor, a.reason)
    execution.block(rec, "held_by_operator", { "actor", a.actor, "reason", a.reason or "" }, tx.now)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.held", "actor", a.actor, "reason", a.reason or "")
    return reply.ok("held")
  end,
}
end

source["execution.release"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local runnable = require "transition.runnable"

define.fn {
  name = "ff_release_execution",
  doc = "Ends an operator's hold; the execution takes the place its original score gives it.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason?" },
  reply = { released = { state = "public_state" }, already = { state = "public_state" } },
  errs = { "execution_not_found", "execution_not_runnable" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "runnable" then return reply.err("execution_not_runnable", { lifecycle_phase = rec.phase }) end
    if rec.reason ~= "held_by_operator" then return reply.ok("already", { state = execution.public_state(rec) }) end
    more.note_action(tx, rec, "release", a.actor, a.reason)
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.released", "actor", a.actor)
    return reply.ok("released", { state = execution.public_state(rec) })
  end,
}
end

source["execution.change"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local lane = require "record.lane"
local fair = require "index.fair"
local lists = require "index.lists"
local runnable = require "transition.runnable"
local score = require "transition.score"

-- Moving or re-prioritising gives a new score; it needs the lane's copy.
local function requeue(tx, rec, a)
  local namespace, name = lane.split(rec.path)
  local path = namespace .. "/" .. (a.lane or name)
  local copy = lane.load(tx, path)
  if copy == nil then return reply.err("lane_unseen", { namespace = namespace, lane = a.lane or name }) end
  if path ~= rec.path then
    if not lane.accepts(copy) then return reply.err("lane_disabled", { lane = a.lane, state = copy.state }) end
    fair.forget(tx, rec.path, rec)
    rec.was_path, rec.path = rec.path, path
  end
  rec.prio = a.priority or rec.prio
  rec.score = score.of(tx, copy, rec)
  if rec.prefers then lane.remember(tx, copy, "prefers", "1") end
end

define.fn {
  name = "ff_change_execution",
  doc = "Changes priority, lane or delay of a runnable execution, tags or deadline of any that has not ended.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", actor = "actor", priority = "priority?", lane = "lane?", tags = "tags?",
    deadline_at = "time_ms?", delay_until = "time_ms?",
  },
  reply = { changed = { state = "public_state" } },
  errs = { "execution_not_found", "execution_not_runnable", "execution_terminal", "lane_unseen", "lane_disabled" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase == "terminal" then return reply.err("execution_terminal", { outcome = rec.outcome }) end
    local moves = a.priority or a.lane
    if (moves or a.delay_until) and rec.phase ~= "runnable" then
      return reply.err("execution_not_runnable", { lifecycle_phase = rec.phase })
    end
    if moves then
      local refusal = requeue(tx, rec, a)
      if refusal then return refusal end
    end
    if a.delay_until then rec.delay = a.delay_until end
    if a.deadline_at then rec.deadline = a.deadline_at end
    if a.tags then lists.retag(tx, rec, a.tags) end
    -- The line of a quota is another partition's: whoever stands in it asks anew, and enters it at its new place.
    local held = rec.reason ~= nil and rec.reason ~= "waiting_for_capable_worker" and rec.reason ~= "waiting_for_quota"
    if (moves or a.delay_until) and not held then runnable.settle(tx, rec) end
    more.note_action(tx, rec, "change", a.actor)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.changed", "actor", a.actor)
    return reply.ok("changed", { state = execution.public_state(rec) })
  end,
}
end

source["execution.replay"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local event = require "lib.event"
local attempt = require "record.attempt"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local more = require "record.more"
local owed = require "transition.owed"
local reopen = require "transition.reopen"
local runnable = require "transition.runnable"
local step = require "record.step"

define.fn {
  name = "ff_replay_execution",
  doc = "Runs an ended execution again with a new attempt; a deadline already past no longer applies. It keeps its "
    .. "steps, those before `from_step`, or none with `from_start`.",
  flags = {},
  args = {
    execution_id = "execution_id", actor = "actor", reason = "reason?", from_step = "step_name?",
    from_start = "bool?",
  },
  reply = { replayed = { state = "public_state", replay_count = "count" } },
  errs = { "execution_not_found", "execution_not_terminal", "max_replays", "flow_terminal", "step_not_found" },
  call = function(tx, a, now)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "terminal" then return reply.err("execution_not_terminal", { lifecycle_phase = rec.phase }) end
    local replays = rec.replays or 0
    local max_replays = rec.max_replays or limits.replays_default
    if replays >= max_replays then return reply.err("max_replays", { max_replays = max_replays }) end
    local refusal = reopen.refusal(tx, rec)
    if refusal then return refusal end
    local first = a.from_start and 1 or nil
    if a.from_step then
      local named = step.find(tx, rec, a.from_step)
      if named == nil then return reply.err("step_not_found", { step = a.from_step }) end
      first = first or named.number
    end
    if first then step.forget(tx, rec, first) end
    rec.replays = replays + 1
    -- It ended before its edges had let it run: it waits for them again.
    local skipped = rec.outcome == "skipped" or (rec.deps ~= nil and dependencies.load(rec).decided == nil)
    if rec.result_far then tx:del(keys.result(tx, rec.id)) end
    attempt.apart(rec)
    rec.result, rec.result_far, rec.result_in, rec.failure, rec.progress = nil, nil, nil, nil, nil
    rec.outcome, rec.ended, rec.failures, rec.reclaims, rec.tier = nil, nil, nil, nil, nil
    rec.next = rec.attempt and "replay" or nil
    if rec.deadline and rec.deadline <= now then rec.deadline = nil end
    rec.start_by = rec.start_within and now + rec.start_within or nil
    reopen.execution(tx, rec, skipped)
    runnable.settle(tx, rec)
    if rec.reason == "waiting_for_dependencies" then rec.start_by = nil end
    more.note_action(tx, rec, "replay", a.actor, a.reason)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.replayed", "actor", a.actor)
    if rec.flow_id then
      owed.during(tx, function()
        if skipped and rec.deps then owed.add(tx, rec, "wait_again", 0) end
        reopen.member(tx, rec)
      end)
    end
    return reply.ok("replayed", { state = execution.public_state(rec), replay_count = rec.replays })
  end,
}
end

source["execution.delete"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local aftermath = require "transition.aftermath"
local retire = require "transition.retire"

define.fn {
  name = "ff_delete_execution",
  doc = "An operator removes an ended execution before its retention is over.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor" },
  reply = { deleted = {} },
  errs = { "execution_not_found", "execution_not_terminal", "flow_not_terminal" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "terminal" then return reply.err("execution_not_terminal", { lifecycle_phase = rec.phase }) end
    if aftermath.still_needed(tx, rec) then
      return reply.err("flow_not_terminal", { flow_id = rec.flow_id, parent_id = rec.parent_id })
    end
    retire.execution(tx, rec, a.actor)
    return reply.ok("deleted")
  end,
}
end

source["execution.await"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local view = require "record.view"

define.fn {
  name = "ff_await_result",
  doc = "Answers the outcome of an ended execution, or marks it so that its end is announced.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id" },
  reply = {
    ended = { outcome = "outcome", result = "result?", result_encoding = "encoding?", failure = "failure?" },
    waiting = { state = "public_state" },
  },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase == "terminal" then
      return reply.ok("ended", {
        outcome = rec.outcome, result = view.result(tx, rec), result_encoding = view.result_encoding(rec),
        failure = view.failure(rec),
      })
    end
    if rec.waited == nil then
      rec.waited = 1
      execution.save(tx, rec)
    end
    return reply.ok("waiting", { state = execution.public_state(rec) })
  end,
}
end

source["lease.claim"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local lane = require "record.lane"
local fair = require "index.fair"
local choose = require "transition.choose"
local start = require "transition.start"
local take = require "transition.take"

define.fn {
  name = "ff_claim_executions",
  doc = "Leases up to `max` of the best executions of a lane in this partition to a worker, among those of "
    .. "its kinds whose requirements it covers. Quotas and budgets are asked on the way where they share the store; "
    .. "elsewhere what needs admission is reached by grants only. A repetition has the same lease ids and is answered "
    .. "with the leases that live. Inputs and passed results together stay within 4 MiB, but one task is always handed "
    .. "out. A lane with max_active is reached by grants only.",
  flags = { "allow-oom" },
  weight = "max",
  args = {
    namespace = "namespace", lane = "lane", instance = "instance", worker_id = "worker_id",
    capabilities = "capabilities", kinds = "kind_set?", max = "batch_size", lease_ttl_ms = "lease_ttl_ms",
    lease_ids = "lease_ids", attempt_ids = "attempt_ids",
  },
  reply = {
    claimed = { tasks = "[task]", next_score = "int?", admission_needed = "bool?" }, replayed = { tasks = "[task]" },
    paused = { state = "lane_state" },
  },
  errs = { "try_again", "capability_invalid" },
  call = function(tx, a)
    if #a.lease_ids < a.max then
      return reply.err("invalid_argument", { field = "lease_ids", problem = "must hold max items" })
    end
    if #a.attempt_ids < a.max then
      return reply.err("invalid_argument", { field = "attempt_ids", problem = "must hold max items" })
    end
    local again, free = start.leased(tx, a.instance, a.lease_ids)
    if again then return reply.ok("replayed", { tasks = again }) end
    local copy = lane.load(tx, a.namespace .. "/" .. a.lane)
    if copy == nil then return reply.ok("claimed", { tasks = {} }) end
    if not lane.starts(copy) then return reply.ok("paused", { state = copy.state }) end
    if copy.max_active then return reply.ok("claimed", { tasks = {}, admission_needed = true }) end

    lane.prepare(tx, copy)
    local worker = choose.worker(a.capabilities, a.kinds)
    local admission = tx.quotas ~= nil and lane.recall(tx, copy, "admits") ~= nil
    local found = choose.candidates(tx, copy, worker, a.max, admission)
    local tasks, first_wake, refusal = (admission and take.asking or take.plain)(tx, a, copy, found, free)
    if refusal then return refusal end
    local head = choose.next_score(tx, found)
    local idle = copy.fairness == "fair" and choose.nothing_left(tx, found, head)
    choose.remember_rest(tx, copy, found)
    if first_wake then start.announce_wake_up(tx, copy, first_wake) end
    if idle then fair.idle(tx, copy) end
    return reply.ok("claimed", { tasks = tasks, next_score = head })
  end,
}
end

source["lease.renew"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local renew = require "transition.renew"

define.fn {
  name = "ff_renew_lease",
  doc = "Moves the end of a lease; says whether the worker is asked to cancel or to yield.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", lease_ttl_ms = "lease_ttl_ms?" },
  reply = { renewed = { lease_expires_at = "time_ms", cancel_requested = "bool", yield_requested = "bool" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = renew.one(tx, rec, a)
    if refusal then return refusal end
    return reply.ok("renewed", {
      lease_expires_at = rec.lease_until, cancel_requested = rec.cancel_by ~= nil, yield_requested = rec.yield ~= nil,
    })
  end,
}
end

source["lease.revoke"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local interrupt = require "transition.interrupt"

define.fn {
  name = "ff_revoke_lease",
  doc = "An operator takes the lease away: at once, or by asking the worker to yield when `grace` is set.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason?", grace = "bool?" },
  reply = { revoked = { state = "public_state" }, requested = {} },
  errs = { "execution_not_found", "execution_not_active" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "active" then
      return reply.err("execution_not_active", { lifecycle_phase = rec.phase, terminal_outcome = rec.outcome })
    end
    more.note_action(tx, rec, "revoke", a.actor, a.reason)
    if a.grace then
      rec.yield = 1
      execution.save(tx, rec)
      event.of_execution(tx, rec, "execution.yield_requested", "actor", a.actor)
      return reply.ok("requested")
    end
    interrupt.lost(tx, rec, "revoked", a.actor)
    return reply.ok("revoked", { state = execution.public_state(rec) })
  end,
}
end

source["lease.drain"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local leases = require "index.leases"
local interrupt = require "transition.interrupt"

define.fn {
  name = "ff_drain_leases",
  doc = "Asks a worker to yield every lease it holds in this partition, or takes them away; a bounded batch per call.",
  flags = { "allow-oom" },
  args = { instance = "instance", revoke = "bool", limit = "batch_size", actor = "actor" },
  reply = { drained = { changed = "count", more = "bool" } },
  errs = { "try_again" },
  call = function(tx, a)
    local changed, more = 0, false
    for _, id in ipairs(leases.ids(tx, a.instance)) do
      if changed >= a.limit then more = true break end
      local answer = tx:item(function()
        local rec = execution.load(tx, id)
        if rec == nil or rec.phase ~= "active" or rec.worker ~= a.instance then
          return reply.err("execution_not_active")
        end
        if a.revoke then
          interrupt.lost(tx, rec, "revoked", a.actor)
        else
          if rec.yield then return reply.err("execution_not_active") end
          rec.yield = 1
          execution.save(tx, rec)
          event.of_execution(tx, rec, "execution.yield_requested", "actor", a.actor)
        end
        return reply.ok("done")
      end)
      if answer and answer.err == "try_again" then
        if changed == 0 then return answer end
        more = true
        break
      end
      if answer and answer.ok then changed = changed + 1 end
    end
    return reply.ok("drained", { changed = changed, more = more })
  end,
}
end

source["grant.issue"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local limits = require "lib.limits"
local event = require "lib.event"
local execution = require "record.execution"
local lane = require "record.lane"
local home = require "index.home"
local keys = require "lib.keys"
local choose = require "transition.choose"
local grant = require "transition.grant"
local start = require "transition.start"
local walk = require "transition.walk"

-- Grants of this very request that are still open, so that a lost reply is answered again.
local function replayed(tx, copy, worker, a)
  local wanted = choose.set_of(a.grant_ids)
  local open, out = {}, {}
  for _, name in ipairs(choose.names(tx, copy, worker)) do
    local from, to = string.format("%.0f", home.granted_from), "(" .. string.format("%.0f", home.active_from)
    for _, item in ipairs(tx:zhighest(keys.queue_named(tx, copy.path, name), to, from, limits.batch_max)) do
      local rec = execution.load(tx, item.member)
      if rec and rec.grant and wanted[grant.asked_as(rec)] and grant.open(rec, rec.grant, tx.now) then
        open[#open + 1] = rec
      end
    end
  end
  table.sort(open, function(x, y)
    if x.score ~= y.score then return x.score < y.score end
    return x.id < y.id
  end)
  for i, rec in ipairs(open) do out[i] = grant.typed(rec) end
  return out
end

-- Grants one candidate.
local function give_one(tx, a, copy, id, grant_id)
  local rec = execution.load(tx, id)
  if rec == nil or rec.phase ~= "runnable" or not start.possible(rec, tx.now) then
    return reply.err("execution_not_runnable")
  end
  if start.stopped(tx, rec) then
    walk.cancel_member(tx, rec)
    return { cancelled = true }
  end
  grant.give(tx, rec, grant_id, a.instance, a.ttl_ms, copy)
  event.of_execution(tx, rec, "execution.granted", "worker_instance", a.instance)
  return { grant = grant.typed(rec) }
end

define.fn {
  name = "ff_issue_grants",
  doc = "Reserves up to `max` of the best executions of a lane for a worker, those that need admission included; an "
    .. "unused grant runs out by itself. The leases that a repetition of this request took already, which have the "
    .. "same ids, are answered instead.",
  flags = { "allow-oom" },
  weight = "max",
  args = {
    namespace = "namespace", lane = "lane", instance = "instance", capabilities = "capabilities", kinds = "kind_set?",
    max = "batch_size", ttl_ms = "grant_ttl_ms", grant_ids = "[grant_id]", lease_ids = "lease_ids?",
  },
  reply = {
    granted = { grants = "[grant]", next_score = "int?" }, replayed = { tasks = "[task]" },
    paused = { state = "lane_state" },
  },
  errs = { "try_again", "capability_invalid" },
  call = function(tx, a)
    if #a.grant_ids < a.max then
      return reply.err("invalid_argument", { field = "grant_ids", problem = "must hold max items" })
    end
    local taken = a.lease_ids and #a.lease_ids > 0 and start.leased(tx, a.instance, a.lease_ids)
    if taken then return reply.ok("replayed", { tasks = taken }) end
    local copy = lane.load(tx, a.namespace .. "/" .. a.lane)
    if copy == nil then return reply.ok("granted", { grants = {} }) end
    if not lane.starts(copy) then return reply.ok("paused", { state = copy.state }) end
    lane.prepare(tx, copy)
    local worker = choose.worker(a.capabilities, a.kinds)
    local grants = replayed(tx, copy, worker, a)
    if #grants > 0 then return reply.ok("granted", { grants = grants }) end
    local found = choose.candidates(tx, copy, worker, a.max, true)

    local looks = 0
    while #grants < a.max and looks < limits.batch_max do
      local id, queue = choose.take(tx, found)
      if id == nil then break end
      looks = looks + 1
      local one = tx:item(give_one, tx, a, copy, id, a.grant_ids[#grants + 1])
      if one and one.err == "try_again" then
        if #grants == 0 then return one end
        break
      end
      if one == nil or one.err then
        choose.pass(found, queue)
      elseif one.grant then
        grants[#grants + 1] = one.grant
      end
    end
    local head = choose.next_score(tx, found)
    choose.remember_rest(tx, copy, found)
    return reply.ok("granted", { grants = grants, next_score = head })
  end,
}
end

source["grant.consume"] = function(require, LIBRARY)
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
end

source["grant.keep"] = function(require, LIBRARY)
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
end

source["grant.release"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local holds = require "record.holds"
local grant = require "transition.grant"
local runnable = require "transition.runnable"

define.fn {
  name = "ff_release_grant",
  doc = "Gives a grant back unused; the execution is eligible again at its old place. `unheld` says that no holder set "
    .. "has taken it in.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", grant_id = "grant_id", unheld = "bool?" },
  reply = { released = {} },
  errs = { "execution_not_found", "grant_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if not grant.open(rec, a.grant_id, tx.now) then return reply.err("grant_not_found", { grant_id = a.grant_id }) end
    if a.unheld then holds.drop(rec) end
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.ready", "cause", "grant_released")
    return reply.ok("released")
  end,
}
end

source["grant.block"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local block = require "transition.block"

define.fn {
  name = "ff_block_execution",
  doc = "Admission refused a granted execution: it waits for its quota or budget, with the reason recorded. `unheld` "
    .. "says that no set has taken it in.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", grant_id = "grant_id", reason = "admission_reason", detail = "detail",
    unheld = "bool?",
  },
  reply = { blocked = {}, already = {} },
  errs = { "execution_not_found", "grant_not_found" },
  call = function(tx, a)
    local answer = block.one(tx, a)
    if answer == "already" then return reply.ok("already") end
    return answer or reply.ok("blocked")
  end,
}
end

source["grant.unblock"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local unblock = require "transition.unblock"

define.fn {
  name = "ff_unblock_execution",
  doc = "What the execution waited for has cleared: it is eligible again at the place of its original score. With the "
    .. "grant it was refused under, also before the refusal has arrived.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", reason = "admission_reason", holder_id = "holder_id?" },
  reply = { unblocked = { state = "public_state" }, already = { state = "public_state" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec, waited = unblock.one(tx, a.execution_id, a.reason, a.holder_id)
    if rec == nil then return reply.err("execution_not_found") end
    return reply.ok(waited and "unblocked" or "already", { state = execution.public_state(rec) })
  end,
}
end

source["grant.reclaim"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local lane = require "record.lane"
local choose = require "transition.choose"
local consume = require "transition.consume"
local grant = require "transition.grant"
local start = require "transition.start"

local function unserved(rec, a)
  if execution.namespace(rec) == a.namespace and choose.set_of(a.lanes)[execution.lane(rec)] then return nil end
  return reply.err("invalid_argument", {
    field = "instance", problem = a.instance .. " does not serve the lane " .. rec.path,
  })
end

define.fn {
  name = "ff_grant_reclaim",
  doc = "An operator hands an interrupted execution to a chosen worker, who must serve its lane, take its kind and "
    .. "have what it requires.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", grant_id = "grant_id", instance = "instance", ttl_ms = "grant_ttl_ms",
    actor = "actor", namespace = "namespace", lanes = "lane_names", capabilities = "capabilities",
    kinds = "kind_set?",
  },
  reply = { granted = { grant = "grant" } },
  errs = { "execution_not_found", "execution_not_runnable", "not_capable", "capability_invalid" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if grant.asked_as(rec) == a.grant_id and grant.open(rec, rec.grant, tx.now) then
      return reply.ok("granted", { grant = grant.typed(rec) })
    end
    local free = rec.phase == "runnable" and rec.reason == nil and rec.delay == nil and rec.grant == nil
    if not free or rec.next ~= "reclaim" or not start.possible(rec, tx.now) or start.stopped(tx, rec) then
      return reply.err("execution_not_runnable", { lifecycle_phase = rec.phase, blocking_reason = rec.reason })
    end
    local refused = unserved(rec, a) or consume.incapable(rec, choose.worker(a.capabilities, a.kinds))
    if refused then return refused end
    more.note_action(tx, rec, "grant_reclaim", a.actor)
    grant.give(tx, rec, a.grant_id, a.instance, a.ttl_ms, lane.load(tx, rec.path))
    event.of_execution(tx, rec, "execution.granted", "worker_instance", a.instance, "actor", a.actor)
    return reply.ok("granted", { grant = grant.typed(rec) })
  end,
}
end

source["suspension.suspend"] = function(require, LIBRARY)
local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local signals = require "record.signals"
local step = require "record.step"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"
local suspend = require "transition.suspend"

-- The signals that were enough already; the first ones with the answer, more are read apart.
local function satisfied(tx, rec, refs)
  local list, more = signals.named(tx, rec, refs, 1, limits.resume_inline_signals_max, limits.resume_inline_bytes_max)
  return reply.ok("already_satisfied", { signals = list, more = more })
end

-- The committed answer of a suspend whose reply was lost, whatever became of the suspension since.
local function replayed(tx, rec)
  local current = suspension.load(rec)
  local past = suspension.past(rec)
  local id = current and current.id or past[#past].suspension_id
  local out, ids = {}, rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}
  for _, entry in ipairs(waitpoint.open(rec)) do ids[#ids + 1] = entry[1] end
  for _, wid in ipairs(ids) do
    local w = waitpoint.load(tx, wid)
    if w and w.suspension == id then
      out[#out + 1] = { waitpoint_id = wid, key = w.key, state = w.state, expires_at = w.expires }
    end
  end
  return reply.ok("suspended", { suspension_id = id, waitpoints = out, timeout_at = rec.wait_until, replayed = true })
end

-- The waitpoints that it waits at.
local function open_here(rec, name)
  local out = {}
  for _, w in ipairs(waitpoint.typed_open(rec, name)) do
    if w.state == "active" then out[#out + 1] = w end
  end
  return out
end

define.fn {
  name = "ff_suspend_execution",
  doc = "Sets the running attempt aside until its condition is met. Adopts the attempt's pending waitpoints, all of "
    .. "them when `adopt` is absent; opens `otherwise` when there is no other. Early signals that are enough leave the "
    .. "lease as it is. `step` makes it a step: it outlives the attempt, and once it is done a later call is answered "
    .. "what it came to. `wait` only names it; whoever continues the attempt finds either in the resume.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", suspension_id = "suspension_id", reason = "suspension_reason",
    waitpoints = "new_waitpoints", adopt = "waitpoint_ids?", otherwise = "new_waitpoint?",
    condition = "condition_nodes", timeout_ms = "duration_ms?", timeout_behavior = "timeout_behavior",
    review_waitpoint_id = "waitpoint_id?", continuation = "continuation?", continuation_encoding = "encoding?",
    step = "step_name?", wait = "step_name?",
  },
  reply = {
    suspended = {
      suspension_id = "suspension_id", waitpoints = "[open_waitpoint]", timeout_at = "time_ms?", replayed = "bool",
    },
    already_satisfied = { signals = "[signal]", more = "bool" }, done = { resume = "resume" },
  },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked",
    "waitpoint_not_found", "step_changed", "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "suspend")
    if refusal == "replay" then return replayed(tx, rec) end
    if refusal then return refusal end
    local known = rec.satisfied and cmsgpack.unpack(rec.satisfied)
    if known and known[1] == a.suspension_id then return satisfied(tx, rec, known[2]) end
    local asked = a.step and step.find(tx, rec, a.step)
    if asked and asked.kind ~= "signal" then return step.changed(asked, "signal") end
    if asked and asked.state == "done" then return reply.ok("done", { resume = step.resume(tx, rec, asked) }) end
    local full = a.step and step.full(rec, asked)
    if full then return full end
    local wrong, outcome, refs = suspend.attempt(tx, rec, a, asked or nil)
    if wrong then return wrong end
    if outcome == "satisfied" then return satisfied(tx, rec, refs) end
    return reply.ok("suspended", {
      suspension_id = a.suspension_id, waitpoints = open_here(rec, a.step), timeout_at = rec.wait_until,
      replayed = false,
    })
  end,
}
end

source["suspension.resume"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local more = require "record.more"
local resume = require "transition.resume"

define.fn {
  name = "ff_resume_execution",
  doc = "An operator ends a suspension: the attempt goes on without the signals it waited for.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason?" },
  reply = { resumed = { state = "public_state" } },
  errs = { "execution_not_found", "execution_not_suspended" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "suspended" then
      return reply.err("execution_not_suspended", { lifecycle_phase = rec.phase, terminal_outcome = rec.outcome })
    end
    more.note_action(tx, rec, "resume", a.actor, a.reason)
    resume.execution(tx, rec, "operator", {}, a.actor)
    return reply.ok("resumed", { state = execution.public_state(rec) })
  end,
}
end

source["suspension.fail"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local more = require "record.more"
local finish = require "transition.finish"

define.fn {
  name = "ff_fail_suspension",
  doc = "An operator ends a suspended execution as failed.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", actor = "actor", reason = "reason", category = "category" },
  reply = { failed = {} },
  errs = { "execution_not_found", "execution_not_suspended" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.phase ~= "suspended" then
      return reply.err("execution_not_suspended", { lifecycle_phase = rec.phase, terminal_outcome = rec.outcome })
    end
    more.note_action(tx, rec, "fail", a.actor, a.reason)
    finish.execution(tx, rec, "failed", {
      by = "operator", attempt_state = "failed", failure = { a.reason, a.category }, actor = a.actor,
      data = { "actor", a.actor },
    })
    return reply.ok("failed")
  end,
}
end

source["waitpoint.create"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local fence = require "record.fence"
local step = require "record.step"
local waitpoint = require "record.waitpoint"

-- The answer when an earlier run of the handler has opened it.
local function opened_before(tx, rec, a)
  for _, entry in ipairs(waitpoint.open(rec)) do
    if entry[4] == a.step and entry[2] == a.waitpoint.key then
      if entry[1] ~= a.waitpoint.waitpoint_id then
        return reply.ok("open", { waitpoint_id = entry[1], expires_at = entry[3] or nil })
      end
      waitpoint.replace_tokens(tx, waitpoint.load(tx, entry[1]), a.waitpoint)
      return reply.ok("created", { expires_at = entry[3] or nil, replayed = true })
    end
  end
end

define.fn {
  name = "ff_create_waitpoint",
  doc = "Opens a waitpoint while the attempt still runs; signals that come before the suspend are kept and count then. "
    .. "With `step` it belongs to a wait that outlives the attempt: one that is open already is answered, and asked "
    .. "for by its id it gets these tokens in place of those it had.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", waitpoint = "new_waitpoint", step = "step_name?" },
  reply = {
    created = { expires_at = "time_ms?", replayed = "bool" },
    open = { waitpoint_id = "waitpoint_id", expires_at = "time_ms?" }, done = {},
  },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "step_changed",
    "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local asked = a.step and step.find(tx, rec, a.step)
    if asked and asked.kind ~= "signal" then return step.changed(asked, "signal") end
    if asked and asked.state == "done" then return reply.ok("done") end
    if a.step then
      local answer = opened_before(tx, rec, a) or step.full(rec, asked)
      if answer then return answer end
    end
    local known = waitpoint.load(tx, a.waitpoint.waitpoint_id)
    if known and known.exec == rec.id and known.key == a.waitpoint.key then
      return reply.ok("created", { expires_at = known.expires, replayed = true })
    end
    if known then return reply.err("invalid_argument", { field = "waitpoint.waitpoint_id", problem = "is taken" }) end
    local field, problem = waitpoint.problem(rec, a.waitpoint)
    if field then return reply.err("invalid_argument", { field = "waitpoint." .. field, problem = problem }) end
    if #a.waitpoint.tokens == 0 then
      return reply.err("invalid_argument", { field = "waitpoint.tokens", problem = "must hold a token" })
    end
    waitpoint.create(tx, rec, a.waitpoint, "pending", nil, a.step)
    if a.step then step.wait(tx, rec, asked or nil, a.step, "signal", tx.now) end
    execution.save(tx, rec)
    event.of_execution(tx, rec, "waitpoint.created", "waitpoint_id", a.waitpoint.waitpoint_id, "key", a.waitpoint.key)
    local expires_at = a.waitpoint.expires_in_ms and tx.now + a.waitpoint.expires_in_ms or nil
    return reply.ok("created", { expires_at = expires_at, replayed = false })
  end,
}
end

source["waitpoint.close"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local fence = require "record.fence"
local waitpoint = require "record.waitpoint"

define.fn {
  name = "ff_close_waitpoint",
  doc = "The worker gives up a pending waitpoint; its early signals no longer count.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", waitpoint_id = "waitpoint_id" },
  reply = { closed = { replayed = "bool" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked",
    "waitpoint_not_found",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local w = waitpoint.load(tx, a.waitpoint_id)
    if w == nil or w.exec ~= rec.id then return reply.err("waitpoint_not_found", { waitpoint_id = a.waitpoint_id }) end
    if w.state == "closed" then
      if rec.answered and w.early then
        waitpoint.forget_answered(tx, rec, function(entry) return entry[1] == w.id end)
        execution.save(tx, rec)
      end
      return reply.ok("closed", { replayed = true })
    end
    waitpoint.close(tx, rec, "closed", function(entry) return entry[1] == a.waitpoint_id end)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "waitpoint.closed", "waitpoint_id", a.waitpoint_id, "key", w.key)
    return reply.ok("closed", { replayed = false })
  end,
}
end

source["waitpoint.signal"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local waitpoint = require "record.waitpoint"
local signal = require "transition.signal"

define.fn {
  name = "ff_deliver_signal",
  doc = "Delivers a signal under a waitpoint token, whose mac the caller has verified. Whatever keeps the waitpoint "
    .. "from taking it answers alike.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", waitpoint_id = "waitpoint_id", token_digest = "token_digest",
    signal_id = "signal_id", name = "signal_name", payload = "signal_payload?", payload_encoding = "encoding?",
    category = "source?", source = "source?", source_identity = "source?", correlation_id = "correlation_id?",
    idempotency_key = "idempotency_key?",
  },
  reply = {
    accepted = { signal_id = "signal_id", effect = "signal_effect" }, triggered_resume = { signal_id = "signal_id" },
    duplicate = { signal_id = "signal_id" },
  },
  errs = { "waitpoint_not_open", "signal_not_allowed", "signals_full" },
  call = function(tx, a)
    local w = waitpoint.load(tx, a.waitpoint_id)
    if w == nil or w.exec ~= a.execution_id then return reply.err("waitpoint_not_open") end
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("waitpoint_not_open") end
    return signal.arrive(tx, rec, w, a)
  end,
}
end

source["waitpoint.reissue"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local execution = require "record.execution"
local more = require "record.more"
local waitpoint = require "record.waitpoint"

define.fn {
  name = "ff_reissue_token",
  doc = "An operator replaces the token of one approver, or the waitpoint's one token; the old one dies. A waitpoint "
    .. "without tokens gets its first.",
  flags = { "allow-oom" },
  args = {
    waitpoint_id = "waitpoint_id", execution_id = "execution_id", approver = "approver?", digest = "token_digest",
    actor = "actor",
  },
  reply = { reissued = { expires_at = "time_ms?", uses_left = "count?" } },
  errs = { "waitpoint_not_found", "waitpoint_not_open" },
  call = function(tx, a)
    local w = waitpoint.load(tx, a.waitpoint_id)
    local rec = w and w.exec == a.execution_id and execution.load(tx, w.exec)
    if not rec then return reply.err("waitpoint_not_found", { waitpoint_id = a.waitpoint_id }) end
    if w.state == "closed" or (w.expires and w.expires <= tx.now) then return reply.err("waitpoint_not_open") end
    local found
    local tokens = waitpoint.tokens(w)
    for _, token in ipairs(tokens) do
      if (token[2] or nil) == a.approver then found = token end
    end
    if found == nil and #tokens > 0 then
      return reply.err("invalid_argument", { field = "approver", problem = "is not an approver of this waitpoint" })
    end
    if found and found[1] == a.digest then
      return reply.ok("reissued", { expires_at = w.expires, uses_left = found[3] or nil })
    end
    if found == nil then
      found = { a.digest, a.approver or false, w.uses or false, false }
      tokens[1] = found
    end
    found[1] = a.digest
    w.tokens = cmsgpack.pack(tokens)
    waitpoint.save(tx, w)
    more.note_action(tx, rec, "reissue_token", a.actor, w.key)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "waitpoint.token_reissued", "waitpoint_id", w.id, "actor", a.actor)
    return reply.ok("reissued", { expires_at = w.expires, uses_left = found[3] or nil })
  end,
}
end

source["waitpoint.list"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local waitpoint = require "record.waitpoint"
local view = require "record.waitpoint_view"

-- Entries of the position's own millisecond that come after it.
local function of_same_moment(tx, after, enough)
  local at, out = string.format("%.0f", after.created_at), {}
  for page = 0, limits.list_pages_per_millisecond_max - 1 do
    local list = tx:zlowest(keys.inbox(tx), at, at, limits.list_looks_max, page * limits.list_looks_max)
    for _, item in ipairs(list) do
      if item.member > after.waitpoint_id then out[#out + 1] = item end
    end
    if #list < limits.list_looks_max or #out >= enough then break end
  end
  return out
end

define.fn {
  name = "ff_list_waitpoints",
  doc = "Open waitpoints of this partition, oldest first: the inbox of whoever is asked. `more` says whether to go on "
    .. "after `last`.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", after = "waitpoint_position?", limit = "list_limit" },
  reply = { page = { items = "[waitpoint]", last = "waitpoint_position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local entries = a.after and of_same_moment(tx, a.after, a.limit + 1) or {}
    local from = a.after and "(" .. string.format("%.0f", a.after.created_at) or "-inf"
    for _, item in ipairs(tx:zlowest(keys.inbox(tx), from, "+inf", a.limit + 1)) do entries[#entries + 1] = item end
    local items, last = {}, nil
    for i, entry in ipairs(entries) do
      if #items >= a.limit or i > limits.list_looks_max then
        return reply.ok("page", { items = items, last = last, more = true })
      end
      local w = waitpoint.load(tx, entry.member)
      local rec = w and execution.load(tx, w.exec)
      if rec and (a.namespace == nil or execution.namespace(rec) == a.namespace) then
        items[#items + 1] = view.typed(rec, w)
      end
      last = { created_at = entry.score, waitpoint_id = entry.member }
    end
    return reply.ok("page", { items = items, last = last, more = #entries > a.limit })
  end,
}
end

source["waitpoint.describe"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local waitpoint = require "record.waitpoint"
local view = require "record.waitpoint_view"

define.fn {
  name = "ff_describe_waitpoint",
  doc = "One waitpoint, open or closed.",
  flags = { "no-writes" },
  args = { waitpoint_id = "waitpoint_id" },
  reply = { found = { waitpoint = "waitpoint" } },
  errs = { "waitpoint_not_found" },
  call = function(tx, a)
    local w = waitpoint.load(tx, a.waitpoint_id)
    local rec = w and execution.load(tx, w.exec)
    if not rec then return reply.err("waitpoint_not_found", { waitpoint_id = a.waitpoint_id }) end
    return reply.ok("found", { waitpoint = view.typed(rec, w) })
  end,
}
end

source["waitpoint.of_execution"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local waitpoint = require "record.waitpoint"
local view = require "record.waitpoint_view"

define.fn {
  name = "ff_execution_waitpoints",
  doc = "The waitpoints of one execution, open ones and those kept after they closed.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id" },
  reply = { found = { waitpoints = "[waitpoint]" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local ids, out = rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}, {}
    for _, entry in ipairs(waitpoint.open(rec)) do ids[#ids + 1] = entry[1] end
    for _, id in ipairs(ids) do
      local w = waitpoint.load(tx, id)
      if w then out[#out + 1] = view.typed(rec, w) end
    end
    return reply.ok("found", { waitpoints = out })
  end,
}
end

source["stream.append"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local frames = require "record.frames"

-- The number of the batch's first frame, and how many of its frames were written before: a lost reply is answered
-- again.
local function already_written(f, a)
  local first = a.first_sequence or f.next
  if a.request_id and f.request == a.request_id then first = f.request_first end
  return first, math.min(#a.frames, f.next - first)
end

define.fn {
  name = "ff_append_frames",
  doc = "Appends frames to the running attempt's stream. A sequence or a request already seen answers its ids; "
    .. "`summary` replaces the folded document when its version is the current one.",
  flags = {},
  args = {
    execution_id = "execution_id", fence = "fence", frames = "new_frames", first_sequence = "count?",
    request_id = "request_id?", summary = "new_summary?",
  },
  reply = { appended = { ids = "[stream_id]", next_sequence = "count", replayed = "bool" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "frames_missing",
    "summary_changed",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    if #a.frames == 0 then return reply.err("invalid_argument", { field = "frames", problem = "must hold a frame" }) end
    local f = frames.state(rec)
    if a.first_sequence and a.first_sequence > f.next then
      return reply.err("frames_missing", { field = "first_sequence", expected = f.next })
    end
    local first, known = already_written(f, a)
    local ids = {}
    for i = 1, known do ids[i] = frames.id(rec, first + i - 1) end
    if known == #a.frames then return reply.ok("appended", { ids = ids, next_sequence = f.next, replayed = true }) end
    if a.summary and a.summary.version ~= f.version then
      return reply.err("summary_changed", { version = f.version })
    end
    local fresh = {}
    for i = known + 1, #a.frames do fresh[#fresh + 1] = a.frames[i] end
    for _, id in ipairs(frames.append(tx, rec, fresh, a.request_id, first)) do ids[#ids + 1] = id end
    if a.summary then frames.store_summary(tx, rec, a.summary.document) end
    tx:announce("frames", rec.id)
    execution.save(tx, rec)
    return reply.ok("appended", { ids = ids, next_sequence = frames.count(rec), replayed = false })
  end,
}
end

source["stream.read"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local attempt = require "record.attempt"
local execution = require "record.execution"
local frames = require "record.frames"

-- The range asked for, as the store takes it. A place may be the id of a frame or a time.
local function bounds(tx, rec, found, a)
  local function id(number) return string.format("%.0f-%.0f", found.started_at, number) end
  local from, to = "-", "+"
  if a.after then
    local number, by_time = frames.place(tx, rec.id, found, a.after, true)
    from = by_time and id(number) or "(" .. id(number)
  elseif a.from then
    from = id((frames.place(tx, rec.id, found, a.from, true)))
  end
  if a.to then
    local number, by_time = frames.place(tx, rec.id, found, a.to, true)
    to = by_time and "(" .. id(number) or id(number)
  end
  return from, to
end

-- How a stream ends that no attempt ever wrote to, by the outcome of its execution.
local ends_without_attempt = {
  failed = "failed", cancelled = "cancelled", expired = "interrupted", skipped = "cancelled", success = "succeeded",
}

define.fn {
  name = "ff_read_stream",
  doc = "Frames of one attempt after an id, or from and to ids included; a time stands for the frames written then; "
    .. "the latest attempt when none is named. One call answers a page of bounded size; `more` says whether to go on "
    .. "after the last id.",
  flags = { "no-writes" },
  weight = "limit",
  args = {
    execution_id = "execution_id", attempt_index = "attempt_index?", after = "stream_id?", from = "stream_id?",
    to = "stream_id?", limit = "stream_limit",
  },
  reply = {
    page = {
      frames = "[frame]", more = "bool", attempt_index = "attempt_index?", latest_attempt = "attempt_index?",
      terminal = "bool", closed_at = "time_ms?", closed_reason = "attempt_state?",
    },
  },
  errs = { "execution_not_found", "attempt_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local found = attempt.find(tx, rec, a.attempt_index)
    local page = { frames = {}, more = false, latest_attempt = rec.attempt, terminal = rec.phase == "terminal" }
    if found == nil then
      -- An attempt yet to come has an empty stream; only one that cannot come is unknown.
      if a.attempt_index and a.attempt_index > (rec.attempt or -1) + 1 then
        return reply.err("attempt_not_found", { attempt_index = a.attempt_index })
      end
      if page.terminal then page.closed_at, page.closed_reason = rec.ended, ends_without_attempt[rec.outcome] end
      return reply.ok("page", page)
    end
    local from, to = bounds(tx, rec, found, a)
    page.frames, page.more = frames.read(tx, rec.id, found.index, from, to, a.limit)
    page.attempt_index = found.index
    if found.ended_at then page.closed_at, page.closed_reason = found.ended_at, found.state end
    return reply.ok("page", page)
  end,
}
end

source["stream.summary"] = function(require, LIBRARY)
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
end

source["stream.follow"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"

define.fn {
  name = "ff_follow_stream",
  doc = "Marks an execution whose stream someone follows, so that the end of an attempt and the start of the next are "
    .. "announced.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id" },
  reply = { following = {} },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.tailed == nil then
      rec.tailed = 1
      execution.save(tx, rec)
    end
    return reply.ok("following")
  end,
}
end

source["flow.submit"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local fired = require "record.fired"
local flow = require "record.flow"
local grow = require "transition.grow"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local walk = require "transition.walk"

local week_ms = 604800000

local function create(tx, n)
  local f = flow.new(n.flow_id)
  f.namespace, f.kind, f.policy, f.digest, f.parent =
    n.namespace, n.kind, n.on_member_failure, n.body_digest, n.parent_id
  f.webhook = n.completion_webhook
  if n.fired then fired.note(f, n.fired) end
  f.created, f.touched, f.retention = tx.now, tx.now, n.retention_ms or week_ms
  f.deadline = n.deadline_at or (n.deadline_ms and tx.now + n.deadline_ms) or nil
  if n.default_lane or n.default_retry or n.budgets then
    f.defaults = flow.pack_defaults(n.default_lane, n.default_retry, n.budgets)
  end
  tx:zadd(keys.flows(tx), tx.now, f.id)
  flow.save(tx, f)
  event.of_flow(tx, f, "flow.created")
  return f
end

define.fn {
  name = "ff_submit_flow",
  doc = "Creates a flow with its first members and the edges between them, each leading to a member listed later. "
    .. "Members are hidden until the flow is sealed; `seal` does it in the same call. The same id with the same body "
    .. "answers the first one.",
  flags = {},
  args = { flow = "new_flow", members = "new_members", edges = "new_edges", seal = "bool" },
  reply = { created = { flow = "flow" }, duplicate = { flow = "flow" } },
  errs = {
    "try_again", "execution_not_found", "flow_not_found", "idempotency_conflict", "lane_disabled", "lane_full",
    "lane_unseen", "lane_depth_needed", "capability_invalid", "cycle_detected", "flow_full", "flow_changed",
    "member_started",
  },
  call = function(tx, a)
    local n = a.flow
    if n.deadline_at and n.deadline_ms then
      return reply.err("invalid_argument", {
        field = "flow.deadline_ms", problem = "give deadline_at or deadline_ms, not both",
      })
    end
    if n.parent_id and a.seal then
      return reply.err("invalid_argument", {
        field = "seal", problem = "a flow that runs in place of a member is sealed when the member's turn comes",
      })
    end
    local known = flow.load(tx, n.flow_id)
    if known then
      -- One of another namespace is nobody's to know about.
      if known.namespace ~= n.namespace then return reply.err("flow_not_found", { flow_id = n.flow_id }) end
      -- What is left of an unsealed one goes first.
      if known.walk == "remove" then return reply.err("try_again", { flow_id = n.flow_id }) end
      if known.digest ~= n.body_digest then return reply.err("idempotency_conflict", { flow_id = n.flow_id }) end
      return reply.ok("duplicate", { flow = flow.typed(known) })
    end
    local f = create(tx, n)
    f.releases = a.seal
    local made, refusal = grow.members(tx, f, a.members, a.edges)
    if refusal then return refusal end
    local fresh = {}
    for _, one in ipairs(made) do fresh[one.id] = true end
    local _, wrong = grow.edges(tx, f, a.edges, fresh, false)
    if wrong then return wrong end
    flow.save(tx, f)
    if a.seal then walk.seal(tx, f, made) end
    return reply.ok("created", { flow = flow.typed(f) })
  end,
}
end

source["flow.add_members"] = function(require, LIBRARY)
local define = require "lib.define"
local execution = require "record.execution"
local flow = require "record.flow"
local grow = require "transition.grow"
local owed = require "transition.owed"
local reply = require "lib.reply"
local walk = require "transition.walk"

define.fn {
  name = "ff_add_members",
  doc = "Adds members with the edges into them, whole or not at all; a member of a sealed flow can run as soon as its "
    .. "edges let it. A known key with the same body is answered again.",
  flags = {},
  args = { flow_id = "flow_id", members = "new_members", edges = "new_edges" },
  reply = { added = { items = "[added_member]", version = "count" } },
  errs = {
    "flow_not_found", "flow_terminal", "execution_not_found", "idempotency_conflict", "lane_disabled", "lane_full",
    "lane_unseen", "lane_depth_needed", "capability_invalid", "cycle_detected", "flow_full", "flow_changed",
    "member_started",
  },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    local refusal = grow.refusal(f)
    if refusal then return refusal end
    local made
    f.releases = f.sealed ~= nil
    made, refusal = grow.members(tx, f, a.members, a.edges)
    if refusal then return refusal end
    local fresh, edges = {}, nil
    for _, one in ipairs(made) do
      if not one.duplicate then fresh[one.id] = true end
    end
    edges, refusal = grow.edges(tx, f, a.edges, fresh, false)
    if refusal then return refusal end
    f.touched = tx.now
    flow.save(tx, f)
    owed.during(tx, function()
      grow.count(tx, f, edges)
      if f.sealed then
        for _, one in ipairs(made) do walk.release(tx, f, one.rec) end
      end
    end)
    local items = {}
    for i, one in ipairs(made) do
      items[i] = {
        key = one.rec.key, execution_id = one.id, state = execution.member_state(one.rec), duplicate = one.duplicate,
      }
    end
    return reply.ok("added", { items = items, version = f.version })
  end,
}
end

source["flow.add_edges"] = function(require, LIBRARY)
local define = require "lib.define"
local flow = require "record.flow"
local grow = require "transition.grow"
local owed = require "transition.owed"
local reply = require "lib.reply"

define.fn {
  name = "ff_add_edges",
  doc = "Adds edges between members that are there. `version` is that of the graph the caller checked for cycles; "
    .. "without it every edge must lead to a later member of an unsealed flow.",
  flags = {},
  args = { flow_id = "flow_id", edges = "new_edges", version = "count?" },
  reply = { added = { count = "count", version = "count" } },
  errs = {
    "flow_not_found", "flow_terminal", "flow_changed", "member_started", "cycle_detected", "idempotency_conflict",
  },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    local refusal = grow.refusal(f)
    if refusal then return refusal end
    if a.version and a.version ~= f.version then return reply.err("flow_changed", { version = f.version }) end
    local made
    made, refusal = grow.edges(tx, f, a.edges, {}, a.version ~= nil)
    if refusal then return refusal end
    f.touched = tx.now
    flow.save(tx, f)
    owed.during(tx, function() grow.count(tx, f, made) end)
    return reply.ok("added", { count = #made, version = f.version })
  end,
}
end

source["flow.seal"] = function(require, LIBRARY)
local define = require "lib.define"
local flow = require "record.flow"
local reply = require "lib.reply"
local walk = require "transition.walk"

define.fn {
  name = "ff_seal_flow",
  doc = "Releases the members a flow holds: the first in this call, the rest in a walk that is owed. The flow may "
    .. "still grow.",
  flags = {},
  args = { flow_id = "flow_id" },
  reply = { sealed = { flow = "flow" }, already = { flow = "flow" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    if f.parent then
      return reply.err("invalid_argument", {
        field = "flow_id", problem = "is sealed when the turn of its member " .. f.parent .. " comes",
      })
    end
    if f.sealed then return reply.ok("already", { flow = flow.typed(f) }) end
    walk.seal(tx, f)
    return reply.ok("sealed", { flow = flow.typed(f) })
  end,
}
end

source["flow.cancel"] = function(require, LIBRARY)
local define = require "lib.define"
local flow = require "record.flow"
local limits = require "lib.limits"
local reply = require "lib.reply"
local stop = require "transition.stop"
local walk = require "transition.walk"

define.fn {
  name = "ff_cancel_flow",
  doc = "Cancels a flow: from this call on none of its members can be claimed. Members are cancelled in a walk, the "
    .. "first ones here; running ones end at once under cancel_all and finish under the other policies.",
  flags = { "allow-oom" },
  args = { flow_id = "flow_id", policy = "cancel_policy", actor = "actor", reason = "reason?" },
  reply = { cancelled = { flow = "flow", more = "bool" }, already = { flow = "flow" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    if f.stop or f.outcome then return reply.ok("already", { flow = flow.typed(f) }) end
    stop.flow(tx, f, {
      policy = a.policy, reason = a.reason, actor = a.actor, outcome = "cancelled",
      data = { "actor", a.actor, "reason", a.reason or "", "policy", a.policy },
    })
    local more = walk.step(tx, f, limits.batch_max)
    return reply.ok("cancelled", { flow = flow.typed(f), more = more and f.walk == "cancel" })
  end,
}
end

source["flow.walk"] = function(require, LIBRARY)
local define = require "lib.define"
local flow = require "record.flow"
local reply = require "lib.reply"
local walk = require "transition.walk"

define.fn {
  name = "ff_walk_flow",
  doc = "Goes on with the walk a flow owes its members, before its timer does.",
  flags = { "allow-oom" },
  args = { flow_id = "flow_id", limit = "batch_size" },
  reply = { walked = { flow = "flow?", more = "bool" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    local more = walk.step(tx, f, a.limit)
    return reply.ok("walked", { flow = not f.gone and flow.typed(f) or nil, more = more })
  end,
}
end

source["flow.describe"] = function(require, LIBRARY)
local define = require "lib.define"
local flow = require "record.flow"
local reply = require "lib.reply"

define.fn {
  name = "ff_describe_flow",
  doc = "A flow with its state and the counts of its members.",
  flags = { "no-writes" },
  args = { flow_id = "flow_id" },
  reply = { found = { flow = "flow" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    return reply.ok("found", { flow = flow.typed(f) })
  end,
}
end

source["flow.await"] = function(require, LIBRARY)
local define = require "lib.define"
local flow = require "record.flow"
local reply = require "lib.reply"

define.fn {
  name = "ff_await_flow",
  doc = "Says how a flow stands and marks it, so that its end is announced to whoever waits.",
  flags = { "allow-oom" },
  args = { flow_id = "flow_id" },
  reply = { waiting = { flow = "flow" }, ended = { flow = "flow" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    if f.ended then return reply.ok("ended", { flow = flow.typed(f) }) end
    if f.waited == nil then
      f.waited = 1
      flow.save(tx, f)
    end
    return reply.ok("waiting", { flow = flow.typed(f) })
  end,
}
end

source["flow.read"] = function(require, LIBRARY)
local define = require "lib.define"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local flow = require "record.flow"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

local function member(rec)
  return {
    key = rec.key, execution_id = rec.id, number = rec.number, state = execution.member_state(rec), kind = rec.kind,
    lane = execution.lane(rec), inbound = rec.inbound, nested = rec.nested, edges_in = dependencies.load(rec).total,
    edges_out = rec.outs or 0,
  }
end

-- Edges of one member after a number, as many as fit; answers where they stopped, or nil when there are no more.
local function edges_of(tx, rec, after, out)
  local last = math.min(rec.outs or 0, after + limits.edges_per_call_max - #out)
  for _, e in ipairs(dependencies.edges(tx, rec.id, after + 1, last)) do
    out[#out + 1] = { from = e.from, to = e.to, on = e.on, pass_as = e.pass_as, state = e.state }
  end
  if last < (rec.outs or 0) then return last end
end

define.fn {
  name = "ff_read_flow",
  doc = "Members of a flow in the order they were added, a page at a time, with the edges out of them when asked for; "
    .. "`next` is where to go on.",
  flags = { "no-writes" },
  weight = "limit",
  args = { flow_id = "flow_id", after = "graph_position?", limit = "list_limit", edges = "bool" },
  reply = { page = { members = "[member]", edges = "[edge]", next = "graph_position?", version = "count" } },
  errs = { "flow_not_found" },
  call = function(tx, a)
    local f = flow.find(tx, a.flow_id)
    if f == nil then return reply.err("flow_not_found") end
    local after = a.after or { member = 0, edge = 0 }
    local members, edges = {}, {}
    local answer = { members = members, edges = edges, version = f.version }
    -- With an edge number the page goes on in the middle of that member's edges.
    local from = after.edge > 0 and string.format("%.0f", after.member) or string.format("(%.0f", after.member)
    for _, item in ipairs(tx:zlowest(keys.flow_members(tx, f.id), from, "+inf", a.limit)) do
      local rec = execution.load(tx, item.member, true)
      local within = after.edge > 0 and item.score == after.member
      if rec then
        if not within then members[#members + 1] = member(rec) end
        local stopped = a.edges and edges_of(tx, rec, within and after.edge or 0, edges)
        if stopped then
          -- A place before the member's first edge cannot be named: the member is read again with it.
          if stopped == 0 then
            members[#members] = nil
            answer.next = { member = item.score - 1, edge = 0 }
          else
            answer.next = { member = item.score, edge = stopped }
          end
          return reply.ok("page", answer)
        end
      end
      answer.next = { member = item.score, edge = 0 }
    end
    if answer.next and answer.next.member >= f.last then answer.next = nil end
    return reply.ok("page", answer)
  end,
}
end

source["flow.list"] = function(require, LIBRARY)
local define = require "lib.define"
local flow = require "record.flow"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

define.fn {
  name = "ff_list_flows",
  doc = "Flows of this partition, newest first, that match every filter given; a page may be short, `more` says "
    .. "whether to go on after `last`.",
  flags = { "no-writes" },
  weight = "limit",
  args = {
    namespace = "namespace?", kind = "kind?", state = "flow_state?", after = "flow_position?", limit = "list_limit",
  },
  reply = { page = { items = "[flow]", last = "flow_position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local looks = limits.list_looks_max
    local top = a.after and string.format("%.0f", a.after.created_at) or "+inf"
    local found = tx:zhighest(keys.flows(tx), top, "-inf", looks)
    -- Entries of one millisecond come in the order of their ids, backwards; those up to `after` have been seen.
    local items, last, more = {}, nil, #found == looks
    for _, item in ipairs(found) do
      local seen = a.after and item.score == a.after.created_at and item.member >= a.after.flow_id
      if not seen then
        if #items >= a.limit then
          more = true
          break
        end
        local f = flow.find(tx, item.member)
        if f and (a.namespace == nil or f.namespace == a.namespace) and (a.kind == nil or f.kind == a.kind)
          and (a.state == nil or flow.state(f) == a.state)
        then
          items[#items + 1] = flow.typed(f)
        end
        last = { created_at = item.score, flow_id = item.member }
      end
    end
    return reply.ok("page", { items = items, last = last, more = more })
  end,
}
end

source["child.spawn"] = function(require, LIBRARY)
local asks = require "record.asks"
local define = require "lib.define"
local children = require "record.children"
local execution = require "record.execution"
local fence = require "record.fence"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local step = require "record.step"
local submit = require "transition.submit"

-- Makes one child; answers an item of the reply, or nil and the refusal.
local function spawn(tx, rec, k, c, at)
  local s = c.submission
  if string.sub(s.execution_id, -4) ~= string.sub(rec.id, -4) then
    return nil, reply.err("invalid_argument", {
      field = at .. ".submission.execution_id", problem = "must end like the parent's id: they share a partition",
    })
  end
  local place = {
    parent_id = rec.id, key = c.key, number = k.total + 1, parent_close = c.parent_close or "cancel_children",
    budgets = asks.of(rec).budgets, deadline = rec.deadline,
  }
  local answer = submit.repeated(tx, s, place)
  if answer and answer.err then return nil, answer end
  if answer then return { execution_id = answer.fields.execution_id, state = answer.fields.state, duplicate = true } end
  if k.total >= limits.children_max then return nil, reply.err("flow_full", { children_max = limits.children_max }) end
  local child, refusal = submit.new(tx, s, place)
  if refusal then return nil, refusal end
  child.bound = 1
  k.total, k.open = k.total + 1, k.open + 1
  tx:zadd(keys.children(tx, rec.id), place.number, child.id)
  submit.place(tx, child)
  return { execution_id = child.id, state = execution.public_state(child), duplicate = false }
end

-- The children of a step that is done.
local function spawned_before(tx, s)
  local items = {}
  for i, id in ipairs(step.spawned(s)) do
    local child = execution.load(tx, id)
    items[i] = { execution_id = id, state = child and execution.public_state(child) or nil, duplicate = true }
  end
  return items
end

define.fn {
  name = "ff_spawn_children",
  doc = "Submits children of a running execution, all or none; each shares its parent's budgets and deadline. A known "
    .. "id or key is answered again. `step` makes it a step: once it is done, a later call is answered its children.",
  flags = {},
  args = { execution_id = "execution_id", fence = "fence", children = "new_children", step = "step_name?" },
  reply = { spawned = { items = "[submitted]" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked",
    "idempotency_conflict", "lane_disabled", "lane_full", "lane_unseen", "lane_depth_needed", "capability_invalid",
    "flow_full", "step_changed", "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local s = a.step and step.find(tx, rec, a.step)
    if s and s.kind ~= "spawn" then return step.changed(s, "spawn") end
    if s then return reply.ok("spawned", { items = spawned_before(tx, s) }) end
    refusal = a.step and step.full(rec)
    if refusal then return refusal end
    local k, items = children.load(rec), {}
    for i, c in ipairs(a.children) do
      local item, wrong = spawn(tx, rec, k, c, string.format("children[%d]", i - 1))
      if wrong then return wrong end
      items[i] = item
    end
    children.store(rec, k)
    if a.step then
      local ids = {}
      for i, item in ipairs(items) do ids[i] = item.execution_id end
      step.found(tx, rec, a.step, "spawn", { id = false, cause = "children", refs = ids })
    end
    execution.save(tx, rec)
    return reply.ok("spawned", { items = items })
  end,
}
end

source["child.wait"] = function(require, LIBRARY)
local define = require "lib.define"
local children = require "record.children"
local event = require "lib.event"
local execution = require "record.execution"
local fence = require "record.fence"
local limits = require "lib.limits"
local reply = require "lib.reply"
local runnable = require "transition.runnable"
local step = require "record.step"

define.fn {
  name = "ff_wait_children",
  doc = "Sets the running attempt aside until every child has ended; the next claim continues it with their outcomes. "
    .. "When all have ended already the lease stays, unless `aside` says that the attempt lets go of it all the same. "
    .. "`step` makes it a step: once it is done, a later call is answered the same outcomes.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", wait_id = "suspension_id", aside = "bool?",
    step = "step_name?",
  },
  reply = { waiting = { open = "count" }, ended = { children = "[child]", more = "bool" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "step_changed",
    "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "wait_children")
    if refusal == "replay" then return reply.ok("waiting", { open = children.load(rec).open }) end
    if refusal then return refusal end
    local s = a.step and step.find(tx, rec, a.step)
    if s and s.kind ~= "children" then return step.changed(s, "children") end
    if s and s.state == "done" then
      local told = step.resume(tx, rec, s)
      return reply.ok("ended", { children = told.children, more = told.more_children ~= nil })
    end
    refusal = a.step and step.full(rec, s)
    if refusal then return refusal end
    local k = children.load(rec)
    local open = k.open
    if open == 0 and not a.aside then
      if a.step then
        step.found(tx, rec, a.step, "children", { id = a.wait_id, cause = "children", refs = {}, upto = k.total })
        execution.store(tx, rec)
      end
      local list, rest = children.page(tx, rec, 1, limits.children_inline_max, limits.resume_inline_bytes_max)
      return reply.ok("ended", { children = list, more = rest ~= nil })
    end
    rec.ended_by, rec.ended_value = "wait_children", tx.now
    rec.time_left = rec.timeout_at and math.max(rec.timeout_at - tx.now, 1) or nil
    rec.timeout_at, rec.yield, rec.reclaims, rec.satisfied = nil, nil, nil, nil
    rec.attempt_state, rec.resume, rec.awaiting = "suspended", 1, 1
    rec.woken, rec.waits = cmsgpack.pack({ a.wait_id, "children", {}, a.step or false }), 1
    if a.step then step.wait(tx, rec, s, a.step, "children", tx.now) end
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.waiting", "reason", "waiting_for_children", "open", open)
    return reply.ok("waiting", { open = open })
  end,
}
end

source["child.read"] = function(require, LIBRARY)
local define = require "lib.define"
local children = require "record.children"
local execution = require "record.execution"
local limits = require "lib.limits"
local reply = require "lib.reply"

define.fn {
  name = "ff_read_children",
  doc = "The children of an execution in the order they were spawned, a page at a time; `next` is the number to go on "
    .. "from.",
  flags = { "no-writes" },
  weight = "limit",
  args = { execution_id = "execution_id", from = "count?", limit = "list_limit" },
  reply = { page = { children = "[child]", next = "count?" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local list, rest = children.page(tx, rec, a.from or 1, a.limit, limits.stream_read_bytes_max)
    return reply.ok("page", { children = list, next = rest })
  end,
}
end

source["step.store"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local step = require "record.step"

local function known(tx, rec, s)
  return reply.ok("known", {
    result = step.result(tx, rec, s), result_encoding = s.result_in or "json", input_digest = s.digest,
  })
end

define.fn {
  name = "ff_store_step",
  doc = "Stores the result of a step of the running attempt. A step that is known keeps its first result, which is "
    .. "answered; with `rerun` another input digest replaces it.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", name = "step_name", result = "step_result?",
    result_encoding = "encoding?", input_digest = "step_digest?", started_at = "time_ms?", tries = "step_tries?",
    rerun = "bool?",
  },
  reply = {
    stored = {}, known = { result = "step_result?", result_encoding = "encoding?", input_digest = "step_digest?" },
  },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "step_changed",
    "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local s, result = step.find(tx, rec, a.name), a.result or ""
    if s and s.kind ~= "run" then return step.changed(s, "run") end
    local again = s and a.rerun and s.digest ~= a.input_digest
    if s and s.state == "done" and not again then return known(tx, rec, s) end
    refusal = step.full(rec, s, #result - (s and s.bytes or 0))
    if refusal then return refusal end
    if s == nil then s = step.new(rec, a.name, "run", tx.now) end
    -- A worker's clock may be ahead.
    if a.started_at then s.started = math.min(a.started_at, tx.now) end
    s.state, s.attempt, s.ended, s.tries = "done", rec.attempt, tx.now, a.tries or s.tries
    s.digest, s.failure, s.due = a.input_digest, nil, nil
    step.set_result(tx, rec, s, result, a.result_encoding or "json")
    step.put(tx, rec, s)
    rec.updated = tx.now
    execution.store(tx, rec)
    if rec.tailed then tx:announce("frames", rec.id) end
    return reply.ok("stored")
  end,
}
end

source["step.note"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local step = require "record.step"

define.fn {
  name = "ff_note_step",
  doc = "Notes that a step of the running attempt failed, how often it was tried, and when it is tried again. A step "
    .. "that is done stays done.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", name = "step_name", reason = "reason", category = "category",
    tries = "step_tries", retry_at = "time_ms?", started_at = "time_ms?", input_digest = "step_digest?",
  },
  reply = { noted = {}, known = {} },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "step_changed",
    "steps_full",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local s = step.find(tx, rec, a.name)
    if s and s.kind ~= "run" then return step.changed(s, "run") end
    if s and s.state == "done" then return reply.ok("known") end
    refusal = step.full(rec, s)
    if refusal then return refusal end
    if s == nil then s = step.new(rec, a.name, "run", tx.now) end
    if a.started_at then s.started = math.min(a.started_at, tx.now) end
    s.state, s.attempt, s.ended, s.tries, s.due = "failed", rec.attempt, tx.now, a.tries, a.retry_at
    s.digest, s.failure = a.input_digest, cmsgpack.pack({ a.reason, a.category })
    step.put(tx, rec, s)
    rec.updated = tx.now
    execution.store(tx, rec)
    if rec.tailed then tx:announce("frames", rec.id) end
    return reply.ok("noted")
  end,
}
end

source["step.get"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local step = require "record.step"

define.fn {
  name = "ff_get_step",
  doc = "A step of an execution with its result. Of a wait that is done, what it came to: its signals or children from "
    .. "the `from`-th on.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id", name = "step_name", from = "step_tries?" },
  reply = {
    found = { step = "step", result = "step_result?", result_encoding = "encoding?", resume = "resume?" },
  },
  errs = { "execution_not_found", "step_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local s = step.find(tx, rec, a.name)
    if s == nil then return reply.err("step_not_found", { step = a.name }) end
    local ran = s.kind == "run" and s.bytes ~= nil
    local waited = (s.kind == "signal" or s.kind == "children") and s.found
    return reply.ok("found", {
      step = step.typed(s, tx.now), result = ran and step.result(tx, rec, s) or nil,
      result_encoding = ran and (s.result_in or "json") or nil,
      resume = waited and step.resume(tx, rec, s, a.from) or nil,
    })
  end,
}
end

source["step.list"] = function(require, LIBRARY)
local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local step = require "record.step"

define.fn {
  name = "ff_list_steps",
  doc = "The steps of an execution, in the order in which they were first recorded, after the step of a number.",
  flags = { "no-writes" },
  weight = "limit",
  args = { execution_id = "execution_id", after = "count?", limit = "list_limit" },
  reply = { page = { steps = "[step]", more = "bool" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local list, rest = step.page(tx, rec, (a.after or 0) + 1, a.limit, limits.stream_read_bytes_max)
    for i, s in ipairs(list) do list[i] = step.typed(s, tx.now) end
    return reply.ok("page", { steps = list, more = rest ~= nil })
  end,
}
end

source["step.sleep"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local step = require "record.step"
local suspension = require "record.suspension"
local runnable = require "transition.runnable"

local function rest(tx, rec, a, at)
  rec.ended_by, rec.ended_value = "sleep", at
  rec.time_left = rec.timeout_at and math.max(rec.timeout_at - tx.now, 1) or nil
  rec.timeout_at, rec.yield, rec.reclaims, rec.satisfied = nil, nil, nil, nil
  suspension.replace_continuation(tx, rec, a.continuation, a.continuation_encoding)
  -- It is known by the lease it ended.
  rec.woken, rec.waits = cmsgpack.pack({ rec.lease_id, "timer", {}, a.step or false }), 1
  rec.attempt_state, rec.resume, rec.delay = "suspended", 1, at
  runnable.settle(tx, rec)
  execution.save(tx, rec)
  if a.step then
    event.of_execution(tx, rec, "execution.rested", "until", at, "step", a.step)
  else
    event.of_execution(tx, rec, "execution.rested", "until", at)
  end
end

define.fn {
  name = "ff_sleep_execution",
  doc = "Sets the running attempt aside until a time; the next claim continues it. `step` names the sleep: its "
    .. "wake-up is stored by the first call, and a later one that comes after it keeps the lease.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", wake_at = "time_ms?", wake_in_ms = "duration_ms?",
    step = "step_name?", continuation = "continuation?", continuation_encoding = "encoding?",
  },
  reply = { resting = { wake_at = "time_ms", replayed = "bool" }, done = { wake_at = "time_ms" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "step_changed",
    "steps_full",
  },
  call = function(tx, a)
    if (a.wake_at == nil) == (a.wake_in_ms == nil) then
      return reply.err("invalid_argument", { field = "until", problem = "give until or ms, one of them" })
    end
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "sleep")
    if refusal == "replay" then return reply.ok("resting", { wake_at = rec.ended_value, replayed = true }) end
    if refusal then return refusal end
    local s, at = a.step and step.find(tx, rec, a.step), a.wake_at or tx.now + a.wake_in_ms
    if s and s.kind ~= "sleep" then return step.changed(s, "sleep") end
    if s then
      at = s.due
    elseif a.step then
      refusal = step.full(rec)
      if refusal then return refusal end
      s = step.new(rec, a.step, "sleep", tx.now)
      s.due = at
      step.put(tx, rec, s)
    end
    if at > tx.now then
      rest(tx, rec, a, at)
      return reply.ok("resting", { wake_at = at, replayed = false })
    end
    if a.step then
      rec.updated = tx.now
      execution.store(tx, rec)
    end
    return reply.ok("done", { wake_at = at })
  end,
}
end

source["step.fork"] = function(require, LIBRARY)
local asks = require "record.asks"
local define = require "lib.define"
local event = require "lib.event"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local more = require "record.more"
local spec = require "record.spec"
local step = require "record.step"
local submit = require "transition.submit"

-- The submission of the origin, with what the fork changes: it is part of nothing and waits for nothing.
local function submission(tx, rec, a)
  local said, asked = spec.of(tx, rec), asks.of(rec)
  return {
    execution_id = a.fork_id, namespace = execution.namespace(rec), lane = a.lane or execution.lane(rec),
    kind = rec.kind, input = a.input or spec.input(tx, rec), priority = a.priority or rec.prio,
    retention_ms = rec.retention, body_digest = a.body_digest,
    more = {
      input_encoding = a.input and (a.input_encoding or "json") or rec.input_in,
      tags = a.tags or spec.unflatten(rec.tags),
      deadline_at = rec.deadline and rec.deadline > tx.now and rec.deadline or nil, start_within_ms = rec.start_within,
      retry = said.retry, attempt_timeout_ms = rec.timeout, max_reclaims = rec.max_reclaims,
      max_replays = rec.max_replays, requires = rec.requires, prefers = rec.prefers, fairness_key = rec.fairness_key,
      budgets = #asked.budgets > 0 and asked.budgets or nil, quotas = #asked.quotas > 0 and asked.quotas or nil,
      fallbacks = said.fallbacks, stream = rec.max_frames and { max_frames = rec.max_frames } or nil,
      trace_parent = said.trace_parent, completion_webhook = rec.webhook, lane_depth = a.lane_depth,
    },
  }
end

define.fn {
  name = "ff_fork_execution",
  doc = "Submits a new execution with the submission of another one and copies of its finished steps: those before a "
    .. "named one, or all. A known id is answered again.",
  flags = {},
  args = {
    execution_id = "execution_id", fork_id = "execution_id", actor = "actor", from_step = "step_name?",
    input = "input?", input_encoding = "encoding?", lane = "lane?", priority = "priority?", tags = "tags?",
    budgets = "budget_refs?", body_digest = "digest", lane_depth = "count?",
  },
  reply = { forked = { state = "public_state?", steps = "count", duplicate = "bool" } },
  errs = {
    "execution_not_found", "step_not_found", "idempotency_conflict", "lane_disabled", "lane_full", "lane_unseen",
    "lane_depth_needed",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if rec.nested then
      return reply.err("invalid_argument", { field = "execution_id", problem = "is a flow: fork one of its members" })
    end
    if string.sub(a.fork_id, -4) ~= string.sub(rec.id, -4) then
      return reply.err("invalid_argument", {
        field = "fork_id", problem = "must end like the execution's id: they share a partition",
      })
    end
    local s, place = submission(tx, rec, a), { budgets = a.budgets }
    local answer = submit.repeated(tx, s, place)
    if answer and answer.err then return answer end
    if answer then
      return reply.ok("forked", {
        state = answer.fields.state, steps = execution.load(tx, a.fork_id).steps or 0, duplicate = true,
      })
    end
    local before = (rec.steps or 0) + 1
    if a.from_step then
      local named = step.find(tx, rec, a.from_step)
      if named == nil then return reply.err("step_not_found", { step = a.from_step }) end
      before = named.number
    end
    local fork, refusal = submit.new(tx, s, place)
    if refusal then return refusal end
    fork.forked_from = rec.id
    refusal = step.copy(tx, rec, fork, before)
    if refusal then return refusal end
    submit.place(tx, fork)
    more.note_fork(tx, rec, fork.id)
    more.note_action(tx, rec, "fork", a.actor, fork.id)
    execution.store(tx, rec)
    event.of_execution(tx, rec, "execution.forked", "fork_id", fork.id, "actor", a.actor)
    return reply.ok("forked", {
      state = execution.public_state(fork), steps = fork.steps or 0, duplicate = false,
    })
  end,
}
end

source["index.receivers"] = function(require, LIBRARY)
-- Webhooks in line: each receiver (scheme, host and port) has a line of its own, and the list of receivers goes by the
-- heads of their lines. A receiver that does not answer therefore stands in nobody else's way.
local keys = require "lib.keys"

local receivers = {}

function receivers.of(url)
  return keys.digest(string.lower(string.match(url, "^%a+://[^/%?]+")))
end

function receivers.add(tx, receiver, id, due)
  tx:zadd(keys.receiver(tx, receiver), due, id)
  local head = tx:zscore(keys.receivers(tx), receiver)
  if head == nil or due < head then tx:zadd(keys.receivers(tx), due, receiver) end
end

local function keep_head(tx, receiver, head)
  if head then
    tx:zadd(keys.receivers(tx), head, receiver)
  else
    tx:zrem(keys.receivers(tx), receiver)
  end
end

-- Puts an entry elsewhere in its line, or takes it out.
function receivers.move(tx, receiver, id, due)
  local line, head = keys.receiver(tx, receiver), due
  for _, entry in ipairs(tx:zlowest(line, "-inf", "+inf", 2)) do
    if entry.member ~= id then head = math.min(head or entry.score, entry.score) end
  end
  if due then tx:zadd(line, due, id) else tx:zrem(line, id) end
  keep_head(tx, receiver, head)
end

-- Takes at most `count` entries that are due; nobody else gets them before `again`. Answers their ids and the head of
-- the line.
function receivers.take(tx, receiver, count, again)
  local line, ids, head = keys.receiver(tx, receiver), {}, nil
  for i, entry in ipairs(tx:zlowest(line, "-inf", "+inf", count + 1)) do
    if i <= count and entry.score <= tx.now then
      ids[i] = entry.member
      tx:zadd(line, again, entry.member)
    else
      head = head or entry.score
    end
  end
  if #ids > 0 then head = math.min(head or again, again) end
  keep_head(tx, receiver, head)
  return ids, head
end

return receivers
end

source["record.webhook"] = function(require, LIBRARY)
-- A webhook that is owed because an execution or a flow has ended: what it says, where it goes, how often it was tried.
-- It says what was so at that end, so it outlives whatever it tells of, and leaves when it was delivered or given up.
local event = require "lib.event"
local ids = require "lib.id"
local keys = require "lib.keys"
local limits = require "lib.limits"
local packed = require "record.packed"
local receivers = require "index.receivers"

local webhook = {}

local open, close = packed.open_webhook, packed.close_webhook

-- What the record that ended keeps of its webhook: { id, how many it had, state, tries, owed at, updated at, next try,
-- status, error }.
local function kept(id, number, state, d, now)
  return cmsgpack.pack({ id, number, state, d.tries, d.owed, now, d.due or false, d.status or false, d.error or false })
end

function webhook.status(hook)
  if hook == nil then return nil end
  local l = cmsgpack.unpack(hook)
  return {
    delivery_id = l[1], state = l[3], tries = l[4], owed_at = l[5], updated_at = l[6],
    next_at = l[7] or nil, status = l[8] or nil, error = l[9] or nil,
  }
end

-- `of` says what ended: an execution or a flow. `said` is a list: type, namespace, lane, kind, flow, outcome, failure,
-- tags, attempt, replays. Answers what the record that ended keeps.
local function owe(tx, of, owner, url, hook, said)
  local number = hook and cmsgpack.unpack(hook)[2] + 1 or 1
  local id = ids.derived(owner, string.format("%.0f", number), string.format("%.0f", tx.now))
  tx:put(keys.webhook(tx, id), {
    of = of, owner = owner, url = url, said = cmsgpack.pack(said), owed = tx.now, due = tx.now, tries = 0,
  }, close)
  receivers.add(tx, receivers.of(url), id, tx.now)
  tx:announce("webhook")
  return kept(id, number, "pending", { tries = 0, owed = tx.now, due = tx.now }, tx.now)
end

-- Owes the end of an execution; `kind` is the event that says it.
function webhook.of_execution(tx, rec, kind)
  local namespace, lane = string.match(rec.path, "^([^/]+)/(.+)$")
  return owe(tx, "execution", rec.id, rec.webhook, rec.hook, {
    kind, namespace, lane, rec.kind, rec.flow_id or false, rec.outcome,
    rec.failure and cmsgpack.unpack(rec.failure) or false, rec.tags and cmsgpack.unpack(rec.tags) or {},
    rec.attempt or false, rec.replays or 0,
  })
end

-- Owes the end of a flow.
function webhook.of_flow(tx, f)
  return owe(tx, "flow", f.id, f.webhook, f.hook, {
    "flow." .. f.outcome, f.namespace, false, f.kind, f.id, f.outcome, false, {}, false, 0,
  })
end

function webhook.load(tx, id)
  local key = keys.webhook(tx, id)
  local stored = tx:record(key)
  if stored == nil then return nil end
  local d = open(key, stored)
  d.id, d.receiver = id, receivers.of(d.url)
  return d
end

-- Notes that a try begins; nobody else begins one before `again`.
function webhook.begin(tx, d, again)
  d.tries, d.due = d.tries + 1, again
  tx:put(keys.webhook(tx, d.id), d, close)
end

function webhook.typed(d)
  local s = cmsgpack.unpack(d.said)
  local tags = {}
  for i = 1, #s[8], 2 do tags[s[8][i]] = s[8][i + 1] end
  return {
    delivery_id = d.id, tries = d.tries, receiver = d.receiver, url = d.url, type = s[1], at = d.owed, namespace = s[2],
    lane = s[3] or nil, kind = s[4], execution_id = d.of == "execution" and d.owner or nil, flow_id = s[5] or nil,
    outcome = s[6], failure = s[7] and { reason = s[7][1], category = s[7][2] } or nil, tags = tags,
    attempt_index = s[9] or nil, replay_count = s[10],
  }
end

-- When the next try is due after one that failed, or nil when it is given up. A receiver may ask for more patience than
-- there is, never for less.
function webhook.again_at(tx, d, retry_after_ms, draw)
  if d.tries >= limits.webhook_tries_max then return nil end
  local delay = limits.webhook_delay_ms_min
  for _ = 2, d.tries do delay = math.min(delay * 2, limits.webhook_delay_ms_max) end
  -- A tenth more or less, so that those that failed together do not come back together.
  delay = math.floor(delay * (4500 + draw) / 5000)
  local at = tx.now + math.max(delay, math.min(retry_after_ms or 0, limits.webhook_delay_ms_max))
  if at > d.owed + limits.webhook_age_ms_max then return nil end
  return at
end

-- The record that ended shows its last webhook, as long as both are there.
local function tell_owner(tx, d, state)
  local records = require(d.of == "flow" and "record.flow" or "record.execution")
  local owner = records.load(tx, d.owner, true)
  local l = owner and owner.hook and cmsgpack.unpack(owner.hook)
  if l and l[1] == d.id then
    owner.hook = kept(d.id, l[2], state, d, tx.now)
    records.store(tx, owner)
  end
end

-- A try failed: another one follows.
function webhook.put_off(tx, d, due)
  d.due = due
  tx:put(keys.webhook(tx, d.id), d, close)
  receivers.move(tx, d.receiver, d.id, due)
  tell_owner(tx, d, "pending")
end

-- Nothing more is owed: it was delivered, or given up.
function webhook.close(tx, d, state)
  d.due = nil
  receivers.move(tx, d.receiver, d.id, nil)
  tell_owner(tx, d, state)
  tx:del(keys.webhook(tx, d.id))
  local data = { "delivery_id", d.id, "tries", d.tries }
  if d.status then data[#data + 1], data[#data + 2] = "status", d.status end
  if d.error then data[#data + 1], data[#data + 2] = "error", d.error end
  local tags = cmsgpack.unpack(d.said)[8]
  event.of_webhook(tx, webhook.typed(d), "webhook." .. state, #tags > 0 and cmsgpack.pack(tags) or nil, unpack(data))
end

return webhook
end

source["webhook.take"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local webhook = require "record.webhook"
local receivers = require "index.receivers"

define.fn {
  name = "ff_take_webhooks",
  doc = "Webhooks that are due, to be tried by the caller and by nobody else for a while. `in_flight` says how many "
    .. "tries each receiver is busy with, `each` how many it may be. `held` says that more is due for receivers that "
    .. "are busy, `more` that more is due for others.",
  flags = { "allow-oom" },
  args = { limit = "batch_size", each = "per_receiver", in_flight = "in_flight" },
  reply = { taken = { items = "[webhook]", more = "bool", held = "bool", next_at = "time_ms?", now = "time_ms" } },
  errs = {},
  call = function(tx, a, now)
    local items, more, held, next_at, busy = {}, false, false, nil, 0
    local again = now + limits.webhook_hold_ms
    local function later(at)
      if at and (next_at == nil or at < next_at) then next_at = at end
    end
    for _ in pairs(a.in_flight) do busy = busy + 1 end
    -- Receivers that are busy may stand before all others.
    for _, entry in ipairs(tx:zlowest(keys.receivers(tx), "-inf", "+inf", a.limit + busy + 1)) do
      local room = a.each - (a.in_flight[entry.member] or 0)
      if entry.score > now then
        later(entry.score)
        break
      elseif #items >= a.limit then
        more = true
        break
      elseif room <= 0 then
        held = true
      else
        local count = math.min(room, a.limit - #items)
        local ids, head = receivers.take(tx, entry.member, count, again)
        for _, id in ipairs(ids) do
          local d = webhook.load(tx, id)
          -- One without a record is left to fsck.
          if d then
            webhook.begin(tx, d, again)
            items[#items + 1] = webhook.typed(d)
          end
        end
        if head and head <= now then
          if count == room then held = true else more = true end
        else
          later(head)
        end
      end
    end
    return reply.ok("taken", { items = items, more = more, held = held, next_at = next_at, now = now })
  end,
}
end

source["webhook.note"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local webhook = require "record.webhook"

define.fn {
  name = "ff_note_webhook",
  doc = "Says what the try of this number came to: the webhook leaves when it was delivered, refused or has failed for "
    .. "too long, and is tried again otherwise. A failure of a try that is not the last one begun counts for nothing; "
    .. "a delivery always does.",
  flags = { "allow-oom" },
  args = {
    delivery_id = "delivery_id", tries = "count", result = "webhook_result", status = "http_status?",
    error = "webhook_error?", retry_after_ms = "duration_ms?", draw = "permille",
  },
  reply = { delivered = {}, failed = {}, put_off = { next_at = "time_ms", now = "time_ms" }, stale = {} },
  errs = {},
  call = function(tx, a, now)
    local d = webhook.load(tx, a.delivery_id)
    if d == nil or (a.result ~= "delivered" and a.tries ~= d.tries) then return reply.ok("stale") end
    d.status, d.error = a.status, a.error
    if a.result == "delivered" then
      webhook.close(tx, d, "delivered")
      return reply.ok("delivered")
    end
    local due = a.result == "failed" and webhook.again_at(tx, d, a.retry_after_ms, a.draw) or nil
    if due == nil then
      webhook.close(tx, d, "failed")
      return reply.ok("failed")
    end
    webhook.put_off(tx, d, due)
    return reply.ok("put_off", { next_at = due, now = now })
  end,
}
end

source["webhook.describe"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local flow = require "record.flow"
local webhook = require "record.webhook"

define.fn {
  name = "ff_describe_webhook",
  doc = "How far the webhook of the last end of an execution or a flow is; none before the first end.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id?", flow_id = "flow_id?" },
  reply = { webhook = { status = "webhook_status?" } },
  errs = { "execution_not_found", "flow_not_found" },
  call = function(tx, a)
    if (a.execution_id == nil) == (a.flow_id == nil) then
      return reply.err("invalid_argument", {
        field = "execution_id", problem = "give execution_id or flow_id, one of them",
      })
    end
    local rec, missing
    if a.execution_id then
      rec, missing = execution.load(tx, a.execution_id), "execution_not_found"
    else
      rec, missing = flow.find(tx, a.flow_id), "flow_not_found"
    end
    if rec == nil then return reply.err(missing) end
    return reply.ok("webhook", { status = webhook.status(rec.hook) })
  end,
}
end

source["record.schedule"] = function(require, LIBRARY)
-- A schedule: when something is submitted, and how far that has come.
--
-- Times up to `cursor` are decided. The library reckons the times of `every` itself. Times of a calendar are supplied:
-- `planned` has all of them after the cursor and up to `reckoned`, or all there will ever be when `reckoned` is absent.
-- Nothing behind `reckoned` is decided, so no time of a calendar is passed over.
--
-- A firing that was decided and is not submitted yet is in `flight`: { number, nominal time, time of the decision,
-- cause, id, when it is tried again or false, tries, code of the last refusal or false }. Firings that wait for the end
-- of another one are in `waiting`: { number, nominal time, time of the decision, cause }. What is in flight or was
-- submitted and has not ended is in the sorted set of the live.
local event = require "lib.event"
local id = require "lib.id"
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local packed = require "record.packed"
local reply = require "lib.reply"
local timers = require "index.timers"

local schedule = {}

local pack, unpack_ = cmsgpack.pack, cmsgpack.unpack
local floor, format = math.floor, string.format

function schedule.path(namespace, name) return namespace .. "/" .. name end
function schedule.timer(path) return "schedule:" .. path end

function schedule.split(path)
  return string.match(path, "^([^/]+)/(.+)$")
end

local function list_of(bytes)
  return bytes and unpack_(bytes) or {}
end

local function bytes_of(list)
  return #list > 0 and pack(list) or nil
end

-- What runs, a bounded number.
local function live_ids(tx, path)
  local ids = {}
  for i, entry in ipairs(tx:zlowest(keys.schedule_live(tx, path), "-inf", "+inf", limits.batch_max)) do
    ids[i] = entry.member
  end
  return ids
end

-- True when a time that comes may cancel what runs.
function schedule.cancels(s)
  local b = s.backfill
  return s.overlap == "cancel_previous" or (b ~= nil and not b[9] and b[4] == "cancel_previous")
end

-- The schedule with its lists opened, or nil. What runs is counted before anything is planned.
function schedule.load(tx, path)
  local key = keys.schedule(tx, path)
  local known = tx.memo[key]
  if known then return known end
  local stored = tx:record(key)
  if stored == nil then return nil end
  local s = packed.open_schedule(key, stored)
  s.path, s.live = path, tx:zcard(keys.schedule_live(tx, path))
  s.every, s.planned, s.flight, s.waiting =
    list_of(s.every), list_of(s.planned), list_of(s.flight), list_of(s.waiting)
  s.backfill, s.paused = s.backfill and unpack_(s.backfill), s.paused and unpack_(s.paused)
  s.live_ids = schedule.cancels(s) and s.live > 0 and live_ids(tx, path) or {}
  tx.memo[key] = s
  return s
end

-- The schedule of this name, or nil and the refusal.
function schedule.find(tx, a)
  local s = schedule.load(tx, schedule.path(a.namespace, a.name))
  if s then return s end
  return nil, reply.err("schedule_not_found", { namespace = a.namespace, name = a.name })
end

local function close(s)
  local copy = {}
  for name, value in pairs(s) do copy[name] = value end
  copy.every, copy.planned, copy.flight, copy.waiting =
    bytes_of(s.every), bytes_of(s.planned), bytes_of(s.flight), bytes_of(s.waiting)
  copy.backfill, copy.paused = s.backfill and pack(s.backfill) or nil, s.paused and pack(s.paused) or nil
  return packed.close_schedule(copy)
end

-- Plans the record together with its timer.
function schedule.save(tx, s, wake)
  local member = schedule.timer(s.path)
  if wake ~= s.wake then
    if wake then timers.set(tx, member, wake) else timers.clear(tx, member) end
    s.wake = wake
  end
  local key = keys.schedule(tx, s.path)
  tx.memo[key] = s
  tx:set(key, close(s))
end

-- The id of what a firing submits; `request` tells triggers of one moment apart.
function schedule.run_id(s, at, request)
  return id.made(s.sid, format("%.0f", at), request or "")
end

-- Times ---------------------------------------------------------------------------------------------

-- How much later than its nominal time a firing is due: the same on every server.
function schedule.jitter(s, at)
  if s.jitter == nil or s.jitter == 0 then return 0 end
  local h = redis.sha1hex(s.path .. ":" .. format("%.0f", at))
  return tonumber(string.sub(h, 1, 8), 16) % (s.jitter + 1)
end

-- The next nominal time after the cursor, or nil: none is left, or (the second answer) it is not reckoned yet.
function schedule.next_time(s)
  local best = s.planned[1]
  for i = 1, #s.every, 2 do
    local every, anchor = s.every[i], s.every[i + 1]
    local at = anchor + (floor((s.cursor - anchor) / every) + 1) * every
    if best == nil or at < best then best = at end
  end
  if best and s.ends and best > s.ends then best = nil end
  if s.calendar and s.reckoned and (best == nil or best > s.reckoned) then
    return nil, s.ends == nil or s.reckoned < s.ends
  end
  return best, false
end

-- Times up to this one are decided.
function schedule.pass(s, at)
  s.cursor = at
  local from = 1
  while s.planned[from] and s.planned[from] <= at do from = from + 1 end
  if from > 1 then
    local rest = {}
    for i = from, #s.planned do rest[#rest + 1] = s.planned[i] end
    s.planned = rest
  end
  if s.reckoned and s.reckoned < at then s.reckoned = at end
end

-- What was supplied: the times after `after`, all up to `reckoned`.
function schedule.plan(s, times, reckoned)
  s.planned, s.reckoned, s.asked = times, reckoned, nil
  s.planned_size = #times
  schedule.pass(s, s.cursor)
end

-- Asks the engine for times when half of those it supplied are used.
function schedule.ask(tx, s)
  if s.asked or s.calendar == nil or s.reckoned == nil or s.paused or s.over then return end
  if #s.planned > floor((s.planned_size or 0) / 2) then return end
  schedule.ask_now(tx, s)
end

function schedule.ask_now(tx, s)
  if s.asked then return end
  s.asked = 1
  local namespace, name = schedule.split(s.path)
  outbox.owe(tx, "plan_schedule", { "namespace", namespace, "schedule", name })
end

-- History -------------------------------------------------------------------------------------------

function schedule.kept(s, number)
  return number > s.number - limits.schedule_firings_max
end

local function field(number) return format("%.0f", number) end

-- Keeps what became of a firing, unless newer ones have pushed it out: { nominal, at, cause, state, id, why, outcome,
-- ended, count, tries }.
function schedule.note_firing(tx, s, number, f)
  if not schedule.kept(s, number) then return end
  tx:hput(keys.firings(tx, s.path), field(number), pack(f))
end

-- The number of a firing that comes next.
function schedule.numbered(tx, s)
  s.number = s.number + 1
  if s.number > limits.schedule_firings_max then
    tx:hdel(keys.firings(tx, s.path), field(s.number - limits.schedule_firings_max))
  end
  return s.number
end

-- A firing that is still kept, to be changed and noted again; nil when it is not.
function schedule.firing(tx, s, number)
  if not schedule.kept(s, number) then return nil end
  local bytes = tx:hget(keys.firings(tx, s.path), field(number))
  return bytes and unpack_(bytes) or nil
end

function schedule.typed_firing(number, f)
  return {
    number = number, nominal_at = f[1], fired_at = f[2], cause = f[3], state = f[4], run_id = f[5] or nil,
    why = f[6] or nil, outcome = f[7] or nil, ended_at = f[8] or nil, count = f[9] or nil, tries = f[10] or nil,
  }
end

-- The last firings, newest first.
function schedule.firings(tx, s)
  local found, numbers, out = tx:hgetall(keys.firings(tx, s.path)) or {}, {}, {}
  for number in pairs(found) do numbers[#numbers + 1] = tonumber(number) end
  table.sort(numbers, function(a, b) return a > b end)
  for i, number in ipairs(numbers) do out[i] = schedule.typed_firing(number, unpack_(found[field(number)])) end
  return out
end

-- The firing that a request triggered before, while it is kept: its id is made of both.
function schedule.request(tx, s, request)
  for _, f in ipairs(schedule.firings(tx, s)) do
    if f.cause == "trigger" and f.run_id == schedule.run_id(s, f.nominal_at, request) then
      return { number = f.number, run_id = f.run_id }
    end
  end
end

-- Events --------------------------------------------------------------------------------------------

function schedule.tell(tx, s, kind, ...)
  local namespace, name = schedule.split(s.path)
  event.of_fleet(tx, "schedule." .. kind, namespace, nil, nil, "schedule", name, ...)
end

-- Views ---------------------------------------------------------------------------------------------

local function typed_backfill(b)
  return b and {
    from = b[1], to = b[2], cursor = b[3], overlap = b[4], total = b[5], fired = b[6], skipped = b[7],
    started_at = b[8], ended_at = b[9] or nil, stopped = b[10] == 1, actor = b[11],
  } or nil
end

function schedule.typed(s)
  local namespace, name = schedule.split(s.path)
  local refused
  for _, f in ipairs(s.flight) do refused = refused or f[8] or nil end
  local last = s.last and unpack_(s.last)
  return {
    namespace = namespace, name = name, schedule_id = s.sid, version = s.version, created_at = s.created,
    changed_at = s.changed, definition = s.definition, overlap = s.overlap, catch_up_ms = s.catch_up,
    jitter_ms = s.jitter, starts_at = s.starts, ends_at = s.ends, remaining = s.remaining, cursor = s.cursor,
    next_at = (not s.over and schedule.next_time(s)) or nil,
    paused = s.paused and { reason = s.paused[1] or nil, actor = s.paused[2], at = s.paused[3] } or nil,
    over = s.over ~= nil, fired = s.fired, skipped = s.skipped, missed = s.missed,
    last = last and schedule.typed_firing(last[1], last[2]) or nil, running = s.live - #s.flight,
    waiting = #s.waiting, unsubmitted = #s.flight, refused = refused, backfill = typed_backfill(s.backfill),
  }
end

return schedule
end

source["transition.fire"] = function(require, LIBRARY)
-- Firing a schedule: decides the times that have come, a bounded number per call. What is decided is owed to the
-- outbox, under an id made of the schedule and the nominal time, so that nothing is submitted twice.
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local schedule = require "record.schedule"
local timers = require "index.timers"

local fire = {}

local format = string.format

local function owe(tx, s, number)
  local namespace, name = schedule.split(s.path)
  outbox.owe(tx, "fire_schedule", {
    "namespace", namespace, "schedule", name, "number", format("%.0f", number),
  })
end

-- A firing that takes place: from now on it counts as running.
local function start(tx, s, number, at, decided, cause, request)
  local run = schedule.run_id(s, at, request)
  s.live = s.live + 1
  s.flight[#s.flight + 1] = { number, at, decided, cause, run, false, 0, false }
  tx:zadd(keys.schedule_live(tx, s.path), number, run)
  schedule.note_firing(tx, s, number, { at, decided, cause, "due", run })
  if cause == "time" and s.remaining then s.remaining = s.remaining - 1 end
  return run
end

local function skip(tx, s, number, at, decided, cause, why)
  s.skipped = s.skipped + 1
  if cause == "backfill" and s.backfill then s.backfill[7] = s.backfill[7] + 1 end
  schedule.note_firing(tx, s, number, { at, decided, cause, "skipped", false, why })
  schedule.tell(tx, s, "skipped", "nominal_at", at, "cause", cause, "why", why)
end

local function cancel_live(tx, s)
  local namespace, name = schedule.split(s.path)
  for _, run in ipairs(s.live_ids) do
    outbox.owe(tx, "cancel_run", { "namespace", namespace, "schedule", name, "run_id", run })
  end
end

-- One that waits and will not take place.
local function skip_waiting(tx, s, w, why)
  if w[4] == "backfill" and s.backfill then s.backfill[6] = s.backfill[6] - 1 end
  skip(tx, s, w[1], w[2], w[3], w[4], why)
end

-- What the overlap policy makes of a time that has come; "hold" leaves it for later.
local function decide(tx, s, at, cause, overlap)
  local now = tx.now
  if overlap == "allow" or (s.live == 0 and #s.waiting == 0) then
    local number = schedule.numbered(tx, s)
    start(tx, s, number, at, now, cause)
    owe(tx, s, number)
    if cause == "backfill" then s.backfill[6] = s.backfill[6] + 1 end
    return
  end
  if cause == "backfill" and overlap == "queue_all" then return "hold" end
  local number = schedule.numbered(tx, s)
  if overlap == "skip" then return skip(tx, s, number, at, now, cause, "overlap") end
  if overlap == "queue_one" and #s.waiting > 0 then return skip(tx, s, number, at, now, cause, "overlap") end
  if #s.waiting >= limits.schedule_waiting_max then return skip(tx, s, number, at, now, cause, "queue_full") end
  if overlap == "cancel_previous" then
    for _, w in ipairs(s.waiting) do skip_waiting(tx, s, w, "replaced") end
    s.waiting = {}
    cancel_live(tx, s)
  end
  s.waiting[#s.waiting + 1] = { number, at, now, cause }
  if cause == "backfill" then s.backfill[6] = s.backfill[6] + 1 end
  schedule.note_firing(tx, s, number, { at, now, cause, "waiting" })
end

-- A time that came too long ago, or a firing that was refused for too long.
local function miss(tx, s, number, at, decided, cause, why, run)
  s.missed = s.missed + 1
  schedule.note_firing(tx, s, number, { at, decided, cause, "missed", run or false, why })
  schedule.tell(tx, s, "missed", "nominal_at", at, "cause", cause, "why", why)
end

-- Nothing may be decided while a firing is refused, or while too many are not submitted yet.
local function held_back(s)
  if #s.flight >= limits.schedule_flight_max then return true end
  for _, f in ipairs(s.flight) do
    if f[8] then return true end
  end
  return false
end

local function finish(tx, s, why)
  if s.over then return end
  s.over = 1
  for _, w in ipairs(s.waiting) do skip_waiting(tx, s, w, "remaining") end
  s.waiting = {}
  schedule.tell(tx, s, "ended", "why", why)
end

-- Those that wait for an end that has come.
local function go_on(tx, s)
  while #s.waiting > 0 and (s.live == 0 or s.overlap == "allow") and #s.flight < limits.schedule_flight_max do
    local w = table.remove(s.waiting, 1)
    start(tx, s, w[1], w[2], w[3], w[4])
    owe(tx, s, w[1])
    if w[4] == "time" and s.remaining == 0 then return finish(tx, s, "remaining") end
  end
end

-- Times of the schedule itself. Answers how many were decided.
local function times(tx, s, most)
  local count = 0
  while count < most and not s.over and not held_back(s) do
    if s.remaining and s.remaining <= 0 then
      finish(tx, s, "remaining")
      break
    end
    local at, unknown = schedule.next_time(s)
    if at == nil then
      if not unknown then finish(tx, s, s.ends and "ends_at" or "no_times") end
      break
    end
    local due = at + schedule.jitter(s, at)
    if due > tx.now then break end
    if at + (s.jitter or 0) + s.catch_up < tx.now then
      -- Whatever came this long ago is counted by the engine, however much it is.
      schedule.ask_now(tx, s)
      break
    end
    schedule.pass(s, at)
    if due + s.catch_up < tx.now then
      miss(tx, s, schedule.numbered(tx, s), at, tx.now, "time", "too_late")
    else
      decide(tx, s, at, "time", s.overlap)
    end
    count = count + 1
  end
  return count
end

-- Times of a backfill that were supplied: { from, to, cursor, overlap, total, fired, skipped, started, ended, stopped,
-- actor, times, the time up to which all are there, asked }.
local function backfill(tx, s, most)
  local b = s.backfill
  if b == nil or b[9] then return end
  local planned, count = b[12], 0
  while count < most and #planned > 0 and not held_back(s) do
    local at = planned[1]
    if decide(tx, s, at, "backfill", b[4]) == "hold" then break end
    table.remove(planned, 1)
    b[3] = at
    count = count + 1
  end
  if #planned > 0 then return end
  if b[13] >= b[2] then
    b[3], b[9] = b[2], tx.now
    schedule.tell(tx, s, "backfilled", "from", b[1], "to", b[2], "fired", b[6], "skipped", b[7])
  elseif not b[14] then
    b[3], b[14] = b[13], true
    local namespace, name = schedule.split(s.path)
    outbox.owe(tx, "plan_backfill", { "namespace", namespace, "schedule", name })
  end
end

-- When the schedule next needs attention without anyone, or nil.
local function wake_at(s, now)
  local at
  for _, f in ipairs(s.flight) do
    if f[6] and (at == nil or f[6] < at) then at = f[6] end
  end
  if s.paused or held_back(s) then return at end
  local b = s.backfill
  -- More of a backfill can be decided at once, unless it waits for an end.
  if b and not b[9] and #b[12] > 0 and (b[4] ~= "queue_all" or (s.live == 0 and #s.waiting == 0)) then return now end
  if s.over then return at end
  local next_at = schedule.next_time(s)
  if next_at and not (s.asked and next_at + (s.jitter or 0) + s.catch_up < now) then
    local due = next_at + schedule.jitter(s, next_at)
    if at == nil or due < at then at = due end
  end
  return at
end

-- Decides what has come and saves the schedule.
function fire.advance(tx, s)
  if not s.paused then
    go_on(tx, s)
    local count = times(tx, s, limits.schedule_steps_max)
    backfill(tx, s, limits.schedule_steps_max - count)
    schedule.ask(tx, s)
  end
  schedule.save(tx, s, wake_at(s, tx.now))
end

-- The timer of a schedule is due.
function fire.due(tx, path)
  local s = schedule.load(tx, path)
  if s == nil then return timers.clear(tx, schedule.timer(path)) end
  for _, f in ipairs(s.flight) do
    if f[6] and f[6] <= tx.now then
      f[6] = false
      owe(tx, s, f[1])
    end
  end
  -- The entry stands at its time: it moves, or leaves, with the record.
  s.wake = s.wake or 0
  fire.advance(tx, s)
end

fire.skip = skip_waiting

function fire.full(s)
  return #s.flight >= limits.schedule_flight_max
end

-- A firing that a person asked for. The caller submits it; when it does not, the timer does.
function fire.now(tx, s, request)
  local number = schedule.numbered(tx, s)
  local run = start(tx, s, number, tx.now, tx.now, "trigger", request)
  s.flight[#s.flight][6] = tx.now + limits.schedule_again_ms_max
  return number, run
end

-- What became of firings ------------------------------------------------------------------------------

local function in_flight(s, number)
  for i, f in ipairs(s.flight) do
    if f[1] == number then return i, f end
  end
end

-- A firing that is owed, or nil.
function fire.find(s, number)
  local _, f = in_flight(s, number)
  return f
end

local function leave_live(tx, s, run)
  local key = keys.schedule_live(tx, s.path)
  if tx:zscore(key, run) then
    tx:zrem(key, run)
    s.live = s.live - 1
    for i, other in ipairs(s.live_ids) do
      if other == run then
        table.remove(s.live_ids, i)
        break
      end
    end
  end
end

local function submitted(tx, s, i, f)
  table.remove(s.flight, i)
  s.fired = s.fired + 1
  local entry = { f[2], f[3], f[4], "running", f[5] }
  schedule.note_firing(tx, s, f[1], entry)
  s.last = cmsgpack.pack({ f[1], entry })
  schedule.tell(tx, s, "fired", "nominal_at", f[2], "fired_at", f[3], "cause", f[4], "run_id", f[5])
end

local function over(tx, s, number, run, outcome)
  leave_live(tx, s, run)
  local entry = schedule.firing(tx, s, number)
  if entry and entry[5] == run then
    entry[4], entry[6], entry[7], entry[8] = "ended", false, outcome, tx.now
    schedule.note_firing(tx, s, number, entry)
  end
  local last = s.last and cmsgpack.unpack(s.last)
  if last and last[1] == number then
    last[2][4], last[2][6], last[2][7], last[2][8] = "ended", false, outcome, tx.now
    s.last = cmsgpack.pack(last)
  end
end

-- It was submitted, now or before; `outcome` says how it has ended already.
function fire.submitted(tx, s, number, outcome)
  local i, f = in_flight(s, number)
  if i == nil then return false end
  submitted(tx, s, i, f)
  if outcome then over(tx, s, number, f[5], outcome) end
  return true
end

-- It was refused: tried again within the catch-up window, and missed afterwards. The second answer is when.
function fire.refused(tx, s, number, code, final)
  local i, f = in_flight(s, number)
  if i == nil then return false end
  f[7] = f[7] + 1
  local wait = math.min(limits.schedule_again_ms_min * 2 ^ math.min(f[7] - 1, 10), limits.schedule_again_ms_max)
  local again = tx.now + wait
  if not final and again <= f[3] + s.catch_up then
    f[6], f[8] = again, code
    schedule.note_firing(tx, s, number, { f[2], f[3], f[4], "due", f[5], code, false, false, false, f[7] })
    return true, again
  end
  table.remove(s.flight, i)
  leave_live(tx, s, f[5])
  -- It did not take place, so another one may.
  if f[4] == "time" and s.remaining then s.remaining, s.over = s.remaining + 1, nil end
  miss(tx, s, number, f[2], f[3], f[4], code)
  return true
end

-- An execution or flow of the schedule has ended.
function fire.ended(tx, s, number, run, outcome)
  local i, f = in_flight(s, number)
  if i and f[5] == run then submitted(tx, s, i, f) end
  over(tx, s, number, run, outcome)
end

return fire
end

source["schedule.put"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local keys = require "lib.keys"
local reply = require "lib.reply"
local schedule = require "record.schedule"

local function everies(list)
  local flat = {}
  for i, e in ipairs(list) do flat[2 * i - 1], flat[2 * i] = e.every_ms, e.anchor_at end
  return flat
end

-- A schedule begins now, or right before its first moment.
local function begin(tx, s)
  s.cursor = math.max(tx.now, (s.starts or 0) - 1)
  s.planned, s.planned_size, s.reckoned, s.asked = {}, 0, s.calendar and s.cursor or nil, nil
end

define.fn {
  name = "ff_put_schedule",
  doc = "Creates a schedule, or replaces the definition of one: its pause, its counts and its firings stay. With "
    .. "`version` only if that is its version; 0 means that there is none yet. Other times than before begin now.",
  flags = {},
  args = { schedule = "new_schedule", schedule_id = "uuid", version = "count?", actor = "actor" },
  reply = {
    created = { schedule = "schedule", now = "time_ms" }, changed = { schedule = "schedule", now = "time_ms" },
  },
  errs = { "schedule_version_conflict" },
  call = function(tx, a, now)
    local n = a.schedule
    local path = schedule.path(n.namespace, n.name)
    local s = schedule.load(tx, path)
    local was = s and s.version or 0
    if a.version and a.version ~= was then
      return reply.err("schedule_version_conflict", { name = n.name, version = was, asked = a.version })
    end
    local fresh = s == nil
    if fresh then
      s = {
        path = path, sid = a.schedule_id, version = 0, created = now, number = 0, fired = 0, skipped = 0, missed = 0,
        live = 0, live_ids = {}, every = {}, planned = {}, flight = {}, waiting = {}, cursor = now,
      }
      tx:zadd(keys.schedules(tx), now, path)
    else
      -- What has come by now comes under the old definition.
      fire.advance(tx, s)
    end
    local same = not fresh and s.definition == n.definition and s.starts == n.starts_at and s.ends == n.ends_at
    s.definition, s.every, s.calendar = n.definition, everies(n.every), n.calendar and 1 or nil
    s.overlap, s.catch_up, s.jitter = n.overlap, n.catch_up_ms, n.jitter_ms
    s.starts, s.ends, s.remaining = n.starts_at, n.ends_at, n.remaining
    s.version, s.changed = s.version + 1, now
    s.over = nil
    if not same then begin(tx, s) end
    tx:set(keys.schedule_action(tx, path), n.action)
    schedule.tell(tx, s, fresh and "created" or "changed", "version", s.version, "actor", a.actor)
    fire.advance(tx, s)
    return reply.ok(fresh and "created" or "changed", { schedule = schedule.typed(s), now = now })
  end,
}
end

source["schedule.get"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_get_schedule",
  doc = "A schedule with what it submits.",
  flags = { "no-writes" },
  args = { namespace = "namespace", name = "schedule_name" },
  reply = { found = { schedule = "schedule", action = "schedule_action", now = "time_ms" } },
  errs = { "schedule_not_found" },
  call = function(tx, a, now)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    return reply.ok("found", {
      schedule = schedule.typed(s), action = tx:get(keys.schedule_action(tx, s.path)), now = now,
    })
  end,
}
end

source["schedule.list"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_list_schedules",
  doc = "Schedules of this partition, newest first; a page may be short, `more` says whether to go on after `last`.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", after = "schedule_position?", limit = "batch_size" },
  reply = { page = { items = "[schedule]", last = "schedule_position?", more = "bool", now = "time_ms" } },
  errs = {},
  call = function(tx, a, now)
    local top = a.after and string.format("%.0f", a.after.created_at) or "+inf"
    local found = tx:zhighest(keys.schedules(tx), top, "-inf", limits.list_looks_max)
    local items, last, more = {}, nil, #found == limits.list_looks_max
    for _, item in ipairs(found) do
      local seen = a.after and item.score == a.after.created_at and item.member >= a.after.path
      if not seen then
        if #items >= a.limit then
          more = true
          break
        end
        if a.namespace == nil or schedule.split(item.member) == a.namespace then
          local s = schedule.load(tx, item.member)
          if s then items[#items + 1] = schedule.typed(s) end
        end
        last = { created_at = item.score, path = item.member }
      end
    end
    return reply.ok("page", { items = items, last = last, more = more, now = now })
  end,
}
end

source["schedule.delete"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local schedule = require "record.schedule"
local timers = require "index.timers"

define.fn {
  name = "ff_delete_schedule",
  doc = "Removes a schedule with its firings. What it submitted goes on; what it has not submitted yet is not "
    .. "submitted any more.",
  flags = { "allow-oom" },
  args = { namespace = "namespace", name = "schedule_name", actor = "actor" },
  reply = { deleted = {} },
  errs = { "schedule_not_found" },
  call = function(tx, a)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    schedule.tell(tx, s, "deleted", "actor", a.actor)
    tx:del(keys.schedule(tx, s.path))
    tx:del(keys.schedule_action(tx, s.path))
    tx:del(keys.firings(tx, s.path))
    tx:del(keys.schedule_live(tx, s.path))
    tx:zrem(keys.schedules(tx), s.path)
    timers.clear(tx, schedule.timer(s.path))
    return reply.ok("deleted")
  end,
}
end

source["schedule.pause"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_pause_schedule",
  doc = "Stops a schedule from firing by itself. What has come by now comes first; a paused one keeps its first "
    .. "reason.",
  flags = { "allow-oom" },
  args = { namespace = "namespace", name = "schedule_name", reason = "reason?", actor = "actor" },
  reply = { paused = { schedule = "schedule" } },
  errs = { "schedule_not_found" },
  call = function(tx, a, now)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    if s.paused == nil then
      fire.advance(tx, s)
      s.paused = { a.reason or false, a.actor, now }
      schedule.tell(tx, s, "paused", "actor", a.actor, "reason", a.reason or "")
      fire.advance(tx, s)
    end
    return reply.ok("paused", { schedule = schedule.typed(s) })
  end,
}
end

source["schedule.resume"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_resume_schedule",
  doc = "Lets a paused schedule fire again. Times that passed meanwhile are not made up for; a backfill does that.",
  flags = {},
  args = { namespace = "namespace", name = "schedule_name", actor = "actor" },
  reply = { resumed = { schedule = "schedule" } },
  errs = { "schedule_not_found" },
  call = function(tx, a, now)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    if s.paused then
      schedule.tell(tx, s, "resumed", "actor", a.actor, "paused_at", s.paused[3])
      s.paused = nil
      schedule.pass(s, math.max(s.cursor, now))
      fire.advance(tx, s)
    end
    return reply.ok("resumed", { schedule = schedule.typed(s) })
  end,
}
end

source["schedule.trigger"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_trigger_schedule",
  doc = "Fires a schedule now, whatever runs, and while it is paused, too. The caller submits what `ff_take_firing` "
    .. "answers; when it does not, a timer does. The same request answers the first firing, while that is kept.",
  flags = {},
  args = { namespace = "namespace", name = "schedule_name", request_id = "request_id", actor = "actor" },
  reply = { triggered = { number = "count", run_id = "uuid" }, known = { number = "count", run_id = "uuid" } },
  errs = { "schedule_not_found", "try_again" },
  call = function(tx, a)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    local known = schedule.request(tx, s, a.request_id)
    if known then return reply.ok("known", known) end
    if fire.full(s) then return reply.err("try_again", { unsubmitted = #s.flight }) end
    local number, run = fire.now(tx, s, a.request_id)
    schedule.tell(tx, s, "triggered", "actor", a.actor, "run_id", run)
    fire.advance(tx, s)
    return reply.ok("triggered", { number = number, run_id = run })
  end,
}
end

source["schedule.backfill"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local limits = require "lib.limits"
local reply = require "lib.reply"
local schedule = require "record.schedule"

local function invalid(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

define.fn {
  name = "ff_backfill_schedule",
  doc = "Fires the times from `from` to `to`, both included, in order and under the overlap policy. The times are "
    .. "supplied in pieces (`ff_refill_backfill`); `total` says how many there are.",
  flags = {},
  args = {
    namespace = "namespace", name = "schedule_name", from = "time_ms", to = "time_ms", total = "count",
    overlap = "overlap?", actor = "actor",
  },
  reply = { started = { schedule = "schedule" } },
  errs = { "schedule_not_found", "schedule_busy" },
  call = function(tx, a, now)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    local b = s.backfill
    if b and not b[9] then
      return reply.err("schedule_busy", { from = b[1], to = b[2], cursor = b[3], started_at = b[8] })
    end
    if a.to < a.from then return invalid("to", "must not lie before from") end
    if a.to > now then return invalid("to", "must not lie in the future") end
    if a.total > limits.schedule_backfill_max then
      return invalid("from", string.format(
        "leads to %.0f firings, a backfill has at most %.0f", a.total, limits.schedule_backfill_max
      ))
    end
    s.backfill = {
      a.from, a.to, a.from - 1, a.overlap or s.overlap, a.total, 0, 0, now, false, false, a.actor, {}, a.from - 1,
      false,
    }
    schedule.tell(tx, s, "backfill_started", "from", a.from, "to", a.to, "total", a.total, "actor", a.actor)
    fire.advance(tx, s)
    return reply.ok("started", { schedule = schedule.typed(s) })
  end,
}
end

source["schedule.stop_backfill"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_stop_backfill",
  doc = "Ends a backfill where it is; what it fired goes on. One that has ended stays as it is.",
  flags = { "allow-oom" },
  args = { namespace = "namespace", name = "schedule_name", actor = "actor" },
  reply = { stopped = { schedule = "schedule" } },
  errs = { "schedule_not_found" },
  call = function(tx, a, now)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    local b = s.backfill
    if b and not b[9] then
      b[9], b[10], b[12], b[14] = now, 1, {}, false
      local kept = {}
      for _, w in ipairs(s.waiting) do
        if w[4] == "backfill" then fire.skip(tx, s, w, "stopped") else kept[#kept + 1] = w end
      end
      s.waiting = kept
      schedule.tell(tx, s, "backfill_stopped", "fired", b[6], "skipped", b[7], "actor", a.actor)
      fire.advance(tx, s)
    end
    return reply.ok("stopped", { schedule = schedule.typed(s) })
  end,
}
end

source["schedule.refill"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_refill_schedule",
  doc = "Supplies the times of a calendar after `after`: all of them up to `reckoned`, or all there will ever be when "
    .. "that is absent. Times up to `missed.to` came too long ago: they are counted. Under another version, or when "
    .. "those were counted by somebody else, nothing changes.",
  flags = {},
  args = {
    namespace = "namespace", name = "schedule_name", version = "count", after = "time_ms", times = "planned_times",
    reckoned = "time_ms?", missed = "missed_times?",
  },
  reply = { planned = {}, stale = {} },
  errs = { "schedule_not_found" },
  call = function(tx, a)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    local m = a.missed
    if a.version ~= s.version or a.after > s.cursor or (m and a.after ~= s.cursor) then
      -- Whoever came first did it; what is still needed is asked for anew.
      s.asked = nil
      fire.advance(tx, s)
      return reply.ok("stale")
    end
    if m then
      if m.count > 0 then
        local number = schedule.numbered(tx, s)
        s.missed = s.missed + m.count
        schedule.note_firing(tx, s, number, {
          m.last, tx.now, "time", "missed", false, "too_late", false, false, m.count,
        })
        schedule.tell(
          tx, s, "missed", "nominal_at", m.last, "first_at", m.first, "count", m.count, "cause", "time",
          "why", "too_late"
        )
      end
      schedule.pass(s, m.to)
    end
    schedule.plan(s, a.times, a.reckoned)
    fire.advance(tx, s)
    return reply.ok("planned")
  end,
}
end

source["schedule.refill_backfill"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_refill_backfill",
  doc = "Supplies the next times of a backfill: all of them after `after` and up to `reckoned`.",
  flags = {},
  args = {
    namespace = "namespace", name = "schedule_name", started_at = "time_ms", after = "time_ms",
    times = "planned_times", reckoned = "time_ms",
  },
  reply = { planned = {}, stale = {} },
  errs = { "schedule_not_found" },
  call = function(tx, a)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    local b = s.backfill
    if b == nil or b[9] or b[8] ~= a.started_at or b[13] ~= a.after then return reply.ok("stale") end
    b[12], b[13], b[14] = a.times, a.reckoned, false
    fire.advance(tx, s)
    return reply.ok("planned")
  end,
}
end

source["schedule.firings"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_list_firings",
  doc = "The last firings of a schedule with what became of each, newest first.",
  flags = { "no-writes" },
  args = { namespace = "namespace", name = "schedule_name" },
  reply = { firings = { items = "[firing]" } },
  errs = { "schedule_not_found" },
  call = function(tx, a)
    local s, refusal = schedule.find(tx, a)
    if refusal then return refusal end
    return reply.ok("firings", { items = schedule.firings(tx, s) })
  end,
}
end

source["schedule.take"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local keys = require "lib.keys"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_take_firing",
  doc = "What a firing submits, while that is owed: `settled` says that it was submitted, missed or forgotten.",
  flags = { "no-writes" },
  args = { namespace = "namespace", name = "schedule_name", number = "count" },
  reply = { due = { firing = "firing", action = "schedule_action" }, settled = {} },
  errs = {},
  call = function(tx, a)
    local s = schedule.find(tx, a)
    local f = s and fire.find(s, a.number)
    if f == nil then return reply.ok("settled") end
    return reply.ok("due", {
      firing = schedule.typed_firing(a.number, { f[2], f[3], f[4], "due", f[5] }),
      action = tx:get(keys.schedule_action(tx, s.path)),
    })
  end,
}
end

source["schedule.settle"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_settle_firing",
  doc = "Records what became of a firing's submission: it was accepted (`outcome` says how it has ended already), or "
    .. "refused. A refused one is tried again within the catch-up window unless this is the `last` try, and missed "
    .. "afterwards.",
  flags = { "allow-oom" },
  args = {
    namespace = "namespace", name = "schedule_name", number = "count", refused = "firing_why?",
    outcome = "firing_outcome?", last = "bool?",
  },
  reply = { settled = { again_at = "time_ms?" }, known = {} },
  errs = {},
  call = function(tx, a)
    local s = schedule.find(tx, a)
    if s == nil then return reply.ok("known") end
    local changed, again
    if a.refused then
      changed, again = fire.refused(tx, s, a.number, a.refused, a.last)
    else
      changed = fire.submitted(tx, s, a.number, a.outcome)
    end
    if not changed then return reply.ok("known") end
    fire.advance(tx, s)
    return reply.ok("settled", { again_at = again })
  end,
}
end

source["schedule.ended"] = function(require, LIBRARY)
local define = require "lib.define"
local fire = require "transition.fire"
local reply = require "lib.reply"
local schedule = require "record.schedule"

define.fn {
  name = "ff_end_firing",
  doc = "Tells a schedule that an execution or flow it submitted has ended: what waited for that may fire.",
  flags = { "allow-oom" },
  args = {
    namespace = "namespace", name = "schedule_name", number = "count", run_id = "uuid", outcome = "firing_outcome",
  },
  reply = { noted = {} },
  errs = {},
  call = function(tx, a)
    local s = schedule.find(tx, a)
    if s then
      fire.ended(tx, s, a.number, a.run_id, a.outcome)
      fire.advance(tx, s)
    end
    return reply.ok("noted")
  end,
}
end

source["keyring.note"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_note_keys",
  doc = "Notes the ids of a process's token keys, never the keys. A process that shares no id with what is noted is "
    .. "told: its tokens would be nobody else's.",
  flags = { "allow-oom" },
  args = { key_ids = "key_ids", gone = "key_ids?" },
  reply = { noted = { key_ids = "key_ids" }, foreign = { key_ids = "key_ids" } },
  errs = {},
  call = function(tx, a)
    local known = tx:hgetall(keys.keyring(tx)) or {}
    local shared = next(known) == nil
    for _, id in ipairs(a.key_ids) do shared = shared or known[id] ~= nil end
    if shared then
      for _, id in ipairs(a.gone or {}) do
        if known[id] then tx:hdel(keys.keyring(tx), id) end
        known[id] = nil
      end
      for _, id in ipairs(a.key_ids) do
        if known[id] == nil then
          tx:hset(keys.keyring(tx), { id, tx.now })
          known[id] = true
        end
      end
    end
    local ids = {}
    for id in pairs(known) do ids[#ids + 1] = id end
    table.sort(ids)
    return reply.ok(shared and "noted" or "foreign", { key_ids = ids })
  end,
}
end

source["operator.record"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"

define.fn {
  name = "ff_record_action",
  doc = "Records what an operator did that changes no record of its own: the keys are not in the store, and a repair "
    .. "has no one place.",
  flags = { "allow-oom" },
  args = { action = "recorded_action", actor = "actor", key_id = "key_id?" },
  reply = { recorded = {} },
  errs = {},
  call = function(tx, a)
    local data = { "actor", a.actor }
    if a.key_id then data[3], data[4] = "key_id", a.key_id end
    event.of_fleet(tx, "operator." .. a.action, nil, nil, nil, unpack(data))
    return reply.ok("recorded")
  end,
}
end

source["record.access"] = function(require, LIBRARY)
-- What the bearer of a token may do. The token itself is nowhere: only its digest, which finds the record.
local keys = require "lib.keys"
local packed = require "record.packed"

local access = {}

function access.open(raw)
  return packed.open_access("access", raw)
end

-- The record by its id; nil when there is none.
function access.load(tx, id)
  local raw = tx:hget(keys.access(tx), id)
  return raw and access.open(raw) or nil
end

function access.save(tx, record)
  tx:hset(keys.access(tx), { record.access_id, packed.close_access(record) })
  tx:hset(keys.access_digests(tx), { record.digest, record.access_id })
end

function access.remove(tx, record)
  tx:hdel(keys.access(tx), record.access_id)
  tx:hdel(keys.access_digests(tx), record.digest)
end

-- The typed form: without the digest.
function access.typed(record)
  return {
    access_id = record.access_id, name = record.name, roles = record.roles, namespaces = record.namespaces,
    lanes = record.lanes, capabilities = record.capabilities, created_at = record.created_at,
    created_by = record.created_by, expires_at = record.expires_at,
  }
end

return access
end

source["access.grant"] = function(require, LIBRARY)
local access = require "record.access"
local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

-- Nothing but the digest tells two grants of one id apart.
local function same(known, a)
  return known.digest == a.digest and known.name == a.name
end

define.fn {
  name = "ff_grant_access",
  doc = "Lets the bearer of a token act: its roles, and where. Only the token's digest is kept.",
  flags = {},
  args = {
    access_id = "uuid", digest = "token_digest", name = "access_name", roles = "roles", namespaces = "namespaces?",
    lanes = "lane_names?", capabilities = "capabilities?", expires_at = "time_ms?", actor = "actor",
  },
  reply = { granted = { access = "access" } },
  errs = { "idempotency_conflict" },
  call = function(tx, a, now)
    if #a.roles == 0 then
      return reply.err("invalid_argument", { field = "roles", problem = "must name at least one role" })
    end
    for _, field in ipairs { "namespaces", "lanes" } do
      if a[field] and #a[field] == 0 then
        return reply.err("invalid_argument", { field = field, problem = "must name at least one, or be absent" })
      end
    end
    if a.expires_at and a.expires_at <= now then
      return reply.err("invalid_argument", { field = "expires_at", problem = "has passed" })
    end
    local known = access.load(tx, a.access_id)
    if known then
      if not same(known, a) then return reply.err("idempotency_conflict", { access_id = a.access_id }) end
      return reply.ok("granted", { access = access.typed(known) })
    end
    local taken = tx:hget(keys.access_digests(tx), a.digest)
    if taken then return reply.err("idempotency_conflict", { access_id = taken }) end
    if tx:hlen(keys.access(tx)) >= limits.accesses_max then
      return reply.err("invalid_argument", {
        field = "access_id", problem = string.format("there are %d tokens already", limits.accesses_max),
      })
    end
    local record = {
      access_id = a.access_id, digest = a.digest, name = a.name, roles = a.roles, namespaces = a.namespaces,
      lanes = a.lanes, capabilities = a.capabilities, created_at = now, created_by = a.actor, expires_at = a.expires_at,
    }
    access.save(tx, record)
    event.of_fleet(tx, "operator.token_created", nil, nil, nil, "access_id", a.access_id, "name", a.name,
      "roles", table.concat(a.roles, " "), "actor", a.actor)
    return reply.ok("granted", { access = access.typed(record) })
  end,
}
end

source["access.find"] = function(require, LIBRARY)
local access = require "record.access"
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_find_access",
  doc = "What the bearer of the token with this digest may do. A token that has expired is nobody's.",
  flags = { "no-writes" },
  args = { digest = "token_digest" },
  reply = { found = { access = "access" } },
  errs = { "access_not_found" },
  call = function(tx, a, now)
    local id = tx:hget(keys.access_digests(tx), a.digest)
    local record = id and access.load(tx, id)
    if record == nil or (record.expires_at and record.expires_at <= now) then return reply.err("access_not_found") end
    return reply.ok("found", { access = access.typed(record) })
  end,
}
end

source["access.list"] = function(require, LIBRARY)
local access = require "record.access"
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_list_access",
  doc = "Who may act by a token, in the order of their ids; never a token or its digest.",
  flags = { "no-writes" },
  args = { after = "uuid?", limit = "list_limit" },
  reply = { page = { items = "[access]", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local ids, records = {}, tx:hgetall(keys.access(tx)) or {}
    for id in pairs(records) do
      if a.after == nil or id > a.after then ids[#ids + 1] = id end
    end
    table.sort(ids)
    local items = {}
    for i = 1, math.min(#ids, a.limit) do items[i] = access.typed(access.open(records[ids[i]])) end
    return reply.ok("page", { items = items, more = #ids > a.limit })
  end,
}
end

source["access.revoke"] = function(require, LIBRARY)
local access = require "record.access"
local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"

define.fn {
  name = "ff_revoke_access",
  doc = "The token's bearer may do nothing any more; servers that remember it are told.",
  flags = { "allow-oom" },
  args = { access_id = "uuid", actor = "actor" },
  reply = { revoked = { access = "access" } },
  errs = { "access_not_found" },
  call = function(tx, a)
    local record = access.load(tx, a.access_id)
    if record == nil then return reply.err("access_not_found", { access_id = a.access_id }) end
    access.remove(tx, record)
    event.of_fleet(tx, "operator.token_revoked", nil, nil, nil, "access_id", a.access_id, "name", record.name,
      "actor", a.actor)
    tx:announce("access")
    return reply.ok("revoked", { access = access.typed(record) })
  end,
}
end

source["quota.set_capacity"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local holders = require "index.holders"

define.fn {
  name = "ff_set_capacity",
  doc = "Says how many holders a holder set has room for; without a limit it takes all. An older version never "
    .. "replaces a newer one.",
  flags = { "allow-oom" },
  args = { set = "holder_set", limit = "max_active?", version = "count" },
  reply = { set = { held = "count" }, newer = { version = "count" } },
  errs = {},
  call = function(tx, a)
    local capacity = holders.capacity(tx, a.set)
    local held = tx:zcard(keys.holders(tx, a.set))
    if capacity and capacity.version > a.version then return reply.ok("newer", { version = capacity.version }) end
    local key = keys.capacity(tx, a.set)
    tx:hset(key, { "version", a.version })
    if a.limit then tx:hset(key, { "limit", a.limit }) else tx:hdel(key, "limit") end
    if capacity then holders.announce_room(tx, a.set, capacity.limit, held, a.limit, held) end
    return reply.ok("set", { held = held })
  end,
}
end

source["quota.admit"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local holders = require "index.holders"

define.fn {
  name = "ff_admit_holders",
  doc = "Enters holders into a holder set, in order, as far as there is room, each until its deadline; who is in it "
    .. "already stays. `counted` enters executions that run already, room or not.",
  flags = { "allow-oom" },
  args = { set = "holder_set", holders = "candidates", counted = "bool?" },
  reply = { admitted = { holder_ids = "[holder_id]", held = "count", limit = "max_active?" } },
  errs = { "capacity_unknown" },
  call = function(tx, a)
    local capacity = holders.capacity(tx, a.set)
    if capacity == nil and not a.counted then return reply.err("capacity_unknown", { set = a.set }) end
    local limit = capacity and capacity.limit
    local key = keys.holders(tx, a.set)
    local held, admitted, first = tx:zcard(key), {}, nil
    for _, holder in ipairs(a.holders) do
      local member, deadline = holders.member(holder), holder.expires_at
      local inside = tx:zscore(key, member) ~= nil
      if not inside and (a.counted or (deadline > tx.now and (limit == nil or held < limit))) then
        tx:zadd(key, deadline, member)
        held, inside = held + 1, true
        first = math.min(first or deadline, deadline)
      end
      if inside then admitted[#admitted + 1] = holder.holder_id end
    end
    if first then holders.watch(tx, a.set, first) end
    return reply.ok("admitted", { holder_ids = admitted, held = held, limit = limit })
  end,
}
end

source["quota.confirm"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local holders = require "index.holders"

define.fn {
  name = "ff_confirm_holders",
  doc = "Moves the deadlines of holders whose executions were asked for: without one they stay until released. Who has "
    .. "left does not come back.",
  flags = { "allow-oom" },
  args = { set = "holder_set", holders = "holders" },
  reply = { confirmed = { count = "count" } },
  errs = {},
  call = function(tx, a)
    local key = keys.holders(tx, a.set)
    local count, first = 0, nil
    for _, holder in ipairs(a.holders) do
      local member = holders.member(holder)
      if tx:zscore(key, member) then
        tx:zadd(key, holder.expires_at or holders.open_ended, member)
        count = count + 1
        if holder.expires_at then first = math.min(first or holder.expires_at, holder.expires_at) end
      end
    end
    if first then holders.watch(tx, a.set, first) end
    return reply.ok("confirmed", { count = count })
  end,
}
end

source["quota.release"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local holders = require "index.holders"

define.fn {
  name = "ff_release_holders",
  doc = "Takes holders out of a holder set; who is not in it is passed over. A full set that has room again says so.",
  flags = { "allow-oom" },
  args = { set = "holder_set", holders = "holders" },
  reply = { released = { count = "count", held = "count" } },
  errs = {},
  call = function(tx, a)
    local key = keys.holders(tx, a.set)
    local before, count = tx:zcard(key), 0
    for _, holder in ipairs(a.holders) do
      local member = holders.member(holder)
      if tx:zscore(key, member) then
        tx:zrem(key, member)
        count = count + 1
      end
    end
    if count > 0 then
      local capacity = holders.capacity(tx, a.set)
      local limit = capacity and capacity.limit
      holders.announce_room(tx, a.set, limit, before, limit, before - count)
    end
    return reply.ok("released", { count = count, held = before - count })
  end,
}
end

source["quota.list"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local holders = require "index.holders"

define.fn {
  name = "ff_list_holders",
  doc = "Who is in a holder set, the earliest deadline first and those without one last, and how much room it has.",
  flags = { "no-writes" },
  args = { set = "holder_set", offset = "count", limit = "list_limit" },
  reply = {
    holders = { items = "[holder]", held = "count", capacity = "max_active?", version = "count?", now = "time_ms" },
  },
  errs = {},
  call = function(tx, a)
    local key = keys.holders(tx, a.set)
    local capacity = holders.capacity(tx, a.set)
    local items = {}
    for i, item in ipairs(tx:zlowest(key, "-inf", "+inf", a.limit, a.offset)) do items[i] = holders.typed(item) end
    return reply.ok("holders", {
      items = items, held = tx:zcard(key), capacity = capacity and capacity.limit,
      version = capacity and capacity.version, now = tx.now,
    })
  end,
}
end

source["quota.check"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local reply = require "lib.reply"
local holders = require "index.holders"
local execution = require "record.execution"
local holds = require "record.holds"

-- The releases of this set that the partition still owes.
local function owed(tx, set)
  local members = {}
  for _, entry in ipairs(tx:xrange(keys.outbox(tx), "-", "+", limits.list_limit_max)) do
    local effect = outbox.parse(entry)
    if effect.type == "release_holder" and effect.data.set == set then members[holders.member(effect.data)] = true end
  end
  return members
end

local function state(tx, rec, a, holder)
  if rec and holds.keeps(rec, holder.holder_id, a.set) then return "running" end
  if rec == nil or holds.of(rec) ~= holder.holder_id or not holds.in_set(rec, a.set) then return "gone" end
  if rec.phase == "active" then return "running" end
  -- A grant that ran out cannot be consumed any more.
  if tx.now < rec.grant_until then return "granted", rec.grant_until end
  return "gone"
end

define.fn {
  name = "ff_check_holders",
  doc = "What the executions of this partition say about holders of a holder set: granted until a time, running, gone, "
    .. "or gone with the release still owed.",
  flags = { "no-writes" },
  args = { set = "holder_set", holders = "holders" },
  reply = { checked = { items = "[held_slot]" } },
  errs = {},
  call = function(tx, a)
    local items, releases = {}, nil
    for i, holder in ipairs(a.holders) do
      local is, deadline = state(tx, execution.load(tx, holder.execution_id), a, holder)
      if is == "gone" then
        releases = releases or owed(tx, a.set)
        if releases[holders.member(holder)] then is = "owed" end
      end
      items[i] = { execution_id = holder.execution_id, holder_id = holder.holder_id, state = is, expires_at = deadline }
    end
    return reply.ok("checked", { items = items })
  end,
}
end

source["quota.adopt"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local home = require "index.home"
local queues = require "index.queues"
local execution = require "record.execution"
local holds = require "record.holds"

-- Up to `count` running executions of a queue behind a position, oldest first.
local function running(tx, key, after, count)
  local from = string.format("%.0f", home.active_from + (after and after.created_at or 0))
  local out, skip = {}, 0
  while #out < count do
    local page = tx:zlowest(key, from, "+inf", limits.list_looks_max, skip)
    for _, item in ipairs(page) do
      local behind = after == nil or item.score > home.active_from + after.created_at
        or item.member > after.execution_id
      if behind and #out < count then out[#out + 1] = item end
    end
    if #page < limits.list_looks_max then break end
    skip = skip + limits.list_looks_max
  end
  return out
end

-- The execution as a holder. With `note`, one that started before its lane was limited is named a holder now.
local function holder_of(tx, id, set, note)
  return tx:item(function()
    local rec = execution.load(tx, id)
    if rec == nil or rec.phase ~= "active" then return reply.err("execution_not_active") end
    if not holds.in_set(rec, set) then
      if not note then return { ok = false } end
      holds.join(rec, set)
      execution.save(tx, rec)
    end
    return { ok = { execution_id = id, holder_id = holds.of(rec) } }
  end)
end

-- The queues of a lane from the one a walk has reached, in order.
local function queues_from(tx, path, after)
  local names = {}
  for _, entry in ipairs(queues.all(tx, path)) do
    if after == nil or entry.queue >= after.queue then names[#names + 1] = entry.queue end
  end
  return names
end

define.fn {
  name = "ff_adopt_holders",
  doc = "The running executions of a lane as holders of its holder set, a page at a time. Those that started before "
    .. "the lane was limited are made holders with `note`, and counted without.",
  flags = { "allow-oom" },
  args = { namespace = "namespace", lane = "lane", note = "bool", after = "queue_position?", limit = "batch_size" },
  reply = { adopted = { holders = "[holder]", unnoted = "count", next = "queue_position?" } },
  errs = { "try_again" },
  call = function(tx, a)
    local path = a.namespace .. "/" .. a.lane
    local found, unnoted, seen, last = {}, 0, 0, nil
    for _, name in ipairs(queues_from(tx, path, a.after)) do
      local after = a.after and a.after.queue == name and a.after or nil
      for _, item in ipairs(running(tx, keys.queue_named(tx, path, name), after, a.limit - seen)) do
        -- A record that cannot be read is fsck's to report.
        local answer = holder_of(tx, item.member, holds.of_lane(path), a.note)
        if answer and answer.err == "try_again" then
          if last == nil then return answer end
          return reply.ok("adopted", { holders = found, unnoted = unnoted, next = last })
        end
        if answer and answer.ok then found[#found + 1] = answer.ok end
        if answer and answer.ok == false then unnoted = unnoted + 1 end
        seen, last = seen + 1, { queue = name, created_at = item.score - home.active_from, execution_id = item.member }
      end
      if seen == a.limit then return reply.ok("adopted", { holders = found, unnoted = unnoted, next = last }) end
    end
    return reply.ok("adopted", { holders = found, unnoted = unnoted })
  end,
}
end

source["quota.put"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local quota = require "record.quota"
local reply = require "lib.reply"
local outbox = require "lib.outbox"
local gone = require "index.gone"

define.fn {
  name = "ff_put_quota",
  doc = "Creates a quota, or with the version it has now replaces its definition; the same definition again changes "
    .. "nothing. Running work is never stopped by a lower limit.",
  flags = {},
  args = { quota = "quota", version = "count?", actor = "actor?" },
  reply = {
    created = { entry = "quota_entry" }, duplicate = { entry = "quota_entry" }, replaced = { entry = "quota_entry" },
  },
  errs = { "quota_not_found", "quota_version_conflict" },
  call = function(tx, a)
    local n = a.quota
    if not (n.rate or n.concurrency or n.weighted) then
      return reply.err("invalid_argument", {
        field = "quota", problem = "must have a rate, a concurrency or a weighted part",
      })
    end
    local packed = quota.pack(n)
    local known = quota.load(tx, n.quota_id)
    if known == nil then
      if a.version then return reply.err("quota_not_found", { quota_id = n.quota_id }) end
      -- One of the same name is still being taken apart.
      if quota.load(tx, n.quota_id, true) then
        return reply.err("quota_version_conflict", { quota_id = n.quota_id, problem = "is being deleted" })
      end
      quota.save(tx, quota.new(tx, n.quota_id, packed))
      tx:zadd(keys.quotas(tx), tx.now, n.quota_id)
      -- Work may wait for it that was refused because it was not there.
      if gone.back(tx, n.quota_id) then outbox.owe(tx, "quota_returned", { "quota_id", n.quota_id }) end
      event.of_fleet(tx, "quota.created", n.namespace, nil, nil, unpack(quota.told(n.quota_id, a.actor)))
      return reply.ok("created", { entry = { quota = n, version = 1, created_at = tx.now, keys = 0 } })
    end
    local count = tx:zcard(keys.quota_keys(tx, n.quota_id))
    if known.packed == packed then return reply.ok("duplicate", { entry = quota.typed(known, count) }) end
    if a.version ~= known.version then
      return reply.err("quota_version_conflict", { quota_id = n.quota_id, version = known.version })
    end
    local version = known.version + 1
    known.packed, known.version, known.changed = packed, version, tx.now
    if count > 0 then quota.walk(tx, known) else quota.save(tx, known) end
    event.of_fleet(tx, "quota.changed", n.namespace, nil, nil, unpack(quota.told(n.quota_id, a.actor)))
    return reply.ok("replaced", { entry = { quota = n, version = version, created_at = known.created, keys = count } })
  end,
}
end

source["quota.get"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local quota = require "record.quota"
local reply = require "lib.reply"
local capacity = require "index.quota_capacity"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_get_quota",
  doc = "A quota and, of the key asked for, how far each of its parts is used, who holds it and who waits.",
  flags = { "no-writes" },
  args = { quota_id = "quota_id", key = "quota_key?" },
  reply = { quota = { entry = "quota_entry", state = "quota_key_state?", now = "time_ms" } },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local state
    if a.key then
      local k = quota_key.load(tx, q, quota.digest(a.key), a.key, true)
      local throttled = k.throttled and k.throttled > tx.now and k.throttled or nil
      state = {
        key = a.key, parts = capacity.uses(tx, k), held = k.held, waiting = k.waiting + k.too_large,
        throttled_until = throttled,
      }
    end
    return reply.ok("quota", {
      entry = quota.typed(q, tx:zcard(keys.quota_keys(tx, q.id))), state = state, now = tx.now,
    })
  end,
}
end

source["quota.list_quotas"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local quota = require "record.quota"
local reply = require "lib.reply"

define.fn {
  name = "ff_list_quotas",
  doc = "Quotas of this partition, newest first; a page may be short, `more` says whether to go on after `last`.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", after = "quota_position?", limit = "list_limit" },
  reply = { page = { items = "[quota_entry]", last = "quota_position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local looks = limits.list_looks_max
    local top = a.after and string.format("%.0f", a.after.created_at) or "+inf"
    local found = tx:zhighest(keys.quotas(tx), top, "-inf", looks)
    local items, last, more = {}, nil, #found == looks
    for _, item in ipairs(found) do
      local seen = a.after and item.score == a.after.created_at and item.member >= a.after.quota_id
      if not seen then
        if #items >= a.limit then
          more = true
          break
        end
        local q = quota.load(tx, item.member)
        if q and (a.namespace == nil or q.definition.namespace == a.namespace) then
          items[#items + 1] = quota.typed(q, tx:zcard(keys.quota_keys(tx, q.id)))
        end
        last = { created_at = item.score, quota_id = item.member }
      end
    end
    return reply.ok("page", { items = items, last = last, more = more })
  end,
}
end

source["quota.list_keys"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local quota = require "record.quota"
local reply = require "lib.reply"
local capacity = require "index.quota_capacity"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_list_quota_keys",
  doc = "The keys of a quota that are in use, in the order of their first use, with the holder set of each; `next` "
    .. "says where to go on.",
  flags = { "no-writes" },
  args = { quota_id = "quota_id", after = "count", limit = "batch_size" },
  reply = { page = { items = "[quota_key_use]", next = "count?" } },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local items, last = {}, nil
    local from = "(" .. string.format("%.0f", a.after)
    for i, item in ipairs(tx:zlowest(keys.quota_keys(tx, q.id), from, "+inf", a.limit)) do
      local k = quota_key.load(tx, q, item.member, nil, true)
      local throttled = k.throttled and k.throttled > tx.now and k.throttled or nil
      items[i] = {
        set = k.set,
        state = {
          key = k.key or "?", parts = capacity.uses(tx, k), held = k.held, waiting = k.waiting + k.too_large,
          throttled_until = throttled,
        },
      }
      last = item.score
    end
    return reply.ok("page", { items = items, next = #items == a.limit and last or nil })
  end,
}
end

source["quota.delete"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local gone = require "index.gone"
local quota = require "record.quota"
local reply = require "lib.reply"

define.fn {
  name = "ff_delete_quota",
  doc = "Deletes a quota: nothing that names it is admitted any more. Who waits for it is called and refused; who runs "
    .. "goes on.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", actor = "actor?" },
  reply = { deleted = {} },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then
      if quota.load(tx, a.quota_id, true) or gone.had(tx, a.quota_id) then return reply.ok("deleted") end
      return reply.err("quota_not_found", { quota_id = a.quota_id })
    end
    q.deleted = 1
    quota.walk(tx, q)
    event.of_fleet(tx, "quota.deleted", q.definition.namespace, nil, nil, unpack(quota.told(q.id, a.actor)))
    return reply.ok("deleted")
  end,
}
end

source["quota.ask"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local quota = require "record.quota"
local ask = require "transition.ask"

define.fn {
  name = "ff_admit_quota",
  doc = "Asks a quota for executions, in order, each under its key: every part passes or nothing is taken. Nobody "
    .. "takes the room of those who were called or stand in line before it. Who is refused waits for its turn; who is "
    .. "in stays.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", candidates = "quota_candidates" },
  reply = { answered = { items = "[quota_answer]" } },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q, items = ask.quota(tx, a.quota_id, a.candidates), {}
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    for i, c in ipairs(a.candidates) do
      local item = c.wall or {}
      item.holder_id, item.admitted = c.holder_id, c.admitted or false
      item.keep = c.admitted and quota.kept_set(q, c.key) or nil
      items[i] = item
    end
    return reply.ok("answered", { items = items })
  end,
}
end

source["quota.return"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local give_back = require "transition.give_back"

define.fn {
  name = "ff_return_quota",
  doc = "Takes holders out of a quota; who is not in it is passed over. Who never ran gives back what its start took. "
    .. "Whoever waits for the room is called.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", items = "quota_returns" },
  reply = { returned = { count = "count" } },
  errs = {},
  call = function(tx, a)
    return reply.ok("returned", { count = give_back.quota(tx, a.quota_id, a.items) })
  end,
}
end

source["quota.give_up"] = function(require, LIBRARY)
local define = require "lib.define"
local quota = require "record.quota"
local reply = require "lib.reply"
local line = require "index.quota_line"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_give_up_called",
  doc = "Executions that a quota has called ended or went elsewhere meanwhile: nobody waits for them, and the next in "
    .. "line are called. Who is not expected is passed over.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", items = "quota_absences" },
  reply = { given_up = { count = "count" } },
  errs = {},
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    local known, order, count = {}, {}, 0
    for _, item in ipairs(q and a.items or {}) do
      local k = known[item.key_digest]
      if k == nil then
        k = quota_key.load(tx, q, item.key_digest) or false
        known[item.key_digest] = k
      end
      if k and line.give_up(k, item.execution_id) then
        if not k.touched then k.touched, order[#order + 1] = true, k end
        count = count + 1
      end
    end
    for _, k in ipairs(order) do quota_key.save(tx, k) end
    return reply.ok("given_up", { count = count })
  end,
}
end

source["quota.settle"] = function(require, LIBRARY)
local define = require "lib.define"
local quota = require "record.quota"
local reply = require "lib.reply"
local holders = require "index.holders"
local capacity = require "index.quota_capacity"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_settle_quota",
  doc = "Says what an admitted execution really weighed. It may be more than the limit: later admissions wait for it. "
    .. "`gone`: the window has passed it, or it weighs nothing here.",
  flags = { "allow-oom" },
  args = {
    quota_id = "quota_id", key = "quota_key", execution_id = "execution_id", holder_id = "holder_id", weight = "count",
  },
  reply = { settled = { used = "count", limit = "count" }, gone = {} },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local k = quota_key.load(tx, q, quota.digest(a.key))
    if k == nil or not capacity.reweigh(tx, k, holders.member(a), a.weight) then return reply.ok("gone") end
    quota_key.save(tx, k)
    return reply.ok("settled", { used = math.max(k.sum, 0), limit = q.definition.weighted.limit })
  end,
}
end

source["quota.throttle"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local quota = require "record.quota"
local reply = require "lib.reply"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_throttle_quota",
  doc = "Nothing starts under this key of a quota until a time: a provider said so. A later time wins over an earlier "
    .. "one; one that has passed changes nothing, and 0 ends the throttle.",
  flags = {},
  args = { quota_id = "quota_id", key = "quota_key", ["until"] = "time_ms", actor = "actor?" },
  reply = { throttled = { ["until"] = "time_ms" }, cleared = {} },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local k = quota_key.load(tx, q, quota.digest(a.key), a.key, true)
    local wanted, before = a["until"], k.throttled and k.throttled > tx.now and k.throttled or nil
    if wanted == 0 then
      k.throttled = nil
    else
      k.throttled = wanted > tx.now and math.max(wanted, before or 0) or before
    end
    quota_key.save(tx, k)
    -- A provider's word that changes nothing is no event.
    if k.throttled ~= before then
      local data = quota.told(q.id, a.actor, a.key)
      if k.throttled then data[#data + 1], data[#data + 2] = "until", string.format("%.0f", k.throttled) end
      local kind = k.throttled and "quota.throttled" or "quota.unthrottled"
      event.of_fleet(tx, kind, q.definition.namespace, nil, nil, unpack(data))
    end
    if k.throttled then return reply.ok("throttled", { ["until"] = k.throttled }) end
    return reply.ok("cleared")
  end,
}
end

source["quota.list_waiters"] = function(require, LIBRARY)
local define = require "lib.define"
local quota = require "record.quota"
local reply = require "lib.reply"
local awaits = require "index.awaits"
local quota_key = require "index.quota_key"

define.fn {
  name = "ff_list_quota_waiters",
  doc = "Who waits under a key of a quota, the next to be called first, and how many do; those that can never pass "
    .. "come last. An execution that ended meanwhile is in line until it is called.",
  flags = { "no-writes" },
  args = { quota_id = "quota_id", key = "quota_key", after = "awaits_position?", limit = "batch_size" },
  reply = { waiting = { items = "[quota_waiter]", count = "count", next = "awaits_position?" } },
  errs = { "quota_not_found" },
  call = function(tx, a)
    local q = quota.load(tx, a.quota_id)
    if q == nil then return reply.err("quota_not_found", { quota_id = a.quota_id }) end
    local k = quota_key.load(tx, q, quota.digest(a.key), a.key, true)
    local items, last = {}, nil
    for _, line in ipairs({ k.waiters, k.oversized }) do
      local never = line == k.oversized
      -- A position says in which of the two lines it is.
      local after = a.after and (a.after.never or false) == never and a.after or nil
      if not (a.after and a.after.never and not never) then
        for _, item in ipairs(awaits.page(tx, line, after, a.limit - #items)) do
          items[#items + 1] = { execution_id = item.member, score = item.score, never = never }
          last = { score = item.score, execution_id = item.member, never = never }
        end
      end
    end
    return reply.ok("waiting", {
      items = items, count = k.waiting + k.too_large, next = #items == a.limit and last or nil,
    })
  end,
}
end

source["quota.stats"] = function(require, LIBRARY)
local define = require "lib.define"
local holds = require "record.holds"
local keys = require "lib.keys"
local quota = require "record.quota"
local reply = require "lib.reply"
local quota_key = require "index.quota_key"

-- Of the keys that came into use first, a bounded number: how many slots are held, how many executions wait, how many
-- keys are throttled.
local function stats_of(tx, q, keys_max)
  local s = {
    quota_id = q.id, namespace = q.definition.namespace, created_at = q.created,
    keys = tx:zcard(keys.quota_keys(tx, q.id)), looked = 0, held = 0, waiting = 0, throttled = 0,
  }
  if s.keys == 0 then return s end
  for _, item in ipairs(tx:zlowest(keys.quota_keys(tx, q.id), "-inf", "+inf", keys_max)) do
    local function part(name) return keys.quota_part(tx, q.id, name, item.member) end
    local throttled = quota_key.throttled(tx, q.id, item.member)
    s.looked = s.looked + 1
    s.held = s.held + tx:zcard(keys.holders(tx, holds.of_quota(q.id, item.member)))
    s.waiting = s.waiting + tx:zcard(part("waiters")) + tx:zcard(part("oversized"))
    if throttled and throttled > tx.now then s.throttled = s.throttled + 1 end
  end
  return s
end

define.fn {
  name = "ff_quota_stats",
  doc = "The quotas of this partition that were made first, at most `limit`, and how they stand over their keys that "
    .. "came into use first, at most `keys_max` of each; `quotas` is how many there are.",
  flags = { "no-writes" },
  args = { limit = "batch_size", keys_max = "batch_size" },
  reply = { stats = { items = "[quota_standing]", quotas = "count" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for _, item in ipairs(tx:zlowest(keys.quotas(tx), "-inf", "+inf", a.limit)) do
      local q = quota.load(tx, item.member)
      if q then items[#items + 1] = stats_of(tx, q, a.keys_max) end
    end
    return reply.ok("stats", { items = items, quotas = tx:zcard(keys.quotas(tx)) })
  end,
}
end

source["budget.create"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"
local gone = require "index.gone"

local function refused(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

-- What no single field can say.
local function problem(n)
  if #n.dimensions == 0 then return refused("budget.dimensions", "must hold a dimension") end
  local seen = {}
  for i, d in ipairs(n.dimensions) do
    if seen[d.name] then
      return refused(string.format("budget.dimensions[%d].name", i - 1), "is given twice: " .. d.name)
    end
    seen[d.name] = true
  end
  local kind = n.reset.type
  if (kind == "interval") ~= (n.reset.interval_ms ~= nil) then
    return refused("budget.reset.interval_ms", "belongs to a reset by interval, and only there")
  end
  if n.reset.zone and kind ~= "day" and kind ~= "month" then
    return refused("budget.reset.zone", "belongs to a reset by calendar")
  end
  if (kind == "day" or kind == "month") and n.next_reset_at == nil then
    return refused("budget.next_reset_at", "is missing: a calendar's reset is supplied")
  end
  if kind == "none" and n.next_reset_at then return refused("budget.next_reset_at", "belongs to a reset") end
end

define.fn {
  name = "ff_create_budget",
  doc = "Creates a budget, below another one when it names a parent; the same again is a duplicate. A calendar's first "
    .. "reset is supplied, an interval starts now.",
  flags = {},
  args = { budget = "new_budget", actor = "actor" },
  reply = { created = { budget = "budget", duplicate = "bool" } },
  errs = { "budget_not_found", "budget_in_use", "idempotency_conflict" },
  call = function(tx, a)
    local n = a.budget
    local wrong = problem(n)
    if wrong then return wrong end
    table.sort(n.dimensions, function(x, y) return x.name < y.name end)
    local known = budget.load(tx, n.budget_id)
    if known then
      -- Limits may have been changed since: what never changes tells whether it is the same.
      local same = known.namespace == n.namespace and known.parent == n.parent and #known.dimensions == #n.dimensions
      for i, d in ipairs(n.dimensions) do
        same = same and known.dimensions[i] ~= nil and known.dimensions[i].name == d.name
      end
      if same and known.version == 1 then same = budget.pack_definition(known) == budget.pack_definition(n) end
      if not same then return reply.err("idempotency_conflict", { budget_id = n.budget_id }) end
      return reply.ok("created", { budget = budget.typed(known), duplicate = true })
    end
    if n.parent then
      local path = budget.path(tx, n.parent)
      if path == nil then return reply.err("budget_not_found", { budget_id = n.parent }) end
      if path[1].namespace ~= n.namespace then return refused("budget.parent", "belongs to another namespace") end
      if #path >= limits.budget_depth_max then
        return refused("budget.parent", string.format("is %d deep already", #path))
      end
      local siblings = tx:zcard(keys.budget_children(tx, n.parent))
      if siblings >= limits.budget_children_max then return reply.err("budget_in_use", { children = siblings }) end
      tx:zadd(keys.budget_children(tx, n.parent), tx.now, n.budget_id)
    end
    local b = budget.new(tx, n)
    b.next_reset = n.next_reset_at
    if n.reset.type == "interval" and b.next_reset == nil then b.next_reset = tx.now + n.reset.interval_ms end
    if gone.back(tx, b.id) then budget.come_back(tx, b) end
    budget.save(tx, b)
    if b.next_reset then budget.watch(tx, b) end
    budget.owe_scope(tx, b)
    tx:zadd(keys.budgets(tx), tx.now, b.id)
    event.of_fleet(tx, "budget.created", b.namespace, nil, nil, "budget_id", b.id, "actor", a.actor)
    return reply.ok("created", { budget = budget.typed(b), duplicate = false })
  end,
}
end

source["budget.change"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"
local budget = require "record.budget"

local function refused(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

-- The limits a change names, by dimension; or the refusal.
local function named(b, list)
  local by_name = {}
  for i, d in ipairs(list) do
    local field = string.format("limits[%d].name", i - 1)
    if b.used[d.name] == nil then return nil, refused(field, "is no dimension of the budget: " .. d.name) end
    if by_name[d.name] then return nil, refused(field, "is given twice: " .. d.name) end
    by_name[d.name] = d
  end
  return by_name
end

define.fn {
  name = "ff_change_budget",
  doc = "Changes the limits of the dimensions named, each to exactly what is given, and what happens at a breach; what "
    .. "is not named stays. Says so when there may be room again.",
  flags = { "allow-oom" },
  args = {
    budget_id = "budget_id", limits = "dimension_limits", on_soft = "on_soft?", on_hard = "on_hard?",
    version = "count?", actor = "actor",
  },
  reply = { changed = { budget = "budget", changed = "bool" } },
  errs = { "budget_not_found", "budget_version_conflict" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b = path[1]
    if a.version and a.version ~= b.version then
      return reply.err("budget_version_conflict", { version = b.version })
    end
    local wanted, wrong = named(b, a.limits)
    if wrong then return wrong end
    local before = budget.pack_definition(b)
    for _, d in ipairs(b.dimensions) do
      local to = wanted[d.name]
      if to then
        d.hard, d.soft = to.hard, to.soft
        if d.hard and b.used[d.name] + b.held[d.name] > d.hard then b.passed = true end
      end
    end
    b.on_soft, b.on_hard = a.on_soft or b.on_soft, a.on_hard or b.on_hard
    local changed = budget.pack_definition(b) ~= before
    if changed then
      b.version = b.version + 1
      budget.note_action(tx, b, "change", a.actor)
      budget.room(tx, b, true)
      budget.save(tx, b)
      event.of_fleet(tx, "budget.changed", b.namespace, nil, nil, "budget_id", b.id, "actor", a.actor)
    end
    return reply.ok("changed", { budget = budget.typed(b), changed = changed })
  end,
}
end

source["budget.get"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_get_budget",
  doc = "A budget with its limits, what is used and held, and what operators did to it; how many hold something "
    .. "against it, how many budgets are right below it.",
  flags = { "no-writes" },
  args = { budget_id = "budget_id" },
  reply = { found = { budget = "budget", holders = "count", children = "count", now = "time_ms" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local b = budget.load(tx, a.budget_id)
    if b == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    budget.rolled(tx, b)
    return reply.ok("found", {
      budget = budget.typed(b), holders = tx:zcard(keys.holders(tx, budget.set(b.id))),
      children = tx:zcard(keys.budget_children(tx, b.id)), now = tx.now,
    })
  end,
}
end

source["budget.list"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_list_budgets",
  doc = "Budgets of this partition, newest first; a page may be short, `more` says whether to go on after `last`.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", scope = "scope_type?", after = "budget_position?", limit = "batch_size" },
  reply = { page = { items = "[budget]", last = "budget_position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local top = a.after and string.format("%.0f", a.after.created_at) or "+inf"
    local found = tx:zhighest(keys.budgets(tx), top, "-inf", limits.list_looks_max)
    local items, last, more, looks = {}, nil, #found == limits.list_looks_max, 0
    for _, item in ipairs(found) do
      local seen = a.after and item.score == a.after.created_at and item.member >= a.after.budget_id
      if not seen then
        if #items >= a.limit or looks >= limits.list_looks_max / 4 then
          more = true
          break
        end
        looks = looks + 1
        local b = budget.load(tx, item.member)
        if b and (a.namespace == nil or b.namespace == a.namespace) and (a.scope == nil or b.scope.type == a.scope) then
          budget.rolled(tx, b)
          items[#items + 1] = budget.typed(b)
        end
        last = { created_at = item.score, budget_id = item.member }
      end
    end
    return reply.ok("page", { items = items, last = last, more = more })
  end,
}
end

source["budget.stats"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_budget_stats",
  doc = "The budgets of this partition that were made first, at most `limit`, without those of flows, which come and "
    .. "go with them; `budgets` is how many there are in all.",
  flags = { "no-writes" },
  args = { limit = "batch_size" },
  reply = { stats = { items = "[budget]", budgets = "count" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for _, item in ipairs(tx:zlowest(keys.budgets(tx), "-inf", "+inf", limits.list_looks_max / 4)) do
      if #items >= a.limit then break end
      local b = budget.load(tx, item.member)
      if b and b.scope.type ~= "flow" then
        budget.rolled(tx, b)
        items[#items + 1] = budget.typed(b)
      end
    end
    return reply.ok("stats", { items = items, budgets = tx:zcard(keys.budgets(tx)) })
  end,
}
end

source["budget.delete"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local reply = require "lib.reply"
local budget = require "record.budget"
local gone = require "index.gone"
local timers = require "index.timers"

define.fn {
  name = "ff_delete_budget",
  doc = "Removes a budget that has no children and against which nothing is held. Work that names it is not admitted "
    .. "from then on.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", actor = "actor" },
  reply = { deleted = {} },
  errs = { "budget_not_found", "budget_in_use" },
  call = function(tx, a)
    local b = budget.load(tx, a.budget_id)
    if b == nil then
      if gone.had(tx, a.budget_id) then return reply.ok("deleted") end
      return reply.err("budget_not_found", { budget_id = a.budget_id })
    end
    local children = tx:zcard(keys.budget_children(tx, b.id))
    local held = tx:exists(keys.budget_holds(tx, b.id)) or tx:exists(keys.holders(tx, budget.set(b.id)))
    if children > 0 or held then return reply.err("budget_in_use", { children = children, held = held }) end
    tx:del(keys.budget(tx, b.id))
    tx:del(keys.budget_reports(tx, b.id))
    tx:del(keys.budget_report_times(tx, b.id))
    tx:zrem(keys.budgets(tx), b.id)
    -- What waited for it is told, and refused again by name instead of waiting for good.
    tx:zadd(keys.cleared(tx), tx.now, b.id)
    tx:announce("budget", b.id)
    timers.clear(tx, budget.timer(b.id))
    budget.owe_scope(tx, b)
    gone.note(tx, b.id)
    if b.parent then tx:zrem(keys.budget_children(tx, b.parent), b.id) end
    event.of_fleet(tx, "budget.deleted", b.namespace, nil, nil, "budget_id", b.id, "actor", a.actor)
    return reply.ok("deleted")
  end,
}
end

source["budget.reset"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_reset_budget",
  doc = "An operator starts a new period now: nothing is used in it. What is held stays held; when the period ends by "
    .. "itself does not change. The same request again changes nothing.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", actor = "actor", request_id = "request_id?" },
  reply = { reset = { budget = "budget" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b = path[1]
    if budget.done(b, a.request_id) then return reply.ok("reset", { budget = budget.typed(b) }) end
    budget.start_period(tx, b)
    budget.note_action(tx, b, "reset", a.actor, nil, nil, nil, a.request_id)
    budget.save(tx, b)
    event.of_fleet(tx, "budget.reset", b.namespace, nil, nil, "budget_id", b.id, "cause", "operator", "actor", a.actor)
    return reply.ok("reset", { budget = budget.typed(b) })
  end,
}
end

source["budget.approve"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_approve_budget",
  doc = "An operator lets work start past the soft limits until the period ends.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", actor = "actor" },
  reply = { approved = { budget = "budget" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b = path[1]
    if not b.approved then
      b.approved = true
      budget.note_action(tx, b, "approve", a.actor)
      budget.room(tx, b, true)
      budget.save(tx, b)
      event.of_fleet(tx, "budget.approved", b.namespace, nil, nil, "budget_id", b.id, "actor", a.actor)
    end
    return reply.ok("approved", { budget = budget.typed(b) })
  end,
}
end

source["budget.correct"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local reply = require "lib.reply"
local budget = require "record.budget"

-- Above the budget that is corrected a period may have ended since: nothing gets below 0 there.
local function shift(b, name, delta)
  local before = b.used[name]
  if before == nil then return end
  local after = math.max(before + delta, 0)
  b.used[name], b.base[name] = after, b.base[name] + after - before
  for _, d in ipairs(b.dimensions) do
    if d.name == name and d.hard and after + b.held[name] > d.hard then b.passed = true end
  end
end

define.fn {
  name = "ff_correct_budget",
  doc = "An operator changes what is used in a dimension, here and in every budget above; kept with actor and reason. "
    .. "It may pass a limit: it says what was spent. The same request again changes nothing.",
  flags = { "allow-oom" },
  args = {
    budget_id = "budget_id", dimension = "dimension", delta = "delta", actor = "actor", reason = "reason",
    request_id = "request_id?",
  },
  reply = { corrected = { budget = "budget" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b = path[1]
    if budget.done(b, a.request_id) then return reply.ok("corrected", { budget = budget.typed(b) }) end
    if b.used[a.dimension] == nil then
      return reply.err("invalid_argument", {
        field = "dimension", problem = "is no dimension of the budget: " .. a.dimension,
      })
    end
    if a.delta == 0 then return reply.err("invalid_argument", { field = "delta", problem = "must not be 0" }) end
    if b.used[a.dimension] + a.delta < 0 then
      return reply.err("invalid_argument", {
        field = "delta", problem = string.format("takes more than the %.0f used", b.used[a.dimension]),
      })
    end
    local over = a.delta > 0 and budget.overflow(path, { [a.dimension] = a.delta }, "delta")
    if over then return reply.err("invalid_argument", { field = "delta", problem = over.detail.problem }) end
    for _, each in ipairs(path) do
      shift(each, a.dimension, a.delta)
      if a.delta < 0 then budget.room(tx, each, true) end
    end
    budget.note_action(tx, b, "correct", a.actor, a.dimension, a.delta, a.reason, a.request_id)
    budget.save_all(tx, path)
    event.of_fleet(tx, "budget.corrected", b.namespace, nil, nil, "budget_id", b.id, "actor", a.actor,
      "dimension", a.dimension, "delta", string.format("%.0f", a.delta), "reason", a.reason)
    return reply.ok("corrected", { budget = budget.typed(b) })
  end,
}
end

source["budget.admit"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local ask = require "transition.ask"

define.fn {
  name = "ff_admit_budget",
  doc = "Holds the estimates of executions about to start, in order, as far as every limit up the tree allows; without "
    .. "an estimate something must be left in every hard dimension. A holder that was admitted is admitted again.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", candidates = "budget_candidates" },
  reply = { answered = { items = "[budget_verdict]" } },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local items = {}
    if not ask.budget(tx, a.budget_id, a.candidates) then
      return reply.err("budget_not_found", { budget_id = a.budget_id })
    end
    for i, c in ipairs(a.candidates) do
      local item = c.wall or {}
      item.holder_id, item.admitted = c.holder_id, c.admitted or false
      items[i] = item
    end
    return reply.ok("answered", { items = items })
  end,
}
end

source["budget.release"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local give_back = require "transition.give_back"

define.fn {
  name = "ff_release_budget",
  doc = "Drops what holders hold against a budget, their reservations included; who holds nothing is passed over, and "
    .. "so is a budget that is gone.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", holders = "holders" },
  reply = { released = { count = "count" } },
  errs = {},
  call = function(tx, a)
    return reply.ok("released", { count = give_back.budget(tx, a.budget_id, a.holders) })
  end,
}
end

source["budget.reserve"] = function(require, LIBRARY)
local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"
local holds = require "record.budget_holds"
local holders = require "index.holders"

local function refused(field, problem)
  return reply.err("invalid_argument", { field = field, problem = problem })
end

local function same(x, y)
  return cmsgpack.pack(budget.flat(x)) == cmsgpack.pack(budget.flat(y))
end

define.fn {
  name = "ff_reserve_budget",
  doc = "Holds amounts against a budget and all above it, for a time or for as long as a holder holds; the same "
    .. "reservation again is the same. A limit in the way is an answer, and nothing is held.",
  flags = {},
  args = {
    budget_id = "budget_id", reservation_id = "reservation_id", dimensions = "amounts", ttl_ms = "duration_ms?",
    holder = "budget_holder?",
  },
  reply = {
    reserved = { expires_at = "time_ms?", duplicate = "bool" },
    hard_breach = {
      budget_id = "budget_id", dimension = "dimension", used = "count", limit = "count", rooms = "count",
    },
  },
  errs = { "budget_not_found", "idempotency_conflict" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b = path[1]
    local wrong = budget.unknown(b, a.dimensions, "dimensions")
    if wrong then return wrong end
    if (a.ttl_ms == nil) == (a.holder == nil) then
      return refused("ttl_ms", "is needed without a holder, and only then")
    end
    if a.ttl_ms and (a.ttl_ms == 0 or a.ttl_ms > limits.reservation_ttl_ms_max) then
      return refused("ttl_ms", string.format("must be in 1..=%.0f, got %.0f", limits.reservation_ttl_ms_max, a.ttl_ms))
    end
    local member = a.holder and holders.member(a.holder)
    local known = holds.reservation(tx, b.id, a.reservation_id)
    if known then
      if known.member ~= member or not same(known.amounts, a.dimensions) then
        return reply.err("idempotency_conflict", { reservation_id = a.reservation_id })
      end
      return reply.ok("reserved", { expires_at = known.ends, duplicate = true })
    end
    if budget.report(tx, b, "reservation:" .. a.reservation_id) then
      return reply.err("idempotency_conflict", { reservation_id = a.reservation_id })
    end
    local over = budget.overflow(path, a.dimensions, "dimensions")
    if over then return over end
    local breach = budget.breach(path, a.dimensions)
    if breach then
      budget.refuse(tx, breach)
      return reply.ok("hard_breach", {
        budget_id = breach.budget.id, dimension = breach.dimension, used = breach.used, limit = breach.limit,
        rooms = breach.budget.rooms,
      })
    end
    local ends = a.ttl_ms and tx.now + a.ttl_ms or nil
    if member then
      local holder = holds.of_holder(tx, b.id, member)
      if holder == nil then
        -- Nobody admitted it here. Its lease may have ended by now, so it is asked for soon.
        local entering = { member = member, expires_at = tx.now + limits.reservation_asked_after_ms }
        holds.enter(tx, b.id, { entering }, holds.text({}, {}))
        holder = { amounts = {}, reservations = {} }
      end
      if #holder.reservations >= limits.reservations_per_holder_max then
        return refused("holder", string.format("has %d reservations already", #holder.reservations))
      end
      holder.reservations[#holder.reservations + 1] = a.reservation_id
      holds.put_holder(tx, b.id, member, holder)
    end
    holds.reserve(tx, b.id, a.reservation_id, { amounts = a.dimensions, ends = ends, member = member })
    budget.hold(path, a.dimensions, 1)
    budget.save_all(tx, path)
    return reply.ok("reserved", { expires_at = ends, duplicate = false })
  end,
}
end

source["budget.settle"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"
local holds = require "record.budget_holds"

define.fn {
  name = "ff_settle_reservation",
  doc = "Turns a reservation into what was really used; the difference returns. What would pass a limit is not "
    .. "accepted, and the reservation stays.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", reservation_id = "reservation_id", dimensions = "amounts" },
  reply = {
    ok = {}, already_applied = {},
    soft_breach = { budget_id = "budget_id", dimension = "dimension", used = "count", limit = "count" },
    hard_breach = {
      budget_id = "budget_id", dimension = "dimension", used = "count", limit = "count", action = "on_hard",
      rooms = "count",
    },
  },
  errs = { "budget_not_found", "reservation_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b, key = path[1], "reservation:" .. a.reservation_id
    if budget.report(tx, b, key) then return reply.ok("already_applied") end
    local hold = holds.reservation(tx, b.id, a.reservation_id)
    if hold == nil then return reply.err("reservation_not_found", { reservation_id = a.reservation_id }) end
    local wrong = budget.unknown(b, a.dimensions, "dimensions")
    if wrong then return wrong end
    local over = budget.overflow(path, a.dimensions, "dimensions")
    if over then return over end
    local breach = budget.breach(path, a.dimensions, hold.amounts)
    if breach then
      budget.refuse(tx, breach)
      return reply.ok("hard_breach", {
        budget_id = breach.budget.id, dimension = breach.dimension, used = breach.used, limit = breach.limit,
        action = breach.budget.on_hard, rooms = breach.budget.rooms })
    end
    budget.prune(tx, b)
    holds.drop_reservation(tx, path, a.reservation_id, hold)
    holds.give_back(tx, path, hold.amounts)
    budget.spend(tx, path, a.dimensions)
    budget.keep_report(tx, b, key, a.dimensions)
    budget.save_all(tx, path)
    local soft = budget.soft(path)
    if soft then
      return reply.ok("soft_breach", {
        budget_id = soft.budget.id, dimension = soft.dimension, used = soft.used, limit = soft.limit,
      })
    end
    return reply.ok("ok")
  end,
}
end

source["budget.release_reservation"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"
local holds = require "record.budget_holds"

define.fn {
  name = "ff_release_reservation",
  doc = "Gives a reservation back unused.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", reservation_id = "reservation_id" },
  reply = { released = {} },
  errs = { "budget_not_found", "reservation_not_found" },
  call = function(tx, a)
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local hold = holds.reservation(tx, a.budget_id, a.reservation_id)
    local key = "released:" .. a.reservation_id
    if hold == nil and budget.report(tx, path[1], key) then return reply.ok("released") end
    if hold == nil then return reply.err("reservation_not_found", { reservation_id = a.reservation_id }) end
    budget.prune(tx, path[1])
    budget.keep_report(tx, path[1], key, {})
    holds.drop_reservation(tx, path, a.reservation_id, hold)
    holds.give_back(tx, path, hold.amounts)
    budget.save_all(tx, path)
    return reply.ok("released")
  end,
}
end

source["budget.apply"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"
local holds = require "record.budget_holds"
local holders = require "index.holders"

define.fn {
  name = "ff_apply_usage",
  doc = "Counts a report once, here and in every budget above: first out of what its reporter holds, then out of what "
    .. "is free. One with a reservation takes it out of that alone and gives the rest of it back. `same` says that the "
    .. "report known by this key came from the same execution and sequence. A report that would pass a limit is not "
    .. "accepted, and may be made again.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", report = "usage_report" },
  reply = {
    ok = {}, already_applied = { same = "bool" },
    soft_breach = { budget_id = "budget_id", dimension = "dimension", used = "count", limit = "count" },
    hard_breach = {
      budget_id = "budget_id", dimension = "dimension", used = "count", limit = "count", action = "on_hard",
      rooms = "count",
    },
  },
  errs = { "budget_not_found", "reservation_not_found" },
  call = function(tx, a)
    local r = a.report
    local path = budget.path(tx, a.budget_id)
    if path == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local b, key = path[1], r.reservation_id and "reservation:" .. r.reservation_id or "report:" .. r.dedup_key
    local origin = r.execution_id and r.sequence and string.format("%s:%.0f", r.execution_id, r.sequence) or nil
    local known, from = budget.report(tx, b, key)
    if known then return reply.ok("already_applied", { same = origin ~= nil and from == origin }) end
    local wrong = budget.unknown(b, r.dimensions, "report.dimensions")
    if wrong then return wrong end
    local member = r.execution_id and r.holder_id and holders.member(r) or nil
    local reserved = r.reservation_id and holds.reservation(tx, b.id, r.reservation_id)
    if r.reservation_id and reserved == nil then
      return reply.err("reservation_not_found", { reservation_id = r.reservation_id })
    end
    local own, parts
    if reserved then own = reserved.amounts else own, parts = holds.own(tx, b.id, member, r.dimensions) end
    local over = budget.overflow(path, r.dimensions, "report.dimensions")
    if over then return over end
    local breach = budget.breach(path, r.dimensions, own)
    if breach then
      budget.refuse(tx, breach)
      return reply.ok("hard_breach", {
        budget_id = breach.budget.id, dimension = breach.dimension, used = breach.used, limit = breach.limit,
        action = breach.budget.on_hard, rooms = breach.budget.rooms })
    end
    budget.prune(tx, b)
    if reserved then
      holds.drop_reservation(tx, path, r.reservation_id, reserved)
      holds.give_back(tx, path, reserved.amounts)
    else
      holds.consume(tx, path, own, parts)
    end
    budget.spend(tx, path, r.dimensions)
    budget.keep_report(tx, b, key, r.dimensions, origin)
    budget.save_all(tx, path)
    local soft = budget.soft(path)
    if soft then
      return reply.ok("soft_breach", {
        budget_id = soft.budget.id, dimension = soft.dimension, used = soft.used, limit = soft.limit,
      })
    end
    return reply.ok("ok")
  end,
}
end

source["budget.set_next_reset"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_set_next_reset",
  doc = "Says when the period of a budget that resets by the calendar ends; only one that waits for it takes it.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", period = "count", next_reset_at = "time_ms" },
  reply = { set = {}, unchanged = {} },
  errs = { "budget_not_found" },
  call = function(tx, a)
    local b = budget.load(tx, a.budget_id)
    if b == nil then return reply.err("budget_not_found", { budget_id = a.budget_id }) end
    local waits = (b.reset.type == "day" or b.reset.type == "month") and b.next_reset == nil
    if not waits or b.period ~= a.period then return reply.ok("unchanged") end
    b.next_reset = a.next_reset_at
    budget.watch(tx, b)
    budget.save(tx, b)
    return reply.ok("set")
  end,
}
end

source["budget.cleared"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_cleared_budgets",
  doc = "Budgets of this partition that had room again after a refusal and whose waiting work was not told yet, oldest "
    .. "first; one that is gone has the highest count of rooms.",
  flags = { "no-writes" },
  args = { offset = "count?", limit = "batch_size" },
  reply = { cleared = { items = "[cleared_budget]", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    local found = tx:zlowest(keys.cleared(tx), "-inf", "+inf", a.limit + 1, a.offset)
    for i = 1, math.min(#found, a.limit) do
      local b = budget.load(tx, found[i].member)
      local calendar = b and (b.reset.type == "day" or b.reset.type == "month")
      if b then
        budget.rolled(tx, b)
        items[i] = {
          budget_id = b.id, rooms = b.rooms, wide = b.wide, told = b.told, free = budget.free(b),
          next_reset_wanted = calendar and b.next_reset == nil or false,
        }
      else
        local all = limits.time_ms_max
        items[i] = {
          budget_id = found[i].member, rooms = all, wide = all, told = 0, free = {}, next_reset_wanted = false,
        }
      end
    end
    return reply.ok("cleared", { items = items, more = #found > a.limit })
  end,
}
end

source["budget.acknowledge"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local budget = require "record.budget"

define.fn {
  name = "ff_acknowledge_cleared",
  doc = "Everyone who has seen fewer rooms of a budget than `told` was told, and of those who had seen fewer than "
    .. "`rooms` as many as may fit; if it had room once more since, or waits for its next reset, the mark stays.",
  flags = { "allow-oom" },
  args = { budget_id = "budget_id", rooms = "count", told = "count" },
  reply = { acknowledged = { stays = "bool" } },
  errs = {},
  call = function(tx, a)
    local b = budget.load(tx, a.budget_id)
    local calendar = b and (b.reset.type == "day" or b.reset.type == "month")
    local stays = b ~= nil and (b.rooms > a.rooms or (calendar and b.next_reset == nil))
    if not stays then tx:zrem(keys.cleared(tx), a.budget_id) end
    if b and a.told > b.told and a.told <= b.rooms then
      b.told = a.told
      budget.save(tx, b)
    end
    return reply.ok("acknowledged", { stays = stays })
  end,
}
end

source["record.usage"] = function(require, LIBRARY)
-- What an execution reported to have used: reports that wait for their budget's answer, and the ledger of those that
-- were answered.
local keys = require "lib.keys"
local limits = require "lib.limits"
local outbox = require "lib.outbox"
local budget = require "record.budget"
local timers = require "index.timers"

local usage = {}

function usage.timer(id) return "usage:" .. id end

-- Reports that wait, in the order they were made.
function usage.pending(tx, rec)
  local packed = rec.reports and tx:hget(keys.usage(tx, rec.id), "pending")
  local list = {}
  for i, p in ipairs(packed and cmsgpack.unpack(packed) or {}) do
    list[i] = {
      sequence = p[1], budget_id = p[2], attempt_index = p[3], lease_id = p[4], dedup_key = p[5],
      dimensions = budget.map(p[6]), at = p[7], holder_id = p[8] or nil, reservation_id = p[9] or nil,
    }
  end
  return list
end

function usage.store_pending(tx, rec, list)
  local out = {}
  for i, p in ipairs(list) do
    out[i] = {
      p.sequence, p.budget_id, p.attempt_index, p.lease_id, p.dedup_key, budget.flat(p.dimensions), p.at,
      p.holder_id or false, p.reservation_id or false,
    }
  end
  tx:hset(keys.usage(tx, rec.id), { "pending", cmsgpack.pack(out) })
  if #out == 0 then timers.clear(tx, usage.timer(rec.id)) end
end

local function row(attempt, budget_id) return string.format("%.0f:%s", attempt, budget_id) end

-- Adds answered amounts to the ledger, as accepted or as refused.
function usage.enter(tx, rec, p, accepted)
  local key, field = keys.usage(tx, rec.id), row(p.attempt_index, p.budget_id)
  local packed = tx:hget(key, field)
  local lines, at = packed and cmsgpack.unpack(packed) or {}, {}
  for i, line in ipairs(lines) do at[line[1]] = i end
  for _, name in ipairs(budget.sorted(p.dimensions)) do
    if at[name] == nil then
      lines[#lines + 1] = { name, 0, 0 }
      at[name] = #lines
    end
    local line = lines[at[name]]
    local column = accepted and 2 or 3
    line[column] = math.min(line[column] + p.dimensions[name], budget.amount_max)
  end
  tx:hset(key, { field, cmsgpack.pack(lines) })
end

-- The ledger, by attempt, budget and dimension.
function usage.ledger(tx, rec)
  local out = {}
  for field, packed in pairs(rec.reports and tx:hgetall(keys.usage(tx, rec.id)) or {}) do
    local attempt, budget_id = string.match(field, "^(%d+):(.+)$")
    if attempt then
      for _, line in ipairs(cmsgpack.unpack(packed)) do
        out[#out + 1] = {
          attempt_index = tonumber(attempt), budget_id = budget_id, dimension = line[1], accepted = line[2],
          refused = line[3],
        }
      end
    end
  end
  table.sort(out, function(a, b)
    if a.attempt_index ~= b.attempt_index then return a.attempt_index < b.attempt_index end
    if a.budget_id ~= b.budget_id then return a.budget_id < b.budget_id end
    return a.dimension < b.dimension
  end)
  return out
end

-- Whoever noted a report settles it at once; when that did not happen, the outbox does it.
function usage.fire(tx, id)
  local rec = require("record.execution").load(tx, id)
  local list = rec and usage.pending(tx, rec) or {}
  if #list == 0 then return timers.clear(tx, usage.timer(id)) end
  for _, p in ipairs(list) do
    if p.at + limits.usage_again_ms <= tx.now then
      outbox.owe(tx, "apply_usage", { "execution_id", id, "sequence", string.format("%.0f", p.sequence) })
    end
  end
  tx:zadd(keys.timers(tx), tx.now + limits.usage_again_ms, usage.timer(id))
end

function usage.remove_all(tx, rec)
  if rec.reports == nil then return end
  tx:del(keys.usage(tx, rec.id))
  timers.clear(tx, usage.timer(rec.id))
end

return usage
end

source["transition.park"] = function(require, LIBRARY)
-- A running execution met the hard limit of a budget: what the budget says happens to it. The lease ends cleanly.
local attempt = require "record.attempt"
local event = require "lib.event"
local execution = require "record.execution"
local finish = require "transition.finish"

local park = {}

local function wait(tx, rec, detail)
  rec.phase = "runnable"
  execution.block(rec, "waiting_for_budget", detail, tx.now)
  execution.save(tx, rec)
  event.of_execution(tx, rec, "execution.blocked", "reason", "waiting_for_budget")
end

-- The attempt is kept: the next claim continues it.
local function suspend(tx, rec, detail)
  rec.ended_by, rec.ended_value = "budget", tx.now
  rec.time_left = rec.timeout_at and math.max(rec.timeout_at - tx.now, 1) or nil
  rec.timeout_at, rec.yield, rec.reclaims, rec.satisfied = nil, nil, nil, nil
  rec.attempt_state, rec.resume = "suspended", 1
  -- It is known by the lease it ended.
  rec.woken, rec.waits = cmsgpack.pack({ rec.lease_id, "budget", {} }), 1
  wait(tx, rec, detail)
end

-- The attempt is over, and counts neither as failed nor as lost.
local function block(tx, rec, detail)
  rec.ended_by, rec.ended_value = "budget", tx.now
  attempt.finish(tx, rec, "interrupted", nil)
  rec.next = "reclaim"
  wait(tx, rec, detail)
end

-- `detail` is a flat list of texts that names the budget in the way.
function park.execution(tx, rec, action, reason, detail)
  if action == "suspend" then return suspend(tx, rec, detail) end
  if action == "block" then return block(tx, rec, detail) end
  if action == "cancel" then
    return finish.execution(tx, rec, "cancelled", {
      by = "budget", attempt_state = "cancelled", failure = { reason, "budget" },
    })
  end
  finish.execution(tx, rec, "failed", { by = "budget", attempt_state = "failed", failure = { reason, "budget" } })
end

return park
end

source["usage.note"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"
local execution = require "record.execution"
local fence = require "record.fence"
local holds = require "record.holds"
local timers = require "index.timers"
local spec = require "record.spec"
local usage = require "record.usage"

local action_of = { cancelled = "cancel", failed = "fail" }

-- The lease ended with an earlier report: its reporter may not have heard so.
local function breached(rec)
  local detail = rec.reason == "waiting_for_budget" and spec.unflatten(rec.detail) or {}
  local action = action_of[rec.outcome] or (rec.attempt_state == "suspended" and "suspend") or "block"
  return reply.err("hard_breach", {
    action = action, budget_id = detail.budget_id, dimension = detail.dimension, used = detail.used,
    limit = detail.limit,
  })
end

define.fn {
  name = "ff_note_usage",
  doc = "A worker says what its attempt used; the report waits for its budget's answer. Without a key it is known by "
    .. "its execution, attempt and sequence; one that waits already under the same key is the same. With a reservation "
    .. "it says what of that was used, and the rest is given back.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", fence = "fence", budget_id = "budget_id", dimensions = "amounts",
    dedup_key = "dedup_key?", reservation_id = "reservation_id?",
  },
  reply = { noted = { report = "pending_usage" } },
  errs = {
    "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked", "hard_breach",
    "usage_pending",
  },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now, "budget")
    if refusal == "replay" then return breached(rec) end
    if refusal then return refusal end
    if next(a.dimensions) == nil then
      return reply.err("invalid_argument", { field = "dimensions", problem = "must hold an entry" })
    end
    local list = usage.pending(tx, rec)
    for _, p in ipairs(list) do
      if a.dedup_key and p.dedup_key == a.dedup_key and p.budget_id == a.budget_id then
        return reply.ok("noted", { report = p })
      end
    end
    if #list >= limits.usage_pending_max then return reply.err("usage_pending", { pending = #list }) end
    rec.reports = (rec.reports or 0) + 1
    local p = {
      sequence = rec.reports, budget_id = a.budget_id, attempt_index = rec.attempt, lease_id = rec.lease_id,
      at = tx.now, dimensions = a.dimensions,
      dedup_key = a.dedup_key or string.format("%s:%.0f:%.0f", rec.id, rec.attempt, rec.reports),
      holder_id = holds.in_set(rec, budget.set(a.budget_id)) and holds.of(rec) or nil,
      reservation_id = a.reservation_id,
    }
    list[#list + 1] = p
    usage.store_pending(tx, rec, list)
    if #list == 1 then timers.set(tx, usage.timer(rec.id), tx.now + limits.usage_again_ms) end
    execution.store(tx, rec)
    return reply.ok("noted", { report = p })
  end,
}
end

source["usage.settle"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local budget = require "record.budget"
local execution = require "record.execution"
local holds = require "record.holds"
local park = require "transition.park"
local spec = require "record.spec"
local usage = require "record.usage"

-- Takes the report out of those that wait; nil when it was settled before.
local function take(tx, rec, sequence)
  local rest, found = {}, nil
  for _, p in ipairs(usage.pending(tx, rec)) do
    if p.sequence == sequence then found = p else rest[#rest + 1] = p end
  end
  if found then usage.store_pending(tx, rec, rest) end
  return found
end

local function number(n) return n and string.format("%.0f", n) or nil end

define.fn {
  name = "ff_settle_usage",
  doc = "Notes what a budget answered to a report: the ledger follows, and a hard breach does to the running attempt "
    .. "what the budget says. `counted` says that a report known to the budget is this very one.",
  flags = { "allow-oom" },
  args = {
    execution_id = "execution_id", sequence = "count", outcome = "usage_outcome", counted = "bool?",
    breach = "usage_breach?",
  },
  reply = { settled = { state = "public_state", ended = "bool" }, already = { state = "public_state" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    if (a.outcome == "hard_breach") ~= (a.breach ~= nil) then
      return reply.err("invalid_argument", { field = "breach", problem = "belongs to a hard breach, and only there" })
    end
    local p = take(tx, rec, a.sequence)
    if p == nil then return reply.ok("already", { state = execution.public_state(rec) }) end
    local accepted = a.outcome == "ok" or a.outcome == "soft_breach" or (a.outcome == "already_applied" and a.counted)
    if accepted or a.outcome == "hard_breach" then usage.enter(tx, rec, p, accepted) end
    local ended = false
    -- A later lease has not spent this: it will hear of the limit with its own report.
    if a.breach and rec.phase == "active" and rec.lease_id == p.lease_id then
      local b = a.breach
      if b.action == "suspend" or b.action == "block" then holds.want(rec, p.budget_id, budget.flat(p.dimensions)) end
      local reason = string.format("budget %s: %.0f of %.0f %s used", b.budget_id, b.used, b.limit, b.dimension)
      park.execution(tx, rec, b.action, reason, spec.flatten({
        budget_id = b.budget_id, dimension = b.dimension, used = number(b.used), limit = number(b.limit),
        rooms = number(b.rooms), asks = number(p.dimensions[b.dimension] or 1), refusal = "hard",
        reported_to = p.budget_id }))
      ended = true
    end
    return reply.ok("settled", { state = execution.public_state(rec), ended = ended })
  end,
}
end

source["usage.read"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local usage = require "record.usage"

define.fn {
  name = "ff_read_usage",
  doc = "What an execution used, by attempt, budget and dimension, and its reports that wait for their budget's "
    .. "answer.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id" },
  reply = { usage = { ledger = "[ledger_line]", pending = "[pending_usage]" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    return reply.ok("usage", { ledger = usage.ledger(tx, rec), pending = usage.pending(tx, rec) })
  end,
}
end

source["usage.hold"] = function(require, LIBRARY)
local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local budget = require "record.budget"
local execution = require "record.execution"
local fence = require "record.fence"
local holds = require "record.holds"

define.fn {
  name = "ff_hold_budget",
  doc = "A running execution is about to reserve from a budget: from now on the end of its lease gives back what it "
    .. "holds there.",
  flags = { "allow-oom" },
  args = { execution_id = "execution_id", fence = "fence", budget_id = "budget_id" },
  reply = { held = { holder_id = "holder_id" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local set = budget.set(a.budget_id)
    if not holds.in_set(rec, set) then
      if #(holds.sets(rec) or {}) >= limits.holder_sets_max then
        return reply.err("invalid_argument", { field = "budget_id", problem = "holds in too many sets already" })
      end
      holds.join(rec, set)
      execution.save(tx, rec)
    end
    return reply.ok("held", { holder_id = holds.of(rec) })
  end,
}
end

source["usage.quota_holder"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local execution = require "record.execution"
local fence = require "record.fence"
local holds = require "record.holds"

define.fn {
  name = "ff_quota_holder",
  doc = "Under which id a quota has let a running execution in, and what time it is. `free`: nothing holds it there.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id", fence = "fence", quota_id = "quota_id", key = "quota_key" },
  reply = { held = { holder_id = "holder_id", now = "time_ms" }, free = { now = "time_ms" } },
  errs = { "execution_not_found", "execution_not_active", "stale_lease", "lease_expired", "lease_revoked" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    local refusal = fence.check(rec, a.fence, tx.now)
    if refusal then return refusal end
    local holder = holds.holder_in(rec, holds.of_quota(a.quota_id, keys.digest(a.key)))
    if holder == nil then return reply.ok("free", { now = tx.now }) end
    return reply.ok("held", { holder_id = holder, now = tx.now })
  end,
}
end

source["usage.waiting"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local spec = require "record.spec"

local waiting = {}

-- Up to `count` entries of a blocked set behind a position, the longest wait first.
function waiting.page(tx, key, after, count)
  local from = after and string.format("%.0f", after.since) or "-inf"
  local out, skip = {}, 0
  while #out < count do
    local found = tx:zlowest(key, from, "+inf", limits.list_looks_max, skip)
    for _, item in ipairs(found) do
      local behind = after == nil or item.score > after.since or item.member > after.execution_id
      if behind and #out < count then out[#out + 1] = item end
    end
    if #found < limits.list_looks_max then break end
    skip = skip + limits.list_looks_max
  end
  return out
end

define.fn {
  name = "ff_waiting_for_budgets",
  doc = "The budgets that executions of a lane wait for, each with the fewest rooms any of them has seen; a page at a "
    .. "time.",
  flags = { "no-writes" },
  args = { namespace = "namespace", lane = "lane", after = "blocked_position?", limit = "batch_size" },
  reply = { waiting = { items = "[awaited_budget]", next = "blocked_position?" } },
  errs = {},
  call = function(tx, a)
    local page = waiting.page(tx, keys.place(tx, a.namespace .. "/" .. a.lane, "blocked:budget"), a.after, a.limit)
    local items, at, last = {}, {}, nil
    for _, entry in ipairs(page) do
      local rec = execution.load(tx, entry.member)
      local detail = rec and rec.reason == "waiting_for_budget" and spec.unflatten(rec.detail) or {}
      local id, rooms = detail.budget_id, tonumber(detail.rooms or nil) or -1
      if id and at[id] then
        items[at[id]].rooms = math.min(items[at[id]].rooms, rooms)
      elseif id then
        items[#items + 1] = { budget_id = id, rooms = rooms }
        at[id] = #items
      end
      last = { since = entry.score, execution_id = entry.member }
    end
    return reply.ok("waiting", { items = items, next = #page == a.limit and last or nil })
  end,
}

return waiting
end

source["usage.unblock"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local reply = require "lib.reply"
local awaits = require "index.awaits"
local asks = require "record.asks"
local execution = require "record.execution"
local runnable = require "transition.runnable"
local spec = require "record.spec"

-- What an execution asks of the budget; nil when it names another one below it, or reported to it unasked.
local function named(rec, id)
  for _, ref in ipairs(asks.of(rec).budgets) do
    if ref.budget_id == id then return ref end
  end
end

-- Whether so much room may help the execution; what it takes of it is taken. Who waits for an approval is told of that.
local function fits(rec, detail, a)
  local free = a.free
  if free == nil or detail.problem then return true end
  if detail.refusal ~= "hard" then return false end
  local ref = named(rec, a.budget_id)
  local estimate = ref and ref.estimate or {}
  if ref and next(estimate) == nil then
    for _, left in pairs(free) do
      if left < 1 then return false end
    end
  end
  if ref == nil and (free[detail.dimension] or 1) < 1 then return false end
  for name, n in pairs(estimate) do
    if (free[name] or n) < n then return false end
  end
  for name, n in pairs(estimate) do
    if free[name] then free[name] = free[name] - n end
  end
  return true
end

-- Moves one execution if the budget is what it waits for, and had room again since.
local function unblock(tx, id, a)
  return tx:item(function()
    local rec = execution.load(tx, id)
    local detail = rec and rec.phase == "runnable" and rec.reason == "waiting_for_budget" and spec.unflatten(rec.detail)
    if not detail or detail.budget_id ~= a.budget_id or (tonumber(detail.rooms or nil) or -1) >= a.rooms then
      return { ok = false }
    end
    if not fits(rec, detail, a) then return { ok = false, passed = true } end
    runnable.settle(tx, rec)
    execution.save(tx, rec)
    event.of_execution(tx, rec, "execution.ready", "cause", "waiting_for_budget")
    return { ok = true }
  end)
end

define.fn {
  name = "ff_unblock_budget",
  doc = "A budget had room again: executions that wait for it, refused or parked before that, are eligible again at "
    .. "the place of their original score, the first in line first; a page at a time, and no more than `most`. With "
    .. "`free`, whoever does not fit into what is left below the hard limits is passed over; `left` is what the others "
    .. "leave of it.",
  flags = { "allow-oom" },
  args = {
    budget_id = "budget_id", rooms = "count", free = "free?", most = "count?", after = "awaits_position?",
    limit = "batch_size",
  },
  reply = { unblocked = { count = "count", passed_over = "count", left = "free?", next = "awaits_position?" } },
  errs = { "try_again" },
  call = function(tx, a)
    local page = awaits.page(tx, keys.awaits(tx, a.budget_id), a.after, a.limit)
    local count, passed, last, looked = 0, 0, a.after, 0
    for _, item in ipairs(page) do
      if a.most and count >= a.most then break end
      -- A record that cannot be read is fsck's to report.
      local answer = unblock(tx, item.member, a)
      if answer and answer.err == "try_again" then
        if count == 0 then return answer end
        return reply.ok("unblocked", { count = count, passed_over = passed, left = a.free, next = last })
      end
      if answer and answer.ok then count = count + 1 end
      if answer and answer.passed then passed = passed + 1 end
      last, looked = awaits.position(item), looked + 1
    end
    local more = looked < #page or #page == a.limit
    return reply.ok("unblocked", { count = count, passed_over = passed, left = a.free, next = more and last or nil })
  end,
}
end

source["usage.awaiting"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local awaits = require "index.awaits"
local execution = require "record.execution"
local spec = require "record.spec"

define.fn {
  name = "ff_awaiting_budget",
  doc = "Who of this partition waits for a budget, the first to go on first, and how many do; a page at a time.",
  flags = { "no-writes" },
  args = { budget_id = "budget_id", after = "awaits_position?", limit = "batch_size" },
  reply = { waiting = { items = "[awaiting]", count = "count", next = "awaits_position?" } },
  errs = {},
  call = function(tx, a)
    local key = keys.awaits(tx, a.budget_id)
    local page = awaits.page(tx, key, a.after, a.limit)
    local items = {}
    for _, item in ipairs(page) do
      local rec = execution.load(tx, item.member)
      if rec then
        items[#items + 1] = {
          execution_id = rec.id, score = item.score, namespace = execution.namespace(rec), lane = execution.lane(rec),
          kind = rec.kind, blocked_since = rec.since, continues = rec.resume ~= nil,
          detail = rec.detail and spec.unflatten(rec.detail) or nil,
        }
      end
    end
    return reply.ok("waiting", {
      items = items, count = tx:zcard(key), next = #page == a.limit and awaits.position(page[#page]) or nil,
    })
  end,
}
end

source["usage.missing"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local reply = require "lib.reply"
local awaits = require "index.awaits"
local execution = require "record.execution"
local runnable = require "transition.runnable"
local spec = require "record.spec"

local function detail_of(rec)
  return rec and rec.phase == "runnable" and rec.reason == "waiting_for_quota" and spec.unflatten(rec.detail) or {}
end

define.fn {
  name = "ff_missing_quotas",
  doc = "The quotas that executions of this partition wait for because they were not there; a page of executions at a "
    .. "time.",
  flags = { "no-writes" },
  args = { after = "awaits_position?", limit = "batch_size" },
  reply = { missing = { quota_ids = "[quota_id]", next = "awaits_position?" } },
  errs = {},
  call = function(tx, a)
    local page = awaits.page(tx, keys.missing(tx), a.after, a.limit)
    local ids, seen = {}, {}
    for _, item in ipairs(page) do
      local id = detail_of(execution.load(tx, item.member)).quota_id
      if id and not seen[id] then ids[#ids + 1], seen[id] = id, true end
    end
    return reply.ok("missing", { quota_ids = ids, next = #page == a.limit and awaits.position(page[#page]) or nil })
  end,
}

define.fn {
  name = "ff_unblock_quota",
  doc = "A quota that was not there is: executions that were refused because of that are eligible again; a page at a "
    .. "time.",
  flags = { "allow-oom" },
  args = { quota_id = "quota_id", after = "awaits_position?", limit = "batch_size" },
  reply = { unblocked = { count = "count", next = "awaits_position?" } },
  errs = { "try_again" },
  call = function(tx, a)
    local page = awaits.page(tx, keys.missing(tx), a.after, a.limit)
    local count, last = 0, a.after
    for _, item in ipairs(page) do
      local answer = tx:item(function()
        local rec = execution.load(tx, item.member)
        if detail_of(rec).quota_id ~= a.quota_id then return { ok = false } end
        runnable.settle(tx, rec)
        execution.save(tx, rec)
        event.of_execution(tx, rec, "execution.ready", "cause", "waiting_for_quota")
        return { ok = true }
      end)
      if answer and answer.err == "try_again" then
        if count == 0 then return answer end
        return reply.ok("unblocked", { count = count, next = last })
      end
      if answer and answer.ok then count = count + 1 end
      last = awaits.position(item)
    end
    return reply.ok("unblocked", { count = count, next = #page == a.limit and last or nil })
  end,
}
end

source["scope.note"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

define.fn {
  name = "ff_note_scope",
  doc = "Says that a budget applies to everything in a scope, or with `gone` that it does no longer.",
  flags = { "allow-oom" },
  args = { scope = "scope_name", budget_id = "budget_id", gone = "bool?" },
  reply = { noted = { budget_ids = "[budget_id]" } },
  errs = { "budget_in_use" },
  call = function(tx, a)
    local packed = tx:hget(keys.scopes(tx), a.scope)
    local rest = {}
    for _, id in ipairs(packed and cmsgpack.unpack(packed) or {}) do
      if id ~= a.budget_id then rest[#rest + 1] = id end
    end
    if not a.gone then
      if #rest >= limits.budgets_per_scope_max then
        return reply.err("budget_in_use", { scope = a.scope, budgets = #rest })
      end
      rest[#rest + 1] = a.budget_id
      table.sort(rest)
    end
    if #rest > 0 then
      tx:hset(keys.scopes(tx), { a.scope, cmsgpack.pack(rest) })
    else
      tx:hdel(keys.scopes(tx), a.scope)
    end
    return reply.ok("noted", { budget_ids = rest })
  end,
}
end

source["scope.budgets"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_budgets_of_scopes",
  doc = "The budgets that apply in scopes, one list for each.",
  flags = { "no-writes" },
  args = { scopes = "scope_names" },
  reply = { scopes = { items = "[scope_budgets]" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for i, scope in ipairs(a.scopes) do
      local packed = tx:hget(keys.scopes(tx), scope)
      items[i] = { scope = scope, budget_ids = packed and cmsgpack.unpack(packed) or {} }
    end
    return reply.ok("scopes", { items = items })
  end,
}
end

source["lane.define"] = function(require, LIBRARY)
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
end

source["lane.get"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local lane = require "record.lane"

define.fn {
  name = "ff_get_lane",
  doc = "A lane's definition as the fleet or a partition has it.",
  flags = { "no-writes" },
  args = { namespace = "namespace", lane = "lane" },
  reply = { lane = { entry = "lane_entry" } },
  errs = { "lane_not_found" },
  call = function(tx, a)
    local copy = lane.load(tx, a.namespace .. "/" .. a.lane)
    if copy == nil then return reply.err("lane_not_found", { lane = a.lane }) end
    local definition = lane.definition(copy)
    return reply.ok("lane", {
      entry = { namespace = a.namespace, lane = a.lane, version = copy.version, definition = definition },
    })
  end,
}
end

source["lane.list"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local keys = require "lib.keys"
local lane = require "record.lane"

define.fn {
  name = "ff_list_lanes",
  doc = "The fleet's lanes, oldest first.",
  flags = { "no-writes" },
  args = { offset = "count", limit = "list_limit" },
  reply = { lanes = { entries = "[lane_entry]", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local found = tx:zrange(keys.lanes(tx), string.format("%.0f", a.offset), string.format("%.0f", a.offset + a.limit))
    local entries = {}
    for i = 1, math.min(#found, a.limit) do
      local copy = lane.load(tx, found[i])
      if copy then
        local namespace, name = lane.split(found[i])
        entries[#entries + 1] = {
          namespace = namespace, lane = name, version = copy.version, definition = lane.definition(copy),
        }
      end
    end
    return reply.ok("lanes", { entries = entries, more = #found > a.limit })
  end,
}
end

source["lane.install"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local keys = require "lib.keys"
local home = require "index.home"
local queues = require "index.queues"
local lane = require "record.lane"

-- A lane that starts again, or whose work is claimed directly again, is an edge for each of its queues that holds work.
local function announce_queues(tx, path)
  for _, entry in ipairs(queues.all(tx, path)) do
    local below = "(" .. string.format("%.0f", home.granted_from)
    local head = tx:zlowest(keys.queue_named(tx, path, entry.queue), "-inf", below, 1)[1]
    if head then tx:announce("ready", path, entry.queue, head.score) end
  end
end

define.fn {
  name = "ff_install_lane",
  doc = "Gives a partition its copy of a lane's definition; an older version never replaces a newer one.",
  flags = { "allow-oom" },
  args = { entry = "lane_entry" },
  reply = { installed = {}, newer = { version = "count" } },
  errs = {},
  call = function(tx, a)
    local path = a.entry.namespace .. "/" .. a.entry.lane
    local copy = lane.load(tx, path)
    if copy and copy.version >= a.entry.version then return reply.ok("newer", { version = copy.version }) end
    lane.store(tx, path, a.entry.definition, a.entry.version)
    if copy == nil then
      tx:zadd(keys.lanes(tx), tx.now, path)
    elseif lane.starts(a.entry.definition)
      and (not lane.starts(copy) or (copy.max_active and not a.entry.definition.max_active))
    then
      announce_queues(tx, path)
    end
    return reply.ok("installed")
  end,
}
end

source["worker.register"] = function(require, LIBRARY)
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
end

source["worker.heartbeat"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_heartbeat_workers",
  doc = "Keeps registered worker instances alive: one look at each and one write, however many others there are.",
  flags = { "allow-oom" },
  args = { instances = "instances" },
  reply = { beaten = { items = "[heartbeat_result]" } },
  errs = {},
  call = function(tx, a, now)
    local draining = tx:hgetall(keys.draining(tx)) or {}
    local items = {}
    for i, instance in ipairs(a.instances) do
      local expires_at = tx:zscore(keys.workers(tx), instance)
      local known = expires_at ~= nil and now < expires_at
      items[i] = { instance = instance, known = known, draining = known and draining[instance] ~= nil }
    end
    for _, item in ipairs(items) do
      if item.known then worker.touch(tx, item.instance) end
    end
    return reply.ok("beaten", { items = items })
  end,
}
end

source["worker.deregister"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local worker = require "record.worker"

define.fn {
  name = "ff_deregister_worker",
  doc = "Ends a registration; given an incarnation, only that one's. The actor is the operator who insists on it.",
  flags = { "allow-oom" },
  args = { instance = "instance", incarnation = "uuid?", actor = "actor?" },
  reply = { deregistered = {}, unknown = {} },
  errs = { "instance_in_use" },
  call = function(tx, a)
    local w = worker.load(tx, a.instance)
    if w == nil then return reply.ok("unknown") end
    if a.incarnation and w.incarnation and a.incarnation ~= w.incarnation then
      return reply.err("instance_in_use", { instance = a.instance, registered_at = w.registered_at })
    end
    worker.remove(tx, w)
    local data = { "worker_id", w.worker_id }
    if a.actor then data[3], data[4] = "actor", a.actor end
    event.of_fleet(tx, "worker.left", w.namespace, nil, w.instance, unpack(data))
    return reply.ok("deregistered")
  end,
}
end

source["worker.challenge"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_challenge_worker",
  doc = "Asks whoever holds a worker instance id to say that it lives; asked again with the same nonce it says whether "
    .. "the holder answered.",
  flags = { "allow-oom" },
  args = { instance = "instance", nonce = "uuid" },
  reply = { challenged = {}, answered = {}, unknown = {} },
  errs = {},
  call = function(tx, a, now)
    local w = worker.load(tx, a.instance)
    if w == nil or now >= w.expires_at then return reply.ok("unknown") end
    if worker.answered(tx, a.instance) == a.nonce then return reply.ok("answered") end
    tx:announce("challenge", a.instance, a.nonce)
    return reply.ok("challenged")
  end,
}
end

source["worker.answer_challenge"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_answer_challenge",
  doc = "The holder of a worker instance id says that it lives; only the registered incarnation can.",
  flags = { "allow-oom" },
  args = { instance = "instance", incarnation = "uuid", nonce = "uuid" },
  reply = { answered = {} },
  errs = { "worker_not_registered", "instance_in_use" },
  call = function(tx, a)
    local w = worker.load(tx, a.instance)
    if w == nil then return reply.err("worker_not_registered", { instance = a.instance }) end
    if w.incarnation ~= a.incarnation then
      return reply.err("instance_in_use", { instance = a.instance, registered_at = w.registered_at })
    end
    worker.answer(tx, a.instance, a.nonce)
    worker.touch(tx, a.instance)
    tx:announce("answered", a.instance, a.nonce)
    return reply.ok("answered")
  end,
}
end

source["worker.drain"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local outbox = require "lib.outbox"
local worker = require "record.worker"

define.fn {
  name = "ff_drain_worker",
  doc = "An operator asks a worker to take nothing new and to yield what it holds; the request to its leases is owed "
    .. "to every partition.",
  flags = { "allow-oom" },
  args = { instance = "instance", actor = "actor" },
  reply = { draining = {}, already = {} },
  errs = { "worker_not_registered" },
  call = function(tx, a)
    local w = worker.load(tx, a.instance)
    if w == nil then return reply.err("worker_not_registered", { instance = a.instance }) end
    if w.state == "draining" then return reply.ok("already") end
    worker.drain(tx, a.instance)
    event.of_fleet(tx, "worker.draining", w.namespace, nil, w.instance, "actor", a.actor)
    outbox.owe(tx, "yield_leases", { "instance", a.instance, "actor", a.actor })
    return reply.ok("draining")
  end,
}
end

source["worker.mark_dead"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local event = require "lib.event"
local outbox = require "lib.outbox"
local worker = require "record.worker"

define.fn {
  name = "ff_mark_worker_dead",
  doc = "An operator declares a worker dead: its registration ends and its leases are taken away, owed to every "
    .. "partition.",
  flags = { "allow-oom" },
  args = { instance = "instance", actor = "actor" },
  reply = { marked = {} },
  errs = { "worker_not_registered" },
  call = function(tx, a)
    local w = worker.load(tx, a.instance)
    if w == nil then return reply.err("worker_not_registered", { instance = a.instance }) end
    worker.remove(tx, w)
    event.of_fleet(tx, "worker.marked_dead", w.namespace, nil, w.instance, "actor", a.actor)
    outbox.owe(tx, "revoke_leases", { "instance", a.instance, "actor", a.actor })
    return reply.ok("marked")
  end,
}
end

source["worker.list"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_list_workers",
  doc = "Registered workers that are alive, in the order of their instance names.",
  flags = { "no-writes" },
  args = { offset = "count", limit = "list_limit" },
  reply = { workers = { items = "[worker]", more = "bool" } },
  errs = {},
  call = function(tx, a, now)
    local all = worker.all(tx)
    local items = {}
    for i = a.offset + 1, math.min(#all, a.offset + a.limit) do
      if now < all[i].expires_at then items[#items + 1] = worker.load(tx, all[i].instance, all[i].expires_at) end
    end
    return reply.ok("workers", { items = items, more = #all > a.offset + a.limit })
  end,
}
end

source["worker.get"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local worker = require "record.worker"

define.fn {
  name = "ff_get_worker",
  doc = "One registered worker.",
  flags = { "no-writes" },
  args = { instance = "instance" },
  reply = { worker = { item = "worker" } },
  errs = { "worker_not_registered" },
  call = function(tx, a, now)
    local w = worker.load(tx, a.instance)
    if w == nil or now >= w.expires_at then return reply.err("worker_not_registered", { instance = a.instance }) end
    return reply.ok("worker", { item = w })
  end,
}
end

source["worker.offer"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"

define.fn {
  name = "ff_offer_grant",
  doc = "Tells whichever server a worker claims from of a grant that an operator gave the worker.",
  flags = { "allow-oom" },
  args = { instance = "instance", execution_id = "execution_id", grant_id = "grant_id" },
  reply = { offered = {} },
  errs = {},
  call = function(tx, a)
    tx:announce("offered", a.instance, a.execution_id, a.grant_id)
    return reply.ok("offered")
  end,
}
end

source["worker.heartbeat_server"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local keys = require "lib.keys"
local limits = require "lib.limits"

define.fn {
  name = "ff_heartbeat_server",
  doc = "Keeps a server's record alive and answers every live one: partitions are shared among them.",
  flags = { "allow-oom" },
  args = { server_id = "uuid", listening = "bool", leave = "bool?" },
  reply = { servers = { items = "[server]" } },
  errs = {},
  call = function(tx, a, now)
    local key = keys.servers(tx)
    local ids, found = {}, tx:hgetall(key) or {}
    local mine = { now + limits.server_ttl_ms, a.listening }
    if a.leave then
      tx:hdel(key, a.server_id)
      found[a.server_id] = nil
    else
      found[a.server_id] = cmsgpack.pack(mine)
      tx:hset(key, { a.server_id, found[a.server_id] })
    end
    for id in pairs(found) do ids[#ids + 1] = id end
    table.sort(ids)
    local items = {}
    for _, id in ipairs(ids) do
      local record = cmsgpack.unpack(found[id])
      if record[1] > now then
        items[#items + 1] = { server_id = id, expires_at = record[1], listening = record[2] }
      elseif record[1] + 10 * limits.server_ttl_ms < now then
        tx:hdel(key, id)
      end
    end
    return reply.ok("servers", { items = items })
  end,
}
end

source["query.describe"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local execution = require "record.execution"
local view = require "record.view"

define.fn {
  name = "ff_describe_execution",
  doc = "Everything the store knows about one execution.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id" },
  reply = { found = { execution = "execution" } },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    return reply.ok("found", { execution = view.whole(tx, rec) })
  end,
}
end

source["query.attempt"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local attempt = require "record.attempt"
local execution = require "record.execution"

define.fn {
  name = "ff_get_attempt",
  doc = "One attempt of an execution, however old.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id", index = "attempt_index" },
  reply = { found = { attempt = "attempt" } },
  errs = { "execution_not_found", "attempt_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local found = attempt.stored(tx, rec, a.index)
    if found == nil then return reply.err("attempt_not_found", { index = a.index }) end
    return reply.ok("found", { attempt = found })
  end,
}
end

source["query.list"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local home = require "index.home"
local queues = require "index.queues"
local execution = require "record.execution"
local view = require "record.view"

local by_creation = {
  delayed = "delayed", suspended = "suspended", completed = "terminal", failed = "terminal", cancelled = "terminal",
  expired = "terminal", skipped = "terminal",
}

-- The narrowest indexes that hold every match, each with what its scores add to the creation time.
local function sources(tx, a)
  if a.tag_key then return { { keys.tag(tx, a.tag_key, a.tag_value), 0 } } end
  if a.kind then return { { keys.kind(tx, a.kind), 0 } } end
  if a.namespace and a.lane and a.state then
    local path = a.namespace .. "/" .. a.lane
    if by_creation[a.state] then return { { keys.place(tx, path, by_creation[a.state]), 0 } } end
    if a.state == "active" then
      local list = {}
      for _, entry in ipairs(queues.all(tx, path)) do
        list[#list + 1] = { keys.queue_named(tx, path, entry.queue), home.active_from }
      end
      return list
    end
  end
  return { { keys.all(tx), 0 } }
end

local function before(a, b)
  if a.created_at ~= b.created_at then return a.created_at > b.created_at end
  return a.id > b.id
end

local function number(n) return string.format("%.0f", n) end

-- The entries of the position's own millisecond that come after it: those with a smaller id.
local function same_millisecond(tx, key, at, id)
  local found, offset = {}, 0
  for _ = 1, limits.list_pages_per_millisecond_max do
    local page = tx:zhighest(key, at, at, limits.list_looks_max, offset)
    for _, item in ipairs(page) do
      if item.member < id then found[#found + 1] = item end
    end
    offset = offset + #page
    if #page < limits.list_looks_max then break end
  end
  return found
end

-- Entries of one index after the position, newest first: at most `looks`, and those of the position's own millisecond.
local function entries_of(tx, source, a, looks)
  local key, base = source[1], source[2]
  local high, low = base + limits.time_ms_max / 8, base + (a.created_after or 0)
  if a.created_before then high = base + a.created_before end
  local after = a.after
  local found, full
  if after and base + after.created_at <= high then
    local at = number(base + after.created_at)
    found = same_millisecond(tx, key, at, after.execution_id)
    local older = tx:zhighest(key, "(" .. at, number(low), looks)
    for _, item in ipairs(older) do found[#found + 1] = item end
    full = #older == looks
  else
    found = tx:zhighest(key, number(high), number(low), looks)
    full = #found == looks
  end
  local list = {}
  for _, item in ipairs(found) do
    local entry = { id = item.member, created_at = item.score - base }
    local outside = item.score < low or item.score > high
    if not outside and (after == nil or before({ id = after.execution_id, created_at = after.created_at }, entry)) then
      list[#list + 1] = entry
    end
  end
  return list, full
end

local function tag_matches(rec, a)
  if a.tag_key == nil then return true end
  local flat = rec.tags and cmsgpack.unpack(rec.tags) or {}
  for i = 1, #flat, 2 do
    if flat[i] == a.tag_key then return flat[i + 1] == a.tag_value end
  end
  return false
end

local function matches(rec, a)
  return (a.namespace == nil or execution.namespace(rec) == a.namespace)
    and (a.lane == nil or execution.lane(rec) == a.lane)
    and (a.kind == nil or rec.kind == a.kind)
    and (a.state == nil or execution.public_state(rec) == a.state)
    and (a.worker == nil or (rec.phase == "active" and rec.worker == a.worker))
    and tag_matches(rec, a)
end

local function worker_entries(tx, a)
  local leases = require "index.leases"
  local list = {}
  for _, id in ipairs(leases.ids(tx, a.worker)) do
    local rec = execution.load(tx, id)
    if rec then
      local entry = { id = id, created_at = rec.created }
      local later = a.after == nil or before({ id = a.after.execution_id, created_at = a.after.created_at }, entry)
      local inside = entry.created_at >= (a.created_after or 0)
        and entry.created_at <= (a.created_before or limits.time_ms_max)
      if later and inside then list[#list + 1] = entry end
    end
  end
  return list
end

-- The members of a flow, the one added last first; `after` is the last one looked at.
local function member_entries(tx, a, looks)
  local last = a.after and execution.load(tx, a.after.execution_id)
  if a.after and last == nil then return {}, false end
  local top = last and string.format("(%.0f", last.number) or "+inf"
  local list = {}
  local found = tx:zhighest(keys.flow_members(tx, a.flow_id), top, "-inf", looks)
  for _, item in ipairs(found) do
    local rec = execution.load(tx, item.member)
    local created = rec and rec.created
    if rec and created >= (a.created_after or 0) and created <= (a.created_before or limits.time_ms_max) then
      list[#list + 1] = { id = item.member, created_at = created }
    end
  end
  return list, #found == looks
end

define.fn {
  name = "ff_list_executions",
  doc = "Executions of this partition, newest first, that match every filter given. Looks at a bounded number of index "
    .. "entries; a page may be short, `more` says whether to go on after `last`.",
  flags = { "no-writes" },
  weight = "limit",
  args = {
    namespace = "namespace?", lane = "lane?", kind = "kind?", state = "public_state?", tag_key = "tag_key?",
    tag_value = "tag_value?", worker = "instance?", flow_id = "flow_id?", created_after = "time_ms?",
    created_before = "time_ms?", after = "position?", limit = "list_limit",
  },
  reply = { page = { items = "[summary]", last = "position?", more = "bool" } },
  errs = {},
  call = function(tx, a)
    if (a.tag_key == nil) ~= (a.tag_value == nil) then
      return reply.err("invalid_argument", { field = "tag_value", problem = "tag_key and tag_value go together" })
    end
    local entries, more = {}, false
    if a.flow_id then
      entries, more = member_entries(tx, a, math.min(limits.list_looks_max, math.max(a.limit * 2, 64)))
    elseif a.worker and not a.tag_key then
      entries = worker_entries(tx, a)
    else
      local looks = math.min(limits.list_looks_max, math.max(a.limit * 2, 64))
      for _, source in ipairs(sources(tx, a)) do
        local found, full = entries_of(tx, source, a, looks)
        more = more or full
        for _, entry in ipairs(found) do entries[#entries + 1] = entry end
      end
    end
    if not a.flow_id then table.sort(entries, before) end
    local items, last = {}, nil
    for i, entry in ipairs(entries) do
      if #items >= a.limit then more = true break end
      local rec = execution.load(tx, entry.id)
      if rec and matches(rec, a) then items[#items + 1] = { rec.id, tx:record(keys.core(tx, rec.id)) } end
      last = { created_at = entry.created_at, execution_id = entry.id }
      if i >= limits.list_looks_max then more = more or #entries > i break end
    end
    return reply.ok("page", { items = items, last = last, more = more })
  end,
}
end

source["query.events"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"

-- Entries from a place on, until they hold `limit` events or enough bytes.
local function read(tx, key, from, limit)
  local out, bytes, step = {}, 0, math.min(limit, 16)
  while true do
    local page = tx:xrange(key, from, "+", step)
    for _, entry in ipairs(page) do
      out[#out + 1] = { id = entry[1], number = tonumber(entry[2][1]), events = entry[2][2] }
      bytes = bytes + #entry[2][2]
    end
    if #page < step or bytes > limits.stream_read_bytes_max then return out end
    -- How many events the last entry holds is known by the next one only.
    local seen = out[#out].number - out[1].number + 1
    if seen >= limit then return out end
    from, step = "(" .. page[#page][1], math.min(limit - seen, 64)
  end
end

define.fn {
  name = "ff_read_events",
  doc = "Entries of events of this partition, oldest first, that hold at least `limit` events if there are that many. "
    .. "`after` is an entry that was read whole, or a place inside of one, which is answered again; `from_ms` starts "
    .. "at a time instead. Says the oldest and latest entry kept, whether the stream is cut at its length, and the "
    .. "time up to which this is complete.",
  flags = { "no-writes" },
  weight = "limit",
  args = { after = "event_place?", from_ms = "time_ms?", limit = "list_limit" },
  reply = {
    events = {
      entries = "[event_entry]", oldest = "stream_id?", latest = "stream_id?", full = "bool", now = "time_ms",
    },
  },
  errs = {},
  call = function(tx, a)
    local key = keys.events(tx)
    local from = "-"
    if a.after then
      local id, inside = string.match(a.after, "^(%d+%-%d+)(.*)$")
      from = inside == "" and "(" .. id or id
    elseif a.from_ms then
      from = string.format("%.0f-0", a.from_ms)
    end
    local entries = read(tx, key, from, a.limit)
    local first, last = tx:xrange(key, "-", "+", 1)[1], tx:xlast(key)
    local ever = tonumber(tx:get(keys.event_count(tx)) or "0")
    return reply.ok("events", {
      entries = entries, oldest = first and first[1], latest = last and last[1], now = tx.now,
      full = first ~= nil and ever - tonumber(first[2][1]) + 1 >= limits.events_max,
    })
  end,
}
end

source["query.outbox"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local outbox = require "lib.outbox"
local reply = require "lib.reply"

define.fn {
  name = "ff_read_outbox",
  doc = "Effects this partition owes, oldest first; with `after`, those behind that one.",
  flags = { "no-writes" },
  args = { after = "stream_id?", limit = "list_limit" },
  reply = { effects = { items = "[effect]" } },
  errs = {},
  call = function(tx, a)
    local items = {}
    for i, entry in ipairs(tx:xrange(keys.outbox(tx), a.after and "(" .. a.after or "-", "+", a.limit)) do
      items[i] = outbox.parse(entry)
    end
    return reply.ok("effects", { items = items })
  end,
}
end

source["query.explain"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local children = require "record.children"
local dependencies = require "record.dependencies"
local queues = require "index.queues"
local execution = require "record.execution"
local holds = require "record.holds"
local lane = require "record.lane"
local view = require "record.view"

-- How far the edges into a member are, and the first upstreams that have not ended.
local function dependency_facts(tx, rec)
  local d, open = dependencies.load(rec), {}
  for _, item in ipairs(dependencies.upstreams(tx, rec.id, 0, limits.list_looks_max)) do
    if #open >= limits.dependencies_shown_max then break end
    local e = dependencies.edge(tx, item.from, item.number)
    local up = e.state == "pending" and execution.load(tx, item.from, true)
    if up then
      open[#open + 1] = { execution_id = up.id, key = up.key, state = execution.member_state(up), on = e.on }
    end
  end
  local inbound = rec.inbound
  return {
    policy = inbound and inbound.policy or "all_of", needed = dependencies.needed(inbound, d.total), total = d.total,
    met = d.met, dead = d.dead, held = rec.hidden ~= nil, open = open,
  }
end

local function children_facts(rec)
  local k = children.load(rec)
  return { total = k.total, open = k.open, nested = rec.nested }
end

define.fn {
  name = "ff_explain_execution",
  doc = "The facts of this partition that say why an execution is not running.",
  flags = { "no-writes" },
  args = { execution_id = "execution_id" },
  reply = {
    facts = {
      execution = "execution", lane_state = "lane_state?", max_active = "max_active?", ahead = "count?",
      queue = "queue", uncovered = "bool", dependencies = "dependency_facts?", children = "children_facts?",
    },
  },
  errs = { "execution_not_found" },
  call = function(tx, a)
    local rec = execution.load(tx, a.execution_id)
    if rec == nil then return reply.err("execution_not_found") end
    local path = rec.path
    local copy = lane.load(tx, path)
    local ahead
    if rec.phase == "runnable" and rec.reason == nil and rec.delay == nil and rec.grant == nil then
      ahead = tx:zrank(keys.queue(tx, path, rec.queue, rec.kind), rec.id)
    end
    local name = queues.name(rec.queue, rec.kind)
    local entry = queues.get(tx, path, name)
    local whole = view.whole(tx, rec)
    -- What its budgets have to admit: more than it estimated once a report was refused.
    whole.budgets = holds.asked_budgets(rec) or {}
    return reply.ok("facts", {
      execution = whole, lane_state = copy and copy.state, max_active = copy and copy.max_active, ahead = ahead,
      queue = name, uncovered = entry ~= nil and entry.uncovered,
      dependencies = rec.deps and dependency_facts(tx, rec) or nil,
      children = rec.reason == "waiting_for_children" and children_facts(rec) or nil,
    })
  end,
}
end

source["query.explain_lane"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local execution = require "record.execution"
local spec = require "record.spec"

-- What says by itself why it waits is only counted, by the stats.
local places = { "blocked:route", "blocked:quota", "blocked:budget", "delayed", "suspended" }

local function is_delayed(rec, path)
  return rec ~= nil and rec.phase == "runnable" and rec.reason == nil and rec.delay ~= nil and rec.path == path
end

define.fn {
  name = "ff_explain_lane",
  doc = "What the work of a lane waits for in this partition: up to `limit` each of those blocked, delayed and "
    .. "suspended, the longest waiting first, and the first delay to end.",
  flags = { "no-writes" },
  args = { namespace = "namespace", lane = "lane", limit = "batch_size" },
  reply = { waiting = { items = "[lane_waiter]", next_delay_at = "time_ms?" } },
  errs = {},
  call = function(tx, a)
    local path, items, first = a.namespace .. "/" .. a.lane, {}, nil
    local function sees(delay)
      if first == nil or delay < first then first = delay end
    end
    for _, place in ipairs(places) do
      for _, item in ipairs(tx:zlowest(keys.place(tx, path, place), "-inf", "+inf", a.limit)) do
        local rec = execution.load(tx, item.member)
        if rec then
          items[#items + 1] = {
            execution_id = rec.id, state = execution.public_state(rec), reason = rec.reason,
            requires = rec.requires or {}, detail = rec.detail and spec.unflatten(rec.detail) or nil,
          }
          if place == "delayed" then sees(rec.delay) end
        end
      end
    end
    -- Delays stand by creation in their place, and by their end among the timers of all lanes.
    for _, item in ipairs(tx:zlowest(keys.timers(tx), "-inf", "+inf", a.limit)) do
      local rec = execution.load(tx, item.member)
      if is_delayed(rec, path) then sees(rec.delay) end
    end
    return reply.ok("waiting", { items = items, next_delay_at = first })
  end,
}
end

source["query.ahead"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local queues = require "index.queues"

define.fn {
  name = "ff_count_ahead",
  doc = "How many eligible executions of a lane stand before another of any partition here; `more` when they are more "
    .. "than one call looks at.",
  flags = { "no-writes" },
  args = { namespace = "namespace", lane = "lane", score = "int", execution_id = "execution_id" },
  reply = { ahead = { count = "count", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local path, count, more = a.namespace .. "/" .. a.lane, 0, false
    local function look(queue)
      local key = keys.queue_named(tx, path, queue)
      local found = tx:zlowest(key, "-inf", string.format("%.0f", a.score), limits.list_looks_max)
      for _, item in ipairs(found) do
        if item.score < a.score or item.member < a.execution_id then count = count + 1 end
      end
      more = more or #found == limits.list_looks_max
    end
    for _, entry in ipairs(queues.all(tx, path)) do look(entry.queue) end
    return reply.ok("ahead", { count = count, more = more })
  end,
}
end

source["query.leases"] = function(require, LIBRARY)
local define = require "lib.define"
local limits = require "lib.limits"
local reply = require "lib.reply"
local execution = require "record.execution"
local leases = require "index.leases"
local start = require "transition.start"

define.fn {
  name = "ff_find_leases",
  doc = "The live leases a worker instance holds in this partition, at most 1000, and the whole tasks of those that "
    .. "one request claimed: their ids begin alike.",
  flags = { "no-writes" },
  args = { instance = "instance", lease_prefix = "lease_prefix?" },
  reply = { found = { leases = "[held_lease]", tasks = "[task]" } },
  errs = {},
  call = function(tx, a, now)
    local ids = leases.ids(tx, a.instance)
    local found, tasks = {}, {}
    for i = 1, math.min(#ids, limits.list_looks_max) do
      local rec = execution.load(tx, ids[i])
      if rec and rec.phase == "active" and now < rec.lease_until then
        found[#found + 1] = { execution_id = rec.id, lease_id = rec.lease_id, lease_expires_at = rec.lease_until }
        if a.lease_prefix and string.sub(rec.lease_id, 1, 23) == a.lease_prefix and #tasks < limits.batch_max then
          tasks[#tasks + 1] = start.task(tx, rec)
        end
      end
    end
    return reply.ok("found", { leases = found, tasks = tasks })
  end,
}
end

source["query.signals"] = function(require, LIBRARY)
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
end

source["query.stats"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local home = require "index.home"
local queues = require "index.queues"
local execution = require "record.execution"
local flow = require "record.flow"
local lane = require "record.lane"

local function band(n) return string.format("%.0f", n) end

-- The first that could run, from this score on.
local function eligible_from(tx, key, low, count)
  return tx:zlowest(key, low, "(" .. band(home.granted_from), count)
end

-- Counts and head of one queue.
local function queue_counts(tx, path, name)
  local key = keys.queue_named(tx, path, name)
  -- A host may count a band entry by entry: only the small ones are counted, the backlog is what remains.
  local granted = tx:zcount(key, band(home.granted_from), "(" .. band(home.active_from))
  local active = tx:zcount(key, band(home.active_from), "+inf")
  local eligible = tx:zcard(key) - granted - active
  local head
  if eligible > 0 then head = eligible_from(tx, key, "-inf", 1)[1] end
  return eligible, granted, active, head, key
end

-- When the oldest that waits in a queue was made, as far as a bounded look tells. Age and strict priority keep each
-- priority together, its oldest first, so one entry of each is looked at; elsewhere the next in line are.
local function oldest(tx, copy, key, head)
  local strict = copy.fairness == "fifo" and copy.priority_weight == limits.strict_priority_weight
  local looked_at = strict and { head } or eligible_from(tx, key, "-inf", limits.oldest_looks_max)
  local found
  for i = 1, limits.oldest_looks_max do
    local rec = looked_at[i] and execution.load(tx, looked_at[i].member)
    if not rec then break end
    found = math.min(found or rec.created, rec.created)
    if strict and rec.prio > 0 then
      looked_at[i + 1] = eligible_from(tx, key, "(" .. band(tx.now - rec.prio * copy.priority_weight), 1)[1]
    end
  end
  return found
end

local function lane_counts(tx, path)
  local namespace, name = lane.split(path)
  local copy = lane.load(tx, path)
  local counts = {
    namespace = namespace, lane = name, state = copy.state, eligible = 0, granted = 0, active = 0, queues = {},
  }
  local first
  for _, entry in ipairs(queues.all(tx, path)) do
    local eligible, granted, active, head, key = queue_counts(tx, path, entry.queue)
    counts.eligible, counts.granted, counts.active =
      counts.eligible + eligible, counts.granted + granted, counts.active + active
    if head and (first == nil or head.score < first.score) then first = head end
    local since = head and oldest(tx, copy, key, head)
    if since then counts.oldest_eligible_at = math.min(counts.oldest_eligible_at or since, since) end
    if eligible > 0 or entry.uncovered or #entry.requires > 0 then
      counts.queues[#counts.queues + 1] = {
        queue = entry.queue, kind = entry.kind, requires = entry.requires, admission = entry.admission,
        eligible = eligible, uncovered = entry.uncovered, head_score = head and head.score,
      }
    end
  end
  counts.head_score = first and first.score
  for _, place in ipairs(home.places) do
    counts[string.gsub(place, ":", "_")] = tx:zcard(keys.place(tx, path, place))
  end
  return counts
end

-- Members of stopped flows that have not been cancelled yet; the flows stopped first are counted.
local function pending_cancels(tx)
  local pending = 0
  for _, id in ipairs(tx:zrange(keys.cancel_backlog(tx), "0", string.format("%d", limits.batch_max - 1))) do
    local f = flow.load(tx, id)
    if f then
      pending = pending + flow.open(f)
      if flow.stopped(f).policy ~= "cancel_all" then pending = pending - (f.n_active or 0) end
    end
  end
  return pending
end

-- The paths of the lanes this call is about, and whether more follow: the one that was named, or a page of all.
local function page(tx, a)
  if a.namespace and a.lane then
    local path = a.namespace .. "/" .. a.lane
    return tx:zscore(keys.lanes(tx), path) and { path } or {}, false
  end
  local first = a.offset or 0
  local last = first + limits.lanes_per_call_max
  local found = tx:zrange(keys.lanes(tx), string.format("%.0f", first), string.format("%.0f", last))
  local more = #found > limits.lanes_per_call_max
  if more then found[#found] = nil end
  return found, more
end

define.fn {
  name = "ff_partition_stats",
  doc = "Counts of this partition: timers, events, outbox, what was set aside, and per lane and state; at most 32 "
    .. "lanes from `offset` on.",
  flags = { "no-writes" },
  args = { namespace = "namespace?", lane = "lane?", offset = "count?" },
  reply = {
    stats = {
      lanes = "[lane_counts]", more = "bool", executions = "count", timers = "count", next_timer_at = "time_ms?",
      stuck = "count", events = "count", outbox = "count", flows = "count", cancel_backlog = "count",
      pending_cancels = "count", schedules = "count",
    },
  },
  errs = {},
  call = function(tx, a)
    local lanes = {}
    local paths, more = page(tx, a)
    for _, path in ipairs(paths) do
      local namespace, name = lane.split(path)
      if (a.namespace == nil or a.namespace == namespace) and (a.lane == nil or a.lane == name) then
        lanes[#lanes + 1] = lane_counts(tx, path)
      end
    end
    local head = tx:zhead(keys.timers(tx))
    return reply.ok("stats", {
      lanes = lanes, more = more, executions = tx:zcard(keys.all(tx)), timers = tx:zcard(keys.timers(tx)),
      next_timer_at = head and head.score, stuck = tx:zcard(keys.stuck(tx)), events = event.kept(tx),
      outbox = tx:xlen(keys.outbox(tx)), flows = tx:zcard(keys.flows(tx)),
      cancel_backlog = tx:zcard(keys.cancel_backlog(tx)), pending_cancels = pending_cancels(tx),
      schedules = tx:zcard(keys.schedules(tx)),
    })
  end,
}
end

source["query.depth"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local home = require "index.home"
local queues = require "index.queues"

define.fn {
  name = "ff_lane_depth",
  doc = "How many executions of a lane wait in this partition: eligible, delayed or blocked.",
  flags = { "no-writes" },
  args = { namespace = "namespace", lane = "lane" },
  reply = { depth = { depth = "count" } },
  errs = {},
  call = function(tx, a)
    local path = a.namespace .. "/" .. a.lane
    local active = string.format("%.0f", home.active_from)
    local function waiting(name)
      local key = keys.queue_named(tx, path, name)
      return tx:zcard(key) - tx:zcount(key, active, "+inf")
    end
    local depth = 0
    for _, entry in ipairs(queues.all(tx, path)) do depth = depth + waiting(entry.queue) end
    for _, place in ipairs(home.places) do
      if place ~= "terminal" and place ~= "suspended" then depth = depth + tx:zcard(keys.place(tx, path, place)) end
    end
    return reply.ok("depth", { depth = depth })
  end,
}
end

source["query.library"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"

define.fn {
  name = "ff_library",
  doc = "The number and hash of the library that answers.",
  flags = { "no-writes" },
  args = {},
  reply = { library = { number = "count", hash = "text" } },
  errs = {},
  call = function()
    return reply.ok("library", { number = LIBRARY.number, hash = LIBRARY.hash })
  end,
}
end

source["maintenance.flow_invariants"] = function(require, LIBRARY)
-- What must hold for a flow and for the part of a member that its flow knows; the numbers are those of ARCHITECTURE.md.
local keys = require "lib.keys"
local dependencies = require "record.dependencies"
local execution = require "record.execution"
local children = require "record.children"
local flow = require "record.flow"
local owed = require "transition.owed"
local resolve = require "transition.resolve"

local check = {}

-- Edges looked at of one member or child list; a longer one is checked as far.
local looks = 1024

local function expect(found, findings, number, key, what, stored, counted)
  if stored ~= counted then
    local problem = string.format("%s is %s, counted %s", what, tostring(stored), tostring(counted))
    found(findings, number, key, problem, false)
  end
end

-- The edges into a member: its counts are those of the edges, and what it is follows from them.
local function check_inbound(tx, rec, findings, found)
  local key = keys.edges_in(tx, rec.id)
  local d, total = dependencies.load(rec), tx:zcard(key)
  expect(found, findings, 21, key, "total", d.total, total)
  if total > looks then return end
  local met, dead, hopes, bytes, gone = 0, 0, 0, 0, false
  for _, item in ipairs(dependencies.upstreams(tx, rec.id, 0, looks)) do
    local e, up = dependencies.edge(tx, item.from, item.number), execution.load(tx, item.from, true)
    if up == nil then
      -- Retired before this one, with its edges: what they said counts on.
      gone = true
    elseif e == nil or e.to ~= rec.id then
      found(findings, 19, key, item.from .. " has no such edge", false)
    else
      if e.state == "met" then met, bytes = met + 1, bytes + (e.bytes or 0) end
      if e.state == "dead" then dead = dead + 1 end
      if e.hope then hopes = hopes + 1 end
      if e.state ~= "pending" and up.phase ~= "terminal" and d.decided == nil and rec.phase ~= "terminal"
        and up.owed == nil
      then
        found(findings, 19, key, "edge from " .. item.from .. " is " .. e.state .. " before it ended", false)
      end
    end
  end
  if gone then return end
  expect(found, findings, 21, key, "met", d.met, met)
  expect(found, findings, 21, key, "dead", d.dead, dead)
  expect(found, findings, 23, key, "bytes", d.bytes, bytes)
  if d.decided == nil then expect(found, findings, 21, key, "hopes", d.hopes, hopes) end
end

-- Nothing runs before its policy is satisfied, and what can no longer run is skipped.
local function check_decision(tx, rec, f, findings, found)
  local key, d = keys.core(tx, rec.id), dependencies.load(rec)
  local judged = dependencies.judge(rec.inbound, d)
  if ((rec.attempt ~= nil and rec.next ~= "replay") or rec.phase == "active") and d.decided ~= "ready" then
    found(findings, 18, key, "started although its edges do not let it", false)
  end
  if d.decided == nil and judged and not rec.hidden and rec.phase == "runnable" and f.stop == nil and rec.owed == nil
    and f.owed == nil
  then
    found(findings, judged == "skip" and 20 or 18, key, "is not decided, should be " .. judged, false)
  end
end

local function check_outbound(tx, rec, f, findings, found)
  local key = keys.edges_out(tx, rec.id)
  local outs = rec.outs or 0
  for _, e in ipairs(dependencies.edges(tx, rec.id, 1, math.min(outs, looks))) do
    local down = execution.load(tx, e.to, true)
    if down and tx:zscore(keys.edges_in(tx, e.to), rec.id) ~= e.number then
      found(findings, 19, key, "edge to " .. e.to .. " is not known there", false)
    end
    -- A skipped member that was run again waits until its upstreams are run again.
    if down and down.replays == nil and rec.phase == "terminal" and e.state == "pending"
      and e.number <= (rec.reached or 0)
    then
      found(findings, 19, key, "edge to " .. e.to .. " was passed over", false)
    end
  end
  -- What ended while its flow was stopped decides nothing, also after the flow was opened again.
  if rec.phase == "terminal" and (rec.reached or 0) < outs and not rec.halted and rec.owed == nil and f.stop == nil
    and f.outcome == nil
  then
    found(findings, 19, key, "its end has not reached all its edges", false)
  end
  if f.stop == nil then
    expect(found, findings, 21, keys.core(tx, rec.id), "verdict", rec.verdict, resolve.verdict(rec))
  end
end

local function check_debts(tx, rec, findings, found)
  local due = tx:zscore(keys.timers(tx), owed.timer(rec.id)) ~= nil
  if due ~= (rec.owed ~= nil) then
    local problem = due and " owes nothing" or " owes something and nothing wakes it"
    found(findings, 11, keys.timers(tx), rec.id .. problem, false)
  end
end

local function check_children(tx, rec, findings, found)
  local key, k = keys.children(tx, rec.id), children.load(rec)
  local open, seen = 0, 0
  for _, id in ipairs(children.ids(tx, rec, 1, looks)) do
    seen = seen + 1
    local child = execution.load(tx, id)
    if child == nil or child.parent_id ~= rec.id then
      found(findings, 37, key, id .. " is no child of this execution", false)
    elseif child.phase ~= "terminal" then
      open = open + 1
    end
  end
  if seen < looks then expect(found, findings, 36, key, "open", k.open, open) end
  if rec.phase ~= "terminal" then
    if rec.reason == "waiting_for_children" and rec.nested == nil and k.open == 0 then
      found(findings, 10, keys.core(tx, rec.id), "waits for children that have ended", false)
    end
  end
end

function check.member(tx, rec, findings, found)
  check_debts(tx, rec, findings, found)
  if rec.kids then check_children(tx, rec, findings, found) end
  if rec.flow_id == nil then return end
  local f = flow.load(tx, rec.flow_id)
  if f == nil then return found(findings, 37, keys.core(tx, rec.id), "its flow is gone", false) end
  if tx:zscore(keys.flow_members(tx, f.id), rec.id) ~= rec.number then
    found(findings, 21, keys.flow_members(tx, f.id), rec.id .. " is missing", false)
  end
  if tx:hget(keys.flow_names(tx, f.id), rec.key) ~= rec.id then
    found(findings, 21, keys.flow_names(tx, f.id), rec.key .. " does not name " .. rec.id, false)
  end
  if rec.deps then
    check_inbound(tx, rec, findings, found)
    check_decision(tx, rec, f, findings, found)
  end
  check_outbound(tx, rec, f, findings, found)
  if f.stop and rec.phase == "active" and flow.stopped(f).policy == "cancel_all" and f.walk ~= "cancel" then
    found(findings, 17, keys.core(tx, rec.id), "runs although its flow is cancelled", false)
  end
end

-- A flow: its counts are those of its members, and it is over when they are.
function check.flow(tx, f, findings, found)
  local key = keys.flow(tx, f.id)
  local members = keys.flow_members(tx, f.id)
  local total = tx:zcard(members)
  expect(found, findings, 21, key, "stored", f.stored, total)
  if tx:zscore(keys.flows(tx), f.id) ~= f.created then
    found(findings, 10, keys.flows(tx), f.id .. " is missing", false)
  end
  if tx:zscore(keys.timers(tx), flow.timer(f.id)) ~= flow.wake_at(f) then
    found(findings, 11, keys.timers(tx), flow.timer(f.id) .. " should wake at another time", false)
  end
  if (tx:zscore(keys.cancel_backlog(tx), f.id) ~= nil) ~= (f.walk == "cancel") then
    found(findings, 11, keys.cancel_backlog(tx), f.id .. " and its walk disagree", false)
  end
  if f.ended == nil and f.sealed and f.walk == nil and f.owed == nil and flow.open(f) == 0 then
    found(findings, 21, key, "is not over although its members are", false)
  end
  local counts, uncaught, sinks, owing, last, page = {}, 0, 0, 0, 0, nil
  repeat
    page = tx:zlowest(members, string.format("(%.0f", last), "+inf", looks)
    for _, item in ipairs(page) do
      last = item.score
      local rec = execution.load(tx, item.member, true)
      if rec == nil then
        found(findings, 37, members, item.member .. " has no record", false)
      else
        local state = execution.member_state(rec)
        counts[state] = (counts[state] or 0) + 1
        if rec.verdict == "uncaught" then uncaught = uncaught + 1 end
        if rec.verdict == "good_sink" then sinks = sinks + 1 end
        if rec.owed then owing = owing + 1 end
      end
    end
  until #page < looks
  for _, list in ipairs({ flow.open_states, flow.ended_states }) do
    for _, state in ipairs(list) do expect(found, findings, 21, key, state, f["n_" .. state], counts[state]) end
  end
  expect(found, findings, 21, key, "uncaught", f.uncaught or 0, uncaught)
  expect(found, findings, 21, key, "sinks", f.sinks or 0, sinks)
  expect(found, findings, 21, key, "owed", f.owed or 0, owing)
end

return check
end

source["maintenance.head_invariants"] = function(require, LIBRARY)
-- What must hold for the queues of a lane: a claim finds everything that is eligible.
local keys = require "lib.keys"
local queues = require "index.queues"

local heads = {}

-- The heads name queues that are there.
function heads.check(tx, key, path, findings, repair, found)
  for _, name in ipairs(tx:zrange(key, "0", "999")) do
    if queues.get(tx, path, name) == nil then
      found(findings, 37, key, "queue " .. name .. " is not there", repair)
      if repair then tx:zrem(key, name) end
    end
  end
end

-- An eligible execution stands in a queue that claims look at, and not behind the head they know of.
function heads.check_entry(tx, rec, score, findings, repair, found)
  local name = queues.name(rec.queue, rec.kind)
  local entry = queues.get(tx, rec.path, name)
  local main = queues.main(tx, rec.path) == name
  local head = not main and tx:zscore(keys.heads(tx, rec.path), name)
  if entry and (main or (head and head <= score)) then return end
  found(findings, 10, keys.heads(tx, rec.path), rec.id .. " stands in queue " .. name .. " before its head", repair)
  if repair then queues.mend(tx, rec.path, name, rec.requires, score) end
end

return heads
end

source["maintenance.quota_invariants"] = function(require, LIBRARY)
-- What must hold for quotas and their keys; the numbers are those of the invariants in ARCHITECTURE.md.
local keys = require "lib.keys"
local limits = require "lib.limits"
local quota = require "record.quota"
local holders = require "index.holders"
local quota_key = require "index.quota_key"

local invariants = {}

local function shown(n) return string.format("%.0f", n) end

-- No more holders than the limit; one that was lowered lets those who are in finish.
local function check_holders(tx, q, k, findings, found)
  local cap = q.definition.concurrency
  if cap and q.version == 1 and k.held > cap then
    found(findings, 32, k.holders, shown(k.held) .. " hold it, " .. shown(cap) .. " may", false)
  end
end

-- No more starts in a window than the limit, since the definition is what it is.
local function check_rate(tx, q, k, findings, found)
  local rate = q.definition.rate
  if rate == nil then return end
  local from = math.max(tx.now - rate.window_ms, q.changed)
  local starts = tx:zcount(k.rate, "(" .. shown(from), "+inf")
  if starts > rate.limit then
    found(findings, 33, k.rate, shown(starts) .. " started in a window, " .. shown(rate.limit) .. " may", false)
  end
end

-- The sum is that of the entries, as far as one call counts them.
local function check_weights(tx, q, k, findings, repair, found)
  if q.definition.weighted == nil then return end
  local all = tx:hgetall(k.weights) or {}
  local sum, count = 0, 0
  for _, weight in pairs(all) do sum, count = sum + tonumber(weight), count + 1 end
  local stored = k.was.sum or 0
  if sum ~= stored then
    found(findings, 33, k.weights, "weighs " .. shown(sum) .. ", " .. shown(stored) .. " is counted", repair)
    if repair then quota_key.set_sum(tx, k, sum) end
  end
  if count ~= tx:zcard(k.weighted) then
    found(findings, 33, k.weighted, "entries and weights differ in number", false)
  end
end

-- Everyone in line has said under which holder, and whoever can pass at a time is woken then.
local function check_lines(tx, k, findings, repair, found)
  local asked = tx:hgetall(k.asked) or {}
  local count = 0
  for _ in pairs(asked) do count = count + 1 end
  if count ~= k.waiting + k.too_large then
    found(findings, 33, k.asked, shown(count) .. " have asked, " .. shown(k.waiting + k.too_large) .. " wait", false)
  end
  local timer = quota_key.timer(k.q.id, k.digest)
  local at = tx:zscore(keys.timers(tx), timer)
  if at ~= k.wake then
    found(findings, 11, keys.timers(tx), timer .. " should wake at " .. (k.wake and shown(k.wake) or "no time"), repair)
    if repair then
      if k.wake then tx:zadd(keys.timers(tx), k.wake, timer) else tx:zrem(keys.timers(tx), timer) end
    end
  end
  -- Room for those who wait, with nobody to call them: a slot that nobody holds comes back by nobody.
  if k.waiting > 0 and k.wake == nil and k.held == 0 then
    found(findings, 33, k.waiters, "waits for nothing", repair)
    if repair then tx:zadd(keys.timers(tx), tx.now, timer) end
  end
end

local function check_key(tx, q, digest, findings, repair, found)
  local k = quota_key.load(tx, q, digest)
  if tx:zscore(keys.quota_keys(tx, q.id), digest) == nil then
    found(findings, 37, keys.quota_part(tx, q.id, "key", digest), "its quota does not list it", false)
  end
  check_holders(tx, q, k, findings, found)
  check_rate(tx, q, k, findings, found)
  check_weights(tx, q, k, findings, repair, found)
  check_lines(tx, k, findings, repair, found)
end

-- Quotas in the list are stored.
function invariants.list(tx, key, findings, repair, found)
  for _, item in ipairs(tx:zlowest(key, "-inf", "+inf", limits.list_looks_max)) do
    if quota.load(tx, item.member, true) == nil then
      found(findings, 37, key, item.member .. " has no record", repair)
      if repair then tx:zrem(key, item.member) end
    end
  end
end

-- One key of the family: a quota's, or one of holders. One that nobody used any more may be gone since it was found.
function invariants.key(tx, key, rest, findings, repair, found)
  local id, part = string.match(rest, "^(%x+%-%x+%-%x+%-%x+%-%x+):(.+)$")
  if id == nil then return holders.check(tx, rest, findings, repair, found) end
  if not tx:exists(key) then return end
  local q = quota.load(tx, id, true)
  if q == nil then
    found(findings, 37, key, "its quota is gone", repair)
    if repair then tx:del(key) end
  elseif part == "core" then
    if tx:zscore(keys.quotas(tx), id) == nil then found(findings, 37, key, "is not listed", false) end
  elseif part ~= "keys" then
    local name, digest = string.match(part, "^(%a+):(%x+)$")
    if name == "key" then
      check_key(tx, q, digest, findings, repair, found)
    elseif digest == nil or not tx:exists(keys.quota_part(tx, id, "key", digest)) then
      found(findings, 37, key, "its key is not in use", repair)
      if repair then tx:del(key) end
    end
  end
end

return invariants
end

source["maintenance.budget_invariants"] = function(require, LIBRARY)
-- What must hold for a budget: what is used can be counted again from its reports, what is held from its holds, and no
-- limit is passed.
local keys = require "lib.keys"
local limits = require "lib.limits"
local budget = require "record.budget"

local invariants = {}

local function add(sum, flat)
  for name, n in pairs(budget.map(flat)) do sum[name] = (sum[name] or 0) + n end
end

-- 30: what is used is the sum of the reports accepted in this period, and of what is known about those that are kept
-- elsewhere.
local function check_used(tx, b, key, findings, found)
  local sum = {}
  for _, packed in pairs(tx:hgetall(keys.budget_reports(tx, b.id)) or {}) do
    local l = cmsgpack.unpack(packed)
    if l[1] == b.period then add(sum, l[2]) end
  end
  for _, d in ipairs(b.dimensions) do
    local counted = b.base[d.name] + (sum[d.name] or 0)
    if counted ~= b.used[d.name] then
      found(findings, 30, key, string.format("%s: %.0f used, reports say %.0f", d.name, b.used[d.name], counted), false)
    end
  end
end

-- What is held is the sum of the holds here and of what is held right below. Repaired from the holds, which are what
-- counts.
local function check_held(tx, b, key, findings, repair, found)
  local sum = {}
  for _, packed in pairs(tx:hgetall(keys.budget_holds(tx, b.id)) or {}) do add(sum, cmsgpack.unpack(packed)[1]) end
  for _, item in ipairs(tx:zlowest(keys.budget_children(tx, b.id), "-inf", "+inf", limits.budget_children_max)) do
    local child = budget.load(tx, item.member)
    for name, n in pairs(child and child.held or {}) do sum[name] = (sum[name] or 0) + n end
  end
  local wrong = false
  for _, d in ipairs(b.dimensions) do
    local counted = sum[d.name] or 0
    if counted ~= b.held[d.name] then
      found(findings, 32, key, string.format("%s: %.0f held, holds say %.0f", d.name, b.held[d.name], counted), repair)
      b.held[d.name], wrong = counted, true
    end
  end
  if wrong and repair then budget.save(tx, b) end
end

local function check_limits(b, key, findings, found)
  for _, d in ipairs(b.dimensions) do
    local n = b.used[d.name] + b.held[d.name]
    if d.hard and n > d.hard and not b.passed then
      found(findings, 31, key, string.format("%s: %.0f used and held, the limit is %.0f", d.name, n, d.hard), false)
    end
  end
end

local function check_core(tx, b, key, findings, repair, found)
  check_used(tx, b, key, findings, found)
  check_limits(b, key, findings, found)
  check_held(tx, b, key, findings, repair, found)
  local at = tx:zscore(keys.timers(tx), budget.timer(b.id))
  if at ~= b.next_reset then
    found(findings, 11, keys.timers(tx), budget.timer(b.id) .. " does not stand at the next reset", repair)
    if repair then budget.watch(tx, b) end
  end
  if tx:zscore(keys.budgets(tx), b.id) ~= b.created then
    found(findings, 10, keys.budgets(tx), b.id .. " is missing from this list", repair)
    if repair then tx:zadd(keys.budgets(tx), b.created, b.id) end
  end
end

-- Who holds something is a holder, and who is a holder has a hold.
local function check_holders(tx, b, key, findings, found)
  local set = keys.holders(tx, budget.set(b.id))
  for name in pairs(tx:hgetall(key) or {}) do
    if #name > 36 and tx:zscore(set, name) == nil then
      found(findings, 32, key, name .. " is no holder of the budget", false)
    end
  end
end

-- One key of the family: `<id>:<part>`.
function invariants.key(tx, key, rest, findings, repair, found)
  local b = budget.load(tx, string.sub(rest, 1, 36))
  local part = string.sub(rest, 38)
  if b == nil then
    found(findings, 37, key, "its budget is gone", repair)
    if repair then tx:del(key) end
  elseif part == "core" then
    check_core(tx, b, key, findings, repair, found)
  elseif part == "holds" then
    check_holders(tx, b, key, findings, found)
  end
end

-- Entries of a list of budgets must be stored; one that was just removed may still have to be told of.
function invariants.list(tx, key, findings, repair, found)
  for _, item in ipairs(tx:zlowest(key, "-inf", "+inf", limits.list_looks_max)) do
    if budget.load(tx, item.member) == nil then
      found(findings, 37, key, item.member .. " has no record", repair)
      if repair then tx:zrem(key, item.member) end
    end
  end
end

-- True when a timer of the family has something to wake.
function invariants.timed(tx, kind, name)
  local id = string.sub(name, 1, 36)
  if budget.load(tx, id) == nil then return false end
  return kind == "budget" or tx:hget(keys.budget_holds(tx, id), string.sub(name, 38)) ~= nil
end

return invariants
end

source["maintenance.schedule_invariants"] = function(require, LIBRARY)
-- What must hold for a schedule: it is listed, its timer stands where its record says, what it has in flight counts as
-- running, and nothing of it is left without it.
local keys = require "lib.keys"
local limits = require "lib.limits"
local schedule = require "record.schedule"

local invariants = {}

local function check_core(tx, s, key, findings, repair, found)
  if tx:zscore(keys.schedules(tx), s.path) == nil then
    found(findings, 10, key, "is in no list", repair)
    if repair then tx:zadd(keys.schedules(tx), s.created, s.path) end
  end
  local member = schedule.timer(s.path)
  local at = tx:zscore(keys.timers(tx), member)
  if at ~= s.wake then
    found(findings, 11, keys.timers(tx), member .. " does not stand at its time", repair)
    if repair then
      if s.wake then tx:zadd(keys.timers(tx), s.wake, member) else tx:zrem(keys.timers(tx), member) end
    end
  end
  for _, f in ipairs(s.flight) do
    if tx:zscore(keys.schedule_live(tx, s.path), f[5]) ~= f[1] then
      found(findings, 44, key, f[5] .. " is to be submitted and does not count as running", false)
    end
    if f[1] > s.number or f[2] > s.cursor and f[4] == "time" then
      found(findings, 44, key, string.format("firing %.0f was never decided", f[1]), false)
    end
  end
  if #s.waiting > 0 and s.live == 0 and not s.paused and #s.flight < limits.schedule_flight_max then
    found(findings, 44, key, "firings wait for an end, and nothing runs", false)
  end
  if s.remaining and s.remaining < 0 then found(findings, 44, key, "fired more often than it may", false) end
end

function invariants.key(tx, key, rest, findings, repair, found)
  local path, part = string.match(rest, "^(.+):(%a+)$")
  local s = path and schedule.load(tx, path)
  if s == nil then
    found(findings, 37, key, "its schedule is gone", repair)
    if repair then tx:del(key) end
  elseif part == "core" then
    check_core(tx, s, key, findings, repair, found)
  end
end

-- Schedules in the list are stored.
function invariants.list(tx, key, findings, repair, found)
  for _, path in ipairs(tx:zrange(key, "0", "999")) do
    if schedule.load(tx, path) == nil then
      found(findings, 37, key, path .. " has no record", repair)
      if repair then tx:zrem(key, path) end
    end
  end
end

return invariants
end

source["maintenance.invariants"] = function(require, LIBRARY)
-- What must hold for one record and for one key; the numbers are those of the invariants in ARCHITECTURE.md.
local keys = require "lib.keys"
local attempt = require "record.attempt"
local execution = require "record.execution"
local flows = require "maintenance.flow_invariants"
local heads = require "maintenance.head_invariants"
local frames = require "record.frames"
local holds = require "record.holds"
local awaits = require "index.awaits"
local home = require "index.home"
local leases = require "index.leases"
local limits = require "lib.limits"
local signals = require "record.signals"
local spec = require "record.spec"
local step = require "record.step"
local suspension = require "record.suspension"
local waitpoint = require "record.waitpoint"

local invariants = {}

function invariants.found(findings, number, key, problem, repaired)
  findings[#findings + 1] = { invariant = number, key = key, problem = problem, repaired = repaired }
end

local function check_place(tx, rec, findings, repair)
  local place, score = home.of(rec)
  local key = home.key(tx, rec, rec.path, place)
  local stored = tx:zscore(key, rec.id)
  if stored ~= score then
    local has = stored and string.format("%.0f", stored) or "no entry"
    local problem = string.format("%s should have score %.0f, has %s", rec.id, score, has)
    invariants.found(findings, 10, key, problem, repair)
    if repair then tx:zadd(key, score, rec.id) end
  end
  if place == "queue" and rec.phase == "runnable" and rec.grant == nil then
    heads.check_entry(tx, rec, score, findings, repair, invariants.found)
  end
  local path = rec.path
  local others = { keys.queue(tx, path, rec.queue, rec.kind) }
  for _, place in ipairs(home.places) do others[#others + 1] = keys.place(tx, path, place) end
  for _, other in ipairs(others) do
    if other ~= key and tx:zscore(other, rec.id) then
      invariants.found(findings, 10, other, rec.id .. " is also here", repair)
      if repair then tx:zrem(other, rec.id) end
    end
  end
end

-- Whoever waits for something of another partition stands in its line.
local function check_awaits(tx, rec, findings, repair)
  local key, score = awaits.of(tx, rec)
  if key and tx:zscore(key, rec.id) ~= score then
    invariants.found(findings, 10, key, rec.id .. " waits and is not in line", repair)
    if repair then tx:zadd(key, score, rec.id) end
  end
end

-- What was attached at submission is what a running execution was admitted against.
local function check_attached(rec, key, findings)
  if rec.phase ~= "active" then return end
  for _, set in ipairs(holds.needed(rec)) do
    if not holds.in_set(rec, set) then
      invariants.found(findings, 34, key, "runs and was not admitted to " .. set, false)
    end
  end
end

local function check_timer(tx, rec, findings, repair)
  local stored = tx:zscore(keys.timers(tx), rec.id)
  local expected = execution.wake_at(rec)
  if stored ~= expected then
    local function shown(n) return n and string.format("%.0f", n) or "none" end
    local problem = rec.id .. " should wake at " .. shown(expected) .. ", entry says " .. shown(stored)
    invariants.found(findings, 11, keys.timers(tx), problem, repair)
    if repair then
      if expected then tx:zadd(keys.timers(tx), expected, rec.id) else tx:zrem(keys.timers(tx), rec.id) end
      rec.wake = expected
      execution.save(tx, rec)
    end
  end
end

local function check_lease(tx, rec, findings, repair)
  local key = rec.worker and keys.leases(tx, rec.worker)
  if key == nil then return end
  local held = rec.lease_id ~= nil and tx:hget(key, rec.lease_id) == rec.id
  if held ~= (rec.phase == "active") then
    local problem = held and " is held but not active" or " is active but not held"
    invariants.found(findings, 7, key, rec.id .. problem, repair)
    if repair then
      if held then leases.remove(tx, rec) else leases.add(tx, rec) end
    end
  end
end

local function check_attempts(tx, rec, key, findings)
  local expected = rec.spilled or 0
  for _, a in ipairs(attempt.inline(tx, rec)) do
    if a.index ~= expected then
      invariants.found(findings, 4, key, string.format("attempt %d stands where %d belongs", a.index, expected), false)
    end
    expected = expected + 1
  end
  local count = rec.attempt == nil and 0 or rec.attempt + 1
  if expected ~= count then
    invariants.found(findings, 4, key, string.format("%d attempts filed, %d made", expected, count), false)
  end
  if rec.phase == "active" and rec.attempt_state ~= "started" then
    invariants.found(findings, 4, key, "active without a running attempt", false)
  end
  if rec.phase == "terminal" and attempt.is_open(rec) then
    invariants.found(findings, 9, key, "terminal with a running attempt", false)
  end
end

local function check_state(tx, rec, key, findings)
  if (rec.phase == "terminal") ~= (rec.outcome ~= nil) then
    invariants.found(findings, 8, key, "outcome and phase disagree", false)
  end
  if rec.phase == "active" and (rec.lease_id == nil or rec.lease_until == nil or rec.worker == nil) then
    invariants.found(findings, 1, key, "active without a lease", false)
  end
  local failures = rec.failures or 0
  local allowed = failures > 0 and spec.retry(tx, rec).max_attempts or 0
  if failures > allowed then
    invariants.found(findings, 14, key, string.format("%d failures, %d allowed", failures, allowed), false)
  end
end

-- Slots are held by a grant or a lease. Whether each set counts its holders is checked across partitions.
local function check_holds(tx, rec, key, findings, repair)
  if holds.stray(rec) then
    invariants.found(findings, 32, key, "holds slots without a grant or a lease", repair)
    if repair then execution.save(tx, rec) end
  end
end

local function check_lists(tx, rec, findings, repair)
  if rec.hidden then return end
  local created = rec.created
  local expected = { keys.all(tx), keys.kind(tx, rec.kind) }
  local flat = rec.tags and cmsgpack.unpack(rec.tags) or {}
  for i = 1, #flat, 2 do expected[#expected + 1] = keys.tag(tx, flat[i], flat[i + 1]) end
  for _, key in ipairs(expected) do
    if tx:zscore(key, rec.id) ~= created then
      invariants.found(findings, 10, key, rec.id .. " is missing from this list", repair)
      if repair then tx:zadd(key, created, rec.id) end
    end
  end
end

-- An early signal waits for the suspend that counts it, and is forgotten then.
function invariants.early(tx, rec, w, findings, repair)
  if w.early == nil or w.state == "pending" then return end
  for _, entry in ipairs(waitpoint.answered(rec)) do
    if entry[1] == w.id then return end
  end
  invariants.found(findings, 27, keys.waitpoint(tx, w.id), w.state .. " with early signals", repair)
  if repair then
    w.early = nil
    waitpoint.save(tx, w)
  end
end

-- Open waitpoints are those of the attempt, whether it runs or waits for its children, of a step, or of the current
-- suspension.
local function check_waitpoints(tx, rec, key, findings, repair)
  if (rec.phase == "suspended") ~= (rec.wait ~= nil) then
    invariants.found(findings, 29, key, "suspension and phase disagree", false)
  end
  local current = suspension.load(rec)
  for _, entry in ipairs(waitpoint.open(rec)) do
    local at = keys.waitpoint(tx, entry[1])
    local w = waitpoint.load(tx, entry[1])
    if w == nil or w.exec ~= rec.id then
      invariants.found(findings, 29, at, "is listed as open but not stored", false)
    else
      local attempts = rec.phase == "active" or (rec.phase == "runnable" and rec.resume ~= nil)
      local pending = attempts or (w.step ~= nil and rec.phase ~= "terminal")
      local fits = (pending and w.state == "pending")
        or (current and w.state == "active" and w.suspension == current.id)
      if not fits then invariants.found(findings, 29, at, w.state .. " while the execution is " .. rec.phase, false) end
      invariants.early(tx, rec, w, findings, repair)
      if tx:zscore(keys.inbox(tx), entry[1]) ~= w.created then
        local problem = entry[1] .. " is missing from the list of open waitpoints"
        invariants.found(findings, 10, keys.inbox(tx), problem, repair)
        if repair then tx:zadd(keys.inbox(tx), w.created, entry[1]) end
      end
    end
  end
end

local function check_counts(tx, rec, findings)
  local function same(key, counted)
    local stored = tx:xlen(key)
    if stored ~= counted then
      invariants.found(findings, 36, key, string.format("%d entries, %d counted", stored, counted), false)
    end
  end
  if rec.signals then same(keys.signals(tx, rec.id), signals.count(rec)) end
  if rec.frames then
    local f = frames.state(rec)
    same(keys.stream(tx, rec.id, rec.attempt), f.kept)
    same(keys.stream_live(tx, rec.id, rec.attempt), f.live)
  end
end

-- A step stands under its number and its name leads there; the execution counts them and their bytes.
local function check_steps(tx, rec, findings)
  local key, count, bytes, at = keys.steps(tx, rec.id), 0, 0, 1
  local function wrong(problem) invariants.found(findings, 43, key, problem, false) end
  while at and rec.steps do
    local list
    list, at = step.page(tx, rec, at, limits.steps_max, limits.steps_carried_bytes_max)
    for _, s in ipairs(list) do
      count, bytes = count + 1, bytes + (s.bytes or 0)
      local named = step.find(tx, rec, s.name)
      if named == nil or named.number ~= s.number then wrong(s.name .. " is not found by its name") end
      local lost = s.bytes and #(step.result(tx, rec, s) or "") ~= s.bytes
      if lost then wrong("the result of " .. s.name .. " is missing") end
    end
  end
  local fields = tx:hlen(key)
  if fields ~= 2 * count then wrong(string.format("%d fields, %d steps counted", fields, count)) end
  if bytes ~= (rec.step_bytes or 0) then
    wrong(string.format("%d bytes of results, %d counted", bytes, rec.step_bytes or 0))
  end
end

function invariants.record(tx, rec, findings, repair)
  local key = keys.core(tx, rec.id)
  check_state(tx, rec, key, findings)
  check_attempts(tx, rec, key, findings)
  check_place(tx, rec, findings, repair)
  check_timer(tx, rec, findings, repair)
  check_lease(tx, rec, findings, repair)
  check_lists(tx, rec, findings, repair)
  check_waitpoints(tx, rec, key, findings, repair)
  check_counts(tx, rec, findings)
  if rec.steps then check_steps(tx, rec, findings) end
  check_holds(tx, rec, key, findings, repair)
  check_awaits(tx, rec, findings, repair)
  check_attached(rec, key, findings)
  flows.member(tx, rec, findings, invariants.found)
  if rec.input and not tx:exists(keys.input(tx, rec.id)) then
    invariants.found(findings, 13, keys.input(tx, rec.id), "input is missing", false)
  end
  if rec.result_far and not tx:exists(keys.result(tx, rec.id)) then
    invariants.found(findings, 13, keys.result(tx, rec.id), "result is missing", false)
  end
end

return invariants
end

source["maintenance.fire_due"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local reply = require "lib.reply"
local budget = require "record.budget"
local budget_holds = require "record.budget_holds"
local execution = require "record.execution"
local usage = require "record.usage"
local worker = require "record.worker"
local holders = require "index.holders"
local quota_key = require "index.quota_key"
local timers = require "index.timers"
local due = require "transition.due"
local owed = require "transition.owed"
local schedules = require "transition.fire"
local start = require "transition.start"
local walk = require "transition.walk"

local function fire_idempotency(tx, digest, member)
  local key = keys.idempotency(tx, digest)
  local record = tx:hgetall(key)
  if record and tonumber(record.until_ms) > tx.now then
    return tx:zadd(keys.timers(tx), tonumber(record.until_ms), member)
  end
  if record then tx:del(key) end
  timers.clear(tx, member)
end

-- Registrations that ran out leave; the timer moves to the next end.
local function fire_workers(tx, member)
  local next_end
  for _, entry in ipairs(worker.all(tx)) do
    if entry.expires_at > tx.now then
      next_end = math.min(next_end or entry.expires_at, entry.expires_at)
    else
      local w = worker.load(tx, entry.instance, entry.expires_at)
      worker.remove(tx, w or entry)
      if w then event.of_fleet(tx, "worker.expired", w.namespace, nil, w.instance, "worker_id", w.worker_id) end
    end
  end
  if next_end then tx:zadd(keys.timers(tx), next_end, member) else timers.clear(tx, member) end
end

local function fire(tx, member, draw)
  local kind, name = string.match(member, "^(%a+):(.+)$")
  if kind == "idem" then
    fire_idempotency(tx, name, member)
  elseif member == worker.timer then
    fire_workers(tx, member)
  elseif kind == "holders" then
    holders.fire(tx, name)
  elseif kind == "room" then
    quota_key.fire(tx, string.sub(name, 1, 36), string.sub(name, 38))
  elseif kind == "quota" then
    quota_key.walk(tx, name)
  elseif kind == "budget" then
    budget.fire(tx, name)
  elseif kind == "usage" then
    usage.fire(tx, name)
  elseif kind == "hold" then
    budget_holds.fire(tx, string.sub(name, 1, 36), string.sub(name, 38))
  elseif kind == "flow" then
    walk.fire(tx, name)
  elseif kind == "owed" then
    owed.pay(tx, name)
  elseif kind == "schedule" then
    schedules.due(tx, name)
  else
    local rec = execution.load(tx, member)
    if rec then due.fire(tx, rec, draw) else timers.clear(tx, member) end
  end
  return reply.ok("fired")
end

-- An entry that raises is set aside, so that it cannot hold up the others; fsck and a metric report it.
local function set_aside(tx, member)
  tx:item(function()
    timers.clear(tx, member)
    tx:zadd(keys.stuck(tx), tx.now, member)
    return reply.ok("aside")
  end)
end

define.fn {
  name = "ff_fire_due",
  doc = "Applies whatever is due in this partition, a bounded number per call, and answers when the next entry is.",
  flags = { "allow-oom" },
  weight = "limit",
  args = { limit = "batch_size", draw = "permille" },
  reply = { fired = { count = "count", stuck = "count", more = "bool", next_at = "time_ms?", now = "time_ms" } },
  errs = { "try_again" },
  call = function(tx, a)
    local entries = tx:zlowest(keys.timers(tx), "-inf", string.format("%.0f", tx.now), a.limit)
    local count, stuck = 0, 0
    for i, entry in ipairs(entries) do
      -- One draw for the call, spread over its items.
      local draw = (a.draw + i * 397) % 1001
      local answer, problem = tx:item(fire, tx, entry.member, draw)
      if answer == nil then
        if LIBRARY.test then error(problem, 0) end
        stuck = stuck + 1
        set_aside(tx, entry.member)
      elseif answer.err then
        if count == 0 then return answer end
        break
      else
        count = count + 1
      end
    end
    local head = tx:zhead(keys.timers(tx))
    start.forget_announced(tx, head and head.score)
    return reply.ok("fired", {
      count = count, stuck = stuck, more = head ~= nil and head.score <= tx.now, next_at = head and head.score,
      now = tx.now,
    })
  end,
}
end

source["maintenance.next_due"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_next_due",
  doc = "When this partition's next timer is, and whether it owes anything.",
  flags = { "no-writes" },
  args = {},
  reply = { next = { next_at = "time_ms?", now = "time_ms" } },
  errs = {},
  call = function(tx)
    local head = tx:zhead(keys.timers(tx))
    return reply.ok("next", { next_at = head and head.score, now = tx.now })
  end,
}
end

source["maintenance.ack_outbox"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_ack_outbox",
  doc = "Strikes effects that have been applied.",
  flags = { "allow-oom" },
  args = { ids = "stream_ids" },
  reply = { struck = {} },
  errs = {},
  call = function(tx, a)
    for _, id in ipairs(a.ids) do tx:xdel(keys.outbox(tx), id) end
    return reply.ok("struck")
  end,
}
end

source["maintenance.tally_events"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local outbox = require "lib.outbox"
local reply = require "lib.reply"
local tally = require "record.tally"

-- What the partition has on hand and how long the oldest of it has waited.
local function on_hand(tx)
  local effects, waitpoints = tx:xlen(keys.outbox(tx)), tx:zcard(keys.inbox(tx))
  local timer = tx:zhead(keys.timers(tx))
  local due = timer and timer.score <= tx.now and tx:zcount(keys.timers(tx), "-inf", string.format("%.0f", tx.now)) or 0
  local owed = effects > 0 and tx:xrange(keys.outbox(tx), "-", "+", 1)[1]
  local asked = waitpoints > 0 and tx:zhead(keys.inbox(tx))
  return {
    outbox = effects, oldest_outbox_at = owed and outbox.parse(owed).at or nil, timers_due = due,
    next_timer_at = timer and timer.score, stuck = tx:zcard(keys.stuck(tx)), waitpoints = waitpoints,
    oldest_waitpoint_at = asked and asked.score or nil,
  }
end

define.fn {
  name = "ff_tally_events",
  doc = "Counts the events that were not counted yet, at most `limit`, and answers everything this partition has "
    .. "counted, with what it has on hand. `more` says that events are left to count, `counted_to` up to when they "
    .. "were.",
  flags = { "allow-oom" },
  args = { limit = "list_limit" },
  reply = {
    tally = {
      names = "[text]", bounds_ms = "[count]", lines = "[tally_line]", gaps = "count", more = "bool",
      counted_to = "time_ms", on_hand = "on_hand", now = "time_ms",
    },
  },
  errs = {},
  call = function(tx, a)
    local t, hand = tally.load(tx), on_hand(tx)
    local more = tally.count(tx, t, "+", a.limit)
    return reply.ok("tally", {
      names = t.names, bounds_ms = tally.bounds_ms, lines = tally.typed(t), gaps = t.gaps, more = more,
      counted_to = more and t.last_at or tx.now, on_hand = hand, now = tx.now,
    })
  end,
}
end

source["maintenance.trim_events"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local tally = require "record.tally"

-- Where the stream is cut: where the age that is kept begins, but where someone counts, nothing goes that was not
-- counted.
local function cut(tx)
  local kept_from = string.format("%.0f-0", tx.now - limits.events_age_ms_max)
  local t = tally.load(tx)
  if t.at and tally.count(tx, t, kept_from, limits.list_limit_max) then return t.at end
  return kept_from
end

define.fn {
  name = "ff_trim_events",
  doc = "Drops events older than the age that is kept.",
  flags = { "allow-oom" },
  args = {},
  reply = { trimmed = {} },
  errs = {},
  call = function(tx)
    if tx.now > limits.events_age_ms_max then tx:xtrim(keys.events(tx), cut(tx)) end
    return reply.ok("trimmed")
  end,
}
end

source["maintenance.review_routes"] = function(require, LIBRARY)
local define = require "lib.define"
local event = require "lib.event"
local keys = require "lib.keys"
local limits = require "lib.limits"
local reply = require "lib.reply"
local queues = require "index.queues"
local execution = require "record.execution"
local lane = require "record.lane"
local choose = require "transition.choose"
local runnable = require "transition.runnable"

-- What the workers of a lane take, one sort of them after the other.
local function classes_of(workers)
  local classes = {}
  for i, one in ipairs(workers) do
    classes[i] = { capabilities = choose.set_of(one.capabilities), kinds = one.kinds and choose.set_of(one.kinds) }
  end
  return classes
end

-- Whether somebody takes work of a kind with these requirements, and whether somebody takes the kind at all.
local function covered(kind, requires, classes)
  local taken = false
  for _, one in ipairs(classes) do
    if choose.takes_kind(one, kind) then
      taken = true
      if queues.covered(requires, one.capabilities) then return true, true end
    end
  end
  return false, taken
end

local function is_empty(tx, path, name)
  return tx:zcard(keys.queue_named(tx, path, name)) == 0
end

-- Notes for a queue since when nobody covers it; a second later it counts as uncovered. Answers when to look again.
-- While a lane has no worker at all, work that requires nothing waits where it is: the next worker may take any kind.
local function review_queue(tx, path, entry, classes)
  local now, name = tx.now, entry.queue
  local is_covered, kind_taken = covered(entry.kind, entry.requires, classes)
  local empty = (entry.uncovered_since or not is_covered or queues.main(tx, path) ~= name) and is_empty(tx, path, name)
  if is_covered or (empty and not entry.uncovered) then
    local known = entry.uncovered_since
    entry.uncovered_since, entry.uncovered, entry.kind_missing = nil, false, nil
    if empty and queues.main(tx, path) ~= name then
      queues.drop(tx, path, name)
    elseif known then
      queues.put(tx, path, entry)
    end
    return nil
  end
  if #classes == 0 and #entry.requires == 0 then return nil end
  local missing = not kind_taken and #classes > 0 or nil
  if entry.uncovered_since == nil then
    entry.uncovered_since = now
    queues.put(tx, path, entry)
  elseif not entry.uncovered and now - entry.uncovered_since >= limits.uncovered_grace_ms
    or entry.uncovered and entry.kind_missing ~= missing
  then
    entry.uncovered, entry.kind_missing = true, missing
    queues.put(tx, path, entry)
  end
  if not entry.uncovered then return entry.uncovered_since + limits.uncovered_grace_ms end
  local nothing_blocked = tx:zcard(keys.place(tx, path, "blocked:route")) == 0
  if nothing_blocked and empty then queues.drop(tx, path, name) end
  return nil
end

local function move(tx, id, expected, change, kind, data)
  local answer = tx:item(function()
    local rec = execution.load(tx, id)
    if rec == nil or rec.phase ~= "runnable" or rec.reason ~= expected then
      return reply.err("execution_not_runnable")
    end
    if change(rec) == false then return reply.err("execution_not_runnable") end
    execution.save(tx, rec)
    event.of_execution(tx, rec, kind, unpack(data))
    return reply.ok("moved")
  end)
  return answer ~= nil and answer.ok ~= nil
end

-- Moves what is eligible in an uncovered queue to blocked:route, up to `limit` of it. Answers how many moved, and
-- whether more wait.
local function block_queue(tx, path, entry, limit)
  local below, moved = "(" .. string.format("%.0f", limits.granted_from), 0
  local waiting = tx:zlowest(keys.queue_named(tx, path, entry.queue), "-inf", below, limit + 1)
  for i, item in ipairs(waiting) do
    if i > limit then return moved, true end
    local gone = move(tx, item.member, nil, function(rec)
      runnable.block_route(rec, entry, tx.now)
    end, "execution.blocked", { "reason", "waiting_for_capable_worker" })
    if gone then moved = moved + 1 end
  end
  return moved, false
end

-- Moves a page of what is blocked back where somebody takes it. Answers how many moved, and how many did not.
local function unblock_page(tx, path, ids, classes)
  local moved, kept = 0, 0
  for _, id in ipairs(ids) do
    local back = move(tx, id, "waiting_for_capable_worker", function(rec)
      if not covered(rec.kind, rec.requires or {}, classes) then return false end
      runnable.settle(tx, rec)
      return rec.reason == nil
    end, "execution.ready", { "cause", "waiting_for_capable_worker" })
    if back then moved = moved + 1 else kept = kept + 1 end
  end
  return moved, kept
end

-- Once no queue of a lane is without a worker, nothing needs to be asked at submissions.
local function forget_uncovered(tx, path)
  local copy = lane.load(tx, path)
  if copy == nil or lane.recall(tx, copy, "uncovered") == nil then return end
  for _, entry in ipairs(queues.all(tx, path)) do
    if entry.uncovered_since then return end
  end
  lane.remember(tx, copy, "uncovered", nil)
end

define.fn {
  name = "ff_review_routes",
  doc = "Compares the queues of a lane with what live workers take: moves what nobody takes to blocked:route and back "
    .. "what somebody takes again. Bounded; `cursor` goes on behind a blocked head, `skip` behind the queues that were "
    .. "compared.",
  flags = { "allow-oom" },
  args = {
    namespace = "namespace", lane = "lane", workers = "worker_classes", cursor = "count?", skip = "count?",
    limit = "batch_size",
  },
  reply = {
    reviewed = {
      blocked = "count", unblocked = "count", more = "bool", next_cursor = "count?", next_skip = "count?",
      again_at = "time_ms?",
    },
  },
  errs = {},
  call = function(tx, a)
    local path, classes, skip = a.namespace .. "/" .. a.lane, classes_of(a.workers), a.skip or 0
    local blocked, more, again_at, dropped = 0, false, nil, 0
    local names = queues.page(tx, path, skip, limits.queues_per_review_max)
    table.sort(names)
    for i, entry in ipairs(queues.several(tx, path, names)) do
      if entry then
        local due_at
        tx:item(function()
          due_at = review_queue(tx, path, entry, classes)
          return reply.ok("reviewed")
        end)
        if due_at and (again_at == nil or due_at < again_at) then again_at = due_at end
        if queues.get(tx, path, names[i]) == nil then dropped = dropped + 1 end
        if entry.uncovered then
          local moved, rest = block_queue(tx, path, entry, a.limit - blocked)
          blocked, more = blocked + moved, more or rest
        end
      end
    end
    local full = #names >= limits.queues_per_review_max
    local next_skip = full and skip + limits.queues_per_review_max - dropped or nil
    if not full then
      tx:item(function()
        forget_uncovered(tx, path)
        return reply.ok("reviewed")
      end)
    end

    local offset = a.cursor or 0
    local from, to = string.format("%.0f", offset), string.format("%.0f", offset + a.limit)
    local page = tx:zrange(keys.place(tx, path, "blocked:route"), from, to)
    local full_page = #page > a.limit
    if full_page then page[#page] = nil end
    local unblocked, kept = unblock_page(tx, path, page, classes)
    return reply.ok("reviewed", {
      blocked = blocked, unblocked = unblocked, more = more, again_at = again_at,
      next_cursor = full_page and offset + kept or nil, next_skip = next_skip,
    })
  end,
}
end

source["maintenance.fix_partitions"] = function(require, LIBRARY)
local define = require "lib.define"
local reply = require "lib.reply"
local limits = require "lib.limits"

local names = { "executions", "budgets", "quotas", "schedules" }
local next_step = "run the import again with --again, or empty the store"

-- **Invariant:** the record says `importing` from before the first key of an import is written until after the last:
-- half a store is never taken for a whole one, nor for none.
define.fn {
  name = "ff_fix_partitions",
  doc = "Fixes the partition counts at first boot; later boots must ask for the same or for what is stored. An import "
    .. "fixes those of its export, with `importing` true before its first key and false after its last; in between no "
    .. "boot succeeds.",
  flags = { "allow-oom" },
  args = {
    executions = "partition_count?", budgets = "partition_count?", quotas = "partition_count?",
    schedules = "partition_count?", defaults = "partition_defaults", importing = "bool?",
  },
  reply = {
    partitions = {
      executions = "partition_count", budgets = "partition_count", quotas = "partition_count",
      schedules = "partition_count",
    },
  },
  errs = { "partition_mismatch", "import_unfinished" },
  call = function(tx, a, now)
    local stored = tx:hgetall(tx.route)
    local begun = stored and stored.importing
    if begun and a.importing == nil then
      return reply.err("import_unfinished", { begun_at = begun, next_step = next_step })
    end
    if a.importing and stored and not begun then
      return reply.err("invalid_argument", { field = "importing", problem = "the store is set up already" })
    end
    -- An import that begins again may be of another export.
    if a.importing then stored = nil end
    local counts = {}
    for _, name in ipairs(names) do
      local count = stored and tonumber(stored[name]) or a[name] or a.defaults[name]
      if a[name] and a[name] ~= count then
        return reply.err("partition_mismatch", { family = name, stored = count, asked = a[name] })
      end
      counts[name] = count
    end
    if stored == nil then
      tx:hset(tx.route, {
        "executions", counts.executions, "budgets", counts.budgets, "quotas", counts.quotas,
        "schedules", counts.schedules, "format", limits.format,
      })
    end
    if a.importing then tx:hset(tx.route, { "importing", now }) end
    if begun and a.importing == false then tx:hdel(tx.route, "importing") end
    return reply.ok("partitions", counts)
  end,
}
end

source["maintenance.check_executions"] = function(require, LIBRARY)
local define = require "lib.define"
local check = require "maintenance.invariants"
local execution = require "record.execution"
local holds = require "record.holds"
local keys = require "lib.keys"
local reply = require "lib.reply"

define.fn {
  name = "ff_check_executions",
  doc = "Verifies the records of this partition against every index they belong to, a page at a time; `repair` "
    .. "rewrites what differs and says so. Answers the slots of quotas that running executions have, for their "
    .. "partitions to be asked.",
  flags = { "allow-oom" },
  weight = "limit",
  args = { offset = "count", limit = "batch_size", repair = "bool" },
  reply = { checked = { findings = "[finding]", slots = "[quota_slot]", looked = "count", more = "bool" } },
  errs = {},
  call = function(tx, a)
    local page = tx:zrange(keys.all(tx), string.format("%.0f", a.offset), string.format("%.0f", a.offset + a.limit))
    local findings, slots = {}, {}
    for i = 1, math.min(#page, a.limit) do
      local id = page[i]
      local answer, problem = tx:item(function()
        local rec = execution.load(tx, id)
        if rec == nil then
          check.found(findings, 10, keys.core(tx, id), "listed but not stored", a.repair)
          if a.repair then tx:zrem(keys.all(tx), id) end
        else
          check.record(tx, rec, findings, a.repair)
          for _, slot in ipairs(holds.quota_slots(rec)) do slots[#slots + 1] = slot end
        end
        return reply.ok("looked")
      end)
      if answer == nil then check.found(findings, 10, keys.core(tx, id), problem, false) end
    end
    return reply.ok("checked", {
      findings = findings, slots = slots, looked = math.min(#page, a.limit), more = #page > a.limit,
    })
  end,
}
end

source["maintenance.check_keys"] = function(require, LIBRARY)
local define = require "lib.define"
local keys = require "lib.keys"
local reply = require "lib.reply"
local check = require "maintenance.invariants"
local execution = require "record.execution"
local flow = require "record.flow"
local heads = require "maintenance.head_invariants"
local budgets = require "maintenance.budget_invariants"
local flows = require "maintenance.flow_invariants"
local awaits = require "index.awaits"
local home = require "index.home"
local queues = require "index.queues"
local quota = require "record.quota"
local quotas = require "maintenance.quota_invariants"
local receivers = require "index.receivers"
local schedule = require "record.schedule"
local schedules = require "maintenance.schedule_invariants"
local waitpoint = require "record.waitpoint"
local webhook = require "record.webhook"
local worker = require "record.worker"

-- Members of a sorted set, a bounded number of them.
local function members(tx, key)
  return tx:zrange(key, "0", "999")
end

-- Every entry of an index must belong to a record that its state puts there.
local function check_entries(tx, key, findings, repair, belongs)
  for _, id in ipairs(members(tx, key)) do
    local rec = execution.load(tx, id, true)
    if rec == nil or not belongs(rec) then
      check.found(findings, rec and 10 or 37, key, id .. (rec and " does not belong here" or " has no record"), repair)
      if repair then tx:zrem(key, id) end
    end
  end
end

local function check_timers(tx, key, findings, repair)
  for _, member in ipairs(members(tx, key)) do
    local kind, name = string.match(member, "^(%a+):(.+)$")
    local owner
    if kind == "idem" then
      owner = tx:exists(keys.idempotency(tx, name))
    elseif kind == "flow" then
      owner = flow.load(tx, name)
    elseif kind == "usage" then
      local rec = execution.load(tx, name)
      owner = rec and rec.reports
    elseif kind == "budget" or kind == "hold" then
      owner = budgets.timed(tx, kind, name)
    elseif kind == "owed" then
      local rec = execution.load(tx, name, true)
      owner = rec and rec.owed
    elseif kind == "quota" then
      owner = quota.load(tx, name, true)
    elseif kind == "schedule" then
      owner = schedule.load(tx, name)
    elseif kind == "room" then
      owner = tx:exists(keys.quota_part(tx, string.sub(name, 1, 36), "key", string.sub(name, 38)))
    elseif member == worker.timer or kind == "holders" then
      -- It looks again when it fires, and goes when there is nothing to watch.
      owner = true
    else
      owner = execution.load(tx, member)
    end
    if not owner then
      check.found(findings, 11, key, member .. " has no record", repair)
      if repair then tx:zrem(key, member) end
    end
  end
end

local function check_leases(tx, key, instance, findings, repair)
  for lease_id, id in pairs(tx:hgetall(key) or {}) do
    local rec = execution.load(tx, id)
    if rec == nil or rec.phase ~= "active" or rec.worker ~= instance or rec.lease_id ~= lease_id then
      check.found(findings, 7, key, id .. " is not leased by this worker", repair)
      if repair then tx:hdel(key, lease_id) end
    end
  end
end

-- Which field of an execution says that it has the key.
local owner_field = {
  spec = "said", input = "input", more = "more", waits = "waits", result = "result_far", attempts = "spilled",
  continuation = "continued", signals = "signals", signal_keys = "signals",
  out = "outs", ["in"] = "deps", passed = "passes", children = "kids", usage = "reports",
  steps = "steps", step_results = "step_bytes",
}

local function check_part(tx, key, rest, findings, repair)
  local id = string.sub(rest, 1, 36)
  local rec = execution.load(tx, id, true)
  local part = string.sub(rest, 38)
  if rec == nil then
    check.found(findings, 37, key, "its execution is gone", repair)
  elseif part == "" then
    -- A walk over the list of all executions does not meet one that is not in it.
    if tx:zscore(keys.all(tx), id) == nil then check.record(tx, rec, findings, repair) end
    return
  elseif owner_field[part] and rec[owner_field[part]] then
    return
  else
    check.found(findings, 37, key, "its execution does not know it", repair)
  end
  if repair then tx:del(key) end
end

-- The parts of a flow belong to its record.
local function check_flow(tx, key, rest, findings, repair)
  local f = flow.load(tx, string.sub(rest, 1, 36))
  if f == nil then
    check.found(findings, 37, key, "its flow is gone", repair)
    if repair then tx:del(key) end
  elseif string.sub(rest, 38) == "core" then
    flows.flow(tx, f, findings, check.found)
  end
end

-- Flows in a list are stored.
local function check_flows(tx, key, findings, repair)
  for _, id in ipairs(members(tx, key)) do
    if flow.load(tx, id) == nil then
      check.found(findings, 37, key, id .. " has no record", repair)
      if repair then tx:zrem(key, id) end
    end
  end
end

-- A waitpoint stays with its execution, which lists it.
local function check_waitpoint(tx, key, id, findings, repair)
  local w = waitpoint.load(tx, id)
  local rec = w and execution.load(tx, w.exec)
  local listed = false
  if rec then
    for _, entry in ipairs(waitpoint.open(rec)) do listed = listed or entry[1] == id end
    for _, closed in ipairs(rec.closed_waits and cmsgpack.unpack(rec.closed_waits) or {}) do
      listed = listed or closed == id
    end
  end
  if listed then
    if w.state == "closed" then check.early(tx, rec, w, findings, repair) end
    return
  end
  check.found(findings, 37, key, "no execution lists this waitpoint", repair)
  if repair then tx:del(key) end
end

-- A stream belongs to an attempt of its execution.
local function check_stream(tx, key, rest, findings, repair)
  local rec = execution.load(tx, string.sub(rest, 1, 36))
  local index = tonumber(string.match(string.sub(rest, 38), "^%d+"))
  local listed = rec and rec.frames and rec.attempt == index
  for _, attempt in ipairs(rec and rec.streams and cmsgpack.unpack(rec.streams) or {}) do
    listed = listed or attempt == index
  end
  if listed then return end
  check.found(findings, 37, key, "no attempt wrote this stream", repair)
  if repair then tx:del(key) end
end

local function check_inbox(tx, key, findings, repair)
  for _, id in ipairs(members(tx, key)) do
    local w = waitpoint.load(tx, id)
    if w == nil or w.state == "closed" then
      check.found(findings, 29, key, id .. " is not open", repair)
      if repair then tx:zrem(key, id) end
    end
  end
end

-- A webhook stands in its receiver's line, by its next try.
local function check_webhook(tx, key, id, findings, repair)
  local d = webhook.load(tx, id)
  if d == nil then return end
  local stored = tx:zscore(keys.receiver(tx, d.receiver), id)
  if stored == d.due then return end
  check.found(findings, 10, key, "should be in line at " .. string.format("%.0f", d.due) .. ", entry says "
    .. (stored and string.format("%.0f", stored) or "none"), repair)
  if repair then receivers.move(tx, d.receiver, id, d.due) end
end

-- What stands in a line is a webhook for this receiver, and the list of receivers knows the head.
local function check_line(tx, key, receiver, findings, repair)
  local listed, head = tx:zscore(keys.receivers(tx), receiver), nil
  for _, entry in ipairs(tx:zlowest(key, "-inf", "+inf", 1000)) do
    local d = webhook.load(tx, entry.member)
    if d and d.receiver == receiver then
      head = head or entry.score
    else
      check.found(findings, 37, key, entry.member .. " has no record", repair)
      if repair then tx:zrem(key, entry.member) end
    end
  end
  if head and listed ~= head then
    check.found(findings, 10, keys.receivers(tx), receiver .. " is not listed by the head of its line", repair)
    if repair then tx:zadd(keys.receivers(tx), head, receiver) end
  end
end

local function check_outbox(tx, key, rest, findings, repair)
  local receiver = string.match(rest, "^receiver:(%x+)$")
  if receiver then return check_line(tx, key, receiver, findings, repair) end
  if rest ~= "receivers" then return check.found(findings, 37, key, "nobody owns this key", false) end
  for _, listed in ipairs(members(tx, key)) do
    if not tx:exists(keys.receiver(tx, listed)) then
      check.found(findings, 37, key, listed .. " has no line", repair)
      if repair then tx:zrem(key, listed) end
    end
  end
end

local function check_index(tx, key, rest, findings, repair)
  local path, place = string.match(rest, "^lane:([^:]+):(.+)$")
  if rest == "waitpoints" then return check_inbox(tx, key, findings, repair) end
  if rest == "flows" or rest == "cancel_backlog" then return check_flows(tx, key, findings, repair) end
  if rest == "budgets" then return budgets.list(tx, key, findings, repair, check.found) end
  if rest == "schedules" then return schedules.list(tx, key, findings, repair, check.found) end
  if rest == "cleared" or rest == "scopes" or rest == "gone" then return end
  if rest == "missing" or string.find(rest, "^awaits:") then
    return check_entries(tx, key, findings, repair, function(rec) return awaits.of(tx, rec) == key end)
  end
  if rest == "timers" then return check_timers(tx, key, findings, repair) end
  if rest == "timers:stuck" then
    for _, member in ipairs(members(tx, key)) do
      check.found(findings, 38, key, member .. " raised and was set aside", false)
    end
    return
  end
  if rest == "all" or string.find(rest, "^kind:") or string.find(rest, "^tag:") then
    return check_entries(tx, key, findings, repair, function() return true end)
  end
  local instance = string.match(rest, "^workers:(.+)$")
  if instance then return check_leases(tx, key, instance, findings, repair) end
  if place == "heads" then return heads.check(tx, key, path, findings, repair, check.found) end
  if place == "queues" then
    for _, name in ipairs(queues.unreadable(tx, path)) do
      check.found(findings, 37, key, "queue " .. name .. " says nothing", repair)
      if repair then queues.drop(tx, path, name) end
    end
    return
  end
  if rest == "quotas" then return quotas.list(tx, key, findings, repair, check.found) end
  if place == "fair" or rest == "lanes" or rest == "workers" or rest == "draining" or rest == "servers"
    or rest == "told"
  then
    return
  end
  if path == nil then return check.found(findings, 37, key, "nobody owns this key", false) end
  return check_entries(tx, key, findings, repair, function(rec)
    return home.key(tx, rec, rec.path, (home.of(rec))) == key
  end)
end

define.fn {
  name = "ff_check_keys",
  doc = "Verifies keys found by a scan of the store: each must belong to a record, and each index entry to its place.",
  flags = { "allow-oom" },
  args = { keys = "store_keys", repair = "bool" },
  reply = { checked = { findings = "[finding]", foreign = "count" } },
  errs = {},
  call = function(tx, a)
    local findings, foreign = {}, 0
    for _, key in ipairs(a.keys) do
      local answer, problem = tx:item(function()
        local family, tag, rest = string.match(key, "^ff:(%a+):(%b{}):(.+)$")
        if tag ~= tx.tag then
          if not string.find(key, tx.tag, 1, true) then foreign = foreign + 1 end
        elseif family == "exec" then
          check_part(tx, key, rest, findings, a.repair)
        elseif family == "idem" then
          if tx:zscore(keys.timers(tx), "idem:" .. rest) == nil then
            check.found(findings, 37, key, "never ends", a.repair)
            if a.repair then tx:del(key) end
          end
        elseif family == "wp" then
          check_waitpoint(tx, key, rest, findings, a.repair)
        elseif family == "stream" then
          check_stream(tx, key, rest, findings, a.repair)
        elseif family == "flow" then
          check_flow(tx, key, rest, findings, a.repair)
        elseif family == "hook" then
          check_webhook(tx, key, rest, findings, a.repair)
        elseif family == "outbox" then
          check_outbox(tx, key, rest, findings, a.repair)
        elseif family == "idx" then
          check_index(tx, key, rest, findings, a.repair)
        elseif family == "budget" then
          budgets.key(tx, key, rest, findings, a.repair, check.found)
        elseif family == "schedule" then
          schedules.key(tx, key, rest, findings, a.repair, check.found)
        elseif family == "quota" then
          quotas.key(tx, key, rest, findings, a.repair, check.found)
        elseif not (family == "events" and rest == "count") and family ~= "lane" and family ~= "worker"
          and family ~= "keyring" and family ~= "access"
        then
          check.found(findings, 37, key, "nobody owns this key", false)
        end
        return reply.ok("looked")
      end)
      if answer == nil then check.found(findings, 38, key, problem, false) end
    end
    return reply.ok("checked", { findings = findings, foreign = foreign })
  end,
}
end

local loaded = {}
local function require(name)
  local m = loaded[name]
  if m == nil then
    m = source[name](require, LIBRARY)
    if m == nil then m = true end
    loaded[name] = m
  end
  return m
end
local function run(kind) return function(_, args) return require("lib.define").run(kind, args) end end
local function library() return require("lib.define").library() end

redis.register_function{ function_name = "ff_library", callback = library, flags = { "no-writes" } }
redis.register_function{ function_name = "ff_read", callback = run("read"), flags = { "no-writes" } }
redis.register_function{ function_name = "ff_run", callback = run("run") }
redis.register_function{ function_name = "ff_end", callback = run("end"), flags = { "allow-oom" } }
