//! Flows that are submitted, and members that are added to one that runs.

use ff_api::flows::{
    AddMembers, AddedMember, AddedMembers, EdgeBody, FlowBody, FlowSubmitted, MemberBody, MemberId, SubmitFlow,
};
use ff_api::{Ask, Invalid, Problem};
use ff_core::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use ff_core::types::ExecutionId;
use ff_script::generated::{self, EdgeOn, NewEdge, OnMemberFailure};
use uuid::Uuid;

use crate::operations::{NewFlow, NewMember};
use crate::principal::Principal;
use crate::service::{Handle, Service};

impl Handle<SubmitFlow> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<SubmitFlow>) -> Result<FlowSubmitted, Problem> {
        let body = ask.body;
        if body.idempotency_key.as_ref().is_some_and(|key| !(1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len())) {
            let problem = format!("must be of 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes");
            return Err(Problem::invalid("idempotency_key", problem));
        }
        let new = new_flow(body, "", "default")?;
        by.check(&new.fields.namespace, None)?;
        self.check_budgets(by, new.fields.budgets.as_deref()).await?;
        self.check_members(by, &new.members, new.fields.default_lane.as_deref()).await?;
        let submitted = self.operations.submit_flow(new).await?;
        let members = submitted.members.into_iter().map(|(key, execution_id)| MemberId { key, execution_id });
        let (flow, duplicate) = (submitted.flow, submitted.duplicate);
        Ok(FlowSubmitted { flow_id: flow.flow_id, state: flow.state, duplicate, members: members.collect() })
    }
}

impl Handle<AddMembers> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<AddMembers>) -> Result<AddedMembers, Problem> {
        let Ask { at: id, body, .. } = ask;
        let about = |error| Problem::from(error).about(id);
        // An empty namespace is the flow's.
        let members = new_members(body.members, "", "")?;
        if members.is_empty() {
            return Err(Problem::invalid("members", "must hold at least one; edges alone go to …/edges"));
        }
        if by.is_scoped() {
            let flow = self.operations.flow(id).await.map_err(about)?;
            self.check_members(by, &members, flow.default_lane.as_deref()).await?;
        }
        let edges = new_edges(body.edges.unwrap_or_default());
        let added = self.operations.add_members(id, members, edges).await.map_err(about)?;
        let members = added.into_iter().map(|member| AddedMember {
            key: member.key,
            execution_id: member.execution_id,
            state: member.state,
            duplicate: member.duplicate,
        });
        Ok(AddedMembers { flow_id: id, members: members.collect() })
    }
}

/// The flow that a body means. `place` stands before the names of fields that are wrong.
pub(crate) fn new_flow(body: FlowBody, place: &str, namespace: &str) -> Result<NewFlow, Invalid> {
    let namespace = body.namespace.as_deref().unwrap_or(namespace);
    let mut new = NewFlow::new(namespace, body.kind);
    new = match (body.flow_id, body.idempotency_key) {
        (None, None) => new,
        (Some(id), None) => new.with_id(id),
        (None, Some(key)) => new.with_key(&key),
        (Some(_), Some(_)) => {
            return Err(Invalid::new(format!("{place}flow_id"), "cannot be chosen beside an idempotency_key"));
        }
    };
    let policy = body.policy.and_then(|policy| policy.on_member_failure());
    new.fields = generated::NewFlow {
        on_member_failure: policy.unwrap_or(OnMemberFailure::Continue),
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
fn nested_flow(body: FlowBody, place: &str, namespace: &str) -> Result<NewFlow, Invalid> {
    let wrong = |field: &str, problem: &str| Err(Invalid::new(format!("{place}{field}"), problem));
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

fn new_members(members: Option<Vec<MemberBody>>, place: &str, namespace: &str) -> Result<Vec<NewMember>, Invalid> {
    let members = members.unwrap_or_default().into_iter().enumerate();
    members.map(|(at, member)| new_member(member, &format!("{place}members[{at}]."), namespace)).collect()
}

fn new_member(mut body: MemberBody, place: &str, namespace: &str) -> Result<NewMember, Invalid> {
    let flow = match body.flow.take() {
        Some(flow) => Some(Box::new(nested_flow(*flow, &format!("{place}flow."), namespace)?)),
        None => None,
    };
    let kind = body.kind.take().or_else(|| flow.as_ref().map(|flow| flow.fields.kind.clone()));
    let kind = kind.ok_or_else(|| Invalid::new(format!("{place}kind"), "is missing"))?;
    let (key, inbound) = (std::mem::take(&mut body.key), body.inbound.take());
    // A nil id and an empty lane are the flow's to fill in.
    let fields = body.submission(place, kind, || ExecutionId::from_uuid(Uuid::nil()), namespace, "")?;
    Ok(NewMember { key, fields, inbound, flow })
}

/// Edges as the library takes them.
pub(super) fn new_edges(edges: Vec<EdgeBody>) -> Vec<NewEdge> {
    let edges = edges.into_iter().map(|edge| NewEdge {
        from: edge.from,
        to: edge.to,
        on: edge.on.unwrap_or(EdgeOn::Success),
        pass_as: edge.pass_as,
    });
    edges.collect()
}
