//! `ff dev`: the engine on the embedded store, with work that never ends and workers that do.

mod screen;
mod worker;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use ff_core::types::TimestampMs;
use ff_engine::{Cursor, Engine, FeedFilter, NewExecution, Operations};
use ff_scheduler::{Dispatcher, DispatcherOptions, StoreAdmission};
use ff_script::generated::PartitionStatsReply;
use tokio_util::sync::CancellationToken;

use crate::store::{StoreAddress, open, state_directory};
use screen::Screen;
use worker::Crew;

const NAMESPACE: &str = "default";
const LANE: &str = "demo";
const WORKERS: usize = 3;
/// New work is held back while this much waits, so that a long run does not drown in its own backlog.
const BACKLOG_MAX: i64 = 200;

/// Runs sample work on the embedded store.
#[derive(Args)]
pub struct Dev {
    /// The store; the embedded one in the state directory unless said.
    #[arg(long, env = "FF_STORE")]
    store: Option<StoreAddress>,
    /// Stop after this many seconds instead of at Ctrl-C.
    #[arg(long)]
    seconds: Option<u64>,
    /// Kill a worker every this many seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    kill_every: u64,
}

impl Dev {
    /// Starts everything, shows it, and leaves the state for the next start.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let address = match self.store {
            Some(address) => address,
            None => StoreAddress::Embedded(state_directory()?.join("dev")),
        };
        let (host, options) = open(&address, None).await?;
        let facts = host.facts();
        let engine = Engine::start(Arc::clone(&host), options).await?;
        let operations = engine.operations().clone();

        let screen = Screen::new();
        screen.line(&format!(
            "FlowFabric on the {} store ({}), loss window: {}",
            facts.kind, facts.durability, facts.loss_window
        ));
        match &address {
            StoreAddress::Embedded(directory) => screen.line(&format!("state in {}", directory.display())),
            StoreAddress::Valkey(url) => screen.line(&format!("state in {url}")),
        }
        let before = Totals::read(&operations).await?;
        if before.executions > 0 {
            screen.line(&format!(
                "continuing: {} waiting, {} running, {} ended from before",
                before.waiting, before.active, before.ended
            ));
        }
        screen.line("Ctrl-C stops; the next start continues where this one ends\n");

        let stop = CancellationToken::new();
        let dispatcher = Dispatcher::start(
            operations.clone(),
            Arc::new(StoreAdmission::new(operations.clone())),
            DispatcherOptions::default(),
        );
        let crew = Arc::new(Crew::hire(&operations, &dispatcher, WORKERS, &screen));
        let submitting = tokio::spawn(submit(operations.clone(), stop.clone()));
        let killing =
            tokio::spawn(kill_now_and_then(Arc::clone(&crew), Duration::from_secs(self.kill_every), stop.clone()));
        let showing = tokio::spawn(show(
            engine.feed(FeedFilter::default(), Cursor::at(TimestampMs::now())),
            operations.clone(),
            screen.clone(),
            stop.clone(),
        ));

        let limit = self.seconds.map_or(Duration::MAX, Duration::from_secs);
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted.context("cannot listen for Ctrl-C")?,
            () = tokio::time::sleep(limit) => {}
        }
        screen.line("stopping: workers hand back what they hold");
        stop.cancel();
        for task in [submitting, killing, showing] {
            task.await.context("a task of the demo ended badly")??;
        }
        crew.leave().await;
        drop(dispatcher);
        let after = Totals::read(&operations).await?;
        engine.stop().await;
        screen.line(&format!("stopped: {} waiting, {} ended; start again to continue", after.waiting, after.ended));
        Ok(ExitCode::SUCCESS)
    }
}

/// Submits a steady mix: quick work, slow work, urgent work, work that fails before it succeeds.
async fn submit(operations: Operations, stop: CancellationToken) -> anyhow::Result<()> {
    let mut count = 0_u64;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(Duration::from_millis(150)) => {}
        }
        if operations.lane_depth(NAMESPACE, LANE).await? > BACKLOG_MAX {
            continue;
        }
        count += 1;
        let kind = match count % 10 {
            0 => "flaky",
            3 | 7 => "slow",
            5 => "urgent",
            _ => "quick",
        };
        let mut new = NewExecution::new(NAMESPACE, LANE, kind);
        new.fields.input = Some(format!(r#"{{"n":{count}}}"#).into_bytes().into());
        new.fields.priority = (kind == "urgent").then_some(100);
        new.fields.retention_ms = Some(600_000);
        operations.submit(new).await?;
    }
}

async fn kill_now_and_then(crew: Arc<Crew>, every: Duration, stop: CancellationToken) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(every) => crew.kill_one().await,
        }
    }
}

/// Shows what happens as it happens.
async fn show(
    mut feed: ff_engine::Feed,
    operations: Operations,
    screen: Screen,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut next_totals = tokio::time::Instant::now();
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            delivered = feed.next(Duration::from_millis(250)) => {
                for item in delivered? {
                    screen.event(&item.event);
                }
            }
        }
        if tokio::time::Instant::now() >= next_totals {
            next_totals = tokio::time::Instant::now() + Duration::from_millis(500);
            let totals = Totals::read(&operations).await?;
            screen.status(&totals);
        }
    }
}

/// Counts over all partitions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Everything stored.
    pub executions: i64,
    /// Eligible, delayed or blocked.
    pub waiting: i64,
    /// Leased.
    pub active: i64,
    /// Ended and still kept.
    pub ended: i64,
}

impl Totals {
    async fn read(operations: &Operations) -> anyhow::Result<Self> {
        let mut totals = Self::default();
        for counts in operations.stats().await? {
            let PartitionStatsReply::Stats { lanes, executions, .. } = counts.stats;
            totals.executions += executions;
            for lane in lanes {
                totals.active += lane.active;
                totals.ended += lane.terminal;
            }
        }
        totals.waiting = totals.executions - totals.active - totals.ended;
        Ok(totals)
    }
}
