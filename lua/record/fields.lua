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
