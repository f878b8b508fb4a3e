//! Flows and children behind `ff server`.

use std::time::Duration;

use async_trait::async_trait;
use ff_api::Ask;
use ff_api::children::{SpawnChildren, WaitChildrenBody, WaitForChildren, WaitedForChildren};
use ff_api::flows::{CancelFlow, CancelFlowBody, EdgeBody, FlowBody, FlowPolicy, MemberBody, SubmitFlow};
use ff_api::graph::{FlowQuery, GetFlow};
use ff_api::tasks::{ChildBody, SpawnBody};
use ff_core::types::{ExecutionId, FlowId, SuspensionId};
use ff_engine::operations::{NewChild, NewFlow, NewMember};
use ff_script::generated::{CancelPolicy, NewEdge};
use uuid::Uuid;

use super::LeaseRef;
use super::flows::{ChildrenWait, Flows};
use super::http::{Http, WAIT_MAX, unfit};
use crate::SdkError;
use crate::snapshot::{FlowSnapshot, SubmittedFlow};

/// Children of one request.
const SPAWN_MAX: usize = 1_000;

fn member(new: &NewMember) -> Result<MemberBody, ff_api::Invalid> {
    let (body, kind) = MemberBody::of(new.fields.clone())?;
    let nested = new.flow.as_deref().map(flow).transpose()?;
    // A flow in place of a member has the id, the namespace and the release of the flow around it.
    let nested = nested.map(|nested| Box::new(FlowBody { flow_id: None, namespace: None, seal: None, ..nested }));
    Ok(MemberBody { key: new.key.clone(), kind: Some(kind), inbound: new.inbound, flow: nested, ..body })
}

fn edge(edge: &NewEdge) -> EdgeBody {
    EdgeBody { from: edge.from.clone(), to: edge.to.clone(), on: Some(edge.on), pass_as: edge.pass_as.clone() }
}

/// A flow as the API takes it.
fn flow(new: &NewFlow) -> Result<FlowBody, ff_api::Invalid> {
    let fields = &new.fields;
    let place = |at: usize| {
        move |wrong: ff_api::Invalid| ff_api::Invalid { field: format!("members[{at}].{}", wrong.field), ..wrong }
    };
    let members = new.members.iter().enumerate().map(|(at, new)| member(new).map_err(place(at)));
    Ok(FlowBody {
        flow_id: Some(fields.flow_id),
        idempotency_key: None,
        namespace: Some(fields.namespace.clone()),
        kind: fields.kind.clone(),
        members: Some(members.collect::<Result<_, _>>()?),
        edges: Some(new.edges.iter().map(edge).collect()),
        policy: Some(FlowPolicy::Bare(fields.on_member_failure)),
        default_lane: fields.default_lane.clone(),
        default_retry: fields.default_retry.clone(),
        budgets: fields.budgets.clone(),
        deadline_at: fields.deadline_at,
        deadline_ms: fields.deadline_ms,
        retention_ms: fields.retention_ms,
        completion_webhook: fields.completion_webhook.clone(),
        seal: Some(new.seal),
    })
}

fn child(new: &NewChild) -> Result<ChildBody, ff_api::Invalid> {
    let (body, kind) = ChildBody::of(new.fields.clone())?;
    Ok(ChildBody { kind, key: new.key.clone(), parent_close: new.parent_close, ..body })
}

#[async_trait]
impl Flows for Http {
    async fn spawn(
        &self,
        lease: LeaseRef,
        children: &[NewChild],
        request_id: Uuid,
    ) -> Result<Vec<ExecutionId>, SdkError> {
        let mut ids = Vec::with_capacity(children.len());
        for share in children.chunks(SPAWN_MAX) {
            let place = |at: usize| {
                move |wrong: ff_api::Invalid| ff_api::Invalid {
                    field: format!("children[{at}].{}", wrong.field),
                    ..wrong
                }
            };
            let children = share.iter().enumerate().map(|(at, new)| child(new).map_err(place(at)));
            let children: Vec<ChildBody> = children.collect::<Result<_, _>>().map_err(unfit("spawn"))?;
            let body = SpawnBody { fence: lease.fence(), children, request_id: Some(request_id.to_string()) };
            let ask = Ask::<SpawnChildren>::with(lease.execution_id, body);
            let spawned = self.ask(&ask, Duration::ZERO).await?;
            ids.extend(spawned.children.into_iter().map(|child| child.execution_id));
        }
        Ok(ids)
    }

    async fn wait_children(
        &self,
        lease: LeaseRef,
        wait_id: SuspensionId,
        aside: bool,
    ) -> Result<ChildrenWait, SdkError> {
        let request_id = Some(wait_id.to_string());
        let body = WaitChildrenBody { fence: lease.fence(), aside: Some(aside), request_id };
        let ask = Ask::<WaitForChildren>::with(lease.execution_id, body);
        Ok(match self.ask(&ask, Duration::ZERO).await? {
            WaitedForChildren::Waiting { open } => ChildrenWait::Waiting { open: open.unsigned_abs() },
            WaitedForChildren::Ended { children, more_children } => {
                ChildrenWait::Ended { children, more: more_children }
            }
        })
    }

    async fn submit_flow(&self, new: NewFlow) -> Result<SubmittedFlow, SdkError> {
        let body = flow(&new).map_err(unfit("submit_flow"))?;
        let submitted = self.ask(&Ask::<SubmitFlow>::with((), body), Duration::ZERO).await?;
        let members = submitted.members.into_iter().map(|member| (member.key, member.execution_id)).collect();
        Ok(SubmittedFlow { flow_id: submitted.flow_id, members })
    }

    async fn describe_flow(&self, id: FlowId) -> Result<FlowSnapshot, SdkError> {
        self.flow_within(id, Duration::ZERO).await
    }

    async fn await_flow(&self, id: FlowId, wait: Duration) -> Result<Option<FlowSnapshot>, SdkError> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            let wait = until.saturating_duration_since(tokio::time::Instant::now()).min(WAIT_MAX);
            let flow = self.flow_within(id, wait).await?;
            if flow.has_ended() {
                return Ok(Some(flow));
            }
            if tokio::time::Instant::now() >= until {
                return Ok(None);
            }
        }
    }

    async fn cancel_flow(
        &self,
        id: FlowId,
        policy: CancelPolicy,
        reason: &str,
        wait: bool,
    ) -> Result<FlowSnapshot, SdkError> {
        let body = CancelFlowBody { reason: Some(reason.to_owned()), policy: Some(policy), wait: Some(wait) };
        let limit = if wait { WAIT_MAX } else { Duration::ZERO };
        Ok(self.ask(&Ask::<CancelFlow>::with(id, body), limit).await?.flow.into())
    }
}

impl Http {
    /// A flow as it stands, or as soon as it has ended within `wait`.
    async fn flow_within(&self, id: FlowId, wait: Duration) -> Result<FlowSnapshot, SdkError> {
        let wait_ms = (!wait.is_zero()).then(|| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        Ok(self.ask(&Ask::<GetFlow>::by(id, FlowQuery { wait_ms }), wait).await?.flow.into())
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
        let body = serde_json::to_value(flow(&spec.into()).unwrap()).unwrap();
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
