//! The unblock reconciler: when a budget has room again, everything that waits for it is told, and asks once more.
//!
//! A budget that refused something and has room again is marked until this is done, so neither a lost announcement nor a
//! crash forgets it. Whoever was refused before the room and came to wait only after the walk is met by the second walk,
//! and by the sweep over all that waits. What cannot be read stays blocked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_script::generated::{
    AcknowledgeCleared, AwaitedBudget, AwaitingBudget, AwaitingBudgetReply, Budget, ClearedBudgets,
    ClearedBudgetsReply, DimensionStatus, MissingQuotas, MissingQuotasReply, SetNextReset, UnblockBudget,
    UnblockBudgetReply, UnblockQuota, UnblockQuotaReply, WaitingForBudgets, WaitingForBudgetsReply,
};
use ff_script::{Client, Error, Route, Wake};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::share::Owned;
use crate::news::{Listener, News};
use crate::operations::{BudgetStatus, Operations, next_reset, refused_with};

const BATCH: i64 = 64;
const AT_ONCE: usize = 16;
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// How many are told of a small room at first, over all partitions.
const FIRST: i64 = 64;
/// And at most.
const SIZE_MAX: i64 = 1 << 20;
/// After so many lines in a row whose heads do not fit, the others are the sweep's.
const MISSES_MAX: usize = 8;
/// Entries of a line that are looked at for those that fit.
const LOOKS: i64 = 64;
/// More rooms than anyone has seen.
const ALL_ROOMS: i64 = i64::MAX >> 10;
/// Those who were told of a small room have this long to take it before more are told.
const NEXT_SHARE: Duration = Duration::from_millis(100);
/// Between the two walks for one room.
const SECOND_WALK: Duration = Duration::from_secs(2);
/// This often one partition of executions is looked at, for budgets and for quotas in turn.
const SWEEP_EVERY: Duration = Duration::from_secs(4);

/// What one step did in one partition of budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unblocked {
    /// Executions that are eligible again.
    pub executions: i64,
    /// The budgets that had room, and how often by now.
    pub budgets: Vec<(BudgetId, i64)>,
    /// More may be marked.
    pub more: bool,
    /// More may fit into some budget than were told at once.
    pub unfinished: bool,
}

/// How many are told of a room at once: few at first, since most rooms are small, and more while there is room left.
#[derive(Debug, Default)]
struct Pace {
    sizes: HashMap<BudgetId, i64>,
    /// The room everyone was told of once; the second time is when it is acknowledged.
    told: HashMap<BudgetId, i64>,
}

impl Pace {
    fn size(&self, budget_id: BudgetId) -> i64 {
        self.sizes.get(&budget_id).copied().unwrap_or(FIRST)
    }

    fn faster(&mut self, budget_id: BudgetId) {
        let size = self.sizes.entry(budget_id).or_insert(FIRST);
        *size = size.saturating_mul(2).min(SIZE_MAX);
    }

    fn forget(&mut self, budget_id: BudgetId) {
        self.sizes.remove(&budget_id);
    }
}

/// Tells those who wait for the marked budgets of a partition; with `acknowledge` the marks go.
///
/// Everyone is told when a limit or a period changed. Of a room that was only given back, as many are told as may fit, the
/// first in line first: telling everyone of every small room would cost each time as much as there are who wait.
pub async fn run_once(operations: &Operations, route: Route, acknowledge: bool) -> Result<Unblocked, Error> {
    step(operations, route, acknowledge, &mut Pace::default()).await
}

async fn step(operations: &Operations, route: Route, acknowledge: bool, pace: &mut Pace) -> Result<Unblocked, Error> {
    let ClearedBudgetsReply::Cleared { items, more } =
        operations.client().call(route, &ClearedBudgets { limit: BATCH }).await?;
    let mut done = Unblocked { more, ..Unblocked::default() };
    for cleared in items {
        let (budget_id, rooms) = (cleared.budget_id, cleared.rooms);
        if cleared.next_reset_wanted {
            supply_next_reset(operations, budget_id).await?;
        }
        if cleared.wide > cleared.told && (acknowledge || pace.told.get(&budget_id) != Some(&cleared.wide)) {
            let everyone = Room { budget_id, rooms: cleared.wide, free: None, most: None };
            done.executions += tell(operations, &everyone).await?;
            pace.told.insert(budget_id, cleared.wide);
        }
        let mut told = cleared.wide;
        let mut unfinished = false;
        if rooms > cleared.wide.max(cleared.told) && has_room(&cleared.free) {
            let some = Room { budget_id, rooms, free: Some(cleared.free), most: None };
            let heard = tell_some(operations, some, pace.size(budget_id)).await?;
            done.executions += heard.count;
            unfinished = heard.stopped;
            if heard.whole {
                told = rooms;
            }
        }
        if unfinished {
            pace.faster(budget_id);
        } else {
            pace.forget(budget_id);
        }
        done.unfinished |= unfinished;
        if acknowledge && !unfinished {
            operations.client().call(route, &AcknowledgeCleared { budget_id, rooms, told }).await?;
            pace.told.remove(&budget_id);
        }
        done.budgets.push((budget_id, rooms));
    }
    Ok(done)
}

/// False when nothing is left below any hard limit: whoever gives something back says so again.
fn has_room(free: &BTreeMap<String, i64>) -> bool {
    free.is_empty() || free.values().any(|left| *left > 0)
}

/// What is left below each hard limit.
fn free_of(budget: &Budget) -> BTreeMap<String, i64> {
    let free = |d: &DimensionStatus| Some((d.name.clone(), (d.hard? - d.used - d.held).max(0)));
    budget.dimensions.iter().filter_map(free).collect()
}

/// Looks at everything that waits in one partition of executions: for a budget that had room since it was told, or for a
/// quota that is there by now. Tells those.
pub async fn sweep_once(operations: &Operations, route: Route) -> Result<i64, Error> {
    Ok(sweep_budgets(operations, route).await? + sweep_quotas(operations, route).await?)
}

async fn sweep_budgets(operations: &Operations, route: Route) -> Result<i64, Error> {
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
        let room = match operations.budget(budget_id).await {
            Ok(BudgetStatus { budget, .. }) => {
                Room { budget_id, rooms: budget.rooms, free: Some(free_of(&budget)), most: None }
            }
            // Gone: whoever waits is refused by name instead of waiting for good.
            Err(error) if refused_with(&error) == Some(ErrorCode::BudgetNotFound) => {
                Room { budget_id, rooms: ALL_ROOMS, free: None, most: None }
            }
            Err(error) => return Err(error),
        };
        if room.rooms > seen && room.free.as_ref().is_none_or(has_room) {
            told += tell_partition(operations, route, &room).await?.count;
        }
    }
    Ok(told)
}

async fn sweep_quotas(operations: &Operations, route: Route) -> Result<i64, Error> {
    let mut missing: BTreeSet<QuotaPolicyId> = BTreeSet::new();
    let mut after = None;
    loop {
        let call = MissingQuotas { after, limit: BATCH };
        let MissingQuotasReply::Missing { quota_ids, next } = operations.client().call(route, &call).await?;
        missing.extend(quota_ids);
        after = next;
        if after.is_none() {
            break;
        }
    }
    let mut told = 0;
    for quota_id in missing {
        match operations.quota(quota_id, None).await {
            Ok(_) => told += tell_of_quota(operations.client(), route, quota_id).await?,
            Err(error) if refused_with(&error) == Some(ErrorCode::QuotaNotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(told)
}

/// Tells those of a partition that were refused because a quota was not there.
pub(super) async fn tell_of_quota(client: &Client, route: Route, quota_id: QuotaPolicyId) -> Result<i64, Error> {
    let (mut told, mut after) = (0, None);
    loop {
        let call = UnblockQuota { after, limit: BATCH, quota_id };
        let UnblockQuotaReply::Unblocked { count, next } = client.call(route, &call).await?;
        told += count;
        after = next;
        if after.is_none() {
            return Ok(told);
        }
    }
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

/// A room some are told of: all who have seen fewer than this many or, of those that fit into what is free, the first in each
/// partition's line.
#[derive(Clone, Debug)]
struct Room {
    budget_id: BudgetId,
    rooms: i64,
    free: Option<BTreeMap<String, i64>>,
    most: Option<i64>,
}

/// What telling did.
#[derive(Clone, Debug)]
struct Told {
    /// Executions that are eligible again.
    count: i64,
    /// The number that may be told at once was reached.
    stopped: bool,
    /// Nobody who waits was left out.
    whole: bool,
    /// What those who were told leave of what was free.
    left: Option<BTreeMap<String, i64>>,
}

/// Tells everyone.
async fn tell(operations: &Operations, room: &Room) -> Result<i64, Error> {
    let told: Vec<Told> = stream::iter(operations.client().execution_routes())
        .map(|route| async move { tell_partition(operations, route, room).await })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(told.iter().map(|told| told.count).sum())
}

/// Tells as many as fit, `size` at most: the lines one after the other, the one with the best head first.
async fn tell_some(operations: &Operations, mut room: Room, size: i64) -> Result<Told, Error> {
    let budget_id = room.budget_id;
    let heads: Vec<(Route, Option<i64>)> = stream::iter(operations.client().execution_routes())
        .map(|route| async move {
            let call = AwaitingBudget { after: None, budget_id, limit: 1 };
            let AwaitingBudgetReply::Waiting { items, .. } = operations.client().call(route, &call).await?;
            Ok::<_, Error>((route, items.first().map(|item| item.score)))
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let mut lines: Vec<(i64, Route)> = heads.iter().filter_map(|(route, head)| Some(((*head)?, *route))).collect();
    lines.sort_unstable();
    let share = (size / i64::try_from(heads.len()).unwrap_or(i64::MAX).max(1)).max(1);
    let mut all = Told { count: 0, stopped: false, whole: true, left: None };
    let mut misses = 0;
    for (_, route) in lines {
        if all.count >= size {
            return Ok(Told { stopped: true, whole: false, ..all });
        }
        if misses == MISSES_MAX || !room.free.as_ref().is_none_or(has_room) {
            return Ok(Told { whole: false, ..all });
        }
        room.most = Some(share.min(size - all.count));
        let told = tell_partition(operations, route, &room).await?;
        misses = if told.count == 0 { misses + 1 } else { 0 };
        room.free = told.left.or(room.free);
        all.count += told.count;
        all.stopped |= told.stopped;
        all.whole &= told.whole;
    }
    Ok(all)
}

async fn tell_partition(operations: &Operations, route: Route, room: &Room) -> Result<Told, Error> {
    let (mut count, mut looks, mut left_out, mut after) = (0, 0, false, None);
    let mut free = room.free.clone();
    loop {
        let call = UnblockBudget {
            after,
            budget_id: room.budget_id,
            free: free.clone(),
            limit: BATCH,
            most: room.most.map(|most| most - count),
            rooms: room.rooms,
        };
        let UnblockBudgetReply::Unblocked { count: more, left, next, passed_over } =
            operations.client().call(route, &call).await?;
        count += more;
        looks += BATCH;
        left_out |= passed_over > 0;
        free = left.or(free);
        after = next;
        if after.is_none() {
            return Ok(Told { count, stopped: false, whole: !left_out, left: free });
        }
        if let Some(most) = room.most {
            if count >= most {
                return Ok(Told { count, stopped: true, whole: false, left: free });
            }
            // The line is long and its head does not fit: what stands behind is the sweep's.
            if looks >= most.saturating_mul(2).max(LOOKS) {
                return Ok(Told { count, stopped: false, whole: false, left: free });
            }
        }
    }
}

/// Starts the reconciler for the partitions this server owns.
pub fn start(operations: Operations, owned: Owned, tasks: &mut JoinSet<()>, stop: CancellationToken) {
    let news = Listener::new(operations.client().host().as_ref());
    let unblock = Unblock {
        operations,
        owned,
        pending: BTreeSet::new(),
        second: BTreeMap::new(),
        next_share: BTreeMap::new(),
        pace: Pace::default(),
        turn: 0,
    };
    tasks.spawn(unblock.run(news, stop));
}

struct Unblock {
    operations: Operations,
    owned: Owned,
    /// Partitions whose budgets may be marked.
    pending: BTreeSet<Route>,
    /// When to walk once more, and let the marks go.
    second: BTreeMap<Route, Instant>,
    /// When to tell more of those that may fit.
    next_share: BTreeMap<Route, Instant>,
    pace: Pace,
    turn: usize,
}

impl Unblock {
    async fn run(mut self, mut news: Listener, stop: CancellationToken) {
        let mut sweep = tokio::time::interval(SWEEP_EVERY);
        sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        sweep.reset();
        loop {
            let pause = if self.step().await { Duration::ZERO } else { AFTER_FAILURE };
            let second = self.second.values().chain(self.next_share.values()).min().copied();
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
        self.next_share.retain(|route, _| owned.contains(route));
        let now = Instant::now();
        let passed = |times: &BTreeMap<Route, Instant>| -> Vec<Route> {
            times.iter().filter(|(_, at)| **at <= now).map(|(route, _)| *route).collect()
        };
        let (again, shares) = (passed(&self.second), passed(&self.next_share));
        let first = std::mem::take(&mut self.pending).into_iter().filter(|route| owned.contains(route));
        let mut due: BTreeMap<Route, bool> = first.chain(shares).map(|route| (route, false)).collect();
        due.extend(again.into_iter().map(|route| (route, true)));
        let mut fine = true;
        for (route, acknowledge) in due {
            self.next_share.remove(&route);
            match step(&self.operations, route, acknowledge, &mut self.pace).await {
                Ok(done) => {
                    if done.unfinished {
                        self.next_share.insert(route, Instant::now() + NEXT_SHARE);
                    }
                    if acknowledge {
                        self.second.remove(&route);
                        // What was marked since has had one walk only, and stays marked or is looked at again.
                        if done.more {
                            self.pending.insert(route);
                        } else if done.unfinished {
                            self.second.insert(route, Instant::now() + SECOND_WALK);
                        }
                    } else if !done.budgets.is_empty() {
                        self.second.entry(route).or_insert_with(|| Instant::now() + SECOND_WALK);
                    }
                }
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
        let Some(route) = owned.get(self.turn / 2 % owned.len().max(1)).copied() else { return };
        let swept = match self.turn % 2 {
            0 => sweep_budgets(&self.operations, route).await,
            _ => sweep_quotas(&self.operations, route).await,
        };
        if let Err(error) = swept {
            tracing::warn!(%route, %error, "a sweep over what waits for budgets and quotas failed");
        }
    }
}
