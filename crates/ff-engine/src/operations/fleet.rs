//! Workers: registration, liveness, draining.

use ff_core::error_code::ErrorCode;
use ff_core::types::{AttemptId, ExecutionId};
use ff_script::generated::{
    ConsumeGrant, ConsumeGrantReply, DeregisterWorker, DeregisterWorkerReply, DrainWorker, DrainWorkerReply, GetWorker,
    GetWorkerReply, Grant, HeartbeatResult, HeartbeatServer, HeartbeatServerReply, HeartbeatWorkers,
    HeartbeatWorkersReply, Library, LibraryReply, ListWorkers, ListWorkersReply, MarkWorkerDead, NextDue, NextDueReply,
    OfferGrant, RecordAction, RecordedAction, RegisterWorker, RegisterWorkerReply, Server, Task, Worker,
};
use ff_script::{Error, Kinds, Route};
use uuid::Uuid;

use super::{LeaseRequest, Operations, refused_with};
use crate::dispatch::Profile;

const PAGE: i64 = 500;

impl Operations {
    /// Registers a worker instance, or replaces what it serves.
    pub async fn register_worker(&self, worker: RegisterWorker) -> Result<RegisterWorkerReply, Error> {
        self.client.call(Route::Fleet, &worker).await
    }

    /// Registers an instance. When another process holds its id, `is_gone` finds out whether that one is gone for good, and the
    /// registration takes its place.
    pub async fn register_or_take_over(
        &self,
        mut worker: RegisterWorker,
        is_gone: impl Future<Output = Result<bool, Error>>,
    ) -> Result<RegisterWorkerReply, Error> {
        match self.register_worker(worker.clone()).await {
            Err(error) if refused_with(&error) == Some(ErrorCode::InstanceInUse) => {
                if !is_gone.await? {
                    return Err(error);
                }
                tracing::info!(
                    instance = worker.instance,
                    "the last holder of this instance id is gone; its registration is taken over"
                );
                worker.take_over = Some(true);
                self.register_worker(worker).await
            }
            answer => answer,
        }
    }

    /// Turns a grant into a lease; the same request id answers the same lease.
    pub async fn consume_grant(
        &self,
        who: &Profile,
        execution_id: ExecutionId,
        grant_id: Uuid,
        request_id: Uuid,
    ) -> Result<Task, Error> {
        let call = ConsumeGrant {
            // What is kept was noted with the grant.
            keep: None,
            attempt_id: AttemptId::mint(),
            capabilities: who.capabilities.clone(),
            kinds: who.kinds.as_ref().map(Kinds::packed),
            execution_id,
            grant_id,
            instance: who.instance.clone(),
            lease_id: LeaseRequest(request_id).of_grant(&execution_id),
            lease_ttl_ms: who.lease_ttl_ms,
            worker_id: who.worker_id.clone(),
        };
        let (ConsumeGrantReply::Claimed { task } | ConsumeGrantReply::Replayed { task }) =
            self.client.call(self.client.route_of(&execution_id), &call).await?;
        Ok(task)
    }

    /// Keeps instances alive, many in one call.
    pub async fn heartbeat(&self, instances: Vec<String>) -> Result<Vec<HeartbeatResult>, Error> {
        let HeartbeatWorkersReply::Beaten { items } =
            self.client.call(Route::Fleet, &HeartbeatWorkers { instances }).await?;
        Ok(items)
    }

    /// Ends a registration; the actor is the operator who insists on it.
    pub async fn deregister_worker(
        &self,
        instance: &str,
        incarnation: Option<Uuid>,
        actor: Option<&str>,
    ) -> Result<DeregisterWorkerReply, Error> {
        let call = DeregisterWorker { actor: actor.map(str::to_owned), incarnation, instance: instance.to_owned() };
        self.client.call(Route::Fleet, &call).await
    }

    /// The servers that live. A look leaves no server behind: it says that it leaves.
    pub async fn servers(&self) -> Result<Vec<Server>, Error> {
        let call = HeartbeatServer { server_id: Uuid::now_v7(), listening: false, leave: Some(true) };
        let HeartbeatServerReply::Servers { items } = self.client.call(Route::Fleet, &call).await?;
        Ok(items)
    }

    /// Tells whichever server a worker claims from of a grant that an operator gave the worker.
    pub async fn offer_grant(&self, instance: &str, grant: &Grant) -> Result<(), Error> {
        let Grant { execution_id, grant_id, .. } = *grant;
        let call = OfferGrant { execution_id, grant_id, instance: instance.to_owned() };
        self.client.call(Route::Fleet, &call).await.map(|_| ())
    }

    /// Records what an operator did that changes no record of its own.
    pub async fn record_action(
        &self,
        action: RecordedAction,
        actor: &str,
        key_id: Option<String>,
    ) -> Result<(), Error> {
        let call = RecordAction { action, actor: actor.to_owned(), key_id };
        self.client.call(Route::Fleet, &call).await.map(|_| ())
    }

    /// Asks a worker to take nothing new and to yield what it holds.
    pub async fn drain_worker(&self, instance: &str, actor: &str) -> Result<DrainWorkerReply, Error> {
        self.client.call(Route::Fleet, &DrainWorker { actor: actor.to_owned(), instance: instance.to_owned() }).await
    }

    /// Declares a worker dead: its leases are taken away.
    pub async fn mark_worker_dead(&self, instance: &str, actor: &str) -> Result<(), Error> {
        let call = MarkWorkerDead { actor: actor.to_owned(), instance: instance.to_owned() };
        self.client.call(Route::Fleet, &call).await.map(|_| ())
    }

    /// One live worker.
    pub async fn worker(&self, instance: &str) -> Result<Worker, Error> {
        let GetWorkerReply::Worker { item } =
            self.client.call(Route::Fleet, &GetWorker { instance: instance.to_owned() }).await?;
        Ok(item)
    }

    /// Every live worker, oldest registration first.
    pub async fn workers(&self) -> Result<Vec<Worker>, Error> {
        let mut all = Vec::new();
        let mut offset = 0;
        loop {
            let (items, more) = self.workers_from(offset, PAGE).await?;
            all.extend(items);
            if !more {
                return Ok(all);
            }
            offset += PAGE;
        }
    }

    /// Live workers behind the first `offset`, and whether there are more.
    pub(crate) async fn workers_from(&self, offset: i64, limit: i64) -> Result<(Vec<Worker>, bool), Error> {
        let ListWorkersReply::Workers { items, more } =
            self.client.call(Route::Fleet, &ListWorkers { limit, offset }).await?;
        Ok((items, more))
    }

    /// The time by the store's own clock. It fails while the store cannot be reached.
    pub async fn now(&self) -> Result<i64, Error> {
        let NextDueReply::Next { now, .. } = self.client.call(Route::Execution(0), &NextDue {}).await?;
        Ok(now)
    }

    /// The library of the store.
    pub(crate) async fn library(&self) -> Result<LibraryReply, Error> {
        self.client.call(Route::Fleet, &Library {}).await
    }
}
