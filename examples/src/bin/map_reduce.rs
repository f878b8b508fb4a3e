//! Map and reduce: a thousand members square a number each, and one joins them when all are done.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::runtime::{HandlerResult, Passed, Payload, WorkerRuntime};
use flowfabric::snapshot::{FlowState, MemberState};
use flowfabric::{FlowSpec, MemberSpec};
use tokio_util::sync::CancellationToken;

const PARTS: u64 = 1_000;

async fn square(Payload(n): Payload<u64>) -> HandlerResult {
    Ok(Some((n * n).to_string().into_bytes()))
}

async fn sum(Passed(parts): Passed<HashMap<String, u64>>) -> HandlerResult {
    if parts.len() as u64 != PARTS {
        return Err(format!("{} parts came of {PARTS}", parts.len()).into());
    }
    Ok(Some(parts.values().sum::<u64>().to_string().into_bytes()))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let stop = CancellationToken::new();
    let runtime = WorkerRuntime::new(sandbox.worker("map-1", "map", &[]).await?)
        .on("square", square)
        .on("sum", sum)
        .shutdown_on(stop.clone());
    let running = tokio::spawn(runtime.run());

    let key = |n: u64| format!("part-{n}");
    let parts = (1..=PARTS).map(|n| MemberSpec::new(key(n), "square").input(n.to_string()));
    let join = (1..=PARTS).fold(MemberSpec::new("sum", "sum"), |join, n| join.takes(key(n), key(n)));
    let flow = FlowSpec::new("default", "map_reduce").lane("map").members(parts).member(join);
    let started = Instant::now();
    let submitted = sandbox.engine.admin().submit_flow(flow).await?;
    let ended = sandbox.flow(&submitted.flow_id).await?;
    ensure!(ended.state == FlowState::Completed, "got {ended:?}");
    ensure!(ended.count(MemberState::Completed) == PARTS + 1, "got {ended:?}");

    let total = sandbox.result(&submitted.members["sum"]).await?.result.unwrap_or_default();
    let total: u64 = serde_json::from_slice(&total)?;
    let expected = PARTS * (PARTS + 1) * (2 * PARTS + 1) / 6;
    ensure!(total == expected, "got {total}, not {expected}");
    stop.cancel();
    running.await??;
    println!("the squares of 1 to {PARTS} sum up to {total}, in {:.1?}", started.elapsed());
    Ok(())
}
