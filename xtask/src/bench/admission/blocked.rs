//! Many executions that wait for one budget: the cost of refusing them, of keeping them waiting, and of resuming them
//! all.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ff_engine::background::unblock;
use ff_script::generated::{ChangeBudget, DimensionLimit, PartitionStatsReply};

use super::super::phases::new_execution;
use super::super::store::Setting;
use super::super::waits::world::{World, claim_many};
use super::runs::{budget, estimate};

const BATCH: usize = 64;
const SUBMIT: usize = 1_000;
const SLOTS: u16 = 512;
const OVER: Duration = Duration::from_secs(300);

/// The cost of one step.
pub struct Step {
    pub name: &'static str,
    pub calls: usize,
    pub at_most: Option<usize>,
    pub seconds: Option<f64>,
}

/// The cost of all steps.
pub struct Blocked {
    pub executions: usize,
    pub steps: Vec<Step>,
}

/// The numbers of executions that wait for a budget and of those that could start.
async fn standing(world: &World) -> Result<(usize, usize)> {
    let (mut blocked, mut eligible) = (0, 0);
    for counts in world.operations().stats().await? {
        let PartitionStatsReply::Stats { lanes, .. } = counts.stats;
        for lane in lanes {
            blocked += lane.blocked_budget;
            eligible += lane.eligible;
        }
    }
    Ok((usize::try_from(blocked)?, usize::try_from(eligible)?))
}

async fn until(world: &World, wanted: (usize, usize)) -> Result<()> {
    let limit = Instant::now() + OVER;
    loop {
        let now = standing(world).await?;
        if now == wanted {
            return Ok(());
        }
        ensure!(Instant::now() < limit, "{} wait and {} may start, wanted {wanted:?}", now.0, now.1);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Counts calls from a certain moment on.
struct Since<'a> {
    world: &'a World,
    calls: BTreeMap<&'static str, usize>,
    began: Instant,
}

impl<'a> Since<'a> {
    fn now(world: &'a World) -> Self {
        Self { world, calls: world.store.counted.calls(), began: Instant::now() }
    }

    fn calls(&self, function: &str) -> usize {
        let count = |calls: &BTreeMap<&'static str, usize>| calls.get(function).copied().unwrap_or_default();
        count(&self.world.store.counted.calls()) - count(&self.calls)
    }

    fn seconds(&self) -> Option<f64> {
        Some(self.began.elapsed().as_secs_f64())
    }
}

/// Blocks this many executions, lets them wait, raises the limit, and runs them.
pub async fn measure(setting: Setting, folder: &Path, count: usize) -> Result<Blocked> {
    let world = World::open(setting, folder).await?;
    let (operations, partitions) = (world.operations(), usize::from(world.store.partitions()));
    let mut steps = Vec::new();
    let id = budget(&world, 9).await?;
    for from in (0..count).step_by(SUBMIT) {
        let new = (from..count.min(from + SUBMIT)).map(|n| {
            let mut new = new_execution(u16::try_from(n % 65_536).unwrap_or_default());
            new.fields.priority = i64::try_from(n * 37 % 101).ok();
            new.fields.budgets = Some(vec![estimate(id)]);
            new
        });
        for answer in operations.submit_many(new.collect()).await? {
            answer?;
        }
    }

    let since = Since::now(&world);
    let dispatcher = world.dispatcher.clone();
    let waiting = tokio::spawn(async move { claim_many(&dispatcher, SLOTS).await });
    until(&world, (count, 0)).await?;
    let seconds = since.seconds();
    let batches = count.div_ceil(BATCH) + 8 * partitions;
    for (name, function) in [("refuse: grants", "ff_issue_grants"), ("refuse: admission", "ff_admit_budget")] {
        steps.push(Step { name, calls: since.calls(function), at_most: Some(2 * batches), seconds });
    }
    steps.push(Step {
        name: "refuse: noted",
        calls: since.calls("ff_block_executions"),
        at_most: Some(2 * batches),
        seconds,
    });
    waiting.abort();

    let since = Since::now(&world);
    for route in operations.client().execution_routes() {
        unblock::sweep_once(operations, route).await?;
    }
    // The engine's own cycles may add calls.
    let most = partitions + 2 + since.began.elapsed().as_secs() as usize;
    let cycles = "a cycle over each partition: budget reads";
    steps.push(Step {
        name: cycles,
        calls: since.calls("ff_get_budget"),
        at_most: Some(most),
        seconds: since.seconds(),
    });

    let since = Since::now(&world);
    let limits = vec![DimensionLimit { name: "tokens".to_owned(), hard: Some(1_000_000_000), soft: None }];
    let raise = ChangeBudget::new("bench".to_owned(), id, limits);
    let client = operations.client();
    client.call(client.route_of_budget(&id), &raise).await?;
    until(&world, (0, count)).await?;
    let told = since.calls("ff_unblock_budget");
    steps.push(Step { name: "raise: told", calls: told, at_most: Some(2 * batches), seconds: since.seconds() });
    let reads = since.calls("ff_get_budget");
    let most = 2 + since.began.elapsed().as_secs() as usize;
    steps.push(Step { name: "raise: budget reads", calls: reads, at_most: Some(most), seconds: None });

    let since = Since::now(&world);
    let mut started = 0;
    while started < count {
        let tasks = claim_many(&world.dispatcher, SLOTS).await?;
        ensure!(!tasks.is_empty(), "{started} of {count} started");
        started += tasks.len();
    }
    let admitted = since.calls("ff_admit_budget");
    steps.push(Step { name: "start all: admission", calls: admitted, at_most: None, seconds: since.seconds() });
    world.close().await;
    Ok(Blocked { executions: count, steps })
}
