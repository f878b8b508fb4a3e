//! The unblock reconciler: when a budget has room again, everything that waits for it is told, and asks once more.
//!
//! A budget that refused something and has room again is marked until this is done, so neither a lost announcement nor a
//! crash forgets it. Whoever was refused before the room and came to wait only after the walk is met by the second walk, which
//! comes when no grant of that time is open any more, and by the sweep over all that waits. What cannot be read stays blocked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_script::generated::{
    AcknowledgeCleared, AwaitedBudget, AwaitingBudget, AwaitingBudgetReply, AwaitsPosition, Budget, ClearedBudget,
    ClearedBudgets, ClearedBudgetsReply, DimensionStatus, MissingQuotas, MissingQuotasReply, SetNextReset,
    UnblockBudget, UnblockBudgetReply, UnblockQuota, UnblockQuotaReply, WaitingForBudgets, WaitingForBudgetsReply,
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
/// After so many looks in a row at lines whose heads do not fit, those behind them are looked at.
const MISSES_MAX: usize = 8;
/// Looks in a row behind the heads that find nobody, until the next share.
const MISSES_BEHIND_MAX: usize = 32;
/// Entries of a line that are looked at for those that fit, before it is the next line's turn.
const LOOKS: i64 = 64;
/// More rooms than anyone has seen.
const ALL_ROOMS: i64 = i64::MAX >> 10;
/// Those who were told of a small room have this long to take it before more are told.
const NEXT_SHARE: Duration = Duration::from_millis(100);
/// Between the two walks for one room: longer than the grants of the dispatcher, under which a refusal may still be recorded.
const SECOND_WALK: Duration = Duration::from_secs(6);
/// This often one partition of executions is looked at, for budgets and for quotas in turn.
const SWEEP_EVERY: Duration = Duration::from_secs(8);

/// What one step did in one partition of budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unblocked {
    /// Executions that are eligible again.
    pub executions: i64,
    /// The budgets that had room, and how often by now.
    pub budgets: Vec<(BudgetId, i64)>,
    /// More may fit into some budget than were told at once.
    pub unfinished: bool,
    /// When someone may have come to wait who has to be told as well.
    again: Option<Instant>,
}

/// What is remembered of budgets that are marked.
#[derive(Debug, Default)]
struct Pace {
    /// How long after its first walk a room is walked for again and acknowledged; never without.
    patience: Option<Duration>,
    /// How many are told of a room at once: few at first, since most rooms are small, and more while there is room left.
    sizes: HashMap<BudgetId, i64>,
    /// The room everyone was told of once.
    told: HashMap<BudgetId, i64>,
    walks: HashMap<BudgetId, Walk>,
    /// The lines that were not looked at to their end, and how far they were.
    places: HashMap<BudgetId, Vec<Line>>,
}

/// A first walk that is done: of which room, and when.
#[derive(Clone, Copy, Debug)]
struct Walk {
    route: Route,
    rooms: i64,
    at: Instant,
    /// The latest room everyone who waits was told of since.
    latest: i64,
}

impl Pace {
    fn size(&self, budget_id: BudgetId) -> i64 {
        self.sizes.get(&budget_id).copied().unwrap_or(FIRST)
    }

    fn faster(&mut self, budget_id: BudgetId) {
        let size = self.sizes.entry(budget_id).or_insert(FIRST);
        *size = size.saturating_mul(2).min(SIZE_MAX);
    }

    /// When the second walk for the room of this one is due.
    fn second(&self, walk: &Walk) -> Option<Instant> {
        Some(walk.at + self.patience?)
    }

    /// Budgets of the partition that are not marked any more are forgotten.
    fn keep(&mut self, route: Route, marked: &[ClearedBudget]) {
        let marked: BTreeSet<BudgetId> = marked.iter().map(|cleared| cleared.budget_id).collect();
        self.walks.retain(|id, walk| walk.route != route || marked.contains(id));
    }
}

/// Tells those who wait for the marked budgets of a partition; with `acknowledge` the marks go.
///
/// Everyone is told when a limit or a period changed. Of a room that was only given back, as many are told as may fit, the
/// first in line first: telling everyone of every small room would cost each time as much as there are who wait.
pub async fn run_once(operations: &Operations, route: Route, acknowledge: bool) -> Result<Unblocked, Error> {
    let patience = acknowledge.then_some(Duration::ZERO);
    step(operations, route, &mut Pace { patience, ..Pace::default() }).await
}

/// Every marked budget of a partition.
async fn cleared(client: &Client, route: Route) -> Result<Vec<ClearedBudget>, Error> {
    let mut all = Vec::new();
    loop {
        let offset = i64::try_from(all.len()).unwrap_or(i64::MAX);
        let call = ClearedBudgets { offset: Some(offset), ..ClearedBudgets::new(BATCH) };
        let ClearedBudgetsReply::Cleared { items, more } = client.call(route, &call).await?;
        all.extend(items);
        if !more {
            return Ok(all);
        }
    }
}

async fn step(operations: &Operations, route: Route, pace: &mut Pace) -> Result<Unblocked, Error> {
    let marked = cleared(operations.client(), route).await?;
    pace.keep(route, &marked);
    let mut done = Unblocked::default();
    for cleared in marked {
        let (budget_id, rooms) = (cleared.budget_id, cleared.rooms);
        done.budgets.push((budget_id, rooms));
        if cleared.next_reset_wanted {
            supply_next_reset(operations, budget_id).await?;
        }
        let walk = pace.walks.get(&budget_id).copied();
        let due = walk.and_then(|walk| pace.second(&walk)).filter(|at| *at > Instant::now());
        if let (Some(at), Some(Walk { latest, .. })) = (due, walk)
            && latest == rooms
        {
            // Everyone who waits was told of this room once; those who came since are told by the second walk.
            done.again = done.again.into_iter().chain([at]).min();
            continue;
        }
        let second = walk.is_some() && due.is_none();
        if cleared.wide > cleared.told && (second || pace.told.get(&budget_id) != Some(&cleared.wide)) {
            let everyone = Room { budget_id, rooms: cleared.wide, free: None, most: None };
            done.executions += tell(operations, &everyone).await?;
            pace.told.insert(budget_id, cleared.wide);
        }
        let mut told = cleared.wide;
        if rooms > cleared.wide.max(cleared.told) && has_room(&cleared.free) {
            let some = Room { budget_id, rooms, free: Some(cleared.free), most: None };
            let place = pace.places.remove(&budget_id).unwrap_or_default();
            let heard = tell_some(operations, some, pace.size(budget_id), place).await?;
            done.executions += heard.count;
            if heard.whole {
                told = rooms;
            }
            if heard.stopped {
                pace.faster(budget_id);
            }
            if !heard.behind.is_empty() {
                pace.places.insert(budget_id, heard.behind.clone());
            }
            if heard.stopped || !heard.behind.is_empty() {
                done.unfinished = true;
                continue;
            }
        } else {
            pace.places.remove(&budget_id);
        }
        pace.sizes.remove(&budget_id);
        let first = Walk { route, rooms, at: Instant::now(), latest: rooms };
        let walk = Walk { latest: rooms, ..walk.unwrap_or(first) };
        let mut next = Some(walk);
        if pace.second(&walk).is_some_and(|at| at <= Instant::now()) {
            // Of a later room this was the first walk.
            let told = told.min(walk.rooms);
            operations.client().call(route, &AcknowledgeCleared { budget_id, rooms: walk.rooms, told }).await?;
            if cleared.wide <= walk.rooms {
                pace.told.remove(&budget_id);
            }
            pace.walks.remove(&budget_id);
            next = (rooms > walk.rooms).then_some(first);
        }
        if let Some(walk) = next {
            pace.walks.insert(budget_id, walk);
            done.again = done.again.into_iter().chain(pace.second(&walk)).min();
        }
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
        // Of a room that is wide everyone is told, also who waits for an approval and fits nowhere.
        let (wide, some) = match operations.budget(budget_id).await {
            Ok(BudgetStatus { budget, .. }) => {
                let some = Room { budget_id, rooms: budget.rooms, free: Some(free_of(&budget)), most: None };
                (budget.wide, Some(some))
            }
            // Gone: whoever waits is refused by name instead of waiting for good.
            Err(error) if refused_with(&error) == Some(ErrorCode::BudgetNotFound) => (ALL_ROOMS, None),
            Err(error) => return Err(error),
        };
        let everyone = Some(Room { budget_id, rooms: wide, free: None, most: None });
        for room in everyone.into_iter().chain(some) {
            if room.rooms > seen && room.free.as_ref().is_none_or(has_room) {
                told += tell_partition(operations, route, &room, None).await?.count;
            }
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

/// A partition's line, and behind whom it goes on.
#[derive(Clone, Debug)]
struct Line {
    route: Route,
    after: Option<AwaitsPosition>,
}

/// What telling did.
#[derive(Clone, Debug, Default)]
struct Told {
    /// Executions that are eligible again.
    count: i64,
    /// The number that may be told at once was reached.
    stopped: bool,
    /// Nobody who waits was left out.
    whole: bool,
    /// What those who were told leave of what was free.
    left: Option<BTreeMap<String, i64>>,
    /// The lines that have not been looked at to their end though there is room left.
    behind: Vec<Line>,
}

/// Tells everyone.
async fn tell(operations: &Operations, room: &Room) -> Result<i64, Error> {
    let told: Vec<Told> = stream::iter(operations.client().execution_routes())
        .map(|route| async move { tell_partition(operations, route, room, None).await })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(told.iter().map(|told| told.count).sum())
}

/// Tells as many as fit, `size` at most: the lines one after the other, the one with the best head first. When those in front do
/// not fit, it goes on behind them, from `place` on: where it got to the last time.
async fn tell_some(operations: &Operations, mut room: Room, size: i64, place: Vec<Line>) -> Result<Told, Error> {
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
    let share = (size / i64::try_from(heads.len()).unwrap_or(i64::MAX).max(1)).max(1);
    let mut lines: Vec<(i64, Route)> = heads.iter().filter_map(|(route, head)| Some(((*head)?, *route))).collect();
    lines.sort_unstable();
    let lines = lines.into_iter().map(|(_, route)| Line { route, after: None }).collect();
    let mut all = tell_lines(operations, &mut room, size, share, lines, MISSES_MAX).await?;
    if all.stopped || all.behind.is_empty() {
        return Ok(all);
    }
    let lines = if place.is_empty() { std::mem::take(&mut all.behind) } else { place };
    let behind = tell_lines(operations, &mut room, size - all.count, share, lines, MISSES_BEHIND_MAX).await?;
    Ok(Told { count: all.count + behind.count, whole: false, ..behind })
}

/// Tells as many of some lines as fit, `size` at most and `share` of each; until so many looks in a row found nobody.
async fn tell_lines(
    operations: &Operations,
    room: &mut Room,
    size: i64,
    share: i64,
    lines: Vec<Line>,
    misses_max: usize,
) -> Result<Told, Error> {
    let mut all = Told { whole: true, ..Told::default() };
    let (mut misses, mut lines) = (0, lines.into_iter());
    while let Some(Line { route, after }) = lines.next() {
        let full = !room.free.as_ref().is_none_or(has_room);
        if full {
            return Ok(Told { whole: false, behind: Vec::new(), ..all });
        }
        if all.count >= size || misses == misses_max {
            all.behind.push(Line { route, after });
            all.behind.extend(lines);
            return Ok(Told { stopped: all.count >= size, whole: false, ..all });
        }
        room.most = Some(share.min(size - all.count));
        let told = tell_partition(operations, route, room, after).await?;
        misses = if told.count == 0 { misses + 1 } else { 0 };
        room.free = told.left.or(room.free.take());
        all.count += told.count;
        all.stopped |= told.stopped;
        all.whole &= told.whole;
        all.behind.extend(told.behind);
    }
    if !room.free.as_ref().is_none_or(has_room) {
        all.behind.clear();
    }
    Ok(all)
}

async fn tell_partition(
    operations: &Operations,
    route: Route,
    room: &Room,
    mut after: Option<AwaitsPosition>,
) -> Result<Told, Error> {
    let mut all = Told { whole: true, left: room.free.clone(), ..Told::default() };
    let mut looks = 0;
    loop {
        let call = UnblockBudget {
            after,
            budget_id: room.budget_id,
            free: all.left.clone(),
            limit: BATCH,
            most: room.most.map(|most| most - all.count),
            rooms: room.rooms,
        };
        let UnblockBudgetReply::Unblocked { count, left, next, passed_over } =
            operations.client().call(route, &call).await?;
        all.count += count;
        looks += BATCH;
        all.whole &= passed_over == 0;
        all.left = left.or(all.left);
        after = next;
        if after.is_none() {
            return Ok(all);
        }
        // The line is long: those behind have their turn after the other lines.
        if let Some(most) = room.most
            && (all.count >= most || looks >= most.saturating_mul(2).max(LOOKS))
        {
            all.stopped = all.count >= most;
            return Ok(Told { whole: false, behind: vec![Line { route, after }], ..all });
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
        pace: Pace { patience: Some(SECOND_WALK), ..Pace::default() },
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
        let first = std::mem::take(&mut self.pending).into_iter().filter(|route| owned.contains(route));
        let due: BTreeSet<Route> = first.chain(passed(&self.second)).chain(passed(&self.next_share)).collect();
        let mut fine = true;
        for route in due {
            self.next_share.remove(&route);
            self.second.remove(&route);
            match step(&self.operations, route, &mut self.pace).await {
                Ok(done) => {
                    if done.unfinished {
                        self.next_share.insert(route, Instant::now() + NEXT_SHARE);
                    }
                    self.second.extend(done.again.map(|at| (route, at)));
                }
                Err(error) => {
                    tracing::warn!(%route, %error, "what waits for budgets could not be told");
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
