//! Telling those who wait for a budget: everyone, or as many as may fit.
//!
//! Telling everyone of every small opening would cost each time as much as there are who wait.

use std::collections::BTreeMap;

use ff_core::types::BudgetId;
use ff_script::generated::{AwaitingBudget, AwaitingBudgetReply, AwaitsPosition, UnblockBudget, UnblockBudgetReply};
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::{AT_ONCE, BATCH};
use crate::operations::Operations;

/// After so many partitions in a row whose heads do not fit, those behind the heads are looked at.
const MISSES_MAX: usize = 8;
/// Looks in a row behind the heads that find nobody, until the next share.
const MISSES_BEHIND_MAX: usize = 32;
/// Waiters of a partition that are looked at for those that fit, before it is the next partition's turn.
const LOOKS: i64 = 64;

/// An opening of a budget, and which of those who wait are told of it.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub budget_id: BudgetId,
    /// Its number: those who have seen an earlier one are told.
    pub number: i64,
    /// What is left below each hard limit. Only those that fit into it are told; everyone when it is absent.
    pub free: Option<BTreeMap<String, i64>>,
    /// How many of one partition are told at most.
    pub most: Option<i64>,
}

impl Opening {
    /// One that everyone is told of.
    pub(super) fn wide(budget_id: BudgetId, number: i64) -> Self {
        Self { budget_id, number, free: None, most: None }
    }

    /// One that those are told of who fit into what is free.
    pub(super) fn narrow(budget_id: BudgetId, number: i64, free: BTreeMap<String, i64>) -> Self {
        Self { budget_id, number, free: Some(free), most: None }
    }

    /// True when nothing is left below any hard limit. What gives something back is an opening of its own.
    pub(super) fn is_used_up(&self) -> bool {
        self.free.as_ref().is_some_and(|free| !free.is_empty() && free.values().all(|left| *left <= 0))
    }
}

/// Those who wait in one partition, and behind which of them the next look begins.
#[derive(Clone, Debug)]
pub(super) struct Waiters {
    route: Route,
    after: Option<AwaitsPosition>,
}

/// What telling did.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Executions that are eligible again.
    pub count: i64,
    /// The number that may be told at once was reached.
    pub stopped: bool,
    /// Nobody who waits was left out.
    pub whole: bool,
    /// What those who were told leave of what was free.
    left: Option<BTreeMap<String, i64>>,
    /// Those that were not looked at to the end although something is left.
    pub behind: Vec<Waiters>,
}

/// Tells everyone.
pub(super) async fn tell_everyone(operations: &Operations, opening: &Opening) -> Result<i64, Error> {
    let told: Vec<Told> = stream::iter(operations.client().execution_routes())
        .map(|route| async move { tell_partition(operations, route, opening, None).await })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(told.iter().map(|told| told.count).sum())
}

/// Tells as many as fit, `size` at most: one partition after the other, the one with the best head first. When the heads do not
/// fit, it goes on behind them; `last` is how far it came the last time.
pub(super) async fn tell_some(
    operations: &Operations,
    mut opening: Opening,
    size: i64,
    last: Vec<Waiters>,
) -> Result<Told, Error> {
    let budget_id = opening.budget_id;
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
    let mut by_head: Vec<(i64, Route)> = heads.iter().filter_map(|(route, head)| Some(((*head)?, *route))).collect();
    by_head.sort_unstable();
    let heads = by_head.into_iter().map(|(_, route)| Waiters { route, after: None }).collect();
    let mut all = tell_in_turn(operations, &mut opening, size, share, heads, MISSES_MAX).await?;
    if all.stopped || all.behind.is_empty() {
        return Ok(all);
    }
    let behind = if last.is_empty() { std::mem::take(&mut all.behind) } else { last };
    let behind = tell_in_turn(operations, &mut opening, size - all.count, share, behind, MISSES_BEHIND_MAX).await?;
    Ok(Told { count: all.count + behind.count, whole: false, ..behind })
}

/// Tells as many of some partitions as fit, `size` at most and `share` of each, until so many looks in a row found nobody.
async fn tell_in_turn(
    operations: &Operations,
    opening: &mut Opening,
    size: i64,
    share: i64,
    waiters: Vec<Waiters>,
    misses_max: usize,
) -> Result<Told, Error> {
    let mut all = Told { whole: true, ..Told::default() };
    let (mut misses, mut waiters) = (0, waiters.into_iter());
    while let Some(Waiters { route, after }) = waiters.next() {
        if opening.is_used_up() {
            return Ok(Told { whole: false, behind: Vec::new(), ..all });
        }
        if all.count >= size || misses == misses_max {
            all.behind.push(Waiters { route, after });
            all.behind.extend(waiters);
            return Ok(Told { stopped: all.count >= size, whole: false, ..all });
        }
        opening.most = Some(share.min(size - all.count));
        let told = tell_partition(operations, route, opening, after).await?;
        misses = if told.count == 0 { misses + 1 } else { 0 };
        opening.free = told.left.or(opening.free.take());
        all.count += told.count;
        all.stopped |= told.stopped;
        all.whole &= told.whole;
        all.behind.extend(told.behind);
    }
    if opening.is_used_up() {
        all.behind.clear();
    }
    Ok(all)
}

/// Tells those of one partition, from a position on.
pub(super) async fn tell_partition(
    operations: &Operations,
    route: Route,
    opening: &Opening,
    mut after: Option<AwaitsPosition>,
) -> Result<Told, Error> {
    let mut all = Told { whole: true, left: opening.free.clone(), ..Told::default() };
    let mut looks = 0;
    loop {
        let call = UnblockBudget {
            after,
            budget_id: opening.budget_id,
            free: all.left.clone(),
            limit: BATCH,
            most: opening.most.map(|most| most - all.count),
            rooms: opening.number,
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
        // Many wait here: those behind have their turn after the other partitions.
        if let Some(most) = opening.most
            && (all.count >= most || looks >= most.saturating_mul(2).max(LOOKS))
        {
            all.stopped = all.count >= most;
            return Ok(Told { whole: false, behind: vec![Waiters { route, after }], ..all });
        }
    }
}
