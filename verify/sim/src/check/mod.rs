//! The history checker: for every call it knows the allowed changes and the expected reply.
//!
//! For each call it derives the expected reply from the history ([`verdict`]). It checks every event against the state
//! before and after ([`judge`]), and requires that nothing else changed. From time to time it reads the whole store
//! ([`indexes`]).

mod budgets;
mod ears;
mod flows;
mod indexes;
mod judge;
mod kin;
mod limits;
mod order;
mod quiet;
mod quotas;
mod shadow;
mod verdict;
mod waits;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ff_core::PartitionConfig;
use ff_core::types::{ExecutionId, FlowId};
use ff_script::generated::*;
use ff_script::{Route, Wake};

use crate::request::{Outcome, Reply, Request};
use crate::store::Store;
use budgets::Accounts;
use ears::Ears;
use flows::{Book, Hidden};
use quotas::Policies;
pub(crate) use quotas::set_of;
use shadow::{Key, diff};
pub(crate) use shadow::{Shadow, eligible};
use webhooks::Deliveries;

/// A broken invariant, by its number in ARCHITECTURE.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's number; 0 for liveness.
    pub invariant: u32,
    /// The observation.
    pub detail: String,
}

impl Violation {
    pub(crate) fn new(invariant: u32, detail: impl Into<String>) -> Self {
        Violation { invariant, detail: detail.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {} broken: {}", self.invariant, self.detail)
    }
}

impl std::error::Error for Violation {}

pub(crate) type Check = Result<(), Violation>;

/// Requires a condition; otherwise the invariant with this number is broken.
macro_rules! require {
    ($invariant:expr, $holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err($crate::check::Violation::new($invariant, format!($($text)+)));
        }
    };
}
pub(crate) use require;

/// One call with all its visible effects.
pub(crate) struct Step<'a> {
    pub now: i64,
    pub route: Route,
    pub request: &'a Request,
    pub outcome: &'a Outcome,
    pub events: &'a [Event],
    pub heard: &'a [(Route, Wake)],
}

impl Step<'_> {
    fn partition(&self) -> u16 {
        match self.route {
            Route::Execution(partition) => partition,
            other => unreachable!("{other} holds no executions"),
        }
    }
}

pub(crate) struct Checker {
    partitions: PartitionConfig,
    pub executions: BTreeMap<ExecutionId, Shadow>,
    /// Idempotency keys by namespace and key.
    keys: BTreeMap<String, Key>,
    /// Each partition's copies of lanes.
    lanes: BTreeMap<(u16, String), LaneEntry>,
    /// Lanes of a partition that have ever had work with preferences.
    preferring: BTreeSet<(u16, String)>,
    /// When each registered worker's registration ends.
    workers: BTreeMap<String, i64>,
    cursors: BTreeMap<Route, String>,
    pub flows: BTreeMap<FlowId, Book>,
    /// Members that are still hidden.
    hidden: BTreeMap<ExecutionId, Hidden>,
    pub budgets: Accounts,
    pub quotas: Policies,
    deliveries: Deliveries,
    ears: Ears,
    /// The time of the last call, and the latest time of any call.
    now: i64,
    latest: i64,
}

impl Checker {
    pub fn new(partitions: PartitionConfig) -> Self {
        Checker {
            partitions,
            executions: BTreeMap::new(),
            keys: BTreeMap::new(),
            lanes: BTreeMap::new(),
            preferring: BTreeSet::new(),
            workers: BTreeMap::new(),
            cursors: BTreeMap::new(),
            flows: BTreeMap::new(),
            hidden: BTreeMap::new(),
            budgets: Accounts::default(),
            quotas: Policies::default(),
            deliveries: Deliveries::default(),
            ears: Ears::new(partitions),
            now: 0,
            latest: 0,
        }
    }

    /// The events of a partition since the last call to it.
    pub fn new_events(&mut self, store: &Store, route: Route) -> Result<Vec<Event>, Violation> {
        let events = store.events(route, self.cursors.get(&route).map(String::as_str))?;
        if let Some(last) = events.last() {
            self.cursors.insert(route, last.id.clone());
        }
        Ok(events)
    }

    /// Executions that exist.
    pub fn live(&self) -> impl Iterator<Item = (&ExecutionId, &Shadow, &Execution)> {
        self.executions.iter().filter_map(|(id, shadow)| Some((id, shadow, shadow.seen.as_ref()?)))
    }

    fn live_in(&self, partition: u16) -> impl Iterator<Item = (&ExecutionId, &Shadow, &Execution)> {
        self.live().filter(move |(id, ..)| self.partitions.of_execution(id) == partition)
    }

    fn seen(&self, id: &ExecutionId) -> Option<&Execution> {
        self.executions.get(id)?.seen.as_ref()
    }

    /// Checks one call: its reply, its events, and the records it names.
    pub fn observe(&mut self, step: &Step<'_>, store: &Store) -> Check {
        self.now = step.now;
        self.latest = self.latest.max(step.now);
        if !step.outcome.committed() {
            require!(
                38,
                step.events.is_empty(),
                "{} wrote {} events although it ended with {}",
                step.request.name(),
                step.events.len(),
                step.outcome
            );
        }
        for event in step.events {
            require!(
                41,
                event.at == step.now,
                "{} is dated {}, the call happened at {}",
                event.r#type,
                event.at,
                step.now
            );
        }
        if step.route == Route::Fleet {
            return self.observe_fleet(step);
        }
        if !matches!(step.route, Route::Execution(_)) {
            return self.observe_limits(step, store);
        }
        if matches!(step.request, Request::TakeWebhooks(_) | Request::NoteWebhook(_)) {
            return self.observe_courier(step, store);
        }
        let verdicts = self.verdicts(step);
        self.check_answer(step, &verdicts)?;
        self.check_order(step)?;
        let tellers = self.tellers(step);

        self.enter_members(step, store)?;
        self.note_outcomes(step)?;
        let mut quiet: BTreeSet<ExecutionId> = step.request.targets().into_iter().collect();
        for event in step.events {
            let Some(id) = event.execution_id else {
                require!(41, event.flow_id.is_some(), "{} names no execution", event.r#type);
                continue;
            };
            quiet.remove(&id);
            let all: Vec<&Event> = step.events.iter().filter(|e| e.execution_id == Some(id)).collect();
            // Several events are checked together, at the first of them.
            if !std::ptr::eq(all[0], event) {
                continue;
            }
            let after = store.describe(id)?;
            match all[..] {
                [event] => self.judge(step, id, event, after)?,
                _ => self.judge_chain(step, id, &all, after)?,
            }
        }
        for id in quiet {
            let after = store.describe(id)?;
            self.stay_quiet(step, id, after)?;
        }
        self.note_ends(step, &tellers)?;
        self.refresh(step, store)?;
        self.note_waits(step, &verdicts);
        self.note_usage(step, &verdicts);
        self.note_lane(step);
        self.check_fired(step)?;
        self.listen(step)
    }

    /// After the host was opened again: everything acknowledged before is unchanged.
    pub fn survived(&self, store: &Store) -> Check {
        for (id, shadow) in &self.executions {
            let found = store.describe(*id)?;
            require!(
                8,
                found == shadow.seen,
                "{id} is not what it was before the crash: {}",
                diff(shadow.seen.as_ref(), found.as_ref())
            );
        }
        self.check_limits(store, self.now)
    }

    /// True if a clock that is this far behind does not affect which keys are still valid.
    pub fn may_go_back(&self, back_ms: i64) -> bool {
        self.keys.values().all(|key| key.until_ms > self.now || key.until_ms <= self.now - back_ms)
    }

    fn note_lane(&mut self, step: &Step<'_>) {
        if !step.outcome.committed() {
            return;
        }
        if let Request::InstallLane(call) = step.request {
            let key = (step.partition(), call.entry.lane.clone());
            if self.lanes.get(&key).is_none_or(|known| known.version < call.entry.version) {
                self.lanes.insert(key, call.entry.clone());
            }
        }
    }

    /// If a firing reports that nothing more is due, nothing may be due.
    fn check_fired(&mut self, step: &Step<'_>) -> Check {
        let Outcome::Reply(Reply::FireDue(FireDueReply::Fired { count, more, next_at, stuck, .. })) = step.outcome
        else {
            return Ok(());
        };
        let partition = step.partition();
        require!(38, *stuck == 0, "{stuck} timers raised");
        let own = step.events.iter().filter(|event| !self.is_consequence(step, event)).count() as i64;
        require!(41, own <= *count, "{own} events out of {count} timers");
        if !more {
            self.keys.retain(|_, key| key.partition != partition || key.until_ms > step.now);
            for (id, shadow, seen) in self.live_in(partition) {
                if let Some(at) = shadow.wake_at(seen) {
                    require!(6, at > step.now, "{id} was due at {at}, the timers ran at {} and left it", step.now);
                }
            }
            let wakes = self.live_in(partition).filter_map(|(_, shadow, seen)| shadow.wake_at(seen));
            let ends = self.keys.values().filter(|key| key.partition == partition).map(|key| key.until_ms);
            let flows = self.flow_wakes(partition).map(|(at, _)| at);
            let expected = wakes.chain(ends).chain(flows).min();
            // A debt is due from its creation, which may be later than a clock that was set back.
            let debt = next_at.is_some_and(|at| at <= self.latest && expected.is_none_or(|expected| at < expected));
            // A report that waits for its budget is also checked again soon.
            let sooner = next_at.is_some_and(|at| expected.is_none_or(|expected| at < expected));
            let debt = debt || (sooner && self.awaits_answers(partition));
            require!(
                11,
                *next_at == expected || debt,
                "the next timer was reported as {next_at:?}, but is {expected:?}"
            );
        }
        Ok(())
    }

    /// Calls about workers and lane definitions.
    fn observe_fleet(&mut self, step: &Step<'_>) -> Check {
        let found: Vec<&str> = step.events.iter().map(|event| event.r#type.as_str()).collect();
        let ttl = 30_000;
        let expected: Vec<&str> = match (step.request, step.outcome) {
            (Request::RegisterWorker(call), outcome) if outcome.committed() && !found.is_empty() => {
                self.workers.insert(call.instance.clone(), step.now + ttl);
                vec!["worker.registered"]
            }
            (Request::HeartbeatWorkers(call), outcome) => {
                for (at, instance) in call.instances.iter().enumerate() {
                    let alive = self.workers.get(instance).is_some_and(|until| step.now < *until);
                    if outcome.committed() && alive {
                        self.workers.insert(instance.clone(), step.now + ttl);
                    }
                    if let Outcome::Reply(Reply::HeartbeatWorkers(HeartbeatWorkersReply::Beaten { items })) = outcome {
                        require!(15, items[at].known == alive, "{instance}: known {}, alive {alive}", items[at].known);
                    }
                }
                vec![]
            }
            (Request::DeregisterWorker(call), outcome) if outcome.committed() && !found.is_empty() => {
                self.workers.remove(&call.instance);
                vec!["worker.left"]
            }
            (Request::DrainWorker(_), Outcome::Reply(Reply::DrainWorker(DrainWorkerReply::Draining))) => {
                vec!["worker.draining"]
            }
            (Request::MarkWorkerDead(call), outcome)
                if matches!(outcome, Outcome::Reply(_)) || (outcome.committed() && !found.is_empty()) =>
            {
                self.workers.remove(&call.instance);
                vec!["worker.marked_dead"]
            }
            (
                Request::DefineLane(_),
                Outcome::Reply(Reply::DefineLane(DefineLaneReply::Defined { changed: true, .. })),
            ) => {
                vec!["lane.changed"]
            }
            (Request::FireDue(_), _) => {
                for event in step.events {
                    let instance = event.worker_instance.clone().unwrap_or_default();
                    let until = self.workers.remove(&instance);
                    require!(
                        15,
                        event.r#type == "worker.expired" && until.is_some_and(|until| until <= step.now),
                        "{} of {instance} at {}, registered until {until:?}",
                        event.r#type,
                        step.now
                    );
                }
                return Ok(());
            }
            (_, Outcome::Failed(_)) => return Ok(()),
            _ => vec![],
        };
        require!(41, found == expected, "{} emitted {found:?}, expected {expected:?}", step.request.name());
        Ok(())
    }

    /// The whole store: every index against the history, and the findings of the library.
    pub fn deep(&self, store: &Store) -> Check {
        if let Some(finding) = store.fsck()?.first() {
            return Err(Violation::new(
                u32::try_from(finding.invariant).unwrap_or(0),
                format!("fsck: {} in {}", finding.problem, finding.key.escape_ascii()),
            ));
        }
        self.check_admitted()?;
        self.check_indexes(&store.dump()?)
    }
}
