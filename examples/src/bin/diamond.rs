//! Diamond: one text is fetched, two members process it in parallel, and a fourth joins their results.

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::runtime::{HandlerResult, Passed, Payload, WorkerRuntime};
use flowfabric::snapshot::{FlowState, MemberState};
use flowfabric::{FlowSpec, MemberSpec};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

#[derive(Deserialize)]
struct Page {
    page: String,
}

#[derive(Deserialize)]
struct Found {
    words: usize,
    longest: String,
}

async fn fetch(Payload(name): Payload<String>) -> HandlerResult {
    Ok(Some(serde_json::to_vec(&format!("{name} is a durable execution engine"))?))
}

async fn count(Passed(Page { page }): Passed<Page>) -> HandlerResult {
    Ok(Some(serde_json::to_vec(&page.split_whitespace().count())?))
}

async fn longest(Passed(Page { page }): Passed<Page>) -> HandlerResult {
    Ok(Some(serde_json::to_vec(&page.split_whitespace().max_by_key(|word| word.len()))?))
}

async fn join(Passed(Found { words, longest }): Passed<Found>) -> HandlerResult {
    Ok(Some(serde_json::to_vec(&format!("{words} words, the longest is {longest}"))?))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let admin = sandbox.engine.admin();
    let stop = CancellationToken::new();
    let runtime = WorkerRuntime::new(sandbox.worker("text-1", "text", &[]).await?)
        .on("fetch", fetch)
        .on("count", count)
        .on("longest", longest)
        .on("join", join)
        .shutdown_on(stop.clone());
    let running = tokio::spawn(runtime.run());

    let flow = FlowSpec::new("default", "diamond")
        .lane("text")
        .member(MemberSpec::new("fetch", "fetch").input(br#""FlowFabric""#))
        .member(MemberSpec::new("count", "count").takes("fetch", "page"))
        .member(MemberSpec::new("longest", "longest").takes("fetch", "page"))
        .member(MemberSpec::new("join", "join").takes("count", "words").takes("longest", "longest"));
    let submitted = admin.submit_flow(flow.clone()).await?;
    let said = sandbox.result(&submitted.members["join"]).await?.result.unwrap_or_default();
    let said: String = serde_json::from_slice(&said)?;
    ensure!(said == "6 words, the longest is FlowFabric", "got {said:?}");

    let ended = sandbox.flow(&submitted.flow_id).await?;
    ensure!(ended.state == FlowState::Completed && ended.count(MemberState::Completed) == 4, "got {ended:?}");
    ensure!(admin.submit_flow(flow).await? == submitted, "the same flow again is the same flow");
    stop.cancel();
    running.await??;
    println!("{said}");
    Ok(())
}
