//! A program as a user writes it: only names and shapes the SDK promises, unchanged on every transport.
//!
//! It compiles, or a promise is broken; it runs to its end, or one is not kept. Nothing here may reach behind the public surface.

mod claims;
mod flows;
mod handlers;
mod settings;
mod tasks;

use std::time::Duration;

use ff_core::types::{ExecutionId, LaneId, WorkerInstanceId};
use ff_sdk::{ClaimedTask, FlowFabricAdminClient, FlowFabricWorker, NewExecution, WorkerConfig};

/// The lane everything happens in.
pub const LANE: &str = "contract";
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// An engine as a worker and an operator reach it.
pub struct Reach {
    /// The settings of a worker; each part of the program gives it an instance id of its own.
    pub config: WorkerConfig,
    /// The operator.
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

/// The next task, which must be there.
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
