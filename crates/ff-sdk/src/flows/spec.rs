//! A flow to submit, written down member by member.

use ff_core::types::FlowId;
use ff_engine::operations::{NewFlow, NewMember};
use ff_script::generated::{
    EdgeOn, Inbound, InboundPolicy, NewEdge, NewFlow as FlowFields, OnMemberFailure, OnSatisfied, Retry, Submission,
};

/// A flow to submit: members, each with what it runs after.
///
/// Nothing runs before all of it is written, and submitting it again with the same id answers the first one. Cycles, unknown keys
/// and quorums that cannot be met are refused before anything is written.
///
/// ```
/// use ff_sdk::{FlowSpec, MemberSpec};
/// let flow = FlowSpec::new("default", "report")
///     .lane("reports")
///     .member(MemberSpec::new("fetch", "http.get").input(br#""https://example.org""#))
///     .member(MemberSpec::new("words", "count.words").takes("fetch", "page"))
///     .member(MemberSpec::new("links", "count.links").takes("fetch", "page"))
///     .member(MemberSpec::new("join", "join").takes("words", "words").takes("links", "links"));
/// assert_eq!((flow.members.len(), flow.edges().len()), (4, 4));
/// ```
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// The fields of the flow; the engine fills in the digest.
    pub fields: FlowFields,
    /// The members, each with a key of its own.
    pub members: Vec<MemberSpec>,
    /// Whether the members may run as soon as all are written.
    pub seal: bool,
}

impl FlowSpec {
    /// A flow of a kind; its members run in the lane `default` unless somebody says otherwise.
    #[must_use]
    pub fn new(namespace: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { fields: NewFlow::new(namespace, kind).fields, members: Vec::new(), seal: true }
    }

    /// Proposes an id; submitting the same flow with it again answers the first one.
    #[must_use]
    pub fn id(mut self, id: FlowId) -> Self {
        self.fields.flow_id = id;
        self
    }

    /// The lane of members that name none.
    #[must_use]
    pub fn lane(mut self, lane: impl Into<String>) -> Self {
        self.fields.default_lane = Some(lane.into());
        self
    }

    /// How members that do not say are tried again.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.fields.default_retry = Some(retry);
        self
    }

    /// What the failure of a member means for the others; nothing unless said.
    #[must_use]
    pub fn on_member_failure(mut self, policy: OnMemberFailure) -> Self {
        self.fields.on_member_failure = policy;
        self
    }

    /// Tells this address when it has ended.
    #[must_use]
    pub fn completion_webhook(mut self, url: impl Into<String>) -> Self {
        self.fields.completion_webhook = Some(url.into());
        self
    }

    /// Ends what has not ended by then.
    #[must_use]
    pub fn deadline_ms(mut self, after_ms: u64) -> Self {
        self.fields.deadline_ms = Some(i64::try_from(after_ms).unwrap_or(i64::MAX));
        self
    }

    /// Adds a member.
    #[must_use]
    pub fn member(mut self, member: MemberSpec) -> Self {
        self.members.push(member);
        self
    }

    /// Adds members.
    #[must_use]
    pub fn members(mut self, members: impl IntoIterator<Item = MemberSpec>) -> Self {
        self.members.extend(members);
        self
    }

    /// The edges between its members.
    #[must_use]
    pub fn edges(&self) -> Vec<NewEdge> {
        self.members.iter().flat_map(|member| member.edges.iter().cloned()).collect()
    }
}

impl From<FlowSpec> for NewFlow {
    fn from(flow: FlowSpec) -> Self {
        let edges = flow.edges();
        let members = flow.members.into_iter().map(NewMember::from).collect();
        Self { fields: flow.fields, members, edges, seal: flow.seal }
    }
}

/// A member of a flow: what it is, and what it runs after.
///
/// ```
/// use ff_sdk::MemberSpec;
/// // Goes on with the first of three answers, and cancels the other two.
/// let first = MemberSpec::new("answer", "answer")
///     .takes("ann", "ann")
///     .takes("bob", "bob")
///     .takes("eve", "eve")
///     .any_of()
///     .cancel_remaining();
/// assert_eq!(first.edges.len(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct MemberSpec {
    /// Its name within the flow.
    pub key: String,
    /// The fields of its execution. An empty lane is the flow's default; a nil id is derived from flow and key.
    pub fields: Submission,
    /// The edges that lead to it.
    pub edges: Vec<NewEdge>,
    /// When it may run; after all its edges when nothing is said.
    pub inbound: Option<Inbound>,
    /// The flow that runs in its place.
    pub flow: Option<Box<FlowSpec>>,
}

impl MemberSpec {
    /// A member of a kind.
    #[must_use]
    pub fn new(key: impl Into<String>, kind: impl Into<String>) -> Self {
        let NewMember { key, fields, .. } = NewMember::new(key, kind);
        Self { key, fields, edges: Vec::new(), inbound: None, flow: None }
    }

    /// A member that is a flow: it ends as the flow ends.
    #[must_use]
    pub fn of_flow(key: impl Into<String>, flow: FlowSpec) -> Self {
        let mut member = Self::new(key, flow.fields.kind.clone());
        member.flow = Some(Box::new(flow));
        member
    }

    /// Gives it an input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.fields.input = Some(input.into().into());
        self
    }

    /// Runs it in this lane.
    #[must_use]
    pub fn lane(mut self, lane: impl Into<String>) -> Self {
        self.fields.lane = lane.into();
        self
    }

    /// Says how it is tried again.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.fields.retry = Some(retry);
        self
    }

    /// Runs it after another member has succeeded.
    #[must_use]
    pub fn after(self, upstream: impl Into<String>) -> Self {
        self.edge(upstream, EdgeOn::Success, None)
    }

    /// Runs it after another member has ended, however: skipped ones aside.
    #[must_use]
    pub fn after_end_of(self, upstream: impl Into<String>) -> Self {
        self.edge(upstream, EdgeOn::Completion, None)
    }

    /// Runs it after another member has failed or expired.
    #[must_use]
    pub fn after_failure_of(self, upstream: impl Into<String>) -> Self {
        self.edge(upstream, EdgeOn::Failure, None)
    }

    /// Runs it after another member has succeeded, and hands it that one's result under a name.
    #[must_use]
    pub fn takes(self, upstream: impl Into<String>, name: impl Into<String>) -> Self {
        self.edge(upstream, EdgeOn::Success, Some(name.into()))
    }

    /// Runs it after another member, on what is said, and hands it the result or failure under a name when there is one.
    #[must_use]
    pub fn edge(mut self, upstream: impl Into<String>, on: EdgeOn, pass_as: Option<String>) -> Self {
        self.edges.push(NewEdge { pass_as, ..NewEdge::new(upstream.into(), self.key.clone(), on) });
        self
    }

    fn inbound(mut self, change: impl FnOnce(&mut Inbound)) -> Self {
        change(self.inbound.get_or_insert_with(|| Inbound::new(InboundPolicy::AllOf)));
        self
    }

    /// Runs it as soon as one of its edges is met.
    #[must_use]
    pub fn any_of(self) -> Self {
        self.inbound(|inbound| (inbound.policy, inbound.k) = (InboundPolicy::AnyOf, None))
    }

    /// Runs it as soon as `k` of its edges are met.
    #[must_use]
    pub fn quorum(self, k: u32) -> Self {
        self.inbound(|inbound| (inbound.policy, inbound.k) = (InboundPolicy::Quorum, Some(i64::from(k))))
    }

    /// Cancels the upstreams that are not needed any more once it may run; without this they go on.
    #[must_use]
    pub fn cancel_remaining(self) -> Self {
        self.inbound(|inbound| inbound.on_satisfied = Some(OnSatisfied::CancelRemaining))
    }
}

impl From<MemberSpec> for NewMember {
    fn from(member: MemberSpec) -> Self {
        let MemberSpec { key, fields, inbound, flow, .. } = member;
        Self { key, fields, inbound, flow: flow.map(|flow| Box::new((*flow).into())) }
    }
}
