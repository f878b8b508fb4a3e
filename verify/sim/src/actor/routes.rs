//! The route reconciler: asks for the live workers, then tells each partition which requirement sets are covered.

use ff_script::Route;
use ff_script::generated::*;

use super::{Actor, LANES, NAMESPACE, Scene};
use crate::request::{Outcome, Reply, Request};

pub(crate) struct Routes;

impl Actor for Routes {
    fn name(&self) -> String {
        "routes".to_owned()
    }

    fn tick(&mut self, scene: &mut Scene<'_>) -> i64 {
        scene.say(Route::Fleet, ListWorkers { limit: 100, offset: 0 });
        scene.rng.between(500, 1_500)
    }

    fn answer(&mut self, request: &Request, outcome: &Outcome, scene: &mut Scene<'_>) {
        match (request, outcome) {
            (_, Outcome::Reply(Reply::ListWorkers(ListWorkersReply::Workers { items, .. }))) => {
                let lane = scene.rng.pick(LANES).0;
                let workers: Vec<WorkerClass> = items
                    .iter()
                    .filter(|worker| worker.lanes.iter().any(|l| l == lane))
                    .map(|worker| WorkerClass {
                        capabilities: worker.capabilities.clone(),
                        kinds: worker.kinds.clone(),
                    })
                    .collect();
                let routes: Vec<Route> = scene.board.routes().collect();
                for route in routes {
                    let limit = *scene.rng.pick(&[1, 3, 64]);
                    scene.say(route, ReviewRoutes::new(lane.to_owned(), limit, NAMESPACE.to_owned(), workers.clone()));
                }
            }
            (
                Request::ReviewRoutes(call),
                Outcome::Reply(Reply::ReviewRoutes(ReviewRoutesReply::Reviewed { next_cursor: Some(cursor), .. })),
            ) => {
                let routes: Vec<Route> = scene.board.routes().collect();
                let mut next = call.clone();
                next.cursor = Some(*cursor);
                let route = *scene.rng.pick(&routes);
                scene.say(route, next);
            }
            _ => {}
        }
    }
}
