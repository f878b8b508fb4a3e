//! Pauses, drains and resumes lanes, and installs new and old definitions in the partitions.

use ff_script::Route;
use ff_script::generated::*;

use super::{Actor, LANES, NAMESPACE, Scene};
use crate::request::{Outcome, Reply, Request};

pub(crate) struct Lanes;

impl Actor for Lanes {
    fn name(&self) -> String {
        "lanes".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        let lane = scene.rng.pick(LANES).0.to_owned();
        if scene.rng.percent(50) {
            // Its last known definition may be outdated.
            let entry = scene.board.lanes[&lane].clone();
            let routes: Vec<Route> = scene.board.routes().collect();
            for route in routes {
                scene.say(route, InstallLane { entry: entry.clone() });
            }
            return scene.rng.between(500, 2_500);
        }
        let mut call = DefineLane::new("ada".to_owned(), lane, NAMESPACE.to_owned());
        let states = [LaneState::Active, LaneState::Paused, LaneState::Draining, LaneState::Disabled];
        call.state = Some(states[scene.rng.weighted(&[75, 15, 6, 4])]);
        scene.say(Route::Fleet, call);
        scene.rng.between(500, 2_500)
    }

    fn answer(&mut self, _: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        if let Outcome::Reply(Reply::DefineLane(DefineLaneReply::Defined { entry, .. })) = outcome {
            scene.board.heard_of(entry);
            let routes: Vec<Route> = scene.board.routes().collect();
            for route in routes {
                scene.say(route, InstallLane { entry: entry.clone() });
            }
        }
    }
}
