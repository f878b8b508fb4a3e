//! Keeps a caller to its scope: what a path names must lie in it, and a worker's instance must be its own.
//!
//! What lies outside is not found, exactly as if it were not there. A caller without a scope costs nothing here.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use ff_core::error_code::ErrorCode;
use ff_core::types::{ExecutionId, FlowId, WaitpointId};
use ff_script::generated::Role;

use super::Principal;
use crate::app::App;
use crate::problem::{Answer, Problem};

/// Refuses what the path names when it is not the caller's to reach.
pub async fn check(app: &App, caller: &Principal, path: &str, request: &mut Parts) -> Answer<()> {
    // An operator may end what a worker left behind.
    let as_operator = request.method == Method::DELETE && caller.has_any(&[Role::Operator]);
    let own_worker = is_worker_protocol(&request.method, path) && !caller.is_admin() && !as_operator;
    if !caller.is_scoped() && !own_worker {
        return Ok(());
    }
    if caller.is_scoped() && is_of_whole_store(path) {
        let detail = format!("{path} is of the whole store: it takes a token without namespaces and lanes");
        return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail));
    }
    let Ok(params) = RawPathParams::from_request_parts(request, &()).await else { return Ok(()) };
    let Some((name, value)) = params.iter().next() else { return Ok(()) };
    // What cannot be read is the handler's to refuse.
    match (path.split('/').nth(2), name) {
        (Some("executions" | "tasks"), "id") => match value.parse() {
            Ok(id) => execution(app, caller, id).await,
            Err(_) => Ok(()),
        },
        (Some("flows"), _) => match value.parse::<FlowId>() {
            Ok(id) => {
                let flow = app.operations.flow(id).await?;
                caller.sees(&flow.namespace, None, ErrorCode::FlowNotFound)?;
                Ok(caller.check_all_lanes("a flow")?)
            }
            Err(_) => Ok(()),
        },
        (Some("waitpoints"), _) => match value.parse::<WaitpointId>() {
            Ok(id) => {
                let waitpoint = app.operations.waitpoint(id).await?;
                execution(app, caller, waitpoint.execution_id).await
            }
            Err(_) => Ok(()),
        },
        (Some("budgets"), _) => match value.parse() {
            Ok(id) => Ok(app.check_budget(caller, id).await?),
            Err(_) => Ok(()),
        },
        (Some("quotas"), _) => match value.parse() {
            Ok(id) => Ok(app.check_quota(caller, id).await?),
            Err(_) => Ok(()),
        },
        (Some("workers"), _) => worker(app, caller, value, own_worker).await,
        _ => Ok(()),
    }
}

/// Tokens, keys and the check of the store reach beyond every scope, and the metrics speak of every lane at once.
fn is_of_whole_store(path: &str) -> bool {
    path.starts_with("/v1/admin/") || path == "/metrics"
}

/// The routes a worker asks about itself; registering is how it comes to be somebody's.
fn is_worker_protocol(method: &Method, path: &str) -> bool {
    match path.strip_prefix("/v1/workers/{name}") {
        Some("") => method == Method::DELETE,
        Some(route) => !matches!(route, "/register" | "/drain"),
        None => false,
    }
}

async fn execution(app: &App, caller: &Principal, id: ExecutionId) -> Answer<()> {
    if !caller.is_scoped() {
        return Ok(());
    }
    let execution = app.operations.describe(id).await.map_err(|error| Problem::from(error).about(id))?;
    let seen = caller.sees(&execution.namespace, Some(&execution.lane), ErrorCode::ExecutionNotFound);
    Ok(seen.map_err(|problem| problem.about(id))?)
}

async fn worker(app: &App, caller: &Principal, instance: &str, own: bool) -> Answer<()> {
    // One that is not registered is the handler's to refuse.
    let Ok(worker) = app.fleet.meet(instance).await else { return Ok(()) };
    if own && !caller.owns(worker.owner().as_deref()) {
        return Err(ff_engine::another_owner(instance).into());
    }
    Ok(caller.sees(&worker.namespace(), None, ErrorCode::WorkerNotRegistered)?)
}
