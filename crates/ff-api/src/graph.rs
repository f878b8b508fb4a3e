//! What users see of flows: how one stands, its members, and the edges between them.

use std::collections::{BTreeMap, HashMap};

use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{
    self, BudgetRef, EdgeOn, EdgeState, FlowState, FlowStop, Inbound, MemberState, OnMemberFailure, Retry,
    WebhookStatus,
};
use serde::{Deserialize, Serialize};

use crate::access::FOLLOW;
use crate::operation::operations;
use crate::page::{Listed, PageQuery};
use crate::parts;
#[cfg(feature = "openapi")]
use crate::vocabulary;

/// A flow without its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Flow {
    /// The flow.
    pub flow_id: FlowId,
    /// Its namespace.
    pub namespace: String,
    /// What it is.
    pub kind: String,
    /// How it stands.
    pub state: FlowState,
    /// What it does when a member fails.
    pub policy: OnMemberFailure,
    /// Members by their state; states without members are left out.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, i64>))]
    pub counts: BTreeMap<MemberState, i64>,
    /// How many members it has.
    pub member_count: i64,
    /// Changes whenever edges are added.
    pub version: i64,
    /// When it was submitted.
    pub created_at: i64,
    /// When it changed last.
    pub updated_at: i64,
    /// When its members were released.
    pub sealed_at: Option<i64>,
    /// When nothing of it was left to run.
    pub finished_at: Option<i64>,
    /// Expired if it has not ended by then.
    pub deadline_at: Option<i64>,
    /// How long it is kept once it has ended.
    pub retention_ms: i64,
    /// The lane of members that name none.
    pub default_lane: Option<String>,
    /// The retry policy of members that name none.
    pub default_retry: Option<Retry>,
    /// What its members spend from.
    pub budgets: Vec<BudgetRef>,
    /// Why nothing of it starts any more.
    pub stop: Option<FlowStop>,
    /// The member it runs in place of.
    pub parent_id: Option<ExecutionId>,
    /// The schedule that submitted it, in its namespace.
    pub schedule: Option<String>,
    /// The time of the schedule that it belongs to.
    pub nominal_at: Option<i64>,
    /// When the schedule fired.
    pub fired_at: Option<i64>,
    /// Failures that no other member took up.
    pub uncaught_failures: i64,
    /// Told when it has ended.
    pub completion_webhook: Option<String>,
    /// How far the webhook of its last end is; shown of one flow, not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookStatus>,
}

impl From<generated::Flow> for Flow {
    fn from(flow: generated::Flow) -> Self {
        Self {
            flow_id: flow.flow_id,
            namespace: flow.namespace,
            kind: flow.kind,
            state: flow.state,
            policy: flow.on_member_failure,
            counts: flow.counts,
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
            nominal_at: flow.fired.as_ref().map(|fired| fired.nominal_at),
            fired_at: flow.fired.as_ref().map(|fired| fired.fired_at),
            schedule: flow.fired.map(|fired| fired.schedule),
            uncaught_failures: flow.uncaught_failures,
            completion_webhook: flow.completion_webhook,
            webhook: None,
        }
    }
}

/// A member in a list, or a node of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Member {
    /// Its name in the flow.
    pub key: String,
    /// Its execution.
    pub execution_id: ExecutionId,
    /// Where it stands.
    pub state: MemberState,
    /// What it is.
    pub kind: String,
    /// Its lane.
    pub lane: String,
    /// When it may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inbound: Option<Inbound>,
    /// The flow that runs in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested_flow_id: Option<FlowId>,
    /// How many edges lead to it.
    pub edges_in: i64,
    /// How many edges lead out of it.
    pub edges_out: i64,
}

impl From<generated::Member> for Member {
    fn from(member: generated::Member) -> Self {
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

/// An edge between two members, by their keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Edge {
    /// The upstream member.
    pub from: String,
    /// The downstream member.
    pub to: String,
    /// What meets it.
    pub on: EdgeOn,
    /// The name under which the upstream's result is passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_as: Option<String>,
    /// Whether it is met.
    pub state: EdgeState,
}

/// The edges between these members; one that leads elsewhere is left out.
#[must_use]
pub fn edges_between(members: &[generated::Member], edges: Vec<generated::Edge>) -> Vec<Edge> {
    let keys: HashMap<ExecutionId, &str> = members.iter().map(|m| (m.execution_id, m.key.as_str())).collect();
    edges
        .into_iter()
        .filter_map(|edge| {
            let (from, to) = (keys.get(&edge.from)?, keys.get(&edge.to)?);
            Some(Edge {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
                on: edge.on,
                pass_as: edge.pass_as,
                state: edge.state,
            })
        })
        .collect()
}

/// A flow with its first members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FlowShown {
    /// The flow.
    #[serde(flatten)]
    pub flow: Flow,
    /// Its first members.
    pub members: Vec<Member>,
    /// Where the other members begin.
    pub members_next_cursor: Option<String>,
    /// Between the members shown.
    pub edges: Vec<Edge>,
    /// Not every edge out of them was looked at; the graph has them all.
    pub edges_omitted: bool,
}

impl FlowShown {
    /// A flow whose members were not asked for.
    #[must_use]
    pub fn alone(flow: Flow) -> Self {
        Self { flow, members: Vec::new(), members_next_cursor: None, edges: Vec::new(), edges_omitted: true }
    }
}

/// Every member and every edge, at one version of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FlowGraph {
    /// The flow.
    pub flow_id: FlowId,
    /// How it stands.
    pub state: FlowState,
    /// The version of the graph.
    pub version: i64,
    /// The members, in the order they were added.
    pub nodes: Vec<Member>,
    /// The edges between them.
    pub edges: Vec<Edge>,
}

/// Which flows to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct FlowsQuery {
    /// Those of a namespace.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Namespace>))]
    pub namespace: Option<String>,
    /// Those of a kind.
    #[cfg_attr(feature = "openapi", param(value_type = Option<vocabulary::Kind>))]
    pub kind: Option<String>,
    /// Those in a state.
    pub state: Option<FlowState>,
    /// How many; the default is 100.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1_000))]
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// How long to wait for the end of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct FlowQuery {
    /// How long to wait for its end, in milliseconds; the default is not at all.
    #[cfg_attr(feature = "openapi", param(minimum = 0, maximum = 30_000))]
    pub wait_ms: Option<i64>,
    /// `false` leaves its members and edges out; the default is `true`.
    pub members: Option<bool>,
}

operations! {
    /// One page, newest first.
    ListFlows flow_list: get "/v1/flows", FOLLOW;
    asks FlowsQuery;
    returns Listed<Flow>: (status = 200, body = Listed<Flow>);

    /// A flow with its first members; waits for its end when asked to.
    GetFlow flow_get: get "/v1/flows/{flow}", FOLLOW;
    at (parts::Flow);
    asks FlowQuery;
    returns FlowShown: (status = 200, body = FlowShown);
    fails &["flow_not_found"];

    /// Members in the order they were added.
    ListMembers flow_list_members: get "/v1/flows/{flow}/members", FOLLOW;
    at (parts::Flow);
    asks PageQuery;
    returns Listed<Member>: (status = 200, body = Listed<Member>);
    fails &["flow_not_found"];

    /// Every member and every edge, at one version of the graph.
    GetFlowGraph flow_graph: get "/v1/flows/{flow}/graph", FOLLOW;
    at (parts::Flow);
    returns FlowGraph: (status = 200, body = FlowGraph);
    fails &["flow_not_found", "flow_changed"];
}
