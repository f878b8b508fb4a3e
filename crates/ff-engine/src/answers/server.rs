//! What the store holds, and what can be asked of it.

use std::collections::BTreeMap;

use ff_api::lanes::LaneCounts;
use ff_api::server::{
    GetCapabilities, GetStats, LaneStats, ServerCapabilities, ServerLibrary, ServerLimits, ServerStore, Stats,
};
use ff_api::{Ask, Problem};
use ff_core::limits::{INPUT_BYTES_MAX, LIST_LIMIT_MAX, REASON_BYTES_MAX};
use ff_script::generated::{LibraryReply, PartitionStatsReply, Worker, WorkerState};

use super::WAIT_MS_MAX;
use crate::principal::Principal;
use crate::service::{Handle, Service};

/// What the API offers.
const FEATURES: [&str; 11] = [
    "executions",
    "flows",
    "waitpoints",
    "streams",
    "budgets",
    "quotas",
    "lanes",
    "workers",
    "schedules",
    "events",
    "tokens",
];
/// The most submissions of a batch.
const BATCH_ITEMS_MAX: usize = 10_000;
/// The most tasks of one claim.
const CLAIM_MAX: usize = 256;

impl Handle<GetStats> for Service {
    async fn handle(&self, by: &Principal, _: Ask<GetStats>) -> Result<Stats, Problem> {
        let partitions = self.operations.stats().await?;
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
                schedules: _,
                stuck,
                timers,
            } = partition.stats;
            for counts in lanes.iter().filter(|counts| by.covers(&counts.namespace, Some(&counts.lane))) {
                sum.counts.add(counts);
                by_lane.entry((counts.namespace.clone(), counts.lane.clone())).or_default().add(counts);
            }
            if by.is_scoped() {
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
        if by.is_scoped() {
            sum.executions = sum.counts.all();
        }
        let lanes = by_lane.into_iter();
        sum.lanes = lanes.map(|((namespace, lane), counts)| LaneStats { namespace, lane, counts }).collect();
        for worker in self.workers_seen_by(by).await? {
            match worker.state {
                WorkerState::Draining => sum.workers.draining += 1,
                _ => sum.workers.live += 1,
            }
            sum.workers.slots += worker.slots;
        }
        Ok(sum)
    }
}

/// A program with the store in reach shows no credentials; a server names its own kind.
impl Handle<GetCapabilities> for Service {
    async fn handle(&self, by: &Principal, _: Ask<GetCapabilities>) -> Result<ServerCapabilities, Problem> {
        let LibraryReply::Library { hash, number } = self.operations.library().await?;
        let client = self.operations.client();
        let facts = client.host().facts();
        let mut worker_capabilities = BTreeMap::new();
        for token in self.workers_seen_by(by).await?.into_iter().flat_map(|worker| worker.capabilities) {
            *worker_capabilities.entry(token).or_insert(0) += 1;
        }
        Ok(ServerCapabilities {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            library: ServerLibrary { number, hash },
            store: ServerStore {
                kind: facts.kind.to_owned(),
                durability: facts.durability,
                loss_window: facts.loss_window,
                partitions: client.partitions().executions,
            },
            authentication: "none".to_owned(),
            features: FEATURES.map(str::to_owned).to_vec(),
            limits: ServerLimits {
                input_bytes: INPUT_BYTES_MAX,
                result_bytes: INPUT_BYTES_MAX,
                reason_bytes: REASON_BYTES_MAX,
                batch_items: BATCH_ITEMS_MAX,
                claim_max: CLAIM_MAX,
                wait_ms: usize::try_from(WAIT_MS_MAX).unwrap_or(usize::MAX),
                list_limit: usize::try_from(LIST_LIMIT_MAX).unwrap_or(usize::MAX),
            },
            worker_capabilities,
        })
    }
}

impl Service {
    /// The live workers that may run something of what the caller's token covers.
    async fn workers_seen_by(&self, by: &Principal) -> Result<Vec<Worker>, Problem> {
        let mut workers = self.operations.workers().await?;
        workers.retain(|worker| worker.lanes.iter().any(|lane| by.covers(&worker.namespace, Some(lane))));
        Ok(workers)
    }
}
