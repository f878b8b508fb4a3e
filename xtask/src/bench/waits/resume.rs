//! Suspend, signal, and resume: one execution, a signal as soon as it waits, and a worker that waits for work.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ff_core::condition::Condition;
use ff_engine::{NewSignal, NewSuspension, SignalOutcome, Suspended, WaitpointSpec, fence_of};
use ff_script::generated::{SuspensionReason, Task, TimeoutBehavior};
use uuid::Uuid;

use super::flush::Disk;
use super::report::{Report, Step};
use super::sorted;
use super::world::{World, claim};
use ff_testkit::Tasks;

const WARM_UP: usize = 20;

/// The times of one round trip.
struct Wait {
    suspend: Duration,
    signal: Duration,
    /// From sending the signal until the worker has the task.
    again: Duration,
    all: Duration,
}

/// Measures `count` waits, one after the other, with a flush of the disk between them.
pub async fn measure(world: &World, mut disk: Disk, count: usize, report: &mut Report) -> Result<()> {
    let (mut waits, mut flushes) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let began = Instant::now();
    let mut task = world.task(None).await?;
    for n in 0..WARM_UP + count {
        // A new execution from time to time, because the history of a real one does not grow for ever.
        if n % 10 == 9 {
            world.operations().client().complete(task.execution_id, fence_of(&task), None).await?;
            task = world.task(None).await?;
        }
        let flush = disk.flush().await?;
        let (wait, next) = once(world, task).await?;
        task = next;
        if n >= WARM_UP {
            flushes.push(flush);
            waits.push(wait);
        }
    }
    let wall = began.elapsed();
    let store = world.setting.name();
    report.note_time(store, Step::Flush, &sorted(flushes, wall));
    let mut note = |step, pick: fn(&Wait) -> Duration| {
        report.note_time(store, step, &sorted(waits.iter().map(pick).collect(), wall));
    };
    note(Step::Suspend, |wait| wait.suspend);
    note(Step::Signal, |wait| wait.signal);
    note(Step::Again, |wait| wait.again);
    note(Step::Wait, |wait| wait.all);
    Ok(())
}

async fn once(world: &World, task: Task) -> Result<(Wait, Task)> {
    let id = task.execution_id;
    let dispatcher = world.dispatcher.clone();
    let worker = tokio::spawn(async move { (claim(&dispatcher).await, Instant::now()) });
    // The worker waits for work.
    tokio::time::sleep(Duration::from_millis(1)).await;

    let began = Instant::now();
    let new = NewSuspension {
        execution_id: id,
        fence: fence_of(&task),
        namespace: Some(task.namespace.clone()),
        reason: SuspensionReason::WaitingForApproval,
        waitpoints: vec![WaitpointSpec { key: "approval".to_owned(), ..WaitpointSpec::default() }],
        adopt: None,
        condition: Condition::default(),
        timeout_ms: Some(60_000),
        timeout_behavior: TimeoutBehavior::Fail,
        continuation: None,
        continuation_encoding: None,
        step: None,
        wait: None,
        request_id: Some(Uuid::now_v7()),
    };
    let Suspended::Waiting { waitpoints, .. } = world.waitpoints.suspend(new).await? else {
        anyhow::bail!("the suspension was over before a signal");
    };
    let suspended = Instant::now();
    let opened = waitpoints.first().context("no waitpoint was opened")?;
    let token = &opened.tokens.first().context("no token was made")?.token;
    let signal = NewSignal { name: "approved".to_owned(), payload: Some(vec![b'x'; 256]), ..NewSignal::default() };
    let outcome = world.waitpoints.deliver(id, opened.waitpoint_id, token, signal).await?;
    let signalled = Instant::now();
    anyhow::ensure!(matches!(outcome, SignalOutcome::TriggeredResume { .. }), "the signal was {outcome:?}");
    let (task, claimed) = worker.await?;
    let task = task?;
    anyhow::ensure!(task.execution_id == id && task.resume.is_some(), "the worker got {task:?}");
    let wait = Wait {
        suspend: suspended - began,
        signal: signalled - suspended,
        again: claimed - suspended,
        all: claimed - began,
    };
    Ok((wait, task))
}
