//! Who holds something against a budget must be about to run or run: its executions are asked, partition by partition.

use ff_core::types::BudgetId;
use ff_script::generated::{Finding, HeldSlot, Holder, HolderState, ListHolders, ListHoldersReply, ReleaseBudget};
use ff_script::{Client, Error};

use crate::background::holders;
use crate::operations::{BudgetFilter, Operations};

const BATCH: usize = 64;
const PAGE: i64 = 1_000;
/// A deadline that passed so long ago should have been asked about.
const OVERDUE_MS: i64 = 10_000;

/// Every holder of every budget whose execution is gone; `repair` drops what it holds.
pub async fn check(operations: &Operations, repair: bool) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    let mut after = None;
    loop {
        let page = operations.budgets(&BudgetFilter::default(), after, BATCH).await?;
        for budget in page.items {
            findings.extend(check_one(operations.client(), budget.budget_id, repair).await?);
        }
        after = page.next;
        if after.is_none() {
            return Ok(findings);
        }
    }
}

async fn check_one(client: &Client, budget_id: BudgetId, repair: bool) -> Result<Vec<Finding>, Error> {
    let set = format!("budget:{budget_id}");
    let mut gone: Vec<HeldSlot> = Vec::new();
    for holders in all(client, budget_id, &set).await?.0.chunks(BATCH) {
        let slots = holders::ask(client, &set, holders.to_vec()).await?;
        gone.extend(slots.into_iter().filter(|slot| slot.state == HolderState::Gone));
    }
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    // One that has left meanwhile, or is about to be asked for anyway, is none.
    let (still, now) = all(client, budget_id, &set).await?;
    let overdue = |holder: &Holder| holder.expires_at.is_none_or(|at| at + OVERDUE_MS <= now);
    let is_gone = |holder: &Holder| {
        gone.iter().any(|slot| slot.execution_id == holder.execution_id && slot.holder_id == holder.holder_id)
    };
    let stray: Vec<Holder> = still.into_iter().filter(|holder| overdue(holder) && is_gone(holder)).collect();
    if repair {
        for holders in stray.chunks(BATCH) {
            let call = ReleaseBudget { budget_id, holders: holders.to_vec() };
            client.call(client.route_of_budget(&budget_id), &call).await?;
        }
    }
    let finding = |holder: &Holder| Finding {
        invariant: 32,
        key: set.as_bytes().to_vec().into(),
        problem: format!("{} holds a part of the budget and does not run", holder.execution_id),
        repaired: repair,
    };
    Ok(stray.iter().map(finding).collect())
}

/// Everyone who holds something against a budget, and the store's time.
async fn all(client: &Client, budget_id: BudgetId, set: &str) -> Result<(Vec<Holder>, i64), Error> {
    let mut all: Vec<Holder> = Vec::new();
    loop {
        let offset = i64::try_from(all.len()).unwrap_or(i64::MAX);
        let call = ListHolders { limit: PAGE, offset, set: set.to_owned() };
        let ListHoldersReply::Holders { items, now, .. } =
            client.call(client.route_of_budget(&budget_id), &call).await?;
        let more = i64::try_from(items.len()) == Ok(PAGE);
        all.extend(items);
        if !more {
            return Ok((all, now));
        }
    }
}
