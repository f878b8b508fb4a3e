//! Quotas and budgets after the faults: debts are paid, waiting work is unblocked, limits are raised, and every hold is
//! returned.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::ExecutionId;
use ff_script::Route;
use ff_script::generated::*;

use super::{ROUNDS_MAX, ask, call, fire};
use crate::actor::{self, LANES, NAMESPACE};
use crate::check::{Check, Violation, require};
use crate::request::{Outcome, Reply, Request};
use crate::world::World;

/// Everything ends within this time once budgets have room. Only quotas delay it.
pub(super) const BOUND_MS: i64 = 240_000;

const BUDGETS: Route = Route::Budget(0);
const QUOTAS: Route = Route::Quota(0);

fn me() -> String {
    "ada".to_owned()
}

/// First removed executions leave their sets, then the limits are raised. Returns the time of that.
pub(super) fn relax(world: &mut World) -> Result<i64, Violation> {
    // The reconciler asks for a holder when its deadline has passed.
    for _ in 0..3 {
        reconcile(world)?;
        world.now += 2_500;
    }
    for route in world.board.routes() {
        fire(world, route)?;
    }
    reconcile(world)?;
    world.checker.check_holders()?;
    world.check_deeply()?;
    for budget in world.board.limits.budgets.clone() {
        if !world.checker.budgets.exists(budget.budget_id) {
            continue;
        }
        let free = |limit: DimensionLimit| DimensionLimit { hard: None, soft: None, ..limit };
        let limits = budget.dimensions.into_iter().map(free).collect();
        call(world, BUDGETS, ChangeBudget::new(me(), budget.budget_id, limits))?;
    }
    if world.board.limits.widened {
        widen(world)?;
    }
    Ok(world.now)
}

fn widen(world: &mut World) -> Check {
    for (mut quota, mut version) in world.board.limits.quotas.clone() {
        if !world.checker.quotas.exists(quota.quota_id) {
            continue;
        }
        quota.concurrency = quota.concurrency.map(|_| 1_000);
        quota.rate.iter_mut().for_each(|rate| rate.limit = 1_000);
        quota.weighted.iter_mut().for_each(|weighted| weighted.limit = 1_000_000);
        loop {
            let put: Request = PutQuota { actor: None, quota: quota.clone(), version: Some(version) }.into();
            match world.execute(QUOTAS, &put, "settle", None)? {
                // It was changed in between, by a call whose reply was lost.
                Outcome::Refused(error) if error.code() == "quota_version_conflict" => version += 1,
                Outcome::Reply(_) => break,
                other => return Err(Violation::liveness(format!("a quota cannot be widened: {other}"))),
            }
        }
    }
    Ok(())
}

/// Fires, pays, reconciles holders and unblocks, until nothing more follows at this time.
pub(super) fn reconcile(world: &mut World) -> Check {
    fire(world, QUOTAS)?;
    fire(world, BUDGETS)?;
    pay_all(world)?;
    ask_holders(world)?;
    tell_all(world)?;
    pay_all(world)?;
    give_up(world)
}

pub(super) fn next_wake(world: &World, known: Option<i64>) -> Result<Option<i64>, Violation> {
    let mut next = known;
    for route in world.board.routes().chain([QUOTAS, BUDGETS]) {
        if let Some(at) = world.store.next_due(route)? {
            next = Some(next.map_or(at, |known| known.min(at)));
        }
    }
    Ok(next)
}

/// Pays every debt in every partition.
pub(super) fn pay_all(world: &mut World) -> Check {
    let routes: Vec<Route> = world.board.routes().chain([QUOTAS, BUDGETS]).collect();
    for _ in 0..ROUNDS_MAX {
        let mut paid = false;
        for route in &routes {
            world.store.set_now(world.now);
            let items = world.store.owed(*route)?;
            for (to, request, ids) in actor::payments(&items) {
                let to = to.unwrap_or_else(|| world.board.route_of(&request.targets()[0]));
                pay(world, to, &request)?;
                call(world, *route, AckOutbox { ids })?;
                paid = true;
            }
        }
        if !paid {
            return Ok(());
        }
    }
    Err(Violation::liveness("what is owed never ends"))
}

fn pay(world: &mut World, route: Route, request: &Request) -> Check {
    let outcome = world.execute(route, request, "settle", None)?;
    let (Request::ReadUsage(read), Outcome::Reply(Reply::ReadUsage(ReadUsageReply::Usage { pending, .. }))) =
        (request, outcome)
    else {
        return Ok(());
    };
    for report in pending {
        finish_report(world, read.execution_id, &report)?;
    }
    Ok(())
}

fn finish_report(world: &mut World, id: ExecutionId, report: &PendingUsage) -> Check {
    let apply = actor::apply(id, report);
    let outcome = world.execute(BUDGETS, &apply.clone().into(), "settle", None)?;
    let settle = actor::settle(&apply, &outcome);
    let Some(settle) = settle else {
        return Err(Violation::liveness(format!("a report of {id} is not answered: {outcome}")));
    };
    ask(world, id, settle).map(drop)
}

/// Asks about the executions of overdue holders.
fn ask_holders(world: &mut World) -> Check {
    for set in world.board.limits.sets() {
        let (items, now) = (world.store.holders(actor::route_of_set(&set), set.clone())?, world.now);
        let mut by_route: BTreeMap<Route, Vec<Holder>> = BTreeMap::new();
        for holder in items.into_iter().filter(|holder| holder.expires_at.is_some_and(|at| at <= now)) {
            by_route.entry(world.board.route_of(&holder.execution_id)).or_default().push(holder);
        }
        for (route, holders) in by_route {
            let check = CheckHolders { holders, set: set.clone() };
            if let Reply::CheckHolders(CheckHoldersReply::Checked { items }) = call(world, route, check)? {
                for (route, request) in actor::follow(&set, &items) {
                    call(world, route, request)?;
                }
            }
        }
    }
    Ok(())
}

/// Unblocks the work that waits for budgets with room: marked budgets, and all that work waits for. Like the
/// reconciler, it unblocks everything after a change of limits, and otherwise only what may fit.
fn tell_all(world: &mut World) -> Check {
    for ClearedBudget { budget_id, rooms, wide, free, .. } in world.store.cleared()? {
        tell(world, budget_id, wide, None)?;
        tell(world, budget_id, rooms, Some(free))?;
        call(world, BUDGETS, AcknowledgeCleared { budget_id, rooms, told: wide.min(rooms) })?;
    }
    let waits = |seen: &Execution| seen.blocking_reason == Some(BlockingReason::WaitingForBudget);
    let routes: BTreeSet<Route> =
        world.checker.live().filter(|(.., seen)| waits(seen)).map(|(id, ..)| world.board.route_of(id)).collect();
    for route in routes {
        for (lane, ..) in LANES {
            let waiting = WaitingForBudgets::new((*lane).to_owned(), 64, NAMESPACE.to_owned());
            let Reply::WaitingForBudgets(WaitingForBudgetsReply::Waiting { items, .. }) = call(world, route, waiting)?
            else {
                unreachable!("replies fit their requests")
            };
            for AwaitedBudget { budget_id, rooms: seen } in items {
                // A deleted budget unblocks nothing; work that names it is cancelled.
                let Some(budget) = world.store.budget(budget_id)? else { continue };
                if budget.wide > seen {
                    tell(world, budget_id, budget.wide, None)?;
                }
                if budget.rooms > seen {
                    tell(world, budget_id, budget.rooms, Some(actor::free_of(&budget)))?;
                }
            }
        }
    }
    Ok(())
}

fn tell(
    world: &mut World,
    budget_id: ff_core::types::BudgetId,
    rooms: i64,
    mut free: Option<BTreeMap<String, i64>>,
) -> Check {
    let routes: Vec<Route> = world.board.routes().collect();
    for route in routes {
        let mut request = UnblockBudget { free: free.clone(), ..actor::tell(budget_id, rooms, 64) };
        while let Reply::UnblockBudget(UnblockBudgetReply::Unblocked { next, left, .. }) =
            call(world, route, request.clone())?
        {
            (free, request.free) = (left.clone(), left);
            match next {
                Some(after) => request.after = Some(after),
                None => break,
            }
        }
    }
    Ok(())
}

/// Work that names a deleted quota or budget is never admitted, so it is cancelled.
fn give_up(world: &mut World) -> Check {
    let hopeless: Vec<ExecutionId> = world
        .checker
        .live()
        .filter(|(.., seen)| {
            let waits = matches!(
                seen.blocking_reason,
                Some(BlockingReason::WaitingForQuota | BlockingReason::WaitingForBudget)
            );
            waits && world.checker.is_hopeless(seen)
        })
        .map(|(id, ..)| *id)
        .collect();
    for id in hopeless {
        ask(world, id, CancelExecution::new(me(), id))?;
    }
    Ok(())
}

/// Everything has ended: there are no holders, the ledgers are right, and quotas and budgets are deleted.
pub(super) fn end(world: &mut World) -> Check {
    pay_all(world)?;
    if !world.board.limits.on {
        return Ok(());
    }
    // Reservations without a lease expire, and the reconciler asks for holders whose executions are gone.
    for _ in 0..3 {
        world.now += 5_000;
        reconcile(world)?;
    }
    let left = world.checker.quotas.inside().next().map(|(id, key, who)| format!("{who} is inside {id} {key}"));
    require!(32, left.is_none(), "everything has ended and {}", left.unwrap_or_default());
    for id in world.checker.budgets.ids() {
        let held = world.store.budget(id)?.map_or(0, |budget| budget.dimensions.iter().map(|d| d.held).sum());
        require!(31, held == 0, "everything has ended and {held} are held against {id}");
    }
    let reported: Vec<ExecutionId> =
        world.checker.live().filter(|(_, shadow, _)| !shadow.usage.is_empty()).map(|(id, ..)| *id).collect();
    for id in reported {
        ask(world, id, ReadUsage { execution_id: id })?;
        world.count("reached", "ledger read");
    }
    for budget in world.board.limits.budgets.clone().into_iter().rev() {
        if world.checker.budgets.exists(budget.budget_id) {
            call(world, BUDGETS, DeleteBudget { actor: me(), budget_id: budget.budget_id })?;
        }
    }
    for (scope, id) in world.board.limits.scopes() {
        call(world, Route::Fleet, NoteScope { gone: Some(true), ..NoteScope::new(id, scope) })?;
    }
    for (quota, _) in world.board.limits.quotas.clone() {
        if world.checker.quotas.exists(quota.quota_id) {
            call(world, QUOTAS, DeleteQuota { actor: None, quota_id: quota.quota_id })?;
        }
    }
    reconcile(world)
}
