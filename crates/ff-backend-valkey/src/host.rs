//! The host itself: sends calls to the right primary and repeats them until they are answered or time is up.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ff_script::envelope::Envelope;
use ff_script::{Content, Contents, Host, HostError, HostFacts, Invocation, Route, ScanCursor, ScanPage, Watch};
use redis::{Cmd, Value};

use crate::address::Address;
use crate::backoff::Backoff;
use crate::connect::Connector;
use crate::durability::{Confirmation, Promise};
use crate::fault::Fault;
use crate::inspect;
use crate::library::{self, Ensured};
use crate::node::Node;
use crate::options::Options;
use crate::patience::{gave_up, patiently};
use crate::topology::Topology;
use crate::wake::Wakes;

/// How long a confirmed call may take beyond its limit: a flush comes once a second.
const CONFIRM_SLACK: Duration = Duration::from_secs(5);

/// Runs the library on Valkey or Redis; see the crate's documentation.
pub struct ValkeyHost {
    options: Options,
    topology: Arc<Topology>,
    promise: Promise,
    wakes: Wakes,
    listening: AtomicBool,
    healthy: AtomicBool,
}

impl fmt::Debug for ValkeyHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.facts();
        f.debug_struct("ValkeyHost").field("kind", &facts.kind).field("durability", &facts.durability).finish()
    }
}

impl ValkeyHost {
    /// Connects, checks version and durability of every primary, and loads the library where it is missing or older.
    ///
    /// Repeats while the store is starting, until the deadline. Refuses a server that is too old, that would lose
    /// more than the durability allows, or that has another library under the same number.
    pub async fn connect(options: Options) -> Result<ValkeyHost, HostError> {
        let address = Address::parse(&options.url).map_err(|detail| HostError::Refused { detail })?;
        let connector = Connector::new(address, options.root_certificate.clone());
        let topology = Arc::new(Topology::new(connector));
        let promise = patiently(options.deadline, "connect", || async {
            topology.refresh().await?;
            let capability = inspect::capability(&topology).await?;
            let promise = Promise::decide(options.durability, capability).map_err(Fault::Refused)?;
            library::ensure_everywhere(&topology, &options.library).await?;
            Ok(promise)
        })
        .await?;
        if let Some(warning) = promise.warning {
            tracing::warn!("{warning}");
        }
        tracing::info!(durability = %promise.durability, loss_window = promise.loss_window, "connected");
        let wakes = Wakes::start(Arc::clone(&topology));
        Ok(ValkeyHost {
            options,
            topology,
            promise,
            wakes,
            listening: AtomicBool::new(false),
            healthy: AtomicBool::new(true),
        })
    }

    /// Every key that starts with `ff:` and what it holds, for tests: not one moment of the store but many.
    pub async fn dump(&self) -> Result<ff_script::dump::Dump, HostError> {
        inspect::dump(&self.topology, self.options.deadline).await
    }

    async fn patiently<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        what: &str,
        attempt: impl FnMut() -> F,
    ) -> Result<T, HostError> {
        let outcome = patiently(self.options.deadline, what, attempt).await;
        self.note(&outcome);
        outcome
    }

    /// Health follows the last call that says something about it.
    fn note<T>(&self, outcome: &Result<T, HostError>) {
        match outcome {
            Ok(_) => self.healthy.store(true, Ordering::Relaxed),
            Err(HostError::Unavailable { .. } | HostError::Full { .. }) => self.healthy.store(false, Ordering::Relaxed),
            Err(_) => {}
        }
    }

    /// One attempt at one node.
    async fn attempt(
        &self,
        node: &Node,
        command: &Cmd,
        confirm: Option<Confirmation>,
        left: Duration,
    ) -> Result<Vec<u8>, Fault> {
        let value = match confirm {
            None => node.send(command, self.options.attempt_limit.min(left)).await?,
            Some(confirmation) => {
                let limit = (self.options.attempt_limit + CONFIRM_SLACK).min(left);
                node.send_confirmed(command.clone(), confirmation, limit).await?
            }
        };
        match value {
            Value::BulkString(bytes) => Ok(bytes),
            other => Err(Fault::Corrupt(format!("a function answered {other:?} instead of bytes"))),
        }
    }

    /// Repeats the call until it is answered, refused, or the deadline has passed.
    async fn run(
        &self,
        route: &str,
        function: &str,
        command: &Cmd,
        confirm: Option<Confirmation>,
    ) -> Result<Vec<u8>, HostError> {
        let started = Instant::now();
        let mut backoff = Backoff::new();
        let mut kept = 0;
        loop {
            let left = self.options.deadline.saturating_sub(started.elapsed());
            let node = self.topology.node(route.as_bytes());
            let outcome = match &node {
                Some(node) => self.attempt(node, command, confirm, left).await,
                None => Err(Fault::Elsewhere(format!("no node serves {route}"))),
            };
            let fault = match (outcome, &node) {
                (Ok(bytes), _) => return Ok(bytes),
                (Err(Fault::NoFunction), Some(node)) if kept < 3 => {
                    // Other nodes that lost it load it when they are called.
                    let loaded = library::ensure(&self.topology, node, &self.options.library);
                    match tokio::time::timeout(left, loaded).await {
                        Ok(Ok(Ensured::Loaded)) => {
                            kept = 0;
                            continue;
                        }
                        // Another caller loaded it, or it has no such function: a few more looks tell.
                        Ok(Ok(Ensured::Kept)) => {
                            kept += 1;
                            continue;
                        }
                        Ok(Err(fault)) => fault,
                        Err(_) => Fault::Lost(format!("{} did not take the library in time", node.endpoint)),
                    }
                }
                (Err(fault), _) => fault,
            };
            match &fault {
                Fault::Lost(_) | Fault::Elsewhere(_) => {}
                _ => return Err(fault.into_error(function)),
            }
            let pause = backoff.next();
            if started.elapsed() + pause >= self.options.deadline {
                return Err(gave_up(fault, function, started.elapsed()));
            }
            tracing::debug!(function, route, ?fault, "repeating");
            if fault.is_read_only()
                && let Some(node) = &node
            {
                // A name may lead to another server by now.
                node.reconnect();
            }
            tokio::time::sleep(pause).await;
            let left = self.options.deadline.saturating_sub(started.elapsed());
            let refreshed = tokio::time::timeout(left, self.topology.refresh()).await;
            if let Ok(Err(refusal @ Fault::Refused(_))) = refreshed {
                return Err(refusal.into_error(function));
            }
        }
    }
}

#[async_trait]
impl Contents for ValkeyHost {
    async fn read_keys(&self, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Content>>, HostError> {
        let read = inspect::contents(&self.topology, &keys, self.options.deadline).await;
        self.note(&read);
        read
    }

    async fn write_keys(&self, keys: Vec<(Vec<u8>, Content)>) -> Result<(), HostError> {
        // Not repeated: whether a stream has taken an entry is not known after a lost answer.
        let written = inspect::load(&self.topology, &keys).await.map_err(|fault| fault.into_error("import"));
        self.note(&written);
        written
    }

    async fn remove_keys(&self, keys: Vec<Vec<u8>>) -> Result<(), HostError> {
        self.patiently("remove", || inspect::remove(&self.topology, &keys)).await
    }
}

#[async_trait]
impl Host for ValkeyHost {
    async fn call(&self, invocation: Invocation) -> Result<Vec<u8>, HostError> {
        let envelope = Envelope {
            guard: self.topology.is_cluster(),
            listen: self.listening.load(Ordering::Relaxed),
            now_ms: invocation.now_ms,
            count_calls: invocation.count_calls,
        };
        let route = invocation.route.to_string();
        let mut command = redis::cmd(if invocation.read_only { "FCALL_RO" } else { "FCALL" });
        command.arg(invocation.function).arg(1).arg(&route).arg(envelope.seal(&invocation.args)?);
        let confirm = if invocation.read_only { None } else { self.promise.confirmation };
        let outcome = self.run(&route, invocation.function, &command, confirm).await;
        self.note(&outcome);
        outcome
    }

    fn watch(&self) -> Watch {
        self.wakes.watch()
    }

    async fn subscribe(&self, routes: &[Route]) -> Result<(), HostError> {
        self.wakes.subscribe(routes, self.options.deadline).await
    }

    async fn hear_out(&self) -> Result<(), HostError> {
        self.wakes.hear_out(self.options.deadline).await
    }

    async fn scan(&self, cursor: ScanCursor, limit: usize) -> Result<ScanPage, HostError> {
        self.patiently("scan", || inspect::scan(&self.topology, cursor.clone(), limit)).await
    }

    fn set_listening(&self, on: bool) {
        self.listening.store(on, Ordering::Relaxed);
    }

    async fn store_commands(&self) -> Result<u64, HostError> {
        self.patiently("INFO", || inspect::commands(&self.topology)).await
    }

    fn facts(&self) -> HostFacts {
        HostFacts {
            kind: if self.topology.is_cluster() { "valkey-cluster" } else { "valkey" },
            durability: self.promise.durability.to_string(),
            loss_window: self.promise.loss_window.to_owned(),
            healthy: self.healthy.load(Ordering::Relaxed),
            // Valkey frees memory by itself as work ends; what does not fit is refused call by call.
            full: false,
        }
    }
}
