//! What a worker of any language says about itself: register, heartbeat with renewals, claim, leave.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ff_core::PartitionConfig;
use ff_core::error_code::ErrorCode;
use ff_core::types::{AttemptId, ExecutionId, LeaseId};
use ff_script::Answers;
use ff_script::generated::{Fence, RegisterWorker, RenewLease, RenewLeaseReply, Role, Task};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;
use uuid::Uuid;

use super::children::complete_children;
use crate::access::Caller;
use crate::app::{App, JsonAnswer, Name};
use crate::body::Body;
use crate::fleet::{ClaimWish, Ends, Worker};
use crate::openapi::{Described, vocabulary};
use crate::problem::{Answer, ItemProblem, Problem};
use crate::shape::task::{GrantShape, TaskShape};

const LEASE_TTL_MS: i64 = 30_000;
const WAIT_MAX_MS: u64 = 30_000;
const CLAIM_MAX: u16 = 256;
const GRANT_TTL_MS: i64 = 5_000;

pub fn routes() -> Described {
    Described::new()
        .with(routes!(register))
        .with(routes!(heartbeat))
        .with(routes!(attend))
        .with(routes!(claim))
        .with(routes!(grant))
        .with(routes!(consume))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RegisterBody {
    #[schema(value_type = vocabulary::WorkerId)]
    worker_id: String,
    #[schema(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
    #[schema(value_type = Vec<vocabulary::LaneName>, min_items = 1, max_items = 64)]
    lanes: Vec<String>,
    #[schema(value_type = Option<Vec<vocabulary::Capability>>, max_items = 64)]
    capabilities: Option<Vec<String>>,
    #[schema(minimum = 1, maximum = 4_096)]
    slots: Option<i64>,
    incarnation: Option<Uuid>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Registered {
    heartbeat_ms: i64,
    expires_at: i64,
    /// Of the store; they never change.
    partitions: PartitionConfig,
}

/// An upsert: the same instance replaces its lanes, capabilities and slots.
#[utoipa::path(
    post,
    path = "/v1/workers/{name}/register",
    params(("name" = vocabulary::Instance, Path, description = "The worker's instance.")),
    request_body = RegisterBody,
    responses((status = 200, body = Registered)),
    extensions(("x-ff-codes" = json!("instance_in_use capability_invalid worker_not_registered"))),
)]
async fn register(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    Body(body): Body<RegisterBody>,
) -> JsonAnswer<Registered> {
    let registration = RegisterWorker {
        capabilities: body.capabilities.unwrap_or_default(),
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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AttendBody {
    incarnation: Option<Uuid>,
    draining: Option<bool>,
    #[schema(value_type = Option<vocabulary::WaitMs>)]
    wait_ms: Option<u64>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Attended {
    draining: bool,
}

/// A long poll that says two things at once: the worker is there for as long as it is held, and whether it is to drain.
#[utoipa::path(
    post,
    path = "/v1/workers/{name}/attend",
    params(("name" = vocabulary::Instance, Path, description = "The worker's instance.")),
    request_body = AttendBody,
    responses((status = 200, body = Attended)),
    extensions(("x-ff-codes" = json!("worker_not_registered instance_in_use"))),
)]
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

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaveBody {
    incarnation: Option<Uuid>,
    /// An operator ends it whichever process it is.
    force: Option<bool>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

/// Ends the registration; its leases run out by themselves unless they are given back first.
///
/// A process that named its incarnation is not sent away by one that does not know it.
#[utoipa::path(
    delete,
    path = "/v1/workers/{name}",
    params(("name" = vocabulary::Instance, Path, description = "The worker's instance.")),
    request_body = LeaveBody,
    responses((status = 204, description = "It is not registered any more.")),
    extensions(("x-ff-codes" = json!("worker_not_registered instance_in_use"))),
)]
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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct HeartbeatBody {
    renew: Option<Vec<RenewBody>>,
    incarnation: Option<Uuid>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RenewBody {
    execution_id: ExecutionId,
    attempt_id: AttemptId,
    lease_id: LeaseId,
    #[schema(value_type = vocabulary::Count)]
    lease_epoch: i64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = HeartbeatAnswer)]
struct Beaten {
    leases: Vec<LeaseAnswer>,
    /// The worker takes nothing new.
    draining: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum LeaseAnswer {
    Renewed {
        execution_id: ExecutionId,
        lease_expires_at: i64,
        cancel_requested: bool,
        yield_requested: bool,
    },
    Refused {
        execution_id: ExecutionId,
        #[serde(flatten)]
        problem: ItemProblem,
    },
}

/// Keeps the worker registered and renews all its leases: one call per partition that holds some.
#[utoipa::path(
    post,
    path = "/v1/workers/{name}/heartbeat",
    params(("name" = vocabulary::Instance, Path, description = "The worker's instance.")),
    request_body = HeartbeatBody,
    responses((status = 200, body = Beaten)),
    extensions(("x-ff-codes" = json!("worker_not_registered instance_in_use"))),
)]
async fn heartbeat(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    Body(body): Body<HeartbeatBody>,
) -> JsonAnswer<Beaten> {
    let worker = app.fleet.worker(&instance, body.incarnation).await?;
    let mut answers: Vec<Option<LeaseAnswer>> = Vec::new();
    let (mut places, mut renewals) = (Vec::new(), Vec::new());
    let client = app.operations.client();
    for (index, lease) in body.renew.unwrap_or_default().into_iter().enumerate() {
        let execution_id = lease.execution_id;
        // One that is not the caller's to renew is refused alone.
        answers.push(match app.check_fence(&caller, execution_id, lease.lease_id).await {
            Ok(()) => {
                let fence =
                    Fence { attempt_id: lease.attempt_id, lease_id: lease.lease_id, lease_epoch: lease.lease_epoch };
                places.push(index);
                renewals.push((client.route_of(&execution_id), RenewLease::new(execution_id, fence)));
                None
            }
            Err(problem) => Some(LeaseAnswer::Refused { execution_id, problem: app.refused_item(&problem) }),
        });
    }
    let replies = client.call_all(&renewals).await;
    for ((index, (_, renewal)), reply) in places.into_iter().zip(renewals).zip(replies) {
        let (execution_id, lease) = (renewal.execution_id, renewal.fence.lease_id);
        answers[index] = Some(match reply.map_err(Problem::from) {
            Ok(RenewLeaseReply::Renewed { lease_expires_at, cancel_requested, yield_requested }) => {
                app.fleet.holds(&worker, lease, lease_expires_at);
                LeaseAnswer::Renewed {
                    execution_id,
                    lease_expires_at,
                    cancel_requested,
                    // A drain is known here before the leases hear of it.
                    yield_requested: yield_requested || worker.is_draining(),
                }
            }
            Err(problem) => {
                if !problem.is_retryable() {
                    app.fleet.ended(lease);
                }
                LeaseAnswer::Refused { execution_id, problem: app.refused_item(&problem) }
            }
        });
    }
    Ok(Json(Beaten { leases: answers.into_iter().flatten().collect(), draining: worker.is_draining() }))
}

/// What a claim asks for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimBody {
    #[schema(value_type = Option<Vec<vocabulary::LaneName>>, max_items = 64)]
    lanes: Option<Vec<String>>,
    #[schema(minimum = 1, maximum = 256)]
    max: Option<u16>,
    #[schema(value_type = Option<vocabulary::WaitMs>)]
    wait_ms: Option<u64>,
    #[schema(value_type = Option<vocabulary::LeaseTtlMs>)]
    lease_ttl_ms: Option<i64>,
    request_id: Option<Uuid>,
    incarnation: Option<Uuid>,
}

/// The tasks a claim brought.
#[derive(Serialize, ToSchema)]
struct Claimed {
    tasks: Vec<TaskShape>,
}

/// A long poll for tasks; it answers none when nothing came.
#[utoipa::path(
    post,
    path = "/v1/workers/{name}/claim",
    params(("name" = vocabulary::Instance, Path, description = "The worker's instance.")),
    request_body = ClaimBody,
    responses((status = 200, body = Claimed)),
    extensions(("x-ff-codes" = json!("worker_not_registered instance_in_use"))),
)]
async fn claim(
    State(app): State<App>,
    caller: Caller,
    Name(instance): Name,
    Body(body): Body<ClaimBody>,
) -> JsonAnswer<Claimed> {
    let tasks = claim_for(&app, &caller, &instance, body).await?;
    Ok(Json(Claimed { tasks: tasks.into_iter().map(TaskShape::from).collect() }))
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
        complete_children(app, task).await?;
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
        profile: worker.profile(body.lanes, lease_ttl_ms)?,
        max,
        wait: Duration::from_millis(wait_ms),
        request_id: body.request_id.unwrap_or_else(Uuid::now_v7),
    };
    Ok((worker, wish))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GrantBody {
    #[schema(value_type = Option<Vec<vocabulary::LaneName>>, max_items = 64)]
    lanes: Option<Vec<String>>,
    #[schema(minimum = 1, maximum = 64)]
    max: Option<u16>,
    #[schema(value_type = Option<vocabulary::GrantTtlMs>)]
    grant_ttl_ms: Option<i64>,
    incarnation: Option<Uuid>,
    #[serde(rename = "request_id")]
    _request_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Granted {
    grants: Vec<GrantShape>,
}

/// Reserves admitted work for a worker that consumes the grant directly on the store.
#[utoipa::path(
    post,
    path = "/v1/workers/{name}/grant",
    params(("name" = vocabulary::Instance, Path, description = "The worker's instance.")),
    request_body = GrantBody,
    responses((status = 200, body = Granted)),
    extensions(("x-ff-codes" = json!("worker_not_registered instance_in_use"))),
)]
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
        let profile = worker.profile(body.lanes, LEASE_TTL_MS)?;
        app.dispatcher.grant(&profile, max, ttl_ms).await?
    };
    Ok(Json(Granted { grants: grants.into_iter().map(GrantShape::from).collect() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ConsumeBody {
    execution_id: ExecutionId,
    grant_id: Uuid,
    #[schema(value_type = Option<vocabulary::LeaseTtlMs>)]
    lease_ttl_ms: Option<i64>,
    request_id: Option<Uuid>,
    incarnation: Option<Uuid>,
}

#[derive(Serialize, ToSchema)]
struct Consumed {
    task: TaskShape,
}

/// Turns a grant into a lease, for a worker that cannot reach the store itself.
#[utoipa::path(
    post,
    path = "/v1/workers/{name}/consume",
    params(("name" = vocabulary::Instance, Path, description = "The worker's instance.")),
    request_body = ConsumeBody,
    responses((status = 200, body = Consumed)),
    extensions(("x-ff-codes" = json!("worker_not_registered instance_in_use execution_not_found grant_not_found not_capable"))),
)]
async fn consume(State(app): State<App>, Name(instance): Name, Body(body): Body<ConsumeBody>) -> JsonAnswer<Consumed> {
    let worker = app.fleet.worker(&instance, body.incarnation).await?;
    let profile = worker.profile(None, body.lease_ttl_ms.unwrap_or(LEASE_TTL_MS))?;
    let request_id = body.request_id.unwrap_or_else(Uuid::now_v7);
    let mut task = app.fleet.consume(&worker, &profile, body.execution_id, body.grant_id, request_id).await?;
    app.fleet.holds(&worker, task.lease_id, task.lease_expires_at);
    app.operations.complete_resume(&mut task).await?;
    complete_children(&app, &mut task).await?;
    Ok(Json(Consumed { task: task.into() }))
}
