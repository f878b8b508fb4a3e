//! What an operator does with a suspended execution: resume it, or end it as failed.

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use ff_core::types::ExecutionId;
use ff_script::generated::PublicState;
use serde::{Deserialize, Serialize};

use super::tasks::REASON_MAX;
use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::Body;
use crate::payload::bounded;
use crate::problem::Problem;

/// The category of a failure an operator decided.
const CATEGORY: &str = "operator";

pub fn routes() -> Router<App> {
    Router::new()
        .route("/v1/executions/{id}/resume", post(resume))
        .route("/v1/executions/{id}/fail-suspension", post(fail))
}

#[derive(Serialize)]
struct Done {
    execution_id: ExecutionId,
    outcome: &'static str,
    state: PublicState,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResumeBody {
    reason: Option<String>,
}

/// The attempt goes on without the signals it waited for.
async fn resume(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<ResumeBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_MAX)?;
    let resumed = app.operations.resume(id, caller.name(), body.reason.as_deref()).await;
    let state = resumed.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Done { execution_id: id, outcome: "resumed", state }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailBody {
    reason: String,
    category: Option<String>,
}

/// The execution ends as failed; its policy does not retry what an operator ended.
async fn fail(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<FailBody>) -> JsonAnswer<Done> {
    if body.reason.len() > REASON_MAX {
        return Err(Problem::too_large("reason", REASON_MAX));
    }
    let category = body.category.as_deref().unwrap_or(CATEGORY);
    let failed = app.operations.fail_suspension(id, caller.name(), &body.reason, category).await;
    failed.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Done { execution_id: id, outcome: "failed", state: PublicState::Failed }))
}
