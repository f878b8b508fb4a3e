//! What a worker does with a task it holds. Every operation presents the fence of its lease and is safe to repeat.

use ff_api::tasks::{CancelTask, CompleteTask, DelayTask, FailTask, ReportProgress, TaskDone, TaskOutcome, YieldTask};
use ff_api::{Ask, Problem};
use ff_core::limits::{INPUT_BYTES_MAX, REASON_BYTES_MAX};
use ff_core::types::ExecutionId;
use ff_script::Call;
use ff_script::generated::{
    CancelAttempt, CancelAttemptReply, CompleteExecution, CompleteExecutionReply, DelayExecution, DelayExecutionReply,
    Fence, UpdateProgress, UpdateProgressReply, YieldExecution, YieldExecutionReply,
};

use super::results::failure;
use super::{about, bounded, stored};
use crate::principal::Principal;
use crate::service::{Handle, Service};

impl Service {
    /// Makes a call that ends the lease it presents.
    async fn end<C: Call>(&self, by: &Principal, id: ExecutionId, fence: Fence, call: &C) -> Result<C::Reply, Problem> {
        let client = self.operations.client();
        let call = async { client.call(client.route_of(&id), call).await.map_err(about(id)) };
        self.fenced(by, id, fence, |_| true, call).await
    }
}

impl Handle<CompleteTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CompleteTask>) -> Result<TaskDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        let (result, result_encoding) = stored("result", body.payload()?, INPUT_BYTES_MAX)?;
        let call = CompleteExecution { execution_id: id, fence: body.fence, result, result_encoding };
        let carried = self.engine.waiting().carry([id]);
        let reply = self.end(by, id, body.fence, &call).await?;
        if reply == CompleteExecutionReply::Completed {
            carried.completed(&call);
        }
        Ok(TaskDone::new(id, TaskOutcome::Completed, reply == CompleteExecutionReply::Replayed))
    }
}

impl Handle<FailTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<FailTask>) -> Result<TaskDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        let why = (body.reason, body.category);
        let call = failure(id, body.fence, why, body.retryable, body.retry_after_ms)?;
        Ok(TaskDone::failed(id, self.end(by, id, body.fence, &call).await?))
    }
}

impl Handle<CancelTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CancelTask>) -> Result<TaskDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        let call = CancelAttempt { execution_id: id, fence: body.fence, reason: body.reason };
        let reply = self.end(by, id, body.fence, &call).await?;
        Ok(TaskDone::new(id, TaskOutcome::Cancelled, reply == CancelAttemptReply::Replayed))
    }
}

impl Handle<DelayTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<DelayTask>) -> Result<TaskDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        if body.delay_ms.is_some() == body.delay_until.is_some() {
            return Err(Problem::invalid("delay_ms", "or delay_until must be given, not both"));
        }
        let (delay_ms, delay_until) = (body.delay_ms, body.delay_until);
        let call = DelayExecution { delay_ms, delay_until, execution_id: id, fence: body.fence };
        let DelayExecutionReply::Delayed { delay_until, replayed } = self.end(by, id, body.fence, &call).await?;
        Ok(TaskDone { delay_until: Some(delay_until), ..TaskDone::new(id, TaskOutcome::Delayed, replayed) })
    }
}

impl Handle<YieldTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<YieldTask>) -> Result<TaskDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        let call = YieldExecution { execution_id: id, fence: body.fence };
        let reply = self.end(by, id, body.fence, &call).await?;
        Ok(TaskDone::new(id, TaskOutcome::Yielded, reply == YieldExecutionReply::Replayed))
    }
}

impl Handle<ReportProgress> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReportProgress>) -> Result<TaskDone, Problem> {
        let Ask { at: id, body, .. } = ask;
        let call = UpdateProgress { execution_id: id, fence: body.fence, message: body.message, pct: body.pct };
        let client = self.operations.client();
        let noting = async { client.call(client.route_of(&id), &call).await.map_err(about(id)) };
        let UpdateProgressReply::Noted = self.fenced(by, id, body.fence, |_| false, noting).await?;
        Ok(TaskDone::new(id, TaskOutcome::Noted, false))
    }
}
