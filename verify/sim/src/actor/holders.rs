//! The holder reconciler: asks about the executions of holders whose deadline has passed.

use std::collections::BTreeMap;

use ff_script::generated::*;
use ff_script::{HolderSet, Route};

use super::{Actor, Scene, debts};
use crate::request::{Outcome, Reply, Request};

pub(crate) struct Holders;

pub(crate) fn route_of_set(set: &str) -> Route {
    match HolderSet::read(set) {
        Some(HolderSet::Budget { .. }) => Route::Budget(0),
        _ => Route::Quota(0),
    }
}

/// The calls that follow from the replies about executions: which holders stay, and which leave.
pub(crate) fn follow(set: &str, slots: &[HeldSlot]) -> Vec<(Route, Request)> {
    let (mut stay, mut leave) = (Vec::new(), Vec::new());
    for slot in slots {
        let holder = |expires_at| Holder { execution_id: slot.execution_id, expires_at, holder_id: slot.holder_id };
        match slot.state {
            HolderState::Running => stay.push(holder(None)),
            HolderState::Granted => stay.push(holder(slot.expires_at)),
            HolderState::Owed => {}
            HolderState::Gone => leave.push((holder(None), false)),
        }
    }
    let mut calls = Vec::new();
    if !stay.is_empty() {
        calls.push((route_of_set(set), ConfirmHolders { holders: stay, set: set.to_owned() }.into()));
    }
    if !leave.is_empty() {
        calls.extend(debts::release(set, leave));
    }
    calls
}

impl Actor for Holders {
    fn name(&self) -> String {
        "holders".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        let sets = scene.board.limits.sets();
        if !sets.is_empty() {
            let set = scene.rng.pick(&sets).clone();
            scene.say(route_of_set(&set), ListHolders { limit: 8, offset: 0, set });
        }
        scene.rng.between(400, 1_500)
    }

    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        match (request, outcome) {
            (
                Request::ListHolders(call),
                Outcome::Reply(Reply::ListHolders(ListHoldersReply::Holders { items, now, .. })),
            ) => {
                let mut by_route: BTreeMap<Route, Vec<Holder>> = BTreeMap::new();
                for holder in items.iter().filter(|holder| holder.expires_at.is_some_and(|at| at <= *now)) {
                    by_route.entry(scene.board.route_of(&holder.execution_id)).or_default().push(holder.clone());
                }
                for (route, holders) in by_route {
                    scene.say(route, CheckHolders { holders, set: call.set.clone() });
                }
            }
            (
                Request::CheckHolders(call),
                Outcome::Reply(Reply::CheckHolders(CheckHoldersReply::Checked { items })),
            ) => {
                for (route, call) in follow(&call.set, items) {
                    scene.say(route, call);
                }
            }
            _ => {}
        }
    }
}
