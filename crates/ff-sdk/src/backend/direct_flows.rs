//! Flows and children of an engine in reach.

use std::time::Duration;

use async_trait::async_trait;
use ff_core::types::{ExecutionId, FlowId, SuspensionId};
use ff_engine::operations::{NewChild, NewFlow, Operations};
use ff_script::generated::{CancelFlowReply, CancelPolicy, WaitChildrenReply};
use uuid::Uuid;

use super::LeaseRef;
use super::direct::{Direct, fence};
use super::flows::{ChildrenWait, Flows};
use crate::SdkError;
use crate::snapshot::{FlowSnapshot, SubmittedFlow};

/// How long a cancel that waits for the end may take, as at a server.
const CANCEL_WAIT: Duration = Duration::from_secs(30);

impl Direct {
    fn flow_operations(&self) -> &Operations {
        self.engine().operations()
    }
}

#[async_trait]
impl Flows for Direct {
    async fn spawn(
        &self,
        lease: LeaseRef,
        children: &[NewChild],
        _request_id: Uuid,
    ) -> Result<Vec<ExecutionId>, SdkError> {
        let children = children.to_vec();
        let spawned = self.flow_operations().spawn(lease.execution_id, &fence(lease), children).await?;
        Ok(spawned.into_iter().map(|child| child.execution_id).collect())
    }

    async fn wait_children(
        &self,
        lease: LeaseRef,
        wait_id: SuspensionId,
        aside: bool,
    ) -> Result<ChildrenWait, SdkError> {
        Ok(match self.flow_operations().wait_children(lease.execution_id, fence(lease), wait_id, aside).await? {
            WaitChildrenReply::Waiting { open } => ChildrenWait::Waiting { open: open.unsigned_abs() },
            WaitChildrenReply::Ended { children, more } => {
                ChildrenWait::Ended { children: children.into_iter().map(Into::into).collect(), more }
            }
        })
    }

    async fn submit_flow(&self, new: NewFlow) -> Result<SubmittedFlow, SdkError> {
        let submitted = self.flow_operations().submit_flow(new).await?;
        Ok(SubmittedFlow { flow_id: submitted.flow.flow_id, members: submitted.members.into_iter().collect() })
    }

    async fn describe_flow(&self, id: FlowId) -> Result<FlowSnapshot, SdkError> {
        Ok(self.flow_operations().flow(id).await?.into())
    }

    async fn await_flow(&self, id: FlowId, wait: Duration) -> Result<Option<FlowSnapshot>, SdkError> {
        let (flow, ended) = self.engine().waiting().flow(id, wait).await?;
        Ok(ended.then(|| flow.into()))
    }

    async fn cancel_flow(
        &self,
        id: FlowId,
        policy: CancelPolicy,
        reason: &str,
        wait: bool,
    ) -> Result<FlowSnapshot, SdkError> {
        let answer = self.flow_operations().cancel_flow(id, policy, "sdk", Some(reason), wait).await?;
        let (CancelFlowReply::Cancelled { flow, .. } | CancelFlowReply::Already { flow }) = answer;
        if !wait {
            return Ok(flow.into());
        }
        let (flow, _) = self.engine().waiting().flow(id, CANCEL_WAIT).await?;
        Ok(flow.into())
    }
}
