//! A host that fails now and then, before a call is made or after it was.

use std::sync::Arc;

use async_trait::async_trait;
use ff_script::{Host, HostError, HostFacts, Invocation, Route, ScanCursor, ScanPage, Watch};

/// Passes calls on; one in `one_in` fails, half of those after the store has done it.
pub struct Flaky {
    pub inner: Arc<dyn Host>,
    pub one_in: u32,
}

fn lost() -> HostError {
    HostError::Unavailable { detail: "the test lost it".to_owned() }
}

#[async_trait]
impl Host for Flaky {
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError> {
        let fails = rand::random_ratio(1, self.one_in);
        if fails && rand::random() {
            return Err(lost());
        }
        let reply = self.inner.call(invocation).await;
        if fails { Err(lost()) } else { reply }
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
