//! Prints how many cycles of submit, claim and complete this host runs per second.
//!
//! `cargo run --release -p ff-backend-embedded --example cycles [CYCLES] [IN_FLIGHT...]`

use std::sync::Arc;
use std::time::Instant;

use ff_backend_embedded::{Durability, Embedded, Options};
use ff_core::PartitionConfig;
use ff_core::types::{AttemptId, ExecutionId, LeaseId};
use ff_script::generated::{
    ClaimExecutions, ClaimExecutionsReply, CompleteExecution, Fairness, Fence, InstallLane, LaneDefinition, LaneEntry,
    LaneState, Submission, SubmitExecution,
};
use ff_script::{Client, Host, Library};

async fn cycle(client: &Client, worker: &str) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    let id = ExecutionId::mint();
    let route = client.route_of(&id);
    let submission = Submission::new(
        id,
        "default".into(),
        "work".into(),
        "render".into(),
        "0123456789abcdef0123456789abcdef".into(),
    );
    let submitted = client.call_counted(route, &SubmitExecution { submission }).await?;
    let claim = ClaimExecutions {
        namespace: "default".into(),
        lane: "work".into(),
        instance: worker.into(),
        worker_id: worker.into(),
        capabilities: Vec::new(),
        kinds: None,
        max: 1,
        lease_ttl_ms: 30_000,
        attempt_ids: vec![AttemptId::mint()],
        lease_ids: vec![LeaseId::mint()],
    };
    let claimed = client.call_counted(route, &claim).await?;
    let ClaimExecutionsReply::Claimed { tasks, .. } = claimed.reply else {
        return Err("the claim was not fresh".into());
    };
    let mut calls = submitted.calls + claimed.calls;
    for task in tasks {
        let fence = Fence { attempt_id: task.attempt_id, lease_id: task.lease_id, lease_epoch: task.lease_epoch };
        calls += client.call_counted(route, &CompleteExecution::new(task.execution_id, fence)).await?.calls;
    }
    Ok(calls)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let cycles = numbers.first().copied().unwrap_or(5_000);
    let in_flights = if numbers.len() > 1 { numbers[1..].to_vec() } else { vec![1, 16, 64] };
    for durability in [Durability::Fsync, Durability::Relaxed] {
        let directory = tempfile::tempdir()?;
        let mut options = Options::new(directory.path(), Library::shipped().text);
        options.durability = durability;
        let host = Arc::new(Embedded::open(options)?);
        let client = Client::new(Arc::clone(&host) as Arc<dyn Host>, PartitionConfig::standalone());
        let definition = LaneDefinition::new(LaneState::Active, 1_000_000_000_000, Fairness::Fifo, 1);
        let entry = LaneEntry { namespace: "default".into(), lane: "work".into(), version: 1, definition };
        for route in client.execution_routes() {
            client.call(route, &InstallLane { entry: entry.clone() }).await?;
        }
        for in_flight in &in_flights {
            let commands = host.store_commands().await?;
            let start = Instant::now();
            let tasks: Vec<_> = (0..*in_flight)
                .map(|lane| {
                    let client = client.clone();
                    let share = cycles / in_flight;
                    tokio::spawn(async move {
                        let mut calls = 0;
                        for _ in 0..share {
                            calls += cycle(&client, &format!("w{lane}")).await?;
                        }
                        Ok::<u32, Box<dyn std::error::Error + Send + Sync>>(calls)
                    })
                })
                .collect();
            let mut calls = 0;
            for task in tasks {
                calls += task.await??;
            }
            let done = (cycles / in_flight * in_flight) as f64;
            let per_second = done / start.elapsed().as_secs_f64();
            let commands = (host.store_commands().await? - commands) as f64 / done;
            println!(
                "{:7} {in_flight:4} in flight: {per_second:8.0} cycles/s, {:.1} library calls, {commands:.1} store commands a cycle",
                host.facts().durability,
                f64::from(calls) / done
            );
        }
        let size = std::fs::metadata(directory.path().join("data.mdb"))?.len();
        println!(
            "{:7} {} bytes on disk an execution",
            host.facts().durability,
            size / (cycles * in_flights.len()) as u64
        );
    }
    Ok(())
}
