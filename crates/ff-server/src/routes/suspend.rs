//! What a worker does to wait: suspend, open and give up waitpoints, read the signals that let it go on; children, too.

use ff_api::children::{SpawnChildren, WaitForChildren};
use ff_api::suspensions::SuspendTask;
use ff_api::waitpoints::{CloseWaitpoint, CreateWaitpoint, ListSignals};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .carrying::<SpawnChildren>()
        .answering::<WaitForChildren>()
        .answering::<SuspendTask>()
        .answering::<CreateWaitpoint>()
        .answering::<CloseWaitpoint>()
        .answering::<ListSignals>()
}
