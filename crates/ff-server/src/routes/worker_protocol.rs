//! What a worker of any language says about itself, and how it gets its tasks.

use axum::Json;
use axum::extract::State;
use ff_api::Ask;
use ff_api::claims::{ClaimBody, ClaimTasks, Claimed, ConsumeTask, GrantTasks};
use ff_api::executions::ReclaimExecution;
use ff_api::workers::{AttendWorker, Heartbeat, HeartbeatAnswer, HeartbeatBody, LeaseAnswer, RegisterWorker};
use ff_engine::Handle;

use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body::Body;
use crate::openapi::Described;

pub fn routes() -> Described {
    Described::new()
        .answering::<RegisterWorker>()
        .serving::<Heartbeat, _>(heartbeat)
        .carrying::<AttendWorker>()
        .serving::<ClaimTasks, _>(claim)
        .answering::<GrantTasks>()
        .answering::<ConsumeTask>()
        .answering::<ReclaimExecution>()
}

async fn heartbeat(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    Body(body): Body<HeartbeatBody>,
) -> JsonAnswer<HeartbeatAnswer> {
    let answered = app.service.handle(&caller, Ask::<Heartbeat>::with(instance, body)).await?;
    for lease in &answered.leases {
        if let LeaseAnswer::Refused(refused) = lease {
            app.metrics.process.refused(&refused.problem.code);
        }
    }
    Ok(Json(answered))
}

async fn claim(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    Body(body): Body<ClaimBody>,
) -> JsonAnswer<Claimed> {
    let _open = body.wait_ms.is_some_and(|wait| wait > 0).then(|| app.metrics.process.long_poll());
    Ok(Json(app.claim(&instance, body, app.still_may(&caller)).await?))
}
