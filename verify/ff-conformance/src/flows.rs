//! Calls for tests of flows: shapes are written as text, and members are found by key.

use std::collections::BTreeMap;

use ff_core::types::{ExecutionId, FlowId};
use ff_script::Error;
use ff_script::generated::{
    CancelFlow, CancelFlowReply, CancelPolicy, DescribeFlow, DescribeFlowReply, EdgeOn, EdgeState, Flow, Inbound,
    InboundPolicy, Member, MemberState, NewEdge, NewFlow, NewMember, OnMemberFailure, OnSatisfied, ReadFlow,
    ReadFlowReply, Submission, SubmitFlow, SubmitFlowReply, Task,
};

use crate::harness::Store;
use crate::work::{HOME, LANE, NAMESPACE, digest};

/// An edge on success, written `a>b`; `a!b` is on failure, `a*b` on completion, `a>b:name` passes the result.
pub fn edge(text: &str) -> NewEdge {
    let (sign, on) = [('>', EdgeOn::Success), ('!', EdgeOn::Failure), ('*', EdgeOn::Completion)]
        .into_iter()
        .find(|(sign, _)| text.contains(*sign))
        .unwrap_or_else(|| panic!("{text:?} is no edge"));
    let (from, rest) = text.split_once(sign).expect("the sign is in the text");
    let (to, pass_as) = rest.split_once(':').map_or((rest, None), |(to, name)| (to, Some(name.to_owned())));
    NewEdge { pass_as, ..NewEdge::new(from.to_owned(), to.to_owned(), on) }
}

/// Edges separated by spaces.
pub fn edges(text: &str) -> Vec<NewEdge> {
    text.split_whitespace().map(edge).collect()
}

/// Inbound policy: any of its edges.
pub fn any_of() -> Inbound {
    Inbound::new(InboundPolicy::AnyOf)
}

/// Inbound policy: this number of its edges.
pub fn quorum(k: i64) -> Inbound {
    Inbound { k: Some(k), ..Inbound::new(InboundPolicy::Quorum) }
}

/// The same policy; the remaining upstreams are cancelled.
pub fn cancelling(inbound: Inbound) -> Inbound {
    Inbound { on_satisfied: Some(OnSatisfied::CancelRemaining), ..inbound }
}

/// A flow of a test: its id, and its members by key.
pub struct TestFlow {
    /// The flow's id, in partition 0.
    pub id: FlowId,
    pub ids: BTreeMap<String, ExecutionId>,
}

impl TestFlow {
    /// The member with this key.
    pub fn of(&self, key: &str) -> ExecutionId {
        self.ids[key]
    }

    /// The key of a member.
    pub fn key(&self, id: ExecutionId) -> &str {
        self.ids.iter().find(|(_, member)| **member == id).map_or("?", |(key, _)| key)
    }
}

impl Store {
    /// A fresh flow id in partition 0.
    pub fn flow_id(&self) -> FlowId {
        FlowId::from_uuid(self.uuid(0))
    }

    /// A flow without special settings.
    pub fn new_flow(&self) -> NewFlow {
        NewFlow::new(self.flow_id(), NAMESPACE.into(), "pipeline".into(), OnMemberFailure::Continue, digest("flow"))
    }

    /// A member that is not retried when it fails.
    pub fn member(&self, key: &str) -> NewMember {
        let mut submission =
            Submission::new(self.execution_id(), NAMESPACE.into(), LANE.into(), key.into(), digest(key));
        submission.retry = Some(ff_script::generated::Retry { max_attempts: Some(1), ..Default::default() });
        NewMember::new(key.to_owned(), submission)
    }

    /// Members whose keys are the words of the text.
    pub fn members(&self, keys: &str) -> Vec<NewMember> {
        keys.split_whitespace().map(|key| self.member(key)).collect()
    }

    /// Submits a flow, which must succeed. Members are the words of `keys`.
    pub async fn flow(&self, keys: &str, shape: &str) -> TestFlow {
        self.flow_of(self.new_flow(), self.members(keys), shape).await
    }

    /// Submits and seals a flow, which must succeed.
    pub async fn flow_of(&self, flow: NewFlow, members: Vec<NewMember>, shape: &str) -> TestFlow {
        let id = flow.flow_id;
        let ids = members.iter().map(|m| (m.key.clone(), m.submission.execution_id)).collect();
        let call = SubmitFlow { edges: edges(shape), flow, members, seal: true };
        match self.ask(&call).await {
            Ok(SubmitFlowReply::Created { .. }) => TestFlow { id, ids },
            other => panic!("not created: {other:?}"),
        }
    }

    /// A flow that must exist.
    pub async fn see_flow(&self, id: FlowId) -> Flow {
        self.find_flow(id).await.unwrap_or_else(|error| panic!("{id}: {error}"))
    }

    pub async fn find_flow(&self, flow_id: FlowId) -> Result<Flow, Error> {
        let DescribeFlowReply::Found { flow } = self.ask(&DescribeFlow { flow_id }).await?;
        Ok(flow)
    }

    /// Every member of a flow.
    pub async fn members_of(&self, flow_id: FlowId) -> Vec<Member> {
        let mut all: Vec<Member> = Vec::new();
        let mut after = None;
        loop {
            let call = ReadFlow { after, edges: false, flow_id, limit: 1000 };
            let ReadFlowReply::Page { members, next, .. } = self.ask(&call).await.expect("members are read");
            all.extend(members);
            after = next;
            if after.is_none() {
                return all;
            }
        }
    }

    /// The states of a flow's members by key.
    pub async fn member_states(&self, flow_id: FlowId) -> BTreeMap<String, MemberState> {
        self.members_of(flow_id).await.into_iter().map(|member| (member.key, member.state)).collect()
    }

    /// The states as one text: `a completed, b skipped`.
    pub async fn states(&self, flow: &TestFlow) -> String {
        let states = self.member_states(flow.id).await;
        states.iter().map(|(key, state)| format!("{key} {}", state.as_str())).collect::<Vec<_>>().join(", ")
    }

    /// The edges of a flow with their states, by the ids of their ends.
    pub async fn edge_states(&self, flow_id: FlowId) -> BTreeMap<(ExecutionId, ExecutionId), EdgeState> {
        let mut all = BTreeMap::new();
        let mut after = None;
        loop {
            let call = ReadFlow { after, edges: true, flow_id, limit: 1000 };
            let ReadFlowReply::Page { edges, next, .. } = self.ask(&call).await.expect("edges are read");
            for edge in edges {
                assert_eq!(all.insert((edge.from, edge.to), edge.state), None, "an edge is read once");
            }
            after = next;
            if after.is_none() {
                return all;
            }
        }
    }

    /// Claims everything as one worker. Returns the tasks by the key of their member.
    pub async fn claim_members(&self, flow: &TestFlow) -> BTreeMap<String, Task> {
        let tasks = self.claim("w1", 64).await;
        tasks.into_iter().map(|task| (flow.key(task.execution_id).to_owned(), task)).collect()
    }

    /// Claims everything, and returns the keys.
    pub async fn claim_keys(&self, flow: &TestFlow) -> Vec<String> {
        self.claim_members(flow).await.into_keys().collect()
    }

    /// Cancels a flow with a policy, as the operator ann.
    pub async fn cancel_flow(&self, flow_id: FlowId, policy: CancelPolicy) -> CancelFlowReply {
        let call = CancelFlow { actor: "ann".into(), flow_id, policy, reason: Some("ann says so".into()) };
        self.call(HOME, &call).await.expect("a flow that exists is cancelled")
    }
}
