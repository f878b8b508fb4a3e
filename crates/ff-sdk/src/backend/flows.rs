//! Flows and children, whichever way the engine is reached.

use std::time::Duration;

use ff_api::Ask;
use ff_api::children::{SpawnChildren, WaitChildrenBody, WaitForChildren, WaitedForChildren};
use ff_api::flows::{CancelFlow, CancelFlowBody, EdgeBody, FlowBody, FlowPolicy, MemberBody, SubmitFlow};
use ff_api::graph::{FlowQuery, FlowsQuery, GetFlow, ListFlows};
use ff_api::tasks::{ChildBody, SpawnBody};
use ff_core::types::{ExecutionId, FlowId, SuspensionId};
use ff_engine::operations::{FlowCursor, FlowFilter, NewChild, NewFlow, NewMember};
use ff_script::generated::{CancelPolicy, NewEdge};
use uuid::Uuid;

use super::reach::{WAIT_MAX, unfit};
use super::{LeaseRef, Reach};
use crate::SdkError;
use crate::snapshot::{FlowPage, FlowSnapshot, SubmittedFlow};

/// Children of one request.
const SPAWN_MAX: usize = 1_000;

/// Names the place of a wrong field in a list.
fn placed(list: &str, at: usize) -> impl Fn(ff_api::Invalid) -> ff_api::Invalid {
    move |wrong| ff_api::Invalid { field: format!("{list}[{at}].{}", wrong.field), ..wrong }
}

fn member(new: NewMember) -> Result<MemberBody, ff_api::Invalid> {
    let NewMember { key, fields, inbound, flow: nested } = new;
    let (body, kind) = MemberBody::of(fields)?;
    let nested = nested.map(|nested| flow(*nested)).transpose()?;
    // A flow in place of a member has the id, the namespace and the release of the flow around it.
    let nested = nested.map(|nested| Box::new(FlowBody { flow_id: None, namespace: None, seal: None, ..nested }));
    Ok(MemberBody { key, kind: Some(kind), inbound, flow: nested, ..body })
}

fn edge(edge: NewEdge) -> EdgeBody {
    EdgeBody { from: edge.from, to: edge.to, on: Some(edge.on), pass_as: edge.pass_as }
}

/// A flow as the API takes it.
fn flow(new: NewFlow) -> Result<FlowBody, ff_api::Invalid> {
    let NewFlow { fields, members, edges, seal } = new;
    let members = members.into_iter().enumerate().map(|(at, new)| member(new).map_err(placed("members", at)));
    Ok(FlowBody {
        flow_id: Some(fields.flow_id),
        idempotency_key: None,
        namespace: Some(fields.namespace),
        kind: fields.kind,
        members: Some(members.collect::<Result<_, _>>()?),
        edges: Some(edges.into_iter().map(edge).collect()),
        policy: Some(FlowPolicy::Bare(fields.on_member_failure)),
        default_lane: fields.default_lane,
        default_retry: fields.default_retry,
        budgets: fields.budgets,
        deadline_at: fields.deadline_at,
        deadline_ms: fields.deadline_ms,
        retention_ms: fields.retention_ms,
        completion_webhook: fields.completion_webhook,
        seal: Some(seal),
    })
}

fn child(new: &NewChild) -> Result<ChildBody, ff_api::Invalid> {
    let (body, kind) = ChildBody::of(new.fields.clone())?;
    Ok(ChildBody { kind, key: new.key.clone(), parent_close: new.parent_close, ..body })
}

impl Reach {
    /// Spawns children under a lease; a child whose id is known is answered again. `step` makes it a step.
    pub(crate) async fn spawn(
        &self,
        lease: LeaseRef,
        children: &[NewChild],
        request_id: Uuid,
        step: Option<&str>,
    ) -> Result<Vec<ExecutionId>, SdkError> {
        let mut ids = Vec::with_capacity(children.len());
        for (at, share) in children.chunks(SPAWN_MAX).enumerate() {
            let children = share.iter().enumerate().map(|(at, new)| child(new).map_err(placed("children", at)));
            let children: Vec<ChildBody> = children.collect::<Result<_, _>>().map_err(unfit("spawn"))?;
            let request_id = Some(request_id.to_string());
            let step = step.map(|step| if at == 0 { step.to_owned() } else { format!("{step}+{at}") });
            let body = SpawnBody { fence: lease.fence(), children, step, request_id };
            let spawned = self.ask(Ask::<SpawnChildren>::with(lease.execution_id, body)).await?;
            ids.extend(spawned.children.into_iter().map(|child| child.execution_id));
        }
        Ok(ids)
    }

    /// Sets a running attempt aside until its children have ended; the same lease is answered the same again.
    /// `step` makes it a step.
    pub(crate) async fn wait_children(
        &self,
        lease: LeaseRef,
        wait_id: SuspensionId,
        aside: bool,
        step: Option<&str>,
    ) -> Result<WaitedForChildren, SdkError> {
        let request_id = Some(wait_id.to_string());
        let step = step.map(str::to_owned);
        let body = WaitChildrenBody { fence: lease.fence(), aside: Some(aside), step, request_id };
        self.ask(Ask::<WaitForChildren>::with(lease.execution_id, body)).await
    }

    /// Submits a flow; the same id answers the first one. Members without a trace belong to the current one.
    pub(crate) async fn submit_flow(&self, new: NewFlow) -> Result<SubmittedFlow, SdkError> {
        let mut body = flow(new).map_err(unfit("submit_flow"))?;
        if let Some(trace) = crate::trace::current() {
            body.trace(&trace);
        }
        let submitted = self.ask(Ask::<SubmitFlow>::with((), body)).await?;
        let members = submitted.members.into_iter().map(|member| (member.key, member.execution_id)).collect();
        Ok(SubmittedFlow { flow_id: submitted.flow_id, members })
    }

    /// A flow with its state and counts, as soon as it has ended or as it stands after `wait`.
    pub(crate) async fn flow(&self, id: FlowId, wait: Duration) -> Result<FlowSnapshot, SdkError> {
        let wait_ms = (!wait.is_zero()).then(|| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        let query = FlowQuery { wait_ms, members: Some(false) };
        Ok(self.ask_within(Ask::<GetFlow>::by(id, query), wait).await?.flow.into())
    }

    /// The flow once it has ended, or nothing when it has not after `wait`.
    pub(crate) async fn await_flow(&self, id: FlowId, wait: Duration) -> Result<Option<FlowSnapshot>, SdkError> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            let wait = until.saturating_duration_since(tokio::time::Instant::now()).min(WAIT_MAX);
            let flow = self.flow(id, wait).await?;
            if flow.has_ended() {
                return Ok(Some(flow));
            }
            if tokio::time::Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    /// One page of flows, newest first.
    pub(crate) async fn list_flows(
        &self,
        filter: &FlowFilter,
        after: Option<FlowCursor>,
        limit: usize,
    ) -> Result<FlowPage, SdkError> {
        let query = FlowsQuery {
            namespace: filter.namespace.clone(),
            kind: filter.kind.clone(),
            state: filter.state,
            limit: Some(i64::try_from(limit).unwrap_or(i64::MAX)),
            cursor: after.map(|cursor| cursor.to_string()),
        };
        let page = self.ask(Ask::<ListFlows>::by((), query)).await?;
        let next = page.next_cursor.map(|cursor| cursor.parse()).transpose()?;
        Ok(FlowPage { items: page.items.into_iter().map(FlowSnapshot::from).collect(), next })
    }

    /// Cancels a flow; with `wait` it returns when the flow has ended, or after 30 s with how it stands.
    pub(crate) async fn cancel_flow(
        &self,
        id: FlowId,
        policy: CancelPolicy,
        reason: &str,
        wait: bool,
    ) -> Result<FlowSnapshot, SdkError> {
        let body = CancelFlowBody { reason: Some(reason.to_owned()), policy: Some(policy), wait: Some(wait) };
        let limit = if wait { WAIT_MAX } else { Duration::ZERO };
        Ok(self.ask_within(Ask::<CancelFlow>::with(id, body), limit).await?.flow.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::flows::{FlowSpec, MemberSpec};

    #[test]
    fn a_flow_travels_with_what_was_said_and_nothing_else() {
        let inner = FlowSpec::new("ignored", "inner").member(MemberSpec::new("x", "x"));
        let spec = FlowSpec::new("default", "report")
            .lane("work")
            .member(MemberSpec::new("a", "fetch").input(b"1"))
            .member(MemberSpec::of_flow("b", inner).takes("a", "page").any_of().cancel_remaining());
        let id = spec.fields.flow_id;
        let body = serde_json::to_value(flow(spec.into()).unwrap()).unwrap();
        let expected = json!({
            "flow_id": id,
            "namespace": "default",
            "kind": "report",
            "policy": "continue",
            "default_lane": "work",
            "seal": true,
            "members": [
                { "key": "a", "kind": "fetch", "input": 1 },
                {
                    "key": "b",
                    "kind": "inner",
                    "inbound": { "policy": "any_of", "on_satisfied": "cancel_remaining" },
                    "flow": {
                        "kind": "inner",
                        "policy": "continue",
                        "members": [{ "key": "x", "kind": "x" }],
                        "edges": [],
                    },
                },
            ],
            "edges": [{ "from": "a", "to": "b", "on": "success", "pass_as": "page" }],
        });
        assert_eq!(body, expected);
    }
}
