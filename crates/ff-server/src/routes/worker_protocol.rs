//! What a worker of any language says about itself: register, heartbeat with renewals, claim, leave.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ff_api::claims::{
    ClaimBody, ClaimTasks, Claimed, ConsumeBody, ConsumeTask, Consumed, GrantBody, GrantTasks, Granted,
};
use ff_api::workers::{
    AttendBody, AttendWorker, Attended, Heartbeat, HeartbeatAnswer, HeartbeatBody, LeaseAnswer, LeaseRefused,
    LeaseRenewed, LeaveBody, RegisterBody, RegisterWorker as RegisterOperation, Registered,
};
use ff_core::contracts::ClaimGrant;
use ff_core::error_code::ErrorCode;
use ff_core::types::ExecutionId;
use ff_engine::fleet::{ClaimWish, Ends, Worker};
use ff_script::Answers;
use ff_script::generated::{RegisterWorker, RenewLeaseReply, Role, Task};
use uuid::Uuid;

use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body::Body;
use crate::openapi::Described;
use crate::problem::{Answer, Problem};

const LEASE_TTL_MS: i64 = 30_000;
const WAIT_MAX_MS: u64 = 30_000;
const CLAIM_MAX: u16 = 256;
const GRANT_TTL_MS: i64 = 5_000;

pub fn routes() -> Described {
    Described::new()
        .serving::<RegisterOperation, _>(register)
        .serving::<Heartbeat, _>(heartbeat)
        .serving::<AttendWorker, _>(attend)
        .serving::<ClaimTasks, _>(claim)
        .serving::<GrantTasks, _>(grant)
        .serving::<ConsumeTask, _>(consume)
}

async fn register(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    Body(body): Body<RegisterBody>,
) -> JsonAnswer<Registered> {
    let registration = RegisterWorker {
        capabilities: body.capabilities.unwrap_or_default(),
        kinds: body.kinds,
        incarnation: body.incarnation,
        lanes: body.lanes,
        namespace: body.namespace.unwrap_or_else(|| "default".to_owned()),
        owner: caller.owner(),
        slots: body.slots.unwrap_or(1),
        take_over: None,
        worker_id: body.worker_id,
        instance,
    };
    caller.check(&registration.namespace, None)?;
    for lane in &registration.lanes {
        caller.check(&registration.namespace, Some(lane))?;
    }
    caller.check_capabilities(&registration.capabilities)?;
    let (heartbeat_ms, expires_at) = app.fleet.register(registration).await?;
    Ok(Json(Registered { heartbeat_ms, expires_at, partitions: app.operations.client().partitions() }))
}

async fn attend(State(app): State<App>, Name(instance): Name, Body(body): Body<AttendBody>) -> JsonAnswer<Attended> {
    let wait_ms = body.wait_ms.unwrap_or(0);
    if wait_ms > WAIT_MAX_MS {
        return Err(Problem::invalid("wait_ms", format!("must be in 0..={WAIT_MAX_MS}, got {wait_ms}")));
    }
    let worker = app.fleet.worker(&instance, body.incarnation).await?;
    let _open = (wait_ms > 0).then(|| app.metrics.process.long_poll());
    let over = async {
        tokio::select! {
            () = app.stop.cancelled() => {}
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
        }
    };
    let draining = worker.attend(body.incarnation, body.draining.unwrap_or(false), over).await?;
    Ok(Json(Attended { draining }))
}

pub async fn deregister(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    Body(body): Body<LeaveBody>,
) -> Answer<StatusCode> {
    if body.force == Some(true) {
        if !caller.has_any(&[Role::Operator]) {
            let detail = format!("{} may not use force; it takes one of the roles operator, admin", caller.name());
            return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail));
        }
        app.fleet.send_away(&instance, caller.name()).await?;
        return Ok(StatusCode::NO_CONTENT);
    }
    if body.incarnation.is_none() && app.fleet.meet(&instance).await.is_ok_and(|worker| worker.incarnation().is_some())
    {
        let detail = format!("{instance} is alive and has an incarnation: name it, or, as an operator, say force");
        return Err(Problem::new(StatusCode::CONFLICT, ErrorCode::InstanceInUse.as_str(), detail));
    }
    app.fleet.deregister(&instance, body.incarnation).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn refused(app: &App, execution_id: ExecutionId, problem: &Problem) -> LeaseAnswer {
    LeaseAnswer::Refused(LeaseRefused { execution_id, problem: app.refused_item(problem) })
}

async fn heartbeat(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    Body(body): Body<HeartbeatBody>,
) -> JsonAnswer<HeartbeatAnswer> {
    let worker = app.fleet.worker(&instance, body.incarnation).await?;
    let mut answers: Vec<Option<LeaseAnswer>> = Vec::new();
    let (mut places, mut leases) = (Vec::new(), Vec::new());
    for (index, lease) in body.renew.unwrap_or_default().into_iter().enumerate() {
        let execution_id = lease.execution_id;
        // One that is not the caller's to renew is refused alone.
        answers.push(match app.check_fence(&caller, execution_id, lease.lease_id).await {
            Ok(()) => {
                places.push(index);
                leases.push((execution_id, lease.fence()));
                None
            }
            Err(problem) => Some(refused(&app, execution_id, &problem.into())),
        });
    }
    let replies = app.fleet.renew(&worker, &leases).await;
    for ((index, (execution_id, _)), reply) in places.into_iter().zip(leases).zip(replies) {
        answers[index] = Some(match reply {
            Ok(RenewLeaseReply::Renewed { lease_expires_at, cancel_requested, yield_requested }) => {
                LeaseAnswer::Renewed(LeaseRenewed { execution_id, lease_expires_at, cancel_requested, yield_requested })
            }
            Err(problem) => refused(&app, execution_id, &problem.into()),
        });
    }
    Ok(Json(HeartbeatAnswer { leases: answers.into_iter().flatten().collect(), draining: worker.is_draining() }))
}

async fn claim(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    Body(body): Body<ClaimBody>,
) -> JsonAnswer<Claimed> {
    let tasks = claim_for(&app, &caller, &instance, body).await?;
    Ok(Json(Claimed { tasks: tasks.into_iter().map(Into::into).collect() }))
}

/// Runs operations that end leases of a worker, and claims for it; the claim never waits.
pub async fn claim_after(
    app: &App,
    caller: &Caller,
    instance: &str,
    body: ClaimBody,
    ends: Ends,
) -> (Answers, Answer<Vec<Task>>) {
    let (worker, wish) = match wish_of(app, instance, body).await {
        Ok(asked) => asked,
        Err(problem) => return (app.operations.client().run(ends.list).await, Err(problem)),
    };
    let (ended, claimed) = app.fleet.claim_after(&worker, wish, ends, app.check_standing(caller)).await;
    let tasks = match claimed {
        Ok(tasks) => made_whole(app, tasks).await,
        Err(problem) => Err(problem),
    };
    (ended, tasks)
}

/// Waits for tasks on behalf of a registered worker.
async fn claim_for(app: &App, caller: &Caller, instance: &str, body: ClaimBody) -> Answer<Vec<Task>> {
    let (worker, wish) = wish_of(app, instance, body).await?;
    let open = (!wish.wait.is_zero()).then(|| app.metrics.process.long_poll());
    let tasks = app.fleet.claim(&worker, wish, &app.stop, app.check_standing(caller)).await?;
    drop(open);
    made_whole(app, tasks).await
}

/// Tasks with what lies apart from them.
async fn made_whole(app: &App, mut tasks: Vec<Task>) -> Answer<Vec<Task>> {
    for task in &mut tasks {
        app.operations.complete_resume(task).await?;
        app.complete_children(task).await?;
    }
    Ok(tasks)
}

/// The worker, and what its claim asks for.
async fn wish_of(app: &App, instance: &str, body: ClaimBody) -> Answer<(Arc<Worker>, ClaimWish)> {
    let max = body.max.unwrap_or(1);
    if !(1..=CLAIM_MAX).contains(&max) {
        return Err(Problem::invalid("max", format!("must be in 1..={CLAIM_MAX}, got {max}")));
    }
    let wait_ms = body.wait_ms.unwrap_or(0);
    if wait_ms > WAIT_MAX_MS {
        return Err(Problem::invalid("wait_ms", format!("must be in 0..={WAIT_MAX_MS}, got {wait_ms}")));
    }
    let lease_ttl_ms = body.lease_ttl_ms.unwrap_or(LEASE_TTL_MS);
    if !(1_000..=3_600_000).contains(&lease_ttl_ms) {
        return Err(Problem::invalid("lease_ttl_ms", format!("must be in 1000..=3600000, got {lease_ttl_ms}")));
    }
    let worker = app.fleet.worker(instance, body.incarnation).await?;
    let wish = ClaimWish {
        profile: worker.profile(body.lanes, body.kinds, lease_ttl_ms)?,
        max,
        wait: Duration::from_millis(wait_ms),
        request_id: body.request_id.unwrap_or_else(Uuid::now_v7),
    };
    Ok((worker, wish))
}

async fn grant(State(app): State<App>, Name(instance): Name, Body(body): Body<GrantBody>) -> JsonAnswer<Granted> {
    let max = body.max.unwrap_or(1);
    if !(1..=64).contains(&max) {
        return Err(Problem::invalid("max", format!("must be in 1..=64, got {max}")));
    }
    let ttl_ms = body.grant_ttl_ms.unwrap_or(GRANT_TTL_MS);
    if !(100..=60_000).contains(&ttl_ms) {
        return Err(Problem::invalid("grant_ttl_ms", format!("must be in 100..=60000, got {ttl_ms}")));
    }
    let worker = app.fleet.worker(&instance, body.incarnation).await?;
    let grants = if worker.is_draining() {
        Vec::new()
    } else {
        let profile = worker.profile(body.lanes, body.kinds, LEASE_TTL_MS)?;
        app.dispatcher.grant(&profile, max, ttl_ms).await?
    };
    Ok(Json(Granted { grants: grants.into_iter().map(ClaimGrant::from).collect() }))
}

async fn consume(State(app): State<App>, Name(instance): Name, Body(body): Body<ConsumeBody>) -> JsonAnswer<Consumed> {
    let worker = app.fleet.worker(&instance, body.incarnation).await?;
    let profile = worker.profile(None, None, body.lease_ttl_ms.unwrap_or(LEASE_TTL_MS))?;
    let request_id = body.request_id.unwrap_or_else(Uuid::now_v7);
    let mut task = app.fleet.take_up(&worker, &profile, body.execution_id, body.grant_id, request_id).await?;
    app.operations.complete_resume(&mut task).await?;
    app.complete_children(&mut task).await?;
    Ok(Json(Consumed { task: task.into() }))
}
