//! What a worker does with a task it holds, as calls of the library, for tests and benches below the engine.

use ff_core::types::ExecutionId;
use ff_script::generated::{
    CompleteExecution, CompleteExecutionReply, DelayExecution, DelayExecutionReply, FailExecution, FailExecutionReply,
    Fence, RenewLease, RenewLeaseReply,
};
use ff_script::{Bytes, Client, Error};

/// Ends and renewals of tasks.
pub trait Tasks {
    /// Ends the attempt with a result.
    fn complete(
        &self,
        id: ExecutionId,
        fence: Fence,
        result: Option<Vec<u8>>,
    ) -> impl Future<Output = Result<CompleteExecutionReply, Error>> + Send;

    /// Ends the attempt with a failure.
    fn fail(
        &self,
        id: ExecutionId,
        fence: Fence,
        reason: &str,
        category: &str,
    ) -> impl Future<Output = Result<FailExecutionReply, Error>> + Send;

    /// Moves the end of a lease.
    fn renew(&self, id: ExecutionId, fence: Fence) -> impl Future<Output = Result<RenewLeaseReply, Error>> + Send;

    /// Hands the execution back until a time.
    fn delay(
        &self,
        id: ExecutionId,
        fence: Fence,
        until_ms: i64,
    ) -> impl Future<Output = Result<DelayExecutionReply, Error>> + Send;
}

impl Tasks for Client {
    async fn complete(
        &self,
        id: ExecutionId,
        fence: Fence,
        result: Option<Vec<u8>>,
    ) -> Result<CompleteExecutionReply, Error> {
        let call = CompleteExecution { execution_id: id, fence, result: result.map(Bytes), result_encoding: None };
        self.call(self.route_of(&id), &call).await
    }

    async fn fail(
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
        self.call(self.route_of(&id), &call).await
    }

    async fn renew(&self, id: ExecutionId, fence: Fence) -> Result<RenewLeaseReply, Error> {
        self.call(self.route_of(&id), &RenewLease::new(id, fence)).await
    }

    async fn delay(&self, id: ExecutionId, fence: Fence, until_ms: i64) -> Result<DelayExecutionReply, Error> {
        let call = DelayExecution { delay_ms: None, delay_until: Some(until_ms), execution_id: id, fence };
        self.call(self.route_of(&id), &call).await
    }
}
