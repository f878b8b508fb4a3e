//! Who waits for a budget, or under a key of a quota: the first to go on first, a page at a time.

use std::fmt;
use std::str::FromStr;

use ff_api::blocked::{BlockedExecution, BlockedPage};
use ff_core::EngineError;
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_script::generated::{
    AwaitingBudget, AwaitingBudgetReply, AwaitsPosition, BlockingReason, ListQuotaWaiters, ListQuotaWaitersReply,
};
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::page::{Place, Share, merge};
use super::{Operations, refused_with};

const AT_ONCE: usize = 16;
/// The most a page shows.
const BLOCKED_PAGE_MAX: usize = 64;

/// A place in the line of a budget, as URL-safe text.
pub type BudgetLineCursor = Place<ExecutionId>;

/// A place in the line of a quota's key, as URL-safe text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaLineCursor {
    place: Place<ExecutionId>,
    /// Among those that can never pass.
    never: bool,
}

impl fmt::Display for QuotaLineCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place, if self.never { "_never" } else { "" })
    }
}

impl FromStr for QuotaLineCursor {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let (place, never) = text.strip_suffix("_never").map_or((text, false), |place| (place, true));
        Ok(Self { place: place.parse()?, never })
    }
}

/// One partition's part of a budget's line: how long it is, and a page of it.
type Line = (i64, Share<(BudgetLineCursor, BlockedExecution), BudgetLineCursor>);

impl Operations {
    /// Who waits for a budget that must exist, refused or parked; in the order in which they will go on, as far as one order
    /// holds over all partitions.
    pub async fn blocked_on_budget(
        &self,
        budget_id: BudgetId,
        after: Option<BudgetLineCursor>,
        limit: usize,
    ) -> Result<BlockedPage, Error> {
        self.budget(budget_id).await?;
        let limit = limit.clamp(1, BLOCKED_PAGE_MAX);
        let found: Vec<Line> = stream::iter(self.client.execution_routes())
            .map(|route| self.line_of_budget(route, budget_id, after, limit))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let count = found.iter().map(|(count, _)| count).sum();
        let shares = found.into_iter().map(|(_, share)| share).collect();
        let (items, next) = merge(shares, limit, |(place, _)| *place);
        let items = items.into_iter().map(|(_, item)| item).collect();
        Ok(BlockedPage { count, items, next_cursor: next.map(|place| place.to_string()) })
    }

    async fn line_of_budget(
        &self,
        route: Route,
        budget_id: BudgetId,
        after: Option<BudgetLineCursor>,
        limit: usize,
    ) -> Result<Line, Error> {
        let after = after.map(|Place { created_at: score, id }| AwaitsPosition::new(score, id));
        let call = AwaitingBudget { after, budget_id, limit: i64::try_from(limit).unwrap_or(i64::MAX) };
        let AwaitingBudgetReply::Waiting { items, count, next } = self.client.call(route, &call).await?;
        let items = items.into_iter().map(|item| {
            let blocked = BlockedExecution {
                execution_id: item.execution_id,
                namespace: item.namespace,
                lane: item.lane,
                kind: item.kind,
                blocked_since: Some(item.blocked_since),
                continues: item.continues,
                detail: item.detail.unwrap_or_default(),
            };
            (Place { created_at: item.score, id: item.execution_id }, blocked)
        });
        let looked_to = next.map(|next| Place { created_at: next.score, id: next.execution_id });
        Ok((count, (items.collect(), looked_to)))
    }

    /// Who waits under a key of a quota; in the order in which they will be called. Those that ended while they waited are
    /// left out, though they still count until they are called.
    pub async fn blocked_on_quota(
        &self,
        quota_id: QuotaPolicyId,
        key: &str,
        after: Option<QuotaLineCursor>,
        limit: usize,
    ) -> Result<BlockedPage, Error> {
        let after = after.map(|QuotaLineCursor { place, never }| AwaitsPosition {
            execution_id: place.id,
            never: Some(never),
            score: place.created_at,
        });
        let limit = i64::try_from(limit.clamp(1, BLOCKED_PAGE_MAX)).unwrap_or(i64::MAX);
        let call = ListQuotaWaiters { after, key: key.to_owned(), limit, quota_id };
        let ListQuotaWaitersReply::Waiting { items, count, next } =
            self.client.call(self.client.route_of_quota(&quota_id), &call).await?;
        let read: Vec<Option<BlockedExecution>> = stream::iter(items)
            .map(|waiter| self.blocked_by_quota(waiter.execution_id))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        let next = next.map(|next| QuotaLineCursor {
            place: Place { created_at: next.score, id: next.execution_id },
            never: next.never.unwrap_or(false),
        });
        let items = read.into_iter().flatten().collect();
        Ok(BlockedPage { count, items, next_cursor: next.map(|place| place.to_string()) })
    }

    async fn blocked_by_quota(&self, id: ExecutionId) -> Result<Option<BlockedExecution>, Error> {
        let execution = match self.describe(id).await {
            Err(error) if refused_with(&error) == Some(ErrorCode::ExecutionNotFound) => return Ok(None),
            found => found?,
        };
        Ok((execution.blocking_reason == Some(BlockingReason::WaitingForQuota)).then(|| BlockedExecution {
            execution_id: id,
            namespace: execution.namespace,
            lane: execution.lane,
            kind: execution.kind,
            blocked_since: execution.blocked_since,
            continues: execution.continues,
            detail: execution.blocking_detail.unwrap_or_default(),
        }))
    }
}
