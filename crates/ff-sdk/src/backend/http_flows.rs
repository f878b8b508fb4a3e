//! Flows and children behind `ff server`.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use ff_api::Ask;
use ff_api::children::Child;
use ff_api::flows::{EdgeBody, FlowBody, FlowPolicy, MemberBody, SubmitFlow};
use ff_api::tasks::{ChildBody, SpawnBody};
use ff_core::types::{ExecutionId, FlowId, LaneId, Namespace, SuspensionId, TimestampMs};
use ff_engine::operations::{FlowCursor, FlowFilter, NewChild, NewFlow, NewMember};
use ff_script::generated::{CancelPolicy, MemberState, NewEdge};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::LeaseRef;
use super::flows::{ChildPage, ChildrenWait, Flows};
use super::http::{Http, Listed, WAIT_MAX, escaped, fence, millis, read, unfit};
use crate::SdkError;
use crate::snapshot::{ChildSnapshot, EdgeSnapshot, FlowGraph, FlowPage, FlowSnapshot, MemberSnapshot, SubmittedFlow};
use crate::waits::unexpected;

const PAGE: usize = 1_000;
/// Children of one request.
const SPAWN_MAX: usize = 1_000;

/// A word of the engine's, or the refusal of one nobody knows.
fn word<T: std::str::FromStr>(what: &str, text: &str) -> Result<T, SdkError> {
    text.parse().map_err(|_| unexpected(&format!("the unknown {what} {text:?}")))
}

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

#[derive(Deserialize)]
struct SpawnedShape {
    execution_id: ExecutionId,
}

#[derive(Deserialize)]
struct Spawned {
    children: Vec<SpawnedShape>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WaitOutcome {
    Waiting,
    Ended,
}

/// Not an enum with a tag: a result would lose its text on the way through one.
#[derive(Deserialize)]
struct WaitAnswer {
    outcome: WaitOutcome,
    #[serde(default)]
    open: u64,
    #[serde(default)]
    children: Vec<Child>,
    #[serde(default)]
    more_children: bool,
}

#[derive(Deserialize)]
struct FlowShape {
    flow_id: FlowId,
    namespace: Namespace,
    kind: String,
    state: String,
    #[serde(default)]
    counts: BTreeMap<String, u64>,
    created_at: TimestampMs,
    finished_at: Option<TimestampMs>,
}

impl FlowShape {
    fn snapshot(self) -> Result<FlowSnapshot, SdkError> {
        let counts = self.counts.into_iter().map(|(state, count)| Ok((word("state of a member", &state)?, count)));
        let counts: BTreeMap<MemberState, u64> = counts.collect::<Result<_, SdkError>>()?;
        Ok(FlowSnapshot {
            flow_id: self.flow_id,
            namespace: self.namespace,
            kind: self.kind,
            state: word("state of a flow", &self.state)?,
            counts: counts.into_iter().filter(|(_, count)| *count > 0).collect(),
            created_at: self.created_at,
            finished_at: self.finished_at,
        })
    }
}

#[derive(Deserialize)]
struct MemberShape {
    key: String,
    execution_id: ExecutionId,
    state: String,
    kind: Option<String>,
    lane: Option<LaneId>,
    nested_flow_id: Option<FlowId>,
}

impl MemberShape {
    fn member(self) -> Result<MemberSnapshot, SdkError> {
        Ok(MemberSnapshot {
            state: word("state of a member", &self.state)?,
            key: self.key,
            execution_id: self.execution_id,
            kind: self.kind,
            lane: self.lane,
            flow_id: self.nested_flow_id,
        })
    }
}

#[derive(Deserialize)]
struct EdgeShape {
    from: String,
    to: String,
    on: String,
    pass_as: Option<String>,
    state: String,
}

#[derive(Deserialize)]
struct GraphShape {
    nodes: Vec<MemberShape>,
    edges: Vec<EdgeShape>,
}

impl GraphShape {
    fn graph(self) -> Result<FlowGraph, SdkError> {
        let members = self.nodes.into_iter().map(MemberShape::member).collect::<Result<_, SdkError>>()?;
        let edges = self.edges.into_iter().map(|edge| {
            Ok(EdgeSnapshot {
                on: word("condition of an edge", &edge.on)?,
                state: word("state of an edge", &edge.state)?,
                from: edge.from,
                to: edge.to,
                pass_as: edge.pass_as,
            })
        });
        let edges = edges.collect::<Result<_, SdkError>>()?;
        Ok(FlowGraph { members, edges })
    }
}

#[async_trait]
impl Flows for Http {
    async fn spawn(
        &self,
        lease: LeaseRef,
        children: &[NewChild],
        request_id: Uuid,
    ) -> Result<Vec<ExecutionId>, SdkError> {
        let path = format!("/v1/tasks/{}/spawn", lease.execution_id);
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
            let spawned: Spawned = self.post_as(&path, &body).await?;
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
        let path = format!("/v1/tasks/{}/wait-children", lease.execution_id);
        let body = json!({ "fence": fence(lease), "request_id": wait_id, "aside": aside });
        let answer: WaitAnswer = self.post_as(&path, &body).await?;
        Ok(match answer.outcome {
            WaitOutcome::Waiting => ChildrenWait::Waiting { open: answer.open },
            WaitOutcome::Ended => {
                let children = answer.children.into_iter().map(ChildSnapshot::try_from).collect::<Result<_, _>>()?;
                ChildrenWait::Ended { children, more: answer.more_children }
            }
        })
    }

    async fn children(&self, parent: ExecutionId, after: Option<&str>) -> Result<ChildPage, SdkError> {
        let cursor = after.map(|cursor| format!("&cursor={}", escaped(cursor))).unwrap_or_default();
        let path = format!("/v1/executions/{parent}/children?limit={PAGE}{cursor}");
        let page: Listed<Child> = self.get(&path).await?;
        let items = page.items.into_iter().map(ChildSnapshot::try_from).collect::<Result<_, _>>()?;
        Ok(ChildPage { items, next: page.next_cursor })
    }

    async fn submit_flow(&self, new: NewFlow) -> Result<SubmittedFlow, SdkError> {
        let body = flow(&new).map_err(unfit("submit_flow"))?;
        let submitted = self.ask(&Ask::<SubmitFlow>::with((), body), Duration::ZERO).await?;
        let members = submitted.members.into_iter().map(|member| (member.key, member.execution_id)).collect();
        Ok(SubmittedFlow { flow_id: submitted.flow_id, members })
    }

    async fn describe_flow(&self, id: FlowId) -> Result<FlowSnapshot, SdkError> {
        self.get::<FlowShape>(&format!("/v1/flows/{id}")).await?.snapshot()
    }

    async fn flow_graph(&self, id: FlowId) -> Result<FlowGraph, SdkError> {
        self.get::<GraphShape>(&format!("/v1/flows/{id}/graph")).await?.graph()
    }

    async fn list_flows(
        &self,
        filter: &FlowFilter,
        after: Option<FlowCursor>,
        limit: usize,
    ) -> Result<FlowPage, SdkError> {
        let mut query = vec![format!("limit={limit}")];
        let mut ask = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                query.push(format!("{name}={}", escaped(&value)));
            }
        };
        ask("namespace", filter.namespace.clone());
        ask("kind", filter.kind.clone());
        ask("state", filter.state.map(|state| state.to_string()));
        ask("cursor", after.map(|cursor| cursor.to_string()));
        let page: Listed<FlowShape> = self.get(&format!("/v1/flows?{}", query.join("&"))).await?;
        let next = page.next_cursor.map(|cursor| cursor.parse()).transpose()?;
        Ok(FlowPage { items: page.items.into_iter().map(FlowShape::snapshot).collect::<Result<_, _>>()?, next })
    }

    async fn await_flow(&self, id: FlowId, wait: Duration) -> Result<Option<FlowSnapshot>, SdkError> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            let wait = until.saturating_duration_since(tokio::time::Instant::now()).min(WAIT_MAX);
            let path = format!("/v1/flows/{id}?wait_ms={}", millis(wait));
            let (_, body) = self.request(Method::GET, &path, None, wait).await?;
            let flow = read::<FlowShape>(&path, &body)?.snapshot()?;
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
        let body = json!({ "reason": reason, "policy": policy.as_str(), "wait": wait });
        let limit = if wait { WAIT_MAX } else { Duration::ZERO };
        self.post::<FlowShape>(&format!("/v1/flows/{id}/cancel"), &body, limit).await?.snapshot()
    }
}

#[cfg(test)]
mod tests {
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
