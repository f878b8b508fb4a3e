//! Suspensions: a task begins one, and an operator resumes it or ends it as failed.

use ff_api::claims::Resume;
use ff_api::steps::check_name;
use ff_api::suspensions::{
    FailSuspension, ResumeExecution, SuspendAnswer, SuspendTask, SuspensionEnded, SuspensionOutcome, WaitpointBody,
};
use ff_api::waitpoints::Signal;
use ff_api::{Ask, Encoding, Payload, Problem};
use ff_core::limits::{CONTINUATION_BYTES_MAX, REASON_BYTES_MAX};
use ff_core::types::WaitpointId;
use ff_script::generated::{PublicState, TimeoutBehavior};

use super::waitpoints::approvers;
use super::{about, bounded, request_id_of, stored};
use crate::principal::Principal;
use crate::service::{Handle, Service};
use crate::waitpoints::{NewSuspension, Suspended, WaitpointSpec};

/// The default category of a failure that an operator decided.
const CATEGORY: &str = "operator";

impl Handle<SuspendTask> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<SuspendTask>) -> Result<SuspendAnswer, Problem> {
        let Ask { at: id, body, .. } = ask;
        let fence = body.fence;
        for (field, name) in [("step", &body.step), ("wait", &body.wait)] {
            name.as_deref().map_or(Ok(()), |name| check_name(field, name))?;
        }
        let Places { new, pending } = places(body.waitpoints.unwrap_or_default())?;
        let continuation = Payload::read("continuation", body.continuation.as_deref(), body.continuation_encoding)?;
        let (continuation, encoding) = stored("continuation", continuation, CONTINUATION_BYTES_MAX)?;
        // JSON has a name here, too: bytes without one are those of a program that named none.
        let encoding = continuation.is_some().then(|| encoding.unwrap_or_else(|| Encoding::Json.as_str().to_owned()));
        let suspending = async {
            let new = NewSuspension {
                execution_id: id,
                fence,
                namespace: self.namespace_under(fence.lease_id),
                reason: body.reason,
                waitpoints: new,
                // None named: the attempt waits at all it has opened. A step waits at its own.
                adopt: (!pending.is_empty() || body.step.is_some()).then_some(pending),
                condition: body.condition.unwrap_or_default(),
                timeout_ms: body.timeout_ms,
                timeout_behavior: body.timeout_behavior.map_or(TimeoutBehavior::Fail, TimeoutBehavior::from),
                continuation: continuation.map(|bytes| bytes.0),
                continuation_encoding: encoding,
                step: body.step,
                wait: body.wait,
                request_id: request_id_of(body.request_id.as_deref()),
            };
            self.waitpoints()?.suspend(new).await.map_err(about(id))
        };
        let is_waiting = |answer: &Suspended| matches!(answer, Suspended::Waiting { .. });
        Ok(match self.fenced(by, id, fence, is_waiting, suspending).await? {
            Suspended::Waiting { suspension_id, waitpoints, timeout_at, replayed } => {
                SuspendAnswer::Suspended { execution_id: id, suspension_id, waitpoints, timeout_at, replayed }
            }
            Suspended::AlreadySatisfied { suspension_id, signals } => SuspendAnswer::AlreadySatisfied {
                execution_id: id,
                suspension_id,
                waitpoints: [],
                signals: signals.into_iter().map(Signal::from).collect(),
            },
            Suspended::Done { resume } => {
                SuspendAnswer::Done { execution_id: id, resume: Box::new(Resume::from(*resume)) }
            }
        })
    }
}

/// Where a task waits.
#[derive(Default)]
struct Places {
    /// Waitpoints to open.
    new: Vec<WaitpointSpec>,
    /// Those that it has opened.
    pending: Vec<WaitpointId>,
}

fn places(waitpoints: Vec<WaitpointBody>) -> Result<Places, Problem> {
    let mut places = Places::default();
    for (at, body) in waitpoints.into_iter().enumerate() {
        let wrong = |problem: &str| Err(Problem::invalid(format!("waitpoints[{at}]"), problem));
        let is_described = body.expires_in_ms.is_some()
            || body.allowed_signals.is_some()
            || body.approvers.is_some()
            || body.uses.is_some();
        match (body.waitpoint_id, body.key) {
            (Some(_), Some(_)) => return wrong("must have a key or a waitpoint_id, not both"),
            (None, None) => return wrong("must have a key, or the waitpoint_id of a pending waitpoint"),
            (Some(_), None) if is_described => {
                return wrong("is pending: what it takes was said when it was opened");
            }
            (Some(id), None) => places.pending.push(id),
            (None, Some(key)) if places.new.iter().any(|known| known.key == key) => {
                return Err(Problem::invalid(format!("waitpoints[{at}].key"), "is given twice"));
            }
            (None, Some(key)) => places.new.push(WaitpointSpec {
                key,
                expires_in_ms: body.expires_in_ms,
                allowed_signals: body.allowed_signals.unwrap_or_default(),
                approvers: approvers(&format!("waitpoints[{at}]."), body.approvers)?,
                uses: body.uses,
            }),
        }
    }
    Ok(places)
}

impl Handle<ResumeExecution> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<ResumeExecution>) -> Result<SuspensionEnded, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", body.reason.as_deref(), REASON_BYTES_MAX)?;
        let resumed = self.operations.resume(id, by.name(), body.reason.as_deref()).await;
        let state = resumed.map_err(|error| Problem::from(error).about(id))?;
        Ok(SuspensionEnded { execution_id: id, outcome: SuspensionOutcome::Resumed, state })
    }
}

impl Handle<FailSuspension> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<FailSuspension>) -> Result<SuspensionEnded, Problem> {
        let Ask { at: id, body, .. } = ask;
        bounded("reason", Some(&body.reason), REASON_BYTES_MAX)?;
        let category = body.category.as_deref().unwrap_or(CATEGORY);
        let failed = self.operations.fail_suspension(id, by.name(), &body.reason, category).await;
        failed.map_err(|error| Problem::from(error).about(id))?;
        Ok(SuspensionEnded { execution_id: id, outcome: SuspensionOutcome::Failed, state: PublicState::Failed })
    }
}
