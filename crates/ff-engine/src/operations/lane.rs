//! Lanes: one definition in the fleet's record, a copy in every partition.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ff_core::error_code::ErrorCode;
use ff_script::generated::{
    DefineLane, DefineLaneReply, GetLane, GetLaneReply, InstallLane, LaneDepth, LaneDepthReply, LaneEntry, LaneState,
    ListLanes, ListLanesReply, PartitionStats, PartitionStatsReply,
};
use ff_script::{Client, Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::time::Instant;

use super::{Operations, refused_with};

const AT_ONCE: usize = 32;
const PAGE: i64 = 500;
/// A lane's depth is a sum over partitions at most this old.
const DEPTH_AGE: Duration = Duration::from_secs(1);

/// Depths counted lately.
#[derive(Default)]
pub(super) struct Depths(Mutex<HashMap<String, (Instant, i64)>>);

/// What one partition counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The partition.
    pub route: Route,
    /// Its answer.
    pub stats: PartitionStatsReply,
}

/// The counts of one partition with all its lanes; a call counts some of them, so that others get their turn in between.
pub async fn partition_stats(client: &Client, route: Route) -> Result<PartitionStatsReply, Error> {
    let mut page = client.call(route, &PartitionStats::default()).await?;
    loop {
        let PartitionStatsReply::Stats { lanes, more, .. } = &mut page;
        if !std::mem::take(more) {
            return Ok(page);
        }
        let offset = i64::try_from(lanes.len()).unwrap_or(i64::MAX);
        let next = client.call(route, &PartitionStats { offset: Some(offset), ..PartitionStats::default() }).await?;
        let PartitionStatsReply::Stats { lanes: further, more: even_more, .. } = next;
        lanes.extend(further);
        *more = even_more;
    }
}

impl Operations {
    /// Creates or changes a lane and answers when every partition has it.
    pub async fn define_lane(&self, change: DefineLane) -> Result<LaneEntry, Error> {
        let DefineLaneReply::Defined { entry, .. } = self.client.call(Route::Fleet, &change).await?;
        self.apply_lane(&entry).await?;
        Ok(entry)
    }

    /// Gives every partition its copy, and the lane's holder set its capacity.
    ///
    /// **Invariant:** while the capacity has a limit, no partition lets work of the lane start without a slot. So a limit is set
    /// last, when every partition asks for slots and what runs has been counted, and taken away first.
    pub(super) async fn apply_lane(&self, entry: &LaneEntry) -> Result<(), Error> {
        if entry.definition.max_active.is_none() {
            self.set_capacity(entry).await?;
        }
        stream::iter(self.client.execution_routes())
            .map(|route| self.install(route, entry.clone()))
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        if entry.definition.max_active.is_some() {
            self.count_running(entry).await?;
            self.set_capacity(entry).await?;
        }
        Ok(())
    }

    /// Sets a lane's state: active, paused, draining or disabled.
    pub async fn set_lane_state(
        &self,
        namespace: &str,
        lane: &str,
        state: LaneState,
        actor: &str,
    ) -> Result<LaneEntry, Error> {
        let change = DefineLane::new(actor.to_owned(), lane.to_owned(), namespace.to_owned());
        self.define_lane(DefineLane { state: Some(state), ..change }).await
    }

    /// A lane's definition.
    pub async fn lane(&self, namespace: &str, lane: &str) -> Result<LaneEntry, Error> {
        let call = GetLane { namespace: namespace.to_owned(), lane: lane.to_owned() };
        let GetLaneReply::Lane { entry } = self.client.call(Route::Fleet, &call).await?;
        Ok(entry)
    }

    /// Every lane, oldest first.
    pub async fn lanes(&self) -> Result<Vec<LaneEntry>, Error> {
        let mut all = Vec::new();
        let mut offset = 0;
        loop {
            let (entries, more) = self.lanes_from(offset, PAGE).await?;
            all.extend(entries);
            if !more {
                return Ok(all);
            }
            offset += PAGE;
        }
    }

    /// Lanes behind the first `offset`, oldest first, and whether there are more.
    pub(crate) async fn lanes_from(&self, offset: i64, limit: i64) -> Result<(Vec<LaneEntry>, bool), Error> {
        let ListLanesReply::Lanes { entries, more } =
            self.client.call(Route::Fleet, &ListLanes { limit, offset }).await?;
        Ok((entries, more))
    }

    /// The counts of every partition.
    pub async fn stats(&self) -> Result<Vec<Counts>, Error> {
        stream::iter(self.client.execution_routes())
            .map(|route| async move { Ok(Counts { route, stats: partition_stats(&self.client, route).await? }) })
            .buffered(AT_ONCE)
            .try_collect()
            .await
    }

    /// How many executions of a lane wait, over all partitions; at most a second old.
    pub async fn lane_depth(&self, namespace: &str, lane: &str) -> Result<i64, Error> {
        let path = format!("{namespace}/{lane}");
        let counted = self.depths.0.lock().unwrap_or_else(PoisonError::into_inner).get(&path).copied();
        if let Some((at, depth)) = counted
            && at.elapsed() < DEPTH_AGE
        {
            return Ok(depth);
        }
        let at = Instant::now();
        let depth = stream::iter(self.client.execution_routes())
            .map(|route| async move {
                let call = LaneDepth { lane: lane.to_owned(), namespace: namespace.to_owned() };
                let LaneDepthReply::Depth { depth } = self.client.call(route, &call).await?;
                Ok::<i64, Error>(depth)
            })
            .buffer_unordered(AT_ONCE)
            .try_fold(0, |sum, depth| async move { Ok(sum + depth) })
            .await?;
        self.depths.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path, (at, depth));
        Ok(depth)
    }

    /// Gives a partition its copy of a lane; a lane nobody has used yet is created with the defaults.
    pub(super) async fn show_lane(&self, route: Route, namespace: &str, lane: &str) -> Result<(), Error> {
        let entry = match self.lane(namespace, lane).await {
            Ok(entry) => entry,
            Err(error) if refused_with(&error) == Some(ErrorCode::LaneNotFound) => {
                let first_use = DefineLane::new("engine".to_owned(), lane.to_owned(), namespace.to_owned());
                let DefineLaneReply::Defined { entry, .. } = self.client.call(Route::Fleet, &first_use).await?;
                entry
            }
            Err(error) => return Err(error),
        };
        self.install(route, entry).await
    }

    async fn install(&self, route: Route, entry: LaneEntry) -> Result<(), Error> {
        self.client.call(route, &InstallLane { entry }).await.map(|_| ())
    }
}
