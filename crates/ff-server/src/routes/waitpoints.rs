//! Waitpoints from outside: the inbox of open ones, one of them, those of an execution, and a new token for an approver.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use ff_core::types::WaitpointId;
use serde::{Deserialize, Serialize};

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer, Waitpoint};
use crate::body::Body;
use crate::problem::{Answer, Problem};
use crate::query::{Query, limit_of};
use crate::shape::Listed;
use crate::shape::suspension::{TokenShape, WaitpointShape};

pub fn routes() -> Router<App> {
    Router::new()
        .route("/v1/waitpoints", get(inbox))
        .route("/v1/waitpoints/{waitpoint}", get(show))
        .route("/v1/waitpoints/{waitpoint}/tokens", post(reissue))
        .route("/v1/executions/{id}/waitpoints", get(of_execution))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InboxQuery {
    state: Option<String>,
    namespace: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

/// Open waitpoints, oldest first.
async fn inbox(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<InboxQuery>,
) -> JsonAnswer<Listed<WaitpointShape>> {
    let said = |text: Option<String>| text.filter(|text| !text.is_empty());
    if let Some(state) = said(query.state)
        && state != "open"
    {
        return Err(Problem::invalid("state", "must be open: closed waitpoints are listed with their execution"));
    }
    let limit = usize::try_from(limit_of(query.limit.as_deref())?).unwrap_or(1);
    let after = match said(query.cursor) {
        None => None,
        Some(cursor) => Some(cursor.parse().map_err(Problem::from)?),
    };
    let namespace = caller.namespace(said(query.namespace))?;
    let page = app.operations.open_waitpoints(namespace.as_deref(), after, limit).await?;
    let items = page.items.into_iter().map(WaitpointShape::from).collect();
    Ok(Json(Listed { items, next_cursor: page.next.map(|cursor| cursor.to_string()) }))
}

async fn show(State(app): State<App>, Waitpoint(id): Waitpoint) -> JsonAnswer<WaitpointShape> {
    Ok(Json(app.operations.waitpoint(id).await.map_err(|error| Problem::from(error).about(id))?.into()))
}

/// The waitpoints of an execution: open ones, and those kept after they closed.
async fn of_execution(State(app): State<App>, Id(id): Id) -> JsonAnswer<Listed<WaitpointShape>> {
    let waitpoints = app.operations.waitpoints_of(id).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Listed { items: waitpoints.into_iter().map(WaitpointShape::from).collect(), next_cursor: None }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReissueBody {
    approver: Option<String>,
}

#[derive(Serialize)]
struct Reissued {
    waitpoint_id: WaitpointId,
    #[serde(flatten)]
    token: TokenShape,
}

/// A new token for one approver, or for whoever answers; the old one dies.
async fn reissue(
    State(app): State<App>,
    caller: Caller,
    Waitpoint(id): Waitpoint,
    Body(body): Body<ReissueBody>,
) -> Answer<(StatusCode, Json<Reissued>)> {
    let issued = app.waitpoints.reissue(id, body.approver.as_deref(), caller.name()).await;
    let issued = issued.map_err(|error| Problem::from(error).about(id))?;
    Ok((StatusCode::CREATED, Json(Reissued { waitpoint_id: id, token: issued.into() })))
}
