//! The route part of the unblock reconciler: work that no live worker covers waits in `blocked:route`, and comes back when
//! one does.
//!
//! Capabilities are read once per cycle, as the distinct sets of live workers of a lane: one of them must cover all
//! of a requirement set. When they cannot be read, nothing is moved.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ff_script::generated::{LaneCounts, PartitionStatsReply, ReviewRoutes, ReviewRoutesReply, Worker, WorkerState};
use ff_script::{Client, Error, Route, Wake};
use futures::future::join_all;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::share::Owned;
use crate::news::{Listener, News};
use crate::operations::{Operations, partition_stats};

const BATCH: i64 = 64;
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// How long a new requirement set may go uncovered before it is looked at.
const GRACE: Duration = Duration::from_millis(1_000);

/// A lane in one partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The partition.
    pub route: Route,
    /// The namespace.
    pub namespace: String,
    /// The lane.
    pub lane: String,
}

/// What one review of one place did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reviewed {
    /// Executions moved to `blocked:route`.
    pub blocked: i64,
    /// Executions moved back.
    pub unblocked: i64,
    /// When the grace of an uncovered set ends, by the host's clock.
    pub again_at: Option<i64>,
}

/// The distinct capability sets of live workers, by namespace and lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(BTreeMap<(String, String), BTreeSet<Vec<String>>>);

impl Capabilities {
    /// Gathers them from the workers that are alive and not draining.
    #[must_use]
    pub fn of(workers: &[Worker]) -> Self {
        let mut sets: BTreeMap<(String, String), BTreeSet<Vec<String>>> = BTreeMap::new();
        for worker in workers.iter().filter(|worker| worker.state == WorkerState::Live) {
            let mut set = worker.capabilities.clone();
            set.sort_unstable();
            for lane in &worker.lanes {
                sets.entry((worker.namespace.clone(), lane.clone())).or_default().insert(set.clone());
            }
        }
        Self(sets)
    }

    fn sets(&self, place: &Place) -> Vec<Vec<String>> {
        let key = (place.namespace.clone(), place.lane.clone());
        self.0.get(&key).map(|sets| sets.iter().cloned().collect()).unwrap_or_default()
    }
}

/// Reviews one lane in one partition, in bounded calls, behind every blocked head.
pub async fn run_once(client: &Client, place: &Place, capabilities: &Capabilities) -> Result<Reviewed, Error> {
    let mut total = Reviewed::default();
    let mut cursor = None;
    loop {
        let call = ReviewRoutes {
            capability_sets: capabilities.sets(place),
            cursor,
            lane: place.lane.clone(),
            limit: BATCH,
            namespace: place.namespace.clone(),
        };
        let ReviewRoutesReply::Reviewed { again_at, blocked, more, next_cursor, unblocked } =
            client.call(place.route, &call).await?;
        total.blocked += blocked;
        total.unblocked += unblocked;
        total.again_at = again_at;
        cursor = next_cursor;
        if !more && cursor.is_none() {
            return Ok(total);
        }
    }
}

/// The places of a partition that hold requirement sets or blocked work.
pub async fn places(client: &Client, route: Route) -> Result<Vec<Place>, Error> {
    let PartitionStatsReply::Stats { lanes, .. } = partition_stats(client, route).await?;
    let concerned =
        |counts: &LaneCounts| counts.blocked_route > 0 || counts.queues.iter().any(|queue| !queue.requires.is_empty());
    Ok(lanes
        .into_iter()
        .filter(concerned)
        .map(|counts| Place { route, namespace: counts.namespace, lane: counts.lane })
        .collect())
}

/// Starts the reconciler for the partitions this server owns.
pub fn start(
    operations: Operations,
    owned: Owned,
    sweep_every: Duration,
    tasks: &mut JoinSet<()>,
    stop: CancellationToken,
) {
    let news = Listener::new(operations.client().host().as_ref());
    let routes =
        Routes { operations, owned, known: BTreeMap::new(), unread: BTreeSet::new(), capabilities: None, sweep_every };
    tasks.spawn(routes.run(news, stop));
}

#[derive(Clone, Copy, Default)]
struct Review {
    last: Option<Instant>,
    next: Option<Instant>,
}

struct Routes {
    operations: Operations,
    owned: Owned,
    /// Places with requirement sets, and when each was and will be reviewed.
    known: BTreeMap<Place, Review>,
    /// Partitions whose places have not been read yet.
    unread: BTreeSet<Route>,
    /// What the last read of the workers said; nothing after news of the fleet.
    capabilities: Option<Capabilities>,
    sweep_every: Duration,
}

impl Routes {
    async fn run(mut self, mut news: Listener, stop: CancellationToken) {
        loop {
            let now = Instant::now();
            let next = self.known.values().filter_map(|review| review.next).min();
            let work = !self.unread.is_empty() || next.is_some_and(|at| at <= now);
            if work && let Err(error) = self.step().await {
                tracing::warn!(%error, "routes could not be reviewed");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(AFTER_FAILURE) => {}
                }
                continue;
            }
            if work {
                continue;
            }
            let next = next.unwrap_or(now + self.sweep_every * 1000);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep_until(next) => {}
                changed = self.owned.changed() => match changed {
                    Ok(()) => self.look_at_all(),
                    Err(_) => return,
                },
                heard = news.next() => match heard {
                    Some(heard) => self.hear(heard),
                    None => return,
                },
            }
        }
    }

    fn hear(&mut self, heard: Vec<News>) {
        for item in heard {
            match item {
                News::Said(Route::Fleet, Wake::Fleet) => self.fleet_changed(),
                News::Said(route, Wake::Ready { lane, queue, .. }) => {
                    if queue != "any" && queue != "admit.any" && self.owned.borrow().contains(&route) {
                        self.heard_of(route, &lane);
                    }
                }
                News::Said(..) => {}
                News::Lost(routes) => {
                    if routes.contains(&Route::Fleet) {
                        self.fleet_changed();
                    }
                    let owned = self.owned.borrow().clone();
                    self.unread
                        .extend(routes.into_iter().filter(|route| is_execution(*route) && owned.contains(route)));
                }
                News::LostAny => self.look_at_all(),
            }
        }
    }

    /// A requirement set has work: it is reviewed at once, so that its grace begins, and at most once in that time.
    fn heard_of(&mut self, route: Route, path: &str) {
        let Some((namespace, lane)) = path.split_once('/') else { return };
        let place = Place { route, namespace: namespace.to_owned(), lane: lane.to_owned() };
        let review = self.known.entry(place).or_default();
        if review.next.is_none() {
            let now = Instant::now();
            review.next = Some(review.last.map_or(now, |last| now.max(last + GRACE)));
        }
    }

    fn fleet_changed(&mut self) {
        self.capabilities = None;
        for review in self.known.values_mut() {
            review.next = Some(Instant::now());
        }
    }

    fn look_at_all(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        self.known.retain(|place, _| owned.contains(&place.route));
        self.unread.extend(owned.iter().copied().filter(|route| is_execution(*route)));
        self.fleet_changed();
    }

    /// Reads the places of the partitions that were not read yet, or reviews everything that is due.
    async fn step(&mut self) -> Result<(), Error> {
        if !self.unread.is_empty() {
            let client = self.operations.client();
            for (route, read) in
                join_all(self.unread.iter().map(async |route| (*route, places(client, *route).await))).await
            {
                for place in read? {
                    self.known.entry(place).or_default().next = Some(Instant::now());
                }
                self.unread.remove(&route);
            }
            return Ok(());
        }
        let now = Instant::now();
        let is_due = |review: &Review| review.next.is_some_and(|at| at <= now);
        let due: Vec<Place> =
            self.known.iter().filter(|(_, review)| is_due(review)).map(|(place, _)| place.clone()).collect();
        let capabilities = match &self.capabilities {
            Some(known) => known.clone(),
            None => {
                let read = Capabilities::of(&self.operations.workers().await?);
                self.capabilities = Some(read.clone());
                read
            }
        };
        for place in due {
            let reviewed = run_once(self.operations.client(), &place, &capabilities).await?;
            // The grace is the library's; a moment more than its second is soon enough.
            let last = Instant::now();
            let next = reviewed.again_at.map(|_| last + GRACE + Duration::from_millis(20));
            self.known.insert(place, Review { last: Some(last), next });
        }
        Ok(())
    }
}

fn is_execution(route: Route) -> bool {
    matches!(route, Route::Execution(_))
}
