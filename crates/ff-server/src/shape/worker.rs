//! A registered worker.

use ff_script::generated::{Worker, WorkerState};
use serde::Serialize;
use utoipa::ToSchema;

/// A worker, without what would let someone else speak for it.
#[derive(Serialize, ToSchema)]
pub struct WorkerShape {
    instance: String,
    worker_id: String,
    namespace: String,
    lanes: Vec<String>,
    capabilities: Vec<String>,
    slots: i64,
    #[schema(value_type = WorkerState)]
    state: &'static str,
    registered_at: i64,
    expires_at: i64,
}

impl From<Worker> for WorkerShape {
    fn from(worker: Worker) -> Self {
        Self {
            instance: worker.instance,
            worker_id: worker.worker_id,
            namespace: worker.namespace,
            lanes: worker.lanes,
            capabilities: worker.capabilities,
            slots: worker.slots,
            state: worker.state.as_str(),
            registered_at: worker.registered_at,
            expires_at: worker.expires_at,
        }
    }
}
