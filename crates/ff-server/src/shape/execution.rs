//! An execution, whole and in a list. A lease shows who holds it, never its fence.

use std::collections::BTreeMap;

use ff_core::types::{AttemptId, ExecutionId, FlowId};
use ff_script::generated::{
    self, Attempt, AttemptState, AttemptType, BlockingReason, BudgetRef, Execution, LifecyclePhase, Outcome,
    PublicState, Summary,
};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::budget::used;
use super::child::ChildCounts;
use super::flow::InboundShape;
use super::retry::RetryShape;
use super::suspension::{OpenShape, PastShape, SuspensionShape};
use super::webhook::WebhookShape;
use crate::openapi::vocabulary;
use crate::payload::{self, Encoding};

/// An execution in a list.
#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionSummary)]
pub struct SummaryShape {
    execution_id: ExecutionId,
    namespace: String,
    lane: String,
    kind: String,
    state: PublicState,
    lifecycle_phase: LifecyclePhase,
    blocking_reason: Option<BlockingReason>,
    outcome: Option<Outcome>,
    priority: i64,
    created_at: i64,
    updated_at: i64,
    ended_at: Option<i64>,
    attempt_index: Option<i64>,
    worker_instance: Option<String>,
    flow_id: Option<FlowId>,
    parent_id: Option<ExecutionId>,
    key: Option<String>,
}

impl From<Summary> for SummaryShape {
    fn from(summary: Summary) -> Self {
        Self {
            execution_id: summary.execution_id,
            namespace: summary.namespace,
            lane: summary.lane,
            kind: summary.kind,
            state: summary.state,
            lifecycle_phase: summary.phase,
            blocking_reason: summary.blocking_reason,
            outcome: summary.outcome,
            priority: summary.priority,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            ended_at: summary.ended_at,
            attempt_index: summary.attempt_index,
            worker_instance: summary.worker_instance,
            flow_id: summary.flow_id,
            parent_id: summary.parent_id,
            key: summary.key,
        }
    }
}

/// Why an attempt or an execution failed.
#[derive(Serialize, ToSchema)]
pub struct FailureShape {
    reason: String,
    category: String,
}

impl From<generated::Failure> for FailureShape {
    fn from(failure: generated::Failure) -> Self {
        Self { reason: failure.reason, category: failure.category }
    }
}

/// One attempt.
#[derive(Serialize, ToSchema)]
pub struct AttemptShape {
    index: i64,
    attempt_id: AttemptId,
    #[schema(value_type = AttemptType)]
    r#type: &'static str,
    #[schema(value_type = AttemptState)]
    state: &'static str,
    worker_instance: String,
    started_at: i64,
    ended_at: Option<i64>,
    lease_epoch: i64,
    failure: Option<FailureShape>,
    /// How many frames it wrote.
    frames: i64,
}

impl From<Attempt> for AttemptShape {
    fn from(attempt: Attempt) -> Self {
        Self {
            index: attempt.index,
            attempt_id: attempt.attempt_id,
            r#type: attempt.r#type.as_str(),
            state: attempt.state.as_str(),
            worker_instance: attempt.worker_instance,
            started_at: attempt.started_at,
            ended_at: attempt.ended_at,
            lease_epoch: attempt.lease_epoch,
            failure: attempt.failure.map(FailureShape::from),
            frames: attempt.frames,
        }
    }
}

#[derive(Serialize, ToSchema)]
struct LeaseShape {
    worker_id: String,
    worker_instance: String,
    lease_epoch: i64,
    expires_at: i64,
    cancel_requested: bool,
    yield_requested: bool,
}

#[derive(Serialize, ToSchema)]
struct ProgressShape {
    pct: i64,
    message: Option<String>,
}

/// What an operator did.
#[derive(Serialize, ToSchema)]
#[schema(as = OperatorAction)]
pub struct ActionShape {
    action: String,
    actor: String,
    at: i64,
    reason: Option<String>,
}

impl From<generated::OperatorAction> for ActionShape {
    fn from(action: generated::OperatorAction) -> Self {
        Self { action: action.action, actor: action.actor, at: action.at, reason: action.reason }
    }
}

/// A budget an execution or a flow spends from.
#[derive(Serialize, ToSchema)]
#[schema(as = BudgetRef)]
pub struct BudgetShape {
    budget_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<BTreeMap<String, i64>>,
}

impl From<BudgetRef> for BudgetShape {
    fn from(budget: BudgetRef) -> Self {
        Self { budget_id: budget.budget_id, estimate: budget.estimate }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = QuotaRef)]
struct QuotaShape {
    quota_id: Uuid,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<i64>,
}

/// Everything about one execution.
#[derive(Serialize, ToSchema)]
pub struct ExecutionShape {
    execution_id: ExecutionId,
    namespace: String,
    lane: String,
    kind: String,
    state: PublicState,
    lifecycle_phase: LifecyclePhase,
    blocking_reason: Option<BlockingReason>,
    blocking_detail: Option<BTreeMap<String, String>>,
    blocked_since: Option<i64>,
    outcome: Option<Outcome>,
    priority: i64,
    created_at: i64,
    updated_at: i64,
    ended_at: Option<i64>,
    retire_at: Option<i64>,
    delay_until: Option<i64>,
    deadline_at: Option<i64>,
    start_by: Option<i64>,
    tags: BTreeMap<String, String>,
    requires: Vec<String>,
    prefers: Vec<String>,
    fairness_key: Option<String>,
    #[schema(value_type = vocabulary::Payload)]
    input: Box<RawValue>,
    /// Absent when there is no input.
    #[schema(value_type = Option<Encoding>)]
    input_encoding: Option<&'static str>,
    #[schema(value_type = vocabulary::Payload, required = false)]
    result: Option<Box<RawValue>>,
    #[schema(value_type = Option<Encoding>)]
    result_encoding: Option<&'static str>,
    failure: Option<FailureShape>,
    attempts: Vec<AttemptShape>,
    /// Older attempts that `/history` and `/attempts/{n}` show.
    attempts_omitted: i64,
    lease: Option<LeaseShape>,
    progress: Option<ProgressShape>,
    suspension: Option<SuspensionShape>,
    /// Open ones, those of a running attempt included.
    waitpoints: Vec<OpenShape>,
    past_suspensions: Vec<PastShape>,
    /// How many signals came.
    signals: i64,
    flow_id: Option<FlowId>,
    parent_id: Option<ExecutionId>,
    /// Its name in its flow, or for its parent.
    key: Option<String>,
    inbound: Option<InboundShape>,
    /// The flow that runs in its place.
    nested_flow_id: Option<FlowId>,
    children: ChildCounts,
    /// What its budgets accepted, by dimension; `/usage` shows the ledger.
    usage: BTreeMap<String, i64>,
    reclaim_count: i64,
    replay_count: i64,
    retry: RetryShape,
    attempt_timeout_ms: Option<i64>,
    max_reclaims: i64,
    max_replays: i64,
    fallback_index: Option<i64>,
    budgets: Vec<BudgetShape>,
    quotas: Vec<QuotaShape>,
    retention_ms: i64,
    trace_parent: Option<String>,
    completion_webhook: Option<String>,
    /// How far the webhook of its last end is.
    pub webhook: Option<WebhookShape>,
}

impl From<Execution> for ExecutionShape {
    fn from(execution: Execution) -> Self {
        let (input, input_encoding) = payload::shown_input(&execution.input.0, &execution.input_encoding);
        let encoding = execution.result_encoding.as_deref().unwrap_or("json");
        let result = execution.result.as_ref().map(|result| payload::shown(&result.0, encoding));
        let (result, result_encoding) = result.unzip();
        Self {
            execution_id: execution.execution_id,
            namespace: execution.namespace,
            lane: execution.lane,
            kind: execution.kind,
            state: execution.state,
            lifecycle_phase: execution.phase,
            blocking_reason: execution.blocking_reason,
            blocking_detail: execution.blocking_detail,
            blocked_since: execution.blocked_since,
            outcome: execution.outcome,
            priority: execution.priority,
            created_at: execution.created_at,
            updated_at: execution.updated_at,
            ended_at: execution.ended_at,
            retire_at: execution.retire_at,
            delay_until: execution.delay_until,
            deadline_at: execution.deadline_at,
            start_by: execution.start_by,
            tags: execution.tags,
            requires: execution.requires,
            prefers: execution.prefers,
            fairness_key: execution.fairness_key,
            input,
            input_encoding,
            result,
            result_encoding,
            failure: execution.failure.map(FailureShape::from),
            attempts: execution.attempts.into_iter().map(AttemptShape::from).collect(),
            attempts_omitted: execution.attempts_spilled,
            lease: execution.lease.map(|lease| LeaseShape {
                worker_id: lease.worker_id,
                worker_instance: lease.worker_instance,
                lease_epoch: lease.lease_epoch,
                expires_at: lease.expires_at,
                cancel_requested: lease.cancel_requested,
                yield_requested: lease.yield_requested,
            }),
            progress: execution.progress.map(|progress| ProgressShape { pct: progress.pct, message: progress.message }),
            suspension: execution.suspension.map(SuspensionShape::from),
            waitpoints: execution.waitpoints.into_iter().map(OpenShape::from).collect(),
            past_suspensions: execution.past_suspensions.into_iter().map(PastShape::from).collect(),
            signals: execution.signals,
            flow_id: execution.flow_id,
            parent_id: execution.parent_id,
            key: execution.key,
            inbound: execution.inbound.map(InboundShape::from),
            nested_flow_id: execution.nested,
            children: ChildCounts { total: execution.children, open: execution.children_open },
            usage: execution.usage.map(|usage| used(&usage.ledger)).unwrap_or_default(),
            reclaim_count: execution.reclaim_count,
            replay_count: execution.replay_count,
            retry: execution.retry.into(),
            attempt_timeout_ms: execution.attempt_timeout_ms,
            max_reclaims: execution.max_reclaims,
            max_replays: execution.max_replays,
            fallback_index: execution.fallback_index,
            budgets: execution.budgets.into_iter().map(BudgetShape::from).collect(),
            quotas: execution
                .quotas
                .into_iter()
                .map(|q| QuotaShape { quota_id: q.quota_id, key: q.key, weight: q.weight })
                .collect(),
            retention_ms: execution.retention_ms,
            trace_parent: execution.trace_parent,
            completion_webhook: execution.completion_webhook,
            webhook: None,
        }
    }
}
