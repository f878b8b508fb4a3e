//! Ends handlers that take too long.

use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use tower::{Layer, Service};

use super::{TaskError, TaskRequest};

/// Fails a task whose handler takes longer than a limit, with category `handler_timeout`. The handler is dropped.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutLayer {
    limit: Duration,
}

impl TimeoutLayer {
    /// The limit.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { limit }
    }
}

impl<S> Layer<S> for TimeoutLayer {
    type Service = Timeout<S>;
    fn layer(&self, inner: S) -> Timeout<S> {
        Timeout { inner, limit: self.limit }
    }
}

/// The service of [`TimeoutLayer`].
#[derive(Clone, Debug)]
pub struct Timeout<S> {
    inner: S,
    limit: Duration,
}

impl<S> Service<TaskRequest> for Timeout<S>
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
        let (future, limit) = (self.inner.call(request), self.limit);
        Box::pin(async move {
            match tokio::time::timeout(limit, future).await {
                Ok(outcome) => outcome,
                Err(_) => Err(TaskError::new(format!("the handler took longer than {limit:?}"), TaskError::TIMEOUT)),
            }
        })
    }
}
