//! Waitpoints from outside: the inbox of open ones, one of them, those of an execution, and a new token for an approver.

use ff_api::waitpoints::{GetWaitpoint, ListExecutionWaitpoints, ListWaitpoints, ReissueToken};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<ListWaitpoints>()
        .answering::<GetWaitpoint>()
        .answering::<ReissueToken>()
        .answering::<ListExecutionWaitpoints>()
}
