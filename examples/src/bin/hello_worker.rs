//! Hello, worker: one handler, one execution, one result.

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::NewExecution;
use flowfabric::runtime::{HandlerResult, Payload, WorkerRuntime};
use tokio_util::sync::CancellationToken;

async fn greet(Payload(name): Payload<String>) -> HandlerResult {
    Ok(Some(serde_json::to_vec(&format!("hello {name}"))?))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let stop = CancellationToken::new();
    let runtime = WorkerRuntime::new(sandbox.worker("hello-1", "default", &[]).await?)
        .on("greet", greet)
        .shutdown_on(stop.clone());
    let running = tokio::spawn(runtime.run());

    let mut new = NewExecution::new("default", "default", "greet");
    new.fields.input = Some(br#""world""#.to_vec().into());
    let id = sandbox.engine.admin().submit(new).await?;
    let result = sandbox.result(&id).await?;
    ensure!(result.result.as_deref() == Some(br#""hello world""#.as_slice()), "got {result:?}");

    stop.cancel();
    running.await??;
    println!("hello world");
    Ok(())
}
