//! A connected worker: registered, alive, and able to claim.

use std::borrow::Borrow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ff_api::Ask;
use ff_api::explain::{ExplainExecution, Explanation};
use ff_core::PartitionConfig;
use ff_core::contracts::{ClaimGrant, ReclaimGrant};
use ff_core::types::{ExecutionId, FlowId, LaneId};
use ff_engine::operations::{FlowCursor, FlowFilter};
use ff_engine::{ExecutionFilter, ListCursor};
use ff_script::Kinds;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::admin::FlowFabricAdminClient;
use crate::backend::{Backend, Claim, CompletionBackend, Identity, LeaseRef, Standing, Transport};
use crate::config::{BackendConfig, WorkerConfig};
use crate::error::worth_repeating;
use crate::finish::Finisher;
use crate::lease::Keeper;
use crate::snapshot::{ExecutionPage, ExecutionSnapshot, FlowPage, FlowSnapshot, WorkerSnapshot};
use crate::{ClaimedTask, SdkError};

const HEARTBEAT_RETRY: Duration = Duration::from_secs(1);
/// The most one claim asks for.
const CLAIM_MAX: usize = 256;

/// Whether a worker may claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// It claims.
    Serving,
    /// An operator asked it to take nothing new.
    Draining,
    /// Another process has its instance id.
    Replaced,
    /// It said goodbye.
    Disconnected,
}

pub(crate) struct Shared {
    config: WorkerConfig,
    who: Mutex<Arc<Identity>>,
    pub(crate) backend: Arc<dyn Backend>,
    completion: Option<Arc<dyn CompletionBackend>>,
    partitions: PartitionConfig,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) finisher: Finisher,
    state: watch::Sender<WorkerState>,
    stop: CancellationToken,
    released: AtomicBool,
}

/// A worker process, registered with the engine under its instance id.
///
/// Its registration is renewed while it lives and released by [`FlowFabricWorker::disconnect`] or when it is dropped within a
/// running tokio runtime.
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ff_sdk::testing::TestEngine;
/// let engine = TestEngine::start().await?;
/// let id = engine.submit("greet", br#""you""#).await?;
///
/// let worker = engine.worker("w-1").await?;
/// let task = worker.claim_next().await?.expect("one execution waits");
/// assert_eq!(task.execution_id(), &id);
/// task.complete(Some(b"hello".to_vec())).await?;
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
pub struct FlowFabricWorker {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for FlowFabricWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowFabricWorker")
            .field("who", &self.shared.who())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl FlowFabricWorker {
    /// Dials, checks the library's version, and registers the worker.
    ///
    /// Refuses a wrong setting and an instance id that a live process holds with [`SdkError::Config`].
    pub async fn connect(config: WorkerConfig) -> Result<Self, SdkError> {
        config.check()?;
        let backend = dial(&config).await?;
        Self::register(config, backend, None).await
    }

    /// Registers a worker over a backend the caller brings; `completion` waits for results, the backend itself when absent.
    pub async fn connect_with(
        config: WorkerConfig,
        backend: Arc<dyn Backend>,
        completion: Option<Arc<dyn CompletionBackend>>,
    ) -> Result<Self, SdkError> {
        config.check()?;
        Self::register(config, backend, completion).await
    }

    async fn register(
        config: WorkerConfig,
        backend: Arc<dyn Backend>,
        completion: Option<Arc<dyn CompletionBackend>>,
    ) -> Result<Self, SdkError> {
        let who = Arc::new(Identity {
            worker_id: config.worker_id.as_str().to_owned(),
            instance: config.worker_instance_id.as_str().to_owned(),
            namespace: config.namespace.as_str().to_owned(),
            lanes: config.lanes.iter().map(|lane| lane.as_str().to_owned()).collect(),
            capabilities: config.capabilities.clone(),
            kinds: config.kinds.clone().map(Kinds::of),
            slots: config.max_concurrent_tasks,
            lease_ttl_ms: config.lease_ttl_ms,
            incarnation: Uuid::new_v4(),
        });
        let registered = match backend.reach().register(&who).await {
            Err(error) if error.is_instance_in_use() => {
                let message = format!("{:?} is held by a live process", who.instance);
                return Err(SdkError::config("connect", "worker_instance_id", message));
            }
            answer => answer?,
        };
        let shared = Arc::new(Shared {
            permits: Arc::new(Semaphore::new(config.max_concurrent_tasks)),
            keeper: Arc::new(Keeper::default()),
            finisher: Finisher::default(),
            state: watch::Sender::new(WorkerState::Serving),
            stop: CancellationToken::new(),
            released: AtomicBool::new(false),
            who: Mutex::new(Arc::clone(&who)),
            config,
            backend,
            completion,
            partitions: registered.partitions,
        });
        tokio::spawn(Keeper::run(Arc::downgrade(&shared.keeper), Arc::clone(&shared.backend), who));
        tokio::spawn(stay_alive(Arc::clone(&shared), registered.heartbeat));
        tokio::spawn(attend(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Claims one execution without a server's admission; never waits for work.
    ///
    /// Nothing is claimed when nothing is claimable, when every permit is taken, and when the worker is draining or replaced.
    /// On the Valkey transport this needs the feature `direct-valkey-claim`.
    pub async fn claim_next(&self) -> Result<Option<ClaimedTask>, SdkError> {
        self.shared.check_direct("claim_next")?;
        Ok(self.claim_many(1, Duration::ZERO).await?.pop())
    }

    /// Claims up to `max` executions, as many as there are permits; waits up to `wait` for the first.
    pub async fn claim_many(&self, max: usize, wait: Duration) -> Result<Vec<ClaimedTask>, SdkError> {
        let lanes: Vec<String> = self.shared.who().lanes.clone();
        self.shared.claim(&lanes, max, wait).await
    }

    /// Claims one execution of a lane that the server admitted: quotas, budgets and capabilities are its business.
    pub async fn claim_via_server(
        &self,
        admin: &FlowFabricAdminClient,
        lane: &LaneId,
        grant_ttl_ms: u64,
    ) -> Result<Option<ClaimedTask>, SdkError> {
        if self.shared.backend.transport() == Transport::Http {
            // The server admits and leases in one request.
            return Ok(self.shared.claim(&[lane.as_str().to_owned()], 1, Duration::ZERO).await?.pop());
        }
        let Some(permit) = self.shared.permit() else { return Ok(None) };
        if self.state() != WorkerState::Serving {
            return Ok(None);
        }
        let Some(grant) = admin.backend().reach().grant(&self.shared.who(), lane.as_str(), grant_ttl_ms).await? else {
            return Ok(None);
        };
        self.shared.consume(grant.execution_id, grant.grant_id, permit).await.map(Some)
    }

    /// Turns a grant into a task. At capacity it is refused before anything is consumed: the grant stays good.
    pub async fn claim_from_grant(
        &self,
        lane: impl Borrow<LaneId>,
        grant: impl Borrow<ClaimGrant>,
    ) -> Result<ClaimedTask, SdkError> {
        let permit = self.shared.permit().ok_or(SdkError::WorkerAtCapacity)?;
        let (lane, grant): (&LaneId, &ClaimGrant) = (lane.borrow(), grant.borrow());
        if lane != &grant.lane {
            let message = format!("{lane} is not the grant's lane {}", grant.lane);
            return Err(SdkError::config("claim_from_grant", "lane", message));
        }
        let (execution_id, grant_id) = (grant.execution_id, grant.grant_id);
        self.shared.consume(execution_id, grant_id, permit).await
    }

    /// Turns an operator's grant of an interrupted execution into a task. At capacity the grant stays good.
    pub async fn claim_from_reclaim_grant(&self, grant: impl Borrow<ReclaimGrant>) -> Result<ClaimedTask, SdkError> {
        let permit = self.shared.permit().ok_or(SdkError::WorkerAtCapacity)?;
        let (execution_id, grant_id) = (grant.borrow().execution_id, grant.borrow().grant_id);
        self.shared.consume(execution_id, grant_id, permit).await
    }

    /// Everything about one execution.
    pub async fn describe_execution(&self, id: &ExecutionId) -> Result<ExecutionSnapshot, SdkError> {
        self.shared.backend.reach().describe(*id).await
    }

    /// Why an execution is not running, and what would change that.
    pub async fn explain(&self, id: &ExecutionId) -> Result<Explanation, SdkError> {
        self.shared.backend.reach().ask(Ask::<ExplainExecution>::at(*id)).await
    }

    /// A flow with its state and the counts of its members.
    pub async fn describe_flow(&self, id: &FlowId) -> Result<FlowSnapshot, SdkError> {
        self.shared.backend.reach().flow(*id, Duration::ZERO).await
    }

    /// One page of flows, newest first.
    pub async fn list_flows(
        &self,
        filter: &FlowFilter,
        after: Option<FlowCursor>,
        limit: usize,
    ) -> Result<FlowPage, SdkError> {
        self.shared.backend.reach().list_flows(filter, after, limit).await
    }

    /// One page of executions, newest first.
    pub async fn list_executions(
        &self,
        filter: &ExecutionFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<ExecutionPage, SdkError> {
        self.shared.backend.reach().list(filter, after, limit).await
    }

    /// Every live worker.
    pub async fn list_workers(&self) -> Result<Vec<WorkerSnapshot>, SdkError> {
        self.shared.backend.reach().workers().await
    }

    /// How the engine is reached.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.shared.backend
    }

    /// Who waits for the ends of executions, when the caller brought one.
    #[must_use]
    pub fn completion_backend(&self) -> Option<&Arc<dyn CompletionBackend>> {
        self.shared.completion.as_ref()
    }

    /// The settings it connected with.
    #[must_use]
    pub fn config(&self) -> &WorkerConfig {
        &self.shared.config
    }

    /// The partition counts of the store, as they were when the worker connected; a store never changes them.
    #[must_use]
    pub fn partition_config(&self) -> &PartitionConfig {
        &self.shared.partitions
    }

    /// Whether it may claim.
    #[must_use]
    pub fn state(&self) -> WorkerState {
        *self.shared.state.borrow()
    }

    /// Follows whether it may claim.
    #[must_use]
    pub fn watch_state(&self) -> watch::Receiver<WorkerState> {
        self.shared.state.subscribe()
    }

    /// Releases the registration; tasks still held keep their leases until they end. Safe to repeat.
    pub async fn disconnect(&self) -> Result<(), SdkError> {
        match self.shared.release() {
            Some(who) => match self.shared.backend.reach().deregister(&who).await {
                // Someone else has the id: there is nothing of ours to release.
                Err(error) if error.is_instance_in_use() => Ok(()),
                answer => answer,
            },
            None => Ok(()),
        }
    }
}

impl Drop for FlowFabricWorker {
    fn drop(&mut self) {
        let Some(who) = self.shared.release() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let backend = Arc::clone(&self.shared.backend);
        runtime.spawn(async move {
            if let Err(error) = backend.reach().deregister(&who).await {
                tracing::debug!(%error, instance = who.instance, "the registration is left to run out");
            }
        });
    }
}

impl Shared {
    pub(crate) fn who(&self) -> Arc<Identity> {
        Arc::clone(&self.who.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops claiming and beating; the identity to deregister, the first time and unless it is another's by now.
    fn release(&self) -> Option<Arc<Identity>> {
        if self.released.swap(true, Ordering::SeqCst) {
            return None;
        }
        self.stop.cancel();
        let before = self.state.send_replace(WorkerState::Disconnected);
        (before != WorkerState::Replaced).then(|| self.who())
    }

    /// The process "dies": nothing is released, nothing renewed, nothing answered.
    #[cfg(feature = "embedded")]
    pub(crate) fn die(&self) {
        self.released.store(true, Ordering::SeqCst);
        self.stop.cancel();
        self.state.send_replace(WorkerState::Disconnected);
        self.keeper.abandon_all();
    }

    #[cfg(feature = "embedded")]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) fn check_direct(&self, context: &str) -> Result<(), SdkError> {
        direct_claim(self.backend.transport(), cfg!(feature = "direct-valkey-claim"), context)
    }

    pub(crate) fn state(&self) -> WorkerState {
        *self.state.borrow()
    }

    pub(crate) fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    /// Holds this many tasks at once from now on, never fewer than before, and takes these kinds unless its settings name some.
    pub(crate) async fn serve(&self, slots: usize, kinds: Kinds) -> Result<Arc<Identity>, SdkError> {
        let (who, changed) = {
            let mut who = self.who.lock().unwrap_or_else(PoisonError::into_inner);
            let slots = slots.max(who.slots);
            let kinds = match &self.config.kinds {
                None if !kinds.names().is_empty() => Some(kinds),
                _ => who.kinds.clone(),
            };
            let changed = slots != who.slots || kinds != who.kinds;
            self.permits.add_permits(slots - who.slots);
            *who = Arc::new(Identity { slots, kinds, ..(**who).clone() });
            (Arc::clone(&who), changed)
        };
        if changed {
            self.backend.reach().register(&who).await?;
        }
        Ok(who)
    }

    /// Permits first, then the claim: what nobody has room for is never taken.
    pub(crate) async fn claim(
        self: &Arc<Self>,
        lanes: &[String],
        max: usize,
        wait: Duration,
    ) -> Result<Vec<ClaimedTask>, SdkError> {
        if *self.state.borrow() != WorkerState::Serving {
            return Ok(Vec::new());
        }
        let mut permits: Vec<OwnedSemaphorePermit> = Vec::new();
        while permits.len() < max.min(CLAIM_MAX) {
            match self.permit() {
                Some(permit) => permits.push(permit),
                None => break,
            }
        }
        if permits.is_empty() {
            return Ok(Vec::new());
        }
        let who = self.who();
        let asked = u16::try_from(permits.len()).unwrap_or(u16::MAX);
        let sent = Instant::now();
        let claims = match self.backend.reach().claim(&who, lanes, asked, wait, Uuid::now_v7()).await {
            Err(error) if error.engine().is_some_and(|engine| engine.code() == "worker_not_registered") => {
                self.backend.reach().register(&who).await?;
                self.backend.reach().claim(&who, lanes, asked, wait, Uuid::now_v7()).await?
            }
            answer => answer?,
        };
        let tasks = claims.into_iter().zip(permits).map(|(claim, permit)| self.task(claim, sent, permit));
        Ok(tasks.collect())
    }

    pub(crate) fn task(self: &Arc<Self>, claim: Claim, sent: Instant, permit: OwnedSemaphorePermit) -> ClaimedTask {
        ClaimedTask::new(claim, sent, Arc::clone(self), permit)
    }

    /// Gives a lease back that there is no room for.
    pub(crate) fn hand_back(&self, lease: LeaseRef) {
        let backend = Arc::clone(&self.backend);
        tokio::spawn(async move {
            if let Err(error) = backend.reach().yield_back(lease).await {
                tracing::debug!(%error, execution = %lease.execution_id, "a lease nobody took is left to run out");
            }
        });
    }

    async fn consume(
        self: &Arc<Self>,
        execution_id: ExecutionId,
        grant_id: Uuid,
        permit: OwnedSemaphorePermit,
    ) -> Result<ClaimedTask, SdkError> {
        let (who, request_id, sent) = (self.who(), Uuid::now_v7(), Instant::now());
        let first = self.backend.reach().consume_grant(&who, execution_id, grant_id, request_id).await;
        let claim = match first {
            // The answer may be lost and the lease taken: the same request asks for the same lease.
            Err(error) if worth_repeating(&error) => {
                self.backend.reach().consume_grant(&who, execution_id, grant_id, request_id).await?
            }
            answer => answer?,
        };
        Ok(self.task(claim, sent, permit))
    }

    /// One heartbeat: registers again when the registration is gone, and notes what the engine says.
    pub(crate) async fn beat(&self) -> Result<(), SdkError> {
        let who = self.who();
        let next = match self.backend.reach().heartbeat(&who).await? {
            Standing::Known { draining: true } => WorkerState::Draining,
            Standing::Known { draining: false } => WorkerState::Serving,
            Standing::Replaced => WorkerState::Replaced,
            Standing::Unknown => match self.backend.reach().register(&who).await {
                Ok(_) => WorkerState::Serving,
                Err(error) if error.is_instance_in_use() => WorkerState::Replaced,
                Err(error) => return Err(error),
            },
        };
        self.note(next);
        Ok(())
    }

    fn note(&self, next: WorkerState) {
        self.state.send_if_modified(|state| {
            // What ended stays ended.
            if *state == next || matches!(*state, WorkerState::Replaced | WorkerState::Disconnected) {
                return false;
            }
            match next {
                WorkerState::Replaced => tracing::error!(
                    instance = %self.config.worker_instance_id,
                    "another process has taken this worker's instance id; this one claims no more"
                ),
                WorkerState::Draining => {
                    tracing::info!(instance = %self.config.worker_instance_id, "asked to drain; claiming stops");
                    self.keeper.renew_soon();
                }
                WorkerState::Serving | WorkerState::Disconnected => {}
            }
            *state = next;
            true
        });
    }
}

/// Claiming on Valkey goes around a server's admission, so it has to be asked for.
fn direct_claim(transport: Transport, allowed: bool, context: &str) -> Result<(), SdkError> {
    if transport == Transport::Valkey && !allowed {
        let message = "claiming on Valkey without a server needs the feature direct-valkey-claim; use claim_via_server";
        return Err(SdkError::unsupported(context, message));
    }
    Ok(())
}

async fn stay_alive(shared: Arc<Shared>, beat: Duration) {
    let mut pause = beat;
    loop {
        tokio::select! {
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(pause.mul_f64(rand::random_range(0.9..=1.0))) => {}
        }
        pause = match shared.beat().await {
            Ok(()) => beat,
            Err(error) => {
                tracing::warn!(%error, instance = %shared.config.worker_instance_id, "a heartbeat failed");
                HEARTBEAT_RETRY.min(beat)
            }
        };
        if *shared.state.borrow() == WorkerState::Replaced {
            return;
        }
    }
}

async fn attend(shared: Arc<Shared>) {
    loop {
        let (who, draining) = (shared.who(), *shared.state.borrow() == WorkerState::Draining);
        let reach = shared.backend.reach();
        let standing = tokio::select! {
            () = shared.stop.cancelled() => return,
            standing = reach.attend(&who, draining) => standing,
        };
        match standing {
            Standing::Known { draining: true } => shared.note(WorkerState::Draining),
            Standing::Known { draining: false } => shared.note(WorkerState::Serving),
            Standing::Replaced => return shared.note(WorkerState::Replaced),
            Standing::Unknown => {
                // Registers again; a server that cannot be reached is asked again after a while.
                if let Err(error) = shared.beat().await {
                    tracing::debug!(%error, instance = who.instance, "the registration is gone and could not be renewed");
                }
                tokio::time::sleep(HEARTBEAT_RETRY).await;
            }
        }
    }
}

/// Reaches the engine the way the settings say.
pub(crate) async fn dial(config: &WorkerConfig) -> Result<Arc<dyn Backend>, SdkError> {
    match &config.backend {
        #[cfg(feature = "valkey")]
        BackendConfig::Valkey { url } => {
            // One partition is looked at every 30 intervals: announcements are what wakes claims.
            let sweep_every = Duration::from_millis(config.claim_poll_interval_ms.max(1)) * 30;
            let direct = crate::backend::valkey(url, sweep_every, crate::backend::KeyPlaces::of(config)).await?;
            if direct.live_servers().await? == 0 {
                tracing::warn!(
                    "no ff server is alive on this store: timers, retries and lost leases wait until one is"
                );
            }
            Ok(direct)
        }
        #[cfg(feature = "embedded")]
        BackendConfig::Embedded(engine) => {
            engine.direct().look_for_keys_in(crate::backend::KeyPlaces::of(config))?;
            Ok(engine.backend())
        }
        #[cfg(feature = "http")]
        BackendConfig::Http { url, token, ca_cert } => {
            Ok(Arc::new(crate::backend::Http::new(url, token.as_ref(), ca_cert.as_deref())?))
        }
        BackendConfig::Given => Err(SdkError::config("connect", "backend", "is to be given: use connect_with")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valkey_needs_the_feature_for_direct_claims() {
        for transport in [Transport::Embedded, Transport::Http] {
            assert!(direct_claim(transport, false, "claim_next").is_ok());
        }
        assert!(direct_claim(Transport::Valkey, true, "claim_next").is_ok());
        let refused = direct_claim(Transport::Valkey, false, "claim_next").expect_err("it was not asked for");
        assert!(matches!(&refused, SdkError::Config { context, .. } if context == "claim_next"), "{refused:?}");
        let words = refused.to_string();
        assert!(words.contains("direct-valkey-claim") && words.contains("claim_via_server"), "{words}");
    }
}
