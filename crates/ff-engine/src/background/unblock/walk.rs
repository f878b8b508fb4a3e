//! A walk: those who wait for the marked budgets of one partition are told.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use ff_core::types::BudgetId;
use ff_script::generated::{AcknowledgeCleared, ClearedBudget, ClearedBudgets, ClearedBudgetsReply, SetNextReset};
use ff_script::{Client, Error, Route};
use tokio::time::Instant;

use super::BATCH;
use super::tell::{Opening, Waiters, tell_everyone, tell_some};
use crate::operations::{Operations, next_reset};

/// How many are told of a narrow opening at first, over all partitions.
const FIRST: i64 = 64;
/// And at most.
const SIZE_MAX: i64 = 1 << 20;

/// What one step did in one partition of budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unblocked {
    /// Executions that are eligible again.
    pub executions: i64,
    /// The budgets that opened, and how often by now.
    pub budgets: Vec<(BudgetId, i64)>,
    /// More may fit into some budget than were told at once.
    pub unfinished: bool,
    /// When someone may have come to wait who has to be told as well.
    pub(super) again: Option<Instant>,
}

/// What is remembered of budgets that are marked.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// How long after its first walk an opening is walked for again and acknowledged; never when absent.
    patience: Option<Duration>,
    /// How many are told at once: few at first, since most openings are small, and more while something is left.
    sizes: HashMap<BudgetId, i64>,
    /// The opening that everyone was told of once.
    told: HashMap<BudgetId, i64>,
    walks: HashMap<BudgetId, FirstWalk>,
    /// Those who wait behind the heads, as far as they were looked at.
    behind: HashMap<BudgetId, Vec<Waiters>>,
}

/// A first walk that is done.
#[derive(Clone, Copy, Debug)]
struct FirstWalk {
    route: Route,
    /// The opening it was for.
    opening: i64,
    at: Instant,
    /// The latest opening everyone who waits was told of since.
    latest: i64,
}

impl Progress {
    /// Nothing is remembered yet.
    pub(super) fn new(patience: Option<Duration>) -> Self {
        Self { patience, ..Self::default() }
    }

    fn size(&self, budget_id: BudgetId) -> i64 {
        self.sizes.get(&budget_id).copied().unwrap_or(FIRST)
    }

    fn faster(&mut self, budget_id: BudgetId) {
        let size = self.sizes.entry(budget_id).or_insert(FIRST);
        *size = size.saturating_mul(2).min(SIZE_MAX);
    }

    /// When the second walk for the same opening is due.
    fn second(&self, walk: &FirstWalk) -> Option<Instant> {
        Some(walk.at + self.patience?)
    }

    /// Budgets of the partition that are not marked any more are forgotten.
    fn keep(&mut self, route: Route, marked: &[ClearedBudget]) {
        let marked: BTreeSet<BudgetId> = marked.iter().map(|cleared| cleared.budget_id).collect();
        self.walks.retain(|id, walk| walk.route != route || marked.contains(id));
    }
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

/// Tells those who wait for the marked budgets of a partition, as far as it is their turn.
pub(super) async fn walk(operations: &Operations, route: Route, progress: &mut Progress) -> Result<Unblocked, Error> {
    let marked = cleared(operations.client(), route).await?;
    progress.keep(route, &marked);
    let mut done = Unblocked::default();
    for cleared in marked {
        let (budget_id, opening) = (cleared.budget_id, cleared.rooms);
        done.budgets.push((budget_id, opening));
        if cleared.next_reset_wanted {
            supply_next_reset(operations, budget_id).await?;
        }
        let walk = progress.walks.get(&budget_id).copied();
        let due = walk.and_then(|walk| progress.second(&walk)).filter(|at| *at > Instant::now());
        if let (Some(at), Some(FirstWalk { latest, .. })) = (due, walk)
            && latest == opening
        {
            // Everyone who waits was told of this opening once; those who came since are told by the second walk.
            done.again = done.again.into_iter().chain([at]).min();
            continue;
        }
        let second = walk.is_some() && due.is_none();
        if cleared.wide > cleared.told && (second || progress.told.get(&budget_id) != Some(&cleared.wide)) {
            done.executions += tell_everyone(operations, &Opening::wide(budget_id, cleared.wide)).await?;
            progress.told.insert(budget_id, cleared.wide);
        }
        let mut told = cleared.wide;
        let narrow = Opening::narrow(budget_id, opening, cleared.free);
        if opening > cleared.wide.max(cleared.told) && !narrow.is_used_up() {
            let last = progress.behind.remove(&budget_id).unwrap_or_default();
            let heard = tell_some(operations, narrow, progress.size(budget_id), last).await?;
            done.executions += heard.count;
            if heard.whole {
                told = opening;
            }
            if heard.stopped {
                progress.faster(budget_id);
            }
            if !heard.behind.is_empty() {
                progress.behind.insert(budget_id, heard.behind.clone());
            }
            if heard.stopped || !heard.behind.is_empty() {
                done.unfinished = true;
                continue;
            }
        } else {
            progress.behind.remove(&budget_id);
        }
        progress.sizes.remove(&budget_id);
        let first = FirstWalk { route, opening, at: Instant::now(), latest: opening };
        let walk = FirstWalk { latest: opening, ..walk.unwrap_or(first) };
        let mut next = Some(walk);
        if progress.second(&walk).is_some_and(|at| at <= Instant::now()) {
            // Of a later opening this was the first walk.
            let told = told.min(walk.opening);
            operations.client().call(route, &AcknowledgeCleared { budget_id, rooms: walk.opening, told }).await?;
            if cleared.wide <= walk.opening {
                progress.told.remove(&budget_id);
            }
            progress.walks.remove(&budget_id);
            next = (opening > walk.opening).then_some(first);
        }
        if let Some(walk) = next {
            progress.walks.insert(budget_id, walk);
            done.again = done.again.into_iter().chain(progress.second(&walk)).min();
        }
    }
    Ok(done)
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
