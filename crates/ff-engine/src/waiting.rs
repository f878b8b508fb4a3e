//! Waits for an execution's outcome without polling: its end is announced once someone asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{AwaitFlowReply, AwaitResultReply, CompleteExecution, Flow, Outcome};
use ff_script::{Error, Wake};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::news::{Listener, News};
use crate::operations::Operations;

#[derive(Default)]
struct Waiters {
    by_execution: HashMap<ExecutionId, (usize, Arc<Told>)>,
    /// Completions that this process has sent to the store and that are not answered yet.
    carried: HashMap<ExecutionId, usize>,
}

/// What the waiters of one execution are told.
#[derive(Default)]
struct Told {
    notify: Notify,
    /// Its outcome, when this process carried it to the store.
    outcome: Mutex<Option<AwaitResultReply>>,
}

impl Told {
    fn outcome(&self) -> std::sync::MutexGuard<'_, Option<AwaitResultReply>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everyone in this process who waits for an outcome.
pub struct Waiting {
    operations: Operations,
    waiters: Mutex<Waiters>,
}

impl Waiting {
    pub(crate) fn start(operations: Operations, tasks: &mut JoinSet<()>, stop: CancellationToken) -> Arc<Self> {
        let mut news = Listener::new(operations.client().host().as_ref());
        let waiting = Arc::new(Self { operations, waiters: Mutex::default() });
        let hearing = Arc::clone(&waiting);
        tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    heard = news.next() => match heard {
                        Some(heard) => hearing.hear(&heard),
                        None => return,
                    },
                }
            }
        });
        waiting
    }

    fn hear(&self, heard: &[News]) {
        let waiters = self.lock();
        for item in heard {
            match item {
                // Its outcome is on its way to this process by itself.
                News::Said(_, Wake::Done { execution_id }) if waiters.carried.contains_key(execution_id) => {}
                News::Said(_, Wake::Done { execution_id }) => {
                    if let Some((_, waiter)) = waiters.by_execution.get(execution_id) {
                        waiter.notify.notify_waiters();
                    }
                }
                News::Said(..) => {}
                // Whoever waits looks again.
                News::Lost(_) | News::LostAny => {
                    waiters.by_execution.values().for_each(|(_, waiter)| waiter.notify.notify_waiters())
                }
            }
        }
    }

    /// The outcome, or where the execution stands when `timeout` is over.
    pub async fn result(&self, id: ExecutionId, timeout: Duration) -> Result<AwaitResultReply, Error> {
        let until = tokio::time::Instant::now() + timeout;
        let ticket = Ticket::take(self, id);
        loop {
            // Registered before asking: an end between the answer and the wait is not missed.
            let told = ticket.told.notify.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if let Some(outcome) = ticket.told.outcome().clone() {
                return Ok(outcome);
            }
            let answer = self.operations.await_result(id).await?;
            if matches!(answer, AwaitResultReply::Ended { .. }) {
                return Ok(answer);
            }
            if tokio::time::timeout_at(until, told).await.is_err() {
                return Ok(answer);
            }
        }
    }

    /// This process sends completions of these executions. Their waiters in this process hear the outcome from the store's reply, not
    /// from its announcement.
    #[must_use]
    pub fn carry(self: &Arc<Self>, executions: impl IntoIterator<Item = ExecutionId>) -> Completing {
        let executions: Vec<ExecutionId> = executions.into_iter().collect();
        let mut waiters = self.lock();
        for id in &executions {
            *waiters.carried.entry(*id).or_default() += 1;
        }
        drop(waiters);
        Completing { waiting: Arc::clone(self), executions }
    }

    /// An execution was completed: its waiters in this process get the outcome without a call.
    fn completed(&self, call: &CompleteExecution) {
        let waiters = self.lock();
        let Some((_, told)) = waiters.by_execution.get(&call.execution_id) else { return };
        let encoding = || call.result_encoding.clone().unwrap_or_else(|| "json".to_owned());
        *told.outcome() = Some(AwaitResultReply::Ended {
            failure: None,
            outcome: Outcome::Success,
            result: call.result.clone(),
            result_encoding: call.result.as_ref().map(|_| encoding()),
        });
        told.notify.notify_waiters();
    }

    /// The flow once it has ended, or as it stands when `timeout` is over; the flag says which.
    pub async fn flow(&self, id: FlowId, timeout: Duration) -> Result<(Flow, bool), Error> {
        let until = tokio::time::Instant::now() + timeout;
        // The end of a flow is announced like that of an execution, by its id.
        let ticket = Ticket::take(self, ExecutionId::from_uuid(*id.as_uuid()));
        loop {
            let told = ticket.told.notify.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            match self.operations.await_flow(id).await? {
                AwaitFlowReply::Ended { flow } => return Ok((flow, true)),
                AwaitFlowReply::Waiting { flow } => {
                    if tokio::time::timeout_at(until, told).await.is_err() {
                        return Ok((flow, false));
                    }
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Completions on their way to the store. Dropping it wakes the waiters of those that were not completed, and they ask the store.
pub struct Completing {
    waiting: Arc<Waiting>,
    executions: Vec<ExecutionId>,
}

impl Completing {
    /// The store has taken this one.
    pub fn completed(&self, call: &CompleteExecution) {
        self.waiting.completed(call);
    }
}

impl Drop for Completing {
    fn drop(&mut self) {
        let mut waiters = self.waiting.lock();
        for id in &self.executions {
            if let Some(count) = waiters.carried.get_mut(id) {
                *count -= 1;
                if *count == 0 {
                    waiters.carried.remove(id);
                }
            }
            if let Some((_, told)) = waiters.by_execution.get(id) {
                told.notify.notify_waiters();
            }
        }
    }
}

/// A place among the waiters, given up on drop.
struct Ticket<'a> {
    waiting: &'a Waiting,
    id: ExecutionId,
    told: Arc<Told>,
}

impl<'a> Ticket<'a> {
    fn take(waiting: &'a Waiting, id: ExecutionId) -> Self {
        let mut waiters = waiting.lock();
        let (count, told) = waiters.by_execution.entry(id).or_insert_with(|| (0, Arc::default()));
        *count += 1;
        Self { waiting, id, told: Arc::clone(told) }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut waiters = self.waiting.lock();
        if let Some((count, _)) = waiters.by_execution.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                waiters.by_execution.remove(&self.id);
            }
        }
    }
}
