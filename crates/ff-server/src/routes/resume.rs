//! What an operator does with a suspended execution: resume it, or end it as failed.

use axum::Json;
use axum::extract::State;
use ff_api::suspensions::{
    FailSuspension, FailSuspensionBody, ResumeBody, ResumeExecution, SuspensionEnded, SuspensionOutcome,
};
use ff_core::limits::REASON_BYTES_MAX;
use ff_script::generated::PublicState;

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::Body;
use crate::openapi::Described;
use crate::payload::bounded;
use crate::problem::Problem;

/// The category of a failure an operator decided.
const CATEGORY: &str = "operator";

pub fn routes() -> Described {
    Described::new().serving::<ResumeExecution, _>(resume).serving::<FailSuspension, _>(fail)
}

async fn resume(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<ResumeBody>,
) -> JsonAnswer<SuspensionEnded> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
    let resumed = app.operations.resume(id, caller.name(), body.reason.as_deref()).await;
    let state = resumed.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(SuspensionEnded { execution_id: id, outcome: SuspensionOutcome::Resumed, state }))
}

async fn fail(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<FailSuspensionBody>,
) -> JsonAnswer<SuspensionEnded> {
    if body.reason.len() > REASON_BYTES_MAX {
        return Err(Problem::too_large("reason", REASON_BYTES_MAX));
    }
    let category = body.category.as_deref().unwrap_or(CATEGORY);
    let failed = app.operations.fail_suspension(id, caller.name(), &body.reason, category).await;
    failed.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(SuspensionEnded { execution_id: id, outcome: SuspensionOutcome::Failed, state: PublicState::Failed }))
}
