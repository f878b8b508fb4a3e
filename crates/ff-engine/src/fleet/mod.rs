//! The workers that talk to this server: who is registered, what each holds, and one batched heartbeat for all.
//!
//! The store has the registrations and the leases. What is kept here only saves asking: a server that starts anew adopts
//! a worker from the store at its first word and looks up its leases before its first claim.

mod claiming;
mod finishing;
mod presence;
mod worker;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_api::Problem;
use ff_core::error::EngineError;
use ff_core::error_code::ErrorCode;
use ff_core::types::{ExecutionId, LeaseId, TimestampMs};
use ff_script::generated::{
    Fence, FindLeases, FindLeasesReply, RegisterWorker, RegisterWorkerReply, RenewLeaseReply, Task,
};
use ff_script::{Error, Route, Wake};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::dispatch::Dispatcher;
use crate::operations::{LeaseRequest, Operations};

pub use claiming::ClaimWish;
pub use finishing::Ends;
pub use presence::Standing;
pub use worker::Worker;

type Answer<T> = Result<T, Problem>;

/// How long a worker whose poll was cut off may stay silent before another incarnation may take its place.
const CUT_OFF: Duration = Duration::from_millis(500);
/// How long the end of a connection may take to be seen.
const BEFORE_ANSWERING: Duration = Duration::from_millis(60);
/// The end of a connection is looked for this often before its instance id is refused to another process: 2 s in all, because a busy
/// machine sees it late.
const LOOKS_BEFORE_REFUSING: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// Within this time every live worker has said something to a server that started anew.
const ADOPTED_AFTER: Duration = Duration::from_secs(12);
const BATCH: usize = 1024;
const AT_ONCE: usize = 32;

/// Every worker of this server.
pub struct Fleet {
    operations: Operations,
    dispatcher: Dispatcher,
    workers: Mutex<HashMap<String, Arc<Worker>>>,
    /// Who holds a lease, so that a finished task frees its worker's slot.
    holders: Mutex<HashMap<LeaseId, Arc<Worker>>>,
    started: Instant,
    times: FleetTimes,
    /// The workers run in this process. They answer for themselves, count their own slots, and nobody answers for them here.
    here: bool,
}

/// How long a fleet waits for its workers.
#[derive(Clone, Copy, Debug)]
pub struct FleetTimes {
    /// A registration counts this long after the worker's last word. The store keeps it as long as the library says.
    pub registered: Duration,
    /// The liveness of all workers is written this often.
    pub beat: Duration,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a worker drains, by where its registration stands.
fn draining(instance: &str, standing: Standing) -> Answer<bool> {
    match standing {
        Standing::Known { draining } => Ok(draining),
        Standing::Unknown => Err(Problem::of_code(ErrorCode::WorkerNotRegistered).about(instance)),
        Standing::Replaced => Err(worker::in_use(instance)),
    }
}

impl Fleet {
    /// A fleet without workers.
    #[must_use]
    pub fn new(operations: Operations, dispatcher: Dispatcher, times: FleetTimes) -> Self {
        Self {
            operations,
            dispatcher,
            workers: Mutex::default(),
            holders: Mutex::default(),
            started: Instant::now(),
            times,
            here: false,
        }
    }

    /// A fleet of workers that run in this process: they answer for themselves, so none of them falls silent here.
    #[must_use]
    pub fn here(operations: Operations, dispatcher: Dispatcher) -> Self {
        let times = FleetTimes { registered: Duration::MAX, beat: Duration::MAX };
        Self { here: true, ..Self::new(operations, dispatcher, times) }
    }

    /// Registers an instance, or replaces what it serves.
    pub async fn register(&self, mut registration: RegisterWorker) -> Answer<(i64, i64)> {
        let known = self.known(&registration.instance);
        if let Some(worker) = &known {
            registration.take_over = worker.gone_for_good(registration.incarnation).await.then_some(true);
        }
        let (instance, incarnation) = (registration.instance.clone(), registration.incarnation);
        let is_gone = async {
            if self.here {
                return Ok(!self.operations.holder_lives(&instance).await?);
            }
            Ok(Self::is_gone(known.as_ref(), incarnation).await || self.is_ghost(&instance, known.as_ref()).await?)
        };
        let registered = self.operations.register_or_take_over(registration.clone(), is_gone).await?;
        let RegisterWorkerReply::Registered { heartbeat_ms, expires_at, .. } = registered;
        match known {
            Some(worker) => worker.replace(&registration),
            None => {
                let worker = Arc::new(Worker::new(&registration, self.times.registered));
                lock(&self.workers).insert(registration.instance.clone(), worker);
            }
        }
        Ok((heartbeat_ms, expires_at))
    }

    /// True when the connection of the instance's last process ended; the end of a process is seen a moment after it.
    async fn is_gone(known: Option<&Arc<Worker>>, newcomer: Option<Uuid>) -> bool {
        let Some(worker) = known else { return false };
        for _ in 0..LOOKS_BEFORE_REFUSING {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            if worker.gone_for_good(newcomer).await {
                return true;
            }
        }
        false
    }

    /// True when nobody answers for a registration that this server does not answer for itself.
    ///
    /// A server that has just started does not know its workers yet: it waits for their next word before it calls one a ghost.
    async fn is_ghost(&self, instance: &str, known: Option<&Arc<Worker>>) -> Result<bool, Error> {
        if known.is_some_and(|worker| worker.is_registered()) || self.started.elapsed() < ADOPTED_AFTER {
            return Ok(false);
        }
        Ok(!self.operations.holder_lives(instance).await?)
    }

    /// Answers for the workers that talk to this server, notes which of them lost their id to another process, and keeps what
    /// operators hand to them, whichever server they were asked at.
    pub async fn hear(&self, wake: Wake) {
        match wake {
            Wake::Challenge { instance, nonce } => self.answer(&instance, nonce).await,
            Wake::Replaced { instance } => self.replaced(&instance).await,
            Wake::Offered { instance, execution_id, grant_id } => {
                if let Some(worker) = self.known(&instance) {
                    worker.grant(execution_id, grant_id);
                }
            }
            _ => {}
        }
    }

    async fn answer(&self, instance: &str, nonce: Uuid) {
        if self.known(instance).is_none() {
            return;
        }
        // The end of a process is seen a moment after it.
        tokio::time::sleep(BEFORE_ANSWERING).await;
        let Some(incarnation) = self.known(instance).and_then(|worker| worker.lives()) else { return };
        self.operations.answer_for(instance, incarnation, nonce).await;
    }

    async fn replaced(&self, instance: &str) {
        let Some(worker) = self.known(instance) else { return };
        match self.operations.worker(instance).await {
            Ok(found) if found.incarnation != worker.incarnation() => {
                tracing::info!(instance, "another process has taken a worker's instance id");
                self.forget(instance);
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, instance, "whether a worker was replaced is not known"),
        }
    }

    fn known(&self, instance: &str) -> Option<Arc<Worker>> {
        lock(&self.workers).get(instance).cloned()
    }

    /// The registered worker, kept alive by being asked for; one this server has not met is adopted from the store.
    pub async fn worker(&self, instance: &str, incarnation: Option<Uuid>) -> Answer<Arc<Worker>> {
        let worker = match self.here {
            // Another process may have registered it since: the store knows.
            true => match self.known(instance).filter(|worker| worker.incarnation() == incarnation) {
                Some(worker) => worker,
                None => self.look_up(instance).await?,
            },
            false => self.meet(instance).await?,
        };
        worker.touch(incarnation)?;
        Ok(worker)
    }

    /// The registered worker, without counting as its word.
    pub async fn meet(&self, instance: &str) -> Answer<Arc<Worker>> {
        if let Some(worker) = self.known(instance).filter(|worker| worker.is_registered()) {
            return Ok(worker);
        }
        let found = self.look_up(instance).await?;
        if self.here {
            return Ok(found);
        }
        let mut workers = lock(&self.workers);
        // One that fell silent here and is alive in the store talks to another server as well: what it holds is looked up anew.
        match workers.get(instance).filter(|worker| worker.is_registered()) {
            Some(worker) => Ok(Arc::clone(worker)),
            None => {
                workers.insert(instance.to_owned(), Arc::clone(&found));
                Ok(found)
            }
        }
    }

    /// The worker as the store has it.
    async fn look_up(&self, instance: &str) -> Answer<Arc<Worker>> {
        let found = self.operations.worker(instance).await.map_err(|error| Problem::from(error).about(instance))?;
        Ok(Arc::new(Worker::adopted(&found, self.times.registered)))
    }

    /// A worker said something. One of this process needs nobody to remember it.
    pub async fn heard(&self, instance: &str, incarnation: Option<Uuid>) -> Answer<Option<Arc<Worker>>> {
        if self.here {
            return Ok(None);
        }
        self.worker(instance, incarnation).await.map(Some)
    }

    /// Says in the store that a worker of this process lives, and returns whether it drains. Workers of others were heard already.
    pub async fn keep_alive(&self, instance: &str, incarnation: Option<Uuid>) -> Answer<bool> {
        let incarnation = incarnation.ok_or_else(|| Problem::invalid("incarnation", "is missing"))?;
        draining(instance, self.operations.keep_alive(instance, incarnation).await?)
    }

    /// Waits until the worker drains, or no longer does, unless it is as `known` says; at most until `over`.
    pub async fn attend(
        &self,
        instance: &str,
        incarnation: Option<Uuid>,
        known: bool,
        over: impl Future<Output = ()>,
    ) -> Answer<bool> {
        if !self.here {
            return self.worker(instance, incarnation).await?.attend(incarnation, known, over).await;
        }
        let incarnation = incarnation.ok_or_else(|| Problem::invalid("incarnation", "is missing"))?;
        tokio::select! {
            standing = self.operations.attend(instance, incarnation, known) => draining(instance, standing),
            () = over => Ok(known),
        }
    }

    /// Before a worker's first claim here: finds the leases it holds, and the tasks this very request already got.
    async fn first_look(&self, worker: &Arc<Worker>, request_id: Uuid) -> Answer<Vec<Task>> {
        let mut looked = worker.looked.lock().await;
        if *looked {
            return Ok(Vec::new());
        }
        let tasks = self.find(worker, request_id, self.operations.client().execution_routes().collect()).await?;
        *looked = true;
        Ok(tasks)
    }

    /// The live tasks of a request in these partitions; every lease seen on the way counts against the slots.
    async fn find(&self, worker: &Arc<Worker>, request_id: Uuid, routes: Vec<Route>) -> Answer<Vec<Task>> {
        let lease_prefix = Some(LeaseRequest(request_id).prefix());
        let call = FindLeases { instance: worker.instance.clone(), lease_prefix };
        let call = &call;
        let found: Vec<FindLeasesReply> = stream::iter(routes)
            .map(|route| async move { self.operations.client().call(route, call).await })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut tasks = Vec::new();
        for FindLeasesReply::Found { leases, tasks: some } in found {
            for lease in leases {
                self.holds(worker, lease.lease_id, lease.lease_expires_at);
            }
            tasks.extend(some);
        }
        Ok(tasks)
    }

    /// The worker holds a lease until this time.
    pub fn holds(&self, worker: &Arc<Worker>, lease: LeaseId, expires_at: i64) {
        if self.here {
            return;
        }
        worker.hold(lease, expires_at);
        lock(&self.holders).insert(lease, Arc::clone(worker));
    }

    /// Renews leases of a worker, in one call per partition; one answer for each, in order.
    pub async fn renew(
        &self,
        worker: Option<&Arc<Worker>>,
        leases: &[(ExecutionId, Fence)],
    ) -> Vec<Answer<RenewLeaseReply>> {
        let replies = self.operations.renew_all(leases).await;
        let noted = leases.iter().zip(replies).map(|((_, fence), reply)| match reply.map_err(Problem::from) {
            Ok(RenewLeaseReply::Renewed { lease_expires_at, cancel_requested, yield_requested }) => {
                if let Some(worker) = worker {
                    self.holds(worker, fence.lease_id, lease_expires_at);
                }
                // A drain is known here before the leases hear of it.
                let yield_requested = yield_requested || worker.is_some_and(|worker| worker.is_draining());
                Ok(RenewLeaseReply::Renewed { lease_expires_at, cancel_requested, yield_requested })
            }
            Err(problem) => {
                if !problem.is_retryable() {
                    self.ended(fence.lease_id);
                }
                Err(problem)
            }
        });
        noted.collect()
    }

    /// The worker that holds a lease, as far as this server knows.
    #[must_use]
    pub fn holder(&self, lease: LeaseId) -> Option<Arc<Worker>> {
        lock(&self.holders).get(&lease).cloned()
    }

    /// A lease has ended, one way or another.
    pub fn ended(&self, lease: LeaseId) {
        if let Some(worker) = lock(&self.holders).remove(&lease) {
            worker.release(lease);
        }
    }

    /// True when the workers run in this process.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.here
    }

    /// Ends a registration; unknown ones have ended already.
    pub async fn deregister(&self, instance: &str, incarnation: Option<Uuid>) -> Answer<()> {
        self.operations.deregister_worker(instance, incarnation, None).await?;
        self.forget(instance);
        Ok(())
    }

    /// An operator ends a registration, whichever process it is.
    pub async fn send_away(&self, instance: &str, actor: &str) -> Answer<()> {
        self.operations.deregister_worker(instance, None, Some(actor)).await?;
        self.forget(instance);
        Ok(())
    }

    /// An operator drains a worker.
    pub fn drain(&self, instance: &str) {
        if let Some(worker) = self.known(instance) {
            worker.set_draining(true);
        }
    }

    fn forget(&self, instance: &str) {
        let worker = lock(&self.workers).remove(instance);
        if let Some(worker) = worker {
            worker.end();
            lock(&self.holders).retain(|_, holder| !Arc::ptr_eq(holder, &worker));
        }
        self.dispatcher.forget(instance);
    }

    /// Writes everyone's liveness every ten seconds, and ends the registrations of those who fell silent.
    pub async fn keep(&self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut next_beat = Instant::now() + self.times.beat;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = tick.tick() => {}
            }
            if let Err(problem) = self.end_silent().await {
                tracing::warn!(code = problem.code(), "a silent worker's registration is left to run out");
            }
            if Instant::now() >= next_beat {
                next_beat = Instant::now() + self.times.beat;
                if let Err(problem) = self.beat().await {
                    tracing::warn!(code = problem.code(), "the workers' liveness could not be written");
                }
            }
        }
    }

    /// One batched heartbeat for the workers heard of since the last one.
    async fn beat(&self) -> Answer<()> {
        let heard: Vec<String> = lock(&self.workers)
            .values()
            .filter(|worker| worker.take_heard())
            .map(|worker| worker.instance.clone())
            .collect();
        for batch in heard.chunks(BATCH) {
            let results = match self.operations.heartbeat(batch.to_vec()).await {
                Ok(results) => results,
                Err(error) => {
                    // Not written: the next beat tries again.
                    batch.iter().filter_map(|instance| self.known(instance)).for_each(|worker| worker.hear());
                    return Err(error.into());
                }
            };
            for result in results {
                let Some(worker) = self.known(&result.instance) else { continue };
                if result.known {
                    worker.set_draining(result.draining);
                } else {
                    // Declared dead, or run out while this server could not write: the worker has to register again.
                    self.forget(&result.instance);
                }
            }
        }
        Ok(())
    }

    async fn end_silent(&self) -> Answer<()> {
        let silent: Vec<Arc<Worker>> =
            lock(&self.workers).values().filter(|worker| !worker.is_registered()).cloned().collect();
        for worker in silent {
            let kept_elsewhere = match self.operations.worker(&worker.instance).await {
                Ok(found) => {
                    let left = found.expires_at - TimestampMs::now().as_millis();
                    // Kept for longer than half its time when its worker fell silent here: another server keeps it.
                    left > i64::try_from(self.times.registered.as_millis() / 2).unwrap_or(i64::MAX)
                }
                Err(Error::Engine(EngineError::NotFound { .. })) => true,
                Err(error) => return Err(error.into()),
            };
            if kept_elsewhere || worker.is_registered() {
                if !worker.is_registered() {
                    self.forget(&worker.instance);
                }
                continue;
            }
            match self.deregister(&worker.instance, worker.incarnation()).await {
                Err(problem) if problem.code() != "instance_in_use" => return Err(problem),
                _ => self.forget(&worker.instance),
            }
        }
        // Leases that ran out free their slots by themselves; their names go with them.
        let now = TimestampMs::now().as_millis();
        lock(&self.holders).retain(|lease, worker| !worker.ran_out(*lease, now));
        Ok(())
    }
}
