//! Retries and poison: a flaky handler succeeds at its third attempt, and work that kills every worker ends as
//! poisoned.

use std::time::Duration;

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::runtime::{HandlerResult, TaskInfo, WorkerRuntime};
use flowfabric::script::generated::{Backoff, BackoffType, Retry};
use flowfabric::state::Outcome;
use flowfabric::{FlowFabricWorker, NewExecution, WorkerConfig};
use tokio_util::sync::CancellationToken;

async fn flaky(info: TaskInfo) -> HandlerResult {
    match info.attempt_index.get() {
        0 | 1 => Err("the other side hung up".into()),
        attempt => Ok(Some(attempt.to_string().into_bytes())),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let admin = sandbox.engine.admin();
    let stop = CancellationToken::new();
    let runtime =
        WorkerRuntime::new(sandbox.worker("retry-1", "flaky", &[]).await?).on("flaky", flaky).shutdown_on(stop.clone());
    let running = tokio::spawn(runtime.run());

    let backoff = Backoff { delay_ms: Some(50), ..Backoff::new(BackoffType::Fixed) };
    let mut new = NewExecution::new("default", "flaky", "flaky");
    new.fields.retry =
        Some(Retry { max_attempts: Some(3), backoff: Some(backoff), jitter: None, retry_on: None, never_on: None });
    let id = admin.submit(new).await?;
    let result = sandbox.result(&id).await?;
    ensure!(result.result.as_deref() == Some(b"2".as_slice()), "the third attempt succeeds, got {result:?}");
    let attempts = admin.describe_execution(&id).await?.attempts;
    ensure!(attempts.len() == 3, "three attempts, got {attempts:?}");
    stop.cancel();
    running.await??;

    // Every worker that gets this execution disappears. After two lost leases the engine gives up on it.
    let mut new = NewExecution::new("default", "cursed", "cursed");
    new.fields.max_reclaims = Some(1);
    let id = admin.submit(new).await?;
    let mut config = WorkerConfig::embedded(&sandbox.engine, "example", "cursed-1", "default", "cursed");
    config.lease_ttl_ms = 1_000;
    let worker = FlowFabricWorker::connect(config).await?;
    for _ in 0..2 {
        let task = worker.claim_many(1, Duration::from_secs(20)).await?.pop();
        drop(task.ok_or_else(|| anyhow::anyhow!("it is offered again"))?);
    }
    let result = sandbox.result(&id).await?;
    let category = result.failure.map(|failure| failure.category);
    ensure!(
        result.outcome == Outcome::Failed && category.as_deref() == Some("poisoned"),
        "got {:?} {category:?}",
        result.outcome
    );
    println!("retried to success, and poison ended");
    Ok(())
}
