//! One file per group of routes.

mod batch;
mod budgets;
mod docs;
mod events;
mod execution;
mod explain;
mod flows;
mod fsck;
mod health;
mod keys;
mod lanes;
mod metrics;
mod quotas;
mod results;
mod resume;
mod schedules;
mod signals;
mod stats;
mod steps;
mod streams;
pub mod submit;
mod suspend;
mod tasks;
mod tokens;
mod usage;
mod waitpoints;
mod webhooks;
mod worker_protocol;
mod workers;

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::access;
use crate::app::App;
use crate::door::{self, Door};
use crate::openapi::Described;

/// Everything this server serves, with what it says about itself.
pub fn described() -> Described {
    Described::new()
        .and(submit::routes())
        .and(batch::routes())
        .and(execution::routes())
        .and(explain::routes())
        .and(flows::routes())
        .and(budgets::routes())
        .and(lanes::routes())
        .and(quotas::routes())
        .and(schedules::routes())
        .and(workers::routes())
        .and(worker_protocol::routes())
        .and(results::routes())
        .and(tasks::routes())
        .and(usage::routes())
        .and(steps::routes())
        .and(suspend::routes())
        .and(waitpoints::routes())
        .and(signals::routes())
        .and(resume::routes())
        .and(streams::routes())
        .and(keys::routes())
        .and(tokens::routes())
        .and(fsck::routes())
        .and(events::routes())
        .and(stats::routes())
        .and(metrics::routes())
        .and(webhooks::routes())
        .and(health::routes())
        .and(docs::routes())
}

/// Everything this server serves, behind its door.
pub fn router(app: App, door: Door) -> Router {
    let (router, _) = described().parts();
    router
        .route_layer(from_fn_with_state(app.clone(), access::pass))
        .with_state(app)
        .layer(from_fn_with_state(door, door::pass))
}

/// Method and path of every route, as the router itself tells them; a GET is a HEAD too.
#[cfg(test)]
pub fn served_routes() -> std::collections::BTreeSet<(String, String)> {
    let text = format!("{:?}", described().parts().0);
    let (routes, _) = text.split_once(", fallback_router").expect("the router tells of its paths first");
    let (mut methods, mut paths) = (std::collections::BTreeMap::new(), Vec::new());
    for entry in routes.split("RouteId(").skip(1) {
        let (id, what) = entry.split_once("): ").expect("an id and what it stands for");
        match what.strip_prefix('"') {
            Some(path) => paths.push((id, path.split('"').next().expect("a path ends"))),
            None => {
                let allowed = what.split_once("allow_header: Bytes(b\"").and_then(|(_, rest)| rest.split('"').next());
                methods.insert(id, allowed.unwrap_or_else(|| panic!("{what} names its methods")));
            }
        }
    }
    assert!(!paths.is_empty() && paths.len() == methods.len(), "{routes}");
    let of_path = |(id, path): (&str, &str)| {
        let names = methods[id].split(',').filter(|method| *method != "HEAD");
        names.map(|method| (method.to_owned(), path.to_owned())).collect::<Vec<_>>()
    };
    paths.into_iter().flat_map(of_path).collect()
}
