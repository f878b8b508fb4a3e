//! Applies the fleet's owed effects to the partitions, at least once, and acknowledges them when every partition has
//! replied.

use std::collections::{BTreeMap, BTreeSet};

use ff_script::Route;
use ff_script::generated::*;

use super::{Actor, Scene};
use crate::request::{Outcome, Reply, Request};

/// The partitions that the effects of one instance still wait for.
#[derive(Default)]
struct Open {
    ids: BTreeSet<String>,
    partitions: BTreeSet<Route>,
}

#[derive(Default)]
pub(crate) struct Outbox {
    open: BTreeMap<(String, bool), Open>,
}

impl Actor for Outbox {
    fn name(&self) -> String {
        "outbox".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        scene.say(Route::Fleet, ReadOutbox::new(10));
        scene.rng.between(600, 2_000)
    }

    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        match (request, outcome) {
            (_, Outcome::Reply(Reply::ReadOutbox(ReadOutboxReply::Effects { items }))) => {
                for effect in items {
                    let revoke = effect.r#type == "revoke_leases";
                    let instance = effect.data["instance"].clone();
                    let open = self.open.entry((instance.clone(), revoke)).or_default();
                    open.ids.insert(effect.id.clone());
                    open.partitions = scene.board.routes().collect();
                    for route in open.partitions.clone() {
                        let call = DrainLeases {
                            actor: effect.data["actor"].clone(),
                            instance: instance.clone(),
                            limit: *scene.rng.pick(&[1, 64]),
                            revoke,
                        };
                        scene.say(route, call);
                    }
                }
            }
            (
                Request::DrainLeases(call),
                Outcome::Reply(Reply::DrainLeases(DrainLeasesReply::Drained { more, .. })),
            ) => {
                // The reply does not name its partition. If more is left, the next read of the outbox starts over.
                let key = (call.instance.clone(), call.revoke);
                let Some(open) = self.open.get_mut(&key) else {
                    return;
                };
                if *more {
                    return;
                }
                open.partitions.pop_first();
                if open.partitions.is_empty() {
                    let ids = self.open.remove(&key).map(|open| open.ids).unwrap_or_default();
                    scene.say(Route::Fleet, AckOutbox { ids: ids.into_iter().collect() });
                }
            }
            _ => {}
        }
    }
}
