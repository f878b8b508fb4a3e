//! Waitpoints from outside: the inbox of open ones, one of them, those of an execution, and a new token for an approver.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ff_api::Listed;
use ff_api::waitpoints::{
    GetWaitpoint, InboxQuery, ListExecutionWaitpoints, ListWaitpoints, ReissueBody, ReissueToken, ReissuedToken,
    Waitpoint,
};

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer, Waitpoint as WaitpointPart};
use crate::body::Body;
use crate::openapi::Described;
use crate::problem::{Answer, Problem};
use crate::query::{Query, page_limit};

pub fn routes() -> Described {
    Described::new()
        .serving::<ListWaitpoints, _>(inbox)
        .serving::<GetWaitpoint, _>(show)
        .serving::<ReissueToken, _>(reissue)
        .serving::<ListExecutionWaitpoints, _>(of_execution)
}

async fn inbox(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<InboxQuery>,
) -> JsonAnswer<Listed<Waitpoint>> {
    let limit = usize::try_from(page_limit(query.limit)?).unwrap_or(1);
    let after = match query.cursor {
        None => None,
        Some(cursor) => Some(cursor.parse().map_err(Problem::from)?),
    };
    let namespace = caller.namespace(query.namespace)?;
    let page = app.operations.open_waitpoints(namespace.as_deref(), after, limit).await?;
    // Of what is not the caller's nothing is left but the place: a page may be short while more follows.
    let seen = page.items.into_iter().filter(|item| caller.covers(&item.namespace, Some(&item.lane)));
    let items = seen.map(Waitpoint::from).collect();
    Ok(Json(Listed { items, next_cursor: page.next.map(|cursor| cursor.to_string()) }))
}

async fn show(State(app): State<App>, WaitpointPart(id): WaitpointPart) -> JsonAnswer<Waitpoint> {
    Ok(Json(app.operations.waitpoint(id).await.map_err(|error| Problem::from(error).about(id))?.into()))
}

async fn of_execution(State(app): State<App>, Id(id): Id) -> JsonAnswer<Listed<Waitpoint>> {
    let waitpoints = app.operations.waitpoints_of(id).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Listed { items: waitpoints.into_iter().map(Waitpoint::from).collect(), next_cursor: None }))
}

async fn reissue(
    State(app): State<App>,
    caller: Caller,
    WaitpointPart(id): WaitpointPart,
    Body(body): Body<ReissueBody>,
) -> Answer<(StatusCode, Json<ReissuedToken>)> {
    let issued = app.waitpoints.reissue(id, body.approver.as_deref(), caller.name()).await;
    let issued = issued.map_err(|error| Problem::from(error).about(id))?;
    let made = ReissuedToken { waitpoint_id: id, approver: issued.approver, token: issued.token };
    Ok((StatusCode::CREATED, Json(made)))
}
