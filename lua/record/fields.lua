-- The fields of stored records: a record is one packed array, its values at the positions in which they stand here. A list in the
-- place of a name is a group that shares one position and is absent as a whole. Append only: a position never changes its meaning.
--
-- `spec.` marks what the common path needs of what the submitter said; the rest of it is stored apart.
return {
  access = { "access_id", "digest", "name", "roles", "namespaces", "lanes", "capabilities", "created_at", "created_by", "expires_at" },

  execution = {
    "spec.namespace", "spec.kind", "spec.created_at", "spec.queue", "spec.retention_ms", "spec.max_reclaims",
    "spec.attempt_timeout_ms", "spec.max_frames", "spec.webhook",
    "phase", "outcome", "lane", "prio", "score", "updated", "ready", "wake",
    "attempt", "attempt_id", "attempt_type", "attempt_state", "started", "first_started", "timeout_at",
    "lease_id", "epoch", "worker", "worker_id", "lease_until", "lease_ttl", "request", "renewals",
    "ended_by", "ended_value", "ended", "result", "result_encoding", "history",
    -- Of a member: its flow, its key and number there, the flow that runs in its place. Of a child: its parent, its number there, and
    -- what the parent's end means for it.
    { "spec.flow_id", "spec.key", "spec.number", "spec.nested", "spec.parent_id", "spec.parent_close" },
    -- Why and since when it does not run, until when, and how it goes on.
    { "reason", "detail", "since", "delay", "start_by", "deadline", "next", "resume", "fair", "fair_end" },
    { "grant", "grant_worker", "grant_until", "grants", "holds", "wanted" },
    { "failure", "failures", "reclaims", "replays", "tier", "progress", "cancel_by", "cancel_reason", "yield" },
    -- Waiting, and what came of it.
    { "wait", "wait_until", "open", "open_due", "time_left", "woken", "continued", "past_waits", "closed_waits", "answered", "satisfied", "signals" },
    { "frames", "streams", "tailed" },
    -- Of a member: what it waits for, its edges out and how many of them its end has reached, that its flow was stopped before it
    -- reached all, what its outcome means for the flow; that it is not seen by anyone until its flow is sealed; that it is kept while
    -- its flow or parent has not ended, and since when it is not. Its children and the wait for them; what is owed to others.
    { "deps", "passes", "outs", "reached", "halted", "fault", "verdict", "hidden", "bound", "freed", "kids", "awaiting", "owed" },
    -- Older attempts that are stored apart, what operators did, tags, that someone waits for its end, parts stored apart, how many
    -- reports of what it used were made, the webhook of its last end.
    { "spilled", "actions", "tags", "waited", "input_far", "result_far", "reports", "hook" },
  },
}
