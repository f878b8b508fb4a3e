//! A program as a user writes it. It uses only names and shapes that the SDK promises, unchanged on every transport.
//!
//! If it does not compile, a promise is broken; if it does not run to its end, one is not kept. It uses the public
//! surface only.

mod claims;
mod flows;
mod handlers;
mod settings;
mod tasks;

use std::time::Duration;

use ff_core::types::{ExecutionId, LaneId, WorkerInstanceId};
use ff_sdk::{ClaimedTask, FlowFabricAdminClient, FlowFabricWorker, NewExecution, WorkerConfig};

/// The lane of the whole program.
pub const LANE: &str = "contract";
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// How a worker and an operator reach an engine.
pub struct Reach {
    /// The settings of a worker. Each part of the program uses its own instance id.
    pub config: WorkerConfig,
    pub admin: FlowFabricAdminClient,
}

impl Reach {
    pub(crate) fn config(&self, instance: &str) -> WorkerConfig {
        let mut config = self.config.clone();
        config.worker_instance_id = WorkerInstanceId::new(instance);
        config.lanes = vec![LaneId::new(LANE)];
        config
    }

    pub(crate) async fn worker(&self, instance: &str) -> anyhow::Result<FlowFabricWorker> {
        Ok(FlowFabricWorker::connect(self.config(instance)).await?)
    }

    pub(crate) async fn submit(&self, kind: &str, input: &[u8]) -> anyhow::Result<ExecutionId> {
        let mut new = NewExecution::new("default", LANE, kind);
        new.fields.input = Some(input.to_vec().into());
        new.fields.tags = Some([("tenant".to_owned(), "acme".to_owned())].into());
        Ok(self.admin.submit(new).await?)
    }
}

/// The next task, which must exist.
pub(crate) async fn next(worker: &FlowFabricWorker) -> anyhow::Result<ClaimedTask> {
    let until = tokio::time::Instant::now() + SOON;
    loop {
        if let Some(task) = worker.claim_next().await? {
            return Ok(task);
        }
        anyhow::ensure!(tokio::time::Instant::now() < until, "no task came within {SOON:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Runs the whole program.
pub async fn run(reach: &Reach) -> anyhow::Result<()> {
    settings::run(reach).await?;
    tasks::run(reach).await?;
    claims::run(reach).await?;
    flows::run(reach).await?;
    handlers::run(reach).await
}
