//! Workers as operators see them: list, read, drain.

use axum::Json;
use axum::extract::State;
use ff_script::Route;
use ff_script::generated::{DrainWorkerReply, ListWorkers, ListWorkersReply};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::openapi::{Described, vocabulary};
use crate::problem::Problem;
use crate::query::{PageQuery, Query};
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
    let (limit, offset) = (query.limit()?, query.offset()?);
    let ListWorkersReply::Workers { items, more } =
        app.operations.client().call(Route::Fleet, &ListWorkers { limit, offset }).await?;
    let seen = items.into_iter().filter(|worker| caller.covers(&worker.namespace, None));
    let items = seen.map(WorkerShape::from).collect();
    Ok(Json(Listed { items, next_cursor: more.then(|| (offset + limit).to_string()) }))
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
