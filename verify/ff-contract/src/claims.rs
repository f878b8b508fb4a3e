//! Claims through the server's admission, and grants.

use anyhow::ensure;
use ff_core::contracts::{ClaimGrant, ReclaimGrant};
use ff_core::types::{LaneId, WorkerInstanceId};
use ff_sdk::{ClaimedTask, SdkError};

use crate::{LANE, Reach, next};

pub async fn run(reach: &Reach) -> anyhow::Result<()> {
    let worker = reach.worker("claims").await?;
    let lane = LaneId::new(LANE);

    ensure!(worker.claim_via_server(&reach.admin, &lane, 5_000).await?.is_none());
    let admitted = reach.submit("admitted", b"{}").await?;
    let task: Option<ClaimedTask> = worker.claim_via_server(&reach.admin, &lane, 5_000).await?;
    let task = task.ok_or_else(|| anyhow::anyhow!("it was submitted before"))?;
    ensure!(task.execution_id() == &admitted);

    let granted = reach.submit("granted", b"{}").await?;
    let grant: Option<ClaimGrant> = reach.admin.grant_claim(&worker, &lane, 30_000).await?;
    let grant = grant.ok_or_else(|| anyhow::anyhow!("one waits"))?;
    ensure!(grant.execution_id == granted);
    ensure!(matches!(worker.claim_from_grant(lane.clone(), grant.clone()).await, Err(SdkError::WorkerAtCapacity)));
    task.complete(None).await?;
    let task: ClaimedTask = worker.claim_from_grant(lane.clone(), grant).await?;
    ensure!(task.execution_id() == &granted, "the grant was left untouched");
    task.complete(None).await?;

    let interrupted = reach.submit("interrupted", b"{}").await?;
    let task = next(&worker).await?;
    reach.admin.revoke_lease(&interrupted, false).await?;
    drop(task);
    let chosen = reach.worker("chosen").await?;
    let grant: ReclaimGrant = reach.admin.grant_reclaim(&interrupted, &WorkerInstanceId::new("chosen"), 30_000).await?;
    let task: ClaimedTask = chosen.claim_from_reclaim_grant(grant).await?;
    ensure!(task.execution_id() == &interrupted);
    task.complete(None).await?;

    let known = worker.list_workers().await?;
    ensure!(known.iter().filter(|known| ["claims", "chosen"].contains(&known.instance.as_str())).count() == 2);
    chosen.disconnect().await?;
    worker.disconnect().await?;
    Ok(())
}
