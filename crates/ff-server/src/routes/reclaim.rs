//! `POST /v1/executions/{id}/reclaim`: hands an interrupted execution to a chosen worker, wherever it asks next.

use axum::Json;
use axum::extract::State;
use ff_api::executions::{ReclaimBody, ReclaimExecution, Reclaimed};
use ff_script::Kinds;
use ff_script::generated::GrantReclaim;
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::Body;
use crate::openapi::Described;
use crate::problem::Problem;

const RECLAIM_TTL_MS: i64 = 30_000;

pub fn routes() -> Described {
    Described::new().serving::<ReclaimExecution, _>(reclaim)
}

async fn reclaim(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<ReclaimBody>,
) -> JsonAnswer<Reclaimed> {
    // The store knows what it serves: it may have registered anew with another server.
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
        kinds: found.kinds.map(|kinds| Kinds::of(kinds).packed()),
    };
    let grant = app.dispatcher.grant_reclaim(&call).await.map_err(|error| Problem::from(error).about(id))?;
    // Its next claim may come to any server. A lost word costs the grant's time; then any worker may take the execution.
    worker.grant(grant.execution_id, grant.grant_id);
    if let Err(error) = app.operations.offer_grant(&call.instance, &grant).await {
        tracing::warn!(%error, execution = %id, "a grant was not told to other servers");
    }
    Ok(Json(grant.into()))
}
