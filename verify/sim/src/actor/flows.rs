//! Submits flows, whole or in parts. Dies between the parts, adds to running flows, and cancels flows.

use std::collections::BTreeMap;

use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::*;
use uuid::Uuid;

use super::submitter::{draw_member, fnv, install_in, with_seed};
use super::{Actor, NAMESPACE, Scene, treasurer};
use crate::request::{Outcome, Reply, Request};

/// Number of flows that one submitter creates.
const FLOWS_MAX: u32 = 3;

/// The remaining parts of a flow, and what it consists of so far.
struct Plan {
    keys: Vec<String>,
    /// Parts that were not added yet.
    pieces: Vec<(Vec<NewMember>, Vec<NewEdge>)>,
    version: i64,
    grown: u32,
}

#[derive(Default)]
pub(crate) struct Flows {
    made: u32,
    plans: BTreeMap<FlowId, Plan>,
}

fn inbound(scene: &mut Scene<'_>) -> Option<Inbound> {
    let policy = match scene.rng.weighted(&[50, 30, 20]) {
        0 => return None,
        1 => InboundPolicy::AnyOf,
        _ => InboundPolicy::Quorum,
    };
    let k = (policy == InboundPolicy::Quorum).then(|| scene.rng.between(1, 2));
    let on_satisfied = scene.rng.percent(40).then_some(OnSatisfied::CancelRemaining);
    Some(Inbound { policy, k, on_satisfied })
}

impl Flows {
    fn members(flow_id: FlowId, from: usize, count: usize, scene: &mut Scene<'_>) -> Vec<NewMember> {
        let seed = u16::from_be_bytes(flow_id.as_uuid().as_bytes()[14..16].try_into().expect("two bytes"));
        (from..from + count)
            .map(|n| {
                let mut submission = draw_member(scene);
                submission.execution_id = with_seed(scene.rng.uuid(), seed);
                scene.board.known.push(submission.execution_id);
                let inbound = inbound(scene);
                NewMember { inbound, ..NewMember::new(format!("m{n}"), submission) }
            })
            .collect()
    }

    /// Edges into these members, from any earlier ones.
    fn edges(keys: &[String], into: std::ops::Range<usize>, scene: &mut Scene<'_>) -> Vec<NewEdge> {
        let mut edges = Vec::new();
        for to in into {
            for from in 0..to {
                if scene.rng.percent(100 / (to as u32 + 1) + 12) {
                    let on = [EdgeOn::Success, EdgeOn::Completion, EdgeOn::Failure][scene.rng.weighted(&[60, 22, 18])];
                    let pass_as = scene.rng.percent(50).then(|| format!("from {}", keys[from]));
                    edges.push(NewEdge { pass_as, ..NewEdge::new(keys[from].clone(), keys[to].clone(), on) });
                }
            }
        }
        edges
    }

    fn submit(&mut self, scene: &mut Scene<'_>) {
        self.made += 1;
        let flow_id = FlowId::from_uuid(scene.rng.uuid());
        let count = 2 + scene.rng.below(6);
        let keys: Vec<String> = (0..count).map(|n| format!("m{n}")).collect();
        let mut members = Self::members(flow_id, 0, count, scene);
        let mut edges = Self::edges(&keys, 0..count, scene);
        let policies = [OnMemberFailure::Continue, OnMemberFailure::FailFlow, OnMemberFailure::IsolateBranch];
        let policy = policies[scene.rng.weighted(&[45, 25, 30])];
        let digest = format!("{:016x}{:016x}", fnv(flow_id.to_string().as_bytes()), 0);
        let mut flow = NewFlow::new(flow_id, NAMESPACE.to_owned(), "pipeline".to_owned(), policy, digest);
        flow.retention_ms = Some(scene.rng.between(0, 10_000));
        flow.budgets = treasurer::of_flow(scene);
        flow.deadline_ms = scene.rng.percent(8).then(|| scene.rng.between(1_000, 15_000));
        let whole = scene.rng.percent(50);
        let mut pieces = Vec::new();
        if !whole {
            let at = scene.rng.below(count);
            let later = members.split_off(at);
            let names: Vec<String> = later.iter().map(|member| member.key.clone()).collect();
            let (second, first): (Vec<_>, Vec<_>) = edges.into_iter().partition(|edge| names.contains(&edge.to));
            edges = first;
            pieces.push((later, second));
        }
        scene.board.flows.push(flow_id);
        self.plans.insert(flow_id, Plan { keys, pieces, version: 0, grown: 0 });
        tell(flow_id, scene, SubmitFlow { edges, flow, members, seal: whole });
    }

    /// Sends the next part of a flow, or seals it.
    fn go_on(&mut self, flow_id: FlowId, scene: &mut Scene<'_>) {
        if scene.rng.percent(12) {
            // The process dies, and no other one takes over.
            self.plans.remove(&flow_id);
            return;
        }
        let Some(plan) = self.plans.get_mut(&flow_id) else {
            return;
        };
        match plan.pieces.pop() {
            Some((members, edges)) => tell(flow_id, scene, AddMembers { edges, flow_id, members }),
            None => tell(flow_id, scene, SealFlow { flow_id }),
        }
    }

    /// Adds to an existing flow, whether or not it still runs.
    fn grow(&mut self, flow_id: FlowId, scene: &mut Scene<'_>) {
        let Some(plan) = self.plans.get_mut(&flow_id).filter(|plan| plan.grown < 3) else {
            return;
        };
        plan.grown += 1;
        let count = plan.keys.len();
        if scene.rng.percent(40) {
            let (from, to) = (scene.rng.below(count), scene.rng.below(count));
            let (from, to) = (from.min(to), from.max(to));
            let edge = NewEdge::new(plan.keys[from].clone(), plan.keys[to].clone(), EdgeOn::Success);
            // Sometimes the version of a graph that has changed since.
            let version = Some(plan.version - i64::from(scene.rng.percent(15)));
            let version = version.filter(|version| *version >= 0);
            tell(flow_id, scene, AddEdges { version, ..AddEdges::new(vec![edge], flow_id) });
            return;
        }
        let more = 1 + scene.rng.below(2);
        plan.keys.extend((count..count + more).map(|n| format!("m{n}")));
        let members = Self::members(flow_id, count, more, scene);
        let edges = Self::edges(&plan.keys, count..count + more, scene);
        tell(flow_id, scene, AddMembers { edges, flow_id, members });
    }
}

/// Sends a call about a flow to its partition.
pub(super) fn tell(flow_id: FlowId, scene: &mut Scene<'_>, request: impl Into<Request>) {
    // The ids of members contain the partition of their flow, and so does the flow's own id.
    let id = ExecutionId::from_uuid(Uuid::from_bytes(*flow_id.as_uuid().as_bytes()));
    scene.tell(id, request);
}

impl Actor for Flows {
    fn name(&self) -> String {
        "flow-maker".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        let known: Vec<FlowId> = self.plans.keys().copied().collect();
        match scene.rng.weighted(&[45, 25, 10, 8, 12]) {
            0 if self.made < FLOWS_MAX => self.submit(scene),
            1 if !known.is_empty() => self.grow(*scene.rng.pick(&known), scene),
            2 if !known.is_empty() => {
                let flow_id = *scene.rng.pick(&known);
                let limit = scene.rng.between(1, 4);
                tell(flow_id, scene, WalkFlow { flow_id, limit });
            }
            3 if !known.is_empty() => {
                let flow_id = *scene.rng.pick(&known);
                tell(flow_id, scene, AwaitFlow { flow_id });
            }
            4 if !known.is_empty() => self.go_on(*scene.rng.pick(&known), scene),
            _ => {}
        }
        if self.made < FLOWS_MAX { scene.rng.between(150, 900) } else { scene.rng.between(600, 2_000) }
    }

    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        let Some(flow_id) = request.flow() else {
            return;
        };
        match outcome {
            Outcome::Refused(error) if error.code() == "lane_unseen" => {
                // Every lane is installed, and the same call is sent again.
                for lane in scene.board.lanes.keys().cloned().collect::<Vec<_>>() {
                    let id = ExecutionId::from_uuid(Uuid::from_bytes(*flow_id.as_uuid().as_bytes()));
                    install_in(&lane, id, scene);
                }
                let route = scene.board.route_of(&ExecutionId::from_uuid(*flow_id.as_uuid()));
                scene.say(route, request.clone());
            }
            Outcome::Reply(Reply::SubmitFlow(_) | Reply::AddMembers(_)) => {
                if let Outcome::Reply(Reply::AddMembers(AddMembersReply::Added { version, .. })) = outcome
                    && let Some(plan) = self.plans.get_mut(&flow_id)
                {
                    plan.version = *version;
                }
                if let Outcome::Reply(Reply::SubmitFlow(
                    SubmitFlowReply::Created { flow } | SubmitFlowReply::Duplicate { flow },
                )) = outcome
                    && let Some(plan) = self.plans.get_mut(&flow_id)
                {
                    plan.version = flow.version;
                    if flow.sealed_at.is_some() {
                        return;
                    }
                }
                self.go_on(flow_id, scene);
            }
            Outcome::Reply(Reply::AddEdges(AddEdgesReply::Added { version, .. })) => {
                if let Some(plan) = self.plans.get_mut(&flow_id) {
                    plan.version = *version;
                }
            }
            _ => {}
        }
    }
}
