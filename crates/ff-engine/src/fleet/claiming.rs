//! A long poll for work: within the worker's slots, woken by notification, repeatable by its request id.

use std::sync::Arc;
use std::time::Duration;

use ff_api::Problem;
use ff_core::types::ExecutionId;
use ff_script::Answers;
use ff_script::generated::Task;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::finishing::Ends;
use super::worker::{Begun, Poll, Worker};
use super::{Answer, Fleet};
use crate::dispatch::{Dispatcher, Profile};

/// What a claim asks for.
pub struct ClaimWish {
    /// The worker and the lanes it claims from.
    pub profile: Profile,
    /// How many tasks at most.
    pub max: u16,
    /// How long to wait for the first.
    pub wait: Duration,
    /// The same id again answers the same tasks, as far as they are still leased.
    pub request_id: Uuid,
}

impl Fleet {
    /// Tasks for a worker. Its caller may go away at any time: what it has not been given goes to someone else.
    ///
    /// `still_may` is asked when tasks have come: a caller it refuses gets none of them.
    pub async fn claim(
        &self,
        worker: &Arc<Worker>,
        wish: ClaimWish,
        stop: &CancellationToken,
        still_may: impl Future<Output = Answer<()>>,
    ) -> Answer<Vec<Task>> {
        if self.here {
            return tokio::select! {
                claimed = self.dispatcher.claim(&wish.profile, wish.max, wish.wait, wish.request_id) => Ok(claimed?),
                () = stop.cancelled() => Ok(Vec::new()),
            };
        }
        let mut poll = match self.begin(worker, wish.request_id).await? {
            Ok(poll) => poll,
            Err(before) => return Ok(before),
        };
        let tasks = self.wait_for_tasks(worker, &wish, &mut poll, stop).await?;
        self.hand_out(worker, poll, tasks, still_may).await
    }

    /// Runs operations that end leases of a worker and claims for it, in the same call of the store. They are answered whatever becomes of
    /// the claim, which never waits. When no work is known of, it looks where the last one ended, in `lane`.
    pub async fn claim_after(
        &self,
        worker: &Arc<Worker>,
        wish: ClaimWish,
        ends: Ends,
        lane: Option<&str>,
        still_may: impl Future<Output = Answer<()>>,
    ) -> (Answers, Answer<Vec<Task>>) {
        let Ends { list, count, last } = ends;
        if self.here {
            let (ended, claimed) =
                self.dispatcher.claim_after(list, last, lane, &wish.profile, wish.max, wish.request_id).await;
            return (ended, claimed.map_err(Problem::from));
        }
        let poll = match self.begin(worker, wish.request_id).await {
            Ok(Ok(poll)) => poll,
            Ok(Err(before)) => return (self.operations.client().run(list).await, Ok(before)),
            Err(problem) => return (self.operations.client().run(list).await, Err(problem)),
        };
        let Some(reserved) = worker.reserve(wish.max, count) else {
            poll.answer(Vec::new());
            return (self.operations.client().run(list).await, Ok(Vec::new()));
        };
        let (ended, claimed) =
            self.dispatcher.claim_after(list, last, lane, &wish.profile, reserved.count, poll.kept_as).await;
        let tasks = match claimed {
            Ok(tasks) => self.hand_out(worker, poll, tasks, still_may).await,
            Err(error) => Err(error.into()),
        };
        (ended, tasks)
    }

    /// Begins a claim; one that was answered before has its tasks already.
    async fn begin(&self, worker: &Arc<Worker>, request_id: Uuid) -> Answer<Result<Poll, Vec<Task>>> {
        let before = self.first_look(worker, request_id).await?;
        if !before.is_empty() {
            worker.remember(request_id, before.iter().map(|task| task.execution_id).collect());
            return Ok(Err(before));
        }
        match worker.begin(request_id) {
            Begun::New(poll) => Ok(Ok(poll)),
            Begun::Before { kept_as, executions } => {
                let mut routes: Vec<_> = executions.iter().map(|id| self.operations.client().route_of(id)).collect();
                routes.sort_unstable();
                routes.dedup();
                let tasks = self.find(worker, kept_as, routes).await?;
                if !tasks.is_empty() {
                    return Ok(Err(tasks));
                }
                worker.forget_request(request_id);
                Ok(match worker.begin(request_id) {
                    Begun::New(poll) => Ok(poll),
                    // Someone else repeated it in the same moment.
                    Begun::Before { .. } => Err(Vec::new()),
                })
            }
        }
    }

    /// Hands tasks to the worker, if its caller still may have them.
    async fn hand_out(
        &self,
        worker: &Arc<Worker>,
        poll: Poll,
        tasks: Vec<Task>,
        still_may: impl Future<Output = Answer<()>>,
    ) -> Answer<Vec<Task>> {
        let tasks = if tasks.is_empty() {
            tasks
        } else {
            let held = self.dispatcher.hold(tasks);
            still_may.await?;
            held.take()
        };
        for task in &tasks {
            self.holds(worker, task.lease_id, task.lease_expires_at);
        }
        poll.answer(tasks.iter().map(|task| task.execution_id).collect());
        Ok(tasks)
    }

    async fn wait_for_tasks(
        &self,
        worker: &Arc<Worker>,
        wish: &ClaimWish,
        poll: &mut Poll,
        stop: &CancellationToken,
    ) -> Answer<Vec<Task>> {
        let until = Instant::now() + wish.wait;
        let dispatcher: &Dispatcher = &self.dispatcher;
        let superseded = poll.superseded.clone();
        loop {
            let freed = worker.freed.notified();
            let granted = worker.granted.notified();
            tokio::pin!(freed, granted);
            freed.as_mut().enable();
            granted.as_mut().enable();
            let over = async {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = superseded.cancelled() => {}
                }
            };
            let Some(reserved) = worker.reserve(wish.max, 0) else {
                let look_again = worker.first_end().map_or(until, |end| until.min(Instant::now() + end));
                tokio::select! {
                    () = over => return Ok(Vec::new()),
                    () = &mut freed => {}
                    () = tokio::time::sleep_until(look_again) => {}
                }
                if Instant::now() >= until {
                    return Ok(Vec::new());
                }
                continue;
            };
            if let Some(task) = self.take_granted(worker, wish, poll).await? {
                return Ok(vec![task]);
            }
            let left = until.saturating_duration_since(Instant::now());
            // A claim is given up for an operator's grant only, which is rare: giving one up may hand work back.
            tokio::select! {
                claimed = dispatcher.claim(&wish.profile, reserved.count, left, poll.kept_as) => return Ok(claimed?),
                () = &mut granted => {
                    // The claim given up may still reach the store and takes what its id holds there for its own, to hand it
                    // back: what comes now is kept under another.
                    poll.kept_as = Uuid::now_v7();
                }
                // A worker that drains takes nothing new; the next round waits without asking for work.
                () = worker.drained() => {}
                () = over => return Ok(Vec::new()),
            }
        }
    }

    /// An execution an operator handed to this worker.
    async fn take_granted(&self, worker: &Worker, wish: &ClaimWish, poll: &Poll) -> Answer<Option<Task>> {
        while let Some((execution_id, grant_id)) = worker.next_grant() {
            match self.consume(&wish.profile, execution_id, grant_id, poll.kept_as).await {
                Ok(task) => return Ok(Some(task)),
                Err(problem) if problem.is_retryable() => return Err(problem),
                Err(problem) => {
                    tracing::debug!(code = problem.code(), execution = %execution_id, "a reclaim grant could not be used");
                }
            }
        }
        Ok(None)
    }

    /// Turns a grant into a lease of a worker, without counting it against its slots.
    async fn consume(
        &self,
        profile: &Profile,
        execution_id: ExecutionId,
        grant_id: Uuid,
        request_id: Uuid,
    ) -> Answer<Task> {
        let task = self.operations.consume_grant(profile, execution_id, grant_id, request_id).await;
        task.map_err(|error| Problem::from(error).about(execution_id))
    }

    /// Turns a grant into a lease of this worker.
    pub async fn take_up(
        &self,
        worker: &Arc<Worker>,
        profile: &Profile,
        execution_id: ExecutionId,
        grant_id: Uuid,
        request_id: Uuid,
    ) -> Answer<Task> {
        let task = self.consume(profile, execution_id, grant_id, request_id).await?;
        self.holds(worker, task.lease_id, task.lease_expires_at);
        Ok(task)
    }
}
