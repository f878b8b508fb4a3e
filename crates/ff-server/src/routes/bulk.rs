//! `POST /v1/executions:cancel` and `:replay`: everything that matches the filters, a bounded number per request.

use axum::Json;
use axum::extract::State;
use ff_core::limits::REASON_BYTES_MAX;
use ff_core::types::{ExecutionId, FlowId};
use ff_engine::{ListCursor, Operations};
use ff_script::Error;
use ff_script::generated::{CancelExecutionReply, LifecyclePhase, PublicState};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::list::FilterQuery;
use crate::access::Caller;
use crate::app::{App, JsonAnswer};
use crate::body::Body;
use crate::openapi::{Described, vocabulary};
use crate::payload::bounded;
use crate::problem::{Answer, Problem};
use crate::query::{Query, number};

const LIMIT_DEFAULT: usize = 1_000;
const LIMIT_MAX: usize = 10_000;
const PAGE: usize = 500;
const AT_ONCE: usize = 16;

pub fn routes() -> Described {
    Described::new().with(routes!(cancel_all)).with(routes!(replay_all))
}

/// The filters may stand in the body or in the query.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BulkBody {
    #[schema(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
    #[schema(value_type = Option<vocabulary::LaneName>)]
    lane: Option<String>,
    #[schema(value_type = Option<vocabulary::Kind>)]
    kind: Option<String>,
    #[schema(value_type = Option<PublicState>)]
    state: Option<String>,
    /// `key:value`.
    #[schema(pattern = ":")]
    tag: Option<String>,
    #[schema(value_type = Option<FlowId>)]
    flow_id: Option<String>,
    #[schema(value_type = Option<vocabulary::TimeMs>)]
    created_after: Option<i64>,
    #[schema(value_type = Option<vocabulary::TimeMs>)]
    created_before: Option<i64>,
    #[schema(value_type = Option<vocabulary::Instance>)]
    worker: Option<String>,
    #[schema(minimum = 1, maximum = 10_000)]
    limit: Option<usize>,
    cursor: Option<String>,
    #[schema(value_type = Option<vocabulary::Reason>)]
    reason: Option<String>,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    grace_ms: Option<i64>,
}

impl BulkBody {
    fn filters(&self, query: FilterQuery) -> FilterQuery {
        query.or(FilterQuery::of(
            [
                &self.namespace,
                &self.lane,
                &self.kind,
                &self.state,
                &self.tag,
                &self.flow_id,
                &self.worker,
                &self.cursor,
            ],
            [self.created_after, self.created_before],
        ))
    }

    fn limit(&self, query: &FilterQuery) -> Answer<usize> {
        let said = number("limit", query.limit.as_deref())?.map(|limit| usize::try_from(limit).unwrap_or(0));
        match said.or(self.limit).unwrap_or(LIMIT_DEFAULT) {
            limit @ 1..=LIMIT_MAX => Ok(limit),
            limit => Err(Problem::invalid("limit", format!("must be in 1..={LIMIT_MAX}, got {limit}"))),
        }
    }
}

/// What a bulk request did.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = BulkCounts)]
struct Counts {
    /// Executions that matched and were acted on.
    matched: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<usize>,
    /// Ended, or replayed, by someone else in the meantime.
    unchanged: usize,
    refused: usize,
    /// Where to go on; absent when everything that matched was seen.
    next_cursor: Option<String>,
}

/// Ids of matching executions in the wanted phase, up to `limit`, and where to go on.
async fn matching(
    operations: &Operations,
    caller: &Caller,
    filters: &FilterQuery,
    limit: usize,
    ended: bool,
) -> Answer<(Vec<ExecutionId>, Option<ListCursor>)> {
    let wanted = filters.wanted(caller)?;
    if !wanted.narrowed {
        return Err(Problem::invalid(
            "filters",
            "must name at least one: namespace, lane, kind, state, tag, flow_id, worker, created_after, created_before",
        ));
    }
    let mut cursor = filters.cursor()?;
    let filter = wanted.filter;
    let mut ids = Vec::new();
    loop {
        let page = operations.list(&filter, cursor, PAGE.min(limit - ids.len())).await?;
        ids.extend(
            page.items
                .iter()
                .filter(|item| (item.phase == LifecyclePhase::Terminal) == ended)
                .map(|item| item.execution_id),
        );
        match page.next {
            None => return Ok((ids, None)),
            Some(next) if ids.len() >= limit => return Ok((ids, Some(next))),
            next => cursor = next,
        }
    }
}

enum Done {
    Cancelled,
    Requested,
    Replayed,
    Unchanged,
    Refused,
}

/// A refusal concerns one execution; anything else ends the request.
fn settled<T>(answer: Result<T, Error>, done: impl FnOnce(T) -> Done) -> Answer<Done> {
    match answer {
        Ok(reply) => Ok(done(reply)),
        Err(Error::Engine(error)) if !error.is_retryable() => Ok(match error.code() {
            "execution_not_found" | "execution_not_terminal" => Done::Unchanged,
            _ => Done::Refused,
        }),
        Err(error) => Err(error.into()),
    }
}

/// Cancels what matches the filters and has not ended, a bounded number per request.
#[utoipa::path(
    post,
    path = "/v1/executions:cancel",
    params(FilterQuery, ("limit" = Option<i64>, Query, description = "1_000 unless said.", minimum = 1, maximum = 10_000)),
    request_body = BulkBody,
    responses((status = 200, body = Counts)),
)]
async fn cancel_all(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<FilterQuery>,
    Body(body): Body<BulkBody>,
) -> JsonAnswer<Counts> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
    let limit = body.limit(&query)?;
    let (ids, next) = matching(&app.operations, &caller, &body.filters(query), limit, false).await?;
    let (reason, grace_ms, operations, actor) = (body.reason.as_deref(), body.grace_ms, &app.operations, caller.name());
    let done: Vec<Done> = stream::iter(ids)
        .map(|id| async move {
            settled(operations.cancel(id, actor, reason, grace_ms).await, |reply| match reply {
                CancelExecutionReply::Cancelled => Done::Cancelled,
                CancelExecutionReply::Requested { .. } => Done::Requested,
                CancelExecutionReply::Already { .. } => Done::Unchanged,
            })
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let counts = Counts { cancelled: Some(0), requested: Some(0), ..Counts::default() };
    Ok(Json(counted(counts, &done, next)))
}

/// Replays what matches the filters and has ended, a bounded number per request.
#[utoipa::path(
    post,
    path = "/v1/executions:replay",
    params(FilterQuery, ("limit" = Option<i64>, Query, description = "1_000 unless said.", minimum = 1, maximum = 10_000)),
    request_body = BulkBody,
    responses((status = 200, body = Counts)),
)]
async fn replay_all(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<FilterQuery>,
    Body(body): Body<BulkBody>,
) -> JsonAnswer<Counts> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
    if body.grace_ms.is_some() {
        return Err(Problem::invalid("grace_ms", "is not a field of this request"));
    }
    let limit = body.limit(&query)?;
    let (ids, next) = matching(&app.operations, &caller, &body.filters(query), limit, true).await?;
    let (reason, operations, actor) = (body.reason.as_deref(), &app.operations, caller.name());
    let done: Vec<Done> = stream::iter(ids)
        .map(|id| async move { settled(operations.replay(id, actor, reason).await, |_| Done::Replayed) })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let counts = Counts { replayed: Some(0), ..Counts::default() };
    Ok(Json(counted(counts, &done, next)))
}

fn counted(mut counts: Counts, done: &[Done], next: Option<ListCursor>) -> Counts {
    counts.matched = done.len();
    for one in done {
        match one {
            Done::Cancelled => *counts.cancelled.get_or_insert(0) += 1,
            Done::Requested => *counts.requested.get_or_insert(0) += 1,
            Done::Replayed => *counts.replayed.get_or_insert(0) += 1,
            Done::Unchanged => counts.unchanged += 1,
            Done::Refused => counts.refused += 1,
        }
    }
    counts.next_cursor = next.map(|cursor| cursor.to_string());
    counts
}
