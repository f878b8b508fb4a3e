//! Connections on which calls get their reply only after the server confirmed their writes.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, Value};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::address::Endpoint;
use crate::connect::Connector;
use crate::durability::Confirmation;
use crate::fault::Fault;
use crate::node::reply;

/// A confirmation blocks its connection, so a few connections take turns.
pub(crate) const LANES: usize = 4;
/// The most calls one confirmation covers.
const BATCH: usize = 512;
/// How long the server may take to confirm.
const CONFIRM_LIMIT: Duration = Duration::from_secs(5);

struct Job {
    command: Cmd,
    answer: oneshot::Sender<Result<Value, Fault>>,
}

/// The lanes of one node. A lane takes all waiting calls and sends them on its own connection, followed by one
/// confirmation. It replies when the confirmation has arrived.
///
/// **Invariant:** a call and its confirmation use the same connection, because the server confirms the writes of the
/// connection that asks.
pub(crate) struct Lanes {
    jobs: mpsc::UnboundedSender<Job>,
}

impl Lanes {
    /// Starts the lanes. They end when this value is dropped.
    pub(crate) fn start(endpoint: Endpoint, connector: Connector, confirmation: Confirmation) -> Lanes {
        let (jobs, waiting) = mpsc::unbounded_channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..LANES {
            let lane = Lane {
                endpoint: endpoint.clone(),
                connector: connector.clone(),
                confirmation,
                waiting: Arc::clone(&waiting),
                connection: None,
            };
            tokio::spawn(lane.run());
        }
        Lanes { jobs }
    }

    pub(crate) async fn send(&self, command: Cmd) -> Result<Value, Fault> {
        let (answer, answered) = oneshot::channel();
        let closed = || Fault::Lost("the connection was closed".to_owned());
        self.jobs.send(Job { command, answer }).map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }
}

struct Lane {
    endpoint: Endpoint,
    connector: Connector,
    confirmation: Confirmation,
    waiting: Arc<Mutex<mpsc::UnboundedReceiver<Job>>>,
    connection: Option<MultiplexedConnection>,
}

impl Lane {
    async fn run(mut self) {
        let mut jobs = Vec::new();
        loop {
            jobs.clear();
            if self.waiting.lock().await.recv_many(&mut jobs, BATCH).await == 0 {
                return;
            }
            // Calls of callers that gave up are not sent, because they would run later than the caller believes.
            jobs.retain(|job| !job.answer.is_closed());
            if jobs.is_empty() {
                continue;
            }
            match self.send(&jobs).await {
                Ok(replies) => {
                    // The name may now resolve to another server.
                    if replies.iter().any(|reply| matches!(reply, Err(fault) if fault.is_read_only())) {
                        self.connection = None;
                    }
                    for (job, reply) in jobs.drain(..).zip(replies) {
                        let _ = job.answer.send(reply);
                    }
                }
                Err(fault) => {
                    self.connection = None;
                    for job in jobs.drain(..) {
                        let _ = job.answer.send(Err(fault.clone()));
                    }
                }
            }
        }
    }

    /// The replies of the jobs, all confirmed; or the fault that they share.
    async fn send(&mut self, jobs: &[Job]) -> Result<Vec<Result<Value, Fault>>, Fault> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            vacant => vacant.insert(self.connector.open(&self.endpoint).await?),
        };
        let mut pipeline = Pipeline::with_capacity(jobs.len() + 1);
        for job in jobs {
            pipeline.add_command(job.command.clone());
        }
        pipeline.add_command(self.confirmation.command(CONFIRM_LIMIT));
        let sent = connection.send_packed_commands(&pipeline, 0, jobs.len() + 1);
        let mut replies = match tokio::time::timeout(CONFIRM_LIMIT * 2, sent).await {
            Ok(Ok(replies)) => replies,
            Ok(Err(error)) => return Err(Fault::of_client(&error)),
            Err(_) => {
                return Err(Fault::Lost(format!("{} did not confirm within {CONFIRM_LIMIT:?}", self.endpoint)));
            }
        };
        let confirmed = replies.pop().ok_or_else(|| Fault::Corrupt("an empty reply to a pipeline".to_owned()))?;
        let confirmed = self.confirmation.check(&reply(Ok(confirmed))?);
        let replies = replies.into_iter().map(|value| match (reply(Ok(value)), &confirmed) {
            (Ok(_), Err(detail)) => Err(Fault::Elsewhere(format!("{}: {detail}", self.endpoint))),
            (outcome, _) => outcome,
        });
        Ok(replies.collect())
    }
}
