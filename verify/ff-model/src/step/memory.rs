//! What a run remembers beyond the model, and how steps become calls.

mod waits;

use std::collections::BTreeMap;

use ff_core::types::{AttemptId, ExecutionId, LeaseId, WaitpointId};
use ff_script::Kinds;
use ff_script::generated::{
    AdmissionReason, AppendFrames, AwaitResult, BlockExecution, CancelAttempt, CancelExecution, ChangeExecution,
    ClaimExecutions, CompleteExecution, ConsumeGrant, DelayExecution, DeleteExecution, DeliverSignal,
    DescribeExecution, DrainLeases, FailExecution, Fairness, Fence, FireDue, GetAttempt, GrantReclaim, HoldExecution,
    InstallLane, IssueGrants, LaneDefinition, LaneDepth, LaneEntry, LaneState, NextDue, ReleaseExecution, ReleaseGrant,
    RenewLease, ReplayExecution, ReviewRoutes, RevokeLease, Submission, SubmitExecution, SuspendExecution,
    UnblockExecution, UpdateProgress, WorkerClass, YieldExecution,
};
use uuid::Uuid;

use super::proposal::{LANES, capabilities, kinds, payload, retry, tags};
use super::{Act, Definition, Pick, Proof, Proposal, Step, Wait};
use crate::model::{Execution, Model};
use crate::op::Op;

const REASONS: [&str; 3] = ["", "too late", "é\u{0}\u{1F980}"];
const CATEGORIES: [&str; 3] = ["net", "bug", "timeout"];

/// All earlier calls, so that they can be repeated.
#[derive(Default)]
pub struct Memory {
    minted: u64,
    submissions: Vec<Submission>,
    claims: Vec<ClaimExecutions>,
    issues: Vec<IssueGrants>,
    /// All grants so far: execution, grant, worker.
    grants: Vec<(ExecutionId, Uuid, String)>,
    /// All fences so far.
    fences: BTreeMap<ExecutionId, Vec<Fence>>,
    requests: Vec<Uuid>,
    leases: Vec<LeaseId>,
    suspends: Vec<SuspendExecution>,
    signals: Vec<DeliverSignal>,
    appends: Vec<AppendFrames>,
    /// All waitpoint ids so far.
    waitpoints: Vec<WaitpointId>,
    /// All tokens so far, as digests.
    tokens: Vec<(WaitpointId, String)>,
}

impl Memory {
    /// The first calls of every run: they define all lanes but the last.
    pub fn preamble() -> Vec<Op> {
        let plain =
            Definition { state: 0, weight: 0, fair: None, max_depth: None, max_active: None, policy: 0, older: false };
        (0..4).map(|lane| install(lane, plain, 1).into()).collect()
    }

    /// Moves the model's time as the step says, and returns the calls to make in one list.
    pub fn resolve(&mut self, step: &Step, model: &mut Model) -> Vec<Op> {
        model.now = match step.wait {
            Wait::Not => model.now,
            Wait::Ms(ms) => model.now + ms,
            Wait::Due(beside) => model
                .next_wake_up()
                .filter(|at| at - model.now < 60_000)
                .map_or(model.now, |at| (at + beside).max(model.now)),
        };
        self.ops(&step.act, model)
    }

    /// Records new leases and grants, which later steps may present.
    pub fn learn(&mut self, model: &Model) {
        for execution in model.executions.values() {
            if let Some(running) = execution.running() {
                let fences = self.fences.entry(execution.id).or_default();
                if fences.last() != Some(&running.fence) {
                    fences.push(running.fence);
                }
            }
            if let Some(grant) = execution.waiting().and_then(|w| w.grant.as_ref())
                && !self.grants.iter().rev().any(|(id, grant_id, _)| *id == execution.id && *grant_id == grant.id)
            {
                self.grants.push((execution.id, grant.id, grant.instance.clone()));
            }
        }
    }

    /// A new id that looks random and is the same in every run.
    fn mint(&mut self) -> Uuid {
        self.minted += 1;
        let mix = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Uuid::from_u64_pair(mix(self.minted), mix(self.minted ^ 0xffff_0000))
    }

    /// An execution for which `fits` is true; sometimes another one, or an id without an execution.
    fn find(&mut self, pick: Pick, model: &Model, fits: impl Fn(&Execution) -> bool) -> ExecutionId {
        let number = usize::from(pick.0);
        let fitting: Vec<ExecutionId> = model.executions.values().filter(|e| fits(e)).map(|e| e.id).collect();
        if number % 8 != 0 && !fitting.is_empty() {
            return fitting[number / 8 % fitting.len()];
        }
        let all: Vec<ExecutionId> = model.executions.keys().copied().collect();
        if all.is_empty() || number % 64 == 0 {
            // The id of a removed execution, or an id that never existed.
            let past = self.submissions.get(number / 64 % (self.submissions.len() + 1)).map(|s| s.execution_id);
            return past.unwrap_or_else(|| ExecutionId::from_uuid(Uuid::from_u64_pair(1, 1)));
        }
        all[number / 8 % all.len()]
    }

    /// An execution with a past or present lease, and a fence for it.
    fn leased(&mut self, of: Pick, proof: Proof, model: &Model) -> (ExecutionId, Fence) {
        // Mostly live leases, but a worker that lost its lease also calls. A forged fence is most useful on a valid
        // lease of plain work, because the library's fast paths must also refuse it.
        let id = if matches!(proof, Proof::Wrong(_)) {
            let is_plain = |e: &Execution| matches!(e.said.kind.as_str(), "plain" | "rush");
            self.find(of, model, |e| is_plain(e) && e.running().is_some_and(|r| model.now < r.until))
        } else if of.0.is_multiple_of(4) {
            self.find(of, model, |e| e.fence().is_some())
        } else {
            self.find(of, model, |e| e.running().is_some())
        };
        let known = model.executions.get(&id).and_then(|e| e.fence().cloned());
        let mut fence = known.unwrap_or_else(|| Fence {
            attempt_id: AttemptId::from_uuid(Uuid::from_u64_pair(2, 2)),
            lease_id: LeaseId::from_uuid(Uuid::from_u64_pair(3, 3)),
            lease_epoch: 7,
        });
        match proof {
            Proof::Current => {}
            Proof::Old(pick) => {
                if let Some(past) = self.fences.get(&id).filter(|past| !past.is_empty()) {
                    fence = past[usize::from(pick.0) % past.len()];
                }
            }
            Proof::Wrong(0) => fence.lease_epoch += 1,
            Proof::Wrong(1) => fence.lease_id = LeaseId::from_uuid(Uuid::from_u64_pair(4, 4)),
            Proof::Wrong(_) => fence.attempt_id = AttemptId::from_uuid(Uuid::from_u64_pair(5, 5)),
        }
        (id, fence)
    }

    /// An earlier grant, mostly an open one.
    fn granted(&self, pick: Pick, model: &Model) -> (ExecutionId, Uuid, String) {
        let number = usize::from(pick.0);
        let open: Vec<&Execution> =
            model.executions.values().filter(|e| e.waiting().is_some_and(|w| w.grant.is_some())).collect();
        if number % 8 != 0
            && let Some(execution) = open.get(number / 8 % open.len().max(1))
            && let Some(grant) = execution.waiting().and_then(|w| w.grant.as_ref())
        {
            return (execution.id, grant.id, grant.instance.clone());
        }
        let nobody = || (ExecutionId::from_uuid(Uuid::from_u64_pair(1, 1)), Uuid::from_u64_pair(6, 6), instance(0));
        self.grants.get(number / 8 % self.grants.len().max(1)).cloned().unwrap_or_else(nobody)
    }

    fn submission(&mut self, proposal: &Proposal, now: i64) -> Submission {
        let id = ExecutionId::from_uuid(self.mint());
        // With a key, the body is one of few, so that repetitions and conflicts occur. Without one, the id decides.
        let body = proposal.key.map_or(0, |(_, _, body)| body);
        let submission = proposal.submission(id, format!("{body:032x}"), now);
        self.submissions.push(submission.clone());
        submission
    }

    fn ops(&mut self, act: &Act, model: &Model) -> Vec<Op> {
        let now = model.now;
        match act {
            Act::SubmitMany(proposals) => {
                let mut submissions: Vec<Submission> =
                    proposals.iter().map(|proposal| self.submission(proposal, now)).collect();
                if submissions.len() == 4 {
                    submissions.push(submissions[0].clone());
                }
                submissions.into_iter().map(|submission| SubmitExecution { submission }.into()).collect()
            }
            Act::Rush { lane, late, fit } => {
                let (namespace, lane) = lane_name(*lane);
                let one = |number: usize, id: ExecutionId| {
                    let plain = Submission::new(id, namespace.clone(), lane.clone(), "rush".to_owned(), "0".repeat(32));
                    let first = number < *late;
                    let deadline_ms = (first && *fit > 1).then_some(1);
                    SubmitExecution {
                        submission: Submission { priority: Some(i64::from(first)), deadline_ms, ..plain },
                    }
                };
                let count = late + fit;
                (0..count).map(|number| one(number, ExecutionId::from_uuid(self.mint())).into()).collect()
            }
            Act::RenewMany(list) => {
                let renewals = list.iter().map(|(of, proof)| {
                    let (execution_id, fence) = self.leased(*of, *proof, model);
                    RenewLease::new(execution_id, fence).into()
                });
                renewals.collect()
            }
            Act::CompleteMany(list) => {
                let completions = list.iter().map(|(of, proof)| {
                    let (execution_id, fence) = self.leased(*of, *proof, model);
                    let result = payload(of.0 as u8);
                    CompleteExecution { result, ..CompleteExecution::new(execution_id, fence) }.into()
                });
                completions.collect()
            }
            act => vec![self.op(act, model)],
        }
    }

    fn op(&mut self, act: &Act, model: &Model) -> Op {
        let now = model.now;
        match act {
            Act::Submit(proposal) => SubmitExecution { submission: self.submission(proposal, now) }.into(),
            Act::Resubmit { which, other_body } => {
                let Some(known) = self.submissions.get(usize::from(which.0) % self.submissions.len().max(1)) else {
                    return NextDue {}.into();
                };
                let mut submission = known.clone();
                if *other_body {
                    submission.body_digest = "f".repeat(64);
                }
                SubmitExecution { submission }.into()
            }
            Act::Claim { lane, worker, able, max, ttl_ms } => {
                let (namespace, lane) = lane_name(*lane);
                let lease_ids = (0..*max).map(|_| self.lease(None)).collect();
                let call = ClaimExecutions {
                    attempt_ids: (0..*max).map(|_| AttemptId::from_uuid(self.mint())).collect(),
                    capabilities: capabilities(*able),
                    kinds: kinds(*able).map(|kinds| Kinds::of(kinds).packed()),
                    lease_ids,
                    instance: instance(*worker),
                    lane,
                    lease_ttl_ms: *ttl_ms,
                    max: *max,
                    namespace,
                    worker_id: "model".to_owned(),
                };
                self.claims.push(call.clone());
                call.into()
            }
            Act::ClaimAgain { which } => {
                match self.claims.iter().rev().nth(usize::from(which.0) % self.claims.len().clamp(1, 8)) {
                    Some(call) => call.clone().into(),
                    None => NextDue {}.into(),
                }
            }
            Act::InstallLane { lane, definition } => {
                let version =
                    model.lanes.get(&path(*lane)).map_or(0, |known| known.version) + i64::from(!definition.older);
                install(*lane, *definition, version).into()
            }
            Act::ReviewRoutes { lane, able, cursor, limit } => {
                let (namespace, lane) = lane_name(*lane);
                let class = |bits: &u8| WorkerClass { capabilities: capabilities(*bits), kinds: kinds(*bits) };
                let workers = able.iter().map(class).collect();
                ReviewRoutes { cursor: *cursor, lane, limit: *limit, namespace, skip: None, workers }.into()
            }
            Act::FireDue { limit, draw } => FireDue { draw: *draw, limit: *limit }.into(),
            Act::NextDue => NextDue {}.into(),
            Act::LaneDepth { lane } => {
                let (namespace, lane) = lane_name(*lane);
                LaneDepth { lane, namespace }.into()
            }
            Act::GetAttempt { of, index } => {
                GetAttempt { execution_id: self.find(*of, model, |e| !e.attempts.is_empty()), index: *index }.into()
            }
            Act::Describe { of } => DescribeExecution { execution_id: self.find(*of, model, |_| true) }.into(),
            _ => self
                .worker_op(act, model)
                .or_else(|| self.grant_op(act, model))
                .or_else(|| self.operator_op(act, model))
                .or_else(|| self.wait_op(act, model))
                .or_else(|| self.stream_op(act, model))
                .expect("every act is one of these"),
        }
    }

    fn worker_op(&mut self, act: &Act, model: &Model) -> Option<Op> {
        Some(match act {
            Act::Renew { of, proof, ttl_ms } => {
                let (execution_id, fence) = self.leased(*of, *proof, model);
                RenewLease { execution_id, fence, lease_ttl_ms: *ttl_ms }.into()
            }
            Act::Progress { of, proof, pct } => {
                let (execution_id, fence) = self.leased(*of, *proof, model);
                let message = (pct % 2 == 0).then(|| format!("{pct} %"));
                UpdateProgress { execution_id, fence, message, pct: *pct }.into()
            }
            Act::Complete { of, proof, result } => {
                // A forged completion is plain, except for its epoch.
                let (proof, result) = match proof {
                    Proof::Wrong(_) => (Proof::Wrong(0), 0),
                    proof => (*proof, *result),
                };
                let (execution_id, fence) = self.leased(*of, proof, model);
                let result_encoding = (result & 0x80 != 0).then(|| "raw".to_owned());
                CompleteExecution { execution_id, fence, result: payload(result), result_encoding }.into()
            }
            Act::Fail { of, proof, category, retryable, retry_after_ms, draw } => {
                let (execution_id, fence) = self.leased(*of, *proof, model);
                let category = CATEGORIES[usize::from(*category) % 3].to_owned();
                let (retry_after_ms, retryable) = (*retry_after_ms, *retryable);
                FailExecution {
                    category,
                    draw: *draw,
                    execution_id,
                    fence,
                    reason: "it broke".to_owned(),
                    retry_after_ms,
                    retryable,
                }
                .into()
            }
            Act::CancelAttempt { of, proof, reason } => {
                let (execution_id, fence) = self.leased(*of, *proof, model);
                CancelAttempt { execution_id, fence, reason: text(*reason) }.into()
            }
            Act::Delay { of, proof, by_ms, absolute } => {
                let (execution_id, fence) = self.leased(*of, *proof, model);
                let (until, ms) =
                    if *absolute { (Some(model.now + by_ms), None) } else { (None, Some((*by_ms).max(0))) };
                // Both or none of the two must fail.
                let (until, ms) = if *by_ms % 50 == 1 { (until.or(ms), until.map(|_| 1).or(ms)) } else { (until, ms) };
                DelayExecution { delay_ms: ms, delay_until: until, execution_id, fence }.into()
            }
            Act::Yield { of, proof } => {
                let (execution_id, fence) = self.leased(*of, *proof, model);
                YieldExecution { execution_id, fence }.into()
            }
            _ => return None,
        })
    }

    fn grant_op(&mut self, act: &Act, model: &Model) -> Option<Op> {
        Some(match act {
            Act::Issue { lane, worker, able, max, ttl_ms } => {
                let (namespace, lane) = lane_name(*lane);
                let grant_ids = (0..*max).map(|_| self.mint()).collect();
                let call = IssueGrants {
                    capabilities: capabilities(*able),
                    kinds: kinds(*able).map(|kinds| Kinds::of(kinds).packed()),
                    grant_ids,
                    instance: instance(*worker),
                    lane,
                    max: *max,
                    namespace,
                    lease_ids: None,
                    ttl_ms: *ttl_ms,
                };
                self.issues.push(call.clone());
                call.into()
            }
            Act::IssueAgain { which } => {
                match self.issues.iter().rev().nth(usize::from(which.0) % self.issues.len().clamp(1, 4)) {
                    Some(call) => call.clone().into(),
                    None => NextDue {}.into(),
                }
            }
            Act::Consume { which, able, other_worker, request, ttl_ms } => {
                let (execution_id, grant_id, holder) = self.granted(*which, model);
                let (attempt_id, lease_id) = (AttemptId::from_uuid(self.mint()), self.lease(*request));
                // Mostly a capable worker.
                let able = if able % 4 == 0 { *able } else { 7 };
                ConsumeGrant {
                    keep: None,
                    attempt_id,
                    capabilities: capabilities(able),
                    kinds: kinds(able).map(|kinds| Kinds::of(kinds).packed()),
                    execution_id,
                    grant_id,
                    instance: if *other_worker { instance(9) } else { holder },
                    lease_id,
                    lease_ttl_ms: *ttl_ms,
                    worker_id: "model".to_owned(),
                }
                .into()
            }
            Act::ReleaseGrant { which } => {
                let (execution_id, grant_id, _) = self.granted(*which, model);
                ReleaseGrant { execution_id, grant_id, unheld: None }.into()
            }
            Act::Block { which, budget, detail } => {
                let (execution_id, grant_id, _) = self.granted(*which, model);
                BlockExecution {
                    unheld: None,
                    detail: tags(*detail),
                    execution_id,
                    grant_id,
                    reason: admission(*budget),
                }
                .into()
            }
            Act::Unblock { of, budget } => {
                let execution_id = self.find(*of, model, |e| e.blocked_by().is_some());
                UnblockExecution { holder_id: None, execution_id, reason: admission(*budget) }.into()
            }
            Act::GrantReclaim { of, worker, able, ttl_ms } => {
                let execution_id = self.find(*of, model, |e| e.is_eligible() && e.fence().is_some());
                // Most serve the grant's lane, with all required capabilities.
                let able = if able % 4 == 0 { able } else { &7 };
                let own = model.executions.get(&execution_id).map(|e| e.said.namespace.clone());
                let namespace = own.filter(|_| of.0 % 16 != 2).unwrap_or_else(|| "other".to_owned());
                let lanes = LANES.iter().skip(usize::from(of.0 % 8 == 3)).take(3).map(|(_, lane)| (*lane).to_owned());
                let known = self.grants.iter().rev().find(|(id, _, _)| *id == execution_id).map(|(_, grant, _)| *grant);
                let grant_id = known.filter(|_| of.0 % 4 == 1).unwrap_or_else(|| self.mint());
                GrantReclaim {
                    actor: "ops".to_owned(),
                    execution_id,
                    grant_id,
                    instance: instance(*worker),
                    ttl_ms: *ttl_ms,
                    capabilities: capabilities(*able),
                    kinds: kinds(*able).map(|kinds| Kinds::of(kinds).packed()),
                    namespace,
                    lanes: lanes.collect(),
                }
                .into()
            }
            _ => return None,
        })
    }

    fn operator_op(&mut self, act: &Act, model: &Model) -> Option<Op> {
        let actor = "ops".to_owned();
        Some(match act {
            Act::Cancel { of, grace_ms, reason } => {
                let execution_id = self.find(*of, model, |e| e.ended().is_none());
                CancelExecution { actor, execution_id, grace_ms: *grace_ms, reason: text(*reason) }.into()
            }
            Act::Hold { of, reason } => {
                let execution_id = self.find(*of, model, |e| e.waiting().is_some());
                HoldExecution { actor, execution_id, reason: text(*reason) }.into()
            }
            Act::Release { of } => {
                let execution_id = self.find(*of, model, |e| e.blocked_by().is_some());
                ReleaseExecution { actor, execution_id, reason: text(Some((of.0 % 3) as u8)) }.into()
            }
            Act::Change { of, priority, lane, tags: bits, deadline_ms, delay_ms } => {
                let execution_id = self.find(*of, model, |e| e.waiting().is_some());
                ChangeExecution {
                    actor,
                    deadline_at: deadline_ms.map(|ms| model.now + ms),
                    delay_until: delay_ms.map(|ms| model.now + ms),
                    execution_id,
                    lane: lane.map(|lane| lane_name(lane).1),
                    priority: *priority,
                    tags: bits.map(tags),
                }
                .into()
            }
            Act::Replay { of } => {
                let execution_id = self.find(*of, model, |e| e.ended().is_some());
                ReplayExecution { reason: text(Some((of.0 % 3) as u8)), ..ReplayExecution::new(actor, execution_id) }
                    .into()
            }
            Act::Delete { of } => {
                DeleteExecution { actor, execution_id: self.find(*of, model, |e| e.ended().is_some()) }.into()
            }
            Act::Await { of } => AwaitResult { execution_id: self.find(*of, model, |_| true) }.into(),
            Act::Revoke { of, grace } => {
                let execution_id = self.find(*of, model, |e| e.running().is_some());
                RevokeLease { actor, execution_id, grace: *grace, reason: None }.into()
            }
            Act::Drain { worker, revoke, limit } => {
                DrainLeases { actor, instance: instance(*worker), limit: *limit, revoke: *revoke }.into()
            }
            _ => return None,
        })
    }

    /// A fresh request id, or one that was used before.
    fn request(&mut self, again: Option<Pick>) -> Uuid {
        if let Some(pick) = again
            && !self.requests.is_empty()
        {
            return self.requests[usize::from(pick.0) % self.requests.len()];
        }
        let id = self.mint();
        self.requests.push(id);
        id
    }

    /// A fresh lease id, or one that was used before.
    fn lease(&mut self, again: Option<Pick>) -> LeaseId {
        if let Some(pick) = again
            && !self.leases.is_empty()
        {
            return self.leases[usize::from(pick.0) % self.leases.len()];
        }
        let id = LeaseId::from_uuid(self.mint());
        self.leases.push(id);
        id
    }
}

fn lane_name(lane: u8) -> (String, String) {
    let (namespace, lane) = LANES[usize::from(lane) % LANES.len()];
    (namespace.to_owned(), lane.to_owned())
}

fn path(lane: u8) -> String {
    let (namespace, lane) = lane_name(lane);
    format!("{namespace}/{lane}")
}

fn instance(worker: u8) -> String {
    format!("w-{worker}")
}

fn text(which: Option<u8>) -> Option<String> {
    which.map(|which| REASONS[usize::from(which) % 3].to_owned())
}

fn admission(budget: bool) -> AdmissionReason {
    if budget { AdmissionReason::WaitingForBudget } else { AdmissionReason::WaitingForQuota }
}

fn install(lane: u8, knobs: Definition, version: i64) -> InstallLane {
    let (namespace, name) = lane_name(lane);
    let state =
        [LaneState::Active, LaneState::Paused, LaneState::Draining, LaneState::Disabled][usize::from(knobs.state) % 4];
    let usual = if name == "aging" { 1_000 } else { 1_000_000_000_000 };
    let priority_weight = [usual, 1_000, 0, 1_000_000_000_000][usize::from(knobs.weight) % 4];
    let fair = knobs.fair.unwrap_or(name == "fair");
    let definition = LaneDefinition {
        fairness_weights: (knobs.policy & 1 == 0)
            .then(|| [("tenant 1".to_owned(), 4), ("tenant 2".to_owned(), 3_000)].into()),
        max_depth: knobs.max_depth,
        max_active: knobs.max_active,
        retry: (knobs.policy & 2 != 0).then(|| retry(knobs.policy)),
        attempt_timeout_ms: (knobs.policy & 0x30 == 0x30).then_some(2_500),
        retention_ms: (knobs.policy & 0x44 == 0x44).then_some(4_000),
        lease_ttl_ms: (knobs.policy & 8 != 0).then_some(5_000),
        ..LaneDefinition::new(state, priority_weight, if fair { Fairness::Fair } else { Fairness::Fifo }, 1)
    };
    InstallLane { entry: LaneEntry { namespace, lane: name, version, definition } }
}
