//! Lanes: list, read, define, and their states.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use ff_script::Route;
use ff_script::generated::{
    DefineLane, Fairness, LaneEntry, LaneState, ListLanes, ListLanesReply, PartitionStats, PartitionStatsReply, Retry,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Deserializer};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::problem::Problem;
use crate::query::{OFFSET_MAX, Query, limit_of, number, wanted_of};
use crate::shape::Listed;
use crate::shape::lane::{CountsShape, LaneShape};
use crate::word::word;

const AT_ONCE: usize = 32;

pub fn routes() -> Described {
    Described::new()
        .with(routes!(list))
        .with(routes!(show, define))
        .with(routes!(pause))
        .with(routes!(resume))
        .with(routes!(drain))
        .with(routes!(disable))
}

/// Which namespace the lane is in.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct NamespaceQuery {
    #[param(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
}

impl NamespaceQuery {
    fn namespace(self) -> String {
        self.namespace.unwrap_or_else(|| "default".to_owned())
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    #[param(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1_000)]
    limit: Option<String>,
    #[param(value_type = Option<vocabulary::Count>)]
    cursor: Option<String>,
}

/// One page of lanes.
#[utoipa::path(
    get,
    path = "/v1/lanes",
    params(ListQuery),
    responses((status = 200, body = Listed<LaneShape>)),
)]
async fn list(State(app): State<App>, caller: Caller, Query(query): Query<ListQuery>) -> JsonAnswer<Listed<LaneShape>> {
    let limit = limit_of(query.limit.as_deref())?;
    let offset = number("cursor", query.cursor.as_deref())?.unwrap_or(0);
    if !(0..=OFFSET_MAX).contains(&offset) {
        return Err(Problem::invalid("cursor", "is not a cursor of this list"));
    }
    let wanted = |entry: &LaneEntry| {
        query.namespace.as_ref().is_none_or(|namespace| *namespace == entry.namespace)
            && caller.covers(&entry.namespace, Some(&entry.lane))
    };
    let client = app.operations.client();
    let read = |limit, offset| async move {
        let ListLanesReply::Lanes { entries, more } = client.call(Route::Fleet, &ListLanes { limit, offset }).await?;
        Ok((entries, more))
    };
    let (entries, next_cursor) = wanted_of((limit, offset), wanted, read).await?;
    Ok(Json(Listed { items: entries.into_iter().map(LaneShape::from).collect(), next_cursor }))
}

/// A lane and how many of its executions are in which state.
#[utoipa::path(
    get,
    path = "/v1/lanes/{name}",
    params(("name" = vocabulary::LaneName, Path, description = "The lane."), NamespaceQuery),
    responses((status = 200, body = LaneShape)),
    extensions(("x-ff-codes" = json!("lane_not_found"))),
)]
async fn show(
    State(app): State<App>,
    caller: Caller,
    Name(lane): Name,
    Query(query): Query<NamespaceQuery>,
) -> JsonAnswer<LaneShape> {
    let namespace = query.namespace();
    caller.check(&namespace, Some(&lane))?;
    let entry = app.operations.lane(&namespace, &lane).await.map_err(|error| Problem::from(error).about(&lane))?;
    let client = app.operations.client();
    let call = &PartitionStats { lane: Some(lane), namespace: Some(namespace), offset: None };
    let counts = stream::iter(client.execution_routes())
        .map(|route| async move { client.call(route, call).await })
        .buffer_unordered(AT_ONCE)
        .try_fold(CountsShape::default(), |mut sum, PartitionStatsReply::Stats { lanes, .. }| async move {
            lanes.iter().for_each(|counts| sum.add(counts));
            Ok(sum)
        })
        .await?;
    Ok(Json(LaneShape::from(entry).with(counts)))
}

/// What a lane may be told; what is not named stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LaneBody {
    #[schema(value_type = Option<LaneState>)]
    state: Option<String>,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    priority_weight: Option<i64>,
    #[schema(value_type = Option<Fairness>)]
    fairness: Option<String>,
    #[schema(value_type = Option<vocabulary::FairnessWeights>)]
    fairness_weights: Option<BTreeMap<String, i64>>,
    #[schema(value_type = Option<vocabulary::Count>)]
    max_depth: Option<i64>,
    clear_max_depth: Option<bool>,
    /// Null means none; not named, it stays.
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1_000_000)]
    max_active: Option<Option<i64>>,
    #[schema(value_type = Option<vocabulary::Weight>)]
    weight: Option<i64>,
    retry: Option<Retry>,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    attempt_timeout_ms: Option<i64>,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    retention_ms: Option<i64>,
    #[schema(value_type = Option<vocabulary::LeaseTtlMs>)]
    lease_ttl_ms: Option<i64>,
}

/// A field that is there, whatever it says.
fn named<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// Defines a lane; what is not named stays.
#[utoipa::path(
    put,
    path = "/v1/lanes/{name}",
    params(("name" = vocabulary::LaneName, Path, description = "The lane."), NamespaceQuery),
    request_body = LaneBody,
    responses((status = 200, body = LaneShape)),
)]
async fn define(
    State(app): State<App>,
    caller: Caller,
    Name(lane): Name,
    Query(query): Query<NamespaceQuery>,
    Body(body): Body<LaneBody>,
) -> JsonAnswer<LaneShape> {
    let namespace = query.namespace();
    caller.check(&namespace, Some(&lane))?;
    let change = DefineLane {
        state: body.state.map(|state| word("state", &state)).transpose()?,
        fairness: body.fairness.map(|fairness| word("fairness", &fairness)).transpose()?,
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
        ..DefineLane::new(caller.name().to_owned(), lane, namespace)
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
) -> JsonAnswer<LaneShape> {
    let namespace = query.namespace();
    caller.check(&namespace, Some(&lane))?;
    app.operations.lane(&namespace, &lane).await.map_err(|error| Problem::from(error).about(&lane))?;
    let entry = app.operations.set_lane_state(&namespace, &lane, state, caller.name()).await?;
    Ok(Json(entry.into()))
}

/// Nothing starts from the lane until it is resumed; it takes submissions.
#[utoipa::path(
    post,
    path = "/v1/lanes/{name}/pause",
    params(("name" = vocabulary::LaneName, Path, description = "The lane."), NamespaceQuery),
    responses((status = 200, body = LaneShape)),
    extensions(("x-ff-codes" = json!("lane_not_found"))),
)]
async fn pause(app: State<App>, caller: Caller, name: Name, query: Query<NamespaceQuery>) -> JsonAnswer<LaneShape> {
    set_state(app, caller, name, query, LaneState::Paused).await
}

/// The lane takes submissions, and they start.
#[utoipa::path(
    post,
    path = "/v1/lanes/{name}/resume",
    params(("name" = vocabulary::LaneName, Path, description = "The lane."), NamespaceQuery),
    responses((status = 200, body = LaneShape)),
    extensions(("x-ff-codes" = json!("lane_not_found"))),
)]
async fn resume(app: State<App>, caller: Caller, name: Name, query: Query<NamespaceQuery>) -> JsonAnswer<LaneShape> {
    set_state(app, caller, name, query, LaneState::Active).await
}

/// The lane takes no more submissions; what is there goes on.
#[utoipa::path(
    post,
    path = "/v1/lanes/{name}/drain",
    params(("name" = vocabulary::LaneName, Path, description = "The lane."), NamespaceQuery),
    responses((status = 200, body = LaneShape)),
    extensions(("x-ff-codes" = json!("lane_not_found"))),
)]
async fn drain(app: State<App>, caller: Caller, name: Name, query: Query<NamespaceQuery>) -> JsonAnswer<LaneShape> {
    set_state(app, caller, name, query, LaneState::Draining).await
}

/// The lane takes no more submissions, and nothing starts from it.
#[utoipa::path(
    post,
    path = "/v1/lanes/{name}/disable",
    params(("name" = vocabulary::LaneName, Path, description = "The lane."), NamespaceQuery),
    responses((status = 200, body = LaneShape)),
    extensions(("x-ff-codes" = json!("lane_not_found"))),
)]
async fn disable(app: State<App>, caller: Caller, name: Name, query: Query<NamespaceQuery>) -> JsonAnswer<LaneShape> {
    set_state(app, caller, name, query, LaneState::Disabled).await
}
