//! Tasks, whichever way the engine is reached: claimed, granted, worked on, and ended.

use std::time::Duration;

use ff_api::claims::{ClaimBody, ClaimTasks, ConsumeBody, ConsumeTask, GrantBody, GrantTasks};
use ff_api::executions::{ReclaimBody, ReclaimExecution};
use ff_api::results::{ResultAnswer, ResultItem, ResultsBody, ResultsOrList, SendResults, TaskEnd, TaskResult};
use ff_api::tasks::{
    CancelBody, CancelTask, DelayBody, DelayTask, FailBody, FailTask, ProgressBody, ReportProgress, YieldBody,
    YieldTask,
};
use ff_api::{Ask, Payload};
use ff_core::EngineError;
use ff_core::contracts::{ClaimGrant, ReclaimGrant};
use ff_core::error::TransportKind;
use ff_core::types::{ExecutionId, TimestampMs};
use uuid::Uuid;

use super::reach::WAIT_MAX;
use super::{Claim, End, Failing, Finished, Identity, LeaseRef, Reach, Take, as_i64, millis, ttl};
use crate::SdkError;
use crate::task::FailOutcome;

impl Reach {
    /// Up to `max` executions of these lanes; waits up to `wait` for the first. Dropping the future loses nothing for long.
    pub(crate) async fn claim(
        &self,
        who: &Identity,
        lanes: &[String],
        max: u16,
        wait: Duration,
        request_id: Uuid,
    ) -> Result<Vec<Claim>, SdkError> {
        let wait = wait.min(WAIT_MAX);
        let body = ClaimBody { wait_ms: Some(millis(wait)), ..wish(who, lanes, max, request_id) };
        let claimed = self.ask_within(Ask::<ClaimTasks>::with(who.instance.clone(), body), wait).await?;
        claimed.tasks.into_iter().map(Claim::try_from).collect()
    }

    /// Reserves the best admitted execution of a lane for this worker.
    pub(crate) async fn grant(&self, who: &Identity, lane: &str, ttl_ms: u64) -> Result<Option<ClaimGrant>, SdkError> {
        let body = GrantBody {
            lanes: Some(vec![lane.to_owned()]),
            max: Some(1),
            grant_ttl_ms: Some(as_i64(ttl_ms)),
            kinds: None,
            incarnation: Some(who.incarnation),
            request_id: None,
        };
        let granted = self.ask(Ask::<GrantTasks>::with(who.instance.clone(), body)).await?;
        Ok(granted.grants.into_iter().next())
    }

    /// Hands an interrupted execution to a worker.
    pub(crate) async fn grant_reclaim(
        &self,
        execution_id: ExecutionId,
        instance: &str,
        ttl_ms: u64,
    ) -> Result<ReclaimGrant, SdkError> {
        let body = ReclaimBody { instance: instance.to_owned(), ttl_ms: Some(as_i64(ttl_ms)) };
        Ok(self.ask(Ask::<ReclaimExecution>::with(execution_id, body)).await?.grant)
    }

    /// Turns a grant into a lease; the same request id brings the same lease.
    pub(crate) async fn consume_grant(
        &self,
        who: &Identity,
        execution_id: ExecutionId,
        grant_id: Uuid,
        request_id: Uuid,
    ) -> Result<Claim, SdkError> {
        let body = ConsumeBody {
            execution_id,
            grant_id,
            lease_ttl_ms: Some(ttl(who)),
            request_id: Some(request_id),
            incarnation: Some(who.incarnation),
        };
        self.ask(Ask::<ConsumeTask>::with(who.instance.clone(), body)).await?.task.try_into()
    }

    /// Ends attempts with their results and takes the worker's next tasks in the same call; never waits for work.
    pub(crate) async fn finish(
        &self,
        who: &Identity,
        ends: &[&End],
        take: Option<&Take>,
    ) -> Result<Finished, SdkError> {
        let results: Vec<ResultItem> = ends.iter().map(|end| completed(end).into()).collect();
        let claim = take.map(|take| wish(who, &take.lanes, take.max, take.request_id));
        let body = ResultsBody { results: results.into(), claim, incarnation: None, request_id: None };
        let answers = self.ask(Ask::<SendResults>::with(who.instance.clone(), ResultsOrList::With(body))).await?;
        if answers.results.len() != ends.len() {
            let detail = format!("{} results of {} were answered", answers.results.len(), ends.len());
            return Err(EngineError::Transport { kind: TransportKind::Defect, detail }.into());
        }
        if let Some(problem) = answers.claim_error {
            let error = SdkError::from(ff_api::Problem::from(problem));
            tracing::debug!(%error, "a claim that went along with results failed");
        }
        let tasks = answers.tasks.unwrap_or_default().into_iter().map(Claim::try_from).collect::<Result<_, _>>()?;
        Ok(Finished { ends: answers.results.into_iter().map(outcome).collect(), tasks })
    }

    /// Ends the attempt with a failure.
    pub(crate) async fn fail(&self, lease: LeaseRef, failing: &Failing) -> Result<FailOutcome, SdkError> {
        let body = FailBody {
            fence: lease.fence(),
            reason: failing.reason.clone(),
            category: failing.category.clone(),
            retryable: failing.retryable,
            retry_after_ms: failing.retry_after_ms.map(as_i64),
            request_id: None,
        };
        let failed = self.ask(Ask::<FailTask>::with(lease.execution_id, body)).await?;
        Ok(match failed.delay_until {
            Some(delay_until) => FailOutcome::RetryScheduled { delay_until: TimestampMs(delay_until) },
            None => FailOutcome::TerminalFailed,
        })
    }

    /// The worker cancels its own execution.
    pub(crate) async fn cancel_attempt(&self, lease: LeaseRef, reason: &str) -> Result<(), SdkError> {
        let body = CancelBody { fence: lease.fence(), reason: Some(reason.to_owned()), request_id: None };
        self.ask(Ask::<CancelTask>::with(lease.execution_id, body)).await.map(|_| ())
    }

    /// Hands the execution back until a time.
    pub(crate) async fn delay(&self, lease: LeaseRef, until: TimestampMs) -> Result<(), SdkError> {
        let body = DelayBody { fence: lease.fence(), delay_ms: None, delay_until: Some(until.0), request_id: None };
        self.ask(Ask::<DelayTask>::with(lease.execution_id, body)).await.map(|_| ())
    }

    /// Hands the execution back at once.
    pub(crate) async fn yield_back(&self, lease: LeaseRef) -> Result<(), SdkError> {
        let body = YieldBody { fence: lease.fence(), request_id: None };
        self.ask(Ask::<YieldTask>::with(lease.execution_id, body)).await.map(|_| ())
    }

    /// Notes how far the attempt is.
    pub(crate) async fn progress(&self, lease: LeaseRef, pct: u8, message: &str) -> Result<(), SdkError> {
        let message = Some(message.to_owned());
        let body = ProgressBody { fence: lease.fence(), pct: pct.into(), message, request_id: None };
        self.ask(Ask::<ReportProgress>::with(lease.execution_id, body)).await.map(|_| ())
    }
}

/// A claim of this worker, which does not wait.
fn wish(who: &Identity, lanes: &[String], max: u16, request_id: Uuid) -> ClaimBody {
    ClaimBody {
        lanes: Some(lanes.to_vec()),
        kinds: None,
        max: Some(max),
        wait_ms: None,
        lease_ttl_ms: Some(ttl(who)),
        request_id: Some(request_id),
        incarnation: Some(who.incarnation),
    }
}

fn completed(end: &End) -> TaskResult {
    // A JSON result keeps its text, whatever its order of keys and its numbers.
    let result = end.result.clone().map(Payload::of);
    TaskResult {
        execution_id: end.lease.execution_id,
        fence: end.lease.fence(),
        end: TaskEnd::Complete { result },
        lane: Some(end.lane.clone()),
    }
}

fn outcome(answer: ResultAnswer) -> Result<(), SdkError> {
    match answer {
        ResultAnswer::Done(_) => Ok(()),
        ResultAnswer::Refused(refused) => Err(ff_api::Problem::from(refused.problem).into()),
    }
}
