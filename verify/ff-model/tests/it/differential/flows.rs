//! Calls about flows and children. This file creates, claims and ends the members itself, in a separate lane.

use ff_core::types::{AttemptId, ExecutionId, FlowId, LeaseId, SuspensionId};
use ff_model::op::read_answer;
use ff_model::store::ROUTE;
use ff_script::generated as g;
use ff_script::{Bytes, Call, Invocation};
use rand::Rng;
use rand::rngs::StdRng;
use uuid::Uuid;

use super::call;

const LANE: &str = "flow";

/// What the calls of one round have created so far.
#[derive(Default)]
pub struct Flows {
    flows: Vec<FlowId>,
    /// Members and children, with the flow or parent of each.
    members: Vec<(ExecutionId, String)>,
    held: Vec<(ExecutionId, g::Fence)>,
    made: u64,
}

fn pick<T: Clone>(rng: &mut StdRng, list: &[T]) -> Option<T> {
    (!list.is_empty()).then(|| list[rng.random_range(0..list.len())].clone())
}

fn bytes(rng: &mut StdRng) -> Option<Bytes> {
    let len = [0, 1, 30, 5_000][rng.random_range(0..4)];
    rng.random_ratio(3, 4).then(|| Bytes((0..len).map(|_| rng.random()).collect()))
}

impl Flows {
    /// The first call of every round.
    pub fn preamble(now: i64) -> Invocation {
        let definition = g::LaneDefinition::new(g::LaneState::Active, 1_000, g::Fairness::Fifo, 1);
        let entry = g::LaneEntry { namespace: "default".to_owned(), lane: LANE.to_owned(), version: 1, definition };
        call(ROUTE, &g::InstallLane { entry }, now)
    }

    /// A new id. All ids share the partition and the last digits.
    fn id(&mut self, kind: u64) -> Uuid {
        self.made += 1;
        Uuid::from_u64_pair(kind << 32 | self.made, 0xf00d_0000)
    }

    /// Half of them have no rare fields.
    fn submission(&mut self, rng: &mut StdRng) -> g::Submission {
        let id = ExecutionId::from_uuid(self.id(0xe));
        let mut s = g::Submission::new(id, "default".to_owned(), LANE.to_owned(), "member".to_owned(), "0".repeat(32));
        if rng.random() {
            s.input = bytes(rng);
            s.trace_parent = rng.random_ratio(1, 3).then(|| "00-1-2-01".to_owned());
            return s;
        }
        s.retry = Some(g::Retry { max_attempts: Some(rng.random_range(1..3)), ..g::Retry::default() });
        s.delay_ms = rng.random_ratio(1, 6).then_some(300);
        s.start_within_ms = rng.random_ratio(1, 6).then(|| rng.random_range(0..3_000));
        s.deadline_ms = rng.random_ratio(1, 8).then(|| rng.random_range(0..20_000));
        s.retention_ms = rng.random_ratio(1, 2).then(|| rng.random_range(0..5_000));
        s.idempotency_key = rng.random_ratio(1, 8).then(|| format!("k{}", rng.random_range(0..4)));
        s.priority = rng.random_ratio(1, 3).then(|| rng.random_range(0..3));
        s
    }

    fn new_members(&mut self, rng: &mut StdRng, flow: FlowId, most: u64) -> Vec<g::NewMember> {
        let count = rng.random_range(0..=most);
        let mut list = Vec::new();
        for _ in 0..count {
            let submission = self.submission(rng);
            let id = submission.execution_id;
            // Sometimes an existing key.
            let key = if rng.random_ratio(1, 12) { "m1".to_owned() } else { format!("m{}", self.made) };
            self.members.push((id, flow.to_string()));
            let inbound = rng.random_ratio(1, 3).then(|| {
                let policy = g::InboundPolicy::ALL[rng.random_range(0..3)];
                let k = (policy == g::InboundPolicy::Quorum).then(|| rng.random_range(1..3));
                let on_satisfied = rng.random_ratio(1, 3).then_some(g::OnSatisfied::CancelRemaining);
                g::Inbound { k, on_satisfied, ..g::Inbound::new(policy) }
            });
            list.push(g::NewMember { inbound, ..g::NewMember::new(key, submission) });
        }
        list
    }

    /// Edges between these keys, mostly forward.
    fn new_edges(rng: &mut StdRng, keys: &[String]) -> Vec<g::NewEdge> {
        let count = if keys.len() < 2 { 0 } else { rng.random_range(0..=keys.len() * 3 / 2) };
        (0..count)
            .map(|_| {
                let (mut a, mut b) = (rng.random_range(0..keys.len()), rng.random_range(0..keys.len()));
                if a > b && rng.random_ratio(9, 10) {
                    std::mem::swap(&mut a, &mut b);
                }
                let on = g::EdgeOn::ALL[[0, 0, 0, 1, 2][rng.random_range(0..5)]];
                let pass_as = rng.random_ratio(1, 3).then(|| format!("from {}", keys[a]));
                g::NewEdge { pass_as, ..g::NewEdge::new(keys[a].clone(), keys[b].clone(), on) }
            })
            // Most edges from a member to itself are left out, because they fail the whole call.
            .filter(|edge| edge.from != edge.to || edge.pass_as.is_some())
            .collect()
    }

    fn submit(&mut self, rng: &mut StdRng, now: i64) -> Invocation {
        let flow_id = FlowId::from_uuid(self.id(0xf));
        let policy = g::OnMemberFailure::ALL[rng.random_range(0..3)];
        let mut flow = g::NewFlow::new(flow_id, "default".to_owned(), "pipeline".to_owned(), policy, "0".repeat(32));
        flow.deadline_ms = rng.random_ratio(1, 8).then(|| rng.random_range(0..30_000));
        flow.completion_webhook = rng.random_ratio(1, 4).then(|| "https://flows.example.org/".to_owned());
        flow.retention_ms = rng.random_ratio(1, 2).then(|| rng.random_range(0..5_000));
        let members = self.new_members(rng, flow_id, 6);
        let keys: Vec<String> = members.iter().map(|member| member.key.clone()).collect();
        let edges = Self::new_edges(rng, &keys);
        self.flows.push(flow_id);
        call(ROUTE, &g::SubmitFlow { edges, flow, members, seal: rng.random_ratio(2, 3) }, now)
    }

    /// A call about a flow.
    fn about_flow(&mut self, rng: &mut StdRng, flow_id: FlowId, now: i64) -> Invocation {
        let text = flow_id.to_string();
        let known: Vec<String> = self.members.iter().filter(|(_, of)| *of == text).map(|(id, _)| key_of(*id)).collect();
        match rng.random_range(0..14) {
            0..=2 => {
                let members = self.new_members(rng, flow_id, 3);
                let keys: Vec<String> = known.into_iter().chain(members.iter().map(|m| m.key.clone())).collect();
                call(ROUTE, &g::AddMembers { edges: Self::new_edges(rng, &keys), flow_id, members }, now)
            }
            3 => {
                let version = rng.random_ratio(2, 3).then(|| rng.random_range(0..4));
                call(ROUTE, &g::AddEdges { version, ..g::AddEdges::new(Self::new_edges(rng, &known), flow_id) }, now)
            }
            4 | 5 => call(ROUTE, &g::SealFlow { flow_id }, now),
            6 => {
                let policy = g::CancelPolicy::ALL[rng.random_range(0..3)];
                call(ROUTE, &g::CancelFlow::new("ops".to_owned(), flow_id, policy), now)
            }
            7 => call(ROUTE, &g::WalkFlow { flow_id, limit: rng.random_range(1..4) }, now),
            8 => call(ROUTE, &g::AwaitFlow { flow_id }, now),
            9 => call(ROUTE, &g::DescribeFlow { flow_id }, now),
            10 | 11 => {
                let after = rng
                    .random_ratio(1, 2)
                    .then(|| g::GraphPosition { member: rng.random_range(0..4), edge: rng.random_range(0..2) });
                call(ROUTE, &g::ReadFlow { after, edges: rng.random(), flow_id, limit: rng.random_range(1..5) }, now)
            }
            12 => {
                let state = rng.random_ratio(1, 3).then(|| g::FlowState::ALL[rng.random_range(0..6)]);
                let after = rng.random_ratio(1, 3).then_some(g::FlowPosition { created_at: now - 1_000, flow_id });
                call(ROUTE, &g::ListFlows { after, state, ..g::ListFlows::new(rng.random_range(1..4)) }, now)
            }
            _ => {
                let core = format!("ff:flow:{{p:0}}:{flow_id}:core");
                call(ROUTE, &g::CheckKeys { keys: vec![core.as_str().into()], repair: rng.random() }, now)
            }
        }
    }

    fn claim(&mut self, rng: &mut StdRng, now: i64) -> Invocation {
        let max = rng.random_range(1..9);
        let attempt_ids = (0..max).map(|_| AttemptId::from_uuid(self.id(0xa))).collect();
        let lease_ids = (0..max).map(|_| LeaseId::from_uuid(self.id(0xb))).collect();
        let claim = g::ClaimExecutions {
            attempt_ids,
            capabilities: vec![],
            kinds: None,
            lease_ids,
            instance: "w-flow".to_owned(),
            lane: LANE.to_owned(),
            lease_ttl_ms: rng.random_range(1_000..60_000),
            max,
            namespace: "default".to_owned(),
            worker_id: "model".to_owned(),
        };
        call(ROUTE, &claim, now)
    }

    /// A call under a lease.
    fn under_lease(&mut self, rng: &mut StdRng, now: i64) -> Invocation {
        let at = rng.random_range(0..self.held.len());
        let (execution_id, fence) = self.held[at];
        match rng.random_range(0..10) {
            0 | 1 => {
                let count = rng.random_range(1..4);
                let children = (0..count)
                    .map(|n| {
                        let submission = self.submission(rng);
                        self.members.push((submission.execution_id, execution_id.to_string()));
                        let parent_close = rng.random_ratio(1, 3).then_some(g::ParentClose::Abandon);
                        g::NewChild { key: Some(format!("c{n}")), parent_close, submission }
                    })
                    .collect();
                call(ROUTE, &g::SpawnChildren::new(children, execution_id, fence), now)
            }
            2 | 3 => {
                let wait_id = SuspensionId::from_uuid(self.id(0xd));
                call(ROUTE, &g::WaitChildren::new(execution_id, fence, wait_id), now)
            }
            4 => {
                let call_back = g::FailExecution::new("net".to_owned(), 500, execution_id, fence, "no".to_owned());
                self.held.remove(at);
                call(ROUTE, &call_back, now)
            }
            5 => call(ROUTE, &g::YieldExecution { execution_id, fence }, now),
            _ => {
                self.held.remove(at);
                let result = bytes(rng);
                call(ROUTE, &g::CompleteExecution { result, ..g::CompleteExecution::new(execution_id, fence) }, now)
            }
        }
    }

    /// Ends everything that runs. Many ends of one flow may share a list.
    pub fn ends(&mut self, rng: &mut StdRng, now: i64) -> Vec<Invocation> {
        let held = std::mem::take(&mut self.held);
        let end = |(execution_id, fence)| match rng.random_range(0..8) {
            0 => call(ROUTE, &g::FailExecution::new("net".to_owned(), 500, execution_id, fence, "no".to_owned()), now),
            1 => {
                let stale = g::Fence { lease_epoch: 1, ..fence };
                call(ROUTE, &g::CompleteExecution::new(execution_id, stale), now)
            }
            _ => call(ROUTE, &g::CompleteExecution::new(execution_id, fence), now),
        };
        held.into_iter().map(end).collect()
    }

    /// An operator action on a member or a child.
    fn about_member(rng: &mut StdRng, id: ExecutionId, now: i64) -> Invocation {
        let ops = || "ops".to_owned();
        match rng.random_range(0..9) {
            0..=2 => call(ROUTE, &g::ReplayExecution::new(ops(), id), now),
            3 => {
                let grace_ms = rng.random_ratio(1, 2).then_some(500);
                call(ROUTE, &g::CancelExecution { grace_ms, ..g::CancelExecution::new(ops(), id) }, now)
            }
            4 => call(ROUTE, &g::HoldExecution::new(ops(), id), now),
            5 => call(ROUTE, &g::ReleaseExecution::new(ops(), id), now),
            6 => call(ROUTE, &g::DeleteExecution { actor: "ops".to_owned(), execution_id: id }, now),
            7 => call(ROUTE, &g::ReadChildren::new(id, rng.random_range(1..5)), now),
            _ => call(ROUTE, &g::ExplainExecution { execution_id: id }, now),
        }
    }

    /// One call.
    pub fn call_of(&mut self, rng: &mut StdRng, now: i64) -> Invocation {
        match rng.random_range(0..20) {
            0..=1 => self.submit(rng, now),
            2..=5 => match pick(rng, &self.flows) {
                Some(flow_id) => self.about_flow(rng, flow_id, now),
                None => self.submit(rng, now),
            },
            6..=9 => self.claim(rng, now),
            10..=15 if !self.held.is_empty() => self.under_lease(rng, now),
            16..=17 => match pick(rng, &self.members) {
                Some((id, _)) => Self::about_member(rng, id, now),
                None => self.submit(rng, now),
            },
            _ => call(ROUTE, &g::FireDue { draw: 500, limit: rng.random_range(1..20) }, now),
        }
    }

    /// Records the leases of a successful claim.
    pub fn learn(&mut self, function: &str, reply: &[u8]) {
        if function != g::ClaimExecutions::FUNCTION {
            return;
        }
        if let Ok(Ok(g::ClaimExecutionsReply::Claimed { tasks, .. })) = read_answer::<g::ClaimExecutions>(reply) {
            for task in tasks {
                let g::Task { attempt_id, lease_id, lease_epoch, .. } = task;
                self.held.retain(|(id, _)| *id != task.execution_id);
                self.held.push((task.execution_id, g::Fence { attempt_id, lease_id, lease_epoch }));
            }
        }
    }
}

/// The most likely key of a member; the member's id contains its number.
fn key_of(id: ExecutionId) -> String {
    format!("m{}", id.as_uuid().as_u64_pair().0 & 0xffff_ffff)
}
