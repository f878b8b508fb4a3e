//! Lists over all partitions: newest first, merged by creation time and id, a bounded look per partition and page.

use std::cmp::Reverse;

use ff_core::types::ExecutionId;
use ff_script::generated::{ListExecutions, ListExecutionsReply, Position, Summary};
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};

pub use ff_api::executions::ExecutionFilter;

use super::Operations;
use super::page::{Place, Share, merge};

const AT_ONCE: usize = 32;

/// One page of a list; it may be short while more follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The executions, newest first.
    pub items: Vec<Summary>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<ListCursor>,
}

/// A place in a list of executions, as URL-safe text.
pub type ListCursor = Place<ExecutionId>;

impl Operations {
    /// One page of executions that match, after a cursor of an earlier page.
    pub async fn list(&self, filter: &ExecutionFilter, after: Option<ListCursor>, limit: usize) -> Result<Page, Error> {
        let after = after.map(|Place { created_at, id }| Position { created_at, execution_id: id });
        if let Some(flow) = &filter.flow_id {
            // One partition holds all of them, in an order of their own.
            let (items, looked_to) = self.list_share(self.client.route_of_flow(flow), filter, after, limit).await?;
            return Ok(Page { items, next: looked_to.map(|Reverse(next)| next) });
        }
        let shares: Vec<Share<Summary, Reverse<ListCursor>>> = stream::iter(self.client.execution_routes())
            .map(|route| self.list_share(route, filter, after.clone(), limit))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        // Newest first.
        let place = |item: &Summary| Reverse(Place { created_at: item.created_at.as_millis(), id: item.execution_id });
        let (items, next) = merge(shares, limit, place);
        Ok(Page { items, next: next.map(|Reverse(next)| next) })
    }

    async fn list_share(
        &self,
        route: Route,
        filter: &ExecutionFilter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Share<Summary, Reverse<ListCursor>>, Error> {
        let call = ListExecutions {
            after,
            created_after: filter.created_after,
            created_before: filter.created_before,
            flow_id: filter.flow_id,
            kind: filter.kind.clone(),
            lane: filter.lane.clone(),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            namespace: filter.namespace.clone(),
            state: filter.state,
            tag_key: filter.tag.as_ref().map(|(key, _)| key.clone()),
            tag_value: filter.tag.as_ref().map(|(_, value)| value.clone()),
            worker: filter.worker.clone(),
        };
        let ListExecutionsReply::Page { items, last, more } = self.client.call(route, &call).await?;
        let looked_to =
            last.filter(|_| more).map(|to| Reverse(Place { created_at: to.created_at, id: to.execution_id }));
        Ok((items, looked_to))
    }
}
