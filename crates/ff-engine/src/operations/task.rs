//! What a worker does with a partition: claim, renew, and end attempts.

use ff_core::types::{AttemptId, ExecutionId, LeaseId};
use ff_script::generated::{
    CancelAttempt, CancelAttemptReply, ClaimExecutions, ClaimExecutionsReply, CompleteExecution,
    CompleteExecutionReply, DelayExecution, DelayExecutionReply, FailExecution, FailExecutionReply, Fence, LeaseIds,
    RenewLease, RenewLeaseReply, Task, UpdateProgress, YieldExecution, YieldExecutionReply,
};
use ff_script::{Bytes, Error, Route};
use uuid::Uuid;

use super::Operations;

/// Who claims, and how.
#[derive(Clone, Debug)]
pub struct Claimant {
    /// The namespace of the lane.
    pub namespace: String,
    /// The lane.
    pub lane: String,
    /// The worker's name.
    pub worker_id: String,
    /// The process that holds the leases.
    pub instance: String,
    /// What the worker can do.
    pub capabilities: Vec<String>,
    /// How long a lease lasts without renewal.
    pub lease_ttl_ms: i64,
}

/// What a claim brought, with the score of what waits next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The leased executions.
    pub tasks: Vec<Task>,
    /// The best score left in the partition, when something is.
    pub next_score: Option<i64>,
    /// The lane is limited: nothing of it is claimed without admission.
    pub admission_needed: bool,
}

/// The fence of a claimed task.
#[must_use]
pub fn fence_of(task: &Task) -> Fence {
    Fence { attempt_id: task.attempt_id, lease_id: task.lease_id, lease_epoch: task.lease_epoch }
}

impl Operations {
    /// Claims up to `max` executions of one partition; repeat with the same `request_id` after a lost reply.
    pub async fn claim(&self, route: Route, who: &Claimant, max: u16, request_id: Uuid) -> Result<Claimed, Error> {
        let call = ClaimExecutions {
            capabilities: who.capabilities.clone(),
            ids: (0..max).map(|_| LeaseIds { attempt_id: AttemptId::mint(), lease_id: LeaseId::mint() }).collect(),
            instance: who.instance.clone(),
            lane: who.lane.clone(),
            lease_ttl_ms: who.lease_ttl_ms,
            max: i64::from(max),
            namespace: who.namespace.clone(),
            request_id,
            worker_id: who.worker_id.clone(),
        };
        Ok(match self.client.call(route, &call).await? {
            ClaimExecutionsReply::Claimed { tasks, next_score, admission_needed } => {
                Claimed { tasks, next_score, admission_needed: admission_needed == Some(true) }
            }
            ClaimExecutionsReply::Replayed { tasks } => Claimed { tasks, ..Claimed::default() },
            ClaimExecutionsReply::Paused { .. } => Claimed::default(),
        })
    }

    /// Moves the end of a lease.
    pub async fn renew(&self, id: ExecutionId, fence: Fence) -> Result<RenewLeaseReply, Error> {
        self.client.call(self.client.route_of(&id), &RenewLease { execution_id: id, fence, lease_ttl_ms: None }).await
    }

    /// Ends the attempt with a result.
    pub async fn complete(
        &self,
        id: ExecutionId,
        fence: Fence,
        result: Option<Vec<u8>>,
    ) -> Result<CompleteExecutionReply, Error> {
        let call = CompleteExecution { execution_id: id, fence, result: result.map(Bytes), result_encoding: None };
        self.client.call(self.client.route_of(&id), &call).await
    }

    /// Ends the attempt with a failure; the policy decides what follows.
    pub async fn fail(
        &self,
        id: ExecutionId,
        fence: Fence,
        reason: &str,
        category: &str,
    ) -> Result<FailExecutionReply, Error> {
        let call = FailExecution {
            category: category.to_owned(),
            draw: rand::random_range(0..=1000),
            execution_id: id,
            fence,
            reason: reason.to_owned(),
            retry_after_ms: None,
            retryable: None,
        };
        self.client.call(self.client.route_of(&id), &call).await
    }

    /// The worker cancels its own execution.
    pub async fn cancel_attempt(
        &self,
        id: ExecutionId,
        fence: Fence,
        reason: &str,
    ) -> Result<CancelAttemptReply, Error> {
        let call = CancelAttempt { execution_id: id, fence, reason: Some(reason.to_owned()) };
        self.client.call(self.client.route_of(&id), &call).await
    }

    /// Hands the execution back until a time.
    pub async fn delay(&self, id: ExecutionId, fence: Fence, until_ms: i64) -> Result<DelayExecutionReply, Error> {
        let call = DelayExecution { delay_ms: None, delay_until: Some(until_ms), execution_id: id, fence };
        self.client.call(self.client.route_of(&id), &call).await
    }

    /// Hands the execution back at once, counted nowhere.
    pub async fn yield_back(&self, id: ExecutionId, fence: Fence) -> Result<YieldExecutionReply, Error> {
        self.client.call(self.client.route_of(&id), &YieldExecution { execution_id: id, fence }).await
    }

    /// Notes how far the attempt is.
    pub async fn progress(&self, id: ExecutionId, fence: Fence, pct: u8, message: Option<&str>) -> Result<(), Error> {
        let call = UpdateProgress { execution_id: id, fence, message: message.map(str::to_owned), pct: i64::from(pct) };
        self.client.call(self.client.route_of(&id), &call).await.map(|_| ())
    }
}
