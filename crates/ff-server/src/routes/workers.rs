//! Workers as operators see them: list, read, drain.

use ff_api::workers::{DeregisterWorker, DrainWorker, GetWorker, ListWorkers};

use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<ListWorkers>()
        .answering::<GetWorker>()
        .answering::<DeregisterWorker>()
        .answering::<DrainWorker>()
}
