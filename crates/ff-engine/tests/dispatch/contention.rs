//! A thousand executions against one limit, with workers that die in the middle: no limit is passed by one, and everything
//! is accounted for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ff_api::budgets::{ChangeBudgetBody, LimitPatchBody};
use ff_api::usage::Reserved;
use ff_core::contracts::ReportUsageResult;
use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_engine::dispatch::Dispatcher;
use ff_engine::{Engine, NewExecution, Operations, fence_of};
use ff_script::Error;
use ff_script::generated::{
    BudgetRef, BudgetReset, BudgetScope, DimensionLimit, NewBudget, NoteUsage, OnHard, OnSoft, PartitionStatsReply,
    Quota, QuotaRef, ResetType, ScopeType, Task,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::kit::{Kit, LANE, claim, dispatcher_of, eventually, ms, worker};
use crate::on_both_hosts;
use ff_testkit::Tasks;

/// A thousand in the wide tier.
fn many() -> usize {
    ff_testkit::tier::rounds(250, 1_000, 1_000)
}
/// What an execution uses, and what it holds before it knows.
const USES: i64 = 7;
const HOLDS: i64 = 10;
/// How long a lease outlives its worker.
const LEASE_MS: i64 = 2_000;

fn tokens(n: i64) -> BTreeMap<String, i64> {
    [("tokens".to_owned(), n)].into()
}

fn limit(hard: i64) -> Vec<DimensionLimit> {
    vec![DimensionLimit { name: "tokens".to_owned(), hard: Some(hard), soft: None }]
}

async fn create_budget(kit: &Kit, hard: i64) -> BudgetId {
    let new = NewBudget {
        budget_id: BudgetId::mint(),
        namespace: "default".to_owned(),
        parent: None,
        next_reset_at: None,
        scope: BudgetScope { r#type: ScopeType::Custom, id: None },
        dimensions: limit(hard),
        reset: BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None },
        on_soft: OnSoft::Notify,
        on_hard: OnHard::Suspend,
    };
    kit.operations().create_budget(new, "ops").await.unwrap().0.budget_id
}

async fn submit_all(kit: &Kit, new: Vec<NewExecution>) -> Vec<ExecutionId> {
    let ids = new.iter().map(|new| new.fields.execution_id).collect();
    for answer in kit.operations().submit_many(new).await.unwrap() {
        answer.unwrap();
    }
    ids
}

/// Every so many moments a worker dies, so that enough of them do; the next one of the same execution lives.
struct Deaths {
    one_in: usize,
    moments: AtomicUsize,
    mourned: Mutex<BTreeSet<ExecutionId>>,
}

impl Deaths {
    fn one_in(one_in: usize) -> Self {
        Self { one_in, moments: AtomicUsize::new(0), mourned: Mutex::default() }
    }

    fn count(&self) -> usize {
        self.mourned.lock().unwrap().len()
    }

    /// Whether the worker of this execution dies here.
    fn dies(&self, id: ExecutionId) -> bool {
        let mut mourned = self.mourned.lock().unwrap();
        if mourned.contains(&id) {
            return false;
        }
        self.moments.fetch_add(1, Ordering::SeqCst).is_multiple_of(self.one_in) && mourned.insert(id)
    }
}

/// What the workers of a test have in common.
struct Crew {
    budget: BudgetId,
    deaths: Deaths,
    /// What settled reservations used, by the answers their workers got.
    settled: AtomicI64,
    ended: AtomicUsize,
}

impl Crew {
    /// Reports under a key of the execution, so that what a dead worker reported counts once. False: the lease is over, or the
    /// worker is dead.
    async fn report(&self, operations: &Operations, task: &Task, part: usize, n: i64) -> bool {
        let (id, fence, key) = (task.execution_id, fence_of(task), format!("{}-{part}", task.execution_id));
        if self.deaths.dies(id) {
            // In the middle of the report: noted with its execution, and nobody finishes it.
            let call = NoteUsage { dedup_key: Some(key), ..NoteUsage::new(self.budget, tokens(n), id, fence) };
            in_time(operations.client().call(operations.client().route_of(&id), &call).await);
            return false;
        }
        match in_time(operations.report_usage(id, &fence, self.budget, tokens(n), Some(key)).await) {
            Some(ReportUsageResult::Ok | ReportUsageResult::AlreadyApplied) => true,
            Some(ReportUsageResult::HardBreach { .. }) | None => false,
            Some(ReportUsageResult::SoftBreach { .. }) => panic!("there is no soft limit"),
        }
    }

    async fn reserve_and_settle(&self, operations: &Operations, task: &Task) -> bool {
        let (id, reservation) = (task.execution_id, Uuid::now_v7());
        let reserved =
            operations.reserve_under_lease(id, &fence_of(task), self.budget, reservation, tokens(HOLDS)).await;
        match in_time(reserved) {
            // What does not fit as an estimate may fit as it is; if it does not, the breach parks the execution.
            Some(Reserved::HardBreach { .. }) => return self.report(operations, task, 0, USES).await,
            Some(Reserved::Ok { .. }) if !self.deaths.dies(id) => {}
            Some(Reserved::Ok { .. }) | None => return false,
        }
        match in_time(operations.settle_reservation(self.budget, reservation, tokens(USES)).await) {
            None => return false,
            Some(answer) => assert_eq!(answer, ReportUsageResult::Ok, "what is held is there"),
        }
        self.settled.fetch_add(USES, Ordering::SeqCst);
        true
    }

    async fn work(&self, operations: &Operations, task: &Task) {
        let going = match way(task.execution_id) {
            0 => self.reserve_and_settle(operations, task).await,
            1 => self.report(operations, task, 0, 3).await && self.report(operations, task, 1, USES - 3).await,
            _ => self.report(operations, task, 0, USES).await,
        };
        if going
            && !self.deaths.dies(task.execution_id)
            && in_time(operations.client().complete(task.execution_id, fence_of(task), None).await).is_some()
        {
            self.ended.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The answer, unless the machine was so slow that the lease ran out before: then another worker goes on.
fn in_time<T: std::fmt::Debug>(answer: Result<T, Error>) -> Option<T> {
    match answer {
        Err(Error::Engine(error)) => {
            let late = [ErrorCode::StaleLease, ErrorCode::LeaseExpired, ErrorCode::ReservationNotFound];
            assert!(error.error_code().is_some_and(|code| late.contains(&code)), "{error:?}");
            None
        }
        answer => Some(answer.unwrap()),
    }
}

/// How an execution spends, by its id.
fn way(id: ExecutionId) -> u8 {
    id.as_uuid().as_bytes()[9] % 3
}

/// Claimers over these engines, until they are told to stop.
fn claimers<F: Future<Output = ()> + Send>(
    engines: &[(Operations, Dispatcher)],
    each: usize,
    max: u16,
    stop: &CancellationToken,
    work: impl Fn(Operations, Task) -> F + Clone + Send + 'static,
) -> JoinSet<()> {
    let mut running = JoinSet::new();
    for (n, (operations, dispatcher)) in engines.iter().enumerate() {
        for slot in 0..each {
            let (operations, dispatcher, stop, work) =
                (operations.clone(), dispatcher.clone(), stop.clone(), work.clone());
            running.spawn(async move {
                let who = worker(&format!("w{n}-{slot}"), &[], LEASE_MS);
                loop {
                    let tasks = tokio::select! {
                        () = stop.cancelled() => return,
                        tasks = claim(&dispatcher, &who, max, ms(60_000)) => tasks,
                    };
                    futures::future::join_all(tasks.into_iter().map(|task| work(operations.clone(), task))).await;
                }
            });
        }
    }
    running
}

async fn engines(kit: &Kit) -> (Vec<Engine>, Vec<(Operations, Dispatcher)>) {
    let others = vec![kit.another().await, kit.another().await];
    let mut all = vec![(kit.operations().clone(), kit.dispatcher())];
    all.extend(others.iter().map(|engine| (engine.operations().clone(), dispatcher_of(engine))));
    (others, all)
}

/// Used and held of the budget, which never pass its hard limit.
async fn within(operations: &Operations, id: BudgetId) -> (i64, i64) {
    let budget = operations.budget(id).await.unwrap().budget;
    let tokens = &budget.dimensions[0];
    let hard = tokens.hard.unwrap();
    assert!(tokens.used + tokens.held <= hard, "{} used and {} held of {hard}", tokens.used, tokens.held);
    (tokens.used, tokens.held)
}

/// What executions used, as their own ledgers say.
async fn ledgers(operations: &Operations, ids: &[ExecutionId]) -> (i64, u64) {
    let (mut accepted, mut pending) = (0, 0);
    for id in ids {
        let usage = operations.usage(*id).await.unwrap();
        accepted += usage.ledger.iter().map(|line| line.accepted).sum::<i64>();
        pending += usage.pending;
    }
    (accepted, pending)
}

/// Executions of the lane that wait for a budget, and those that could start or run.
async fn waiting(operations: &Operations) -> (i64, i64) {
    let (mut blocked, mut going) = (0, 0);
    for counts in operations.stats().await.unwrap() {
        let PartitionStatsReply::Stats { lanes, .. } = counts.stats;
        for lane in lanes.iter().filter(|counts| counts.lane == LANE) {
            blocked += lane.blocked_budget;
            going += lane.eligible + lane.granted + lane.active;
        }
    }
    (blocked, going)
}

on_both_hosts! {
    async fn a_budget_is_not_passed_by_many_whose_workers_die(kit) {
        let hard = 3 * i64::try_from(many()).unwrap();
        let budget = create_budget(&kit, hard).await;
        let new = (0..many()).map(|n| {
            let mut new = NewExecution::new("default", LANE, "burn");
            // Some are admitted with an estimate, the others as long as something is left.
            let estimate = (n % 2 == 0).then(|| tokens(HOLDS));
            new.fields.budgets = Some(vec![BudgetRef { budget_id: *budget.as_uuid(), estimate }]);
            new
        });
        let ids = submit_all(&kit, new.collect()).await;
        let crew = Arc::new(Crew { budget, deaths: Deaths::one_in(16), settled: AtomicI64::new(0), ended: AtomicUsize::new(0) });
        let (others, engines) = engines(&kit).await;
        let stop = CancellationToken::new();
        let running = claimers(&engines, 6, 8, &stop, {
            let crew = Arc::clone(&crew);
            move |operations, task| { let crew = Arc::clone(&crew); async move { crew.work(&operations, &task).await } }
        });
        let operations = kit.operations();
        // What fits is used, and the rest waits.
        eventually("what fits is used and the rest waits", async || {
            let (used, _) = within(operations, budget).await;
            let (blocked, going) = waiting(operations).await;
            let ended = crew.ended.load(Ordering::SeqCst);
            (used > hard - HOLDS && going == 0 && usize::try_from(blocked).unwrap() + ended == many()).then_some(())
        })
        .await;
        let ended = crew.ended.load(Ordering::SeqCst);
        assert!((many() / 5..many()).contains(&ended), "{ended} ended");
        let limit = LimitPatchBody { hard: Some(Some(1_000_000)), soft: None };
        let change = ChangeBudgetBody { dimensions: [("tokens".to_owned(), limit)].into(), ..ChangeBudgetBody::default() };
        operations.change_budget(budget, &change, "ops").await.unwrap();
        eventually("all have ended", async || {
            within(operations, budget).await;
            (crew.ended.load(Ordering::SeqCst) == many()).then_some(())
        })
        .await;
        stop.cancel();
        running.join_all().await;
        let held = eventually("nothing is held any more", async || Some(within(operations, budget).await.1).filter(|held| *held == 0)).await;
        let accepted = eventually("every report is answered", async || {
            let (accepted, pending) = ledgers(operations, &ids).await;
            (pending == 0).then_some(accepted)
        })
        .await;
        let (used, _) = within(operations, budget).await;
        assert_eq!((used, held), (accepted + crew.settled.load(Ordering::SeqCst), 0));
        let deaths = crew.deaths.count();
        assert!(deaths >= many() / 20, "only {deaths} workers died");
        drop(engines);
        for engine in others {
            engine.stop().await;
        }
    }

    async fn eight_slots_are_not_passed_by_many_whose_workers_die(kit) {
        let cap = 8_i64;
        let id = QuotaPolicyId::from_uuid(Uuid::now_v7());
        kit.operations().create_quota(Quota { concurrency: Some(cap), ..Quota::new(id, "default".to_owned(), false) }, "ops").await.unwrap();
        let new = (0..many()).map(|_| {
            let mut new = NewExecution::new("default", LANE, "call");
            new.fields.quotas = Some(vec![QuotaRef::new(*id.as_uuid(), "k".to_owned())]);
            new
        });
        submit_all(&kit, new.collect()).await;
        let (others, engines) = engines(&kit).await;
        let stop = CancellationToken::new();
        let (inside, most, ended) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)), Arc::new(AtomicUsize::new(0)));
        let deaths = Arc::new(Deaths::one_in(20));
        let running = claimers(&engines, 8, 4, &stop, {
            let (inside, most, ended, deaths) = (Arc::clone(&inside), Arc::clone(&most), Arc::clone(&ended), Arc::clone(&deaths));
            move |operations, task| {
                let (inside, most, ended, deaths) = (Arc::clone(&inside), Arc::clone(&most), Arc::clone(&ended), Arc::clone(&deaths));
                async move {
                    // Within what the store knows as the lease: it began before, and ends behind.
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(ms(rand::random_range(0..4))).await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    if deaths.dies(task.execution_id) {
                        return;
                    }
                    if in_time(operations.client().complete(task.execution_id, fence_of(&task), None).await).is_some() {
                        ended.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
        });
        eventually("all have ended", async || {
            let (_, state) = kit.operations().quota(id, Some("k")).await.unwrap();
            assert!(state.is_none_or(|state| state.held <= cap));
            (ended.load(Ordering::SeqCst) == many()).then_some(())
        })
        .await;
        stop.cancel();
        running.join_all().await;
        assert!(most.load(Ordering::SeqCst) <= cap, "{} at once", most.load(Ordering::SeqCst));
        let by_events = kit.most_at_once().await;
        assert!(i64::try_from(by_events).unwrap() <= cap, "{by_events} at once");
        let deaths = deaths.count();
        assert!(deaths >= many() / 40, "only {deaths} workers died");
        eventually("the slots come back", async || {
            let (_, state) = kit.operations().quota(id, Some("k")).await.unwrap();
            state.is_none_or(|state| state.held == 0 && state.waiting == 0).then_some(())
        })
        .await;
        drop(engines);
        for engine in others {
            engine.stop().await;
        }
    }
}
