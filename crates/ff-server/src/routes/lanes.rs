//! Lanes: list, read, define, and their states.

use axum::Json;
use axum::extract::State;
use ff_api::lanes::{
    DefineLane, DisableLane, DrainLane, GetLane, Lane, LaneBody, LaneCounts, LanesQuery, ListLanes, NamespaceQuery,
    PauseLane, ResumeLane,
};
use ff_script::Route;
use ff_script::generated::{self, LaneEntry, LaneState, ListLanesReply};

use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body::Body;
use crate::openapi::Described;
use crate::problem::Problem;
use crate::query::{Query, page_limit, wanted_of};
use crate::shape::Listed;

pub fn routes() -> Described {
    Described::new()
        .serving::<ListLanes, _>(list)
        .serving::<GetLane, _>(show)
        .serving::<DefineLane, _>(define)
        .serving::<PauseLane, _>(pause)
        .serving::<ResumeLane, _>(resume)
        .serving::<DrainLane, _>(drain)
        .serving::<DisableLane, _>(disable)
}

async fn list(State(app): State<App>, caller: Caller, Query(query): Query<LanesQuery>) -> JsonAnswer<Listed<Lane>> {
    let place = (page_limit(query.limit)?, ff_api::page::offset(query.cursor.as_deref())?);
    let wanted = |entry: &LaneEntry| {
        query.namespace.as_ref().is_none_or(|namespace| *namespace == entry.namespace)
            && caller.covers(&entry.namespace, Some(&entry.lane))
    };
    let client = app.operations.client();
    let read = |limit, offset| async move {
        let call = generated::ListLanes { limit, offset };
        let ListLanesReply::Lanes { entries, more } = client.call(Route::Fleet, &call).await?;
        Ok((entries, more))
    };
    let (entries, next_cursor) = wanted_of(place, wanted, read).await?;
    Ok(Json(Listed { items: entries.into_iter().map(Lane::from).collect(), next_cursor }))
}

async fn show(
    State(app): State<App>,
    caller: Caller,
    Name(lane): Name,
    Query(query): Query<NamespaceQuery>,
) -> JsonAnswer<Lane> {
    let namespace = query.or_default();
    caller.check(&namespace, Some(&lane))?;
    let entry = app.operations.lane(&namespace, &lane).await.map_err(|error| Problem::from(error).about(&lane))?;
    let mut counts = LaneCounts::default();
    app.operations.lane_counts(&namespace, &lane).await?.iter().for_each(|here| counts.add(here));
    Ok(Json(Lane { counts: Some(counts), ..entry.into() }))
}

async fn define(
    State(app): State<App>,
    caller: Caller,
    Name(lane): Name,
    Query(query): Query<NamespaceQuery>,
    Body(body): Body<LaneBody>,
) -> JsonAnswer<Lane> {
    let namespace = query.or_default();
    caller.check(&namespace, Some(&lane))?;
    let change = generated::DefineLane {
        state: body.state,
        fairness: body.fairness,
        fairness_weights: body.fairness_weights,
        priority_weight: body.priority_weight,
        max_depth: body.max_depth,
        clear_max_depth: body.clear_max_depth,
        max_active: body.max_active.flatten(),
        clear_max_active: (body.max_active == Some(None)).then_some(true),
        weight: body.weight,
        retry: body.retry,
        attempt_timeout_ms: body.attempt_timeout_ms,
        retention_ms: body.retention_ms,
        lease_ttl_ms: body.lease_ttl_ms,
        ..generated::DefineLane::new(caller.name().to_owned(), lane, namespace)
    };
    Ok(Json(app.operations.define_lane(change).await?.into()))
}

/// Only of a lane that is there: a mistyped name is not to become one.
async fn set_state(
    State(app): State<App>,
    caller: Caller,
    Name(lane): Name,
    Query(query): Query<NamespaceQuery>,
    state: LaneState,
) -> JsonAnswer<Lane> {
    let namespace = query.or_default();
    caller.check(&namespace, Some(&lane))?;
    app.operations.lane(&namespace, &lane).await.map_err(|error| Problem::from(error).about(&lane))?;
    let entry = app.operations.set_lane_state(&namespace, &lane, state, caller.name()).await?;
    Ok(Json(entry.into()))
}

async fn pause(app: State<App>, caller: Caller, name: Name, query: Query<NamespaceQuery>) -> JsonAnswer<Lane> {
    set_state(app, caller, name, query, LaneState::Paused).await
}

async fn resume(app: State<App>, caller: Caller, name: Name, query: Query<NamespaceQuery>) -> JsonAnswer<Lane> {
    set_state(app, caller, name, query, LaneState::Active).await
}

async fn drain(app: State<App>, caller: Caller, name: Name, query: Query<NamespaceQuery>) -> JsonAnswer<Lane> {
    set_state(app, caller, name, query, LaneState::Draining).await
}

async fn disable(app: State<App>, caller: Caller, name: Name, query: Query<NamespaceQuery>) -> JsonAnswer<Lane> {
    set_state(app, caller, name, query, LaneState::Disabled).await
}
