//! What an operator does with a suspended execution: resume it, or end it as failed.

use axum::Json;
use axum::extract::State;
use ff_core::types::ExecutionId;
use ff_script::generated::PublicState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::payload::bounded;
use crate::problem::Problem;
use ff_core::limits::REASON_BYTES_MAX;

/// The category of a failure an operator decided.
const CATEGORY: &str = "operator";

pub fn routes() -> Described {
    Described::new().with(routes!(resume)).with(routes!(fail))
}

#[derive(Serialize, ToSchema)]
#[schema(as = SuspensionEnded)]
struct Done {
    execution_id: ExecutionId,
    outcome: &'static str,
    state: PublicState,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResumeBody {
    #[schema(value_type = Option<vocabulary::Reason>)]
    reason: Option<String>,
}

/// The attempt goes on without the signals it waited for.
#[utoipa::path(
    post,
    path = "/v1/executions/{id}/resume",
    params(Id),
    request_body = ResumeBody,
    responses((status = 200, body = Done)),
    extensions(("x-ff-codes" = json!("execution_not_found execution_not_suspended"))),
)]
async fn resume(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<ResumeBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
    let resumed = app.operations.resume(id, caller.name(), body.reason.as_deref()).await;
    let state = resumed.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Done { execution_id: id, outcome: "resumed", state }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FailSuspensionBody)]
struct FailBody {
    #[schema(value_type = vocabulary::Reason)]
    reason: String,
    #[schema(value_type = Option<vocabulary::Category>)]
    category: Option<String>,
}

/// The execution ends as failed; its policy does not retry what an operator ended.
#[utoipa::path(
    post,
    path = "/v1/executions/{id}/fail-suspension",
    params(Id),
    request_body = FailBody,
    responses((status = 200, body = Done)),
    extensions(("x-ff-codes" = json!("execution_not_found execution_not_suspended"))),
)]
async fn fail(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<FailBody>) -> JsonAnswer<Done> {
    if body.reason.len() > REASON_BYTES_MAX {
        return Err(Problem::too_large("reason", REASON_BYTES_MAX));
    }
    let category = body.category.as_deref().unwrap_or(CATEGORY);
    let failed = app.operations.fail_suspension(id, caller.name(), &body.reason, category).await;
    failed.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Done { execution_id: id, outcome: "failed", state: PublicState::Failed }))
}
