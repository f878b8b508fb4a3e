//! `GET /v1/stats` and `/v1/capabilities`: what the store holds, and what this server can do.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use ff_script::Route;
use ff_script::generated::{Library, LibraryReply, PartitionStatsReply};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, JsonAnswer};
use crate::openapi::Described;
use crate::shape::lane::CountsShape;

pub fn routes() -> Described {
    Described::new().with(routes!(stats)).with(routes!(capabilities))
}

#[derive(Serialize, ToSchema)]
struct Stats {
    executions: i64,
    partitions: usize,
    counts: CountsShape,
    lanes: Vec<LaneStats>,
    workers: WorkerStats,
    timers: i64,
    next_timer_at: Option<i64>,
    events: i64,
    outbox: i64,
    stuck: i64,
    flows: i64,
    /// Flows that still owe their members a cancel, and how many members that is.
    cancel_backlog: i64,
    pending_cancels: i64,
}

#[derive(Serialize, ToSchema)]
struct LaneStats {
    namespace: String,
    lane: String,
    counts: CountsShape,
}

#[derive(Default, Serialize, ToSchema)]
struct WorkerStats {
    live: usize,
    draining: usize,
    slots: i64,
}

/// How much the store holds, by lane and state.
#[utoipa::path(
    get,
    path = "/v1/stats",
    responses((status = 200, body = Stats)),
)]
async fn stats(State(app): State<App>, caller: Caller) -> JsonAnswer<Stats> {
    let partitions = app.operations.stats().await?;
    let mut sum = Stats {
        executions: 0,
        partitions: partitions.len(),
        counts: CountsShape::default(),
        lanes: Vec::new(),
        workers: WorkerStats::default(),
        timers: 0,
        next_timer_at: None,
        events: 0,
        outbox: 0,
        stuck: 0,
        flows: 0,
        cancel_backlog: 0,
        pending_cancels: 0,
    };
    let mut by_lane: BTreeMap<(String, String), CountsShape> = BTreeMap::new();
    for partition in partitions {
        let PartitionStatsReply::Stats {
            cancel_backlog,
            events,
            executions,
            flows,
            lanes,
            next_timer_at,
            outbox,
            pending_cancels,
            stuck,
            timers,
        } = partition.stats;
        sum.flows += flows;
        sum.cancel_backlog += cancel_backlog;
        sum.pending_cancels += pending_cancels;
        sum.executions += executions;
        sum.events += events;
        sum.outbox += outbox;
        sum.stuck += stuck;
        sum.timers += timers;
        sum.next_timer_at = [sum.next_timer_at, next_timer_at].into_iter().flatten().min();
        for counts in lanes.iter().filter(|counts| caller.covers(&counts.namespace, Some(&counts.lane))) {
            sum.counts.add(counts);
            by_lane.entry((counts.namespace.clone(), counts.lane.clone())).or_default().add(counts);
        }
    }
    sum.lanes = by_lane.into_iter().map(|((namespace, lane), counts)| LaneStats { namespace, lane, counts }).collect();
    for worker in app.operations.workers().await? {
        match worker.state.as_str() {
            "draining" => sum.workers.draining += 1,
            _ => sum.workers.live += 1,
        }
        sum.workers.slots += worker.slots;
    }
    Ok(Json(sum))
}

#[derive(Serialize, ToSchema)]
#[schema(as = ServerCapabilities)]
struct Capabilities {
    version: &'static str,
    library: LibraryShape,
    store: StoreShape,
    authentication: &'static str,
    features: &'static [&'static str],
    limits: Limits,
    /// How many live workers have each capability.
    worker_capabilities: BTreeMap<String, usize>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ServerLibrary)]
struct LibraryShape {
    number: i64,
    hash: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ServerStore)]
struct StoreShape {
    kind: &'static str,
    durability: String,
    loss_window: String,
    partitions: u16,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ServerLimits)]
struct Limits {
    input_bytes: usize,
    result_bytes: usize,
    reason_bytes: usize,
    batch_items: usize,
    claim_max: usize,
    wait_ms: usize,
    list_limit: usize,
}

/// What this server can do: versions, store, features, limits.
#[utoipa::path(
    get,
    path = "/v1/capabilities",
    responses((status = 200, body = Capabilities)),
)]
async fn capabilities(State(app): State<App>) -> JsonAnswer<Capabilities> {
    let client = app.operations.client();
    let LibraryReply::Library { hash, number } = client.call(Route::Fleet, &Library {}).await?;
    let facts = client.host().facts();
    let mut worker_capabilities = BTreeMap::new();
    for token in app.operations.workers().await?.into_iter().flat_map(|worker| worker.capabilities) {
        *worker_capabilities.entry(token).or_insert(0) += 1;
    }
    Ok(Json(Capabilities {
        version: env!("CARGO_PKG_VERSION"),
        library: LibraryShape { number, hash },
        store: StoreShape {
            kind: facts.kind,
            durability: facts.durability,
            loss_window: facts.loss_window,
            partitions: client.partitions().executions,
        },
        authentication: app.guard.authentication(),
        features: &[
            "executions",
            "flows",
            "waitpoints",
            "streams",
            "budgets",
            "quotas",
            "lanes",
            "workers",
            "events",
            "tokens",
        ],
        limits: Limits {
            input_bytes: crate::payload::PAYLOAD_MAX,
            result_bytes: crate::payload::PAYLOAD_MAX,
            reason_bytes: super::tasks::REASON_MAX,
            batch_items: 10_000,
            claim_max: 256,
            wait_ms: 30_000,
            list_limit: 1_000,
        },
        worker_capabilities,
    }))
}
