//! Bounds how many tasks with the same key run at once in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, Service};

use super::{TaskError, TaskRequest};

type KeyOf = Arc<dyn Fn(&TaskRequest) -> Option<String> + Send + Sync>;

/// Lets at most `limit` tasks with the same key run at once; the others hold their leases and wait. A task without key is not bounded.
#[derive(Clone)]
pub struct ConcurrencyByKeyLayer {
    shared: Arc<Keys>,
}

struct Keys {
    limit: usize,
    key_of: KeyOf,
    slots: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl ConcurrencyByKeyLayer {
    /// At most `limit` tasks for each key that `key_of` answers.
    pub fn new(limit: usize, key_of: impl Fn(&TaskRequest) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { shared: Arc::new(Keys { limit: limit.max(1), key_of: Arc::new(key_of), slots: Mutex::default() }) }
    }

    /// At most `limit` tasks for each value of a tag.
    pub fn by_tag(limit: usize, tag: impl Into<String>) -> Self {
        let tag = tag.into();
        Self::new(limit, move |request| request.ctx().info().tags.get(&tag).cloned())
    }
}

impl<S> Layer<S> for ConcurrencyByKeyLayer {
    type Service = ConcurrencyByKey<S>;
    fn layer(&self, inner: S) -> ConcurrencyByKey<S> {
        ConcurrencyByKey { inner, shared: Arc::clone(&self.shared) }
    }
}

/// The service of [`ConcurrencyByKeyLayer`].
#[derive(Clone)]
pub struct ConcurrencyByKey<S> {
    inner: S,
    shared: Arc<Keys>,
}

/// A place among the tasks of a key; the key is forgotten with its last place.
struct Place {
    keys: Arc<Keys>,
    key: String,
    slots: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    fn of(keys: &Arc<Keys>, key: String) -> Self {
        let mut slots = keys.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = Arc::clone(slots.entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(keys.limit))));
        Self { keys: Arc::clone(keys), key, slots: Some(mine), permit: None }
    }

    async fn wait(&mut self) {
        if let Some(slots) = &self.slots {
            // A closed semaphore is impossible: nobody closes it.
            self.permit = Arc::clone(slots).acquire_owned().await.ok();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut slots = self.keys.slots.lock().unwrap_or_else(PoisonError::into_inner);
        self.permit.take();
        self.slots.take();
        if slots.get(&self.key).is_some_and(|left| Arc::strong_count(left) == 1) {
            slots.remove(&self.key);
        }
    }
}

impl<S> Service<TaskRequest> for ConcurrencyByKey<S>
where
    S: Service<TaskRequest, Response = Option<Vec<u8>>, Error = TaskError> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Option<Vec<u8>>;
    type Error = TaskError;
    type Future = BoxFuture<'static, Result<Option<Vec<u8>>, TaskError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TaskError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: TaskRequest) -> Self::Future {
        // The service that was made ready runs the task; its clone waits for the next.
        let clone = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, clone);
        let place = (self.shared.key_of)(&request).map(|key| Place::of(&self.shared, key));
        Box::pin(async move {
            let mut place = place;
            if let Some(place) = &mut place {
                place.wait().await;
            }
            ready.call(request).await
        })
    }
}
