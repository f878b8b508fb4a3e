//! What a firing submits: the execution or the flow of its schedule, under the firing's own id.
//!
//! The id is made of schedule and nominal time, so what was submitted before is found and not submitted again.

use ff_api::Invalid;
use ff_api::schedules::{Action, ScheduleAction};
use ff_core::error::EngineError;
use ff_core::error_code::ErrorCode;
use ff_core::state::PublicState;
use ff_core::types::{ExecutionId, FlowId};
use ff_script::Error;
use ff_script::generated::{self, Fired, FlowState, SubmitExecutionReply};
use futures::stream::{self, StreamExt};
use uuid::Uuid;

use crate::answers::new_flow;
use crate::operations::{NewExecution, NewFlow, Operations, refused_with};

/// Flows that are submitted side by side.
const FLOWS_AT_ONCE: usize = 8;
/// How a run ended that is not kept any more.
const GONE: &str = "gone";

/// A firing to submit.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// The schedule's namespace.
    pub namespace: String,
    /// The schedule.
    pub schedule: String,
    /// The firing.
    pub firing: generated::Firing,
    /// What the schedule submits, as it is stored.
    pub action: Vec<u8>,
}

/// A run that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Submitted {
    /// How it has ended already, when it has.
    pub ended: Option<String>,
}

enum New {
    Execution(Box<NewExecution>),
    Flow(Box<NewFlow>),
}

/// An execution as it would be submitted.
pub(crate) fn new_execution(
    mut body: ff_api::executions::SubmitBody,
    id: Uuid,
    namespace: &str,
) -> Result<NewExecution, Invalid> {
    let kind = std::mem::take(&mut body.kind);
    let id = || ExecutionId::from_uuid(id);
    Ok(NewExecution { fields: body.submission("action.execution.", kind, id, namespace, "default")? })
}

/// A flow as it would be submitted.
pub(crate) fn new_flow_of(body: ff_api::flows::FlowBody, id: Uuid, namespace: &str) -> Result<NewFlow, Invalid> {
    Ok(new_flow(body, "action.flow.", namespace)?.with_id(FlowId::from_uuid(id)))
}

fn read(run: &Run) -> Result<New, Invalid> {
    let stored = ScheduleAction::of(&run.action)?;
    let id = run.firing.run_id.ok_or_else(|| Invalid::new("firing", "has no id"))?;
    let fired = Fired {
        schedule: run.schedule.clone(),
        number: run.firing.number,
        nominal_at: run.firing.nominal_at,
        fired_at: run.firing.fired_at,
    };
    Ok(match stored.read(&run.namespace)? {
        Action::Execution(body) => {
            let mut new = new_execution(*body, id, &run.namespace)?;
            new.fields.fired = Some(fired);
            New::Execution(Box::new(new))
        }
        Action::Flow(body) => {
            let mut new = new_flow_of(*body, id, &run.namespace)?;
            new.fields.fired = Some(fired);
            New::Flow(Box::new(new))
        }
    })
}

/// Submits firings; each is answered on its own, in the order given.
pub(crate) async fn submit(operations: &Operations, runs: &[Run]) -> Vec<Result<Submitted, Error>> {
    let mut answers: Vec<Option<Result<Submitted, Error>>> = runs.iter().map(|_| None).collect();
    let (mut executions, mut places, mut flows) = (Vec::new(), Vec::new(), Vec::new());
    for (at, run) in runs.iter().enumerate() {
        match read(run) {
            Ok(New::Execution(new)) => {
                places.push((at, new.fields.execution_id));
                executions.push(*new);
            }
            Ok(New::Flow(new)) => flows.push((at, new)),
            Err(wrong) => answers[at] = Some(Err(invalid(wrong))),
        }
    }
    match operations.submit_many(executions).await {
        Ok(replies) => {
            for ((at, id), reply) in places.into_iter().zip(replies) {
                answers[at] = Some(execution(operations, id, reply).await);
            }
        }
        Err(error) => places.into_iter().for_each(|(at, _)| answers[at] = Some(Err(error.clone()))),
    }
    let submitted = stream::iter(flows).map(|(at, new)| async move { (at, flow(operations, *new).await) });
    for (at, answer) in submitted.buffer_unordered(FLOWS_AT_ONCE).collect::<Vec<_>>().await {
        answers[at] = Some(answer);
    }
    answers.into_iter().map(|answer| answer.expect("every firing was submitted or refused")).collect()
}

/// What is wrong with a request, as the store would say it.
pub(crate) fn invalid(wrong: Invalid) -> Error {
    let kind = ff_core::error::ValidationKind::InvalidArgument { field: wrong.field };
    Error::Engine(EngineError::Validation { kind, detail: wrong.problem })
}

async fn execution(
    operations: &Operations,
    id: ExecutionId,
    reply: Result<SubmitExecutionReply, Error>,
) -> Result<Submitted, Error> {
    let state = match reply {
        Ok(SubmitExecutionReply::Created { state, .. }) => Some(state),
        Ok(SubmitExecutionReply::Duplicate { state, .. }) => state,
        // The schedule was changed between the submission and this one.
        Err(error) if refused_with(&error) == Some(ErrorCode::IdempotencyConflict) => {
            match operations.describe(id).await {
                Ok(execution) => Some(execution.state),
                Err(error) if refused_with(&error) == Some(ErrorCode::ExecutionNotFound) => None,
                Err(error) => return Err(error),
            }
        }
        Err(error) => return Err(error),
    };
    Ok(Submitted { ended: ended(state) })
}

fn ended(state: Option<PublicState>) -> Option<String> {
    let outcome = match state {
        None => GONE,
        Some(PublicState::Completed) => "success",
        Some(PublicState::Failed) => "failed",
        Some(PublicState::Cancelled) => "cancelled",
        Some(PublicState::Expired) => "expired",
        Some(PublicState::Skipped) => "skipped",
        Some(_) => return None,
    };
    Some(outcome.to_owned())
}

async fn flow(operations: &Operations, new: NewFlow) -> Result<Submitted, Error> {
    let id = new.fields.flow_id;
    let state = match operations.submit_flow(new).await {
        Ok(submitted) => Some(submitted.flow.state),
        Err(error) if refused_with(&error) == Some(ErrorCode::IdempotencyConflict) => match operations.flow(id).await {
            Ok(flow) => Some(flow.state),
            Err(error) if refused_with(&error) == Some(ErrorCode::FlowNotFound) => None,
            Err(error) => return Err(error),
        },
        Err(error) => return Err(error),
    };
    let outcome = match state {
        None => GONE,
        Some(FlowState::Completed) => "completed",
        Some(FlowState::Failed) => "failed",
        Some(FlowState::Cancelled) => "cancelled",
        Some(_) => return Ok(Submitted { ended: None }),
    };
    Ok(Submitted { ended: Some(outcome.to_owned()) })
}
