//! The unblock reconciler: unblocks what waits for a budget that has room again, twice for each room, and sweeps over
//! all waiting work.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::BudgetId;
use ff_script::Route;
use ff_script::generated::*;

use super::{Actor, LANES, NAMESPACE, Scene};
use crate::request::{Outcome, Reply, Request};

/// The number of rooms of a deleted budget, which is higher than any other.
const ROOMS_OF_GONE: i64 = 1 << 43;

/// The rest of a walk for one room.
struct Walk {
    rooms: i64,
    /// Executions that have seen fewer rooms than this are unblocked.
    told: i64,
    /// The amounts left below the hard limits, if only executions that may fit are unblocked.
    free: Option<BTreeMap<String, i64>>,
    left: BTreeSet<Route>,
    second: bool,
}

#[derive(Default)]
pub(crate) struct Unblock {
    walks: BTreeMap<BudgetId, Walk>,
}

pub(crate) fn tell(budget_id: BudgetId, rooms: i64, limit: i64) -> UnblockBudget {
    UnblockBudget::new(budget_id, limit, rooms)
}

/// The amount left below each hard limit.
pub(crate) fn free_of(budget: &Budget) -> BTreeMap<String, i64> {
    let free = |d: &DimensionStatus| Some((d.name.clone(), (d.hard? - d.used - d.held).max(0)));
    budget.dimensions.iter().filter_map(free).collect()
}

fn say_everywhere(budget_id: BudgetId, rooms: i64, free: Option<&BTreeMap<String, i64>>, scene: &mut Scene<'_>) {
    let routes: Vec<Route> = scene.board.routes().collect();
    for route in routes {
        let limit = *scene.rng.pick(&[1, 64]);
        scene.say(route, UnblockBudget { free: free.cloned(), ..tell(budget_id, rooms, limit) });
    }
}

impl Actor for Unblock {
    fn name(&self) -> String {
        "unblock".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        if scene.rng.percent(75) {
            scene.say(Route::Budget(0), ClearedBudgets::new(4));
        } else {
            let routes: Vec<Route> = scene.board.routes().collect();
            let (route, lane) = (*scene.rng.pick(&routes), scene.rng.pick(LANES).0);
            scene.say(route, WaitingForBudgets::new(lane.to_owned(), 16, NAMESPACE.to_owned()));
        }
        scene.rng.between(400, 1_500)
    }

    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        match (request, outcome) {
            (_, Outcome::Reply(Reply::ClearedBudgets(ClearedBudgetsReply::Cleared { items, .. }))) => {
                for ClearedBudget { budget_id, rooms, wide, free, .. } in items {
                    let busy = self.walks.get(budget_id).is_some_and(|walk| walk.rooms == *rooms);
                    // A walk that lost its position starts again.
                    if busy && scene.rng.percent(70) {
                        continue;
                    }
                    let left = scene.board.routes().collect();
                    // Executions that waited before the last change of limits are unblocked whether or not they fit.
                    let some = *rooms > *wide && scene.rng.percent(50);
                    if some {
                        say_everywhere(*budget_id, *wide, None, scene);
                    }
                    let (told, free) = if some { (*wide, Some(free.clone())) } else { (*rooms, None) };
                    say_everywhere(*budget_id, *rooms, free.as_ref(), scene);
                    self.walks.insert(*budget_id, Walk { rooms: *rooms, told, free, left, second: false });
                }
            }
            (
                Request::UnblockBudget(call),
                Outcome::Reply(Reply::UnblockBudget(UnblockBudgetReply::Unblocked { next, left, .. })),
            ) => {
                let from = scene.from.expect("it was answered");
                if let Some(after) = next {
                    return scene
                        .say(from, UnblockBudget { after: Some(after.clone()), free: left.clone(), ..call.clone() });
                }
                let Some(walk) = self.walks.get_mut(&call.budget_id) else { return };
                if walk.rooms != call.rooms {
                    return;
                }
                walk.left.remove(&from);
                if !walk.left.is_empty() {
                    return;
                }
                if walk.second {
                    let call = AcknowledgeCleared { budget_id: call.budget_id, rooms: call.rooms, told: walk.told };
                    self.walks.remove(&call.budget_id);
                    return scene.say(Route::Budget(0), call);
                }
                (walk.second, walk.left) = (true, scene.board.routes().collect());
                say_everywhere(call.budget_id, call.rooms, walk.free.as_ref(), scene);
            }
            (_, Outcome::Reply(Reply::WaitingForBudgets(WaitingForBudgetsReply::Waiting { items, .. }))) => {
                for item in items {
                    scene.say(Route::Budget(0), GetBudget { budget_id: item.budget_id });
                }
            }
            (_, Outcome::Reply(Reply::GetBudget(GetBudgetReply::Found { budget, .. }))) => {
                say_everywhere(budget.budget_id, budget.wide, None, scene);
                say_everywhere(budget.budget_id, budget.rooms, Some(&free_of(budget)), scene);
            }
            (Request::GetBudget(call), Outcome::Refused(_)) => {
                say_everywhere(call.budget_id, ROOMS_OF_GONE, None, scene);
            }
            _ => {}
        }
    }
}
