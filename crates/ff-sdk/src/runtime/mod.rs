//! Runs handlers: claims as long as there is room, ends every task by what its handler said, and goes down gracefully.

mod backoff;
mod extract;
mod flows;
mod handler;
mod health;
mod run;
mod step_waits;
mod steps;
mod waits;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tower::{Layer, Service};

use crate::middleware::{Dispatch, TaskError, TaskRequest, TaskService};
use crate::{FlowFabricWorker, SdkError};

pub use backoff::BackoffPolicy;
pub use extract::{Ctx, Data, FromTask, Payload, PayloadBytes, TaskInfo};
pub use flows::Passed;
pub(crate) use handler::BoxedHandler;
pub use handler::{Handler, HandlerResult};
pub use health::{Health, HealthHandle};
pub use step_waits::{Approval, Approved, SignalWait};
pub use steps::{Step, StepError};
pub use waits::SuspendError;

/// How many tasks a runtime holds at once unless told otherwise.
pub const CONCURRENCY: usize = 64;

/// State by type, as [`Data`] finds it.
pub(crate) type StateMap = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// Runs handlers on a worker until it is told to stop.
///
/// Up to 64 tasks run at once, or as many as the worker's settings or [`WorkerRuntime::concurrency`] say. Claims are woken by announcements, and an
/// error while claiming is waited out, never the end. On SIGTERM, Ctrl-C or the token of [`WorkerRuntime::shutdown_on`], claiming stops;
/// running tasks have until the end of the grace, then they are told to stop and handed back; then the registration is released.
///
/// A handler's `Ok` completes the task. Its `Err` fails it with category `handler_error`, a panic with `handler_panic`, missing
/// state with `extractor_missing_state`, and a payload that does not decode with `extractor_payload_decode`. The runtime takes the
/// kinds it has handlers for, unless [`crate::WorkerConfig::kinds`] names some. A task of another kind is given back for five seconds;
/// that is counted nowhere. An `Err` after the engine asked to cancel or to yield cancels the task or hands it back. A handler that
/// suspended with [`Ctx::suspend`], or waits for its children with [`Ctx::wait_children`], has ended its run, whatever it returns: it
/// is called again when the execution is resumed.
pub struct WorkerRuntime {
    worker: FlowFabricWorker,
    state: StateMap,
    handlers: HashMap<String, handler::BoxedHandler>,
    layers: Vec<Box<dyn FnOnce(TaskService) -> TaskService + Send>>,
    pub(crate) settings: Settings,
    health: HealthHandle,
}

/// How a runtime behaves.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    concurrency: usize,
    /// How long running tasks may go on once the runtime is told to stop.
    drain_grace: Duration,
    /// How long a handler may go on once it was told to stop.
    stop_grace: Duration,
    backoff: BackoffPolicy,
    signals: bool,
    pub(crate) shutdown: CancellationToken,
}

impl WorkerRuntime {
    /// A runtime for this worker, without handlers yet.
    #[must_use]
    pub fn new(worker: FlowFabricWorker) -> Self {
        // One task at a time is the default of a worker that claims by hand; a runtime's default is its own.
        let concurrency = match worker.config() {
            config if config.max_concurrent_tasks == 1 && !config.concurrency_is_set => CONCURRENCY,
            config => config.max_concurrent_tasks,
        };
        let settings = Settings {
            concurrency,
            drain_grace: Duration::from_secs(25),
            stop_grace: Duration::from_secs(5),
            backoff: BackoffPolicy::default(),
            signals: true,
            shutdown: CancellationToken::new(),
        };
        Self {
            worker,
            state: StateMap::new(),
            handlers: HashMap::new(),
            layers: Vec::new(),
            settings,
            health: HealthHandle::default(),
        }
    }

    /// State that handlers take as [`Data`]; one value per type.
    #[must_use]
    pub fn data<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.state.insert(TypeId::of::<T>(), Arc::new(state));
        self
    }

    /// Runs this handler for executions of a kind.
    #[must_use]
    pub fn on<Args, H: Handler<Args>>(mut self, kind: impl Into<String>, handler: H) -> Self {
        self.handlers.insert(kind.into(), handler::boxed(handler));
        self
    }

    /// Wraps every task's execution; the layer added last is the outermost.
    ///
    /// A layer sees the task but does not own it: whatever it does, the runtime ends the task.
    #[must_use]
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<TaskService> + Send + 'static,
        L::Service: Service<TaskRequest, Response = Option<Vec<u8>>, Error = TaskError> + Clone + Send + Sync + 'static,
        <L::Service as Service<TaskRequest>>::Future: Send + 'static,
    {
        self.layers.push(Box::new(move |inner| TaskService::new(layer.layer(inner))));
        self
    }

    /// How many tasks run at once.
    #[must_use]
    pub fn concurrency(mut self, tasks: usize) -> Self {
        self.settings.concurrency = tasks.max(1);
        self
    }

    /// How long running tasks may go on once the runtime is told to stop; 25 s unless said.
    #[must_use]
    pub fn drain_grace(mut self, grace: Duration) -> Self {
        self.settings.drain_grace = grace;
        self
    }

    /// How long a handler may go on once it was told to stop, before it is dropped; 5 s unless said.
    #[must_use]
    pub fn stop_grace(mut self, grace: Duration) -> Self {
        self.settings.stop_grace = grace;
        self
    }

    /// How to wait after a failed claim.
    #[must_use]
    pub fn claim_backoff(mut self, backoff: BackoffPolicy) -> Self {
        self.settings.backoff = backoff;
        self
    }

    /// Stops when this token is cancelled, beside the signals.
    #[must_use]
    pub fn shutdown_on(mut self, token: CancellationToken) -> Self {
        self.settings.shutdown = token;
        self
    }

    /// Leaves SIGTERM and Ctrl-C to the caller.
    #[must_use]
    pub fn without_signals(mut self) -> Self {
        self.settings.signals = false;
        self
    }

    /// Says whether the claim loop is going; stays valid while the runtime runs.
    #[must_use]
    pub fn health(&self) -> HealthHandle {
        self.health.clone()
    }

    /// The worker it runs on.
    #[must_use]
    pub fn worker(&self) -> &FlowFabricWorker {
        &self.worker
    }

    /// Runs until told to stop; returns when everything that ran has ended or was handed back.
    ///
    /// An error means that another process has taken the instance id over, or that claiming is not possible at all.
    pub async fn run(self) -> Result<(), SdkError> {
        let kinds = ff_script::Kinds::of(self.handlers.keys().cloned());
        let dispatch = Dispatch { handlers: Arc::new(self.handlers) };
        let service = self.layers.into_iter().fold(TaskService::new(dispatch), |inner, layer| layer(inner));
        run::run(self.worker, kinds, Arc::new(self.state), service, self.settings, self.health).await
    }
}
