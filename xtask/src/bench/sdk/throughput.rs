//! How many executions per second a number of workers completes.

use std::time::Instant;

use anyhow::Result;
use ff_core::types::ExecutionId;
use ff_sdk::FlowFabricWorker;
use ff_sdk::runtime::WorkerRuntime;

use super::super::load::drive;
use super::super::machine;
use super::seen::{Seen, noop};
use super::world::{Crew, KIND, World, new_execution};

const SUBMITTERS: usize = 64;
const WARM_UP: usize = 100;

/// The results of one run.
pub struct Throughput {
    /// Submissions per second, one by one, without workers.
    pub submitted: f64,
    /// Executions per second until a waiting queue was done.
    pub drained: f64,
    /// Executions per second while they were submitted.
    pub end_to_end: f64,
    /// CPU seconds of this process per 1_000 executions, end to end. It submits and works.
    pub cpu_here: f64,
    /// CPU seconds of the servers per 1_000 executions, end to end.
    pub cpu_servers: f64,
    /// Store commands per execution, end to end.
    pub store_commands: Option<f64>,
}

async fn submit(world: &World, count: usize) -> Result<Vec<ExecutionId>> {
    let admin = world.admin.clone();
    let work = move |_, ()| {
        let admin = admin.clone();
        async move { Ok(admin.submit(new_execution(None)).await?) }
    };
    Ok(drive(SUBMITTERS, vec![(); count], work).await?.1)
}

fn crew(workers: Vec<FlowFabricWorker>, seen: &Seen) -> Crew {
    let mut crew = Crew::new();
    for worker in workers {
        crew.start(WorkerRuntime::new(worker).data(seen.clone()).on(KIND, noop));
    }
    crew
}

async fn connect(world: &World, workers: usize) -> Result<Vec<FlowFabricWorker>> {
    let mut connected = Vec::new();
    for n in 0..workers {
        connected.push(world.worker(&format!("w-{n}"), &[]).await?);
    }
    Ok(connected)
}

/// First drains a waiting queue, then runs the same work while it is submitted. Each ends when the runtimes have
/// stopped, so all their tasks are done.
pub async fn measure(world: &World, workers: usize, count: usize) -> Result<Throughput> {
    let seen = Seen::new();
    submit(world, WARM_UP).await?;
    let warm = crew(connect(world, workers).await?, &seen);
    seen.started(WARM_UP).await?;
    warm.stop().await?;

    let began = Instant::now();
    submit(world, count).await?;
    let submitted = count as f64 / began.elapsed().as_secs_f64();

    let connected = connect(world, workers).await?;
    let began = Instant::now();
    let draining = crew(connected, &seen);
    seen.started(WARM_UP + count).await?;
    draining.stop().await?;
    let drained = count as f64 / began.elapsed().as_secs_f64();

    let working = crew(connect(world, workers).await?, &seen);
    let me = std::process::id();
    let (here, servers) = (machine::cpu_seconds(me)?, world.server_cpu()?);
    let commands = world.store_commands().await?;
    let began = Instant::now();
    submit(world, count).await?;
    seen.started(WARM_UP + 2 * count).await?;
    working.stop().await?;
    let end_to_end = count as f64 / began.elapsed().as_secs_f64();
    let per_1000 = 1_000.0 / count as f64;
    Ok(Throughput {
        submitted,
        drained,
        end_to_end,
        cpu_here: (machine::cpu_seconds(me)? - here) * per_1000,
        cpu_servers: (world.server_cpu()? - servers) * per_1000,
        store_commands: match (commands, world.store_commands().await?) {
            (Some(before), Some(after)) => Some((after - before) as f64 / count as f64),
            _ => None,
        },
    })
}
