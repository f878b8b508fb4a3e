//! A claimed task: its content, and every way to end it.

use std::collections::HashMap;

use anyhow::ensure;
use ff_core::error::{ContentionKind, StateKind};
use ff_core::state::Outcome;
use ff_core::types::{AttemptId, AttemptIndex, ExecutionId, LaneId, LeaseEpoch, LeaseId, TimestampMs};
use ff_sdk::task::FailOutcome;
use ff_sdk::{ClaimedTask, EngineError, SdkError};

use crate::{LANE, Reach, SOON, next};

async fn outcome(reach: &Reach, id: &ExecutionId) -> anyhow::Result<Outcome> {
    let result = reach.admin.result(id, SOON).await?;
    Ok(result.ok_or_else(|| anyhow::anyhow!("{id} has not ended"))?.outcome)
}

async fn shows(reach: &Reach, task: &ClaimedTask, id: &ExecutionId) -> anyhow::Result<()> {
    let shown: &ExecutionId = task.execution_id();
    let (_, _): (&AttemptId, &LeaseId) = (task.attempt_id(), task.lease_id());
    let lane: &LaneId = task.lane_id();
    let kind: &str = task.execution_kind();
    let index: AttemptIndex = task.attempt_index();
    let epoch: LeaseEpoch = task.lease_epoch();
    let input: &[u8] = task.input_payload();
    let tags: &HashMap<String, String> = task.tags();
    let passed: &HashMap<String, Vec<u8>> = task.passed();
    ensure!(shown == id && lane.as_str() == LANE && kind == "show" && index == AttemptIndex::new(0));
    ensure!(epoch.get() > 0 && input == b"\x00\xff binary" && passed.is_empty());
    ensure!(tags.get("tenant").map(String::as_str) == Some("acme"), "{tags:?}");
    let healthy: bool = task.is_lease_healthy();
    ensure!(healthy && task.consecutive_renewal_failures() == 0);
    task.renew_lease().await?;
    task.update_progress(40_u8, "half way").await?;
    let progress = reach.admin.describe_execution(id).await?.progress;
    ensure!(progress.is_some_and(|progress| progress.pct == 40));
    Ok(())
}

pub async fn run(reach: &Reach) -> anyhow::Result<()> {
    let worker = reach.worker("tasks").await?;
    ensure!(worker.claim_next().await?.is_none(), "nothing was submitted");

    let id = reach.submit("show", b"\x00\xff binary").await?;
    let task = next(&worker).await?;
    shows(reach, &task, &id).await?;
    ensure!(worker.claim_next().await?.is_none(), "its one permit is taken");
    task.complete(Some(b"null".to_vec())).await?;
    let ended = reach.admin.result(&id, SOON).await?.ok_or_else(|| anyhow::anyhow!("it has not ended"))?;
    ensure!(ended.outcome == Outcome::Success && ended.result.as_deref() == Some(b"null".as_slice()), "{ended:?}");
    ensure!(worker.describe_execution(&id).await?.result.as_deref() == Some(b"null".as_slice()));

    let id = reach.submit("fails", b"{}").await?;
    match next(&worker).await?.fail("no luck", "My Own: category").await? {
        FailOutcome::RetryScheduled { delay_until } => ensure!(delay_until > TimestampMs(0)),
        FailOutcome::TerminalFailed => anyhow::bail!("a first failure is tried again"),
    }
    let failure = worker.describe_execution(&id).await?.attempts.into_iter().next().and_then(|attempt| attempt.failure);
    ensure!(failure.is_some_and(|failure| failure.category == "My Own: category"), "as the caller wrote it");
    reach.admin.cancel(&id, "enough", None).await?;
    ensure!(outcome(reach, &id).await? == Outcome::Cancelled);

    let id = reach.submit("cancels", b"{}").await?;
    next(&worker).await?.cancel("not wanted").await?;
    ensure!(outcome(reach, &id).await? == Outcome::Cancelled);

    let id = reach.submit("delays", b"{}").await?;
    let until = TimestampMs::from_millis(TimestampMs::now().0 + 3_600_000);
    next(&worker).await?.delay_execution(until).await?;
    ensure!(worker.describe_execution(&id).await?.delay_until == Some(until));
    reach.admin.cancel(&id, "enough", None).await?;

    let id = reach.submit("yields", b"{}").await?;
    next(&worker).await?.yield_back().await?;
    let again = next(&worker).await?;
    ensure!(again.execution_id() == &id && again.attempt_index() == AttemptIndex::new(1));
    again.complete(None).await?;

    let id = reach.submit("is cancelled", b"{}").await?;
    let task = next(&worker).await?;
    let attempt = *task.attempt_id();
    reach.admin.cancel(&id, "another one was faster", None).await?;
    match task.complete(None).await {
        Err(SdkError::Engine(error)) => match *error {
            EngineError::Contention(ContentionKind::ExecutionNotActive {
                terminal_outcome,
                lease_epoch: _,
                lifecycle_phase: _,
                attempt_id,
            }) => ensure!(terminal_outcome == Some(Outcome::Cancelled) && attempt_id == Some(attempt)),
            other => anyhow::bail!("{other:?}"),
        },
        other => anyhow::bail!("another outcome won, and yet {other:?}"),
    }

    let id = reach.submit("is revoked", b"{}").await?;
    let task = next(&worker).await?;
    reach.admin.revoke_lease(&id, false).await?;
    match task.renew_lease().await {
        Err(SdkError::Engine(error)) => {
            ensure!(error.code() == "lease_revoked", "{error}");
            let _ = error.class();
            ensure!(matches!(*error, EngineError::State(StateKind::LeaseRevoked)));
        }
        other => anyhow::bail!("its lease was taken away, and yet {other:?}"),
    }
    ensure!(!task.is_lease_healthy());
    drop(task);
    let again = next(&worker).await?;
    ensure!(again.execution_id() == &id);
    again.complete(None).await?;

    match worker.describe_execution(&ExecutionId::mint()).await {
        Err(SdkError::Engine(error)) => ensure!(*error == EngineError::NotFound { entity: "execution" }, "{error}"),
        other => anyhow::bail!("it was never submitted, but got {other:?}"),
    }
    worker.disconnect().await?;
    Ok(())
}
