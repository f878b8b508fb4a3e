//! How long work waits that only some workers can run.

use std::time::{Duration, Instant};

use anyhow::Result;
use ff_core::types::ExecutionId;
use ff_sdk::runtime::WorkerRuntime;

use super::super::load::drive;
use super::seen::{Seen, noop};
use super::world::{Crew, KIND, World, new_execution};

const SETS: usize = 10;
const WORKERS: usize = 20;
const SUBMITTERS: usize = 64;

/// Ten requirement sets of two tokens each, one of them shared with another set.
fn requires(set: usize) -> Vec<String> {
    vec![format!("kind-{set}"), format!("site-{}", set % 5)]
}

/// Twenty workers. Each covers two or three of the sets, and every set is covered by several workers.
fn capabilities(worker: usize) -> Vec<String> {
    let sets = [worker % SETS, (worker * 3 + 1) % SETS, (worker + 5) % SETS];
    let mut tokens: Vec<String> = sets.into_iter().flat_map(requires).collect();
    tokens.sort();
    tokens.dedup();
    tokens
}

async fn submit(world: &World, count: usize) -> Result<Vec<(ExecutionId, Instant)>> {
    let admin = world.admin.clone();
    let work = move |_, set| {
        let admin = admin.clone();
        async move { Ok((admin.submit(new_execution(Some(requires(set)))).await?, Instant::now())) }
    };
    Ok(drive(SUBMITTERS, (0..count).map(|n| n % SETS).collect(), work).await?.1)
}

/// The waiting times of work submitted to waiting workers, and of work that waited before the workers started. Both are
/// sorted.
///
/// Each worker has 64 slots, so a capable one is free as soon as it has started.
pub async fn measure(world: &World, count: usize) -> Result<[(&'static str, Vec<Duration>); 2]> {
    // Work first: no worker covers it, so all of it is blocked and must be unblocked.
    let early = submit(world, count).await?;
    let mut workers = Vec::new();
    for n in 0..WORKERS {
        workers.push(world.worker(&format!("w-{n}"), &capabilities(n)).await?);
    }
    let there = Instant::now();
    let seen = Seen::new();
    let mut crew = Crew::new();
    for worker in workers {
        crew.start(WorkerRuntime::new(worker).data(seen.clone()).on(KIND, noop));
    }
    seen.started(early.len()).await?;
    let waits = |of: &[(ExecutionId, Instant)]| -> Result<Vec<Duration>> {
        let one = |(id, since): &(ExecutionId, Instant)| Ok(seen.start_of(id)?.saturating_duration_since(*since));
        let mut waits: Vec<Duration> = of.iter().map(one).collect::<Result<_>>()?;
        waits.sort_unstable();
        Ok(waits)
    };
    let early: Vec<_> = early.into_iter().map(|(id, _)| (id, there)).collect();
    let early = waits(&early)?;

    let late = submit(world, count).await?;
    seen.started(2 * count).await?;
    let late = waits(&late)?;
    crew.stop().await?;
    Ok([("work comes to workers", late), ("workers come to work", early)])
}
