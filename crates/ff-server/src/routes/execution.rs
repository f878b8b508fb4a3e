//! Executions, found, read and steered.

use ff_api::executions::{
    CancelExecution, CancelExecutions, ChangeExecution, DeleteExecution, GetAttempt, GetExecution, GetHistory,
    GetResult, HoldExecution, ListChildren, ListExecutions, ReleaseExecution, ReplayExecution, ReplayExecutions,
    RevokeLease,
};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<ListExecutions>()
        .answering::<CancelExecutions>()
        .answering::<ReplayExecutions>()
        .answering::<GetExecution>()
        .answering::<ChangeExecution>()
        .answering::<DeleteExecution>()
        .carrying::<GetResult>()
        .answering::<GetHistory>()
        .answering::<GetAttempt>()
        .answering::<ListChildren>()
        .answering::<CancelExecution>()
        .answering::<ReplayExecution>()
        .answering::<HoldExecution>()
        .answering::<ReleaseExecution>()
        .answering::<RevokeLease>()
}
