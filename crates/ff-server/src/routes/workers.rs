//! Workers as operators see them: list, read, drain.

use axum::Json;
use axum::extract::State;
use ff_api::workers::{
    DeregisterWorker, DrainOutcome, DrainWorker, Drained, GetWorker, ListWorkers as ListOperation, Worker,
};
use ff_api::{Listed, PageQuery};
use ff_script::Route;
use ff_script::generated::{self, DrainWorkerReply, ListWorkers, ListWorkersReply};

use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::openapi::Described;
use crate::problem::Problem;
use crate::query::{Page, Query, wanted_of};

pub fn routes() -> Described {
    Described::new()
        .serving::<ListOperation, _>(list)
        .serving::<GetWorker, _>(show)
        .serving::<DeregisterWorker, _>(super::worker_protocol::deregister)
        .serving::<DrainWorker, _>(drain)
}

async fn list(State(app): State<App>, caller: Caller, Query(query): Query<PageQuery>) -> JsonAnswer<Listed<Worker>> {
    let client = app.operations.client();
    let read = |limit, offset| async move {
        let ListWorkersReply::Workers { items, more } =
            client.call(Route::Fleet, &ListWorkers { limit, offset }).await?;
        Ok((items, more))
    };
    let wanted = |worker: &generated::Worker| caller.covers(&worker.namespace, None);
    let (workers, next_cursor) = wanted_of((query.limit()?, query.offset()?), wanted, read).await?;
    Ok(Json(Listed { items: workers.into_iter().map(Worker::from).collect(), next_cursor }))
}

async fn show(State(app): State<App>, Name(instance): Name) -> JsonAnswer<Worker> {
    let worker = app.operations.worker(&instance).await.map_err(|error| Problem::from(error).about(&instance))?;
    Ok(Json(worker.into()))
}

async fn drain(State(app): State<App>, caller: Caller, Name(instance): Name) -> JsonAnswer<Drained> {
    let reply = app
        .operations
        .drain_worker(&instance, caller.name())
        .await
        .map_err(|error| Problem::from(error).about(&instance))?;
    app.fleet.drain(&instance);
    let outcome = match reply {
        DrainWorkerReply::Draining => DrainOutcome::Draining,
        DrainWorkerReply::Already => DrainOutcome::Already,
    };
    Ok(Json(Drained { instance, outcome }))
}
