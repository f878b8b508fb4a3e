//! A claim that visits quotas and budgets does the same as the several calls of a cluster. So does an end that returns
//! holds.
//!
//! Two embedded stores get the same random work. One is called like a single machine. On the other every step is a
//! separate call, and its outboxes are emptied after each. Executions, quotas and budgets must be equal at all times.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use ff_conformance::work::{HOME, LANE, LEASE_MS, NAMESPACE};
use ff_conformance::{Kind, Store};
use ff_core::types::{AttemptId, BudgetId, ExecutionId, LeaseId, QuotaPolicyId};
use ff_model::run::{seed, setting};
use ff_script::generated::*;
use ff_script::{Client, Error, Route};
use ff_testkit::tier::rounds;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

const QUOTAS: Route = Route::Quota(0);
const BUDGETS: Route = Route::Budget(0);
const STEPS: usize = 120;
/// Called executions that have not come by then are no longer waited for.
const AFTER_CALLS_MS: i64 = 501;
/// The digest of the key of each quota.
const K: &str = "13fbd79c3d390e5d6585";

fn quota_id(n: u8) -> QuotaPolicyId {
    QuotaPolicyId::from_uuid(Uuid::from_u128((0xa0 + u128::from(n)) << 64))
}

fn budget_id(n: u8) -> BudgetId {
    BudgetId::from_uuid(Uuid::from_u128((0xb0 + u128::from(n)) << 64))
}

fn execution_id(n: usize) -> ExecutionId {
    ExecutionId::from_uuid(Uuid::from_u128(((n as u128) + 1) << 80))
}

/// One of the two stores, and its running tasks by execution.
struct Side {
    store: Store,
    apart: bool,
    running: BTreeMap<ExecutionId, Fence>,
}

impl Side {
    async fn open(apart: bool) -> Self {
        Self { store: Store::open(Kind::Embedded).await, apart, running: BTreeMap::new() }
    }

    fn client(&self) -> Client {
        if self.apart { self.store.client() } else { self.store.visiting().expect("an embedded store is one machine") }
    }

    async fn set_up(&self, rng: &mut StdRng) {
        self.store.install_default_lane().await;
        for n in 0..2 {
            // Without weights: until they come, called executions do not count in the window. So the next called one
            // depends on whether room returns all at once or in parts.
            let quota = Quota {
                concurrency: Some(rng.random_range(1..4)),
                rate: rng.random_bool(0.3).then_some(QuotaRate { limit: 3, window_ms: 5_000, mode: RateMode::Sliding }),
                ..Quota::new(quota_id(n), NAMESPACE.into(), rng.random_bool(0.3))
            };
            self.store.call(QUOTAS, &PutQuota { actor: None, quota, version: None }).await.unwrap();
        }
        let budget = NewBudget::new(
            budget_id(0),
            NAMESPACE.into(),
            BudgetScope { r#type: ScopeType::Custom, id: None },
            vec![DimensionLimit { name: "tokens".into(), hard: Some(rng.random_range(10..40)), soft: None }],
            BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None },
            OnSoft::Notify,
            OnHard::Suspend,
        );
        self.store.call(BUDGETS, &CreateBudget { budget, actor: "ops".into() }).await.unwrap();
    }

    /// Empties the outboxes, like a server.
    async fn settle(&self) {
        loop {
            let mut paid = 0;
            for route in [HOME, QUOTAS, BUDGETS] {
                let ReadOutboxReply::Effects { items } = self.store.call(route, &ReadOutbox::new(100)).await.unwrap();
                for effect in &items {
                    assert!(self.apart, "{effect:?} is owed");
                    self.pay(effect).await;
                }
                if !items.is_empty() {
                    paid += items.len();
                    let ids = items.into_iter().map(|effect| effect.id).collect();
                    self.store.call(route, &AckOutbox { ids }).await.unwrap();
                }
            }
            if paid == 0 {
                return;
            }
        }
    }

    async fn pay(&self, effect: &Effect) {
        let part = |name: &str| effect.data.get(name).cloned();
        let execution_id: ExecutionId = part("execution_id").unwrap().parse().unwrap();
        let holder_id: Uuid = part("holder_id").unwrap().parse().unwrap();
        let set = part("set").unwrap();
        let mut names = set.split(':');
        let (kind, id) = (names.next().unwrap(), names.next().unwrap());
        match (effect.r#type.as_str(), kind) {
            ("release_holder", "quota") => {
                let unused = part("unused").is_some();
                let item = QuotaReturn { execution_id, holder_id, key_digest: K.into(), unused };
                let call = ReturnQuota { items: vec![item], quota_id: id.parse().unwrap() };
                self.store.call(QUOTAS, &call).await.unwrap();
            }
            ("release_holder", _) => {
                let holders = vec![Holder { execution_id, expires_at: None, holder_id }];
                let call = ReleaseBudget { budget_id: id.parse().unwrap(), holders };
                self.store.call(BUDGETS, &call).await.unwrap();
            }
            ("unblock", _) => {
                let reason = AdmissionReason::WaitingForQuota;
                let call = UnblockExecution { execution_id, holder_id: Some(holder_id), reason };
                let comes = match self.store.ask(&call).await {
                    Ok(UnblockExecutionReply::Unblocked { .. }) => true,
                    Ok(UnblockExecutionReply::Already { state }) => {
                        matches!(state, PublicState::Waiting | PublicState::Resumable)
                    }
                    Err(_) => false,
                };
                if !comes {
                    let items = vec![QuotaAbsence { execution_id, key_digest: K.into() }];
                    let call = GiveUpCalled { items, quota_id: id.parse().unwrap() };
                    self.store.call(QUOTAS, &call).await.unwrap();
                }
            }
            other => panic!("{other:?} is owed"),
        }
    }

    /// Claims up to `max`. Returns the executions that started.
    async fn claim(&mut self, max: i64) -> Vec<ExecutionId> {
        let tasks = if self.apart { self.claim_apart(max).await } else { self.claim_visiting(max).await };
        let mut ids: Vec<ExecutionId> = Vec::new();
        for task in tasks {
            let fence = Fence { attempt_id: task.attempt_id, lease_id: task.lease_id, lease_epoch: task.lease_epoch };
            self.running.insert(task.execution_id, fence);
            ids.push(task.execution_id);
        }
        ids
    }

    async fn claim_visiting(&self, max: i64) -> Vec<Task> {
        match self.client().call(HOME, &self.store.claim_call("w", max)).await.unwrap() {
            ClaimExecutionsReply::Claimed { tasks, .. } => tasks,
            other => panic!("{other:?}"),
        }
    }

    /// Grants, requests admission, and starts or blocks. Repeats until nothing is left or `max` have started.
    async fn claim_apart(&self, max: i64) -> Vec<Task> {
        let mut tasks = Vec::new();
        loop {
            let left = max - i64::try_from(tasks.len()).unwrap();
            if left == 0 {
                return tasks;
            }
            let issue = IssueGrants {
                namespace: NAMESPACE.into(),
                lane: LANE.into(),
                instance: "w".into(),
                capabilities: vec![],
                kinds: None,
                max: left,
                lease_ids: None,
                ttl_ms: 5_000,
                grant_ids: (0..left).map(|_| self.store.uuid(0)).collect(),
            };
            let IssueGrantsReply::Granted { grants, .. } = self.store.ask(&issue).await.unwrap() else { panic!() };
            if grants.is_empty() {
                return tasks;
            }
            let verdicts = self.ask(&grants).await;
            for (grant, verdict) in grants.into_iter().zip(verdicts) {
                match verdict {
                    Ok(keep) => tasks.push(self.consume(&grant, keep).await),
                    Err((reason, detail, unheld)) => {
                        let call = BlockExecution {
                            detail,
                            execution_id: grant.execution_id,
                            grant_id: grant.grant_id,
                            reason,
                            unheld: Some(unheld),
                        };
                        self.store.ask(&call).await.unwrap();
                    }
                }
            }
        }
    }

    async fn consume(&self, grant: &Grant, keep: Vec<String>) -> Task {
        let call = ConsumeGrant {
            attempt_id: AttemptId::from_uuid(self.store.uuid(0)),
            capabilities: vec![],
            kinds: None,
            execution_id: grant.execution_id,
            grant_id: grant.grant_id,
            instance: "w".into(),
            keep: (!keep.is_empty()).then_some(keep),
            lease_id: LeaseId::from_uuid(self.store.uuid(0)),
            lease_ttl_ms: LEASE_MS,
            worker_id: "w".into(),
        };
        match self.store.ask(&call).await.unwrap() {
            ConsumeGrantReply::Claimed { task } | ConsumeGrantReply::Replayed { task } => task,
        }
    }

    /// Asks every quota, then every budget. Each gets only the executions that passed the ones before.
    async fn ask(
        &self,
        grants: &[Grant],
    ) -> Vec<Result<Vec<String>, (AdmissionReason, BTreeMap<String, String>, bool)>> {
        let mut verdicts: Vec<Result<Vec<String>, _>> = grants.iter().map(|_| Ok(Vec::new())).collect();
        let mut held = vec![false; grants.len()];
        for n in 0..2 {
            let named = |grant: &Grant| {
                grant.quotas.iter().flatten().find(|quota| quota.quota_id == *quota_id(n).as_uuid()).cloned()
            };
            let asked: Vec<(usize, QuotaRef)> = (0..grants.len())
                .filter(|at| verdicts[*at].is_ok())
                .filter_map(|at| Some((at, named(&grants[at])?)))
                .collect();
            if asked.is_empty() {
                continue;
            }
            let candidates = asked
                .iter()
                .map(|(at, quota)| QuotaCandidate {
                    execution_id: grants[*at].execution_id,
                    expires_at: grants[*at].expires_at,
                    holder_id: grants[*at].grant_id,
                    key: quota.key.clone(),
                    number: grants[*at].number,
                    score: grants[*at].score,
                    weight: quota.weight.unwrap_or(1),
                })
                .collect();
            let AdmitQuotaReply::Answered { items } =
                self.store.call(QUOTAS, &AdmitQuota { candidates, quota_id: quota_id(n) }).await.unwrap();
            for ((at, _), answer) in asked.into_iter().zip(items) {
                if answer.admitted {
                    held[at] = true;
                    if let Ok(keep) = &mut verdicts[at] {
                        keep.extend(answer.keep);
                    }
                } else {
                    verdicts[at] = Err((AdmissionReason::WaitingForQuota, BTreeMap::new(), !held[at]));
                }
            }
        }
        let asked: Vec<usize> = (0..grants.len())
            .filter(|at| verdicts[*at].is_ok() && grants[*at].budgets.iter().flatten().next().is_some())
            .collect();
        if !asked.is_empty() {
            let candidates = asked
                .iter()
                .map(|at| BudgetCandidate {
                    estimate: grants[*at].budgets.iter().flatten().next().and_then(|budget| budget.estimate.clone()),
                    ..BudgetCandidate::new(grants[*at].execution_id, grants[*at].grant_id, grants[*at].expires_at)
                })
                .collect();
            let AdmitBudgetReply::Answered { items } =
                self.store.call(BUDGETS, &AdmitBudget { budget_id: budget_id(0), candidates }).await.unwrap();
            for (at, answer) in asked.into_iter().zip(items) {
                if !answer.admitted {
                    let detail = BTreeMap::from([
                        ("budget_id".to_owned(), budget_id(0).to_string()),
                        ("rooms".to_owned(), answer.rooms.unwrap_or(0).to_string()),
                    ]);
                    verdicts[at] = Err((AdmissionReason::WaitingForBudget, detail, !held[at]));
                }
            }
        }
        verdicts
    }

    /// Everything that must be equal.
    async fn standing(&self, submitted: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for n in 0..submitted {
            let e = self.store.describe(execution_id(n)).await;
            lines.push(format!("{n}: {} {:?} {} attempts", e.state, e.blocking_reason, e.attempts.len()));
        }
        for n in 0..2 {
            let call = GetQuota { key: Some("k".into()), quota_id: quota_id(n) };
            let GetQuotaReply::Quota { state, .. } = self.store.call(QUOTAS, &call).await.unwrap();
            let state = state.expect("a key was asked for");
            lines.push(format!("quota {n}: {} held, {} wait, {:?}", state.held, state.waiting, state.parts));
        }
        let GetBudgetReply::Found { budget, .. } =
            self.store.call(BUDGETS, &GetBudget { budget_id: budget_id(0) }).await.unwrap();
        lines.push(format!("budget: {:?}", budget.dimensions));
        lines
    }
}

/// The next action, the same on both sides.
#[derive(Debug)]
enum Happens {
    Submit(Box<Submission>),
    Claim(i64),
    Complete(ExecutionId),
    Fail(ExecutionId),
    Suspend(ExecutionId),
    Cancel(ExecutionId),
    Time(i64),
}

impl Side {
    async fn go_through(&mut self, what: &Happens) -> Result<Vec<ExecutionId>, Error> {
        let client = self.client();
        match what {
            Happens::Submit(submission) => {
                client.call(HOME, &SubmitExecution { submission: (**submission).clone() }).await.map(|_| ())?;
            }
            Happens::Claim(max) => {
                let started = self.claim(*max).await;
                self.settle().await;
                return Ok(started);
            }
            Happens::Complete(id) => {
                let fence = self.running.remove(id).expect("it runs on both sides");
                client.call(HOME, &CompleteExecution::new(*id, fence)).await.map(|_| ())?;
            }
            Happens::Fail(id) => {
                let fence = self.running.remove(id).expect("it runs on both sides");
                let call = FailExecution::new("broken".into(), 500, *id, fence, "no".into());
                client.call(HOME, &call).await.map(|_| ())?;
            }
            Happens::Suspend(id) => {
                let fence = self.running.remove(id).expect("it runs on both sides");
                let waitpoint = self.store.waitpoint("door");
                let call = SuspendExecution {
                    timeout_ms: Some(1_500),
                    ..SuspendExecution::new(
                        vec![],
                        *id,
                        fence,
                        SuspensionReason::WaitingForSignal,
                        ff_core::types::SuspensionId::from_uuid(self.store.uuid(0)),
                        TimeoutBehavior::AutoResumeWithTimeoutSignal,
                        vec![waitpoint],
                    )
                };
                client.call(HOME, &call).await.map(|_| ())?;
            }
            Happens::Cancel(id) => {
                self.running.remove(id);
                // An ended execution fails on both sides.
                let _ = client.call(HOME, &CancelExecution::new("ops".into(), *id)).await;
            }
            Happens::Time(ms) => {
                // On one side, leases that expire together return holds together; on the other, one by one. Which
                // execution is called may differ until the earlier called ones count as absent.
                for ms in [*ms, AFTER_CALLS_MS, AFTER_CALLS_MS, AFTER_CALLS_MS] {
                    self.store.advance(ms);
                    let client = self.client();
                    for route in [HOME, QUOTAS, BUDGETS] {
                        client.call(route, &FireDue { limit: 64, draw: 500 }).await.map(|_| ())?;
                    }
                    self.settle().await;
                }
            }
        }
        self.settle().await;
        Ok(Vec::new())
    }
}

fn next(rng: &mut StdRng, submitted: usize, running: &[ExecutionId]) -> Happens {
    let some = |rng: &mut StdRng| running[rng.random_range(0..running.len())];
    match rng.random_range(0..20) {
        0..7 => {
            let quotas = (0..2).filter(|_| rng.random_bool(0.4)).map(|n| QuotaRef {
                weight: Some(1 + i64::from(n)),
                ..QuotaRef::new(*quota_id(n).as_uuid(), "k".into())
            });
            let quotas: Vec<QuotaRef> = quotas.collect();
            let estimate = BTreeMap::from([("tokens".to_owned(), rng.random_range(1..9))]);
            let budgets = rng
                .random_bool(0.4)
                .then(|| vec![BudgetRef { estimate: Some(estimate), ..BudgetRef::new(*budget_id(0).as_uuid()) }]);
            Happens::Submit(Box::new(Submission {
                quotas: (!quotas.is_empty()).then_some(quotas),
                budgets,
                priority: rng.random_bool(0.2).then_some(2),
                ..Submission::new(execution_id(submitted), NAMESPACE.into(), LANE.into(), "mail".into(), "0".repeat(32))
            }))
        }
        7..13 => Happens::Claim(rng.random_range(1..4)),
        13..15 if !running.is_empty() => Happens::Complete(some(rng)),
        15 if !running.is_empty() => Happens::Fail(some(rng)),
        16 if !running.is_empty() => Happens::Suspend(some(rng)),
        17 if submitted > 0 => Happens::Cancel(execution_id(rng.random_range(0..submitted))),
        _ => Happens::Time([1, 700, 2_000, LEASE_MS][rng.random_range(0..4)]),
    }
}

async fn round(seed: u64) -> usize {
    let mut sides = [Side::open(false).await, Side::open(true).await];
    for side in &sides {
        side.set_up(&mut StdRng::seed_from_u64(seed)).await;
    }
    let (mut rng, mut submitted, mut started) = (StdRng::seed_from_u64(seed), 0, 0);
    for step in 0..STEPS {
        for side in &mut sides {
            side.store.advance(1);
        }
        let running: Vec<ExecutionId> = sides[0].running.keys().copied().collect();
        let what = next(&mut rng, submitted, &running);
        submitted += usize::from(matches!(what, Happens::Submit(_)));
        let [near, far] = &mut sides;
        let (one, other) = (near.go_through(&what).await.unwrap(), far.go_through(&what).await.unwrap());
        assert_eq!(one, other, "seed {seed}, step {step}, {what:?}: what started");
        started += one.len();
        let (one, other) = (near.standing(submitted).await, far.standing(submitted).await);
        assert_eq!(one, other, "seed {seed}, step {step}, {what:?}");
        // An expired lease has no owner any more.
        for side in [near, far] {
            let mut lost = Vec::new();
            for id in side.running.keys() {
                if side.store.describe(*id).await.phase != LifecyclePhase::Active {
                    lost.push(*id);
                }
            }
            for id in lost {
                side.running.remove(&id);
            }
        }
    }
    for side in &sides {
        side.store.assert_sound().await;
    }
    started
}

#[test]
fn a_visit_does_what_several_calls_do() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let seed = seed();
    let mut started = 0;
    for n in 0..setting("FF_ROUNDS").unwrap_or(rounds(6, 60, 2_000)) {
        started += runtime.block_on(round(seed.wrapping_add(n)));
    }
    assert!(started > 60, "only {started} started");
}
