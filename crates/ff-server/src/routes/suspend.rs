//! What a worker does to wait: suspend, open and give up waitpoints, read the signals that let it go on.

use axum::Json;
use axum::extract::State;
use ff_core::condition::Condition;
use ff_core::types::{ExecutionId, SuspensionId, WaitpointId};
use ff_engine::{NewSuspension, Suspended, WaitpointSpec};
use ff_script::generated::{SuspensionReason, TimeoutBehavior};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer, Waitpoint};
use crate::body::Body;
use crate::continuation;
use crate::openapi::{Described, vocabulary};
use crate::payload::Encoding;
use crate::problem::{Answer, Problem};
use crate::shape::suspension::{OpenedShape, SignalShape};
use crate::word::word;
use ff_script::generated::Fence;

/// Who may answer at one waitpoint.
const APPROVERS_MAX: usize = ff_core::limits::APPROVERS_MAX as usize;
/// The longest name of one of them.
const APPROVER_BYTES_MAX: usize = ff_core::limits::APPROVER_BYTES_MAX;

pub fn routes() -> Described {
    Described::new().with(routes!(suspend)).with(routes!(create)).with(routes!(close)).with(routes!(signals))
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

/// A waitpoint to open, or a pending one to wait at.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WaitpointBody {
    waitpoint_id: Option<WaitpointId>,
    #[schema(value_type = Option<vocabulary::WaitpointKey>)]
    key: Option<String>,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    expires_in_ms: Option<i64>,
    #[schema(value_type = Option<Vec<vocabulary::SignalName>>, max_items = 64)]
    allowed_signals: Option<Vec<String>>,
    #[schema(value_type = Option<Vec<vocabulary::Approver>>, max_items = 64)]
    approvers: Option<Vec<String>>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    uses: Option<u32>,
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

impl WaitpointBody {
    fn place(self, at: usize) -> Answer<Place> {
        let wrong = |problem: &str| Err(Problem::invalid(format!("waitpoints[{at}]"), problem));
        let described = self.expires_in_ms.is_some()
            || self.allowed_signals.is_some()
            || self.approvers.is_some()
            || self.uses.is_some();
        match (self.waitpoint_id, self.key) {
            (Some(_), Some(_)) => wrong("must have a key or a waitpoint_id, not both"),
            (None, None) => wrong("must have a key, or the waitpoint_id of a pending waitpoint"),
            (Some(_), None) if described => wrong("is pending: what it takes was said when it was opened"),
            (Some(id), None) => Ok(Place::Pending(id)),
            (None, Some(key)) => Ok(Place::New(WaitpointSpec {
                key,
                expires_in_ms: self.expires_in_ms,
                allowed_signals: self.allowed_signals.unwrap_or_default(),
                approvers: approvers(&format!("waitpoints[{at}]."), self.approvers)?,
                uses: self.uses,
            })),
        }
    }
}

/// What happens when the time is over.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TimeoutBehaviorWord)]
#[expect(dead_code, reason = "it describes a word")]
enum TimeoutWord {
    Fail,
    Cancel,
    Expire,
    AutoResume,
    AutoResumeWithTimeoutSignal,
    Escalate,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SuspendBody {
    fence: Fence,
    #[schema(value_type = SuspensionReason)]
    reason: String,
    #[schema(max_items = 64)]
    waitpoints: Option<Vec<WaitpointBody>>,
    #[schema(value_type = Option<vocabulary::Condition>)]
    condition: Option<Condition>,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    timeout_ms: Option<i64>,
    /// `auto_resume` is short for `auto_resume_with_timeout_signal`.
    #[schema(value_type = Option<TimeoutWord>)]
    timeout_behavior: Option<String>,
    #[schema(value_type = vocabulary::Payload, required = false)]
    continuation: Option<Box<RawValue>>,
    continuation_encoding: Option<Encoding>,
    /// Names the wait: the claim that continues the attempt carries it in `resume`.
    #[schema(value_type = Option<vocabulary::StepName>)]
    step: Option<String>,
    request_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[schema(as = SuspendAnswer)]
enum SuspendAnswer {
    Suspended {
        execution_id: ExecutionId,
        suspension_id: SuspensionId,
        waitpoints: Vec<OpenedShape>,
        timeout_at: Option<i64>,
        replayed: bool,
    },
    AlreadySatisfied {
        execution_id: ExecutionId,
        suspension_id: SuspensionId,
        #[schema(value_type = Vec<OpenedShape>, max_items = 0)]
        waitpoints: [OpenedShape; 0],
        signals: Vec<SignalShape>,
    },
}

/// Releases the lease until the condition is met; early signals that are enough leave it with the worker.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/suspend",
    params(Id),
    request_body = SuspendBody,
    responses((status = 200, body = SuspendAnswer)),
    extensions(("x-ff-codes" = json!("fence waitpoint_not_found keys_unavailable"))),
)]
async fn suspend(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<SuspendBody>,
) -> JsonAnswer<SuspendAnswer> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    let (mut waitpoints, mut pending) = (Vec::new(), Vec::new());
    for (at, waitpoint) in body.waitpoints.unwrap_or_default().into_iter().enumerate() {
        match waitpoint.place(at)? {
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
        reason: word("reason", &body.reason)?,
        waitpoints,
        // None named: the attempt waits at all it has opened.
        adopt: (!pending.is_empty()).then_some(pending),
        condition: body.condition.unwrap_or_default(),
        timeout_ms: body.timeout_ms,
        timeout_behavior: behavior(body.timeout_behavior.as_deref())?,
        continuation,
        continuation_encoding,
        step: body.step,
        request_id: request_of(body.request_id.as_deref()),
    };
    let answer = app.waitpoints.suspend(new).await.map_err(Problem::from);
    let ends = matches!(answer, Ok(Suspended::Waiting { .. }));
    Ok(Json(match settled(&app, id, fence, answer, ends)? {
        Suspended::Waiting { suspension_id, waitpoints, timeout_at, replayed } => SuspendAnswer::Suspended {
            execution_id: id,
            suspension_id,
            waitpoints: waitpoints.into_iter().map(OpenedShape::from).collect(),
            timeout_at,
            replayed,
        },
        Suspended::AlreadySatisfied { suspension_id, signals } => SuspendAnswer::AlreadySatisfied {
            execution_id: id,
            suspension_id,
            waitpoints: [],
            signals: signals.into_iter().map(SignalShape::from).collect(),
        },
    }))
}

fn behavior(text: Option<&str>) -> Answer<TimeoutBehavior> {
    match text {
        None => Ok(TimeoutBehavior::Fail),
        Some("auto_resume") => Ok(TimeoutBehavior::AutoResumeWithTimeoutSignal),
        Some(text) => word("timeout_behavior", text),
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateWaitpointBody)]
struct CreateBody {
    fence: Fence,
    #[schema(value_type = vocabulary::WaitpointKey)]
    key: String,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    expires_in_ms: Option<i64>,
    #[schema(value_type = Option<Vec<vocabulary::SignalName>>, max_items = 64)]
    allowed_signals: Option<Vec<String>>,
    #[schema(value_type = Option<Vec<vocabulary::Approver>>, max_items = 64)]
    approvers: Option<Vec<String>>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    uses: Option<u32>,
    request_id: Option<String>,
}

/// Opens a waitpoint while the attempt runs; signals that come before the suspend are kept.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/waitpoints",
    params(Id),
    request_body = CreateBody,
    responses((status = 200, body = OpenedShape)),
    extensions(("x-ff-codes" = json!("fence keys_unavailable"))),
)]
async fn create(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<CreateBody>,
) -> JsonAnswer<OpenedShape> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    let spec = WaitpointSpec {
        key: body.key,
        expires_in_ms: body.expires_in_ms,
        allowed_signals: body.allowed_signals.unwrap_or_default(),
        approvers: approvers("", body.approvers)?,
        uses: body.uses,
    };
    let request_id = request_of(body.request_id.as_deref());
    let made = app.waitpoints.create(id, body.fence, None, &spec, request_id).await.map_err(Problem::from);
    Ok(Json(settled(&app, id, body.fence, made, false)?.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CloseWaitpointBody)]
struct CloseBody {
    fence: Fence,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = WaitpointClosed)]
struct Closed {
    execution_id: ExecutionId,
    waitpoint_id: WaitpointId,
    outcome: &'static str,
    replayed: bool,
}

/// The worker gives up a pending waitpoint.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/waitpoints/{waitpoint}/close",
    params(Id, Waitpoint),
    request_body = CloseBody,
    responses((status = 200, body = Closed)),
    extensions(("x-ff-codes" = json!("fence waitpoint_not_found"))),
)]
async fn close(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Waitpoint(waitpoint_id): Waitpoint,
    Body(body): Body<CloseBody>,
) -> JsonAnswer<Closed> {
    app.check_fence(&caller, id, body.fence.lease_id).await?;
    let closed = app.waitpoints.close(id, body.fence, waitpoint_id).await.map_err(Problem::from);
    let replayed = settled(&app, id, body.fence, closed, false)?;
    Ok(Json(Closed { execution_id: id, waitpoint_id, outcome: "closed", replayed }))
}

#[derive(Serialize, ToSchema)]
#[schema(as = TaskSignals)]
struct Signals {
    execution_id: ExecutionId,
    signals: Vec<SignalShape>,
}

/// The signals that let the attempt go on, in order of arrival.
#[utoipa::path(
    get,
    path = "/v1/tasks/{id}/signals",
    params(Id),
    responses((status = 200, body = Signals)),
    extensions(("x-ff-codes" = json!("execution_not_found"))),
)]
async fn signals(State(app): State<App>, Id(id): Id) -> JsonAnswer<Signals> {
    let signals = app.operations.signals(id, true).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(Signals { execution_id: id, signals: signals.into_iter().map(SignalShape::from).collect() }))
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
