//! Flows: submitted whole or grown, checked before the first call, written in chunks nobody sees until they are sealed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ff_core::error::{EngineError, ValidationKind};
use ff_core::error_code::ErrorCode;
use ff_core::graph::{self, Cycle};
use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::{
    self as wire, AddEdges, AddEdgesReply, AddMembers, AddMembersReply, AddedMember, AwaitFlow, AwaitFlowReply,
    BudgetRef, CancelFlow, CancelFlowReply, CancelPolicy, DescribeFlow, DescribeFlowReply, Edge, EdgeOn, Flow,
    FlowPosition, FlowState, GraphPosition, Inbound, InboundPolicy, ListFlows, ListFlowsReply, Member, NewEdge,
    OnMemberFailure, ReadFlow, ReadFlowReply, SealFlow, SealFlowReply, Submission, SubmitFlow, SubmitFlowReply,
    WalkFlow, WalkFlowReply,
};
use ff_script::wire::Wire;
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::page::{Place, Share, merge};
use super::places::{Places, within};
use super::submission::body_digest;
use super::{Operations, refused_with};

/// Members of one call, and edges of one call, as the library takes them.
const MEMBERS: usize = 128;
const EDGES: usize = 1024;
/// Input bytes of one call: a chunk must not hold up the partition.
const CHUNK_BYTES: usize = 1024 * 1024;
const MEMBERS_MAX: usize = 100_000;
/// How deep flows may stand in each other.
const NESTING_MAX: usize = 8;
/// Members that one step of a walk meets.
const STEP: i64 = 64;
const TRIES: usize = 4;
/// How often edges are checked again because the graph changed meanwhile.
const CHECKS: usize = 16;
const WHILE_MOVING: Duration = Duration::from_millis(50);
const AT_ONCE: usize = 32;
const PAGE: i64 = 1000;

/// A flow to submit: members, the edges between them, and what it does when one fails.
///
/// ```
/// use ff_engine::{NewFlow, NewMember};
/// let flow = NewFlow::new("default", "report")
///     .with_member(NewMember::new("fetch", "http.get"))
///     .with_member(NewMember::new("render", "render"))
///     .with_edge("fetch", "render");
/// assert_eq!(flow.members.len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct NewFlow {
    /// The fields of the flow; the engine fills in the digest.
    pub fields: wire::NewFlow,
    /// The members; each has a key of its own.
    pub members: Vec<NewMember>,
    /// The edges, by the members' keys.
    pub edges: Vec<NewEdge>,
    /// Whether the members may run as soon as all are written; otherwise [`Operations::seal_flow`] releases them.
    pub seal: bool,
}

impl NewFlow {
    /// A flow of a kind, sealed when it is written.
    #[must_use]
    pub fn new(namespace: impl Into<String>, kind: impl Into<String>) -> Self {
        let fields =
            wire::NewFlow::new(FlowId::mint(), namespace.into(), kind.into(), OnMemberFailure::Continue, String::new());
        Self { fields, members: Vec::new(), edges: Vec::new(), seal: true }
    }

    /// Proposes an id; submitting the same flow with it again answers the first one.
    #[must_use]
    pub fn with_id(mut self, id: FlowId) -> Self {
        self.fields.flow_id = id;
        self
    }

    /// Derives its id from its namespace and a key; submitting the same flow with the key again returns the first one.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        let digest = Sha256::new().chain_update(&self.fields.namespace).chain_update(b"/").chain_update(key).finalize();
        let mut spread = [0_u8; 16];
        // The other half of the digest: keyed flows spread over all partitions.
        spread.copy_from_slice(&digest[16..]);
        let id = derived_id(&Uuid::from_bytes(spread), &[b"flow", self.fields.namespace.as_bytes(), key.as_bytes()]);
        self.fields.flow_id = FlowId::from_uuid(*id.as_uuid());
        self
    }

    /// Tells this address when it has ended.
    #[must_use]
    pub fn with_completion_webhook(mut self, url: impl Into<String>) -> Self {
        self.fields.completion_webhook = Some(url.into());
        self
    }

    /// Adds a member.
    #[must_use]
    pub fn with_member(mut self, member: NewMember) -> Self {
        self.members.push(member);
        self
    }

    /// Adds an edge that is met when `from` succeeds.
    #[must_use]
    pub fn with_edge(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.edges.push(NewEdge::new(from.into(), to.into(), EdgeOn::Success));
        self
    }

    /// Adds an edge that hands the result of `from` to `to` under a name.
    #[must_use]
    pub fn with_data(mut self, from: impl Into<String>, to: impl Into<String>, pass_as: impl Into<String>) -> Self {
        self.edges
            .push(NewEdge { pass_as: Some(pass_as.into()), ..NewEdge::new(from.into(), to.into(), EdgeOn::Success) });
        self
    }
}

/// A member of a flow: an execution, or a flow that runs in its place.
#[derive(Clone, Debug)]
pub struct NewMember {
    /// Its name within the flow.
    pub key: String,
    /// The fields of its execution. An empty lane is the flow's default; a nil id is derived from flow and key.
    pub fields: Submission,
    /// When it may run; after all its edges when nothing is said.
    pub inbound: Option<Inbound>,
    /// The flow that runs in its place.
    pub flow: Option<Box<NewFlow>>,
}

impl NewMember {
    /// A member of a kind.
    #[must_use]
    pub fn new(key: impl Into<String>, kind: impl Into<String>) -> Self {
        let id = ExecutionId::from_uuid(Uuid::nil());
        let fields = Submission::new(id, String::new(), String::new(), kind.into(), String::new());
        Self { key: key.into(), fields, inbound: None, flow: None }
    }

    /// A member that is a flow.
    #[must_use]
    pub fn of_flow(key: impl Into<String>, flow: NewFlow) -> Self {
        let mut member = Self::new(key, flow.fields.kind.clone());
        member.flow = Some(Box::new(flow));
        member
    }

    /// Says when it may run.
    #[must_use]
    pub fn with_inbound(mut self, inbound: Inbound) -> Self {
        self.inbound = Some(inbound);
        self
    }
}

/// The id a member gets when none is proposed: the same for the same flow and key, so that a call may be repeated.
#[must_use]
pub fn member_id(flow: FlowId, key: &str) -> ExecutionId {
    derived_id(flow.as_uuid(), &[b"member", key.as_bytes()])
}

/// An id with the seed of `of`, decided by the parts alone.
pub(super) fn derived_id(of: &Uuid, parts: &[&[u8]]) -> ExecutionId {
    let mut hash = Sha256::new();
    hash.update(of.as_bytes());
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    let mut bytes = *uuid::Builder::from_custom_bytes(bytes).into_uuid().as_bytes();
    bytes[14..].copy_from_slice(&of.as_bytes()[14..]);
    ExecutionId::from_uuid(Uuid::from_bytes(bytes))
}

/// What was submitted: the flow and the ids of its members, in the order they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmittedFlow {
    /// The flow as it stands.
    pub flow: Flow,
    /// Key and id of each member.
    pub members: Vec<(String, ExecutionId)>,
    /// It had been submitted before.
    pub duplicate: bool,
}

/// Members and edges of a flow, read page by page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The members, in the order they were added.
    pub members: Vec<Member>,
    /// The edges out of them.
    pub edges: Vec<Edge>,
    /// The version of the graph; it did not change while it was read.
    pub version: i64,
}

/// The first members of a flow with the edges out of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstMembers {
    /// The members, in the order they were added.
    pub members: Vec<Member>,
    /// The edges out of them.
    pub edges: Vec<Edge>,
    /// There are more edges than were read.
    pub edges_omitted: bool,
    /// The number to go on after; nothing at the end.
    pub next: Option<i64>,
}

/// One page of a flow's members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPage {
    /// The members, in the order they were added.
    pub items: Vec<Member>,
    /// The number to go on after; nothing at the end.
    pub next: Option<i64>,
}

/// Which flows a list shows; everything given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    /// Of this namespace.
    pub namespace: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// In this state.
    pub state: Option<FlowState>,
}

/// A place in a list of flows, as URL-safe text.
pub type FlowCursor = Place<FlowId>;

/// One page of flows; it may be short while more follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPage {
    /// The flows, newest first.
    pub items: Vec<Flow>,
    /// Where the next page begins; nothing at the end.
    pub next: Option<FlowCursor>,
}

fn invalid(field: impl Into<String>, detail: impl Into<String>) -> EngineError {
    EngineError::Validation { kind: ValidationKind::InvalidArgument { field: field.into() }, detail: detail.into() }
}

fn cycle(keys: &[&str]) -> EngineError {
    let mut path = keys.join(" → ");
    path.push_str(" → ");
    path.push_str(keys.first().copied().unwrap_or_default());
    EngineError::Validation { kind: ValidationKind::Refused(ErrorCode::CycleDetected), detail: path }
}

/// Members and edges in an order in which every edge leads forward; each member comes with the edges into it, and both with
/// the place they were given at.
struct Ordered {
    members: Vec<(Placed<wire::NewMember>, Vec<Placed<NewEdge>>)>,
}

/// Something with the place it was given at.
type Placed<T> = (usize, T);

/// Checks keys, edges and policies, and orders the members. Of a whole flow every upstream must be among them.
fn ordered(members: Vec<wire::NewMember>, edges: Vec<NewEdge>, whole: bool) -> Result<Ordered, EngineError> {
    if members.len() > MEMBERS_MAX {
        return Err(invalid("members", format!("must hold at most {MEMBERS_MAX} items, got {}", members.len())));
    }
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        if places.insert(&member.key, at).is_some() {
            return Err(invalid(format!("members[{at}].key"), format!("{:?} is used by another member", member.key)));
        }
    }
    let mut inner = Vec::new();
    let mut pairs = BTreeSet::new();
    let mut inbound: Vec<Vec<usize>> = vec![Vec::new(); members.len()];
    for (at, edge) in edges.iter().enumerate() {
        let from = places.get(edge.from.as_str()).copied();
        if whole && from.is_none() {
            return Err(invalid(format!("edges[{at}].from"), format!("{:?} is not the key of a member", edge.from)));
        }
        let Some(&to) = places.get(edge.to.as_str()) else {
            let detail = if whole {
                format!("{:?} is not the key of a member", edge.to)
            } else {
                format!(
                    "{:?} is not a member added in this call; add edges between members that are there apart",
                    edge.to
                )
            };
            return Err(invalid(format!("edges[{at}].to"), detail));
        };
        if !pairs.insert((edge.from.as_str(), edge.to.as_str())) {
            return Err(invalid(format!("edges[{at}]"), format!("{:?} → {:?} is given twice", edge.from, edge.to)));
        }
        if let Some(from) = from {
            inner.push((from, to));
        }
        inbound[to].push(at);
    }
    for (at, member) in members.iter().enumerate() {
        quorum_fits(at, member, inbound[at].len())?;
    }
    let order = graph::order(members.len(), &inner)
        .map_err(|Cycle(nodes)| cycle(&nodes.iter().map(|&node| members[node].key.as_str()).collect::<Vec<_>>()))?;
    let mut edges: Vec<Option<NewEdge>> = edges.into_iter().map(Some).collect();
    let mut members: Vec<Option<wire::NewMember>> = members.into_iter().map(Some).collect();
    let members = order
        .into_iter()
        .map(|at| {
            let member = members[at].take().expect("the order names each member once");
            let edges =
                inbound[at].iter().map(|&e| (e, edges[e].take().expect("an edge leads to one member"))).collect();
            ((at, member), edges)
        })
        .collect();
    Ok(Ordered { members })
}

fn quorum_fits(at: usize, member: &wire::NewMember, edges: usize) -> Result<(), EngineError> {
    let Some(inbound) = &member.inbound else { return Ok(()) };
    let field = format!("members[{at}].inbound.k");
    match (inbound.policy, inbound.k) {
        (InboundPolicy::Quorum, None) => Err(invalid(field, "is missing: quorum needs it")),
        (InboundPolicy::Quorum, Some(k)) if usize::try_from(k).is_ok_and(|k| k > edges) => {
            Err(invalid(field, format!("is {k}, but {edges} edges lead to the member")))
        }
        (InboundPolicy::Quorum, Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => Err(invalid(field, "belongs to quorum")),
    }
}

/// One call's share of members and edges.
#[derive(Default)]
struct Chunk {
    members: Vec<wire::NewMember>,
    edges: Vec<NewEdge>,
    bytes: usize,
    places: Places,
}

impl Chunk {
    fn has_room_for(&self, bytes: usize, edges: usize) -> bool {
        self.members.is_empty()
            || (self.members.len() < MEMBERS && self.edges.len() + edges <= EDGES && self.bytes + bytes <= CHUNK_BYTES)
    }
}

/// The members in chunks, each with the edges into it; edges beyond a call's share come after, in `late`.
fn chunks(ordered: Ordered) -> (Vec<Chunk>, Vec<Placed<NewEdge>>) {
    let mut out = vec![Chunk::default()];
    let mut late = Vec::new();
    for ((at, member), mut edges) in ordered.members {
        let bytes = member.submission.input.as_ref().map_or(0, |input| input.0.len());
        if edges.len() > EDGES {
            late.extend(edges.split_off(EDGES));
        }
        if !out.last().is_some_and(|chunk| chunk.has_room_for(bytes, edges.len())) {
            out.push(Chunk::default());
        }
        let chunk = out.last_mut().expect("there is a chunk");
        chunk.bytes += bytes;
        chunk.places.members.push(at);
        chunk.members.push(member);
        for (at, edge) in edges {
            chunk.places.edges.push(at);
            chunk.edges.push(edge);
        }
    }
    (out, late)
}

/// The defaults a flow gives its members.
struct Defaults {
    namespace: String,
    lane: String,
    retry: Option<wire::Retry>,
}

/// A member as the library takes it: namespace, lane and retry filled in, id derived, body digested.
fn prepared(flow: FlowId, member: &mut NewMember, defaults: &Defaults) -> wire::NewMember {
    let mut submission = member.fields.clone();
    if submission.namespace.is_empty() {
        submission.namespace.clone_from(&defaults.namespace);
    }
    if submission.lane.is_empty() {
        submission.lane.clone_from(&defaults.lane);
    }
    submission.retry = merged_retry(submission.retry, defaults.retry.as_ref());
    if submission.execution_id.as_uuid().is_nil() {
        submission.execution_id = member_id(flow, &member.key);
    }
    submission.body_digest = member_digest(&submission, member.inbound.as_ref());
    wire::NewMember {
        key: member.key.clone(),
        submission,
        inbound: member.inbound,
        nested: member.flow.as_ref().map(|nested| nested.fields.flow_id),
    }
}

/// Fails when a flow would be refused whenever it came: a bound is broken, or its edges do not fit.
pub(crate) fn check_flow(mut new: NewFlow) -> Result<(), Error> {
    let (id, fields) = (new.fields.flow_id, &new.fields);
    let defaults = Defaults {
        namespace: fields.namespace.clone(),
        lane: fields.default_lane.clone().unwrap_or_else(|| "default".to_owned()),
        retry: fields.default_retry.clone(),
    };
    let members: Vec<wire::NewMember> = new.members.iter_mut().map(|member| prepared(id, member, &defaults)).collect();
    new.fields.body_digest = flow_digest(&new.fields, &members, &new.edges);
    // As the first call would carry it, so that what is wrong has the name of the request.
    let mut call = SubmitFlow { edges: Vec::new(), flow: new.fields, members: Vec::new(), seal: true };
    for (at, member) in members.iter().enumerate() {
        call.members = vec![member.clone()];
        let places = Places { members: vec![at], ..Places::default() };
        ff_script::Call::check(&call).map_err(|problem| places.named(EngineError::from(problem).into()))?;
    }
    call.members = Vec::new();
    ff_script::Call::check(&call).map_err(|problem| Places::default().named(EngineError::from(problem).into()))?;
    ordered(members, new.edges, true)?;
    for (at, member) in new.members.into_iter().enumerate() {
        if let Some(nested) = member.flow {
            check_flow(*nested).map_err(|error| within(error, &format!("members[{at}].flow")))?;
        }
    }
    Ok(())
}

/// What is not said is the flow's to say.
fn merged_retry(own: Option<wire::Retry>, of_flow: Option<&wire::Retry>) -> Option<wire::Retry> {
    match (own, of_flow) {
        (None, None) => None,
        (Some(own), None) => Some(own),
        (None, Some(of_flow)) => Some(of_flow.clone()),
        (Some(own), Some(of_flow)) => Some(wire::Retry {
            max_attempts: own.max_attempts.or(of_flow.max_attempts),
            backoff: own.backoff.or(of_flow.backoff),
            jitter: own.jitter.or(of_flow.jitter),
            retry_on: own.retry_on.or_else(|| of_flow.retry_on.clone()),
            never_on: own.never_on.or_else(|| of_flow.never_on.clone()),
        }),
    }
}

fn member_digest(submission: &Submission, inbound: Option<&Inbound>) -> String {
    let mut bytes = body_digest(submission).into_bytes();
    if let Some(inbound) = inbound {
        inbound.write(&mut bytes);
    }
    hex::encode(&Sha256::digest(&bytes)[..16])
}

/// The digest of a whole flow: what it is, its members and its edges.
fn flow_digest(fields: &wire::NewFlow, members: &[wire::NewMember], edges: &[NewEdge]) -> String {
    let mut bytes = Vec::new();
    wire::NewFlow { body_digest: String::new(), fired: None, ..fields.clone() }.write(&mut bytes);
    for member in members {
        bytes.extend_from_slice(member.key.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(member.submission.body_digest.as_bytes());
    }
    for edge in edges {
        edge.write(&mut bytes);
    }
    hex::encode(&Sha256::digest(&bytes)[..16])
}

/// A call that carries members, which may first ask for a lane or its depth.
trait CarriesMembers: ff_script::Call {
    fn members(&mut self) -> &mut Vec<wire::NewMember>;
}

impl CarriesMembers for SubmitFlow {
    fn members(&mut self) -> &mut Vec<wire::NewMember> {
        &mut self.members
    }
}

impl CarriesMembers for AddMembers {
    fn members(&mut self) -> &mut Vec<wire::NewMember> {
        &mut self.members
    }
}

/// Adds to the budgets of a flow within a flow those of the outer one that it does not name itself.
fn share_budgets(outer: &Option<Vec<BudgetRef>>, inner: &mut Option<Vec<BudgetRef>>) {
    for budget in outer.iter().flatten() {
        let own = inner.get_or_insert_default();
        if own.iter().all(|named| named.budget_id != budget.budget_id) {
            own.push(budget.clone());
        }
    }
}

impl Operations {
    /// Submits a flow: checked whole before the first call, then written; a small one in a single call. Submitting it again with
    /// the same id goes on where an earlier attempt stopped.
    pub async fn submit_flow(&self, new: NewFlow) -> Result<SubmittedFlow, Error> {
        self.submit_nested(new, None, &[]).await
    }

    /// Boxed because a flow may hold flows.
    fn submit_nested<'a>(
        &'a self,
        mut new: NewFlow,
        parent: Option<ExecutionId>,
        above: &'a [FlowId],
    ) -> futures::future::BoxFuture<'a, Result<SubmittedFlow, Error>> {
        Box::pin(async move {
            if above.len() > NESTING_MAX {
                return Err(invalid("members", format!("must not nest flows deeper than {NESTING_MAX}")).into());
            }
            let id = new.fields.flow_id;
            let within_flows: Vec<FlowId> = above.iter().copied().chain([id]).collect();
            self.check_budgets(&new.fields.namespace, new.fields.budgets.as_deref()).await?;
            new.fields.parent_id = parent;
            let defaults = Defaults {
                namespace: new.fields.namespace.clone(),
                lane: new.fields.default_lane.clone().unwrap_or_else(|| "default".to_owned()),
                retry: new.fields.default_retry.clone(),
            };
            for member in &mut new.members {
                if let Some(nested) = &mut member.flow {
                    // A flow in place of a member has an id of its own, the same whenever this flow is submitted again.
                    nested.fields.flow_id =
                        FlowId::from_uuid(*derived_id(id.as_uuid(), &[b"flow", member.key.as_bytes()]).as_uuid());
                    nested.fields.namespace.clone_from(&new.fields.namespace);
                    // What the members of a flow share, they share with the members of its flows.
                    share_budgets(&new.fields.budgets, &mut nested.fields.budgets);
                    nested.seal = false;
                }
            }
            let mut members: Vec<wire::NewMember> =
                new.members.iter_mut().map(|member| prepared(id, member, &defaults)).collect();
            self.check_webhook(|| "completion_webhook".to_owned(), new.fields.completion_webhook.as_deref())?;
            for (at, member) in members.iter().enumerate() {
                let field = || format!("members[{at}].completion_webhook");
                self.check_webhook(field, member.submission.completion_webhook.as_deref())?;
                self.check_quotas(&member.submission.namespace, member.submission.quotas.as_deref()).await?;
            }
            let ids = members.iter().map(|m| (m.key.clone(), m.submission.execution_id)).collect();
            new.fields.body_digest = flow_digest(&new.fields, &members, &new.edges);
            for member in &mut members {
                self.attach_budgets(&mut member.submission, &within_flows).await?;
            }
            let nested: Vec<(usize, NewFlow, ExecutionId)> = new
                .members
                .iter_mut()
                .zip(&members)
                .enumerate()
                .filter_map(|(at, (given, member))| Some((at, *given.flow.take()?, member.submission.execution_id)))
                .collect();
            let (chunks, late) = chunks(ordered(members, new.edges, true)?);
            for (at, flow, parent) in nested {
                let submitted = self.submit_nested(flow, Some(parent), &within_flows).await;
                submitted.map_err(|error| within(error, &format!("members[{at}].flow")))?;
            }
            let (flow, duplicate) = self.write_flow(new.fields, chunks, late, new.seal && parent.is_none()).await?;
            Ok(SubmittedFlow { flow, members: ids, duplicate })
        })
    }

    /// Writes the chunks of a checked flow and seals it.
    async fn write_flow(
        &self,
        fields: wire::NewFlow,
        chunks: Vec<Chunk>,
        late: Vec<Placed<NewEdge>>,
        seal: bool,
    ) -> Result<(Flow, bool), Error> {
        let flow_id = fields.flow_id;
        let route = self.client.route_of_flow(&flow_id);
        let mut chunks = chunks.into_iter();
        let first = chunks.next().unwrap_or_default();
        let rest: Vec<Chunk> = chunks.collect();
        let alone = rest.is_empty() && late.is_empty();
        let first_members = first.members.clone();
        let first_edges = first.edges.clone();
        let call = SubmitFlow { edges: first.edges, flow: fields, members: first.members, seal: seal && alone };
        let (mut flow, duplicate) = match self.with_lanes(route, call, &first.places).await? {
            SubmitFlowReply::Created { flow } => (flow, false),
            SubmitFlowReply::Duplicate { flow } => (flow, true),
        };
        if alone && !duplicate || flow.sealed_at.is_some() {
            return Ok((flow, duplicate));
        }
        if duplicate {
            let call = AddMembers { edges: first_edges, flow_id, members: first_members };
            self.with_lanes(route, call, &first.places).await?;
        }
        for chunk in rest {
            let call = AddMembers { edges: chunk.edges, flow_id, members: chunk.members };
            self.with_lanes(route, call, &chunk.places).await?;
        }
        for edges in late.chunks(EDGES) {
            let (edges, given) =
                (edges.iter().map(|(_, edge)| edge.clone()).collect(), edges.iter().map(|(at, _)| *at));
            let places = Places { edges: given.collect(), ..Places::default() };
            let call = AddEdges { edges, flow_id, version: None };
            self.client.call(route, &call).await.map_err(|error| places.named(error))?;
        }
        if seal {
            flow = self.seal_flow(flow_id).await?;
        }
        Ok((flow, duplicate))
    }

    /// Makes the call; what it asks to be told first (lanes, depths) is told and the call repeated.
    async fn with_lanes<C: CarriesMembers>(
        &self,
        route: Route,
        mut call: C,
        places: &Places,
    ) -> Result<C::Reply, Error> {
        let mut tries = 1;
        loop {
            let error = match self.client.call(route, &call).await {
                Err(error) if tries < TRIES => places.named(error),
                answer => return answer.map_err(|error| places.named(error)),
            };
            tries += 1;
            let lanes: BTreeSet<(String, String)> =
                call.members().iter().map(|m| (m.submission.namespace.clone(), m.submission.lane.clone())).collect();
            self.tell_lanes(route, &error, &lanes, |lane, depth| {
                for member in call.members().iter_mut().filter(|m| m.submission.lane == *lane) {
                    member.submission.lane_depth = Some(depth);
                }
            })
            .await?;
        }
    }

    /// Tells a partition about lanes it has not seen, or looks up their depths; any other refusal is the answer.
    pub(super) async fn tell_lanes(
        &self,
        route: Route,
        error: &Error,
        lanes: &BTreeSet<(String, String)>,
        mut depth_is: impl FnMut(&String, i64),
    ) -> Result<(), Error> {
        match refused_with(error) {
            Some(ErrorCode::LaneUnseen) => {
                for (namespace, lane) in lanes {
                    self.show_lane(route, namespace, lane).await?;
                }
            }
            Some(ErrorCode::LaneDepthNeeded) => {
                for (namespace, lane) in lanes {
                    depth_is(lane, self.lane_depth(namespace, lane).await?);
                }
            }
            Some(ErrorCode::TryAgain) => tokio::time::sleep(WHILE_MOVING).await,
            _ => return Err(error.clone()),
        }
        Ok(())
    }

    /// Adds members with the edges into them. Up to 128 members with 1_024 edges are added in one call, all or none; more go in
    /// several, upstreams first.
    pub async fn add_members(
        &self,
        flow_id: FlowId,
        mut members: Vec<NewMember>,
        edges: Vec<NewEdge>,
    ) -> Result<Vec<AddedMember>, Error> {
        if let Some(at) = members.iter().position(|member| member.flow.is_some()) {
            let problem = "a flow in place of a member is part of a flow that is submitted whole";
            return Err(invalid(format!("members[{at}].flow"), problem).into());
        }
        let flow = self.flow(flow_id).await?;
        let defaults = Defaults {
            namespace: flow.namespace,
            lane: flow.default_lane.unwrap_or_else(|| "default".to_owned()),
            retry: flow.default_retry,
        };
        let mut members: Vec<wire::NewMember> = members.iter_mut().map(|m| prepared(flow_id, m, &defaults)).collect();
        for (at, member) in members.iter_mut().enumerate() {
            let field = || format!("members[{at}].completion_webhook");
            self.check_webhook(field, member.submission.completion_webhook.as_deref())?;
            self.check_quotas(&member.submission.namespace, member.submission.quotas.as_deref()).await?;
            self.attach_budgets(&mut member.submission, &[flow_id]).await?;
        }
        let given: Vec<String> = members.iter().map(|member| member.key.clone()).collect();
        let (chunks, late) = chunks(ordered(members, edges, false)?);
        if !late.is_empty() {
            return Err(invalid(
                "edges",
                format!("must hold at most {EDGES} edges into one member of a flow that runs"),
            )
            .into());
        }
        let route = self.client.route_of_flow(&flow_id);
        let mut added = BTreeMap::new();
        for chunk in chunks {
            let call = AddMembers { edges: chunk.edges, flow_id, members: chunk.members };
            let AddMembersReply::Added { items, .. } = self.with_lanes(route, call, &chunk.places).await?;
            added.extend(items.into_iter().map(|item| (item.key.clone(), item)));
        }
        Ok(given.iter().filter_map(|key| added.remove(key)).collect())
    }

    /// Adds edges between members that are there; a cycle is refused, whatever else is added meanwhile.
    pub async fn add_edges(&self, flow_id: FlowId, edges: Vec<NewEdge>) -> Result<i64, Error> {
        if edges.len() > EDGES {
            return Err(invalid("edges", format!("must hold at most {EDGES} items, got {}", edges.len())).into());
        }
        let route = self.client.route_of_flow(&flow_id);
        let mut checks = 1;
        loop {
            let graph = self.graph(flow_id).await?;
            stays_acyclic(&graph, &edges)?;
            let call = AddEdges { edges: edges.clone(), flow_id, version: Some(graph.version) };
            match self.client.call(route, &call).await {
                Err(error) if checks < CHECKS && refused_with(&error) == Some(ErrorCode::FlowChanged) => checks += 1,
                answer => {
                    let AddEdgesReply::Added { count, .. } = answer?;
                    return Ok(count);
                }
            }
        }
    }

    /// Releases the members a flow holds.
    pub async fn seal_flow(&self, flow_id: FlowId) -> Result<Flow, Error> {
        let route = self.client.route_of_flow(&flow_id);
        let (SealFlowReply::Sealed { flow } | SealFlowReply::Already { flow }) =
            self.client.call(route, &SealFlow { flow_id }).await?;
        Ok(flow)
    }

    /// Cancels a flow: when this answers, none of its members can be claimed any more. With `all` it also waits until every
    /// member the policy cancels is cancelled.
    pub async fn cancel_flow(
        &self,
        flow_id: FlowId,
        policy: CancelPolicy,
        actor: &str,
        reason: Option<&str>,
        all: bool,
    ) -> Result<CancelFlowReply, Error> {
        let route = self.client.route_of_flow(&flow_id);
        let call = CancelFlow { actor: actor.to_owned(), flow_id, policy, reason: reason.map(str::to_owned) };
        let answer = self.client.call(route, &call).await?;
        let mut more = all && matches!(&answer, CancelFlowReply::Cancelled { more: true, .. });
        while more {
            let walk = WalkFlow { flow_id, limit: STEP };
            let WalkFlowReply::Walked { flow, .. } = self.client.call(route, &walk).await?;
            more = flow.as_ref().is_some_and(|flow| flow.walk.as_deref() == Some("cancel"));
        }
        Ok(answer)
    }

    /// A flow with its state and counts.
    pub async fn flow(&self, flow_id: FlowId) -> Result<Flow, Error> {
        let route = self.client.route_of_flow(&flow_id);
        let DescribeFlowReply::Found { flow } = self.client.call(route, &DescribeFlow { flow_id }).await?;
        Ok(flow)
    }

    /// How a flow stands, and a mark that makes its end announced.
    pub async fn await_flow(&self, flow_id: FlowId) -> Result<AwaitFlowReply, Error> {
        self.client.call(self.client.route_of_flow(&flow_id), &AwaitFlow { flow_id }).await
    }

    /// Members of a flow, in the order they were added, after a number.
    pub async fn members(&self, flow_id: FlowId, after: Option<i64>, limit: i64) -> Result<MemberPage, Error> {
        let after = after.map(|member| GraphPosition { member, edge: 0 });
        let call = ReadFlow { after, edges: false, flow_id, limit };
        let ReadFlowReply::Page { members, next, .. } =
            self.client.call(self.client.route_of_flow(&flow_id), &call).await?;
        Ok(MemberPage { items: members, next: next.map(|next| next.member) })
    }

    /// The first members of a flow, and the edges out of them unless these are too many.
    pub(crate) async fn first_members(
        &self,
        flow_id: FlowId,
        members_max: usize,
        edges_max: usize,
    ) -> Result<FirstMembers, Error> {
        let route = self.client.route_of_flow(&flow_id);
        let mut first = FirstMembers::default();
        let mut after: Option<GraphPosition> = None;
        loop {
            let left = members_max.saturating_sub(first.members.len());
            // A page may stop amid the edges of a member. They are read on even when no further member fits.
            let amid = after.as_ref().is_some_and(|after| after.edge > 0) && !first.edges_omitted;
            if left == 0 && !amid {
                first.next = after.map(|after| after.member);
                return Ok(first);
            }
            let limit = i64::try_from(left.max(1)).unwrap_or(1);
            let call = ReadFlow { after, edges: !first.edges_omitted, flow_id, limit };
            let ReadFlowReply::Page { members, edges, next, .. } = self.client.call(route, &call).await?;
            first.members.extend(members);
            first.edges.extend(edges);
            first.edges_omitted |= first.edges.len() > edges_max;
            match next {
                // Without edges the page goes on after the member.
                Some(next) if first.edges_omitted => after = Some(GraphPosition { edge: 0, ..next }),
                Some(next) => after = Some(next),
                None => return Ok(first),
            }
        }
    }

    /// All members and edges of a flow, at one version of its graph.
    pub async fn graph(&self, flow_id: FlowId) -> Result<Graph, Error> {
        let route = self.client.route_of_flow(&flow_id);
        let mut graph = Graph::default();
        let mut after = None;
        loop {
            let call = ReadFlow { after: after.clone(), edges: true, flow_id, limit: PAGE };
            let ReadFlowReply::Page { members, edges, next, version } = self.client.call(route, &call).await?;
            if after.is_some() && version != graph.version {
                // It grew meanwhile: what was read does not belong together.
                graph = Graph::default();
                after = None;
                continue;
            }
            graph.version = version;
            graph.members.extend(members);
            graph.edges.extend(edges);
            match next {
                Some(next) => after = Some(next),
                None => return Ok(graph),
            }
        }
    }

    /// One page of flows that match, after a cursor of an earlier page.
    pub async fn flows(&self, filter: &FlowFilter, after: Option<FlowCursor>, limit: usize) -> Result<FlowPage, Error> {
        let limit = limit.max(1);
        let shares: Vec<Share<Flow, Reverse<FlowCursor>>> = stream::iter(self.client.execution_routes())
            .map(|route| async move {
                let call = ListFlows {
                    after: after.map(|Place { created_at, id }| FlowPosition { created_at, flow_id: id }),
                    kind: filter.kind.clone(),
                    limit: i64::try_from(limit).unwrap_or(PAGE),
                    namespace: filter.namespace.clone(),
                    state: filter.state,
                };
                let ListFlowsReply::Page { items, last, more } = self.client.call(route, &call).await?;
                let looked_to = last.filter(|_| more);
                Ok::<_, Error>((
                    items,
                    looked_to.map(|to| Reverse(Place { created_at: to.created_at, id: to.flow_id })),
                ))
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        // Newest first.
        let place = |flow: &Flow| Reverse(Place { created_at: flow.created_at, id: flow.flow_id });
        let (items, next) = merge(shares, limit, place);
        Ok(FlowPage { items, next: next.map(|Reverse(next)| next) })
    }
}

/// The refusal when the edges would close a cycle in the graph.
fn stays_acyclic(graph: &Graph, edges: &[NewEdge]) -> Result<(), EngineError> {
    let by_id: BTreeMap<ExecutionId, usize> =
        graph.members.iter().enumerate().map(|(at, m)| (m.execution_id, at)).collect();
    let by_key: BTreeMap<&str, usize> = graph.members.iter().enumerate().map(|(at, m)| (m.key.as_str(), at)).collect();
    let there = graph.edges.iter().filter_map(|e| Some((*by_id.get(&e.from)?, *by_id.get(&e.to)?)));
    // A key nobody has is the library's to refuse.
    let new = edges.iter().filter_map(|e| Some((*by_key.get(e.from.as_str())?, *by_key.get(e.to.as_str())?)));
    let all: Vec<(usize, usize)> = there.chain(new).collect();
    graph::order(graph.members.len(), &all)
        .map(|_| ())
        .map_err(|Cycle(nodes)| cycle(&nodes.iter().map(|&at| graph.members[at].key.as_str()).collect::<Vec<_>>()))
}
