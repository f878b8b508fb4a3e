//! What a worker does with a task it holds; every call is fenced and safe to repeat.

use ff_api::tasks::{CancelTask, CompleteTask, DelayTask, FailTask, ReportProgress, YieldTask};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<CompleteTask>()
        .answering::<FailTask>()
        .answering::<CancelTask>()
        .answering::<DelayTask>()
        .answering::<YieldTask>()
        .answering::<ReportProgress>()
}
