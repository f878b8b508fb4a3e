//! What a worker does with a task it holds; every call is fenced and safe to repeat.

use axum::Json;
use axum::extract::State;
use ff_api::tasks::{
    CancelBody, CancelTask, CompleteBody, CompleteTask, DelayBody, DelayTask, FailBody, FailTask, Fence, ProgressBody,
    ReportProgress, TaskDone, TaskOutcome, YieldBody, YieldTask,
};
use ff_core::limits::REASON_BYTES_MAX;
use ff_core::types::ExecutionId;
use ff_script::Call;
use ff_script::generated::{
    CancelAttempt, CancelAttemptReply, CompleteExecution, CompleteExecutionReply, DelayExecution, DelayExecutionReply,
    FailExecution, UpdateProgress, UpdateProgressReply, YieldExecution, YieldExecutionReply,
};

use crate::access::Caller;
use crate::app::{App, Id, JsonAnswer};
use crate::body::{Body, PAYLOAD};
use crate::openapi::Described;
use crate::payload::{self, bounded};
use crate::problem::{Answer, Problem};

pub fn routes() -> Described {
    Described::new()
        .serving::<CompleteTask, _>(complete)
        .serving::<FailTask, _>(fail)
        .serving::<CancelTask, _>(cancel)
        .serving::<DelayTask, _>(delay)
        .serving::<YieldTask, _>(yield_back)
        .serving::<ReportProgress, _>(progress)
}

/// Makes a fenced call; a lease that ended with it, or before it, frees its slot.
async fn fenced<C: Call>(
    app: &App,
    caller: &Caller,
    id: ExecutionId,
    fence: Fence,
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

async fn complete(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<CompleteBody, PAYLOAD>,
) -> JsonAnswer<TaskDone> {
    let (result, result_encoding) = payload::taken("result", body.result, body.result_encoding, payload::PAYLOAD_MAX)?;
    let call = CompleteExecution { execution_id: id, fence: body.fence, result, result_encoding };
    let carried = app.engine.waiting().carry([id]);
    let reply = fenced(&app, &caller, id, body.fence, &call, true).await?;
    if reply == CompleteExecutionReply::Completed {
        carried.completed(&call);
    }
    Ok(Json(TaskDone::new(id, TaskOutcome::Completed, reply == CompleteExecutionReply::Replayed)))
}

async fn fail(State(app): State<App>, caller: Caller, Id(id): Id, Body(body): Body<FailBody>) -> JsonAnswer<TaskDone> {
    let call = failure(id, body.fence, body.reason, body.category, body.retryable, body.retry_after_ms)?;
    let reply = fenced(&app, &caller, id, body.fence, &call, true).await?;
    Ok(Json(TaskDone::failed(id, reply)))
}

/// The call that fails an attempt.
pub fn failure(
    execution_id: ExecutionId,
    fence: Fence,
    reason: String,
    category: String,
    retryable: Option<bool>,
    retry_after_ms: Option<i64>,
) -> Answer<FailExecution> {
    if reason.len() > REASON_BYTES_MAX {
        return Err(Problem::too_large("reason", REASON_BYTES_MAX));
    }
    let draw = rand::random_range(0..=1000);
    Ok(FailExecution { category, draw, execution_id, fence, reason, retry_after_ms, retryable })
}

async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<CancelBody>,
) -> JsonAnswer<TaskDone> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
    let call = CancelAttempt { execution_id: id, fence: body.fence, reason: body.reason };
    let reply = fenced(&app, &caller, id, body.fence, &call, true).await?;
    Ok(Json(TaskDone::new(id, TaskOutcome::Cancelled, reply == CancelAttemptReply::Replayed)))
}

async fn delay(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<DelayBody>,
) -> JsonAnswer<TaskDone> {
    if body.delay_ms.is_some() == body.delay_until.is_some() {
        return Err(Problem::invalid("delay_ms", "or delay_until must be given, not both"));
    }
    let call =
        DelayExecution { delay_ms: body.delay_ms, delay_until: body.delay_until, execution_id: id, fence: body.fence };
    let DelayExecutionReply::Delayed { delay_until, replayed } =
        fenced(&app, &caller, id, body.fence, &call, true).await?;
    Ok(Json(TaskDone { delay_until: Some(delay_until), ..TaskDone::new(id, TaskOutcome::Delayed, replayed) }))
}

async fn yield_back(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<YieldBody>,
) -> JsonAnswer<TaskDone> {
    let call = YieldExecution { execution_id: id, fence: body.fence };
    let reply = fenced(&app, &caller, id, body.fence, &call, true).await?;
    Ok(Json(TaskDone::new(id, TaskOutcome::Yielded, reply == YieldExecutionReply::Replayed)))
}

async fn progress(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body<ProgressBody>,
) -> JsonAnswer<TaskDone> {
    let call = UpdateProgress { execution_id: id, fence: body.fence, message: body.message, pct: body.pct };
    let UpdateProgressReply::Noted = fenced(&app, &caller, id, body.fence, &call, false).await?;
    Ok(Json(TaskDone::new(id, TaskOutcome::Noted, false)))
}
