//! The unblock reconciler: when a budget has room again, everything that waits for it is told, and asks once more.
//!
//! A budget that refused something and has room again is marked until this is done, so neither a lost announcement nor a
//! crash forgets it. Whoever was refused before the room and came to wait only after the walk is met by the second walk,
//! and by the sweep over all that waits. What cannot be read stays blocked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ff_core::error_code::ErrorCode;
use ff_core::types::BudgetId;
use ff_script::generated::{
    AcknowledgeCleared, AwaitedBudget, ClearedBudget, ClearedBudgets, ClearedBudgetsReply, LaneEntry, SetNextReset,
    UnblockBudget, UnblockBudgetReply, WaitingForBudgets, WaitingForBudgetsReply,
};
use ff_script::{Error, Route, Wake};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::share::Owned;
use crate::news::{Listener, News};
use crate::operations::{Operations, next_reset, refused_with};

const BATCH: i64 = 64;
const AT_ONCE: usize = 16;
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// Between the two walks for one room.
const SECOND_WALK: Duration = Duration::from_secs(2);
/// One partition of executions is looked at this often.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// What one step did in one partition of budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unblocked {
    /// Executions that are eligible again.
    pub executions: i64,
    /// The budgets that had room, and how often by now.
    pub budgets: Vec<(BudgetId, i64)>,
    /// More may be marked.
    pub more: bool,
}

/// Tells everything that waits for the marked budgets of a partition; with `acknowledge` the marks go.
pub async fn run_once(operations: &Operations, route: Route, acknowledge: bool) -> Result<Unblocked, Error> {
    let ClearedBudgetsReply::Cleared { items, more } =
        operations.client().call(route, &ClearedBudgets { limit: BATCH }).await?;
    let mut done = Unblocked { more, ..Unblocked::default() };
    if items.is_empty() {
        return Ok(done);
    }
    let lanes = operations.lanes().await?;
    for ClearedBudget { budget_id, next_reset_wanted, rooms } in items {
        if next_reset_wanted {
            supply_next_reset(operations, budget_id).await?;
        }
        done.executions += tell(operations, &lanes, budget_id, rooms).await?;
        if acknowledge {
            operations.client().call(route, &AcknowledgeCleared { budget_id, rooms }).await?;
        }
        done.budgets.push((budget_id, rooms));
    }
    Ok(done)
}

/// Looks at everything that waits for a budget in one partition of executions, and tells those whose budget had room since.
pub async fn sweep_once(operations: &Operations, route: Route) -> Result<i64, Error> {
    let lanes = operations.lanes().await?;
    let mut awaited: BTreeMap<BudgetId, i64> = BTreeMap::new();
    for lane in &lanes {
        let mut after = None;
        loop {
            let call =
                WaitingForBudgets { after, lane: lane.lane.clone(), limit: BATCH, namespace: lane.namespace.clone() };
            let WaitingForBudgetsReply::Waiting { items, next } = operations.client().call(route, &call).await?;
            for AwaitedBudget { budget_id, rooms } in items {
                let fewest = awaited.entry(budget_id).or_insert(rooms);
                *fewest = rooms.min(*fewest);
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
    }
    // Each budget is read once, however many wait for it.
    let mut told = 0;
    for (budget_id, seen) in awaited {
        let rooms = match operations.budget(budget_id).await {
            Ok(status) => status.budget.rooms,
            // Gone: whoever waits is refused by name instead of waiting for good.
            Err(error) if refused_with(&error) == Some(ErrorCode::BudgetNotFound) => i64::MAX >> 10,
            Err(error) => return Err(error),
        };
        if rooms > seen {
            for lane in &lanes {
                told += tell_lane(operations, route, lane, budget_id, rooms).await?;
            }
        }
    }
    Ok(told)
}

/// The calendar's next period ends when its zone says.
async fn supply_next_reset(operations: &Operations, budget_id: BudgetId) -> Result<(), Error> {
    let budget = operations.budget(budget_id).await?.budget;
    match next_reset(&budget.reset, budget.period_since) {
        Ok(Some(next_reset_at)) => {
            let call = SetNextReset { budget_id, next_reset_at, period: budget.period };
            operations.client().call(operations.client().route_of_budget(&budget_id), &call).await?;
        }
        Ok(None) => {}
        Err(error) => tracing::error!(%budget_id, %error, "the next reset of a budget cannot be reckoned"),
    }
    Ok(())
}

async fn tell(operations: &Operations, lanes: &[LaneEntry], budget_id: BudgetId, rooms: i64) -> Result<i64, Error> {
    let mut walks: Vec<(Route, LaneEntry)> = Vec::new();
    for route in operations.client().execution_routes() {
        walks.extend(lanes.iter().map(|lane| (route, lane.clone())));
    }
    let told: Vec<i64> = stream::iter(walks)
        .map(|(route, lane)| async move { tell_lane(operations, route, &lane, budget_id, rooms).await })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(told.into_iter().sum())
}

async fn tell_lane(
    operations: &Operations,
    route: Route,
    lane: &LaneEntry,
    budget_id: BudgetId,
    rooms: i64,
) -> Result<i64, Error> {
    let (mut told, mut after) = (0, None);
    loop {
        let call = UnblockBudget {
            after,
            budget_id,
            lane: lane.lane.clone(),
            limit: BATCH,
            namespace: lane.namespace.clone(),
            rooms,
        };
        let UnblockBudgetReply::Unblocked { count, next } = operations.client().call(route, &call).await?;
        told += count;
        after = next;
        if after.is_none() {
            return Ok(told);
        }
    }
}

/// Starts the reconciler for the partitions this server owns.
pub fn start(operations: Operations, owned: Owned, tasks: &mut JoinSet<()>, stop: CancellationToken) {
    let news = Listener::new(operations.client().host().as_ref());
    let unblock = Unblock { operations, owned, pending: BTreeSet::new(), second: BTreeMap::new(), turn: 0 };
    tasks.spawn(unblock.run(news, stop));
}

struct Unblock {
    operations: Operations,
    owned: Owned,
    /// Partitions whose budgets may be marked.
    pending: BTreeSet<Route>,
    /// When to walk once more, and let the marks go.
    second: BTreeMap<Route, Instant>,
    turn: usize,
}

impl Unblock {
    async fn run(mut self, mut news: Listener, stop: CancellationToken) {
        let mut sweep = tokio::time::interval(SWEEP_EVERY);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        sweep.reset();
        loop {
            let pause = if self.step().await { Duration::ZERO } else { AFTER_FAILURE };
            let second = self.second.values().min().copied();
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                changed = self.owned.changed() => match changed {
                    Ok(()) => self.look_at_all(),
                    Err(_) => return,
                },
                heard = news.next() => match heard {
                    Some(heard) => heard.into_iter().for_each(|item| self.hear(item)),
                    None => return,
                },
                _ = sweep.tick() => self.sweep().await,
                () = tokio::time::sleep_until(second.unwrap_or_else(Instant::now)), if second.is_some() => {}
                () = tokio::time::sleep(pause), if !self.pending.is_empty() => {}
            }
        }
    }

    /// Takes a batch of every partition that is due; false when one failed.
    async fn step(&mut self) -> bool {
        let owned = self.owned.borrow().clone();
        self.second.retain(|route, _| owned.contains(route));
        let now = Instant::now();
        let again: Vec<Route> = self.second.iter().filter(|(_, at)| **at <= now).map(|(route, _)| *route).collect();
        let first = std::mem::take(&mut self.pending).into_iter().filter(|route| owned.contains(route));
        let due: BTreeMap<Route, bool> =
            first.map(|route| (route, false)).chain(again.into_iter().map(|route| (route, true))).collect();
        let mut fine = true;
        for (route, acknowledge) in due {
            match run_once(&self.operations, route, acknowledge).await {
                Ok(done) if acknowledge => {
                    self.second.remove(&route);
                    // What was marked since has had one walk only, and stays marked or is looked at again.
                    if done.more {
                        self.pending.insert(route);
                    }
                }
                Ok(done) if done.budgets.is_empty() => {}
                Ok(_) => drop(self.second.entry(route).or_insert_with(|| Instant::now() + SECOND_WALK)),
                Err(error) => {
                    tracing::warn!(%route, %error, "what waits for budgets could not be told");
                    self.second.remove(&route);
                    self.pending.insert(route);
                    fine = false;
                }
            }
        }
        fine
    }

    fn hear(&mut self, item: News) {
        match item {
            News::Said(route, Wake::Budget { .. }) => drop(self.pending.insert(route)),
            News::Said(..) => {}
            News::Lost(routes) => self.pending.extend(routes.into_iter().filter(|r| matches!(r, Route::Budget(_)))),
            News::LostAny => self.look_at_all(),
        }
    }

    fn look_at_all(&mut self) {
        let owned = self.owned.borrow_and_update().clone();
        self.pending.extend(owned.iter().copied().filter(|route| matches!(route, Route::Budget(_))));
    }

    /// Looks at the next partition of executions.
    async fn sweep(&mut self) {
        let owned: Vec<Route> =
            self.owned.borrow().iter().copied().filter(|route| matches!(route, Route::Execution(_))).collect();
        self.turn = self.turn.wrapping_add(1);
        if let Some(route) = owned.get(self.turn % owned.len().max(1)).copied()
            && let Err(error) = sweep_once(&self.operations, route).await
        {
            tracing::warn!(%route, %error, "a sweep over what waits for budgets failed");
        }
    }
}
