//! Holder sets: who counts against a concurrency limit. A lane's `max_active` is one, named after the lane.

use ff_core::error_code::ErrorCode;
use ff_script::generated::{
    AdmitHolders, AdmitHoldersReply, AdoptHolders, AdoptHoldersReply, Candidate, Holder, LaneEntry, ListHolders,
    ListHoldersReply, SetCapacity,
};
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};
use uuid::Uuid;

use super::{Operations, refused_with};

const AT_ONCE: usize = 32;
const PAGE: i64 = 64;
/// Until when what was found running counts without having been asked again, in milliseconds.
const COUNTED_MS: i64 = 5_000;

/// The holder set of a lane's `max_active`.
#[must_use]
pub fn set_of_lane(namespace: &str, lane: &str) -> String {
    format!("lane:{namespace}/{lane}")
}

/// The lane a holder set is named after, as `<namespace>/<lane>`.
#[must_use]
pub fn lane_of_set(set: &str) -> Option<&str> {
    set.strip_prefix("lane:")
}

/// How full a holder set is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Holders in it.
    pub held: i64,
    /// How many it takes; without a limit, all.
    pub limit: Option<i64>,
}

impl Room {
    /// How many more fit; less than none while a lowered limit waits for running work to end.
    #[must_use]
    pub fn free(self) -> i64 {
        self.limit.map_or(i64::MAX, |limit| limit - self.held)
    }
}

/// What became of an admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Who is in the set now, of those asked for.
    pub holder_ids: Vec<Uuid>,
    /// How full the set is after it.
    pub room: Room,
}

impl Operations {
    /// Enters holders into a set, as many as fit, in order. A lane's set without a capacity is given the lane's first.
    pub async fn admit_holders(&self, set: &str, holders: Vec<Candidate>) -> Result<Admitted, Error> {
        let call = AdmitHolders { counted: None, holders, set: set.to_owned() };
        let route = self.client.route_of_holder_set(set);
        let reply = match self.client.call(route, &call).await {
            Err(error) if refused_with(&error) == Some(ErrorCode::CapacityUnknown) => {
                let Some((namespace, lane)) = lane_of_set(set).and_then(|path| path.split_once('/')) else {
                    return Err(error);
                };
                // Whoever limited the lane has not got that far, or died on the way.
                let entry = self.lane(namespace, lane).await?;
                self.apply_lane(&entry).await?;
                self.client.call(route, &call).await?
            }
            answer => answer?,
        };
        let AdmitHoldersReply::Admitted { held, holder_ids, limit } = reply;
        Ok(Admitted { holder_ids, room: Room { held, limit } })
    }

    /// How full a set is.
    pub async fn room(&self, set: &str) -> Result<Room, Error> {
        let call = ListHolders { limit: 1, offset: 0, set: set.to_owned() };
        let ListHoldersReply::Holders { held, capacity, .. } =
            self.client.call(self.client.route_of_holder_set(set), &call).await?;
        Ok(Room { held, limit: capacity })
    }

    /// Sets what a lane's definition says; an older definition changes nothing.
    pub(super) async fn set_capacity(&self, entry: &LaneEntry) -> Result<(), Error> {
        let set = set_of_lane(&entry.namespace, &entry.lane);
        let route = self.client.route_of_holder_set(&set);
        let call = SetCapacity { limit: entry.definition.max_active, set, version: entry.version };
        self.client.call(route, &call).await.map(|_| ())
    }

    /// Enters everything that runs in a lane into its holder set, unless the set has a limit already.
    pub(super) async fn count_running(&self, entry: &LaneEntry) -> Result<(), Error> {
        let set = set_of_lane(&entry.namespace, &entry.lane);
        if self.room(&set).await?.limit.is_some() {
            return Ok(());
        }
        stream::iter(self.client.execution_routes())
            .map(|route| self.count_running_in(route, entry, &set))
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }

    async fn count_running_in(&self, route: Route, entry: &LaneEntry, set: &str) -> Result<(), Error> {
        let mut after = None;
        loop {
            let call = AdoptHolders {
                after,
                lane: entry.lane.clone(),
                limit: PAGE,
                namespace: entry.namespace.clone(),
                note: true,
            };
            let AdoptHoldersReply::Adopted { holders, next, .. } = self.client.call(route, &call).await?;
            if !holders.is_empty() {
                self.enter_running(set, holders).await?;
            }
            after = next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Counts running executions, room or not. One that ends meanwhile may leave before it is entered, so each enters with a
    /// deadline and is asked for once more.
    pub(crate) async fn enter_running(&self, set: &str, holders: Vec<Holder>) -> Result<(), Error> {
        let route = self.client.route_of_holder_set(set);
        let call = ListHolders { limit: 1, offset: 0, set: set.to_owned() };
        let ListHoldersReply::Holders { now, .. } = self.client.call(route, &call).await?;
        let candidate = |Holder { execution_id, holder_id, .. }| Candidate {
            execution_id,
            expires_at: now + COUNTED_MS,
            holder_id,
        };
        let holders = holders.into_iter().map(candidate).collect();
        let call = AdmitHolders { counted: Some(true), holders, set: set.to_owned() };
        self.client.call(route, &call).await.map(|_| ())
    }
}
