//! Workers as operators see them: listed, shown, and drained.

use ff_api::workers::{DrainOutcome, DrainWorker, Drained, GetWorker, ListWorkers, Worker};
use ff_api::{Ask, Listed, Problem, page};
use ff_script::generated::{self, DrainWorkerReply};

use super::{about, filtered_page};
use crate::principal::Principal;
use crate::service::{Handle, Service};

impl Handle<ListWorkers> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ListWorkers>) -> Result<Listed<Worker>, Problem> {
        let (limit, offset) = (page::length(ask.query.limit)?, page::offset(ask.query.cursor.as_deref())?);
        let wanted = |worker: &generated::Worker| by.covers(&worker.namespace, None);
        let read = |offset, limit| self.operations.workers_from(offset, limit);
        let (workers, next_cursor) = filtered_page(offset, limit, wanted, read).await?;
        Ok(Listed { items: workers.into_iter().map(Worker::from).collect(), next_cursor })
    }
}

impl Handle<GetWorker> for Service {
    async fn handle(&self, _: &Principal, ask: Ask<GetWorker>) -> Result<Worker, Problem> {
        let worker = self.operations.worker(&ask.at).await;
        Ok(worker.map_err(about(&ask.at))?.into())
    }
}

impl Handle<DrainWorker> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<DrainWorker>) -> Result<Drained, Problem> {
        let instance = ask.at;
        let reply = self.operations.drain_worker(&instance, by.name()).await.map_err(about(&instance))?;
        self.fleet.drain(&instance);
        let outcome = match reply {
            DrainWorkerReply::Draining => DrainOutcome::Draining,
            DrainWorkerReply::Already => DrainOutcome::Already,
        };
        Ok(Drained { instance, outcome })
    }
}
