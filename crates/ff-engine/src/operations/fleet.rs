//! Workers: registration, liveness, draining.

use ff_script::generated::{
    DeregisterWorker, DeregisterWorkerReply, DrainWorker, DrainWorkerReply, GetWorker, GetWorkerReply, Grant,
    HeartbeatResult, HeartbeatWorkers, HeartbeatWorkersReply, ListWorkers, ListWorkersReply, MarkWorkerDead,
    OfferGrant, RecordAction, RecordedAction, RegisterWorker, RegisterWorkerReply, Worker,
};
use ff_script::{Error, Route};
use uuid::Uuid;

use super::Operations;

const PAGE: i64 = 500;

impl Operations {
    /// Registers a worker instance, or replaces what it serves.
    pub async fn register_worker(&self, worker: RegisterWorker) -> Result<RegisterWorkerReply, Error> {
        self.client.call(Route::Fleet, &worker).await
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
            let ListWorkersReply::Workers { items, more } =
                self.client.call(Route::Fleet, &ListWorkers { limit: PAGE, offset }).await?;
            all.extend(items);
            if !more {
                return Ok(all);
            }
            offset += PAGE;
        }
    }
}
