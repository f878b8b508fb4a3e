//! What the engine says about executions, flows and workers, the same on every transport.

mod flow;
mod usage;

use std::collections::BTreeMap;

use ff_core::state::{AttemptState, BlockingReason, LifecyclePhase, Outcome, PublicState};
use ff_core::types::{
    AttemptId, AttemptIndex, ExecutionId, LaneId, LeaseEpoch, Namespace, SuspensionId, TimestampMs, WaitpointId,
};
use ff_engine::ListCursor;
use ff_script::generated;

pub use ff_script::generated::{EdgeOn, EdgeState, FlowState, MemberState, QuotaPart, QuotaUse};
pub use flow::{ChildSnapshot, EdgeSnapshot, FlowGraph, FlowPage, FlowSnapshot, MemberSnapshot, SubmittedFlow};
pub use usage::{BudgetSnapshot, DimensionSnapshot, QuotaKeySnapshot, QuotaSnapshot, UsageLine, UsageSnapshot};

/// One execution as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionSnapshot {
    /// Its id.
    pub execution_id: ExecutionId,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its lane.
    pub lane: LaneId,
    /// Its kind.
    pub kind: String,
    /// What a user calls its state.
    pub state: PublicState,
    /// Runnable, active, suspended or terminal.
    pub lifecycle_phase: LifecyclePhase,
    /// Why it cannot start, when it cannot.
    pub blocking_reason: Option<BlockingReason>,
    /// The facts behind the reason.
    pub blocking_detail: BTreeMap<String, String>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Its priority.
    pub priority: i64,
    /// When it was submitted.
    pub created_at: TimestampMs,
    /// When it changed last.
    pub updated_at: TimestampMs,
    /// Until when it waits.
    pub delay_until: Option<TimestampMs>,
    /// When it ends at the latest.
    pub deadline_at: Option<TimestampMs>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// The capabilities it requires.
    pub requires: Vec<String>,
    /// Its input.
    pub input: Vec<u8>,
    /// Its result.
    pub result: Option<Vec<u8>>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptSnapshot>,
    /// The lease of the running attempt.
    pub lease: Option<LeaseSnapshot>,
    /// How far the running attempt is.
    pub progress: Option<Progress>,
    /// What it waits for, while it is suspended.
    pub suspension: Option<SuspensionSnapshot>,
    /// How often a lease was lost in a row.
    pub reclaim_count: u64,
    /// How often it was replayed.
    pub replay_count: u64,
    /// What its budgets accepted, by dimension.
    pub usage: BTreeMap<String, u64>,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Failure {
    /// For people.
    pub reason: String,
    /// For policies.
    pub category: String,
}

/// How far an attempt is.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Progress {
    /// Percent, 0 to 100.
    pub pct: u8,
    /// What it is doing.
    pub message: Option<String>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptSnapshot {
    /// Its number.
    pub index: AttemptIndex,
    /// Its id.
    pub attempt_id: AttemptId,
    /// `initial`, `retry`, `reclaim` or `replay`.
    pub kind: String,
    /// Where it stands.
    pub state: AttemptState,
    /// The process that ran it.
    pub worker_instance: String,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// A lease as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSnapshot {
    /// The kind of worker.
    pub worker_id: String,
    /// The process that holds it.
    pub worker_instance: String,
    /// Its epoch.
    pub lease_epoch: LeaseEpoch,
    /// When it runs out without renewal.
    pub expires_at: TimestampMs,
}

/// What a suspended execution waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspensionSnapshot {
    /// The suspension.
    pub suspension_id: SuspensionId,
    /// Why, in the engine's words.
    pub reason: String,
    /// Since when.
    pub suspended_at: TimestampMs,
    /// When it takes too long.
    pub timeout_at: Option<TimestampMs>,
    /// Where signals arrive.
    pub waitpoints: Vec<WaitpointSnapshot>,
}

/// An open waitpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitpointSnapshot {
    /// Its id.
    pub waitpoint_id: WaitpointId,
    /// Its key.
    pub key: String,
    /// When it closes by itself.
    pub expires_at: Option<TimestampMs>,
}

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionSummary {
    /// Its id.
    pub execution_id: ExecutionId,
    /// Its lane.
    pub lane: LaneId,
    /// Its kind.
    pub kind: String,
    /// What a user calls its state.
    pub state: PublicState,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// When it was submitted.
    pub created_at: TimestampMs,
}

/// One page of a list, newest first; it may be short while more follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionPage {
    /// The executions.
    pub items: Vec<ExecutionSummary>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<ListCursor>,
}

/// How an execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionResult {
    /// The outcome.
    pub outcome: Outcome,
    /// The result of a success.
    pub result: Option<Vec<u8>>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// One live worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSnapshot {
    /// The kind of worker.
    pub worker_id: String,
    /// The process.
    pub instance: String,
    /// The namespace of its lanes.
    pub namespace: Namespace,
    /// The lanes it serves.
    pub lanes: Vec<LaneId>,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// How many leases it may hold.
    pub slots: u32,
    /// An operator asked it to take nothing new.
    pub draining: bool,
}

impl From<generated::Failure> for Failure {
    fn from(failure: generated::Failure) -> Self {
        Self { reason: failure.reason, category: failure.category }
    }
}

fn used(usage: Option<generated::Usage>) -> BTreeMap<String, u64> {
    let mut used: BTreeMap<String, u64> = BTreeMap::new();
    for line in usage.map(|usage| usage.ledger).unwrap_or_default().into_iter().filter(|line| line.accepted > 0) {
        let sum = used.entry(line.dimension).or_default();
        *sum = sum.saturating_add(line.accepted.unsigned_abs());
    }
    used
}

impl From<generated::Execution> for ExecutionSnapshot {
    fn from(e: generated::Execution) -> Self {
        Self {
            execution_id: e.execution_id,
            namespace: Namespace::new(e.namespace),
            lane: LaneId::new(e.lane),
            kind: e.kind,
            state: e.state,
            lifecycle_phase: e.phase,
            blocking_reason: e.blocking_reason,
            blocking_detail: e.blocking_detail.unwrap_or_default(),
            outcome: e.outcome,
            priority: e.priority,
            created_at: TimestampMs(e.created_at),
            updated_at: TimestampMs(e.updated_at),
            delay_until: e.delay_until.map(TimestampMs),
            deadline_at: e.deadline_at.map(TimestampMs),
            tags: e.tags,
            requires: e.requires,
            input: e.input.0,
            result: e.result.map(|bytes| bytes.0),
            failure: e.failure.map(Failure::from),
            attempts: e.attempts.into_iter().map(AttemptSnapshot::from).collect(),
            lease: e.lease.map(LeaseSnapshot::from),
            progress: e
                .progress
                .map(|progress| Progress { pct: u8::try_from(progress.pct).unwrap_or(100), message: progress.message }),
            suspension: e.suspension.map(SuspensionSnapshot::from),
            reclaim_count: e.reclaim_count.unsigned_abs(),
            replay_count: e.replay_count.unsigned_abs(),
            usage: used(e.usage),
        }
    }
}

impl From<generated::Attempt> for AttemptSnapshot {
    fn from(attempt: generated::Attempt) -> Self {
        Self {
            index: attempt_index(attempt.index),
            attempt_id: attempt.attempt_id,
            kind: attempt.r#type.as_str().to_owned(),
            state: attempt.state,
            worker_instance: attempt.worker_instance,
            failure: attempt.failure.map(Failure::from),
        }
    }
}

impl From<generated::Suspension> for SuspensionSnapshot {
    fn from(suspension: generated::Suspension) -> Self {
        let open = |open: generated::OpenWaitpoint| WaitpointSnapshot {
            waitpoint_id: open.waitpoint_id,
            key: open.key,
            expires_at: open.expires_at.map(TimestampMs),
        };
        Self {
            suspension_id: suspension.suspension_id,
            reason: suspension.reason.as_str().to_owned(),
            suspended_at: TimestampMs(suspension.suspended_at),
            timeout_at: suspension.timeout_at.map(TimestampMs),
            waitpoints: suspension.waitpoints.into_iter().map(open).collect(),
        }
    }
}

impl From<generated::Lease> for LeaseSnapshot {
    fn from(lease: generated::Lease) -> Self {
        Self {
            worker_id: lease.worker_id,
            worker_instance: lease.worker_instance,
            lease_epoch: LeaseEpoch::new(lease.lease_epoch.unsigned_abs()),
            expires_at: TimestampMs(lease.expires_at),
        }
    }
}

impl From<generated::Summary> for ExecutionSummary {
    fn from(summary: generated::Summary) -> Self {
        Self {
            execution_id: summary.execution_id,
            lane: LaneId::new(summary.lane),
            kind: summary.kind,
            state: summary.state,
            outcome: summary.outcome,
            created_at: TimestampMs(summary.created_at),
        }
    }
}

impl From<generated::Worker> for WorkerSnapshot {
    fn from(worker: generated::Worker) -> Self {
        ff_api::workers::Worker::from(worker).into()
    }
}

impl From<ff_api::workers::Worker> for WorkerSnapshot {
    fn from(worker: ff_api::workers::Worker) -> Self {
        Self {
            worker_id: worker.worker_id,
            instance: worker.instance,
            namespace: Namespace::new(worker.namespace),
            lanes: worker.lanes.into_iter().map(LaneId::new).collect(),
            capabilities: worker.capabilities,
            slots: u32::try_from(worker.slots).unwrap_or(u32::MAX),
            draining: worker.state == generated::WorkerState::Draining,
        }
    }
}

/// Attempts are numbered from 0; the contract bounds them far below what a u32 holds.
pub(crate) fn attempt_index(index: i64) -> AttemptIndex {
    AttemptIndex::new(u32::try_from(index).unwrap_or(u32::MAX))
}
