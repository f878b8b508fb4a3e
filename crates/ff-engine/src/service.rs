//! The seam for users: everything an operation of the API needs, in one place, and the one way to ask it.
//!
//! The server and the SDK carry requests to a [`Service`]; what they mean is decided here and below.

use std::sync::{Arc, OnceLock};

use ff_api::{Ask, Operation, Problem};
use ff_keys::Keys;
use tokio_util::sync::CancellationToken;

use crate::Engine;
use crate::dispatch::Dispatcher;
use crate::fleet::Fleet;
use crate::operations::Operations;
use crate::principal::Principal;
use crate::waitpoints::Waitpoints;

/// Answers an operation of the API.
pub trait Handle<O: Operation> {
    /// Does what is asked, as far as this caller may.
    fn handle(&self, by: &Principal, ask: Ask<O>) -> impl Future<Output = Result<O::Answer, Problem>> + Send;
}

/// Finds the keys that sign waitpoint tokens.
type FindKeys = Box<dyn Fn() -> Result<Keys, ff_keys::Error> + Send + Sync>;

/// A running engine with what its users ask it through.
pub struct Service {
    /// The engine.
    pub engine: Arc<Engine>,
    /// Typed operations on its store.
    pub operations: Operations,
    /// What finds work for workers.
    pub dispatcher: Dispatcher,
    /// The workers that ask here.
    pub fleet: Arc<Fleet>,
    /// Ends long waits: the process is about to stop.
    pub stop: CancellationToken,
    find_keys: FindKeys,
    waitpoints: OnceLock<Waitpoints>,
}

impl Service {
    /// A service over a running engine. The keys are looked for when the first one is needed, so that a process that
    /// signs nothing needs none.
    pub fn new(
        engine: Arc<Engine>,
        dispatcher: Dispatcher,
        fleet: Arc<Fleet>,
        stop: CancellationToken,
        find_keys: impl Fn() -> Result<Keys, ff_keys::Error> + Send + Sync + 'static,
    ) -> Self {
        let operations = engine.operations().clone();
        let (find_keys, waitpoints) = (Box::new(find_keys), OnceLock::new());
        Self { engine, operations, dispatcher, fleet, stop, find_keys, waitpoints }
    }

    /// Suspensions, waitpoints and signals, with the keys that sign their tokens.
    pub fn waitpoints(&self) -> Result<&Waitpoints, Problem> {
        if let Some(waitpoints) = self.waitpoints.get() {
            return Ok(waitpoints);
        }
        let keys = (self.find_keys)().map_err(crate::waitpoints::keys_problem)?;
        Ok(self.waitpoints.get_or_init(|| Waitpoints::new(self.operations.clone(), keys)))
    }

    /// True once the keys were looked for and found.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        self.waitpoints.get().is_some()
    }
}
