//! How long this server waits for what: one place for every patience it has, so that tests can have less of it.

use std::time::Duration;

/// How long a server waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The head of a request, from its first byte; the first one from the connection's begin.
    pub head: Duration,
    /// A body, before it has to come at some speed.
    pub body: Duration,
    /// A client that takes nothing of its answer.
    pub reader: Duration,
    /// A connection that is silent after an answer. Load balancers close theirs after 60 s; a server that closes first would
    /// reset requests on their way.
    pub idle: Duration,
    /// Answers in flight once the server stops.
    pub grace: Duration,
    /// A silent stream says this often that it is alive.
    pub keep_alive: Duration,
    /// A registration, after the worker's last word. The store keeps it as long as the library says.
    pub registered: Duration,
    /// The liveness of all workers is written this often.
    pub beat: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(5),
            body: Duration::from_secs(15),
            reader: Duration::from_secs(20),
            idle: Duration::from_secs(75),
            grace: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            registered: Duration::from_secs(30),
            beat: Duration::from_secs(10),
        }
    }
}
