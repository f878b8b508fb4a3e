//! What a worker does to wait: suspend, open and give up waitpoints, read the signals that let it go on.

use axum::Json;
use axum::extract::State;
use ff_api::suspensions::{SuspendAnswer, SuspendBody, SuspendTask, WaitpointBody};
use ff_api::tasks::Fence;
use ff_api::waitpoints::{
    CloseOutcome, CloseWaitpoint, CloseWaitpointBody, CreateWaitpoint, CreateWaitpointBody, ListSignals,
    OpenedWaitpoint, Signal, TaskSignals, WaitpointClosed,
};
use ff_core::types::{ExecutionId, WaitpointId};
use ff_engine::{NewSuspension, Suspended, WaitpointSpec};
use ff_script::generated::TimeoutBehavior;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer, Waitpoint};
use crate::body::Body;
use crate::continuation;
use crate::openapi::Described;
use crate::problem::{Answer, Problem};
use crate::shape::suspension::opened;

/// Who may answer at one waitpoint.
const APPROVERS_MAX: usize = ff_core::limits::APPROVERS_MAX as usize;
/// The longest name of one of them.
const APPROVER_BYTES_MAX: usize = ff_core::limits::APPROVER_BYTES_MAX;

pub fn routes() -> Described {
    Described::new()
        .serving::<SuspendTask, _>(suspend)
        .serving::<CreateWaitpoint, _>(create)
        .serving::<CloseWaitpoint, _>(close)
        .serving::<ListSignals, _>(signals)
}

/// The answer of a fenced call; a lease that ended with it, or before it, frees its slot.
pub fn settled<T>(app: &App, id: ExecutionId, fence: Fence, answer: Answer<T>, ends: bool) -> Answer<T> {
    let answer = answer.map_err(|problem| problem.about(id));
    let over = match &answer {
        Ok(_) => ends,
        Err(problem) => problem.ends_lease(),
    };
    if over {
        app.fleet.ended(fence.lease_id);
    }
    answer
}

/// A request id is any text; the same text is the same request.
pub fn request_of(text: Option<&str>) -> Option<Uuid> {
    let text = text?;
    Some(text.parse().unwrap_or_else(|_| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&Sha256::digest(text)[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }))
}

enum Place {
    New(WaitpointSpec),
    Pending(WaitpointId),
}

/// Who may answer: each once, by a name that fits into a token.
fn approvers(field: &str, labels: Option<Vec<String>>) -> Answer<Vec<String>> {
    let labels = labels.unwrap_or_default();
    let wrong = |problem: String| Err(Problem::invalid(format!("{field}approvers"), problem));
    if labels.len() > APPROVERS_MAX {
        return wrong(format!("must be at most {APPROVERS_MAX}, got {}", labels.len()));
    }
    if labels.iter().any(|label| !(1..=APPROVER_BYTES_MAX).contains(&label.len())) {
        return wrong(format!("must each be 1 to {APPROVER_BYTES_MAX} bytes"));
    }
    if labels.iter().enumerate().any(|(at, label)| labels[..at].contains(label)) {
        return wrong("must not name anyone twice".to_owned());
    }
    Ok(labels)
}

fn place(body: WaitpointBody, at: usize) -> Answer<Place> {
    let wrong = |problem: &str| Err(Problem::invalid(format!("waitpoints[{at}]"), problem));
    let described = body.expires_in_ms.is_some()
        || body.allowed_signals.is_some()
        || body.approvers.is_some()
        || body.uses.is_some();
    match (body.waitpoint_id, body.key) {
        (Some(_), Some(_)) => wrong("must have a key or a waitpoint_id, not both"),
        (None, None) => wrong("must have a key, or the waitpoint_id of a pending waitpoint"),
        (Some(_), None) if described => wrong("is pending: what it takes was said when it was opened"),
        (Some(id), None) => Ok(Place::Pending(id)),
        (None, Some(key)) => Ok(Place::New(WaitpointSpec {
            key,
            expires_in_ms: body.expires_in_ms,
            allowed_signals: body.allowed_signals.unwrap_or_default(),
            approvers: approvers(&format!("waitpoints[{at}]."), body.approvers)?,
            uses: body.uses,
        })),
    }
}

async fn suspend(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<SuspendBody>,
) -> JsonAnswer<SuspendAnswer> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    let (mut waitpoints, mut pending) = (Vec::new(), Vec::new());
    for (at, waitpoint) in body.waitpoints.unwrap_or_default().into_iter().enumerate() {
        match place(waitpoint, at)? {
            Place::New(spec) if waitpoints.iter().any(|known: &WaitpointSpec| known.key == spec.key) => {
                return Err(Problem::invalid(format!("waitpoints[{at}].key"), "is given twice"));
            }
            Place::New(spec) => waitpoints.push(spec),
            Place::Pending(id) => pending.push(id),
        }
    }
    let fence = body.fence;
    let (continuation, continuation_encoding) = continuation::taken(body.continuation, body.continuation_encoding)?;
    let new = NewSuspension {
        execution_id: id,
        fence,
        namespace: None,
        reason: body.reason,
        waitpoints,
        // None named: the attempt waits at all it has opened.
        adopt: (!pending.is_empty()).then_some(pending),
        condition: body.condition.unwrap_or_default(),
        timeout_ms: body.timeout_ms,
        timeout_behavior: body.timeout_behavior.map_or(TimeoutBehavior::Fail, TimeoutBehavior::from),
        continuation,
        continuation_encoding,
        step: body.step,
        request_id: request_of(body.request_id.as_deref()),
    };
    let answer = app.waitpoints()?.suspend(new).await.map_err(Problem::from);
    let ends = matches!(answer, Ok(Suspended::Waiting { .. }));
    Ok(Json(match settled(&app, id, fence, answer, ends)? {
        Suspended::Waiting { suspension_id, waitpoints, timeout_at, replayed } => SuspendAnswer::Suspended {
            execution_id: id,
            suspension_id,
            waitpoints: waitpoints.into_iter().map(opened).collect(),
            timeout_at,
            replayed,
        },
        Suspended::AlreadySatisfied { suspension_id, signals } => SuspendAnswer::AlreadySatisfied {
            execution_id: id,
            suspension_id,
            waitpoints: [],
            signals: signals.into_iter().map(Signal::from).collect(),
        },
    }))
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<CreateWaitpointBody>,
) -> JsonAnswer<OpenedWaitpoint> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    let spec = WaitpointSpec {
        key: body.key,
        expires_in_ms: body.expires_in_ms,
        allowed_signals: body.allowed_signals.unwrap_or_default(),
        approvers: approvers("", body.approvers)?,
        uses: body.uses,
    };
    let request_id = request_of(body.request_id.as_deref());
    let made = app.waitpoints()?.create(id, body.fence, None, &spec, request_id).await.map_err(Problem::from);
    Ok(Json(opened(settled(&app, id, body.fence, made, false)?)))
}

async fn close(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Waitpoint(waitpoint_id): Waitpoint,
    Body(body): Body<CloseWaitpointBody>,
) -> JsonAnswer<WaitpointClosed> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    let closed = app.waitpoints()?.close(id, body.fence, waitpoint_id).await.map_err(Problem::from);
    let replayed = settled(&app, id, body.fence, closed, false)?;
    Ok(Json(WaitpointClosed { execution_id: id, waitpoint_id, outcome: CloseOutcome::Closed, replayed }))
}

async fn signals(State(app): State<App>, Id(id): Id) -> JsonAnswer<TaskSignals> {
    let signals = app.operations.signals(id, true).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(TaskSignals { execution_id: id, signals: signals.into_iter().map(Signal::from).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_the_same_request() {
        let id = Uuid::now_v7();
        assert_eq!(request_of(Some(&id.to_string())), Some(id));
        assert_eq!(request_of(Some("r-1")), request_of(Some("r-1")));
        assert_ne!(request_of(Some("r-1")), request_of(Some("r-2")));
        assert_eq!(request_of(None), None);
    }
}
