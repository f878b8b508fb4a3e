//! Submitters and workers that behave like real ones, and journal every acknowledgement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ff_core::error_code::ErrorCode;
use ff_core::types::ExecutionId;
use ff_engine::{Claimant, NewExecution, Operations, fence_of};
use ff_script::generated::{Backoff, BackoffType, CancelExecutionReply, Fence, Retry, SubmitExecutionReply, Task};
use ff_script::{Error, HostError};
use rand::Rng;
use rand::seq::SliceRandom;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::journal::{Entry, Journal};
use ff_testkit::Tasks;

/// The lease that every worker requests.
pub const LEASE_MS: i64 = 1_000;
/// Executions that may be open; above it, submitters wait.
const OPEN_MAX: i64 = 300;

#[derive(Clone)]
pub struct Load {
    operations: Operations,
    journal: Journal,
    name: String,
    pause: Duration,
    open: Arc<AtomicI64>,
}

/// The input of an execution, so that input and output bytes can be compared.
#[must_use]
pub fn input_of(id: ExecutionId) -> Vec<u8> {
    let mut input = id.to_string().into_bytes();
    input.extend([0, 0xff, b'\n']);
    if id.seed().is_multiple_of(8) {
        input.resize(6_000, 7);
    }
    input
}

/// The result of a completion by this lease.
#[must_use]
pub fn result_of(id: ExecutionId, epoch: i64) -> Vec<u8> {
    let mut result = format!("{id} by {epoch}").into_bytes();
    if id.seed().is_multiple_of(16) {
        result.resize(5_000, 9);
    }
    result
}

impl Load {
    /// A load with its own name, and a pause between the steps of each actor.
    #[must_use]
    pub fn new(operations: Operations, journal: Journal, name: &str, pause: Duration) -> Load {
        Load { operations, journal, name: name.to_owned(), pause, open: Arc::default() }
    }

    /// Runs two submitters and three workers until `stop`. They end between two calls.
    pub fn start(&self, stop: &CancellationToken) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for _ in 0..2 {
            let (load, stop) = (self.clone(), stop.clone());
            tasks.spawn(async move { load.submit_until(&stop).await });
        }
        for n in 0..3 {
            let (load, stop) = (self.clone(), stop.clone());
            tasks.spawn(async move { load.work_until(n, &stop, false).await });
        }
        tasks
    }

    /// Runs workers that only complete, until `stop`, so that the remaining work ends.
    pub fn finish(&self, stop: &CancellationToken) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for n in 10..14 {
            let (load, stop) = (self.clone(), stop.clone());
            tasks.spawn(async move { load.work_until(n, &stop, true).await });
        }
        tasks
    }

    async fn submit_until(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            if self.open.load(Ordering::Relaxed) < OPEN_MAX {
                self.submit_some().await;
            }
            tokio::time::sleep(self.pause).await;
        }
    }

    fn new_execution(&self) -> NewExecution {
        let roll = rand::rng().random_range(0..10);
        let mut new = NewExecution::new("default", ["one", "two"][roll % 2], "crash");
        let id = new.fields.execution_id;
        new.fields.input = Some(input_of(id).into());
        new.fields.tags = Some(BTreeMap::from([("load".to_owned(), self.name.clone())]));
        new.fields.max_reclaims = Some(1_000);
        new.fields.retry = Some(Retry {
            max_attempts: Some(1_000),
            backoff: Some(Backoff { delay_ms: Some(50), ..Backoff::new(BackoffType::Fixed) }),
            ..Retry::default()
        });
        match roll {
            0 => new.fields.delay_ms = Some(rand::rng().random_range(10..300)),
            1 => new.fields.priority = Some(5),
            _ => {}
        }
        new
    }

    async fn submit_some(&self) {
        if rand::rng().random_ratio(1, 8) {
            let batch: Vec<NewExecution> = (0..10).map(|_| self.new_execution()).collect();
            match self.operations.submit_many(batch).await {
                Ok(answers) => answers.into_iter().for_each(|answer| self.submitted(answer)),
                Err(error) => self.judge("submit_many", &error),
            }
            return;
        }
        let new = self.new_execution();
        let answer = self.operations.submit(new).await;
        let id = match &answer {
            Ok(SubmitExecutionReply::Created { execution_id, .. }) => Some(*execution_id),
            _ => None,
        };
        self.submitted(answer);
        if let Some(id) = id
            && rand::rng().random_ratio(1, 20)
        {
            match self.operations.cancel(id, "load", None, None).await {
                Ok(CancelExecutionReply::Cancelled) => {
                    self.open.fetch_sub(1, Ordering::Relaxed);
                    self.journal.write(&Entry::Cancelled(id));
                }
                Ok(_) => {}
                Err(error) => self.judge("cancel", &error),
            }
        }
    }

    fn submitted(&self, answer: Result<SubmitExecutionReply, Error>) {
        match answer {
            Ok(SubmitExecutionReply::Created { execution_id, .. }) => {
                self.open.fetch_add(1, Ordering::Relaxed);
                self.journal.write(&Entry::Submitted(execution_id));
            }
            // The first request arrived, but its reply did not.
            Ok(SubmitExecutionReply::Duplicate { execution_id, .. }) => {
                self.journal.write(&Entry::Submitted(execution_id))
            }
            Err(error) => self.judge("submit", &error),
        }
    }

    async fn work_until(&self, n: usize, stop: &CancellationToken, only_complete: bool) {
        let mut routes: Vec<_> = self.operations.client().execution_routes().collect();
        while !stop.is_cancelled() {
            routes.shuffle(&mut rand::rng());
            for route in &routes {
                for lane in ["one", "two"] {
                    if stop.is_cancelled() {
                        return;
                    }
                    let who = Claimant {
                        namespace: "default".to_owned(),
                        lane: lane.to_owned(),
                        worker_id: "crash".to_owned(),
                        instance: format!("{}-{n}", self.name),
                        capabilities: Vec::new(),
                        kinds: None,
                        lease_ttl_ms: LEASE_MS,
                    };
                    match self.operations.claim(*route, &who, 4, Uuid::now_v7()).await {
                        Ok(claimed) => {
                            for task in &claimed.tasks {
                                let (id, attempt, epoch) = (task.execution_id, task.attempt_index, task.lease_epoch);
                                self.journal.write(&Entry::Claimed { id, attempt, epoch });
                                if task.input.0 != input_of(id) {
                                    self.journal.write(&Entry::Broken(format!(
                                        "{id} came with other bytes than it was sent with"
                                    )));
                                }
                            }
                            for task in &claimed.tasks {
                                self.work(task, only_complete).await;
                            }
                        }
                        Err(error) => self.judge("claim", &error),
                    }
                }
            }
            tokio::time::sleep(self.pause).await;
        }
    }

    async fn work(&self, task: &Task, only_complete: bool) {
        let (id, fence) = (task.execution_id, fence_of(task));
        let roll = if only_complete { 0 } else { rand::rng().random_range(0..100) };
        match roll {
            0..75 => self.complete(id, fence).await,
            75..85 => {
                if let Err(error) = self.operations.client().renew(id, fence).await {
                    return self.refused(id, &fence, "renew", &error);
                }
                self.complete(id, fence).await;
            }
            85..93 => {
                if let Err(error) = self.operations.client().fail(id, fence, "bad luck", "transient").await {
                    self.refused(id, &fence, "fail", &error);
                }
            }
            93..96 => {
                if let Err(error) = self.operations.yield_back(id, fence).await {
                    self.refused(id, &fence, "yield", &error);
                }
            }
            // Abandons the task: the lease expires.
            _ => {}
        }
    }

    /// Completes, and repeats the call after a lost reply: the same lease gets the same reply.
    async fn complete(&self, id: ExecutionId, fence: Fence) {
        let epoch = fence.lease_epoch;
        for _ in 0..5 {
            match self.operations.client().complete(id, fence, Some(result_of(id, epoch))).await {
                Ok(_) => {
                    self.open.fetch_sub(1, Ordering::Relaxed);
                    return self.journal.write(&Entry::Completed { id, epoch });
                }
                Err(error) if error.is_retryable() => {}
                Err(error) => return self.refused(id, &fence, "complete", &error),
            }
        }
    }

    fn refused(&self, id: ExecutionId, fence: &Fence, what: &str, error: &Error) {
        if let Error::Engine(engine) = error
            && let Some(code) = engine.error_code()
        {
            let ended = [
                ErrorCode::StaleLease,
                ErrorCode::LeaseExpired,
                ErrorCode::LeaseRevoked,
                ErrorCode::ExecutionNotActive,
            ];
            if ended.contains(&code) {
                let entry = Entry::Refused { id, epoch: fence.lease_epoch, code: code.as_str().to_owned() };
                return self.journal.write(&entry);
            }
        }
        self.judge(what, error);
    }

    /// An unreachable store is expected in these tests. Anything else is a defect.
    fn judge(&self, what: &str, error: &Error) {
        match error {
            Error::Host(HostError::Unavailable { .. } | HostError::Closed) => {}
            _ if error.is_retryable() => {}
            _ => self.journal.write(&Entry::Broken(format!("{what}: {error}"))),
        }
    }
}
