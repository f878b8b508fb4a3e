//! Durable steps, rests and forks.

use ff_api::steps::{ForkExecution, GetTaskStep, ListSteps, PutStep, SleepTask};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<PutStep>()
        .answering::<GetTaskStep>()
        .answering::<SleepTask>()
        .answering::<ListSteps>()
        .answering::<ForkExecution>()
}
