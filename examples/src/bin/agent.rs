//! Agent: a handler decides what it needs, spawns that as sub-tasks, and waits for them without holding a worker.

use anyhow::ensure;
use ff_examples::Sandbox;
use flowfabric::runtime::{Ctx, HandlerResult, Payload, WorkerRuntime};
use flowfabric::snapshot::ChildSnapshot;
use flowfabric::state::Outcome;
use flowfabric::{ChildSpec, NewExecution, Retry};
use tokio_util::sync::CancellationToken;

fn once() -> Retry {
    Retry { max_attempts: Some(1), ..Retry::default() }
}

/// The answer of the child with this key.
fn said(children: &[ChildSnapshot], key: &str) -> String {
    let Some(child) = children.iter().find(|child| child.key.as_deref() == Some(key)) else {
        return "never asked".to_owned();
    };
    match (&child.result, &child.failure) {
        (Some(result), _) => String::from_utf8_lossy(result).into_owned(),
        (None, Some(failure)) => format!("nothing ({})", failure.reason),
        (None, None) => "nothing".to_owned(),
    }
}

/// Runs again from its beginning when all its children have ended. Each child is spawned only once.
async fn agent(ctx: Ctx, Payload(question): Payload<String>) -> HandlerResult {
    let tool = |name: &str, input: &str| {
        ChildSpec::new(name).key(name).input(format!("{input:?}")).lane("tools").retry(once())
    };
    ctx.spawn(["search", "calculate", "gossip"].map(|name| tool(name, &question)).to_vec()).await?;
    let found = ctx.wait_children().await?;

    // The results decide what is asked next.
    let facts = format!("{} and {}", said(&found, "search"), said(&found, "calculate"));
    ctx.spawn(vec![tool("write", &facts)]).await?;
    let all = ctx.wait_children().await?;
    Ok(Some(format!("{}; gossip: {}", said(&all, "write"), said(&all, "gossip")).into_bytes()))
}

async fn search() -> HandlerResult {
    Ok(Some(b"a page".to_vec()))
}

async fn calculate() -> HandlerResult {
    Ok(Some(b"a number".to_vec()))
}

async fn gossip() -> HandlerResult {
    Err("nobody talks".into())
}

async fn write(Payload(facts): Payload<String>) -> HandlerResult {
    Ok(Some(format!("an essay on {facts}").into_bytes()))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let sandbox = Sandbox::start().await?;
    let admin = sandbox.engine.admin();
    let stop = CancellationToken::new();
    // One slot: an agent that held it during its wait would wait for ever.
    let agents = WorkerRuntime::new(sandbox.worker("agent-1", "agents", &[]).await?)
        .concurrency(1)
        .on("agent", agent)
        .shutdown_on(stop.clone());
    let tools = WorkerRuntime::new(sandbox.worker("tools-1", "tools", &[]).await?)
        .on("search", search)
        .on("calculate", calculate)
        .on("gossip", gossip)
        .on("write", write)
        .shutdown_on(stop.clone());
    let running = [tokio::spawn(agents.run()), tokio::spawn(tools.run())];

    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut new = NewExecution::new("default", "agents", "agent");
        new.fields.input = Some(br#""why?""#.to_vec().into());
        ids.push(admin.submit(new).await?);
    }
    for id in &ids {
        let result = sandbox.result(id).await?;
        ensure!(result.outcome == Outcome::Success, "got {result:?}");
        let said = String::from_utf8(result.result.unwrap_or_default())?;
        ensure!(said == "an essay on a page and a number; gossip: nothing (nobody talks)", "got {said:?}");
        ensure!(admin.children(id).await?.len() == 4, "each was spawned once");
        ensure!(admin.describe_execution(id).await?.attempts.len() == 1, "the same attempt went on");
    }
    stop.cancel();
    for runtime in running {
        runtime.await??;
    }
    println!("three agents on one slot, four sub-tasks each");
    Ok(())
}
