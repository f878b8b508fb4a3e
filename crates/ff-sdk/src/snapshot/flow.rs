//! What the engine says about flows and their members.

use std::collections::BTreeMap;

use ff_core::types::{ExecutionId, FlowId, LaneId, Namespace, TimestampMs};
use ff_engine::operations::FlowCursor;
use ff_script::generated::{self, FlowState, MemberState};

/// One flow as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSnapshot {
    /// Its id.
    pub flow_id: FlowId,
    /// Its namespace.
    pub namespace: Namespace,
    /// Its kind.
    pub kind: String,
    /// Its state.
    pub state: FlowState,
    /// How many members are in each state; states without members are absent.
    pub counts: BTreeMap<MemberState, u64>,
    /// When it was submitted.
    pub created_at: TimestampMs,
    /// When its last member had ended.
    pub finished_at: Option<TimestampMs>,
}

impl FlowSnapshot {
    /// How many members are in a state.
    #[must_use]
    pub fn count(&self, state: MemberState) -> u64 {
        self.counts.get(&state).copied().unwrap_or(0)
    }

    /// True when every member has ended: nothing of it runs any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.finished_at.is_some()
    }
}

/// A flow that was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmittedFlow {
    /// Its id.
    pub flow_id: FlowId,
    /// The executions of its members, by key.
    pub members: BTreeMap<String, ExecutionId>,
}

/// Members and edges of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowGraph {
    /// The members, in the order they were added.
    pub members: Vec<MemberSnapshot>,
    /// The edges between them.
    pub edges: Vec<EdgeSnapshot>,
}

impl FlowGraph {
    /// The member with this key.
    #[must_use]
    pub fn member(&self, key: &str) -> Option<&MemberSnapshot> {
        self.members.iter().find(|member| member.key == key)
    }
}

/// A member of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSnapshot {
    /// Its key.
    pub key: String,
    /// Its execution.
    pub execution_id: ExecutionId,
    /// Where it stands.
    pub state: MemberState,
    /// Its kind, where the engine says it.
    pub kind: Option<String>,
    /// Its lane, where the engine says it.
    pub lane: Option<LaneId>,
    /// The flow that runs in its place.
    pub flow_id: Option<FlowId>,
}

/// An edge between two members, by their keys.
pub use ff_api::graph::Edge as EdgeSnapshot;

/// One page of flows, newest first; it may be short while more follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPage {
    /// The flows.
    pub items: Vec<FlowSnapshot>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<FlowCursor>,
}

impl From<ff_api::graph::Flow> for FlowSnapshot {
    fn from(flow: ff_api::graph::Flow) -> Self {
        let counts = flow.counts.into_iter().filter(|(_, count)| *count > 0);
        Self {
            flow_id: flow.flow_id,
            namespace: Namespace::new(flow.namespace),
            kind: flow.kind,
            state: flow.state,
            counts: counts.map(|(state, count)| (state, count.unsigned_abs())).collect(),
            created_at: TimestampMs(flow.created_at),
            finished_at: flow.finished_at.map(TimestampMs),
        }
    }
}

impl From<generated::Flow> for FlowSnapshot {
    fn from(flow: generated::Flow) -> Self {
        ff_api::graph::Flow::from(flow).into()
    }
}

impl From<ff_api::graph::Member> for MemberSnapshot {
    fn from(member: ff_api::graph::Member) -> Self {
        Self {
            key: member.key,
            execution_id: member.execution_id,
            state: member.state,
            kind: Some(member.kind),
            lane: Some(LaneId::new(member.lane)),
            flow_id: member.nested_flow_id,
        }
    }
}

impl From<generated::Member> for MemberSnapshot {
    fn from(member: generated::Member) -> Self {
        ff_api::graph::Member::from(member).into()
    }
}

impl From<ff_api::graph::FlowGraph> for FlowGraph {
    fn from(graph: ff_api::graph::FlowGraph) -> Self {
        Self { members: graph.nodes.into_iter().map(MemberSnapshot::from).collect(), edges: graph.edges }
    }
}
