//! How many executions a number of workers bring from submission to their end.

use std::time::Instant;

use anyhow::Result;
use ff_core::state::PublicState;
use ff_core::types::ExecutionId;
use ff_sdk::ExecutionFilter;
use ff_sdk::runtime::WorkerRuntime;

use super::super::load::drive;
use super::super::machine;
use super::seen::{Seen, noop};
use super::world::{Crew, KIND, LANE, NAMESPACE, World, new_execution};

const SUBMITTERS: usize = 64;
const WARM_UP: usize = 100;

/// What one run found.
pub struct Throughput {
    /// Submissions per second, one by one, nobody working.
    pub submitted: f64,
    /// Executions per second until a waiting queue was done.
    pub drained: f64,
    /// Executions per second while they were submitted.
    pub end_to_end: f64,
    /// CPU seconds per 1_000 executions of this process, which submits and works, end to end.
    pub cpu_here: f64,
    /// CPU seconds per 1_000 executions of the servers, end to end.
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

fn crew(workers: Vec<ff_sdk::FlowFabricWorker>, seen: &Seen) -> Crew {
    let mut crew = Crew::new();
    for worker in workers {
        crew.start(WorkerRuntime::new(worker).data(seen.clone()).on(KIND, noop));
    }
    crew
}

/// Waits until nothing waits or runs any more.
async fn all_ended(world: &World) -> Result<()> {
    for state in [PublicState::Waiting, PublicState::Active] {
        let filter = ExecutionFilter {
            namespace: Some(NAMESPACE.to_owned()),
            lane: Some(LANE.to_owned()),
            state: Some(state),
            ..ExecutionFilter::default()
        };
        while !world.admin.list_executions(&filter, None, 1).await?.items.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
    Ok(())
}

/// First a queue that waits, then the same while it is submitted; both until the last one has ended.
pub async fn measure(world: &World, workers: usize, count: usize) -> Result<Throughput> {
    let seen = Seen::new();
    let mut connected = Vec::new();
    for n in 0..workers {
        connected.push(world.worker(&format!("w-{n}"), &[]).await?);
    }
    submit(world, WARM_UP).await?;

    let began = Instant::now();
    submit(world, count).await?;
    let submitted = count as f64 / began.elapsed().as_secs_f64();

    let began = Instant::now();
    let crew = crew(connected, &seen);
    seen.started(WARM_UP + count).await?;
    all_ended(world).await?;
    let drained = (WARM_UP + count) as f64 / began.elapsed().as_secs_f64();

    let me = std::process::id();
    let (here, servers) = (machine::cpu_seconds(me)?, world.server_cpu()?);
    let commands = world.store_commands().await?;
    let began = Instant::now();
    submit(world, count).await?;
    seen.started(WARM_UP + 2 * count).await?;
    all_ended(world).await?;
    let end_to_end = count as f64 / began.elapsed().as_secs_f64();
    let per_1000 = 1_000.0 / count as f64;
    let throughput = Throughput {
        submitted,
        drained,
        end_to_end,
        cpu_here: (machine::cpu_seconds(me)? - here) * per_1000,
        cpu_servers: (world.server_cpu()? - servers) * per_1000,
        store_commands: match (commands, world.store_commands().await?) {
            (Some(before), Some(after)) => Some((after - before) as f64 / count as f64),
            _ => None,
        },
    };
    crew.stop().await?;
    Ok(throughput)
}
