//! What operators and submitters do with one execution.

use ff_api::steps::ReplayFrom;
use ff_core::error_code::ErrorCode;
use ff_core::types::ExecutionId;
use ff_script::Error;
use ff_script::generated::{
    Attempt, AwaitResult, AwaitResultReply, CancelExecution, CancelExecutionReply, ChangeExecution,
    ChangeExecutionReply, DeleteExecution, DescribeExecution, DescribeExecutionReply, Execution, GetAttempt,
    GetAttemptReply, HoldExecution, HoldExecutionReply, ReleaseExecution, ReleaseExecutionReply, ReplayExecution,
    ReplayExecutionReply, RevokeLease, RevokeLeaseReply,
};

use super::{Operations, refused_with};

impl Operations {
    /// Everything the store knows about an execution.
    pub async fn describe(&self, id: ExecutionId) -> Result<Execution, Error> {
        let call = DescribeExecution { execution_id: id };
        let DescribeExecutionReply::Found { execution } = self.client.call(self.client.route_of(&id), &call).await?;
        Ok(execution)
    }

    /// One attempt, however old.
    pub async fn attempt(&self, id: ExecutionId, index: u32) -> Result<Attempt, Error> {
        let call = GetAttempt { execution_id: id, index: i64::from(index) };
        let GetAttemptReply::Found { attempt } = self.client.call(self.client.route_of(&id), &call).await?;
        Ok(attempt)
    }

    /// The outcome, or a mark that makes the end announced.
    pub async fn await_result(&self, id: ExecutionId) -> Result<AwaitResultReply, Error> {
        self.client.call(self.client.route_of(&id), &AwaitResult { execution_id: id }).await
    }

    /// Cancels; a running attempt ends at once, or within `grace_ms`.
    pub async fn cancel(
        &self,
        id: ExecutionId,
        actor: &str,
        reason: Option<&str>,
        grace_ms: Option<i64>,
    ) -> Result<CancelExecutionReply, Error> {
        let call =
            CancelExecution { actor: actor.to_owned(), execution_id: id, grace_ms, reason: reason.map(str::to_owned) };
        self.client.call(self.client.route_of(&id), &call).await
    }

    /// Keeps a runnable execution from starting.
    pub async fn hold(&self, id: ExecutionId, actor: &str, reason: Option<&str>) -> Result<HoldExecutionReply, Error> {
        let call = HoldExecution { actor: actor.to_owned(), execution_id: id, reason: reason.map(str::to_owned) };
        self.client.call(self.client.route_of(&id), &call).await
    }

    /// Ends a hold.
    pub async fn release(
        &self,
        id: ExecutionId,
        actor: &str,
        reason: Option<&str>,
    ) -> Result<ReleaseExecutionReply, Error> {
        let call = ReleaseExecution { actor: actor.to_owned(), execution_id: id, reason: reason.map(str::to_owned) };
        self.client.call(self.client.route_of(&id), &call).await
    }

    /// Changes priority, lane, tags, deadline or delay; a lane the partition has not seen is shown to it.
    pub async fn change(&self, change: ChangeExecution) -> Result<ChangeExecutionReply, Error> {
        let route = self.client.route_of(&change.execution_id);
        match self.client.call(route, &change).await {
            Err(error) if refused_with(&error) == Some(ErrorCode::LaneUnseen) => {
                let execution = self.describe(change.execution_id).await?;
                let lane = change.lane.as_deref().unwrap_or(&execution.lane);
                self.show_lane(route, &execution.namespace, lane).await?;
                self.client.call(route, &change).await
            }
            answer => answer,
        }
    }

    /// Runs an ended execution again; it keeps its steps.
    pub async fn replay(
        &self,
        id: ExecutionId,
        actor: &str,
        reason: Option<&str>,
    ) -> Result<ReplayExecutionReply, Error> {
        self.replay_from(id, actor, reason, None).await
    }

    /// Runs an ended execution again. It keeps its steps, or with `from` those before that place.
    pub async fn replay_from(
        &self,
        id: ExecutionId,
        actor: &str,
        reason: Option<&str>,
        from: Option<ReplayFrom>,
    ) -> Result<ReplayExecutionReply, Error> {
        let (from_start, from_step) = match from {
            None => (None, None),
            Some(ReplayFrom::Start) => (Some(true), None),
            Some(ReplayFrom::Step(name)) => (None, Some(name)),
        };
        let reason = reason.map(str::to_owned);
        let call = ReplayExecution { reason, from_start, from_step, ..ReplayExecution::new(actor.to_owned(), id) };
        self.client.call(self.client.route_of(&id), &call).await
    }

    /// Takes the lease away, at once or by asking the worker to yield.
    pub async fn revoke(
        &self,
        id: ExecutionId,
        actor: &str,
        reason: Option<&str>,
        grace: bool,
    ) -> Result<RevokeLeaseReply, Error> {
        let call = RevokeLease {
            actor: actor.to_owned(),
            execution_id: id,
            grace: Some(grace),
            reason: reason.map(str::to_owned),
        };
        self.client.call(self.client.route_of(&id), &call).await
    }

    /// Removes an ended execution before its retention is over.
    pub async fn delete(&self, id: ExecutionId, actor: &str) -> Result<(), Error> {
        let call = DeleteExecution { actor: actor.to_owned(), execution_id: id };
        self.client.call(self.client.route_of(&id), &call).await.map(|_| ())
    }
}
