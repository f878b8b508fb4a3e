//! The cost of a transition inside the store: time, commands and calls for each operation, alone and in lists.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use ff_core::types::{AttemptId, BudgetId, LeaseId, QuotaPolicyId};
use ff_engine::fence_of;
use ff_script::Route;
use ff_script::generated::{
    BudgetRef, BudgetReset, BudgetScope, ClaimExecutions, ClaimExecutionsReply, CompleteExecution, CreateBudget,
    DimensionLimit, NewBudget, OnHard, OnSoft, PutQuota, Quota, QuotaRate, QuotaRef, RateMode, ResetType, ScopeType,
    Submission, SubmitExecution, Task,
};
use uuid::Uuid;

use super::StoreOptions;
use super::machine::Others;
use super::page;
use super::phases::{claimant, new_execution, show_lane};
use super::store::{Setting, Store};

/// Numbers of operations in one list.
const LISTS: [usize; 3] = [1, 4, 32];
const ROUTE: Route = Route::Execution(0);
/// The id of the attached quota or budget.
const ATTACHED: Uuid = Uuid::from_u128(7 << 64);
/// Number of operations in each step of a round, in any number of lists.
const STEP: usize = 32;

/// The cost of some operations in the store.
#[derive(Clone, Copy, Default)]
struct Spent {
    operations: usize,
    /// The store's own time in its functions if it reports that, otherwise the caller's time.
    micros: f64,
    /// Time in the store's commands; only Valkey reports it.
    inside: f64,
    commands: u64,
}

impl Spent {
    fn add(&mut self, other: Spent) {
        self.operations += other.operations;
        self.micros += other.micros;
        self.inside += other.inside;
        self.commands += other.commands;
    }
}

pub fn run(root: &Path, options: &StoreOptions) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let folder = root.join("target/bench");
    let others = Others::watch()?;
    let rounds = if options.quick { 20 } else { 100 };
    let mut settings = vec![Setting::EMBEDDED_RELAXED, Setting::VALKEY_NO_AOF];
    if let Some(part) = &options.store {
        settings.retain(|setting| setting.name().contains(part.as_str()));
    }
    let mut text = String::from(
        "## Inside the store\n\nThe cost of submit, claim and complete in the store. For Valkey it is the server's own time in functions; \
         for the embedded store the caller's time, without flushes. Figures of one run can be compared, those of two cannot.\n\n\
         | store | in a list | operation | µs each | within commands, µs | commands each |\n| --- | ---: | --- | ---: | ---: | ---: |\n",
    );
    let runs = LISTS.map(|size| (size, Attached::Nothing));
    let runs =
        runs.into_iter().chain([Attached::Quota, Attached::Window, Attached::Budget].map(|attached| (STEP, attached)));
    let runs: Vec<(usize, Attached)> = runs.collect();
    for setting in settings {
        for (size, attached) in &runs {
            let steps = runtime.block_on(measure(setting, &folder, *size, rounds, *attached))?;
            let mut cycle = 0.0;
            for (name, spent) in ["submit", "claim", "complete"].into_iter().zip(steps) {
                let each = |total: f64| total / spent.operations as f64;
                cycle += each(spent.micros);
                let inside = if spent.inside > 0.0 { format!("{:.1}", each(spent.inside)) } else { "-".to_owned() };
                let (store, micros, commands) = (setting.name(), each(spent.micros), each(spent.commands as f64));
                let with = attached.words();
                writeln!(text, "| {store} | {size} | {name}{with} | {micros:.1} | {inside} | {commands:.1} |")?;
            }
            writeln!(text, "| {} | {size} | all three{} | {cycle:.0} | | |", setting.name(), attached.words())?;
        }
    }
    println!("{text}");
    page::write(&folder, "library", &serde_json::json!({ "table": text }), &text)?;
    if options.publish {
        let share = others.share()?;
        ensure!(share < 0.1, "other processes took {:.0} % of the machine; nothing is published", share * 100.0);
        page::publish(&root.join("docs/benchmarks.md"), "library", &text)?;
    }
    Ok(())
}

/// What must admit the measured executions.
#[derive(Clone, Copy, PartialEq)]
enum Attached {
    Nothing,
    Quota,
    Window,
    Budget,
}

impl Attached {
    fn words(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Quota => ", with a quota",
            Self::Window => ", with a sliding window",
            Self::Budget => ", with a budget",
        }
    }

    /// The same submission with this attached.
    fn to(self, fields: Submission) -> Submission {
        let estimate = Some([("tokens".to_owned(), 5)].into());
        match self {
            Self::Nothing => fields,
            Self::Quota | Self::Window => {
                Submission { quotas: Some(vec![QuotaRef::new(ATTACHED, "key".to_owned())]), ..fields }
            }
            Self::Budget => {
                Submission { budgets: Some(vec![BudgetRef { estimate, ..BudgetRef::new(ATTACHED) }]), ..fields }
            }
        }
    }

    /// Creates it with a limit that is never reached here.
    async fn create(self, store: &Store) -> Result<()> {
        let (namespace, much) = ("default".to_owned(), 1_000_000);
        match self {
            Self::Nothing => {}
            Self::Quota | Self::Window => {
                let rate = QuotaRate { limit: much, window_ms: 60_000, mode: RateMode::Sliding };
                let quota = Quota {
                    concurrency: (self == Self::Quota).then_some(much),
                    rate: (self == Self::Window).then_some(rate),
                    ..Quota::new(QuotaPolicyId::from_uuid(ATTACHED), namespace, false)
                };
                store.client().call(Route::Quota(0), &PutQuota { actor: None, quota, version: None }).await?;
            }
            Self::Budget => {
                let dimensions = vec![DimensionLimit { name: "tokens".to_owned(), hard: Some(much), soft: None }];
                let scope = BudgetScope { r#type: ScopeType::Custom, id: None };
                let reset = BudgetReset { r#type: ResetType::None, interval_ms: None, zone: None };
                let id = BudgetId::from_uuid(ATTACHED);
                let budget = NewBudget::new(id, namespace, scope, dimensions, reset, OnSoft::Notify, OnHard::Suspend);
                store.client().call(Route::Budget(0), &CreateBudget { budget, actor: "bench".to_owned() }).await?;
            }
        }
        Ok(())
    }
}

async fn measure(
    setting: Setting,
    folder: &Path,
    size: usize,
    rounds: usize,
    attached: Attached,
) -> Result<[Spent; 3]> {
    let store = Store::open(setting, folder).await?;
    show_lane(&store).await?;
    attached.create(&store).await?;
    let mut sums = [Spent::default(); 3];
    // The first round is not counted, because all caches are cold.
    for round in 0..=rounds {
        let submissions: Vec<_> = (0..STEP)
            .map(|_| {
                let fields = attached.to(new_execution(0).fields);
                (ROUTE, SubmitExecution { submission: Submission { body_digest: "0".repeat(32), ..fields } })
            })
            .collect();
        let submitted = spend(&store, async {
            for list in submissions.chunks(size) {
                for reply in store.client().call_all(list).await {
                    reply?;
                }
            }
            Ok(())
        })
        .await?;
        let mut tasks: Vec<Task> = Vec::new();
        let claimed = spend(&store, async {
            for _ in 0..STEP / size {
                tasks.extend(claim(&store, size).await?);
            }
            Ok(())
        })
        .await?;
        ensure!(tasks.len() == STEP, "{} of {STEP} were claimed", tasks.len());
        let ends: Vec<_> =
            tasks.iter().map(|task| (ROUTE, CompleteExecution::new(task.execution_id, fence_of(task)))).collect();
        let completed = spend(&store, async {
            for list in ends.chunks(size) {
                for reply in store.client().call_all(list).await {
                    reply?;
                }
            }
            Ok(())
        })
        .await?;
        if round > 0 {
            for (sum, spent) in sums.iter_mut().zip([submitted, claimed, completed]) {
                sum.add(spent);
            }
        }
    }
    store.close().await;
    Ok(sums)
}

async fn claim(store: &Store, max: usize) -> Result<Vec<Task>> {
    let who = claimant("measured".to_owned());
    let call = ClaimExecutions {
        kinds: None,
        capabilities: who.capabilities,
        attempt_ids: (0..max).map(|_| AttemptId::mint()).collect(),
        lease_ids: (0..max).map(|_| LeaseId::mint()).collect(),
        instance: who.instance,
        lane: who.lane,
        lease_ttl_ms: who.lease_ttl_ms,
        max: i64::try_from(max)?,
        namespace: who.namespace,
        worker_id: who.worker_id,
    };
    match store.client().call(ROUTE, &call).await? {
        ClaimExecutionsReply::Claimed { tasks, .. } => Ok(tasks),
        other => anyhow::bail!("a claim returned {other:?}"),
    }
}

/// Does some of [`STEP`] operations, and returns their cost in the store.
async fn spend(store: &Store, work: impl Future<Output = Result<()>>) -> Result<Spent> {
    if let Some(server) = store.server() {
        server.command::<String>(&["CONFIG", "RESETSTAT"])?;
        work.await?;
        let stats: String = server.command(&["INFO", "commandstats"])?;
        let mut spent = Spent { operations: STEP, ..Spent::default() };
        for line in stats.lines() {
            let Some((name, facts)) = line.strip_prefix("cmdstat_").and_then(|line| line.split_once(':')) else {
                continue;
            };
            let fact = |wanted: &str| {
                let found = facts.split(',').find_map(|fact| fact.strip_prefix(wanted)?.strip_prefix('='));
                found.and_then(|value| value.parse::<f64>().ok()).unwrap_or_default()
            };
            match name {
                "fcall" => spent.micros += fact("usec"),
                "info" | "config|resetstat" => {}
                _ => {
                    spent.inside += fact("usec");
                    spent.commands += fact("calls") as u64;
                }
            }
        }
        return Ok(spent);
    }
    let (before, began) = (store.host.store_commands().await?, Instant::now());
    work.await?;
    let micros = began.elapsed().as_secs_f64() * 1e6;
    Ok(Spent { operations: STEP, micros, inside: 0.0, commands: store.host.store_commands().await? - before })
}
