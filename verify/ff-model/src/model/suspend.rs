//! Suspending an attempt, and ending the wait: by signals, by an operator, by time.

use std::collections::BTreeSet;

use ff_core::types::{ExecutionId, SuspensionId, WaitpointId};
use ff_script::generated::{
    AttemptState, AttemptType, ConditionNode, ConditionOp, FailSuspension, FailSuspensionReply, Failure, NewWaitpoint,
    OpenWaitpoint, Outcome, ResumeCause, ResumeExecution, ResumeExecutionReply, Signal, SuspendExecution,
    SuspendExecutionReply, TimeoutBehavior, WaitpointState,
};

use super::end::Standing;
use super::execution::{Ending, Execution, Paused, Stage, Suspended, Waiting};
use super::grant::counted;
use super::waits::{Suspension, condition_of};
use super::{Answer, Model, invalid, refused};

/// The maximum number of open waitpoints of one execution.
const OPEN_MAX: usize = 64;

impl Model {
    pub fn suspend(&mut self, call: &SuspendExecution) -> Answer<SuspendExecutionReply> {
        let (id, now) = (call.execution_id, self.now);
        match self.standing(id, &call.fence)? {
            Standing::Past(Ending::Suspended) => return Ok(self.suspended_before(id)),
            Standing::Past(ending) => return Err(self.ended(id, &ending)),
            Standing::Live => {}
        }
        let waits = &self.executions[&id].waits;
        if let Some((known, numbers)) = &waits.satisfied
            && *known == call.suspension_id
        {
            return Ok(already_satisfied(waits.picked(numbers)));
        }
        if call.timeout_behavior == TimeoutBehavior::Escalate && call.review_waitpoint_id.is_none() {
            return Err(invalid("review_waitpoint_id", "is missing: escalation opens a waitpoint"));
        }
        let wanted = |waitpoint: &WaitpointId| call.adopt.as_ref().is_none_or(|ids| ids.contains(waitpoint));
        let pending: Vec<WaitpointId> = waits.open.iter().copied().filter(|w| wanted(w)).collect();
        let answered: Vec<WaitpointId> = waits.answered.iter().copied().filter(|w| wanted(w)).collect();
        let unknown = call.adopt.iter().flatten().find(|w| !pending.contains(w) && !answered.contains(w));
        if let Some(unknown) = unknown {
            return Err(refused("waitpoint_not_found", &[("waitpoint_id", Some(unknown.to_string()))]));
        }
        let other = call.waitpoints.is_empty() && pending.is_empty();
        let new: Vec<(String, &NewWaitpoint)> = if other {
            call.otherwise.iter().map(|w| ("otherwise".to_owned(), w)).collect()
        } else {
            call.waitpoints.iter().enumerate().map(|(at, w)| (format!("waitpoints[{at}]"), w)).collect()
        };
        if new.is_empty() && pending.is_empty() {
            return Err(invalid("waitpoints", "must hold a waitpoint: the attempt has none pending"));
        }
        self.ids_are_new(&new, call.review_waitpoint_id)?;
        let waits = &self.executions[&id].waits;
        let taken = pending.iter().chain(&answered);
        let keys: BTreeSet<&str> = taken
            .clone()
            .map(|w| waits.known[w].key.as_str())
            .chain(new.iter().map(|(_, new)| new.key.as_str()))
            .collect();
        if let Some((field, problem)) = condition_problem(&call.condition, &keys) {
            return Err(invalid(&field, &problem));
        }
        let mut offered: Vec<usize> = taken.flat_map(|w| waits.known[w].early.iter().copied()).collect();
        offered.sort_unstable();
        let staying: BTreeSet<&str> = pending.iter().map(|w| waits.known[w].key.as_str()).collect();
        openable(&new, &staying, pending.len())?;

        let wait = Suspension {
            id: call.suspension_id,
            reason: call.reason,
            since: now,
            until: call.timeout_ms.map(|ms| now + ms),
            behavior: call.timeout_behavior,
            condition: condition_of(&call.condition),
            review: call.review_waitpoint_id,
            offered,
        };
        Ok(self.edit(id, |execution| {
            let attempt = execution.running().expect("its lease lives").index;
            let waits = &mut execution.waits;
            waits.close("not_adopted", now, |w, _| !pending.contains(&w));
            waits.forget_answered(None);
            for (_, new) in &new {
                waits.open(new, false, Some(call.suspension_id), attempt, now);
            }
            let evaluation = waits.evaluate(&wait);
            if evaluation.satisfied {
                let numbers: Vec<usize> = evaluation.satisfying().iter().map(|at| wait.offered[*at]).collect();
                waits.close("already_satisfied", now, |_, _| true);
                waits.satisfied = Some((call.suspension_id, numbers.clone()));
                return already_satisfied(waits.picked(&numbers));
            }
            for waitpoint in &pending {
                let waitpoint = waits.known.get_mut(waitpoint).expect("it is open");
                (waitpoint.state, waitpoint.suspension) = (WaitpointState::Active, Some(call.suspension_id));
                waitpoint.early.clear();
            }
            (waits.woken, waits.satisfied) = (None, None);
            waits.continuation = call.continuation.clone();
            let waitpoints = waits.typed_open();
            execution.set_aside(wait, now);
            SuspendExecutionReply::Suspended {
                replayed: false,
                suspension_id: call.suspension_id,
                timeout_at: call.timeout_ms.map(|ms| now + ms),
                waitpoints,
            }
        }))
    }

    /// The reply to a repeated suspend, whatever happened since.
    fn suspended_before(&self, id: ExecutionId) -> SuspendExecutionReply {
        let execution = &self.executions[&id];
        let current = execution.suspended().map(|suspended| &suspended.wait);
        let suspension_id = current.map_or_else(
            || execution.waits.past.last().expect("it was suspended").suspension_id,
            |current: &Suspension| current.id,
        );
        let waits = &execution.waits;
        let of_it = waits.closed.iter().chain(&waits.open).filter(|w| waits.known[w].suspension == Some(suspension_id));
        let typed = |w: &WaitpointId| {
            let known = &waits.known[w];
            OpenWaitpoint { expires_at: known.expires_at, ..OpenWaitpoint::new(*w, known.key.clone(), known.state) }
        };
        SuspendExecutionReply::Suspended {
            replayed: true,
            suspension_id,
            timeout_at: current.and_then(|current| current.until),
            waitpoints: of_it.map(typed).collect(),
        }
    }

    fn ids_are_new(&self, new: &[(String, &NewWaitpoint)], review: Option<WaitpointId>) -> Answer<()> {
        let ids: Vec<(String, WaitpointId)> = new
            .iter()
            .map(|(field, new)| (format!("{field}.waitpoint_id"), new.waitpoint_id))
            .chain(review.map(|id| ("review_waitpoint_id".to_owned(), id)))
            .collect();
        for (at, (field, id)) in ids.iter().enumerate() {
            if ids[..at].iter().any(|(_, other)| other == id) {
                return Err(invalid(field, "is given twice"));
            }
        }
        match ids.iter().find(|(_, id)| self.waitpoint(*id).is_some()) {
            Some((field, _)) => Err(invalid(field, "is taken")),
            None => Ok(()),
        }
    }

    /// Resumes the attempt: the next claim continues it.
    pub(super) fn wake(&mut self, id: ExecutionId, cause: ResumeCause, numbers: Vec<usize>, actor: Option<&str>) {
        let now = self.now;
        self.edit(id, |execution| {
            let Suspended { paused, wait } = execution.suspended().expect("only a suspended one wakes").clone();
            let waits = &mut execution.waits;
            waits.close("resumed", now, |_, _| true);
            waits.file(&wait, paused.index, now, cause.as_str(), actor);
            waits.woken = Some((wait.id, cause, numbers));
            let continues = Some(Box::new(paused));
            execution.stage = Stage::Waiting(Waiting { continues, ..Waiting::next(AttemptType::Initial) });
        });
        self.settle(id);
    }

    pub fn resume(&mut self, call: &ResumeExecution) -> Answer<ResumeExecutionReply> {
        let (id, now) = (call.execution_id, self.now);
        self.is_suspended(id)?;
        self.edit(id, |execution| execution.note("resume", &call.actor, call.reason.as_deref(), now));
        self.wake(id, ResumeCause::Operator, Vec::new(), Some(&call.actor));
        Ok(ResumeExecutionReply::Resumed { state: self.executions[&id].state() })
    }

    pub fn fail_suspension(&mut self, call: &FailSuspension) -> Answer<FailSuspensionReply> {
        let (id, now) = (call.execution_id, self.now);
        self.is_suspended(id)?;
        self.edit(id, |execution| {
            execution.note("fail", &call.actor, Some(&call.reason), now);
            let failure = Failure { reason: call.reason.clone(), category: call.category.clone() };
            let how = Some((Ending::Other, AttemptState::Failed));
            execution.end_by(Some(&call.actor), Outcome::Failed, how, Some(failure), None, now);
        });
        Ok(FailSuspensionReply::Failed)
    }

    fn is_suspended(&self, id: ExecutionId) -> Answer<()> {
        let execution = self.get(id)?;
        if execution.suspended().is_some() {
            return Ok(());
        }
        Err(refused(
            "execution_not_suspended",
            &[
                ("lifecycle_phase", Some(execution.phase().to_string())),
                ("terminal_outcome", execution.ended().map(|ended| ended.outcome.to_string())),
            ],
        ))
    }

    /// A suspension, or some waitpoints, have timed out.
    pub(super) fn wait_is_due(&mut self, id: ExecutionId) {
        let now = self.now;
        let suspension_over =
            self.executions[&id].suspended().is_some_and(|s| s.wait.until.is_some_and(|until| until <= now));
        if suspension_over {
            return self.timed_out(id, "suspension timed out");
        }
        self.edit(id, |execution| {
            execution.waits.close("expired", now, |_, w| w.expires_at.is_some_and(|at| at <= now));
        });
        let execution = &self.executions[&id];
        if execution.waits.open.is_empty() && execution.suspended().is_some_and(|s| s.wait.until.is_none()) {
            self.timed_out(id, "every waitpoint expired");
        }
    }

    fn timed_out(&mut self, id: ExecutionId, reason: &str) {
        let now = self.now;
        let wait = self.executions[&id].suspended().expect("it is suspended").wait.clone();
        let (outcome, state) = match wait.behavior {
            TimeoutBehavior::Escalate => return self.escalate(id, &wait),
            TimeoutBehavior::AutoResumeWithTimeoutSignal => {
                let number = self.edit(id, |execution| execution.waits.arrive(timeout_signal(wait.id), now));
                return self.wake(id, ResumeCause::Timeout, vec![number], None);
            }
            TimeoutBehavior::Fail => (Outcome::Failed, AttemptState::Failed),
            TimeoutBehavior::Cancel => (Outcome::Cancelled, AttemptState::Cancelled),
            TimeoutBehavior::Expire => (Outcome::Expired, AttemptState::Interrupted),
        };
        let failure = Failure { reason: reason.to_owned(), category: "suspension_timeout".to_owned() };
        self.edit(id, |execution| execution.end(outcome, Some((Ending::Other, state)), Some(failure), None, now));
    }

    fn escalate(&mut self, id: ExecutionId, wait: &Suspension) {
        let now = self.now;
        let mut review = wait.review.expect("an escalation names its waitpoint");
        while self.waitpoint(review).is_some() {
            review = WaitpointId::from_uuid(counted(*review.as_uuid(), 1));
        }
        self.edit(id, |execution| {
            let Stage::Suspended(suspended) = &mut execution.stage else { panic!("it is suspended") };
            suspended.wait.until = None;
            let attempt = suspended.paused.index;
            let new = NewWaitpoint::new(review, "operator_review".to_owned(), Vec::new());
            execution.waits.open(&new, true, Some(wait.id), attempt, now);
        });
    }
}

impl Execution {
    fn set_aside(&mut self, wait: Suspension, now: i64) {
        let running = self.running().expect("only a running attempt is set aside");
        let paused = Paused {
            fence: running.fence,
            instance: running.instance.clone(),
            index: running.index,
            kind: running.kind,
            started_at: running.started_at,
            time_left: running.timeout_at.map(|at| (at - now).max(1)),
            cancel: running.cancel.clone(),
        };
        self.past = Some((paused.fence, Ending::Suspended));
        self.lost_in_a_row = 0;
        self.stage = Stage::Suspended(Box::new(Suspended { paused, wait }));
    }
}

fn already_satisfied(signals: Vec<Signal>) -> SuspendExecutionReply {
    SuspendExecutionReply::AlreadySatisfied { more: false, signals }
}

/// It has the id of the suspension, which ends by at most one timeout.
fn timeout_signal(id: SuspensionId) -> Signal {
    Signal {
        category: Some("timeout".to_owned()),
        source: Some("engine".to_owned()),
        ..Signal::new(String::new(), ff_core::types::SignalId::from_uuid(*id.as_uuid()), "timeout".to_owned(), 0)
    }
}

/// Whether these may be opened beside the ones that stay.
fn openable(new: &[(String, &NewWaitpoint)], staying: &BTreeSet<&str>, open: usize) -> Answer<()> {
    let mut keys = staying.clone();
    for (at, (field, new)) in new.iter().enumerate() {
        if new.tokens.is_empty() {
            return Err(invalid(&format!("{field}.tokens"), "must hold a token"));
        }
        if let Some((part, problem)) = new_waitpoint_problem(new, &keys, open + at) {
            return Err(invalid(&format!("{field}.{part}"), &problem));
        }
        keys.insert(&new.key);
    }
    Ok(())
}

pub(super) fn new_waitpoint_problem(
    new: &NewWaitpoint,
    open_keys: &BTreeSet<&str>,
    open: usize,
) -> Option<(&'static str, String)> {
    if open >= OPEN_MAX {
        return Some(("key", format!("an execution has at most {OPEN_MAX} open waitpoints")));
    }
    if open_keys.contains(new.key.as_str()) {
        return Some(("key", "is the key of an open waitpoint".to_owned()));
    }
    for (at, token) in new.tokens.iter().enumerate() {
        let before = &new.tokens[..at];
        if before.iter().any(|other| other.approver == token.approver) {
            return Some(("tokens", "hold one approver twice".to_owned()));
        }
        if before.iter().any(|other| other.digest == token.digest) {
            return Some(("tokens", "hold one digest twice".to_owned()));
        }
    }
    None
}

/// The field at fault and the problem.
fn condition_problem(nodes: &[ConditionNode], keys: &BTreeSet<&str>) -> Option<(String, String)> {
    let is_leaf = |node: &ConditionNode| matches!(node.op, ConditionOp::Signal | ConditionOp::Count);
    let mut depths: Vec<usize> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let field = format!("condition[{at}]");
        let parent = node.parent.and_then(|parent| usize::try_from(parent).ok()).filter(|parent| *parent < at);
        let problem = match (at, node.parent, parent) {
            (0, Some(_), _) => Some("must not have a parent: it is the first"),
            (0, None, _) => None,
            (_, _, None) => Some("must name a parent listed before it"),
            (_, _, Some(parent)) if is_leaf(&nodes[parent]) => Some("has a parent that holds no conditions"),
            _ => None,
        };
        if let Some(problem) = problem {
            return Some((field, problem.to_owned()));
        }
        depths.push(parent.map_or(1, |parent| depths[parent] + 1));
        if depths[at] > 4 {
            return Some((field, "is deeper than 4".to_owned()));
        }
        let counts = node.op == ConditionOp::Count;
        if counts && (node.n.is_none() || node.over.is_none()) {
            return Some((field, "must say n and over".to_owned()));
        }
        if !counts && (node.n.is_some() || node.over.is_some()) {
            return Some((field, "has n or over, which belong to a count".to_owned()));
        }
        if !is_leaf(node) && (node.name.is_some() || node.waitpoint.is_some()) {
            return Some((field, "has a name or a waitpoint, which belong to a signal or a count".to_owned()));
        }
        if node.waitpoint.as_ref().is_some_and(|key| !keys.contains(key.as_str())) {
            let problem = "is not the key of a waitpoint of this suspension".to_owned();
            return Some((format!("{field}.waitpoint"), problem));
        }
    }
    for (at, node) in nodes.iter().enumerate() {
        if !is_leaf(node) && !nodes.iter().any(|child| child.parent == Some(at as i64)) {
            return Some((format!("condition[{at}]"), "holds no conditions".to_owned()));
        }
    }
    let leaves = nodes.iter().filter(|node| is_leaf(node)).count();
    (leaves > 64).then(|| ("condition".to_owned(), format!("must hold at most 64 leaves, got {leaves}")))
}
