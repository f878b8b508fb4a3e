//! One file per group of routes.

mod batch;
mod budgets;
mod bulk;
mod change;
mod children;
mod events;
mod execution;
mod explain;
mod explain_admission;
mod explain_lane;
mod flow_views;
mod flows;
mod frames;
mod fsck;
mod health;
mod keys;
mod lanes;
mod list;
mod metrics;
mod quotas;
mod results;
mod resume;
mod signals;
mod stats;
mod stream;
mod submit;
pub mod suspend;
mod tail;
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

/// Everything this server serves, behind its door.
pub fn router(app: App, door: Door) -> Router {
    served()
        .route_layer(from_fn_with_state(app.clone(), access::pass))
        .with_state(app)
        .layer(from_fn_with_state(door, door::pass))
}

/// Everything this server serves, whoever asks.
fn served() -> Router<App> {
    Router::new()
        .merge(submit::routes())
        .merge(batch::routes())
        .merge(bulk::routes())
        .merge(execution::routes())
        .merge(explain::routes())
        .merge(explain_lane::routes())
        .merge(change::routes())
        .merge(flows::routes())
        .merge(flow_views::routes())
        .merge(children::routes())
        .merge(budgets::routes())
        .merge(lanes::routes())
        .merge(quotas::routes())
        .merge(workers::routes())
        .merge(worker_protocol::routes())
        .merge(results::routes())
        .merge(tasks::routes())
        .merge(usage::routes())
        .merge(suspend::routes())
        .merge(frames::routes())
        .merge(waitpoints::routes())
        .merge(signals::routes())
        .merge(resume::routes())
        .merge(stream::routes())
        .merge(tail::routes())
        .merge(keys::routes())
        .merge(tokens::routes())
        .merge(fsck::routes())
        .merge(events::routes())
        .merge(stats::routes())
        .merge(metrics::routes())
        .merge(webhooks::routes())
        .merge(health::routes())
}

/// Method and path of every route, as the router itself tells them; a GET is a HEAD too.
#[cfg(test)]
pub fn served_routes() -> std::collections::BTreeSet<(String, String)> {
    let text = format!("{:?}", served());
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
