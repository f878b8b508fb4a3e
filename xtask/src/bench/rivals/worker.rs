//! The worker process of FlowFabric's driver: handlers that do nothing, and one that waits for a signal.
//!
//! It prints `ready`, reads the commands `begin` and `count N`, and prints `reached ID…` when `N` handlers have run. It
//! ends with its input. The ids are those of the last handlers, so the driver can wait until their results are stored.

use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use ff_core::types::ExecutionId;
use ff_sdk::runtime::{Ctx, Data, HandlerResult, WorkerRuntime};
use ff_sdk::task::{SuspendOptions, WaitpointSpec};
use ff_sdk::{FlowFabricWorker, WorkerConfig};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub const NAMESPACE: &str = "default";
pub const LANE: &str = "bench";
pub const NOOP: &str = "noop";
pub const WAIT: &str = "wait";
pub const SIGNAL: &str = "go";

/// The settings of a worker: direct on Valkey if a port is given, otherwise over HTTP.
pub fn config(spec: &Value, instance: &str) -> Result<WorkerConfig> {
    let port = spec["port"].as_u64().map(u16::try_from).transpose().context("no port")?;
    Ok(match port {
        Some(port) => WorkerConfig::new("127.0.0.1", port, "bench", instance, NAMESPACE, LANE),
        None => {
            let url = spec["url"].as_str().context("neither a port nor a URL")?;
            WorkerConfig::http(url, "bench", instance, NAMESPACE, LANE)
        }
    })
}

/// The number of handlers since counting began.
struct Count {
    done: usize,
    target: usize,
    /// The newest ids, at most as many as run at once.
    last: VecDeque<ExecutionId>,
    slots: usize,
}

type Shared = Arc<Mutex<Count>>;

fn say(line: &str) {
    // A driver that has gone ends this process through its input.
    let _ = writeln!(std::io::stdout(), "{line}");
}

async fn noop(Data(count): Data<Shared>, ctx: Ctx) -> HandlerResult {
    let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
    count.done += 1;
    if count.last.len() == count.slots {
        count.last.pop_front();
    }
    count.last.push_back(*ctx.execution_id());
    if count.done == count.target {
        let ids: Vec<String> = count.last.iter().map(ExecutionId::to_string).collect();
        say(&format!("reached {}", ids.join(" ")));
    }
    Ok(Some(b"\"ok\"".to_vec()))
}

async fn wait(ctx: Ctx) -> HandlerResult {
    let wait = SuspendOptions::new("waiting_for_signal").signal(SIGNAL).step("wait");
    if ctx.resume_of(&wait).is_none() {
        let opened = ctx.create_waitpoint(WaitpointSpec { key: "wait".to_owned(), ..Default::default() }).await?;
        let token = opened.tokens.first().ok_or("no token was made")?.token.as_str();
        say(&format!("waits {} {token}", opened.waitpoint_id));
    }
    let signals = ctx.wait_for_signals(wait).await?;
    Ok(signals.into_iter().next().and_then(|signal| signal.payload))
}

/// Works until the input ends.
pub async fn run(spec: &Value) -> Result<()> {
    let slots = spec["slots"].as_u64().and_then(|slots| usize::try_from(slots).ok()).context("no slots")?;
    let instance = spec["instance"].as_str().context("no instance")?;
    let worker = FlowFabricWorker::connect(config(spec, instance)?.with_max_concurrent_tasks(slots)).await?;
    let count: Shared = Arc::new(Mutex::new(Count { done: 0, target: 0, last: VecDeque::new(), slots }));
    let stop = CancellationToken::new();
    let runtime = WorkerRuntime::new(worker)
        .without_signals()
        .shutdown_on(stop.clone())
        .data(Arc::clone(&count))
        .on(NOOP, noop)
        .on(WAIT, wait);

    let (begin, begun) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut begin = Some(begin);
        for line in std::io::stdin().lock().lines().map_while(|line| line.ok()) {
            if let Some(target) = line.strip_prefix("count ") {
                let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
                (count.done, count.target) = (0, target.parse().unwrap_or(0));
                count.last.clear();
                say("counting");
            } else if let Some(begin) = begin.take() {
                let _ = begin.send(());
            }
        }
        stop.cancel();
    });
    say("ready");
    // If the input ended without `begin`, the runtime stops at once.
    let _ = begun.await;
    Ok(runtime.run().await?)
}
