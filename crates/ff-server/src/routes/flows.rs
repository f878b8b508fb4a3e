//! What submitters and operators do with flows: submit one whole, let it grow, release it, cancel it.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ff_api::flows::{
    AddEdges, AddMembers, AddedMember, AddedMembers, CancelFlow, CancelFlowBody, FlowBody, FlowCancelOutcome,
    FlowCancelled, FlowSubmitted, MemberBody, MemberId, MembersBody, SealFlow, SubmitFlow,
};
use ff_core::types::ExecutionId;
use ff_engine::{NewFlow, NewMember, new_edges, trace_members};
use ff_script::generated::{self as wire, CancelFlowReply, CancelPolicy, OnMemberFailure};
use uuid::Uuid;

use super::submit::{idempotency_key, trace_of};
use crate::access::Caller;
use crate::app::{App, Flow, JsonAnswer};
use crate::body::{BATCH, Body};
use crate::openapi::Described;
use crate::payload::bounded;
use crate::problem::{Answer, Problem};
use ff_core::limits::{IDEMPOTENCY_KEY_BYTES_MAX, REASON_BYTES_MAX};

/// How long a cancel that waits for the end may take.
const CANCEL_WAIT: Duration = Duration::from_secs(30);

pub fn routes() -> Described {
    Described::new()
        .serving::<SubmitFlow, _>(submit)
        .serving::<AddMembers, _>(add_members)
        .answering::<AddEdges>()
        .answering::<SealFlow>()
        .serving::<CancelFlow, _>(cancel)
}

fn new_member(mut body: MemberBody, place: &str, namespace: &str) -> Answer<NewMember> {
    let flow = match body.flow.take() {
        Some(flow) => Some(Box::new(nested_flow(*flow, &format!("{place}flow."), namespace)?)),
        None => None,
    };
    let kind = body.kind.take().or_else(|| flow.as_ref().map(|flow| flow.fields.kind.clone()));
    let kind = kind.ok_or_else(|| Problem::invalid(format!("{place}kind"), "is missing"))?;
    let (key, inbound) = (std::mem::take(&mut body.key), body.inbound.take());
    // Nothing said about id and lane is the flow's to say.
    let fields = body.submission(place, kind, || ExecutionId::from_uuid(Uuid::nil()), namespace, "")?;
    Ok(NewMember { key, fields, inbound, flow })
}

fn new_members(members: Option<Vec<MemberBody>>, place: &str, namespace: &str) -> Answer<Vec<NewMember>> {
    let members = members.unwrap_or_default().into_iter().enumerate();
    members.map(|(at, member)| new_member(member, &format!("{place}members[{at}]."), namespace)).collect()
}

fn new_flow(body: FlowBody, place: &str, namespace: &str) -> Answer<NewFlow> {
    let namespace = body.namespace.as_deref().unwrap_or(namespace);
    let mut new = NewFlow::new(namespace, body.kind);
    new = match (body.flow_id, body.idempotency_key) {
        (None, None) => new,
        (Some(id), None) => new.with_id(id),
        (None, Some(key)) => new.with_key(&key),
        (Some(_), Some(_)) => {
            return Err(Problem::invalid(format!("{place}flow_id"), "cannot be chosen beside an idempotency_key"));
        }
    };
    new.fields = wire::NewFlow {
        on_member_failure: body
            .policy
            .and_then(|policy| policy.on_member_failure())
            .unwrap_or(OnMemberFailure::Continue),
        deadline_at: body.deadline_at,
        deadline_ms: body.deadline_ms,
        retention_ms: body.retention_ms,
        completion_webhook: body.completion_webhook,
        default_lane: body.default_lane,
        default_retry: body.default_retry,
        budgets: body.budgets,
        ..new.fields
    };
    new.members = new_members(body.members, place, namespace)?;
    new.edges = new_edges(body.edges.unwrap_or_default());
    new.seal = body.seal.unwrap_or(true);
    Ok(new)
}

/// A flow in place of a member: its id is derived from the member, and it is released with it.
fn nested_flow(body: FlowBody, place: &str, namespace: &str) -> Answer<NewFlow> {
    let wrong = |field: &str, problem: &str| Err(Problem::invalid(format!("{place}{field}"), problem));
    if body.flow_id.is_some() {
        return wrong("flow_id", "is derived from the member and cannot be chosen");
    }
    if body.idempotency_key.is_some() {
        return wrong("idempotency_key", "belongs to the flow around it");
    }
    if body.namespace.as_deref().is_some_and(|own| own != namespace) {
        return wrong("namespace", "must be that of the flow around it");
    }
    if body.seal == Some(false) {
        return wrong("seal", "must not be false: the flow is released when the member's turn comes");
    }
    new_flow(body, place, namespace)
}

async fn submit(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(mut body): Body<FlowBody, BATCH>,
) -> Answer<impl IntoResponse> {
    body.idempotency_key = idempotency_key(&headers, body.idempotency_key)?;
    if body.idempotency_key.as_ref().is_some_and(|key| !(1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len())) {
        let problem = format!("must be of 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes");
        return Err(Problem::invalid("idempotency_key", problem));
    }
    let mut new = new_flow(body, "", "default")?;
    if let Some(trace) = trace_of(&headers) {
        new.trace(&trace);
    }
    caller.check(&new.fields.namespace, None)?;
    app.check_budgets(&caller, new.fields.budgets.as_deref()).await?;
    check_members(&app, &caller, &new.members, new.fields.default_lane.as_deref()).await?;
    let submitted = app.operations.submit_flow(new).await?;
    let members = submitted.members.into_iter().map(|(key, execution_id)| MemberId { key, execution_id }).collect();
    let (flow, duplicate) = (submitted.flow, submitted.duplicate);
    let status = if duplicate { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(FlowSubmitted { flow_id: flow.flow_id, state: flow.state, duplicate, members })))
}

/// Refuses members outside of the caller's scope, those of nested flows included.
async fn check_members(app: &App, caller: &Caller, members: &[NewMember], default: Option<&str>) -> Answer<()> {
    if !caller.is_scoped() {
        return Ok(());
    }
    let mut levels = vec![(members, default)];
    while let Some((members, default)) = levels.pop() {
        for NewMember { fields, flow, .. } in members {
            let own = Some(fields.lane.as_str()).filter(|lane| !lane.is_empty());
            caller.check_lane(own.or(default).unwrap_or("default"))?;
            if !fields.namespace.is_empty() {
                caller.check(&fields.namespace, None)?;
            }
            app.check_spending(caller, fields).await?;
            if let Some(flow) = flow {
                app.check_budgets(caller, flow.fields.budgets.as_deref()).await?;
                levels.push((flow.members.as_slice(), flow.fields.default_lane.as_deref()));
            }
        }
    }
    Ok(())
}

async fn add_members(
    State(app): State<App>,
    caller: Caller,
    Flow(id): Flow,
    headers: HeaderMap,
    Body(body): Body<MembersBody, BATCH>,
) -> JsonAnswer<AddedMembers> {
    // An empty namespace is the flow's.
    let (mut members, edges) = (new_members(body.members, "", "")?, new_edges(body.edges.unwrap_or_default()));
    if let Some(trace) = trace_of(&headers) {
        trace_members(&mut members, &trace);
    }
    if members.is_empty() {
        return Err(Problem::invalid("members", "must hold at least one; edges alone go to …/edges"));
    }
    if caller.is_scoped() {
        let flow = app.operations.flow(id).await.map_err(|error| Problem::from(error).about(id))?;
        check_members(&app, &caller, &members, flow.default_lane.as_deref()).await?;
    }
    let added = app.operations.add_members(id, members, edges).await;
    let added = added.map_err(|error| Problem::from(error).about(id))?;
    let members = added.into_iter().map(|member| AddedMember {
        key: member.key,
        execution_id: member.execution_id,
        state: member.state,
        duplicate: member.duplicate,
    });
    Ok(Json(AddedMembers { flow_id: id, members: members.collect() }))
}

async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Flow(id): Flow,
    Body(body): Body<CancelFlowBody>,
) -> Answer<Response> {
    bounded("reason", &body.reason, REASON_BYTES_MAX)?;
    let policy = body.policy.unwrap_or(CancelPolicy::CancelAll);
    let about = |error| Problem::from(error).about(id);
    if body.wait != Some(true) {
        let reply = app.operations.cancel_flow(id, policy, caller.name(), body.reason.as_deref(), false).await;
        return Ok(Json(cancelled(reply.map_err(about)?)).into_response());
    }
    let waiting = app.engine.waiting();
    let _open = app.metrics.process.long_poll();
    let ended = async {
        let reply =
            app.operations.cancel_flow(id, policy, caller.name(), body.reason.as_deref(), true).await.map_err(about)?;
        let (flow, _) = waiting.flow(id, CANCEL_WAIT).await.map_err(about)?;
        Ok::<_, Problem>(FlowCancelled { flow: flow.into(), ..cancelled(reply) })
    };
    let answer = tokio::select! {
        answer = ended => answer?,
        () = over(&app) => FlowCancelled {
            outcome: FlowCancelOutcome::Cancelled,
            flow: app.operations.flow(id).await.map_err(about)?.into(),
        },
    };
    let status = if answer.flow.finished_at.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(answer)).into_response())
}

/// The time is over, or the server stops.
async fn over(app: &App) {
    tokio::select! {
        () = tokio::time::sleep(CANCEL_WAIT) => {}
        () = app.stop.cancelled() => {}
    }
}

fn cancelled(reply: CancelFlowReply) -> FlowCancelled {
    match reply {
        CancelFlowReply::Cancelled { flow, .. } => {
            FlowCancelled { outcome: FlowCancelOutcome::Cancelled, flow: flow.into() }
        }
        CancelFlowReply::Already { flow } => FlowCancelled { outcome: FlowCancelOutcome::Already, flow: flow.into() },
    }
}
