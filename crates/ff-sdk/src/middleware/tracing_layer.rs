//! A span around every task.

use std::task::{Context, Poll};
use std::time::Instant;

use futures::future::BoxFuture;
use tower::{Layer, Service};
use tracing::Instrument;

use super::{TaskError, TaskRequest};

/// Runs each task in a span `task` with its execution, attempt, lane and kind, and logs how it ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingLayer;

impl<S> Layer<S> for TracingLayer {
    type Service = Tracing<S>;
    fn layer(&self, inner: S) -> Tracing<S> {
        Tracing { inner }
    }
}

/// The service of [`TracingLayer`].
#[derive(Clone, Debug)]
pub struct Tracing<S> {
    inner: S,
}

impl<S> Service<TaskRequest> for Tracing<S>
where
    S: Service<TaskRequest, Response = Option<Vec<u8>>, Error = TaskError>,
    S::Future: Send + 'static,
{
    type Response = Option<Vec<u8>>;
    type Error = TaskError;
    type Future = BoxFuture<'static, Result<Option<Vec<u8>>, TaskError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TaskError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: TaskRequest) -> Self::Future {
        let info = request.ctx().info();
        let span = tracing::info_span!(
            "task",
            execution_id = %info.execution_id,
            attempt = %info.attempt_index,
            lane = %info.lane_id,
            kind = info.kind,
            trace_parent = info.trace_parent,
        );
        let future = span.in_scope(|| self.inner.call(request));
        let logged = async move {
            let started = Instant::now();
            let outcome = future.await;
            let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            match &outcome {
                Ok(_) => tracing::info!(elapsed_ms, "done"),
                Err(error) if error.category == TaskError::SUSPENDED => tracing::info!(elapsed_ms, "suspended"),
                Err(error) => tracing::warn!(elapsed_ms, category = error.category, reason = error.reason, "failed"),
            }
            outcome
        };
        Box::pin(logged.instrument(span))
    }
}
