//! An engine inside this process, and the one backend all its workers share.

use std::path::Path;
use std::sync::Arc;

use ff_backend_embedded::{Embedded, Options};
use ff_engine::{Engine, EngineOptions, Waitpoints};
use ff_script::{Host, Library};

use crate::SdkError;
use crate::admin::FlowFabricAdminClient;
use crate::backend::{Backend, Direct, KeyPlaces, Transport};

/// A running embedded engine; cheap to clone. Its workers share one dispatcher, so one piece of work wakes one of them.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use ff_sdk::{EmbeddedEngine, FlowFabricWorker, WorkerConfig};
/// let directory = tempfile::tempdir().unwrap();
/// let engine = EmbeddedEngine::open(directory.path()).await?;
/// let worker = FlowFabricWorker::connect(WorkerConfig::embedded(&engine, "w", "w-1", "default", "default")).await?;
/// assert!(worker.claim_next().await?.is_none());
/// worker.disconnect().await?;
/// # Ok::<(), ff_sdk::SdkError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct EmbeddedEngine {
    direct: Arc<Direct>,
}

impl std::fmt::Debug for EmbeddedEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EmbeddedEngine")
    }
}

impl EmbeddedEngine {
    /// Opens the store in a directory, which this process then holds alone, and starts the engine on it.
    pub async fn open(directory: impl AsRef<Path>) -> Result<Self, SdkError> {
        let directory = directory.as_ref();
        let host = Embedded::open(Options::new(directory, Library::shipped().text))?;
        let engine = Self::start(Arc::new(host)).await?;
        engine.with_keys(KeyPlaces { embedded: Some(directory.to_owned()), ..KeyPlaces::default() })
    }

    /// The same engine, which looks for the keys that sign waitpoint tokens in these places. [`EmbeddedEngine::open`] looks in the
    /// directory of its store; `FF_KEYS` and `FF_KEYS_FILE` come before.
    pub fn with_keys(self, places: KeyPlaces) -> Result<Self, SdkError> {
        self.direct.look_for_keys_in(places)?;
        Ok(self)
    }

    /// Suspensions and waitpoints, for those who answer them: operators, inboxes, tests.
    pub fn waitpoints(&self) -> Result<&Waitpoints, SdkError> {
        self.direct.waitpoints()
    }

    pub(crate) fn direct(&self) -> &Direct {
        &self.direct
    }

    /// Starts the engine on an open host.
    pub async fn start(host: Arc<dyn Host>) -> Result<Self, SdkError> {
        Ok(Engine::start(host, EngineOptions::default()).await?.into())
    }

    /// The engine beneath: operations, events, results.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        self.direct.engine()
    }

    /// The backend its workers share.
    #[must_use]
    pub fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.direct) as Arc<dyn Backend>
    }

    /// Submits, looks, cancels.
    #[must_use]
    pub fn admin(&self) -> FlowFabricAdminClient {
        FlowFabricAdminClient::over(self.backend())
    }
}

impl From<Engine> for EmbeddedEngine {
    fn from(engine: Engine) -> Self {
        Arc::new(engine).into()
    }
}

impl From<Arc<Engine>> for EmbeddedEngine {
    fn from(engine: Arc<Engine>) -> Self {
        Self { direct: Direct::new(engine, Transport::Embedded) }
    }
}

impl From<&EmbeddedEngine> for EmbeddedEngine {
    fn from(engine: &EmbeddedEngine) -> Self {
        engine.clone()
    }
}
