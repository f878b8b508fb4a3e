//! Flows: executions with edges between them.

use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{BudgetRef, CancelPolicy, EdgeOn, FlowState, Inbound, MemberState, OnMemberFailure, Retry};
use serde::{Deserialize, Serialize};

use crate::access::PUT_IN;
use crate::graph::Flow;
use crate::operation::{BATCH_BODY, operations};
use crate::parts;
use crate::submission::submission;
#[cfg(feature = "openapi")]
use crate::{
    parts::{IdempotencyKey, TraceParent},
    vocabulary,
};

submission! {
    /// A member of a flow: an execution, or a flow that runs in its place.
    pub struct MemberBody {
        /// Its name in the flow.
        #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::MemberKey))]
        key: String,
        /// What it is; a flow in its place says so for it.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Kind>))]
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        /// When it may run.
        #[serde(skip_serializing_if = "Option::is_none")]
        inbound: Option<Inbound>,
        /// The flow that runs in its place.
        #[cfg_attr(feature = "openapi", schema(no_recursion, value_type = Option<FlowBody>))]
        #[serde(skip_serializing_if = "Option::is_none")]
        flow: Option<Box<FlowBody>>,
    }
}

/// An edge between two members, by their keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EdgeBody {
    /// The member it comes from.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::MemberKey))]
    pub from: String,
    /// The member it leads to.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::MemberKey))]
    pub to: String,
    /// What of the upstream member it waits for; the default is success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<EdgeOn>,
    /// The name under which the downstream member gets the upstream's result.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::PassAs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_as: Option<String>,
}

/// What a flow does when a member fails: the word, or an object with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged, expecting = "it must be continue, fail_flow or isolate_branch")]
pub enum FlowPolicy {
    /// The word.
    Bare(OnMemberFailure),
    /// An object with it.
    Named(NamedPolicy),
}

/// What a flow does when a member fails, by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NamedPolicy {
    /// What it does; the default is to continue.
    pub on_member_failure: Option<OnMemberFailure>,
}

impl FlowPolicy {
    /// The word, when there is one.
    #[must_use]
    pub fn on_member_failure(&self) -> Option<OnMemberFailure> {
        match self {
            Self::Bare(word) => Some(*word),
            Self::Named(named) => named.on_member_failure,
        }
    }
}

/// Everything a submitter may say about a flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(as = SubmitFlowBody))]
pub struct FlowBody {
    /// Chosen by the client, or minted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    /// The same key with the same body is the same flow, for as long as the flow is kept.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::IdempotencyKey>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The default is `default`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Namespace>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What it is.
    #[cfg_attr(feature = "openapi", schema(value_type = vocabulary::Kind))]
    pub kind: String,
    /// Its members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<MemberBody>>,
    /// What each member waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<EdgeBody>>,
    /// What it does when a member fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<FlowPolicy>,
    /// The lane of members that name none.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::LaneName>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_lane: Option<String>,
    /// The retry policy of members that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_retry: Option<Retry>,
    /// What its members spend from.
    #[cfg_attr(feature = "openapi", schema(max_items = 16))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Vec<BudgetRef>>,
    /// Expired if it has not ended by then.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::TimeMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<i64>,
    /// Expired if it has not ended so long from now.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// How long it is kept once it has ended.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::DurationMs>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<i64>,
    /// Told when it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_webhook: Option<String>,
    /// `false` leaves it open for more members; the default is `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seal: Option<bool>,
}

impl FlowBody {
    /// Puts every member that names no trace into this one, those of nested flows included.
    pub fn trace(&mut self, trace_parent: &str) {
        trace(self.members.as_deref_mut(), trace_parent);
    }
}

fn trace(members: Option<&mut [MemberBody]>, trace_parent: &str) {
    for member in members.into_iter().flatten() {
        member.trace_parent.get_or_insert_with(|| trace_parent.to_owned());
        if let Some(nested) = &mut member.flow {
            nested.trace(trace_parent);
        }
    }
}

/// A member and its execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberId {
    /// Its name in the flow.
    pub key: String,
    /// The execution.
    pub execution_id: ExecutionId,
}

/// What became of a flow that was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FlowSubmitted {
    /// The flow.
    pub flow_id: FlowId,
    /// Its state.
    pub state: FlowState,
    /// The same id or key had been submitted before.
    pub duplicate: bool,
    /// Its members.
    pub members: Vec<MemberId>,
}

/// What is added to a flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(as = AddMembersBody))]
pub struct MembersBody {
    /// The members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<MemberBody>>,
    /// The edges into them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<EdgeBody>>,
}

impl MembersBody {
    /// Puts every member that names no trace into this one.
    pub fn trace(&mut self, trace_parent: &str) {
        trace(self.members.as_deref_mut(), trace_parent);
    }
}

/// The members that were added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddedMembers {
    /// The flow.
    pub flow_id: FlowId,
    /// The members.
    pub members: Vec<AddedMember>,
}

/// A member that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddedMember {
    /// Its name in the flow.
    pub key: String,
    /// The execution.
    pub execution_id: ExecutionId,
    /// Where it stands.
    pub state: MemberState,
    /// The same member had been added before.
    pub duplicate: bool,
}

/// Edges to add.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(as = AddEdgesBody))]
pub struct EdgesBody {
    /// The edges.
    pub edges: Vec<EdgeBody>,
}

/// The edges were added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddedEdges {
    /// The flow.
    pub flow_id: FlowId,
    /// How many were new.
    pub added: i64,
}

/// A flow is released.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SealBody {}

/// A flow is to end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", schema(as = CancelFlowBody))]
pub struct CancelFlowBody {
    /// Why, for people.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<vocabulary::Reason>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What happens to running members; the default is that they are cancelled, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<CancelPolicy>,
    /// Returns when the flow has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
}

/// What became of a flow that was to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FlowCancelled {
    /// What happened.
    pub outcome: FlowCancelOutcome,
    /// The flow.
    #[serde(flatten)]
    pub flow: Flow,
    /// The caller waited, and the flow has not ended. An answer that was read does not tell.
    #[serde(skip)]
    pub still_ending: bool,
}

/// What cancelling a flow did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowCancelOutcome {
    /// Nothing of it can be claimed any more.
    Cancelled,
    /// It had ended, or was stopped, before.
    Already,
}

/// The codes that members and edges fail with.
pub const GRAPH: &[&str] = &[
    "execution_not_found",
    "flow_not_found",
    "idempotency_conflict",
    "lane_disabled",
    "lane_full",
    "capability_invalid",
    "budget_not_found",
    "quota_not_found",
    "cycle_detected",
    "flow_full",
    "flow_changed",
    "member_started",
];

operations! {
    /// Submits a flow. It is checked whole before anything is written; the same id or key with the same body returns the first one.
    SubmitFlow flow_submit: post "/v1/flows", PUT_IN;
    takes FlowBody, up to BATCH_BODY;
    reads (IdempotencyKey, TraceParent);
    returns FlowSubmitted: (status = 201, description = "It is new.", body = FlowSubmitted), (status = 200, description = "It was there already: the same id or key with the same body.", body = FlowSubmitted);
    status |submitted| if submitted.duplicate { 200 } else { 201 };
    fails GRAPH;

    /// Adds members with the edges into them: none can start before its edges count.
    AddMembers flow_add_members: post "/v1/flows/{flow}/members", PUT_IN;
    at (parts::Flow);
    takes MembersBody, up to BATCH_BODY;
    returns AddedMembers: (status = 200, body = AddedMembers);
    fails &[
        "flow_not_found", "flow_terminal", "execution_not_found", "idempotency_conflict", "lane_disabled", "lane_full",
        "capability_invalid", "budget_not_found", "quota_not_found", "cycle_detected", "flow_full", "flow_changed",
        "member_started",
    ];

    /// Adds edges between members that are there; what has started takes no more.
    AddEdges flow_add_edges: post "/v1/flows/{flow}/edges", PUT_IN;
    at (parts::Flow);
    takes EdgesBody, up to BATCH_BODY;
    returns AddedEdges: (status = 200, body = AddedEdges);
    fails &[
        "flow_not_found", "flow_terminal", "flow_changed", "member_started", "cycle_detected", "idempotency_conflict",
    ];

    /// Releases the members held so far.
    SealFlow flow_seal: post "/v1/flows/{flow}/seal", PUT_IN;
    at (parts::Flow);
    takes SealBody;
    returns Flow: (status = 200, body = Flow);
    fails &["flow_not_found"];

    /// When this answers, nothing of the flow can be claimed any more. With `wait` it answers when the flow has ended, or with
    /// 202 and how it stands.
    CancelFlow flow_cancel: post "/v1/flows/{flow}/cancel", PUT_IN;
    at (parts::Flow);
    takes CancelFlowBody;
    returns FlowCancelled: (status = 200, body = FlowCancelled), (status = 202, description = "It has not ended within the time a request may wait.", body = FlowCancelled);
    status |cancelled| if cancelled.still_ending { 202 } else { 200 };
    fails &["flow_not_found"];
}
