-- The fields of stored records. A record is one packed array, its values in the order in which they stand here; false stands for one
-- that is absent. A list in the place of a field is a group that shares one position and is absent as a whole. Append only: a
-- position never changes its meaning.
--
-- A field is its name and its type. `!` marks one that a record cannot be without. Without a field marked `|`, none of those that
-- follow it is there, up to the groups: a record may end before it.
return {
  access = {
    "access_id uuid!", "digest text!", "name text!", "roles [text]!", "namespaces [text]", "lanes [text]", "capabilities [text]", "created_at time_ms!", "created_by text!", "expires_at time_ms",
  },

  execution = {
    -- `path` is "namespace/lane", `digest` that of what was submitted; `input` says that there is one, `tags` are a packed flat list.
    "path text!", "kind kind!", "created time_ms!", "queue queue!", "retention duration_ms!",
    "phase phase!", "prio priority!", "score int!", "updated time_ms!", "wake time_ms", "digest text!", "input count", "tags bytes",
    -- What must admit it (record/asks.lua), and what has (record/holds.lua).
    "asks bytes", "holds bytes",
    -- The last attempt and its lease, and what ended it.
    "attempt attempt_index|", "attempt_id attempt_id", "attempt_type attempt_type", "attempt_state attempt_state", "started time_ms",
    "lease_id lease_id", "epoch epoch", "worker instance", "worker_id worker_id", "lease_until time_ms", "lease_ttl lease_ttl_ms",
    "ended_by text",
    -- The end, and the result unless it is stored apart.
    "ended time_ms|", "outcome outcome", "result bytes",
    -- Of a member: its flow, its key and number there, the flow that runs in its place. Of a child: its parent, its key and number
    -- there, and what the parent's end means for it.
    { "flow_id flow_id", "key text", "number count", "nested flow_id", "parent_id execution_id", "parent_close text" },
    -- Why and since when it does not run, until when, and how it goes on.
    { "reason blocking_reason", "detail bytes", "since time_ms", "delay time_ms", "start_by time_ms", "start_within duration_ms", "deadline time_ms", "next text", "resume count", "ready time_ms", "fair int", "fair_end int", "fairness_key text" },
    -- Its grant, how many it had, what a budget refused it, and which workers it wants.
    { "grant grant_id", "grant_worker instance", "grant_until time_ms", "grants count", "wanted bytes", "requires [text]", "prefers [text]" },
    -- Limits that were given, and what went wrong so far. When and why the last attempt ended, unless it ended with the execution.
    { "timeout duration_ms", "timeout_at time_ms", "time_left duration_ms", "max_reclaims count", "max_replays count", "failure bytes", "failures count", "reclaims count", "replays count", "tier count", "progress bytes", "cancel_by time_ms", "cancel_reason text", "yield count", "renewals count", "ended_value int", "lane_retry retry", "attempt_ended time_ms", "attempt_failure bytes" },
    -- Waiting, and what came of it. The wait itself, the open waitpoints and what answered them are a record of their own.
    { "waits count", "wait_until time_ms", "open_due time_ms", "continued text", "signals bytes" },
    -- Frames of the running attempt, attempts that have some, that someone follows them, how many are kept, and how many the last
    -- attempt wrote.
    { "frames bytes", "streams bytes", "tailed count", "max_frames count", "attempt_frames count" },
    -- Of a member: what it waits for, its edges out and how many of them its end has reached, that its flow was stopped before it
    -- reached all, what its outcome means for the flow; that it is not seen by anyone until its flow is sealed; that it is kept while
    -- its flow or parent has not ended, and since when it is not. Its children and the wait for them; what is owed to others.
    { "deps bytes", "inbound inbound", "passes count", "outs count", "reached count", "halted count", "fault bytes", "verdict text", "hidden count", "bound count", "freed time_ms", "kids bytes", "awaiting count", "owed bytes" },
    -- That older attempts and what operators did are stored apart, and how many attempts stand further away; that someone waits for
    -- its end; that its result is stored apart; encodings other than json; how many reports of what it used were made; where its end
    -- is told, and the webhook of its last end; that the submitter said more than this.
    { "more count", "spilled count", "waited count", "result_far count", "result_in text", "input_in text", "reports count", "webhook text", "hook bytes", "said count" },
    -- Known while it is in use: its id, and what it was when it was read.
    beside = { "id", "was_phase", "was_place", "was_score" },
  },

  -- What a submitter said that is seldom asked for. It is stored as it came.
  spec = { "retry retry", "fallbacks [fallback]", "trace_parent text" },

  -- What an execution waits for: the suspension, its open waitpoints, those that were answered before their time was over, past
  -- suspensions, the signals that were enough before it began to wait, why it goes on, and closed waitpoints that are kept.
  waits = { "wait bytes", "open bytes", "answered bytes", "past_waits bytes", "satisfied bytes", "woken bytes", "closed_waits bytes" },

  -- Finished attempts but the last, and what operators did.
  more = { "history bytes", "actions bytes" },

  flow = {
    "namespace namespace!", "kind kind!", "policy on_member_failure!", "created time_ms!", "updated time_ms!", "deadline time_ms", "retention duration_ms!", "defaults bytes", "digest text!", "parent execution_id",
    -- Made for a member that is there: it goes with the member.
    "adopted count",
    "sealed time_ms", "touched time_ms", "version count!", "backward count", "outcome text", "ended time_ms",
    -- The number of the last member made; members still stored; failures nobody took up; sinks that succeeded; records that owe
    -- something.
    "last count!", "stored count!", "uncaught count", "sinks count", "owed count",
    -- Why nothing of it may start any more: { policy, reason, actor, at }.
    "stop bytes",
    -- A walk over its members that is not done: what it does, since when, and the number of the last member it met.
    "walk text", "walk_at time_ms", "walked count", "wake time_ms", "waited count",
    -- Where its end is told, and the webhook of its last one.
    "webhook text", "hook bytes",
    -- Members by state.
    "n_held count", "n_waiting count", "n_delayed count", "n_rate_limited count", "n_waiting_children count", "n_active count", "n_suspended count", "n_resumable count",
    "n_completed count", "n_failed count", "n_cancelled count", "n_expired count", "n_skipped count",
    beside = { "id" },
  },

  -- Tokens are { digest, approver or false, uses left or false, answered }; early signals are kept until a suspension counts them.
  waitpoint = {
    "exec execution_id!", "key waitpoint_key!", "state waitpoint_state!", "attempt attempt_index!", "created time_ms!", "expires time_ms", "uses uses", "closed time_ms", "why text",
    "signals count", "suspension suspension_id", "review count", "tokens bytes!", "allowed bytes", "early bytes",
    beside = { "id" },
  },

  webhook = { "of text!", "owner uuid!", "url url!", "said bytes!", "owed time_ms!", "due time_ms", "tries count!", "status http_status", "error webhook_error", beside = { "id", "receiver" } },

  -- `last` is the number of the last key that came into use, `walked` that of the last key a walk has looked at, while one is under way.
  quota = {
    "definition bytes!", "version count!", "created time_ms!", "changed time_ms!", "last count!", "walked count", "deleted count",
    beside = { "id", "packed" },
  },

  -- One key of a quota that is in use: when the next start of a smooth rate may come, until when nothing starts, the weight in the
  -- window, when it needs attention, and when someone was called last.
  quota_key = { "key quota_key!", "tat time_ms", "throttled time_ms", "sum int", "wake time_ms", "called_at time_ms" },

  -- Amounts are lists in the order of the dimensions. Of rooms, see record/budget.lua.
  budget = {
    "definition bytes!", "version count!", "created time_ms!", "period count!", "since time_ms!", "rooms count!", "wide count!", "told count!",
    "next_reset time_ms", "approved count", "refused count", "soft_told count", "passed count",
    "used [int]!", "held [int]!", "base [int]!", "actions bytes", "past bytes",
  },

  lane = {
    "state lane_state!", "version count!", "priority_weight priority_weight!", "fairness fairness!", "weight weight!", "max_depth count", "max_active max_active",
    "attempt_timeout_ms duration_ms", "retention_ms duration_ms", "lease_ttl_ms lease_ttl_ms", "fairness_weights fairness_weights", "retry retry",
    beside = { "path", "tag", "remembered", "queues" },
  },
}
