//! A hook for counters and histograms, whatever library keeps them.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tower::{Layer, Service};

use super::{TaskError, TaskRequest};
use crate::runtime::TaskInfo;

/// Hears about every task.
pub trait TaskMetrics: Send + Sync + 'static {
    /// A handler begins.
    fn started(&self, task: &TaskInfo);
    /// It ended; the error's category when it failed. A handler that was dropped is `dropped`, one that suspended `suspended`.
    fn ended(&self, task: &TaskInfo, elapsed: Duration, failure: Option<&str>);
}

/// Tells a [`TaskMetrics`] about every task.
#[derive(Debug)]
pub struct MetricsLayer<M> {
    metrics: Arc<M>,
}

impl<M> MetricsLayer<M> {
    /// Tells these.
    pub fn new(metrics: Arc<M>) -> Self {
        Self { metrics }
    }
}

impl<M> Clone for MetricsLayer<M> {
    fn clone(&self) -> Self {
        Self { metrics: Arc::clone(&self.metrics) }
    }
}

impl<M, S> Layer<S> for MetricsLayer<M> {
    type Service = Metrics<M, S>;
    fn layer(&self, inner: S) -> Metrics<M, S> {
        Metrics { inner, metrics: Arc::clone(&self.metrics) }
    }
}

/// The service of [`MetricsLayer`].
#[derive(Debug)]
pub struct Metrics<M, S> {
    inner: S,
    metrics: Arc<M>,
}

impl<M, S: Clone> Clone for Metrics<M, S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), metrics: Arc::clone(&self.metrics) }
    }
}

/// Says the end of a task exactly once, even when its future is dropped.
struct Ending<M: TaskMetrics> {
    metrics: Arc<M>,
    info: TaskInfo,
    started: Instant,
    told: bool,
}

impl<M: TaskMetrics> Ending<M> {
    fn tell(&mut self, failure: Option<&str>) {
        if !self.told {
            self.told = true;
            self.metrics.ended(&self.info, self.started.elapsed(), failure);
        }
    }
}

impl<M: TaskMetrics> Drop for Ending<M> {
    fn drop(&mut self) {
        self.tell(Some("dropped"));
    }
}

impl<M, S> Service<TaskRequest> for Metrics<M, S>
where
    M: TaskMetrics,
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
        self.metrics.started(&info);
        let mut ending = Ending { metrics: Arc::clone(&self.metrics), info, started: Instant::now(), told: false };
        let future = self.inner.call(request);
        Box::pin(async move {
            let outcome = future.await;
            ending.tell(outcome.as_ref().err().map(|error| error.category.as_str()));
            outcome
        })
    }
}
