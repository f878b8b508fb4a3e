//! The bounds of every contract; written by `cargo xtask codegen` from lua/, do not edit.

use crate::generated::*;
use crate::rules::{Bounded, Problem, Rule};

static INT: Rule = Rule::Int { min: -9007199254740991, max: 9007199254740991 };
static COUNT: Rule = Rule::Int { min: 0, max: 9007199254740991 };
static TEXT: Rule = Rule::Text { min: 0, max: 65536, pattern: None, digits_max: None, refuse: None, code: None };
static BYTES: Rule = Rule::Bytes { max: 1048576 };
static LEASE_PREFIX: Rule = Rule::Text { min: 23, max: 23, pattern: Some("^[%x%-]+$"), digits_max: None, refuse: None, code: None };
static TIME_MS: Rule = Rule::Int { min: 0, max: 9007199254740991 };
static DURATION_MS: Rule = Rule::Int { min: 0, max: 315360000000 };
static EPOCH: Rule = Rule::Int { min: 0, max: 9007199254740991 };
static LEASE_TTL_MS: Rule = Rule::Int { min: 1000, max: 3600000 };
static GRANT_TTL_MS: Rule = Rule::Int { min: 100, max: 60000 };
static PRIORITY: Rule = Rule::Int { min: 0, max: 9000 };
static PRIORITY_WEIGHT: Rule = Rule::Int { min: 0, max: 1000000000000 };
static PERMILLE: Rule = Rule::Int { min: 0, max: 1000 };
static PCT: Rule = Rule::Int { min: 0, max: 100 };
static ATTEMPT_INDEX: Rule = Rule::Int { min: 0, max: 9007199254740991 };
static ATTEMPTS_LIMIT: Rule = Rule::Int { min: 1, max: 10000 };
static TIMES_LIMIT: Rule = Rule::Int { min: 0, max: 10000 };
static BACKOFF_FACTOR: Rule = Rule::Int { min: 1, max: 100 };
static BATCH_SIZE: Rule = Rule::Int { min: 1, max: 64 };
static LIST_LIMIT: Rule = Rule::Int { min: 1, max: 1000 };
static FRAMES_LIMIT: Rule = Rule::Int { min: 1, max: 1000000 };
static WEIGHT: Rule = Rule::Int { min: 1, max: 1000000 };
static SLOTS: Rule = Rule::Int { min: 1, max: 4096 };
static MAX_ACTIVE: Rule = Rule::Int { min: 1, max: 1000000 };
static HOLDER_SET: Rule = Rule::Text { min: 1, max: 512, pattern: None, digits_max: None, refuse: Some(("[%s%c]", "holds a character that is not allowed")), code: None };
static KEY_DIGEST: Rule = Rule::Text { min: 20, max: 20, pattern: Some("^%x+$"), digits_max: None, refuse: None, code: None };
static RATE_LIMIT: Rule = Rule::Int { min: 1, max: 1000000 };
static WINDOW_MS: Rule = Rule::Int { min: 1, max: 2678400000 };
static PARTITION_COUNT: Rule = Rule::Int { min: 1, max: 4096 };
static NAMESPACE: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^[%w%._%-]+$"), digits_max: None, refuse: Some(("^%.+$", "must not be made of dots only")), code: None };
static LANE: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^[%w%._%-]+$"), digits_max: None, refuse: Some(("^%.+$", "must not be made of dots only")), code: None };
static WORKER_ID: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^[%w%._%-]+$"), digits_max: None, refuse: Some(("^%.+$", "must not be made of dots only")), code: None };
static INSTANCE: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^[%w%._%-]+$"), digits_max: None, refuse: Some(("^%.+$", "must not be made of dots only")), code: None };
static ACTOR: Rule = Rule::Text { min: 1, max: 128, pattern: None, digits_max: None, refuse: None, code: None };
static QUEUE: Rule = Rule::Text { min: 1, max: 200, pattern: None, digits_max: None, refuse: None, code: None };
static KIND_SET: Rule = Rule::Bytes { max: 130005 };
static KIND: Rule = Rule::Text { min: 1, max: 128, pattern: Some("^[%w%p ]+$"), digits_max: None, refuse: None, code: None };
static ENCODING: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^[%w%._%-/%+]+$"), digits_max: None, refuse: None, code: None };
static DIGEST: Rule = Rule::Text { min: 32, max: 64, pattern: Some("^%x+$"), digits_max: None, refuse: None, code: None };
static INPUT: Rule = Rule::Bytes { max: 1048576 };
static RESULT: Rule = Rule::Bytes { max: 1048576 };
static REASON: Rule = Rule::Text { min: 0, max: 4096, pattern: None, digits_max: None, refuse: None, code: None };
static CATEGORY: Rule = Rule::Text { min: 1, max: 128, pattern: None, digits_max: None, refuse: None, code: None };
static PROGRESS_MESSAGE: Rule = Rule::Text { min: 0, max: 1024, pattern: None, digits_max: None, refuse: None, code: None };
static TAG_KEY: Rule = Rule::Text { min: 1, max: 128, pattern: None, digits_max: None, refuse: None, code: None };
static TAG_VALUE: Rule = Rule::Text { min: 0, max: 1024, pattern: None, digits_max: None, refuse: None, code: None };
static CAPABILITY: Rule = Rule::Text { min: 1, max: 4096, pattern: None, digits_max: None, refuse: Some(("[%s%c,]", "holds a character that is not allowed")), code: Some("capability_invalid") };
static IDEMPOTENCY_KEY: Rule = Rule::Text { min: 1, max: 256, pattern: None, digits_max: None, refuse: None, code: None };
static FAIRNESS_KEY: Rule = Rule::Text { min: 1, max: 256, pattern: None, digits_max: None, refuse: None, code: None };
static FALLBACK: Rule = Rule::Bytes { max: 4096 };
static TRACE_PARENT: Rule = Rule::Text { min: 1, max: 256, pattern: None, digits_max: None, refuse: None, code: None };
static URL: Rule = Rule::Text { min: 1, max: 2048, pattern: Some("^https?://[^/%?#%s%c]+[^#%s%c]*$"), digits_max: None, refuse: None, code: None };
static WEBHOOK_ERROR: Rule = Rule::Text { min: 0, max: 512, pattern: None, digits_max: None, refuse: None, code: None };
static HTTP_STATUS: Rule = Rule::Int { min: 100, max: 999 };
static PER_RECEIVER: Rule = Rule::Int { min: 1, max: 64 };
static DIMENSION: Rule = Rule::Text { min: 1, max: 64, pattern: None, digits_max: None, refuse: None, code: None };
static QUOTA_KEY: Rule = Rule::Text { min: 1, max: 256, pattern: None, digits_max: None, refuse: None, code: None };
static AMOUNT: Rule = Rule::Int { min: 1, max: 9007199254740991 };
static STREAM_ID: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^%d+%-%d+$"), digits_max: Some("18446744073709551615"), refuse: None, code: None };
static EVENT_PLACE: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^%d+%-%d+%.?%d*$"), digits_max: Some("18446744073709551615"), refuse: None, code: None };
static WAITPOINT_KEY: Rule = Rule::Text { min: 1, max: 128, pattern: None, digits_max: None, refuse: None, code: None };
static APPROVER: Rule = Rule::Text { min: 1, max: 128, pattern: None, digits_max: None, refuse: None, code: None };
static USES: Rule = Rule::Int { min: 1, max: 1000000 };
static KEY_ID: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^[%w%._%-]+$"), digits_max: None, refuse: Some(("^%.+$", "must not be made of dots only")), code: None };
static TOKEN_DIGEST: Rule = Rule::Text { min: 64, max: 64, pattern: Some("^%x+$"), digits_max: None, refuse: None, code: None };
static SIGNAL_NAME: Rule = Rule::Text { min: 1, max: 128, pattern: None, digits_max: None, refuse: None, code: None };
static SIGNAL_PAYLOAD: Rule = Rule::Bytes { max: 262144 };
static SOURCE: Rule = Rule::Text { min: 0, max: 256, pattern: None, digits_max: None, refuse: None, code: None };
static CORRELATION_ID: Rule = Rule::Text { min: 1, max: 256, pattern: None, digits_max: None, refuse: None, code: None };
static CONTINUATION: Rule = Rule::Bytes { max: 262144 };
static CONDITION_COUNT: Rule = Rule::Int { min: 1, max: 1000 };
static FRAME_TYPE: Rule = Rule::Text { min: 1, max: 64, pattern: None, digits_max: None, refuse: None, code: None };
static FRAME_PAYLOAD: Rule = Rule::Bytes { max: 65536 };
static SUMMARY_DOCUMENT: Rule = Rule::Bytes { max: 1048576 };
static STREAM_LIMIT: Rule = Rule::Int { min: 1, max: 10000 };
static STEP_NAME: Rule = Rule::Text { min: 1, max: 256, pattern: None, digits_max: None, refuse: Some(("%c", "holds a character that is not allowed")), code: None };
static STEP_RESULT: Rule = Rule::Bytes { max: 1048576 };
static STEP_DIGEST: Rule = Rule::Text { min: 1, max: 128, pattern: Some("^[%w%+/=_%-]+$"), digits_max: None, refuse: None, code: None };
static STEP_TRIES: Rule = Rule::Int { min: 1, max: 9007199254740991 };
static MEMBER_KEY: Rule = Rule::Text { min: 1, max: 128, pattern: None, digits_max: None, refuse: None, code: None };
static PASS_AS: Rule = Rule::Text { min: 1, max: 128, pattern: None, digits_max: None, refuse: None, code: None };
static QUORUM: Rule = Rule::Int { min: 1, max: 100000 };
static LIMIT_AMOUNT: Rule = Rule::Int { min: 0, max: 9007199254740991 };
static SCOPE_ID: Rule = Rule::Text { min: 1, max: 256, pattern: None, digits_max: None, refuse: None, code: None };
static INTERVAL_MS: Rule = Rule::Int { min: 1000, max: 315360000000 };
static ZONE: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^[%w_/%+%-]+$"), digits_max: None, refuse: None, code: None };
static DEDUP_KEY: Rule = Rule::Text { min: 1, max: 256, pattern: None, digits_max: None, refuse: None, code: None };
static DELTA: Rule = Rule::Int { min: -9007199254740991, max: 9007199254740991 };
static SCOPE_NAME: Rule = Rule::Text { min: 1, max: 512, pattern: None, digits_max: None, refuse: Some(("[%s%c]", "holds a character that is not allowed")), code: None };
static SCHEDULE_NAME: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^[%w%._%-]+$"), digits_max: None, refuse: Some(("^%.+$", "must not be made of dots only")), code: None };
static SCHEDULE_PATH: Rule = Rule::Text { min: 3, max: 129, pattern: None, digits_max: None, refuse: None, code: None };
static SCHEDULE_DEFINITION: Rule = Rule::Bytes { max: 65536 };
static SCHEDULE_ACTION: Rule = Rule::Bytes { max: 2097152 };
static EVERY_MS: Rule = Rule::Int { min: 1000, max: 315360000000 };
static FIRING_WHY: Rule = Rule::Text { min: 1, max: 64, pattern: None, digits_max: None, refuse: None, code: None };
static FIRING_OUTCOME: Rule = Rule::Text { min: 1, max: 32, pattern: None, digits_max: None, refuse: None, code: None };
static ACCESS_NAME: Rule = Rule::Text { min: 1, max: 64, pattern: Some("^[%w%._%-]+$"), digits_max: None, refuse: Some(("^%.+$", "must not be made of dots only")), code: None };
static CAPABILITIES: Rule = Rule::List { of: &CAPABILITY, max: Some(64), bytes_max: Some(4096) };
static KINDS: Rule = Rule::List { of: &KIND, max: Some(1000), bytes_max: None };
static WORKER_CLASSES: Rule = Rule::List { of: &Rule::Own, max: Some(4096), bytes_max: None };
static FALLBACKS: Rule = Rule::List { of: &FALLBACK, max: Some(16), bytes_max: None };
static CATEGORIES: Rule = Rule::List { of: &CATEGORY, max: Some(64), bytes_max: None };
static BUDGET_REFS: Rule = Rule::List { of: &Rule::Own, max: Some(16), bytes_max: None };
static QUOTA_REFS: Rule = Rule::List { of: &Rule::Own, max: Some(16), bytes_max: None };
static LANE_NAMES: Rule = Rule::List { of: &LANE, max: Some(64), bytes_max: None };
static LEASE_IDS: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static ATTEMPT_IDS: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static INSTANCES: Rule = Rule::List { of: &INSTANCE, max: Some(1024), bytes_max: None };
static STREAM_IDS: Rule = Rule::List { of: &STREAM_ID, max: Some(1024), bytes_max: None };
static KEY_IDS: Rule = Rule::List { of: &KEY_ID, max: Some(256), bytes_max: None };
static ROLES: Rule = Rule::List { of: &Rule::Own, max: Some(7), bytes_max: None };
static NAMESPACES: Rule = Rule::List { of: &NAMESPACE, max: Some(64), bytes_max: None };
static CONDITION_NODES: Rule = Rule::List { of: &Rule::Own, max: Some(256), bytes_max: None };
static NEW_WAITPOINTS: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static WAITPOINT_IDS: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static SIGNAL_NAMES: Rule = Rule::List { of: &SIGNAL_NAME, max: Some(64), bytes_max: None };
static TOKENS: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static NEW_FRAMES: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static HOLDERS: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static CANDIDATES: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static HOLDER_SETS: Rule = Rule::List { of: &HOLDER_SET, max: Some(33), bytes_max: None };
static QUOTA_CANDIDATES: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static QUOTA_RETURNS: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static QUOTA_ABSENCES: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static STORE_KEYS: Rule = Rule::List { of: &BYTES, max: Some(1024), bytes_max: None };
static NEW_MEMBERS: Rule = Rule::List { of: &Rule::Own, max: Some(128), bytes_max: None };
static NEW_EDGES: Rule = Rule::List { of: &Rule::Own, max: Some(1024), bytes_max: None };
static NEW_CHILDREN: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static SCOPE_NAMES: Rule = Rule::List { of: &SCOPE_NAME, max: Some(64), bytes_max: None };
static DIMENSION_LIMITS: Rule = Rule::List { of: &Rule::Own, max: Some(32), bytes_max: None };
static SCHEDULE_EVERIES: Rule = Rule::List { of: &Rule::Own, max: Some(16), bytes_max: None };
static PLANNED_TIMES: Rule = Rule::List { of: &TIME_MS, max: Some(64), bytes_max: None };
static BUDGET_CANDIDATES: Rule = Rule::List { of: &Rule::Own, max: Some(64), bytes_max: None };
static AMOUNTS: Rule = Rule::Map { key: &DIMENSION, value: &AMOUNT, max: Some(32) };
static TAGS: Rule = Rule::Map { key: &TAG_KEY, value: &TAG_VALUE, max: Some(64) };
static ESTIMATE: Rule = Rule::Map { key: &DIMENSION, value: &AMOUNT, max: Some(32) };
static FREE: Rule = Rule::Map { key: &DIMENSION, value: &COUNT, max: Some(32) };
static IN_FLIGHT: Rule = Rule::Map { key: &KEY_DIGEST, value: &COUNT, max: Some(256) };
static FAIRNESS_WEIGHTS: Rule = Rule::Map { key: &FAIRNESS_KEY, value: &WEIGHT, max: Some(256) };
static DETAIL: Rule = Rule::Map { key: &TEXT, value: &TEXT, max: Some(64) };

impl Bounded for Fence {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.lease_epoch.within(&EPOCH).map_err(|problem| problem.within("lease_epoch"))?;
        Ok(())
    }
}

impl Bounded for Backoff {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.delay_ms.within(&DURATION_MS).map_err(|problem| problem.within("delay_ms"))?;
        self.initial_ms.within(&DURATION_MS).map_err(|problem| problem.within("initial_ms"))?;
        self.factor.within(&BACKOFF_FACTOR).map_err(|problem| problem.within("factor"))?;
        self.max_ms.within(&DURATION_MS).map_err(|problem| problem.within("max_ms"))?;
        Ok(())
    }
}

impl Bounded for Retry {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.max_attempts.within(&ATTEMPTS_LIMIT).map_err(|problem| problem.within("max_attempts"))?;
        self.backoff.within(&Rule::Own).map_err(|problem| problem.within("backoff"))?;
        self.retry_on.within(&CATEGORIES).map_err(|problem| problem.within("retry_on"))?;
        self.never_on.within(&CATEGORIES).map_err(|problem| problem.within("never_on"))?;
        Ok(())
    }
}

impl Bounded for BudgetRef {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.estimate.within(&ESTIMATE).map_err(|problem| problem.within("estimate"))?;
        Ok(())
    }
}

impl Bounded for QuotaRef {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.key.within(&QUOTA_KEY).map_err(|problem| problem.within("key"))?;
        self.weight.within(&AMOUNT).map_err(|problem| problem.within("weight"))?;
        Ok(())
    }
}

impl Bounded for StreamOptions {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.max_frames.within(&FRAMES_LIMIT).map_err(|problem| problem.within("max_frames"))?;
        Ok(())
    }
}

impl Bounded for Submission {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.kind.within(&KIND).map_err(|problem| problem.within("kind"))?;
        self.input.within(&INPUT).map_err(|problem| problem.within("input"))?;
        self.priority.within(&PRIORITY).map_err(|problem| problem.within("priority"))?;
        self.retention_ms.within(&DURATION_MS).map_err(|problem| problem.within("retention_ms"))?;
        self.body_digest.within(&DIGEST).map_err(|problem| problem.within("body_digest"))?;
        self.input_encoding.within(&ENCODING).map_err(|problem| problem.within("input_encoding"))?;
        self.tags.within(&TAGS).map_err(|problem| problem.within("tags"))?;
        self.delay_until.within(&TIME_MS).map_err(|problem| problem.within("delay_until"))?;
        self.delay_ms.within(&DURATION_MS).map_err(|problem| problem.within("delay_ms"))?;
        self.deadline_at.within(&TIME_MS).map_err(|problem| problem.within("deadline_at"))?;
        self.deadline_ms.within(&DURATION_MS).map_err(|problem| problem.within("deadline_ms"))?;
        self.start_within_ms.within(&DURATION_MS).map_err(|problem| problem.within("start_within_ms"))?;
        self.idempotency_key.within(&IDEMPOTENCY_KEY).map_err(|problem| problem.within("idempotency_key"))?;
        self.idempotency_ttl_ms.within(&DURATION_MS).map_err(|problem| problem.within("idempotency_ttl_ms"))?;
        self.retry.within(&Rule::Own).map_err(|problem| problem.within("retry"))?;
        self.attempt_timeout_ms.within(&DURATION_MS).map_err(|problem| problem.within("attempt_timeout_ms"))?;
        self.max_reclaims.within(&TIMES_LIMIT).map_err(|problem| problem.within("max_reclaims"))?;
        self.max_replays.within(&TIMES_LIMIT).map_err(|problem| problem.within("max_replays"))?;
        self.requires.within(&CAPABILITIES).map_err(|problem| problem.within("requires"))?;
        self.prefers.within(&CAPABILITIES).map_err(|problem| problem.within("prefers"))?;
        self.fairness_key.within(&FAIRNESS_KEY).map_err(|problem| problem.within("fairness_key"))?;
        self.budgets.within(&BUDGET_REFS).map_err(|problem| problem.within("budgets"))?;
        self.quotas.within(&QUOTA_REFS).map_err(|problem| problem.within("quotas"))?;
        self.fallbacks.within(&FALLBACKS).map_err(|problem| problem.within("fallbacks"))?;
        self.stream.within(&Rule::Own).map_err(|problem| problem.within("stream"))?;
        self.trace_parent.within(&TRACE_PARENT).map_err(|problem| problem.within("trace_parent"))?;
        self.completion_webhook.within(&URL).map_err(|problem| problem.within("completion_webhook"))?;
        self.lane_depth.within(&COUNT).map_err(|problem| problem.within("lane_depth"))?;
        self.fired.within(&Rule::Own).map_err(|problem| problem.within("fired"))?;
        Ok(())
    }
}

impl Bounded for Fired {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.schedule.within(&SCHEDULE_NAME).map_err(|problem| problem.within("schedule"))?;
        self.number.within(&COUNT).map_err(|problem| problem.within("number"))?;
        self.nominal_at.within(&TIME_MS).map_err(|problem| problem.within("nominal_at"))?;
        self.fired_at.within(&TIME_MS).map_err(|problem| problem.within("fired_at"))?;
        Ok(())
    }
}

impl Bounded for ScheduleEvery {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.every_ms.within(&EVERY_MS).map_err(|problem| problem.within("every_ms"))?;
        self.anchor_at.within(&TIME_MS).map_err(|problem| problem.within("anchor_at"))?;
        Ok(())
    }
}

impl Bounded for NewSchedule {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.definition.within(&SCHEDULE_DEFINITION).map_err(|problem| problem.within("definition"))?;
        self.action.within(&SCHEDULE_ACTION).map_err(|problem| problem.within("action"))?;
        self.every.within(&SCHEDULE_EVERIES).map_err(|problem| problem.within("every"))?;
        self.catch_up_ms.within(&DURATION_MS).map_err(|problem| problem.within("catch_up_ms"))?;
        self.jitter_ms.within(&DURATION_MS).map_err(|problem| problem.within("jitter_ms"))?;
        self.starts_at.within(&TIME_MS).map_err(|problem| problem.within("starts_at"))?;
        self.ends_at.within(&TIME_MS).map_err(|problem| problem.within("ends_at"))?;
        self.remaining.within(&COUNT).map_err(|problem| problem.within("remaining"))?;
        Ok(())
    }
}

impl Bounded for MissedTimes {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.count.within(&COUNT).map_err(|problem| problem.within("count"))?;
        self.first.within(&TIME_MS).map_err(|problem| problem.within("first"))?;
        self.last.within(&TIME_MS).map_err(|problem| problem.within("last"))?;
        self.to.within(&TIME_MS).map_err(|problem| problem.within("to"))?;
        Ok(())
    }
}

impl Bounded for SchedulePosition {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.created_at.within(&TIME_MS).map_err(|problem| problem.within("created_at"))?;
        self.path.within(&SCHEDULE_PATH).map_err(|problem| problem.within("path"))?;
        Ok(())
    }
}

impl Bounded for Token {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.digest.within(&TOKEN_DIGEST).map_err(|problem| problem.within("digest"))?;
        self.approver.within(&APPROVER).map_err(|problem| problem.within("approver"))?;
        Ok(())
    }
}

impl Bounded for NewWaitpoint {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.key.within(&WAITPOINT_KEY).map_err(|problem| problem.within("key"))?;
        self.expires_in_ms.within(&DURATION_MS).map_err(|problem| problem.within("expires_in_ms"))?;
        self.allowed_signals.within(&SIGNAL_NAMES).map_err(|problem| problem.within("allowed_signals"))?;
        self.uses.within(&USES).map_err(|problem| problem.within("uses"))?;
        self.tokens.within(&TOKENS).map_err(|problem| problem.within("tokens"))?;
        Ok(())
    }
}

impl Bounded for ConditionNode {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.parent.within(&COUNT).map_err(|problem| problem.within("parent"))?;
        self.name.within(&SIGNAL_NAME).map_err(|problem| problem.within("name"))?;
        self.waitpoint.within(&WAITPOINT_KEY).map_err(|problem| problem.within("waitpoint"))?;
        self.n.within(&CONDITION_COUNT).map_err(|problem| problem.within("n"))?;
        Ok(())
    }
}

impl Bounded for Inbound {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.k.within(&QUORUM).map_err(|problem| problem.within("k"))?;
        Ok(())
    }
}

impl Bounded for NewMember {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.key.within(&MEMBER_KEY).map_err(|problem| problem.within("key"))?;
        self.submission.within(&Rule::Own).map_err(|problem| problem.within("submission"))?;
        self.inbound.within(&Rule::Own).map_err(|problem| problem.within("inbound"))?;
        Ok(())
    }
}

impl Bounded for NewEdge {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.from.within(&MEMBER_KEY).map_err(|problem| problem.within("from"))?;
        self.to.within(&MEMBER_KEY).map_err(|problem| problem.within("to"))?;
        self.pass_as.within(&PASS_AS).map_err(|problem| problem.within("pass_as"))?;
        Ok(())
    }
}

impl Bounded for NewFlow {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.kind.within(&KIND).map_err(|problem| problem.within("kind"))?;
        self.deadline_at.within(&TIME_MS).map_err(|problem| problem.within("deadline_at"))?;
        self.deadline_ms.within(&DURATION_MS).map_err(|problem| problem.within("deadline_ms"))?;
        self.retention_ms.within(&DURATION_MS).map_err(|problem| problem.within("retention_ms"))?;
        self.default_lane.within(&LANE).map_err(|problem| problem.within("default_lane"))?;
        self.default_retry.within(&Rule::Own).map_err(|problem| problem.within("default_retry"))?;
        self.budgets.within(&BUDGET_REFS).map_err(|problem| problem.within("budgets"))?;
        self.completion_webhook.within(&URL).map_err(|problem| problem.within("completion_webhook"))?;
        self.body_digest.within(&DIGEST).map_err(|problem| problem.within("body_digest"))?;
        self.fired.within(&Rule::Own).map_err(|problem| problem.within("fired"))?;
        Ok(())
    }
}

impl Bounded for FlowPosition {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.created_at.within(&TIME_MS).map_err(|problem| problem.within("created_at"))?;
        Ok(())
    }
}

impl Bounded for GraphPosition {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.member.within(&COUNT).map_err(|problem| problem.within("member"))?;
        self.edge.within(&COUNT).map_err(|problem| problem.within("edge"))?;
        Ok(())
    }
}

impl Bounded for NewChild {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.submission.within(&Rule::Own).map_err(|problem| problem.within("submission"))?;
        self.key.within(&MEMBER_KEY).map_err(|problem| problem.within("key"))?;
        Ok(())
    }
}

impl Bounded for NewFrame {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.r#type.within(&FRAME_TYPE).map_err(|problem| problem.within("type"))?;
        self.payload.within(&FRAME_PAYLOAD).map_err(|problem| problem.within("payload"))?;
        self.payload_encoding.within(&ENCODING).map_err(|problem| problem.within("payload_encoding"))?;
        self.correlation_id.within(&CORRELATION_ID).map_err(|problem| problem.within("correlation_id"))?;
        Ok(())
    }
}

impl Bounded for NewSummary {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.document.within(&SUMMARY_DOCUMENT).map_err(|problem| problem.within("document"))?;
        self.version.within(&COUNT).map_err(|problem| problem.within("version"))?;
        Ok(())
    }
}

impl Bounded for Holder {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.expires_at.within(&TIME_MS).map_err(|problem| problem.within("expires_at"))?;
        Ok(())
    }
}

impl Bounded for Candidate {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.expires_at.within(&TIME_MS).map_err(|problem| problem.within("expires_at"))?;
        Ok(())
    }
}

impl Bounded for QuotaRate {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&RATE_LIMIT).map_err(|problem| problem.within("limit"))?;
        self.window_ms.within(&WINDOW_MS).map_err(|problem| problem.within("window_ms"))?;
        Ok(())
    }
}

impl Bounded for QuotaWeights {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&AMOUNT).map_err(|problem| problem.within("limit"))?;
        self.window_ms.within(&WINDOW_MS).map_err(|problem| problem.within("window_ms"))?;
        Ok(())
    }
}

impl Bounded for Quota {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.rate.within(&Rule::Own).map_err(|problem| problem.within("rate"))?;
        self.concurrency.within(&MAX_ACTIVE).map_err(|problem| problem.within("concurrency"))?;
        self.weighted.within(&Rule::Own).map_err(|problem| problem.within("weighted"))?;
        Ok(())
    }
}

impl Bounded for QuotaCandidate {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.expires_at.within(&TIME_MS).map_err(|problem| problem.within("expires_at"))?;
        self.key.within(&QUOTA_KEY).map_err(|problem| problem.within("key"))?;
        self.weight.within(&AMOUNT).map_err(|problem| problem.within("weight"))?;
        self.score.within(&INT).map_err(|problem| problem.within("score"))?;
        self.number.within(&COUNT).map_err(|problem| problem.within("number"))?;
        Ok(())
    }
}

impl Bounded for QuotaReturn {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.key_digest.within(&KEY_DIGEST).map_err(|problem| problem.within("key_digest"))?;
        Ok(())
    }
}

impl Bounded for QuotaAbsence {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.key_digest.within(&KEY_DIGEST).map_err(|problem| problem.within("key_digest"))?;
        Ok(())
    }
}

impl Bounded for QuotaPosition {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.created_at.within(&TIME_MS).map_err(|problem| problem.within("created_at"))?;
        Ok(())
    }
}

impl Bounded for QueuePosition {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.queue.within(&QUEUE).map_err(|problem| problem.within("queue"))?;
        self.created_at.within(&TIME_MS).map_err(|problem| problem.within("created_at"))?;
        Ok(())
    }
}

impl Bounded for DimensionLimit {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.name.within(&DIMENSION).map_err(|problem| problem.within("name"))?;
        self.hard.within(&LIMIT_AMOUNT).map_err(|problem| problem.within("hard"))?;
        self.soft.within(&LIMIT_AMOUNT).map_err(|problem| problem.within("soft"))?;
        Ok(())
    }
}

impl Bounded for BudgetScope {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.id.within(&SCOPE_ID).map_err(|problem| problem.within("id"))?;
        Ok(())
    }
}

impl Bounded for BudgetReset {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.interval_ms.within(&INTERVAL_MS).map_err(|problem| problem.within("interval_ms"))?;
        self.zone.within(&ZONE).map_err(|problem| problem.within("zone"))?;
        Ok(())
    }
}

impl Bounded for NewBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.scope.within(&Rule::Own).map_err(|problem| problem.within("scope"))?;
        self.dimensions.within(&DIMENSION_LIMITS).map_err(|problem| problem.within("dimensions"))?;
        self.reset.within(&Rule::Own).map_err(|problem| problem.within("reset"))?;
        self.next_reset_at.within(&TIME_MS).map_err(|problem| problem.within("next_reset_at"))?;
        Ok(())
    }
}

impl Bounded for BudgetCandidate {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.expires_at.within(&TIME_MS).map_err(|problem| problem.within("expires_at"))?;
        self.estimate.within(&ESTIMATE).map_err(|problem| problem.within("estimate"))?;
        Ok(())
    }
}

impl Bounded for BudgetHolder {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for UsageReport {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.dedup_key.within(&DEDUP_KEY).map_err(|problem| problem.within("dedup_key"))?;
        self.sequence.within(&COUNT).map_err(|problem| problem.within("sequence"))?;
        self.dimensions.within(&AMOUNTS).map_err(|problem| problem.within("dimensions"))?;
        Ok(())
    }
}

impl Bounded for UsageBreach {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.dimension.within(&DIMENSION).map_err(|problem| problem.within("dimension"))?;
        self.used.within(&COUNT).map_err(|problem| problem.within("used"))?;
        self.limit.within(&COUNT).map_err(|problem| problem.within("limit"))?;
        self.rooms.within(&COUNT).map_err(|problem| problem.within("rooms"))?;
        Ok(())
    }
}

impl Bounded for BlockedPosition {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.since.within(&TIME_MS).map_err(|problem| problem.within("since"))?;
        Ok(())
    }
}

impl Bounded for AwaitsPosition {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.score.within(&INT).map_err(|problem| problem.within("score"))?;
        Ok(())
    }
}

impl Bounded for BudgetPosition {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.created_at.within(&TIME_MS).map_err(|problem| problem.within("created_at"))?;
        Ok(())
    }
}

impl Bounded for WaitpointPosition {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.created_at.within(&TIME_MS).map_err(|problem| problem.within("created_at"))?;
        Ok(())
    }
}

impl Bounded for Position {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.created_at.within(&TIME_MS).map_err(|problem| problem.within("created_at"))?;
        Ok(())
    }
}

impl Bounded for LaneDefinition {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.priority_weight.within(&PRIORITY_WEIGHT).map_err(|problem| problem.within("priority_weight"))?;
        self.fairness_weights.within(&FAIRNESS_WEIGHTS).map_err(|problem| problem.within("fairness_weights"))?;
        self.max_depth.within(&COUNT).map_err(|problem| problem.within("max_depth"))?;
        self.weight.within(&WEIGHT).map_err(|problem| problem.within("weight"))?;
        self.retry.within(&Rule::Own).map_err(|problem| problem.within("retry"))?;
        self.attempt_timeout_ms.within(&DURATION_MS).map_err(|problem| problem.within("attempt_timeout_ms"))?;
        self.retention_ms.within(&DURATION_MS).map_err(|problem| problem.within("retention_ms"))?;
        self.lease_ttl_ms.within(&LEASE_TTL_MS).map_err(|problem| problem.within("lease_ttl_ms"))?;
        self.max_active.within(&MAX_ACTIVE).map_err(|problem| problem.within("max_active"))?;
        Ok(())
    }
}

impl Bounded for LaneEntry {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.version.within(&COUNT).map_err(|problem| problem.within("version"))?;
        self.definition.within(&Rule::Own).map_err(|problem| problem.within("definition"))?;
        Ok(())
    }
}

impl Bounded for WorkerClass {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.capabilities.within(&CAPABILITIES).map_err(|problem| problem.within("capabilities"))?;
        self.kinds.within(&KINDS).map_err(|problem| problem.within("kinds"))?;
        Ok(())
    }
}

impl Bounded for PartitionDefaults {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.executions.within(&PARTITION_COUNT).map_err(|problem| problem.within("executions"))?;
        self.budgets.within(&PARTITION_COUNT).map_err(|problem| problem.within("budgets"))?;
        self.quotas.within(&PARTITION_COUNT).map_err(|problem| problem.within("quotas"))?;
        self.schedules.within(&PARTITION_COUNT).map_err(|problem| problem.within("schedules"))?;
        Ok(())
    }
}

impl Bounded for SubmitExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.submission.within(&Rule::Own).map_err(|problem| problem.within("submission"))?;
        Ok(())
    }
}

impl Bounded for CompleteExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.result.within(&RESULT).map_err(|problem| problem.within("result"))?;
        self.result_encoding.within(&ENCODING).map_err(|problem| problem.within("result_encoding"))?;
        Ok(())
    }
}

impl Bounded for FailExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.category.within(&CATEGORY).map_err(|problem| problem.within("category"))?;
        self.draw.within(&PERMILLE).map_err(|problem| problem.within("draw"))?;
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        self.retry_after_ms.within(&DURATION_MS).map_err(|problem| problem.within("retry_after_ms"))?;
        Ok(())
    }
}

impl Bounded for CancelExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.grace_ms.within(&DURATION_MS).map_err(|problem| problem.within("grace_ms"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for CancelAttempt {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for DelayExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.delay_ms.within(&DURATION_MS).map_err(|problem| problem.within("delay_ms"))?;
        self.delay_until.within(&TIME_MS).map_err(|problem| problem.within("delay_until"))?;
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        Ok(())
    }
}

impl Bounded for YieldExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        Ok(())
    }
}

impl Bounded for UpdateProgress {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.message.within(&PROGRESS_MESSAGE).map_err(|problem| problem.within("message"))?;
        self.pct.within(&PCT).map_err(|problem| problem.within("pct"))?;
        Ok(())
    }
}

impl Bounded for HoldExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for ReleaseExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for ChangeExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.deadline_at.within(&TIME_MS).map_err(|problem| problem.within("deadline_at"))?;
        self.delay_until.within(&TIME_MS).map_err(|problem| problem.within("delay_until"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.priority.within(&PRIORITY).map_err(|problem| problem.within("priority"))?;
        self.tags.within(&TAGS).map_err(|problem| problem.within("tags"))?;
        Ok(())
    }
}

impl Bounded for ReplayExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.from_step.within(&STEP_NAME).map_err(|problem| problem.within("from_step"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for DeleteExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        Ok(())
    }
}

impl Bounded for AwaitResult {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for ClaimExecutions {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.attempt_ids.within(&ATTEMPT_IDS).map_err(|problem| problem.within("attempt_ids"))?;
        self.capabilities.within(&CAPABILITIES).map_err(|problem| problem.within("capabilities"))?;
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        self.kinds.within(&KIND_SET).map_err(|problem| problem.within("kinds"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.lease_ids.within(&LEASE_IDS).map_err(|problem| problem.within("lease_ids"))?;
        self.lease_ttl_ms.within(&LEASE_TTL_MS).map_err(|problem| problem.within("lease_ttl_ms"))?;
        self.max.within(&BATCH_SIZE).map_err(|problem| problem.within("max"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.worker_id.within(&WORKER_ID).map_err(|problem| problem.within("worker_id"))?;
        Ok(())
    }
}

impl Bounded for RenewLease {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.lease_ttl_ms.within(&LEASE_TTL_MS).map_err(|problem| problem.within("lease_ttl_ms"))?;
        Ok(())
    }
}

impl Bounded for RevokeLease {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for DrainLeases {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for IssueGrants {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.capabilities.within(&CAPABILITIES).map_err(|problem| problem.within("capabilities"))?;
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        self.kinds.within(&KIND_SET).map_err(|problem| problem.within("kinds"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.lease_ids.within(&LEASE_IDS).map_err(|problem| problem.within("lease_ids"))?;
        self.max.within(&BATCH_SIZE).map_err(|problem| problem.within("max"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.ttl_ms.within(&GRANT_TTL_MS).map_err(|problem| problem.within("ttl_ms"))?;
        Ok(())
    }
}

impl Bounded for ConsumeGrant {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.capabilities.within(&CAPABILITIES).map_err(|problem| problem.within("capabilities"))?;
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        self.keep.within(&HOLDER_SETS).map_err(|problem| problem.within("keep"))?;
        self.kinds.within(&KIND_SET).map_err(|problem| problem.within("kinds"))?;
        self.lease_ttl_ms.within(&LEASE_TTL_MS).map_err(|problem| problem.within("lease_ttl_ms"))?;
        self.worker_id.within(&WORKER_ID).map_err(|problem| problem.within("worker_id"))?;
        Ok(())
    }
}

impl Bounded for KeepGrant {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.sets.within(&HOLDER_SETS).map_err(|problem| problem.within("sets"))?;
        Ok(())
    }
}

impl Bounded for ReleaseGrant {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for BlockExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.detail.within(&DETAIL).map_err(|problem| problem.within("detail"))?;
        Ok(())
    }
}

impl Bounded for UnblockExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for GrantReclaim {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.capabilities.within(&CAPABILITIES).map_err(|problem| problem.within("capabilities"))?;
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        self.kinds.within(&KIND_SET).map_err(|problem| problem.within("kinds"))?;
        self.lanes.within(&LANE_NAMES).map_err(|problem| problem.within("lanes"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.ttl_ms.within(&GRANT_TTL_MS).map_err(|problem| problem.within("ttl_ms"))?;
        Ok(())
    }
}

impl Bounded for SuspendExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.adopt.within(&WAITPOINT_IDS).map_err(|problem| problem.within("adopt"))?;
        self.condition.within(&CONDITION_NODES).map_err(|problem| problem.within("condition"))?;
        self.continuation.within(&CONTINUATION).map_err(|problem| problem.within("continuation"))?;
        self.continuation_encoding.within(&ENCODING).map_err(|problem| problem.within("continuation_encoding"))?;
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.otherwise.within(&Rule::Own).map_err(|problem| problem.within("otherwise"))?;
        self.step.within(&STEP_NAME).map_err(|problem| problem.within("step"))?;
        self.timeout_ms.within(&DURATION_MS).map_err(|problem| problem.within("timeout_ms"))?;
        self.wait.within(&STEP_NAME).map_err(|problem| problem.within("wait"))?;
        self.waitpoints.within(&NEW_WAITPOINTS).map_err(|problem| problem.within("waitpoints"))?;
        Ok(())
    }
}

impl Bounded for ResumeExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for FailSuspension {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.category.within(&CATEGORY).map_err(|problem| problem.within("category"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for CreateWaitpoint {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.step.within(&STEP_NAME).map_err(|problem| problem.within("step"))?;
        self.waitpoint.within(&Rule::Own).map_err(|problem| problem.within("waitpoint"))?;
        Ok(())
    }
}

impl Bounded for CloseWaitpoint {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        Ok(())
    }
}

impl Bounded for DeliverSignal {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.category.within(&SOURCE).map_err(|problem| problem.within("category"))?;
        self.correlation_id.within(&CORRELATION_ID).map_err(|problem| problem.within("correlation_id"))?;
        self.idempotency_key.within(&IDEMPOTENCY_KEY).map_err(|problem| problem.within("idempotency_key"))?;
        self.name.within(&SIGNAL_NAME).map_err(|problem| problem.within("name"))?;
        self.payload.within(&SIGNAL_PAYLOAD).map_err(|problem| problem.within("payload"))?;
        self.payload_encoding.within(&ENCODING).map_err(|problem| problem.within("payload_encoding"))?;
        self.source.within(&SOURCE).map_err(|problem| problem.within("source"))?;
        self.source_identity.within(&SOURCE).map_err(|problem| problem.within("source_identity"))?;
        self.token_digest.within(&TOKEN_DIGEST).map_err(|problem| problem.within("token_digest"))?;
        Ok(())
    }
}

impl Bounded for ReissueToken {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.approver.within(&APPROVER).map_err(|problem| problem.within("approver"))?;
        self.digest.within(&TOKEN_DIGEST).map_err(|problem| problem.within("digest"))?;
        Ok(())
    }
}

impl Bounded for ListWaitpoints {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for DescribeWaitpoint {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for ExecutionWaitpoints {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for AppendFrames {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.first_sequence.within(&COUNT).map_err(|problem| problem.within("first_sequence"))?;
        self.frames.within(&NEW_FRAMES).map_err(|problem| problem.within("frames"))?;
        self.summary.within(&Rule::Own).map_err(|problem| problem.within("summary"))?;
        Ok(())
    }
}

impl Bounded for ReadStream {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&STREAM_ID).map_err(|problem| problem.within("after"))?;
        self.attempt_index.within(&ATTEMPT_INDEX).map_err(|problem| problem.within("attempt_index"))?;
        self.from.within(&STREAM_ID).map_err(|problem| problem.within("from"))?;
        self.limit.within(&STREAM_LIMIT).map_err(|problem| problem.within("limit"))?;
        self.to.within(&STREAM_ID).map_err(|problem| problem.within("to"))?;
        Ok(())
    }
}

impl Bounded for ReadSummary {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.attempt_index.within(&ATTEMPT_INDEX).map_err(|problem| problem.within("attempt_index"))?;
        Ok(())
    }
}

impl Bounded for FollowStream {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for SubmitFlow {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.edges.within(&NEW_EDGES).map_err(|problem| problem.within("edges"))?;
        self.flow.within(&Rule::Own).map_err(|problem| problem.within("flow"))?;
        self.members.within(&NEW_MEMBERS).map_err(|problem| problem.within("members"))?;
        Ok(())
    }
}

impl Bounded for AddMembers {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.edges.within(&NEW_EDGES).map_err(|problem| problem.within("edges"))?;
        self.members.within(&NEW_MEMBERS).map_err(|problem| problem.within("members"))?;
        Ok(())
    }
}

impl Bounded for AddEdges {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.edges.within(&NEW_EDGES).map_err(|problem| problem.within("edges"))?;
        self.version.within(&COUNT).map_err(|problem| problem.within("version"))?;
        Ok(())
    }
}

impl Bounded for SealFlow {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for CancelFlow {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for WalkFlow {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for DescribeFlow {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for AwaitFlow {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for ReadFlow {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for ListFlows {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.kind.within(&KIND).map_err(|problem| problem.within("kind"))?;
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for SpawnChildren {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.children.within(&NEW_CHILDREN).map_err(|problem| problem.within("children"))?;
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.step.within(&STEP_NAME).map_err(|problem| problem.within("step"))?;
        Ok(())
    }
}

impl Bounded for WaitChildren {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.step.within(&STEP_NAME).map_err(|problem| problem.within("step"))?;
        Ok(())
    }
}

impl Bounded for ReadChildren {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.from.within(&COUNT).map_err(|problem| problem.within("from"))?;
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for StoreStep {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.input_digest.within(&STEP_DIGEST).map_err(|problem| problem.within("input_digest"))?;
        self.name.within(&STEP_NAME).map_err(|problem| problem.within("name"))?;
        self.result.within(&STEP_RESULT).map_err(|problem| problem.within("result"))?;
        self.result_encoding.within(&ENCODING).map_err(|problem| problem.within("result_encoding"))?;
        self.started_at.within(&TIME_MS).map_err(|problem| problem.within("started_at"))?;
        self.tries.within(&STEP_TRIES).map_err(|problem| problem.within("tries"))?;
        Ok(())
    }
}

impl Bounded for NoteStep {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.category.within(&CATEGORY).map_err(|problem| problem.within("category"))?;
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.input_digest.within(&STEP_DIGEST).map_err(|problem| problem.within("input_digest"))?;
        self.name.within(&STEP_NAME).map_err(|problem| problem.within("name"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        self.retry_at.within(&TIME_MS).map_err(|problem| problem.within("retry_at"))?;
        self.started_at.within(&TIME_MS).map_err(|problem| problem.within("started_at"))?;
        self.tries.within(&STEP_TRIES).map_err(|problem| problem.within("tries"))?;
        Ok(())
    }
}

impl Bounded for GetStep {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.from.within(&STEP_TRIES).map_err(|problem| problem.within("from"))?;
        self.name.within(&STEP_NAME).map_err(|problem| problem.within("name"))?;
        Ok(())
    }
}

impl Bounded for ListSteps {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&COUNT).map_err(|problem| problem.within("after"))?;
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for SleepExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.continuation.within(&CONTINUATION).map_err(|problem| problem.within("continuation"))?;
        self.continuation_encoding.within(&ENCODING).map_err(|problem| problem.within("continuation_encoding"))?;
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.step.within(&STEP_NAME).map_err(|problem| problem.within("step"))?;
        self.wake_at.within(&TIME_MS).map_err(|problem| problem.within("wake_at"))?;
        self.wake_in_ms.within(&DURATION_MS).map_err(|problem| problem.within("wake_in_ms"))?;
        Ok(())
    }
}

impl Bounded for ForkExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.body_digest.within(&DIGEST).map_err(|problem| problem.within("body_digest"))?;
        self.budgets.within(&BUDGET_REFS).map_err(|problem| problem.within("budgets"))?;
        self.from_step.within(&STEP_NAME).map_err(|problem| problem.within("from_step"))?;
        self.input.within(&INPUT).map_err(|problem| problem.within("input"))?;
        self.input_encoding.within(&ENCODING).map_err(|problem| problem.within("input_encoding"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.lane_depth.within(&COUNT).map_err(|problem| problem.within("lane_depth"))?;
        self.priority.within(&PRIORITY).map_err(|problem| problem.within("priority"))?;
        self.tags.within(&TAGS).map_err(|problem| problem.within("tags"))?;
        Ok(())
    }
}

impl Bounded for TakeWebhooks {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.each.within(&PER_RECEIVER).map_err(|problem| problem.within("each"))?;
        self.in_flight.within(&IN_FLIGHT).map_err(|problem| problem.within("in_flight"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for NoteWebhook {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.draw.within(&PERMILLE).map_err(|problem| problem.within("draw"))?;
        self.error.within(&WEBHOOK_ERROR).map_err(|problem| problem.within("error"))?;
        self.retry_after_ms.within(&DURATION_MS).map_err(|problem| problem.within("retry_after_ms"))?;
        self.status.within(&HTTP_STATUS).map_err(|problem| problem.within("status"))?;
        self.tries.within(&COUNT).map_err(|problem| problem.within("tries"))?;
        Ok(())
    }
}

impl Bounded for DescribeWebhook {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for PutSchedule {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.schedule.within(&Rule::Own).map_err(|problem| problem.within("schedule"))?;
        self.version.within(&COUNT).map_err(|problem| problem.within("version"))?;
        Ok(())
    }
}

impl Bounded for GetSchedule {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for ListSchedules {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for DeleteSchedule {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for PauseSchedule {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for ResumeSchedule {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for TriggerSchedule {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for BackfillSchedule {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.from.within(&TIME_MS).map_err(|problem| problem.within("from"))?;
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.to.within(&TIME_MS).map_err(|problem| problem.within("to"))?;
        self.total.within(&COUNT).map_err(|problem| problem.within("total"))?;
        Ok(())
    }
}

impl Bounded for StopBackfill {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for RefillSchedule {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&TIME_MS).map_err(|problem| problem.within("after"))?;
        self.missed.within(&Rule::Own).map_err(|problem| problem.within("missed"))?;
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.reckoned.within(&TIME_MS).map_err(|problem| problem.within("reckoned"))?;
        self.times.within(&PLANNED_TIMES).map_err(|problem| problem.within("times"))?;
        self.version.within(&COUNT).map_err(|problem| problem.within("version"))?;
        Ok(())
    }
}

impl Bounded for RefillBackfill {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&TIME_MS).map_err(|problem| problem.within("after"))?;
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.reckoned.within(&TIME_MS).map_err(|problem| problem.within("reckoned"))?;
        self.started_at.within(&TIME_MS).map_err(|problem| problem.within("started_at"))?;
        self.times.within(&PLANNED_TIMES).map_err(|problem| problem.within("times"))?;
        Ok(())
    }
}

impl Bounded for ListFirings {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for TakeFiring {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.number.within(&COUNT).map_err(|problem| problem.within("number"))?;
        Ok(())
    }
}

impl Bounded for SettleFiring {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.number.within(&COUNT).map_err(|problem| problem.within("number"))?;
        self.outcome.within(&FIRING_OUTCOME).map_err(|problem| problem.within("outcome"))?;
        self.refused.within(&FIRING_WHY).map_err(|problem| problem.within("refused"))?;
        Ok(())
    }
}

impl Bounded for EndFiring {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.name.within(&SCHEDULE_NAME).map_err(|problem| problem.within("name"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.number.within(&COUNT).map_err(|problem| problem.within("number"))?;
        self.outcome.within(&FIRING_OUTCOME).map_err(|problem| problem.within("outcome"))?;
        Ok(())
    }
}

impl Bounded for NoteKeys {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.gone.within(&KEY_IDS).map_err(|problem| problem.within("gone"))?;
        self.key_ids.within(&KEY_IDS).map_err(|problem| problem.within("key_ids"))?;
        Ok(())
    }
}

impl Bounded for RecordAction {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.key_id.within(&KEY_ID).map_err(|problem| problem.within("key_id"))?;
        Ok(())
    }
}

impl Bounded for GrantAccess {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.capabilities.within(&CAPABILITIES).map_err(|problem| problem.within("capabilities"))?;
        self.digest.within(&TOKEN_DIGEST).map_err(|problem| problem.within("digest"))?;
        self.expires_at.within(&TIME_MS).map_err(|problem| problem.within("expires_at"))?;
        self.lanes.within(&LANE_NAMES).map_err(|problem| problem.within("lanes"))?;
        self.name.within(&ACCESS_NAME).map_err(|problem| problem.within("name"))?;
        self.namespaces.within(&NAMESPACES).map_err(|problem| problem.within("namespaces"))?;
        self.roles.within(&ROLES).map_err(|problem| problem.within("roles"))?;
        Ok(())
    }
}

impl Bounded for FindAccess {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.digest.within(&TOKEN_DIGEST).map_err(|problem| problem.within("digest"))?;
        Ok(())
    }
}

impl Bounded for ListAccess {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for RevokeAccess {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        Ok(())
    }
}

impl Bounded for SetCapacity {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&MAX_ACTIVE).map_err(|problem| problem.within("limit"))?;
        self.set.within(&HOLDER_SET).map_err(|problem| problem.within("set"))?;
        self.version.within(&COUNT).map_err(|problem| problem.within("version"))?;
        Ok(())
    }
}

impl Bounded for AdmitHolders {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.holders.within(&CANDIDATES).map_err(|problem| problem.within("holders"))?;
        self.set.within(&HOLDER_SET).map_err(|problem| problem.within("set"))?;
        Ok(())
    }
}

impl Bounded for ConfirmHolders {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.holders.within(&HOLDERS).map_err(|problem| problem.within("holders"))?;
        self.set.within(&HOLDER_SET).map_err(|problem| problem.within("set"))?;
        Ok(())
    }
}

impl Bounded for ReleaseHolders {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.holders.within(&HOLDERS).map_err(|problem| problem.within("holders"))?;
        self.set.within(&HOLDER_SET).map_err(|problem| problem.within("set"))?;
        Ok(())
    }
}

impl Bounded for ListHolders {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        self.offset.within(&COUNT).map_err(|problem| problem.within("offset"))?;
        self.set.within(&HOLDER_SET).map_err(|problem| problem.within("set"))?;
        Ok(())
    }
}

impl Bounded for CheckHolders {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.holders.within(&HOLDERS).map_err(|problem| problem.within("holders"))?;
        self.set.within(&HOLDER_SET).map_err(|problem| problem.within("set"))?;
        Ok(())
    }
}

impl Bounded for AdoptHolders {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for PutQuota {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.quota.within(&Rule::Own).map_err(|problem| problem.within("quota"))?;
        self.version.within(&COUNT).map_err(|problem| problem.within("version"))?;
        Ok(())
    }
}

impl Bounded for GetQuota {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.key.within(&QUOTA_KEY).map_err(|problem| problem.within("key"))?;
        Ok(())
    }
}

impl Bounded for ListQuotas {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for ListQuotaKeys {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&COUNT).map_err(|problem| problem.within("after"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for DeleteQuota {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        Ok(())
    }
}

impl Bounded for AdmitQuota {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.candidates.within(&QUOTA_CANDIDATES).map_err(|problem| problem.within("candidates"))?;
        Ok(())
    }
}

impl Bounded for ReturnQuota {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.items.within(&QUOTA_RETURNS).map_err(|problem| problem.within("items"))?;
        Ok(())
    }
}

impl Bounded for GiveUpCalled {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.items.within(&QUOTA_ABSENCES).map_err(|problem| problem.within("items"))?;
        Ok(())
    }
}

impl Bounded for SettleQuota {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.key.within(&QUOTA_KEY).map_err(|problem| problem.within("key"))?;
        self.weight.within(&COUNT).map_err(|problem| problem.within("weight"))?;
        Ok(())
    }
}

impl Bounded for ThrottleQuota {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.key.within(&QUOTA_KEY).map_err(|problem| problem.within("key"))?;
        self.until.within(&TIME_MS).map_err(|problem| problem.within("until"))?;
        Ok(())
    }
}

impl Bounded for ListQuotaWaiters {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.key.within(&QUOTA_KEY).map_err(|problem| problem.within("key"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for QuotaStats {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.keys_max.within(&BATCH_SIZE).map_err(|problem| problem.within("keys_max"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for CreateBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.budget.within(&Rule::Own).map_err(|problem| problem.within("budget"))?;
        Ok(())
    }
}

impl Bounded for ChangeBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.limits.within(&DIMENSION_LIMITS).map_err(|problem| problem.within("limits"))?;
        self.version.within(&COUNT).map_err(|problem| problem.within("version"))?;
        Ok(())
    }
}

impl Bounded for GetBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for ListBudgets {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for BudgetStats {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for DeleteBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        Ok(())
    }
}

impl Bounded for ResetBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        Ok(())
    }
}

impl Bounded for ApproveBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        Ok(())
    }
}

impl Bounded for CorrectBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.delta.within(&DELTA).map_err(|problem| problem.within("delta"))?;
        self.dimension.within(&DIMENSION).map_err(|problem| problem.within("dimension"))?;
        self.reason.within(&REASON).map_err(|problem| problem.within("reason"))?;
        Ok(())
    }
}

impl Bounded for AdmitBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.candidates.within(&BUDGET_CANDIDATES).map_err(|problem| problem.within("candidates"))?;
        Ok(())
    }
}

impl Bounded for ReleaseBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.holders.within(&HOLDERS).map_err(|problem| problem.within("holders"))?;
        Ok(())
    }
}

impl Bounded for ReserveBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.dimensions.within(&AMOUNTS).map_err(|problem| problem.within("dimensions"))?;
        self.holder.within(&Rule::Own).map_err(|problem| problem.within("holder"))?;
        self.ttl_ms.within(&DURATION_MS).map_err(|problem| problem.within("ttl_ms"))?;
        Ok(())
    }
}

impl Bounded for SettleReservation {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.dimensions.within(&AMOUNTS).map_err(|problem| problem.within("dimensions"))?;
        Ok(())
    }
}

impl Bounded for ReleaseReservation {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for ApplyUsage {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.report.within(&Rule::Own).map_err(|problem| problem.within("report"))?;
        Ok(())
    }
}

impl Bounded for SetNextReset {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.next_reset_at.within(&TIME_MS).map_err(|problem| problem.within("next_reset_at"))?;
        self.period.within(&COUNT).map_err(|problem| problem.within("period"))?;
        Ok(())
    }
}

impl Bounded for ClearedBudgets {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        self.offset.within(&COUNT).map_err(|problem| problem.within("offset"))?;
        Ok(())
    }
}

impl Bounded for AcknowledgeCleared {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.rooms.within(&COUNT).map_err(|problem| problem.within("rooms"))?;
        self.told.within(&COUNT).map_err(|problem| problem.within("told"))?;
        Ok(())
    }
}

impl Bounded for NoteUsage {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.dedup_key.within(&DEDUP_KEY).map_err(|problem| problem.within("dedup_key"))?;
        self.dimensions.within(&AMOUNTS).map_err(|problem| problem.within("dimensions"))?;
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        Ok(())
    }
}

impl Bounded for SettleUsage {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.breach.within(&Rule::Own).map_err(|problem| problem.within("breach"))?;
        self.sequence.within(&COUNT).map_err(|problem| problem.within("sequence"))?;
        Ok(())
    }
}

impl Bounded for ReadUsage {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for HoldBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        Ok(())
    }
}

impl Bounded for QuotaHolder {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.fence.within(&Rule::Own).map_err(|problem| problem.within("fence"))?;
        self.key.within(&QUOTA_KEY).map_err(|problem| problem.within("key"))?;
        Ok(())
    }
}

impl Bounded for WaitingForBudgets {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for UnblockBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.free.within(&FREE).map_err(|problem| problem.within("free"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        self.most.within(&COUNT).map_err(|problem| problem.within("most"))?;
        self.rooms.within(&COUNT).map_err(|problem| problem.within("rooms"))?;
        Ok(())
    }
}

impl Bounded for AwaitingBudget {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for MissingQuotas {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for UnblockQuota {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for NoteScope {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.scope.within(&SCOPE_NAME).map_err(|problem| problem.within("scope"))?;
        Ok(())
    }
}

impl Bounded for BudgetsOfScopes {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.scopes.within(&SCOPE_NAMES).map_err(|problem| problem.within("scopes"))?;
        Ok(())
    }
}

impl Bounded for DefineLane {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.attempt_timeout_ms.within(&DURATION_MS).map_err(|problem| problem.within("attempt_timeout_ms"))?;
        self.fairness_weights.within(&FAIRNESS_WEIGHTS).map_err(|problem| problem.within("fairness_weights"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.lease_ttl_ms.within(&LEASE_TTL_MS).map_err(|problem| problem.within("lease_ttl_ms"))?;
        self.max_active.within(&MAX_ACTIVE).map_err(|problem| problem.within("max_active"))?;
        self.max_depth.within(&COUNT).map_err(|problem| problem.within("max_depth"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.priority_weight.within(&PRIORITY_WEIGHT).map_err(|problem| problem.within("priority_weight"))?;
        self.retention_ms.within(&DURATION_MS).map_err(|problem| problem.within("retention_ms"))?;
        self.retry.within(&Rule::Own).map_err(|problem| problem.within("retry"))?;
        self.weight.within(&WEIGHT).map_err(|problem| problem.within("weight"))?;
        Ok(())
    }
}

impl Bounded for GetLane {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for ListLanes {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        self.offset.within(&COUNT).map_err(|problem| problem.within("offset"))?;
        Ok(())
    }
}

impl Bounded for InstallLane {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.entry.within(&Rule::Own).map_err(|problem| problem.within("entry"))?;
        Ok(())
    }
}

impl Bounded for RegisterWorker {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.capabilities.within(&CAPABILITIES).map_err(|problem| problem.within("capabilities"))?;
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        self.kinds.within(&KINDS).map_err(|problem| problem.within("kinds"))?;
        self.lanes.within(&LANE_NAMES).map_err(|problem| problem.within("lanes"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.owner.within(&ACTOR).map_err(|problem| problem.within("owner"))?;
        self.slots.within(&SLOTS).map_err(|problem| problem.within("slots"))?;
        self.worker_id.within(&WORKER_ID).map_err(|problem| problem.within("worker_id"))?;
        Ok(())
    }
}

impl Bounded for HeartbeatWorkers {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.instances.within(&INSTANCES).map_err(|problem| problem.within("instances"))?;
        Ok(())
    }
}

impl Bounded for DeregisterWorker {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        Ok(())
    }
}

impl Bounded for ChallengeWorker {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        Ok(())
    }
}

impl Bounded for AnswerChallenge {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        Ok(())
    }
}

impl Bounded for DrainWorker {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        Ok(())
    }
}

impl Bounded for MarkWorkerDead {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.actor.within(&ACTOR).map_err(|problem| problem.within("actor"))?;
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        Ok(())
    }
}

impl Bounded for ListWorkers {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        self.offset.within(&COUNT).map_err(|problem| problem.within("offset"))?;
        Ok(())
    }
}

impl Bounded for GetWorker {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        Ok(())
    }
}

impl Bounded for OfferGrant {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        Ok(())
    }
}

impl Bounded for HeartbeatServer {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for DescribeExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for GetAttempt {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.index.within(&ATTEMPT_INDEX).map_err(|problem| problem.within("index"))?;
        Ok(())
    }
}

impl Bounded for ListExecutions {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&Rule::Own).map_err(|problem| problem.within("after"))?;
        self.created_after.within(&TIME_MS).map_err(|problem| problem.within("created_after"))?;
        self.created_before.within(&TIME_MS).map_err(|problem| problem.within("created_before"))?;
        self.kind.within(&KIND).map_err(|problem| problem.within("kind"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.tag_key.within(&TAG_KEY).map_err(|problem| problem.within("tag_key"))?;
        self.tag_value.within(&TAG_VALUE).map_err(|problem| problem.within("tag_value"))?;
        self.worker.within(&INSTANCE).map_err(|problem| problem.within("worker"))?;
        Ok(())
    }
}

impl Bounded for ReadEvents {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&EVENT_PLACE).map_err(|problem| problem.within("after"))?;
        self.from_ms.within(&TIME_MS).map_err(|problem| problem.within("from_ms"))?;
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for ReadOutbox {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&STREAM_ID).map_err(|problem| problem.within("after"))?;
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for ExplainExecution {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for ExplainLane {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for CountAhead {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.score.within(&INT).map_err(|problem| problem.within("score"))?;
        Ok(())
    }
}

impl Bounded for FindLeases {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.instance.within(&INSTANCE).map_err(|problem| problem.within("instance"))?;
        self.lease_prefix.within(&LEASE_PREFIX).map_err(|problem| problem.within("lease_prefix"))?;
        Ok(())
    }
}

impl Bounded for ReadSignals {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.after.within(&STREAM_ID).map_err(|problem| problem.within("after"))?;
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for PartitionStats {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.offset.within(&COUNT).map_err(|problem| problem.within("offset"))?;
        Ok(())
    }
}

impl Bounded for LaneDepth {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        Ok(())
    }
}

impl Bounded for Library {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for FireDue {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.draw.within(&PERMILLE).map_err(|problem| problem.within("draw"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for NextDue {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for AckOutbox {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.ids.within(&STREAM_IDS).map_err(|problem| problem.within("ids"))?;
        Ok(())
    }
}

impl Bounded for TallyEvents {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&LIST_LIMIT).map_err(|problem| problem.within("limit"))?;
        Ok(())
    }
}

impl Bounded for TrimEvents {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        Ok(())
    }
}

impl Bounded for ReviewRoutes {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.cursor.within(&COUNT).map_err(|problem| problem.within("cursor"))?;
        self.lane.within(&LANE).map_err(|problem| problem.within("lane"))?;
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        self.namespace.within(&NAMESPACE).map_err(|problem| problem.within("namespace"))?;
        self.skip.within(&COUNT).map_err(|problem| problem.within("skip"))?;
        self.workers.within(&WORKER_CLASSES).map_err(|problem| problem.within("workers"))?;
        Ok(())
    }
}

impl Bounded for FixPartitions {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.budgets.within(&PARTITION_COUNT).map_err(|problem| problem.within("budgets"))?;
        self.defaults.within(&Rule::Own).map_err(|problem| problem.within("defaults"))?;
        self.executions.within(&PARTITION_COUNT).map_err(|problem| problem.within("executions"))?;
        self.quotas.within(&PARTITION_COUNT).map_err(|problem| problem.within("quotas"))?;
        self.schedules.within(&PARTITION_COUNT).map_err(|problem| problem.within("schedules"))?;
        Ok(())
    }
}

impl Bounded for CheckExecutions {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.limit.within(&BATCH_SIZE).map_err(|problem| problem.within("limit"))?;
        self.offset.within(&COUNT).map_err(|problem| problem.within("offset"))?;
        Ok(())
    }
}

impl Bounded for CheckKeys {
    fn within(&self, _: &Rule) -> Result<(), Problem> {
        self.keys.within(&STORE_KEYS).map_err(|problem| problem.within("keys"))?;
        Ok(())
    }
}

/// Checks packed arguments of each function, for tests that compare with the library.
#[cfg(any(test, feature = "samples"))]
pub const CHECKS: &[(&str, crate::rules::PackedCheck)] = &[
    ("ff_submit_execution", crate::rules::check_packed::<SubmitExecution>),
    ("ff_complete_execution", crate::rules::check_packed::<CompleteExecution>),
    ("ff_fail_execution", crate::rules::check_packed::<FailExecution>),
    ("ff_cancel_execution", crate::rules::check_packed::<CancelExecution>),
    ("ff_cancel_attempt", crate::rules::check_packed::<CancelAttempt>),
    ("ff_delay_execution", crate::rules::check_packed::<DelayExecution>),
    ("ff_yield_execution", crate::rules::check_packed::<YieldExecution>),
    ("ff_update_progress", crate::rules::check_packed::<UpdateProgress>),
    ("ff_hold_execution", crate::rules::check_packed::<HoldExecution>),
    ("ff_release_execution", crate::rules::check_packed::<ReleaseExecution>),
    ("ff_change_execution", crate::rules::check_packed::<ChangeExecution>),
    ("ff_replay_execution", crate::rules::check_packed::<ReplayExecution>),
    ("ff_delete_execution", crate::rules::check_packed::<DeleteExecution>),
    ("ff_await_result", crate::rules::check_packed::<AwaitResult>),
    ("ff_claim_executions", crate::rules::check_packed::<ClaimExecutions>),
    ("ff_renew_lease", crate::rules::check_packed::<RenewLease>),
    ("ff_revoke_lease", crate::rules::check_packed::<RevokeLease>),
    ("ff_drain_leases", crate::rules::check_packed::<DrainLeases>),
    ("ff_issue_grants", crate::rules::check_packed::<IssueGrants>),
    ("ff_consume_grant", crate::rules::check_packed::<ConsumeGrant>),
    ("ff_keep_grant", crate::rules::check_packed::<KeepGrant>),
    ("ff_release_grant", crate::rules::check_packed::<ReleaseGrant>),
    ("ff_block_execution", crate::rules::check_packed::<BlockExecution>),
    ("ff_unblock_execution", crate::rules::check_packed::<UnblockExecution>),
    ("ff_grant_reclaim", crate::rules::check_packed::<GrantReclaim>),
    ("ff_suspend_execution", crate::rules::check_packed::<SuspendExecution>),
    ("ff_resume_execution", crate::rules::check_packed::<ResumeExecution>),
    ("ff_fail_suspension", crate::rules::check_packed::<FailSuspension>),
    ("ff_create_waitpoint", crate::rules::check_packed::<CreateWaitpoint>),
    ("ff_close_waitpoint", crate::rules::check_packed::<CloseWaitpoint>),
    ("ff_deliver_signal", crate::rules::check_packed::<DeliverSignal>),
    ("ff_reissue_token", crate::rules::check_packed::<ReissueToken>),
    ("ff_list_waitpoints", crate::rules::check_packed::<ListWaitpoints>),
    ("ff_describe_waitpoint", crate::rules::check_packed::<DescribeWaitpoint>),
    ("ff_execution_waitpoints", crate::rules::check_packed::<ExecutionWaitpoints>),
    ("ff_append_frames", crate::rules::check_packed::<AppendFrames>),
    ("ff_read_stream", crate::rules::check_packed::<ReadStream>),
    ("ff_read_summary", crate::rules::check_packed::<ReadSummary>),
    ("ff_follow_stream", crate::rules::check_packed::<FollowStream>),
    ("ff_submit_flow", crate::rules::check_packed::<SubmitFlow>),
    ("ff_add_members", crate::rules::check_packed::<AddMembers>),
    ("ff_add_edges", crate::rules::check_packed::<AddEdges>),
    ("ff_seal_flow", crate::rules::check_packed::<SealFlow>),
    ("ff_cancel_flow", crate::rules::check_packed::<CancelFlow>),
    ("ff_walk_flow", crate::rules::check_packed::<WalkFlow>),
    ("ff_describe_flow", crate::rules::check_packed::<DescribeFlow>),
    ("ff_await_flow", crate::rules::check_packed::<AwaitFlow>),
    ("ff_read_flow", crate::rules::check_packed::<ReadFlow>),
    ("ff_list_flows", crate::rules::check_packed::<ListFlows>),
    ("ff_spawn_children", crate::rules::check_packed::<SpawnChildren>),
    ("ff_wait_children", crate::rules::check_packed::<WaitChildren>),
    ("ff_read_children", crate::rules::check_packed::<ReadChildren>),
    ("ff_store_step", crate::rules::check_packed::<StoreStep>),
    ("ff_note_step", crate::rules::check_packed::<NoteStep>),
    ("ff_get_step", crate::rules::check_packed::<GetStep>),
    ("ff_list_steps", crate::rules::check_packed::<ListSteps>),
    ("ff_sleep_execution", crate::rules::check_packed::<SleepExecution>),
    ("ff_fork_execution", crate::rules::check_packed::<ForkExecution>),
    ("ff_take_webhooks", crate::rules::check_packed::<TakeWebhooks>),
    ("ff_note_webhook", crate::rules::check_packed::<NoteWebhook>),
    ("ff_describe_webhook", crate::rules::check_packed::<DescribeWebhook>),
    ("ff_put_schedule", crate::rules::check_packed::<PutSchedule>),
    ("ff_get_schedule", crate::rules::check_packed::<GetSchedule>),
    ("ff_list_schedules", crate::rules::check_packed::<ListSchedules>),
    ("ff_delete_schedule", crate::rules::check_packed::<DeleteSchedule>),
    ("ff_pause_schedule", crate::rules::check_packed::<PauseSchedule>),
    ("ff_resume_schedule", crate::rules::check_packed::<ResumeSchedule>),
    ("ff_trigger_schedule", crate::rules::check_packed::<TriggerSchedule>),
    ("ff_backfill_schedule", crate::rules::check_packed::<BackfillSchedule>),
    ("ff_stop_backfill", crate::rules::check_packed::<StopBackfill>),
    ("ff_refill_schedule", crate::rules::check_packed::<RefillSchedule>),
    ("ff_refill_backfill", crate::rules::check_packed::<RefillBackfill>),
    ("ff_list_firings", crate::rules::check_packed::<ListFirings>),
    ("ff_take_firing", crate::rules::check_packed::<TakeFiring>),
    ("ff_settle_firing", crate::rules::check_packed::<SettleFiring>),
    ("ff_end_firing", crate::rules::check_packed::<EndFiring>),
    ("ff_note_keys", crate::rules::check_packed::<NoteKeys>),
    ("ff_record_action", crate::rules::check_packed::<RecordAction>),
    ("ff_grant_access", crate::rules::check_packed::<GrantAccess>),
    ("ff_find_access", crate::rules::check_packed::<FindAccess>),
    ("ff_list_access", crate::rules::check_packed::<ListAccess>),
    ("ff_revoke_access", crate::rules::check_packed::<RevokeAccess>),
    ("ff_set_capacity", crate::rules::check_packed::<SetCapacity>),
    ("ff_admit_holders", crate::rules::check_packed::<AdmitHolders>),
    ("ff_confirm_holders", crate::rules::check_packed::<ConfirmHolders>),
    ("ff_release_holders", crate::rules::check_packed::<ReleaseHolders>),
    ("ff_list_holders", crate::rules::check_packed::<ListHolders>),
    ("ff_check_holders", crate::rules::check_packed::<CheckHolders>),
    ("ff_adopt_holders", crate::rules::check_packed::<AdoptHolders>),
    ("ff_put_quota", crate::rules::check_packed::<PutQuota>),
    ("ff_get_quota", crate::rules::check_packed::<GetQuota>),
    ("ff_list_quotas", crate::rules::check_packed::<ListQuotas>),
    ("ff_list_quota_keys", crate::rules::check_packed::<ListQuotaKeys>),
    ("ff_delete_quota", crate::rules::check_packed::<DeleteQuota>),
    ("ff_admit_quota", crate::rules::check_packed::<AdmitQuota>),
    ("ff_return_quota", crate::rules::check_packed::<ReturnQuota>),
    ("ff_give_up_called", crate::rules::check_packed::<GiveUpCalled>),
    ("ff_settle_quota", crate::rules::check_packed::<SettleQuota>),
    ("ff_throttle_quota", crate::rules::check_packed::<ThrottleQuota>),
    ("ff_list_quota_waiters", crate::rules::check_packed::<ListQuotaWaiters>),
    ("ff_quota_stats", crate::rules::check_packed::<QuotaStats>),
    ("ff_create_budget", crate::rules::check_packed::<CreateBudget>),
    ("ff_change_budget", crate::rules::check_packed::<ChangeBudget>),
    ("ff_get_budget", crate::rules::check_packed::<GetBudget>),
    ("ff_list_budgets", crate::rules::check_packed::<ListBudgets>),
    ("ff_budget_stats", crate::rules::check_packed::<BudgetStats>),
    ("ff_delete_budget", crate::rules::check_packed::<DeleteBudget>),
    ("ff_reset_budget", crate::rules::check_packed::<ResetBudget>),
    ("ff_approve_budget", crate::rules::check_packed::<ApproveBudget>),
    ("ff_correct_budget", crate::rules::check_packed::<CorrectBudget>),
    ("ff_admit_budget", crate::rules::check_packed::<AdmitBudget>),
    ("ff_release_budget", crate::rules::check_packed::<ReleaseBudget>),
    ("ff_reserve_budget", crate::rules::check_packed::<ReserveBudget>),
    ("ff_settle_reservation", crate::rules::check_packed::<SettleReservation>),
    ("ff_release_reservation", crate::rules::check_packed::<ReleaseReservation>),
    ("ff_apply_usage", crate::rules::check_packed::<ApplyUsage>),
    ("ff_set_next_reset", crate::rules::check_packed::<SetNextReset>),
    ("ff_cleared_budgets", crate::rules::check_packed::<ClearedBudgets>),
    ("ff_acknowledge_cleared", crate::rules::check_packed::<AcknowledgeCleared>),
    ("ff_note_usage", crate::rules::check_packed::<NoteUsage>),
    ("ff_settle_usage", crate::rules::check_packed::<SettleUsage>),
    ("ff_read_usage", crate::rules::check_packed::<ReadUsage>),
    ("ff_hold_budget", crate::rules::check_packed::<HoldBudget>),
    ("ff_quota_holder", crate::rules::check_packed::<QuotaHolder>),
    ("ff_waiting_for_budgets", crate::rules::check_packed::<WaitingForBudgets>),
    ("ff_unblock_budget", crate::rules::check_packed::<UnblockBudget>),
    ("ff_awaiting_budget", crate::rules::check_packed::<AwaitingBudget>),
    ("ff_missing_quotas", crate::rules::check_packed::<MissingQuotas>),
    ("ff_unblock_quota", crate::rules::check_packed::<UnblockQuota>),
    ("ff_note_scope", crate::rules::check_packed::<NoteScope>),
    ("ff_budgets_of_scopes", crate::rules::check_packed::<BudgetsOfScopes>),
    ("ff_define_lane", crate::rules::check_packed::<DefineLane>),
    ("ff_get_lane", crate::rules::check_packed::<GetLane>),
    ("ff_list_lanes", crate::rules::check_packed::<ListLanes>),
    ("ff_install_lane", crate::rules::check_packed::<InstallLane>),
    ("ff_register_worker", crate::rules::check_packed::<RegisterWorker>),
    ("ff_heartbeat_workers", crate::rules::check_packed::<HeartbeatWorkers>),
    ("ff_deregister_worker", crate::rules::check_packed::<DeregisterWorker>),
    ("ff_challenge_worker", crate::rules::check_packed::<ChallengeWorker>),
    ("ff_answer_challenge", crate::rules::check_packed::<AnswerChallenge>),
    ("ff_drain_worker", crate::rules::check_packed::<DrainWorker>),
    ("ff_mark_worker_dead", crate::rules::check_packed::<MarkWorkerDead>),
    ("ff_list_workers", crate::rules::check_packed::<ListWorkers>),
    ("ff_get_worker", crate::rules::check_packed::<GetWorker>),
    ("ff_offer_grant", crate::rules::check_packed::<OfferGrant>),
    ("ff_heartbeat_server", crate::rules::check_packed::<HeartbeatServer>),
    ("ff_describe_execution", crate::rules::check_packed::<DescribeExecution>),
    ("ff_get_attempt", crate::rules::check_packed::<GetAttempt>),
    ("ff_list_executions", crate::rules::check_packed::<ListExecutions>),
    ("ff_read_events", crate::rules::check_packed::<ReadEvents>),
    ("ff_read_outbox", crate::rules::check_packed::<ReadOutbox>),
    ("ff_explain_execution", crate::rules::check_packed::<ExplainExecution>),
    ("ff_explain_lane", crate::rules::check_packed::<ExplainLane>),
    ("ff_count_ahead", crate::rules::check_packed::<CountAhead>),
    ("ff_find_leases", crate::rules::check_packed::<FindLeases>),
    ("ff_read_signals", crate::rules::check_packed::<ReadSignals>),
    ("ff_partition_stats", crate::rules::check_packed::<PartitionStats>),
    ("ff_lane_depth", crate::rules::check_packed::<LaneDepth>),
    ("ff_library", crate::rules::check_packed::<Library>),
    ("ff_fire_due", crate::rules::check_packed::<FireDue>),
    ("ff_next_due", crate::rules::check_packed::<NextDue>),
    ("ff_ack_outbox", crate::rules::check_packed::<AckOutbox>),
    ("ff_tally_events", crate::rules::check_packed::<TallyEvents>),
    ("ff_trim_events", crate::rules::check_packed::<TrimEvents>),
    ("ff_review_routes", crate::rules::check_packed::<ReviewRoutes>),
    ("ff_fix_partitions", crate::rules::check_packed::<FixPartitions>),
    ("ff_check_executions", crate::rules::check_packed::<CheckExecutions>),
    ("ff_check_keys", crate::rules::check_packed::<CheckKeys>),
];
