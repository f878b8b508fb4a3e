//! Shared parts of the examples: a separate engine, and helpers that fail with a message.

use std::time::Duration;

use flowfabric::snapshot::{ExecutionResult, FlowSnapshot};
use flowfabric::types::{ExecutionId, FlowId};
use flowfabric::{EmbeddedEngine, FlowFabricWorker, WorkerConfig};
use tempfile::TempDir;

/// An embedded engine in a temporary directory.
pub struct Sandbox {
    pub engine: EmbeddedEngine,
    _directory: TempDir,
}

impl Sandbox {
    pub async fn start() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        Ok(Self { engine: EmbeddedEngine::open(directory.path().join("store")).await?, _directory: directory })
    }

    /// A worker of a lane, with these capabilities.
    pub async fn worker(&self, instance: &str, lane: &str, capabilities: &[&str]) -> anyhow::Result<FlowFabricWorker> {
        let mut config = WorkerConfig::embedded(&self.engine, "example", instance, "default", lane);
        config.capabilities = capabilities.iter().map(|token| (*token).to_owned()).collect();
        Ok(FlowFabricWorker::connect(config).await?)
    }

    /// The result of an execution, which must end within 30 s.
    pub async fn result(&self, id: &ExecutionId) -> anyhow::Result<ExecutionResult> {
        let result = self.engine.admin().result(id, Duration::from_secs(30)).await?;
        result.ok_or_else(|| anyhow::anyhow!("{id} has not ended within 30 s"))
    }

    /// The end of a flow, which must come within 60 s.
    pub async fn flow(&self, id: &FlowId) -> anyhow::Result<FlowSnapshot> {
        let ended = self.engine.admin().wait_flow(id, Duration::from_secs(60)).await?;
        ended.ok_or_else(|| anyhow::anyhow!("flow {id} has not ended within 60 s"))
    }
}
