//! An engine for tests: embedded, in a directory of its own, at a time the test moves.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use std::time::Duration;
//! use ff_sdk::testing::{Call, CrashPoint, TestEngine};
//!
//! let engine = TestEngine::start().await?;
//! let id = engine.submit("charge", b"{}").await?;
//!
//! // The first worker dies after the engine committed its result, before it heard so.
//! let first = engine.worker("w-1").await?;
//! let task = first.claim_next().await?.expect("one execution waits");
//! engine.crash(&first, CrashPoint::AfterCall(Call::Complete));
//! assert!(task.complete(None).await.is_err());
//!
//! // Its lease would have run out by now, and nobody runs the work again.
//! engine.advance(Duration::from_secs(60)).await?;
//! assert!(engine.worker("w-2").await?.claim_next().await?.is_none());
//! engine.assert_exactly_one_effect(&id).await?;
//! # Ok::<(), ff_sdk::SdkError>(())
//! # }).unwrap();
//! ```

mod crash;
mod faults;
mod waits;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use ff_backend_embedded::{Durability, Embedded, Options, VirtualClock};
use ff_core::state::{AttemptState, Outcome};
use ff_core::types::ExecutionId;
use ff_engine::{Engine, EngineOptions, NewExecution};
use ff_script::Library;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::backend::KeyPlaces;
use crate::runtime::WorkerRuntime;
use crate::snapshot::{ExecutionResult, ExecutionSnapshot};
use crate::worker::Shared;
use crate::{BackendConfig, EmbeddedEngine, FlowFabricAdminClient, FlowFabricWorker, SdkError, WorkerConfig};

use crash::Mortal;
pub use crash::{Call, CrashPoint};
pub use faults::Faults;

/// The time at which every test engine starts.
pub const START_MS: i64 = 1_700_000_000_000;
/// The namespace and lane of what a test engine submits and its workers serve.
pub const DEFAULT: &str = "default";
const RESULT_LIMIT: Duration = Duration::from_secs(20);

/// Workers by instance, with the switch that kills each.
type Workers = HashMap<String, (Weak<Shared>, Arc<Mortal>)>;

/// An engine under virtual time. Its directory goes with it.
pub struct TestEngine {
    engine: EmbeddedEngine,
    clock: Arc<VirtualClock>,
    workers: Mutex<Workers>,
    _directory: TempDir,
}

/// A keys file in this directory.
fn test_keys(directory: &Path) -> Result<PathBuf, SdkError> {
    let path = directory.join("keys");
    let made = ff_keys::Keys::create(&path);
    made.map_err(|error| SdkError::config("start", "keys", error.to_string()))?;
    Ok(path)
}

/// A runtime in the background of a test.
pub struct Running {
    stop: CancellationToken,
    handle: tokio::task::JoinHandle<Result<(), SdkError>>,
}

impl Running {
    /// Tells the runtime to stop, and waits until it has.
    pub async fn stop(self) -> Result<(), SdkError> {
        self.stop.cancel();
        self.wait().await
    }

    /// True once the runtime has ended, for example because its process has died.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits until the runtime ends by itself.
    pub async fn wait(self) -> Result<(), SdkError> {
        match self.handle.await {
            Ok(ended) => ended,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

impl TestEngine {
    /// A fresh engine at [`START_MS`].
    pub async fn start() -> Result<Self, SdkError> {
        let directory = tempfile::Builder::new().prefix("ff-test-").tempdir().map_err(|error| SdkError::Transport {
            source: Box::new(error),
            context: "making a directory for a test engine".to_owned(),
        })?;
        let clock = Arc::new(VirtualClock::at_ms(START_MS));
        let options = Options {
            clock: clock.clone(),
            // A test's process does not lose power and live to tell.
            durability: Durability::Relaxed,
            ..Options::new(directory.path().join("store"), Library::shipped().text)
        };
        let engine = Engine::start(Arc::new(Embedded::open(options)?), EngineOptions::default()).await?;
        let engine = EmbeddedEngine::from(engine).with_keys(KeyPlaces {
            // Whatever the environment of the tests says.
            keys: Some(test_keys(directory.path())?),
            ..KeyPlaces::default()
        })?;
        Ok(Self { engine, clock, workers: Mutex::default(), _directory: directory })
    }

    /// The engine beneath.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        self.engine.engine()
    }

    /// The engine as [`WorkerConfig::embedded`] takes it.
    #[must_use]
    pub fn embedded(&self) -> &EmbeddedEngine {
        &self.engine
    }

    /// Submits, looks, cancels.
    #[must_use]
    pub fn admin(&self) -> FlowFabricAdminClient {
        self.engine.admin()
    }

    /// The virtual time in milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Submits an execution of this kind to the default lane.
    pub async fn submit(&self, kind: &str, input: &[u8]) -> Result<ExecutionId, SdkError> {
        let mut new = NewExecution::new(DEFAULT, DEFAULT, kind);
        new.fields.input = Some(input.to_vec().into());
        self.submit_new(new).await
    }

    /// Submits any execution.
    pub async fn submit_new(&self, new: NewExecution) -> Result<ExecutionId, SdkError> {
        self.admin().submit(new).await
    }

    /// A worker of the default lane under this instance id.
    pub async fn worker(&self, instance: &str) -> Result<FlowFabricWorker, SdkError> {
        self.worker_with(self.config(instance)).await
    }

    /// The settings of a worker of the default lane, to be changed and given to [`TestEngine::worker_with`].
    #[must_use]
    pub fn config(&self, instance: &str) -> WorkerConfig {
        WorkerConfig::with_backend(BackendConfig::Given, "test", instance, DEFAULT, DEFAULT)
    }

    /// A worker with these settings; it can be crashed, and lives through [`TestEngine::advance`].
    pub async fn worker_with(&self, config: WorkerConfig) -> Result<FlowFabricWorker, SdkError> {
        let backend = Arc::new(Mortal::new(self.engine.backend()));
        let instance = config.worker_instance_id.as_str().to_owned();
        let worker = FlowFabricWorker::connect_with(config, backend.clone(), None).await?;
        backend.belongs_to(Arc::downgrade(worker.shared()));
        self.workers().insert(instance, (Arc::downgrade(worker.shared()), backend));
        Ok(worker)
    }

    fn workers(&self) -> std::sync::MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a runtime in the background.
    #[must_use]
    pub fn run(&self, runtime: WorkerRuntime) -> Running {
        let stop = CancellationToken::new();
        let runtime = runtime.without_signals().shutdown_on(stop.clone());
        Running { stop, handle: tokio::spawn(runtime.run()) }
    }

    /// The worker's process dies at this point: it renews and answers nothing from then on, and releases nothing.
    pub fn crash(&self, worker: &FlowFabricWorker, point: CrashPoint) {
        self.crash_instance(worker.config().worker_instance_id.as_str(), point);
    }

    /// Like [`TestEngine::crash`], for a worker that a runtime owns.
    ///
    /// # Panics
    /// When no worker of this engine has the id.
    pub fn crash_instance(&self, instance: &str, point: CrashPoint) {
        let mortal = self.workers().get(instance).map(|(_, mortal)| Arc::clone(mortal));
        mortal.unwrap_or_else(|| panic!("no worker of this engine is called {instance:?}")).dies_at(point);
    }

    /// The answer of the worker's next call of this kind is lost on the way: it is committed, and the worker does not hear so.
    ///
    /// # Panics
    /// When the worker is not one of this engine.
    pub fn lose_answer(&self, worker: &FlowFabricWorker, call: Call) {
        let instance = worker.config().worker_instance_id.as_str();
        let mortal = self.workers().get(instance).map(|(_, mortal)| Arc::clone(mortal));
        mortal.unwrap_or_else(|| panic!("no worker of this engine is called {instance:?}")).loses(call);
    }

    /// Moves the time on: whatever falls due meanwhile happens, in order, and live workers keep their leases.
    pub async fn advance(&self, by: Duration) -> Result<(), SdkError> {
        let until = self.now_ms() + i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.engine().do_what_is_due().await?;
        while self.now_ms() < until {
            let next = self.next_step(until).await?;
            self.clock.set_ms(next);
            self.keep_alive().await?;
            self.engine().do_what_is_due().await?;
        }
        Ok(())
    }

    fn live(&self) -> Vec<Arc<Shared>> {
        self.workers()
            .values()
            .filter_map(|(shared, _)| shared.upgrade())
            .filter(|shared| !shared.is_stopped())
            .collect()
    }

    /// The next time something happens: a timer, or a renewal while leases are held.
    async fn next_step(&self, until: i64) -> Result<i64, SdkError> {
        let mut next = until;
        for shared in self.live() {
            if !shared.keeper.is_empty() {
                let third = i64::try_from(shared.who().lease_ttl_ms / 3).unwrap_or(i64::MAX);
                next = next.min(self.now_ms() + third);
            }
        }
        if let Some(at) = self.engine().next_due().await? {
            next = next.min(at);
        }
        // What is due and stays due must not hold the time.
        Ok(next.clamp(self.now_ms() + 1, until))
    }

    async fn keep_alive(&self) -> Result<(), SdkError> {
        for shared in self.live() {
            shared.beat().await?;
            shared.keeper.renew_all(shared.backend.as_ref(), &shared.who()).await;
        }
        Ok(())
    }

    /// Waits for the end of an execution, in real time.
    ///
    /// # Panics
    /// When it has not ended within 20 s.
    pub async fn result(&self, id: &ExecutionId) -> Result<ExecutionResult, SdkError> {
        match self.admin().result(id, RESULT_LIMIT).await? {
            Some(result) => Ok(result),
            None => panic!("{id} has not ended within {RESULT_LIMIT:?}: {:#?}", self.describe(id).await?),
        }
    }

    /// Everything about one execution.
    pub async fn describe(&self, id: &ExecutionId) -> Result<ExecutionSnapshot, SdkError> {
        self.admin().describe_execution(id).await
    }

    /// Checks that the execution took effect exactly once: it succeeded, by one attempt, and its completion was told once.
    ///
    /// # Panics
    /// When it did not.
    pub async fn assert_exactly_one_effect(&self, id: &ExecutionId) -> Result<(), SdkError> {
        let execution = self.describe(id).await?;
        let succeeded = execution.attempts.iter().filter(|attempt| attempt.state == AttemptState::Succeeded).count();
        let told = self.engine().count_events(*id, "execution.completed").await?;
        let once = execution.outcome == Some(Outcome::Success) && succeeded == 1 && told == 1;
        assert!(
            once,
            "{id} must take effect exactly once: outcome {:?}, {succeeded} attempts succeeded, told {told} times",
            execution.outcome
        );
        Ok(())
    }
}
