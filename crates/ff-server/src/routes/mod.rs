//! One file per group of routes.

mod batch;
mod budgets;
mod bulk;
mod change;
mod children;
mod docs;
mod events;
mod execution;
mod explain;
mod explain_admission;
mod flow_views;
mod flows;
mod frames;
mod fsck;
mod health;
mod keys;
mod lanes;
mod list;
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
        .and(bulk::routes())
        .and(execution::routes())
        .and(explain::routes())
        .and(change::routes())
        .and(flows::routes())
        .and(flow_views::routes())
        .and(children::routes())
        .and(budgets::routes())
        .and(lanes::routes())
        .and(quotas::routes())
        .and(workers::routes())
        .and(worker_protocol::routes())
        .and(results::routes())
        .and(tasks::routes())
        .and(usage::routes())
        .and(suspend::routes())
        .and(frames::routes())
        .and(waitpoints::routes())
        .and(signals::routes())
        .and(resume::routes())
        .and(stream::routes())
        .and(tail::routes())
        .and(keys::routes())
        .and(tokens::routes())
        .and(fsck::routes())
        .and(events::routes())
        .and(stats::routes())
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
