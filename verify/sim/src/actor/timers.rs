//! Fires due timers, sometimes late, sometimes twice, sometimes a few at a time.

use ff_script::Route;
use ff_script::generated::FireDue;

use super::{Actor, Scene};
use crate::request::{Outcome, Request};

pub(crate) struct Timers {
    /// Percent of rounds that are followed by seconds without a look.
    pub lazy: u32,
}

impl Actor for Timers {
    fn name(&self) -> String {
        "timers".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        let mut routes: Vec<Route> = scene.board.routes().collect();
        if scene.rng.percent(25) {
            routes.push(Route::Fleet);
        }
        if scene.board.limits.on && scene.rng.percent(60) {
            for route in [Route::Quota(0), Route::Budget(0)] {
                let draw = scene.rng.between(0, 1000);
                scene.say(route, FireDue { draw, limit: 64 });
            }
        }
        for route in routes {
            let times = if scene.rng.percent(10) { 2 } else { 1 };
            for _ in 0..times {
                let draw = scene.rng.between(0, 1000);
                let limit = *scene.rng.pick(&[1, 2, 8, 64]);
                scene.say(route, FireDue { draw, limit });
            }
        }
        if scene.rng.percent(self.lazy) { scene.rng.between(1_500, 6_000) } else { scene.rng.between(200, 700) }
    }

    fn answer(&mut self, _: &Request, _: &Outcome, _: &mut Scene<'_>) {}
}
