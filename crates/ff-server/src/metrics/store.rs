//! What the store says: the history in counters and histograms, and what is on hand.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ff_engine::Inventory;
use ff_engine::inventory::{LaneKey, LaneStock, Line};
use ff_script::HostFacts;
use ff_script::generated::{Budget, DimensionStatus, QuotaStanding};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::lanes::LaneNames;
use super::sheet::Sheet;
use super::table::{self as t, Metric};

/// Budgets, and quotas, that are told apart.
const TOLD_MAX: usize = 100;

/// One reading, ready to be written.
#[derive(Debug)]
pub struct StoreSheet {
    inventory: Option<Arc<Inventory>>,
    lines: BTreeMap<LaneKey, Line>,
    lanes: BTreeMap<LaneKey, LaneStock>,
    kind: &'static str,
}

impl StoreSheet {
    /// A reading with its lanes bounded; none when the store could not be read.
    pub fn new(inventory: Option<Arc<Inventory>>, facts: &HostFacts, names: &LaneNames) -> Self {
        let (lines, lanes) = inventory
            .as_ref()
            .map(|read| (names.fold(&read.history.lines, Line::merge), names.fold(&read.lanes, LaneStock::merge)))
            .unwrap_or_default();
        Self { inventory, lines, lanes, kind: facts.kind }
    }

    /// The lines of lanes; others have what happened without one.
    fn of_lanes(&self) -> impl Iterator<Item = (&LaneKey, &Line)> {
        self.lines.iter().filter(|((_, lane), _)| !lane.is_empty())
    }

    fn history(&self, sheet: &mut Sheet<'_, '_>, read: &Inventory) -> fmt::Result {
        for (metric, kind) in [
            (&t::SUBMITTED, "execution.submitted"),
            (&t::RETRIED, "execution.retried"),
            (&t::RESUMED, "execution.resumed"),
            (&t::REPLAYED, "execution.replayed"),
        ] {
            sheet.counter(metric, self.of_lanes().map(|(lane, line)| (of(lane), line.of(kind))))?;
        }
        for (metric, kind) in [
            (&t::STARTED, "execution.started"),
            (&t::SUSPENDED, "execution.suspended"),
            (&t::BLOCKED, "execution.blocked"),
        ] {
            let parts = self.of_lanes().flat_map(|(lane, line)| {
                line.parts(kind).map(move |(part, count)| (with(lane, part.unwrap_or("unknown")), count))
            });
            sheet.counter(metric, parts)?;
        }
        let outcomes = [
            ("success", "execution.completed"),
            ("failed", "execution.failed"),
            ("cancelled", "execution.cancelled"),
            ("expired", "execution.expired"),
            ("skipped", "execution.skipped"),
        ];
        let ended = self
            .of_lanes()
            .flat_map(|(lane, line)| outcomes.iter().map(move |(outcome, kind)| (with(lane, outcome), line.of(kind))));
        sheet.counter(&t::FINISHED, ended)?;
        // A lease that is lost once too often ends the execution instead of offering it again.
        for (metric, cause) in [(&t::LEASES_EXPIRED, "expired"), (&t::LEASES_REVOKED, "revoked")] {
            let lost = self.of_lanes().map(|(lane, line)| {
                let both = line.parts("execution.reclaimed").chain(line.parts("execution.failed"));
                (of(lane), both.filter(|(part, _)| *part == Some(cause)).map(|(_, count)| count).sum())
            });
            sheet.counter(metric, lost)?;
        }
        self.flows(sheet)?;
        let mut types: BTreeMap<&str, i64> = BTreeMap::new();
        for (name, count) in self.lines.values().flat_map(|line| &line.counts) {
            *types.entry(name.split(':').next().unwrap_or(name)).or_default() += count;
        }
        sheet.counter(&t::EVENTS, types.into_iter().map(|(kind, count)| ([kind.to_owned()], count)))?;
        let bounds = &read.history.bounds_ms;
        sheet.durations(&t::WAITED, bounds, self.of_lanes().map(|(lane, line)| (of(lane), line.waited.clone())))?;
        sheet.durations(&t::RAN, bounds, self.of_lanes().map(|(lane, line)| (of(lane), line.ran.clone())))?;
        sheet.durations(&t::TOOK, bounds, self.of_lanes().map(|(lane, line)| (of(lane), line.took.clone())))?;
        sheet.counter(&t::HISTORY_GAPS, [([], read.history.gaps)])?;
        sheet.seconds(&t::HISTORY_LAG, [([], read.history.lag_ms)])
    }

    fn flows(&self, sheet: &mut Sheet<'_, '_>) -> fmt::Result {
        let of_flows = || self.lines.iter().filter(|(_, line)| line.of("flow.created") > 0);
        let created = of_flows().map(|((namespace, _), line)| ([namespace.clone()], line.of("flow.created")));
        sheet.counter(&t::FLOWS_CREATED, created)?;
        let outcomes = ["completed", "failed", "cancelled"];
        let ended = of_flows().flat_map(|((namespace, _), line)| {
            outcomes
                .iter()
                .map(move |outcome| ([namespace.clone(), (*outcome).to_owned()], line.of(&format!("flow.{outcome}"))))
        });
        sheet.counter(&t::FLOWS_FINISHED, ended)?;
        let known = ["fired", "skipped", "missed"];
        let of_schedules = self.lines.iter().filter(|(_, line)| line.of("schedule.created") > 0);
        let firings = of_schedules.flat_map(|((namespace, _), line)| {
            known
                .iter()
                .map(move |fate| ([namespace.clone(), (*fate).to_owned()], line.of(&format!("schedule.{fate}"))))
        });
        sheet.counter(&t::SCHEDULE_FIRINGS, firings)
    }

    fn on_hand(&self, sheet: &mut Sheet<'_, '_>, read: &Inventory) -> fmt::Result {
        let states = self
            .lanes
            .iter()
            .flat_map(|(lane, stock)| stock.states.iter().map(move |(state, count)| (with(lane, state), *count)));
        sheet.gauge(&t::LANE_EXECUTIONS, states)?;
        sheet.seconds(&t::LANE_OLDEST, self.lanes.iter().map(|(lane, stock)| (of(lane), stock.oldest_age_ms)))?;
        let alone: [(&Metric, i64); 14] = [
            (&t::EXECUTIONS, read.executions),
            (&t::WAITPOINTS, read.waitpoints),
            (&t::TIMERS, read.timers),
            (&t::TIMERS_DUE, read.timers_due),
            (&t::TIMERS_STUCK, read.stuck),
            (&t::OUTBOX, read.outbox),
            (&t::EVENTS_KEPT, read.events),
            (&t::FLOWS, read.flows),
            (&t::SCHEDULES, read.schedules),
            (&t::CANCEL_FLOWS, read.cancel_backlog),
            (&t::CANCEL_MEMBERS, read.pending_cancels),
            (&t::BUDGETS, read.budget_count),
            (&t::QUOTAS, read.quota_count),
            (&t::WORKER_SLOTS, read.workers.iter().map(|worker| worker.slots).sum()),
        ];
        for (metric, number) in alone {
            sheet.gauge(metric, [([], number)])?;
        }
        for (metric, ms) in [
            (&t::WAITPOINT_OLDEST, read.waitpoint_age_ms),
            (&t::TIMER_LAG, read.timer_lag_ms),
            (&t::OUTBOX_OLDEST, read.outbox_age_ms),
        ] {
            sheet.seconds(metric, [([], ms)])?;
        }
        let mut workers: BTreeMap<&str, i64> = BTreeMap::new();
        for worker in &read.workers {
            *workers.entry(worker.state.as_str()).or_default() += 1;
        }
        sheet.gauge(&t::WORKERS, workers.into_iter().map(|(state, count)| ([state.to_owned()], count)))
    }
}

impl Collector for StoreSheet {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut sheet = Sheet(&mut encoder);
        sheet.gauge(&t::STORE_UP, [([self.kind.to_owned()], i64::from(self.inventory.is_some()))])?;
        let Some(read) = &self.inventory else { return Ok(()) };
        sheet.counter(&t::STORE_COMMANDS, [([], i64::try_from(read.store_commands).unwrap_or(i64::MAX))])?;
        self.history(&mut sheet, read)?;
        self.on_hand(&mut sheet, read)?;
        budgets(&mut sheet, &read.budgets)?;
        quotas(&mut sheet, &read.quotas)
    }
}

fn of((namespace, lane): &LaneKey) -> [String; 2] {
    [namespace.clone(), lane.clone()]
}

fn with((namespace, lane): &LaneKey, part: &str) -> [String; 3] {
    [namespace.clone(), lane.clone(), part.to_owned()]
}

fn budgets(sheet: &mut Sheet<'_, '_>, budgets: &[Budget]) -> fmt::Result {
    let each = || {
        budgets.iter().take(TOLD_MAX).flat_map(|budget| {
            budget.dimensions.iter().map(move |dimension| {
                let labels = [
                    budget.namespace.clone(),
                    budget.budget_id.to_string(),
                    budget.scope.r#type.as_str().to_owned(),
                    dimension.name.clone(),
                ];
                (labels, dimension)
            })
        })
    };
    let number = |of: fn(&DimensionStatus) -> Option<i64>| {
        each().filter_map(move |(labels, dimension)| Some((labels, of(dimension)?)))
    };
    sheet.gauge(&t::BUDGET_USED, number(|d| Some(d.used)))?;
    sheet.gauge(&t::BUDGET_HELD, number(|d| Some(d.held)))?;
    sheet.gauge(&t::BUDGET_LIMIT, number(|d| d.hard))?;
    sheet.gauge(&t::BUDGET_REMAINING, number(|d| d.hard.map(|hard| (hard - d.used - d.held).max(0))))
}

fn quotas(sheet: &mut Sheet<'_, '_>, quotas: &[QuotaStanding]) -> fmt::Result {
    let number = |of: fn(&QuotaStanding) -> i64| {
        quotas
            .iter()
            .take(TOLD_MAX)
            .map(move |quota| ([quota.namespace.clone(), quota.quota_id.to_string()], of(quota)))
    };
    sheet.gauge(&t::QUOTA_KEYS, number(|quota| quota.keys))?;
    sheet.gauge(&t::QUOTA_HELD, number(|quota| quota.held))?;
    sheet.gauge(&t::QUOTA_WAITING, number(|quota| quota.waiting))?;
    sheet.gauge(&t::QUOTA_THROTTLED, number(|quota| quota.throttled))
}
