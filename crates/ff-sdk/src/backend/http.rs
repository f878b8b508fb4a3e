//! The engine behind `ff server`: the worker protocol and the execution routes over HTTP.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ff_api::claims::{ClaimBody, ClaimTasks, ConsumeBody, ConsumeTask, GrantBody, GrantTasks};
use ff_api::executions::{ReclaimBody, ReclaimExecution, SubmitBody};
use ff_api::problem::Facts;
use ff_api::tasks::{
    CancelBody, CancelTask, DelayBody, DelayTask, FailBody, FailTask, ProgressBody, ReportProgress, YieldBody,
    YieldTask,
};
use ff_api::workers::{
    AttendBody, AttendWorker, DeregisterWorker, DrainWorker, Heartbeat, HeartbeatBody, LeaseAnswer, LeaseRenewed,
    LeaveBody, ListWorkers, RegisterBody, RegisterWorker, RenewBody,
};
use ff_api::{Ask, Operation, PageQuery};
use ff_core::contracts::{ClaimGrant, ReclaimGrant};
use ff_core::error::Detail;
use ff_core::state::LifecyclePhase;
use ff_core::types::{ExecutionId, TimestampMs};
use ff_core::{EngineError, ErrorCode};
use ff_engine::NewExecution;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::http_submissions::Submissions;
use super::reach::{WAIT_MAX, unfit};
use super::{
    Backend, Claim, End, Failing, Finished, Identity, LeaseRef, Reach, Registered, Renewal, Standing, Take, Transport,
    ttl,
};
use crate::SdkError;
use crate::config::Secret;
use crate::http::{HttpClient, HttpOptions};
use crate::snapshot::WorkerSnapshot;
use crate::task::FailOutcome;

/// How soon a worker that could not reach the server is attended to again.
const ATTEND_AGAIN: Duration = Duration::from_millis(500);

/// A backend over `ff server`.
#[derive(Clone)]
pub struct Http {
    pub(super) client: HttpClient,
    pub(super) submissions: Arc<Submissions>,
}

impl Http {
    /// A backend of the server at this URL, e.g. `http://127.0.0.1:7433`, whose certificate the one in `ca_cert` signed.
    pub fn new(url: &str, token: Option<&Secret>, ca_cert: Option<&Path>) -> Result<Self, SdkError> {
        let (token, ca_cert) = (token.cloned(), ca_cert.map(Path::to_owned));
        let client = HttpClient::new(HttpOptions { token, ca_cert, ..HttpOptions::new(url) })?;
        Ok(Self { client, submissions: Arc::default() })
    }

    /// Carries one operation; the server may take `wait` longer than usual.
    pub(crate) async fn ask<O>(&self, ask: &Ask<O>, wait: Duration) -> Result<O::Answer, SdkError>
    where
        O: Operation<Query: Serialize, Body: Serialize, Answer: DeserializeOwned>,
    {
        Ok(self.client.ask(ask, wait).await?.value)
    }
}

/// The error behind the problem of an item.
pub(super) fn of_item(facts: Facts) -> SdkError {
    ff_api::Problem::from(facts).into()
}

/// What became of the renewal of one lease.
fn renewal(answer: LeaseAnswer) -> Renewal {
    let problem = match answer {
        LeaseAnswer::Renewed(LeaseRenewed { cancel_requested, yield_requested, .. }) => {
            return Renewal::Renewed { cancel_requested, yield_requested };
        }
        // What became of the execution is not said here: that its lease is over is what counts.
        LeaseAnswer::Refused(refused) => {
            ff_api::Problem::from(refused.problem).fact_or("lifecycle_phase", LifecyclePhase::Runnable)
        }
    };
    match problem.refusal() {
        Some(EngineError::Transport { detail, .. }) => Renewal::Unanswered(detail),
        Some(error) => Renewal::Refused(error),
        // Another principal's worker holds the execution by now.
        None if problem.code() == "forbidden" => {
            let facts = Detail::from(problem.facts().facts.clone());
            Renewal::Refused(EngineError::from_refusal(ErrorCode::StaleLease, facts))
        }
        None => Renewal::Unanswered(problem.code().to_owned()),
    }
}

/// A heartbeat that renews these leases.
fn beat(who: &Identity, leases: &[LeaseRef]) -> Ask<Heartbeat> {
    let renew = leases.iter().map(|lease| RenewBody::of(lease.execution_id, lease.fence())).collect();
    let body = HeartbeatBody { renew: Some(renew), incarnation: Some(who.incarnation), request_id: None };
    Ask::with(who.instance.clone(), body)
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[async_trait]
impl Backend for Http {
    fn reach(&self) -> Reach {
        Reach::http(self.clone())
    }

    fn rests_in_place(&self) -> bool {
        true
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    async fn register(&self, who: &Identity) -> Result<Registered, SdkError> {
        let body = RegisterBody {
            worker_id: who.worker_id.clone(),
            namespace: Some(who.namespace.clone()),
            lanes: who.lanes.clone(),
            capabilities: Some(who.capabilities.clone()),
            kinds: who.kinds.as_ref().map(|kinds| kinds.names().to_vec()),
            slots: Some(i64::try_from(who.slots).unwrap_or(i64::MAX)),
            incarnation: Some(who.incarnation),
            request_id: None,
        };
        let registered = self.ask(&Ask::<RegisterWorker>::with(who.instance.clone(), body), Duration::ZERO).await?;
        let heartbeat = Duration::from_millis(registered.heartbeat_ms.unsigned_abs());
        Ok(Registered { heartbeat, partitions: registered.partitions })
    }

    async fn attend(&self, who: &Identity, draining: bool) -> Standing {
        // A request that is always there: the server sees at once when this process is gone, and answers for it while it lives.
        let body = AttendBody {
            incarnation: Some(who.incarnation),
            draining: Some(draining),
            wait_ms: Some(millis(WAIT_MAX)),
            request_id: None,
        };
        let ask = Ask::<AttendWorker>::with(who.instance.clone(), body);
        loop {
            match self.ask(&ask, WAIT_MAX).await {
                Ok(attended) if attended.draining != draining => {
                    return Standing::Known { draining: attended.draining };
                }
                Ok(_) => {}
                Err(error) if error.is_instance_in_use() => return Standing::Replaced,
                Err(SdkError::Engine(error)) if error.code() == "worker_not_registered" => return Standing::Unknown,
                Err(error) => {
                    tracing::debug!(%error, instance = who.instance, "the server is asked again");
                    tokio::time::sleep(ATTEND_AGAIN.mul_f64(rand::random_range(0.5..=1.0))).await;
                }
            }
        }
    }

    async fn heartbeat(&self, who: &Identity) -> Result<Standing, SdkError> {
        match self.ask(&beat(who, &[]), Duration::ZERO).await {
            Ok(beaten) => Ok(Standing::Known { draining: beaten.draining }),
            Err(error) if error.is_instance_in_use() => Ok(Standing::Replaced),
            Err(SdkError::Engine(error)) if error.code() == "worker_not_registered" => Ok(Standing::Unknown),
            Err(error) => Err(error),
        }
    }

    async fn deregister(&self, who: &Identity) -> Result<(), SdkError> {
        let body = LeaveBody { incarnation: Some(who.incarnation), ..LeaveBody::default() };
        self.ask(&Ask::<DeregisterWorker>::with(who.instance.clone(), body), Duration::ZERO).await.map(|_| ())
    }

    async fn claim(
        &self,
        who: &Identity,
        lanes: &[String],
        max: u16,
        wait: Duration,
        request_id: Uuid,
    ) -> Result<Vec<Claim>, SdkError> {
        let wait = wait.min(WAIT_MAX);
        let body = ClaimBody {
            lanes: Some(lanes.to_vec()),
            kinds: None,
            max: Some(max),
            wait_ms: Some(millis(wait)),
            lease_ttl_ms: Some(ttl(who)),
            request_id: Some(request_id),
            incarnation: Some(who.incarnation),
        };
        let claimed = self.ask(&Ask::<ClaimTasks>::with(who.instance.clone(), body), wait).await?;
        claimed.tasks.into_iter().map(Claim::try_from).collect()
    }

    async fn grant(&self, who: &Identity, lane: &str, ttl_ms: u64) -> Result<Option<ClaimGrant>, SdkError> {
        let body = GrantBody {
            lanes: Some(vec![lane.to_owned()]),
            max: Some(1),
            grant_ttl_ms: Some(i64::try_from(ttl_ms).unwrap_or(i64::MAX)),
            ..GrantBody::default()
        };
        let granted = self.ask(&Ask::<GrantTasks>::with(who.instance.clone(), body), Duration::ZERO).await?;
        Ok(granted.grants.into_iter().next())
    }

    async fn grant_reclaim(
        &self,
        execution_id: ExecutionId,
        instance: &str,
        ttl_ms: u64,
    ) -> Result<ReclaimGrant, SdkError> {
        let body =
            ReclaimBody { instance: instance.to_owned(), ttl_ms: Some(i64::try_from(ttl_ms).unwrap_or(i64::MAX)) };
        Ok(self.ask(&Ask::<ReclaimExecution>::with(execution_id, body), Duration::ZERO).await?.grant)
    }

    async fn consume_grant(
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
            incarnation: None,
        };
        self.ask(&Ask::<ConsumeTask>::with(who.instance.clone(), body), Duration::ZERO).await?.task.try_into()
    }

    async fn renew(&self, who: &Identity, leases: &[LeaseRef]) -> Vec<Renewal> {
        let mut answers = Vec::with_capacity(leases.len());
        for chunk in leases.chunks(1_000) {
            match self.ask(&beat(who, chunk), Duration::ZERO).await {
                Ok(beaten) if beaten.leases.len() == chunk.len() => {
                    answers.extend(beaten.leases.into_iter().map(renewal))
                }
                Ok(beaten) => {
                    let detail = format!("{} answers for {} leases", beaten.leases.len(), chunk.len());
                    answers.extend(chunk.iter().map(|_| Renewal::Unanswered(detail.clone())));
                }
                Err(error) => answers.extend(chunk.iter().map(|_| Renewal::Unanswered(error.to_string()))),
            }
        }
        answers
    }

    async fn finish(&self, who: &Identity, ends: &[&End], take: Option<&Take>) -> Result<Finished, SdkError> {
        self.finish_together(who, ends, take).await
    }

    async fn fail(&self, lease: LeaseRef, failing: &Failing) -> Result<FailOutcome, SdkError> {
        let body = FailBody {
            fence: lease.fence(),
            reason: failing.reason.clone(),
            category: failing.category.clone(),
            retryable: failing.retryable,
            retry_after_ms: failing.retry_after_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)),
            request_id: None,
        };
        let failed = self.ask(&Ask::<FailTask>::with(lease.execution_id, body), Duration::ZERO).await?;
        Ok(match failed.delay_until {
            Some(delay_until) => FailOutcome::RetryScheduled { delay_until: TimestampMs(delay_until) },
            None => FailOutcome::TerminalFailed,
        })
    }

    async fn cancel_attempt(&self, lease: LeaseRef, reason: &str) -> Result<(), SdkError> {
        let body = CancelBody { fence: lease.fence(), reason: Some(reason.to_owned()), request_id: None };
        self.ask(&Ask::<CancelTask>::with(lease.execution_id, body), Duration::ZERO).await.map(|_| ())
    }

    async fn delay(&self, lease: LeaseRef, until: TimestampMs) -> Result<(), SdkError> {
        let body = DelayBody { fence: lease.fence(), delay_ms: None, delay_until: Some(until.0), request_id: None };
        self.ask(&Ask::<DelayTask>::with(lease.execution_id, body), Duration::ZERO).await.map(|_| ())
    }

    async fn yield_back(&self, lease: LeaseRef) -> Result<(), SdkError> {
        let body = YieldBody { fence: lease.fence(), request_id: None };
        self.ask(&Ask::<YieldTask>::with(lease.execution_id, body), Duration::ZERO).await.map(|_| ())
    }

    async fn progress(&self, lease: LeaseRef, pct: u8, message: &str) -> Result<(), SdkError> {
        let message = Some(message.to_owned());
        let body = ProgressBody { fence: lease.fence(), pct: pct.into(), message, request_id: None };
        self.ask(&Ask::<ReportProgress>::with(lease.execution_id, body), Duration::ZERO).await.map(|_| ())
    }

    async fn submit(&self, new: NewExecution) -> Result<(ExecutionId, bool), SdkError> {
        // The input is what is large, and base64 makes it larger.
        let size = 512 + new.fields.input.as_ref().map_or(0, |input| input.len() * 4 / 3);
        let (mut body, kind) = SubmitBody::of(new.fields).map_err(unfit("submit"))?;
        body.kind = kind;
        self.submit_together(body, size).await
    }

    async fn workers(&self) -> Result<Vec<WorkerSnapshot>, SdkError> {
        let mut all = Vec::new();
        let mut ask = Ask::<ListWorkers>::by((), PageQuery { limit: Some(1_000), cursor: None });
        loop {
            let page = self.ask(&ask, Duration::ZERO).await?;
            all.extend(page.items.into_iter().map(WorkerSnapshot::from));
            match page.next_cursor {
                Some(cursor) => ask.query.cursor = Some(cursor),
                None => return Ok(all),
            }
        }
    }

    async fn drain_worker(&self, instance: &str) -> Result<(), SdkError> {
        self.ask(&Ask::<DrainWorker>::at(instance.to_owned()), Duration::ZERO).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use ff_api::workers::HeartbeatAnswer;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_that_is_refused_in_a_heartbeat_is_lost_alone() {
        let execution_id = ExecutionId::mint();
        let refused = |status: u16, code: &str, retryable: bool| json!({ "execution_id": execution_id, "status": status, "code": code, "detail": "x", "retryable": retryable });
        let renewed = json!({ "execution_id": execution_id, "lease_expires_at": 1, "cancel_requested": false, "yield_requested": false });
        let leases = json!([
            renewed,
            refused(404, "execution_not_found", false),
            refused(403, "forbidden", false),
            refused(503, "store_unavailable", true)
        ]);
        let beaten: HeartbeatAnswer = serde_json::from_value(json!({ "leases": leases, "draining": false })).unwrap();
        let answers: Vec<Renewal> = beaten.leases.into_iter().map(renewal).collect();
        let code = |answer: &Renewal| match answer {
            Renewal::Renewed { .. } => "renewed",
            Renewal::Refused(error) => error.code(),
            Renewal::Unanswered(_) => "unanswered",
        };
        let codes: Vec<&str> = answers.iter().map(code).collect();
        assert_eq!(codes, ["renewed", "execution_not_found", "stale_lease", "unanswered"]);
    }
}
