//! A flow, its members and its edges. Edges name members by their keys, as they were given.

use std::collections::{BTreeMap, HashMap};

use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{
    BudgetRef, DependencyFacts, Edge, EdgeOn, EdgeState, Flow, FlowState, FlowStop, Inbound, InboundPolicy, Member,
    MemberState, OnMemberFailure, Retry, Upstream, WebhookStatus,
};
use serde::Serialize;
use utoipa::ToSchema;

/// A flow without its members.
#[derive(Serialize, ToSchema)]
pub struct FlowShape {
    flow_id: FlowId,
    namespace: String,
    kind: String,
    /// How it stands.
    pub state: FlowState,
    policy: OnMemberFailure,
    /// Members by their state; states nobody is in are left out.
    #[schema(value_type = BTreeMap<String, i64>)]
    counts: BTreeMap<&'static str, i64>,
    member_count: i64,
    /// Changes whenever edges are added.
    version: i64,
    created_at: i64,
    updated_at: i64,
    sealed_at: Option<i64>,
    /// When nothing of it was left to run.
    pub finished_at: Option<i64>,
    deadline_at: Option<i64>,
    retention_ms: i64,
    default_lane: Option<String>,
    default_retry: Option<Retry>,
    budgets: Vec<BudgetRef>,
    /// Why nothing of it starts any more.
    stop: Option<FlowStop>,
    /// The member it runs in place of.
    parent_id: Option<ExecutionId>,
    /// Failures that no other member took up.
    uncaught_failures: i64,
    completion_webhook: Option<String>,
    /// How far the webhook of its last end is; shown of one flow, not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookStatus>,
}

impl From<Flow> for FlowShape {
    fn from(flow: Flow) -> Self {
        Self {
            flow_id: flow.flow_id,
            namespace: flow.namespace,
            kind: flow.kind,
            state: flow.state,
            policy: flow.on_member_failure,
            counts: flow.counts.into_iter().map(|(state, count)| (state.as_str(), count)).collect(),
            member_count: flow.members,
            version: flow.version,
            created_at: flow.created_at,
            updated_at: flow.updated_at,
            sealed_at: flow.sealed_at,
            finished_at: flow.finished_at,
            deadline_at: flow.deadline_at,
            retention_ms: flow.retention_ms,
            default_lane: flow.default_lane,
            default_retry: flow.default_retry,
            budgets: flow.budgets.unwrap_or_default(),
            stop: flow.stop,
            parent_id: flow.parent_id,
            uncaught_failures: flow.uncaught_failures,
            completion_webhook: flow.completion_webhook,
            webhook: None,
        }
    }
}

/// A member in a list, or a node of the graph.
#[derive(Serialize, ToSchema)]
pub struct MemberShape {
    key: String,
    execution_id: ExecutionId,
    state: MemberState,
    kind: String,
    lane: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    inbound: Option<Inbound>,
    /// The flow that runs in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    nested_flow_id: Option<FlowId>,
    edges_in: i64,
    edges_out: i64,
}

impl From<Member> for MemberShape {
    fn from(member: Member) -> Self {
        Self {
            key: member.key,
            execution_id: member.execution_id,
            state: member.state,
            kind: member.kind,
            lane: member.lane,
            inbound: member.inbound,
            nested_flow_id: member.nested,
            edges_in: member.edges_in,
            edges_out: member.edges_out,
        }
    }
}

/// An edge between two members.
#[derive(Serialize, ToSchema)]
pub struct EdgeShape {
    from: String,
    to: String,
    on: EdgeOn,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass_as: Option<String>,
    state: EdgeState,
}

/// The edges between these members; one that leads elsewhere is left out.
pub fn edges_between(members: &[Member], edges: Vec<Edge>) -> Vec<EdgeShape> {
    let keys: HashMap<ExecutionId, &str> = members.iter().map(|m| (m.execution_id, m.key.as_str())).collect();
    edges
        .into_iter()
        .filter_map(|edge| {
            let (from, to) = (keys.get(&edge.from)?, keys.get(&edge.to)?);
            Some(EdgeShape {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
                on: edge.on,
                pass_as: edge.pass_as,
                state: edge.state,
            })
        })
        .collect()
}

/// What a member waits for, for whoever asks why it does not run.
#[derive(Serialize, ToSchema)]
pub struct DependenciesShape {
    policy: InboundPolicy,
    /// How many edges must be met.
    needed: i64,
    total: i64,
    met: i64,
    dead: i64,
    /// The first upstreams that have not ended.
    open: Vec<Upstream>,
}

impl From<DependencyFacts> for DependenciesShape {
    fn from(facts: DependencyFacts) -> Self {
        Self {
            policy: facts.policy,
            needed: facts.needed,
            total: facts.total,
            met: facts.met,
            dead: facts.dead,
            open: facts.open.into_iter().collect(),
        }
    }
}

impl DependenciesShape {
    /// The same in a few words.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let open: Vec<String> =
            self.open.iter().map(|upstream| format!("{} ({})", upstream.key, upstream.state)).collect();
        vec![("met", format!("{} of {}", self.met, self.needed)), ("open", open.join(", "))]
    }
}
