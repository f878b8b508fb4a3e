//! The measured work: no-ops with something attached, submitted and run by a few workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_engine::{NewExecution, fence_of};
use ff_script::generated::{
    BudgetRef, BudgetReset, BudgetScope, DimensionLimit, NewBudget, OnHard, OnSoft, Quota, QuotaRate, QuotaRef,
    RateMode, ResetType, ScopeType,
};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::super::load::drive;
use super::super::machine;
use super::super::phases::{NAMESPACE, new_execution};
use super::super::waits::world::{World, claim_many};
use ff_testkit::Tasks;

const SUBMITTERS: usize = 64;
const WORKERS: usize = 4;
/// Number of tasks that a worker runs at once.
const SLOTS: u16 = 32;
/// The slots of the limiting quota: a quarter of what the workers could run.
const NARROW: i64 = 32;
const WARM_UP: usize = 200;
const OVER: Duration = Duration::from_secs(120);

/// What each execution has attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    Nothing,
    Concurrency,
    Rate,
    Budget,
    QuotaAndBudget,
    NarrowQuota,
}

impl Attached {
    pub const ALL: [Attached; 6] = [
        Attached::Nothing,
        Attached::Concurrency,
        Attached::Rate,
        Attached::Budget,
        Attached::QuotaAndBudget,
        Attached::NarrowQuota,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Attached::Nothing => "nothing",
            Attached::Concurrency => "a quota: so many at once",
            Attached::Rate => "a quota: so many in a sliding window",
            Attached::Budget => "a budget with an estimate",
            Attached::QuotaAndBudget => "both",
            Attached::NarrowQuota => "a quota of 32 at once for 128 slots",
        }
    }

    /// The minimum share of the plain rate.
    pub fn share_min(self) -> Option<f64> {
        matches!(self, Attached::Concurrency | Attached::Rate | Attached::Budget).then_some(0.7)
    }
}

/// The results of one run.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Executions per second until a waiting queue was done and all holds were given back.
    pub drained: f64,
    /// The same while they were submitted.
    pub end_to_end: f64,
    /// CPU seconds per 1_000 executions of this process and of the store's, end to end.
    pub cpu: (f64, f64),
    /// Store commands per execution, end to end.
    pub store_commands: f64,
    /// Calls of each function of the library per execution, end to end.
    pub calls: BTreeMap<&'static str, f64>,
}

/// The quotas and budgets of one run.
struct Names {
    quotas: Vec<QuotaPolicyId>,
    budgets: Vec<BudgetId>,
}

async fn quota(world: &World, concurrency: Option<i64>, rate: Option<QuotaRate>) -> Result<QuotaPolicyId> {
    let id = QuotaPolicyId::from_uuid(Uuid::now_v7());
    let quota = Quota { concurrency, rate, ..Quota::new(id, NAMESPACE.to_owned(), false) };
    world.operations().create_quota(quota, "bench").await?;
    Ok(id)
}

/// A budget whose limit is never reached here.
pub async fn budget(world: &World, hard: i64) -> Result<BudgetId> {
    let new = NewBudget {
        budget_id: BudgetId::mint(),
        namespace: NAMESPACE.to_owned(),
        parent: None,
        next_reset_at: None,
        scope: BudgetScope { r#type: ScopeType::Custom, id: None },
        dimensions: vec![DimensionLimit { name: "tokens".to_owned(), hard: Some(hard), soft: None }],
        reset: BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None },
        on_soft: OnSoft::Notify,
        on_hard: OnHard::Suspend,
    };
    Ok(world.operations().create_budget(new, "bench").await?.0.budget_id)
}

/// A reference to a budget, with an estimate.
pub fn estimate(id: BudgetId) -> BudgetRef {
    BudgetRef { budget_id: *id.as_uuid(), estimate: Some(BTreeMap::from([("tokens".to_owned(), 10)])) }
}

impl Names {
    async fn make(world: &World, attached: Attached) -> Result<Names> {
        let rate = QuotaRate { limit: 1_000_000, window_ms: 60_000, mode: RateMode::Sliding };
        let (mut quotas, mut budgets) = (Vec::new(), Vec::new());
        match attached {
            Attached::Nothing => {}
            Attached::Concurrency => quotas.push(quota(world, Some(100_000), None).await?),
            Attached::Rate => quotas.push(quota(world, None, Some(rate)).await?),
            Attached::NarrowQuota => quotas.push(quota(world, Some(NARROW), None).await?),
            Attached::Budget => budgets.push(budget(world, 1_000_000_000).await?),
            Attached::QuotaAndBudget => {
                quotas.push(quota(world, Some(100_000), None).await?);
                budgets.push(budget(world, 1_000_000_000).await?);
            }
        }
        Ok(Names { quotas, budgets })
    }

    fn execution(&self, n: usize) -> NewExecution {
        let mut new = new_execution(u16::try_from(n % 65_536).unwrap_or_default());
        let quotas = self.quotas.iter().map(|id| QuotaRef::new(*id.as_uuid(), "key".to_owned()));
        new.fields.quotas = (!self.quotas.is_empty()).then(|| quotas.collect());
        new.fields.budgets = (!self.budgets.is_empty()).then(|| self.budgets.iter().copied().map(estimate).collect());
        new
    }

    /// Waits until all holds were given back.
    async fn settled(&self, world: &World) -> Result<()> {
        let until = Instant::now() + OVER;
        for id in &self.quotas {
            while world.operations().quota(*id, Some("key")).await?.1.is_some_and(|state| state.held > 0) {
                ensure!(Instant::now() < until, "slots of {id} are still held");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        for id in &self.budgets {
            while world.operations().budget(*id).await?.holders > 0 {
                ensure!(Instant::now() < until, "something of {id} is still held");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        Ok(())
    }
}

async fn submit(world: &World, names: &Arc<Names>, count: usize) -> Result<()> {
    let (operations, names) = (world.operations().clone(), Arc::clone(names));
    let work = move |_, n| {
        let (operations, names) = (operations.clone(), Arc::clone(&names));
        async move { Ok(operations.submit(names.execution(n)).await?) }
    };
    drive(SUBMITTERS, (0..count).collect(), work).await?;
    Ok(())
}

/// Workers that complete every task at once.
struct Crew {
    stop: CancellationToken,
    done: Arc<AtomicUsize>,
    tasks: Vec<tokio::task::JoinHandle<Result<()>>>,
}

impl Crew {
    fn start(world: &World) -> Crew {
        let (stop, done) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let one = |_| {
            let (operations, dispatcher) = (world.operations().clone(), world.dispatcher.clone());
            let (stopping, done) = (stop.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                loop {
                    let tasks = tokio::select! {
                        () = stopping.cancelled() => return Ok(()),
                        tasks = claim_many(&dispatcher, SLOTS) => tasks?,
                    };
                    let mut running: FuturesUnordered<_> = tasks
                        .iter()
                        .map(|task| {
                            operations.client().complete(task.execution_id, fence_of(task), Some(b"{}".to_vec()))
                        })
                        .collect();
                    while let Some(answer) = running.next().await {
                        answer?;
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                }
            })
        };
        let tasks = (0..WORKERS).map(one).collect();
        Crew { stop, done, tasks }
    }

    /// Waits until this many are done, and stops the workers.
    async fn finish(self, count: usize) -> Result<()> {
        let until = Instant::now() + OVER;
        while self.done.load(Ordering::SeqCst) < count {
            let done = self.done.load(Ordering::SeqCst);
            ensure!(Instant::now() < until, "{done} of {count} were done in {OVER:?}");
            ensure!(!self.tasks.iter().any(tokio::task::JoinHandle::is_finished), "a worker has ended early");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.stop.cancel();
        for task in self.tasks {
            task.await??;
        }
        Ok(())
    }
}

/// Warms up every code path and partition.
pub async fn warm_up(world: &World) -> Result<()> {
    for attached in [Attached::Nothing, Attached::QuotaAndBudget] {
        run(world, attached, WARM_UP).await?;
    }
    Ok(())
}

async fn run(world: &World, attached: Attached, count: usize) -> Result<f64> {
    let names = Arc::new(Names::make(world, attached).await?);
    let began = Instant::now();
    let crew = Crew::start(world);
    submit(world, &names, count).await?;
    crew.finish(count).await?;
    names.settled(world).await?;
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

fn cpu(world: &World) -> Result<(f64, f64)> {
    let server = world.store.server_pid().map(machine::cpu_seconds).transpose()?;
    Ok((machine::cpu_seconds(std::process::id())?, server.unwrap_or_default()))
}

/// First drains a waiting queue, then runs the same work while it is submitted.
pub async fn measure(world: &World, attached: Attached, count: usize) -> Result<Figures> {
    let names = Arc::new(Names::make(world, attached).await?);
    submit(world, &names, count).await?;
    let began = Instant::now();
    Crew::start(world).finish(count).await?;
    names.settled(world).await?;
    let drained = count as f64 / began.elapsed().as_secs_f64();
    let (before, calls) = (world.store.host.store_commands().await?, world.store.counted.calls());
    let cpu_before = cpu(world)?;
    let end_to_end = run(world, attached, count).await?;
    let cpu_after = cpu(world)?;
    let commands = world.store.host.store_commands().await? - before;
    let mut calls_each = BTreeMap::new();
    for (function, n) in world.store.counted.calls() {
        let n = n - calls.get(function).copied().unwrap_or_default();
        if n > 0 {
            calls_each.insert(function, n as f64 / count as f64);
        }
    }
    let per_1000 = 1_000.0 / count as f64;
    let cpu = ((cpu_after.0 - cpu_before.0) * per_1000, (cpu_after.1 - cpu_before.1) * per_1000);
    Ok(Figures { drained, end_to_end, cpu, store_commands: commands as f64 / count as f64, calls: calls_each })
}
