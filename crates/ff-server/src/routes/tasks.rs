//! What a worker does with a task it holds; every call is fenced and safe to repeat.

use ff_api::tasks::{CancelTask, CompleteTask, DelayTask, FailTask, ReportProgress, YieldTask};
use ff_core::limits::REASON_BYTES_MAX;
use ff_core::types::ExecutionId;
use ff_script::generated::{FailExecution, Fence};

use crate::openapi::Described;
use crate::problem::{Answer, Problem};

pub fn routes() -> Described {
    Described::new()
        .answering::<CompleteTask>()
        .answering::<FailTask>()
        .answering::<CancelTask>()
        .answering::<DelayTask>()
        .answering::<YieldTask>()
        .answering::<ReportProgress>()
}

/// The call that fails an attempt.
pub fn failure(
    execution_id: ExecutionId,
    fence: Fence,
    reason: String,
    category: String,
    retryable: Option<bool>,
    retry_after_ms: Option<i64>,
) -> Answer<FailExecution> {
    if reason.len() > REASON_BYTES_MAX {
        return Err(Problem::too_large("reason", REASON_BYTES_MAX));
    }
    let draw = rand::random_range(0..=1000);
    Ok(FailExecution { category, draw, execution_id, fence, reason, retry_after_ms, retryable })
}
