//! What operators and submitters do with one execution.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use ff_core::types::ExecutionId;
use ff_script::generated::{
    CancelExecutionReply, ChangeExecution, ChangeExecutionReply, GrantReclaim, HoldExecutionReply, Outcome,
    PublicState, ReleaseExecutionReply, ReplayExecutionReply, RevokeLeaseReply,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::Body;
use crate::payload::bounded;
use crate::problem::{Answer, Problem};
use crate::shape::task::GrantShape;

const REASON_MAX: usize = 4096;
const RECLAIM_TTL_MS: i64 = 30_000;

pub fn routes() -> Router<App> {
    Router::new()
        .route("/v1/executions/{id}/cancel", post(cancel))
        .route("/v1/executions/{id}/replay", post(replay))
        .route("/v1/executions/{id}/hold", post(hold))
        .route("/v1/executions/{id}/release", post(release))
        .route("/v1/executions/{id}/revoke-lease", post(revoke))
        .route("/v1/executions/{id}/reclaim", post(reclaim))
}

/// What became of it.
#[derive(Serialize)]
struct Done {
    execution_id: ExecutionId,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<PublicState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terminal_outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_by: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay_count: Option<i64>,
}

impl Done {
    fn new(execution_id: ExecutionId, outcome: &'static str) -> Self {
        Self { execution_id, outcome, state: None, terminal_outcome: None, cancel_by: None, replay_count: None }
    }

    fn in_state(self, state: PublicState) -> Self {
        Self { state: Some(state), ..self }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelBody {
    reason: Option<String>,
    grace_ms: Option<i64>,
}

async fn cancel(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<CancelBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_MAX)?;
    let reply = app.operations.cancel(id, caller.name(), body.reason.as_deref(), body.grace_ms).await;
    Ok(Json(match reply.map_err(|error| Problem::from(error).about(id))? {
        CancelExecutionReply::Cancelled => Done::new(id, "cancelled"),
        CancelExecutionReply::Requested { cancel_by } => {
            Done { cancel_by: Some(cancel_by), ..Done::new(id, "requested") }
        }
        CancelExecutionReply::Already { outcome } => {
            Done { terminal_outcome: Some(outcome), ..Done::new(id, "already") }
        }
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReasonBody {
    reason: Option<String>,
}

async fn replay(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<ReasonBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_MAX)?;
    let reply = app.operations.replay(id, caller.name(), body.reason.as_deref()).await;
    let ReplayExecutionReply::Replayed { replay_count, state } =
        reply.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Done { replay_count: Some(replay_count), ..Done::new(id, "replayed").in_state(state) }))
}

async fn hold(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<ReasonBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_MAX)?;
    let reply = app.operations.hold(id, caller.name(), body.reason.as_deref()).await;
    Ok(Json(match reply.map_err(|error| Problem::from(error).about(id))? {
        HoldExecutionReply::Held => Done::new(id, "held"),
        HoldExecutionReply::Already => Done::new(id, "already"),
    }))
}

async fn release(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<ReasonBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_MAX)?;
    let call = ff_script::generated::ReleaseExecution {
        actor: caller.name().to_owned(),
        execution_id: id,
        reason: body.reason,
    };
    let client = app.operations.client();
    let reply = client.call(client.route_of(&id), &call).await;
    Ok(Json(match reply.map_err(|error| Problem::from(error).about(id))? {
        ReleaseExecutionReply::Released { state } => Done::new(id, "released").in_state(state),
        ReleaseExecutionReply::Already { state } => Done::new(id, "already").in_state(state),
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RevokeBody {
    reason: Option<String>,
    grace: Option<bool>,
}

async fn revoke(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<RevokeBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_MAX)?;
    let reply = app.operations.revoke(id, caller.name(), body.reason.as_deref(), body.grace.unwrap_or(false)).await;
    Ok(Json(match reply.map_err(|error| Problem::from(error).about(id))? {
        RevokeLeaseReply::Revoked { state } => Done::new(id, "revoked").in_state(state),
        RevokeLeaseReply::Requested => Done::new(id, "requested"),
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReclaimBody {
    instance: String,
    ttl_ms: Option<i64>,
}

#[derive(Serialize)]
struct Reclaimed {
    grant: GrantShape,
}

/// Hands an interrupted execution to a chosen worker: one that claims from this server gets it with its next claim.
async fn reclaim(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<ReclaimBody>,
) -> JsonAnswer<Reclaimed> {
    let worker = app.fleet.meet(&body.instance).await?;
    let call = GrantReclaim {
        actor: caller.name().to_owned(),
        execution_id: id,
        grant_id: Uuid::now_v7(),
        instance: body.instance,
        ttl_ms: body.ttl_ms.unwrap_or(RECLAIM_TTL_MS),
    };
    let grant = app.dispatcher.grant_reclaim(&call).await.map_err(|error| Problem::from(error).about(id))?;
    worker.grant(grant.clone());
    Ok(Json(Reclaimed { grant: grant.into() }))
}

/// What may change while an execution has not ended.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchBody {
    priority: Option<i64>,
    lane: Option<String>,
    tags: Option<BTreeMap<String, String>>,
    deadline_at: Option<i64>,
    delay_until: Option<i64>,
}

/// The state after a change.
#[derive(Serialize)]
pub struct Changed {
    execution_id: ExecutionId,
    state: PublicState,
}

/// Changes what is named.
pub async fn patch(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<PatchBody>,
) -> JsonAnswer<Changed> {
    let PatchBody { priority, lane, tags, deadline_at, delay_until } = body;
    if priority.is_none() && lane.is_none() && tags.is_none() && deadline_at.is_none() && delay_until.is_none() {
        return Err(Problem::invalid(
            "body",
            "must name at least one of priority, lane, tags, deadline_at, delay_until",
        ));
    }
    if let Some(lane) = &lane
        && caller.is_scoped()
    {
        let namespace = app.operations.describe(id).await.map_err(|error| Problem::from(error).about(id))?.namespace;
        caller.check(&namespace, Some(lane))?;
    }
    let change = ChangeExecution {
        actor: caller.name().to_owned(),
        deadline_at,
        delay_until,
        execution_id: id,
        lane,
        priority,
        tags,
    };
    let reply = app.operations.change(change).await;
    let ChangeExecutionReply::Changed { state } = reply.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Changed { execution_id: id, state }))
}

/// Removes an ended execution.
pub async fn delete(State(app): State<App>, Id(id): Id) -> Answer<StatusCode> {
    app.operations.delete(id).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(StatusCode::NO_CONTENT)
}
