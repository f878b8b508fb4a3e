//! `GET /v1/stats` and `/v1/capabilities`: what the store holds, and what this server can do.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use ff_api::lanes::LaneCounts;
use ff_api::server::{
    GetCapabilities, GetStats, LaneStats, ServerCapabilities, ServerLibrary, ServerLimits, ServerStore, Stats,
};
use ff_script::Route;
use ff_script::generated::{Library, LibraryReply, PartitionStatsReply, Worker, WorkerState};

use crate::access::Caller;
use crate::app::{App, JsonAnswer};
use crate::openapi::Described;
use crate::problem::Answer;

/// What this server serves.
const FEATURES: [&str; 10] =
    ["executions", "flows", "waitpoints", "streams", "budgets", "quotas", "lanes", "workers", "events", "tokens"];

pub fn routes() -> Described {
    Described::new().serving::<GetStats, _>(stats).serving::<GetCapabilities, _>(capabilities)
}

async fn stats(State(app): State<App>, caller: Caller) -> JsonAnswer<Stats> {
    let partitions = app.operations.stats().await?;
    let mut sum = Stats { partitions: partitions.len(), ..Stats::default() };
    let add = |to: &mut Option<i64>, count: i64| *to = Some(to.unwrap_or(0) + count);
    let mut by_lane: BTreeMap<(String, String), LaneCounts> = BTreeMap::new();
    for partition in partitions {
        let PartitionStatsReply::Stats {
            cancel_backlog,
            events,
            executions,
            flows,
            more: _,
            lanes,
            next_timer_at,
            outbox,
            pending_cancels,
            stuck,
            timers,
        } = partition.stats;
        for counts in lanes.iter().filter(|counts| caller.covers(&counts.namespace, Some(&counts.lane))) {
            sum.counts.add(counts);
            by_lane.entry((counts.namespace.clone(), counts.lane.clone())).or_default().add(counts);
        }
        if caller.is_scoped() {
            continue;
        }
        sum.executions += executions;
        add(&mut sum.flows, flows);
        add(&mut sum.cancel_backlog, cancel_backlog);
        add(&mut sum.pending_cancels, pending_cancels);
        add(&mut sum.events, events);
        add(&mut sum.outbox, outbox);
        add(&mut sum.stuck, stuck);
        add(&mut sum.timers, timers);
        sum.next_timer_at = [sum.next_timer_at, next_timer_at].into_iter().flatten().min();
    }
    if caller.is_scoped() {
        sum.executions = sum.counts.all();
    }
    sum.lanes = by_lane.into_iter().map(|((namespace, lane), counts)| LaneStats { namespace, lane, counts }).collect();
    for worker in seen_workers(&app, &caller).await? {
        match worker.state {
            WorkerState::Draining => sum.workers.draining += 1,
            _ => sum.workers.live += 1,
        }
        sum.workers.slots += worker.slots;
    }
    Ok(Json(sum))
}

/// The live workers that may run something of what the caller's token covers.
async fn seen_workers(app: &App, caller: &Caller) -> Answer<Vec<Worker>> {
    let mut workers = app.operations.workers().await?;
    workers.retain(|worker| worker.lanes.iter().any(|lane| caller.covers(&worker.namespace, Some(lane))));
    Ok(workers)
}

async fn capabilities(State(app): State<App>, caller: Caller) -> JsonAnswer<ServerCapabilities> {
    let client = app.operations.client();
    let LibraryReply::Library { hash, number } = client.call(Route::Fleet, &Library {}).await?;
    let facts = client.host().facts();
    let mut worker_capabilities = BTreeMap::new();
    for token in seen_workers(&app, &caller).await?.into_iter().flat_map(|worker| worker.capabilities) {
        *worker_capabilities.entry(token).or_insert(0) += 1;
    }
    Ok(Json(ServerCapabilities {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        library: ServerLibrary { number, hash },
        store: ServerStore {
            kind: facts.kind.to_owned(),
            durability: facts.durability,
            loss_window: facts.loss_window,
            partitions: client.partitions().executions,
        },
        authentication: app.guard.authentication().to_owned(),
        features: FEATURES.map(str::to_owned).to_vec(),
        limits: ServerLimits {
            input_bytes: crate::payload::PAYLOAD_MAX,
            result_bytes: crate::payload::PAYLOAD_MAX,
            reason_bytes: ff_core::limits::REASON_BYTES_MAX,
            batch_items: 10_000,
            claim_max: 256,
            wait_ms: 30_000,
            list_limit: 1_000,
        },
        worker_capabilities,
    }))
}
