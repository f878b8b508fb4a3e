//! Workers, whichever way the engine is reached: they register, say that they live, renew their leases, and leave.

use std::time::Duration;

use ff_api::workers::{
    AttendBody, AttendWorker, DeregisterWorker, DrainWorker, Heartbeat, HeartbeatBody, LeaseAnswer, LeaseRenewed,
    LeaveBody, ListWorkers, RegisterBody, RegisterWorker, RenewBody,
};
use ff_api::{Ask, PageQuery};
use ff_core::error::Detail;
use ff_core::state::LifecyclePhase;
use ff_core::{EngineError, ErrorCode};

use super::reach::WAIT_MAX;
use super::{Identity, LeaseRef, Reach, Registered, Renewal, Standing, millis};
use crate::SdkError;
use crate::snapshot::WorkerSnapshot;

/// How soon a worker that could not reach the engine is attended to again.
const ATTEND_AGAIN: Duration = Duration::from_millis(500);
/// How many leases one request renews.
const RENEWALS_MAX: usize = 1_000;
/// How many workers one request lists.
const PAGE: i64 = 1_000;

impl Reach {
    /// Registers a worker, or replaces what it serves. Fails with `instance_in_use` while another process lives under its id.
    pub(crate) async fn register(&self, who: &Identity) -> Result<Registered, SdkError> {
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
        let registered = self.ask(Ask::<RegisterWorker>::with(who.instance.clone(), body)).await?;
        let heartbeat = Duration::from_millis(registered.heartbeat_ms.unsigned_abs());
        Ok(Registered { heartbeat, partitions: registered.partitions })
    }

    /// Returns when the worker's standing may be another than `draining` says. Meanwhile it is known to live.
    pub(crate) async fn attend(&self, who: &Identity, draining: bool) -> Standing {
        // A request that is always there: a server sees at once when this process is gone, and answers for it while it lives.
        let body = || AttendBody {
            incarnation: Some(who.incarnation),
            draining: Some(draining),
            wait_ms: Some(millis(WAIT_MAX)),
            request_id: None,
        };
        loop {
            let ask = Ask::<AttendWorker>::with(who.instance.clone(), body());
            match standing(self.ask_within(ask, WAIT_MAX).await.map(|attended| attended.draining)) {
                Ok(Standing::Known { draining: now }) if now == draining => {}
                Ok(standing) => return standing,
                Err(error) => {
                    tracing::debug!(%error, instance = who.instance, "the engine is asked again");
                    tokio::time::sleep(ATTEND_AGAIN.mul_f64(rand::random_range(0.5..=1.0))).await;
                }
            }
        }
    }

    /// Says that the worker lives.
    pub(crate) async fn heartbeat(&self, who: &Identity) -> Result<Standing, SdkError> {
        standing(self.ask(beat(who, &[])).await.map(|beaten| beaten.draining))
    }

    /// Renews many leases of one worker; one answer for each, in order.
    pub(crate) async fn renew(&self, who: &Identity, leases: &[LeaseRef]) -> Vec<Renewal> {
        let mut answers = Vec::with_capacity(leases.len());
        for chunk in leases.chunks(RENEWALS_MAX) {
            match self.ask_as("lease_renew", beat(who, chunk), Duration::ZERO).await {
                Ok(beaten) if beaten.leases.len() == chunk.len() => {
                    answers.extend(beaten.leases.into_iter().map(renewal));
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

    /// Ends the registration of this very process.
    pub(crate) async fn deregister(&self, who: &Identity) -> Result<(), SdkError> {
        let body = LeaveBody { incarnation: Some(who.incarnation), ..LeaveBody::default() };
        self.ask(Ask::<DeregisterWorker>::with(who.instance.clone(), body)).await.map(|_| ())
    }

    /// Every live worker.
    pub(crate) async fn workers(&self) -> Result<Vec<WorkerSnapshot>, SdkError> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let query = PageQuery { limit: Some(PAGE), cursor };
            let page = self.ask(Ask::<ListWorkers>::by((), query)).await?;
            all.extend(page.items.into_iter().map(WorkerSnapshot::from));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// Asks a worker to take nothing new and to yield what it holds.
    pub(crate) async fn drain_worker(&self, instance: &str) -> Result<(), SdkError> {
        self.ask(Ask::<DrainWorker>::at(instance.to_owned())).await.map(|_| ())
    }
}

/// Where a registration stands, by what the engine says: whether it drains, or why it has none.
fn standing(said: Result<bool, SdkError>) -> Result<Standing, SdkError> {
    match said {
        Ok(draining) => Ok(Standing::Known { draining }),
        Err(error) if error.is_instance_in_use() => Ok(Standing::Replaced),
        Err(SdkError::Engine(error)) if error.code() == "worker_not_registered" => Ok(Standing::Unknown),
        Err(error) => Err(error),
    }
}

/// A heartbeat that renews these leases.
fn beat(who: &Identity, leases: &[LeaseRef]) -> Ask<Heartbeat> {
    let renew = leases.iter().map(|lease| RenewBody::of(lease.execution_id, lease.fence())).collect();
    let body = HeartbeatBody { renew: Some(renew), incarnation: Some(who.incarnation), request_id: None };
    Ask::with(who.instance.clone(), body)
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

#[cfg(test)]
mod tests {
    use ff_api::workers::HeartbeatAnswer;
    use ff_core::types::ExecutionId;
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
