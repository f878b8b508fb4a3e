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
mod error;
mod metrics;
mod timeout;
mod tracing_layer;

use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use tower::Service;

use crate::runtime::Ctx;

pub use concurrency::{ConcurrencyByKey, ConcurrencyByKeyLayer};
pub use error::{FailureClass, TaskError};
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

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "panicked with something that is no text".to_owned())
}

/// The failure of a handler that returned a result although a step had set its attempt aside.
fn swallowed(step: &str) -> TaskError {
    let reason = format!(
        "the handler returned a result although step {step:?} set its attempt aside: it must hand the step's error on, for \
         example with `?`"
    );
    tracing::error!(step, "{reason}");
    TaskError::new(reason, TaskError::SWALLOWED).fatal()
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
                Ok(Ok(result)) => match ctx.0.steps.aside_at() {
                    None => Ok(result),
                    Some(step) => Err(swallowed(&step)),
                },
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
    fn a_panic_is_told_in_its_own_words() {
        let caught = std::panic::catch_unwind(|| std::panic::panic_any("boom")).unwrap_err();
        assert_eq!(panic_text(&*caught), "boom");
        let caught = std::panic::catch_unwind(|| std::panic::panic_any(7_u8)).unwrap_err();
        assert_eq!(panic_text(&*caught), "panicked with something that is no text");
    }
}
