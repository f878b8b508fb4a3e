//! Claims: a worker takes the best work it may run.

use std::collections::BTreeSet;

use ff_core::types::{AttemptId, ExecutionId, LeaseId};
use ff_script::generated::{ClaimExecutions, ClaimExecutionsReply, Fence, Task};

use super::execution::{Execution, Paused, Running, Stage};
use super::lane::{Queue, Taker};
use super::{Answer, Model, invalid};

/// Number of candidates compared by preferred capabilities.
const PREFER_WINDOW: usize = 16;

/// Number of candidates that one call checks.
pub(super) const LOOKS_MAX: usize = 64;

/// The holder of a new lease.
pub(super) struct Holder<'a> {
    pub instance: &'a str,
    pub worker_id: &'a str,
    pub ttl_ms: i64,
    pub attempt_id: AttemptId,
    pub lease_id: LeaseId,
}

impl Model {
    pub fn claim(&mut self, call: &ClaimExecutions) -> Answer<ClaimExecutionsReply> {
        for (field, given) in [("lease_ids", call.lease_ids.len()), ("attempt_ids", call.attempt_ids.len())] {
            if (given as i64) < call.max {
                return Err(invalid(field, "must hold max items"));
            }
        }
        let held: Vec<_> = call.lease_ids.iter().filter_map(|lease| self.held_by(&call.instance, *lease)).collect();
        let live: Vec<Task> = held
            .iter()
            .filter(|id| self.executions[*id].running().is_some_and(|r| self.now < r.until))
            .map(|id| self.executions[id].task())
            .collect();
        if !live.is_empty() {
            return Ok(ClaimExecutionsReply::Replayed { tasks: live });
        }
        // An expired lease keeps its id until the expiry is noticed.
        let pairs = call.lease_ids.iter().copied().zip(call.attempt_ids.iter().copied());
        let free: Vec<(LeaseId, AttemptId)> =
            pairs.filter(|(lease, _)| self.held_by(&call.instance, *lease).is_none()).collect();
        let max = call.max.min(free.len() as i64);
        let path = format!("{}/{}", call.namespace, call.lane);
        let Some(lane) = self.lanes.get(&path) else {
            return Ok(nothing(None));
        };
        if !lane.starts() {
            return Ok(ClaimExecutionsReply::Paused { state: lane.definition.state });
        }
        if lane.definition.max_active.is_some() {
            return Ok(nothing(Some(true)));
        }
        let mut rest =
            self.eligible(&path, &self.queues_for(&path, &Taker::of(&call.capabilities, call.kinds.as_ref()), false));
        let (mut tasks, mut looked) = (Vec::new(), Vec::new());
        while (tasks.len() as i64) < max && looked.len() < LOOKS_MAX && !rest.is_empty() {
            let id = self.take_best(&mut rest, &call.capabilities);
            looked.push(id);
            if !self.executions[&id].may_start(self.now) {
                continue;
            }
            let (lease_id, attempt_id) = free[tasks.len()];
            let holder = Holder {
                instance: &call.instance,
                worker_id: &call.worker_id,
                ttl_ms: call.lease_ttl_ms,
                attempt_id,
                lease_id,
            };
            tasks.push(self.start(id, holder));
        }
        let next_score = rest.iter().map(|id| self.executions[id].score).min();
        let passed: BTreeSet<ExecutionId> = looked.into_iter().collect();
        let waits = |e: &&Execution| e.is_eligible() && e.path() == path && !passed.contains(&e.id);
        let idle = next_score.is_none() && !self.executions.values().any(|e| waits(&e));
        let lane = self.lanes.get_mut(&path).expect("looked up above");
        if idle && lane.is_fair() {
            lane.idle();
        }
        Ok(ClaimExecutionsReply::Claimed { admission_needed: None, next_score, tasks })
    }

    /// The execution that this worker holds under this lease.
    pub(super) fn held_by(&self, instance: &str, lease: LeaseId) -> Option<ExecutionId> {
        let holds = |e: &Execution| e.running().is_some_and(|r| r.instance == instance && r.fence.lease_id == lease);
        self.executions.iter().find(|(_, e)| holds(e)).map(|(id, _)| *id)
    }

    /// The queues a worker looks at: those of the kinds it takes whose requirements it covers.
    pub(super) fn queues_for(&self, path: &str, worker: &Taker<'_>, admission: bool) -> BTreeSet<String> {
        let seen = |(_, queue): &(String, Queue)| (admission || !queue.admission) && worker.takes(queue);
        self.queues(path).into_iter().filter(seen).map(|(name, _)| name).collect()
    }

    /// Removes the next candidate from the list: the most preferred of the first sixteen, but never across priorities.
    pub(super) fn take_best(&self, rest: &mut Vec<ExecutionId>, capabilities: &[String]) -> ExecutionId {
        let priority = self.executions[&rest[0]].priority;
        let likes = |id: &ExecutionId| {
            self.executions[id].said.prefers.iter().filter(|token| capabilities.contains(token)).count()
        };
        let (mut best, mut most) = (0, likes(&rest[0]));
        for (at, id) in rest.iter().enumerate().take(PREFER_WINDOW).skip(1) {
            if self.executions[id].priority != priority {
                break;
            }
            if likes(id) > most {
                (best, most) = (at, likes(id));
            }
        }
        rest.remove(best)
    }

    /// Starts a new attempt under a new lease, or continues the one that waited.
    pub(super) fn start(&mut self, id: ExecutionId, holder: Holder<'_>) -> Task {
        let now = self.now;
        let (task, path, turn) = self.edit(id, |execution| {
            let waiting = execution.waiting().expect("only waiting work starts");
            let (next, continues) = (waiting.next, waiting.continues.clone());
            let lease_epoch = (execution.epoch() + 1).max(now * 1_000);
            let fresh = continues.is_none();
            let paused = continues.map_or_else(
                || Paused {
                    fence: Fence { attempt_id: holder.attempt_id, lease_id: holder.lease_id, lease_epoch: 0 },
                    instance: String::new(),
                    index: execution.attempts.len() as i64,
                    kind: next,
                    started_at: now,
                    time_left: execution.said.attempt_timeout_ms,
                    cancel: None,
                },
                |paused| *paused,
            );
            execution.stage = Stage::Running(Box::new(Running {
                fence: Fence { lease_id: holder.lease_id, lease_epoch, ..paused.fence },
                instance: holder.instance.to_owned(),
                worker_id: holder.worker_id.to_owned(),
                until: now + holder.ttl_ms,
                ttl_ms: holder.ttl_ms,
                renewals: 0,
                cancel: paused.cancel,
                yield_asked: false,
                index: paused.index,
                kind: paused.kind,
                started_at: paused.started_at,
                timeout_at: paused.time_left.map(|ms| now + ms),
            }));
            execution.start_by = None;
            if fresh {
                execution.progress = None;
            }
            (execution.task(), execution.path(), execution.turn)
        });
        if let Some(lane) = self.lanes.get_mut(&path) {
            lane.started(turn);
        }
        task
    }
}

fn nothing(admission_needed: Option<bool>) -> ClaimExecutionsReply {
    ClaimExecutionsReply::Claimed { admission_needed, next_score: None, tasks: Vec::new() }
}
