//! One server of the store: a shared connection, opened on first use and again after a loss.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::sync::Mutex;

use crate::address::Endpoint;
use crate::connect::Connector;
use crate::durability::Confirmation;
use crate::fault::Fault;
use crate::lane::Lanes;

/// How long callers that waited for a failed connection attempt share its failure, instead of trying one after the
/// other.
const SHARED_FAILURE: Duration = Duration::from_millis(20);

/// After a silence of this length, the connection counts as lost.
const PATIENT: Duration = Duration::from_millis(250);

/// A server and the connections to it.
pub(crate) struct Node {
    pub(crate) endpoint: Endpoint,
    connector: Connector,
    current: RwLock<Option<Numbered>>,
    connecting: Mutex<Option<(Instant, Fault)>>,
    lanes: OnceLock<Lanes>,
}

/// A connection with a number, so that only the failed connection is dropped.
#[derive(Clone)]
struct Numbered {
    number: u64,
    connection: MultiplexedConnection,
}

impl Node {
    pub(crate) fn new(endpoint: Endpoint, connector: Connector) -> Arc<Node> {
        Arc::new(Node {
            endpoint,
            connector,
            current: RwLock::new(None),
            connecting: Mutex::new(None),
            lanes: OnceLock::new(),
        })
    }

    /// Sends one command and returns its reply; `limit` includes connecting.
    pub(crate) async fn send(&self, command: &Cmd, limit: Duration) -> Result<Value, Fault> {
        let mut number = None;
        let attempt = async {
            let mut current = self.connection().await?;
            number = Some(current.number);
            reply(current.connection.send_packed_command(command).await)
        };
        let outcome = tokio::time::timeout(limit, attempt).await;
        let lost = match &outcome {
            Ok(outcome) => matches!(outcome, Err(Fault::Lost(_))),
            // A timeout near the caller's deadline says nothing about the connection.
            Err(_) => limit >= PATIENT,
        };
        if let (true, Some(number)) = (lost, number) {
            self.drop_connection(number);
        }
        outcome.unwrap_or_else(|_| Err(Fault::Lost(format!("{} did not respond within {limit:?}", self.endpoint))))
    }

    /// Sends a command and waits for the requested confirmation of its writes.
    pub(crate) async fn send_confirmed(
        &self,
        command: Cmd,
        confirmation: Confirmation,
        limit: Duration,
    ) -> Result<Value, Fault> {
        let lanes =
            self.lanes.get_or_init(|| Lanes::start(self.endpoint.clone(), self.connector.clone(), confirmation));
        match tokio::time::timeout(limit, lanes.send(command)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Fault::Lost(format!("{} did not confirm within {limit:?}", self.endpoint))),
        }
    }

    /// Drops the connection, e.g. because the server is now a replica.
    pub(crate) fn reconnect(&self) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn drop_connection(&self, number: u64) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|held| held.number == number) {
            *current = None;
        }
    }

    fn held(&self) -> Option<Numbered> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn connection(&self) -> Result<Numbered, Fault> {
        if let Some(held) = self.held() {
            return Ok(held);
        }
        let asked = Instant::now();
        let mut failure = self.connecting.lock().await;
        if let Some(held) = self.held() {
            return Ok(held);
        }
        if let Some((at, fault)) = failure.as_ref()
            && (*at > asked || at.elapsed() < SHARED_FAILURE)
        {
            return Err(fault.clone());
        }
        match self.connector.open(&self.endpoint).await {
            Ok(connection) => {
                *failure = None;
                let fresh = Numbered { number: next_number(), connection };
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(fresh.clone());
                Ok(fresh)
            }
            Err(fault) => {
                *failure = Some((Instant::now(), fault.clone()));
                Err(fault)
            }
        }
    }
}

fn next_number() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// The reply, or the fault of an error reply.
pub(crate) fn reply(result: redis::RedisResult<Value>) -> Result<Value, Fault> {
    match result {
        Ok(Value::ServerError(error)) => Err(Fault::of_reply(error.code(), error.details().unwrap_or_default())),
        Ok(value) => Ok(value),
        Err(error) => Err(Fault::of_client(&error)),
    }
}
