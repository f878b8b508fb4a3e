//! Waitpoints from outside: the inbox of open ones, one of them, those of an execution, and a new token for an approver.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ff_core::types::WaitpointId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer, Waitpoint};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::problem::{Answer, Problem};
use crate::query::{Query, limit_of};
use crate::shape::Listed;
use crate::shape::suspension::{TokenShape, WaitpointShape};

pub fn routes() -> Described {
    Described::new().with(routes!(inbox)).with(routes!(show)).with(routes!(reissue)).with(routes!(of_execution))
}

/// Which waitpoints: closed ones are listed with their execution.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "it describes a word of the query")]
enum InboxState {
    Open,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct InboxQuery {
    #[param(value_type = Option<InboxState>, inline)]
    state: Option<String>,
    #[param(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1_000)]
    limit: Option<String>,
    cursor: Option<String>,
}

/// Open waitpoints, oldest first.
#[utoipa::path(
    get,
    path = "/v1/waitpoints",
    params(InboxQuery),
    responses((status = 200, body = Listed<WaitpointShape>)),
)]
async fn inbox(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<InboxQuery>,
) -> JsonAnswer<Listed<WaitpointShape>> {
    if let Some(state) = query.state
        && state != "open"
    {
        return Err(Problem::invalid("state", "must be open: closed waitpoints are listed with their execution"));
    }
    let limit = usize::try_from(limit_of(query.limit.as_deref())?).unwrap_or(1);
    let after = match query.cursor {
        None => None,
        Some(cursor) => Some(cursor.parse().map_err(Problem::from)?),
    };
    let namespace = caller.namespace(query.namespace)?;
    let page = app.operations.open_waitpoints(namespace.as_deref(), after, limit).await?;
    // Of what is not the caller's nothing is left but the place: a page may be short while more follows.
    let seen = page.items.into_iter().filter(|item| caller.covers(&item.namespace, Some(&item.lane)));
    let items = seen.map(WaitpointShape::from).collect();
    Ok(Json(Listed { items, next_cursor: page.next.map(|cursor| cursor.to_string()) }))
}

/// One waitpoint, open or closed.
#[utoipa::path(
    get,
    path = "/v1/waitpoints/{waitpoint}",
    params(Waitpoint),
    responses((status = 200, body = WaitpointShape)),
    extensions(("x-ff-codes" = json!("waitpoint_not_found"))),
)]
async fn show(State(app): State<App>, Waitpoint(id): Waitpoint) -> JsonAnswer<WaitpointShape> {
    Ok(Json(app.operations.waitpoint(id).await.map_err(|error| Problem::from(error).about(id))?.into()))
}

/// The waitpoints of an execution: open ones, and those kept after they closed.
#[utoipa::path(
    get,
    path = "/v1/executions/{id}/waitpoints",
    params(Id),
    responses((status = 200, body = Listed<WaitpointShape>)),
    extensions(("x-ff-codes" = json!("execution_not_found"))),
)]
async fn of_execution(State(app): State<App>, Id(id): Id) -> JsonAnswer<Listed<WaitpointShape>> {
    let waitpoints = app.operations.waitpoints_of(id).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Listed { items: waitpoints.into_iter().map(WaitpointShape::from).collect(), next_cursor: None }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReissueBody {
    #[schema(value_type = Option<vocabulary::Approver>)]
    approver: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ReissuedToken)]
struct Reissued {
    waitpoint_id: WaitpointId,
    #[serde(flatten)]
    token: TokenShape,
}

/// A new token for one approver, or for whoever answers; the old one dies.
#[utoipa::path(
    post,
    path = "/v1/waitpoints/{waitpoint}/tokens",
    params(Waitpoint),
    request_body = ReissueBody,
    responses((status = 201, description = "The new token, told this once.", body = Reissued)),
    extensions(("x-ff-codes" = json!("waitpoint_not_found waitpoint_not_open keys_unavailable"))),
)]
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
