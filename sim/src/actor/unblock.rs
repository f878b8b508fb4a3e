//! The unblock reconciler: tells whatever waits for a budget that it had room again, twice, and sweeps over all that waits.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::BudgetId;
use ff_script::Route;
use ff_script::generated::*;

use super::{Actor, LANES, NAMESPACE, Scene};
use crate::request::{Outcome, Reply, Request};

/// The rooms of a budget that is gone: more than any other has.
pub(crate) const ROOMS_OF_GONE: i64 = 1 << 43;

/// Where a walk for one room still has to go.
struct Walk {
    rooms: i64,
    left: BTreeSet<(Route, String)>,
    second: bool,
}

#[derive(Default)]
pub(crate) struct Unblock {
    walks: BTreeMap<BudgetId, Walk>,
}

pub(crate) fn tell(lane: &str, budget_id: BudgetId, rooms: i64, limit: i64) -> UnblockBudget {
    UnblockBudget::new(budget_id, lane.to_owned(), limit, NAMESPACE.to_owned(), rooms)
}

fn everywhere(scene: &Scene<'_>) -> BTreeSet<(Route, String)> {
    scene.board.routes().flat_map(|route| LANES.iter().map(move |(lane, ..)| (route, (*lane).to_owned()))).collect()
}

fn say_everywhere(budget_id: BudgetId, rooms: i64, scene: &mut Scene<'_>) {
    for (route, lane) in everywhere(scene) {
        let limit = *scene.rng.pick(&[1, 64]);
        scene.say(route, tell(&lane, budget_id, rooms, limit));
    }
}

impl Actor for Unblock {
    fn name(&self) -> String {
        "unblock".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        if scene.rng.percent(75) {
            scene.say(Route::Budget(0), ClearedBudgets { limit: 4 });
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
                for ClearedBudget { budget_id, rooms, .. } in items {
                    let busy = self.walks.get(budget_id).is_some_and(|walk| walk.rooms == *rooms);
                    // A walk that lost its way begins anew.
                    if busy && scene.rng.percent(70) {
                        continue;
                    }
                    let left = everywhere(scene);
                    self.walks.insert(*budget_id, Walk { rooms: *rooms, left, second: false });
                    say_everywhere(*budget_id, *rooms, scene);
                }
            }
            (
                Request::UnblockBudget(call),
                Outcome::Reply(Reply::UnblockBudget(UnblockBudgetReply::Unblocked { next, .. })),
            ) => {
                let from = scene.from.expect("it was answered");
                if let Some(after) = next {
                    return scene.say(from, UnblockBudget { after: Some(after.clone()), ..call.clone() });
                }
                let Some(walk) = self.walks.get_mut(&call.budget_id) else { return };
                walk.left.remove(&(from, call.lane.clone()));
                if !walk.left.is_empty() || walk.rooms != call.rooms {
                    return;
                }
                if walk.second {
                    self.walks.remove(&call.budget_id);
                    let call = AcknowledgeCleared { budget_id: call.budget_id, rooms: call.rooms };
                    return scene.say(Route::Budget(0), call);
                }
                (walk.second, walk.left) = (true, everywhere(scene));
                say_everywhere(call.budget_id, call.rooms, scene);
            }
            (_, Outcome::Reply(Reply::WaitingForBudgets(WaitingForBudgetsReply::Waiting { items, .. }))) => {
                for item in items {
                    scene.say(Route::Budget(0), GetBudget { budget_id: item.budget_id });
                }
            }
            (_, Outcome::Reply(Reply::GetBudget(GetBudgetReply::Found { budget, .. }))) => {
                say_everywhere(budget.budget_id, budget.rooms, scene);
            }
            (Request::GetBudget(call), Outcome::Refused(_)) => {
                say_everywhere(call.budget_id, ROOMS_OF_GONE, scene);
            }
            _ => {}
        }
    }
}
