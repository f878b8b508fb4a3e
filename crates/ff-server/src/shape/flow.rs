//! A flow, its members and its edges. Edges name members by their keys, as they were given.

use std::collections::{BTreeMap, HashMap};

use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{
    CancelPolicy, DependencyFacts, Edge, EdgeOn, EdgeState, Flow, FlowState, Inbound, InboundPolicy, Member,
    MemberState, OnMemberFailure, OnSatisfied, Upstream,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::execution::BudgetShape;
use super::retry::RetryShape;
use super::webhook::WebhookShape;
use crate::word::Word;

/// A flow without its members.
#[derive(Serialize, ToSchema)]
pub struct FlowShape {
    flow_id: FlowId,
    namespace: String,
    kind: String,
    /// How it stands.
    #[schema(value_type = FlowState)]
    pub state: Word<FlowState>,
    #[schema(value_type = OnMemberFailure)]
    policy: Word<OnMemberFailure>,
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
    default_retry: Option<RetryShape>,
    budgets: Vec<BudgetShape>,
    /// Why nothing of it starts any more.
    stop: Option<StopShape>,
    /// The member it runs in place of.
    parent_id: Option<ExecutionId>,
    /// Failures that no other member took up.
    uncaught_failures: i64,
    completion_webhook: Option<String>,
    /// How far the webhook of its last end is; shown of one flow, not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookShape>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = FlowStop)]
struct StopShape {
    #[schema(value_type = CancelPolicy)]
    policy: Word<CancelPolicy>,
    reason: Option<String>,
    actor: Option<String>,
    at: i64,
}

impl From<Flow> for FlowShape {
    fn from(flow: Flow) -> Self {
        Self {
            flow_id: flow.flow_id,
            namespace: flow.namespace,
            kind: flow.kind,
            state: Word(flow.state),
            policy: Word(flow.on_member_failure),
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
            default_retry: flow.default_retry.map(RetryShape::from),
            budgets: flow.budgets.into_iter().flatten().map(BudgetShape::from).collect(),
            stop: flow.stop.map(|stop| StopShape {
                policy: Word(stop.policy),
                reason: stop.reason,
                actor: stop.actor,
                at: stop.at,
            }),
            parent_id: flow.parent_id,
            uncaught_failures: flow.uncaught_failures,
            completion_webhook: flow.completion_webhook,
            webhook: None,
        }
    }
}

/// When a member may run.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InboundShape {
    #[schema(value_type = InboundPolicy)]
    policy: Word<InboundPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000)]
    k: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OnSatisfied>)]
    on_satisfied: Option<Word<OnSatisfied>>,
}

impl From<InboundShape> for Inbound {
    fn from(shape: InboundShape) -> Self {
        Self { policy: shape.policy.0, k: shape.k, on_satisfied: shape.on_satisfied.map(|Word(word)| word) }
    }
}

impl From<Inbound> for InboundShape {
    fn from(inbound: Inbound) -> Self {
        Self { policy: Word(inbound.policy), k: inbound.k, on_satisfied: inbound.on_satisfied.map(Word) }
    }
}

/// A member in a list, or a node of the graph.
#[derive(Serialize, ToSchema)]
pub struct MemberShape {
    key: String,
    execution_id: ExecutionId,
    #[schema(value_type = MemberState)]
    state: Word<MemberState>,
    kind: String,
    lane: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    inbound: Option<InboundShape>,
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
            state: Word(member.state),
            kind: member.kind,
            lane: member.lane,
            inbound: member.inbound.map(InboundShape::from),
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
    #[schema(value_type = EdgeOn)]
    on: Word<EdgeOn>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass_as: Option<String>,
    #[schema(value_type = EdgeState)]
    state: Word<EdgeState>,
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
                on: Word(edge.on),
                pass_as: edge.pass_as,
                state: Word(edge.state),
            })
        })
        .collect()
}

/// What a member waits for, for whoever asks why it does not run.
#[derive(Serialize, ToSchema)]
pub struct DependenciesShape {
    #[schema(value_type = InboundPolicy)]
    policy: Word<InboundPolicy>,
    /// How many edges must be met.
    needed: i64,
    total: i64,
    met: i64,
    dead: i64,
    /// The first upstreams that have not ended.
    open: Vec<UpstreamShape>,
}

#[derive(Serialize, ToSchema)]
struct UpstreamShape {
    key: String,
    execution_id: ExecutionId,
    #[schema(value_type = MemberState)]
    state: Word<MemberState>,
    #[schema(value_type = EdgeOn)]
    on: Word<EdgeOn>,
}

impl From<Upstream> for UpstreamShape {
    fn from(upstream: Upstream) -> Self {
        Self {
            key: upstream.key,
            execution_id: upstream.execution_id,
            state: Word(upstream.state),
            on: Word(upstream.on),
        }
    }
}

impl From<DependencyFacts> for DependenciesShape {
    fn from(facts: DependencyFacts) -> Self {
        Self {
            policy: Word(facts.policy),
            needed: facts.needed,
            total: facts.total,
            met: facts.met,
            dead: facts.dead,
            open: facts.open.into_iter().map(UpstreamShape::from).collect(),
        }
    }
}

impl DependenciesShape {
    /// The same in a few words.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let open: Vec<String> =
            self.open.iter().map(|upstream| format!("{} ({})", upstream.key, upstream.state.0)).collect();
        vec![("met", format!("{} of {}", self.met, self.needed)), ("open", open.join(", "))]
    }
}
