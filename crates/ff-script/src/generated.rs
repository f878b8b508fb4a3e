//! Arguments and replies of every library function; written by `cargo xtask codegen` from lua/, do not edit.

use std::collections::BTreeMap;

use ff_core::types::{AttemptId, BudgetId, ExecutionId, FlowId, LeaseId, QuotaPolicyId, SignalId, SuspensionId, WaitpointId};
use uuid::Uuid;

pub use crate::stored::{Event, EventValue, Summary, Task};
use crate::wire::Bytes;
use crate::wire::declare::{
    wire_call, wire_core_words, wire_record, wire_reply, wire_split_struct, wire_struct, wire_words,
};

pub use ff_core::contracts::OnHard;
pub use ff_core::policy::Jitter;
pub use ff_core::state::{AttemptState, BlockingReason, LifecyclePhase, Outcome, PublicState};

wire_words! {
    /// The contract type `rate_mode`.
    RateMode {
        Sliding = "sliding",
        Smooth = "smooth",
    }
}

wire_words! {
    /// The contract type `quota_part`.
    QuotaPart {
        Throttle = "throttle",
        Rate = "rate",
        Concurrency = "concurrency",
        Weighted = "weighted",
        Line = "line",
    }
}

wire_words! {
    /// The contract type `holder_state`.
    HolderState {
        Granted = "granted",
        Running = "running",
        Owed = "owed",
        Gone = "gone",
    }
}

wire_words! {
    /// What a try came to; one that was refused is not tried again.
    WebhookResult {
        Delivered = "delivered",
        Failed = "failed",
        Refused = "refused",
    }
}

wire_words! {
    /// The contract type `webhook_state`.
    WebhookState {
        Pending = "pending",
        Delivered = "delivered",
        Failed = "failed",
    }
}

wire_words! {
    /// The contract type `suspension_reason`.
    SuspensionReason {
        WaitingForSignal = "waiting_for_signal",
        WaitingForApproval = "waiting_for_approval",
        WaitingForCallback = "waiting_for_callback",
        WaitingForToolResult = "waiting_for_tool_result",
        WaitingForOperatorReview = "waiting_for_operator_review",
        PausedByPolicy = "paused_by_policy",
        PausedByBudget = "paused_by_budget",
        StepBoundary = "step_boundary",
        ManualPause = "manual_pause",
    }
}

wire_words! {
    /// The contract type `timeout_behavior`.
    TimeoutBehavior {
        Fail = "fail",
        Cancel = "cancel",
        Expire = "expire",
        AutoResumeWithTimeoutSignal = "auto_resume_with_timeout_signal",
        Escalate = "escalate",
    }
}

wire_words! {
    /// The contract type `condition_op`.
    ConditionOp {
        Signal = "signal",
        AnyOf = "any_of",
        AllOf = "all_of",
        Count = "count",
    }
}

wire_words! {
    /// The contract type `count_over`.
    CountOver {
        Signals = "signals",
        Waitpoints = "waitpoints",
        Approvers = "approvers",
    }
}

wire_words! {
    /// The contract type `waitpoint_state`.
    WaitpointState {
        Pending = "pending",
        Active = "active",
        Closed = "closed",
    }
}

wire_words! {
    /// The contract type `signal_effect`.
    SignalEffect {
        Counted = "counted",
        Buffered = "buffered",
        Unused = "unused",
    }
}

wire_words! {
    /// The contract type `resume_cause`.
    ResumeCause {
        Signal = "signal",
        Timeout = "timeout",
        Operator = "operator",
        Children = "children",
        Budget = "budget",
        Timer = "timer",
    }
}

wire_words! {
    /// The contract type `step_kind`.
    StepKind {
        Run = "run",
        Sleep = "sleep",
        Signal = "signal",
        Children = "children",
        Spawn = "spawn",
    }
}

wire_words! {
    /// The contract type `step_state`.
    StepState {
        Waiting = "waiting",
        Done = "done",
        Failed = "failed",
    }
}

wire_words! {
    /// The contract type `edge_on`.
    EdgeOn {
        Success = "success",
        Completion = "completion",
        Failure = "failure",
    }
}

wire_words! {
    /// The contract type `edge_state`.
    EdgeState {
        Pending = "pending",
        Met = "met",
        Dead = "dead",
    }
}

wire_words! {
    /// The contract type `inbound_policy`.
    InboundPolicy {
        AllOf = "all_of",
        AnyOf = "any_of",
        Quorum = "quorum",
    }
}

wire_words! {
    /// The contract type `on_satisfied`.
    OnSatisfied {
        CancelRemaining = "cancel_remaining",
        LetRun = "let_run",
    }
}

wire_words! {
    /// The contract type `on_member_failure`.
    OnMemberFailure {
        Continue = "continue",
        FailFlow = "fail_flow",
        IsolateBranch = "isolate_branch",
    }
}

wire_words! {
    /// The contract type `cancel_policy`.
    CancelPolicy {
        CancelAll = "cancel_all",
        CancelPending = "cancel_pending",
        LetActiveFinish = "let_active_finish",
    }
}

wire_words! {
    /// The contract type `parent_close`.
    ParentClose {
        CancelChildren = "cancel_children",
        Abandon = "abandon",
    }
}

wire_words! {
    /// The contract type `flow_state`.
    FlowState {
        Open = "open",
        Running = "running",
        Blocked = "blocked",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

wire_words! {
    /// The contract type `member_state`.
    MemberState {
        Held = "held",
        Waiting = "waiting",
        Delayed = "delayed",
        RateLimited = "rate_limited",
        WaitingChildren = "waiting_children",
        Active = "active",
        Suspended = "suspended",
        Resumable = "resumable",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Expired = "expired",
        Skipped = "skipped",
    }
}

wire_words! {
    /// The contract type `frame_mode`.
    FrameMode {
        Durable = "durable",
        Summary = "summary",
        Live = "live",
    }
}

wire_words! {
    /// The contract type `backoff_type`.
    BackoffType {
        Fixed = "fixed",
        Exponential = "exponential",
    }
}

wire_core_words! {
    /// The contract type `jitter`.
    Jitter {
        Full = "full",
        None = "none",
    }
}

wire_words! {
    /// The contract type `lane_state`.
    LaneState {
        Active = "active",
        Paused = "paused",
        Draining = "draining",
        Disabled = "disabled",
    }
}

wire_words! {
    /// The contract type `fairness`.
    Fairness {
        Fifo = "fifo",
        Fair = "fair",
    }
}

wire_core_words! {
    /// The contract type `phase`.
    LifecyclePhase {
        Runnable = "runnable",
        Active = "active",
        Suspended = "suspended",
        Terminal = "terminal",
    }
}

wire_core_words! {
    /// The contract type `outcome`.
    Outcome {
        Success = "success",
        Failed = "failed",
        Cancelled = "cancelled",
        Expired = "expired",
        Skipped = "skipped",
    }
}

wire_core_words! {
    /// The contract type `public_state`.
    PublicState {
        Waiting = "waiting",
        Delayed = "delayed",
        RateLimited = "rate_limited",
        WaitingChildren = "waiting_children",
        Active = "active",
        Suspended = "suspended",
        Resumable = "resumable",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Expired = "expired",
        Skipped = "skipped",
    }
}

wire_core_words! {
    /// The contract type `blocking_reason`.
    BlockingReason {
        WaitingForCapableWorker = "waiting_for_capable_worker",
        WaitingForQuota = "waiting_for_quota",
        WaitingForBudget = "waiting_for_budget",
        WaitingForDependencies = "waiting_for_dependencies",
        WaitingForChildren = "waiting_for_children",
        HeldByOperator = "held_by_operator",
    }
}

wire_words! {
    /// The contract type `admission_reason`.
    AdmissionReason {
        WaitingForQuota = "waiting_for_quota",
        WaitingForBudget = "waiting_for_budget",
    }
}

wire_words! {
    /// The contract type `scope_type`.
    ScopeType {
        Namespace = "namespace",
        Tenant = "tenant",
        Flow = "flow",
        Lane = "lane",
        Custom = "custom",
    }
}

wire_words! {
    /// The contract type `reset_type`.
    ResetType {
        None = "none",
        Interval = "interval",
        Day = "day",
        Month = "month",
    }
}

wire_words! {
    /// The contract type `on_soft`.
    OnSoft {
        Notify = "notify",
        RequireApproval = "require_approval",
    }
}

wire_core_words! {
    /// The contract type `on_hard`.
    OnHard {
        Suspend = "suspend",
        Block = "block",
        Cancel = "cancel",
        Fail = "fail",
    }
}

wire_words! {
    /// The contract type `budget_refusal`.
    BudgetRefusal {
        Hard = "hard",
        Soft = "soft",
        UnknownDimension = "unknown_dimension",
    }
}

wire_words! {
    /// The contract type `usage_outcome`.
    UsageOutcome {
        Ok = "ok",
        AlreadyApplied = "already_applied",
        SoftBreach = "soft_breach",
        HardBreach = "hard_breach",
        Invalid = "invalid",
    }
}

wire_words! {
    /// What happens when a time comes and the last firing has not ended.
    Overlap {
        Skip = "skip",
        QueueOne = "queue_one",
        QueueAll = "queue_all",
        CancelPrevious = "cancel_previous",
        Allow = "allow",
    }
}

wire_words! {
    /// The contract type `firing_cause`.
    FiringCause {
        Time = "time",
        Trigger = "trigger",
        Backfill = "backfill",
    }
}

wire_words! {
    /// What became of a firing: it waits for the end of another one, is being submitted, runs, or has ended.
    FiringState {
        Waiting = "waiting",
        Due = "due",
        Running = "running",
        Ended = "ended",
        Skipped = "skipped",
        Missed = "missed",
    }
}

wire_words! {
    /// The contract type `attempt_type`.
    AttemptType {
        Initial = "initial",
        Retry = "retry",
        Reclaim = "reclaim",
        Replay = "replay",
    }
}

wire_core_words! {
    /// The contract type `attempt_state`.
    AttemptState {
        Started = "started",
        Suspended = "suspended",
        Succeeded = "succeeded",
        Failed = "failed",
        Cancelled = "cancelled",
        Interrupted = "interrupted",
        TimedOut = "timed_out",
    }
}

wire_words! {
    /// The contract type `recorded_action`.
    RecordedAction {
        KeysRotated = "keys_rotated",
        KeyRevoked = "key_revoked",
        StoreRepaired = "store_repaired",
    }
}

wire_words! {
    /// The contract type `worker_state`.
    WorkerState {
        Live = "live",
        Draining = "draining",
    }
}

wire_words! {
    /// The contract type `role`.
    Role {
        Read = "read",
        Submit = "submit",
        Signal = "signal",
        Worker = "worker",
        Operator = "operator",
        Admin = "admin",
        Metrics = "metrics",
    }
}

wire_struct! {
    /// Proof of the current lease.
    #[derive(Copy, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    Fence {
        /// `attempt_id`: a UUID in lower case
        attempt_id ("attempt_id"): AttemptId,
        /// `lease_id`: a UUID in lower case
        lease_id ("lease_id"): LeaseId,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `epoch`: 0 to 9007199254740991
        lease_epoch ("lease_epoch"): i64,
    }
}

wire_struct! {
    /// The contract type `backoff`.
    #[derive(Copy, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    Backoff {
        /// `backoff_type`: `fixed`, `exponential`
        r#type ("type"): BackoffType,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 315360000000_i64))]
        /// `duration_ms?`: 0 to 315360000000
        delay_ms ("delay_ms"): Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 315360000000_i64))]
        /// `duration_ms?`: 0 to 315360000000
        initial_ms ("initial_ms"): Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 100_i64))]
        /// `backoff_factor?`: 1 to 100
        factor ("factor"): Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 315360000000_i64))]
        /// `duration_ms?`: 0 to 315360000000
        max_ms ("max_ms"): Option<i64>,
    }
}
impl Backoff {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(r#type: BackoffType) -> Self {
        Self { r#type, delay_ms: None, initial_ms: None, factor: None, max_ms: None }
    }
}

wire_struct! {
    /// When and how often a failed attempt is tried again.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    Retry {
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 10000_i64))]
        /// `attempts_limit?`: 1 to 10000
        max_attempts ("max_attempts"): Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// `backoff?`
        backoff ("backoff"): Option<Backoff>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// `jitter?`: `full`, `none`
        jitter ("jitter"): Option<Jitter>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(max_items = 64))]
        /// `categories?`: list of `category`, at most 64
        retry_on ("retry_on"): Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(max_items = 64))]
        /// `categories?`: list of `category`, at most 64
        never_on ("never_on"): Option<Vec<String>>,
    }
}
impl Default for Retry {
    /// All fields absent.
    fn default() -> Self {
        Self { max_attempts: None, backoff: None, jitter: None, retry_on: None, never_on: None }
    }
}

wire_struct! {
    /// The contract type `budget_ref`.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    BudgetRef {
        /// `uuid`: a UUID in lower case
        budget_id ("budget_id"): Uuid,
        #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "ff_core::json::once")]
        /// `estimate?`: map from `dimension` to `amount`, at most 32
        estimate ("estimate"): Option<BTreeMap<String, i64>>,
    }
}
impl BudgetRef {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(budget_id: Uuid) -> Self {
        Self { budget_id, estimate: None }
    }
}

wire_struct! {
    /// The contract type `quota_ref`.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    QuotaRef {
        /// `uuid`: a UUID in lower case
        quota_id ("quota_id"): Uuid,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
        /// `quota_key`: 1 to 256 bytes
        key ("key"): String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 9007199254740991_i64))]
        /// `amount?`: 1 to 9007199254740991
        weight ("weight"): Option<i64>,
    }
}
impl QuotaRef {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(quota_id: Uuid, key: String) -> Self {
        Self { quota_id, key, weight: None }
    }
}

wire_struct! {
    /// The contract type `stream_options`.
    #[derive(Copy, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    StreamOptions {
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 1000000_i64))]
        /// `frames_limit?`: 1 to 1000000
        max_frames ("max_frames"): Option<i64>,
    }
}
impl Default for StreamOptions {
    /// All fields absent.
    fn default() -> Self {
        Self { max_frames: None }
    }
}

wire_split_struct! {
    /// Everything a submitter may say about one execution.
    Submission {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `kind`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): String,
        /// `input?`: at most 1048576 bytes
        input ("input"): Option<Bytes>,
        /// `priority?`: 0 to 9000
        priority ("priority"): Option<i64>,
        /// `duration_ms?`: 0 to 315360000000
        retention_ms ("retention_ms"): Option<i64>,
        /// `digest`: 32 to 64 bytes of `^%x+$`
        body_digest ("body_digest"): String,
    } apart ("more") {
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        input_encoding ("input_encoding"): Option<String>,
        /// `tags?`: map from `tag_key` to `tag_value`, at most 64
        tags ("tags"): Option<BTreeMap<String, String>>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        delay_until ("delay_until"): Option<i64>,
        /// `duration_ms?`: 0 to 315360000000
        delay_ms ("delay_ms"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        deadline_at ("deadline_at"): Option<i64>,
        /// `duration_ms?`: 0 to 315360000000
        deadline_ms ("deadline_ms"): Option<i64>,
        /// `duration_ms?`: 0 to 315360000000
        start_within_ms ("start_within_ms"): Option<i64>,
        /// `idempotency_key?`: 1 to 256 bytes
        idempotency_key ("idempotency_key"): Option<String>,
        /// `duration_ms?`: 0 to 315360000000
        idempotency_ttl_ms ("idempotency_ttl_ms"): Option<i64>,
        /// `retry?`
        retry ("retry"): Option<Retry>,
        /// `duration_ms?`: 0 to 315360000000
        attempt_timeout_ms ("attempt_timeout_ms"): Option<i64>,
        /// `times_limit?`: 0 to 10000
        max_reclaims ("max_reclaims"): Option<i64>,
        /// `times_limit?`: 0 to 10000
        max_replays ("max_replays"): Option<i64>,
        /// `capabilities?`: list of `capability`, at most 64
        requires ("requires"): Option<Vec<String>>,
        /// `capabilities?`: list of `capability`, at most 64
        prefers ("prefers"): Option<Vec<String>>,
        /// `fairness_key?`: 1 to 256 bytes
        fairness_key ("fairness_key"): Option<String>,
        /// `budget_refs?`: list of `budget_ref`, at most 16
        budgets ("budgets"): Option<Vec<BudgetRef>>,
        /// `quota_refs?`: list of `quota_ref`, at most 16
        quotas ("quotas"): Option<Vec<QuotaRef>>,
        /// `fallbacks?`: list of `fallback`, at most 16
        fallbacks ("fallbacks"): Option<Vec<Bytes>>,
        /// `stream_options?`
        stream ("stream"): Option<StreamOptions>,
        /// `trace_parent?`: 1 to 256 bytes
        trace_parent ("trace_parent"): Option<String>,
        /// `url?`: 1 to 2048 bytes of `^https?://[^/%?#%s%c]+[^#%s%c]*$`. Where a webhook goes: an address without a fragment.
        completion_webhook ("completion_webhook"): Option<String>,
        /// `count?`: 0 to 9007199254740991
        lane_depth ("lane_depth"): Option<i64>,
        /// `fired?`
        fired ("fired"): Option<Fired>,
    }
}
impl Submission {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, namespace: String, lane: String, kind: String, body_digest: String) -> Self {
        Self { execution_id, namespace, lane, kind, body_digest, input: None, priority: None, retention_ms: None, input_encoding: None, tags: None, delay_until: None, delay_ms: None, deadline_at: None, deadline_ms: None, start_within_ms: None, idempotency_key: None, idempotency_ttl_ms: None, retry: None, attempt_timeout_ms: None, max_reclaims: None, max_replays: None, requires: None, prefers: None, fairness_key: None, budgets: None, quotas: None, fallbacks: None, stream: None, trace_parent: None, completion_webhook: None, lane_depth: None, fired: None }
    }
}

wire_struct! {
    /// The firing of a schedule that submits this.
    Fired {
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        schedule ("schedule"): String,
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        nominal_at ("nominal_at"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        fired_at ("fired_at"): i64,
    }
}

wire_struct! {
    /// A time every so many milliseconds, counted from the anchor.
    ScheduleEvery {
        /// `every_ms`: 1000 to 315360000000
        every_ms ("every_ms"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        anchor_at ("anchor_at"): i64,
    }
}

wire_struct! {
    /// A schedule's definition. The library reckons `every`; times of a `calendar` are supplied.
    NewSchedule {
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `schedule_definition`: at most 65536 bytes
        definition ("definition"): Bytes,
        /// `schedule_action`: at most 2097152 bytes
        action ("action"): Bytes,
        /// `schedule_everies`: list of `schedule_every`, at most 16
        every ("every"): Vec<ScheduleEvery>,
        /// `bool`: true or false
        calendar ("calendar"): bool,
        /// `overlap`: `skip`, `queue_one`, `queue_all`, `cancel_previous`, `allow`. What happens when a time comes and the last firing has not ended.
        overlap ("overlap"): Overlap,
        /// `duration_ms`: 0 to 315360000000
        catch_up_ms ("catch_up_ms"): i64,
        /// `duration_ms?`: 0 to 315360000000
        jitter_ms ("jitter_ms"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        starts_at ("starts_at"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        ends_at ("ends_at"): Option<i64>,
        /// `count?`: 0 to 9007199254740991
        remaining ("remaining"): Option<i64>,
    }
}

wire_struct! {
    /// One firing of a schedule; a missed one may stand for several (`count`).
    Firing {
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        nominal_at ("nominal_at"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        fired_at ("fired_at"): i64,
        /// `firing_cause`: `time`, `trigger`, `backfill`
        cause ("cause"): FiringCause,
        /// `firing_state`: `waiting`, `due`, `running`, `ended`, `skipped`, `missed`. What became of a firing: it waits for the end of another one, is being submitted, runs, or has ended.
        state ("state"): FiringState,
        /// `uuid?`: a UUID in lower case
        run_id ("run_id"): Option<Uuid>,
        /// `firing_why?`: 1 to 64 bytes. Why a firing was skipped or missed.
        why ("why"): Option<String>,
        /// `firing_outcome?`: 1 to 32 bytes. How the execution or flow ended.
        outcome ("outcome"): Option<String>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        ended_at ("ended_at"): Option<i64>,
        /// `count?`: 0 to 9007199254740991
        count ("count"): Option<i64>,
        /// `count?`: 0 to 9007199254740991
        tries ("tries"): Option<i64>,
    }
}
impl Firing {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(number: i64, nominal_at: i64, fired_at: i64, cause: FiringCause, state: FiringState) -> Self {
        Self { number, nominal_at, fired_at, cause, state, run_id: None, why: None, outcome: None, ended_at: None, count: None, tries: None }
    }
}

wire_struct! {
    /// Times up to `to` that came too long ago, and how many they are.
    MissedTimes {
        /// `count`: 0 to 9007199254740991
        count ("count"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        first ("first"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        last ("last"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        to ("to"): i64,
    }
}

wire_struct! {
    /// The contract type `schedule_pause`.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    SchedulePause {
        #[cfg_attr(feature = "openapi", schema(min_length = 0, max_length = 4096))]
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        at ("at"): i64,
    }
}
impl SchedulePause {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, at: i64) -> Self {
        Self { actor, at, reason: None }
    }
}

wire_struct! {
    /// A backfill and how far it is: times up to `cursor` are decided.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    Backfill {
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        from ("from"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        to ("to"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        cursor ("cursor"): i64,
        /// `overlap`: `skip`, `queue_one`, `queue_all`, `cancel_previous`, `allow`. What happens when a time comes and the last firing has not ended.
        overlap ("overlap"): Overlap,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        total ("total"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        fired ("fired"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        skipped ("skipped"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        started_at ("started_at"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        ended_at ("ended_at"): Option<i64>,
        /// `bool`: true or false
        stopped ("stopped"): bool,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
    }
}

wire_struct! {
    /// A schedule: times up to `cursor` are decided. `next_at` is the next nominal time, if it is known.
    Schedule {
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `uuid`: a UUID in lower case
        schedule_id ("schedule_id"): Uuid,
        /// `count`: 0 to 9007199254740991
        version ("version"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        changed_at ("changed_at"): i64,
        /// `schedule_definition`: at most 65536 bytes
        definition ("definition"): Bytes,
        /// `overlap`: `skip`, `queue_one`, `queue_all`, `cancel_previous`, `allow`. What happens when a time comes and the last firing has not ended.
        overlap ("overlap"): Overlap,
        /// `duration_ms`: 0 to 315360000000
        catch_up_ms ("catch_up_ms"): i64,
        /// `duration_ms?`: 0 to 315360000000
        jitter_ms ("jitter_ms"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        starts_at ("starts_at"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        ends_at ("ends_at"): Option<i64>,
        /// `count?`: 0 to 9007199254740991
        remaining ("remaining"): Option<i64>,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        cursor ("cursor"): i64,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        next_at ("next_at"): Option<i64>,
        /// `schedule_pause?`
        paused ("paused"): Option<SchedulePause>,
        /// `bool`: true or false
        over ("over"): bool,
        /// `count`: 0 to 9007199254740991
        fired ("fired"): i64,
        /// `count`: 0 to 9007199254740991
        skipped ("skipped"): i64,
        /// `count`: 0 to 9007199254740991
        missed ("missed"): i64,
        /// `firing?`
        last ("last"): Option<Firing>,
        /// `count`: 0 to 9007199254740991
        running ("running"): i64,
        /// `count`: 0 to 9007199254740991
        waiting ("waiting"): i64,
        /// `count`: 0 to 9007199254740991
        unsubmitted ("unsubmitted"): i64,
        /// `firing_why?`: 1 to 64 bytes. Why a firing was skipped or missed.
        refused ("refused"): Option<String>,
        /// `backfill?`
        backfill ("backfill"): Option<Backfill>,
    }
}

wire_struct! {
    /// Where a list of schedules goes on.
    SchedulePosition {
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `schedule_path`: 3 to 129 bytes. `namespace/name`.
        path ("path"): String,
    }
}

wire_struct! {
    /// What became of one submission of several.
    Submitted {
        /// `execution_id?`: a UUID in lower case
        execution_id ("execution_id"): Option<ExecutionId>,
        /// `public_state?`: `waiting`, `delayed`, `rate_limited`, `waiting_children`, `active`, `suspended`, `resumable`, `completed`, `failed`, `cancelled`, `expired`, `skipped`
        state ("state"): Option<PublicState>,
        /// `bool?`: true or false
        duplicate ("duplicate"): Option<bool>,
    }
}
impl Default for Submitted {
    /// All fields absent.
    fn default() -> Self {
        Self { execution_id: None, state: None, duplicate: None }
    }
}

wire_struct! {
    /// A waitpoint token: its digest, never the token.
    Token {
        /// `token_digest`: 64 to 64 bytes of `^%x+$`
        digest ("digest"): String,
        /// `approver?`: 1 to 128 bytes
        approver ("approver"): Option<String>,
    }
}
impl Token {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(digest: String) -> Self {
        Self { digest, approver: None }
    }
}

wire_struct! {
    /// A waitpoint to open; `uses` bounds each of its tokens.
    NewWaitpoint {
        /// `waitpoint_id`: a UUID in lower case
        waitpoint_id ("waitpoint_id"): WaitpointId,
        /// `waitpoint_key`: 1 to 128 bytes
        key ("key"): String,
        /// `duration_ms?`: 0 to 315360000000
        expires_in_ms ("expires_in_ms"): Option<i64>,
        /// `signal_names?`: list of `signal_name`, at most 64
        allowed_signals ("allowed_signals"): Option<Vec<String>>,
        /// `uses?`: 1 to 1000000
        uses ("uses"): Option<i64>,
        /// `tokens`: list of `token`, at most 64
        tokens ("tokens"): Vec<Token>,
    }
}
impl NewWaitpoint {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(waitpoint_id: WaitpointId, key: String, tokens: Vec<Token>) -> Self {
        Self { waitpoint_id, key, tokens, expires_in_ms: None, allowed_signals: None, uses: None }
    }
}

wire_struct! {
    /// One node of a condition tree, listed parents first; `parent` is the place of its parent in the list, counted from 0.
    ConditionNode {
        /// `condition_op`: `signal`, `any_of`, `all_of`, `count`
        op ("op"): ConditionOp,
        /// `count?`: 0 to 9007199254740991
        parent ("parent"): Option<i64>,
        /// `signal_name?`: 1 to 128 bytes
        name ("name"): Option<String>,
        /// `waitpoint_key?`: 1 to 128 bytes
        waitpoint ("waitpoint"): Option<String>,
        /// `condition_count?`: 1 to 1000
        n ("n"): Option<i64>,
        /// `count_over?`: `signals`, `waitpoints`, `approvers`
        over ("over"): Option<CountOver>,
    }
}
impl ConditionNode {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(op: ConditionOp) -> Self {
        Self { op, parent: None, name: None, waitpoint: None, n: None, over: None }
    }
}

wire_struct! {
    /// How far one node of a condition is.
    ConditionProgress {
        /// `condition_op`: `signal`, `any_of`, `all_of`, `count`
        op ("op"): ConditionOp,
        /// `count?`: 0 to 9007199254740991
        parent ("parent"): Option<i64>,
        /// `signal_name?`: 1 to 128 bytes
        name ("name"): Option<String>,
        /// `waitpoint_key?`: 1 to 128 bytes
        waitpoint ("waitpoint"): Option<String>,
        /// `condition_count?`: 1 to 1000
        n ("n"): Option<i64>,
        /// `count_over?`: `signals`, `waitpoints`, `approvers`
        over ("over"): Option<CountOver>,
        /// `count`: 0 to 9007199254740991
        counted ("counted"): i64,
        /// `bool`: true or false
        satisfied ("satisfied"): bool,
    }
}
impl ConditionProgress {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(op: ConditionOp, counted: i64, satisfied: bool) -> Self {
        Self { op, counted, satisfied, parent: None, name: None, waitpoint: None, n: None, over: None }
    }
}

wire_struct! {
    /// A signal that arrived.
    Signal {
        /// `stream_id`: 1 to 64 bytes of `^%d+%-%d+$`
        id ("id"): String,
        /// `signal_id`: a UUID in lower case
        signal_id ("signal_id"): SignalId,
        /// `signal_name`: 1 to 128 bytes
        name ("name"): String,
        /// `waitpoint_id?`: a UUID in lower case
        waitpoint_id ("waitpoint_id"): Option<WaitpointId>,
        /// `waitpoint_key?`: 1 to 128 bytes
        waitpoint_key ("waitpoint_key"): Option<String>,
        /// `approver?`: 1 to 128 bytes
        approver ("approver"): Option<String>,
        /// `signal_payload?`: at most 262144 bytes
        payload ("payload"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        payload_encoding ("payload_encoding"): Option<String>,
        /// `source?`: 0 to 256 bytes
        category ("category"): Option<String>,
        /// `source?`: 0 to 256 bytes
        source ("source"): Option<String>,
        /// `source?`: 0 to 256 bytes
        source_identity ("source_identity"): Option<String>,
        /// `correlation_id?`: 1 to 256 bytes
        correlation_id ("correlation_id"): Option<String>,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        received_at ("received_at"): i64,
    }
}
impl Signal {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(id: String, signal_id: SignalId, name: String, received_at: i64) -> Self {
        Self { id, signal_id, name, received_at, waitpoint_id: None, waitpoint_key: None, approver: None, payload: None, payload_encoding: None, category: None, source: None, source_identity: None, correlation_id: None }
    }
}

wire_struct! {
    /// Why a waiting attempt goes on; `more` says that further signals are read apart.
    Resume {
        /// `suspension_id`: a UUID in lower case
        suspension_id ("suspension_id"): SuspensionId,
        /// `resume_cause`: `signal`, `timeout`, `operator`, `children`, `budget`, `timer`
        cause ("cause"): ResumeCause,
        /// `[signal]`
        signals ("signals"): Vec<Signal>,
        /// `bool`: true or false
        more ("more"): bool,
        /// `continuation?`: at most 262144 bytes
        continuation ("continuation"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        continuation_encoding ("continuation_encoding"): Option<String>,
        /// `[child]?`
        children ("children"): Option<Vec<Child>>,
        /// `bool?`: true or false
        more_children ("more_children"): Option<bool>,
        /// `step_name?`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        step ("step"): Option<String>,
        /// `actor?`: 1 to 128 bytes
        actor ("actor"): Option<String>,
    }
}
impl Resume {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(suspension_id: SuspensionId, cause: ResumeCause, signals: Vec<Signal>, more: bool) -> Self {
        Self { suspension_id, cause, signals, more, continuation: None, continuation_encoding: None, children: None, more_children: None, step: None, actor: None }
    }
}

wire_struct! {
    /// A step that a handler recorded. `due_at` is when a sleep ends, or when a failed step is tried again.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    Step {
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
        /// `step_name`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        name ("name"): String,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
        /// `step_kind`: `run`, `sleep`, `signal`, `children`, `spawn`
        kind ("kind"): StepKind,
        /// `step_state`: `waiting`, `done`, `failed`
        state ("state"): StepState,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        tries ("tries"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        started_at ("started_at"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        ended_at ("ended_at"): Option<i64>,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `attempt_index`: 0 to 9007199254740991
        attempt_index ("attempt_index"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count?`: 0 to 9007199254740991
        result_bytes ("result_bytes"): Option<i64>,
        /// `failure?`
        failure ("failure"): Option<Failure>,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        due_at ("due_at"): Option<i64>,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `step_digest?`: 1 to 128 bytes of `^[%w%+/=_%-]+$`. What a caller makes of a step's input, to find out whether it changed.
        input_digest ("input_digest"): Option<String>,
    }
}
impl Step {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(name: String, number: i64, kind: StepKind, state: StepState, tries: i64, started_at: i64, attempt_index: i64) -> Self {
        Self { name, number, kind, state, tries, started_at, attempt_index, ended_at: None, result_bytes: None, failure: None, due_at: None, input_digest: None }
    }
}

wire_struct! {
    /// What an upstream member passes: its result, or its failure.
    PassedValue {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `outcome`: `success`, `failed`, `cancelled`, `expired`, `skipped`
        outcome ("outcome"): Outcome,
        /// `result?`: at most 1048576 bytes
        value ("value"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        encoding ("encoding"): Option<String>,
        /// `failure?`
        failure ("failure"): Option<Failure>,
    }
}
impl PassedValue {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, outcome: Outcome) -> Self {
        Self { execution_id, outcome, value: None, encoding: None, failure: None }
    }
}

wire_struct! {
    /// When a member may run: after all, any or `k` of its edges.
    #[derive(Copy, serde::Serialize, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    Inbound {
        /// `inbound_policy`: `all_of`, `any_of`, `quorum`
        policy ("policy"): InboundPolicy,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 100000_i64))]
        /// `quorum?`: 1 to 100000
        k ("k"): Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        /// `on_satisfied?`: `cancel_remaining`, `let_run`
        on_satisfied ("on_satisfied"): Option<OnSatisfied>,
    }
}
impl Inbound {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(policy: InboundPolicy) -> Self {
        Self { policy, k: None, on_satisfied: None }
    }
}

wire_struct! {
    /// A member of a flow; `nested` is a flow that runs in its place.
    NewMember {
        /// `member_key`: 1 to 128 bytes
        key ("key"): String,
        /// `submission`
        submission ("submission"): Submission,
        /// `inbound?`
        inbound ("inbound"): Option<Inbound>,
        /// `flow_id?`: a UUID in lower case
        nested ("nested"): Option<FlowId>,
    }
}
impl NewMember {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(key: String, submission: Submission) -> Self {
        Self { key, submission, inbound: None, nested: None }
    }
}

wire_struct! {
    /// An edge between two members, by their keys.
    NewEdge {
        /// `member_key`: 1 to 128 bytes
        from ("from"): String,
        /// `member_key`: 1 to 128 bytes
        to ("to"): String,
        /// `edge_on`: `success`, `completion`, `failure`
        on ("on"): EdgeOn,
        /// `pass_as?`: 1 to 128 bytes
        pass_as ("pass_as"): Option<String>,
    }
}
impl NewEdge {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(from: String, to: String, on: EdgeOn) -> Self {
        Self { from, to, on, pass_as: None }
    }
}

wire_struct! {
    /// A flow to create; `parent_id` is the member it runs in place of.
    NewFlow {
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `kind`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): String,
        /// `on_member_failure`: `continue`, `fail_flow`, `isolate_branch`
        on_member_failure ("on_member_failure"): OnMemberFailure,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        deadline_at ("deadline_at"): Option<i64>,
        /// `duration_ms?`: 0 to 315360000000
        deadline_ms ("deadline_ms"): Option<i64>,
        /// `duration_ms?`: 0 to 315360000000
        retention_ms ("retention_ms"): Option<i64>,
        /// `lane?`: 1 to 64 bytes of `^[%w%._%-]+$`
        default_lane ("default_lane"): Option<String>,
        /// `retry?`
        default_retry ("default_retry"): Option<Retry>,
        /// `budget_refs?`: list of `budget_ref`, at most 16
        budgets ("budgets"): Option<Vec<BudgetRef>>,
        /// `url?`: 1 to 2048 bytes of `^https?://[^/%?#%s%c]+[^#%s%c]*$`. Where a webhook goes: an address without a fragment.
        completion_webhook ("completion_webhook"): Option<String>,
        /// `digest`: 32 to 64 bytes of `^%x+$`
        body_digest ("body_digest"): String,
        /// `execution_id?`: a UUID in lower case
        parent_id ("parent_id"): Option<ExecutionId>,
        /// `fired?`
        fired ("fired"): Option<Fired>,
    }
}
impl NewFlow {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(flow_id: FlowId, namespace: String, kind: String, on_member_failure: OnMemberFailure, body_digest: String) -> Self {
        Self { flow_id, namespace, kind, on_member_failure, body_digest, deadline_at: None, deadline_ms: None, retention_ms: None, default_lane: None, default_retry: None, budgets: None, completion_webhook: None, parent_id: None, fired: None }
    }
}

wire_struct! {
    /// The contract type `added_member`.
    AddedMember {
        /// `member_key`: 1 to 128 bytes
        key ("key"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `member_state`: `held`, `waiting`, `delayed`, `rate_limited`, `waiting_children`, `active`, `suspended`, `resumable`, `completed`, `failed`, `cancelled`, `expired`, `skipped`
        state ("state"): MemberState,
        /// `bool`: true or false
        duplicate ("duplicate"): bool,
    }
}

wire_struct! {
    /// A member in a list.
    Member {
        /// `member_key`: 1 to 128 bytes
        key ("key"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
        /// `member_state`: `held`, `waiting`, `delayed`, `rate_limited`, `waiting_children`, `active`, `suspended`, `resumable`, `completed`, `failed`, `cancelled`, `expired`, `skipped`
        state ("state"): MemberState,
        /// `kind`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): String,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `inbound?`
        inbound ("inbound"): Option<Inbound>,
        /// `flow_id?`: a UUID in lower case
        nested ("nested"): Option<FlowId>,
        /// `count`: 0 to 9007199254740991
        edges_in ("edges_in"): i64,
        /// `count`: 0 to 9007199254740991
        edges_out ("edges_out"): i64,
    }
}

wire_struct! {
    /// The contract type `edge`.
    Edge {
        /// `execution_id`: a UUID in lower case
        from ("from"): ExecutionId,
        /// `execution_id`: a UUID in lower case
        to ("to"): ExecutionId,
        /// `edge_on`: `success`, `completion`, `failure`
        on ("on"): EdgeOn,
        /// `pass_as?`: 1 to 128 bytes
        pass_as ("pass_as"): Option<String>,
        /// `edge_state`: `pending`, `met`, `dead`
        state ("state"): EdgeState,
    }
}
impl Edge {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(from: ExecutionId, to: ExecutionId, on: EdgeOn, state: EdgeState) -> Self {
        Self { from, to, on, state, pass_as: None }
    }
}

wire_struct! {
    /// Why nothing of a flow may start any more.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    FlowStop {
        /// `cancel_policy`: `cancel_all`, `cancel_pending`, `let_active_finish`
        policy ("policy"): CancelPolicy,
        #[cfg_attr(feature = "openapi", schema(min_length = 0, max_length = 4096))]
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `actor?`: 1 to 128 bytes
        actor ("actor"): Option<String>,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        at ("at"): i64,
    }
}
impl FlowStop {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(policy: CancelPolicy, at: i64) -> Self {
        Self { policy, at, reason: None, actor: None }
    }
}

wire_struct! {
    /// A flow and its counts.
    Flow {
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `kind`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): String,
        /// `flow_state`: `open`, `running`, `blocked`, `completed`, `failed`, `cancelled`
        state ("state"): FlowState,
        /// `on_member_failure`: `continue`, `fail_flow`, `isolate_branch`
        on_member_failure ("on_member_failure"): OnMemberFailure,
        /// `member_counts`: map from `member_state` to `count`
        counts ("counts"): BTreeMap<MemberState, i64>,
        /// `count`: 0 to 9007199254740991
        members ("members"): i64,
        /// `count`: 0 to 9007199254740991
        version ("version"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        updated_at ("updated_at"): i64,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        sealed_at ("sealed_at"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        finished_at ("finished_at"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        deadline_at ("deadline_at"): Option<i64>,
        /// `duration_ms`: 0 to 315360000000
        retention_ms ("retention_ms"): i64,
        /// `lane?`: 1 to 64 bytes of `^[%w%._%-]+$`
        default_lane ("default_lane"): Option<String>,
        /// `retry?`
        default_retry ("default_retry"): Option<Retry>,
        /// `budget_refs?`: list of `budget_ref`, at most 16
        budgets ("budgets"): Option<Vec<BudgetRef>>,
        /// `flow_stop?`
        stop ("stop"): Option<FlowStop>,
        /// `count`: 0 to 9007199254740991
        owed ("owed"): i64,
        /// `text?`: 0 to 65536 bytes
        walk ("walk"): Option<String>,
        /// `execution_id?`: a UUID in lower case
        parent_id ("parent_id"): Option<ExecutionId>,
        /// `count`: 0 to 9007199254740991
        uncaught_failures ("uncaught_failures"): i64,
        /// `url?`: 1 to 2048 bytes of `^https?://[^/%?#%s%c]+[^#%s%c]*$`. Where a webhook goes: an address without a fragment.
        completion_webhook ("completion_webhook"): Option<String>,
        /// `fired?`
        fired ("fired"): Option<Fired>,
    }
}

wire_struct! {
    /// Where a list of flows goes on.
    FlowPosition {
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
    }
}

wire_struct! {
    /// Where a walk over members and their edges goes on.
    GraphPosition {
        /// `count`: 0 to 9007199254740991
        member ("member"): i64,
        /// `count`: 0 to 9007199254740991
        edge ("edge"): i64,
    }
}

wire_struct! {
    /// A child to spawn.
    NewChild {
        /// `submission`
        submission ("submission"): Submission,
        /// `member_key?`: 1 to 128 bytes
        key ("key"): Option<String>,
        /// `parent_close?`: `cancel_children`, `abandon`
        parent_close ("parent_close"): Option<ParentClose>,
    }
}
impl NewChild {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(submission: Submission) -> Self {
        Self { submission, key: None, parent_close: None }
    }
}

wire_struct! {
    /// What became of a child.
    Child {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
        /// `member_key?`: 1 to 128 bytes
        key ("key"): Option<String>,
        /// `public_state`: `waiting`, `delayed`, `rate_limited`, `waiting_children`, `active`, `suspended`, `resumable`, `completed`, `failed`, `cancelled`, `expired`, `skipped`
        state ("state"): PublicState,
        /// `outcome?`: `success`, `failed`, `cancelled`, `expired`, `skipped`
        outcome ("outcome"): Option<Outcome>,
        /// `result?`: at most 1048576 bytes
        result ("result"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        result_encoding ("result_encoding"): Option<String>,
        /// `failure?`
        failure ("failure"): Option<Failure>,
    }
}
impl Child {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, number: i64, state: PublicState) -> Self {
        Self { execution_id, number, state, key: None, outcome: None, result: None, result_encoding: None, failure: None }
    }
}

wire_struct! {
    /// An edge a member waits for.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    Upstream {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `member_key`: 1 to 128 bytes
        key ("key"): String,
        /// `member_state`: `held`, `waiting`, `delayed`, `rate_limited`, `waiting_children`, `active`, `suspended`, `resumable`, `completed`, `failed`, `cancelled`, `expired`, `skipped`
        state ("state"): MemberState,
        /// `edge_on`: `success`, `completion`, `failure`
        on ("on"): EdgeOn,
    }
}

wire_struct! {
    /// What a member waits for.
    DependencyFacts {
        /// `inbound_policy`: `all_of`, `any_of`, `quorum`
        policy ("policy"): InboundPolicy,
        /// `count`: 0 to 9007199254740991
        needed ("needed"): i64,
        /// `count`: 0 to 9007199254740991
        total ("total"): i64,
        /// `count`: 0 to 9007199254740991
        met ("met"): i64,
        /// `count`: 0 to 9007199254740991
        dead ("dead"): i64,
        /// `bool`: true or false
        held ("held"): bool,
        /// `[upstream]`
        open ("open"): Vec<Upstream>,
    }
}

wire_struct! {
    /// The children an execution waits for.
    ChildrenFacts {
        /// `count`: 0 to 9007199254740991
        total ("total"): i64,
        /// `count`: 0 to 9007199254740991
        open ("open"): i64,
        /// `flow_id?`: a UUID in lower case
        nested ("nested"): Option<FlowId>,
    }
}
impl ChildrenFacts {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(total: i64, open: i64) -> Self {
        Self { total, open, nested: None }
    }
}

wire_struct! {
    /// A waitpoint as its owner sees it.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    OpenWaitpoint {
        /// `waitpoint_id`: a UUID in lower case
        waitpoint_id ("waitpoint_id"): WaitpointId,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `waitpoint_key`: 1 to 128 bytes
        key ("key"): String,
        /// `waitpoint_state`: `pending`, `active`, `closed`
        state ("state"): WaitpointState,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): Option<i64>,
    }
}
impl OpenWaitpoint {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(waitpoint_id: WaitpointId, key: String, state: WaitpointState) -> Self {
        Self { waitpoint_id, key, state, expires_at: None }
    }
}

wire_struct! {
    /// Who may answer; no label means whoever holds the one token.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    ApproverState {
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `approver?`: 1 to 128 bytes
        approver ("approver"): Option<String>,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count?`: 0 to 9007199254740991
        uses_left ("uses_left"): Option<i64>,
        /// `bool`: true or false
        answered ("answered"): bool,
    }
}
impl ApproverState {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(answered: bool) -> Self {
        Self { answered, approver: None, uses_left: None }
    }
}

wire_struct! {
    /// A waitpoint in a list.
    Waitpoint {
        /// `waitpoint_id`: a UUID in lower case
        waitpoint_id ("waitpoint_id"): WaitpointId,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `kind`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): String,
        /// `waitpoint_key`: 1 to 128 bytes
        key ("key"): String,
        /// `waitpoint_state`: `pending`, `active`, `closed`
        state ("state"): WaitpointState,
        /// `suspension_id?`: a UUID in lower case
        suspension_id ("suspension_id"): Option<SuspensionId>,
        /// `suspension_reason?`: `waiting_for_signal`, `waiting_for_approval`, `waiting_for_callback`, `waiting_for_tool_result`, `waiting_for_operator_review`, `paused_by_policy`, `paused_by_budget`, `step_boundary`, `manual_pause`
        reason ("reason"): Option<SuspensionReason>,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        closed_at ("closed_at"): Option<i64>,
        /// `text?`: 0 to 65536 bytes
        closed_reason ("closed_reason"): Option<String>,
        /// `signal_names?`: list of `signal_name`, at most 64
        allowed_signals ("allowed_signals"): Option<Vec<String>>,
        /// `[approver_state]`
        approvers ("approvers"): Vec<ApproverState>,
        /// `count`: 0 to 9007199254740991
        signals ("signals"): i64,
        /// `[condition_progress]`
        condition ("condition"): Vec<ConditionProgress>,
    }
}

wire_struct! {
    /// What a suspended execution waits for.
    Suspension {
        /// `suspension_id`: a UUID in lower case
        suspension_id ("suspension_id"): SuspensionId,
        /// `suspension_reason`: `waiting_for_signal`, `waiting_for_approval`, `waiting_for_callback`, `waiting_for_tool_result`, `waiting_for_operator_review`, `paused_by_policy`, `paused_by_budget`, `step_boundary`, `manual_pause`
        reason ("reason"): SuspensionReason,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        suspended_at ("suspended_at"): i64,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        timeout_at ("timeout_at"): Option<i64>,
        /// `timeout_behavior`: `fail`, `cancel`, `expire`, `auto_resume_with_timeout_signal`, `escalate`
        timeout_behavior ("timeout_behavior"): TimeoutBehavior,
        /// `[open_waitpoint]`
        waitpoints ("waitpoints"): Vec<OpenWaitpoint>,
        /// `[condition_progress]`
        condition ("condition"): Vec<ConditionProgress>,
        /// `step_name?`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        step ("step"): Option<String>,
    }
}
impl Suspension {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(suspension_id: SuspensionId, reason: SuspensionReason, suspended_at: i64, timeout_behavior: TimeoutBehavior, waitpoints: Vec<OpenWaitpoint>, condition: Vec<ConditionProgress>) -> Self {
        Self { suspension_id, reason, suspended_at, timeout_behavior, waitpoints, condition, timeout_at: None, step: None }
    }
}

wire_struct! {
    /// The contract type `past_suspension`.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    PastSuspension {
        /// `suspension_id`: a UUID in lower case
        suspension_id ("suspension_id"): SuspensionId,
        /// `suspension_reason`: `waiting_for_signal`, `waiting_for_approval`, `waiting_for_callback`, `waiting_for_tool_result`, `waiting_for_operator_review`, `paused_by_policy`, `paused_by_budget`, `step_boundary`, `manual_pause`
        reason ("reason"): SuspensionReason,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `attempt_index`: 0 to 9007199254740991
        attempt_index ("attempt_index"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        suspended_at ("suspended_at"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        ended_at ("ended_at"): i64,
        #[cfg_attr(feature = "openapi", schema(min_length = 0, max_length = 65536))]
        /// `text`: 0 to 65536 bytes
        cause ("cause"): String,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `actor?`: 1 to 128 bytes
        actor ("actor"): Option<String>,
    }
}
impl PastSuspension {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(suspension_id: SuspensionId, reason: SuspensionReason, attempt_index: i64, suspended_at: i64, ended_at: i64, cause: String) -> Self {
        Self { suspension_id, reason, attempt_index, suspended_at, ended_at, cause, actor: None }
    }
}

wire_struct! {
    /// The contract type `new_frame`.
    NewFrame {
        /// `frame_type`: 1 to 64 bytes
        r#type ("type"): String,
        /// `frame_payload?`: at most 65536 bytes
        payload ("payload"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        payload_encoding ("payload_encoding"): Option<String>,
        /// `correlation_id?`: 1 to 256 bytes
        correlation_id ("correlation_id"): Option<String>,
        /// `frame_mode`: `durable`, `summary`, `live`
        mode ("mode"): FrameMode,
    }
}
impl NewFrame {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(r#type: String, mode: FrameMode) -> Self {
        Self { r#type, mode, payload: None, payload_encoding: None, correlation_id: None }
    }
}

wire_struct! {
    /// One frame of an attempt's stream.
    Frame {
        /// `stream_id`: 1 to 64 bytes of `^%d+%-%d+$`
        id ("id"): String,
        /// `count`: 0 to 9007199254740991
        sequence ("sequence"): i64,
        /// `frame_type`: 1 to 64 bytes
        r#type ("type"): String,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        at ("at"): i64,
        /// `frame_payload?`: at most 65536 bytes
        payload ("payload"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        payload_encoding ("payload_encoding"): Option<String>,
        /// `correlation_id?`: 1 to 256 bytes
        correlation_id ("correlation_id"): Option<String>,
        /// `frame_mode`: `durable`, `summary`, `live`
        mode ("mode"): FrameMode,
    }
}
impl Frame {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(id: String, sequence: i64, r#type: String, at: i64, mode: FrameMode) -> Self {
        Self { id, sequence, r#type, at, mode, payload: None, payload_encoding: None, correlation_id: None }
    }
}

wire_struct! {
    /// The summary after these frames, folded from the version named.
    NewSummary {
        /// `summary_document`: at most 1048576 bytes
        document ("document"): Bytes,
        /// `count`: 0 to 9007199254740991
        version ("version"): i64,
    }
}

wire_struct! {
    /// A reserved execution, waiting for its worker; `number` says how many grants it had, this one included.
    Grant {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `grant_id`: a UUID in lower case
        grant_id ("grant_id"): Uuid,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): i64,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `kind`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): String,
        /// `int`: -9007199254740991 to 9007199254740991
        score ("score"): i64,
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
        /// `budget_refs?`: list of `budget_ref`, at most 16
        budgets ("budgets"): Option<Vec<BudgetRef>>,
        /// `quota_refs?`: list of `quota_ref`, at most 16
        quotas ("quotas"): Option<Vec<QuotaRef>>,
        /// `holder_sets?`: list of `holder_set`, at most 33
        holder_sets ("holder_sets"): Option<Vec<String>>,
        /// `holder_sets?`: list of `holder_set`, at most 33
        keep ("keep"): Option<Vec<String>>,
    }
}
impl Grant {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, grant_id: Uuid, expires_at: i64, lane: String, kind: String, score: i64, number: i64) -> Self {
        Self { execution_id, grant_id, expires_at, lane, kind, score, number, budgets: None, quotas: None, holder_sets: None, keep: None }
    }
}

wire_struct! {
    /// An execution in a holder set: until a time, or without one for as long as it runs.
    Holder {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): Option<i64>,
    }
}
impl Holder {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, holder_id: Uuid) -> Self {
        Self { execution_id, holder_id, expires_at: None }
    }
}

wire_struct! {
    /// An execution that asks for a slot until a time.
    Candidate {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): i64,
    }
}

wire_struct! {
    /// So many starts in a window: anywhere in it, or evenly spaced.
    #[derive(Copy, serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    QuotaRate {
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 1000000_i64))]
        /// `rate_limit`: 1 to 1000000
        limit ("limit"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 2678400000_i64))]
        /// `window_ms`: 1 to 2678400000
        window_ms ("window_ms"): i64,
        /// `rate_mode`: `sliding`, `smooth`
        mode ("mode"): RateMode,
    }
}

wire_struct! {
    /// So much weight in a window.
    #[derive(Copy, serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    QuotaWeights {
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 9007199254740991_i64))]
        /// `amount`: 1 to 9007199254740991
        limit ("limit"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 2678400000_i64))]
        /// `window_ms`: 1 to 2678400000
        window_ms ("window_ms"): i64,
    }
}

wire_struct! {
    /// What each key of a quota allows; everything named has to pass.
    Quota {
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `quota_rate?`
        rate ("rate"): Option<QuotaRate>,
        /// `max_active?`: 1 to 1000000. How many executions of a lane may run at once.
        concurrency ("concurrency"): Option<i64>,
        /// `quota_weights?`
        weighted ("weighted"): Option<QuotaWeights>,
        /// `bool`: true or false
        hold_while_suspended ("hold_while_suspended"): bool,
    }
}
impl Quota {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(quota_id: QuotaPolicyId, namespace: String, hold_while_suspended: bool) -> Self {
        Self { quota_id, namespace, hold_while_suspended, rate: None, concurrency: None, weighted: None }
    }
}

wire_struct! {
    /// A quota as it is stored.
    QuotaEntry {
        /// `quota`
        quota ("quota"): Quota,
        /// `count`: 0 to 9007199254740991
        version ("version"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `count`: 0 to 9007199254740991
        keys ("keys"): i64,
    }
}

wire_struct! {
    /// An execution that asks a quota to start under a key; `number` is that of its grant.
    QuotaCandidate {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): i64,
        /// `quota_key`: 1 to 256 bytes
        key ("key"): String,
        /// `amount`: 1 to 9007199254740991
        weight ("weight"): i64,
        /// `int`: -9007199254740991 to 9007199254740991
        score ("score"): i64,
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
    }
}

wire_struct! {
    /// What a quota said to a candidate: the part that refused it, and when to ask again.
    QuotaAnswer {
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
        /// `bool`: true or false
        admitted ("admitted"): bool,
        /// `quota_part?`: `throttle`, `rate`, `concurrency`, `weighted`, `line`
        part ("part"): Option<QuotaPart>,
        /// `count?`: 0 to 9007199254740991
        used ("used"): Option<i64>,
        /// `count?`: 0 to 9007199254740991
        limit ("limit"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        next_at ("next_at"): Option<i64>,
        /// `holder_set?`: 1 to 512 bytes. Where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`.
        keep ("keep"): Option<String>,
    }
}
impl QuotaAnswer {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(holder_id: Uuid, admitted: bool) -> Self {
        Self { holder_id, admitted, part: None, used: None, limit: None, next_at: None, keep: None }
    }
}

wire_struct! {
    /// A holder that leaves a key of a quota; unused when it never ran.
    QuotaReturn {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
        /// `key_digest`: 20 to 20 bytes of `^%x+$`. The digest under which a quota keeps what it knows of a key.
        key_digest ("key_digest"): String,
        /// `bool`: true or false
        unused ("unused"): bool,
    }
}

wire_struct! {
    /// An execution that was called under a key and does not come.
    QuotaAbsence {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `key_digest`: 20 to 20 bytes of `^%x+$`. The digest under which a quota keeps what it knows of a key.
        key_digest ("key_digest"): String,
    }
}

wire_struct! {
    /// How far one part of a quota is used under a key.
    #[derive(Copy, serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    QuotaUse {
        /// `quota_part`: `throttle`, `rate`, `concurrency`, `weighted`, `line`
        part ("part"): QuotaPart,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        used ("used"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        limit ("limit"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        next_at ("next_at"): Option<i64>,
    }
}
impl QuotaUse {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(part: QuotaPart, used: i64, limit: i64) -> Self {
        Self { part, used, limit, next_at: None }
    }
}

wire_struct! {
    /// What a quota knows of one key.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    QuotaKeyState {
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
        /// `quota_key`: 1 to 256 bytes
        key ("key"): String,
        /// `[quota_use]`
        parts ("parts"): Vec<QuotaUse>,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        held ("held"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        waiting ("waiting"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        throttled_until ("throttled_until"): Option<i64>,
    }
}
impl QuotaKeyState {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(key: String, parts: Vec<QuotaUse>, held: i64, waiting: i64) -> Self {
        Self { key, parts, held, waiting, throttled_until: None }
    }
}

wire_struct! {
    /// A key in use, and where its holders are.
    QuotaKeyUse {
        /// `holder_set`: 1 to 512 bytes. Where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`.
        set ("set"): String,
        /// `quota_key_state`
        state ("state"): QuotaKeyState,
    }
}

wire_struct! {
    /// Where a list of quotas goes on.
    QuotaPosition {
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
    }
}

wire_struct! {
    /// A slot of a quota that an execution has.
    QuotaSlot {
        /// `holder_set`: 1 to 512 bytes. Where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`.
        set ("set"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
    }
}

wire_struct! {
    /// What an execution's partition knows about a holder.
    HeldSlot {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
        /// `holder_state`: `granted`, `running`, `owed`, `gone`
        state ("state"): HolderState,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): Option<i64>,
    }
}
impl HeldSlot {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, holder_id: Uuid, state: HolderState) -> Self {
        Self { execution_id, holder_id, state, expires_at: None }
    }
}

wire_struct! {
    /// Where a walk over a lane's running executions goes on.
    QueuePosition {
        /// `queue`: 1 to 200 bytes. The name of a queue: the class of what its work requires, a colon, and its kind.
        queue ("queue"): String,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}

wire_struct! {
    /// What a budget measures, and how much of it may be used.
    DimensionLimit {
        /// `dimension`: 1 to 64 bytes
        name ("name"): String,
        /// `limit_amount?`: 0 to 9007199254740991
        hard ("hard"): Option<i64>,
        /// `limit_amount?`: 0 to 9007199254740991
        soft ("soft"): Option<i64>,
    }
}
impl DimensionLimit {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(name: String) -> Self {
        Self { name, hard: None, soft: None }
    }
}

wire_struct! {
    /// The contract type `budget_scope`.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    BudgetScope {
        /// `scope_type`: `namespace`, `tenant`, `flow`, `lane`, `custom`
        r#type ("type"): ScopeType,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
        /// `scope_id?`: 1 to 256 bytes
        id ("id"): Option<String>,
    }
}
impl BudgetScope {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(r#type: ScopeType) -> Self {
        Self { r#type, id: None }
    }
}

wire_struct! {
    /// When a period ends: after an interval, or with the day or month of a time zone.
    BudgetReset {
        /// `reset_type`: `none`, `interval`, `day`, `month`
        r#type ("type"): ResetType,
        /// `interval_ms?`: 1000 to 315360000000
        interval_ms ("interval_ms"): Option<i64>,
        /// `zone?`: 1 to 64 bytes of `^[%w_/%+%-]+$`. A time zone by its IANA name.
        zone ("zone"): Option<String>,
    }
}
impl BudgetReset {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(r#type: ResetType) -> Self {
        Self { r#type, interval_ms: None, zone: None }
    }
}

wire_struct! {
    /// A budget to create; the first reset of a calendar is supplied.
    NewBudget {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `budget_id?`: a UUID in lower case
        parent ("parent"): Option<BudgetId>,
        /// `budget_scope`
        scope ("scope"): BudgetScope,
        /// `dimension_limits`: list of `dimension_limit`, at most 32
        dimensions ("dimensions"): Vec<DimensionLimit>,
        /// `budget_reset`
        reset ("reset"): BudgetReset,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        next_reset_at ("next_reset_at"): Option<i64>,
        /// `on_soft`: `notify`, `require_approval`
        on_soft ("on_soft"): OnSoft,
        /// `on_hard`: `suspend`, `block`, `cancel`, `fail`
        on_hard ("on_hard"): OnHard,
    }
}
impl NewBudget {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(budget_id: BudgetId, namespace: String, scope: BudgetScope, dimensions: Vec<DimensionLimit>, reset: BudgetReset, on_soft: OnSoft, on_hard: OnHard) -> Self {
        Self { budget_id, namespace, scope, dimensions, reset, on_soft, on_hard, parent: None, next_reset_at: None }
    }
}

wire_struct! {
    /// The contract type `dimension_status`.
    DimensionStatus {
        /// `dimension`: 1 to 64 bytes
        name ("name"): String,
        /// `limit_amount?`: 0 to 9007199254740991
        hard ("hard"): Option<i64>,
        /// `limit_amount?`: 0 to 9007199254740991
        soft ("soft"): Option<i64>,
        /// `count`: 0 to 9007199254740991
        used ("used"): i64,
        /// `count`: 0 to 9007199254740991
        held ("held"): i64,
    }
}
impl DimensionStatus {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(name: String, used: i64, held: i64) -> Self {
        Self { name, used, held, hard: None, soft: None }
    }
}

wire_struct! {
    /// What an operator did to a budget.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    BudgetAction {
        #[cfg_attr(feature = "openapi", schema(min_length = 0, max_length = 65536))]
        /// `text`: 0 to 65536 bytes
        action ("action"): String,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        at ("at"): i64,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
        /// `dimension?`: 1 to 64 bytes
        dimension ("dimension"): Option<String>,
        #[cfg_attr(feature = "openapi", schema(minimum = -9007199254740991_i64, maximum = 9007199254740991_i64))]
        /// `delta?`: -9007199254740991 to 9007199254740991
        delta ("delta"): Option<i64>,
        #[cfg_attr(feature = "openapi", schema(min_length = 0, max_length = 4096))]
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
impl BudgetAction {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(action: String, actor: String, at: i64) -> Self {
        Self { action, actor, at, dimension: None, delta: None, reason: None }
    }
}

wire_struct! {
    /// A period that ended, and what was used in it.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    BudgetPeriod {
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        since ("since"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        ended_at ("ended_at"): i64,
        /// `free`: map from `dimension` to `count`, at most 32
        used ("used"): BTreeMap<String, i64>,
    }
}

wire_struct! {
    /// A budget and how much of it is used and held; `rooms` counts how often it had room again after a refusal, `wide` is the number of the last room that everyone is told of.
    Budget {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `budget_id?`: a UUID in lower case
        parent ("parent"): Option<BudgetId>,
        /// `budget_scope`
        scope ("scope"): BudgetScope,
        /// `[dimension_status]`
        dimensions ("dimensions"): Vec<DimensionStatus>,
        /// `budget_reset`
        reset ("reset"): BudgetReset,
        /// `on_soft`: `notify`, `require_approval`
        on_soft ("on_soft"): OnSoft,
        /// `on_hard`: `suspend`, `block`, `cancel`, `fail`
        on_hard ("on_hard"): OnHard,
        /// `count`: 0 to 9007199254740991
        version ("version"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `count`: 0 to 9007199254740991
        period ("period"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        period_since ("period_since"): i64,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        next_reset_at ("next_reset_at"): Option<i64>,
        /// `bool`: true or false
        approved ("approved"): bool,
        /// `count`: 0 to 9007199254740991
        rooms ("rooms"): i64,
        /// `count`: 0 to 9007199254740991
        wide ("wide"): i64,
        /// `[budget_action]`
        actions ("actions"): Vec<BudgetAction>,
        /// `[budget_period]`
        past ("past"): Vec<BudgetPeriod>,
    }
}

wire_struct! {
    /// An execution that asks to start under a budget.
    BudgetCandidate {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): i64,
        /// `estimate?`: map from `dimension` to `amount`, at most 32
        estimate ("estimate"): Option<BTreeMap<String, i64>>,
    }
}
impl BudgetCandidate {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, holder_id: Uuid, expires_at: i64) -> Self {
        Self { execution_id, holder_id, expires_at, estimate: None }
    }
}

wire_struct! {
    /// Whether a budget lets a candidate start; else which budget of its tree is in the way.
    BudgetVerdict {
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
        /// `bool`: true or false
        admitted ("admitted"): bool,
        /// `budget_refusal?`: `hard`, `soft`, `unknown_dimension`
        refusal ("refusal"): Option<BudgetRefusal>,
        /// `budget_id?`: a UUID in lower case
        budget_id ("budget_id"): Option<BudgetId>,
        /// `text?`: 0 to 65536 bytes
        dimension ("dimension"): Option<String>,
        /// `count?`: 0 to 9007199254740991
        used ("used"): Option<i64>,
        /// `count?`: 0 to 9007199254740991
        limit ("limit"): Option<i64>,
        /// `count?`: 0 to 9007199254740991
        rooms ("rooms"): Option<i64>,
    }
}
impl BudgetVerdict {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(holder_id: Uuid, admitted: bool) -> Self {
        Self { holder_id, admitted, refusal: None, budget_id: None, dimension: None, used: None, limit: None, rooms: None }
    }
}

wire_struct! {
    /// The grant or lease whose end drops a hold.
    BudgetHolder {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
    }
}

wire_struct! {
    /// What an execution used; counted once per key.
    UsageReport {
        /// `dedup_key`: 1 to 256 bytes
        dedup_key ("dedup_key"): String,
        /// `execution_id?`: a UUID in lower case
        execution_id ("execution_id"): Option<ExecutionId>,
        /// `holder_id?`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Option<Uuid>,
        /// `count?`: 0 to 9007199254740991
        sequence ("sequence"): Option<i64>,
        /// `amounts`: map from `dimension` to `amount`, at most 32
        dimensions ("dimensions"): BTreeMap<String, i64>,
        /// `reservation_id?`: a UUID in lower case
        reservation_id ("reservation_id"): Option<Uuid>,
    }
}
impl UsageReport {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(dedup_key: String, dimensions: BTreeMap<String, i64>) -> Self {
        Self { dedup_key, dimensions, execution_id: None, holder_id: None, sequence: None, reservation_id: None }
    }
}

wire_struct! {
    /// A report that waits for its budget's answer.
    PendingUsage {
        /// `count`: 0 to 9007199254740991
        sequence ("sequence"): i64,
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `attempt_index`: 0 to 9007199254740991
        attempt_index ("attempt_index"): i64,
        /// `lease_id`: a UUID in lower case
        lease_id ("lease_id"): LeaseId,
        /// `holder_id?`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Option<Uuid>,
        /// `dedup_key`: 1 to 256 bytes
        dedup_key ("dedup_key"): String,
        /// `amounts`: map from `dimension` to `amount`, at most 32
        dimensions ("dimensions"): BTreeMap<String, i64>,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        at ("at"): i64,
        /// `reservation_id?`: a UUID in lower case
        reservation_id ("reservation_id"): Option<Uuid>,
    }
}
impl PendingUsage {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(sequence: i64, budget_id: BudgetId, attempt_index: i64, lease_id: LeaseId, dedup_key: String, dimensions: BTreeMap<String, i64>, at: i64) -> Self {
        Self { sequence, budget_id, attempt_index, lease_id, dedup_key, dimensions, at, holder_id: None, reservation_id: None }
    }
}

wire_struct! {
    /// The limit in the way of a report, and what its budget says to do about it.
    UsageBreach {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `dimension`: 1 to 64 bytes
        dimension ("dimension"): String,
        /// `count`: 0 to 9007199254740991
        used ("used"): i64,
        /// `count`: 0 to 9007199254740991
        limit ("limit"): i64,
        /// `count`: 0 to 9007199254740991
        rooms ("rooms"): i64,
        /// `on_hard`: `suspend`, `block`, `cancel`, `fail`
        action ("action"): OnHard,
    }
}

wire_struct! {
    /// What an attempt used of a budget's dimension, and what it was refused.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    LedgerLine {
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `attempt_index`: 0 to 9007199254740991
        attempt_index ("attempt_index"): i64,
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
        /// `dimension`: 1 to 64 bytes
        dimension ("dimension"): String,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        accepted ("accepted"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        refused ("refused"): i64,
    }
}

wire_struct! {
    /// What an execution used, and how many of its reports wait for their budget's answer.
    Usage {
        /// `[ledger_line]`
        ledger ("ledger"): Vec<LedgerLine>,
        /// `count`: 0 to 9007199254740991
        pending ("pending"): i64,
    }
}

wire_struct! {
    /// Where a walk over blocked executions goes on.
    BlockedPosition {
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        since ("since"): i64,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}

wire_struct! {
    /// Where a walk over a line goes on; `never` is the line of those that can never pass.
    AwaitsPosition {
        /// `int`: -9007199254740991 to 9007199254740991
        score ("score"): i64,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `bool?`: true or false
        never ("never"): Option<bool>,
    }
}
impl AwaitsPosition {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(score: i64, execution_id: ExecutionId) -> Self {
        Self { score, execution_id, never: None }
    }
}

wire_struct! {
    /// An execution that waits for a budget; one that `continues` was parked while it ran.
    Awaiting {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `int`: -9007199254740991 to 9007199254740991
        score ("score"): i64,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `kind`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): String,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        blocked_since ("blocked_since"): i64,
        /// `bool`: true or false
        continues ("continues"): bool,
        /// `detail?`: map from `text` to `text`, at most 64
        detail ("detail"): Option<BTreeMap<String, String>>,
    }
}
impl Awaiting {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, score: i64, namespace: String, lane: String, kind: String, blocked_since: i64, continues: bool) -> Self {
        Self { execution_id, score, namespace, lane, kind, blocked_since, continues, detail: None }
    }
}

wire_struct! {
    /// The contract type `quota_waiter`.
    QuotaWaiter {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `int`: -9007199254740991 to 9007199254740991
        score ("score"): i64,
        /// `bool`: true or false
        never ("never"): bool,
    }
}

wire_struct! {
    /// A budget that someone waits for; -1 rooms were seen by whoever found none of this name.
    AwaitedBudget {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `int`: -9007199254740991 to 9007199254740991
        rooms ("rooms"): i64,
    }
}

wire_struct! {
    /// The contract type `scope_budgets`.
    ScopeBudgets {
        /// `scope_name`: 1 to 512 bytes. `namespace:<namespace>`, `lane:<namespace>/<lane>` or `flow:<flow id>`.
        scope ("scope"): String,
        /// `[budget_id]`: a UUID in lower case
        budget_ids ("budget_ids"): Vec<BudgetId>,
    }
}

wire_struct! {
    /// A budget that had room again after it refused something, or whose next reset is to be supplied. Everyone refused before room number `wide` is to be told unless `told` says it was done, and of those before `rooms` as many as fit into what is `free` below the hard limits.
    ClearedBudget {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `count`: 0 to 9007199254740991
        rooms ("rooms"): i64,
        /// `count`: 0 to 9007199254740991
        wide ("wide"): i64,
        /// `count`: 0 to 9007199254740991
        told ("told"): i64,
        /// `free`: map from `dimension` to `count`, at most 32
        free ("free"): BTreeMap<String, i64>,
        /// `bool`: true or false
        next_reset_wanted ("next_reset_wanted"): bool,
    }
}

wire_struct! {
    /// Where a list of budgets goes on.
    BudgetPosition {
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
    }
}

wire_struct! {
    /// The contract type `failure`.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    Failure {
        #[cfg_attr(feature = "openapi", schema(min_length = 0, max_length = 4096))]
        /// `reason`: 0 to 4096 bytes
        reason ("reason"): String,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `category`: 1 to 128 bytes
        category ("category"): String,
    }
}

wire_struct! {
    /// The contract type `attempt`.
    Attempt {
        /// `attempt_index`: 0 to 9007199254740991
        index ("index"): i64,
        /// `attempt_id`: a UUID in lower case
        attempt_id ("attempt_id"): AttemptId,
        /// `attempt_type`: `initial`, `retry`, `reclaim`, `replay`
        r#type ("type"): AttemptType,
        /// `attempt_state`: `started`, `suspended`, `succeeded`, `failed`, `cancelled`, `interrupted`, `timed_out`
        state ("state"): AttemptState,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        worker_instance ("worker_instance"): String,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        started_at ("started_at"): i64,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        ended_at ("ended_at"): Option<i64>,
        /// `epoch`: 0 to 9007199254740991
        lease_epoch ("lease_epoch"): i64,
        /// `failure?`
        failure ("failure"): Option<Failure>,
        /// `count`: 0 to 9007199254740991
        frames ("frames"): i64,
    }
}

wire_struct! {
    /// The contract type `lease`.
    Lease {
        /// `worker_id`: 1 to 64 bytes of `^[%w%._%-]+$`
        worker_id ("worker_id"): String,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        worker_instance ("worker_instance"): String,
        /// `lease_id`: a UUID in lower case
        lease_id ("lease_id"): LeaseId,
        /// `epoch`: 0 to 9007199254740991
        lease_epoch ("lease_epoch"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): i64,
        /// `bool`: true or false
        cancel_requested ("cancel_requested"): bool,
        /// `bool`: true or false
        yield_requested ("yield_requested"): bool,
    }
}

wire_struct! {
    /// A lease a worker holds.
    HeldLease {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `lease_id`: a UUID in lower case
        lease_id ("lease_id"): LeaseId,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        lease_expires_at ("lease_expires_at"): i64,
    }
}

wire_struct! {
    /// The contract type `progress`.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    Progress {
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 100_i64))]
        /// `pct`: 0 to 100
        pct ("pct"): i64,
        #[cfg_attr(feature = "openapi", schema(min_length = 0, max_length = 1024))]
        /// `progress_message?`: 0 to 1024 bytes
        message ("message"): Option<String>,
    }
}
impl Progress {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(pct: i64) -> Self {
        Self { pct, message: None }
    }
}

wire_struct! {
    /// The contract type `operator_action`.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    OperatorAction {
        #[cfg_attr(feature = "openapi", schema(min_length = 0, max_length = 65536))]
        /// `text`: 0 to 65536 bytes
        action ("action"): String,
        #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 128))]
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        at ("at"): i64,
        #[cfg_attr(feature = "openapi", schema(min_length = 0, max_length = 4096))]
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
impl OperatorAction {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(action: String, actor: String, at: i64) -> Self {
        Self { action, actor, at, reason: None }
    }
}

wire_struct! {
    /// Everything the store knows about one execution.
    Execution {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `kind`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): String,
        /// `public_state`: `waiting`, `delayed`, `rate_limited`, `waiting_children`, `active`, `suspended`, `resumable`, `completed`, `failed`, `cancelled`, `expired`, `skipped`
        state ("state"): PublicState,
        /// `phase`: `runnable`, `active`, `suspended`, `terminal`
        phase ("phase"): LifecyclePhase,
        /// `blocking_reason?`: `waiting_for_capable_worker`, `waiting_for_quota`, `waiting_for_budget`, `waiting_for_dependencies`, `waiting_for_children`, `held_by_operator`
        blocking_reason ("blocking_reason"): Option<BlockingReason>,
        /// `detail?`: map from `text` to `text`, at most 64
        blocking_detail ("blocking_detail"): Option<BTreeMap<String, String>>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        blocked_since ("blocked_since"): Option<i64>,
        /// `outcome?`: `success`, `failed`, `cancelled`, `expired`, `skipped`
        outcome ("outcome"): Option<Outcome>,
        /// `attempt_state?`: `started`, `suspended`, `succeeded`, `failed`, `cancelled`, `interrupted`, `timed_out`
        attempt_state ("attempt_state"): Option<AttemptState>,
        /// `bool`: true or false
        continues ("continues"): bool,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        granted_until ("granted_until"): Option<i64>,
        /// `priority`: 0 to 9000
        priority ("priority"): i64,
        /// `int`: -9007199254740991 to 9007199254740991
        score ("score"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        updated_at ("updated_at"): i64,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        ended_at ("ended_at"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        retire_at ("retire_at"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        delay_until ("delay_until"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        deadline_at ("deadline_at"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        start_by ("start_by"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        attempt_deadline_at ("attempt_deadline_at"): Option<i64>,
        /// `tags`: map from `tag_key` to `tag_value`, at most 64
        tags ("tags"): BTreeMap<String, String>,
        /// `capabilities`: list of `capability`, at most 64
        requires ("requires"): Vec<String>,
        /// `capabilities`: list of `capability`, at most 64
        prefers ("prefers"): Vec<String>,
        /// `fairness_key?`: 1 to 256 bytes
        fairness_key ("fairness_key"): Option<String>,
        /// `input`: at most 1048576 bytes
        input ("input"): Bytes,
        /// `encoding`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        input_encoding ("input_encoding"): String,
        /// `result?`: at most 1048576 bytes
        result ("result"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        result_encoding ("result_encoding"): Option<String>,
        /// `failure?`
        failure ("failure"): Option<Failure>,
        /// `[attempt]`
        attempts ("attempts"): Vec<Attempt>,
        /// `count`: 0 to 9007199254740991
        attempts_spilled ("attempts_spilled"): i64,
        /// `lease?`
        lease ("lease"): Option<Lease>,
        /// `progress?`
        progress ("progress"): Option<Progress>,
        /// `retry`
        retry ("retry"): Retry,
        /// `duration_ms?`: 0 to 315360000000
        attempt_timeout_ms ("attempt_timeout_ms"): Option<i64>,
        /// `times_limit`: 0 to 10000
        max_reclaims ("max_reclaims"): i64,
        /// `times_limit`: 0 to 10000
        max_replays ("max_replays"): i64,
        /// `count`: 0 to 9007199254740991
        reclaim_count ("reclaim_count"): i64,
        /// `count`: 0 to 9007199254740991
        replay_count ("replay_count"): i64,
        /// `count?`: 0 to 9007199254740991
        fallback_index ("fallback_index"): Option<i64>,
        /// `fallbacks`: list of `fallback`, at most 16
        fallbacks ("fallbacks"): Vec<Bytes>,
        /// `budget_refs`: list of `budget_ref`, at most 16
        budgets ("budgets"): Vec<BudgetRef>,
        /// `quota_refs`: list of `quota_ref`, at most 16
        quotas ("quotas"): Vec<QuotaRef>,
        /// `duration_ms`: 0 to 315360000000
        retention_ms ("retention_ms"): i64,
        /// `count`: 0 to 9007199254740991
        max_frames ("max_frames"): i64,
        /// `trace_parent?`: 1 to 256 bytes
        trace_parent ("trace_parent"): Option<String>,
        /// `url?`: 1 to 2048 bytes of `^https?://[^/%?#%s%c]+[^#%s%c]*$`. Where a webhook goes: an address without a fragment.
        completion_webhook ("completion_webhook"): Option<String>,
        /// `[operator_action]`
        operator_actions ("operator_actions"): Vec<OperatorAction>,
        /// `suspension?`
        suspension ("suspension"): Option<Suspension>,
        /// `[open_waitpoint]`
        waitpoints ("waitpoints"): Vec<OpenWaitpoint>,
        /// `[past_suspension]`
        past_suspensions ("past_suspensions"): Vec<PastSuspension>,
        /// `count`: 0 to 9007199254740991
        signals ("signals"): i64,
        /// `flow_id?`: a UUID in lower case
        flow_id ("flow_id"): Option<FlowId>,
        /// `execution_id?`: a UUID in lower case
        parent_id ("parent_id"): Option<ExecutionId>,
        /// `member_key?`: 1 to 128 bytes
        key ("key"): Option<String>,
        /// `inbound?`
        inbound ("inbound"): Option<Inbound>,
        /// `flow_id?`: a UUID in lower case
        nested ("nested"): Option<FlowId>,
        /// `count`: 0 to 9007199254740991
        children ("children"): i64,
        /// `count`: 0 to 9007199254740991
        children_open ("children_open"): i64,
        /// `usage?`
        usage ("usage"): Option<Usage>,
        /// `count`: 0 to 9007199254740991
        steps ("steps"): i64,
        /// `count`: 0 to 9007199254740991
        step_bytes ("step_bytes"): i64,
        /// `execution_id?`: a UUID in lower case
        forked_from ("forked_from"): Option<ExecutionId>,
        /// `[execution_id]`: a UUID in lower case
        forks ("forks"): Vec<ExecutionId>,
        /// `fired?`
        fired ("fired"): Option<Fired>,
    }
}

wire_struct! {
    /// Where a list of waitpoints goes on.
    WaitpointPosition {
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `waitpoint_id`: a UUID in lower case
        waitpoint_id ("waitpoint_id"): WaitpointId,
    }
}

wire_struct! {
    /// Where a list goes on.
    Position {
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}

wire_struct! {
    /// How a lane behaves.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    LaneDefinition {
        /// `lane_state`: `active`, `paused`, `draining`, `disabled`
        state ("state"): LaneState,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 1000000000000_i64))]
        /// `priority_weight`: 0 to 1000000000000. Milliseconds of age one point of priority is worth.
        priority_weight ("priority_weight"): i64,
        /// `fairness`: `fifo`, `fair`
        fairness ("fairness"): Fairness,
        /// `fairness_weights?`: map from `fairness_key` to `weight`, at most 256
        fairness_weights ("fairness_weights"): Option<BTreeMap<String, i64>>,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count?`: 0 to 9007199254740991
        max_depth ("max_depth"): Option<i64>,
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 1000000_i64))]
        /// `weight`: 1 to 1000000
        weight ("weight"): i64,
        /// `retry?`
        retry ("retry"): Option<Retry>,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 315360000000_i64))]
        /// `duration_ms?`: 0 to 315360000000
        attempt_timeout_ms ("attempt_timeout_ms"): Option<i64>,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 315360000000_i64))]
        /// `duration_ms?`: 0 to 315360000000
        retention_ms ("retention_ms"): Option<i64>,
        #[cfg_attr(feature = "openapi", schema(minimum = 1000_i64, maximum = 3600000_i64))]
        /// `lease_ttl_ms?`: 1000 to 3600000
        lease_ttl_ms ("lease_ttl_ms"): Option<i64>,
        #[cfg_attr(feature = "openapi", schema(minimum = 1_i64, maximum = 1000000_i64))]
        /// `max_active?`: 1 to 1000000. How many executions of a lane may run at once.
        max_active ("max_active"): Option<i64>,
    }
}
impl LaneDefinition {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(state: LaneState, priority_weight: i64, fairness: Fairness, weight: i64) -> Self {
        Self { state, priority_weight, fairness, weight, fairness_weights: None, max_depth: None, retry: None, attempt_timeout_ms: None, retention_ms: None, lease_ttl_ms: None, max_active: None }
    }
}

wire_struct! {
    /// The contract type `lane_entry`.
    LaneEntry {
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `count`: 0 to 9007199254740991
        version ("version"): i64,
        /// `lane_definition`
        definition ("definition"): LaneDefinition,
    }
}

wire_struct! {
    /// The contract type `worker`.
    Worker {
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `worker_id`: 1 to 64 bytes of `^[%w%._%-]+$`
        worker_id ("worker_id"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `lane_names`: list of `lane`, at most 64
        lanes ("lanes"): Vec<String>,
        /// `capabilities`: list of `capability`, at most 64
        capabilities ("capabilities"): Vec<String>,
        /// `slots`: 1 to 4096
        slots ("slots"): i64,
        /// `worker_state`: `live`, `draining`
        state ("state"): WorkerState,
        /// `uuid?`: a UUID in lower case
        incarnation ("incarnation"): Option<Uuid>,
        /// `actor?`: 1 to 128 bytes
        owner ("owner"): Option<String>,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        registered_at ("registered_at"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): i64,
        /// `kinds?`: list of `kind`, at most 1000
        kinds ("kinds"): Option<Vec<String>>,
    }
}

wire_struct! {
    /// What workers of one sort take: these kinds, or all, that need no more than this.
    WorkerClass {
        /// `capabilities`: list of `capability`, at most 64
        capabilities ("capabilities"): Vec<String>,
        /// `kinds?`: list of `kind`, at most 1000
        kinds ("kinds"): Option<Vec<String>>,
    }
}
impl WorkerClass {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(capabilities: Vec<String>) -> Self {
        Self { capabilities, kinds: None }
    }
}

wire_struct! {
    /// What the bearer of a token may do. A scope that is absent is everything.
    Access {
        /// `uuid`: a UUID in lower case
        access_id ("access_id"): Uuid,
        /// `access_name`: 1 to 64 bytes of `^[%w%._%-]+$`. Who acts with a token: the actor of what is done with it.
        name ("name"): String,
        /// `roles`: list of `role`, at most 7
        roles ("roles"): Vec<Role>,
        /// `namespaces?`: list of `namespace`, at most 64
        namespaces ("namespaces"): Option<Vec<String>>,
        /// `lane_names?`: list of `lane`, at most 64
        lanes ("lanes"): Option<Vec<String>>,
        /// `capabilities?`: list of `capability`, at most 64
        capabilities ("capabilities"): Option<Vec<String>>,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `actor`: 1 to 128 bytes
        created_by ("created_by"): String,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): Option<i64>,
    }
}
impl Access {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(access_id: Uuid, name: String, roles: Vec<Role>, created_at: i64, created_by: String) -> Self {
        Self { access_id, name, roles, created_at, created_by, namespaces: None, lanes: None, capabilities: None, expires_at: None }
    }
}

wire_struct! {
    /// The contract type `heartbeat_result`.
    HeartbeatResult {
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `bool`: true or false
        known ("known"): bool,
        /// `bool`: true or false
        draining ("draining"): bool,
    }
}

wire_struct! {
    /// The contract type `server`.
    Server {
        /// `uuid`: a UUID in lower case
        server_id ("server_id"): Uuid,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): i64,
        /// `bool`: true or false
        listening ("listening"): bool,
    }
}

wire_struct! {
    /// The contract type `queue_facts`.
    QueueFacts {
        /// `queue`: 1 to 200 bytes. The name of a queue: the class of what its work requires, a colon, and its kind.
        queue ("queue"): String,
        /// `capabilities`: list of `capability`, at most 64
        requires ("requires"): Vec<String>,
        /// `bool`: true or false
        admission ("admission"): bool,
        /// `count`: 0 to 9007199254740991
        eligible ("eligible"): i64,
        /// `bool`: true or false
        uncovered ("uncovered"): bool,
        /// `int?`: -9007199254740991 to 9007199254740991
        head_score ("head_score"): Option<i64>,
        /// `kind`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): String,
    }
}
impl QueueFacts {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(queue: String, requires: Vec<String>, admission: bool, eligible: i64, uncovered: bool, kind: String) -> Self {
        Self { queue, requires, admission, eligible, uncovered, kind, head_score: None }
    }
}

wire_struct! {
    /// The contract type `lane_counts`.
    LaneCounts {
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `lane_state`: `active`, `paused`, `draining`, `disabled`
        state ("state"): LaneState,
        /// `count`: 0 to 9007199254740991
        eligible ("eligible"): i64,
        /// `count`: 0 to 9007199254740991
        granted ("granted"): i64,
        /// `count`: 0 to 9007199254740991
        active ("active"): i64,
        /// `count`: 0 to 9007199254740991
        delayed ("delayed"): i64,
        /// `count`: 0 to 9007199254740991
        suspended ("suspended"): i64,
        /// `count`: 0 to 9007199254740991
        terminal ("terminal"): i64,
        /// `count`: 0 to 9007199254740991
        blocked_route ("blocked_route"): i64,
        /// `count`: 0 to 9007199254740991
        blocked_quota ("blocked_quota"): i64,
        /// `count`: 0 to 9007199254740991
        blocked_budget ("blocked_budget"): i64,
        /// `count`: 0 to 9007199254740991
        blocked_dependencies ("blocked_dependencies"): i64,
        /// `count`: 0 to 9007199254740991
        blocked_children ("blocked_children"): i64,
        /// `count`: 0 to 9007199254740991
        blocked_operator ("blocked_operator"): i64,
        /// `int?`: -9007199254740991 to 9007199254740991
        head_score ("head_score"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        oldest_eligible_at ("oldest_eligible_at"): Option<i64>,
        /// `[queue_facts]`
        queues ("queues"): Vec<QueueFacts>,
    }
}

wire_struct! {
    /// One that waits in a lane, and for what.
    LaneWaiter {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `public_state`: `waiting`, `delayed`, `rate_limited`, `waiting_children`, `active`, `suspended`, `resumable`, `completed`, `failed`, `cancelled`, `expired`, `skipped`
        state ("state"): PublicState,
        /// `blocking_reason?`: `waiting_for_capable_worker`, `waiting_for_quota`, `waiting_for_budget`, `waiting_for_dependencies`, `waiting_for_children`, `held_by_operator`
        reason ("reason"): Option<BlockingReason>,
        /// `capabilities`: list of `capability`, at most 64
        requires ("requires"): Vec<String>,
        /// `detail?`: map from `text` to `text`, at most 64
        detail ("detail"): Option<BTreeMap<String, String>>,
    }
}
impl LaneWaiter {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, state: PublicState, requires: Vec<String>) -> Self {
        Self { execution_id, state, requires, reason: None, detail: None }
    }
}

wire_struct! {
    /// Events that were appended together, packed one after the other; `number` is that of the first.
    EventEntry {
        /// `stream_id`: 1 to 64 bytes of `^%d+%-%d+$`
        id ("id"): String,
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
        /// `bytes`: at most 1048576 bytes
        events ("events"): Bytes,
    }
}

wire_struct! {
    /// What was counted of one lane, or of what has none: how many events of each name, in the order of the names; of each duration the sum in milliseconds and how many fell under each bound.
    TallyLine {
        /// `text`: 0 to 65536 bytes
        namespace ("namespace"): String,
        /// `text`: 0 to 65536 bytes
        lane ("lane"): String,
        /// `[count]`: 0 to 9007199254740991
        counts ("counts"): Vec<i64>,
        /// `[count]`: 0 to 9007199254740991
        waited ("waited"): Vec<i64>,
        /// `[count]`: 0 to 9007199254740991
        ran ("ran"): Vec<i64>,
        /// `[count]`: 0 to 9007199254740991
        took ("took"): Vec<i64>,
    }
}

wire_struct! {
    /// What a partition has to do, and since when.
    OnHand {
        /// `count`: 0 to 9007199254740991
        outbox ("outbox"): i64,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        oldest_outbox_at ("oldest_outbox_at"): Option<i64>,
        /// `count`: 0 to 9007199254740991
        timers_due ("timers_due"): i64,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        next_timer_at ("next_timer_at"): Option<i64>,
        /// `count`: 0 to 9007199254740991
        stuck ("stuck"): i64,
        /// `count`: 0 to 9007199254740991
        waitpoints ("waitpoints"): i64,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        oldest_waitpoint_at ("oldest_waitpoint_at"): Option<i64>,
    }
}
impl OnHand {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(outbox: i64, timers_due: i64, stuck: i64, waitpoints: i64) -> Self {
        Self { outbox, timers_due, stuck, waitpoints, oldest_outbox_at: None, next_timer_at: None, oldest_waitpoint_at: None }
    }
}

wire_struct! {
    /// How a quota stands over the keys looked at.
    QuotaStanding {
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_at ("created_at"): i64,
        /// `count`: 0 to 9007199254740991
        keys ("keys"): i64,
        /// `count`: 0 to 9007199254740991
        looked ("looked"): i64,
        /// `count`: 0 to 9007199254740991
        held ("held"): i64,
        /// `count`: 0 to 9007199254740991
        waiting ("waiting"): i64,
        /// `count`: 0 to 9007199254740991
        throttled ("throttled"): i64,
    }
}

wire_struct! {
    /// Something owed to other partitions.
    Effect {
        /// `stream_id`: 1 to 64 bytes of `^%d+%-%d+$`
        id ("id"): String,
        /// `text`: 0 to 65536 bytes
        r#type ("type"): String,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        at ("at"): i64,
        /// `detail`: map from `text` to `text`, at most 64
        data ("data"): BTreeMap<String, String>,
    }
}

wire_struct! {
    /// A webhook to deliver: what ended, and how. `tries` counts this one.
    Webhook {
        /// `delivery_id`: a UUID in lower case. A webhook that is owed; the same in every try.
        delivery_id ("delivery_id"): Uuid,
        /// `count`: 0 to 9007199254740991
        tries ("tries"): i64,
        /// `key_digest`: 20 to 20 bytes of `^%x+$`. The digest under which a quota keeps what it knows of a key.
        receiver ("receiver"): String,
        /// `url`: 1 to 2048 bytes of `^https?://[^/%?#%s%c]+[^#%s%c]*$`. Where a webhook goes: an address without a fragment.
        url ("url"): String,
        /// `text`: 0 to 65536 bytes
        r#type ("type"): String,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        at ("at"): i64,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `lane?`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): Option<String>,
        /// `kind`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): String,
        /// `execution_id?`: a UUID in lower case
        execution_id ("execution_id"): Option<ExecutionId>,
        /// `flow_id?`: a UUID in lower case
        flow_id ("flow_id"): Option<FlowId>,
        /// `text`: 0 to 65536 bytes
        outcome ("outcome"): String,
        /// `failure?`
        failure ("failure"): Option<Failure>,
        /// `tags`: map from `tag_key` to `tag_value`, at most 64
        tags ("tags"): BTreeMap<String, String>,
        /// `attempt_index?`: 0 to 9007199254740991
        attempt_index ("attempt_index"): Option<i64>,
        /// `count`: 0 to 9007199254740991
        replay_count ("replay_count"): i64,
    }
}

wire_struct! {
    /// How far the webhook of the last end is.
    #[derive(serde::Serialize, serde::Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    WebhookStatus {
        /// `delivery_id`: a UUID in lower case. A webhook that is owed; the same in every try.
        delivery_id ("delivery_id"): Uuid,
        /// `webhook_state`: `pending`, `delivered`, `failed`
        state ("state"): WebhookState,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `count`: 0 to 9007199254740991
        tries ("tries"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        owed_at ("owed_at"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        updated_at ("updated_at"): i64,
        #[cfg_attr(feature = "openapi", schema(minimum = 0_i64, maximum = 9007199254740991_i64))]
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        next_at ("next_at"): Option<i64>,
        #[cfg_attr(feature = "openapi", schema(minimum = 100_i64, maximum = 999_i64))]
        /// `http_status?`: 100 to 999
        status ("status"): Option<i64>,
        #[cfg_attr(feature = "openapi", schema(min_length = 0, max_length = 512))]
        /// `webhook_error?`: 0 to 512 bytes
        error ("error"): Option<String>,
    }
}
impl WebhookStatus {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(delivery_id: Uuid, state: WebhookState, tries: i64, owed_at: i64, updated_at: i64) -> Self {
        Self { delivery_id, state, tries, owed_at, updated_at, next_at: None, status: None, error: None }
    }
}

wire_struct! {
    /// The contract type `partition_defaults`.
    PartitionDefaults {
        /// `partition_count`: 1 to 4096
        executions ("executions"): i64,
        /// `partition_count`: 1 to 4096
        budgets ("budgets"): i64,
        /// `partition_count`: 1 to 4096
        quotas ("quotas"): i64,
        /// `partition_count`: 1 to 4096
        schedules ("schedules"): i64,
    }
}

wire_struct! {
    /// A broken invariant.
    Finding {
        /// `count`: 0 to 9007199254740991
        invariant ("invariant"): i64,
        /// `bytes`: at most 1048576 bytes
        key ("key"): Bytes,
        /// `text`: 0 to 65536 bytes
        problem ("problem"): String,
        /// `bool`: true or false
        repaired ("repaired"): bool,
    }
}

wire_struct! {
    /// Accepts one execution whole, or refuses it whole. The same id or idempotency key with the same body answers the first one.
    ///
    /// Calls `ff_submit_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `idempotency_conflict`.
    /// Fails with `lane_disabled`.
    /// Fails with `lane_full`.
    /// Fails with `lane_unseen`.
    /// Fails with `lane_depth_needed`.
    /// Fails with `capability_invalid`.
    SubmitExecution {
        /// `submission`
        submission ("submission"): Submission,
    }
}
wire_reply! {
    /// The reply of [`SubmitExecution`].
    SubmitExecutionReply {
        Created ("created") {
            execution_id ("execution_id"): ExecutionId,
            state ("state"): PublicState,
        },
        Duplicate ("duplicate") {
            execution_id ("execution_id"): ExecutionId,
            state ("state"): Option<PublicState>,
        },
    }
}
wire_call!(SubmitExecution -> SubmitExecutionReply, "ff_submit_execution", read_only: false);

wire_struct! {
    /// Ends the running attempt with a result.
    ///
    /// Calls `ff_complete_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    CompleteExecution {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `result?`: at most 1048576 bytes
        result ("result"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        result_encoding ("result_encoding"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`CompleteExecution`].
    CompleteExecutionReply {
        Completed ("completed"),
        Replayed ("replayed"),
    }
}
wire_call!(CompleteExecution -> CompleteExecutionReply, "ff_complete_execution", read_only: false);
impl CompleteExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, fence: Fence) -> Self {
        Self { execution_id, fence, result: None, result_encoding: None }
    }
}

wire_struct! {
    /// Ends the running attempt with a failure; the retry policy decides whether another one follows.
    ///
    /// Calls `ff_fail_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    FailExecution {
        /// `category`: 1 to 128 bytes
        category ("category"): String,
        /// `permille`: 0 to 1000. A random draw, supplied by the caller.
        draw ("draw"): i64,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `reason`: 0 to 4096 bytes
        reason ("reason"): String,
        /// `duration_ms?`: 0 to 315360000000
        retry_after_ms ("retry_after_ms"): Option<i64>,
        /// `bool?`: true or false
        retryable ("retryable"): Option<bool>,
    }
}
wire_reply! {
    /// The reply of [`FailExecution`].
    FailExecutionReply {
        Failed ("failed") {
            replayed ("replayed"): bool,
        },
        RetryScheduled ("retry_scheduled") {
            delay_until ("delay_until"): i64,
            replayed ("replayed"): bool,
        },
    }
}
wire_call!(FailExecution -> FailExecutionReply, "ff_fail_execution", read_only: false);
impl FailExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(category: String, draw: i64, execution_id: ExecutionId, fence: Fence, reason: String) -> Self {
        Self { category, draw, execution_id, fence, reason, retry_after_ms: None, retryable: None }
    }
}

wire_struct! {
    /// An operator's or submitter's cancel. A running attempt ends at once, or within `grace_ms` after its worker was asked.
    ///
    /// Calls `ff_cancel_execution`.
    /// Fails with `execution_not_found`.
    CancelExecution {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `duration_ms?`: 0 to 315360000000
        grace_ms ("grace_ms"): Option<i64>,
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`CancelExecution`].
    CancelExecutionReply {
        Already ("already") {
            outcome ("outcome"): Outcome,
        },
        Cancelled ("cancelled"),
        Requested ("requested") {
            cancel_by ("cancel_by"): i64,
        },
    }
}
wire_call!(CancelExecution -> CancelExecutionReply, "ff_cancel_execution", read_only: false);
impl CancelExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, execution_id: ExecutionId) -> Self {
        Self { actor, execution_id, grace_ms: None, reason: None }
    }
}

wire_struct! {
    /// The worker that holds the lease cancels its execution.
    ///
    /// Calls `ff_cancel_attempt`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    CancelAttempt {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`CancelAttempt`].
    CancelAttemptReply {
        Cancelled ("cancelled"),
        Replayed ("replayed"),
    }
}
wire_call!(CancelAttempt -> CancelAttemptReply, "ff_cancel_attempt", read_only: false);
impl CancelAttempt {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, fence: Fence) -> Self {
        Self { execution_id, fence, reason: None }
    }
}

wire_struct! {
    /// The worker hands its execution back until a time; counted against neither attempts nor reclaims. A time already past means now.
    ///
    /// Calls `ff_delay_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    DelayExecution {
        /// `duration_ms?`: 0 to 315360000000
        delay_ms ("delay_ms"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        delay_until ("delay_until"): Option<i64>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
    }
}
wire_reply! {
    /// The reply of [`DelayExecution`].
    DelayExecutionReply {
        Delayed ("delayed") {
            delay_until ("delay_until"): i64,
            replayed ("replayed"): bool,
        },
    }
}
wire_call!(DelayExecution -> DelayExecutionReply, "ff_delay_execution", read_only: false);
impl DelayExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, fence: Fence) -> Self {
        Self { execution_id, fence, delay_ms: None, delay_until: None }
    }
}

wire_struct! {
    /// The worker hands its execution back: eligible at once, counted nowhere.
    ///
    /// Calls `ff_yield_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    YieldExecution {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
    }
}
wire_reply! {
    /// The reply of [`YieldExecution`].
    YieldExecutionReply {
        Replayed ("replayed"),
        Yielded ("yielded"),
    }
}
wire_call!(YieldExecution -> YieldExecutionReply, "ff_yield_execution", read_only: false);

wire_struct! {
    /// Notes how far the running attempt is. No event.
    ///
    /// Calls `ff_update_progress`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    UpdateProgress {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `progress_message?`: 0 to 1024 bytes
        message ("message"): Option<String>,
        /// `pct`: 0 to 100
        pct ("pct"): i64,
    }
}
wire_reply! {
    /// The reply of [`UpdateProgress`].
    UpdateProgressReply {
        Noted ("noted"),
    }
}
wire_call!(UpdateProgress -> UpdateProgressReply, "ff_update_progress", read_only: false);
impl UpdateProgress {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, fence: Fence, pct: i64) -> Self {
        Self { execution_id, fence, pct, message: None }
    }
}

wire_struct! {
    /// An operator keeps a runnable execution from starting until it is released.
    ///
    /// Calls `ff_hold_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_runnable`.
    HoldExecution {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`HoldExecution`].
    HoldExecutionReply {
        Already ("already"),
        Held ("held"),
    }
}
wire_call!(HoldExecution -> HoldExecutionReply, "ff_hold_execution", read_only: false);
impl HoldExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, execution_id: ExecutionId) -> Self {
        Self { actor, execution_id, reason: None }
    }
}

wire_struct! {
    /// Ends an operator's hold; the execution takes the place its original score gives it.
    ///
    /// Calls `ff_release_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_runnable`.
    ReleaseExecution {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`ReleaseExecution`].
    ReleaseExecutionReply {
        Already ("already") {
            state ("state"): PublicState,
        },
        Released ("released") {
            state ("state"): PublicState,
        },
    }
}
wire_call!(ReleaseExecution -> ReleaseExecutionReply, "ff_release_execution", read_only: false);
impl ReleaseExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, execution_id: ExecutionId) -> Self {
        Self { actor, execution_id, reason: None }
    }
}

wire_struct! {
    /// Changes priority, lane or delay of a runnable execution, tags or deadline of any that has not ended.
    ///
    /// Calls `ff_change_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_runnable`.
    /// Fails with `execution_terminal`.
    /// Fails with `lane_unseen`.
    /// Fails with `lane_disabled`.
    ChangeExecution {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        deadline_at ("deadline_at"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        delay_until ("delay_until"): Option<i64>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `lane?`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): Option<String>,
        /// `priority?`: 0 to 9000
        priority ("priority"): Option<i64>,
        /// `tags?`: map from `tag_key` to `tag_value`, at most 64
        tags ("tags"): Option<BTreeMap<String, String>>,
    }
}
wire_reply! {
    /// The reply of [`ChangeExecution`].
    ChangeExecutionReply {
        Changed ("changed") {
            state ("state"): PublicState,
        },
    }
}
wire_call!(ChangeExecution -> ChangeExecutionReply, "ff_change_execution", read_only: false);
impl ChangeExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, execution_id: ExecutionId) -> Self {
        Self { actor, execution_id, deadline_at: None, delay_until: None, lane: None, priority: None, tags: None }
    }
}

wire_struct! {
    /// Runs an ended execution again with a new attempt; a deadline already past no longer applies. It keeps its steps, those before `from_step`, or none with `from_start`.
    ///
    /// Calls `ff_replay_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_terminal`.
    /// Fails with `max_replays`.
    /// Fails with `flow_terminal`.
    /// Fails with `step_not_found`.
    ReplayExecution {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `bool?`: true or false
        from_start ("from_start"): Option<bool>,
        /// `step_name?`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        from_step ("from_step"): Option<String>,
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`ReplayExecution`].
    ReplayExecutionReply {
        Replayed ("replayed") {
            replay_count ("replay_count"): i64,
            state ("state"): PublicState,
        },
    }
}
wire_call!(ReplayExecution -> ReplayExecutionReply, "ff_replay_execution", read_only: false);
impl ReplayExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, execution_id: ExecutionId) -> Self {
        Self { actor, execution_id, from_start: None, from_step: None, reason: None }
    }
}

wire_struct! {
    /// An operator removes an ended execution before its retention is over.
    ///
    /// Calls `ff_delete_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_terminal`.
    /// Fails with `flow_not_terminal`.
    DeleteExecution {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}
wire_reply! {
    /// The reply of [`DeleteExecution`].
    DeleteExecutionReply {
        Deleted ("deleted"),
    }
}
wire_call!(DeleteExecution -> DeleteExecutionReply, "ff_delete_execution", read_only: false);

wire_struct! {
    /// Answers the outcome of an ended execution, or marks it so that its end is announced.
    ///
    /// Calls `ff_await_result`.
    /// Fails with `execution_not_found`.
    AwaitResult {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}
wire_reply! {
    /// The reply of [`AwaitResult`].
    AwaitResultReply {
        Ended ("ended") {
            failure ("failure"): Option<Failure>,
            outcome ("outcome"): Outcome,
            result ("result"): Option<Bytes>,
            result_encoding ("result_encoding"): Option<String>,
        },
        Waiting ("waiting") {
            state ("state"): PublicState,
        },
    }
}
wire_call!(AwaitResult -> AwaitResultReply, "ff_await_result", read_only: false);

wire_struct! {
    /// Leases up to `max` of the best executions of a lane in this partition to a worker, among those of its kinds whose requirements it covers. Quotas and budgets are asked on the way where they share the store; elsewhere what needs admission is reached by grants only. A repetition has the same lease ids and is answered with the leases that live. Inputs and passed results together stay within 4 MiB, but one task is always handed out. A lane with max_active is reached by grants only.
    ///
    /// Calls `ff_claim_executions`.
    /// Fails with `try_again`.
    /// Fails with `capability_invalid`.
    ClaimExecutions {
        /// `attempt_ids`: list of `attempt_id`, at most 64
        attempt_ids ("attempt_ids"): Vec<AttemptId>,
        /// `capabilities`: list of `capability`, at most 64
        capabilities ("capabilities"): Vec<String>,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `kind_set?`: at most 130005 bytes. A packed list of kinds: a worker sends the same one with every claim, so it is read as it is.
        kinds ("kinds"): Option<Bytes>,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `lease_ids`: list of `lease_id`, at most 64
        lease_ids ("lease_ids"): Vec<LeaseId>,
        /// `lease_ttl_ms`: 1000 to 3600000
        lease_ttl_ms ("lease_ttl_ms"): i64,
        /// `batch_size`: 1 to 64
        max ("max"): i64,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `worker_id`: 1 to 64 bytes of `^[%w%._%-]+$`
        worker_id ("worker_id"): String,
    }
}
wire_reply! {
    /// The reply of [`ClaimExecutions`].
    ClaimExecutionsReply {
        Claimed ("claimed") {
            admission_needed ("admission_needed"): Option<bool>,
            next_score ("next_score"): Option<i64>,
            tasks ("tasks"): Vec<Task>,
        },
        Paused ("paused") {
            state ("state"): LaneState,
        },
        Replayed ("replayed") {
            tasks ("tasks"): Vec<Task>,
        },
    }
}
wire_call!(ClaimExecutions -> ClaimExecutionsReply, "ff_claim_executions", read_only: false, weight: max);

wire_struct! {
    /// Moves the end of a lease; says whether the worker is asked to cancel or to yield.
    ///
    /// Calls `ff_renew_lease`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    RenewLease {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `lease_ttl_ms?`: 1000 to 3600000
        lease_ttl_ms ("lease_ttl_ms"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`RenewLease`].
    RenewLeaseReply {
        Renewed ("renewed") {
            cancel_requested ("cancel_requested"): bool,
            lease_expires_at ("lease_expires_at"): i64,
            yield_requested ("yield_requested"): bool,
        },
    }
}
wire_call!(RenewLease -> RenewLeaseReply, "ff_renew_lease", read_only: false);
impl RenewLease {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, fence: Fence) -> Self {
        Self { execution_id, fence, lease_ttl_ms: None }
    }
}

wire_struct! {
    /// An operator takes the lease away: at once, or by asking the worker to yield when `grace` is set.
    ///
    /// Calls `ff_revoke_lease`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    RevokeLease {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `bool?`: true or false
        grace ("grace"): Option<bool>,
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`RevokeLease`].
    RevokeLeaseReply {
        Requested ("requested"),
        Revoked ("revoked") {
            state ("state"): PublicState,
        },
    }
}
wire_call!(RevokeLease -> RevokeLeaseReply, "ff_revoke_lease", read_only: false);
impl RevokeLease {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, execution_id: ExecutionId) -> Self {
        Self { actor, execution_id, grace: None, reason: None }
    }
}

wire_struct! {
    /// Asks a worker to yield every lease it holds in this partition, or takes them away; a bounded batch per call.
    ///
    /// Calls `ff_drain_leases`.
    /// Fails with `try_again`.
    DrainLeases {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `bool`: true or false
        revoke ("revoke"): bool,
    }
}
wire_reply! {
    /// The reply of [`DrainLeases`].
    DrainLeasesReply {
        Drained ("drained") {
            changed ("changed"): i64,
            more ("more"): bool,
        },
    }
}
wire_call!(DrainLeases -> DrainLeasesReply, "ff_drain_leases", read_only: false);

wire_struct! {
    /// Reserves up to `max` of the best executions of a lane for a worker, those that need admission included; an unused grant runs out by itself. The leases that a repetition of this request took already, which have the same ids, are answered instead.
    ///
    /// Calls `ff_issue_grants`.
    /// Fails with `try_again`.
    /// Fails with `capability_invalid`.
    IssueGrants {
        /// `capabilities`: list of `capability`, at most 64
        capabilities ("capabilities"): Vec<String>,
        /// `[grant_id]`: a UUID in lower case
        grant_ids ("grant_ids"): Vec<Uuid>,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `kind_set?`: at most 130005 bytes. A packed list of kinds: a worker sends the same one with every claim, so it is read as it is.
        kinds ("kinds"): Option<Bytes>,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `lease_ids?`: list of `lease_id`, at most 64
        lease_ids ("lease_ids"): Option<Vec<LeaseId>>,
        /// `batch_size`: 1 to 64
        max ("max"): i64,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `grant_ttl_ms`: 100 to 60000
        ttl_ms ("ttl_ms"): i64,
    }
}
wire_reply! {
    /// The reply of [`IssueGrants`].
    IssueGrantsReply {
        Granted ("granted") {
            grants ("grants"): Vec<Grant>,
            next_score ("next_score"): Option<i64>,
        },
        Paused ("paused") {
            state ("state"): LaneState,
        },
        Replayed ("replayed") {
            tasks ("tasks"): Vec<Task>,
        },
    }
}
wire_call!(IssueGrants -> IssueGrantsReply, "ff_issue_grants", read_only: false, weight: max);
impl IssueGrants {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(capabilities: Vec<String>, grant_ids: Vec<Uuid>, instance: String, lane: String, max: i64, namespace: String, ttl_ms: i64) -> Self {
        Self { capabilities, grant_ids, instance, lane, max, namespace, ttl_ms, kinds: None, lease_ids: None }
    }
}

wire_struct! {
    /// Turns a grant into a lease for the worker it was given to. `keep` names the sets that stay with it while its attempt is set aside.
    ///
    /// Calls `ff_consume_grant`.
    /// Fails with `execution_not_found`.
    /// Fails with `grant_not_found`.
    /// Fails with `not_capable`.
    /// Fails with `capability_invalid`.
    ConsumeGrant {
        /// `attempt_id`: a UUID in lower case
        attempt_id ("attempt_id"): AttemptId,
        /// `capabilities`: list of `capability`, at most 64
        capabilities ("capabilities"): Vec<String>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `grant_id`: a UUID in lower case
        grant_id ("grant_id"): Uuid,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `holder_sets?`: list of `holder_set`, at most 33
        keep ("keep"): Option<Vec<String>>,
        /// `kind_set?`: at most 130005 bytes. A packed list of kinds: a worker sends the same one with every claim, so it is read as it is.
        kinds ("kinds"): Option<Bytes>,
        /// `lease_id`: a UUID in lower case
        lease_id ("lease_id"): LeaseId,
        /// `lease_ttl_ms`: 1000 to 3600000
        lease_ttl_ms ("lease_ttl_ms"): i64,
        /// `worker_id`: 1 to 64 bytes of `^[%w%._%-]+$`
        worker_id ("worker_id"): String,
    }
}
wire_reply! {
    /// The reply of [`ConsumeGrant`].
    ConsumeGrantReply {
        Claimed ("claimed") {
            task ("task"): Task,
        },
        Replayed ("replayed") {
            task ("task"): Task,
        },
    }
}
wire_call!(ConsumeGrant -> ConsumeGrantReply, "ff_consume_grant", read_only: false);

wire_struct! {
    /// Notes with a grant that is handed on which of its sets stay with the execution while its attempt is set aside: whoever consumes it need not know.
    ///
    /// Calls `ff_keep_grant`.
    /// Fails with `execution_not_found`.
    /// Fails with `grant_not_found`.
    KeepGrant {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `grant_id`: a UUID in lower case
        grant_id ("grant_id"): Uuid,
        /// `holder_sets`: list of `holder_set`, at most 33
        sets ("sets"): Vec<String>,
    }
}
wire_reply! {
    /// The reply of [`KeepGrant`].
    KeepGrantReply {
        Kept ("kept"),
    }
}
wire_call!(KeepGrant -> KeepGrantReply, "ff_keep_grant", read_only: false);

wire_struct! {
    /// Gives a grant back unused; the execution is eligible again at its old place. `unheld` says that no holder set has taken it in.
    ///
    /// Calls `ff_release_grant`.
    /// Fails with `execution_not_found`.
    /// Fails with `grant_not_found`.
    ReleaseGrant {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `grant_id`: a UUID in lower case
        grant_id ("grant_id"): Uuid,
        /// `bool?`: true or false
        unheld ("unheld"): Option<bool>,
    }
}
wire_reply! {
    /// The reply of [`ReleaseGrant`].
    ReleaseGrantReply {
        Released ("released"),
    }
}
wire_call!(ReleaseGrant -> ReleaseGrantReply, "ff_release_grant", read_only: false);
impl ReleaseGrant {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, grant_id: Uuid) -> Self {
        Self { execution_id, grant_id, unheld: None }
    }
}

wire_struct! {
    /// Admission refused a granted execution: it waits for its quota or budget, with the reason recorded. `unheld` says that no set has taken it in.
    ///
    /// Calls `ff_block_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `grant_not_found`.
    BlockExecution {
        /// `detail`: map from `text` to `text`, at most 64
        detail ("detail"): BTreeMap<String, String>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `grant_id`: a UUID in lower case
        grant_id ("grant_id"): Uuid,
        /// `admission_reason`: `waiting_for_quota`, `waiting_for_budget`
        reason ("reason"): AdmissionReason,
        /// `bool?`: true or false
        unheld ("unheld"): Option<bool>,
    }
}
wire_reply! {
    /// The reply of [`BlockExecution`].
    BlockExecutionReply {
        Already ("already"),
        Blocked ("blocked"),
    }
}
wire_call!(BlockExecution -> BlockExecutionReply, "ff_block_execution", read_only: false);
impl BlockExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(detail: BTreeMap<String, String>, execution_id: ExecutionId, grant_id: Uuid, reason: AdmissionReason) -> Self {
        Self { detail, execution_id, grant_id, reason, unheld: None }
    }
}

wire_struct! {
    /// What the execution waited for has cleared: it is eligible again at the place of its original score. With the grant it was refused under, also before the refusal has arrived.
    ///
    /// Calls `ff_unblock_execution`.
    /// Fails with `execution_not_found`.
    UnblockExecution {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `holder_id?`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Option<Uuid>,
        /// `admission_reason`: `waiting_for_quota`, `waiting_for_budget`
        reason ("reason"): AdmissionReason,
    }
}
wire_reply! {
    /// The reply of [`UnblockExecution`].
    UnblockExecutionReply {
        Already ("already") {
            state ("state"): PublicState,
        },
        Unblocked ("unblocked") {
            state ("state"): PublicState,
        },
    }
}
wire_call!(UnblockExecution -> UnblockExecutionReply, "ff_unblock_execution", read_only: false);
impl UnblockExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, reason: AdmissionReason) -> Self {
        Self { execution_id, reason, holder_id: None }
    }
}

wire_struct! {
    /// An operator hands an interrupted execution to a chosen worker, who must serve its lane, take its kind and have what it requires.
    ///
    /// Calls `ff_grant_reclaim`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_runnable`.
    /// Fails with `not_capable`.
    /// Fails with `capability_invalid`.
    GrantReclaim {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `capabilities`: list of `capability`, at most 64
        capabilities ("capabilities"): Vec<String>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `grant_id`: a UUID in lower case
        grant_id ("grant_id"): Uuid,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `kind_set?`: at most 130005 bytes. A packed list of kinds: a worker sends the same one with every claim, so it is read as it is.
        kinds ("kinds"): Option<Bytes>,
        /// `lane_names`: list of `lane`, at most 64
        lanes ("lanes"): Vec<String>,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `grant_ttl_ms`: 100 to 60000
        ttl_ms ("ttl_ms"): i64,
    }
}
wire_reply! {
    /// The reply of [`GrantReclaim`].
    GrantReclaimReply {
        Granted ("granted") {
            grant ("grant"): Grant,
        },
    }
}
wire_call!(GrantReclaim -> GrantReclaimReply, "ff_grant_reclaim", read_only: false);

wire_struct! {
    /// Sets the running attempt aside until its condition is met. Adopts the attempt's pending waitpoints, all of them when `adopt` is absent; opens `otherwise` when there is no other. Early signals that are enough leave the lease as it is. `step` makes it a step: it outlives the attempt, and once it is done a later call is answered what it came to. `wait` only names it; whoever continues the attempt finds either in the resume.
    ///
    /// Calls `ff_suspend_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    /// Fails with `waitpoint_not_found`.
    /// Fails with `step_changed`.
    /// Fails with `steps_full`.
    SuspendExecution {
        /// `waitpoint_ids?`: list of `waitpoint_id`, at most 64
        adopt ("adopt"): Option<Vec<WaitpointId>>,
        /// `condition_nodes`: list of `condition_node`, at most 256
        condition ("condition"): Vec<ConditionNode>,
        /// `continuation?`: at most 262144 bytes
        continuation ("continuation"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        continuation_encoding ("continuation_encoding"): Option<String>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `new_waitpoint?`
        otherwise ("otherwise"): Option<NewWaitpoint>,
        /// `suspension_reason`: `waiting_for_signal`, `waiting_for_approval`, `waiting_for_callback`, `waiting_for_tool_result`, `waiting_for_operator_review`, `paused_by_policy`, `paused_by_budget`, `step_boundary`, `manual_pause`
        reason ("reason"): SuspensionReason,
        /// `waitpoint_id?`: a UUID in lower case
        review_waitpoint_id ("review_waitpoint_id"): Option<WaitpointId>,
        /// `step_name?`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        step ("step"): Option<String>,
        /// `suspension_id`: a UUID in lower case
        suspension_id ("suspension_id"): SuspensionId,
        /// `timeout_behavior`: `fail`, `cancel`, `expire`, `auto_resume_with_timeout_signal`, `escalate`
        timeout_behavior ("timeout_behavior"): TimeoutBehavior,
        /// `duration_ms?`: 0 to 315360000000
        timeout_ms ("timeout_ms"): Option<i64>,
        /// `step_name?`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        wait ("wait"): Option<String>,
        /// `new_waitpoints`: list of `new_waitpoint`, at most 64
        waitpoints ("waitpoints"): Vec<NewWaitpoint>,
    }
}
wire_reply! {
    /// The reply of [`SuspendExecution`].
    SuspendExecutionReply {
        AlreadySatisfied ("already_satisfied") {
            more ("more"): bool,
            signals ("signals"): Vec<Signal>,
        },
        Done ("done") {
            resume ("resume"): Resume,
        },
        Suspended ("suspended") {
            replayed ("replayed"): bool,
            suspension_id ("suspension_id"): SuspensionId,
            timeout_at ("timeout_at"): Option<i64>,
            waitpoints ("waitpoints"): Vec<OpenWaitpoint>,
        },
    }
}
wire_call!(SuspendExecution -> SuspendExecutionReply, "ff_suspend_execution", read_only: false);
impl SuspendExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(condition: Vec<ConditionNode>, execution_id: ExecutionId, fence: Fence, reason: SuspensionReason, suspension_id: SuspensionId, timeout_behavior: TimeoutBehavior, waitpoints: Vec<NewWaitpoint>) -> Self {
        Self { condition, execution_id, fence, reason, suspension_id, timeout_behavior, waitpoints, adopt: None, continuation: None, continuation_encoding: None, otherwise: None, review_waitpoint_id: None, step: None, timeout_ms: None, wait: None }
    }
}

wire_struct! {
    /// An operator ends a suspension: the attempt goes on without the signals it waited for.
    ///
    /// Calls `ff_resume_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_suspended`.
    ResumeExecution {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`ResumeExecution`].
    ResumeExecutionReply {
        Resumed ("resumed") {
            state ("state"): PublicState,
        },
    }
}
wire_call!(ResumeExecution -> ResumeExecutionReply, "ff_resume_execution", read_only: false);
impl ResumeExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, execution_id: ExecutionId) -> Self {
        Self { actor, execution_id, reason: None }
    }
}

wire_struct! {
    /// An operator ends a suspended execution as failed.
    ///
    /// Calls `ff_fail_suspension`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_suspended`.
    FailSuspension {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `category`: 1 to 128 bytes
        category ("category"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `reason`: 0 to 4096 bytes
        reason ("reason"): String,
    }
}
wire_reply! {
    /// The reply of [`FailSuspension`].
    FailSuspensionReply {
        Failed ("failed"),
    }
}
wire_call!(FailSuspension -> FailSuspensionReply, "ff_fail_suspension", read_only: false);

wire_struct! {
    /// Opens a waitpoint while the attempt still runs; signals that come before the suspend are kept and count then. With `step` it belongs to a wait that outlives the attempt: one that is open already is answered, and asked for by its id it gets these tokens in place of those it had.
    ///
    /// Calls `ff_create_waitpoint`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    /// Fails with `step_changed`.
    /// Fails with `steps_full`.
    CreateWaitpoint {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `step_name?`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        step ("step"): Option<String>,
        /// `new_waitpoint`
        waitpoint ("waitpoint"): NewWaitpoint,
    }
}
wire_reply! {
    /// The reply of [`CreateWaitpoint`].
    CreateWaitpointReply {
        Created ("created") {
            expires_at ("expires_at"): Option<i64>,
            replayed ("replayed"): bool,
        },
        Done ("done"),
        Open ("open") {
            expires_at ("expires_at"): Option<i64>,
            waitpoint_id ("waitpoint_id"): WaitpointId,
        },
    }
}
wire_call!(CreateWaitpoint -> CreateWaitpointReply, "ff_create_waitpoint", read_only: false);
impl CreateWaitpoint {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, fence: Fence, waitpoint: NewWaitpoint) -> Self {
        Self { execution_id, fence, waitpoint, step: None }
    }
}

wire_struct! {
    /// The worker gives up a pending waitpoint; its early signals no longer count.
    ///
    /// Calls `ff_close_waitpoint`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    /// Fails with `waitpoint_not_found`.
    CloseWaitpoint {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `waitpoint_id`: a UUID in lower case
        waitpoint_id ("waitpoint_id"): WaitpointId,
    }
}
wire_reply! {
    /// The reply of [`CloseWaitpoint`].
    CloseWaitpointReply {
        Closed ("closed") {
            replayed ("replayed"): bool,
        },
    }
}
wire_call!(CloseWaitpoint -> CloseWaitpointReply, "ff_close_waitpoint", read_only: false);

wire_struct! {
    /// Delivers a signal under a waitpoint token, whose mac the caller has verified. Whatever keeps the waitpoint from taking it answers alike.
    ///
    /// Calls `ff_deliver_signal`.
    /// Fails with `waitpoint_not_open`.
    /// Fails with `signal_not_allowed`.
    /// Fails with `signals_full`.
    DeliverSignal {
        /// `source?`: 0 to 256 bytes
        category ("category"): Option<String>,
        /// `correlation_id?`: 1 to 256 bytes
        correlation_id ("correlation_id"): Option<String>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `idempotency_key?`: 1 to 256 bytes
        idempotency_key ("idempotency_key"): Option<String>,
        /// `signal_name`: 1 to 128 bytes
        name ("name"): String,
        /// `signal_payload?`: at most 262144 bytes
        payload ("payload"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        payload_encoding ("payload_encoding"): Option<String>,
        /// `signal_id`: a UUID in lower case
        signal_id ("signal_id"): SignalId,
        /// `source?`: 0 to 256 bytes
        source ("source"): Option<String>,
        /// `source?`: 0 to 256 bytes
        source_identity ("source_identity"): Option<String>,
        /// `token_digest`: 64 to 64 bytes of `^%x+$`
        token_digest ("token_digest"): String,
        /// `waitpoint_id`: a UUID in lower case
        waitpoint_id ("waitpoint_id"): WaitpointId,
    }
}
wire_reply! {
    /// The reply of [`DeliverSignal`].
    DeliverSignalReply {
        Accepted ("accepted") {
            effect ("effect"): SignalEffect,
            signal_id ("signal_id"): SignalId,
        },
        Duplicate ("duplicate") {
            signal_id ("signal_id"): SignalId,
        },
        TriggeredResume ("triggered_resume") {
            signal_id ("signal_id"): SignalId,
        },
    }
}
wire_call!(DeliverSignal -> DeliverSignalReply, "ff_deliver_signal", read_only: false);
impl DeliverSignal {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, name: String, signal_id: SignalId, token_digest: String, waitpoint_id: WaitpointId) -> Self {
        Self { execution_id, name, signal_id, token_digest, waitpoint_id, category: None, correlation_id: None, idempotency_key: None, payload: None, payload_encoding: None, source: None, source_identity: None }
    }
}

wire_struct! {
    /// An operator replaces the token of one approver, or the waitpoint's one token; the old one dies. A waitpoint without tokens gets its first.
    ///
    /// Calls `ff_reissue_token`.
    /// Fails with `waitpoint_not_found`.
    /// Fails with `waitpoint_not_open`.
    ReissueToken {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `approver?`: 1 to 128 bytes
        approver ("approver"): Option<String>,
        /// `token_digest`: 64 to 64 bytes of `^%x+$`
        digest ("digest"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `waitpoint_id`: a UUID in lower case
        waitpoint_id ("waitpoint_id"): WaitpointId,
    }
}
wire_reply! {
    /// The reply of [`ReissueToken`].
    ReissueTokenReply {
        Reissued ("reissued") {
            expires_at ("expires_at"): Option<i64>,
            uses_left ("uses_left"): Option<i64>,
        },
    }
}
wire_call!(ReissueToken -> ReissueTokenReply, "ff_reissue_token", read_only: false);
impl ReissueToken {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, digest: String, execution_id: ExecutionId, waitpoint_id: WaitpointId) -> Self {
        Self { actor, digest, execution_id, waitpoint_id, approver: None }
    }
}

wire_struct! {
    /// Open waitpoints of this partition, oldest first: the inbox of whoever is asked. `more` says whether to go on after `last`.
    ///
    /// Calls `ff_list_waitpoints`.
    ListWaitpoints {
        /// `waitpoint_position?`
        after ("after"): Option<WaitpointPosition>,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
        /// `namespace?`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`ListWaitpoints`].
    ListWaitpointsReply {
        Page ("page") {
            items ("items"): Vec<Waitpoint>,
            last ("last"): Option<WaitpointPosition>,
            more ("more"): bool,
        },
    }
}
wire_call!(ListWaitpoints -> ListWaitpointsReply, "ff_list_waitpoints", read_only: true);
impl ListWaitpoints {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, after: None, namespace: None }
    }
}

wire_struct! {
    /// One waitpoint, open or closed.
    ///
    /// Calls `ff_describe_waitpoint`.
    /// Fails with `waitpoint_not_found`.
    DescribeWaitpoint {
        /// `waitpoint_id`: a UUID in lower case
        waitpoint_id ("waitpoint_id"): WaitpointId,
    }
}
wire_reply! {
    /// The reply of [`DescribeWaitpoint`].
    DescribeWaitpointReply {
        Found ("found") {
            waitpoint ("waitpoint"): Waitpoint,
        },
    }
}
wire_call!(DescribeWaitpoint -> DescribeWaitpointReply, "ff_describe_waitpoint", read_only: true);

wire_struct! {
    /// The waitpoints of one execution, open ones and those kept after they closed.
    ///
    /// Calls `ff_execution_waitpoints`.
    /// Fails with `execution_not_found`.
    ExecutionWaitpoints {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}
wire_reply! {
    /// The reply of [`ExecutionWaitpoints`].
    ExecutionWaitpointsReply {
        Found ("found") {
            waitpoints ("waitpoints"): Vec<Waitpoint>,
        },
    }
}
wire_call!(ExecutionWaitpoints -> ExecutionWaitpointsReply, "ff_execution_waitpoints", read_only: true);

wire_struct! {
    /// Appends frames to the running attempt's stream. A sequence or a request already seen answers its ids; `summary` replaces the folded document when its version is the current one.
    ///
    /// Calls `ff_append_frames`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    /// Fails with `frames_missing`.
    /// Fails with `summary_changed`.
    AppendFrames {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `count?`: 0 to 9007199254740991
        first_sequence ("first_sequence"): Option<i64>,
        /// `new_frames`: list of `new_frame`, at most 64
        frames ("frames"): Vec<NewFrame>,
        /// `request_id?`: a UUID in lower case
        request_id ("request_id"): Option<Uuid>,
        /// `new_summary?`
        summary ("summary"): Option<NewSummary>,
    }
}
wire_reply! {
    /// The reply of [`AppendFrames`].
    AppendFramesReply {
        Appended ("appended") {
            ids ("ids"): Vec<String>,
            next_sequence ("next_sequence"): i64,
            replayed ("replayed"): bool,
        },
    }
}
wire_call!(AppendFrames -> AppendFramesReply, "ff_append_frames", read_only: false);
impl AppendFrames {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, fence: Fence, frames: Vec<NewFrame>) -> Self {
        Self { execution_id, fence, frames, first_sequence: None, request_id: None, summary: None }
    }
}

wire_struct! {
    /// Frames of one attempt after an id, or from and to ids included; a time stands for the frames written then; the latest attempt when none is named. One call answers a page of bounded size; `more` says whether to go on after the last id.
    ///
    /// Calls `ff_read_stream`.
    /// Fails with `execution_not_found`.
    /// Fails with `attempt_not_found`.
    ReadStream {
        /// `stream_id?`: 1 to 64 bytes of `^%d+%-%d+$`
        after ("after"): Option<String>,
        /// `attempt_index?`: 0 to 9007199254740991
        attempt_index ("attempt_index"): Option<i64>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `stream_id?`: 1 to 64 bytes of `^%d+%-%d+$`
        from ("from"): Option<String>,
        /// `stream_limit`: 1 to 10000
        limit ("limit"): i64,
        /// `stream_id?`: 1 to 64 bytes of `^%d+%-%d+$`
        to ("to"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`ReadStream`].
    ReadStreamReply {
        Page ("page") {
            attempt_index ("attempt_index"): Option<i64>,
            closed_at ("closed_at"): Option<i64>,
            closed_reason ("closed_reason"): Option<AttemptState>,
            frames ("frames"): Vec<Frame>,
            latest_attempt ("latest_attempt"): Option<i64>,
            more ("more"): bool,
            terminal ("terminal"): bool,
        },
    }
}
wire_call!(ReadStream -> ReadStreamReply, "ff_read_stream", read_only: true, weight: limit);
impl ReadStream {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, limit: i64) -> Self {
        Self { execution_id, limit, after: None, attempt_index: None, from: None, to: None }
    }
}

wire_struct! {
    /// The summary document of an attempt's stream and its version; version 0 is an empty one.
    ///
    /// Calls `ff_read_summary`.
    /// Fails with `execution_not_found`.
    /// Fails with `attempt_not_found`.
    ReadSummary {
        /// `attempt_index?`: 0 to 9007199254740991
        attempt_index ("attempt_index"): Option<i64>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}
wire_reply! {
    /// The reply of [`ReadSummary`].
    ReadSummaryReply {
        Summary ("summary") {
            attempt_index ("attempt_index"): Option<i64>,
            document ("document"): Option<Bytes>,
            version ("version"): i64,
        },
    }
}
wire_call!(ReadSummary -> ReadSummaryReply, "ff_read_summary", read_only: true);
impl ReadSummary {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId) -> Self {
        Self { execution_id, attempt_index: None }
    }
}

wire_struct! {
    /// Marks an execution whose stream someone follows, so that the end of an attempt and the start of the next are announced.
    ///
    /// Calls `ff_follow_stream`.
    /// Fails with `execution_not_found`.
    FollowStream {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}
wire_reply! {
    /// The reply of [`FollowStream`].
    FollowStreamReply {
        Following ("following"),
    }
}
wire_call!(FollowStream -> FollowStreamReply, "ff_follow_stream", read_only: false);

wire_struct! {
    /// Creates a flow with its first members and the edges between them, each leading to a member listed later. Members are hidden until the flow is sealed; `seal` does it in the same call. The same id with the same body answers the first one.
    ///
    /// Calls `ff_submit_flow`.
    /// Fails with `try_again`.
    /// Fails with `execution_not_found`.
    /// Fails with `flow_not_found`.
    /// Fails with `idempotency_conflict`.
    /// Fails with `lane_disabled`.
    /// Fails with `lane_full`.
    /// Fails with `lane_unseen`.
    /// Fails with `lane_depth_needed`.
    /// Fails with `capability_invalid`.
    /// Fails with `cycle_detected`.
    /// Fails with `flow_full`.
    /// Fails with `flow_changed`.
    /// Fails with `member_started`.
    SubmitFlow {
        /// `new_edges`: list of `new_edge`, at most 1024
        edges ("edges"): Vec<NewEdge>,
        /// `new_flow`
        flow ("flow"): NewFlow,
        /// `new_members`: list of `new_member`, at most 128
        members ("members"): Vec<NewMember>,
        /// `bool`: true or false
        seal ("seal"): bool,
    }
}
wire_reply! {
    /// The reply of [`SubmitFlow`].
    SubmitFlowReply {
        Created ("created") {
            flow ("flow"): Flow,
        },
        Duplicate ("duplicate") {
            flow ("flow"): Flow,
        },
    }
}
wire_call!(SubmitFlow -> SubmitFlowReply, "ff_submit_flow", read_only: false);

wire_struct! {
    /// Adds members with the edges into them, whole or not at all; a member of a sealed flow can run as soon as its edges let it. A known key with the same body is answered again.
    ///
    /// Calls `ff_add_members`.
    /// Fails with `flow_not_found`.
    /// Fails with `flow_terminal`.
    /// Fails with `execution_not_found`.
    /// Fails with `idempotency_conflict`.
    /// Fails with `lane_disabled`.
    /// Fails with `lane_full`.
    /// Fails with `lane_unseen`.
    /// Fails with `lane_depth_needed`.
    /// Fails with `capability_invalid`.
    /// Fails with `cycle_detected`.
    /// Fails with `flow_full`.
    /// Fails with `flow_changed`.
    /// Fails with `member_started`.
    AddMembers {
        /// `new_edges`: list of `new_edge`, at most 1024
        edges ("edges"): Vec<NewEdge>,
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
        /// `new_members`: list of `new_member`, at most 128
        members ("members"): Vec<NewMember>,
    }
}
wire_reply! {
    /// The reply of [`AddMembers`].
    AddMembersReply {
        Added ("added") {
            items ("items"): Vec<AddedMember>,
            version ("version"): i64,
        },
    }
}
wire_call!(AddMembers -> AddMembersReply, "ff_add_members", read_only: false);

wire_struct! {
    /// Adds edges between members that are there. `version` is that of the graph the caller checked for cycles; without it every edge must lead to a later member of an unsealed flow.
    ///
    /// Calls `ff_add_edges`.
    /// Fails with `flow_not_found`.
    /// Fails with `flow_terminal`.
    /// Fails with `flow_changed`.
    /// Fails with `member_started`.
    /// Fails with `cycle_detected`.
    /// Fails with `idempotency_conflict`.
    AddEdges {
        /// `new_edges`: list of `new_edge`, at most 1024
        edges ("edges"): Vec<NewEdge>,
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
        /// `count?`: 0 to 9007199254740991
        version ("version"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`AddEdges`].
    AddEdgesReply {
        Added ("added") {
            count ("count"): i64,
            version ("version"): i64,
        },
    }
}
wire_call!(AddEdges -> AddEdgesReply, "ff_add_edges", read_only: false);
impl AddEdges {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(edges: Vec<NewEdge>, flow_id: FlowId) -> Self {
        Self { edges, flow_id, version: None }
    }
}

wire_struct! {
    /// Releases the members a flow holds: the first in this call, the rest in a walk that is owed. The flow may still grow.
    ///
    /// Calls `ff_seal_flow`.
    /// Fails with `flow_not_found`.
    SealFlow {
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
    }
}
wire_reply! {
    /// The reply of [`SealFlow`].
    SealFlowReply {
        Already ("already") {
            flow ("flow"): Flow,
        },
        Sealed ("sealed") {
            flow ("flow"): Flow,
        },
    }
}
wire_call!(SealFlow -> SealFlowReply, "ff_seal_flow", read_only: false);

wire_struct! {
    /// Cancels a flow: from this call on none of its members can be claimed. Members are cancelled in a walk, the first ones here; running ones end at once under cancel_all and finish under the other policies.
    ///
    /// Calls `ff_cancel_flow`.
    /// Fails with `flow_not_found`.
    CancelFlow {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
        /// `cancel_policy`: `cancel_all`, `cancel_pending`, `let_active_finish`
        policy ("policy"): CancelPolicy,
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`CancelFlow`].
    CancelFlowReply {
        Already ("already") {
            flow ("flow"): Flow,
        },
        Cancelled ("cancelled") {
            flow ("flow"): Flow,
            more ("more"): bool,
        },
    }
}
wire_call!(CancelFlow -> CancelFlowReply, "ff_cancel_flow", read_only: false);
impl CancelFlow {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, flow_id: FlowId, policy: CancelPolicy) -> Self {
        Self { actor, flow_id, policy, reason: None }
    }
}

wire_struct! {
    /// Goes on with the walk a flow owes its members, before its timer does.
    ///
    /// Calls `ff_walk_flow`.
    /// Fails with `flow_not_found`.
    WalkFlow {
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`WalkFlow`].
    WalkFlowReply {
        Walked ("walked") {
            flow ("flow"): Option<Flow>,
            more ("more"): bool,
        },
    }
}
wire_call!(WalkFlow -> WalkFlowReply, "ff_walk_flow", read_only: false);

wire_struct! {
    /// A flow with its state and the counts of its members.
    ///
    /// Calls `ff_describe_flow`.
    /// Fails with `flow_not_found`.
    DescribeFlow {
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
    }
}
wire_reply! {
    /// The reply of [`DescribeFlow`].
    DescribeFlowReply {
        Found ("found") {
            flow ("flow"): Flow,
        },
    }
}
wire_call!(DescribeFlow -> DescribeFlowReply, "ff_describe_flow", read_only: true);

wire_struct! {
    /// Says how a flow stands and marks it, so that its end is announced to whoever waits.
    ///
    /// Calls `ff_await_flow`.
    /// Fails with `flow_not_found`.
    AwaitFlow {
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
    }
}
wire_reply! {
    /// The reply of [`AwaitFlow`].
    AwaitFlowReply {
        Ended ("ended") {
            flow ("flow"): Flow,
        },
        Waiting ("waiting") {
            flow ("flow"): Flow,
        },
    }
}
wire_call!(AwaitFlow -> AwaitFlowReply, "ff_await_flow", read_only: false);

wire_struct! {
    /// Members of a flow in the order they were added, a page at a time, with the edges out of them when asked for; `next` is where to go on.
    ///
    /// Calls `ff_read_flow`.
    /// Fails with `flow_not_found`.
    ReadFlow {
        /// `graph_position?`
        after ("after"): Option<GraphPosition>,
        /// `bool`: true or false
        edges ("edges"): bool,
        /// `flow_id`: a UUID in lower case
        flow_id ("flow_id"): FlowId,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`ReadFlow`].
    ReadFlowReply {
        Page ("page") {
            edges ("edges"): Vec<Edge>,
            members ("members"): Vec<Member>,
            next ("next"): Option<GraphPosition>,
            version ("version"): i64,
        },
    }
}
wire_call!(ReadFlow -> ReadFlowReply, "ff_read_flow", read_only: true, weight: limit);
impl ReadFlow {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(edges: bool, flow_id: FlowId, limit: i64) -> Self {
        Self { edges, flow_id, limit, after: None }
    }
}

wire_struct! {
    /// Flows of this partition, newest first, that match every filter given; a page may be short, `more` says whether to go on after `last`.
    ///
    /// Calls `ff_list_flows`.
    ListFlows {
        /// `flow_position?`
        after ("after"): Option<FlowPosition>,
        /// `kind?`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): Option<String>,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
        /// `namespace?`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): Option<String>,
        /// `flow_state?`: `open`, `running`, `blocked`, `completed`, `failed`, `cancelled`
        state ("state"): Option<FlowState>,
    }
}
wire_reply! {
    /// The reply of [`ListFlows`].
    ListFlowsReply {
        Page ("page") {
            items ("items"): Vec<Flow>,
            last ("last"): Option<FlowPosition>,
            more ("more"): bool,
        },
    }
}
wire_call!(ListFlows -> ListFlowsReply, "ff_list_flows", read_only: true, weight: limit);
impl ListFlows {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, after: None, kind: None, namespace: None, state: None }
    }
}

wire_struct! {
    /// Submits children of a running execution, all or none; each shares its parent's budgets and deadline. A known id or key is answered again. `step` makes it a step: once it is done, a later call is answered its children.
    ///
    /// Calls `ff_spawn_children`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    /// Fails with `idempotency_conflict`.
    /// Fails with `lane_disabled`.
    /// Fails with `lane_full`.
    /// Fails with `lane_unseen`.
    /// Fails with `lane_depth_needed`.
    /// Fails with `capability_invalid`.
    /// Fails with `flow_full`.
    /// Fails with `step_changed`.
    /// Fails with `steps_full`.
    SpawnChildren {
        /// `new_children`: list of `new_child`, at most 64
        children ("children"): Vec<NewChild>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `step_name?`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        step ("step"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`SpawnChildren`].
    SpawnChildrenReply {
        Spawned ("spawned") {
            items ("items"): Vec<Submitted>,
        },
    }
}
wire_call!(SpawnChildren -> SpawnChildrenReply, "ff_spawn_children", read_only: false);
impl SpawnChildren {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(children: Vec<NewChild>, execution_id: ExecutionId, fence: Fence) -> Self {
        Self { children, execution_id, fence, step: None }
    }
}

wire_struct! {
    /// Sets the running attempt aside until every child has ended; the next claim continues it with their outcomes. When all have ended already the lease stays, unless `aside` says that the attempt lets go of it all the same. `step` makes it a step: once it is done, a later call is answered the same outcomes.
    ///
    /// Calls `ff_wait_children`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    /// Fails with `step_changed`.
    /// Fails with `steps_full`.
    WaitChildren {
        /// `bool?`: true or false
        aside ("aside"): Option<bool>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `step_name?`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        step ("step"): Option<String>,
        /// `suspension_id`: a UUID in lower case
        wait_id ("wait_id"): SuspensionId,
    }
}
wire_reply! {
    /// The reply of [`WaitChildren`].
    WaitChildrenReply {
        Ended ("ended") {
            children ("children"): Vec<Child>,
            more ("more"): bool,
        },
        Waiting ("waiting") {
            open ("open"): i64,
        },
    }
}
wire_call!(WaitChildren -> WaitChildrenReply, "ff_wait_children", read_only: false);
impl WaitChildren {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, fence: Fence, wait_id: SuspensionId) -> Self {
        Self { execution_id, fence, wait_id, aside: None, step: None }
    }
}

wire_struct! {
    /// The children of an execution in the order they were spawned, a page at a time; `next` is the number to go on from.
    ///
    /// Calls `ff_read_children`.
    /// Fails with `execution_not_found`.
    ReadChildren {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `count?`: 0 to 9007199254740991
        from ("from"): Option<i64>,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`ReadChildren`].
    ReadChildrenReply {
        Page ("page") {
            children ("children"): Vec<Child>,
            next ("next"): Option<i64>,
        },
    }
}
wire_call!(ReadChildren -> ReadChildrenReply, "ff_read_children", read_only: true, weight: limit);
impl ReadChildren {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, limit: i64) -> Self {
        Self { execution_id, limit, from: None }
    }
}

wire_struct! {
    /// Stores the result of a step of the running attempt. A step that is known keeps its first result, which is answered; with `rerun` another input digest replaces it.
    ///
    /// Calls `ff_store_step`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    /// Fails with `step_changed`.
    /// Fails with `steps_full`.
    StoreStep {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `step_digest?`: 1 to 128 bytes of `^[%w%+/=_%-]+$`. What a caller makes of a step's input, to find out whether it changed.
        input_digest ("input_digest"): Option<String>,
        /// `step_name`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        name ("name"): String,
        /// `bool?`: true or false
        rerun ("rerun"): Option<bool>,
        /// `step_result?`: at most 1048576 bytes
        result ("result"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        result_encoding ("result_encoding"): Option<String>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        started_at ("started_at"): Option<i64>,
        /// `step_tries?`: 1 to 9007199254740991
        tries ("tries"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`StoreStep`].
    StoreStepReply {
        Known ("known") {
            input_digest ("input_digest"): Option<String>,
            result ("result"): Option<Bytes>,
            result_encoding ("result_encoding"): Option<String>,
        },
        Stored ("stored"),
    }
}
wire_call!(StoreStep -> StoreStepReply, "ff_store_step", read_only: false);
impl StoreStep {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, fence: Fence, name: String) -> Self {
        Self { execution_id, fence, name, input_digest: None, rerun: None, result: None, result_encoding: None, started_at: None, tries: None }
    }
}

wire_struct! {
    /// Notes that a step of the running attempt failed, how often it was tried, and when it is tried again. A step that is done stays done.
    ///
    /// Calls `ff_note_step`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    /// Fails with `step_changed`.
    /// Fails with `steps_full`.
    NoteStep {
        /// `category`: 1 to 128 bytes
        category ("category"): String,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `step_digest?`: 1 to 128 bytes of `^[%w%+/=_%-]+$`. What a caller makes of a step's input, to find out whether it changed.
        input_digest ("input_digest"): Option<String>,
        /// `step_name`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        name ("name"): String,
        /// `reason`: 0 to 4096 bytes
        reason ("reason"): String,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        retry_at ("retry_at"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        started_at ("started_at"): Option<i64>,
        /// `step_tries`: 1 to 9007199254740991
        tries ("tries"): i64,
    }
}
wire_reply! {
    /// The reply of [`NoteStep`].
    NoteStepReply {
        Known ("known"),
        Noted ("noted"),
    }
}
wire_call!(NoteStep -> NoteStepReply, "ff_note_step", read_only: false);
impl NoteStep {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(category: String, execution_id: ExecutionId, fence: Fence, name: String, reason: String, tries: i64) -> Self {
        Self { category, execution_id, fence, name, reason, tries, input_digest: None, retry_at: None, started_at: None }
    }
}

wire_struct! {
    /// A step of an execution with its result. Of a wait that is done, what it came to: its signals or children from the `from`-th on.
    ///
    /// Calls `ff_get_step`.
    /// Fails with `execution_not_found`.
    /// Fails with `step_not_found`.
    GetStep {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `step_tries?`: 1 to 9007199254740991
        from ("from"): Option<i64>,
        /// `step_name`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        name ("name"): String,
    }
}
wire_reply! {
    /// The reply of [`GetStep`].
    GetStepReply {
        Found ("found") {
            result ("result"): Option<Bytes>,
            result_encoding ("result_encoding"): Option<String>,
            resume ("resume"): Option<Resume>,
            step ("step"): Step,
        },
    }
}
wire_call!(GetStep -> GetStepReply, "ff_get_step", read_only: true);
impl GetStep {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, name: String) -> Self {
        Self { execution_id, name, from: None }
    }
}

wire_struct! {
    /// The steps of an execution, in the order in which they were first recorded, after the step of a number.
    ///
    /// Calls `ff_list_steps`.
    /// Fails with `execution_not_found`.
    ListSteps {
        /// `count?`: 0 to 9007199254740991
        after ("after"): Option<i64>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`ListSteps`].
    ListStepsReply {
        Page ("page") {
            more ("more"): bool,
            steps ("steps"): Vec<Step>,
        },
    }
}
wire_call!(ListSteps -> ListStepsReply, "ff_list_steps", read_only: true, weight: limit);
impl ListSteps {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, limit: i64) -> Self {
        Self { execution_id, limit, after: None }
    }
}

wire_struct! {
    /// Sets the running attempt aside until a time; the next claim continues it. `step` names the sleep: its wake-up is stored by the first call, and a later one that comes after it keeps the lease.
    ///
    /// Calls `ff_sleep_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    /// Fails with `step_changed`.
    /// Fails with `steps_full`.
    SleepExecution {
        /// `continuation?`: at most 262144 bytes
        continuation ("continuation"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        continuation_encoding ("continuation_encoding"): Option<String>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `step_name?`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        step ("step"): Option<String>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        wake_at ("wake_at"): Option<i64>,
        /// `duration_ms?`: 0 to 315360000000
        wake_in_ms ("wake_in_ms"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`SleepExecution`].
    SleepExecutionReply {
        Done ("done") {
            wake_at ("wake_at"): i64,
        },
        Resting ("resting") {
            replayed ("replayed"): bool,
            wake_at ("wake_at"): i64,
        },
    }
}
wire_call!(SleepExecution -> SleepExecutionReply, "ff_sleep_execution", read_only: false);
impl SleepExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, fence: Fence) -> Self {
        Self { execution_id, fence, continuation: None, continuation_encoding: None, step: None, wake_at: None, wake_in_ms: None }
    }
}

wire_struct! {
    /// Submits a new execution with the submission of another one and copies of its finished steps: those before a named one, or all. A known id is answered again.
    ///
    /// Calls `ff_fork_execution`.
    /// Fails with `execution_not_found`.
    /// Fails with `step_not_found`.
    /// Fails with `idempotency_conflict`.
    /// Fails with `lane_disabled`.
    /// Fails with `lane_full`.
    /// Fails with `lane_unseen`.
    /// Fails with `lane_depth_needed`.
    ForkExecution {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `digest`: 32 to 64 bytes of `^%x+$`
        body_digest ("body_digest"): String,
        /// `budget_refs?`: list of `budget_ref`, at most 16
        budgets ("budgets"): Option<Vec<BudgetRef>>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `execution_id`: a UUID in lower case
        fork_id ("fork_id"): ExecutionId,
        /// `step_name?`: 1 to 256 bytes. A step of a handler, by which a later run finds it again.
        from_step ("from_step"): Option<String>,
        /// `input?`: at most 1048576 bytes
        input ("input"): Option<Bytes>,
        /// `encoding?`: 1 to 64 bytes of `^[%w%._%-/%+]+$`
        input_encoding ("input_encoding"): Option<String>,
        /// `lane?`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): Option<String>,
        /// `count?`: 0 to 9007199254740991
        lane_depth ("lane_depth"): Option<i64>,
        /// `priority?`: 0 to 9000
        priority ("priority"): Option<i64>,
        /// `tags?`: map from `tag_key` to `tag_value`, at most 64
        tags ("tags"): Option<BTreeMap<String, String>>,
    }
}
wire_reply! {
    /// The reply of [`ForkExecution`].
    ForkExecutionReply {
        Forked ("forked") {
            duplicate ("duplicate"): bool,
            state ("state"): Option<PublicState>,
            steps ("steps"): i64,
        },
    }
}
wire_call!(ForkExecution -> ForkExecutionReply, "ff_fork_execution", read_only: false);
impl ForkExecution {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, body_digest: String, execution_id: ExecutionId, fork_id: ExecutionId) -> Self {
        Self { actor, body_digest, execution_id, fork_id, budgets: None, from_step: None, input: None, input_encoding: None, lane: None, lane_depth: None, priority: None, tags: None }
    }
}

wire_struct! {
    /// Webhooks that are due, to be tried by the caller and by nobody else for a while. `in_flight` says how many tries each receiver is busy with, `each` how many it may be. `held` says that more is due for receivers that are busy, `more` that more is due for others.
    ///
    /// Calls `ff_take_webhooks`.
    TakeWebhooks {
        /// `per_receiver`: 1 to 64
        each ("each"): i64,
        /// `in_flight`: map from `key_digest` to `count`, at most 256
        in_flight ("in_flight"): BTreeMap<String, i64>,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`TakeWebhooks`].
    TakeWebhooksReply {
        Taken ("taken") {
            held ("held"): bool,
            items ("items"): Vec<Webhook>,
            more ("more"): bool,
            next_at ("next_at"): Option<i64>,
            now ("now"): i64,
        },
    }
}
wire_call!(TakeWebhooks -> TakeWebhooksReply, "ff_take_webhooks", read_only: false);

wire_struct! {
    /// Says what the try of this number came to: the webhook leaves when it was delivered, refused or has failed for too long, and is tried again otherwise. A failure of a try that is not the last one begun counts for nothing; a delivery always does.
    ///
    /// Calls `ff_note_webhook`.
    NoteWebhook {
        /// `delivery_id`: a UUID in lower case. A webhook that is owed; the same in every try.
        delivery_id ("delivery_id"): Uuid,
        /// `permille`: 0 to 1000. A random draw, supplied by the caller.
        draw ("draw"): i64,
        /// `webhook_error?`: 0 to 512 bytes
        error ("error"): Option<String>,
        /// `webhook_result`: `delivered`, `failed`, `refused`. What a try came to; one that was refused is not tried again.
        result ("result"): WebhookResult,
        /// `duration_ms?`: 0 to 315360000000
        retry_after_ms ("retry_after_ms"): Option<i64>,
        /// `http_status?`: 100 to 999
        status ("status"): Option<i64>,
        /// `count`: 0 to 9007199254740991
        tries ("tries"): i64,
    }
}
wire_reply! {
    /// The reply of [`NoteWebhook`].
    NoteWebhookReply {
        Delivered ("delivered"),
        Failed ("failed"),
        PutOff ("put_off") {
            next_at ("next_at"): i64,
            now ("now"): i64,
        },
        Stale ("stale"),
    }
}
wire_call!(NoteWebhook -> NoteWebhookReply, "ff_note_webhook", read_only: false);
impl NoteWebhook {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(delivery_id: Uuid, draw: i64, result: WebhookResult, tries: i64) -> Self {
        Self { delivery_id, draw, result, tries, error: None, retry_after_ms: None, status: None }
    }
}

wire_struct! {
    /// How far the webhook of the last end of an execution or a flow is; none before the first end.
    ///
    /// Calls `ff_describe_webhook`.
    /// Fails with `execution_not_found`.
    /// Fails with `flow_not_found`.
    DescribeWebhook {
        /// `execution_id?`: a UUID in lower case
        execution_id ("execution_id"): Option<ExecutionId>,
        /// `flow_id?`: a UUID in lower case
        flow_id ("flow_id"): Option<FlowId>,
    }
}
wire_reply! {
    /// The reply of [`DescribeWebhook`].
    DescribeWebhookReply {
        Webhook ("webhook") {
            status ("status"): Option<WebhookStatus>,
        },
    }
}
wire_call!(DescribeWebhook -> DescribeWebhookReply, "ff_describe_webhook", read_only: true);
impl Default for DescribeWebhook {
    /// All fields absent.
    fn default() -> Self {
        Self { execution_id: None, flow_id: None }
    }
}

wire_struct! {
    /// Creates a schedule, or replaces the definition of one: its pause, its counts and its firings stay. With `version` only if that is its version; 0 means that there is none yet. Other times than before begin now.
    ///
    /// Calls `ff_put_schedule`.
    /// Fails with `schedule_version_conflict`.
    PutSchedule {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `new_schedule`
        schedule ("schedule"): NewSchedule,
        /// `uuid`: a UUID in lower case
        schedule_id ("schedule_id"): Uuid,
        /// `count?`: 0 to 9007199254740991
        version ("version"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`PutSchedule`].
    PutScheduleReply {
        Changed ("changed") {
            now ("now"): i64,
            schedule ("schedule"): Schedule,
        },
        Created ("created") {
            now ("now"): i64,
            schedule ("schedule"): Schedule,
        },
    }
}
wire_call!(PutSchedule -> PutScheduleReply, "ff_put_schedule", read_only: false);
impl PutSchedule {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, schedule: NewSchedule, schedule_id: Uuid) -> Self {
        Self { actor, schedule, schedule_id, version: None }
    }
}

wire_struct! {
    /// A schedule with what it submits.
    ///
    /// Calls `ff_get_schedule`.
    /// Fails with `schedule_not_found`.
    GetSchedule {
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
    }
}
wire_reply! {
    /// The reply of [`GetSchedule`].
    GetScheduleReply {
        Found ("found") {
            action ("action"): Bytes,
            now ("now"): i64,
            schedule ("schedule"): Schedule,
        },
    }
}
wire_call!(GetSchedule -> GetScheduleReply, "ff_get_schedule", read_only: true);

wire_struct! {
    /// Schedules of this partition, newest first; a page may be short, `more` says whether to go on after `last`.
    ///
    /// Calls `ff_list_schedules`.
    ListSchedules {
        /// `schedule_position?`
        after ("after"): Option<SchedulePosition>,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `namespace?`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`ListSchedules`].
    ListSchedulesReply {
        Page ("page") {
            items ("items"): Vec<Schedule>,
            last ("last"): Option<SchedulePosition>,
            more ("more"): bool,
            now ("now"): i64,
        },
    }
}
wire_call!(ListSchedules -> ListSchedulesReply, "ff_list_schedules", read_only: true);
impl ListSchedules {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, after: None, namespace: None }
    }
}

wire_struct! {
    /// Removes a schedule with its firings. What it submitted goes on; what it has not submitted yet is not submitted any more.
    ///
    /// Calls `ff_delete_schedule`.
    /// Fails with `schedule_not_found`.
    DeleteSchedule {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
    }
}
wire_reply! {
    /// The reply of [`DeleteSchedule`].
    DeleteScheduleReply {
        Deleted ("deleted"),
    }
}
wire_call!(DeleteSchedule -> DeleteScheduleReply, "ff_delete_schedule", read_only: false);

wire_struct! {
    /// Stops a schedule from firing by itself. What has come by now comes first; a paused one keeps its first reason.
    ///
    /// Calls `ff_pause_schedule`.
    /// Fails with `schedule_not_found`.
    PauseSchedule {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `reason?`: 0 to 4096 bytes
        reason ("reason"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`PauseSchedule`].
    PauseScheduleReply {
        Paused ("paused") {
            schedule ("schedule"): Schedule,
        },
    }
}
wire_call!(PauseSchedule -> PauseScheduleReply, "ff_pause_schedule", read_only: false);
impl PauseSchedule {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, name: String, namespace: String) -> Self {
        Self { actor, name, namespace, reason: None }
    }
}

wire_struct! {
    /// Lets a paused schedule fire again. Times that passed meanwhile are not made up for; a backfill does that.
    ///
    /// Calls `ff_resume_schedule`.
    /// Fails with `schedule_not_found`.
    ResumeSchedule {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
    }
}
wire_reply! {
    /// The reply of [`ResumeSchedule`].
    ResumeScheduleReply {
        Resumed ("resumed") {
            schedule ("schedule"): Schedule,
        },
    }
}
wire_call!(ResumeSchedule -> ResumeScheduleReply, "ff_resume_schedule", read_only: false);

wire_struct! {
    /// Fires a schedule now, whatever runs, and while it is paused, too. The caller submits what `ff_take_firing` answers; when it does not, a timer does. The same request answers the first firing, while that is kept.
    ///
    /// Calls `ff_trigger_schedule`.
    /// Fails with `schedule_not_found`.
    /// Fails with `try_again`.
    TriggerSchedule {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `request_id`: a UUID in lower case
        request_id ("request_id"): Uuid,
    }
}
wire_reply! {
    /// The reply of [`TriggerSchedule`].
    TriggerScheduleReply {
        Known ("known") {
            number ("number"): i64,
            run_id ("run_id"): Uuid,
        },
        Triggered ("triggered") {
            number ("number"): i64,
            run_id ("run_id"): Uuid,
        },
    }
}
wire_call!(TriggerSchedule -> TriggerScheduleReply, "ff_trigger_schedule", read_only: false);

wire_struct! {
    /// Fires the times from `from` to `to`, both included, in order and under the overlap policy. The times are supplied in pieces (`ff_refill_backfill`); `total` says how many there are.
    ///
    /// Calls `ff_backfill_schedule`.
    /// Fails with `schedule_not_found`.
    /// Fails with `schedule_busy`.
    BackfillSchedule {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        from ("from"): i64,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `overlap?`: `skip`, `queue_one`, `queue_all`, `cancel_previous`, `allow`. What happens when a time comes and the last firing has not ended.
        overlap ("overlap"): Option<Overlap>,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        to ("to"): i64,
        /// `count`: 0 to 9007199254740991
        total ("total"): i64,
    }
}
wire_reply! {
    /// The reply of [`BackfillSchedule`].
    BackfillScheduleReply {
        Started ("started") {
            schedule ("schedule"): Schedule,
        },
    }
}
wire_call!(BackfillSchedule -> BackfillScheduleReply, "ff_backfill_schedule", read_only: false);
impl BackfillSchedule {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, from: i64, name: String, namespace: String, to: i64, total: i64) -> Self {
        Self { actor, from, name, namespace, to, total, overlap: None }
    }
}

wire_struct! {
    /// Ends a backfill where it is; what it fired goes on. One that has ended stays as it is.
    ///
    /// Calls `ff_stop_backfill`.
    /// Fails with `schedule_not_found`.
    StopBackfill {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
    }
}
wire_reply! {
    /// The reply of [`StopBackfill`].
    StopBackfillReply {
        Stopped ("stopped") {
            schedule ("schedule"): Schedule,
        },
    }
}
wire_call!(StopBackfill -> StopBackfillReply, "ff_stop_backfill", read_only: false);

wire_struct! {
    /// Supplies the times of a calendar after `after`: all of them up to `reckoned`, or all there will ever be when that is absent. Times up to `missed.to` came too long ago: they are counted. Under another version, or when those were counted by somebody else, nothing changes.
    ///
    /// Calls `ff_refill_schedule`.
    /// Fails with `schedule_not_found`.
    RefillSchedule {
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        after ("after"): i64,
        /// `missed_times?`
        missed ("missed"): Option<MissedTimes>,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        reckoned ("reckoned"): Option<i64>,
        /// `planned_times`: list of `time_ms`, at most 64
        times ("times"): Vec<i64>,
        /// `count`: 0 to 9007199254740991
        version ("version"): i64,
    }
}
wire_reply! {
    /// The reply of [`RefillSchedule`].
    RefillScheduleReply {
        Planned ("planned"),
        Stale ("stale"),
    }
}
wire_call!(RefillSchedule -> RefillScheduleReply, "ff_refill_schedule", read_only: false);
impl RefillSchedule {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(after: i64, name: String, namespace: String, times: Vec<i64>, version: i64) -> Self {
        Self { after, name, namespace, times, version, missed: None, reckoned: None }
    }
}

wire_struct! {
    /// Supplies the next times of a backfill: all of them after `after` and up to `reckoned`.
    ///
    /// Calls `ff_refill_backfill`.
    /// Fails with `schedule_not_found`.
    RefillBackfill {
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        after ("after"): i64,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        reckoned ("reckoned"): i64,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        started_at ("started_at"): i64,
        /// `planned_times`: list of `time_ms`, at most 64
        times ("times"): Vec<i64>,
    }
}
wire_reply! {
    /// The reply of [`RefillBackfill`].
    RefillBackfillReply {
        Planned ("planned"),
        Stale ("stale"),
    }
}
wire_call!(RefillBackfill -> RefillBackfillReply, "ff_refill_backfill", read_only: false);

wire_struct! {
    /// The last firings of a schedule with what became of each, newest first.
    ///
    /// Calls `ff_list_firings`.
    /// Fails with `schedule_not_found`.
    ListFirings {
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
    }
}
wire_reply! {
    /// The reply of [`ListFirings`].
    ListFiringsReply {
        Firings ("firings") {
            items ("items"): Vec<Firing>,
        },
    }
}
wire_call!(ListFirings -> ListFiringsReply, "ff_list_firings", read_only: true);

wire_struct! {
    /// What a firing submits, while that is owed: `settled` says that it was submitted, missed or forgotten.
    ///
    /// Calls `ff_take_firing`.
    TakeFiring {
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
    }
}
wire_reply! {
    /// The reply of [`TakeFiring`].
    TakeFiringReply {
        Due ("due") {
            action ("action"): Bytes,
            firing ("firing"): Firing,
        },
        Settled ("settled"),
    }
}
wire_call!(TakeFiring -> TakeFiringReply, "ff_take_firing", read_only: true);

wire_struct! {
    /// Records what became of a firing's submission: it was accepted (`outcome` says how it has ended already), or refused. A refused one is tried again within the catch-up window unless this is the `last` try, and missed afterwards.
    ///
    /// Calls `ff_settle_firing`.
    SettleFiring {
        /// `bool?`: true or false
        last ("last"): Option<bool>,
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
        /// `firing_outcome?`: 1 to 32 bytes. How the execution or flow ended.
        outcome ("outcome"): Option<String>,
        /// `firing_why?`: 1 to 64 bytes. Why a firing was skipped or missed.
        refused ("refused"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`SettleFiring`].
    SettleFiringReply {
        Known ("known"),
        Settled ("settled") {
            again_at ("again_at"): Option<i64>,
        },
    }
}
wire_call!(SettleFiring -> SettleFiringReply, "ff_settle_firing", read_only: false);
impl SettleFiring {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(name: String, namespace: String, number: i64) -> Self {
        Self { name, namespace, number, last: None, outcome: None, refused: None }
    }
}

wire_struct! {
    /// Tells a schedule that an execution or flow it submitted has ended: what waited for that may fire.
    ///
    /// Calls `ff_end_firing`.
    EndFiring {
        /// `schedule_name`: 1 to 64 bytes of `^[%w%._%-]+$`. A schedule, unique in its namespace.
        name ("name"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `count`: 0 to 9007199254740991
        number ("number"): i64,
        /// `firing_outcome`: 1 to 32 bytes. How the execution or flow ended.
        outcome ("outcome"): String,
        /// `uuid`: a UUID in lower case
        run_id ("run_id"): Uuid,
    }
}
wire_reply! {
    /// The reply of [`EndFiring`].
    EndFiringReply {
        Noted ("noted"),
    }
}
wire_call!(EndFiring -> EndFiringReply, "ff_end_firing", read_only: false);

wire_struct! {
    /// Notes the ids of a process's token keys, never the keys. A process that shares no id with what is noted is told: its tokens would be nobody else's.
    ///
    /// Calls `ff_note_keys`.
    NoteKeys {
        /// `key_ids?`: list of `key_id`, at most 256
        gone ("gone"): Option<Vec<String>>,
        /// `key_ids`: list of `key_id`, at most 256
        key_ids ("key_ids"): Vec<String>,
    }
}
wire_reply! {
    /// The reply of [`NoteKeys`].
    NoteKeysReply {
        Foreign ("foreign") {
            key_ids ("key_ids"): Vec<String>,
        },
        Noted ("noted") {
            key_ids ("key_ids"): Vec<String>,
        },
    }
}
wire_call!(NoteKeys -> NoteKeysReply, "ff_note_keys", read_only: false);
impl NoteKeys {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(key_ids: Vec<String>) -> Self {
        Self { key_ids, gone: None }
    }
}

wire_struct! {
    /// Records what an operator did that changes no record of its own: the keys are not in the store, and a repair has no one place.
    ///
    /// Calls `ff_record_action`.
    RecordAction {
        /// `recorded_action`: `keys_rotated`, `key_revoked`, `store_repaired`
        action ("action"): RecordedAction,
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `key_id?`: 1 to 64 bytes of `^[%w%._%-]+$`
        key_id ("key_id"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`RecordAction`].
    RecordActionReply {
        Recorded ("recorded"),
    }
}
wire_call!(RecordAction -> RecordActionReply, "ff_record_action", read_only: false);
impl RecordAction {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(action: RecordedAction, actor: String) -> Self {
        Self { action, actor, key_id: None }
    }
}

wire_struct! {
    /// Lets the bearer of a token act: its roles, and where. Only the token's digest is kept.
    ///
    /// Calls `ff_grant_access`.
    /// Fails with `idempotency_conflict`.
    GrantAccess {
        /// `uuid`: a UUID in lower case
        access_id ("access_id"): Uuid,
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `capabilities?`: list of `capability`, at most 64
        capabilities ("capabilities"): Option<Vec<String>>,
        /// `token_digest`: 64 to 64 bytes of `^%x+$`
        digest ("digest"): String,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        expires_at ("expires_at"): Option<i64>,
        /// `lane_names?`: list of `lane`, at most 64
        lanes ("lanes"): Option<Vec<String>>,
        /// `access_name`: 1 to 64 bytes of `^[%w%._%-]+$`. Who acts with a token: the actor of what is done with it.
        name ("name"): String,
        /// `namespaces?`: list of `namespace`, at most 64
        namespaces ("namespaces"): Option<Vec<String>>,
        /// `roles`: list of `role`, at most 7
        roles ("roles"): Vec<Role>,
    }
}
wire_reply! {
    /// The reply of [`GrantAccess`].
    GrantAccessReply {
        Granted ("granted") {
            access ("access"): Access,
        },
    }
}
wire_call!(GrantAccess -> GrantAccessReply, "ff_grant_access", read_only: false);
impl GrantAccess {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(access_id: Uuid, actor: String, digest: String, name: String, roles: Vec<Role>) -> Self {
        Self { access_id, actor, digest, name, roles, capabilities: None, expires_at: None, lanes: None, namespaces: None }
    }
}

wire_struct! {
    /// What the bearer of the token with this digest may do. A token that has expired is nobody's.
    ///
    /// Calls `ff_find_access`.
    /// Fails with `access_not_found`.
    FindAccess {
        /// `token_digest`: 64 to 64 bytes of `^%x+$`
        digest ("digest"): String,
    }
}
wire_reply! {
    /// The reply of [`FindAccess`].
    FindAccessReply {
        Found ("found") {
            access ("access"): Access,
        },
    }
}
wire_call!(FindAccess -> FindAccessReply, "ff_find_access", read_only: true);

wire_struct! {
    /// Who may act by a token, in the order of their ids; never a token or its digest.
    ///
    /// Calls `ff_list_access`.
    ListAccess {
        /// `uuid?`: a UUID in lower case
        after ("after"): Option<Uuid>,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`ListAccess`].
    ListAccessReply {
        Page ("page") {
            items ("items"): Vec<Access>,
            more ("more"): bool,
        },
    }
}
wire_call!(ListAccess -> ListAccessReply, "ff_list_access", read_only: true);
impl ListAccess {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, after: None }
    }
}

wire_struct! {
    /// The token's bearer may do nothing any more; servers that remember it are told.
    ///
    /// Calls `ff_revoke_access`.
    /// Fails with `access_not_found`.
    RevokeAccess {
        /// `uuid`: a UUID in lower case
        access_id ("access_id"): Uuid,
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
    }
}
wire_reply! {
    /// The reply of [`RevokeAccess`].
    RevokeAccessReply {
        Revoked ("revoked") {
            access ("access"): Access,
        },
    }
}
wire_call!(RevokeAccess -> RevokeAccessReply, "ff_revoke_access", read_only: false);

wire_struct! {
    /// Says how many holders a holder set has room for; without a limit it takes all. An older version never replaces a newer one.
    ///
    /// Calls `ff_set_capacity`.
    SetCapacity {
        /// `max_active?`: 1 to 1000000. How many executions of a lane may run at once.
        limit ("limit"): Option<i64>,
        /// `holder_set`: 1 to 512 bytes. Where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`.
        set ("set"): String,
        /// `count`: 0 to 9007199254740991
        version ("version"): i64,
    }
}
wire_reply! {
    /// The reply of [`SetCapacity`].
    SetCapacityReply {
        Newer ("newer") {
            version ("version"): i64,
        },
        Set ("set") {
            held ("held"): i64,
        },
    }
}
wire_call!(SetCapacity -> SetCapacityReply, "ff_set_capacity", read_only: false);
impl SetCapacity {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(set: String, version: i64) -> Self {
        Self { set, version, limit: None }
    }
}

wire_struct! {
    /// Enters holders into a holder set, in order, as far as there is room, each until its deadline; who is in it already stays. `counted` enters executions that run already, room or not.
    ///
    /// Calls `ff_admit_holders`.
    /// Fails with `capacity_unknown`.
    AdmitHolders {
        /// `bool?`: true or false
        counted ("counted"): Option<bool>,
        /// `candidates`: list of `candidate`, at most 64
        holders ("holders"): Vec<Candidate>,
        /// `holder_set`: 1 to 512 bytes. Where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`.
        set ("set"): String,
    }
}
wire_reply! {
    /// The reply of [`AdmitHolders`].
    AdmitHoldersReply {
        Admitted ("admitted") {
            held ("held"): i64,
            holder_ids ("holder_ids"): Vec<Uuid>,
            limit ("limit"): Option<i64>,
        },
    }
}
wire_call!(AdmitHolders -> AdmitHoldersReply, "ff_admit_holders", read_only: false);
impl AdmitHolders {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(holders: Vec<Candidate>, set: String) -> Self {
        Self { holders, set, counted: None }
    }
}

wire_struct! {
    /// Moves the deadlines of holders whose executions were asked for: without one they stay until released. Who has left does not come back.
    ///
    /// Calls `ff_confirm_holders`.
    ConfirmHolders {
        /// `holders`: list of `holder`, at most 64
        holders ("holders"): Vec<Holder>,
        /// `holder_set`: 1 to 512 bytes. Where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`.
        set ("set"): String,
    }
}
wire_reply! {
    /// The reply of [`ConfirmHolders`].
    ConfirmHoldersReply {
        Confirmed ("confirmed") {
            count ("count"): i64,
        },
    }
}
wire_call!(ConfirmHolders -> ConfirmHoldersReply, "ff_confirm_holders", read_only: false);

wire_struct! {
    /// Takes holders out of a holder set; who is not in it is passed over. A full set that has room again says so.
    ///
    /// Calls `ff_release_holders`.
    ReleaseHolders {
        /// `holders`: list of `holder`, at most 64
        holders ("holders"): Vec<Holder>,
        /// `holder_set`: 1 to 512 bytes. Where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`.
        set ("set"): String,
    }
}
wire_reply! {
    /// The reply of [`ReleaseHolders`].
    ReleaseHoldersReply {
        Released ("released") {
            count ("count"): i64,
            held ("held"): i64,
        },
    }
}
wire_call!(ReleaseHolders -> ReleaseHoldersReply, "ff_release_holders", read_only: false);

wire_struct! {
    /// Who is in a holder set, the earliest deadline first and those without one last, and how much room it has.
    ///
    /// Calls `ff_list_holders`.
    ListHolders {
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
        /// `count`: 0 to 9007199254740991
        offset ("offset"): i64,
        /// `holder_set`: 1 to 512 bytes. Where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`.
        set ("set"): String,
    }
}
wire_reply! {
    /// The reply of [`ListHolders`].
    ListHoldersReply {
        Holders ("holders") {
            capacity ("capacity"): Option<i64>,
            held ("held"): i64,
            items ("items"): Vec<Holder>,
            now ("now"): i64,
            version ("version"): Option<i64>,
        },
    }
}
wire_call!(ListHolders -> ListHoldersReply, "ff_list_holders", read_only: true);

wire_struct! {
    /// What the executions of this partition say about holders of a holder set: granted until a time, running, gone, or gone with the release still owed.
    ///
    /// Calls `ff_check_holders`.
    CheckHolders {
        /// `holders`: list of `holder`, at most 64
        holders ("holders"): Vec<Holder>,
        /// `holder_set`: 1 to 512 bytes. Where executions are held: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`.
        set ("set"): String,
    }
}
wire_reply! {
    /// The reply of [`CheckHolders`].
    CheckHoldersReply {
        Checked ("checked") {
            items ("items"): Vec<HeldSlot>,
        },
    }
}
wire_call!(CheckHolders -> CheckHoldersReply, "ff_check_holders", read_only: true);

wire_struct! {
    /// The running executions of a lane as holders of its holder set, a page at a time. Those that started before the lane was limited are made holders with `note`, and counted without.
    ///
    /// Calls `ff_adopt_holders`.
    /// Fails with `try_again`.
    AdoptHolders {
        /// `queue_position?`
        after ("after"): Option<QueuePosition>,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `bool`: true or false
        note ("note"): bool,
    }
}
wire_reply! {
    /// The reply of [`AdoptHolders`].
    AdoptHoldersReply {
        Adopted ("adopted") {
            holders ("holders"): Vec<Holder>,
            next ("next"): Option<QueuePosition>,
            unnoted ("unnoted"): i64,
        },
    }
}
wire_call!(AdoptHolders -> AdoptHoldersReply, "ff_adopt_holders", read_only: false);
impl AdoptHolders {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(lane: String, limit: i64, namespace: String, note: bool) -> Self {
        Self { lane, limit, namespace, note, after: None }
    }
}

wire_struct! {
    /// Creates a quota, or with the version it has now replaces its definition; the same definition again changes nothing. Running work is never stopped by a lower limit.
    ///
    /// Calls `ff_put_quota`.
    /// Fails with `quota_not_found`.
    /// Fails with `quota_version_conflict`.
    PutQuota {
        /// `actor?`: 1 to 128 bytes
        actor ("actor"): Option<String>,
        /// `quota`
        quota ("quota"): Quota,
        /// `count?`: 0 to 9007199254740991
        version ("version"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`PutQuota`].
    PutQuotaReply {
        Created ("created") {
            entry ("entry"): QuotaEntry,
        },
        Duplicate ("duplicate") {
            entry ("entry"): QuotaEntry,
        },
        Replaced ("replaced") {
            entry ("entry"): QuotaEntry,
        },
    }
}
wire_call!(PutQuota -> PutQuotaReply, "ff_put_quota", read_only: false);
impl PutQuota {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self { quota, actor: None, version: None }
    }
}

wire_struct! {
    /// A quota and, of the key asked for, how far each of its parts is used, who holds it and who waits.
    ///
    /// Calls `ff_get_quota`.
    /// Fails with `quota_not_found`.
    GetQuota {
        /// `quota_key?`: 1 to 256 bytes
        key ("key"): Option<String>,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
    }
}
wire_reply! {
    /// The reply of [`GetQuota`].
    GetQuotaReply {
        Quota ("quota") {
            entry ("entry"): QuotaEntry,
            now ("now"): i64,
            state ("state"): Option<QuotaKeyState>,
        },
    }
}
wire_call!(GetQuota -> GetQuotaReply, "ff_get_quota", read_only: true);
impl GetQuota {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(quota_id: QuotaPolicyId) -> Self {
        Self { quota_id, key: None }
    }
}

wire_struct! {
    /// Quotas of this partition, newest first; a page may be short, `more` says whether to go on after `last`.
    ///
    /// Calls `ff_list_quotas`.
    ListQuotas {
        /// `quota_position?`
        after ("after"): Option<QuotaPosition>,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
        /// `namespace?`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`ListQuotas`].
    ListQuotasReply {
        Page ("page") {
            items ("items"): Vec<QuotaEntry>,
            last ("last"): Option<QuotaPosition>,
            more ("more"): bool,
        },
    }
}
wire_call!(ListQuotas -> ListQuotasReply, "ff_list_quotas", read_only: true);
impl ListQuotas {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, after: None, namespace: None }
    }
}

wire_struct! {
    /// The keys of a quota that are in use, in the order of their first use, with the holder set of each; `next` says where to go on.
    ///
    /// Calls `ff_list_quota_keys`.
    /// Fails with `quota_not_found`.
    ListQuotaKeys {
        /// `count`: 0 to 9007199254740991
        after ("after"): i64,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
    }
}
wire_reply! {
    /// The reply of [`ListQuotaKeys`].
    ListQuotaKeysReply {
        Page ("page") {
            items ("items"): Vec<QuotaKeyUse>,
            next ("next"): Option<i64>,
        },
    }
}
wire_call!(ListQuotaKeys -> ListQuotaKeysReply, "ff_list_quota_keys", read_only: true);

wire_struct! {
    /// Deletes a quota: nothing that names it is admitted any more. Who waits for it is called and refused; who runs goes on.
    ///
    /// Calls `ff_delete_quota`.
    /// Fails with `quota_not_found`.
    DeleteQuota {
        /// `actor?`: 1 to 128 bytes
        actor ("actor"): Option<String>,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
    }
}
wire_reply! {
    /// The reply of [`DeleteQuota`].
    DeleteQuotaReply {
        Deleted ("deleted"),
    }
}
wire_call!(DeleteQuota -> DeleteQuotaReply, "ff_delete_quota", read_only: false);
impl DeleteQuota {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(quota_id: QuotaPolicyId) -> Self {
        Self { quota_id, actor: None }
    }
}

wire_struct! {
    /// Asks a quota for executions, in order, each under its key: every part passes or nothing is taken. Nobody takes the room of those who were called or stand in line before it. Who is refused waits for its turn; who is in stays.
    ///
    /// Calls `ff_admit_quota`.
    /// Fails with `quota_not_found`.
    AdmitQuota {
        /// `quota_candidates`: list of `quota_candidate`, at most 64
        candidates ("candidates"): Vec<QuotaCandidate>,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
    }
}
wire_reply! {
    /// The reply of [`AdmitQuota`].
    AdmitQuotaReply {
        Answered ("answered") {
            items ("items"): Vec<QuotaAnswer>,
        },
    }
}
wire_call!(AdmitQuota -> AdmitQuotaReply, "ff_admit_quota", read_only: false);

wire_struct! {
    /// Takes holders out of a quota; who is not in it is passed over. Who never ran gives back what its start took. Whoever waits for the room is called.
    ///
    /// Calls `ff_return_quota`.
    ReturnQuota {
        /// `quota_returns`: list of `quota_return`, at most 64
        items ("items"): Vec<QuotaReturn>,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
    }
}
wire_reply! {
    /// The reply of [`ReturnQuota`].
    ReturnQuotaReply {
        Returned ("returned") {
            count ("count"): i64,
        },
    }
}
wire_call!(ReturnQuota -> ReturnQuotaReply, "ff_return_quota", read_only: false);

wire_struct! {
    /// Executions that a quota has called ended or went elsewhere meanwhile: nobody waits for them, and the next in line are called. Who is not expected is passed over.
    ///
    /// Calls `ff_give_up_called`.
    GiveUpCalled {
        /// `quota_absences`: list of `quota_absence`, at most 64
        items ("items"): Vec<QuotaAbsence>,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
    }
}
wire_reply! {
    /// The reply of [`GiveUpCalled`].
    GiveUpCalledReply {
        GivenUp ("given_up") {
            count ("count"): i64,
        },
    }
}
wire_call!(GiveUpCalled -> GiveUpCalledReply, "ff_give_up_called", read_only: false);

wire_struct! {
    /// Says what an admitted execution really weighed. It may be more than the limit: later admissions wait for it. `gone`: the window has passed it, or it weighs nothing here.
    ///
    /// Calls `ff_settle_quota`.
    /// Fails with `quota_not_found`.
    SettleQuota {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `holder_id`: a UUID in lower case. The grant by which an execution came to hold a slot, or the lease it was counted with.
        holder_id ("holder_id"): Uuid,
        /// `quota_key`: 1 to 256 bytes
        key ("key"): String,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
        /// `count`: 0 to 9007199254740991
        weight ("weight"): i64,
    }
}
wire_reply! {
    /// The reply of [`SettleQuota`].
    SettleQuotaReply {
        Gone ("gone"),
        Settled ("settled") {
            limit ("limit"): i64,
            used ("used"): i64,
        },
    }
}
wire_call!(SettleQuota -> SettleQuotaReply, "ff_settle_quota", read_only: false);

wire_struct! {
    /// Nothing starts under this key of a quota until a time: a provider said so. A later time wins over an earlier one; one that has passed changes nothing, and 0 ends the throttle.
    ///
    /// Calls `ff_throttle_quota`.
    /// Fails with `quota_not_found`.
    ThrottleQuota {
        /// `actor?`: 1 to 128 bytes
        actor ("actor"): Option<String>,
        /// `quota_key`: 1 to 256 bytes
        key ("key"): String,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        until ("until"): i64,
    }
}
wire_reply! {
    /// The reply of [`ThrottleQuota`].
    ThrottleQuotaReply {
        Cleared ("cleared"),
        Throttled ("throttled") {
            until ("until"): i64,
        },
    }
}
wire_call!(ThrottleQuota -> ThrottleQuotaReply, "ff_throttle_quota", read_only: false);
impl ThrottleQuota {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(key: String, quota_id: QuotaPolicyId, until: i64) -> Self {
        Self { key, quota_id, until, actor: None }
    }
}

wire_struct! {
    /// Who waits under a key of a quota, the next to be called first, and how many do; those that can never pass come last. An execution that ended meanwhile is in line until it is called.
    ///
    /// Calls `ff_list_quota_waiters`.
    /// Fails with `quota_not_found`.
    ListQuotaWaiters {
        /// `awaits_position?`
        after ("after"): Option<AwaitsPosition>,
        /// `quota_key`: 1 to 256 bytes
        key ("key"): String,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
    }
}
wire_reply! {
    /// The reply of [`ListQuotaWaiters`].
    ListQuotaWaitersReply {
        Waiting ("waiting") {
            count ("count"): i64,
            items ("items"): Vec<QuotaWaiter>,
            next ("next"): Option<AwaitsPosition>,
        },
    }
}
wire_call!(ListQuotaWaiters -> ListQuotaWaitersReply, "ff_list_quota_waiters", read_only: true);
impl ListQuotaWaiters {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(key: String, limit: i64, quota_id: QuotaPolicyId) -> Self {
        Self { key, limit, quota_id, after: None }
    }
}

wire_struct! {
    /// The quotas of this partition that were made first, at most `limit`, and how they stand over their keys that came into use first, at most `keys_max` of each; `quotas` is how many there are.
    ///
    /// Calls `ff_quota_stats`.
    QuotaStats {
        /// `batch_size`: 1 to 64
        keys_max ("keys_max"): i64,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`QuotaStats`].
    QuotaStatsReply {
        Stats ("stats") {
            items ("items"): Vec<QuotaStanding>,
            quotas ("quotas"): i64,
        },
    }
}
wire_call!(QuotaStats -> QuotaStatsReply, "ff_quota_stats", read_only: true);

wire_struct! {
    /// Creates a budget, below another one when it names a parent; the same again is a duplicate. A calendar's first reset is supplied, an interval starts now.
    ///
    /// Calls `ff_create_budget`.
    /// Fails with `budget_not_found`.
    /// Fails with `budget_in_use`.
    /// Fails with `idempotency_conflict`.
    CreateBudget {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `new_budget`
        budget ("budget"): NewBudget,
    }
}
wire_reply! {
    /// The reply of [`CreateBudget`].
    CreateBudgetReply {
        Created ("created") {
            budget ("budget"): Budget,
            duplicate ("duplicate"): bool,
        },
    }
}
wire_call!(CreateBudget -> CreateBudgetReply, "ff_create_budget", read_only: false);

wire_struct! {
    /// Changes the limits of the dimensions named, each to exactly what is given, and what happens at a breach; what is not named stays. Says so when there may be room again.
    ///
    /// Calls `ff_change_budget`.
    /// Fails with `budget_not_found`.
    /// Fails with `budget_version_conflict`.
    ChangeBudget {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `dimension_limits`: list of `dimension_limit`, at most 32
        limits ("limits"): Vec<DimensionLimit>,
        /// `on_hard?`: `suspend`, `block`, `cancel`, `fail`
        on_hard ("on_hard"): Option<OnHard>,
        /// `on_soft?`: `notify`, `require_approval`
        on_soft ("on_soft"): Option<OnSoft>,
        /// `count?`: 0 to 9007199254740991
        version ("version"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`ChangeBudget`].
    ChangeBudgetReply {
        Changed ("changed") {
            budget ("budget"): Budget,
            changed ("changed"): bool,
        },
    }
}
wire_call!(ChangeBudget -> ChangeBudgetReply, "ff_change_budget", read_only: false);
impl ChangeBudget {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, budget_id: BudgetId, limits: Vec<DimensionLimit>) -> Self {
        Self { actor, budget_id, limits, on_hard: None, on_soft: None, version: None }
    }
}

wire_struct! {
    /// A budget with its limits, what is used and held, and what operators did to it; how many hold something against it, how many budgets are right below it.
    ///
    /// Calls `ff_get_budget`.
    /// Fails with `budget_not_found`.
    GetBudget {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
    }
}
wire_reply! {
    /// The reply of [`GetBudget`].
    GetBudgetReply {
        Found ("found") {
            budget ("budget"): Budget,
            children ("children"): i64,
            holders ("holders"): i64,
            now ("now"): i64,
        },
    }
}
wire_call!(GetBudget -> GetBudgetReply, "ff_get_budget", read_only: true);

wire_struct! {
    /// Budgets of this partition, newest first; a page may be short, `more` says whether to go on after `last`.
    ///
    /// Calls `ff_list_budgets`.
    ListBudgets {
        /// `budget_position?`
        after ("after"): Option<BudgetPosition>,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `namespace?`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): Option<String>,
        /// `scope_type?`: `namespace`, `tenant`, `flow`, `lane`, `custom`
        scope ("scope"): Option<ScopeType>,
    }
}
wire_reply! {
    /// The reply of [`ListBudgets`].
    ListBudgetsReply {
        Page ("page") {
            items ("items"): Vec<Budget>,
            last ("last"): Option<BudgetPosition>,
            more ("more"): bool,
        },
    }
}
wire_call!(ListBudgets -> ListBudgetsReply, "ff_list_budgets", read_only: true);
impl ListBudgets {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, after: None, namespace: None, scope: None }
    }
}

wire_struct! {
    /// The budgets of this partition that were made first, at most `limit`, without those of flows, which come and go with them; `budgets` is how many there are in all.
    ///
    /// Calls `ff_budget_stats`.
    BudgetStats {
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`BudgetStats`].
    BudgetStatsReply {
        Stats ("stats") {
            budgets ("budgets"): i64,
            items ("items"): Vec<Budget>,
        },
    }
}
wire_call!(BudgetStats -> BudgetStatsReply, "ff_budget_stats", read_only: true);

wire_struct! {
    /// Removes a budget that has no children and against which nothing is held. Work that names it is not admitted from then on.
    ///
    /// Calls `ff_delete_budget`.
    /// Fails with `budget_not_found`.
    /// Fails with `budget_in_use`.
    DeleteBudget {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
    }
}
wire_reply! {
    /// The reply of [`DeleteBudget`].
    DeleteBudgetReply {
        Deleted ("deleted"),
    }
}
wire_call!(DeleteBudget -> DeleteBudgetReply, "ff_delete_budget", read_only: false);

wire_struct! {
    /// An operator starts a new period now: nothing is used in it. What is held stays held; when the period ends by itself does not change. The same request again changes nothing.
    ///
    /// Calls `ff_reset_budget`.
    /// Fails with `budget_not_found`.
    ResetBudget {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `request_id?`: a UUID in lower case
        request_id ("request_id"): Option<Uuid>,
    }
}
wire_reply! {
    /// The reply of [`ResetBudget`].
    ResetBudgetReply {
        Reset ("reset") {
            budget ("budget"): Budget,
        },
    }
}
wire_call!(ResetBudget -> ResetBudgetReply, "ff_reset_budget", read_only: false);
impl ResetBudget {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, budget_id: BudgetId) -> Self {
        Self { actor, budget_id, request_id: None }
    }
}

wire_struct! {
    /// An operator lets work start past the soft limits until the period ends.
    ///
    /// Calls `ff_approve_budget`.
    /// Fails with `budget_not_found`.
    ApproveBudget {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
    }
}
wire_reply! {
    /// The reply of [`ApproveBudget`].
    ApproveBudgetReply {
        Approved ("approved") {
            budget ("budget"): Budget,
        },
    }
}
wire_call!(ApproveBudget -> ApproveBudgetReply, "ff_approve_budget", read_only: false);

wire_struct! {
    /// An operator changes what is used in a dimension, here and in every budget above; kept with actor and reason. It may pass a limit: it says what was spent. The same request again changes nothing.
    ///
    /// Calls `ff_correct_budget`.
    /// Fails with `budget_not_found`.
    CorrectBudget {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `delta`: -9007199254740991 to 9007199254740991
        delta ("delta"): i64,
        /// `dimension`: 1 to 64 bytes
        dimension ("dimension"): String,
        /// `reason`: 0 to 4096 bytes
        reason ("reason"): String,
        /// `request_id?`: a UUID in lower case
        request_id ("request_id"): Option<Uuid>,
    }
}
wire_reply! {
    /// The reply of [`CorrectBudget`].
    CorrectBudgetReply {
        Corrected ("corrected") {
            budget ("budget"): Budget,
        },
    }
}
wire_call!(CorrectBudget -> CorrectBudgetReply, "ff_correct_budget", read_only: false);
impl CorrectBudget {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, budget_id: BudgetId, delta: i64, dimension: String, reason: String) -> Self {
        Self { actor, budget_id, delta, dimension, reason, request_id: None }
    }
}

wire_struct! {
    /// Holds the estimates of executions about to start, in order, as far as every limit up the tree allows; without an estimate something must be left in every hard dimension. A holder that was admitted is admitted again.
    ///
    /// Calls `ff_admit_budget`.
    /// Fails with `budget_not_found`.
    AdmitBudget {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `budget_candidates`: list of `budget_candidate`, at most 64
        candidates ("candidates"): Vec<BudgetCandidate>,
    }
}
wire_reply! {
    /// The reply of [`AdmitBudget`].
    AdmitBudgetReply {
        Answered ("answered") {
            items ("items"): Vec<BudgetVerdict>,
        },
    }
}
wire_call!(AdmitBudget -> AdmitBudgetReply, "ff_admit_budget", read_only: false);

wire_struct! {
    /// Drops what holders hold against a budget, their reservations included; who holds nothing is passed over, and so is a budget that is gone.
    ///
    /// Calls `ff_release_budget`.
    ReleaseBudget {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `holders`: list of `holder`, at most 64
        holders ("holders"): Vec<Holder>,
    }
}
wire_reply! {
    /// The reply of [`ReleaseBudget`].
    ReleaseBudgetReply {
        Released ("released") {
            count ("count"): i64,
        },
    }
}
wire_call!(ReleaseBudget -> ReleaseBudgetReply, "ff_release_budget", read_only: false);

wire_struct! {
    /// Holds amounts against a budget and all above it, for a time or for as long as a holder holds; the same reservation again is the same. A limit in the way is an answer, and nothing is held.
    ///
    /// Calls `ff_reserve_budget`.
    /// Fails with `budget_not_found`.
    /// Fails with `idempotency_conflict`.
    ReserveBudget {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `amounts`: map from `dimension` to `amount`, at most 32
        dimensions ("dimensions"): BTreeMap<String, i64>,
        /// `budget_holder?`
        holder ("holder"): Option<BudgetHolder>,
        /// `reservation_id`: a UUID in lower case
        reservation_id ("reservation_id"): Uuid,
        /// `duration_ms?`: 0 to 315360000000
        ttl_ms ("ttl_ms"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`ReserveBudget`].
    ReserveBudgetReply {
        HardBreach ("hard_breach") {
            budget_id ("budget_id"): BudgetId,
            dimension ("dimension"): String,
            limit ("limit"): i64,
            rooms ("rooms"): i64,
            used ("used"): i64,
        },
        Reserved ("reserved") {
            duplicate ("duplicate"): bool,
            expires_at ("expires_at"): Option<i64>,
        },
    }
}
wire_call!(ReserveBudget -> ReserveBudgetReply, "ff_reserve_budget", read_only: false);
impl ReserveBudget {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(budget_id: BudgetId, dimensions: BTreeMap<String, i64>, reservation_id: Uuid) -> Self {
        Self { budget_id, dimensions, reservation_id, holder: None, ttl_ms: None }
    }
}

wire_struct! {
    /// Turns a reservation into what was really used; the difference returns. What would pass a limit is not accepted, and the reservation stays.
    ///
    /// Calls `ff_settle_reservation`.
    /// Fails with `budget_not_found`.
    /// Fails with `reservation_not_found`.
    SettleReservation {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `amounts`: map from `dimension` to `amount`, at most 32
        dimensions ("dimensions"): BTreeMap<String, i64>,
        /// `reservation_id`: a UUID in lower case
        reservation_id ("reservation_id"): Uuid,
    }
}
wire_reply! {
    /// The reply of [`SettleReservation`].
    SettleReservationReply {
        AlreadyApplied ("already_applied"),
        HardBreach ("hard_breach") {
            action ("action"): OnHard,
            budget_id ("budget_id"): BudgetId,
            dimension ("dimension"): String,
            limit ("limit"): i64,
            rooms ("rooms"): i64,
            used ("used"): i64,
        },
        Ok ("ok"),
        SoftBreach ("soft_breach") {
            budget_id ("budget_id"): BudgetId,
            dimension ("dimension"): String,
            limit ("limit"): i64,
            used ("used"): i64,
        },
    }
}
wire_call!(SettleReservation -> SettleReservationReply, "ff_settle_reservation", read_only: false);

wire_struct! {
    /// Gives a reservation back unused.
    ///
    /// Calls `ff_release_reservation`.
    /// Fails with `budget_not_found`.
    /// Fails with `reservation_not_found`.
    ReleaseReservation {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `reservation_id`: a UUID in lower case
        reservation_id ("reservation_id"): Uuid,
    }
}
wire_reply! {
    /// The reply of [`ReleaseReservation`].
    ReleaseReservationReply {
        Released ("released"),
    }
}
wire_call!(ReleaseReservation -> ReleaseReservationReply, "ff_release_reservation", read_only: false);

wire_struct! {
    /// Counts a report once, here and in every budget above: first out of what its reporter holds, then out of what is free. One with a reservation takes it out of that alone and gives the rest of it back. `same` says that the report known by this key came from the same execution and sequence. A report that would pass a limit is not accepted, and may be made again.
    ///
    /// Calls `ff_apply_usage`.
    /// Fails with `budget_not_found`.
    /// Fails with `reservation_not_found`.
    ApplyUsage {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `usage_report`
        report ("report"): UsageReport,
    }
}
wire_reply! {
    /// The reply of [`ApplyUsage`].
    ApplyUsageReply {
        AlreadyApplied ("already_applied") {
            same ("same"): bool,
        },
        HardBreach ("hard_breach") {
            action ("action"): OnHard,
            budget_id ("budget_id"): BudgetId,
            dimension ("dimension"): String,
            limit ("limit"): i64,
            rooms ("rooms"): i64,
            used ("used"): i64,
        },
        Ok ("ok"),
        SoftBreach ("soft_breach") {
            budget_id ("budget_id"): BudgetId,
            dimension ("dimension"): String,
            limit ("limit"): i64,
            used ("used"): i64,
        },
    }
}
wire_call!(ApplyUsage -> ApplyUsageReply, "ff_apply_usage", read_only: false);

wire_struct! {
    /// Says when the period of a budget that resets by the calendar ends; only one that waits for it takes it.
    ///
    /// Calls `ff_set_next_reset`.
    /// Fails with `budget_not_found`.
    SetNextReset {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `time_ms`: 0 to 9007199254740991. Milliseconds since the epoch.
        next_reset_at ("next_reset_at"): i64,
        /// `count`: 0 to 9007199254740991
        period ("period"): i64,
    }
}
wire_reply! {
    /// The reply of [`SetNextReset`].
    SetNextResetReply {
        Set ("set"),
        Unchanged ("unchanged"),
    }
}
wire_call!(SetNextReset -> SetNextResetReply, "ff_set_next_reset", read_only: false);

wire_struct! {
    /// Budgets of this partition that had room again after a refusal and whose waiting work was not told yet, oldest first; one that is gone has the highest count of rooms.
    ///
    /// Calls `ff_cleared_budgets`.
    ClearedBudgets {
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `count?`: 0 to 9007199254740991
        offset ("offset"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`ClearedBudgets`].
    ClearedBudgetsReply {
        Cleared ("cleared") {
            items ("items"): Vec<ClearedBudget>,
            more ("more"): bool,
        },
    }
}
wire_call!(ClearedBudgets -> ClearedBudgetsReply, "ff_cleared_budgets", read_only: true);
impl ClearedBudgets {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, offset: None }
    }
}

wire_struct! {
    /// Everyone who has seen fewer rooms of a budget than `told` was told, and of those who had seen fewer than `rooms` as many as may fit; if it had room once more since, or waits for its next reset, the mark stays.
    ///
    /// Calls `ff_acknowledge_cleared`.
    AcknowledgeCleared {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `count`: 0 to 9007199254740991
        rooms ("rooms"): i64,
        /// `count`: 0 to 9007199254740991
        told ("told"): i64,
    }
}
wire_reply! {
    /// The reply of [`AcknowledgeCleared`].
    AcknowledgeClearedReply {
        Acknowledged ("acknowledged") {
            stays ("stays"): bool,
        },
    }
}
wire_call!(AcknowledgeCleared -> AcknowledgeClearedReply, "ff_acknowledge_cleared", read_only: false);

wire_struct! {
    /// A worker says what its attempt used; the report waits for its budget's answer. Without a key it is known by its execution, attempt and sequence; one that waits already under the same key is the same. With a reservation it says what of that was used, and the rest is given back.
    ///
    /// Calls `ff_note_usage`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    /// Fails with `hard_breach`.
    /// Fails with `usage_pending`.
    NoteUsage {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `dedup_key?`: 1 to 256 bytes
        dedup_key ("dedup_key"): Option<String>,
        /// `amounts`: map from `dimension` to `amount`, at most 32
        dimensions ("dimensions"): BTreeMap<String, i64>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `reservation_id?`: a UUID in lower case
        reservation_id ("reservation_id"): Option<Uuid>,
    }
}
wire_reply! {
    /// The reply of [`NoteUsage`].
    NoteUsageReply {
        Noted ("noted") {
            report ("report"): PendingUsage,
        },
    }
}
wire_call!(NoteUsage -> NoteUsageReply, "ff_note_usage", read_only: false);
impl NoteUsage {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(budget_id: BudgetId, dimensions: BTreeMap<String, i64>, execution_id: ExecutionId, fence: Fence) -> Self {
        Self { budget_id, dimensions, execution_id, fence, dedup_key: None, reservation_id: None }
    }
}

wire_struct! {
    /// Notes what a budget answered to a report: the ledger follows, and a hard breach does to the running attempt what the budget says. `counted` says that a report known to the budget is this very one.
    ///
    /// Calls `ff_settle_usage`.
    /// Fails with `execution_not_found`.
    SettleUsage {
        /// `usage_breach?`
        breach ("breach"): Option<UsageBreach>,
        /// `bool?`: true or false
        counted ("counted"): Option<bool>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `usage_outcome`: `ok`, `already_applied`, `soft_breach`, `hard_breach`, `invalid`
        outcome ("outcome"): UsageOutcome,
        /// `count`: 0 to 9007199254740991
        sequence ("sequence"): i64,
    }
}
wire_reply! {
    /// The reply of [`SettleUsage`].
    SettleUsageReply {
        Already ("already") {
            state ("state"): PublicState,
        },
        Settled ("settled") {
            ended ("ended"): bool,
            state ("state"): PublicState,
        },
    }
}
wire_call!(SettleUsage -> SettleUsageReply, "ff_settle_usage", read_only: false);
impl SettleUsage {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, outcome: UsageOutcome, sequence: i64) -> Self {
        Self { execution_id, outcome, sequence, breach: None, counted: None }
    }
}

wire_struct! {
    /// What an execution used, by attempt, budget and dimension, and its reports that wait for their budget's answer.
    ///
    /// Calls `ff_read_usage`.
    /// Fails with `execution_not_found`.
    ReadUsage {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}
wire_reply! {
    /// The reply of [`ReadUsage`].
    ReadUsageReply {
        Usage ("usage") {
            ledger ("ledger"): Vec<LedgerLine>,
            pending ("pending"): Vec<PendingUsage>,
        },
    }
}
wire_call!(ReadUsage -> ReadUsageReply, "ff_read_usage", read_only: true);

wire_struct! {
    /// A running execution is about to reserve from a budget: from now on the end of its lease gives back what it holds there.
    ///
    /// Calls `ff_hold_budget`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    HoldBudget {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
    }
}
wire_reply! {
    /// The reply of [`HoldBudget`].
    HoldBudgetReply {
        Held ("held") {
            holder_id ("holder_id"): Uuid,
        },
    }
}
wire_call!(HoldBudget -> HoldBudgetReply, "ff_hold_budget", read_only: false);

wire_struct! {
    /// Under which id a quota has let a running execution in, and what time it is. `free`: nothing holds it there.
    ///
    /// Calls `ff_quota_holder`.
    /// Fails with `execution_not_found`.
    /// Fails with `execution_not_active`.
    /// Fails with `stale_lease`.
    /// Fails with `lease_expired`.
    /// Fails with `lease_revoked`.
    QuotaHolder {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `fence`
        fence ("fence"): Fence,
        /// `quota_key`: 1 to 256 bytes
        key ("key"): String,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
    }
}
wire_reply! {
    /// The reply of [`QuotaHolder`].
    QuotaHolderReply {
        Free ("free") {
            now ("now"): i64,
        },
        Held ("held") {
            holder_id ("holder_id"): Uuid,
            now ("now"): i64,
        },
    }
}
wire_call!(QuotaHolder -> QuotaHolderReply, "ff_quota_holder", read_only: true);

wire_struct! {
    /// The budgets that executions of a lane wait for, each with the fewest rooms any of them has seen; a page at a time.
    ///
    /// Calls `ff_waiting_for_budgets`.
    WaitingForBudgets {
        /// `blocked_position?`
        after ("after"): Option<BlockedPosition>,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
    }
}
wire_reply! {
    /// The reply of [`WaitingForBudgets`].
    WaitingForBudgetsReply {
        Waiting ("waiting") {
            items ("items"): Vec<AwaitedBudget>,
            next ("next"): Option<BlockedPosition>,
        },
    }
}
wire_call!(WaitingForBudgets -> WaitingForBudgetsReply, "ff_waiting_for_budgets", read_only: true);
impl WaitingForBudgets {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(lane: String, limit: i64, namespace: String) -> Self {
        Self { lane, limit, namespace, after: None }
    }
}

wire_struct! {
    /// A budget had room again: executions that wait for it, refused or parked before that, are eligible again at the place of their original score, the first in line first; a page at a time, and no more than `most`. With `free`, whoever does not fit into what is left below the hard limits is passed over; `left` is what the others leave of it.
    ///
    /// Calls `ff_unblock_budget`.
    /// Fails with `try_again`.
    UnblockBudget {
        /// `awaits_position?`
        after ("after"): Option<AwaitsPosition>,
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `free?`: map from `dimension` to `count`, at most 32
        free ("free"): Option<BTreeMap<String, i64>>,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `count?`: 0 to 9007199254740991
        most ("most"): Option<i64>,
        /// `count`: 0 to 9007199254740991
        rooms ("rooms"): i64,
    }
}
wire_reply! {
    /// The reply of [`UnblockBudget`].
    UnblockBudgetReply {
        Unblocked ("unblocked") {
            count ("count"): i64,
            left ("left"): Option<BTreeMap<String, i64>>,
            next ("next"): Option<AwaitsPosition>,
            passed_over ("passed_over"): i64,
        },
    }
}
wire_call!(UnblockBudget -> UnblockBudgetReply, "ff_unblock_budget", read_only: false);
impl UnblockBudget {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(budget_id: BudgetId, limit: i64, rooms: i64) -> Self {
        Self { budget_id, limit, rooms, after: None, free: None, most: None }
    }
}

wire_struct! {
    /// Who of this partition waits for a budget, the first to go on first, and how many do; a page at a time.
    ///
    /// Calls `ff_awaiting_budget`.
    AwaitingBudget {
        /// `awaits_position?`
        after ("after"): Option<AwaitsPosition>,
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`AwaitingBudget`].
    AwaitingBudgetReply {
        Waiting ("waiting") {
            count ("count"): i64,
            items ("items"): Vec<Awaiting>,
            next ("next"): Option<AwaitsPosition>,
        },
    }
}
wire_call!(AwaitingBudget -> AwaitingBudgetReply, "ff_awaiting_budget", read_only: true);
impl AwaitingBudget {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(budget_id: BudgetId, limit: i64) -> Self {
        Self { budget_id, limit, after: None }
    }
}

wire_struct! {
    /// The quotas that executions of this partition wait for because they were not there; a page of executions at a time.
    ///
    /// Calls `ff_missing_quotas`.
    MissingQuotas {
        /// `awaits_position?`
        after ("after"): Option<AwaitsPosition>,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`MissingQuotas`].
    MissingQuotasReply {
        Missing ("missing") {
            next ("next"): Option<AwaitsPosition>,
            quota_ids ("quota_ids"): Vec<QuotaPolicyId>,
        },
    }
}
wire_call!(MissingQuotas -> MissingQuotasReply, "ff_missing_quotas", read_only: true);
impl MissingQuotas {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, after: None }
    }
}

wire_struct! {
    /// A quota that was not there is: executions that were refused because of that are eligible again; a page at a time.
    ///
    /// Calls `ff_unblock_quota`.
    /// Fails with `try_again`.
    UnblockQuota {
        /// `awaits_position?`
        after ("after"): Option<AwaitsPosition>,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `quota_id`: a UUID in lower case
        quota_id ("quota_id"): QuotaPolicyId,
    }
}
wire_reply! {
    /// The reply of [`UnblockQuota`].
    UnblockQuotaReply {
        Unblocked ("unblocked") {
            count ("count"): i64,
            next ("next"): Option<AwaitsPosition>,
        },
    }
}
wire_call!(UnblockQuota -> UnblockQuotaReply, "ff_unblock_quota", read_only: false);
impl UnblockQuota {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64, quota_id: QuotaPolicyId) -> Self {
        Self { limit, quota_id, after: None }
    }
}

wire_struct! {
    /// Says that a budget applies to everything in a scope, or with `gone` that it does no longer.
    ///
    /// Calls `ff_note_scope`.
    /// Fails with `budget_in_use`.
    NoteScope {
        /// `budget_id`: a UUID in lower case
        budget_id ("budget_id"): BudgetId,
        /// `bool?`: true or false
        gone ("gone"): Option<bool>,
        /// `scope_name`: 1 to 512 bytes. `namespace:<namespace>`, `lane:<namespace>/<lane>` or `flow:<flow id>`.
        scope ("scope"): String,
    }
}
wire_reply! {
    /// The reply of [`NoteScope`].
    NoteScopeReply {
        Noted ("noted") {
            budget_ids ("budget_ids"): Vec<BudgetId>,
        },
    }
}
wire_call!(NoteScope -> NoteScopeReply, "ff_note_scope", read_only: false);
impl NoteScope {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(budget_id: BudgetId, scope: String) -> Self {
        Self { budget_id, scope, gone: None }
    }
}

wire_struct! {
    /// The budgets that apply in scopes, one list for each.
    ///
    /// Calls `ff_budgets_of_scopes`.
    BudgetsOfScopes {
        /// `scope_names`: list of `scope_name`, at most 64
        scopes ("scopes"): Vec<String>,
    }
}
wire_reply! {
    /// The reply of [`BudgetsOfScopes`].
    BudgetsOfScopesReply {
        Scopes ("scopes") {
            items ("items"): Vec<ScopeBudgets>,
        },
    }
}
wire_call!(BudgetsOfScopes -> BudgetsOfScopesReply, "ff_budgets_of_scopes", read_only: true);

wire_struct! {
    /// Creates or changes a lane's definition in the fleet's record; what is not named stays. Partitions get their copy by ff_install_lane.
    ///
    /// Calls `ff_define_lane`.
    DefineLane {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `duration_ms?`: 0 to 315360000000
        attempt_timeout_ms ("attempt_timeout_ms"): Option<i64>,
        /// `bool?`: true or false
        clear_max_active ("clear_max_active"): Option<bool>,
        /// `bool?`: true or false
        clear_max_depth ("clear_max_depth"): Option<bool>,
        /// `fairness?`: `fifo`, `fair`
        fairness ("fairness"): Option<Fairness>,
        /// `fairness_weights?`: map from `fairness_key` to `weight`, at most 256
        fairness_weights ("fairness_weights"): Option<BTreeMap<String, i64>>,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `lease_ttl_ms?`: 1000 to 3600000
        lease_ttl_ms ("lease_ttl_ms"): Option<i64>,
        /// `max_active?`: 1 to 1000000. How many executions of a lane may run at once.
        max_active ("max_active"): Option<i64>,
        /// `count?`: 0 to 9007199254740991
        max_depth ("max_depth"): Option<i64>,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `priority_weight?`: 0 to 1000000000000. Milliseconds of age one point of priority is worth.
        priority_weight ("priority_weight"): Option<i64>,
        /// `duration_ms?`: 0 to 315360000000
        retention_ms ("retention_ms"): Option<i64>,
        /// `retry?`
        retry ("retry"): Option<Retry>,
        /// `lane_state?`: `active`, `paused`, `draining`, `disabled`
        state ("state"): Option<LaneState>,
        /// `weight?`: 1 to 1000000
        weight ("weight"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`DefineLane`].
    DefineLaneReply {
        Defined ("defined") {
            changed ("changed"): bool,
            entry ("entry"): LaneEntry,
        },
    }
}
wire_call!(DefineLane -> DefineLaneReply, "ff_define_lane", read_only: false);
impl DefineLane {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(actor: String, lane: String, namespace: String) -> Self {
        Self { actor, lane, namespace, attempt_timeout_ms: None, clear_max_active: None, clear_max_depth: None, fairness: None, fairness_weights: None, lease_ttl_ms: None, max_active: None, max_depth: None, priority_weight: None, retention_ms: None, retry: None, state: None, weight: None }
    }
}

wire_struct! {
    /// A lane's definition as the fleet or a partition has it.
    ///
    /// Calls `ff_get_lane`.
    /// Fails with `lane_not_found`.
    GetLane {
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
    }
}
wire_reply! {
    /// The reply of [`GetLane`].
    GetLaneReply {
        Lane ("lane") {
            entry ("entry"): LaneEntry,
        },
    }
}
wire_call!(GetLane -> GetLaneReply, "ff_get_lane", read_only: true);

wire_struct! {
    /// The fleet's lanes, oldest first.
    ///
    /// Calls `ff_list_lanes`.
    ListLanes {
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
        /// `count`: 0 to 9007199254740991
        offset ("offset"): i64,
    }
}
wire_reply! {
    /// The reply of [`ListLanes`].
    ListLanesReply {
        Lanes ("lanes") {
            entries ("entries"): Vec<LaneEntry>,
            more ("more"): bool,
        },
    }
}
wire_call!(ListLanes -> ListLanesReply, "ff_list_lanes", read_only: true);

wire_struct! {
    /// Gives a partition its copy of a lane's definition; an older version never replaces a newer one.
    ///
    /// Calls `ff_install_lane`.
    InstallLane {
        /// `lane_entry`
        entry ("entry"): LaneEntry,
    }
}
wire_reply! {
    /// The reply of [`InstallLane`].
    InstallLaneReply {
        Installed ("installed"),
        Newer ("newer") {
            version ("version"): i64,
        },
    }
}
wire_call!(InstallLane -> InstallLaneReply, "ff_install_lane", read_only: false);

wire_struct! {
    /// Registers a worker instance or replaces what it serves; while another incarnation is alive it is refused unless `take_over` is set.
    ///
    /// Calls `ff_register_worker`.
    /// Fails with `instance_in_use`.
    /// Fails with `capability_invalid`.
    RegisterWorker {
        /// `capabilities`: list of `capability`, at most 64
        capabilities ("capabilities"): Vec<String>,
        /// `uuid?`: a UUID in lower case
        incarnation ("incarnation"): Option<Uuid>,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `kinds?`: list of `kind`, at most 1000
        kinds ("kinds"): Option<Vec<String>>,
        /// `lane_names`: list of `lane`, at most 64
        lanes ("lanes"): Vec<String>,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `actor?`: 1 to 128 bytes
        owner ("owner"): Option<String>,
        /// `slots`: 1 to 4096
        slots ("slots"): i64,
        /// `bool?`: true or false
        take_over ("take_over"): Option<bool>,
        /// `worker_id`: 1 to 64 bytes of `^[%w%._%-]+$`
        worker_id ("worker_id"): String,
    }
}
wire_reply! {
    /// The reply of [`RegisterWorker`].
    RegisterWorkerReply {
        Registered ("registered") {
            expires_at ("expires_at"): i64,
            heartbeat_ms ("heartbeat_ms"): i64,
        },
    }
}
wire_call!(RegisterWorker -> RegisterWorkerReply, "ff_register_worker", read_only: false);
impl RegisterWorker {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(capabilities: Vec<String>, instance: String, lanes: Vec<String>, namespace: String, slots: i64, worker_id: String) -> Self {
        Self { capabilities, instance, lanes, namespace, slots, worker_id, incarnation: None, kinds: None, owner: None, take_over: None }
    }
}

wire_struct! {
    /// Keeps registered worker instances alive: one look at each and one write, however many others there are.
    ///
    /// Calls `ff_heartbeat_workers`.
    HeartbeatWorkers {
        /// `instances`: list of `instance`, at most 1024
        instances ("instances"): Vec<String>,
    }
}
wire_reply! {
    /// The reply of [`HeartbeatWorkers`].
    HeartbeatWorkersReply {
        Beaten ("beaten") {
            items ("items"): Vec<HeartbeatResult>,
        },
    }
}
wire_call!(HeartbeatWorkers -> HeartbeatWorkersReply, "ff_heartbeat_workers", read_only: false);

wire_struct! {
    /// Ends a registration; given an incarnation, only that one's. The actor is the operator who insists on it.
    ///
    /// Calls `ff_deregister_worker`.
    /// Fails with `instance_in_use`.
    DeregisterWorker {
        /// `actor?`: 1 to 128 bytes
        actor ("actor"): Option<String>,
        /// `uuid?`: a UUID in lower case
        incarnation ("incarnation"): Option<Uuid>,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
    }
}
wire_reply! {
    /// The reply of [`DeregisterWorker`].
    DeregisterWorkerReply {
        Deregistered ("deregistered"),
        Unknown ("unknown"),
    }
}
wire_call!(DeregisterWorker -> DeregisterWorkerReply, "ff_deregister_worker", read_only: false);
impl DeregisterWorker {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(instance: String) -> Self {
        Self { instance, actor: None, incarnation: None }
    }
}

wire_struct! {
    /// Asks whoever holds a worker instance id to say that it lives; asked again with the same nonce it says whether the holder answered.
    ///
    /// Calls `ff_challenge_worker`.
    ChallengeWorker {
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `uuid`: a UUID in lower case
        nonce ("nonce"): Uuid,
    }
}
wire_reply! {
    /// The reply of [`ChallengeWorker`].
    ChallengeWorkerReply {
        Answered ("answered"),
        Challenged ("challenged"),
        Unknown ("unknown"),
    }
}
wire_call!(ChallengeWorker -> ChallengeWorkerReply, "ff_challenge_worker", read_only: false);

wire_struct! {
    /// The holder of a worker instance id says that it lives; only the registered incarnation can.
    ///
    /// Calls `ff_answer_challenge`.
    /// Fails with `worker_not_registered`.
    /// Fails with `instance_in_use`.
    AnswerChallenge {
        /// `uuid`: a UUID in lower case
        incarnation ("incarnation"): Uuid,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `uuid`: a UUID in lower case
        nonce ("nonce"): Uuid,
    }
}
wire_reply! {
    /// The reply of [`AnswerChallenge`].
    AnswerChallengeReply {
        Answered ("answered"),
    }
}
wire_call!(AnswerChallenge -> AnswerChallengeReply, "ff_answer_challenge", read_only: false);

wire_struct! {
    /// An operator asks a worker to take nothing new and to yield what it holds; the request to its leases is owed to every partition.
    ///
    /// Calls `ff_drain_worker`.
    /// Fails with `worker_not_registered`.
    DrainWorker {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
    }
}
wire_reply! {
    /// The reply of [`DrainWorker`].
    DrainWorkerReply {
        Already ("already"),
        Draining ("draining"),
    }
}
wire_call!(DrainWorker -> DrainWorkerReply, "ff_drain_worker", read_only: false);

wire_struct! {
    /// An operator declares a worker dead: its registration ends and its leases are taken away, owed to every partition.
    ///
    /// Calls `ff_mark_worker_dead`.
    /// Fails with `worker_not_registered`.
    MarkWorkerDead {
        /// `actor`: 1 to 128 bytes
        actor ("actor"): String,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
    }
}
wire_reply! {
    /// The reply of [`MarkWorkerDead`].
    MarkWorkerDeadReply {
        Marked ("marked"),
    }
}
wire_call!(MarkWorkerDead -> MarkWorkerDeadReply, "ff_mark_worker_dead", read_only: false);

wire_struct! {
    /// Registered workers that are alive, in the order of their instance names.
    ///
    /// Calls `ff_list_workers`.
    ListWorkers {
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
        /// `count`: 0 to 9007199254740991
        offset ("offset"): i64,
    }
}
wire_reply! {
    /// The reply of [`ListWorkers`].
    ListWorkersReply {
        Workers ("workers") {
            items ("items"): Vec<Worker>,
            more ("more"): bool,
        },
    }
}
wire_call!(ListWorkers -> ListWorkersReply, "ff_list_workers", read_only: true);

wire_struct! {
    /// One registered worker.
    ///
    /// Calls `ff_get_worker`.
    /// Fails with `worker_not_registered`.
    GetWorker {
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
    }
}
wire_reply! {
    /// The reply of [`GetWorker`].
    GetWorkerReply {
        Worker ("worker") {
            item ("item"): Worker,
        },
    }
}
wire_call!(GetWorker -> GetWorkerReply, "ff_get_worker", read_only: true);

wire_struct! {
    /// Tells whichever server a worker claims from of a grant that an operator gave the worker.
    ///
    /// Calls `ff_offer_grant`.
    OfferGrant {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `grant_id`: a UUID in lower case
        grant_id ("grant_id"): Uuid,
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
    }
}
wire_reply! {
    /// The reply of [`OfferGrant`].
    OfferGrantReply {
        Offered ("offered"),
    }
}
wire_call!(OfferGrant -> OfferGrantReply, "ff_offer_grant", read_only: false);

wire_struct! {
    /// Keeps a server's record alive and answers every live one: partitions are shared among them.
    ///
    /// Calls `ff_heartbeat_server`.
    HeartbeatServer {
        /// `bool?`: true or false
        leave ("leave"): Option<bool>,
        /// `bool`: true or false
        listening ("listening"): bool,
        /// `uuid`: a UUID in lower case
        server_id ("server_id"): Uuid,
    }
}
wire_reply! {
    /// The reply of [`HeartbeatServer`].
    HeartbeatServerReply {
        Servers ("servers") {
            items ("items"): Vec<Server>,
        },
    }
}
wire_call!(HeartbeatServer -> HeartbeatServerReply, "ff_heartbeat_server", read_only: false);
impl HeartbeatServer {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(listening: bool, server_id: Uuid) -> Self {
        Self { listening, server_id, leave: None }
    }
}

wire_struct! {
    /// Everything the store knows about one execution.
    ///
    /// Calls `ff_describe_execution`.
    /// Fails with `execution_not_found`.
    DescribeExecution {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}
wire_reply! {
    /// The reply of [`DescribeExecution`].
    DescribeExecutionReply {
        Found ("found") {
            execution ("execution"): Execution,
        },
    }
}
wire_call!(DescribeExecution -> DescribeExecutionReply, "ff_describe_execution", read_only: true);

wire_struct! {
    /// One attempt of an execution, however old.
    ///
    /// Calls `ff_get_attempt`.
    /// Fails with `execution_not_found`.
    /// Fails with `attempt_not_found`.
    GetAttempt {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `attempt_index`: 0 to 9007199254740991
        index ("index"): i64,
    }
}
wire_reply! {
    /// The reply of [`GetAttempt`].
    GetAttemptReply {
        Found ("found") {
            attempt ("attempt"): Attempt,
        },
    }
}
wire_call!(GetAttempt -> GetAttemptReply, "ff_get_attempt", read_only: true);

wire_struct! {
    /// Executions of this partition, newest first, that match every filter given. Looks at a bounded number of index entries; a page may be short, `more` says whether to go on after `last`.
    ///
    /// Calls `ff_list_executions`.
    ListExecutions {
        /// `position?`
        after ("after"): Option<Position>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_after ("created_after"): Option<i64>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        created_before ("created_before"): Option<i64>,
        /// `flow_id?`: a UUID in lower case
        flow_id ("flow_id"): Option<FlowId>,
        /// `kind?`: 1 to 128 bytes of `^[%w%p ]+$`
        kind ("kind"): Option<String>,
        /// `lane?`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): Option<String>,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
        /// `namespace?`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): Option<String>,
        /// `public_state?`: `waiting`, `delayed`, `rate_limited`, `waiting_children`, `active`, `suspended`, `resumable`, `completed`, `failed`, `cancelled`, `expired`, `skipped`
        state ("state"): Option<PublicState>,
        /// `tag_key?`: 1 to 128 bytes
        tag_key ("tag_key"): Option<String>,
        /// `tag_value?`: 0 to 1024 bytes
        tag_value ("tag_value"): Option<String>,
        /// `instance?`: 1 to 64 bytes of `^[%w%._%-]+$`
        worker ("worker"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`ListExecutions`].
    ListExecutionsReply {
        Page ("page") {
            items ("items"): Vec<Summary>,
            last ("last"): Option<Position>,
            more ("more"): bool,
        },
    }
}
wire_call!(ListExecutions -> ListExecutionsReply, "ff_list_executions", read_only: true, weight: limit);
impl ListExecutions {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, after: None, created_after: None, created_before: None, flow_id: None, kind: None, lane: None, namespace: None, state: None, tag_key: None, tag_value: None, worker: None }
    }
}

wire_struct! {
    /// Entries of events of this partition, oldest first, that hold at least `limit` events if there are that many. `after` is an entry that was read whole, or a place inside of one, which is answered again; `from_ms` starts at a time instead. Says the oldest and latest entry kept, whether the stream is cut at its length, and the time up to which this is complete.
    ///
    /// Calls `ff_read_events`.
    ReadEvents {
        /// `event_place?`: 1 to 64 bytes of `^%d+%-%d+%.?%d*$`. An entry of events, or with a dot and a number one of its events, counted from 0.
        after ("after"): Option<String>,
        /// `time_ms?`: 0 to 9007199254740991. Milliseconds since the epoch.
        from_ms ("from_ms"): Option<i64>,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`ReadEvents`].
    ReadEventsReply {
        Events ("events") {
            entries ("entries"): Vec<EventEntry>,
            full ("full"): bool,
            latest ("latest"): Option<String>,
            now ("now"): i64,
            oldest ("oldest"): Option<String>,
        },
    }
}
wire_call!(ReadEvents -> ReadEventsReply, "ff_read_events", read_only: true, weight: limit);
impl ReadEvents {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, after: None, from_ms: None }
    }
}

wire_struct! {
    /// Effects this partition owes, oldest first; with `after`, those behind that one.
    ///
    /// Calls `ff_read_outbox`.
    ReadOutbox {
        /// `stream_id?`: 1 to 64 bytes of `^%d+%-%d+$`
        after ("after"): Option<String>,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`ReadOutbox`].
    ReadOutboxReply {
        Effects ("effects") {
            items ("items"): Vec<Effect>,
        },
    }
}
wire_call!(ReadOutbox -> ReadOutboxReply, "ff_read_outbox", read_only: true);
impl ReadOutbox {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(limit: i64) -> Self {
        Self { limit, after: None }
    }
}

wire_struct! {
    /// The facts of this partition that say why an execution is not running.
    ///
    /// Calls `ff_explain_execution`.
    /// Fails with `execution_not_found`.
    ExplainExecution {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
    }
}
wire_reply! {
    /// The reply of [`ExplainExecution`].
    ExplainExecutionReply {
        Facts ("facts") {
            ahead ("ahead"): Option<i64>,
            children ("children"): Option<ChildrenFacts>,
            dependencies ("dependencies"): Option<DependencyFacts>,
            execution ("execution"): Execution,
            lane_state ("lane_state"): Option<LaneState>,
            max_active ("max_active"): Option<i64>,
            queue ("queue"): String,
            uncovered ("uncovered"): bool,
        },
    }
}
wire_call!(ExplainExecution -> ExplainExecutionReply, "ff_explain_execution", read_only: true);

wire_struct! {
    /// What the work of a lane waits for in this partition: up to `limit` each of those blocked, delayed and suspended, the longest waiting first, and the first delay to end.
    ///
    /// Calls `ff_explain_lane`.
    ExplainLane {
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
    }
}
wire_reply! {
    /// The reply of [`ExplainLane`].
    ExplainLaneReply {
        Waiting ("waiting") {
            items ("items"): Vec<LaneWaiter>,
            next_delay_at ("next_delay_at"): Option<i64>,
        },
    }
}
wire_call!(ExplainLane -> ExplainLaneReply, "ff_explain_lane", read_only: true);

wire_struct! {
    /// How many eligible executions of a lane stand before another of any partition here; `more` when they are more than one call looks at.
    ///
    /// Calls `ff_count_ahead`.
    CountAhead {
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `int`: -9007199254740991 to 9007199254740991
        score ("score"): i64,
    }
}
wire_reply! {
    /// The reply of [`CountAhead`].
    CountAheadReply {
        Ahead ("ahead") {
            count ("count"): i64,
            more ("more"): bool,
        },
    }
}
wire_call!(CountAhead -> CountAheadReply, "ff_count_ahead", read_only: true);

wire_struct! {
    /// The live leases a worker instance holds in this partition, at most 1000, and the whole tasks of those that one request claimed: their ids begin alike.
    ///
    /// Calls `ff_find_leases`.
    FindLeases {
        /// `instance`: 1 to 64 bytes of `^[%w%._%-]+$`
        instance ("instance"): String,
        /// `lease_prefix?`: 23 to 23 bytes of `^[%x%-]+$`. What the ids of the leases of one request begin with.
        lease_prefix ("lease_prefix"): Option<String>,
    }
}
wire_reply! {
    /// The reply of [`FindLeases`].
    FindLeasesReply {
        Found ("found") {
            leases ("leases"): Vec<HeldLease>,
            tasks ("tasks"): Vec<Task>,
        },
    }
}
wire_call!(FindLeases -> FindLeasesReply, "ff_find_leases", read_only: true);
impl FindLeases {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(instance: String) -> Self {
        Self { instance, lease_prefix: None }
    }
}

wire_struct! {
    /// Signals of an execution in order of arrival: all of them, or those that let its attempt go on.
    ///
    /// Calls `ff_read_signals`.
    /// Fails with `execution_not_found`.
    ReadSignals {
        /// `stream_id?`: 1 to 64 bytes of `^%d+%-%d+$`
        after ("after"): Option<String>,
        /// `execution_id`: a UUID in lower case
        execution_id ("execution_id"): ExecutionId,
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
        /// `bool`: true or false
        resume_only ("resume_only"): bool,
    }
}
wire_reply! {
    /// The reply of [`ReadSignals`].
    ReadSignalsReply {
        Page ("page") {
            more ("more"): bool,
            signals ("signals"): Vec<Signal>,
        },
    }
}
wire_call!(ReadSignals -> ReadSignalsReply, "ff_read_signals", read_only: true, weight: limit);
impl ReadSignals {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(execution_id: ExecutionId, limit: i64, resume_only: bool) -> Self {
        Self { execution_id, limit, resume_only, after: None }
    }
}

wire_struct! {
    /// Counts of this partition: timers, events, outbox, what was set aside, and per lane and state; at most 32 lanes from `offset` on.
    ///
    /// Calls `ff_partition_stats`.
    PartitionStats {
        /// `lane?`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): Option<String>,
        /// `namespace?`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): Option<String>,
        /// `count?`: 0 to 9007199254740991
        offset ("offset"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`PartitionStats`].
    PartitionStatsReply {
        Stats ("stats") {
            cancel_backlog ("cancel_backlog"): i64,
            events ("events"): i64,
            executions ("executions"): i64,
            flows ("flows"): i64,
            lanes ("lanes"): Vec<LaneCounts>,
            more ("more"): bool,
            next_timer_at ("next_timer_at"): Option<i64>,
            outbox ("outbox"): i64,
            pending_cancels ("pending_cancels"): i64,
            schedules ("schedules"): i64,
            stuck ("stuck"): i64,
            timers ("timers"): i64,
        },
    }
}
wire_call!(PartitionStats -> PartitionStatsReply, "ff_partition_stats", read_only: true);
impl Default for PartitionStats {
    /// All fields absent.
    fn default() -> Self {
        Self { lane: None, namespace: None, offset: None }
    }
}

wire_struct! {
    /// How many executions of a lane wait in this partition: eligible, delayed or blocked.
    ///
    /// Calls `ff_lane_depth`.
    LaneDepth {
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
    }
}
wire_reply! {
    /// The reply of [`LaneDepth`].
    LaneDepthReply {
        Depth ("depth") {
            depth ("depth"): i64,
        },
    }
}
wire_call!(LaneDepth -> LaneDepthReply, "ff_lane_depth", read_only: true);

wire_struct! {
    /// The number and hash of the library that answers.
    ///
    /// Calls `ff_library`.
    Library {
    }
}
wire_reply! {
    /// The reply of [`Library`].
    LibraryReply {
        Library ("library") {
            hash ("hash"): String,
            number ("number"): i64,
        },
    }
}
wire_call!(Library -> LibraryReply, "ff_library", read_only: true);

wire_struct! {
    /// Applies whatever is due in this partition, a bounded number per call, and answers when the next entry is.
    ///
    /// Calls `ff_fire_due`.
    /// Fails with `try_again`.
    FireDue {
        /// `permille`: 0 to 1000. A random draw, supplied by the caller.
        draw ("draw"): i64,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`FireDue`].
    FireDueReply {
        Fired ("fired") {
            count ("count"): i64,
            more ("more"): bool,
            next_at ("next_at"): Option<i64>,
            now ("now"): i64,
            stuck ("stuck"): i64,
        },
    }
}
wire_call!(FireDue -> FireDueReply, "ff_fire_due", read_only: false, weight: limit);

wire_struct! {
    /// When this partition's next timer is, and whether it owes anything.
    ///
    /// Calls `ff_next_due`.
    NextDue {
    }
}
wire_reply! {
    /// The reply of [`NextDue`].
    NextDueReply {
        Next ("next") {
            next_at ("next_at"): Option<i64>,
            now ("now"): i64,
        },
    }
}
wire_call!(NextDue -> NextDueReply, "ff_next_due", read_only: true);

wire_struct! {
    /// Strikes effects that have been applied.
    ///
    /// Calls `ff_ack_outbox`.
    AckOutbox {
        /// `stream_ids`: list of `stream_id`, at most 1024
        ids ("ids"): Vec<String>,
    }
}
wire_reply! {
    /// The reply of [`AckOutbox`].
    AckOutboxReply {
        Struck ("struck"),
    }
}
wire_call!(AckOutbox -> AckOutboxReply, "ff_ack_outbox", read_only: false);

wire_struct! {
    /// Counts the events that were not counted yet, at most `limit`, and answers everything this partition has counted, with what it has on hand. `more` says that events are left to count, `counted_to` up to when they were.
    ///
    /// Calls `ff_tally_events`.
    TallyEvents {
        /// `list_limit`: 1 to 1000
        limit ("limit"): i64,
    }
}
wire_reply! {
    /// The reply of [`TallyEvents`].
    TallyEventsReply {
        Tally ("tally") {
            bounds_ms ("bounds_ms"): Vec<i64>,
            counted_to ("counted_to"): i64,
            gaps ("gaps"): i64,
            lines ("lines"): Vec<TallyLine>,
            more ("more"): bool,
            names ("names"): Vec<String>,
            now ("now"): i64,
            on_hand ("on_hand"): OnHand,
        },
    }
}
wire_call!(TallyEvents -> TallyEventsReply, "ff_tally_events", read_only: false);

wire_struct! {
    /// Drops events older than the age that is kept.
    ///
    /// Calls `ff_trim_events`.
    TrimEvents {
    }
}
wire_reply! {
    /// The reply of [`TrimEvents`].
    TrimEventsReply {
        Trimmed ("trimmed"),
    }
}
wire_call!(TrimEvents -> TrimEventsReply, "ff_trim_events", read_only: false);

wire_struct! {
    /// Compares the queues of a lane with what live workers take: moves what nobody takes to blocked:route and back what somebody takes again. Bounded; `cursor` goes on behind a blocked head, `skip` behind the queues that were compared.
    ///
    /// Calls `ff_review_routes`.
    ReviewRoutes {
        /// `count?`: 0 to 9007199254740991
        cursor ("cursor"): Option<i64>,
        /// `lane`: 1 to 64 bytes of `^[%w%._%-]+$`
        lane ("lane"): String,
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `namespace`: 1 to 64 bytes of `^[%w%._%-]+$`
        namespace ("namespace"): String,
        /// `count?`: 0 to 9007199254740991
        skip ("skip"): Option<i64>,
        /// `worker_classes`: list of `worker_class`, at most 4096
        workers ("workers"): Vec<WorkerClass>,
    }
}
wire_reply! {
    /// The reply of [`ReviewRoutes`].
    ReviewRoutesReply {
        Reviewed ("reviewed") {
            again_at ("again_at"): Option<i64>,
            blocked ("blocked"): i64,
            more ("more"): bool,
            next_cursor ("next_cursor"): Option<i64>,
            next_skip ("next_skip"): Option<i64>,
            unblocked ("unblocked"): i64,
        },
    }
}
wire_call!(ReviewRoutes -> ReviewRoutesReply, "ff_review_routes", read_only: false);
impl ReviewRoutes {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(lane: String, limit: i64, namespace: String, workers: Vec<WorkerClass>) -> Self {
        Self { lane, limit, namespace, workers, cursor: None, skip: None }
    }
}

wire_struct! {
    /// Fixes the partition counts at first boot; later boots must ask for the same or for what is stored. An import fixes those of its export, with `importing` true before its first key and false after its last; in between no boot succeeds.
    ///
    /// Calls `ff_fix_partitions`.
    /// Fails with `partition_mismatch`.
    /// Fails with `import_unfinished`.
    FixPartitions {
        /// `partition_count?`: 1 to 4096
        budgets ("budgets"): Option<i64>,
        /// `partition_defaults`
        defaults ("defaults"): PartitionDefaults,
        /// `partition_count?`: 1 to 4096
        executions ("executions"): Option<i64>,
        /// `bool?`: true or false
        importing ("importing"): Option<bool>,
        /// `partition_count?`: 1 to 4096
        quotas ("quotas"): Option<i64>,
        /// `partition_count?`: 1 to 4096
        schedules ("schedules"): Option<i64>,
    }
}
wire_reply! {
    /// The reply of [`FixPartitions`].
    FixPartitionsReply {
        Partitions ("partitions") {
            budgets ("budgets"): i64,
            executions ("executions"): i64,
            quotas ("quotas"): i64,
            schedules ("schedules"): i64,
        },
    }
}
wire_call!(FixPartitions -> FixPartitionsReply, "ff_fix_partitions", read_only: false);
impl FixPartitions {
    /// The required fields only; optional ones are absent.
    #[must_use]
    pub fn new(defaults: PartitionDefaults) -> Self {
        Self { defaults, budgets: None, executions: None, importing: None, quotas: None, schedules: None }
    }
}

wire_struct! {
    /// Verifies the records of this partition against every index they belong to, a page at a time; `repair` rewrites what differs and says so. Answers the slots of quotas that running executions have, for their partitions to be asked.
    ///
    /// Calls `ff_check_executions`.
    CheckExecutions {
        /// `batch_size`: 1 to 64
        limit ("limit"): i64,
        /// `count`: 0 to 9007199254740991
        offset ("offset"): i64,
        /// `bool`: true or false
        repair ("repair"): bool,
    }
}
wire_reply! {
    /// The reply of [`CheckExecutions`].
    CheckExecutionsReply {
        Checked ("checked") {
            findings ("findings"): Vec<Finding>,
            looked ("looked"): i64,
            more ("more"): bool,
            slots ("slots"): Vec<QuotaSlot>,
        },
    }
}
wire_call!(CheckExecutions -> CheckExecutionsReply, "ff_check_executions", read_only: false, weight: limit);

wire_struct! {
    /// Verifies keys found by a scan of the store: each must belong to a record, and each index entry to its place.
    ///
    /// Calls `ff_check_keys`.
    CheckKeys {
        /// `store_keys`: list of `bytes`, at most 1024
        keys ("keys"): Vec<Bytes>,
        /// `bool`: true or false
        repair ("repair"): bool,
    }
}
wire_reply! {
    /// The reply of [`CheckKeys`].
    CheckKeysReply {
        Checked ("checked") {
            findings ("findings"): Vec<Finding>,
            foreign ("foreign"): i64,
        },
    }
}
wire_call!(CheckKeys -> CheckKeysReply, "ff_check_keys", read_only: false);

/// The function names of the library, in its order.
pub const FUNCTIONS: &[&str] = &[
    "ff_submit_execution",
    "ff_complete_execution",
    "ff_fail_execution",
    "ff_cancel_execution",
    "ff_cancel_attempt",
    "ff_delay_execution",
    "ff_yield_execution",
    "ff_update_progress",
    "ff_hold_execution",
    "ff_release_execution",
    "ff_change_execution",
    "ff_replay_execution",
    "ff_delete_execution",
    "ff_await_result",
    "ff_claim_executions",
    "ff_renew_lease",
    "ff_revoke_lease",
    "ff_drain_leases",
    "ff_issue_grants",
    "ff_consume_grant",
    "ff_keep_grant",
    "ff_release_grant",
    "ff_block_execution",
    "ff_unblock_execution",
    "ff_grant_reclaim",
    "ff_suspend_execution",
    "ff_resume_execution",
    "ff_fail_suspension",
    "ff_create_waitpoint",
    "ff_close_waitpoint",
    "ff_deliver_signal",
    "ff_reissue_token",
    "ff_list_waitpoints",
    "ff_describe_waitpoint",
    "ff_execution_waitpoints",
    "ff_append_frames",
    "ff_read_stream",
    "ff_read_summary",
    "ff_follow_stream",
    "ff_submit_flow",
    "ff_add_members",
    "ff_add_edges",
    "ff_seal_flow",
    "ff_cancel_flow",
    "ff_walk_flow",
    "ff_describe_flow",
    "ff_await_flow",
    "ff_read_flow",
    "ff_list_flows",
    "ff_spawn_children",
    "ff_wait_children",
    "ff_read_children",
    "ff_store_step",
    "ff_note_step",
    "ff_get_step",
    "ff_list_steps",
    "ff_sleep_execution",
    "ff_fork_execution",
    "ff_take_webhooks",
    "ff_note_webhook",
    "ff_describe_webhook",
    "ff_put_schedule",
    "ff_get_schedule",
    "ff_list_schedules",
    "ff_delete_schedule",
    "ff_pause_schedule",
    "ff_resume_schedule",
    "ff_trigger_schedule",
    "ff_backfill_schedule",
    "ff_stop_backfill",
    "ff_refill_schedule",
    "ff_refill_backfill",
    "ff_list_firings",
    "ff_take_firing",
    "ff_settle_firing",
    "ff_end_firing",
    "ff_note_keys",
    "ff_record_action",
    "ff_grant_access",
    "ff_find_access",
    "ff_list_access",
    "ff_revoke_access",
    "ff_set_capacity",
    "ff_admit_holders",
    "ff_confirm_holders",
    "ff_release_holders",
    "ff_list_holders",
    "ff_check_holders",
    "ff_adopt_holders",
    "ff_put_quota",
    "ff_get_quota",
    "ff_list_quotas",
    "ff_list_quota_keys",
    "ff_delete_quota",
    "ff_admit_quota",
    "ff_return_quota",
    "ff_give_up_called",
    "ff_settle_quota",
    "ff_throttle_quota",
    "ff_list_quota_waiters",
    "ff_quota_stats",
    "ff_create_budget",
    "ff_change_budget",
    "ff_get_budget",
    "ff_list_budgets",
    "ff_budget_stats",
    "ff_delete_budget",
    "ff_reset_budget",
    "ff_approve_budget",
    "ff_correct_budget",
    "ff_admit_budget",
    "ff_release_budget",
    "ff_reserve_budget",
    "ff_settle_reservation",
    "ff_release_reservation",
    "ff_apply_usage",
    "ff_set_next_reset",
    "ff_cleared_budgets",
    "ff_acknowledge_cleared",
    "ff_note_usage",
    "ff_settle_usage",
    "ff_read_usage",
    "ff_hold_budget",
    "ff_quota_holder",
    "ff_waiting_for_budgets",
    "ff_unblock_budget",
    "ff_awaiting_budget",
    "ff_missing_quotas",
    "ff_unblock_quota",
    "ff_note_scope",
    "ff_budgets_of_scopes",
    "ff_define_lane",
    "ff_get_lane",
    "ff_list_lanes",
    "ff_install_lane",
    "ff_register_worker",
    "ff_heartbeat_workers",
    "ff_deregister_worker",
    "ff_challenge_worker",
    "ff_answer_challenge",
    "ff_drain_worker",
    "ff_mark_worker_dead",
    "ff_list_workers",
    "ff_get_worker",
    "ff_offer_grant",
    "ff_heartbeat_server",
    "ff_describe_execution",
    "ff_get_attempt",
    "ff_list_executions",
    "ff_read_events",
    "ff_read_outbox",
    "ff_explain_execution",
    "ff_explain_lane",
    "ff_count_ahead",
    "ff_find_leases",
    "ff_read_signals",
    "ff_partition_stats",
    "ff_lane_depth",
    "ff_library",
    "ff_fire_due",
    "ff_next_due",
    "ff_ack_outbox",
    "ff_tally_events",
    "ff_trim_events",
    "ff_review_routes",
    "ff_fix_partitions",
    "ff_check_executions",
    "ff_check_keys",
];

/// The functions that only read, sorted.
pub const READING: &[&str] = &[
    "ff_awaiting_budget",
    "ff_budget_stats",
    "ff_budgets_of_scopes",
    "ff_check_holders",
    "ff_cleared_budgets",
    "ff_count_ahead",
    "ff_describe_execution",
    "ff_describe_flow",
    "ff_describe_waitpoint",
    "ff_describe_webhook",
    "ff_execution_waitpoints",
    "ff_explain_execution",
    "ff_explain_lane",
    "ff_find_access",
    "ff_find_leases",
    "ff_get_attempt",
    "ff_get_budget",
    "ff_get_lane",
    "ff_get_quota",
    "ff_get_schedule",
    "ff_get_step",
    "ff_get_worker",
    "ff_lane_depth",
    "ff_library",
    "ff_list_access",
    "ff_list_budgets",
    "ff_list_executions",
    "ff_list_firings",
    "ff_list_flows",
    "ff_list_holders",
    "ff_list_lanes",
    "ff_list_quota_keys",
    "ff_list_quota_waiters",
    "ff_list_quotas",
    "ff_list_schedules",
    "ff_list_steps",
    "ff_list_waitpoints",
    "ff_list_workers",
    "ff_missing_quotas",
    "ff_next_due",
    "ff_partition_stats",
    "ff_quota_holder",
    "ff_quota_stats",
    "ff_read_children",
    "ff_read_events",
    "ff_read_flow",
    "ff_read_outbox",
    "ff_read_signals",
    "ff_read_stream",
    "ff_read_summary",
    "ff_read_usage",
    "ff_take_firing",
    "ff_waiting_for_budgets",
];

/// The functions that end, free or take up work, sorted: a full store runs them too.
pub const ENDING: &[&str] = &[
    "ff_ack_outbox",
    "ff_acknowledge_cleared",
    "ff_admit_budget",
    "ff_admit_holders",
    "ff_admit_quota",
    "ff_adopt_holders",
    "ff_answer_challenge",
    "ff_apply_usage",
    "ff_approve_budget",
    "ff_await_flow",
    "ff_await_result",
    "ff_block_execution",
    "ff_cancel_attempt",
    "ff_cancel_execution",
    "ff_cancel_flow",
    "ff_challenge_worker",
    "ff_change_budget",
    "ff_change_execution",
    "ff_check_executions",
    "ff_check_keys",
    "ff_claim_executions",
    "ff_close_waitpoint",
    "ff_complete_execution",
    "ff_confirm_holders",
    "ff_consume_grant",
    "ff_correct_budget",
    "ff_create_waitpoint",
    "ff_delay_execution",
    "ff_delete_budget",
    "ff_delete_execution",
    "ff_delete_quota",
    "ff_delete_schedule",
    "ff_deliver_signal",
    "ff_deregister_worker",
    "ff_drain_leases",
    "ff_drain_worker",
    "ff_end_firing",
    "ff_fail_execution",
    "ff_fail_suspension",
    "ff_fire_due",
    "ff_fix_partitions",
    "ff_follow_stream",
    "ff_give_up_called",
    "ff_grant_reclaim",
    "ff_heartbeat_server",
    "ff_heartbeat_workers",
    "ff_hold_budget",
    "ff_hold_execution",
    "ff_install_lane",
    "ff_issue_grants",
    "ff_keep_grant",
    "ff_mark_worker_dead",
    "ff_note_keys",
    "ff_note_scope",
    "ff_note_step",
    "ff_note_usage",
    "ff_note_webhook",
    "ff_offer_grant",
    "ff_pause_schedule",
    "ff_record_action",
    "ff_register_worker",
    "ff_reissue_token",
    "ff_release_budget",
    "ff_release_execution",
    "ff_release_grant",
    "ff_release_holders",
    "ff_release_reservation",
    "ff_renew_lease",
    "ff_reset_budget",
    "ff_resume_execution",
    "ff_return_quota",
    "ff_review_routes",
    "ff_revoke_access",
    "ff_revoke_lease",
    "ff_set_capacity",
    "ff_set_next_reset",
    "ff_settle_firing",
    "ff_settle_quota",
    "ff_settle_reservation",
    "ff_settle_usage",
    "ff_sleep_execution",
    "ff_stop_backfill",
    "ff_store_step",
    "ff_suspend_execution",
    "ff_take_webhooks",
    "ff_tally_events",
    "ff_trim_events",
    "ff_unblock_budget",
    "ff_unblock_execution",
    "ff_unblock_quota",
    "ff_update_progress",
    "ff_wait_children",
    "ff_walk_flow",
    "ff_yield_execution",
];

/// The store commands the library uses; what an ACL has to allow beside FCALL.
pub const COMMANDS: &[&str] = &[
    "DEL",
    "EXISTS",
    "GET",
    "HDEL",
    "HGET",
    "HGETALL",
    "HLEN",
    "HMGET",
    "HSET",
    "INCRBY",
    "MGET",
    "MSET",
    "SET",
    "SPUBLISH",
    "TIME",
    "XADD",
    "XDEL",
    "XLEN",
    "XRANGE",
    "XREVRANGE",
    "XTRIM",
    "ZADD",
    "ZCARD",
    "ZCOUNT",
    "ZMSCORE",
    "ZRANGE",
    "ZRANK",
    "ZREM",
    "ZSCORE",
];

/// Every type of this file, for round-trip tests.
#[cfg(any(test, feature = "samples"))]
pub const SPECIMENS: &[crate::sample::Specimen] = &[
    crate::sample::Specimen::of::<RateMode>("RateMode"),
    crate::sample::Specimen::of::<QuotaPart>("QuotaPart"),
    crate::sample::Specimen::of::<HolderState>("HolderState"),
    crate::sample::Specimen::of::<WebhookResult>("WebhookResult"),
    crate::sample::Specimen::of::<WebhookState>("WebhookState"),
    crate::sample::Specimen::of::<SuspensionReason>("SuspensionReason"),
    crate::sample::Specimen::of::<TimeoutBehavior>("TimeoutBehavior"),
    crate::sample::Specimen::of::<ConditionOp>("ConditionOp"),
    crate::sample::Specimen::of::<CountOver>("CountOver"),
    crate::sample::Specimen::of::<WaitpointState>("WaitpointState"),
    crate::sample::Specimen::of::<SignalEffect>("SignalEffect"),
    crate::sample::Specimen::of::<ResumeCause>("ResumeCause"),
    crate::sample::Specimen::of::<StepKind>("StepKind"),
    crate::sample::Specimen::of::<StepState>("StepState"),
    crate::sample::Specimen::of::<EdgeOn>("EdgeOn"),
    crate::sample::Specimen::of::<EdgeState>("EdgeState"),
    crate::sample::Specimen::of::<InboundPolicy>("InboundPolicy"),
    crate::sample::Specimen::of::<OnSatisfied>("OnSatisfied"),
    crate::sample::Specimen::of::<OnMemberFailure>("OnMemberFailure"),
    crate::sample::Specimen::of::<CancelPolicy>("CancelPolicy"),
    crate::sample::Specimen::of::<ParentClose>("ParentClose"),
    crate::sample::Specimen::of::<FlowState>("FlowState"),
    crate::sample::Specimen::of::<MemberState>("MemberState"),
    crate::sample::Specimen::of::<FrameMode>("FrameMode"),
    crate::sample::Specimen::of::<BackoffType>("BackoffType"),
    crate::sample::Specimen::of::<Jitter>("Jitter"),
    crate::sample::Specimen::of::<LaneState>("LaneState"),
    crate::sample::Specimen::of::<Fairness>("Fairness"),
    crate::sample::Specimen::of::<LifecyclePhase>("LifecyclePhase"),
    crate::sample::Specimen::of::<Outcome>("Outcome"),
    crate::sample::Specimen::of::<PublicState>("PublicState"),
    crate::sample::Specimen::of::<BlockingReason>("BlockingReason"),
    crate::sample::Specimen::of::<AdmissionReason>("AdmissionReason"),
    crate::sample::Specimen::of::<ScopeType>("ScopeType"),
    crate::sample::Specimen::of::<ResetType>("ResetType"),
    crate::sample::Specimen::of::<OnSoft>("OnSoft"),
    crate::sample::Specimen::of::<OnHard>("OnHard"),
    crate::sample::Specimen::of::<BudgetRefusal>("BudgetRefusal"),
    crate::sample::Specimen::of::<UsageOutcome>("UsageOutcome"),
    crate::sample::Specimen::of::<Overlap>("Overlap"),
    crate::sample::Specimen::of::<FiringCause>("FiringCause"),
    crate::sample::Specimen::of::<FiringState>("FiringState"),
    crate::sample::Specimen::of::<AttemptType>("AttemptType"),
    crate::sample::Specimen::of::<AttemptState>("AttemptState"),
    crate::sample::Specimen::of::<RecordedAction>("RecordedAction"),
    crate::sample::Specimen::of::<WorkerState>("WorkerState"),
    crate::sample::Specimen::of::<Role>("Role"),
    crate::sample::Specimen::of::<Fence>("Fence"),
    crate::sample::Specimen::of::<Backoff>("Backoff"),
    crate::sample::Specimen::of::<Retry>("Retry"),
    crate::sample::Specimen::of::<BudgetRef>("BudgetRef"),
    crate::sample::Specimen::of::<QuotaRef>("QuotaRef"),
    crate::sample::Specimen::of::<StreamOptions>("StreamOptions"),
    crate::sample::Specimen::of::<Submission>("Submission"),
    crate::sample::Specimen::of::<Fired>("Fired"),
    crate::sample::Specimen::of::<ScheduleEvery>("ScheduleEvery"),
    crate::sample::Specimen::of::<NewSchedule>("NewSchedule"),
    crate::sample::Specimen::of::<Firing>("Firing"),
    crate::sample::Specimen::of::<MissedTimes>("MissedTimes"),
    crate::sample::Specimen::of::<SchedulePause>("SchedulePause"),
    crate::sample::Specimen::of::<Backfill>("Backfill"),
    crate::sample::Specimen::of::<Schedule>("Schedule"),
    crate::sample::Specimen::of::<SchedulePosition>("SchedulePosition"),
    crate::sample::Specimen::of::<Submitted>("Submitted"),
    crate::sample::Specimen::of::<Token>("Token"),
    crate::sample::Specimen::of::<NewWaitpoint>("NewWaitpoint"),
    crate::sample::Specimen::of::<ConditionNode>("ConditionNode"),
    crate::sample::Specimen::of::<ConditionProgress>("ConditionProgress"),
    crate::sample::Specimen::of::<Signal>("Signal"),
    crate::sample::Specimen::of::<Resume>("Resume"),
    crate::sample::Specimen::of::<Step>("Step"),
    crate::sample::Specimen::of::<PassedValue>("PassedValue"),
    crate::sample::Specimen::of::<Inbound>("Inbound"),
    crate::sample::Specimen::of::<NewMember>("NewMember"),
    crate::sample::Specimen::of::<NewEdge>("NewEdge"),
    crate::sample::Specimen::of::<NewFlow>("NewFlow"),
    crate::sample::Specimen::of::<AddedMember>("AddedMember"),
    crate::sample::Specimen::of::<Member>("Member"),
    crate::sample::Specimen::of::<Edge>("Edge"),
    crate::sample::Specimen::of::<FlowStop>("FlowStop"),
    crate::sample::Specimen::of::<Flow>("Flow"),
    crate::sample::Specimen::of::<FlowPosition>("FlowPosition"),
    crate::sample::Specimen::of::<GraphPosition>("GraphPosition"),
    crate::sample::Specimen::of::<NewChild>("NewChild"),
    crate::sample::Specimen::of::<Child>("Child"),
    crate::sample::Specimen::of::<Upstream>("Upstream"),
    crate::sample::Specimen::of::<DependencyFacts>("DependencyFacts"),
    crate::sample::Specimen::of::<ChildrenFacts>("ChildrenFacts"),
    crate::sample::Specimen::of::<OpenWaitpoint>("OpenWaitpoint"),
    crate::sample::Specimen::of::<ApproverState>("ApproverState"),
    crate::sample::Specimen::of::<Waitpoint>("Waitpoint"),
    crate::sample::Specimen::of::<Suspension>("Suspension"),
    crate::sample::Specimen::of::<PastSuspension>("PastSuspension"),
    crate::sample::Specimen::of::<NewFrame>("NewFrame"),
    crate::sample::Specimen::of::<Frame>("Frame"),
    crate::sample::Specimen::of::<NewSummary>("NewSummary"),
    crate::sample::Specimen::of::<Grant>("Grant"),
    crate::sample::Specimen::of::<Holder>("Holder"),
    crate::sample::Specimen::of::<Candidate>("Candidate"),
    crate::sample::Specimen::of::<QuotaRate>("QuotaRate"),
    crate::sample::Specimen::of::<QuotaWeights>("QuotaWeights"),
    crate::sample::Specimen::of::<Quota>("Quota"),
    crate::sample::Specimen::of::<QuotaEntry>("QuotaEntry"),
    crate::sample::Specimen::of::<QuotaCandidate>("QuotaCandidate"),
    crate::sample::Specimen::of::<QuotaAnswer>("QuotaAnswer"),
    crate::sample::Specimen::of::<QuotaReturn>("QuotaReturn"),
    crate::sample::Specimen::of::<QuotaAbsence>("QuotaAbsence"),
    crate::sample::Specimen::of::<QuotaUse>("QuotaUse"),
    crate::sample::Specimen::of::<QuotaKeyState>("QuotaKeyState"),
    crate::sample::Specimen::of::<QuotaKeyUse>("QuotaKeyUse"),
    crate::sample::Specimen::of::<QuotaPosition>("QuotaPosition"),
    crate::sample::Specimen::of::<QuotaSlot>("QuotaSlot"),
    crate::sample::Specimen::of::<HeldSlot>("HeldSlot"),
    crate::sample::Specimen::of::<QueuePosition>("QueuePosition"),
    crate::sample::Specimen::of::<DimensionLimit>("DimensionLimit"),
    crate::sample::Specimen::of::<BudgetScope>("BudgetScope"),
    crate::sample::Specimen::of::<BudgetReset>("BudgetReset"),
    crate::sample::Specimen::of::<NewBudget>("NewBudget"),
    crate::sample::Specimen::of::<DimensionStatus>("DimensionStatus"),
    crate::sample::Specimen::of::<BudgetAction>("BudgetAction"),
    crate::sample::Specimen::of::<BudgetPeriod>("BudgetPeriod"),
    crate::sample::Specimen::of::<Budget>("Budget"),
    crate::sample::Specimen::of::<BudgetCandidate>("BudgetCandidate"),
    crate::sample::Specimen::of::<BudgetVerdict>("BudgetVerdict"),
    crate::sample::Specimen::of::<BudgetHolder>("BudgetHolder"),
    crate::sample::Specimen::of::<UsageReport>("UsageReport"),
    crate::sample::Specimen::of::<PendingUsage>("PendingUsage"),
    crate::sample::Specimen::of::<UsageBreach>("UsageBreach"),
    crate::sample::Specimen::of::<LedgerLine>("LedgerLine"),
    crate::sample::Specimen::of::<Usage>("Usage"),
    crate::sample::Specimen::of::<BlockedPosition>("BlockedPosition"),
    crate::sample::Specimen::of::<AwaitsPosition>("AwaitsPosition"),
    crate::sample::Specimen::of::<Awaiting>("Awaiting"),
    crate::sample::Specimen::of::<QuotaWaiter>("QuotaWaiter"),
    crate::sample::Specimen::of::<AwaitedBudget>("AwaitedBudget"),
    crate::sample::Specimen::of::<ScopeBudgets>("ScopeBudgets"),
    crate::sample::Specimen::of::<ClearedBudget>("ClearedBudget"),
    crate::sample::Specimen::of::<BudgetPosition>("BudgetPosition"),
    crate::sample::Specimen::of::<Failure>("Failure"),
    crate::sample::Specimen::of::<Attempt>("Attempt"),
    crate::sample::Specimen::of::<Lease>("Lease"),
    crate::sample::Specimen::of::<HeldLease>("HeldLease"),
    crate::sample::Specimen::of::<Progress>("Progress"),
    crate::sample::Specimen::of::<OperatorAction>("OperatorAction"),
    crate::sample::Specimen::of::<Execution>("Execution"),
    crate::sample::Specimen::of::<WaitpointPosition>("WaitpointPosition"),
    crate::sample::Specimen::of::<Position>("Position"),
    crate::sample::Specimen::of::<LaneDefinition>("LaneDefinition"),
    crate::sample::Specimen::of::<LaneEntry>("LaneEntry"),
    crate::sample::Specimen::of::<Worker>("Worker"),
    crate::sample::Specimen::of::<WorkerClass>("WorkerClass"),
    crate::sample::Specimen::of::<Access>("Access"),
    crate::sample::Specimen::of::<HeartbeatResult>("HeartbeatResult"),
    crate::sample::Specimen::of::<Server>("Server"),
    crate::sample::Specimen::of::<QueueFacts>("QueueFacts"),
    crate::sample::Specimen::of::<LaneCounts>("LaneCounts"),
    crate::sample::Specimen::of::<LaneWaiter>("LaneWaiter"),
    crate::sample::Specimen::of::<EventEntry>("EventEntry"),
    crate::sample::Specimen::of::<TallyLine>("TallyLine"),
    crate::sample::Specimen::of::<OnHand>("OnHand"),
    crate::sample::Specimen::of::<QuotaStanding>("QuotaStanding"),
    crate::sample::Specimen::of::<Effect>("Effect"),
    crate::sample::Specimen::of::<Webhook>("Webhook"),
    crate::sample::Specimen::of::<WebhookStatus>("WebhookStatus"),
    crate::sample::Specimen::of::<PartitionDefaults>("PartitionDefaults"),
    crate::sample::Specimen::of::<Finding>("Finding"),
    crate::sample::Specimen::of::<SubmitExecution>("SubmitExecution"),
    crate::sample::Specimen::of::<SubmitExecutionReply>("SubmitExecutionReply"),
    crate::sample::Specimen::of::<CompleteExecution>("CompleteExecution"),
    crate::sample::Specimen::of::<CompleteExecutionReply>("CompleteExecutionReply"),
    crate::sample::Specimen::of::<FailExecution>("FailExecution"),
    crate::sample::Specimen::of::<FailExecutionReply>("FailExecutionReply"),
    crate::sample::Specimen::of::<CancelExecution>("CancelExecution"),
    crate::sample::Specimen::of::<CancelExecutionReply>("CancelExecutionReply"),
    crate::sample::Specimen::of::<CancelAttempt>("CancelAttempt"),
    crate::sample::Specimen::of::<CancelAttemptReply>("CancelAttemptReply"),
    crate::sample::Specimen::of::<DelayExecution>("DelayExecution"),
    crate::sample::Specimen::of::<DelayExecutionReply>("DelayExecutionReply"),
    crate::sample::Specimen::of::<YieldExecution>("YieldExecution"),
    crate::sample::Specimen::of::<YieldExecutionReply>("YieldExecutionReply"),
    crate::sample::Specimen::of::<UpdateProgress>("UpdateProgress"),
    crate::sample::Specimen::of::<UpdateProgressReply>("UpdateProgressReply"),
    crate::sample::Specimen::of::<HoldExecution>("HoldExecution"),
    crate::sample::Specimen::of::<HoldExecutionReply>("HoldExecutionReply"),
    crate::sample::Specimen::of::<ReleaseExecution>("ReleaseExecution"),
    crate::sample::Specimen::of::<ReleaseExecutionReply>("ReleaseExecutionReply"),
    crate::sample::Specimen::of::<ChangeExecution>("ChangeExecution"),
    crate::sample::Specimen::of::<ChangeExecutionReply>("ChangeExecutionReply"),
    crate::sample::Specimen::of::<ReplayExecution>("ReplayExecution"),
    crate::sample::Specimen::of::<ReplayExecutionReply>("ReplayExecutionReply"),
    crate::sample::Specimen::of::<DeleteExecution>("DeleteExecution"),
    crate::sample::Specimen::of::<DeleteExecutionReply>("DeleteExecutionReply"),
    crate::sample::Specimen::of::<AwaitResult>("AwaitResult"),
    crate::sample::Specimen::of::<AwaitResultReply>("AwaitResultReply"),
    crate::sample::Specimen::of::<ClaimExecutions>("ClaimExecutions"),
    crate::sample::Specimen::of::<ClaimExecutionsReply>("ClaimExecutionsReply"),
    crate::sample::Specimen::of::<RenewLease>("RenewLease"),
    crate::sample::Specimen::of::<RenewLeaseReply>("RenewLeaseReply"),
    crate::sample::Specimen::of::<RevokeLease>("RevokeLease"),
    crate::sample::Specimen::of::<RevokeLeaseReply>("RevokeLeaseReply"),
    crate::sample::Specimen::of::<DrainLeases>("DrainLeases"),
    crate::sample::Specimen::of::<DrainLeasesReply>("DrainLeasesReply"),
    crate::sample::Specimen::of::<IssueGrants>("IssueGrants"),
    crate::sample::Specimen::of::<IssueGrantsReply>("IssueGrantsReply"),
    crate::sample::Specimen::of::<ConsumeGrant>("ConsumeGrant"),
    crate::sample::Specimen::of::<ConsumeGrantReply>("ConsumeGrantReply"),
    crate::sample::Specimen::of::<KeepGrant>("KeepGrant"),
    crate::sample::Specimen::of::<KeepGrantReply>("KeepGrantReply"),
    crate::sample::Specimen::of::<ReleaseGrant>("ReleaseGrant"),
    crate::sample::Specimen::of::<ReleaseGrantReply>("ReleaseGrantReply"),
    crate::sample::Specimen::of::<BlockExecution>("BlockExecution"),
    crate::sample::Specimen::of::<BlockExecutionReply>("BlockExecutionReply"),
    crate::sample::Specimen::of::<UnblockExecution>("UnblockExecution"),
    crate::sample::Specimen::of::<UnblockExecutionReply>("UnblockExecutionReply"),
    crate::sample::Specimen::of::<GrantReclaim>("GrantReclaim"),
    crate::sample::Specimen::of::<GrantReclaimReply>("GrantReclaimReply"),
    crate::sample::Specimen::of::<SuspendExecution>("SuspendExecution"),
    crate::sample::Specimen::of::<SuspendExecutionReply>("SuspendExecutionReply"),
    crate::sample::Specimen::of::<ResumeExecution>("ResumeExecution"),
    crate::sample::Specimen::of::<ResumeExecutionReply>("ResumeExecutionReply"),
    crate::sample::Specimen::of::<FailSuspension>("FailSuspension"),
    crate::sample::Specimen::of::<FailSuspensionReply>("FailSuspensionReply"),
    crate::sample::Specimen::of::<CreateWaitpoint>("CreateWaitpoint"),
    crate::sample::Specimen::of::<CreateWaitpointReply>("CreateWaitpointReply"),
    crate::sample::Specimen::of::<CloseWaitpoint>("CloseWaitpoint"),
    crate::sample::Specimen::of::<CloseWaitpointReply>("CloseWaitpointReply"),
    crate::sample::Specimen::of::<DeliverSignal>("DeliverSignal"),
    crate::sample::Specimen::of::<DeliverSignalReply>("DeliverSignalReply"),
    crate::sample::Specimen::of::<ReissueToken>("ReissueToken"),
    crate::sample::Specimen::of::<ReissueTokenReply>("ReissueTokenReply"),
    crate::sample::Specimen::of::<ListWaitpoints>("ListWaitpoints"),
    crate::sample::Specimen::of::<ListWaitpointsReply>("ListWaitpointsReply"),
    crate::sample::Specimen::of::<DescribeWaitpoint>("DescribeWaitpoint"),
    crate::sample::Specimen::of::<DescribeWaitpointReply>("DescribeWaitpointReply"),
    crate::sample::Specimen::of::<ExecutionWaitpoints>("ExecutionWaitpoints"),
    crate::sample::Specimen::of::<ExecutionWaitpointsReply>("ExecutionWaitpointsReply"),
    crate::sample::Specimen::of::<AppendFrames>("AppendFrames"),
    crate::sample::Specimen::of::<AppendFramesReply>("AppendFramesReply"),
    crate::sample::Specimen::of::<ReadStream>("ReadStream"),
    crate::sample::Specimen::of::<ReadStreamReply>("ReadStreamReply"),
    crate::sample::Specimen::of::<ReadSummary>("ReadSummary"),
    crate::sample::Specimen::of::<ReadSummaryReply>("ReadSummaryReply"),
    crate::sample::Specimen::of::<FollowStream>("FollowStream"),
    crate::sample::Specimen::of::<FollowStreamReply>("FollowStreamReply"),
    crate::sample::Specimen::of::<SubmitFlow>("SubmitFlow"),
    crate::sample::Specimen::of::<SubmitFlowReply>("SubmitFlowReply"),
    crate::sample::Specimen::of::<AddMembers>("AddMembers"),
    crate::sample::Specimen::of::<AddMembersReply>("AddMembersReply"),
    crate::sample::Specimen::of::<AddEdges>("AddEdges"),
    crate::sample::Specimen::of::<AddEdgesReply>("AddEdgesReply"),
    crate::sample::Specimen::of::<SealFlow>("SealFlow"),
    crate::sample::Specimen::of::<SealFlowReply>("SealFlowReply"),
    crate::sample::Specimen::of::<CancelFlow>("CancelFlow"),
    crate::sample::Specimen::of::<CancelFlowReply>("CancelFlowReply"),
    crate::sample::Specimen::of::<WalkFlow>("WalkFlow"),
    crate::sample::Specimen::of::<WalkFlowReply>("WalkFlowReply"),
    crate::sample::Specimen::of::<DescribeFlow>("DescribeFlow"),
    crate::sample::Specimen::of::<DescribeFlowReply>("DescribeFlowReply"),
    crate::sample::Specimen::of::<AwaitFlow>("AwaitFlow"),
    crate::sample::Specimen::of::<AwaitFlowReply>("AwaitFlowReply"),
    crate::sample::Specimen::of::<ReadFlow>("ReadFlow"),
    crate::sample::Specimen::of::<ReadFlowReply>("ReadFlowReply"),
    crate::sample::Specimen::of::<ListFlows>("ListFlows"),
    crate::sample::Specimen::of::<ListFlowsReply>("ListFlowsReply"),
    crate::sample::Specimen::of::<SpawnChildren>("SpawnChildren"),
    crate::sample::Specimen::of::<SpawnChildrenReply>("SpawnChildrenReply"),
    crate::sample::Specimen::of::<WaitChildren>("WaitChildren"),
    crate::sample::Specimen::of::<WaitChildrenReply>("WaitChildrenReply"),
    crate::sample::Specimen::of::<ReadChildren>("ReadChildren"),
    crate::sample::Specimen::of::<ReadChildrenReply>("ReadChildrenReply"),
    crate::sample::Specimen::of::<StoreStep>("StoreStep"),
    crate::sample::Specimen::of::<StoreStepReply>("StoreStepReply"),
    crate::sample::Specimen::of::<NoteStep>("NoteStep"),
    crate::sample::Specimen::of::<NoteStepReply>("NoteStepReply"),
    crate::sample::Specimen::of::<GetStep>("GetStep"),
    crate::sample::Specimen::of::<GetStepReply>("GetStepReply"),
    crate::sample::Specimen::of::<ListSteps>("ListSteps"),
    crate::sample::Specimen::of::<ListStepsReply>("ListStepsReply"),
    crate::sample::Specimen::of::<SleepExecution>("SleepExecution"),
    crate::sample::Specimen::of::<SleepExecutionReply>("SleepExecutionReply"),
    crate::sample::Specimen::of::<ForkExecution>("ForkExecution"),
    crate::sample::Specimen::of::<ForkExecutionReply>("ForkExecutionReply"),
    crate::sample::Specimen::of::<TakeWebhooks>("TakeWebhooks"),
    crate::sample::Specimen::of::<TakeWebhooksReply>("TakeWebhooksReply"),
    crate::sample::Specimen::of::<NoteWebhook>("NoteWebhook"),
    crate::sample::Specimen::of::<NoteWebhookReply>("NoteWebhookReply"),
    crate::sample::Specimen::of::<DescribeWebhook>("DescribeWebhook"),
    crate::sample::Specimen::of::<DescribeWebhookReply>("DescribeWebhookReply"),
    crate::sample::Specimen::of::<PutSchedule>("PutSchedule"),
    crate::sample::Specimen::of::<PutScheduleReply>("PutScheduleReply"),
    crate::sample::Specimen::of::<GetSchedule>("GetSchedule"),
    crate::sample::Specimen::of::<GetScheduleReply>("GetScheduleReply"),
    crate::sample::Specimen::of::<ListSchedules>("ListSchedules"),
    crate::sample::Specimen::of::<ListSchedulesReply>("ListSchedulesReply"),
    crate::sample::Specimen::of::<DeleteSchedule>("DeleteSchedule"),
    crate::sample::Specimen::of::<DeleteScheduleReply>("DeleteScheduleReply"),
    crate::sample::Specimen::of::<PauseSchedule>("PauseSchedule"),
    crate::sample::Specimen::of::<PauseScheduleReply>("PauseScheduleReply"),
    crate::sample::Specimen::of::<ResumeSchedule>("ResumeSchedule"),
    crate::sample::Specimen::of::<ResumeScheduleReply>("ResumeScheduleReply"),
    crate::sample::Specimen::of::<TriggerSchedule>("TriggerSchedule"),
    crate::sample::Specimen::of::<TriggerScheduleReply>("TriggerScheduleReply"),
    crate::sample::Specimen::of::<BackfillSchedule>("BackfillSchedule"),
    crate::sample::Specimen::of::<BackfillScheduleReply>("BackfillScheduleReply"),
    crate::sample::Specimen::of::<StopBackfill>("StopBackfill"),
    crate::sample::Specimen::of::<StopBackfillReply>("StopBackfillReply"),
    crate::sample::Specimen::of::<RefillSchedule>("RefillSchedule"),
    crate::sample::Specimen::of::<RefillScheduleReply>("RefillScheduleReply"),
    crate::sample::Specimen::of::<RefillBackfill>("RefillBackfill"),
    crate::sample::Specimen::of::<RefillBackfillReply>("RefillBackfillReply"),
    crate::sample::Specimen::of::<ListFirings>("ListFirings"),
    crate::sample::Specimen::of::<ListFiringsReply>("ListFiringsReply"),
    crate::sample::Specimen::of::<TakeFiring>("TakeFiring"),
    crate::sample::Specimen::of::<TakeFiringReply>("TakeFiringReply"),
    crate::sample::Specimen::of::<SettleFiring>("SettleFiring"),
    crate::sample::Specimen::of::<SettleFiringReply>("SettleFiringReply"),
    crate::sample::Specimen::of::<EndFiring>("EndFiring"),
    crate::sample::Specimen::of::<EndFiringReply>("EndFiringReply"),
    crate::sample::Specimen::of::<NoteKeys>("NoteKeys"),
    crate::sample::Specimen::of::<NoteKeysReply>("NoteKeysReply"),
    crate::sample::Specimen::of::<RecordAction>("RecordAction"),
    crate::sample::Specimen::of::<RecordActionReply>("RecordActionReply"),
    crate::sample::Specimen::of::<GrantAccess>("GrantAccess"),
    crate::sample::Specimen::of::<GrantAccessReply>("GrantAccessReply"),
    crate::sample::Specimen::of::<FindAccess>("FindAccess"),
    crate::sample::Specimen::of::<FindAccessReply>("FindAccessReply"),
    crate::sample::Specimen::of::<ListAccess>("ListAccess"),
    crate::sample::Specimen::of::<ListAccessReply>("ListAccessReply"),
    crate::sample::Specimen::of::<RevokeAccess>("RevokeAccess"),
    crate::sample::Specimen::of::<RevokeAccessReply>("RevokeAccessReply"),
    crate::sample::Specimen::of::<SetCapacity>("SetCapacity"),
    crate::sample::Specimen::of::<SetCapacityReply>("SetCapacityReply"),
    crate::sample::Specimen::of::<AdmitHolders>("AdmitHolders"),
    crate::sample::Specimen::of::<AdmitHoldersReply>("AdmitHoldersReply"),
    crate::sample::Specimen::of::<ConfirmHolders>("ConfirmHolders"),
    crate::sample::Specimen::of::<ConfirmHoldersReply>("ConfirmHoldersReply"),
    crate::sample::Specimen::of::<ReleaseHolders>("ReleaseHolders"),
    crate::sample::Specimen::of::<ReleaseHoldersReply>("ReleaseHoldersReply"),
    crate::sample::Specimen::of::<ListHolders>("ListHolders"),
    crate::sample::Specimen::of::<ListHoldersReply>("ListHoldersReply"),
    crate::sample::Specimen::of::<CheckHolders>("CheckHolders"),
    crate::sample::Specimen::of::<CheckHoldersReply>("CheckHoldersReply"),
    crate::sample::Specimen::of::<AdoptHolders>("AdoptHolders"),
    crate::sample::Specimen::of::<AdoptHoldersReply>("AdoptHoldersReply"),
    crate::sample::Specimen::of::<PutQuota>("PutQuota"),
    crate::sample::Specimen::of::<PutQuotaReply>("PutQuotaReply"),
    crate::sample::Specimen::of::<GetQuota>("GetQuota"),
    crate::sample::Specimen::of::<GetQuotaReply>("GetQuotaReply"),
    crate::sample::Specimen::of::<ListQuotas>("ListQuotas"),
    crate::sample::Specimen::of::<ListQuotasReply>("ListQuotasReply"),
    crate::sample::Specimen::of::<ListQuotaKeys>("ListQuotaKeys"),
    crate::sample::Specimen::of::<ListQuotaKeysReply>("ListQuotaKeysReply"),
    crate::sample::Specimen::of::<DeleteQuota>("DeleteQuota"),
    crate::sample::Specimen::of::<DeleteQuotaReply>("DeleteQuotaReply"),
    crate::sample::Specimen::of::<AdmitQuota>("AdmitQuota"),
    crate::sample::Specimen::of::<AdmitQuotaReply>("AdmitQuotaReply"),
    crate::sample::Specimen::of::<ReturnQuota>("ReturnQuota"),
    crate::sample::Specimen::of::<ReturnQuotaReply>("ReturnQuotaReply"),
    crate::sample::Specimen::of::<GiveUpCalled>("GiveUpCalled"),
    crate::sample::Specimen::of::<GiveUpCalledReply>("GiveUpCalledReply"),
    crate::sample::Specimen::of::<SettleQuota>("SettleQuota"),
    crate::sample::Specimen::of::<SettleQuotaReply>("SettleQuotaReply"),
    crate::sample::Specimen::of::<ThrottleQuota>("ThrottleQuota"),
    crate::sample::Specimen::of::<ThrottleQuotaReply>("ThrottleQuotaReply"),
    crate::sample::Specimen::of::<ListQuotaWaiters>("ListQuotaWaiters"),
    crate::sample::Specimen::of::<ListQuotaWaitersReply>("ListQuotaWaitersReply"),
    crate::sample::Specimen::of::<QuotaStats>("QuotaStats"),
    crate::sample::Specimen::of::<QuotaStatsReply>("QuotaStatsReply"),
    crate::sample::Specimen::of::<CreateBudget>("CreateBudget"),
    crate::sample::Specimen::of::<CreateBudgetReply>("CreateBudgetReply"),
    crate::sample::Specimen::of::<ChangeBudget>("ChangeBudget"),
    crate::sample::Specimen::of::<ChangeBudgetReply>("ChangeBudgetReply"),
    crate::sample::Specimen::of::<GetBudget>("GetBudget"),
    crate::sample::Specimen::of::<GetBudgetReply>("GetBudgetReply"),
    crate::sample::Specimen::of::<ListBudgets>("ListBudgets"),
    crate::sample::Specimen::of::<ListBudgetsReply>("ListBudgetsReply"),
    crate::sample::Specimen::of::<BudgetStats>("BudgetStats"),
    crate::sample::Specimen::of::<BudgetStatsReply>("BudgetStatsReply"),
    crate::sample::Specimen::of::<DeleteBudget>("DeleteBudget"),
    crate::sample::Specimen::of::<DeleteBudgetReply>("DeleteBudgetReply"),
    crate::sample::Specimen::of::<ResetBudget>("ResetBudget"),
    crate::sample::Specimen::of::<ResetBudgetReply>("ResetBudgetReply"),
    crate::sample::Specimen::of::<ApproveBudget>("ApproveBudget"),
    crate::sample::Specimen::of::<ApproveBudgetReply>("ApproveBudgetReply"),
    crate::sample::Specimen::of::<CorrectBudget>("CorrectBudget"),
    crate::sample::Specimen::of::<CorrectBudgetReply>("CorrectBudgetReply"),
    crate::sample::Specimen::of::<AdmitBudget>("AdmitBudget"),
    crate::sample::Specimen::of::<AdmitBudgetReply>("AdmitBudgetReply"),
    crate::sample::Specimen::of::<ReleaseBudget>("ReleaseBudget"),
    crate::sample::Specimen::of::<ReleaseBudgetReply>("ReleaseBudgetReply"),
    crate::sample::Specimen::of::<ReserveBudget>("ReserveBudget"),
    crate::sample::Specimen::of::<ReserveBudgetReply>("ReserveBudgetReply"),
    crate::sample::Specimen::of::<SettleReservation>("SettleReservation"),
    crate::sample::Specimen::of::<SettleReservationReply>("SettleReservationReply"),
    crate::sample::Specimen::of::<ReleaseReservation>("ReleaseReservation"),
    crate::sample::Specimen::of::<ReleaseReservationReply>("ReleaseReservationReply"),
    crate::sample::Specimen::of::<ApplyUsage>("ApplyUsage"),
    crate::sample::Specimen::of::<ApplyUsageReply>("ApplyUsageReply"),
    crate::sample::Specimen::of::<SetNextReset>("SetNextReset"),
    crate::sample::Specimen::of::<SetNextResetReply>("SetNextResetReply"),
    crate::sample::Specimen::of::<ClearedBudgets>("ClearedBudgets"),
    crate::sample::Specimen::of::<ClearedBudgetsReply>("ClearedBudgetsReply"),
    crate::sample::Specimen::of::<AcknowledgeCleared>("AcknowledgeCleared"),
    crate::sample::Specimen::of::<AcknowledgeClearedReply>("AcknowledgeClearedReply"),
    crate::sample::Specimen::of::<NoteUsage>("NoteUsage"),
    crate::sample::Specimen::of::<NoteUsageReply>("NoteUsageReply"),
    crate::sample::Specimen::of::<SettleUsage>("SettleUsage"),
    crate::sample::Specimen::of::<SettleUsageReply>("SettleUsageReply"),
    crate::sample::Specimen::of::<ReadUsage>("ReadUsage"),
    crate::sample::Specimen::of::<ReadUsageReply>("ReadUsageReply"),
    crate::sample::Specimen::of::<HoldBudget>("HoldBudget"),
    crate::sample::Specimen::of::<HoldBudgetReply>("HoldBudgetReply"),
    crate::sample::Specimen::of::<QuotaHolder>("QuotaHolder"),
    crate::sample::Specimen::of::<QuotaHolderReply>("QuotaHolderReply"),
    crate::sample::Specimen::of::<WaitingForBudgets>("WaitingForBudgets"),
    crate::sample::Specimen::of::<WaitingForBudgetsReply>("WaitingForBudgetsReply"),
    crate::sample::Specimen::of::<UnblockBudget>("UnblockBudget"),
    crate::sample::Specimen::of::<UnblockBudgetReply>("UnblockBudgetReply"),
    crate::sample::Specimen::of::<AwaitingBudget>("AwaitingBudget"),
    crate::sample::Specimen::of::<AwaitingBudgetReply>("AwaitingBudgetReply"),
    crate::sample::Specimen::of::<MissingQuotas>("MissingQuotas"),
    crate::sample::Specimen::of::<MissingQuotasReply>("MissingQuotasReply"),
    crate::sample::Specimen::of::<UnblockQuota>("UnblockQuota"),
    crate::sample::Specimen::of::<UnblockQuotaReply>("UnblockQuotaReply"),
    crate::sample::Specimen::of::<NoteScope>("NoteScope"),
    crate::sample::Specimen::of::<NoteScopeReply>("NoteScopeReply"),
    crate::sample::Specimen::of::<BudgetsOfScopes>("BudgetsOfScopes"),
    crate::sample::Specimen::of::<BudgetsOfScopesReply>("BudgetsOfScopesReply"),
    crate::sample::Specimen::of::<DefineLane>("DefineLane"),
    crate::sample::Specimen::of::<DefineLaneReply>("DefineLaneReply"),
    crate::sample::Specimen::of::<GetLane>("GetLane"),
    crate::sample::Specimen::of::<GetLaneReply>("GetLaneReply"),
    crate::sample::Specimen::of::<ListLanes>("ListLanes"),
    crate::sample::Specimen::of::<ListLanesReply>("ListLanesReply"),
    crate::sample::Specimen::of::<InstallLane>("InstallLane"),
    crate::sample::Specimen::of::<InstallLaneReply>("InstallLaneReply"),
    crate::sample::Specimen::of::<RegisterWorker>("RegisterWorker"),
    crate::sample::Specimen::of::<RegisterWorkerReply>("RegisterWorkerReply"),
    crate::sample::Specimen::of::<HeartbeatWorkers>("HeartbeatWorkers"),
    crate::sample::Specimen::of::<HeartbeatWorkersReply>("HeartbeatWorkersReply"),
    crate::sample::Specimen::of::<DeregisterWorker>("DeregisterWorker"),
    crate::sample::Specimen::of::<DeregisterWorkerReply>("DeregisterWorkerReply"),
    crate::sample::Specimen::of::<ChallengeWorker>("ChallengeWorker"),
    crate::sample::Specimen::of::<ChallengeWorkerReply>("ChallengeWorkerReply"),
    crate::sample::Specimen::of::<AnswerChallenge>("AnswerChallenge"),
    crate::sample::Specimen::of::<AnswerChallengeReply>("AnswerChallengeReply"),
    crate::sample::Specimen::of::<DrainWorker>("DrainWorker"),
    crate::sample::Specimen::of::<DrainWorkerReply>("DrainWorkerReply"),
    crate::sample::Specimen::of::<MarkWorkerDead>("MarkWorkerDead"),
    crate::sample::Specimen::of::<MarkWorkerDeadReply>("MarkWorkerDeadReply"),
    crate::sample::Specimen::of::<ListWorkers>("ListWorkers"),
    crate::sample::Specimen::of::<ListWorkersReply>("ListWorkersReply"),
    crate::sample::Specimen::of::<GetWorker>("GetWorker"),
    crate::sample::Specimen::of::<GetWorkerReply>("GetWorkerReply"),
    crate::sample::Specimen::of::<OfferGrant>("OfferGrant"),
    crate::sample::Specimen::of::<OfferGrantReply>("OfferGrantReply"),
    crate::sample::Specimen::of::<HeartbeatServer>("HeartbeatServer"),
    crate::sample::Specimen::of::<HeartbeatServerReply>("HeartbeatServerReply"),
    crate::sample::Specimen::of::<DescribeExecution>("DescribeExecution"),
    crate::sample::Specimen::of::<DescribeExecutionReply>("DescribeExecutionReply"),
    crate::sample::Specimen::of::<GetAttempt>("GetAttempt"),
    crate::sample::Specimen::of::<GetAttemptReply>("GetAttemptReply"),
    crate::sample::Specimen::of::<ListExecutions>("ListExecutions"),
    crate::sample::Specimen::of::<ListExecutionsReply>("ListExecutionsReply"),
    crate::sample::Specimen::of::<ReadEvents>("ReadEvents"),
    crate::sample::Specimen::of::<ReadEventsReply>("ReadEventsReply"),
    crate::sample::Specimen::of::<ReadOutbox>("ReadOutbox"),
    crate::sample::Specimen::of::<ReadOutboxReply>("ReadOutboxReply"),
    crate::sample::Specimen::of::<ExplainExecution>("ExplainExecution"),
    crate::sample::Specimen::of::<ExplainExecutionReply>("ExplainExecutionReply"),
    crate::sample::Specimen::of::<ExplainLane>("ExplainLane"),
    crate::sample::Specimen::of::<ExplainLaneReply>("ExplainLaneReply"),
    crate::sample::Specimen::of::<CountAhead>("CountAhead"),
    crate::sample::Specimen::of::<CountAheadReply>("CountAheadReply"),
    crate::sample::Specimen::of::<FindLeases>("FindLeases"),
    crate::sample::Specimen::of::<FindLeasesReply>("FindLeasesReply"),
    crate::sample::Specimen::of::<ReadSignals>("ReadSignals"),
    crate::sample::Specimen::of::<ReadSignalsReply>("ReadSignalsReply"),
    crate::sample::Specimen::of::<PartitionStats>("PartitionStats"),
    crate::sample::Specimen::of::<PartitionStatsReply>("PartitionStatsReply"),
    crate::sample::Specimen::of::<LaneDepth>("LaneDepth"),
    crate::sample::Specimen::of::<LaneDepthReply>("LaneDepthReply"),
    crate::sample::Specimen::of::<Library>("Library"),
    crate::sample::Specimen::of::<LibraryReply>("LibraryReply"),
    crate::sample::Specimen::of::<FireDue>("FireDue"),
    crate::sample::Specimen::of::<FireDueReply>("FireDueReply"),
    crate::sample::Specimen::of::<NextDue>("NextDue"),
    crate::sample::Specimen::of::<NextDueReply>("NextDueReply"),
    crate::sample::Specimen::of::<AckOutbox>("AckOutbox"),
    crate::sample::Specimen::of::<AckOutboxReply>("AckOutboxReply"),
    crate::sample::Specimen::of::<TallyEvents>("TallyEvents"),
    crate::sample::Specimen::of::<TallyEventsReply>("TallyEventsReply"),
    crate::sample::Specimen::of::<TrimEvents>("TrimEvents"),
    crate::sample::Specimen::of::<TrimEventsReply>("TrimEventsReply"),
    crate::sample::Specimen::of::<ReviewRoutes>("ReviewRoutes"),
    crate::sample::Specimen::of::<ReviewRoutesReply>("ReviewRoutesReply"),
    crate::sample::Specimen::of::<FixPartitions>("FixPartitions"),
    crate::sample::Specimen::of::<FixPartitionsReply>("FixPartitionsReply"),
    crate::sample::Specimen::of::<CheckExecutions>("CheckExecutions"),
    crate::sample::Specimen::of::<CheckExecutionsReply>("CheckExecutionsReply"),
    crate::sample::Specimen::of::<CheckKeys>("CheckKeys"),
    crate::sample::Specimen::of::<CheckKeysReply>("CheckKeysReply"),
];

wire_record! {
    /// A stored `access`.
    AccessRecord {
        access_id ("access_id"): Uuid,
        digest ("digest"): String,
        name ("name"): String,
        roles ("roles"): Vec<String>,
        namespaces ("namespaces"): Option<Vec<String>>,
        lanes ("lanes"): Option<Vec<String>>,
        capabilities ("capabilities"): Option<Vec<String>>,
        created_at ("created_at"): i64,
        created_by ("created_by"): String,
        expires_at ("expires_at"): Option<i64>,
    }
}

wire_record! {
    /// A stored `budget`.
    BudgetRecord {
        definition ("definition"): Bytes,
        version ("version"): i64,
        created ("created"): i64,
        period ("period"): i64,
        since ("since"): i64,
        rooms ("rooms"): i64,
        wide ("wide"): i64,
        told ("told"): i64,
        next_reset ("next_reset"): Option<i64>,
        approved ("approved"): Option<i64>,
        refused ("refused"): Option<i64>,
        soft_told ("soft_told"): Option<i64>,
        passed ("passed"): Option<i64>,
        used ("used"): Vec<i64>,
        held ("held"): Vec<i64>,
        base ("base"): Vec<i64>,
        actions ("actions"): Option<Bytes>,
        past ("past"): Option<Bytes>,
    }
}

wire_record! {
    /// A stored `execution`.
    ExecutionRecord {
        path ("path"): String,
        kind ("kind"): String,
        created ("created"): i64,
        queue ("queue"): String,
        retention ("retention"): i64,
        phase ("phase"): LifecyclePhase,
        prio ("prio"): i64,
        score ("score"): i64,
        updated ("updated"): i64,
        wake ("wake"): Option<i64>,
        digest ("digest"): String,
        input ("input"): Option<i64>,
        tags ("tags"): Option<Bytes>,
        asks ("asks"): Option<Bytes>,
        holds ("holds"): Option<Bytes>,
        attempt ("attempt"): Option<i64>,
        attempt_id ("attempt_id"): Option<AttemptId>,
        attempt_type ("attempt_type"): Option<AttemptType>,
        attempt_state ("attempt_state"): Option<AttemptState>,
        started ("started"): Option<i64>,
        lease_id ("lease_id"): Option<LeaseId>,
        epoch ("epoch"): Option<i64>,
        worker ("worker"): Option<String>,
        worker_id ("worker_id"): Option<String>,
        lease_until ("lease_until"): Option<i64>,
        lease_ttl ("lease_ttl"): Option<i64>,
        ended_by ("ended_by"): Option<String>,
        ended ("ended"): Option<i64>,
        outcome ("outcome"): Option<Outcome>,
        result ("result"): Option<Bytes>,
        [
        flow_id ("flow_id"): Option<FlowId>,
        key ("key"): Option<String>,
        number ("number"): Option<i64>,
        nested ("nested"): Option<FlowId>,
        parent_id ("parent_id"): Option<ExecutionId>,
        parent_close ("parent_close"): Option<String>,
        ]
        [
        reason ("reason"): Option<BlockingReason>,
        detail ("detail"): Option<Bytes>,
        since ("since"): Option<i64>,
        delay ("delay"): Option<i64>,
        start_by ("start_by"): Option<i64>,
        start_within ("start_within"): Option<i64>,
        deadline ("deadline"): Option<i64>,
        next ("next"): Option<String>,
        resume ("resume"): Option<i64>,
        ready ("ready"): Option<i64>,
        fair ("fair"): Option<i64>,
        fair_end ("fair_end"): Option<i64>,
        fairness_key ("fairness_key"): Option<String>,
        ]
        [
        grant ("grant"): Option<Uuid>,
        grant_worker ("grant_worker"): Option<String>,
        grant_until ("grant_until"): Option<i64>,
        grants ("grants"): Option<i64>,
        wanted ("wanted"): Option<Bytes>,
        requires ("requires"): Option<Vec<String>>,
        prefers ("prefers"): Option<Vec<String>>,
        ]
        [
        timeout ("timeout"): Option<i64>,
        timeout_at ("timeout_at"): Option<i64>,
        time_left ("time_left"): Option<i64>,
        max_reclaims ("max_reclaims"): Option<i64>,
        max_replays ("max_replays"): Option<i64>,
        failure ("failure"): Option<Bytes>,
        failures ("failures"): Option<i64>,
        reclaims ("reclaims"): Option<i64>,
        replays ("replays"): Option<i64>,
        tier ("tier"): Option<i64>,
        progress ("progress"): Option<Bytes>,
        cancel_by ("cancel_by"): Option<i64>,
        cancel_reason ("cancel_reason"): Option<String>,
        r#yield ("yield"): Option<i64>,
        renewals ("renewals"): Option<i64>,
        ended_value ("ended_value"): Option<i64>,
        lane_retry ("lane_retry"): Option<Retry>,
        attempt_ended ("attempt_ended"): Option<i64>,
        attempt_failure ("attempt_failure"): Option<Bytes>,
        ]
        [
        waits ("waits"): Option<i64>,
        wait_until ("wait_until"): Option<i64>,
        open_due ("open_due"): Option<i64>,
        continued ("continued"): Option<String>,
        signals ("signals"): Option<Bytes>,
        ]
        [
        frames ("frames"): Option<Bytes>,
        streams ("streams"): Option<Bytes>,
        tailed ("tailed"): Option<i64>,
        max_frames ("max_frames"): Option<i64>,
        attempt_frames ("attempt_frames"): Option<i64>,
        ]
        [
        deps ("deps"): Option<Bytes>,
        inbound ("inbound"): Option<Inbound>,
        passes ("passes"): Option<i64>,
        outs ("outs"): Option<i64>,
        reached ("reached"): Option<i64>,
        halted ("halted"): Option<i64>,
        fault ("fault"): Option<Bytes>,
        verdict ("verdict"): Option<String>,
        hidden ("hidden"): Option<i64>,
        bound ("bound"): Option<i64>,
        freed ("freed"): Option<i64>,
        kids ("kids"): Option<Bytes>,
        awaiting ("awaiting"): Option<i64>,
        owed ("owed"): Option<Bytes>,
        ]
        [
        more ("more"): Option<i64>,
        spilled ("spilled"): Option<i64>,
        waited ("waited"): Option<i64>,
        result_far ("result_far"): Option<i64>,
        result_in ("result_in"): Option<String>,
        input_in ("input_in"): Option<String>,
        reports ("reports"): Option<i64>,
        webhook ("webhook"): Option<String>,
        hook ("hook"): Option<Bytes>,
        said ("said"): Option<i64>,
        ]
        [
        steps ("steps"): Option<i64>,
        step_bytes ("step_bytes"): Option<i64>,
        forked_from ("forked_from"): Option<ExecutionId>,
        ]
        [
        schedule ("schedule"): Option<String>,
        firing ("firing"): Option<i64>,
        nominal ("nominal"): Option<i64>,
        fired_at ("fired_at"): Option<i64>,
        ]
    }
}

wire_record! {
    /// A stored `flow`.
    FlowRecord {
        namespace ("namespace"): String,
        kind ("kind"): String,
        policy ("policy"): OnMemberFailure,
        created ("created"): i64,
        updated ("updated"): i64,
        deadline ("deadline"): Option<i64>,
        retention ("retention"): i64,
        defaults ("defaults"): Option<Bytes>,
        digest ("digest"): String,
        parent ("parent"): Option<ExecutionId>,
        adopted ("adopted"): Option<i64>,
        sealed ("sealed"): Option<i64>,
        touched ("touched"): Option<i64>,
        version ("version"): i64,
        backward ("backward"): Option<i64>,
        outcome ("outcome"): Option<String>,
        ended ("ended"): Option<i64>,
        last ("last"): i64,
        stored ("stored"): i64,
        uncaught ("uncaught"): Option<i64>,
        sinks ("sinks"): Option<i64>,
        owed ("owed"): Option<i64>,
        stop ("stop"): Option<Bytes>,
        walk ("walk"): Option<String>,
        walk_at ("walk_at"): Option<i64>,
        walked ("walked"): Option<i64>,
        wake ("wake"): Option<i64>,
        waited ("waited"): Option<i64>,
        webhook ("webhook"): Option<String>,
        hook ("hook"): Option<Bytes>,
        n_held ("n_held"): Option<i64>,
        n_waiting ("n_waiting"): Option<i64>,
        n_delayed ("n_delayed"): Option<i64>,
        n_rate_limited ("n_rate_limited"): Option<i64>,
        n_waiting_children ("n_waiting_children"): Option<i64>,
        n_active ("n_active"): Option<i64>,
        n_suspended ("n_suspended"): Option<i64>,
        n_resumable ("n_resumable"): Option<i64>,
        n_completed ("n_completed"): Option<i64>,
        n_failed ("n_failed"): Option<i64>,
        n_cancelled ("n_cancelled"): Option<i64>,
        n_expired ("n_expired"): Option<i64>,
        n_skipped ("n_skipped"): Option<i64>,
        [
        schedule ("schedule"): Option<String>,
        firing ("firing"): Option<i64>,
        nominal ("nominal"): Option<i64>,
        fired_at ("fired_at"): Option<i64>,
        ]
    }
}

wire_record! {
    /// A stored `lane`.
    LaneRecord {
        state ("state"): LaneState,
        version ("version"): i64,
        priority_weight ("priority_weight"): i64,
        fairness ("fairness"): Fairness,
        weight ("weight"): i64,
        max_depth ("max_depth"): Option<i64>,
        max_active ("max_active"): Option<i64>,
        attempt_timeout_ms ("attempt_timeout_ms"): Option<i64>,
        retention_ms ("retention_ms"): Option<i64>,
        lease_ttl_ms ("lease_ttl_ms"): Option<i64>,
        fairness_weights ("fairness_weights"): Option<BTreeMap<String, i64>>,
        retry ("retry"): Option<Retry>,
    }
}

wire_record! {
    /// A stored `more`.
    MoreRecord {
        history ("history"): Option<Bytes>,
        actions ("actions"): Option<Bytes>,
        forks ("forks"): Option<Bytes>,
    }
}

wire_record! {
    /// A stored `quota`.
    QuotaRecord {
        definition ("definition"): Bytes,
        version ("version"): i64,
        created ("created"): i64,
        changed ("changed"): i64,
        last ("last"): i64,
        walked ("walked"): Option<i64>,
        deleted ("deleted"): Option<i64>,
    }
}

wire_record! {
    /// A stored `quota_key`.
    QuotaKeyRecord {
        key ("key"): String,
        tat ("tat"): Option<i64>,
        throttled ("throttled"): Option<i64>,
        sum ("sum"): Option<i64>,
        wake ("wake"): Option<i64>,
        called_at ("called_at"): Option<i64>,
    }
}

wire_record! {
    /// A stored `schedule`.
    ScheduleRecord {
        sid ("sid"): Uuid,
        version ("version"): i64,
        created ("created"): i64,
        changed ("changed"): i64,
        definition ("definition"): Bytes,
        overlap ("overlap"): Overlap,
        catch_up ("catch_up"): i64,
        cursor ("cursor"): i64,
        number ("number"): i64,
        fired ("fired"): i64,
        skipped ("skipped"): i64,
        missed ("missed"): i64,
        every ("every"): Option<Bytes>,
        calendar ("calendar"): Option<i64>,
        jitter ("jitter"): Option<i64>,
        starts ("starts"): Option<i64>,
        ends ("ends"): Option<i64>,
        remaining ("remaining"): Option<i64>,
        planned ("planned"): Option<Bytes>,
        planned_size ("planned_size"): Option<i64>,
        reckoned ("reckoned"): Option<i64>,
        asked ("asked"): Option<i64>,
        paused ("paused"): Option<Bytes>,
        over ("over"): Option<i64>,
        wake ("wake"): Option<i64>,
        flight ("flight"): Option<Bytes>,
        waiting ("waiting"): Option<Bytes>,
        last ("last"): Option<Bytes>,
        backfill ("backfill"): Option<Bytes>,
    }
}

wire_record! {
    /// A stored `spec`.
    SpecRecord {
        retry ("retry"): Option<Retry>,
        fallbacks ("fallbacks"): Option<Vec<Bytes>>,
        trace_parent ("trace_parent"): Option<String>,
    }
}

wire_record! {
    /// A stored `step`.
    StepRecord {
        name ("name"): String,
        kind ("kind"): StepKind,
        state ("state"): StepState,
        attempt ("attempt"): i64,
        started ("started"): i64,
        ended ("ended"): Option<i64>,
        tries ("tries"): Option<i64>,
        due ("due"): Option<i64>,
        bytes ("bytes"): Option<i64>,
        result ("result"): Option<Bytes>,
        far ("far"): Option<i64>,
        result_in ("result_in"): Option<String>,
        digest ("digest"): Option<String>,
        failure ("failure"): Option<Bytes>,
        found ("found"): Option<Bytes>,
    }
}

wire_record! {
    /// A stored `waitpoint`.
    WaitpointRecord {
        exec ("exec"): ExecutionId,
        key ("key"): String,
        state ("state"): WaitpointState,
        attempt ("attempt"): i64,
        created ("created"): i64,
        expires ("expires"): Option<i64>,
        uses ("uses"): Option<i64>,
        closed ("closed"): Option<i64>,
        why ("why"): Option<String>,
        signals ("signals"): Option<i64>,
        suspension ("suspension"): Option<SuspensionId>,
        review ("review"): Option<i64>,
        tokens ("tokens"): Bytes,
        allowed ("allowed"): Option<Bytes>,
        early ("early"): Option<Bytes>,
        step ("step"): Option<String>,
    }
}

wire_record! {
    /// A stored `waits`.
    WaitsRecord {
        wait ("wait"): Option<Bytes>,
        open ("open"): Option<Bytes>,
        answered ("answered"): Option<Bytes>,
        past_waits ("past_waits"): Option<Bytes>,
        satisfied ("satisfied"): Option<Bytes>,
        woken ("woken"): Option<Bytes>,
        closed_waits ("closed_waits"): Option<Bytes>,
    }
}

wire_record! {
    /// A stored `webhook`.
    WebhookRecord {
        of ("of"): String,
        owner ("owner"): Uuid,
        url ("url"): String,
        said ("said"): Bytes,
        owed ("owed"): i64,
        due ("due"): Option<i64>,
        tries ("tries"): i64,
        status ("status"): Option<i64>,
        error ("error"): Option<String>,
    }
}
