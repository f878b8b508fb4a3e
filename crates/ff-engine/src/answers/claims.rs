//! How a worker gets its tasks: it claims them, or consumes what was granted to it.

use std::sync::Arc;
use std::time::Duration;

use ff_api::claims::{ClaimBody, ClaimTasks, Claimed, ConsumeTask, Consumed, GrantTasks, Granted};
use ff_api::executions::{ReclaimExecution, Reclaimed};
use ff_api::operation::WAIT_MS_MAX;
use ff_api::{Ask, Problem};
use ff_core::contracts::ClaimGrant;
use ff_core::limits::{GRANT_TTL_MS_MAX, GRANT_TTL_MS_MIN, LEASE_TTL_MS_MAX, LEASE_TTL_MS_MIN};
use ff_script::generated::{GrantReclaim, Task};
use ff_script::{Answers, Kinds};
use uuid::Uuid;

use super::about;
use crate::fleet::{ClaimWish, Ends, Worker};
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// How long a lease holds by default.
const LEASE_TTL_MS: i64 = 30_000;
/// The most tasks of one claim.
const CLAIM_MAX: u16 = 256;
/// How long a grant holds by default.
const GRANT_TTL_MS: i64 = 5_000;
/// The most grants of one request.
const GRANTS_MAX: u16 = 64;
/// How long an operator's grant holds by default.
const RECLAIM_TTL_MS: i64 = 30_000;

fn within<T: PartialOrd + std::fmt::Display>(field: &str, value: T, from: T, to: T) -> Result<T, Problem> {
    if (&from..=&to).contains(&&value) {
        return Ok(value);
    }
    Err(Problem::invalid(field, format!("must be in {from}..={to}, got {value}")))
}

impl Service {
    /// Waits for tasks on behalf of a worker. `still_may` is asked when tasks have come: a caller it refuses gets none of them.
    pub async fn claim(
        &self,
        instance: &str,
        body: ClaimBody,
        still_may: impl Future<Output = Result<(), Problem>>,
    ) -> Result<Claimed, Problem> {
        let (worker, wish) = self.wish_of(instance, body).await?;
        let tasks = self.fleet.claim(&worker, wish, &self.stop, still_may).await?;
        Ok(Claimed { tasks: self.whole(tasks).await?.into_iter().map(Into::into).collect() })
    }

    /// Runs operations that end leases of a worker, and claims for it; the claim never waits.
    pub(super) async fn claim_after(
        &self,
        instance: &str,
        body: ClaimBody,
        ends: Ends,
        lane: Option<&str>,
        still_may: impl Future<Output = Result<(), Problem>>,
    ) -> (Answers, Result<Vec<Task>, Problem>) {
        let (worker, wish) = match self.wish_of(instance, body).await {
            Ok(asked) => asked,
            Err(problem) => return (self.operations.client().run(ends.list).await, Err(problem)),
        };
        let (ended, claimed) = self.fleet.claim_after(&worker, wish, ends, lane, still_may).await;
        let tasks = match claimed {
            Ok(tasks) => self.whole(tasks).await,
            Err(problem) => Err(problem),
        };
        (ended, tasks)
    }

    /// Tasks with what did not fit into their claim.
    async fn whole(&self, mut tasks: Vec<Task>) -> Result<Vec<Task>, Problem> {
        for task in &mut tasks {
            self.operations.complete_resume(task).await?;
            self.complete_children(task).await?;
        }
        Ok(tasks)
    }

    /// The worker, and what its claim asks for.
    async fn wish_of(&self, instance: &str, body: ClaimBody) -> Result<(Arc<Worker>, ClaimWish), Problem> {
        let max = within("max", body.max.unwrap_or(1), 1, CLAIM_MAX)?;
        let wait_ms = within("wait_ms", body.wait_ms.unwrap_or(0), 0, WAIT_MS_MAX)?;
        let lease_ttl_ms =
            within("lease_ttl_ms", body.lease_ttl_ms.unwrap_or(LEASE_TTL_MS), LEASE_TTL_MS_MIN, LEASE_TTL_MS_MAX)?;
        let worker = self.fleet.worker(instance, body.incarnation).await?;
        let wish = ClaimWish {
            profile: worker.profile(body.lanes, body.kinds, lease_ttl_ms)?,
            max,
            wait: Duration::from_millis(wait_ms),
            request_id: body.request_id.unwrap_or_else(Uuid::now_v7),
        };
        Ok((worker, wish))
    }
}

impl Handle<ClaimTasks> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ClaimTasks>) -> Result<Claimed, Problem> {
        self.claim(&ask.at, ask.body, async { Ok(()) }).await
    }
}

impl Handle<GrantTasks> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GrantTasks>) -> Result<Granted, Problem> {
        let Ask { at: instance, body, .. } = ask;
        let max = within("max", body.max.unwrap_or(1), 1, GRANTS_MAX)?;
        let ttl_ms =
            within("grant_ttl_ms", body.grant_ttl_ms.unwrap_or(GRANT_TTL_MS), GRANT_TTL_MS_MIN, GRANT_TTL_MS_MAX)?;
        let worker = self.fleet.worker(&instance, body.incarnation).await?;
        if worker.is_draining() {
            return Ok(Granted { grants: Vec::new() });
        }
        let profile = worker.profile(body.lanes, body.kinds, LEASE_TTL_MS)?;
        let grants = self.dispatcher.grant(&profile, max, ttl_ms).await?;
        Ok(Granted { grants: grants.into_iter().map(ClaimGrant::from).collect() })
    }
}

impl Handle<ConsumeTask> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<ConsumeTask>) -> Result<Consumed, Problem> {
        let Ask { at: instance, body, .. } = ask;
        let worker = self.fleet.worker(&instance, body.incarnation).await?;
        let profile = worker.profile(None, None, body.lease_ttl_ms.unwrap_or(LEASE_TTL_MS))?;
        let request_id = body.request_id.unwrap_or_else(Uuid::now_v7);
        let task = self.fleet.take_up(&worker, &profile, body.execution_id, body.grant_id, request_id).await?;
        let task = self.whole(vec![task]).await?.pop().expect("one went in");
        Ok(Consumed { task: task.into() })
    }
}

impl Handle<ReclaimExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReclaimExecution>) -> Result<Reclaimed, Problem> {
        let Ask { at: id, body, .. } = ask;
        // The store knows what it serves: it may have registered anew with another server.
        let found = self.operations.worker(&body.instance).await.map_err(about(&body.instance))?;
        by.check_worker(&found)?;
        let call = GrantReclaim {
            actor: by.name().to_owned(),
            execution_id: id,
            grant_id: Uuid::now_v7(),
            instance: body.instance,
            ttl_ms: body.ttl_ms.unwrap_or(RECLAIM_TTL_MS),
            namespace: found.namespace,
            lanes: found.lanes,
            capabilities: found.capabilities,
            kinds: found.kinds.map(|kinds| Kinds::of(kinds).packed()),
        };
        if self.fleet.is_here() {
            // The caller hands the grant to its worker.
            return Ok(self.dispatcher.grant_reclaim(&call).await.map_err(about(id))?.into());
        }
        let worker = self.fleet.meet(&call.instance).await?;
        let grant = self.dispatcher.grant_reclaim(&call).await.map_err(about(id))?;
        // Its next claim may come to any server. A lost word costs the grant's time; then any worker may take the execution.
        worker.grant(grant.execution_id, grant.grant_id);
        if let Err(error) = self.operations.offer_grant(&call.instance, &grant).await {
            tracing::warn!(%error, execution = %id, "a grant was not told to other servers");
        }
        Ok(grant.into())
    }
}
