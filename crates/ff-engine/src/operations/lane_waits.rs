//! What the work of a lane waits for, and who stands before whom in it, over all partitions.

use ff_script::generated::{
    CountAhead, CountAheadReply, Execution, ExplainLane, ExplainLaneReply, LaneCounts, LaneWaiter, PartitionStats,
    PartitionStatsReply,
};
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::Operations;

const AT_ONCE: usize = 32;
/// How many of each kind of waiting are looked at in a partition.
const LOOKS: i64 = 8;

/// The longest waiting of a lane, and what they wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneWaiters {
    /// Some of each kind of waiting that counts alone do not explain; not all of them.
    pub items: Vec<LaneWaiter>,
    /// When the first delay ends, as far as was looked.
    pub next_delay_at: Option<i64>,
}

/// How many stand before an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// As many as were counted.
    pub count: i64,
    /// There are more than were counted.
    pub more: bool,
}

impl Operations {
    /// What each partition counts of a lane.
    pub async fn lane_counts(&self, namespace: &str, lane: &str) -> Result<Vec<LaneCounts>, Error> {
        let call = &PartitionStats { lane: Some(lane.to_owned()), namespace: Some(namespace.to_owned()), offset: None };
        let found: Vec<Vec<LaneCounts>> = stream::iter(self.client.execution_routes())
            .map(|route| async move {
                let PartitionStatsReply::Stats { lanes, .. } = self.client.call(route, call).await?;
                Ok::<_, Error>(lanes)
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// What the work of a lane waits for: one bounded look at every partition.
    pub async fn lane_waiters(&self, namespace: &str, lane: &str) -> Result<LaneWaiters, Error> {
        let call = &ExplainLane { lane: lane.to_owned(), limit: LOOKS, namespace: namespace.to_owned() };
        stream::iter(self.client.execution_routes())
            .map(|route| async move { self.client.call(route, call).await })
            .buffer_unordered(AT_ONCE)
            .try_fold(
                LaneWaiters::default(),
                |mut all, ExplainLaneReply::Waiting { items, next_delay_at }| async move {
                    all.items.extend(items);
                    all.next_delay_at = [all.next_delay_at, next_delay_at].into_iter().flatten().min();
                    Ok(all)
                },
            )
            .await
    }

    /// How many eligible executions of its lane stand before one that is eligible.
    pub async fn ahead_in_lane(&self, execution: &Execution) -> Result<Ahead, Error> {
        let call = &CountAhead {
            execution_id: execution.execution_id,
            lane: execution.lane.clone(),
            namespace: execution.namespace.clone(),
            score: execution.score,
        };
        let count = |route: Route| async move {
            let CountAheadReply::Ahead { count, more } = self.client.call(route, call).await?;
            Ok::<_, Error>(Ahead { count, more })
        };
        stream::iter(self.client.execution_routes())
            .map(count)
            .buffer_unordered(AT_ONCE)
            .try_fold(Ahead::default(), |all, here| async move {
                Ok(Ahead { count: all.count + here.count, more: all.more || here.more })
            })
            .await
    }
}
