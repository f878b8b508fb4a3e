//! Ends of many attempts in one request to the store, with the next claim of their worker.

use ff_api::claims::ClaimBody;
use ff_api::results::{
    AtMost, RESULTS_MAX, ResultAnswer, ResultItem, ResultRefused, ResultsAnswered, ResultsBody, SendResults, TaskEnd,
    TaskResult,
};
use ff_api::tasks::{TaskDone, TaskOutcome};
use ff_api::{Ask, Problem};
use ff_core::limits::{INPUT_BYTES_MAX, REASON_BYTES_MAX};
use ff_core::types::{ExecutionId, LeaseId};
use ff_script::client::Asked;
use ff_script::generated::{CompleteExecution, CompleteExecutionReply, FailExecution, Fence};
use ff_script::{Answers, Error};

use super::{about, bounded, stored};
use crate::fleet::Ends;
use crate::principal::Principal;
use crate::service::{Handle, Service};
use crate::waiting::Completing;

/// The call that fails an attempt.
pub(super) fn failure(
    execution_id: ExecutionId,
    fence: Fence,
    (reason, category): (String, String),
    retryable: Option<bool>,
    retry_after_ms: Option<i64>,
) -> Result<FailExecution, Problem> {
    bounded("reason", Some(&reason), REASON_BYTES_MAX)?;
    let draw = rand::random_range(0..=1000);
    Ok(FailExecution { category, draw, execution_id, fence, reason, retry_after_ms, retryable })
}

/// How one attempt ends.
enum End {
    Complete(CompleteExecution),
    Fail(FailExecution),
}

impl End {
    fn of(result: TaskResult) -> Result<Self, Problem> {
        let TaskResult { execution_id, fence, end, .. } = result;
        Ok(match end {
            TaskEnd::Complete { result } => {
                let (result, result_encoding) = stored("result", result, INPUT_BYTES_MAX)?;
                Self::Complete(CompleteExecution { execution_id, fence, result, result_encoding })
            }
            TaskEnd::Fail { reason, category, retryable, retry_after_ms } => {
                Self::Fail(failure(execution_id, fence, (reason, category), retryable, retry_after_ms)?)
            }
        })
    }
}

/// An end on its way.
enum Sent {
    Complete(Asked<CompleteExecution>, CompleteExecution),
    Fail(Asked<FailExecution>, ExecutionId),
}

impl Sent {
    /// What became of it. Waiters of this process hear of completions from the store's replies.
    fn answered(self, answers: &mut Answers, carried: &Completing) -> Result<TaskDone, Error> {
        match self {
            Self::Complete(asked, call) => {
                let reply = answers.take(asked)?;
                if reply == CompleteExecutionReply::Completed {
                    carried.completed(&call);
                }
                let replayed = reply == CompleteExecutionReply::Replayed;
                Ok(TaskDone::new(call.execution_id, TaskOutcome::Completed, replayed))
            }
            Self::Fail(asked, id) => answers.take(asked).map(|reply| TaskDone::failed(id, reply)),
        }
    }
}

/// What became of a result before the store was asked.
enum Item {
    Sent(ExecutionId, LeaseId, Sent),
    Refused(ResultRefused),
}

fn refused(id: ExecutionId, problem: &Problem) -> ResultRefused {
    ResultRefused { execution_id: Some(id), problem: problem.facts().clone() }
}

impl Service {
    /// Ends tasks of a worker, each answered on its own, and claims for it when the request says so. `still_may` is asked when tasks
    /// have come: a caller it refuses gets none of them.
    pub async fn results(
        &self,
        by: &Principal,
        instance: &str,
        body: ResultsBody,
        still_may: impl Future<Output = Result<(), Problem>>,
    ) -> Result<ResultsAnswered, Problem> {
        let ResultsBody { results: AtMost { items, count }, claim, incarnation, .. } = body;
        if count > RESULTS_MAX {
            return Err(Problem::invalid("results", format!("must hold at most {RESULTS_MAX} items, got {count}")));
        }
        // A result is worth taking from a worker whose registration ran out; its fence is what counts.
        match self.fleet.heard(instance, incarnation).await {
            Err(problem) if problem.code() != "worker_not_registered" => return Err(problem),
            _ => {}
        }
        let lane = items.iter().rev().find_map(|item| match item {
            ResultItem::Said(result) => result.lane.clone(),
            ResultItem::Refused(_) => None,
        });
        let mut ends = Vec::with_capacity(items.len());
        for item in items {
            ends.push(match item {
                ResultItem::Said(result) => {
                    let (id, lease) = (result.execution_id, result.fence.lease_id);
                    let end = match End::of(result) {
                        Ok(end) => self.check_fence(by, id, lease).await.map(|()| end),
                        Err(problem) => Err(problem),
                    };
                    end.map(|end| (id, lease, end)).map_err(|problem| refused(id, &problem))
                }
                ResultItem::Refused(refused) => Err(refused),
            });
        }
        let completes = ends.iter().filter_map(|end| match end {
            Ok((id, _, End::Complete(_))) => Some(*id),
            _ => None,
        });
        let carried = self.engine.waiting().carry(completes);
        let (client, mut list) = (self.operations.client(), Ends::default());
        let asked: Vec<Item> = ends
            .into_iter()
            .map(|end| match end {
                Ok((id, lease, End::Complete(call))) => {
                    Item::Sent(id, lease, Sent::Complete(list.add(client, id, &call), call))
                }
                Ok((id, lease, End::Fail(call))) => Item::Sent(id, lease, Sent::Fail(list.add(client, id, &call), id)),
                Err(refused) => Item::Refused(refused),
            })
            .collect();
        let (mut answers, claimed) = self.send(instance, list, claim, lane.as_deref(), still_may).await;
        let answered = |item| match item {
            Item::Refused(refused) => ResultAnswer::Refused(refused),
            Item::Sent(id, lease, sent) => {
                let done = sent.answered(&mut answers, &carried).map_err(about(id));
                self.note_end(lease, &done, |_| true);
                match done {
                    Ok(done) => ResultAnswer::Done(done),
                    Err(problem) => ResultAnswer::Refused(refused(id, &problem)),
                }
            }
        };
        let results = asked.into_iter().map(answered).collect();
        let (tasks, claim_error) = match claimed {
            None => (None, None),
            Some(Ok(tasks)) => (Some(tasks), None),
            Some(Err(problem)) => (None, Some(problem.facts().clone())),
        };
        Ok(ResultsAnswered { results, tasks, claim_error })
    }

    /// Sends ends to the store, with the worker's claim when it has one.
    async fn send(
        &self,
        instance: &str,
        ends: Ends,
        claim: Option<ClaimBody>,
        lane: Option<&str>,
        still_may: impl Future<Output = Result<(), Problem>>,
    ) -> (Answers, Option<Result<Vec<ff_api::claims::Task>, Problem>>) {
        let Some(claim) = claim else { return (self.operations.client().run(ends.list).await, None) };
        let (answers, claimed) = self.claim_after(instance, claim, ends, lane, still_may).await;
        (answers, Some(claimed.map(|tasks| tasks.into_iter().map(Into::into).collect())))
    }
}

impl Handle<SendResults> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<SendResults>) -> Result<ResultsAnswered, Problem> {
        self.results(by, &ask.at, ask.body.into(), async { Ok(()) }).await
    }
}
