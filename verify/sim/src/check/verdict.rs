//! The expected reply of a call, derived from the history before it.

use std::collections::BTreeSet;

use ff_core::types::ExecutionId;
use ff_script::generated::*;

use super::shadow::{End, covered, eligible};
use super::{Check, Checker, Shadow, Step, Violation, require};
use crate::request::{Outcome, Reply, Request};

/// The expected reply for one item of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It fails with this code.
    Refuse(&'static str),
    /// It returns this variant and emits nothing.
    Quiet(&'static str),
    /// It returns this variant and emits one event of one of these types.
    Event(&'static str, &'static [&'static str]),
    /// Any number of effects, which are checked event by event.
    Many,
}
use Verdict::{Event as Emit, Many, Quiet, Refuse};

/// The state of a fence.
pub(super) enum Standing<'a> {
    Current,
    Ended(&'a End),
    Refused(&'static str),
}

impl Checker {
    /// Compares the reply and the number of events with the history before it.
    pub(super) fn check_answer(&self, step: &Step<'_>, verdicts: &[(Option<ExecutionId>, Verdict)]) -> Check {
        self.check_variant(step, verdicts)?;
        // Consequences of the call for other executions are checked event by event.
        let emitted: Vec<(Option<ExecutionId>, &str)> = step
            .events
            .iter()
            .filter(|event| !self.is_consequence(step, event))
            .map(|event| (event.execution_id, event.r#type.as_str()))
            .collect();
        let name = step.request.name();
        let mut many = false;
        let mut expected = BTreeSet::new();
        for (id, verdict) in verdicts {
            match verdict {
                Many => many = true,
                Emit(_, types) if step.outcome.committed() => {
                    let found = emitted.iter().find(|(emitter, _)| emitter == id);
                    require!(
                        41,
                        found.is_some_and(|(_, kind)| types.contains(kind)),
                        "{name} must emit one of {types:?} for {id:?}, emitted {emitted:?}"
                    );
                    expected.insert(*id);
                }
                _ => {}
            }
        }
        if !many {
            let emitters: BTreeSet<Option<ExecutionId>> = emitted.iter().map(|(id, _)| *id).collect();
            require!(41, emitters == expected, "{name} emitted {emitted:?}, expected events of {expected:?}");
        }
        Ok(())
    }

    /// Compares the reply, item by item if there are several.
    fn check_variant(&self, step: &Step<'_>, verdicts: &[(Option<ExecutionId>, Verdict)]) -> Check {
        match step.outcome {
            Outcome::Reply(reply) => {
                let (id, verdict) = &verdicts[0];
                agree(step, *id, verdict, &reply.variant())?;
                self.check_wait_reply(step, reply)?;
                self.check_limits_reply(step, reply)?;
                self.check_reply(step, reply)
            }
            Outcome::Refused(error) => {
                let (id, verdict) = &verdicts[0];
                agree(step, *id, verdict, error.code())
            }
            Outcome::Failed(_) => Ok(()),
        }
    }

    pub(super) fn verdicts(&self, step: &Step<'_>) -> Vec<(Option<ExecutionId>, Verdict)> {
        vec![(step.request.targets().first().copied(), self.verdict(step))]
    }

    fn verdict(&self, step: &Step<'_>) -> Verdict {
        let now = step.now;
        if let Some(verdict) = self.wait_verdict(step).or_else(|| self.usage_verdict(step)) {
            return verdict;
        }
        match step.request {
            Request::SubmitExecution(call) => self.submit(step, &call.submission),
            Request::CompleteExecution(call) => self.complete(step, call.execution_id, &call.fence),
            Request::RenewLease(call) => self.renew(step, call.execution_id, &call.fence),
            Request::UpdateProgress(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => Quiet("Noted"),
                other => refused(other),
            },
            Request::FailExecution(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => {
                    let shadow = &self.executions[&call.execution_id];
                    let seen = shadow.seen.as_ref().expect("its lease lives");
                    let again =
                        call.retryable != Some(false) && shadow.may_retry(seen, shadow.failures + 1, &call.category);
                    if again {
                        Emit("RetryScheduled", &["execution.retried"])
                    } else {
                        Emit("Failed", &["execution.failed"])
                    }
                }
                Standing::Ended(End::Fail) => Quiet("Failed"),
                Standing::Ended(End::Retry(_)) => Quiet("RetryScheduled"),
                other => refused(other),
            },
            Request::DelayExecution(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => Emit("Delayed", &["execution.delayed"]),
                Standing::Ended(End::Delay(_)) => Quiet("Delayed"),
                other => refused(other),
            },
            Request::YieldExecution(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => Emit("Yielded", &["execution.yielded"]),
                Standing::Ended(End::Yield) => Quiet("Replayed"),
                other => refused(other),
            },
            Request::CancelAttempt(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => Emit("Cancelled", &["execution.cancelled"]),
                Standing::Ended(End::Cancel) => Quiet("Replayed"),
                other => refused(other),
            },
            Request::WaitChildren(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current if self.open_children(call.execution_id) > 0 => {
                    Emit("Waiting", &["execution.waiting"])
                }
                Standing::Current => Quiet("Ended"),
                Standing::Ended(End::WaitChildren) => Quiet("Waiting"),
                other => refused(other),
            },
            Request::SpawnChildren(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => Many,
                other => refused(other),
            },
            Request::ReadChildren(call) if self.seen(&call.execution_id).is_some() => Quiet("Page"),
            Request::ReadChildren(_) => Refuse("execution_not_found"),
            Request::ClaimExecutions(_)
            | Request::IssueGrants(_)
            | Request::DrainLeases(_)
            | Request::FireDue(_)
            | Request::ReviewRoutes(_) => Many,
            Request::InstallLane(call) => {
                let known = self.lanes.get(&(step.partition(), call.entry.lane.clone()));
                if known.is_some_and(|known| known.version >= call.entry.version) {
                    Quiet("Newer")
                } else {
                    Quiet("Installed")
                }
            }
            other => match other.targets().first() {
                Some(id) => match self.executions.get(id).and_then(|shadow| Some((shadow, shadow.seen.as_ref()?))) {
                    Some((shadow, seen)) => self.verdict_on(step, shadow, seen),
                    None => Refuse("execution_not_found"),
                },
                None => Many,
            },
        }
    }

    /// Calls that name an execution and have no fence.
    fn verdict_on(&self, step: &Step<'_>, shadow: &Shadow, seen: &Execution) -> Verdict {
        use LifecyclePhase::{Active, Runnable, Terminal};
        let now = step.now;
        let open = |grant_id| {
            seen.phase == Runnable
                && shadow.grant.as_ref().is_some_and(|(id, _)| *id == grant_id)
                && seen.granted_until.is_some_and(|until| now < until)
        };
        let waits_for = |reason: AdmissionReason| {
            let reason = match reason {
                AdmissionReason::WaitingForQuota => BlockingReason::WaitingForQuota,
                AdmissionReason::WaitingForBudget => BlockingReason::WaitingForBudget,
            };
            seen.phase == Runnable && seen.blocking_reason == Some(reason)
        };
        match step.request {
            Request::CancelExecution(call) => match seen.phase {
                Terminal => Quiet("Already"),
                Active if call.grace_ms.is_some_and(|grace| grace > 0) => {
                    Emit("Requested", &["execution.cancel_requested"])
                }
                _ => Emit("Cancelled", &["execution.cancelled"]),
            },
            Request::HoldExecution(_) => match (seen.phase, seen.blocking_reason) {
                (Runnable, Some(BlockingReason::HeldByOperator)) => Quiet("Already"),
                (Runnable, _) => Emit("Held", &["execution.held"]),
                _ => Refuse("execution_not_runnable"),
            },
            Request::ReleaseExecution(_) => match (seen.phase, seen.blocking_reason) {
                (Runnable, Some(BlockingReason::HeldByOperator)) => Emit("Released", &["execution.released"]),
                (Runnable, _) => Quiet("Already"),
                _ => Refuse("execution_not_runnable"),
            },
            Request::ChangeExecution(call) => self.change(step, seen, call),
            Request::ReplayExecution(_) => match seen.phase {
                Terminal if seen.replay_count < seen.max_replays && self.is_final(seen) => Refuse("flow_terminal"),
                Terminal if seen.replay_count < seen.max_replays => Emit("Replayed", &["execution.replayed"]),
                Terminal => Refuse("max_replays"),
                _ => Refuse("execution_not_terminal"),
            },
            Request::DeleteExecution(_) => match seen.phase {
                Terminal if self.is_needed(seen) => Refuse("flow_not_terminal"),
                Terminal => Emit("Deleted", &["execution.retired"]),
                _ => Refuse("execution_not_terminal"),
            },
            Request::AwaitResult(_) => Quiet(if seen.phase == Terminal { "Ended" } else { "Waiting" }),
            Request::RevokeLease(call) => match seen.phase {
                Active if call.grace == Some(true) => Emit("Requested", &["execution.yield_requested"]),
                Active => Emit("Revoked", &["execution.reclaimed", "execution.failed"]),
                _ => Refuse("execution_not_active"),
            },
            Request::ConsumeGrant(call) => {
                let again = shadow.lease.as_ref().is_some_and(|lease| {
                    lease.ended.is_none() && lease.fence.lease_id == call.lease_id && lease.instance == call.instance
                });
                let alive = seen.lease.as_ref().is_some_and(|lease| now < lease.expires_at);
                if again && alive {
                    Quiet("Replayed")
                } else if !open(call.grant_id)
                    || shadow.grant.as_ref().is_none_or(|(_, worker)| *worker != call.instance)
                    || !shadow.may_start(seen, now)
                {
                    Refuse("grant_not_found")
                } else if !covered(&seen.requires, &call.capabilities) {
                    Refuse("not_capable")
                } else {
                    Emit("Claimed", &["execution.started"])
                }
            }
            Request::ReleaseGrant(call) if open(call.grant_id) => Emit("Released", &["execution.ready"]),
            Request::ReleaseGrant(_) => Refuse("grant_not_found"),
            Request::BlockExecution(call) if waits_for(call.reason) => Quiet("Already"),
            Request::BlockExecution(call) if open(call.grant_id) => Emit("Blocked", &["execution.blocked"]),
            Request::BlockExecution(_) => Refuse("grant_not_found"),
            Request::UnblockExecution(call) if waits_for(call.reason) || call.holder_id.is_some_and(open) => {
                Emit("Unblocked", &["execution.ready"])
            }
            Request::UnblockExecution(_) => Quiet("Already"),
            Request::GrantReclaim(call) if open(call.grant_id) => Quiet("Granted"),
            Request::GrantReclaim(_) => {
                if eligible(seen) && shadow.next == Some(AttemptType::Reclaim) && shadow.may_start(seen, now) {
                    Emit("Granted", &["execution.granted"])
                } else {
                    Refuse("execution_not_runnable")
                }
            }
            other => unreachable!("{} has its own verdict", other.name()),
        }
    }

    fn submit(&self, step: &Step<'_>, s: &Submission) -> Verdict {
        let same = |digest: &str| {
            if digest == s.body_digest { Quiet("Duplicate") } else { Refuse("idempotency_conflict") }
        };
        let known = self.seen(&s.execution_id).map(|_| &self.executions[&s.execution_id]);
        if let Some(name) = &s.idempotency_key {
            if let Some(key) = self.keys.get(&format!("{}/{name}", s.namespace))
                && step.now < key.until_ms
            {
                return same(&key.body_digest);
            }
        } else if let Some(known) = known {
            return same(&known.submission.body_digest);
        }
        match self.lanes.get(&(step.partition(), s.lane.clone())) {
            None => Refuse("lane_unseen"),
            Some(lane) if matches!(lane.definition.state, LaneState::Draining | LaneState::Disabled) => {
                Refuse("lane_disabled")
            }
            Some(_) if known.is_some() => Refuse("idempotency_conflict"),
            Some(_) => Emit("Created", &["execution.submitted"]),
        }
    }

    fn complete(&self, step: &Step<'_>, id: ExecutionId, fence: &Fence) -> Verdict {
        match self.standing(id, fence, step.now) {
            Standing::Current => Emit("Completed", &["execution.completed"]),
            Standing::Ended(End::Complete) => Quiet("Replayed"),
            other => refused(other),
        }
    }

    fn renew(&self, step: &Step<'_>, id: ExecutionId, fence: &Fence) -> Verdict {
        match self.standing(id, fence, step.now) {
            Standing::Current => Quiet("Renewed"),
            other => refused(other),
        }
    }

    fn change(&self, step: &Step<'_>, seen: &Execution, call: &ChangeExecution) -> Verdict {
        let moves = call.priority.is_some() || call.lane.is_some();
        if seen.phase == LifecyclePhase::Terminal {
            return Refuse("execution_terminal");
        }
        if (moves || call.delay_until.is_some()) && seen.phase != LifecyclePhase::Runnable {
            return Refuse("execution_not_runnable");
        }
        if moves {
            let target = call.lane.as_ref().unwrap_or(&seen.lane);
            match self.lanes.get(&(step.partition(), target.clone())) {
                None => return Refuse("lane_unseen"),
                Some(lane)
                    if *target != seen.lane
                        && matches!(lane.definition.state, LaneState::Draining | LaneState::Disabled) =>
                {
                    return Refuse("lane_disabled");
                }
                Some(_) => {}
            }
        }
        Emit("Changed", &["execution.changed"])
    }

    pub(super) fn standing(&self, id: ExecutionId, fence: &Fence, now: i64) -> Standing<'_> {
        let Some((shadow, seen)) = self.executions.get(&id).and_then(|shadow| Some((shadow, shadow.seen.as_ref()?)))
        else {
            return Standing::Refused("execution_not_found");
        };
        match &shadow.lease {
            Some(lease) if lease.fence == *fence => match &lease.ended {
                Some(end) => Standing::Ended(end),
                None if seen.lease.as_ref().is_some_and(|lease| now < lease.expires_at) => Standing::Current,
                None => Standing::Refused("lease_expired"),
            },
            _ => Standing::Refused("stale_lease"),
        }
    }

    /// True if the fence is the current one and its lease has time left.
    pub(super) fn is_current(&self, id: ExecutionId, fence: &Fence, now: i64) -> bool {
        matches!(self.standing(id, fence, now), Standing::Current)
    }

    /// Checks the content of repeated replies.
    fn check_reply(&self, step: &Step<'_>, reply: &Reply) -> Check {
        let ended = |request: &Request| {
            let id = request.targets()[0];
            self.executions[&id].lease.as_ref().and_then(|lease| lease.ended.clone())
        };
        match reply {
            Reply::SubmitExecution(SubmitExecutionReply::Duplicate { execution_id, .. }) => {
                let Request::SubmitExecution(call) = step.request else { unreachable!("replies fit their requests") };
                let first = match &call.submission.idempotency_key {
                    Some(key) => self.keys[&format!("{}/{key}", call.submission.namespace)].execution_id,
                    None => call.submission.execution_id,
                };
                require!(12, *execution_id == first, "the key names {execution_id}, it was {first}");
            }
            Reply::FailExecution(FailExecutionReply::RetryScheduled { delay_until, replayed: true }) => {
                require!(
                    3,
                    ended(step.request) == Some(End::Retry(*delay_until)),
                    "a replayed retry changed to {delay_until}"
                );
            }
            Reply::DelayExecution(DelayExecutionReply::Delayed { delay_until, replayed: true }) => {
                require!(
                    3,
                    ended(step.request) == Some(End::Delay(*delay_until)),
                    "a replayed delay changed to {delay_until}"
                );
            }
            Reply::AwaitResult(AwaitResultReply::Ended { outcome, result, .. }) => {
                let seen = self.seen(&step.request.targets()[0]).expect("it has ended");
                require!(8, seen.outcome == Some(*outcome), "waited for {outcome}, ended with {:?}", seen.outcome);
                require!(13, seen.result == *result, "the result that was waited for differs");
            }
            _ => {}
        }
        Ok(())
    }
}

pub(super) fn refused(standing: Standing<'_>) -> Verdict {
    match standing {
        Standing::Refused(code) => Refuse(code),
        Standing::Ended(End::Expired) => Refuse("lease_expired"),
        Standing::Ended(End::Revoked) => Refuse("lease_revoked"),
        Standing::Ended(_) => Refuse("execution_not_active"),
        Standing::Current => unreachable!("a current fence is not refused"),
    }
}

fn agree(step: &Step<'_>, id: Option<ExecutionId>, verdict: &Verdict, answer: &str) -> Check {
    let expected = match verdict {
        Many => return Ok(()),
        Refuse(code) => *code,
        Quiet(variant) | Emit(variant, _) => *variant,
    };
    // An accepted fence that should fail breaks invariant 3. Anything else is an unexpected reply.
    let fenced = !step.request.fences().is_empty();
    let number = match expected {
        "lease_expired" => 5,
        _ if fenced => 3,
        "waitpoint_not_open" if answer == "TriggeredResume" || answer == "Accepted" => 24,
        _ if matches!(step.request, Request::DeliverSignal(_)) => 25,
        "Duplicate" | "idempotency_conflict" => 12,
        _ => 9,
    };
    if expected == answer {
        return Ok(());
    }
    Err(Violation::new(number, format!("{} of {id:?} must answer {expected}, answered {answer}", step.request.name())))
}
