//! `POST /v1/admin/fsck`: verifies every invariant of the store, and repairs what has one right answer when asked to.

use axum::Json;
use axum::extract::State;
use ff_engine::Fsck;
use ff_script::generated::RecordedAction;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, JsonAnswer};
use crate::body::Body;
use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new().with(routes!(fsck))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FsckBody {
    repair: Option<bool>,
}

/// What was found.
#[derive(Serialize, ToSchema)]
#[schema(as = FsckReport)]
struct Report {
    clean: bool,
    executions: i64,
    keys: usize,
    findings: Vec<FindingShape>,
    /// Keys that begin like ours and belong to no partition of this store.
    foreign: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = FsckFinding)]
struct FindingShape {
    invariant: i64,
    key: String,
    problem: String,
    repaired: bool,
}

/// Verifies every invariant of the store; with `repair` it mends what has one right answer.
#[utoipa::path(
    post,
    path = "/v1/admin/fsck",
    request_body = FsckBody,
    responses((status = 200, body = Report)),
)]
async fn fsck(State(app): State<App>, caller: Caller, Body(body): Body<FsckBody>) -> JsonAnswer<Report> {
    let repair = body.repair.unwrap_or(false);
    if repair {
        // Before it begins: one that is cut short has changed something all the same.
        app.operations.record_action(RecordedAction::StoreRepaired, caller.name(), None).await?;
    }
    let found = Fsck::run(app.operations.client(), repair).await?;
    tracing::info!(actor = caller.name(), repair, findings = found.findings.len(), "the store was checked");
    let clean = found.is_clean();
    let findings = found.findings.into_iter().map(|finding| FindingShape {
        invariant: finding.invariant,
        key: finding.key.0.escape_ascii().to_string(),
        problem: finding.problem,
        repaired: finding.repaired,
    });
    Ok(Json(Report {
        clean,
        executions: found.executions,
        keys: found.keys,
        findings: findings.collect(),
        foreign: found.foreign,
    }))
}
