//! The loop around the choice: hears announcements, sends waiting workers to claim, admits what needs it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_core::EngineError;
use ff_core::types::{AttemptId, LeaseId};
use ff_engine::news::{Listener, News};
use ff_engine::operations::{Claimant, lane_of_set};
use ff_engine::{Claimed, Operations, fence_of};
use ff_script::generated::{
    ConsumeGrant, ConsumeGrantReply, Grant, GrantReclaim, LaneCounts, PartitionStats, PartitionStatsReply, Task,
};
use ff_script::{Error, HostError, Route, Wake};
use futures::stream::{self, StreamExt};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use crate::admission::Admission;
use crate::board::{Board, Errand, Sight};
use crate::granting::{Grantee, Granting};

const AT_ONCE: usize = 32;
const GRANT_TTL_MS: i64 = 5_000;
const AFTER_FAILURE: Duration = Duration::from_millis(200);

/// How a dispatcher behaves.
#[derive(Clone, Debug)]
pub struct DispatcherOptions {
    /// How often one partition of one sight is looked at in case an announcement was lost.
    pub sweep_every: Duration,
}

impl Default for DispatcherOptions {
    fn default() -> Self {
        Self { sweep_every: Duration::from_secs(30) }
    }
}

/// A worker as the scheduler sees it.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The namespace of its lanes.
    pub namespace: String,
    /// The lanes it serves.
    pub lanes: Vec<String>,
    /// Its name.
    pub worker_id: String,
    /// The process that will hold the leases.
    pub instance: String,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// How long a lease lasts without renewal.
    pub lease_ttl_ms: i64,
}

/// Hands ready work to waiting workers; cheap to clone. Stops with its last clone.
#[derive(Clone)]
pub struct Dispatcher {
    inner: Arc<Inner>,
    _stop: Arc<DropGuard>,
}

struct Inner {
    operations: Operations,
    granting: Granting,
    board: Mutex<Board>,
    /// Looks at new sights one at a time, so that two waiters do not look twice.
    looking: tokio::sync::Mutex<()>,
}

impl Dispatcher {
    /// Starts to listen; the engine (or the host) has subscribed to the partitions.
    #[must_use]
    pub fn start(operations: Operations, admission: Arc<dyn Admission>, options: DispatcherOptions) -> Self {
        let news = Listener::new(operations.client().host().as_ref());
        let granting = Granting { operations: operations.clone(), admission };
        let inner =
            Arc::new(Inner { operations, granting, board: Mutex::default(), looking: tokio::sync::Mutex::default() });
        let stop = CancellationToken::new();
        tokio::spawn(hear(Arc::clone(&inner), news, options, stop.clone()));
        Self { inner, _stop: Arc::new(stop.drop_guard()) }
    }

    /// Runs an errand to its end, whatever becomes of the caller: leases nobody is there to take are handed back at once.
    async fn run(&self, errand: Errand, profile: &Profile, max: u16, request_id: Uuid) -> Result<Vec<Task>, Error> {
        let (answer, answered) = oneshot::channel();
        let (inner, profile) = (Arc::clone(&self.inner), profile.clone());
        tokio::spawn(async move {
            let claimed = inner.claim_at(&errand, &profile, max, request_id).await;
            match &claimed {
                Ok(claimed) => inner.board().answered(&errand, claimed.next_score),
                Err(_) => inner.board().unanswered(&errand),
            }
            if let Err(Ok(claimed)) = answer.send(claimed) {
                inner.hand_back(claimed.tasks).await;
            }
        });
        match answered.await {
            Ok(claimed) => Ok(claimed?.tasks),
            Err(_) => Err(Error::Host(HostError::Closed)),
        }
    }

    /// Forgets a worker that has left.
    pub fn forget(&self, instance: &str) {
        self.inner.board().forget_worker(instance);
    }

    /// Reserves up to `max` executions for this worker, the best first and admitted; each grant is to be consumed before it
    /// runs out.
    pub async fn grant(&self, profile: &Profile, max: u16, ttl_ms: i64) -> Result<Vec<Grant>, Error> {
        let mut grants = Vec::new();
        let mut full: Vec<String> = Vec::new();
        for (route, lane) in self.inner.heads(profile).await? {
            let left = max - u16::try_from(grants.len()).unwrap_or(max);
            if left == 0 {
                break;
            }
            if full.contains(&lane) {
                continue;
            }
            let grantee = Grantee {
                namespace: profile.namespace.clone(),
                lane: lane.clone(),
                instance: profile.instance.clone(),
                capabilities: profile.capabilities.clone(),
            };
            let issued = self.inner.granting.issue(route, &grantee, left, ttl_ms).await?;
            if issued.room.is_some_and(|room| room.free() <= 0) {
                full.push(lane);
            }
            grants.extend(issued.grants);
        }
        Ok(grants)
    }

    /// Hands an interrupted execution to a chosen worker; refused with `at_capacity` while its lane has no room.
    pub async fn grant_reclaim(&self, call: &GrantReclaim) -> Result<Grant, Error> {
        self.inner.granting.reclaim(call).await
    }

    /// Up to `max` tasks for this worker; waits up to `wait` for the first.
    ///
    /// The request id is kept with the leases: the same id sent to the same partition again answers the same leases.
    pub async fn claim(
        &self,
        profile: &Profile,
        max: u16,
        wait: Duration,
        request_id: Uuid,
    ) -> Result<Vec<Task>, Error> {
        let until = Instant::now() + wait;
        let sights = self.inner.watch(profile).await?;
        loop {
            let Some(errand) = self.inner.next_errand(&profile.instance, &sights, until).await else {
                return Ok(Vec::new());
            };
            let claimed = self.run(errand, profile, max, request_id).await?;
            if !claimed.is_empty() {
                return Ok(claimed);
            }
        }
    }
}

/// A place in the line. A caller that goes away gives it up, and an errand it never read goes to someone else.
struct Place<'a> {
    inner: &'a Inner,
    id: u64,
    errand: oneshot::Receiver<Errand>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut board = self.inner.board();
        board.leave(self.id);
        if let Ok(errand) = self.errand.try_recv() {
            board.unanswered(&errand);
        }
    }
}

impl Inner {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next_errand(&self, worker: &str, sights: &[Sight], until: Instant) -> Option<Errand> {
        let (id, errand) = self.board().wait(worker, sights.to_vec());
        let mut place = Place { inner: self, id, errand };
        tokio::time::timeout_at(until, &mut place.errand).await.ok()?.ok()
    }

    async fn hand_back(&self, tasks: Vec<Task>) {
        for task in tasks {
            if let Err(error) = self.operations.yield_back(task.execution_id, fence_of(&task)).await {
                tracing::debug!(%error, execution = %task.execution_id, "a lease nobody took is left to run out");
            }
        }
    }

    /// Makes sure every sight of the worker is known, and how its partitions stand.
    async fn watch(&self, profile: &Profile) -> Result<Vec<Sight>, Error> {
        let mut capabilities = profile.capabilities.clone();
        capabilities.sort_unstable();
        capabilities.dedup();
        let sights: Vec<Sight> = profile
            .lanes
            .iter()
            .map(|lane| Sight { lane: format!("{}/{lane}", profile.namespace), capabilities: capabilities.clone() })
            .collect();
        if sights.iter().all(|sight| self.board().knows(sight)) {
            return Ok(sights);
        }
        let _one = self.looking.lock().await;
        for sight in &sights {
            if !self.board().knows(sight) {
                // Watched before it is looked at: an announcement in between counts.
                let weight = self.weight_of(sight).await?;
                self.board().watch(sight.clone(), weight);
                let routes = self.operations.client().execution_routes().collect();
                // A look that failed is made again by the next claim.
                self.look(sight, routes).await?;
                self.board().looked(sight);
            }
        }
        Ok(sights)
    }

    /// The lane's share among a worker's lanes; a lane nobody has used yet has the default.
    async fn weight_of(&self, sight: &Sight) -> Result<i64, Error> {
        let (namespace, lane) = sight.lane.split_once('/').unwrap_or(("", &sight.lane));
        match self.operations.lane(namespace, lane).await {
            Ok(entry) => Ok(entry.definition.weight),
            Err(Error::Engine(EngineError::NotFound { .. })) => Ok(1),
            Err(error) => Err(error),
        }
    }

    /// The best head a worker with these capabilities sees of a lane in each of these partitions, and whether some of its work
    /// needs admission; the best partition first.
    async fn heads_of(
        &self,
        namespace: &str,
        lane: &str,
        capabilities: &[String],
        routes: Vec<Route>,
    ) -> Result<Vec<(i64, Route, bool)>, Error> {
        let call = PartitionStats { lane: Some(lane.to_owned()), namespace: Some(namespace.to_owned()) };
        let call = &call;
        let mut pages = stream::iter(routes)
            .map(|route| async move { (route, self.operations.client().call(route, call).await) })
            .buffer_unordered(AT_ONCE);
        let mut heads = Vec::new();
        while let Some((route, stats)) = pages.next().await {
            let PartitionStatsReply::Stats { lanes, .. } = stats?;
            let seen = lanes.iter().filter_map(|counts| head_seen(counts, capabilities));
            heads.extend(seen.map(|(score, admission)| (score, route, admission)));
        }
        heads.sort_unstable();
        Ok(heads)
    }

    /// Where work this worker covers waits, the best head first.
    async fn heads(&self, profile: &Profile) -> Result<Vec<(Route, String)>, Error> {
        let mut heads: Vec<(i64, Route, String)> = Vec::new();
        for lane in &profile.lanes {
            let routes = self.operations.client().execution_routes().collect();
            let seen = self.heads_of(&profile.namespace, lane, &profile.capabilities, routes).await?;
            heads.extend(seen.into_iter().map(|(score, route, _)| (score, route, lane.clone())));
        }
        heads.sort_unstable();
        Ok(heads.into_iter().map(|(_, route, lane)| (route, lane)).collect())
    }

    /// Reads the heads of a sight in these partitions.
    async fn look(&self, sight: &Sight, routes: Vec<Route>) -> Result<(), Error> {
        let (namespace, lane) = sight.lane.split_once('/').unwrap_or(("", &sight.lane));
        let heads = self.heads_of(namespace, lane, &sight.capabilities, routes).await?;
        let mut board = self.board();
        // The best first: whoever waits already is sent there.
        for (score, route, admission) in heads {
            if let Route::Execution(partition) = route {
                board.ready(sight, partition, score, admission);
            }
        }
        Ok(())
    }

    async fn claim_at(&self, errand: &Errand, profile: &Profile, max: u16, request_id: Uuid) -> Result<Claimed, Error> {
        let route = Route::Execution(errand.partition);
        let (_, lane) = errand.sight.lane.split_once('/').unwrap_or(("", &errand.sight.lane));
        let who = Claimant {
            namespace: profile.namespace.clone(),
            lane: lane.to_owned(),
            worker_id: profile.worker_id.clone(),
            instance: profile.instance.clone(),
            capabilities: errand.sight.capabilities.clone(),
            lease_ttl_ms: profile.lease_ttl_ms,
        };
        let plain = self.operations.claim(route, &who, max.min(64), request_id).await?;
        if plain.admission_needed {
            return self.claim_granted(errand, &who, max.min(64), request_id).await;
        }
        if !plain.tasks.is_empty() {
            self.board().forget_room(&errand.sight.lane);
        }
        if !errand.admission {
            return Ok(plain);
        }
        if !plain.tasks.is_empty() {
            // What needs admission is still there.
            return Ok(Claimed { next_score: plain.next_score.or(Some(i64::MAX)), ..plain });
        }
        self.claim_granted(errand, &who, max.min(64), request_id).await
    }

    /// Reserves, admits, then claims: the way of work in limited lanes, with quotas or with budgets.
    async fn claim_granted(
        &self,
        errand: &Errand,
        who: &Claimant,
        max: u16,
        request_id: Uuid,
    ) -> Result<Claimed, Error> {
        let route = Route::Execution(errand.partition);
        // No more is reserved than there is room for, and one while that is not known.
        let room = errand.room.map_or(1, |room| u16::try_from(room.max(1)).unwrap_or(u16::MAX));
        let max = if errand.admission && errand.room.is_none() { max } else { max.min(room) };
        let grantee = Grantee {
            namespace: who.namespace.clone(),
            lane: who.lane.clone(),
            instance: who.instance.clone(),
            capabilities: who.capabilities.clone(),
        };
        let issued = self.granting.issue(route, &grantee, max, GRANT_TTL_MS).await?;
        if let Some(room) = issued.room {
            self.board().told_room(errand, room.free());
        }
        let consumed: Vec<_> = stream::iter(issued.grants)
            .map(|grant| async move { self.consume(route, who, &grant, request_id).await })
            .buffered(AT_ONCE)
            .collect()
            .await;
        let (mut tasks, mut failed) = (Vec::new(), None);
        for outcome in consumed {
            match outcome {
                Ok(task) => tasks.extend(task),
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            if tasks.is_empty() {
                return Err(error);
            }
            // What has been leased is handed out; a grant that could not be consumed runs out.
            tracing::warn!(%error, lane = who.lane, "a grant is left to run out");
        }
        Ok(Claimed { tasks, next_score: issued.next_score, ..Claimed::default() })
    }

    async fn consume(
        &self,
        route: Route,
        who: &Claimant,
        grant: &Grant,
        request_id: Uuid,
    ) -> Result<Option<Task>, Error> {
        let call = ConsumeGrant {
            attempt_id: AttemptId::mint(),
            capabilities: who.capabilities.clone(),
            execution_id: grant.execution_id,
            grant_id: grant.grant_id,
            instance: who.instance.clone(),
            lease_id: LeaseId::mint(),
            lease_ttl_ms: who.lease_ttl_ms,
            request_id,
            worker_id: who.worker_id.clone(),
        };
        match self.operations.client().call(route, &call).await {
            Ok(ConsumeGrantReply::Claimed { task } | ConsumeGrantReply::Replayed { task }) => Ok(Some(task)),
            Err(Error::Engine(refused)) => {
                // Cancelled or changed between grant and claim: nothing to run.
                tracing::debug!(error = %refused, execution = %grant.execution_id, "a grant could not be used");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// The best head among the queues a worker with these capabilities covers, and whether one of them needs admission.
fn head_seen(counts: &LaneCounts, capabilities: &[String]) -> Option<(i64, bool)> {
    let seen: Vec<(i64, bool)> = counts
        .queues
        .iter()
        .filter(|queue| queue.requires.iter().all(|token| capabilities.contains(token)))
        .filter_map(|queue| queue.head_score.map(|score| (score, queue.admission)))
        .collect();
    let score = seen.iter().map(|(score, _)| *score).min()?;
    Some((score, seen.iter().any(|(_, admission)| *admission)))
}

async fn hear(inner: Arc<Inner>, mut news: Listener, options: DispatcherOptions, stop: CancellationToken) {
    let mut sweep = tokio::time::interval(options.sweep_every);
    sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    sweep.reset();
    let mut turn = 0_usize;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            heard = news.next() => match heard {
                Some(heard) => for item in heard { inner.hear_one(item).await },
                None => return,
            },
            _ = sweep.tick() => {
                turn = turn.wrapping_add(1);
                let routes: Vec<Route> = inner.operations.client().execution_routes().collect();
                let route = routes[turn % routes.len()];
                inner.look_again(vec![route]).await;
                inner.board().doubt_room();
                inner.refresh_weight(turn).await;
            }
        }
    }
}

impl Inner {
    async fn hear_one(&self, item: News) {
        match item {
            News::Said(Route::Execution(partition), Wake::Ready { lane, queue, score }) => {
                let mut board = self.board();
                // Scores are integers below 2^53, so the conversion is exact.
                #[expect(clippy::cast_possible_truncation, reason = "a score is an integer below 2^53")]
                let score = score as i64;
                for sight in board.sights_of(&lane) {
                    board.ready(&sight, partition, score, queue.starts_with("admit."));
                }
            }
            News::Said(_, Wake::Slot { set, free }) => {
                if let Some(lane) = lane_of_set(&set) {
                    self.board().has_room(lane, free);
                }
            }
            News::Said(..) => {}
            News::Lost(routes) => {
                if routes.iter().any(|route| matches!(route, Route::Quota(_))) {
                    self.board().doubt_room();
                }
                self.look_again(routes).await;
            }
            News::LostAny => {
                self.board().doubt_room();
                self.look_again(self.operations.client().execution_routes().collect()).await;
            }
        }
    }

    /// Lanes change seldom: one is read again at each sweep.
    async fn refresh_weight(&self, turn: usize) {
        let sights = self.board().all_sights();
        if sights.is_empty() {
            return;
        }
        let sight = &sights[turn % sights.len()];
        match self.weight_of(sight).await {
            Ok(weight) => self.board().set_weight(&sight.lane, weight),
            Err(error) => tracing::debug!(%error, lane = sight.lane, "the lane's weight stays as it was"),
        }
    }

    async fn look_again(&self, routes: Vec<Route>) {
        let routes: Vec<Route> = routes.into_iter().filter(|route| matches!(route, Route::Execution(_))).collect();
        let sights = self.board().all_sights();
        for sight in sights {
            while let Err(error) = self.look(&sight, routes.clone()).await {
                tracing::warn!(%error, "ready work could not be looked up");
                tokio::time::sleep(AFTER_FAILURE).await;
                if !error.is_retryable() {
                    break;
                }
            }
        }
    }
}
