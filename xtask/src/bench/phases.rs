//! The measured calls of a submitter and a worker, one at a time and in batches.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ff_core::types::{AttemptId, ExecutionId, LeaseId};
use ff_engine::{Claimant, NewExecution, Operations, fence_of};
use ff_script::generated::{
    ClaimExecutions, ClaimExecutionsReply, CompleteExecution, Submission, SubmitExecution, SubmitExecutionReply, Task,
};
use ff_script::{Client, Route};
use uuid::Uuid;

use super::load::{Timed, drive};
use super::store::Store;
use ff_testkit::Tasks;

pub const NAMESPACE: &str = "bench";
pub const LANE: &str = "work";
pub const KIND: &str = "noop";
/// Size of a submission's input.
pub const INPUT_BYTES: usize = 256;
const LEASE_TTL_MS: i64 = 120_000;
/// A worker instance takes at most this many leases per partition; then the next instance claims.
const LEASES_PER_INSTANCE: usize = 16;
const SUBMIT_BATCH: usize = 64;
const CLAIM_BATCH: usize = 32;
const COMPLETE_BATCH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Submit,
    Claim,
    Renew,
    Complete,
    Cycle,
    SubmitMany,
    ClaimMany,
    CompleteMany,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Phase::Submit => "submit",
            Phase::Claim => "claim",
            Phase::Renew => "renew",
            Phase::Complete => "complete",
            Phase::Cycle => "cycle",
            Phase::SubmitMany => "submit × 64",
            Phase::ClaimMany => "claim × 32",
            Phase::CompleteMany => "complete × 64",
        }
    }

    /// Number of executions that one call moves.
    pub fn items(self) -> usize {
        match self {
            Phase::SubmitMany => SUBMIT_BATCH,
            Phase::ClaimMany => CLAIM_BATCH,
            Phase::CompleteMany => COMPLETE_BATCH,
            Phase::Submit | Phase::Claim | Phase::Renew | Phase::Complete | Phase::Cycle => 1,
        }
    }
}

/// An execution in the partition with this number.
pub fn new_execution(partition: u16) -> NewExecution {
    let mut new = NewExecution::new(NAMESPACE, LANE, KIND).with_id(ExecutionId::mint_with_seed(partition));
    new.fields.input = Some(vec![b'x'; INPUT_BYTES].into());
    new
}

fn submission(partition: u16) -> Submission {
    Submission { body_digest: "0".repeat(32), ..new_execution(partition).fields }
}

pub fn claimant(instance: String) -> Claimant {
    Claimant {
        namespace: NAMESPACE.to_owned(),
        lane: LANE.to_owned(),
        worker_id: "bench".to_owned(),
        instance,
        kinds: None,
        capabilities: Vec::new(),
        lease_ttl_ms: LEASE_TTL_MS,
    }
}

async fn submit_one(operations: &Operations, new: NewExecution) -> Result<ExecutionId> {
    match operations.submit(new).await? {
        SubmitExecutionReply::Created { execution_id, .. } => Ok(execution_id),
        other => anyhow::bail!("a fresh submission returned {other:?}"),
    }
}

async fn claim_one(operations: &Operations, partition: u16, who: &Claimant) -> Result<Task> {
    let claimed = operations.claim(Route::Execution(partition), who, 1, Uuid::new_v4()).await?;
    claimed.tasks.into_iter().next().ok_or_else(|| anyhow::anyhow!("partition {partition} had nothing to claim"))
}

/// Installs the lane in every partition.
pub async fn show_lane(store: &Store) -> Result<()> {
    let operations = store.operations.clone();
    let items = (0..store.partitions()).collect();
    drive(16, items, move |slot, partition| cycle(operations.clone(), partition, format!("first-{slot}"))).await?;
    Ok(())
}

async fn cycle(operations: Operations, partition: u16, instance: String) -> Result<()> {
    submit_one(&operations, new_execution(partition)).await?;
    // Another slot's submission may be claimed here, and this one there; in total there is one for each.
    let task = claim_one(&operations, partition, &claimant(instance)).await?;
    operations.client().complete(task.execution_id, fence_of(&task), None).await?;
    Ok(())
}

/// Runs cycles for about this long. Returns their number per second.
pub async fn warm_up(store: &Store, in_flight: usize, time: Duration) -> Result<f64> {
    let (operations, partitions) = (store.operations.clone(), usize::from(store.partitions()));
    let until = Instant::now() + time;
    let (timed, done) = drive(in_flight, (0..in_flight).collect(), move |slot, first: usize| {
        let operations = operations.clone();
        async move {
            let mut count = 0;
            while Instant::now() < until {
                let partition = (first + count * in_flight) % partitions;
                cycle(operations.clone(), partition as u16, format!("warm-{slot}")).await?;
                count += 1;
            }
            Ok(count)
        }
    })
    .await?;
    Ok(done.iter().sum::<usize>() as f64 / timed.wall.as_secs_f64())
}

/// Runs `count` executions through submit, claim, renew and complete, one call each. Each kind of call finishes before
/// the next starts.
pub async fn one_by_one(store: &Store, in_flight: usize, count: usize) -> Result<Vec<(Phase, Timed)>> {
    let partitions = usize::from(store.partitions());
    let partition_of = move |index: usize| (index % partitions) as u16;

    let operations = store.operations.clone();
    let items = (0..count).map(|index| new_execution(partition_of(index))).collect();
    let (submit, _) = drive(in_flight, items, move |_, new| {
        let operations = operations.clone();
        async move { submit_one(&operations, new).await }
    })
    .await?;

    let operations = store.operations.clone();
    let round = partitions * LEASES_PER_INSTANCE;
    let items = (0..count).map(|index| (partition_of(index), claimant(format!("w-{}", index / round)))).collect();
    let (claim, tasks) = drive(in_flight, items, move |_, (partition, who)| {
        let operations = operations.clone();
        async move { claim_one(&operations, partition, &who).await }
    })
    .await?;

    let operations = store.operations.clone();
    let (renew, tasks) = drive(in_flight, tasks, move |_, task: Task| {
        let operations = operations.clone();
        async move {
            operations.client().renew(task.execution_id, fence_of(&task)).await?;
            Ok(task)
        }
    })
    .await?;

    let operations = store.operations.clone();
    let (complete, _) = drive(in_flight, tasks, move |_, task: Task| {
        let operations = operations.clone();
        async move { Ok(operations.client().complete(task.execution_id, fence_of(&task), None).await?) }
    })
    .await?;
    Ok(vec![(Phase::Submit, submit), (Phase::Claim, claim), (Phase::Renew, renew), (Phase::Complete, complete)])
}

/// Runs submit, claim and complete `count` times. Each slot makes one call after the other.
pub async fn cycles(store: &Store, in_flight: usize, count: usize) -> Result<Timed> {
    let (operations, partitions) = (store.operations.clone(), usize::from(store.partitions()));
    let items = (0..count).map(|index| (index % partitions) as u16).collect();
    let (timed, _) =
        drive(in_flight, items, move |slot, partition| cycle(operations.clone(), partition, format!("cycle-{slot}")))
            .await?;
    Ok(timed)
}

/// Runs about `count` executions through the batch forms.
pub async fn in_batches(store: &Store, in_flight: usize, count: usize) -> Result<Vec<(Phase, Timed)>> {
    // A batch is in one partition, and everything submitted is claimed and completed.
    let batches = count.div_ceil(SUBMIT_BATCH).max(in_flight);
    let partitions = usize::from(store.partitions());
    let partition_of = move |batch: usize| (batch % partitions) as u16;

    let client = store.client().clone();
    let items = (0..batches)
        .map(|batch| {
            (partition_of(batch), (0..SUBMIT_BATCH).map(|_| submission(partition_of(batch))).collect::<Vec<_>>())
        })
        .collect();
    let (submit, _) = drive(in_flight, items, move |_, (partition, submissions)| {
        let client = client.clone();
        async move { submit_batch(&client, partition, submissions).await }
    })
    .await?;

    let client = store.client().clone();
    let claims = batches * SUBMIT_BATCH / CLAIM_BATCH;
    let items = (0..claims).map(|claim| (partition_of(claim % batches), format!("many-{claim}"))).collect();
    let (claim, tasks) = drive(in_flight, items, move |_, (partition, instance)| {
        let client = client.clone();
        async move { claim_batch(&client, partition, instance).await }
    })
    .await?;

    let mut by_partition: Vec<Vec<Task>> = (0..partitions).map(|_| Vec::new()).collect();
    for task in tasks.into_iter().flatten() {
        by_partition[usize::from(store.client().partitions().of_execution(&task.execution_id))].push(task);
    }
    let client = store.client().clone();
    let items = by_partition.iter().flat_map(|tasks| tasks.chunks(COMPLETE_BATCH)).map(<[Task]>::to_vec).collect();
    let (complete, _) = drive(in_flight, items, move |_, tasks: Vec<Task>| {
        let client = client.clone();
        async move { complete_batch(&client, tasks).await }
    })
    .await?;
    Ok(vec![(Phase::SubmitMany, submit), (Phase::ClaimMany, claim), (Phase::CompleteMany, complete)])
}

/// Submits and completes `count` executions in batches, for stores that should hold something.
pub async fn fill(store: &Store, count: usize) -> Result<usize> {
    let timed = in_batches(store, 4, count).await?;
    Ok(timed[0].1.count * SUBMIT_BATCH)
}

async fn submit_batch(client: &Client, partition: u16, submissions: Vec<Submission>) -> Result<()> {
    let route = Route::Execution(partition);
    let calls: Vec<_> = submissions.into_iter().map(|submission| (route, SubmitExecution { submission })).collect();
    for reply in client.call_all(&calls).await {
        reply.context("a submission of a batch was refused")?;
    }
    Ok(())
}

async fn claim_batch(client: &Client, partition: u16, instance: String) -> Result<Vec<Task>> {
    let who = claimant(instance);
    let call = ClaimExecutions {
        kinds: None,
        capabilities: who.capabilities,
        attempt_ids: (0..CLAIM_BATCH).map(|_| AttemptId::mint()).collect(),
        lease_ids: (0..CLAIM_BATCH).map(|_| LeaseId::mint()).collect(),
        instance: who.instance,
        lane: who.lane,
        lease_ttl_ms: who.lease_ttl_ms,
        max: CLAIM_BATCH as i64,
        namespace: who.namespace,
        worker_id: who.worker_id,
    };
    match client.call(Route::Execution(partition), &call).await? {
        ClaimExecutionsReply::Claimed { tasks, .. } if tasks.len() == CLAIM_BATCH => Ok(tasks),
        other => anyhow::bail!("a claim of {CLAIM_BATCH} returned {other:?}"),
    }
}

async fn complete_batch(client: &Client, tasks: Vec<Task>) -> Result<()> {
    let call = |task: &Task| {
        let id = task.execution_id;
        (client.route_of(&id), CompleteExecution::new(id, fence_of(task)))
    };
    let calls: Vec<_> = tasks.iter().map(call).collect();
    for reply in client.call_all(&calls).await {
        reply.context("a completion of a batch was refused")?;
    }
    Ok(())
}
