//! The one way to the engine: through a service of this process, or over HTTP through a server.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "http")]
use ff_api::executions::SubmitBody;
use ff_api::executions::SubmitExecution;
use ff_api::{Ask, Operation};
use ff_core::types::ExecutionId;
use ff_engine::{Handle, NewExecution, Principal, Service};
use serde::Serialize;
use serde::de::DeserializeOwned;

#[cfg(feature = "http")]
use super::Http;
use crate::SdkError;

/// The longest wait of one request.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(ff_api::operation::WAIT_MS_MAX);

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
        self.ask_as(O::NAME, ask, wait).await
    }

    /// Asks for one operation under another name, for the part of it that is asked for.
    pub(super) async fn ask_as<O>(&self, name: &'static str, ask: Ask<O>, wait: Duration) -> Result<O::Answer, SdkError>
    where
        O: Operation<Query: Serialize, Body: Serialize, Answer: DeserializeOwned>,
        Service: Handle<O>,
    {
        self.crossed(name, async {
            match &self.way {
                Way::InProcess(service) => {
                    let _ = wait;
                    Ok(service.handle(&Principal::sdk(), ask).await?)
                }
                #[cfg(feature = "http")]
                Way::Http(http) => http.ask(&ask, wait).await,
            }
        })
        .await
    }

    /// Submits one execution. Returns its id, and whether it was known already.
    pub(crate) async fn submit(&self, new: NewExecution) -> Result<(ExecutionId, bool), SdkError> {
        self.crossed(SubmitExecution::NAME, async {
            match &self.way {
                Way::InProcess(service) => {
                    let submitted = service.submit(&Principal::sdk(), new).await?;
                    Ok((submitted.execution_id, submitted.duplicate))
                }
                #[cfg(feature = "http")]
                Way::Http(http) => {
                    // The input is what is large, and base64 makes it larger.
                    let size = 512 + new.fields.input.as_ref().map_or(0, |input| input.len() * 4 / 3);
                    let (mut body, kind) = SubmitBody::of(new.fields).map_err(unfit("submit"))?;
                    body.kind = kind;
                    http.submit_together(body, size).await
                }
            }
        })
        .await
    }

    async fn crossed<T>(
        &self,
        name: &'static str,
        asked: impl Future<Output = Result<T, SdkError>>,
    ) -> Result<T, SdkError> {
        let Some(crossing) = &self.crossing else { return asked.await };
        crossing.before(name)?;
        let answer = asked.await?;
        crossing.after(name)?;
        Ok(answer)
    }
}
