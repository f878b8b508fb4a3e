//! What happens to executions because of other executions: members of flows, parents and children.

use ff_core::types::ExecutionId;
use ff_script::generated::*;

use super::flows::{is_kin, outcome_of};
use super::judge::{Judgement, settled};
use super::shadow::End;
use super::{Check, Checker, Shadow, Step, Violation, require};
use crate::request::Request;

impl Checker {
    /// True if the event is not the subject of the call, but a consequence for its flow or a related execution.
    pub(super) fn is_consequence(&self, step: &Step<'_>, event: &Event) -> bool {
        let Some(id) = event.execution_id else {
            return event.flow_id.is_some();
        };
        let related = self.hidden.contains_key(&id) || self.seen(&id).is_none_or(is_kin);
        let timer = matches!(step.request, Request::FireDue(_));
        // Its own timer or that of a related execution; the event does not tell which.
        related && (timer || !step.request.targets().contains(&id))
    }

    /// True if no part of the execution's flow can run again.
    pub(super) fn is_final(&self, seen: &Execution) -> bool {
        let flow = self.book_of(seen).and_then(|book| book.seen.as_ref());
        flow.is_some_and(|flow| {
            let goes_on = flow.state == FlowState::Failed && flow.finished_at.is_some();
            flow.stop.is_some() && !goes_on
        })
    }

    /// True while another record may still need the outcome of an ended execution.
    pub(super) fn is_needed(&self, seen: &Execution) -> bool {
        if let Some(book) = self.book_of(seen) {
            return book.seen.as_ref().is_some_and(|flow| flow.finished_at.is_none());
        }
        let parent = seen.parent_id.and_then(|id| self.seen(&id));
        parent.is_some_and(|parent| parent.phase != LifecyclePhase::Terminal)
    }

    /// Number of children of an execution that have not ended.
    pub(super) fn open_children(&self, id: ExecutionId) -> usize {
        self.live().filter(|(.., seen)| seen.parent_id == Some(id) && seen.phase != LifecyclePhase::Terminal).count()
    }

    /// A parent that goes on gets the outcomes of its children.
    pub(super) fn check_children_told(&self, task: &Task) -> Check {
        let id = task.execution_id;
        let Some(resume) = task.resume.as_ref().filter(|resume| resume.cause == ResumeCause::Children) else {
            return Ok(());
        };
        let none = Vec::new();
        let told = resume.children.as_ref().unwrap_or(&none);
        for child in told {
            let seen = self.seen(&child.execution_id);
            let same = seen.is_some_and(|seen| seen.outcome == child.outcome && seen.result == child.result);
            require!(23, same, "{id} got a wrong outcome of its child {}", child.execution_id);
        }
        let all = self.live().filter(|(.., seen)| seen.parent_id == Some(id)).count();
        require!(23, told.len() == all, "{id} got {} children, but has {all}", told.len());
        Ok(())
    }

    /// The submission and the creation time of a member or child that appears for the first time.
    pub(super) fn submission_of(&mut self, step: &Step<'_>, id: ExecutionId) -> Option<(Submission, i64)> {
        if let Some(hidden) = self.hidden.remove(&id) {
            return Some((hidden.submission, hidden.made_at));
        }
        match step.request {
            Request::SpawnChildren(call) => {
                let child = call.children.iter().find(|child| child.submission.execution_id == id)?;
                Some((child.submission.clone(), step.now))
            }
            _ => None,
        }
    }

    /// Several events of one execution in one call: first its own, then the consequences of their effects.
    pub(super) fn judge_chain(
        &mut self,
        step: &Step<'_>,
        id: ExecutionId,
        events: &[&Event],
        after: Option<Execution>,
    ) -> Check {
        let kinds: Vec<&str> = events.iter().map(|event| event.r#type.as_str()).collect();
        let related = self.hidden.contains_key(&id) || self.seen(&id).is_none_or(is_kin);
        require!(41, related, "one call, several events for {id}: {kinds:?}");
        let Some(after) = after else {
            return Err(Violation::new(8, format!("{kinds:?} left nothing of {id}")));
        };
        let mut ended = self.seen(&id).is_some_and(|seen| seen.phase == LifecyclePhase::Terminal);
        for kind in &kinds {
            let again = matches!(*kind, "execution.replayed" | "execution.reopened");
            require!(9, !ended || again, "{kind} after {id} had ended: {kinds:?}");
            ended = outcome_of(kind).is_some();
        }
        let outcome = outcome_of(kinds[kinds.len() - 1]);
        require!(8, after.outcome == outcome, "{id} is {:?} after {kinds:?}", after.outcome);
        if kinds[0] == "execution.submitted" {
            let Some((submission, _)) = self.submission_of(step, id) else {
                return Err(Violation::new(8, format!("{kinds:?} for {id}, which was never submitted")));
            };
            self.executions.insert(id, Shadow::new(submission, after));
            return Ok(());
        }
        let Some(shadow) = self.executions.get_mut(&id) else {
            return Err(Violation::new(8, format!("{kinds:?} for {id}, which was never submitted")));
        };
        let was_active = shadow.seen.as_ref().is_some_and(|seen| seen.phase == LifecyclePhase::Active);
        if let Some(lease) = shadow.lease.as_mut().filter(|_| was_active) {
            lease.ended = Some(match (kinds[0], step.request) {
                ("execution.reclaimed", Request::FireDue(_)) => End::Expired,
                ("execution.reclaimed", _) => End::Revoked,
                _ => End::Other,
            });
        }
        if kinds.contains(&"execution.replayed") {
            (shadow.failures, shadow.started) = (0, false);
            shadow.next = (shadow.attempts > 0).then_some(AttemptType::Replay);
        }
        shadow.grant = None;
        shadow.cancel_by = None;
        shadow.seen = Some(after);
        Ok(())
    }
}

impl Judgement<'_> {
    /// Whether the flow of the execution had been stopped before.
    pub(super) fn in_stopped_flow(&self, before: &Execution) -> bool {
        before.flow_id.is_some_and(|flow_id| self.checker.stopped_before(flow_id, self.step, self.event))
    }

    /// Nothing starts before its policy is satisfied, and no member of a stopped flow starts.
    pub(super) fn may_start_in_flow(&self, before: &Execution) -> Check {
        let Some(book) = self.checker.book_of(before) else {
            return Ok(());
        };
        let id = self.id;
        require!(17, !self.in_stopped_flow(before), "{id} was taken although its flow was stopped");
        require!(18, book.may_run(id), "{id} was taken before its edges let it");
        Ok(())
    }

    /// Its edges were counted, and it can never run.
    pub(super) fn skipped(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let id = self.id;
        require!(20, before.phase == LifecyclePhase::Runnable, "{id} was skipped while {}", before.phase);
        let Some(book) = self.checker.book_of(before) else {
            return Err(Violation::new(20, format!("{id} is in no flow and was skipped")));
        };
        require!(20, book.disturbed || book.is_impossible(id), "{id} was skipped although it could still run");
        self.over(shadow, before, after, Outcome::Skipped, End::Other, &[])
    }

    /// The member it was skipped for runs again.
    pub(super) fn reopened(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let id = self.id;
        let fits = before.outcome == Some(Outcome::Skipped)
            && after.phase == LifecyclePhase::Runnable
            && after.blocking_reason == Some(BlockingReason::WaitingForDependencies)
            && after.outcome.is_none()
            && after.failure.is_none()
            && after.ended_at.is_none()
            && after.attempts == before.attempts;
        require!(20, fits, "{id} was {:?} and is {} {:?}", before.outcome, after.state, after.blocking_reason);
        shadow.cancel_by = None;
        Ok(())
    }

    /// The attempt waits until the children have ended.
    pub(super) fn waiting(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        self.by_holder(shadow, before)?;
        let (id, now) = (self.id, self.step.now);
        let Request::WaitChildren(call) = self.step.request else {
            return Err(Violation::new(41, format!("{} made {id} wait for its children", self.step.request.name())));
        };
        if let Some(lease) = &mut shadow.lease {
            lease.ended = Some(End::WaitChildren);
        }
        let waits = after.phase == LifecyclePhase::Runnable
            && after.blocking_reason == Some(BlockingReason::WaitingForChildren)
            && after.lease.is_none()
            && after.continues
            && after.attempt_deadline_at.is_none();
        require!(9, waits, "{id} waits for its children and is {} {:?}", after.state, after.blocking_reason);
        require!(21, self.checker.open_children(id) > 0, "{id} waits for children that have ended");
        require!(14, after.reclaim_count == 0, "{id} waits and keeps {} reclaims", after.reclaim_count);
        shadow.waits.sets_aside(call.wait_id, before.attempt_deadline_at.map(|at| (at - now).max(1)));
        self.same_attempt(before, after, AttemptState::Suspended)
    }

    /// The last child has ended.
    pub(super) fn children_ended(&self, before: &Execution, after: &Execution) -> Check {
        let id = self.id;
        require!(
            9,
            before.blocking_reason == Some(BlockingReason::WaitingForChildren) && after.continues,
            "{id} did not wait for children"
        );
        // The ends in this call count too: the known state of the children is older.
        let ends = |child: &ExecutionId| {
            self.step.events.iter().any(|e| e.execution_id == Some(*child) && outcome_of(&e.r#type).is_some())
        };
        let open = self.checker.live().find(|(child, _, seen)| {
            seen.parent_id == Some(id) && seen.phase != LifecyclePhase::Terminal && !ends(child)
        });
        require!(21, open.is_none(), "{id} continues although its child {:?} has not ended", open.map(|(id, ..)| id));
        self.same_attempt(before, after, AttemptState::Suspended)?;
        settled(id, after, self.step.now, before.delay_until)
    }

    /// A member whose edges now let it run.
    pub(super) fn satisfied(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let id = self.id;
        let Some(book) = self.checker.book_of(before) else {
            return Err(Violation::new(18, format!("{id} is in no flow and was satisfied")));
        };
        require!(
            18,
            before.blocking_reason == Some(BlockingReason::WaitingForDependencies) && book.may_run(id),
            "{id} may run, its edges do not say so"
        );
        shadow.grant = None;
        settled(id, after, self.step.now, before.delay_until)
    }

    /// Cancelled because of another execution. Returns whether it was.
    pub(super) fn cancelled_for(&self, before: &Execution) -> Result<bool, Violation> {
        let id = self.id;
        let holds = match self.event.data.get("cause").and_then(EventValue::as_str).unwrap_or("") {
            "flow_cancelled" | "flow_failed" => self.in_stopped_flow(before),
            "cancel_remaining" => self.checker.book_of(before).is_some_and(|book| book.is_spare(id)),
            "parent_ended" => before.parent_id.is_some_and(|parent| {
                let seen = self.checker.seen(&parent);
                seen.is_none_or(|seen| seen.phase == LifecyclePhase::Terminal)
                    || self
                        .step
                        .events
                        .iter()
                        .any(|e| e.execution_id == Some(parent) && outcome_of(&e.r#type).is_some())
            }),
            _ => return Ok(false),
        };
        require!(17, holds, "{id} was cancelled because of {:?}, which is not so", self.event.data.get("cause"));
        Ok(true)
    }
}
