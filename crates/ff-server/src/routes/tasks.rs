//! What a worker does with a task it holds; every call is fenced and safe to repeat.

use axum::Json;
use axum::extract::State;
use ff_core::types::ExecutionId;
use ff_script::Call;
use ff_script::generated::{
    CancelAttempt, CancelAttemptReply, CompleteExecution, CompleteExecutionReply, DelayExecution, DelayExecutionReply,
    FailExecution, FailExecutionReply, UpdateProgress, UpdateProgressReply, YieldExecution, YieldExecutionReply,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::{Body, PAYLOAD};
use crate::openapi::{Described, vocabulary};
use crate::payload::{self, Encoding, bounded};
use crate::problem::{Answer, Problem};
use crate::shape::task::FenceBody;

/// The longest reason.
pub const REASON_MAX: usize = 4096;

pub fn routes() -> Described {
    Described::new()
        .with(routes!(complete))
        .with(routes!(fail))
        .with(routes!(cancel))
        .with(routes!(delay))
        .with(routes!(yield_back))
        .with(routes!(progress))
}

/// What became of a task.
#[derive(Serialize, ToSchema)]
pub struct TaskDone {
    /// The task's execution.
    pub execution_id: ExecutionId,
    /// completed, failed, retry_scheduled, cancelled, delayed, yielded or noted.
    pub outcome: &'static str,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_until: Option<i64>,
    /// The same call had been answered before.
    pub replayed: bool,
}

impl TaskDone {
    /// Done, with this outcome.
    pub fn new(execution_id: ExecutionId, outcome: &'static str, replayed: bool) -> Self {
        Self { execution_id, outcome, delay_until: None, replayed }
    }
}

/// The problem a refused item of a batch means.
/// Makes a fenced call; a lease that ended with it, or before it, frees its slot.
async fn fenced<C: Call>(
    app: &App,
    caller: &Caller,
    id: ExecutionId,
    fence: FenceBody,
    call: &C,
    ends: bool,
) -> Answer<C::Reply> {
    app.check_fence(caller, id, fence.lease_id).await?;
    let client = app.operations.client();
    let answer = client.call(client.route_of(&id), call).await.map_err(|error| Problem::from(error).about(id));
    let over = match &answer {
        Ok(_) => ends,
        Err(problem) => problem.ends_lease(),
    };
    if over {
        app.fleet.ended(fence.lease_id);
    }
    answer
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CompleteBody {
    fence: FenceBody,
    #[schema(value_type = vocabulary::Payload, required = false)]
    result: Option<Box<RawValue>>,
    result_encoding: Option<Encoding>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// Ends the attempt with a result.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/complete",
    params(Id),
    request_body = CompleteBody,
    responses((status = 200, body = TaskDone)),
    extensions(("x-ff-codes" = json!("fence"))),
)]
async fn complete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<CompleteBody, PAYLOAD>,
) -> JsonAnswer<TaskDone> {
    let (result, result_encoding) = payload::taken("result", body.result, body.result_encoding, payload::PAYLOAD_MAX)?;
    let call = CompleteExecution { execution_id: id, fence: body.fence.into(), result, result_encoding };
    let carried = app.engine.waiting().carry([id]);
    let reply = fenced(&app, &caller, id, body.fence, &call, true).await?;
    if reply == CompleteExecutionReply::Completed {
        carried.completed(&call);
    }
    Ok(Json(TaskDone::new(id, "completed", reply == CompleteExecutionReply::Replayed)))
}

/// A failure of an attempt.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FailTaskBody)]
struct FailBody {
    fence: FenceBody,
    #[schema(value_type = vocabulary::Reason)]
    reason: String,
    #[schema(value_type = vocabulary::Category)]
    category: String,
    retryable: Option<bool>,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    retry_after_ms: Option<i64>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// Ends the attempt with a failure; the retry policy decides what follows.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/fail",
    params(Id),
    request_body = FailBody,
    responses((status = 200, body = TaskDone)),
    extensions(("x-ff-codes" = json!("fence"))),
)]
async fn fail(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<FailBody>) -> JsonAnswer<TaskDone> {
    let call = failure(id, body.fence, body.reason, body.category, body.retryable, body.retry_after_ms)?;
    let reply = fenced(&app, &caller, id, body.fence, &call, true).await?;
    Ok(Json(failed(id, reply)))
}

/// The call that fails an attempt.
pub fn failure(
    execution_id: ExecutionId,
    fence: FenceBody,
    reason: String,
    category: String,
    retryable: Option<bool>,
    retry_after_ms: Option<i64>,
) -> Answer<FailExecution> {
    if reason.len() > REASON_MAX {
        return Err(Problem::too_large("reason", REASON_MAX));
    }
    let draw = rand::random_range(0..=1000);
    Ok(FailExecution { category, draw, execution_id, fence: fence.into(), reason, retry_after_ms, retryable })
}

/// What the policy decided after a failure.
pub fn failed(id: ExecutionId, reply: FailExecutionReply) -> TaskDone {
    match reply {
        FailExecutionReply::Failed { replayed } => TaskDone::new(id, "failed", replayed),
        FailExecutionReply::RetryScheduled { delay_until, replayed } => {
            TaskDone { delay_until: Some(delay_until), ..TaskDone::new(id, "retry_scheduled", replayed) }
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CancelTaskBody)]
struct CancelBody {
    fence: FenceBody,
    #[schema(value_type = Option<vocabulary::Reason>)]
    reason: Option<String>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// The worker cancels the execution.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/cancel",
    params(Id),
    request_body = CancelBody,
    responses((status = 200, body = TaskDone)),
    extensions(("x-ff-codes" = json!("fence"))),
)]
async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<CancelBody>,
) -> JsonAnswer<TaskDone> {
    bounded("reason", &body.reason, REASON_MAX)?;
    let call = CancelAttempt { execution_id: id, fence: body.fence.into(), reason: body.reason };
    let reply = fenced(&app, &caller, id, body.fence, &call, true).await?;
    Ok(Json(TaskDone::new(id, "cancelled", reply == CancelAttemptReply::Replayed)))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DelayBody {
    fence: FenceBody,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    delay_ms: Option<i64>,
    #[schema(value_type = Option<vocabulary::TimeMs>)]
    delay_until: Option<i64>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// Hands the execution back until a time; counted against neither attempts nor reclaims.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/delay",
    params(Id),
    request_body = DelayBody,
    responses((status = 200, body = TaskDone)),
    extensions(("x-ff-codes" = json!("fence"))),
)]
async fn delay(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<DelayBody>,
) -> JsonAnswer<TaskDone> {
    if body.delay_ms.is_some() == body.delay_until.is_some() {
        return Err(Problem::invalid("delay_ms", "or delay_until must be given, not both"));
    }
    let call = DelayExecution {
        delay_ms: body.delay_ms,
        delay_until: body.delay_until,
        execution_id: id,
        fence: body.fence.into(),
    };
    let DelayExecutionReply::Delayed { delay_until, replayed } =
        fenced(&app, &caller, id, body.fence, &call, true).await?;
    Ok(Json(TaskDone { delay_until: Some(delay_until), ..TaskDone::new(id, "delayed", replayed) }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct YieldBody {
    fence: FenceBody,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// Hands the execution back: eligible at once, counted nowhere.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/yield",
    params(Id),
    request_body = YieldBody,
    responses((status = 200, body = TaskDone)),
    extensions(("x-ff-codes" = json!("fence"))),
)]
async fn yield_back(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<YieldBody>,
) -> JsonAnswer<TaskDone> {
    let call = YieldExecution { execution_id: id, fence: body.fence.into() };
    let reply = fenced(&app, &caller, id, body.fence, &call, true).await?;
    Ok(Json(TaskDone::new(id, "yielded", reply == YieldExecutionReply::Replayed)))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProgressBody {
    fence: FenceBody,
    #[schema(minimum = 0, maximum = 100)]
    pct: i64,
    #[schema(value_type = Option<vocabulary::ProgressMessage>)]
    message: Option<String>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// Notes how far the attempt is.
#[utoipa::path(
    post,
    path = "/v1/tasks/{id}/progress",
    params(Id),
    request_body = ProgressBody,
    responses((status = 200, body = TaskDone)),
    extensions(("x-ff-codes" = json!("fence"))),
)]
async fn progress(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<ProgressBody>,
) -> JsonAnswer<TaskDone> {
    let call = UpdateProgress { execution_id: id, fence: body.fence.into(), message: body.message, pct: body.pct };
    let UpdateProgressReply::Noted = fenced(&app, &caller, id, body.fence, &call, false).await?;
    Ok(Json(TaskDone::new(id, "noted", false)))
}
