//! Workers as operators see them: list, read, drain.

use axum::Json;
use axum::extract::State;
use ff_api::PageQuery;
use ff_script::Route;
use ff_script::generated::{DrainWorkerReply, ListWorkers, ListWorkersReply, Worker};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::openapi::{Described, vocabulary};
use crate::problem::Problem;
use crate::query::{Page, Query, wanted_of};
use crate::shape::Listed;
use crate::shape::worker::WorkerShape;

pub fn routes() -> Described {
    Described::new()
        .with(routes!(list))
        // DELETE of the same path is the worker's own.
        .with(routes!(show, super::worker_protocol::deregister))
        .with(routes!(drain))
}

/// One page of registered workers.
#[utoipa::path(
    get,
    path = "/v1/workers",
    params(PageQuery),
    responses((status = 200, body = Listed<WorkerShape>)),
)]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> JsonAnswer<Listed<WorkerShape>> {
    let client = app.operations.client();
    let read = |limit, offset| async move {
        let ListWorkersReply::Workers { items, more } =
            client.call(Route::Fleet, &ListWorkers { limit, offset }).await?;
        Ok((items, more))
    };
    let wanted = |worker: &Worker| caller.covers(&worker.namespace, None);
    let (workers, next_cursor) = wanted_of((query.limit()?, query.offset()?), wanted, read).await?;
    Ok(Json(Listed { items: workers.into_iter().map(WorkerShape::from).collect(), next_cursor }))
}

/// One registered worker.
#[utoipa::path(
    get,
    path = "/v1/workers/{name}",
    params(("name" = vocabulary::Instance, Path, description = "The worker's instance.")),
    responses((status = 200, body = WorkerShape)),
    extensions(("x-ff-codes" = json!("worker_not_registered"))),
)]
async fn show(State(app): State<App>, Name(instance): Name) -> JsonAnswer<WorkerShape> {
    let worker = app.operations.worker(&instance).await.map_err(|error| Problem::from(error).about(&instance))?;
    Ok(Json(worker.into()))
}

#[derive(Serialize, ToSchema)]
struct Drained {
    instance: String,
    outcome: &'static str,
}

/// The worker takes nothing new and is asked to yield what it holds.
#[utoipa::path(
    post,
    path = "/v1/workers/{name}/drain",
    params(("name" = vocabulary::Instance, Path, description = "The worker's instance.")),
    responses((status = 200, body = Drained)),
    extensions(("x-ff-codes" = json!("worker_not_registered"))),
)]
async fn drain(State(app): State<App>, caller: Caller, Name(instance): Name) -> JsonAnswer<Drained> {
    let reply = app
        .operations
        .drain_worker(&instance, caller.name())
        .await
        .map_err(|error| Problem::from(error).about(&instance))?;
    app.fleet.drain(&instance);
    let outcome = match reply {
        DrainWorkerReply::Draining => "draining",
        DrainWorkerReply::Already => "already",
    };
    Ok(Json(Drained { instance, outcome }))
}
