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
  { code = "try_again", class = "Retryable", doc = "The partition is moving; nothing was written." },
  { code = "corrupt_record", class = "Corrupt", doc = "A stored record cannot be read; detail names key and field." },
}
