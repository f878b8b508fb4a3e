//! What the engine says about executions, flows and workers, the same on every transport. Executions, their results and their children are
//! shown as the API shows them.

mod flow;
mod usage;

use ff_core::types::{AttemptIndex, LaneId, Namespace};
use ff_engine::ListCursor;
use ff_script::generated;

pub use ff_api::executions::{
    Attempt as AttemptSnapshot, Child as ChildSnapshot, ChildCounts, Execution as ExecutionSnapshot, ExecutionResult,
    ExecutionSummary, Lease as LeaseSnapshot,
};
pub use ff_api::explain::{
    BlockingCause, BudgetFacts, BudgetInTheWay, BudgetLevel, Dependencies, Explanation, LaneFacts, LimitKind,
    NearestWorker, OpenChild, OpenChildren, QueuePlace, QuotaFacts, RequiredCapabilities,
};
pub use ff_api::explain_lane::{LaneExplanation, LaneReason, LaneReasonOf, LaneReasonPart, LaneWorkers};
pub use ff_api::suspensions::Suspension as SuspensionSnapshot;
pub use ff_script::generated::{
    EdgeOn, EdgeState, Failure, FlowState, MemberState, OpenWaitpoint as WaitpointSnapshot, PastSuspension, Progress,
    QuotaPart, QuotaUse, WebhookStatus,
};
pub use flow::{EdgeSnapshot, FlowGraph, FlowPage, FlowSnapshot, MemberSnapshot, SubmittedFlow};
pub use usage::{BudgetSnapshot, DimensionSnapshot, QuotaKeySnapshot, QuotaSnapshot, UsageLine, UsageSnapshot};

/// One page of a list, newest first; it may be short while more follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionPage {
    /// The executions.
    pub items: Vec<ExecutionSummary>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<ListCursor>,
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
    /// The kinds it takes; `None` is every kind.
    pub kinds: Option<Vec<String>>,
    /// How many leases it may hold.
    pub slots: u32,
    /// An operator asked it to take nothing new.
    pub draining: bool,
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
            kinds: worker.kinds,
            slots: u32::try_from(worker.slots).unwrap_or(u32::MAX),
            draining: worker.state == generated::WorkerState::Draining,
        }
    }
}

/// Attempts are numbered from 0; the contract bounds them far below what a u32 holds.
pub(crate) fn attempt_index(index: i64) -> AttemptIndex {
    AttemptIndex::new(u32::try_from(index).unwrap_or(u32::MAX))
}
