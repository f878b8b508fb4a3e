//! An execution, whole and in a list. A lease shows who holds it, never its fence.

use std::collections::BTreeMap;

use ff_api::suspensions::Suspension;
use ff_api::usage::used;
use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{
    Attempt, BlockingReason, BudgetRef, Execution, Failure, Inbound, LifecyclePhase, OpenWaitpoint, Outcome,
    PastSuspension, Progress, PublicState, QuotaRef, Retry, Summary, WebhookStatus,
};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::child::ChildCounts;
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

#[derive(Serialize, ToSchema)]
struct LeaseShape {
    worker_id: String,
    worker_instance: String,
    lease_epoch: i64,
    expires_at: i64,
    cancel_requested: bool,
    yield_requested: bool,
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
    failure: Option<Failure>,
    attempts: Vec<Attempt>,
    /// Older attempts that `/history` and `/attempts/{n}` show.
    attempts_omitted: i64,
    lease: Option<LeaseShape>,
    progress: Option<Progress>,
    suspension: Option<Suspension>,
    /// Open ones, those of a running attempt included.
    waitpoints: Vec<OpenWaitpoint>,
    past_suspensions: Vec<PastSuspension>,
    /// How many signals came.
    signals: i64,
    flow_id: Option<FlowId>,
    parent_id: Option<ExecutionId>,
    /// Its name in its flow, or for its parent.
    key: Option<String>,
    inbound: Option<Inbound>,
    /// The flow that runs in its place.
    nested_flow_id: Option<FlowId>,
    children: ChildCounts,
    /// What its budgets accepted, by dimension; `/usage` shows the ledger.
    usage: BTreeMap<String, i64>,
    reclaim_count: i64,
    replay_count: i64,
    retry: Retry,
    attempt_timeout_ms: Option<i64>,
    max_reclaims: i64,
    max_replays: i64,
    fallback_index: Option<i64>,
    budgets: Vec<BudgetRef>,
    quotas: Vec<QuotaRef>,
    retention_ms: i64,
    trace_parent: Option<String>,
    completion_webhook: Option<String>,
    /// How far the webhook of its last end is.
    pub webhook: Option<WebhookStatus>,
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
            failure: execution.failure,
            attempts: execution.attempts.into_iter().collect(),
            attempts_omitted: execution.attempts_spilled,
            lease: execution.lease.map(|lease| LeaseShape {
                worker_id: lease.worker_id,
                worker_instance: lease.worker_instance,
                lease_epoch: lease.lease_epoch,
                expires_at: lease.expires_at,
                cancel_requested: lease.cancel_requested,
                yield_requested: lease.yield_requested,
            }),
            progress: execution.progress.map(|progress| Progress { pct: progress.pct, message: progress.message }),
            suspension: execution.suspension.map(Suspension::from),
            waitpoints: execution.waitpoints.into_iter().collect(),
            past_suspensions: execution.past_suspensions.into_iter().collect(),
            signals: execution.signals,
            flow_id: execution.flow_id,
            parent_id: execution.parent_id,
            key: execution.key,
            inbound: execution.inbound,
            nested_flow_id: execution.nested,
            children: ChildCounts { total: execution.children, open: execution.children_open },
            usage: execution.usage.map(|usage| used(&usage.ledger)).unwrap_or_default(),
            reclaim_count: execution.reclaim_count,
            replay_count: execution.replay_count,
            retry: execution.retry,
            attempt_timeout_ms: execution.attempt_timeout_ms,
            max_reclaims: execution.max_reclaims,
            max_replays: execution.max_replays,
            fallback_index: execution.fallback_index,
            budgets: execution.budgets.into_iter().collect(),
            quotas: execution
                .quotas
                .into_iter()
                .map(|q| QuotaRef { quota_id: q.quota_id, key: q.key, weight: q.weight })
                .collect(),
            retention_ms: execution.retention_ms,
            trace_parent: execution.trace_parent,
            completion_webhook: execution.completion_webhook,
            webhook: None,
        }
    }
}
