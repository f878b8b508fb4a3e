//! The engine in reach: calls of the library through a host of this process, embedded or Valkey.

use std::sync::Arc;

use ff_engine::dispatch::{Dispatcher, DispatcherOptions, StoreAdmission};
use ff_engine::fleet::Fleet;
use ff_engine::{Engine, Operations, Service};

use super::keys::Places;
use super::{Backend, Reach, Transport};
use crate::SdkError;

/// A backend over a running [`Engine`]; one per engine serves all workers of the process.
pub struct Direct {
    service: Arc<Service>,
    transport: Transport,
    pub(super) key_places: Arc<Places>,
}

impl Direct {
    /// A backend over this engine.
    #[must_use]
    pub fn new(engine: Arc<Engine>, transport: Transport) -> Arc<Self> {
        Self::with_options(engine, transport, DispatcherOptions::default())
    }

    /// A backend whose dispatcher behaves as told.
    #[must_use]
    pub fn with_options(engine: Arc<Engine>, transport: Transport, options: DispatcherOptions) -> Arc<Self> {
        let dispatcher = Dispatcher::start(
            engine.operations().clone(),
            Arc::new(StoreAdmission::new(engine.operations().clone())),
            options,
        );
        let key_places = Arc::new(Places::default());
        let places = Arc::clone(&key_places);
        let fleet = Arc::new(Fleet::here(engine.operations().clone(), dispatcher.clone()));
        let stop = engine.stopping();
        let service = Arc::new(Service::new(engine, dispatcher, fleet, stop, move || places.find()));
        Arc::new(Self { service, transport, key_places })
    }

    /// The engine beneath.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.service.engine
    }

    pub(super) fn service(&self) -> &Service {
        &self.service
    }

    /// How many servers live: they run the timers and reconcilers of a store.
    pub async fn live_servers(&self) -> Result<usize, SdkError> {
        Ok(self.operations().servers().await?.len())
    }

    fn operations(&self) -> &Operations {
        &self.service.operations
    }
}

impl Backend for Direct {
    fn reach(&self) -> Reach {
        Reach::in_process(Arc::clone(&self.service))
    }

    fn rests_in_place(&self) -> bool {
        true
    }

    fn transport(&self) -> Transport {
        self.transport
    }
}
