//! The loop around the choice: hears announcements, sends waiting workers to claim, admits what needs it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_core::EngineError;
use ff_core::types::{AttemptId, LeaseId};
use ff_engine::news::{Listener, News};
use ff_engine::operations::Claimant;
use ff_engine::{Claimed, Operations, fence_of};
use ff_script::generated::{
    BlockExecution, ConsumeGrant, ConsumeGrantReply, Grant, IssueGrants, IssueGrantsReply, LaneCounts, PartitionStats,
    PartitionStatsReply, ReleaseGrant, Task,
};
use ff_script::{Error, HostError, Route, Wake};
use futures::stream::{self, StreamExt};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use crate::admission::{Admission, Admitted};
use crate::board::{Board, Errand, Sight};

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
    admission: Arc<dyn Admission>,
    board: Mutex<Board>,
    /// Looks at new sights one at a time, so that two waiters do not look twice.
    looking: tokio::sync::Mutex<()>,
}

impl Dispatcher {
    /// Starts to listen; the engine (or the host) has subscribed to the partitions.
    #[must_use]
    pub fn start(operations: Operations, admission: Arc<dyn Admission>, options: DispatcherOptions) -> Self {
        let news = Listener::new(operations.client().host().as_ref());
        let inner =
            Arc::new(Inner { operations, admission, board: Mutex::default(), looking: tokio::sync::Mutex::default() });
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
                self.look(sight, routes).await?;
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

    /// Reads the heads of a sight in these partitions.
    async fn look(&self, sight: &Sight, routes: Vec<Route>) -> Result<(), Error> {
        let (namespace, lane) = sight.lane.split_once('/').unwrap_or(("", &sight.lane));
        let call = PartitionStats { lane: Some(lane.to_owned()), namespace: Some(namespace.to_owned()) };
        let call = &call;
        let mut pages = stream::iter(routes)
            .map(|route| async move { (route, self.operations.client().call(route, call).await) })
            .buffer_unordered(AT_ONCE);
        let mut heads = Vec::new();
        while let Some((route, stats)) = pages.next().await {
            let PartitionStatsReply::Stats { lanes, .. } = stats?;
            for counts in lanes {
                if let (Route::Execution(partition), Some((score, admission))) =
                    (route, head_seen(&counts, &sight.capabilities))
                {
                    heads.push((score, partition, admission));
                }
            }
        }
        let mut board = self.board();
        // The best first: whoever waits already is sent there.
        heads.sort_unstable();
        for (score, partition, admission) in heads {
            board.ready(sight, partition, score, admission);
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
        if !errand.admission {
            return Ok(plain);
        }
        if !plain.tasks.is_empty() {
            // What needs admission is still there.
            return Ok(Claimed { next_score: plain.next_score.or(Some(i64::MAX)), ..plain });
        }
        self.claim_admitted(route, &who, max.min(64), request_id).await
    }

    /// Reserves, admits, then claims: the way of work with quotas or budgets.
    async fn claim_admitted(&self, route: Route, who: &Claimant, max: u16, request_id: Uuid) -> Result<Claimed, Error> {
        let call = IssueGrants {
            capabilities: who.capabilities.clone(),
            grant_ids: (0..max).map(|_| Uuid::now_v7()).collect(),
            instance: who.instance.clone(),
            lane: who.lane.clone(),
            max: i64::from(max),
            namespace: who.namespace.clone(),
            ttl_ms: GRANT_TTL_MS,
        };
        let client = self.operations.client();
        let (grants, next_score) = match client.call(route, &call).await? {
            IssueGrantsReply::Granted { grants, next_score } => (grants, next_score),
            IssueGrantsReply::Paused { .. } => return Ok(Claimed::default()),
        };
        let mut tasks = Vec::new();
        for grant in grants {
            match self.admission.admit(&grant).await {
                Ok(Admitted::Yes) => tasks.extend(self.consume(route, who, &grant, request_id).await?),
                Ok(Admitted::No { reason, detail }) => {
                    let call =
                        BlockExecution { detail, execution_id: grant.execution_id, grant_id: grant.grant_id, reason };
                    client.call(route, &call).await?;
                }
                Err(error) => {
                    tracing::warn!(%error, execution = %grant.execution_id, "admission failed; the grant is given back");
                    let call = ReleaseGrant { execution_id: grant.execution_id, grant_id: grant.grant_id };
                    client.call(route, &call).await?;
                }
            }
        }
        Ok(Claimed { tasks, next_score })
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
            News::Said(..) => {}
            News::Lost(routes) => self.look_again(routes).await,
            News::LostAny => self.look_again(self.operations.client().execution_routes().collect()).await,
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
