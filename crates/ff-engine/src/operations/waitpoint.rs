//! What operators do with suspended executions and their waitpoints.

use ff_core::types::{ExecutionId, WaitpointId};
use ff_script::generated::{
    DescribeWaitpoint, DescribeWaitpointReply, ExecutionWaitpoints, ExecutionWaitpointsReply, FailSuspension,
    ListWaitpoints, ListWaitpointsReply, PublicState, ReadSignals, ReadSignalsReply, ResumeExecution,
    ResumeExecutionReply, Signal, Waitpoint, WaitpointPosition,
};
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::Operations;
use super::page::{Place, Share, merge};

const AT_ONCE: usize = 32;
/// Signals asked for at a time.
const SIGNALS_PAGE: i64 = 256;

/// One page of open waitpoints, oldest first; it may be short while more follows.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitpointPage {
    /// The waitpoints.
    pub items: Vec<Waitpoint>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<WaitpointCursor>,
}

/// A place in the list of open waitpoints, as URL-safe text.
pub type WaitpointCursor = Place<WaitpointId>;

impl Operations {
    /// An operator ends a suspension; the attempt goes on.
    pub async fn resume(&self, id: ExecutionId, actor: &str, reason: Option<&str>) -> Result<PublicState, Error> {
        let call = ResumeExecution { actor: actor.to_owned(), execution_id: id, reason: reason.map(str::to_owned) };
        let ResumeExecutionReply::Resumed { state } = self.client.call(self.client.route_of(&id), &call).await?;
        Ok(state)
    }

    /// An operator ends a suspended execution as failed.
    pub async fn fail_suspension(
        &self,
        id: ExecutionId,
        actor: &str,
        reason: &str,
        category: &str,
    ) -> Result<(), Error> {
        let call = FailSuspension {
            actor: actor.to_owned(),
            category: category.to_owned(),
            execution_id: id,
            reason: reason.to_owned(),
        };
        self.client.call(self.client.route_of(&id), &call).await.map(|_| ())
    }

    /// One waitpoint, open or closed.
    pub async fn waitpoint(&self, id: WaitpointId) -> Result<Waitpoint, Error> {
        let route = self.client.route_of_waitpoint(&id);
        let DescribeWaitpointReply::Found { waitpoint } =
            self.client.call(route, &DescribeWaitpoint { waitpoint_id: id }).await?;
        Ok(waitpoint)
    }

    /// The waitpoints of an execution: open ones, and those kept after they closed.
    pub async fn waitpoints_of(&self, id: ExecutionId) -> Result<Vec<Waitpoint>, Error> {
        let call = ExecutionWaitpoints { execution_id: id };
        let ExecutionWaitpointsReply::Found { waitpoints } = self.client.call(self.client.route_of(&id), &call).await?;
        Ok(waitpoints)
    }

    /// Open waitpoints, oldest first, after a cursor of an earlier page.
    pub async fn open_waitpoints(
        &self,
        namespace: Option<&str>,
        after: Option<WaitpointCursor>,
        limit: usize,
    ) -> Result<WaitpointPage, Error> {
        let shares: Vec<Share<Waitpoint, WaitpointCursor>> = stream::iter(self.client.execution_routes())
            .map(|route| self.waitpoint_share(route, namespace, after, limit))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let place = |item: &Waitpoint| Place { created_at: item.created_at, id: item.waitpoint_id };
        let (items, next) = merge(shares, limit, place);
        Ok(WaitpointPage { items, next })
    }

    async fn waitpoint_share(
        &self,
        route: Route,
        namespace: Option<&str>,
        after: Option<WaitpointCursor>,
        limit: usize,
    ) -> Result<Share<Waitpoint, WaitpointCursor>, Error> {
        let call = ListWaitpoints {
            after: after.map(|Place { created_at, id }| WaitpointPosition { created_at, waitpoint_id: id }),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            namespace: namespace.map(str::to_owned),
        };
        let ListWaitpointsReply::Page { items, last, more } = self.client.call(route, &call).await?;
        let looked_to = last.filter(|_| more);
        Ok((items, looked_to.map(|to| Place { created_at: to.created_at, id: to.waitpoint_id })))
    }

    /// Every signal of an execution, or those that let its attempt go on, in order of arrival.
    pub async fn signals(&self, id: ExecutionId, resume_only: bool) -> Result<Vec<Signal>, Error> {
        let mut all: Vec<Signal> = Vec::new();
        loop {
            let after = all.last().map(|signal| signal.id.clone());
            let call = ReadSignals { after, execution_id: id, limit: SIGNALS_PAGE, resume_only };
            let ReadSignalsReply::Page { signals, more } = self.client.call(self.client.route_of(&id), &call).await?;
            all.extend(signals);
            if !more {
                return Ok(all);
            }
        }
    }
}
