//! The route part of the unblock reconciler: work that no live worker covers waits in `blocked:route`, and comes back when
//! one does.
//!
//! What workers take is read once per cycle, as the distinct pairs of kinds and capabilities of live workers of a lane:
//! one of them must take the kind and cover all that is required. When they cannot be read, nothing is moved. A lane is
//! reviewed when its workers take something else than before, and when work comes that nobody is known to take.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ff_script::generated::{
    LaneCounts, PartitionStatsReply, ReviewRoutes, ReviewRoutesReply, Worker, WorkerClass, WorkerState,
};
use ff_script::{Client, Error, QueueName, Route, Wake};
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

/// What live workers of each lane take: the distinct pairs of kinds and capabilities, by namespace and lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<(String, String), BTreeSet<Class>>);

/// What workers of one sort take.
type Class = (Vec<String>, Option<Vec<String>>);

impl Coverage {
    /// Gathers it from the workers that are alive and not draining.
    #[must_use]
    pub fn of(workers: &[Worker]) -> Self {
        let mut classes: BTreeMap<(String, String), BTreeSet<Class>> = BTreeMap::new();
        for worker in workers.iter().filter(|worker| worker.state == WorkerState::Live) {
            let (mut capabilities, mut kinds) = (worker.capabilities.clone(), worker.kinds.clone());
            capabilities.sort_unstable();
            kinds.iter_mut().for_each(|kinds| kinds.sort_unstable());
            let class = (capabilities, kinds);
            for lane in &worker.lanes {
                classes.entry((worker.namespace.clone(), lane.clone())).or_default().insert(class.clone());
            }
        }
        Self(classes)
    }

    fn of_lane(&self, place: &Place) -> Option<&BTreeSet<Class>> {
        self.0.get(&(place.namespace.clone(), place.lane.clone()))
    }

    fn classes(&self, place: &Place) -> Vec<WorkerClass> {
        let class =
            |(capabilities, kinds): &Class| WorkerClass { capabilities: capabilities.clone(), kinds: kinds.clone() };
        self.of_lane(place).into_iter().flatten().map(class).collect()
    }

    /// True when work of this kind that requires nothing has a worker, or its lane has none at all: then it is not moved.
    fn takes_plain(&self, place: &Place, kind: &str) -> bool {
        self.of_lane(place).is_none_or(|classes| {
            classes.iter().any(|(_, kinds)| kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|known| known == kind)))
        })
    }
}

/// Reviews one lane in one partition, in bounded calls, behind every blocked head.
pub async fn run_once(client: &Client, place: &Place, coverage: &Coverage) -> Result<Reviewed, Error> {
    let mut total = Reviewed::default();
    let (mut cursor, mut skip) = (None, None);
    let workers = coverage.classes(place);
    loop {
        let call = ReviewRoutes {
            cursor,
            lane: place.lane.clone(),
            limit: BATCH,
            namespace: place.namespace.clone(),
            skip,
            workers: workers.clone(),
        };
        let ReviewRoutesReply::Reviewed { again_at, blocked, more, next_cursor, next_skip, unblocked } =
            client.call(place.route, &call).await?;
        total.blocked += blocked;
        total.unblocked += unblocked;
        total.again_at = total.again_at.into_iter().chain(again_at).min();
        cursor = next_cursor;
        if !more {
            if next_skip.is_none() && cursor.is_none() {
                return Ok(total);
            }
            skip = next_skip.or(skip);
        }
    }
}

/// The places of a partition that hold work for which a worker is looked for.
pub async fn places(client: &Client, route: Route) -> Result<Vec<Place>, Error> {
    let PartitionStatsReply::Stats { lanes, .. } = partition_stats(client, route).await?;
    let concerned = |counts: &LaneCounts| counts.blocked_route > 0 || !counts.queues.is_empty();
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
    let routes = Routes {
        operations,
        owned,
        known: BTreeMap::new(),
        unread: BTreeSet::new(),
        coverage: Coverage::default(),
        changed: true,
        sweep_every,
    };
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
    /// Places with work, and when each was and will be reviewed.
    known: BTreeMap<Place, Review>,
    /// Partitions whose places have not been read yet.
    unread: BTreeSet<Route>,
    /// What the last read of the workers said.
    coverage: Coverage,
    /// There was news of the fleet since then.
    changed: bool,
    sweep_every: Duration,
}

impl Routes {
    async fn run(mut self, mut news: Listener, stop: CancellationToken) {
        loop {
            let now = Instant::now();
            let next = self.known.values().filter_map(|review| review.next).min();
            let work = !self.unread.is_empty() || self.changed || next.is_some_and(|at| at <= now);
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
                News::Said(Route::Fleet, Wake::Fleet) => self.changed = true,
                News::Said(route, Wake::Ready { lane, queue, .. }) => {
                    if self.owned.borrow().contains(&route) {
                        self.heard_of(route, &lane, QueueName::of(&queue));
                    }
                }
                News::Said(..) => {}
                News::Lost(routes) => {
                    if routes.contains(&Route::Fleet) {
                        self.changed = true;
                    }
                    let owned = self.owned.borrow().clone();
                    self.unread
                        .extend(routes.into_iter().filter(|route| is_execution(*route) && owned.contains(route)));
                }
                News::LostAny => self.look_at_all(),
            }
        }
    }

    /// A queue has work. Unless a worker is known that takes it, it is reviewed at once, so that its grace begins, and at
    /// most once in that time.
    fn heard_of(&mut self, route: Route, path: &str, queue: QueueName<'_>) {
        let Some((namespace, lane)) = path.split_once('/') else { return };
        let place = Place { route, namespace: namespace.to_owned(), lane: lane.to_owned() };
        let taken = !self.changed && queue.is_plain() && self.coverage.takes_plain(&place, queue.kind);
        let review = self.known.entry(place).or_default();
        if !taken && review.next.is_none() {
            let now = Instant::now();
            review.next = Some(review.last.map_or(now, |last| now.max(last + GRACE)));
        }
    }

    fn look_at_all(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        self.known.retain(|place, _| owned.contains(&place.route));
        self.unread.extend(owned.iter().copied().filter(|route| is_execution(*route)));
        self.changed = true;
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
        if self.changed {
            let read = Coverage::of(&self.operations.workers().await?);
            let now = Instant::now();
            for (place, review) in &mut self.known {
                if read.of_lane(place) != self.coverage.of_lane(place) {
                    review.next = Some(now);
                }
            }
            self.coverage = read;
            self.changed = false;
        }
        let now = Instant::now();
        let is_due = |review: &Review| review.next.is_some_and(|at| at <= now);
        let due: Vec<Place> =
            self.known.iter().filter(|(_, review)| is_due(review)).map(|(place, _)| place.clone()).collect();
        for place in due {
            let reviewed = run_once(self.operations.client(), &place, &self.coverage).await?;
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
