//! `GET /v1/stats` and `/v1/capabilities`: what the store holds, and what this server can do.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use ff_api::lanes::LaneCounts;
use ff_script::Route;
use ff_script::generated::{Library, LibraryReply, PartitionStatsReply, Worker};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::access::Caller;
use crate::app::{App, JsonAnswer};
use crate::openapi::Described;
use crate::problem::Answer;

pub fn routes() -> Described {
    Described::new().with(routes!(stats)).with(routes!(capabilities))
}

/// What the caller's token covers; what is known of the whole store only is null unless the token covers it all.
#[derive(Serialize, ToSchema)]
struct Stats {
    executions: i64,
    partitions: usize,
    counts: LaneCounts,
    lanes: Vec<LaneStats>,
    workers: WorkerStats,
    timers: Option<i64>,
    next_timer_at: Option<i64>,
    events: Option<i64>,
    outbox: Option<i64>,
    stuck: Option<i64>,
    flows: Option<i64>,
    /// Flows that still owe their members a cancel, and how many members that is.
    cancel_backlog: Option<i64>,
    pending_cancels: Option<i64>,
}

#[derive(Serialize, ToSchema)]
struct LaneStats {
    namespace: String,
    lane: String,
    counts: LaneCounts,
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
        counts: LaneCounts::default(),
        lanes: Vec::new(),
        workers: WorkerStats::default(),
        timers: None,
        next_timer_at: None,
        events: None,
        outbox: None,
        stuck: None,
        flows: None,
        cancel_backlog: None,
        pending_cancels: None,
    };
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
        match worker.state.as_str() {
            "draining" => sum.workers.draining += 1,
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

#[derive(Serialize, ToSchema)]
#[schema(as = ServerCapabilities)]
struct Capabilities {
    version: &'static str,
    library: LibraryShape,
    store: StoreShape,
    authentication: &'static str,
    features: &'static [&'static str],
    limits: Limits,
    /// How many of the live workers that the caller's token covers have each capability.
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
async fn capabilities(State(app): State<App>, caller: Caller) -> JsonAnswer<Capabilities> {
    let client = app.operations.client();
    let LibraryReply::Library { hash, number } = client.call(Route::Fleet, &Library {}).await?;
    let facts = client.host().facts();
    let mut worker_capabilities = BTreeMap::new();
    for token in seen_workers(&app, &caller).await?.into_iter().flat_map(|worker| worker.capabilities) {
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
            reason_bytes: ff_core::limits::REASON_BYTES_MAX,
            batch_items: 10_000,
            claim_max: 256,
            wait_ms: 30_000,
            list_limit: 1_000,
        },
        worker_capabilities,
    }))
}
