//! Claims and runs work. Crashes, pauses past its leases, and continues as a zombie with old fences.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::{AttemptId, ExecutionId, LeaseId, QuotaPolicyId, SuspensionId, WaitpointId};
use ff_script::generated::*;
use ff_script::{Kinds, Route};
use uuid::Uuid;

use super::outsider::NAMES;
use super::{
    Actor, CAPABILITIES, KINDS, LANES, LEASE_TTL_MS_MAX, NAMESPACE, Scene, Token, debts, draw_digest, submitter,
    treasurer,
};
use crate::admission::{Batch, Decision, needs_admission};
use crate::request::{Outcome, Reply, Request};
use crate::rng::Rng;

type Held = (ExecutionId, Fence);

/// Number of old fences that a worker keeps to misuse.
const GRAVES_MAX: usize = 16;

pub(crate) struct Worker {
    instance: String,
    capabilities: Vec<String>,
    /// The kinds it takes; `None` is all.
    kinds: Option<Kinds>,
    lanes: Vec<String>,
    lease_ttl_ms: i64,
    incarnation: Uuid,
    registered: bool,
    held: Vec<Held>,
    graves: Vec<Held>,
    /// Percent of its calls under a lease that spawn children or wait for them.
    spawns: u32,
    /// The number of frames that the worker believes each attempt to have.
    frames: BTreeMap<ExecutionId, i64>,
    /// Batches of grants in admission, by the open request.
    admissions: Vec<(Request, Batch)>,
    /// The quotas its executions entered, and the grant.
    entered: Vec<(ExecutionId, Uuid, QuotaRef)>,
}

impl Worker {
    pub fn new(number: usize, spawns: u32, rng: &mut Rng) -> Self {
        let capabilities = CAPABILITIES.iter().filter(|_| rng.percent(45)).map(|&c| c.to_owned()).collect();
        let mut lanes: Vec<String> = LANES.iter().filter(|_| rng.percent(70)).map(|l| l.0.to_owned()).collect();
        if lanes.is_empty() {
            lanes.push(LANES[0].0.to_owned());
        }
        let kinds: Vec<&str> = KINDS.iter().filter(|_| rng.percent(60)).copied().collect();
        let kinds = (rng.percent(50) && !kinds.is_empty()).then(|| Kinds::of(kinds));
        Worker {
            instance: format!("worker-{number}"),
            capabilities,
            kinds,
            lanes,
            lease_ttl_ms: rng.between(1_000, LEASE_TTL_MS_MAX),
            incarnation: rng.uuid(),
            registered: false,
            held: Vec::new(),
            graves: Vec::new(),
            spawns,
            frames: BTreeMap::new(),
            admissions: Vec::new(),
            entered: Vec::new(),
        }
    }

    pub fn instance(&self) -> &str {
        &self.instance
    }

    fn bury(&mut self, held: Held) {
        self.graves.push(held);
        if self.graves.len() > GRAVES_MAX {
            self.graves.remove(0);
        }
    }

    fn drop_held(&mut self, id: ExecutionId) {
        if let Some(at) = self.held.iter().position(|held| held.0 == id) {
            let held = self.held.remove(at);
            self.bury(held);
        }
    }

    fn claim(&self, scene: &mut Scene<'_>) {
        let lane = scene.rng.pick(&self.lanes).clone();
        let partition = scene.rng.below(usize::from(scene.board.partitions.executions)) as u16;
        let route = Route::Execution(partition);
        let max = scene.rng.between(1, 3);
        let grants = if scene.board.limits.on { 65 } else { 30 };
        if scene.rng.percent(grants) {
            let call = IssueGrants {
                capabilities: self.capabilities.clone(),
                kinds: self.kinds.as_ref().map(Kinds::packed),
                grant_ids: (0..max).map(|_| scene.rng.uuid()).collect(),
                instance: self.instance.clone(),
                lane,
                max,
                namespace: NAMESPACE.to_owned(),
                lease_ids: None,
                ttl_ms: scene.rng.between(100, 2_000),
            };
            return scene.say(route, call);
        }
        let call = ClaimExecutions {
            attempt_ids: (0..max).map(|_| AttemptId::from_uuid(scene.rng.uuid())).collect(),
            capabilities: self.capabilities.clone(),
            kinds: self.kinds.as_ref().map(Kinds::packed),
            instance: self.instance.clone(),
            lane,
            lease_ids: (0..max).map(|_| LeaseId::from_uuid(scene.rng.uuid())).collect(),
            lease_ttl_ms: self.lease_ttl_ms,
            max,
            namespace: NAMESPACE.to_owned(),
            worker_id: "pool".to_owned(),
        };
        scene.say(route, call);
    }

    /// Makes a call under a fence. Returns whether the worker considers the lease finished.
    fn use_fence(&self, held: &Held, scene: &mut Scene<'_>) -> bool {
        let (id, fence) = *held;
        if scene.rng.percent(self.spawns) {
            return Self::family(id, fence, scene);
        }
        if scene.board.limits.on && scene.rng.percent(45) {
            self.spend(id, fence, scene);
            return false;
        }
        match scene.rng.weighted(&[33, 24, 17, 8, 8, 8, 6, 40, 36, 2, 26]) {
            7 => {
                let call = Self::suspend(id, fence, scene);
                scene.tell(id, call);
                true
            }
            8 => {
                let waitpoint = Self::waitpoint(id, scene);
                scene.tell(id, CreateWaitpoint::new(id, fence, waitpoint));
                false
            }
            9 => {
                if let Some(token) = scene.board.tokens.iter().rev().find(|token| token.execution_id == id) {
                    let waitpoint_id = token.waitpoint_id;
                    scene.tell(id, CloseWaitpoint { execution_id: id, fence, waitpoint_id });
                }
                false
            }
            10 => {
                let next = self.frames.get(&id).copied().unwrap_or(0);
                let count = scene.rng.between(1, 4);
                let frames = (0..count)
                    .map(|_| NewFrame {
                        payload: submitter::draw_bytes(scene.rng),
                        ..NewFrame::new("delta".to_owned(), FrameMode::Durable)
                    })
                    .collect();
                // Sometimes a known sequence, sometimes one too far ahead.
                let first = match scene.rng.below(12) {
                    0..=2 => (next - 2).max(0),
                    3 => next + 1,
                    _ => next,
                };
                let first_sequence = Some(first);
                scene.board.streams.push(id);
                scene.tell(id, AppendFrames { first_sequence, ..AppendFrames::new(id, fence, frames) });
                false
            }
            0 => {
                let mut call = RenewLease::new(id, fence);
                call.lease_ttl_ms = scene.rng.percent(20).then(|| scene.rng.between(1_000, LEASE_TTL_MS_MAX));
                scene.tell(id, call);
                false
            }
            1 => {
                let mut call = CompleteExecution::new(id, fence);
                call.result = submitter::draw_bytes(scene.rng);
                scene.tell(id, call);
                true
            }
            2 => {
                let category = (*scene.rng.pick(&["flaky", "fatal", "other"])).to_owned();
                let draw = scene.rng.between(0, 1000);
                let mut call = FailExecution::new(category, draw, id, fence, "it broke".to_owned());
                call.retryable = scene.rng.percent(15).then(|| scene.rng.percent(50));
                call.retry_after_ms = scene.rng.percent(15).then(|| scene.rng.between(0, 2_000));
                scene.tell(id, call);
                true
            }
            3 => {
                let mut call = DelayExecution::new(id, fence);
                if scene.rng.percent(50) {
                    call.delay_ms = Some(scene.rng.between(0, 2_000));
                } else {
                    call.delay_until = Some(scene.now + scene.rng.between(-500, 2_000));
                }
                scene.tell(id, call);
                true
            }
            4 => {
                scene.tell(id, YieldExecution { execution_id: id, fence });
                true
            }
            5 => {
                let pct = scene.rng.between(0, 100);
                scene.tell(id, UpdateProgress::new(id, fence, pct));
                false
            }
            _ => {
                scene.tell(id, CancelAttempt::new(id, fence));
                true
            }
        }
    }

    /// Reports usage, reserves, corrects a weight, or throttles a key.
    fn spend(&self, id: ExecutionId, fence: Fence, scene: &mut Scene<'_>) {
        let budget_id = scene.rng.pick(&scene.board.limits.budgets).budget_id;
        match scene.rng.weighted(&[44, 22, 10, 18, 6]) {
            0 => {
                let mut call = NoteUsage::new(budget_id, treasurer::draw_amounts(scene.rng, 8), id, fence);
                call.dedup_key = scene.rng.percent(35).then(|| format!("k{}", scene.rng.below(12)));
                scene.tell(id, call);
            }
            1 => scene.tell(id, HoldBudget { budget_id, execution_id: id, fence }),
            2 => treasurer::end_reservation(scene),
            3 => {
                let mine = self.entered.iter().rev().find(|(entered, ..)| *entered == id);
                if let Some((execution_id, holder_id, quota)) = mine.cloned() {
                    let call = SettleQuota {
                        execution_id,
                        holder_id,
                        key: quota.key,
                        quota_id: QuotaPolicyId::from_uuid(quota.quota_id),
                        weight: scene.rng.between(0, 9),
                    };
                    scene.say(Route::Quota(0), call);
                }
            }
            _ => {
                let quota_id = scene.rng.pick(&scene.board.limits.quotas).0.quota_id;
                let key = (*scene.rng.pick(treasurer::KEYS)).to_owned();
                let until = scene.now + scene.rng.between(100, 2_500);
                scene.say(Route::Quota(0), ThrottleQuota { actor: None, key, quota_id, until });
            }
        }
    }

    /// Makes the next request for a batch of grants, or acts on all replies.
    fn admit(&mut self, mut batch: Batch, scene: &mut Scene<'_>) {
        if let Some((route, request)) = batch.next() {
            self.admissions.push((request.clone(), batch));
            if self.admissions.len() > 8 {
                self.admissions.remove(0);
            }
            return scene.say(route, request);
        }
        for (grant, decision) in batch.conclude() {
            let (id, grant_id) = (grant.execution_id, grant.grant_id);
            // It dies between the reply and the resulting calls.
            if scene.rng.percent(8) {
                continue;
            }
            match decision {
                Decision::Start { keep } => {
                    for quota in grant.quotas.into_iter().flatten() {
                        self.entered.push((id, grant_id, quota));
                    }
                    let lately = self.entered.len().saturating_sub(16);
                    self.entered.drain(..lately);
                    self.consume(id, grant_id, keep, scene);
                }
                Decision::Block(call) => scene.tell(id, call),
                Decision::GiveBack => {
                    scene.tell(id, ReleaseGrant { execution_id: id, grant_id, unheld: None });
                }
            }
        }
    }

    /// Spawns children or waits for them.
    fn family(id: ExecutionId, fence: Fence, scene: &mut Scene<'_>) -> bool {
        if scene.rng.percent(75) {
            let seed = u16::from_be_bytes(id.as_uuid().as_bytes()[14..16].try_into().expect("two bytes"));
            let count = scene.rng.between(1, 3);
            let children = (0..count)
                .map(|_| {
                    let mut submission = submitter::draw_member(scene);
                    submission.execution_id = submitter::with_seed(scene.rng.uuid(), seed);
                    scene.board.known.push(submission.execution_id);
                    let parent_close = scene.rng.percent(40).then_some(ParentClose::Abandon);
                    NewChild { key: None, parent_close, submission }
                })
                .collect();
            scene.tell(id, SpawnChildren::new(children, id, fence));
            return false;
        }
        let wait_id = SuspensionId::from_uuid(scene.rng.uuid());
        scene.tell(id, WaitChildren::new(id, fence, wait_id));
        true
    }

    fn waitpoint(id: ExecutionId, scene: &mut Scene<'_>) -> NewWaitpoint {
        let waitpoint_id = WaitpointId::from_uuid(scene.rng.uuid());
        let labels: &[Option<&str>] = if scene.rng.percent(50) { &[None] } else { &[Some("ann"), Some("bob")] };
        let mut tokens = Vec::new();
        for label in labels {
            let digest = draw_digest(scene.rng);
            // Some tokens are issued before the store has them; the rest after its reply.
            if scene.rng.percent(30) {
                scene.board.tokens.push(Token { execution_id: id, waitpoint_id, digest: digest.clone() });
            }
            tokens.push(ff_script::generated::Token { digest, approver: label.map(str::to_owned) });
        }
        // The keys of open waitpoints differ; a new id is always unused.
        let mut new = NewWaitpoint::new(waitpoint_id, format!("{waitpoint_id}"), tokens);
        new.uses = scene.rng.percent(40).then(|| scene.rng.between(1, 2));
        new.expires_in_ms = scene.rng.percent(20).then(|| scene.rng.between(0, 4_000));
        new.allowed_signals = scene.rng.percent(20).then(|| vec![NAMES[0].to_owned(), NAMES[1].to_owned()]);
        new
    }

    fn suspend(id: ExecutionId, fence: Fence, scene: &mut Scene<'_>) -> SuspendExecution {
        let leaf = |op, parent, name: Option<&str>| ConditionNode {
            parent,
            name: name.map(str::to_owned),
            ..ConditionNode::new(op)
        };
        let signal = |parent, name| leaf(ConditionOp::Signal, parent, name);
        let count = |parent, n, over| ConditionNode {
            n: Some(n),
            over: Some(over),
            ..ConditionNode { parent, ..ConditionNode::new(ConditionOp::Count) }
        };
        let condition = match scene.rng.below(7) {
            0 | 1 => vec![],
            2 => vec![signal(None, Some(NAMES[0]))],
            3 => vec![count(None, 2, CountOver::Approvers)],
            4 | 5 => vec![count(None, 2, CountOver::Signals)],
            _ => vec![
                leaf(ConditionOp::AnyOf, None, None),
                leaf(ConditionOp::AllOf, Some(0), None),
                signal(Some(1), Some(NAMES[0])),
                signal(Some(1), None),
                count(Some(0), 2, CountOver::Waitpoints),
            ],
        };
        let waitpoints = (0..scene.rng.between(1, 2)).map(|_| Self::waitpoint(id, scene)).collect();
        let reason = SuspensionReason::ALL[scene.rng.below(SuspensionReason::ALL.len())];
        let behavior = TimeoutBehavior::ALL[scene.rng.below(TimeoutBehavior::ALL.len())];
        let suspension_id = SuspensionId::from_uuid(scene.rng.uuid());
        let mut call = SuspendExecution::new(condition, id, fence, reason, suspension_id, behavior, waitpoints);
        call.timeout_ms = scene.rng.percent(50).then(|| scene.rng.between(0, 5_000));
        if behavior == TimeoutBehavior::Escalate {
            // A wait that gets no signal soon: few of these live until an operator reviews them.
            call.timeout_ms = Some(scene.rng.between(0, 1_500));
        }
        call.review_waitpoint_id = Some(WaitpointId::from_uuid(scene.rng.uuid()));
        call.continuation = submitter::draw_bytes(scene.rng);
        if let Some(review) = call.review_waitpoint_id.filter(|_| behavior == TimeoutBehavior::Escalate) {
            // Only an operator gets a token for it.
            let digest = draw_digest(scene.rng);
            scene.board.tokens.push(Token { execution_id: id, waitpoint_id: review, digest });
        }
        call
    }

    /// An old fence, sometimes with a part of the current one.
    fn exhume(&self, scene: &mut Scene<'_>) -> Held {
        let (id, mut fence) = *scene.rng.pick(&self.graves);
        let newer =
            self.held.iter().chain(&self.graves).find(|(other, f)| *other == id && f.lease_epoch > fence.lease_epoch);
        if let Some((_, newer)) = newer {
            match scene.rng.below(4) {
                0 => fence.lease_epoch = newer.lease_epoch,
                1 => fence.lease_id = newer.lease_id,
                2 => fence.attempt_id = newer.attempt_id,
                _ => {}
            }
        }
        (id, fence)
    }

    fn renew_all(&self, scene: &mut Scene<'_>) {
        let mut known = BTreeSet::new();
        for (id, fence) in self.held.iter().filter(|(id, _)| known.insert(*id)) {
            scene.tell(*id, RenewLease::new(*id, *fence));
        }
    }

    fn complete_all(&mut self, scene: &mut Scene<'_>) {
        let mut known = BTreeSet::new();
        for (id, fence) in std::mem::take(&mut self.held) {
            self.bury((id, fence));
            if known.insert(id) {
                let result = submitter::draw_bytes(scene.rng);
                scene.tell(id, CompleteExecution { result, ..CompleteExecution::new(id, fence) });
            }
        }
    }

    fn work(&mut self, scene: &mut Scene<'_>) {
        if self.held.len() > 1 && scene.rng.percent(15) {
            return if scene.rng.percent(60) { self.renew_all(scene) } else { self.complete_all(scene) };
        }
        let at = scene.rng.below(self.held.len());
        let held = self.held[at];
        if self.use_fence(&held, scene) {
            self.held.remove(at);
            self.bury(held);
        }
    }

    fn took(&mut self, task: &Task) {
        let fence = Fence { attempt_id: task.attempt_id, lease_id: task.lease_id, lease_epoch: task.lease_epoch };
        self.held.retain(|held| held.0 != task.execution_id);
        self.frames.insert(task.execution_id, task.frames);
        self.held.push((task.execution_id, fence));
    }

    fn consume(&self, id: ExecutionId, grant_id: Uuid, keep: Vec<String>, scene: &mut Scene<'_>) {
        let call = ConsumeGrant {
            keep: (!keep.is_empty()).then_some(keep),
            attempt_id: AttemptId::from_uuid(scene.rng.uuid()),
            capabilities: self.capabilities.clone(),
            kinds: self.kinds.as_ref().map(Kinds::packed),
            execution_id: id,
            grant_id,
            instance: self.instance.clone(),
            lease_id: LeaseId::from_uuid(scene.rng.uuid()),
            lease_ttl_ms: self.lease_ttl_ms,
            worker_id: "pool".to_owned(),
        };
        scene.tell(id, call);
    }

    fn granted(&self, grant: &Grant, scene: &mut Scene<'_>) {
        let id = grant.execution_id;
        scene.board.saw_grant(id, grant.grant_id, &self.instance);
        // With quotas and budgets, only those block.
        let blocks = if scene.board.limits.on { 0 } else { 12 };
        match scene.rng.weighted(&[70, 8, blocks, 10]) {
            0 => self.consume(id, grant.grant_id, Vec::new(), scene),
            1 => scene.tell(id, ReleaseGrant { execution_id: id, grant_id: grant.grant_id, unheld: None }),
            2 => {
                let reason = *scene.rng.pick(&[AdmissionReason::WaitingForQuota, AdmissionReason::WaitingForBudget]);
                scene.tell(
                    id,
                    BlockExecution {
                        unheld: None,
                        detail: BTreeMap::from([("limit".to_owned(), "10".to_owned())]),
                        execution_id: id,
                        grant_id: grant.grant_id,
                        reason,
                    },
                );
            }
            // Forgotten: the grant expires.
            _ => {}
        }
    }
}

/// Gives the tokens of waitpoints to their holders.
fn hand_out<'a>(id: ExecutionId, waitpoints: impl IntoIterator<Item = &'a NewWaitpoint>, scene: &mut Scene<'_>) {
    for waitpoint in waitpoints {
        for token in &waitpoint.tokens {
            let (waitpoint_id, digest) = (waitpoint.waitpoint_id, token.digest.clone());
            scene.board.tokens.push(Token { execution_id: id, waitpoint_id, digest });
        }
    }
}

impl Actor for Worker {
    fn name(&self) -> String {
        self.instance.clone()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        if !self.registered {
            let mut call = RegisterWorker::new(
                self.capabilities.clone(),
                self.instance.clone(),
                self.lanes.clone(),
                NAMESPACE.to_owned(),
                4,
                "pool".to_owned(),
            );
            call.incarnation = Some(self.incarnation);
            call.kinds = self.kinds.as_ref().map(|kinds| kinds.names().to_vec());
            call.take_over = scene.rng.percent(70).then_some(true);
            scene.say(Route::Fleet, call);
        }
        if scene.rng.permille(25) {
            // The process dies. Its successor knows nothing, but finds the old fences in a log and misuses them.
            for held in std::mem::take(&mut self.held) {
                self.bury(held);
            }
            self.admissions.clear();
            self.incarnation = scene.rng.uuid();
            self.registered = false;
            return scene.rng.between(300, 6_000);
        }
        if scene.rng.permille(30) {
            // A long pause, after which it believes that it still holds everything.
            return scene.rng.between(self.lease_ttl_ms, self.lease_ttl_ms * 3);
        }
        if !scene.board.limits.reclaims.is_empty() && scene.rng.percent(30) {
            // The store knows which worker it was given to.
            let grant = scene.board.limits.reclaims.remove(0);
            self.admit(Batch::new(vec![grant]), scene);
        }
        match scene.rng.weighted(&[36, 40, 11, 5, 1, 7]) {
            0 if self.held.len() < 4 => self.claim(scene),
            2 if !self.graves.is_empty() => {
                let held = self.exhume(scene);
                if scene.rng.percent(20) {
                    // It hands back what it believes to hold.
                    let (id, fence) = held;
                    scene.tell(id, CancelAttempt::new(id, fence));
                } else {
                    self.use_fence(&held, scene);
                }
            }
            5 if !scene.board.grants.is_empty() => {
                // Its own grant, or one of another worker.
                let newest = &scene.board.grants[scene.board.grants.len().saturating_sub(3)..];
                let (id, grant_id, _) = scene.rng.pick(newest).clone();
                self.consume(id, grant_id, Vec::new(), scene);
            }
            3 => scene.say(Route::Fleet, HeartbeatWorkers { instances: vec![self.instance.clone()] }),
            4 => {
                self.registered = false;
                let mut call = DeregisterWorker::new(self.instance.clone());
                call.incarnation = scene.rng.percent(50).then_some(self.incarnation);
                scene.say(Route::Fleet, call);
            }
            _ if !self.held.is_empty() => self.work(scene),
            _ => self.claim(scene),
        }
        scene.rng.between(20, 180)
    }

    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        if let Some(at) = self.admissions.iter().position(|(asked, _)| asked == request) {
            let (_, mut batch) = self.admissions.remove(at);
            batch.note(request, outcome);
            return self.admit(batch, scene);
        }
        match (request, outcome) {
            (Request::NoteUsage(call), Outcome::Reply(Reply::NoteUsage(NoteUsageReply::Noted { report })))
                if scene.rng.percent(80) =>
            {
                scene.say(Route::Budget(0), debts::apply(call.execution_id, report))
            }
            (Request::ApplyUsage(call), _) if scene.rng.percent(85) => {
                if let Some(settle) = debts::settle(call, outcome) {
                    scene.tell(settle.execution_id, settle);
                }
            }
            (
                Request::SettleUsage(call),
                Outcome::Reply(Reply::SettleUsage(SettleUsageReply::Settled { ended: true, .. })),
            ) => self.drop_held(call.execution_id),
            (Request::HoldBudget(call), Outcome::Reply(Reply::HoldBudget(HoldBudgetReply::Held { holder_id }))) => {
                let reservation_id = scene.rng.uuid();
                let holder = BudgetHolder { execution_id: call.execution_id, holder_id: *holder_id };
                let amounts = treasurer::draw_amounts(scene.rng, 6);
                let reserve = ReserveBudget::new(call.budget_id, amounts, reservation_id);
                scene.board.limits.reservations.push((call.budget_id, reservation_id));
                scene.say(Route::Budget(0), ReserveBudget { holder: Some(holder), ..reserve });
            }
            (_, Outcome::Reply(Reply::RegisterWorker(_))) => self.registered = true,
            (_, Outcome::Reply(Reply::HeartbeatWorkers(HeartbeatWorkersReply::Beaten { items })))
                if items.iter().any(|item| !item.known) =>
            {
                self.registered = false
            }
            (
                _,
                Outcome::Reply(Reply::ClaimExecutions(
                    ClaimExecutionsReply::Claimed { tasks, .. } | ClaimExecutionsReply::Replayed { tasks },
                )),
            ) => {
                for task in tasks {
                    self.took(task);
                }
            }
            (_, Outcome::Reply(Reply::ConsumeGrant(reply))) => {
                let (ConsumeGrantReply::Claimed { task } | ConsumeGrantReply::Replayed { task }) = reply;
                self.took(task);
            }
            (_, Outcome::Reply(Reply::IssueGrants(IssueGrantsReply::Granted { grants, .. }))) => {
                let admits = |grant: &&Grant| scene.board.limits.on && needs_admission(grant);
                let (asking, free): (Vec<&Grant>, Vec<&Grant>) = grants.iter().partition(admits);
                for grant in free {
                    self.granted(grant, scene);
                }
                if !asking.is_empty() {
                    self.admit(Batch::new(asking.into_iter().cloned().collect()), scene);
                }
            }
            (
                Request::RenewLease(call),
                Outcome::Reply(Reply::RenewLease(RenewLeaseReply::Renewed {
                    cancel_requested, yield_requested, ..
                })),
            ) => {
                let (id, fence) = (call.execution_id, call.fence);
                if *cancel_requested && scene.rng.percent(60) {
                    scene.tell(id, CancelAttempt::new(id, fence));
                    self.drop_held(id);
                } else if *yield_requested && scene.rng.percent(60) {
                    scene.tell(id, YieldExecution { execution_id: id, fence });
                    self.drop_held(id);
                }
            }
            (Request::RenewLease(call), Outcome::Refused(_)) => self.drop_held(call.execution_id),
            (
                Request::AppendFrames(call),
                Outcome::Reply(Reply::AppendFrames(AppendFramesReply::Appended { next_sequence, .. })),
            ) => {
                self.frames.insert(call.execution_id, *next_sequence);
            }
            (Request::CreateWaitpoint(call), Outcome::Reply(_)) => {
                hand_out(call.execution_id, [&call.waitpoint], scene);
            }
            (
                Request::SuspendExecution(call),
                Outcome::Reply(Reply::SuspendExecution(SuspendExecutionReply::Suspended { .. })),
            ) => hand_out(call.execution_id, &call.waitpoints, scene),
            (Request::SpawnChildren(call), Outcome::Reply(_)) if scene.rng.percent(75) => {
                let (id, fence) = (call.execution_id, call.fence);
                let wait_id = SuspensionId::from_uuid(scene.rng.uuid());
                scene.tell(id, WaitChildren::new(id, fence, wait_id));
                self.drop_held(id);
            }
            (Request::WaitChildren(call), Outcome::Reply(Reply::WaitChildren(WaitChildrenReply::Ended { .. }))) => {
                // The lease goes on, and so does the worker.
                let held = (call.execution_id, call.fence);
                self.graves.retain(|grave| *grave != held);
                self.held.push(held);
            }
            (
                Request::SuspendExecution(call),
                Outcome::Reply(Reply::SuspendExecution(SuspendExecutionReply::AlreadySatisfied { .. })),
            ) => {
                // The lease goes on, and so does the worker.
                let held = (call.execution_id, call.fence);
                self.graves.retain(|grave| *grave != held);
                self.held.push(held);
            }
            _ => {}
        }
    }
}
