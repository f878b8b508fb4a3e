//! The mortal backend's flows and children.

use std::time::Duration;

use async_trait::async_trait;
use ff_core::types::{ExecutionId, FlowId, SuspensionId};
use ff_engine::operations::{NewChild, NewFlow};
use ff_script::generated::CancelPolicy;
use uuid::Uuid;

use super::crash::{Call, Mortal};
use crate::SdkError;
use crate::backend::{ChildrenWait, Flows, LeaseRef};
use crate::snapshot::{FlowSnapshot, SubmittedFlow};

#[async_trait]
impl Flows for Mortal {
    async fn spawn(
        &self,
        lease: LeaseRef,
        children: &[NewChild],
        request_id: Uuid,
    ) -> Result<Vec<ExecutionId>, SdkError> {
        self.through(Call::Spawn, self.inner.spawn(lease, children, request_id)).await
    }

    async fn wait_children(
        &self,
        lease: LeaseRef,
        wait_id: SuspensionId,
        aside: bool,
    ) -> Result<ChildrenWait, SdkError> {
        self.through(Call::WaitChildren, self.inner.wait_children(lease, wait_id, aside)).await
    }

    async fn submit_flow(&self, new: NewFlow) -> Result<SubmittedFlow, SdkError> {
        self.alive()?;
        self.inner.submit_flow(new).await
    }

    async fn describe_flow(&self, id: FlowId) -> Result<FlowSnapshot, SdkError> {
        self.alive()?;
        self.inner.describe_flow(id).await
    }

    async fn await_flow(&self, id: FlowId, wait: Duration) -> Result<Option<FlowSnapshot>, SdkError> {
        self.alive()?;
        self.inner.await_flow(id, wait).await
    }

    async fn cancel_flow(
        &self,
        id: FlowId,
        policy: CancelPolicy,
        reason: &str,
        wait: bool,
    ) -> Result<FlowSnapshot, SdkError> {
        self.alive()?;
        self.inner.cancel_flow(id, policy, reason, wait).await
    }
}
