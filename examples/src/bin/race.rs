//! Race: three providers are asked at once, the first answer is used, and the other two are cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::runtime::{Ctx, Data, HandlerResult, Passed, Payload, WorkerRuntime};
use flowfabric::snapshot::{FlowState, MemberState};
use flowfabric::{FlowFabricWorker, FlowSpec, MemberSpec, WorkerConfig};
use tokio_util::sync::CancellationToken;

/// The workers that were told to stop.
#[derive(Default)]
struct Stopped(Mutex<Vec<String>>);

/// Only one of them has an answer; the others would take all day.
async fn ask(ctx: Ctx, Payload(name): Payload<String>, Data(stopped): Data<Arc<Stopped>>) -> HandlerResult {
    if name == "bob" {
        return Ok(Some(serde_json::to_vec("42")?));
    }
    ctx.cancellation().cancelled().await;
    stopped.0.lock().expect("no holder of the lock panics").push(name);
    Err("stopped".into())
}

async fn answer(Passed(answers): Passed<HashMap<String, String>>) -> HandlerResult {
    let said: Vec<String> = answers.into_iter().map(|(who, what)| format!("{who} says {what}")).collect();
    Ok(Some(serde_json::to_vec(&said.join(", "))?))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let (stop, stopped) = (CancellationToken::new(), Arc::new(Stopped::default()));
    // A worker learns of a cancel with its next renewal: the shorter the lease, the sooner.
    let mut config = WorkerConfig::embedded(&sandbox.engine, "example", "race-1", "default", "race");
    config.lease_ttl_ms = 1_000;
    let runtime = WorkerRuntime::new(FlowFabricWorker::connect(config).await?)
        .data(Arc::clone(&stopped))
        .on("ask", ask)
        .on("answer", answer)
        .shutdown_on(stop.clone());
    let running = tokio::spawn(runtime.run());

    let providers = ["ann", "bob", "eve"];
    let asked = |name: &str| MemberSpec::new(name, "ask").input(format!("{name:?}"));
    let first = providers.iter().fold(MemberSpec::new("answer", "answer"), |member, name| member.takes(*name, *name));
    let flow = FlowSpec::new("default", "race")
        .lane("race")
        .members(providers.map(asked))
        .member(first.any_of().cancel_remaining());
    let submitted = sandbox.engine.admin().submit_flow(flow).await?;

    let said = sandbox.result(&submitted.members["answer"]).await?.result.unwrap_or_default();
    let said: String = serde_json::from_slice(&said)?;
    ensure!(said == "bob says 42", "got {said:?}");
    let ended = sandbox.flow(&submitted.flow_id).await?;
    ensure!(ended.state == FlowState::Completed && ended.count(MemberState::Cancelled) == 2, "got {ended:?}");

    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while stopped.0.lock().expect("no holder of the lock panics").len() < 2 {
        ensure!(tokio::time::Instant::now() < deadline, "the losers were not stopped");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    running.await??;
    println!("{said}; the other two were stopped");
    Ok(())
}
