//! Calls of operators and submitters: cancel, hold, release, change, replay, delete, revoke, drain.

use ff_script::generated::{
    AttemptState, AttemptType, BlockingReason, CancelExecution, CancelExecutionReply, ChangeExecution,
    ChangeExecutionReply, DeleteExecution, DeleteExecutionReply, DrainLeases, DrainLeasesReply, Failure, HoldExecution,
    HoldExecutionReply, Outcome, ReleaseExecution, ReleaseExecutionReply, ReplayExecution, ReplayExecutionReply,
    RevokeLease, RevokeLeaseReply,
};

use super::execution::{Block, Ending, Execution, Stage, Waiting};
use super::{Answer, Model, refused};

fn phase(execution: &Execution) -> (&'static str, Option<String>) {
    ("lifecycle_phase", Some(execution.phase().to_string()))
}

impl Model {
    pub fn cancel(&mut self, call: &CancelExecution) -> Answer<CancelExecutionReply> {
        let now = self.now;
        if let Some(ended) = self.get(call.execution_id)?.ended() {
            return Ok(CancelExecutionReply::Already { outcome: ended.outcome });
        }
        Ok(self.edit(call.execution_id, |execution| {
            execution.note("cancel", &call.actor, call.reason.as_deref(), now);
            if let Some(grace_ms) = call.grace_ms.filter(|ms| *ms > 0)
                && let Some(running) = execution.running_mut()
            {
                let by = running.cancel.as_ref().map_or(i64::MAX, |(by, _)| *by).min(now + grace_ms);
                running.cancel = Some((by, call.reason.clone()));
                return CancelExecutionReply::Requested { cancel_by: by };
            }
            let failure = Failure { reason: call.reason.clone().unwrap_or_default(), category: "cancelled".to_owned() };
            let how = Some((Ending::Other, AttemptState::Cancelled));
            execution.end_by(Some(&call.actor), Outcome::Cancelled, how, Some(failure), None, now);
            CancelExecutionReply::Cancelled
        }))
    }

    pub fn hold(&mut self, call: &HoldExecution) -> Answer<HoldExecutionReply> {
        let now = self.now;
        let execution = self.get(call.execution_id)?;
        if execution.waiting().is_none() {
            return Err(refused("execution_not_runnable", &[phase(execution)]));
        }
        if execution.blocked_by() == Some(BlockingReason::HeldByOperator) {
            return Ok(HoldExecutionReply::Already);
        }
        self.edit(call.execution_id, |execution| {
            execution.note("hold", &call.actor, call.reason.as_deref(), now);
            let waiting = execution.waiting_mut().expect("checked above");
            waiting.grant = None;
            let detail = [
                ("actor".to_owned(), call.actor.clone()),
                ("reason".to_owned(), call.reason.clone().unwrap_or_default()),
            ];
            waiting.block = Some(Block { reason: BlockingReason::HeldByOperator, detail: detail.into(), since: now });
        });
        Ok(HoldExecutionReply::Held)
    }

    pub fn release(&mut self, call: &ReleaseExecution) -> Answer<ReleaseExecutionReply> {
        let now = self.now;
        let execution = self.get(call.execution_id)?;
        if execution.waiting().is_none() {
            return Err(refused("execution_not_runnable", &[phase(execution)]));
        }
        if execution.blocked_by() != Some(BlockingReason::HeldByOperator) {
            return Ok(ReleaseExecutionReply::Already { state: execution.state() });
        }
        self.edit(call.execution_id, |execution| execution.note("release", &call.actor, call.reason.as_deref(), now));
        self.settle(call.execution_id);
        Ok(ReleaseExecutionReply::Released { state: self.executions[&call.execution_id].state() })
    }

    pub fn change(&mut self, call: &ChangeExecution) -> Answer<ChangeExecutionReply> {
        let (id, now) = (call.execution_id, self.now);
        let execution = self.get(id)?;
        if let Some(ended) = execution.ended() {
            return Err(refused("execution_terminal", &[("outcome", Some(ended.outcome.to_string()))]));
        }
        let moves = call.priority.is_some() || call.lane.is_some();
        if (moves || call.delay_until.is_some()) && execution.waiting().is_none() {
            return Err(refused("execution_not_runnable", &[phase(execution)]));
        }
        if moves {
            self.requeue(call)?;
        }
        let moved = [BlockingReason::WaitingForCapableWorker, BlockingReason::WaitingForQuota];
        let held = self.executions[&id].blocked_by().is_some_and(|reason| !moved.contains(&reason));
        self.edit(id, |execution| {
            execution.note("change", &call.actor, None, now);
            execution.deadline = call.deadline_at.or(execution.deadline);
            if let Some(tags) = &call.tags {
                execution.tags = tags.clone();
            }
            if let (Some(at), Some(waiting)) = (call.delay_until, execution.waiting_mut()) {
                waiting.delay = Some(at).filter(|at| held || *at > now);
            }
        });
        if (moves || call.delay_until.is_some()) && !held {
            self.settle(id);
        }
        Ok(ChangeExecutionReply::Changed { state: self.executions[&id].state() })
    }

    /// A new lane or priority gives a new score.
    fn requeue(&mut self, call: &ChangeExecution) -> Answer<()> {
        let now = self.now;
        let execution = &self.executions[&call.execution_id];
        let name = call.lane.clone().unwrap_or_else(|| execution.lane.clone());
        let namespace = &execution.said.namespace;
        let Some(lane) = self.lanes.get_mut(&format!("{namespace}/{name}")) else {
            return Err(refused("lane_unseen", &[("namespace", Some(namespace.clone())), ("lane", Some(name))]));
        };
        if name != execution.lane && !lane.accepts() {
            return Err(refused(
                "lane_disabled",
                &[("lane", Some(name)), ("state", Some(lane.definition.state.to_string()))],
            ));
        }
        let priority = call.priority.unwrap_or(execution.priority);
        let key = execution.said.fairness_key.clone();
        let (score, turn) = lane.score(execution.said.created_at, priority, key.as_deref(), now);
        let (old_path, old_turn, moves) = (execution.path(), execution.turn, name != execution.lane);
        if moves && let Some(old) = self.lanes.get_mut(&old_path) {
            old.left(key.as_deref(), old_turn);
        }
        self.edit(call.execution_id, |execution| {
            (execution.lane, execution.priority, execution.score, execution.turn) = (name, priority, score, turn);
        });
        Ok(())
    }

    pub fn replay(&mut self, call: &ReplayExecution) -> Answer<ReplayExecutionReply> {
        let (id, now) = (call.execution_id, self.now);
        let execution = self.get(id)?;
        if execution.ended().is_none() {
            return Err(refused("execution_not_terminal", &[phase(execution)]));
        }
        if execution.replays >= execution.said.max_replays {
            return Err(refused("max_replays", &[("max_replays", Some(execution.said.max_replays.to_string()))]));
        }
        self.edit(id, |execution| {
            execution.note("replay", &call.actor, call.reason.as_deref(), now);
            execution.replays += 1;
            (execution.failures, execution.lost_in_a_row, execution.tier, execution.progress) = (0, 0, None, None);
            execution.deadline = execution.deadline.filter(|at| *at > now);
            execution.start_by = execution.said.start_within_ms.map(|ms| now + ms);
            let next = if execution.attempts.is_empty() { AttemptType::Initial } else { AttemptType::Replay };
            execution.stage = Stage::Waiting(Waiting::next(next));
        });
        self.settle(id);
        let execution = &self.executions[&id];
        Ok(ReplayExecutionReply::Replayed { replay_count: execution.replays, state: execution.state() })
    }

    pub fn delete(&mut self, call: &DeleteExecution) -> Answer<DeleteExecutionReply> {
        let execution = self.get(call.execution_id)?;
        if execution.ended().is_none() {
            return Err(refused("execution_not_terminal", &[phase(execution)]));
        }
        self.retire(call.execution_id);
        Ok(DeleteExecutionReply::Deleted)
    }

    pub fn revoke(&mut self, call: &RevokeLease) -> Answer<RevokeLeaseReply> {
        let (id, now) = (call.execution_id, self.now);
        let execution = self.get(id)?;
        if execution.running().is_none() {
            let outcome = execution.ended().map(|ended| ended.outcome.to_string());
            return Err(refused("execution_not_active", &[phase(execution), ("terminal_outcome", outcome)]));
        }
        let grace = call.grace.unwrap_or(false);
        self.edit(id, |execution| {
            execution.note("revoke", &call.actor, call.reason.as_deref(), now);
            if grace {
                execution.running_mut().expect("checked above").yield_asked = true;
            }
        });
        if grace {
            return Ok(RevokeLeaseReply::Requested);
        }
        self.lose(id, Ending::Revoked);
        Ok(RevokeLeaseReply::Revoked { state: self.executions[&id].state() })
    }

    pub fn drain(&mut self, call: &DrainLeases) -> Answer<DrainLeasesReply> {
        let held = self.executions.values().filter(|e| e.running().is_some_and(|r| r.instance == call.instance));
        let held: Vec<_> = held.map(|e| e.id).collect();
        let mut changed = 0;
        for id in held {
            if changed >= call.limit {
                return Ok(DrainLeasesReply::Drained { changed, more: true });
            }
            if call.revoke {
                self.lose(id, Ending::Revoked);
            } else if self.executions[&id].running().is_some_and(|r| r.yield_asked) {
                continue;
            } else {
                self.edit(id, |execution| execution.running_mut().expect("it is held").yield_asked = true);
            }
            changed += 1;
        }
        Ok(DrainLeasesReply::Drained { changed, more: false })
    }
}
