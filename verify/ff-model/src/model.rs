//! A plain reference model of one partition: the specified reply and effect of every call.
//!
//! The model has no keys, indexes or plans. An execution is a sum type, and a lane is a struct. Everything derivable is
//! computed when it is needed: order of work, timers, which requirement sets have work.

mod claim;
mod due;
mod end;
mod execution;
mod grant;
mod lane;
mod operate;
mod query;
mod retry;
mod routes;
mod signal;
mod stream;
mod submit;
mod suspend;
mod waits;

use std::collections::{BTreeMap, BTreeSet};

use ff_core::types::ExecutionId;
use ff_script::generated::BlockingReason;

pub use execution::{Ending, Execution, Stage};
pub use lane::Lane;

use execution::Block;
use lane::Queue;

/// Why a call fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: String,
    /// The facts of the refusal.
    pub detail: BTreeMap<String, String>,
}

/// The reply of a call.
pub type Answer<T> = Result<T, Refusal>;

/// One partition.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The host's time in milliseconds.
    pub now: i64,
    /// Every execution that is not retired.
    pub executions: BTreeMap<ExecutionId, Execution>,
    /// The lanes that this partition has a copy of, by `namespace/lane`.
    pub lanes: BTreeMap<String, Lane>,
    keys: BTreeMap<(String, String), Key>,
}

/// The execution behind an idempotency key.
#[derive(Clone, Debug)]
struct Key {
    execution_id: ExecutionId,
    body_digest: String,
    until: i64,
}

/// A record with a wake-up.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Timer {
    Execution(ExecutionId),
    Key(String, String),
}

/// A refusal. Absent details are left out.
fn refused(code: &str, detail: &[(&str, Option<String>)]) -> Refusal {
    let detail = detail.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?))).collect();
    Refusal { code: code.to_owned(), detail }
}

fn not_found() -> Refusal {
    refused("execution_not_found", &[])
}

fn invalid(field: &str, problem: &str) -> Refusal {
    refused("invalid_argument", &[("field", Some(field.to_owned())), ("problem", Some(problem.to_owned()))])
}

impl Model {
    /// An empty partition at this time.
    pub fn at(now: i64) -> Model {
        Model { now, ..Model::default() }
    }

    fn get(&self, id: ExecutionId) -> Answer<&Execution> {
        self.executions.get(&id).ok_or_else(not_found)
    }

    fn lane_of(&self, execution: &Execution) -> Option<&Lane> {
        self.lanes.get(&execution.path())
    }

    /// Changes one execution, and applies the consequences: its time of change, and the queues it left.
    fn edit<R>(&mut self, id: ExecutionId, change: impl FnOnce(&mut Execution) -> R) -> R {
        let now = self.now;
        let execution = self.executions.get_mut(&id).expect("the caller has found it");
        let (path, queue, was_queued) = (execution.path(), queue_of(execution), execution.is_queued());
        let outcome = change(execution);
        execution.updated_at = now;
        let stays = execution.is_queued() && execution.path() == path;
        if was_queued && !stays {
            self.forget_if_empty(&path, &queue);
        }
        outcome
    }

    /// Drops a requirement set without work, unless it is known to be uncovered.
    fn forget_if_empty(&mut self, path: &str, queue: &str) {
        if self.queue_is_empty(path, queue)
            && let Some(lane) = self.lanes.get_mut(path)
            && !lane.is_confirmed_uncovered(queue)
        {
            lane.uncovered.remove(queue);
        }
    }

    fn queue_is_empty(&self, path: &str, queue: &str) -> bool {
        !self.executions.values().any(|e| e.is_queued() && e.path() == path && queue_of(e) == queue)
    }

    /// Removes an ended execution and everything that belongs to it alone.
    fn retire(&mut self, id: ExecutionId) {
        let execution = self.executions.remove(&id).expect("the caller has found it");
        if let Some(lane) = self.lanes.get_mut(&execution.path()) {
            lane.left(execution.said.fairness_key.as_deref(), execution.turn);
        }
    }

    /// Removes what blocked a waiting execution, and decides its state anew.
    fn settle(&mut self, id: ExecutionId) {
        let now = self.now;
        let execution = &self.executions[&id];
        let uncovered = self.lane_of(execution).and_then(|lane| lane.uncovered.get(&queue_of(execution)));
        let block =
            uncovered.filter(|known| known.confirmed).map(|known| route_block(execution, known.kind_missing, now));
        self.edit(id, |execution| {
            let waiting = execution.waiting_mut().expect("only a waiting execution settles");
            (waiting.block, waiting.grant) = (None, None);
            waiting.delay = waiting.delay.filter(|at| *at > now);
            if waiting.delay.is_none() {
                waiting.block = block;
            }
        });
    }

    /// Eligible work of these queues, best first.
    fn eligible(&self, path: &str, queues: &BTreeSet<String>) -> Vec<ExecutionId> {
        let mut found: Vec<&Execution> = self
            .executions
            .values()
            .filter(|e| e.is_eligible() && e.path() == path && queues.contains(&queue_of(e)))
            .collect();
        found.sort_by_key(|e| (e.score, e.id.to_string()));
        found.into_iter().map(|e| e.id).collect()
    }

    /// The queues of a lane that have work or are known to be uncovered.
    fn queues(&self, path: &str) -> BTreeMap<String, Queue> {
        let known = self.lanes.get(path).into_iter().flat_map(|lane| &lane.uncovered);
        let known = known.map(|(name, uncovered)| (name.clone(), uncovered.queue.clone()));
        let with_work = self.executions.values().filter(|e| e.path() == path && e.is_queued());
        let with_work = with_work.map(|e| {
            let queue =
                Queue { kind: e.said.kind.clone(), requires: e.said.requires.clone(), admission: e.needs_admission() };
            (queue_of(e), queue)
        });
        known.chain(with_work).collect()
    }

    /// Every wake-up, earliest first.
    fn timers(&self) -> Vec<(i64, Timer)> {
        let executions =
            self.executions.values().filter_map(|e| Some((e.wakes_at()?, e.id.to_string(), Timer::Execution(e.id))));
        let keys = self.keys.iter().map(|((namespace, key), record)| {
            let member = format!("idem:{}", lane::digest(&format!("{namespace}/{key}")));
            (record.until, member, Timer::Key(namespace.clone(), key.clone()))
        });
        let mut all: Vec<_> = executions.chain(keys).collect();
        all.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        all.into_iter().map(|(at, _, timer)| (at, timer)).collect()
    }

    /// When the next timer is due.
    pub fn next_wake_up(&self) -> Option<i64> {
        self.timers().first().map(|(at, _)| *at)
    }
}

/// The queue an execution's kind and requirements put it in.
fn queue_of(execution: &Execution) -> String {
    lane::queue_name(&execution.said.kind, &execution.said.requires, execution.needs_admission())
}

fn route_block(execution: &Execution, kind_missing: bool, now: i64) -> Block {
    let mut detail = BTreeMap::from([("requires".to_owned(), execution.said.requires.join(","))]);
    if kind_missing {
        detail.insert("kind".to_owned(), execution.said.kind.clone());
    }
    Block { reason: BlockingReason::WaitingForCapableWorker, detail, since: now }
}
