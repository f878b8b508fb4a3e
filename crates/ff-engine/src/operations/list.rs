//! Lists over all partitions: newest first, merged by creation time and id, a bounded look per partition and page.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use ff_core::error::{EngineError, ValidationKind};
use ff_core::state::PublicState;
use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{ListExecutions, ListExecutionsReply, Position, Summary};
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::Operations;

const AT_ONCE: usize = 32;

/// Which executions a list shows; everything given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Of this namespace.
    pub namespace: Option<String>,
    /// Of this lane.
    pub lane: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// In this state.
    pub state: Option<PublicState>,
    /// With this tag and value.
    pub tag: Option<(String, String)>,
    /// Leased by this worker instance.
    pub worker: Option<String>,
    /// Members of this flow, the one added last first.
    pub flow: Option<FlowId>,
    /// Created at or after this time.
    pub created_after: Option<i64>,
    /// Created at or before this time.
    pub created_before: Option<i64>,
}

/// One page of a list; it may be short while more follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The executions, newest first.
    pub items: Vec<Summary>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<ListCursor>,
}

/// A place in a list, as URL-safe text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor {
    created_at: i64,
    execution_id: ExecutionId,
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.created_at, self.execution_id)
    }
}

impl FromStr for ListCursor {
    type Err = EngineError;

    fn from_str(text: &str) -> Result<Self, EngineError> {
        let invalid = || EngineError::Validation {
            kind: ValidationKind::InvalidArgument { field: "cursor".to_owned() },
            detail: "is not a cursor of this list".to_owned(),
        };
        let (created_at, id) = text.split_once('_').ok_or_else(invalid)?;
        Ok(Self {
            created_at: created_at.parse().map_err(|_| invalid())?,
            execution_id: id.parse().map_err(|_| invalid())?,
        })
    }
}

/// Newest first.
fn order(created_at: i64, id: ExecutionId) -> Reverse<(i64, ExecutionId)> {
    Reverse((created_at, id))
}

struct Share {
    items: Vec<Summary>,
    /// Up to where this partition has looked, when it has more.
    looked_to: Option<Position>,
}

impl Operations {
    /// One page of executions that match, after a cursor of an earlier page.
    pub async fn list(&self, filter: &ExecutionFilter, after: Option<ListCursor>, limit: usize) -> Result<Page, Error> {
        let after = after.map(|c| Position { created_at: c.created_at, execution_id: c.execution_id });
        if let Some(flow) = &filter.flow {
            // One partition holds all of them, in an order of their own.
            let Share { items, looked_to } =
                self.list_share(self.client.route_of_flow(flow), filter, after, limit).await?;
            let next = looked_to.map(|to| ListCursor { created_at: to.created_at, execution_id: to.execution_id });
            return Ok(Page { items, next });
        }
        let shares: Vec<Share> = stream::iter(self.client.execution_routes())
            .map(|route| self.list_share(route, filter, after.clone(), limit))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(merge(shares, limit))
    }

    async fn list_share(
        &self,
        route: Route,
        filter: &ExecutionFilter,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Share, Error> {
        let call = ListExecutions {
            after,
            created_after: filter.created_after,
            created_before: filter.created_before,
            flow_id: filter.flow,
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
        Ok(Share { items, looked_to: if more { last } else { None } })
    }
}

/// Shows only what no partition can still come before: up to the nearest point some partition has looked to.
fn merge(shares: Vec<Share>, limit: usize) -> Page {
    let frontier = shares
        .iter()
        .filter_map(|share| share.looked_to.as_ref())
        .map(|position| order(position.created_at, position.execution_id))
        .min();
    let mut items: Vec<Summary> = shares.into_iter().flat_map(|share| share.items).collect();
    items.sort_by_key(|item| order(item.created_at, item.execution_id));
    let complete = frontier.map_or(items.len(), |frontier| {
        items.partition_point(|item| order(item.created_at, item.execution_id) <= frontier)
    });
    let shown = complete.min(limit);
    let cut = shown < items.len();
    items.truncate(shown);
    let next = match (items.last(), frontier) {
        (Some(last), _) if cut && shown == limit => {
            Some(ListCursor { created_at: last.created_at, execution_id: last.execution_id })
        }
        (_, Some(Reverse((created_at, execution_id)))) => Some(ListCursor { created_at, execution_id }),
        (_, None) => None,
    };
    Page { items, next }
}
