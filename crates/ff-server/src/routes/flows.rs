//! What submitters and operators do with flows: submit one whole, let it grow, release it, cancel it.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ff_core::types::{ExecutionId, FlowId};
use ff_engine::{NewFlow, NewMember, trace_members};
use ff_script::generated::{
    self as wire, CancelFlowReply, CancelPolicy, EdgeOn, FlowState, MemberState, NewEdge, OnMemberFailure,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;
use uuid::Uuid;

use super::submit::trace_of;
use super::tasks::REASON_MAX;
use crate::access::Caller;
use crate::app::{App, Flow, JsonAnswer};
use crate::body::{BATCH, Body};
use crate::execution_body::{BudgetBody, execution_body};
use crate::openapi::{Described, vocabulary};
use crate::payload::bounded;
use crate::problem::{Answer, Problem};
use crate::shape::flow::{FlowShape, InboundShape};
use crate::shape::retry::RetryShape;
use crate::word::Word;

/// How long a cancel that waits for the end may take.
const CANCEL_WAIT: Duration = Duration::from_secs(30);

pub fn routes() -> Described {
    Described::new()
        // GET of the same path is the list's.
        .with(routes!(submit, super::flow_views::list))
        .with(routes!(add_edges))
        .with(routes!(seal))
        .with(routes!(cancel))
}

execution_body! {
    /// A member of a flow: an execution, or a flow that runs in its place.
    pub struct MemberBody {
        /// Its name in the flow.
        #[schema(value_type = vocabulary::MemberKey)]
        key: String,
        /// What it is; a flow in its place says so for it.
        #[schema(value_type = Option<vocabulary::Kind>)]
        kind: Option<String>,
        /// When it may run.
        inbound: Option<InboundShape>,
        /// The flow that runs in its place.
        #[schema(no_recursion, value_type = Option<FlowBody>)]
        flow: Option<Box<FlowBody>>,
    }
}

impl MemberBody {
    fn into_new(mut self, place: &str, namespace: &str) -> Answer<NewMember> {
        let flow = match self.flow.take() {
            Some(flow) => Some(Box::new(flow.into_nested(&format!("{place}flow."), namespace)?)),
            None => None,
        };
        let kind = self.kind.take().or_else(|| flow.as_ref().map(|flow| flow.fields.kind.clone()));
        let kind = kind.ok_or_else(|| Problem::invalid(format!("{place}kind"), "is missing"))?;
        let (key, inbound) = (std::mem::take(&mut self.key), self.inbound.take().map(Into::into));
        // Nothing said about id and lane is the flow's to say.
        let fields = self.submission(place, kind, || ExecutionId::from_uuid(Uuid::nil()), namespace, "")?;
        Ok(NewMember { key, fields, inbound, flow })
    }
}

fn new_members(members: Option<Vec<MemberBody>>, place: &str, namespace: &str) -> Answer<Vec<NewMember>> {
    let members = members.unwrap_or_default().into_iter().enumerate();
    members.map(|(at, member)| member.into_new(&format!("{place}members[{at}]."), namespace)).collect()
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EdgeBody {
    #[schema(value_type = vocabulary::MemberKey)]
    from: String,
    #[schema(value_type = vocabulary::MemberKey)]
    to: String,
    #[schema(value_type = Option<EdgeOn>)]
    on: Option<Word<EdgeOn>>,
    #[schema(value_type = Option<vocabulary::PassAs>)]
    pass_as: Option<String>,
}

fn new_edges(edges: Option<Vec<EdgeBody>>) -> Vec<NewEdge> {
    let edges = edges.unwrap_or_default().into_iter();
    edges
        .map(|edge| NewEdge {
            from: edge.from,
            to: edge.to,
            on: edge.on.map_or(EdgeOn::Success, |Word(on)| on),
            pass_as: edge.pass_as,
        })
        .collect()
}

/// What a flow does when a member fails: the word, or an object with it.
#[derive(Deserialize, ToSchema)]
#[serde(untagged, expecting = "it must be continue, fail_flow or isolate_branch")]
#[schema(as = FlowPolicy)]
enum PolicyBody {
    #[schema(value_type = OnMemberFailure)]
    Bare(Word<OnMemberFailure>),
    Named(NamedPolicy),
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NamedPolicy {
    #[schema(value_type = Option<OnMemberFailure>)]
    on_member_failure: Option<Word<OnMemberFailure>>,
}

impl PolicyBody {
    fn on_member_failure(self) -> Option<OnMemberFailure> {
        match self {
            Self::Bare(Word(word)) => Some(word),
            Self::Named(named) => named.on_member_failure.map(|Word(word)| word),
        }
    }
}

/// Everything a submitter may say about a flow.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SubmitFlowBody)]
pub struct FlowBody {
    flow_id: Option<FlowId>,
    #[schema(value_type = Option<vocabulary::Namespace>)]
    namespace: Option<String>,
    #[schema(value_type = vocabulary::Kind)]
    kind: String,
    members: Option<Vec<MemberBody>>,
    edges: Option<Vec<EdgeBody>>,
    policy: Option<PolicyBody>,
    #[schema(value_type = Option<vocabulary::LaneName>)]
    default_lane: Option<String>,
    default_retry: Option<RetryShape>,
    #[schema(max_items = 16)]
    budgets: Option<Vec<BudgetBody>>,
    #[schema(value_type = Option<vocabulary::TimeMs>)]
    deadline_at: Option<i64>,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    deadline_ms: Option<i64>,
    #[schema(value_type = Option<vocabulary::DurationMs>)]
    retention_ms: Option<i64>,
    completion_webhook: Option<String>,
    seal: Option<bool>,
}

impl FlowBody {
    fn into_new(self, place: &str, namespace: &str) -> Answer<NewFlow> {
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        let mut new = NewFlow::new(namespace, self.kind);
        if let Some(id) = self.flow_id {
            new = new.with_id(id);
        }
        new.fields = wire::NewFlow {
            on_member_failure: self.policy.and_then(PolicyBody::on_member_failure).unwrap_or(OnMemberFailure::Continue),
            deadline_at: self.deadline_at,
            deadline_ms: self.deadline_ms,
            retention_ms: self.retention_ms,
            completion_webhook: self.completion_webhook,
            default_lane: self.default_lane,
            default_retry: self.default_retry.map(Into::into),
            budgets: self.budgets.map(|all| all.into_iter().map(Into::into).collect()),
            ..new.fields
        };
        new.members = new_members(self.members, place, namespace)?;
        new.edges = new_edges(self.edges);
        new.seal = self.seal.unwrap_or(true);
        Ok(new)
    }

    /// A flow in place of a member: its id is derived from the member, and it is released with it.
    fn into_nested(self, place: &str, namespace: &str) -> Answer<NewFlow> {
        let wrong = |field: &str, problem: &str| Err(Problem::invalid(format!("{place}{field}"), problem));
        if self.flow_id.is_some() {
            return wrong("flow_id", "is derived from the member and cannot be chosen");
        }
        if self.namespace.as_deref().is_some_and(|own| own != namespace) {
            return wrong("namespace", "must be that of the flow around it");
        }
        if self.seal == Some(false) {
            return wrong("seal", "must not be false: the flow is released when the member's turn comes");
        }
        self.into_new(place, namespace)
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = MemberId)]
struct MemberId {
    key: String,
    execution_id: ExecutionId,
}

#[derive(Serialize, ToSchema)]
#[schema(as = FlowSubmitted)]
struct Submitted {
    flow_id: FlowId,
    #[schema(value_type = FlowState)]
    state: Word<FlowState>,
    duplicate: bool,
    members: Vec<MemberId>,
}

/// Checked whole before anything is written; the same id with the same body answers the first one.
#[utoipa::path(
    post,
    path = "/v1/flows",
    request_body = FlowBody,
    responses((status = 201, description = "It is new.", body = Submitted), (status = 200, description = "It was there already: the same id with the same body.", body = Submitted)),
    extensions(("x-ff-codes" = json!("execution_not_found flow_not_found idempotency_conflict lane_disabled lane_full capability_invalid budget_not_found quota_not_found cycle_detected flow_full flow_changed member_started"))),
)]
async fn submit(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<FlowBody, BATCH>,
) -> Answer<impl IntoResponse> {
    let mut new = body.into_new("", "default")?;
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
    Ok((status, Json(Submitted { flow_id: flow.flow_id, state: Word(flow.state), duplicate, members })))
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

/// What is added to a flow.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AddMembersBody)]
pub struct MembersBody {
    members: Option<Vec<MemberBody>>,
    edges: Option<Vec<EdgeBody>>,
}

/// The members that were added.
#[derive(Serialize, ToSchema)]
pub struct AddedMembers {
    flow_id: FlowId,
    members: Vec<AddedShape>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AddedMember)]
struct AddedShape {
    key: String,
    execution_id: ExecutionId,
    #[schema(value_type = MemberState)]
    state: Word<MemberState>,
    duplicate: bool,
}

/// Adds members with the edges into them: none can start before its edges count.
#[utoipa::path(
    post,
    path = "/v1/flows/{flow}/members",
    params(Flow),
    request_body = MembersBody,
    responses((status = 200, body = AddedMembers)),
    extensions(("x-ff-codes" = json!("flow_not_found flow_terminal execution_not_found idempotency_conflict lane_disabled lane_full capability_invalid budget_not_found quota_not_found cycle_detected flow_full flow_changed member_started"))),
)]
pub async fn add_members(
    State(app): State<App>,
    caller: Caller,
    Flow(id): Flow,
    headers: HeaderMap,
    Body(body): Body<MembersBody, BATCH>,
) -> JsonAnswer<AddedMembers> {
    // An empty namespace is the flow's.
    let (mut members, edges) = (new_members(body.members, "", "")?, new_edges(body.edges));
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
    let members = added.into_iter().map(|member| AddedShape {
        key: member.key,
        execution_id: member.execution_id,
        state: Word(member.state),
        duplicate: member.duplicate,
    });
    Ok(Json(AddedMembers { flow_id: id, members: members.collect() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AddEdgesBody)]
struct EdgesBody {
    edges: Vec<EdgeBody>,
}

#[derive(Serialize, ToSchema)]
struct AddedEdges {
    flow_id: FlowId,
    /// How many were new.
    added: i64,
}

/// Adds edges between members that are there; what has started takes no more.
#[utoipa::path(
    post,
    path = "/v1/flows/{flow}/edges",
    params(Flow),
    request_body = EdgesBody,
    responses((status = 200, body = AddedEdges)),
    extensions(("x-ff-codes" = json!("flow_not_found flow_terminal flow_changed member_started cycle_detected idempotency_conflict"))),
)]
async fn add_edges(
    State(app): State<App>,
    Flow(id): Flow,
    Body(body): Body<EdgesBody, BATCH>,
) -> JsonAnswer<AddedEdges> {
    let added = app.operations.add_edges(id, new_edges(Some(body.edges))).await;
    Ok(Json(AddedEdges { flow_id: id, added: added.map_err(|error| Problem::from(error).about(id))? }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SealBody {}

/// Releases the members held so far.
#[utoipa::path(
    post,
    path = "/v1/flows/{flow}/seal",
    params(Flow),
    request_body = SealBody,
    responses((status = 200, body = FlowShape)),
    extensions(("x-ff-codes" = json!("flow_not_found"))),
)]
async fn seal(State(app): State<App>, Flow(id): Flow, Body(SealBody {}): Body<SealBody>) -> JsonAnswer<FlowShape> {
    let flow = app.operations.seal_flow(id).await.map_err(|error| Problem::from(error).about(id))?;
    Ok(Json(flow.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CancelFlowBody)]
struct CancelBody {
    #[schema(value_type = Option<vocabulary::Reason>)]
    reason: Option<String>,
    #[schema(value_type = Option<CancelPolicy>)]
    policy: Option<Word<CancelPolicy>>,
    wait: Option<bool>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = FlowCancelled)]
struct Cancelled {
    /// `already` when the flow had ended, or was stopped, before.
    outcome: &'static str,
    #[serde(flatten)]
    flow: FlowShape,
}

/// When this answers, nothing of the flow can be claimed any more. With `wait` it answers when the flow has ended, or with
/// 202 and how it stands.
#[utoipa::path(
    post,
    path = "/v1/flows/{flow}/cancel",
    params(Flow),
    request_body = CancelBody,
    responses((status = 200, body = Cancelled), (status = 202, description = "It has not ended within the time a request may wait.", body = Cancelled)),
    extensions(("x-ff-codes" = json!("flow_not_found"))),
)]
async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Flow(id): Flow,
    Body(body): Body<CancelBody>,
) -> Answer<Response> {
    bounded("reason", &body.reason, REASON_MAX)?;
    let policy = body.policy.map_or(CancelPolicy::CancelAll, |Word(policy)| policy);
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
        Ok::<_, Problem>(Cancelled { flow: flow.into(), ..cancelled(reply) })
    };
    let answer = tokio::select! {
        answer = ended => answer?,
        () = over(&app) => Cancelled {
            outcome: "cancelled",
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

fn cancelled(reply: CancelFlowReply) -> Cancelled {
    match reply {
        CancelFlowReply::Cancelled { flow, .. } => Cancelled { outcome: "cancelled", flow: flow.into() },
        CancelFlowReply::Already { flow } => Cancelled { outcome: "already", flow: flow.into() },
    }
}
