//! The event feed: which events a query means, as far as its caller may see them, and where the reader begins.

use ff_api::Problem;
use ff_api::events::EventsQuery;
use ff_core::types::TimestampMs;

use crate::feed::{Cursor, Feed, FeedFilter};
use crate::principal::Principal;
use crate::service::Service;

impl Service {
    /// A reader of the events that a query means.
    pub async fn events(&self, by: &Principal, query: EventsQuery) -> Result<Feed, Problem> {
        let cursor = self.cursor_after(query.after.as_deref()).await?;
        Ok(self.engine.feed(filter(by, query)?, cursor))
    }

    /// Where a reader begins: behind a cursor, at the `start`, or now by the store's own clock.
    async fn cursor_after(&self, after: Option<&str>) -> Result<Cursor, Problem> {
        match after {
            Some("start") => Ok(Cursor::start()),
            // Whatever happens after this answer is later than the time before it, even in the same millisecond.
            None | Some("now") => Ok(Cursor::at(TimestampMs(self.operations.now().await? - 1))),
            Some(text) => Ok(text.parse()?),
        }
    }
}

fn filter(by: &Principal, query: EventsQuery) -> Result<FeedFilter, Problem> {
    let tag = query.tag.map(|tag| match tag.split_once(':') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Problem::invalid("tag", "must be key:value")),
    });
    // A type that ends with `.*` stands for all that begin so.
    let types = query.types.as_deref().map(|types| types.split(','));
    let types = types.into_iter().flatten().map(|one| one.trim().trim_end_matches('*').to_owned());
    Ok(FeedFilter {
        namespace: by.namespace(query.namespace)?,
        lane: by.lane(query.lane)?,
        kind: query.kind,
        tag: tag.transpose()?,
        types: types.collect(),
        execution_id: query.execution_id,
        flow_id: query.flow_id,
        worker: query.worker,
    })
}
