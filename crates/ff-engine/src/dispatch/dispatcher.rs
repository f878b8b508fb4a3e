//! The loop around the choice: hears announcements, sends waiting workers to claim, admits what needs it.

mod along;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::news::{Listener, News};
use crate::operations::{Claimant, LeaseRequest, lane_of_set};
use crate::{Claimed, Operations, fence_of};
use ff_core::EngineError;
use ff_core::types::{AttemptId, LeaseId};
use ff_script::generated::{
    ConsumeGrant, ConsumeGrantReply, Grant, GrantReclaim, LaneCounts, PartitionStats, PartitionStatsReply, Task,
};
use ff_script::{Error, HostError, Kinds, QueueName, Route, Wake};
use futures::future::join_all;
use futures::stream::{self, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use crate::dispatch::admission::Admission;
use crate::dispatch::board::{Board, Errand, Sent, Sight, Wish};
use crate::dispatch::granting::{Grantee, Granting};

const AT_ONCE: usize = 32;
/// The most one call of the library takes.
const BATCH: u16 = 64;
/// What the inputs and passed results of one claim's tasks come to at most; one task is always handed out.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many partitions one claim asks at once.
const SPREAD: usize = 8;
/// How much is taken from a partition with a backlog before another one is asked. Few large claims cost less than many small ones.
const DEEP_SHARE: u16 = 32;
/// How long what was claimed first waits for more.
const GATHER: Duration = Duration::from_millis(5);
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
    /// The kinds it takes; `None` is all.
    pub kinds: Option<Kinds>,
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
    /// Answered by the loop once everything that has arrived is on the board.
    settle: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

impl Dispatcher {
    /// Starts to listen; the engine (or the host) has subscribed to the partitions.
    #[must_use]
    pub fn start(operations: Operations, admission: Arc<dyn Admission>, options: DispatcherOptions) -> Self {
        let news = Listener::new(operations.client().host().as_ref());
        let (settle, settling) = mpsc::unbounded_channel();
        let granting = Granting { operations: operations.clone(), admission };
        let board = Mutex::new(Board::new(operations.client().admits_in_claims()));
        let looking = tokio::sync::Mutex::default();
        let inner = Arc::new(Inner { operations, granting, board, looking, settle });
        let stop = CancellationToken::new();
        tokio::spawn(hear(Arc::clone(&inner), news, settling, options, stop.clone()));
        Self { inner, _stop: Arc::new(stop.drop_guard()) }
    }

    /// Runs an errand to its end, whatever becomes of the caller: leases nobody is there to take are handed back at once.
    async fn run(&self, errand: Errand, profile: &Profile, max: u16, request_id: Uuid) -> Result<Held, Error> {
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
            Ok(claimed) => Ok(Held { inner: Arc::clone(&self.inner), tasks: claimed?.tasks }),
            Err(_) => Err(Error::Host(HostError::Closed)),
        }
    }

    /// Keeps leases on their way to a worker: dropped before they are taken, they are handed back.
    #[must_use]
    pub fn hold(&self, tasks: Vec<Task>) -> Held {
        Held { inner: Arc::clone(&self.inner), tasks }
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
                kinds: profile.kinds.clone(),
            };
            let issued = self.inner.granting.issue(route, &grantee, left, ttl_ms, None).await?;
            if issued.room.is_some_and(|room| room.free() <= 0) {
                full.push(lane);
            }
            grants.extend(self.inner.granting.hand_on(route, issued.grants).await);
        }
        Ok(grants)
    }

    /// Hands an interrupted execution to a chosen worker; refused with `at_capacity` while its lane has no room.
    pub async fn grant_reclaim(&self, call: &GrantReclaim) -> Result<Grant, Error> {
        self.inner.granting.reclaim(call).await
    }

    /// Up to `max` tasks for this worker; waits up to `wait` for the first.
    ///
    /// Without a wait it still finds everything announced before the call. The request id is kept with the leases: the same id
    /// sent to the same partition again answers the same leases, so a claim visits no partition twice that gave it some.
    pub async fn claim(
        &self,
        profile: &Profile,
        max: u16,
        wait: Duration,
        request_id: Uuid,
    ) -> Result<Vec<Task>, Error> {
        let until = Instant::now() + wait;
        let sights = self.inner.watch(profile).await?;
        let mut held = Held { inner: Arc::clone(&self.inner), tasks: Vec::new() };
        let mut visited: BTreeSet<u16> = BTreeSet::new();
        let mut gather_until = None;
        loop {
            let left = max.saturating_sub(u16::try_from(held.tasks.len()).unwrap_or(u16::MAX));
            let full = held.tasks.iter().map(weight_of).sum::<usize>() >= BYTES_MAX;
            if left == 0 || full || gather_until.is_some_and(|end| Instant::now() >= end) {
                return Ok(held.take_what_fits());
            }
            let mut errands = Vec::new();
            if held.tasks.is_empty() {
                match self.inner.next_errand(profile, request_id, &sights, wait, until).await {
                    Some(Sent::To(errand)) => errands.push(errand),
                    Some(Sent::Met(errand, mut tasks)) => {
                        visited.insert(errand.partition);
                        held.tasks.append(&mut tasks);
                        continue;
                    }
                    None => return Ok(Vec::new()),
                }
            }
            self.inner.more_errands(&profile.instance, &sights, left, &mut visited, &mut errands);
            if errands.is_empty() {
                return Ok(held.take_what_fits());
            }
            let shares = shares(left, &errands);
            let runs = errands.into_iter().zip(shares).map(|(errand, share)| {
                visited.insert(errand.partition);
                self.run(errand, profile, share, request_id)
            });
            let mut failure = None;
            for ran in join_all(runs.collect::<Vec<_>>()).await {
                match ran {
                    Ok(mut more) => held.tasks.append(&mut more.tasks),
                    Err(error) => failure = Some(error),
                }
            }
            match failure {
                Some(error) if held.tasks.is_empty() => return Err(error),
                Some(_) => return Ok(held.take_what_fits()),
                // Nothing was there any more: the same places may be asked again.
                None if held.tasks.is_empty() => visited.clear(),
                None => {
                    gather_until.get_or_insert_with(|| Instant::now() + GATHER);
                }
            }
        }
    }
}

/// `max` as evenly as it goes, each share within what one call takes.
fn shares(max: u16, errands: &[Errand]) -> Vec<u16> {
    let mut left = max;
    let mut shares = Vec::with_capacity(errands.len());
    for (at, errand) in errands.iter().enumerate() {
        let others = u16::try_from(errands.len() - at).unwrap_or(u16::MAX);
        let share = if errand.deep { DEEP_SHARE.min(left) } else { left.div_ceil(others) };
        shares.push(share.clamp(1, BATCH));
        left = left.saturating_sub(share);
    }
    shares
}

/// Leases on their way to a worker; dropped before they are taken, they are handed back.
pub struct Held {
    inner: Arc<Inner>,
    tasks: Vec<Task>,
}

/// The bytes of a task that its submitter and its upstreams decide about.
fn weight_of(task: &Task) -> usize {
    let passed = task.passed.iter().flat_map(|passed| passed.values());
    task.input.0.len() + passed.filter_map(|one| one.value.as_ref()).map(|value| value.0.len()).sum::<usize>()
}

impl Held {
    /// The worker has them now.
    #[must_use]
    pub fn take(mut self) -> Vec<Task> {
        std::mem::take(&mut self.tasks)
    }

    /// The first task, and those after it as long as all together are within [`BYTES_MAX`]; the rest is handed back.
    fn take_what_fits(mut self) -> Vec<Task> {
        let (mut bytes, mut fits) = (0, 0);
        for task in &self.tasks {
            bytes += weight_of(task);
            if fits > 0 && bytes > BYTES_MAX {
                break;
            }
            fits += 1;
        }
        let rest = self.tasks.split_off(fits);
        std::mem::replace(&mut self.tasks, rest)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        // Without a runtime the process is going down, and the leases run out by themselves.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (inner, tasks) = (Arc::clone(&self.inner), std::mem::take(&mut self.tasks));
            runtime.spawn(async move { inner.hand_back(tasks).await });
        }
    }
}

/// A place in the line. A caller that goes away gives it up, and an errand it never read goes to someone else.
struct Place<'a> {
    inner: &'a Arc<Inner>,
    id: u64,
    sent: oneshot::Receiver<Sent>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut board = self.inner.board();
        board.leave(self.id);
        match self.sent.try_recv() {
            Ok(Sent::To(errand)) => board.unanswered(&errand),
            // Dropped, they are handed back.
            Ok(Sent::Met(_, tasks)) => drop(Held { inner: Arc::clone(self.inner), tasks }),
            Err(_) => {}
        }
    }
}

impl Inner {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next errand, at the latest at `until`. Without a wait everything announced so far is taken in first.
    async fn next_errand(
        self: &Arc<Self>,
        profile: &Profile,
        request_id: Uuid,
        sights: &[Sight],
        wait: Duration,
        until: Instant,
    ) -> Option<Sent> {
        let worker = &profile.instance;
        if wait.is_zero() {
            if let Some(errand) = self.board().take(worker, sights) {
                return Some(Sent::To(errand));
            }
            if let Err(error) = self.operations.client().host().hear_out().await {
                tracing::debug!(%error, "announcements on their way are not waited for");
            }
            let (done, settled) = oneshot::channel();
            if self.settle.send(done).is_ok() {
                // The loop ends with the last dispatcher only, and this one is still there.
                let _ = settled.await;
            }
            return self.board().take(worker, sights).map(Sent::To);
        }
        let wish = Wish { profile: profile.clone(), request_id };
        let (id, sent) = self.board().wait(worker, sights.to_vec(), Some(wish));
        let mut place = Place { inner: self, id, sent };
        tokio::time::timeout_at(until, &mut place.sent).await.ok()?.ok()
    }

    /// Adds errands that are there right now, as long as those before them may not fill `max` slots; none to a partition that was
    /// visited.
    fn more_errands(
        &self,
        worker: &str,
        sights: &[Sight],
        max: u16,
        visited: &mut BTreeSet<u16>,
        errands: &mut Vec<Errand>,
    ) {
        let mut board = self.board();
        let fills =
            |errands: &[Errand]| -> u16 { errands.iter().map(|errand| if errand.deep { DEEP_SHARE } else { 1 }).sum() };
        while errands.len() < SPREAD && fills(errands) < max {
            let Some(errand) = board.take(worker, sights) else { return };
            // Two lanes may lead to one partition, and the request id is good for one claim there.
            if visited.contains(&errand.partition) || errands.iter().any(|other| other.partition == errand.partition) {
                return board.put_back(&errand);
            }
            errands.push(errand);
        }
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
            .map(|lane| Sight {
                lane: format!("{}/{lane}", profile.namespace),
                capabilities: capabilities.clone(),
                kinds: profile.kinds.clone(),
            })
            .collect();
        if sights.iter().all(|sight| self.board().knows(sight)) {
            return Ok(sights);
        }
        // Watched before it is looked at: an announcement in between counts.
        for sight in &sights {
            self.board().watch(sight.clone());
        }
        let _one = self.looking.lock().await;
        let lanes: BTreeSet<&String> = sights.iter().map(|sight| &sight.lane).collect();
        for lane in lanes {
            // Everyone who came while another looked is served by one look.
            let fresh: Vec<Sight> = self.board().unknown(lane);
            if fresh.is_empty() {
                continue;
            }
            let weight = self.weight_of(lane).await?;
            self.board().set_weight(lane, weight);
            let routes = self.operations.client().execution_routes().collect();
            self.look(lane, &fresh, routes).await?;
            self.board().known(&fresh);
        }
        Ok(sights)
    }

    /// The lane's share among a worker's lanes; a lane nobody has used yet has the default.
    async fn weight_of(&self, lane: &str) -> Result<i64, Error> {
        let (namespace, lane) = lane.split_once('/').unwrap_or(("", lane));
        match self.operations.lane(namespace, lane).await {
            Ok(entry) => Ok(entry.definition.weight),
            Err(Error::Engine(EngineError::NotFound { .. })) => Ok(1),
            Err(error) => Err(error),
        }
    }

    /// The counts of a lane in these partitions; what its queues require is learned on the way.
    async fn counts_of(&self, lane: &str, routes: Vec<Route>) -> Result<Vec<(u16, LaneCounts)>, Error> {
        let (namespace, name) = lane.split_once('/').unwrap_or(("", lane));
        let call = PartitionStats { lane: Some(name.to_owned()), namespace: Some(namespace.to_owned()), offset: None };
        let call = &call;
        let mut pages = stream::iter(routes)
            .map(|route| async move { (route, self.operations.client().call(route, call).await) })
            .buffer_unordered(AT_ONCE);
        let mut found = Vec::new();
        while let Some((route, stats)) = pages.next().await {
            let PartitionStatsReply::Stats { lanes, .. } = stats?;
            let Route::Execution(partition) = route else { continue };
            for counts in lanes {
                self.board().learn(counts.queues.iter().map(|queue| (queue.queue.as_str(), queue.requires.as_slice())));
                found.push((partition, counts));
            }
        }
        Ok(found)
    }

    /// Where work this worker covers waits, the best head first.
    async fn heads(&self, profile: &Profile) -> Result<Vec<(Route, String)>, Error> {
        let mut heads: Vec<(i64, Route, String)> = Vec::new();
        for lane in &profile.lanes {
            let routes = self.operations.client().execution_routes().collect();
            let path = format!("{}/{lane}", profile.namespace);
            for (partition, counts) in self.counts_of(&path, routes).await? {
                if let Some((score, _)) = head_seen(&counts, &profile.capabilities, profile.kinds.as_ref()) {
                    heads.push((score, Route::Execution(partition), lane.clone()));
                }
            }
        }
        heads.sort_unstable();
        Ok(heads.into_iter().map(|(_, route, lane)| (route, lane)).collect())
    }

    /// Reads the heads of a lane in these partitions, once for all these sights of it.
    async fn look(&self, lane: &str, sights: &[Sight], routes: Vec<Route>) -> Result<(), Error> {
        let mut heads = Vec::new();
        for (partition, counts) in self.counts_of(lane, routes).await? {
            for (index, sight) in sights.iter().enumerate() {
                if let Some((score, admission)) = head_seen(&counts, &sight.capabilities, sight.kinds.as_ref()) {
                    heads.push((score, partition, admission, index));
                }
            }
        }
        // The best first: whoever waits already is sent there.
        heads.sort_unstable();
        let mut board = self.board();
        for (score, partition, admission, index) in heads {
            board.ready(&sights[index], partition, score, admission);
        }
        Ok(())
    }

    async fn claim_at(&self, errand: &Errand, profile: &Profile, max: u16, request_id: Uuid) -> Result<Claimed, Error> {
        let route = Route::Execution(errand.partition);
        let who = claimant(errand, profile);
        // Grants reach all of a lane's work in the order of its scores, and what needs no admission too.
        let by_grants = errand.needs_grants();
        if by_grants && let Some(claimed) = self.claim_granted(errand, &who, max.min(BATCH), request_id).await? {
            return Ok(claimed);
        }
        let plain = self.operations.claim(route, &who, max.min(BATCH), request_id).await?;
        if plain.admission_needed && !by_grants {
            let claimed = self.claim_granted(errand, &who, max.min(BATCH), request_id).await?;
            return Ok(claimed.unwrap_or_default());
        }
        Ok(plain)
    }

    /// Reserves, admits, then claims: the way of work in limited lanes, with quotas or with budgets. Answers nothing when
    /// nothing waits.
    async fn claim_granted(
        &self,
        errand: &Errand,
        who: &Claimant,
        max: u16,
        request_id: Uuid,
    ) -> Result<Option<Claimed>, Error> {
        let route = Route::Execution(errand.partition);
        // No more is reserved than there is room for, and one while that is not known.
        let room = errand.room.map_or(1, |room| u16::try_from(room.max(1)).unwrap_or(u16::MAX));
        let max = if errand.admission && errand.room.is_none() { max } else { max.min(room) };
        let grantee = Grantee {
            namespace: who.namespace.clone(),
            lane: who.lane.clone(),
            instance: who.instance.clone(),
            capabilities: who.capabilities.clone(),
            kinds: who.kinds.clone(),
        };
        let issued = self.granting.issue(route, &grantee, max, GRANT_TTL_MS, Some(request_id)).await?;
        if !issued.replayed.is_empty() {
            return Ok(Some(Claimed { tasks: issued.replayed, next_score: Some(i64::MIN), ..Claimed::default() }));
        }
        if issued.nothing {
            return Ok(None);
        }
        match issued.room {
            Some(room) => self.board().told_room(errand, room.free()),
            None if !issued.grants.is_empty() => self.board().forget_room(&errand.sight.lane),
            None => {}
        }
        let tasks = self.consume(route, who, issued.grants, request_id).await?;
        Ok(Some(Claimed { tasks, next_score: issued.next_score, ..Claimed::default() }))
    }

    /// Turns grants into leases. One that cannot be used is left alone: it runs out, or has ended already.
    async fn consume(
        &self,
        route: Route,
        who: &Claimant,
        grants: Vec<Grant>,
        request_id: Uuid,
    ) -> Result<Vec<Task>, Error> {
        let lease_ids = LeaseRequest(request_id).ids(route, &who.lane, u16::try_from(grants.len()).unwrap_or(BATCH));
        let one = |(grant, lease_id): (Grant, LeaseId)| ConsumeGrant {
            attempt_id: AttemptId::mint(),
            capabilities: who.capabilities.clone(),
            kinds: who.kinds.as_ref().map(Kinds::packed),
            execution_id: grant.execution_id,
            grant_id: grant.grant_id,
            instance: who.instance.clone(),
            keep: grant.keep,
            lease_id,
            lease_ttl_ms: who.lease_ttl_ms,
            worker_id: who.worker_id.clone(),
        };
        let calls: Vec<_> = grants.into_iter().zip(lease_ids).map(|grant| (route, one(grant))).collect();
        let replies = self.operations.client().call_all(&calls).await;
        let mut tasks = Vec::new();
        let mut failed = None;
        for ((_, call), reply) in calls.iter().zip(replies) {
            match reply {
                Ok(ConsumeGrantReply::Claimed { task } | ConsumeGrantReply::Replayed { task }) => tasks.push(task),
                // Cancelled or changed between grant and claim: nothing to run.
                Err(Error::Engine(error)) => {
                    tracing::debug!(%error, execution = %call.execution_id, "a grant could not be used");
                }
                Err(error) => failed = Some(error),
            }
        }
        // What was started is handed out, whatever became of the others.
        match failed {
            Some(error) if tasks.is_empty() => Err(error),
            _ => Ok(tasks),
        }
    }
}

/// The worker as it claims on an errand.
fn claimant(errand: &Errand, profile: &Profile) -> Claimant {
    let (_, lane) = errand.sight.lane.split_once('/').unwrap_or(("", &errand.sight.lane));
    Claimant {
        namespace: profile.namespace.clone(),
        lane: lane.to_owned(),
        worker_id: profile.worker_id.clone(),
        instance: profile.instance.clone(),
        capabilities: errand.sight.capabilities.clone(),
        kinds: errand.sight.kinds.clone(),
        lease_ttl_ms: profile.lease_ttl_ms,
    }
}

/// The best head among the queues a worker with these capabilities and kinds covers, and whether one of them needs admission.
fn head_seen(counts: &LaneCounts, capabilities: &[String], kinds: Option<&Kinds>) -> Option<(i64, bool)> {
    let seen: Vec<(i64, bool)> = counts
        .queues
        .iter()
        .filter(|queue| kinds.is_none_or(|kinds| kinds.contains(&queue.kind)))
        .filter(|queue| queue.requires.iter().all(|token| capabilities.contains(token)))
        .filter_map(|queue| queue.head_score.map(|score| (score, queue.admission)))
        .collect();
    let score = seen.iter().map(|(score, _)| *score).min()?;
    Some((score, seen.iter().any(|(_, admission)| *admission)))
}

async fn hear(
    inner: Arc<Inner>,
    mut news: Listener,
    mut settling: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
    options: DispatcherOptions,
    stop: CancellationToken,
) {
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
            // After the news, so that what has arrived is on the board.
            Some(done) = settling.recv() => {
                let _ = done.send(());
            }
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
                // Scores are integers below 2^53, so the conversion is exact.
                #[expect(clippy::cast_possible_truncation, reason = "a score is an integer below 2^53")]
                let score = score as i64;
                if self.board().announced(&lane, &queue, partition, score) {
                    return;
                }
                // A requirement set not met before: one look tells who covers it.
                let sights = self.board().sights_of(&lane);
                if let Err(error) = self.look(&lane, &sights, vec![Route::Execution(partition)]).await {
                    tracing::debug!(%error, lane, queue, "who covers new work could not be looked up: all are sent");
                    let mut board = self.board();
                    for sight in sights {
                        board.ready(&sight, partition, score, QueueName::of(&queue).needs_admission());
                    }
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
        match self.weight_of(&sight.lane).await {
            Ok(weight) => self.board().set_weight(&sight.lane, weight),
            Err(error) => tracing::debug!(%error, lane = sight.lane, "the lane's weight stays as it was"),
        }
    }

    async fn look_again(&self, routes: Vec<Route>) {
        let routes: Vec<Route> = routes.into_iter().filter(|route| matches!(route, Route::Execution(_))).collect();
        let lanes: BTreeSet<String> = self.board().all_sights().into_iter().map(|sight| sight.lane).collect();
        for lane in lanes {
            let sights = self.board().sights_of(&lane);
            while let Err(error) = self.look(&lane, &sights, routes.clone()).await {
                tracing::warn!(%error, "ready work could not be looked up");
                tokio::time::sleep(AFTER_FAILURE).await;
                if !error.is_retryable() {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_fit_into_a_call() {
        let errands = |deep: &[bool]| -> Vec<Errand> { deep.iter().map(|deep| Errand::to("a/b", 0, *deep)).collect() };
        for (max, deep, expected) in [
            (1, &[false][..], vec![1]),
            (10, &[false; 3], vec![4, 3, 3]),
            (64, &[false], vec![64]),
            (256, &[false; 2], vec![64, 64]),
            (3, &[false; 3], vec![1, 1, 1]),
            (64, &[true, true], vec![32, 32]),
            (40, &[true, false], vec![32, 8]),
            (20, &[true], vec![20]),
        ] {
            assert_eq!(shares(max, &errands(deep)), expected, "{max} in {deep:?}");
        }
    }
}
