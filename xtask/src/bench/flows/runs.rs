//! The measured flows, and the worker that runs them.

use std::time::{Duration, Instant};

use anyhow::Result;
use ff_core::types::FlowId;
use ff_engine::{NewFlow, NewMember, fence_of};
use ff_script::generated::CancelPolicy;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;

use super::super::phases::{LANE, NAMESPACE};
use super::super::waits::world::{World, claim_many};
use super::report::{Report, Step};
use ff_testkit::Tasks;

const STEPS: usize = 10;
pub const FAN: usize = 100;
pub const WIDE_FAN: usize = 1_000;
const WARM_UP: usize = 3;
/// Number of tasks that the worker runs at once.
const SLOTS: u16 = 64;
const OVER: Duration = Duration::from_secs(60);

/// A worker that completes every task at once, until it is stopped.
struct Worker {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<usize>>,
}

impl Worker {
    fn start(world: &World) -> Worker {
        let stop = CancellationToken::new();
        let (operations, dispatcher, stopping) = (world.operations().clone(), world.dispatcher.clone(), stop.clone());
        let task = tokio::spawn(async move {
            let mut done = 0;
            loop {
                let tasks = tokio::select! {
                    () = stopping.cancelled() => return Ok(done),
                    tasks = claim_many(&dispatcher, SLOTS) => tasks?,
                };
                let mut running: FuturesUnordered<_> = tasks
                    .iter()
                    .map(|task| operations.client().complete(task.execution_id, fence_of(task), Some(b"{}".to_vec())))
                    .collect();
                while let Some(answer) = running.next().await {
                    answer?;
                    done += 1;
                }
            }
        });
        Worker { stop, task }
    }

    async fn end(self) -> Result<usize> {
        self.stop.cancel();
        self.task.await?
    }
}

fn flow() -> NewFlow {
    let mut flow = NewFlow::new(NAMESPACE, "bench");
    flow.fields.default_lane = Some(LANE.to_owned());
    flow
}

fn chain() -> NewFlow {
    let mut flow = flow();
    for n in 0..STEPS {
        flow = flow.with_member(NewMember::new(format!("s{n}"), "step"));
        if n > 0 {
            flow = flow.with_edge(format!("s{}", n - 1), format!("s{n}"));
        }
    }
    flow
}

fn fan(width: usize) -> NewFlow {
    let mut flow = flow().with_member(NewMember::new("root", "root")).with_member(NewMember::new("join", "join"));
    for n in 0..width {
        let key = format!("m{n}");
        flow =
            flow.with_member(NewMember::new(key.clone(), "map")).with_edge("root", key.clone()).with_edge(key, "join");
    }
    flow
}

/// A flow of members that wait for one that never runs.
fn pending(width: usize) -> NewFlow {
    let mut flow = flow();
    flow.fields.default_lane = Some("nobody".to_owned());
    for n in 0..width {
        flow = flow.with_member(NewMember::new(format!("m{n}"), "pending"));
    }
    flow
}

async fn over(world: &World, id: FlowId) -> Result<()> {
    let (flow, ended) = world.engine.waiting().flow(id, OVER).await?;
    anyhow::ensure!(ended, "flow {id} is {} after {OVER:?}", flow.state.as_str());
    Ok(())
}

/// Chains of ten, one at a time, from the submission to the end of the flow.
pub async fn chains(world: &World, count: usize, report: &mut Report) -> Result<()> {
    let worker = Worker::start(world);
    let mut each = Vec::with_capacity(count);
    for n in 0..WARM_UP + count {
        let began = Instant::now();
        let id = world.operations().submit_flow(chain()).await?.flow.flow_id;
        over(world, id).await?;
        if n >= WARM_UP {
            each.push(began.elapsed());
        }
    }
    report.note(world.setting.name(), Step::Chain, each);
    let done = worker.end().await?;
    anyhow::ensure!(done >= (WARM_UP + count) * STEPS, "only {done} steps were run");
    Ok(())
}

/// Fan-outs with a join, one at a time, with the store commands per member.
pub async fn fans(world: &World, width: usize, count: usize, report: &mut Report) -> Result<()> {
    let worker = Worker::start(world);
    let (mut submits, mut runs) = (Vec::new(), Vec::new());
    let before = world.store.host.store_commands().await?;
    for _ in 0..count {
        let began = Instant::now();
        let id = world.operations().submit_flow(fan(width)).await?.flow.flow_id;
        submits.push(began.elapsed());
        over(world, id).await?;
        runs.push(began.elapsed());
    }
    let commands = world.store.host.store_commands().await? - before;
    worker.end().await?;
    let (submit, run) = if width == FAN { (Step::SubmitFan, Step::Fan) } else { (Step::SubmitWideFan, Step::WideFan) };
    report.note(world.setting.name(), submit, submits);
    report.note(world.setting.name(), run, runs);
    report.note_cost(world.setting.name(), width, commands as f64 / (count * (width + 2)) as f64);
    Ok(())
}

/// Cancels flows of a thousand members that have not run: until none can be claimed, and until all are cancelled.
pub async fn cancels(world: &World, count: usize, report: &mut Report) -> Result<()> {
    let (mut final_for_claims, mut all) = (Vec::new(), Vec::new());
    for n in 0..count + 1 {
        let id = world.operations().submit_flow(pending(WIDE_FAN)).await?.flow.flow_id;
        // Sealing owes a walk, which is not part of the cancel.
        while world.operations().flow(id).await?.walk.is_some() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let began = Instant::now();
        world.operations().cancel_flow(id, CancelPolicy::CancelAll, "bench", Some("not needed"), false).await?;
        let stopped = began.elapsed();
        over(world, id).await?;
        let ended = began.elapsed();
        let flow = world.operations().flow(id).await?;
        let cancelled = flow.counts.values().sum::<i64>();
        anyhow::ensure!(
            flow.counts.len() == 1 && cancelled == WIDE_FAN as i64,
            "not all are cancelled: {:?}",
            flow.counts
        );
        if n > 0 {
            final_for_claims.push(stopped);
            all.push(ended);
        }
    }
    report.note(world.setting.name(), Step::Stop, final_for_claims);
    report.note(world.setting.name(), Step::Cancel, all);
    Ok(())
}
