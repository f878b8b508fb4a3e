//! A host that counts and times what is called through it.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use ff_script::{Host, HostError, HostFacts, Invocation, Route, ScanCursor, ScanPage, Watch};
use tracing::Instrument;

use super::process::Process;

/// Another host, observed.
pub struct Observed {
    host: Arc<dyn Host>,
    process: Arc<Process>,
}

impl Observed {
    /// Observes a host.
    pub fn new(host: Arc<dyn Host>, process: Arc<Process>) -> Self {
        Self { host, process }
    }
}

#[async_trait]
impl Host for Observed {
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError> {
        let (function, read_only) = (invocation.function, invocation.read_only);
        let span = tracing::info_span!("store call", otel.kind = "client", function, partition = %invocation.route);
        ff_trace::name(&span, || function.to_owned());
        let began = Instant::now();
        let answer = self.host.call(invocation).instrument(span).await;
        self.process.called(function, read_only, answer.is_ok(), began.elapsed());
        answer
    }

    async fn run(&self, operations: Vec<Invocation>) -> Vec<Result<Vec<u8>, HostError>> {
        let named: Vec<_> = operations.iter().map(|one| (one.function, one.read_only)).collect();
        let span = tracing::info_span!("store list", otel.kind = "client", operations = operations.len());
        let began = Instant::now();
        let answers = self.host.run(operations).instrument(span).await;
        for ((function, read_only), answer) in named.into_iter().zip(&answers) {
            self.process.called(function, read_only, answer.is_ok(), began.elapsed());
        }
        answers
    }

    fn watch(&self) -> Watch {
        self.host.watch()
    }

    async fn subscribe(&self, routes: &[Route]) -> Result<(), HostError> {
        self.host.subscribe(routes).await
    }

    async fn hear_out(&self) -> Result<(), HostError> {
        self.host.hear_out().await
    }

    async fn scan(&self, cursor: ScanCursor, limit: usize) -> Result<ScanPage, HostError> {
        self.host.scan(cursor, limit).await
    }

    fn set_listening(&self, on: bool) {
        self.host.set_listening(on);
    }

    async fn store_commands(&self) -> Result<u64, HostError> {
        self.host.store_commands().await
    }

    fn facts(&self) -> HostFacts {
        self.host.facts()
    }
}
