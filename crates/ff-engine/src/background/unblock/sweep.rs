//! The sweep over everything that waits in one partition of executions: it finds those that no walk has told.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::error_code::ErrorCode;
use ff_core::types::{BudgetId, QuotaPolicyId};
use ff_script::generated::{
    AwaitedBudget, Budget, DimensionStatus, MissingQuotas, MissingQuotasReply, UnblockQuota, UnblockQuotaReply,
    WaitingForBudgets, WaitingForBudgetsReply,
};
use ff_script::{Client, Error, Route};

use super::BATCH;
use super::tell::{Opening, tell_partition};
use crate::operations::{BudgetStatus, Operations, refused_with};

/// A later opening than anyone has seen.
const LATER_THAN_ALL: i64 = i64::MAX >> 10;

/// Looks at everything that waits in one partition of executions, and tells those whose budget opened since they were told,
/// or whose quota exists by now.
pub async fn sweep_once(operations: &Operations, route: Route) -> Result<i64, Error> {
    Ok(sweep_budgets(operations, route).await? + sweep_quotas(operations, route).await?)
}

pub(super) async fn sweep_budgets(operations: &Operations, route: Route) -> Result<i64, Error> {
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
        // Of a wide opening everyone is told, also those who wait for an approval and fit nowhere.
        let (wide, narrow) = match operations.budget(budget_id).await {
            Ok(BudgetStatus { budget, .. }) => {
                (budget.wide, Some(Opening::narrow(budget_id, budget.rooms, free_of(&budget))))
            }
            // It is gone: those who wait are refused by name instead of waiting for good.
            Err(error) if refused_with(&error) == Some(ErrorCode::BudgetNotFound) => (LATER_THAN_ALL, None),
            Err(error) => return Err(error),
        };
        for opening in [Some(Opening::wide(budget_id, wide)), narrow].into_iter().flatten() {
            if opening.number > seen && !opening.is_used_up() {
                told += tell_partition(operations, route, &opening, None).await?.count;
            }
        }
    }
    Ok(told)
}

pub(super) async fn sweep_quotas(operations: &Operations, route: Route) -> Result<i64, Error> {
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
pub(in crate::background) async fn tell_of_quota(
    client: &Client,
    route: Route,
    quota_id: QuotaPolicyId,
) -> Result<i64, Error> {
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

/// What is left below each hard limit.
fn free_of(budget: &Budget) -> BTreeMap<String, i64> {
    let free = |d: &DimensionStatus| Some((d.name.clone(), (d.hard? - d.used - d.held).max(0)));
    budget.dimensions.iter().filter_map(free).collect()
}
