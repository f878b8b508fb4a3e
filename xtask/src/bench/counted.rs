//! A host that counts its calls by function.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ff_script::{Host, HostError, HostFacts, Invocation, Route, ScanCursor, ScanPage, Watch};

pub struct Counted {
    inner: Arc<dyn Host>,
    calls: Mutex<BTreeMap<&'static str, usize>>,
}

impl Counted {
    pub fn over(inner: Arc<dyn Host>) -> Arc<Self> {
        Arc::new(Self { inner, calls: Mutex::default() })
    }

    /// The calls of each function so far.
    pub fn calls(&self) -> BTreeMap<&'static str, usize> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait::async_trait]
impl Host for Counted {
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError> {
        *self.calls.lock().unwrap_or_else(PoisonError::into_inner).entry(invocation.function).or_default() += 1;
        self.inner.call(invocation).await
    }

    async fn run(&self, operations: Vec<Invocation>) -> Vec<Result<Vec<u8>, HostError>> {
        {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            for operation in &operations {
                *calls.entry(operation.function).or_default() += 1;
            }
        }
        self.inner.run(operations).await
    }

    fn watch(&self) -> Watch {
        self.inner.watch()
    }

    async fn subscribe(&self, routes: &[Route]) -> Result<(), HostError> {
        self.inner.subscribe(routes).await
    }

    async fn hear_out(&self) -> Result<(), HostError> {
        self.inner.hear_out().await
    }

    async fn scan(&self, cursor: ScanCursor, limit: usize) -> Result<ScanPage, HostError> {
        self.inner.scan(cursor, limit).await
    }

    fn set_listening(&self, on: bool) {
        self.inner.set_listening(on);
    }

    async fn store_commands(&self) -> Result<u64, HostError> {
        self.inner.store_commands().await
    }

    fn facts(&self) -> HostFacts {
        self.inner.facts()
    }
}
