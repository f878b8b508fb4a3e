//! What the store can say about itself in numbers: what happened since it was made, and what is on hand.
//!
//! What happened is counted by the partitions from their own events, each event once, however many processes ask and whenever
//! one of them dies. So every process answers the same numbers, and they are the history's.

use std::collections::BTreeMap;
use std::time::Duration;

use ff_script::generated::{
    Budget, BudgetStats, BudgetStatsReply, LaneCounts, OnHand, PartitionStatsReply, QuotaStanding, QuotaStats,
    QuotaStatsReply, TallyEvents, TallyEventsReply, TallyLine, Worker,
};
use ff_script::{Error, Route};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::time::Instant;

use crate::operations::{Operations, partition_stats};

const AT_ONCE: usize = 32;
/// Events one call counts.
const BATCH: i64 = 1_000;
/// Budgets and quotas one partition tells, and keys of each quota it looks at.
const TOLD_MAX: i64 = 64;

/// A namespace and a lane; the lane is empty for what has none, such as a flow.
pub type LaneKey = (String, String);

/// One reading of the whole store.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// What happened.
    pub history: History,
    /// What each lane holds.
    pub lanes: BTreeMap<LaneKey, LaneStock>,
    /// Executions kept, ended ones included.
    pub executions: i64,
    /// Events kept.
    pub events: i64,
    /// Flows kept.
    pub flows: i64,
    /// Schedules.
    pub schedules: i64,
    /// Flows that still owe their members a cancel, and how many members that is.
    pub cancel_backlog: i64,
    /// Members that are still to be cancelled.
    pub pending_cancels: i64,
    /// Wake-ups planned for executions.
    pub timers: i64,
    /// Wake-ups that are due.
    pub timers_due: i64,
    /// How long the oldest of them has been.
    pub timer_lag_ms: i64,
    /// Wake-ups that raised and were set aside.
    pub stuck: i64,
    /// Effects owed to other partitions.
    pub outbox: i64,
    /// How long the oldest of them has been.
    pub outbox_age_ms: i64,
    /// Open waitpoints.
    pub waitpoints: i64,
    /// How long the oldest of them has been open.
    pub waitpoint_age_ms: i64,
    /// The budgets made first, without those of flows.
    pub budgets: Vec<Budget>,
    /// How many budgets there are.
    pub budget_count: i64,
    /// The quotas made first.
    pub quotas: Vec<QuotaStanding>,
    /// How many quotas there are.
    pub quota_count: i64,
    /// Live workers.
    pub workers: Vec<Worker>,
    /// Commands the store has processed since it started.
    pub store_commands: u64,
}

/// What happened, as far as it was counted.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// By lane.
    pub lines: BTreeMap<LaneKey, Line>,
    /// The upper bounds by which durations are told apart.
    pub bounds_ms: Vec<i64>,
    /// How often events were dropped before anyone counted them.
    pub gaps: i64,
    /// How far the counts are behind; 0 when everything was counted.
    pub lag_ms: i64,
}

/// What happened in one lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// How many events there were of each type; some types are told apart further, as `type:fact`.
    pub counts: BTreeMap<String, i64>,
    /// How long executions stood in line before they started.
    pub waited: Durations,
    /// How long they ran under a lease.
    pub ran: Durations,
    /// How long they took from submission to their end.
    pub took: Durations,
}

impl Line {
    /// How many events of a type there were, whatever else they said.
    #[must_use]
    pub fn of(&self, kind: &str) -> i64 {
        self.parts(kind).map(|(_, count)| count).sum()
    }

    /// The counts of a type with what tells them apart; nothing where an event did not say.
    pub fn parts<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (Option<&'a str>, i64)> {
        self.counts.iter().filter_map(move |(name, count)| {
            let rest = name.strip_prefix(kind)?;
            if rest.is_empty() { Some((None, *count)) } else { Some((Some(rest.strip_prefix(':')?), *count)) }
        })
    }

    fn add(&mut self, names: &[String], line: &TallyLine) {
        for (name, count) in names.iter().zip(&line.counts) {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        self.waited.add(&line.waited);
        self.ran.add(&line.ran);
        self.took.add(&line.took);
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &Self) {
        for (name, count) in &other.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        for (mine, theirs) in
            [(&mut self.waited, &other.waited), (&mut self.ran, &other.ran), (&mut self.took, &other.took)]
        {
            mine.sum_ms += theirs.sum_ms;
            mine.extend(&theirs.within);
        }
    }
}

/// Durations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// All together.
    pub sum_ms: i64,
    /// How many were within each bound and not within the one before; the last ones within none.
    pub within: Vec<i64>,
}

impl Durations {
    fn add(&mut self, told: &[i64]) {
        if let Some((sum_ms, within)) = told.split_first() {
            self.sum_ms += sum_ms;
            self.extend(within);
        }
    }

    fn extend(&mut self, within: &[i64]) {
        if self.within.len() < within.len() {
            self.within.resize(within.len(), 0);
        }
        for (mine, theirs) in self.within.iter_mut().zip(within) {
            *mine += theirs;
        }
    }
}

/// How many executions of a lane are in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneStock {
    /// By the state's name.
    pub states: BTreeMap<&'static str, i64>,
    /// For how long the oldest that could start has existed.
    pub oldest_age_ms: i64,
}

impl LaneStock {
    fn add(&mut self, counts: &LaneCounts, now: i64) {
        let states = [
            ("eligible", counts.eligible),
            ("granted", counts.granted),
            ("active", counts.active),
            ("delayed", counts.delayed),
            ("suspended", counts.suspended),
            ("ended", counts.terminal),
            ("waiting_for_capable_worker", counts.blocked_route),
            ("waiting_for_quota", counts.blocked_quota),
            ("waiting_for_budget", counts.blocked_budget),
            ("waiting_for_dependencies", counts.blocked_dependencies),
            ("waiting_for_children", counts.blocked_children),
            ("held_by_operator", counts.blocked_operator),
        ];
        for (state, count) in states {
            *self.states.entry(state).or_default() += count;
        }
        self.oldest_age_ms = self.oldest_age_ms.max(age(counts.oldest_eligible_at, now));
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &Self) {
        for (state, count) in &other.states {
            *self.states.entry(state).or_default() += count;
        }
        self.oldest_age_ms = self.oldest_age_ms.max(other.oldest_age_ms);
    }
}

fn age(since: Option<i64>, now: i64) -> i64 {
    since.map_or(0, |since| (now - since).max(0))
}

/// What one partition answered.
struct Part {
    tally: TallyEventsReply,
    stats: Option<PartitionStatsReply>,
    budgets: Option<BudgetStatsReply>,
    quotas: Option<QuotaStatsReply>,
}

impl Operations {
    /// Counts what was not counted yet, for as long as that may take, and reads what is on hand. The number of store commands
    /// follows the number of partitions and lanes, and of the events since the last time.
    pub async fn take_inventory(&self, counting_for: Duration) -> Result<Inventory, Error> {
        let until = Instant::now() + counting_for;
        let client = self.client();
        let routes: Vec<Route> = client
            .execution_routes()
            .chain(client.budget_routes())
            .chain(client.quota_routes())
            .chain(client.schedule_routes())
            .chain([Route::Fleet])
            .collect();
        let commands = async { Ok(client.host().store_commands().await?) };
        let (parts, workers, store_commands) = futures::try_join!(
            stream::iter(routes)
                .map(|route| self.ask_partition(route, until))
                .buffer_unordered(AT_ONCE)
                .try_collect::<Vec<Part>>(),
            self.workers(),
            commands,
        )?;
        let mut inventory = Inventory { workers, store_commands, ..Inventory::default() };
        for part in parts {
            inventory.add(part);
        }
        inventory.budgets.sort_by_key(|budget| (budget.created_at, budget.budget_id));
        inventory.quotas.sort_by_key(|quota| (quota.created_at, quota.quota_id));
        Ok(inventory)
    }

    async fn ask_partition(&self, route: Route, until: Instant) -> Result<Part, Error> {
        let client = self.client();
        let tally = loop {
            let tally = client.call(route, &TallyEvents { limit: BATCH }).await?;
            let TallyEventsReply::Tally { more, .. } = &tally;
            if !more || Instant::now() >= until {
                break tally;
            }
        };
        let mut part = Part { tally, stats: None, budgets: None, quotas: None };
        match route {
            Route::Execution(_) | Route::Schedule(_) => part.stats = Some(partition_stats(client, route).await?),
            Route::Budget(_) => part.budgets = Some(client.call(route, &BudgetStats { limit: TOLD_MAX }).await?),
            Route::Quota(_) => {
                let call = QuotaStats { limit: TOLD_MAX, keys_max: TOLD_MAX };
                part.quotas = Some(client.call(route, &call).await?);
            }
            Route::Fleet | Route::Config => {}
        }
        Ok(part)
    }
}

impl Inventory {
    fn add(&mut self, part: Part) {
        let TallyEventsReply::Tally { names, bounds_ms, lines, gaps, counted_to, on_hand, now, .. } = part.tally;
        self.history.gaps += gaps;
        self.history.lag_ms = self.history.lag_ms.max(now - counted_to);
        self.history.bounds_ms = bounds_ms;
        for line in &lines {
            let key = (line.namespace.clone(), line.lane.clone());
            self.history.lines.entry(key).or_default().add(&names, line);
        }
        self.add_on_hand(&on_hand, now);
        if let Some(stats) = part.stats {
            self.add_stats(stats, now);
        }
        if let Some(BudgetStatsReply::Stats { items, budgets }) = part.budgets {
            self.budgets.extend(items);
            self.budget_count += budgets;
        }
        if let Some(QuotaStatsReply::Stats { items, quotas }) = part.quotas {
            self.quotas.extend(items);
            self.quota_count += quotas;
        }
    }

    fn add_on_hand(&mut self, hand: &OnHand, now: i64) {
        self.outbox += hand.outbox;
        self.outbox_age_ms = self.outbox_age_ms.max(age(hand.oldest_outbox_at, now));
        self.timers_due += hand.timers_due;
        self.timer_lag_ms = self.timer_lag_ms.max(age(hand.next_timer_at, now));
        self.stuck += hand.stuck;
        self.waitpoints += hand.waitpoints;
        self.waitpoint_age_ms = self.waitpoint_age_ms.max(age(hand.oldest_waitpoint_at, now));
    }

    fn add_stats(&mut self, stats: PartitionStatsReply, now: i64) {
        let PartitionStatsReply::Stats {
            cancel_backlog,
            events,
            executions,
            flows,
            lanes,
            pending_cancels,
            schedules,
            timers,
            more: _,
            next_timer_at: _,
            outbox: _,
            stuck: _,
        } = stats;
        self.cancel_backlog += cancel_backlog;
        self.events += events;
        self.executions += executions;
        self.flows += flows;
        self.schedules += schedules;
        self.pending_cancels += pending_cancels;
        self.timers += timers;
        for counts in lanes {
            let key = (counts.namespace.clone(), counts.lane.clone());
            self.lanes.entry(key).or_default().add(&counts, now);
        }
    }
}
