//! The part of the seam about flows and children.

use std::time::Duration;

use async_trait::async_trait;
use ff_api::Ask;
use ff_api::graph::{FlowsQuery, ListFlows};
use ff_core::types::{ExecutionId, FlowId, SuspensionId};
use ff_engine::operations::{FlowCursor, FlowFilter, NewChild, NewFlow};
use ff_script::generated::CancelPolicy;
use uuid::Uuid;

use super::{LeaseRef, Reach};
use crate::SdkError;
use crate::snapshot::{ChildSnapshot, FlowPage, FlowSnapshot, SubmittedFlow};

/// What became of a wait for children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChildrenWait {
    /// The lease is given back.
    Waiting {
        /// How many have not ended.
        open: u64,
    },
    /// All have ended; the lease is still held.
    Ended {
        /// The children, in the order they were spawned.
        children: Vec<ChildSnapshot>,
        /// There are more than the answer holds.
        more: bool,
    },
}

/// Flows and children. Object safe; nothing has a default body.
#[async_trait]
pub trait Flows: Send + Sync + 'static {
    /// Spawns children under a lease; a child whose id is known is answered again.
    async fn spawn(
        &self,
        lease: LeaseRef,
        children: &[NewChild],
        request_id: Uuid,
    ) -> Result<Vec<ExecutionId>, SdkError>;

    /// Sets a running attempt aside until its children have ended; the same lease is answered the same again.
    async fn wait_children(
        &self,
        lease: LeaseRef,
        wait_id: SuspensionId,
        aside: bool,
    ) -> Result<ChildrenWait, SdkError>;

    /// Submits a flow; the same id answers the first one.
    async fn submit_flow(&self, new: NewFlow) -> Result<SubmittedFlow, SdkError>;

    /// A flow with its state and counts.
    async fn describe_flow(&self, id: FlowId) -> Result<FlowSnapshot, SdkError>;

    /// The flow once it has ended, or nothing when it has not after `wait`.
    async fn await_flow(&self, id: FlowId, wait: Duration) -> Result<Option<FlowSnapshot>, SdkError>;

    /// Cancels a flow; with `wait` it answers when the flow has ended, or after 30 s with how it stands.
    async fn cancel_flow(
        &self,
        id: FlowId,
        policy: CancelPolicy,
        reason: &str,
        wait: bool,
    ) -> Result<FlowSnapshot, SdkError>;
}

/// One page of flows, newest first.
pub(crate) async fn list_flows(
    reach: Reach,
    filter: &FlowFilter,
    after: Option<FlowCursor>,
    limit: usize,
) -> Result<FlowPage, SdkError> {
    let query = FlowsQuery {
        namespace: filter.namespace.clone(),
        kind: filter.kind.clone(),
        state: filter.state,
        limit: Some(i64::try_from(limit).unwrap_or(i64::MAX)),
        cursor: after.map(|cursor| cursor.to_string()),
    };
    let page = reach.ask(Ask::<ListFlows>::by((), query)).await?;
    let next = page.next_cursor.map(|cursor| cursor.parse()).transpose()?;
    Ok(FlowPage { items: page.items.into_iter().map(FlowSnapshot::from).collect(), next })
}
