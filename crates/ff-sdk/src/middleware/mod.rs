//! Layers around task execution, in the manner of tower.
//!
//! A layer wraps a [`TaskService`]: a [`tower::Service`] from [`TaskRequest`] to the handler's result or a [`TaskError`]. The runtime owns the
//! claimed task and ends it by what the outermost service says, so no layer can lose one.
//!
//! ```
//! # #[cfg(feature = "embedded")]
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use std::time::Duration;
//! use ff_sdk::middleware::{ConcurrencyByKeyLayer, TimeoutLayer, TracingLayer};
//! use ff_sdk::runtime::{HandlerResult, WorkerRuntime};
//!
//! async fn render() -> HandlerResult {
//!     Ok(None)
//! }
//!
//! # let engine = ff_sdk::testing::TestEngine::start().await?;
//! # let worker = engine.worker("w-1").await?;
//! let runtime = WorkerRuntime::new(worker)
//!     .on("render", render)
//!     .layer(TimeoutLayer::new(Duration::from_secs(30)))
//!     .layer(ConcurrencyByKeyLayer::by_tag(2, "tenant"))
//!     .layer(TracingLayer);
//! # drop(runtime);
//! # Ok::<(), ff_sdk::SdkError>(())
//! # }).unwrap();
//! ```

mod concurrency;
mod metrics;
mod timeout;
mod tracing_layer;

use std::any::Any;
use std::collections::HashMap;
use std::error::Error;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use tower::Service;

use crate::backend::Failing;
use crate::runtime::Ctx;

pub use concurrency::{ConcurrencyByKey, ConcurrencyByKeyLayer};
pub use metrics::{Metrics, MetricsLayer, TaskMetrics};
pub use timeout::{Timeout, TimeoutLayer};
pub use tracing_layer::{Tracing, TracingLayer};

/// What runs a task; boxed, so that layers nest without growing types.
pub type TaskService = tower::util::BoxCloneSyncService<TaskRequest, Option<Vec<u8>>, TaskError>;

/// One task on its way to its handler.
#[derive(Clone)]
pub struct TaskRequest {
    ctx: Ctx,
    state: Arc<crate::runtime::StateMap>,
}

impl TaskRequest {
    pub(crate) fn new(ctx: Ctx, state: Arc<crate::runtime::StateMap>) -> Self {
        Self { ctx, state }
    }

    /// The task.
    #[must_use]
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    pub(crate) fn state(&self) -> &crate::runtime::StateMap {
        &self.state
    }
}

/// How a task fails: the reason is for people, the category for retry policies.
///
/// A handler that returns one as its error decides the category itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct TaskError {
    /// Why, for people.
    pub reason: String,
    /// What kind of failure.
    pub category: String,
    /// `false` ends the execution whatever its policy.
    pub retryable: Option<bool>,
    /// Overrides the policy's backoff.
    pub retry_after_ms: Option<u64>,
}

impl TaskError {
    /// The handler returned an error.
    pub const HANDLER: &'static str = "handler_error";
    /// The handler panicked.
    pub const PANIC: &'static str = "handler_panic";
    /// The handler took longer than a [`TimeoutLayer`] allows.
    pub const TIMEOUT: &'static str = "handler_timeout";
    /// A handler takes state nobody gave to the runtime.
    pub const MISSING_STATE: &'static str = "extractor_missing_state";
    /// The input is not what the handler takes.
    pub const PAYLOAD_DECODE: &'static str = "extractor_payload_decode";
    /// The handler suspended its execution: its run is over, and no failure.
    pub const SUSPENDED: &'static str = "suspended";
    /// No handler takes executions of this kind.
    pub const NO_HANDLER: &'static str = "runtime_no_handler";

    /// A failure with this reason and category.
    pub fn new(reason: impl Into<String>, category: impl Into<String>) -> Self {
        Self { reason: reason.into(), category: category.into(), retryable: None, retry_after_ms: None }
    }

    /// The same failure, final whatever the policy.
    #[must_use]
    pub fn fatal(mut self) -> Self {
        self.retryable = Some(false);
        self
    }

    /// The same failure, to be tried again no sooner than this.
    #[must_use]
    pub fn retry_after_ms(mut self, ms: u64) -> Self {
        self.retry_after_ms = Some(ms);
        self
    }

    /// A handler's own error, with the errors that caused it; a [`TaskError`] stays what it is.
    pub(crate) fn of_handler(error: Box<dyn Error + Send + Sync>) -> Self {
        let error = match error.downcast::<TaskError>() {
            Ok(own) => return *own,
            Err(other) => other,
        };
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !reason.ends_with(&text) {
                reason = format!("{reason}: {text}");
            }
            cause = error.source();
        }
        Self::new(reason, Self::HANDLER)
    }
}

impl From<TaskError> for Failing {
    fn from(error: TaskError) -> Self {
        Failing {
            reason: error.reason,
            category: error.category,
            retryable: error.retryable,
            retry_after_ms: error.retry_after_ms,
        }
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "panicked with something that is no text".to_owned())
}

/// The innermost service: finds the handler of the kind and catches its panics.
#[derive(Clone)]
pub(crate) struct Dispatch {
    pub(crate) handlers: Arc<HashMap<String, crate::runtime::BoxedHandler>>,
}

impl Service<TaskRequest> for Dispatch {
    type Response = Option<Vec<u8>>;
    type Error = TaskError;
    type Future = BoxFuture<'static, Result<Option<Vec<u8>>, TaskError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TaskError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: TaskRequest) -> Self::Future {
        let Some(handler) = self.handlers.get(request.ctx().kind()).cloned() else {
            let error = TaskError::new(format!("no handler for {:?}", request.ctx().kind()), TaskError::NO_HANDLER);
            return Box::pin(std::future::ready(Err(error)));
        };
        let ctx = request.ctx().clone();
        Box::pin(async move {
            // Extractors run inside as well: theirs are panics of the handler's making too.
            match AssertUnwindSafe(async move { handler(request).await }).catch_unwind().await {
                // Layers see the same however the handler put it.
                Ok(_) if ctx.0.is_set_aside() => {
                    Err(TaskError::new("the execution is suspended", TaskError::SUSPENDED))
                }
                Ok(outcome) => outcome,
                Err(panic) => Err(TaskError::new(panic_text(&*panic), TaskError::PANIC)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_caused_it_and_keeps_its_own_category() {
        let io = std::io::Error::other("disk gone");
        assert_eq!(TaskError::of_handler(Box::new(io)), TaskError::new("disk gone", "handler_error"));
        let own = TaskError::new("slow down", "rate_limited").retry_after_ms(5_000);
        assert_eq!(TaskError::of_handler(Box::new(own.clone())), own);
        assert_eq!(TaskError::of_handler("plain".into()), TaskError::new("plain", "handler_error"));
    }

    #[test]
    fn a_panic_is_told_in_its_own_words() {
        let caught = std::panic::catch_unwind(|| std::panic::panic_any("boom")).unwrap_err();
        assert_eq!(panic_text(&*caught), "boom");
        let caught = std::panic::catch_unwind(|| std::panic::panic_any(7_u8)).unwrap_err();
        assert_eq!(panic_text(&*caught), "panicked with something that is no text");
    }
}
