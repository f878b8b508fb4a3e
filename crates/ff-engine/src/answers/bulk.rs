//! Everything that matches filters is cancelled or replayed, a bounded number per request.

use ff_api::executions::{BulkCounts, CancelExecutions, ExecutionFilter, ReplayExecutions};
use ff_api::{Ask, Problem};
use ff_core::limits::REASON_BYTES_MAX;
use ff_core::types::ExecutionId;
use ff_script::Error;
use ff_script::generated::{CancelExecutionReply, LifecyclePhase};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::bounded;
use super::executions::{place_of, seen_by};
use crate::operations::{ListCursor, Operations};
use crate::principal::Principal;
use crate::service::{Handle, Service};

const LIMIT_DEFAULT: i64 = 1_000;
const LIMIT_MAX: usize = 10_000;
const PAGE: usize = 500;
const AT_ONCE: usize = 16;

/// How many at most: what the query says goes before what the body says.
fn limit_of(query: Option<i64>, body: Option<i64>) -> Result<usize, Problem> {
    let limit = query.or(body).unwrap_or(LIMIT_DEFAULT);
    let known = usize::try_from(limit).ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    known.ok_or_else(|| Problem::invalid("limit", format!("must be in 1..={LIMIT_MAX}, got {limit}")))
}

/// Ids of matching executions in the wanted phase, up to `limit`, and where to go on.
async fn matching(
    operations: &Operations,
    by: &Principal,
    filter: ExecutionFilter,
    mut cursor: Option<ListCursor>,
    limit: usize,
    ended: bool,
) -> Result<(Vec<ExecutionId>, Option<ListCursor>), Problem> {
    let filter = seen_by(by, filter)?;
    if filter == ExecutionFilter::default() {
        return Err(Problem::invalid(
            "filters",
            "must name at least one: namespace, lane, kind, state, tag, flow_id, worker, created_after, created_before",
        ));
    }
    let mut ids = Vec::new();
    loop {
        let page = operations.list(&filter, cursor, PAGE.min(limit - ids.len())).await?;
        ids.extend(
            page.items
                .iter()
                .filter(|item| (item.lifecycle_phase == LifecyclePhase::Terminal) == ended)
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
fn settled<T>(answer: Result<T, Error>, done: impl FnOnce(T) -> Done) -> Result<Done, Problem> {
    match answer {
        Ok(reply) => Ok(done(reply)),
        Err(Error::Engine(error)) if !error.is_retryable() => Ok(match error.code() {
            "execution_not_found" | "execution_not_terminal" => Done::Unchanged,
            _ => Done::Refused,
        }),
        Err(error) => Err(error.into()),
    }
}

impl Handle<CancelExecutions> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<CancelExecutions>) -> Result<BulkCounts, Problem> {
        let Ask { query, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        let limit = limit_of(query.limit, body.limit)?;
        let (filter, cursor) = (query.filter().or(body.filter()), query.cursor.or(body.cursor));
        let cursor = place_of(cursor.as_deref())?;
        let (ids, next) = matching(&self.operations, by, filter, cursor, limit, false).await?;
        let (reason, grace_ms, operations, actor) =
            (body.reason.as_deref(), body.grace_ms, &self.operations, by.name());
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
        let counts = BulkCounts { cancelled: Some(0), requested: Some(0), ..BulkCounts::default() };
        Ok(counted(counts, &done, next))
    }
}

impl Handle<ReplayExecutions> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ReplayExecutions>) -> Result<BulkCounts, Problem> {
        let Ask { query, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        let limit = limit_of(query.limit, body.limit)?;
        let (filter, cursor) = (query.filter().or(body.filter()), query.cursor.or(body.cursor));
        let cursor = place_of(cursor.as_deref())?;
        let (ids, next) = matching(&self.operations, by, filter, cursor, limit, true).await?;
        let (reason, operations, actor) = (body.reason.as_deref(), &self.operations, by.name());
        let done: Vec<Done> = stream::iter(ids)
            .map(|id| async move { settled(operations.replay(id, actor, reason).await, |_| Done::Replayed) })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let counts = BulkCounts { replayed: Some(0), ..BulkCounts::default() };
        Ok(counted(counts, &done, next))
    }
}

fn counted(mut counts: BulkCounts, done: &[Done], next: Option<ListCursor>) -> BulkCounts {
    counts.matched = done.len() as u64;
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
