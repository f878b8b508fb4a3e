//! What operators and submitters do with one execution.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ff_core::contracts::ClaimGrant;
use ff_core::limits::REASON_BYTES_MAX;
use ff_core::types::ExecutionId;
use ff_script::generated::{
    CancelExecutionReply, ChangeExecution, ChangeExecutionReply, GrantReclaim, HoldExecutionReply, Outcome,
    PublicState, ReleaseExecutionReply, ReplayExecutionReply, RevokeLeaseReply,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::payload::bounded;
use crate::problem::{Answer, Problem};

const RECLAIM_TTL_MS: i64 = 30_000;

pub fn routes() -> Described {
    Described::new()
        .with(routes!(cancel))
        .with(routes!(replay))
        .with(routes!(hold))
        .with(routes!(release))
        .with(routes!(revoke))
        .with(routes!(reclaim))
}

/// What became of it.
#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionDone)]
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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CancelExecutionBody)]
struct CancelBody {
    #[schema(value_type = Option<vocabulary::Reason>)]
    reason: Option<String>,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    grace_ms: Option<i64>,
}

/// Cancels an execution. A running attempt ends at once, or within `grace_ms` after its worker was asked.
#[utoipa::path(
    post,
    path = "/v1/executions/{id}/cancel",
    params(Id),
    request_body = CancelBody,
    responses((status = 200, body = Done)),
    extensions(("x-ff-codes" = json!("execution_not_found"))),
)]
async fn cancel(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<CancelBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReasonBody {
    #[schema(value_type = Option<vocabulary::Reason>)]
    reason: Option<String>,
}

/// Runs an ended execution again with a new attempt.
#[utoipa::path(
    post,
    path = "/v1/executions/{id}/replay",
    params(Id),
    request_body = ReasonBody,
    responses((status = 200, body = Done)),
    extensions(("x-ff-codes" = json!("execution_not_found execution_not_terminal max_replays flow_terminal"))),
)]
async fn replay(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<ReasonBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
    let reply = app.operations.replay(id, caller.name(), body.reason.as_deref()).await;
    let ReplayExecutionReply::Replayed { replay_count, state } =
        reply.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Done { replay_count: Some(replay_count), ..Done::new(id, "replayed").in_state(state) }))
}

/// Keeps an execution from starting until it is released.
#[utoipa::path(
    post,
    path = "/v1/executions/{id}/hold",
    params(Id),
    request_body = ReasonBody,
    responses((status = 200, body = Done)),
    extensions(("x-ff-codes" = json!("execution_not_found execution_not_runnable"))),
)]
async fn hold(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<ReasonBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
    let reply = app.operations.hold(id, caller.name(), body.reason.as_deref()).await;
    Ok(Json(match reply.map_err(|error| Problem::from(error).about(id))? {
        HoldExecutionReply::Held => Done::new(id, "held"),
        HoldExecutionReply::Already => Done::new(id, "already"),
    }))
}

/// Ends a hold.
#[utoipa::path(
    post,
    path = "/v1/executions/{id}/release",
    params(Id),
    request_body = ReasonBody,
    responses((status = 200, body = Done)),
    extensions(("x-ff-codes" = json!("execution_not_found execution_not_runnable"))),
)]
async fn release(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<ReasonBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RevokeBody {
    #[schema(value_type = Option<vocabulary::Reason>)]
    reason: Option<String>,
    grace: Option<bool>,
}

/// Takes the lease away: at once, or by asking the worker to yield when `grace` is set.
#[utoipa::path(
    post,
    path = "/v1/executions/{id}/revoke-lease",
    params(Id),
    request_body = RevokeBody,
    responses((status = 200, body = Done)),
    extensions(("x-ff-codes" = json!("execution_not_found execution_not_active"))),
)]
async fn revoke(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<RevokeBody>) -> JsonAnswer<Done> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
    let reply = app.operations.revoke(id, caller.name(), body.reason.as_deref(), body.grace.unwrap_or(false)).await;
    Ok(Json(match reply.map_err(|error| Problem::from(error).about(id))? {
        RevokeLeaseReply::Revoked { state } => Done::new(id, "revoked").in_state(state),
        RevokeLeaseReply::Requested => Done::new(id, "requested"),
    }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReclaimBody {
    #[schema(value_type = vocabulary::Instance)]
    instance: String,
    #[schema(value_type = Option<vocabulary::GrantTtlMs>)]
    ttl_ms: Option<i64>,
}

#[derive(Serialize, ToSchema)]
struct Reclaimed {
    grant: ClaimGrant,
}

/// Hands an interrupted execution to a chosen worker of its lane, who gets it with its next claim.
#[utoipa::path(
    post,
    path = "/v1/executions/{id}/reclaim",
    params(Id),
    request_body = ReclaimBody,
    responses((status = 200, body = Reclaimed)),
    extensions(("x-ff-codes" = json!("execution_not_found execution_not_runnable worker_not_registered not_capable at_capacity"))),
)]
async fn reclaim(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<ReclaimBody>,
) -> JsonAnswer<Reclaimed> {
    // What it serves is the store's to say: it may have registered anew with another server.
    let found = app.operations.worker(&body.instance).await;
    let found = found.map_err(|error| Problem::from(error).about(&body.instance))?;
    caller.check_worker(&found)?;
    let worker = app.fleet.meet(&body.instance).await?;
    let call = GrantReclaim {
        actor: caller.name().to_owned(),
        execution_id: id,
        grant_id: Uuid::now_v7(),
        instance: body.instance,
        ttl_ms: body.ttl_ms.unwrap_or(RECLAIM_TTL_MS),
        namespace: found.namespace,
        lanes: found.lanes,
        capabilities: found.capabilities,
    };
    let grant = app.dispatcher.grant_reclaim(&call).await.map_err(|error| Problem::from(error).about(id))?;
    // Its next claim may come to any server. A word that is lost costs the grant's time, after which it is anybody's again.
    worker.grant(grant.execution_id, grant.grant_id);
    if let Err(error) = app.operations.offer_grant(&call.instance, &grant).await {
        tracing::warn!(%error, execution = %id, "a grant was not told to other servers");
    }
    Ok(Json(Reclaimed { grant: grant.into() }))
}

/// What may change while an execution has not ended.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeExecutionBody)]
pub struct PatchBody {
    #[schema(value_type = Option<vocabulary::Priority>)]
    priority: Option<i64>,
    #[schema(value_type = Option<vocabulary::LaneName>)]
    lane: Option<String>,
    #[schema(value_type = Option<vocabulary::Tags>)]
    tags: Option<BTreeMap<String, String>>,
    #[schema(value_type = Option<vocabulary::TimeMs>)]
    deadline_at: Option<i64>,
    #[schema(value_type = Option<vocabulary::TimeMs>)]
    delay_until: Option<i64>,
}

/// The state after a change.
#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionChanged)]
pub struct Changed {
    execution_id: ExecutionId,
    state: PublicState,
}

/// Changes what is named.
#[utoipa::path(
    patch,
    path = "/v1/executions/{id}",
    params(Id),
    request_body = PatchBody,
    responses((status = 200, body = Changed)),
    extensions(("x-ff-codes" = json!("execution_not_found execution_not_runnable execution_terminal lane_disabled"))),
)]
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
#[utoipa::path(
    delete,
    path = "/v1/executions/{id}",
    params(Id),
    responses((status = 204, description = "It is gone.")),
    extensions(("x-ff-codes" = json!("execution_not_found execution_not_terminal flow_not_terminal"))),
)]
pub async fn delete(State(app): State<App>, caller: Caller, Id(id): Id) -> Answer<StatusCode> {
    app.operations.delete(id, caller.name()).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(StatusCode::NO_CONTENT)
}
