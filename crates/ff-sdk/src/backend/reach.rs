//! The one way to the engine: through a service of this process, or over HTTP through a server.

use std::sync::Arc;
use std::time::Duration;

use ff_api::{Ask, Operation};
use ff_engine::{Handle, Principal, Service};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[cfg(feature = "http")]
use super::Http;
use crate::SdkError;

/// The longest wait of one request.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(30);

/// A field of a call that the API does not take.
pub(super) fn unfit(operation: &'static str) -> impl Fn(ff_api::Invalid) -> SdkError {
    move |invalid| SdkError::config(operation, &invalid.field, invalid.problem)
}

/// Stands between a worker and the engine; a test lets the worker's process die here.
pub(crate) trait Crossing: Send + Sync {
    /// Before a request leaves.
    fn before(&self, operation: &'static str) -> Result<(), SdkError>;
    /// After it was answered, before the caller hears so.
    fn after(&self, operation: &'static str) -> Result<(), SdkError>;
}

/// A way to the engine; cheap to clone.
#[derive(Clone)]
pub struct Reach {
    way: Way,
    crossing: Option<Arc<dyn Crossing>>,
}

#[derive(Clone)]
enum Way {
    InProcess(Arc<Service>),
    #[cfg(feature = "http")]
    Http(Http),
}

impl Reach {
    /// Through a service of this process.
    pub(crate) fn in_process(service: Arc<Service>) -> Self {
        Self { way: Way::InProcess(service), crossing: None }
    }

    /// Through a server.
    #[cfg(feature = "http")]
    pub(crate) fn http(http: Http) -> Self {
        Self { way: Way::Http(http), crossing: None }
    }

    /// The same way, crossed under watch.
    #[cfg(feature = "embedded")]
    pub(crate) fn watched(self, crossing: Arc<dyn Crossing>) -> Self {
        Self { crossing: Some(crossing), ..self }
    }

    /// True when the engine runs in this process.
    pub(super) fn is_in_process(&self) -> bool {
        matches!(self.way, Way::InProcess(_))
    }

    /// Asks for one operation.
    pub async fn ask<O>(&self, ask: Ask<O>) -> Result<O::Answer, SdkError>
    where
        O: Operation<Query: Serialize, Body: Serialize, Answer: DeserializeOwned>,
        Service: Handle<O>,
    {
        self.ask_within(ask, Duration::ZERO).await
    }

    /// Asks for one operation whose answer may take `wait` longer than usual.
    pub async fn ask_within<O>(&self, ask: Ask<O>, wait: Duration) -> Result<O::Answer, SdkError>
    where
        O: Operation<Query: Serialize, Body: Serialize, Answer: DeserializeOwned>,
        Service: Handle<O>,
    {
        if let Some(crossing) = &self.crossing {
            crossing.before(O::NAME)?;
        }
        let answer = match &self.way {
            Way::InProcess(service) => service.handle(&Principal::sdk(), ask).await?,
            #[cfg(feature = "http")]
            Way::Http(http) => http.ask(&ask, wait).await?,
        };
        #[cfg(not(feature = "http"))]
        let _ = wait;
        if let Some(crossing) = &self.crossing {
            crossing.after(O::NAME)?;
        }
        Ok(answer)
    }
}
