//! What an operator does with a suspended execution: resume it, or end it as failed.

use ff_api::suspensions::{FailSuspension, ResumeExecution};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new().answering::<ResumeExecution>().answering::<FailSuspension>()
}
