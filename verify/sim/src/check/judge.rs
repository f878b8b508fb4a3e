//! Checks every event against the record before and after it: was it allowed, was it due, and is its effect right.

use ff_core::types::ExecutionId;
use ff_script::generated::*;
use uuid::Uuid;

use super::flows::is_kin;
use super::shadow::{End, Key, LastLease, covered, eligible, taken_by};
use super::{Check, Checker, Shadow, Step, Violation, require};
use crate::request::Request;

const DAY_MS: i64 = 86_400_000;

impl Checker {
    pub(super) fn judge(&mut self, step: &Step<'_>, id: ExecutionId, event: &Event, after: Option<Execution>) -> Check {
        if event.r#type == "execution.submitted" {
            return self.submitted(step, id, after);
        }
        let Some(mut shadow) = self.executions.remove(&id) else {
            return Err(Violation::new(8, format!("{} for {id}, which was never submitted", event.r#type)));
        };
        let verdict = Judgement { step, id, event, checker: self }.pass(&mut shadow, after.as_ref());
        shadow.seen = after;
        self.executions.insert(id, shadow);
        verdict
    }

    fn submitted(&mut self, step: &Step<'_>, id: ExecutionId, after: Option<Execution>) -> Check {
        require!(12, self.seen(&id).is_none(), "{id} was submitted although it exists");
        let Some(after) = after else {
            return Err(Violation::new(8, format!("{id} was accepted and is not there")));
        };
        let kin = is_kin(&after);
        let (submission, made_at) = match step.request {
            _ if kin => match self.submission_of(step, id) {
                Some(found) => found,
                None => return Err(Violation::new(8, format!("{id} is a member or child that was never created"))),
            },
            Request::SubmitExecution(call) => (call.submission.clone(), step.now),
            other => {
                return Err(Violation::new(41, format!("{} submitted {id}", other.name())));
            }
        };
        let (s, now) = (&submission, made_at);
        let blocked = after.blocking_reason == Some(BlockingReason::WaitingForDependencies);
        if let Some(book) = self.book_of(&after) {
            require!(18, blocked || book.may_run(id), "{id} shows itself ready before its edges let it");
        }
        let above = match (self.book_of(&after), after.parent_id.and_then(|parent| self.seen(&parent))) {
            (Some(book), _) => book.deadline_at,
            (None, parent) => parent.and_then(|parent| parent.deadline_at),
        };
        let input = s.input.as_ref().map_or(&[][..], |input| &input[..]);
        require!(13, after.input[..] == *input, "{id}: {} bytes submitted, {} stored", input.len(), after.input.len());
        let mut requires = s.requires.clone().unwrap_or_default();
        requires.sort();
        requires.dedup();
        let deadlines = [s.deadline_at, s.deadline_ms.map(|ms| now + ms), above];
        // The time limit to start begins when a worker could first have claimed the member.
        let start_by = s.start_within_ms.filter(|_| !blocked).map(|ms| step.now + ms);
        let budgets = self.attached(s, &after);
        require!(34, after.budgets == budgets, "{id} is to ask {:?}, attached were {budgets:?}", after.budgets);
        let weighed = |quota: &QuotaRef| QuotaRef { weight: Some(quota.weight.unwrap_or(1)), ..quota.clone() };
        let quotas: Vec<QuotaRef> = s.quotas.iter().flatten().map(weighed).collect();
        require!(34, after.quotas == quotas, "{id} is to ask {:?}, attached were {quotas:?}", after.quotas);
        let facts = [
            ("created_at", after.created_at == now),
            ("lane", after.lane == s.lane),
            ("kind", after.kind == s.kind),
            ("priority", after.priority == s.priority.unwrap_or(0)),
            ("tags", after.tags == s.tags.clone().unwrap_or_default()),
            ("requires", after.requires == requires),
            ("deadline_at", after.deadline_at == deadlines.into_iter().flatten().min()),
            ("start_by", after.start_by == start_by),
            ("attempts", after.attempts.is_empty() && after.lease.is_none()),
            ("max_reclaims", after.max_reclaims == s.max_reclaims.unwrap_or(5)),
            ("max_replays", after.max_replays == s.max_replays.unwrap_or(10)),
            ("retention_ms", after.retention_ms == s.retention_ms.unwrap_or(7 * DAY_MS)),
            ("attempt_timeout_ms", after.attempt_timeout_ms == s.attempt_timeout_ms),
            ("fallbacks", after.fallbacks == s.fallbacks.clone().unwrap_or_default()),
            (
                "max_attempts",
                after.retry.max_attempts == Some(s.retry.as_ref().and_then(|r| r.max_attempts).unwrap_or(3)),
            ),
        ];
        for (name, holds) in facts {
            require!(8, holds, "{id}: {name} is not what was submitted");
        }
        self.check_score(step, id, &after)?;
        let delay = s.delay_until.or(s.delay_ms.map(|ms| now + ms));
        settled(id, &after, step.now, delay)?;
        if let Some(name) = &s.idempotency_key {
            self.keys.insert(
                format!("{}/{name}", s.namespace),
                Key {
                    partition: step.partition(),
                    execution_id: id,
                    body_digest: s.body_digest.clone(),
                    until_ms: now + s.idempotency_ttl_ms.unwrap_or(DAY_MS),
                },
            );
        }
        if s.prefers.as_ref().is_some_and(|prefers| !prefers.is_empty()) {
            self.preferring.insert((step.partition(), s.lane.clone()));
        }
        self.executions.insert(id, Shadow::new(submission, after));
        Ok(())
    }

    /// In a first-in-first-out lane the score is the age, shifted by priority.
    fn check_score(&self, step: &Step<'_>, id: ExecutionId, after: &Execution) -> Check {
        let Some(lane) = self.lanes.get(&(step.partition(), after.lane.clone())) else {
            return Err(Violation::new(
                10,
                format!("{id} is in lane {}, which its partition does not know", after.lane),
            ));
        };
        let definition = &lane.definition;
        let expected = after.created_at - after.priority * definition.priority_weight;
        require!(
            16,
            definition.fairness == Fairness::Fair || after.score == expected,
            "{id} has score {}, its age and priority give {expected}",
            after.score
        );
        Ok(())
    }
}

/// Waits to run: until a time, for a capable worker, or not at all.
pub(super) fn settled(id: ExecutionId, after: &Execution, now: i64, delay: Option<i64>) -> Check {
    require!(9, after.phase == LifecyclePhase::Runnable, "{id} is {} instead of runnable", after.phase);
    require!(1, after.lease.is_none() && after.granted_until.is_none(), "{id} waits and yet has a lease or a grant");
    // A block comes first; the delay counts when the execution may run.
    let waits = match after.blocking_reason {
        Some(BlockingReason::WaitingForDependencies) => after.flow_id.is_some(),
        Some(BlockingReason::WaitingForChildren) => after.children_open > 0,
        _ => false,
    };
    if waits {
        return Ok(());
    }
    let delay = delay.filter(|at| *at > now);
    require!(10, after.delay_until == delay, "{id} is delayed until {:?}, must be {delay:?}", after.delay_until);
    if let Some(reason) = after.blocking_reason {
        let route = reason == BlockingReason::WaitingForCapableWorker && !after.requires.is_empty() && delay.is_none();
        require!(10, route, "{id} is blocked by {reason} without a cause");
    }
    Ok(())
}

pub(super) struct Judgement<'a> {
    pub step: &'a Step<'a>,
    pub id: ExecutionId,
    pub event: &'a Event,
    pub checker: &'a Checker,
}

impl Judgement<'_> {
    fn pass(&self, shadow: &mut Shadow, after: Option<&Execution>) -> Check {
        let (id, now, kind) = (self.id, self.step.now, self.event.r#type.as_str());
        let Some(before) = shadow.seen.clone() else {
            return Err(Violation::new(9, format!("{kind} for {id}, which was retired")));
        };
        if kind == "execution.retired" {
            return self.retired(&before, after);
        }
        let Some(after) = after else {
            return Err(Violation::new(8, format!("{kind} left nothing of {id}")));
        };
        require!(38, after.updated_at == now, "{kind} of {id} did not touch its record");
        self.frozen(&before, after)?;
        if before.phase == LifecyclePhase::Terminal {
            require!(9, matches!(kind, "execution.replayed" | "execution.reopened"), "{kind} after {id} had ended");
        }
        shadow.check_waits(id, self.event, &before, after, now)?;
        // In a stopped flow, an execution that gives up its lease without an end is cancelled by its timer, at once.
        let lets_go = before.phase == LifecyclePhase::Active
            && !matches!(after.phase, LifecyclePhase::Active | LifecyclePhase::Terminal);
        let verdict = self.pass_on(shadow, &before, after);
        if lets_go && self.in_stopped_flow(&before) {
            shadow.cancel_by = Some(now);
        }
        verdict
    }

    fn pass_on(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let (id, now, kind) = (self.id, self.step.now, self.event.r#type.as_str());
        let cause = self.event.data.get("cause").and_then(EventValue::as_str).unwrap_or("");
        match kind {
            "execution.skipped" => self.skipped(shadow, before, after),
            "execution.reopened" => self.reopened(shadow, before, after),
            "execution.waiting" => self.waiting(shadow, before, after),
            "execution.resumed" if cause == "children" => self.children_ended(before, after),
            "execution.ready" if cause == "dependencies" => self.satisfied(shadow, before, after),
            "execution.suspended" => self.suspended(shadow, before, after),
            "execution.resumed" => self.resumed(before, after),
            "execution.already_satisfied" | "waitpoint.created" | "waitpoint.closed" => {
                self.by_holder(shadow, before)?;
                self.goes_on(before, after)
            }
            "execution.escalated" | "waitpoint.expired" | "waitpoint.signalled" | "waitpoint.token_reissued" => {
                self.goes_on(before, after)
            }
            "execution.started" if before.continues => self.continued(shadow, before, after),
            "execution.started" => self.started(shadow, before, after),
            "execution.completed" => self.completed(shadow, before, after),
            "execution.failed" => self.failed(shadow, before, after),
            "execution.retried" => self.retried(shadow, before, after),
            "execution.reclaimed" => self.reclaimed(shadow, before, after),
            "execution.delayed" | "execution.yielded" => self.handed_back(shadow, before, after),
            "execution.cancelled" => self.cancelled(shadow, before, after),
            "execution.expired" => self.expired(shadow, before, after),
            "execution.cancel_requested" => self.cancel_requested(shadow, before, after),
            "execution.yield_requested" => self.yield_requested(before, after),
            "execution.held" => self.held(shadow, before, after),
            "execution.released" => {
                require!(
                    9,
                    before.blocking_reason == Some(BlockingReason::HeldByOperator),
                    "{id} was released without a hold"
                );
                settled(id, after, now, before.delay_until)
            }
            "execution.changed" => self.changed(shadow, before, after),
            "execution.replayed" => self.replayed(shadow, before, after),
            "execution.blocked" => self.blocked(shadow, before, after),
            "execution.ready" => self.ready(shadow, before, after),
            "execution.granted" => self.granted(shadow, before, after),
            other => Err(Violation::new(41, format!("{other} is no event of an execution"))),
        }
    }

    /// Fields that never change, and bytes that must be returned unchanged.
    fn frozen(&self, before: &Execution, after: &Execution) -> Check {
        let id = self.id;
        require!(13, before.input == after.input, "the input of {id} changed");
        // After a start there is no time limit to start any more; after a replay there is one again.
        let restarts = after.phase == LifecyclePhase::Active || before.phase == LifecyclePhase::Terminal;
        let same = before.namespace == after.namespace
            && before.kind == after.kind
            && before.created_at == after.created_at
            && before.requires == after.requires
            && before.prefers == after.prefers
            && before.retry == after.retry
            && before.retention_ms == after.retention_ms
            && before.max_reclaims == after.max_reclaims
            && before.max_replays == after.max_replays
            && before.fallbacks == after.fallbacks
            && before.quotas == after.quotas
            && before.budgets == after.budgets
            && (before.flow_id.is_some() || before.start_by.is_some() == after.start_by.is_some() || restarts)
            && before.flow_id == after.flow_id
            && before.parent_id == after.parent_id
            && before.inbound == after.inbound;
        require!(13, same, "what was submitted with {id} changed");
        let changes = self.event.r#type == "execution.changed";
        let kept = before.lane == after.lane
            && before.priority == after.priority
            && before.tags == after.tags
            && before.score == after.score;
        require!(10, changes || kept, "{} moved {id}", self.event.r#type);
        Ok(())
    }

    /// The call has the current fence and is in time.
    pub(super) fn by_holder(&self, shadow: &Shadow, before: &Execution) -> Check {
        let id = self.id;
        let lease = shadow.lease.as_ref();
        let current = self
            .step
            .request
            .fences()
            .iter()
            .any(|(named, fence)| *named == id && lease.is_some_and(|lease| lease.fence == **fence));
        let name = self.step.request.name();
        require!(
            3,
            current && before.phase == LifecyclePhase::Active,
            "{name} of {id} was accepted without the current fence"
        );
        let until = before.lease.as_ref().map_or(0, |lease| lease.expires_at);
        require!(
            5,
            self.step.now < until,
            "{name} of {id} was accepted at {}, its lease ended at {until}",
            self.step.now
        );
        Ok(())
    }

    /// The lease is over, and the attempt has exactly one end.
    pub(super) fn lease_over(
        &self,
        shadow: &mut Shadow,
        before: &Execution,
        after: &Execution,
        end: End,
        states: &[AttemptState],
    ) -> Check {
        let id = self.id;
        if let Some(lease) = &mut shadow.lease
            && before.phase == LifecyclePhase::Active
        {
            lease.ended = Some(end);
        }
        shadow.cancel_by = None;
        require!(7, after.lease.is_none(), "{id} ended its attempt and keeps the lease");
        require!(
            4,
            after.attempts_spilled + after.attempts.len() as i64 == shadow.attempts,
            "{id} made {} attempts, {} are filed",
            shadow.attempts,
            after.attempts_spilled + after.attempts.len() as i64
        );
        let last = after.attempts.last();
        let filed = last.is_some_and(|last| {
            states.contains(&last.state)
                && last.ended_at == Some(self.step.now)
                && last.index == shadow.attempts - 1
                && last.lease_epoch == shadow.epoch
        });
        require!(4, filed, "the attempt of {id} ended as {last:?}, expected one of {states:?}");
        Ok(())
    }

    /// Terminal, reached through the common routine.
    pub(super) fn over(
        &self,
        shadow: &mut Shadow,
        before: &Execution,
        after: &Execution,
        outcome: Outcome,
        end: End,
        states: &[AttemptState],
    ) -> Check {
        let (id, now) = (self.id, self.step.now);
        shadow.usage.refused = None;
        require!(
            8,
            after.phase == LifecyclePhase::Terminal && after.outcome == Some(outcome),
            "{id} ended as {:?}, not as {outcome}",
            after.outcome
        );
        require!(
            8,
            after.ended_at == Some(now)
                && (after.retire_at == Some(now + after.retention_ms) || (is_kin(after) && after.retire_at.is_none())),
            "{id} ended at {:?}",
            after.ended_at
        );
        let bare = after.lease.is_none()
            && after.blocking_reason.is_none()
            && after.delay_until.is_none()
            && after.granted_until.is_none();
        require!(9, bare, "{id} ended and still waits or holds something");
        shadow.grant = None;
        if before.attempts.last().is_some_and(|attempt| attempt.ended_at.is_none()) {
            self.lease_over(shadow, before, after, end, states)
        } else {
            require!(4, before.attempts == after.attempts, "{id} ended without running and its attempts changed");
            Ok(())
        }
    }

    fn started(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        self.may_start_in_flow(before)?;
        let (id, now) = (self.id, self.step.now);
        let (instance, capabilities, ttl_ms, attempt_id, lease_id) = match self.step.request {
            Request::ClaimExecutions(c) => {
                require!(1, eligible(before), "{id} was claimed while {} {:?}", before.state, before.blocking_reason);
                let admitted = before.quotas.is_empty() && before.budgets.is_empty();
                require!(16, admitted, "{id} needs admission and was claimed without");
                let at = self.leased_as(c, after)?;
                (&c.instance, &c.capabilities, c.lease_ttl_ms, c.attempt_ids[at], c.lease_ids[at])
            }
            Request::ConsumeGrant(c) => {
                let open = shadow.grant.as_ref().is_some_and(|grant| *grant == (c.grant_id, c.instance.clone()))
                    && before.granted_until.is_some_and(|until| now < until);
                require!(
                    1,
                    open && before.phase == LifecyclePhase::Runnable,
                    "{id} was started by a grant that is not open"
                );
                self.admitted(before, c.grant_id)?;
                (&c.instance, &c.capabilities, c.lease_ttl_ms, c.attempt_id, c.lease_id)
            }
            other => return Err(Violation::new(41, format!("{} started {id}", other.name()))),
        };
        require!(15, shadow.may_start(before, now), "{id} started past its deadline or its time to start");
        require!(
            16,
            covered(&before.requires, capabilities),
            "{id} requires {:?}, the worker has {capabilities:?}",
            before.requires
        );
        let Some(lease) = &after.lease else {
            return Err(Violation::new(1, format!("{id} started without a lease")));
        };
        require!(2, lease.lease_epoch > shadow.epoch, "{id} got epoch {} after {}", lease.lease_epoch, shadow.epoch);
        require!(
            1,
            lease.lease_id == lease_id && lease.worker_instance == *instance && lease.expires_at == now + ttl_ms,
            "{id} has the lease {lease:?}, asked for by {instance} for {ttl_ms} ms"
        );
        let kind = shadow.next.unwrap_or(AttemptType::Initial);
        let fits = after.attempts.last().is_some_and(|attempt| {
            attempt.index == shadow.attempts
                && attempt.attempt_id == attempt_id
                && attempt.r#type == kind
                && attempt.state == AttemptState::Started
                && attempt.started_at == now
                && attempt.ended_at.is_none()
                && attempt.lease_epoch == lease.lease_epoch
        });
        require!(4, fits, "{id} must start {kind} attempt {}, started {:?}", shadow.attempts, after.attempts.last());
        require!(
            4,
            after.attempts_spilled + after.attempts.len() as i64 == shadow.attempts + 1,
            "{id} has {} attempts, not {}",
            after.attempts_spilled + after.attempts.len() as i64,
            shadow.attempts + 1
        );
        let timeout = after.attempt_timeout_ms.map(|ms| now + ms);
        require!(
            15,
            after.attempt_deadline_at == timeout,
            "{id} times out at {:?}, must be {timeout:?}",
            after.attempt_deadline_at
        );
        require!(
            3,
            !lease.cancel_requested && !lease.yield_requested,
            "{id} started with the requests of an earlier lease"
        );
        let fence = Fence { attempt_id, lease_id, lease_epoch: lease.lease_epoch };
        shadow.epoch = lease.lease_epoch;
        shadow.attempts += 1;
        shadow.next = None;
        shadow.started = true;
        shadow.grant = None;
        shadow.cancel_by = None;
        shadow.lease = Some(LastLease { fence, instance: instance.clone(), ttl_ms, renewals: 0, ended: None });
        Ok(())
    }

    /// The attempt is suspended: it has no lease and no end.
    fn suspended(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        self.by_holder(shadow, before)?;
        let id = self.id;
        let Request::SuspendExecution(call) = self.step.request else {
            return Err(Violation::new(41, format!("{} suspended {id}", self.step.request.name())));
        };
        if let Some(lease) = &mut shadow.lease {
            lease.ended = Some(End::Suspend);
        }
        let Some(wait) = &after.suspension else {
            return Err(Violation::new(9, format!("{id} was suspended and waits for nothing")));
        };
        let timeout = call.timeout_ms.map(|ms| self.step.now + ms);
        require!(
            28,
            wait.suspension_id == call.suspension_id && wait.reason == call.reason && wait.timeout_at == timeout,
            "{id} waits as {wait:?}"
        );
        require!(
            9,
            after.phase == LifecyclePhase::Suspended && after.lease.is_none() && after.attempt_deadline_at.is_none(),
            "{id} was suspended and is {}",
            after.phase
        );
        require!(14, after.reclaim_count == 0, "{id} was suspended and keeps {} reclaims", after.reclaim_count);
        self.same_attempt(before, after, AttemptState::Suspended)
    }

    fn resumed(&self, before: &Execution, after: &Execution) -> Check {
        let id = self.id;
        require!(9, before.phase == LifecyclePhase::Suspended, "{id} was resumed while {}", before.phase);
        self.same_attempt(before, after, AttemptState::Suspended)?;
        settled(id, after, self.step.now, None)
    }

    /// Only its waitpoints and signals changed.
    fn goes_on(&self, before: &Execution, after: &Execution) -> Check {
        let same = before.phase == after.phase && before.lease == after.lease && before.attempts == after.attempts;
        require!(9, same, "{} moved {}", self.event.r#type, self.id);
        Ok(())
    }

    /// The running attempt goes on, in this state.
    pub(super) fn same_attempt(&self, before: &Execution, after: &Execution, state: AttemptState) -> Check {
        let mut expected = before.attempts.clone();
        if let Some(last) = expected.last_mut() {
            last.state = state;
        }
        require!(4, expected == after.attempts, "{} of {} changed its attempts", self.event.r#type, self.id);
        Ok(())
    }

    /// A wait timed out, with the effect of its behavior.
    fn waited_too_long(&self, before: &Execution, behavior: TimeoutBehavior) -> Check {
        let (id, now) = (self.id, self.step.now);
        let Some(wait) = &before.suspension else {
            return Err(Violation::new(9, format!("{id} waited too long and did not wait")));
        };
        let nobody = wait.timeout_at.is_none()
            && before.waitpoints.iter().all(|open| open.expires_at.is_some_and(|at| at <= now));
        require!(
            15,
            nobody || wait.timeout_at.is_some_and(|at| at <= now),
            "the wait of {id} ended at {now}, it had time until {:?}",
            wait.timeout_at
        );
        require!(
            15,
            wait.timeout_behavior == behavior,
            "{id} ended as {behavior:?}, not as {:?}",
            wait.timeout_behavior
        );
        Ok(())
    }

    /// The next lease of the same attempt.
    fn continued(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        self.may_start_in_flow(before)?;
        let (id, now) = (self.id, self.step.now);
        let attempt_id = before.attempts.last().map(|attempt| attempt.attempt_id);
        let (instance, ttl_ms, lease_id) = match self.step.request {
            Request::ClaimExecutions(c) => {
                require!(1, eligible(before), "{id} was claimed while {} {:?}", before.state, before.blocking_reason);
                let admitted = before.quotas.is_empty() && before.budgets.is_empty();
                require!(16, admitted, "{id} needs admission and was claimed without");
                (&c.instance, c.lease_ttl_ms, c.lease_ids[self.leased_as(c, after)?])
            }
            Request::ConsumeGrant(c) => {
                let open = shadow.grant.as_ref().is_some_and(|grant| *grant == (c.grant_id, c.instance.clone()));
                require!(1, open, "{id} was continued by a grant that is not open");
                self.admitted(before, c.grant_id)?;
                (&c.instance, c.lease_ttl_ms, c.lease_id)
            }
            other => return Err(Violation::new(41, format!("{} continued {id}", other.name()))),
        };
        require!(15, shadow.may_start(before, now), "{id} was continued past its deadline");
        let Some(lease) = &after.lease else {
            return Err(Violation::new(1, format!("{id} was continued without a lease")));
        };
        require!(2, lease.lease_epoch > shadow.epoch, "{id} got epoch {} after {}", lease.lease_epoch, shadow.epoch);
        require!(
            1,
            lease.lease_id == lease_id && lease.worker_instance == *instance && lease.expires_at == now + ttl_ms,
            "{id} has the lease {lease:?}, asked for by {instance} for {ttl_ms} ms"
        );
        require!(
            3,
            lease.cancel_requested == shadow.cancel_by.is_some() && !lease.yield_requested,
            "{id} was continued with other requests than it was suspended with"
        );
        let mut expected = before.attempts.clone();
        if let Some(last) = expected.last_mut() {
            (last.state, last.lease_epoch) = (AttemptState::Started, lease.lease_epoch);
            last.worker_instance.clone_from(instance);
        }
        require!(4, expected == after.attempts, "{id} did not go on with its attempt: {:?}", after.attempts.last());
        let timeout = shadow.waits.time_left.map(|ms| now + ms);
        require!(
            15,
            after.attempt_deadline_at == timeout,
            "{id} times out at {:?}, must be {timeout:?}",
            after.attempt_deadline_at
        );
        let attempt_id = attempt_id.expect("it goes on with one");
        let fence = Fence { attempt_id, lease_id, lease_epoch: lease.lease_epoch };
        shadow.epoch = lease.lease_epoch;
        shadow.grant = None;
        shadow.lease = Some(LastLease { fence, instance: instance.clone(), ttl_ms, renewals: 0, ended: None });
        Ok(())
    }

    fn completed(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        self.by_holder(shadow, before)?;
        let result = match self.step.request {
            Request::CompleteExecution(call) => &call.result,
            other => {
                return Err(Violation::new(41, format!("{} completed {}", other.name(), self.id)));
            }
        };
        require!(13, after.result == *result, "the result of {} is not the one its worker sent", self.id);
        self.over(shadow, before, after, Outcome::Success, End::Complete, &[AttemptState::Succeeded])
    }

    fn failed(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let (id, now) = (self.id, self.step.now);
        let category = after.failure.as_ref().map_or("", |failure| failure.category.as_str());
        let until = before.lease.as_ref().map_or(i64::MAX, |lease| lease.expires_at);
        match self.step.request {
            Request::FailExecution(call) => {
                self.by_holder(shadow, before)?;
                shadow.failures += 1;
                let again = call.retryable != Some(false) && shadow.may_retry(before, shadow.failures, &call.category);
                require!(
                    14,
                    !again,
                    "{id} failed for good after {} failures, its policy allows another attempt",
                    shadow.failures
                );
                self.over(shadow, before, after, Outcome::Failed, End::Fail, &[AttemptState::Failed])
            }
            Request::SettleUsage(_) => {
                require!(31, category == "budget", "{id} failed as {category} by a report");
                self.over(shadow, before, after, Outcome::Failed, End::Breach, &[AttemptState::Failed])
            }
            Request::FailSuspension(_) => {
                require!(9, before.phase == LifecyclePhase::Suspended, "{id} was failed while {}", before.phase);
                self.over(shadow, before, after, Outcome::Failed, End::Other, &[AttemptState::Failed])
            }
            Request::FireDue(_) if category == "suspension_timeout" => {
                self.waited_too_long(before, TimeoutBehavior::Fail)?;
                self.over(shadow, before, after, Outcome::Failed, End::Other, &[AttemptState::Failed])
            }
            Request::FireDue(_) if category == "timeout" => {
                self.timed_out(before)?;
                shadow.failures += 1;
                let again = shadow.may_retry(before, shadow.failures, "timeout");
                require!(
                    14,
                    !again,
                    "{id} timed out for good after {} failures, its policy allows another attempt",
                    shadow.failures
                );
                self.over(shadow, before, after, Outcome::Failed, End::Other, &[AttemptState::TimedOut])
            }
            Request::FireDue(_) | Request::RevokeLease(_) | Request::DrainLeases(_) => {
                require!(14, category == "poisoned", "{id} failed as {category} in {}", self.step.request.name());
                let lost = shadow.lost_in_a_row(before);
                require!(
                    14,
                    lost >= before.max_reclaims,
                    "{id} is poisoned after {lost} lost leases, {} are allowed",
                    before.max_reclaims
                );
                let end = if matches!(self.step.request, Request::FireDue(_)) {
                    require!(15, until <= now, "the lease of {id} expired at {now}, it was good until {until}");
                    End::Expired
                } else {
                    End::Revoked
                };
                self.over(shadow, before, after, Outcome::Failed, end, &[AttemptState::Interrupted])
            }
            other => Err(Violation::new(41, format!("{} failed {id}", other.name()))),
        }
    }

    fn timed_out(&self, before: &Execution) -> Check {
        let at = before.attempt_deadline_at.unwrap_or(i64::MAX);
        require!(15, at <= self.step.now, "{} timed out at {}, its time was {at}", self.id, self.step.now);
        Ok(())
    }

    fn retried(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let (id, now) = (self.id, self.step.now);
        let (category, given, end, state) = match self.step.request {
            Request::FailExecution(call) => {
                self.by_holder(shadow, before)?;
                require!(14, call.retryable != Some(false), "{id} is tried again although its worker forbade it");
                (call.category.as_str(), call.retry_after_ms, true, AttemptState::Failed)
            }
            Request::FireDue(_) => {
                self.timed_out(before)?;
                ("timeout", None, false, AttemptState::TimedOut)
            }
            other => return Err(Violation::new(41, format!("{} retried {id}", other.name()))),
        };
        shadow.failures += 1;
        require!(
            14,
            shadow.may_retry(before, shadow.failures, category),
            "{id} is tried again after {} failures",
            shadow.failures
        );
        let at = self.time_of("delay_until")?;
        let (low, high) = match given {
            Some(ms) => (ms, ms),
            None => bounds(&before.retry, shadow.failures),
        };
        require!(
            14,
            (low..=high).contains(&(at - now)),
            "{id} waits {} ms for its retry, allowed is {low} to {high}",
            at - now
        );
        shadow.next = Some(AttemptType::Retry);
        let end = if end { End::Retry(at) } else { End::Other };
        self.lease_over(shadow, before, after, end, &[state])?;
        require!(14, after.reclaim_count == 0, "{id} was retried and keeps {} reclaims", after.reclaim_count);
        settled(id, after, now, Some(at))
    }

    fn reclaimed(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let (id, now) = (self.id, self.step.now);
        require!(9, before.phase == LifecyclePhase::Active, "{id} was reclaimed while {}", before.phase);
        let until = before.lease.as_ref().map_or(i64::MAX, |lease| lease.expires_at);
        let end = match self.step.request {
            Request::FireDue(_) => {
                require!(15, until <= now, "the lease of {id} expired at {now}, it was good until {until}");
                End::Expired
            }
            Request::RevokeLease(call) if call.grace != Some(true) => End::Revoked,
            Request::DrainLeases(call) if call.revoke => End::Revoked,
            other => {
                return Err(Violation::new(41, format!("{} reclaimed {id}", other.name())));
            }
        };
        let lost = shadow.lost_in_a_row(before);
        require!(
            14,
            lost < before.max_reclaims,
            "{id} is offered again after {lost} lost leases, {} are allowed",
            before.max_reclaims
        );
        require!(14, after.reclaim_count == lost + 1, "{id} counts {} reclaims, not {}", after.reclaim_count, lost + 1);
        shadow.next = Some(AttemptType::Reclaim);
        self.lease_over(shadow, before, after, end, &[AttemptState::Interrupted])?;
        settled(id, after, now, None)
    }

    fn handed_back(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        self.by_holder(shadow, before)?;
        let now = self.step.now;
        let (end, delay) = match self.step.request {
            Request::DelayExecution(call) => {
                let at = call.delay_until.or(call.delay_ms.map(|ms| now + ms)).expect("the worker sends one of them");
                (End::Delay(at), Some(at))
            }
            Request::YieldExecution(_) => (End::Yield, None),
            other => {
                return Err(Violation::new(41, format!("{} gave {} back", other.name(), self.id)));
            }
        };
        shadow.next = Some(AttemptType::Reclaim);
        let lost = shadow.lost_in_a_row(before);
        require!(
            14,
            after.reclaim_count == lost,
            "{} counts {} reclaims after it was given back, not {lost}",
            self.id,
            after.reclaim_count
        );
        self.lease_over(shadow, before, after, end, &[AttemptState::Interrupted])?;
        settled(self.id, after, now, delay)
    }

    fn cancelled(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let (id, now) = (self.id, self.step.now);
        let category = after.failure.as_ref().map_or("", |failure| failure.category.as_str());
        let end = match self.step.request {
            _ if self.cancelled_for(before)? => End::Other,
            Request::CancelExecution(_) => End::Other,
            Request::SettleUsage(_) => End::Breach,
            Request::CancelAttempt(_) => {
                self.by_holder(shadow, before)?;
                End::Cancel
            }
            Request::FireDue(_) if category == "suspension_timeout" => {
                self.waited_too_long(before, TimeoutBehavior::Cancel)?;
                End::Other
            }
            Request::FireDue(_) => {
                let by = shadow.cancel_by.unwrap_or(i64::MAX);
                require!(15, by <= now, "the grace of {id} was over at {now}, it was given until {by}");
                End::Other
            }
            other => {
                return Err(Violation::new(41, format!("{} cancelled {id}", other.name())));
            }
        };
        self.over(shadow, before, after, Outcome::Cancelled, end, &[AttemptState::Cancelled])
    }

    fn expired(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let (id, now) = (self.id, self.step.now);
        require!(41, matches!(self.step.request, Request::FireDue(_)), "{} expired {id}", self.step.request.name());
        if after.failure.as_ref().is_some_and(|failure| failure.category == "suspension_timeout") {
            self.waited_too_long(before, TimeoutBehavior::Expire)?;
            return self.over(shadow, before, after, Outcome::Expired, End::Other, &[AttemptState::Interrupted]);
        }
        let late = before.deadline_at.is_some_and(|at| at <= now)
            || (before.phase == LifecyclePhase::Runnable
                && !shadow.started
                && before.start_by.is_some_and(|at| at <= now));
        require!(15, late, "{id} expired at {now}: deadline {:?}, start by {:?}", before.deadline_at, before.start_by);
        self.over(shadow, before, after, Outcome::Expired, End::Other, &[AttemptState::Interrupted])
    }

    fn retired(&self, before: &Execution, after: Option<&Execution>) -> Check {
        let (id, now) = (self.id, self.step.now);
        require!(37, after.is_none(), "{id} was retired and is still there");
        require!(9, before.phase == LifecyclePhase::Terminal, "{id} was retired while {}", before.phase);
        let at = before.retire_at.unwrap_or(i64::MAX);
        let asked = matches!(self.step.request, Request::DeleteExecution(_));
        require!(15, asked || at <= now, "{id} was retired at {now}, its retention ends at {at}");
        Ok(())
    }

    fn cancel_requested(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let id = self.id;
        let Request::CancelExecution(call) = self.step.request else {
            return Err(Violation::new(41, format!("{} asked to cancel {id}", self.step.request.name())));
        };
        let by = self.step.now + call.grace_ms.unwrap_or(0);
        shadow.cancel_by = Some(shadow.cancel_by.map_or(by, |earlier| earlier.min(by)));
        self.still_runs(before, after, |lease| lease.cancel_requested = true)
    }

    fn yield_requested(&self, before: &Execution, after: &Execution) -> Check {
        self.still_runs(before, after, |lease| lease.yield_requested = true)
    }

    /// The lease goes on with one more request for it.
    fn still_runs(&self, before: &Execution, after: &Execution, mark: impl FnOnce(&mut Lease)) -> Check {
        let mut expected = before.lease.clone();
        if let Some(lease) = &mut expected {
            mark(lease);
        }
        require!(
            3,
            expected.is_some() && expected == after.lease,
            "{}: the lease is {:?}, must be {expected:?}",
            self.id,
            after.lease
        );
        Ok(())
    }

    fn held(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let id = self.id;
        require!(9, before.phase == LifecyclePhase::Runnable, "{id} was held while {}", before.phase);
        let held = after.phase == LifecyclePhase::Runnable
            && after.blocking_reason == Some(BlockingReason::HeldByOperator)
            && after.granted_until.is_none()
            && after.delay_until == before.delay_until;
        require!(10, held, "{id} was held and is {} {:?}", after.state, after.blocking_reason);
        shadow.grant = None;
        Ok(())
    }

    fn changed(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let (id, now) = (self.id, self.step.now);
        let Request::ChangeExecution(call) = self.step.request else {
            return Err(Violation::new(41, format!("{} changed {id}", self.step.request.name())));
        };
        let moves = call.priority.is_some() || call.lane.is_some();
        let facts = [
            ("lane", after.lane == *call.lane.as_ref().unwrap_or(&before.lane)),
            ("priority", after.priority == call.priority.unwrap_or(before.priority)),
            ("tags", after.tags == *call.tags.as_ref().unwrap_or(&before.tags)),
            ("deadline_at", after.deadline_at == call.deadline_at.or(before.deadline_at)),
            ("phase", after.phase == before.phase),
            ("attempts", after.attempts == before.attempts),
            ("lease", after.lease == before.lease),
        ];
        for (name, holds) in facts {
            require!(10, holds, "{id} was changed, but its {name} is not the requested one");
        }
        if moves {
            self.checker.check_score(self.step, id, after)?;
        } else {
            require!(10, after.score == before.score, "{id} lost its place without being moved");
        }
        let delay = call.delay_until.or(before.delay_until);
        let moved = [BlockingReason::WaitingForCapableWorker, BlockingReason::WaitingForQuota];
        let stays = before.blocking_reason.is_some_and(|reason| !moved.contains(&reason));
        if (moves || call.delay_until.is_some()) && !stays {
            shadow.grant = None;
            settled(id, after, now, delay)
        } else {
            require!(
                10,
                after.blocking_reason == before.blocking_reason,
                "{id} was changed and is now {:?}",
                after.blocking_reason
            );
            Ok(())
        }
    }

    fn replayed(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let (id, now) = (self.id, self.step.now);
        require!(
            41,
            matches!(self.step.request, Request::ReplayExecution(_)),
            "{} replayed {id}",
            self.step.request.name()
        );
        require!(9, before.phase == LifecyclePhase::Terminal, "{id} was replayed while {}", before.phase);
        require!(
            14,
            after.replay_count == before.replay_count + 1 && after.replay_count <= after.max_replays,
            "{id} has {} replays",
            after.replay_count
        );
        let clean = after.outcome.is_none()
            && after.result.is_none()
            && after.failure.is_none()
            && after.ended_at.is_none()
            && after.reclaim_count == 0;
        require!(9, clean, "{id} was replayed and keeps its old end");
        require!(
            15,
            after.deadline_at == before.deadline_at.filter(|at| *at > now),
            "{id} was replayed with deadline {:?}",
            after.deadline_at
        );
        shadow.failures = 0;
        shadow.started = false;
        shadow.next = (shadow.attempts > 0).then_some(AttemptType::Replay);
        shadow.cancel_by = None;
        settled(id, after, now, None)
    }

    fn blocked(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let id = self.id;
        let reason = match self.step.request {
            Request::SettleUsage(call) => return self.parked(shadow, before, after, call),
            Request::ReviewRoutes(call) => {
                require!(10, eligible(before), "{id} was blocked by route while {}", before.state);
                let somebody = call.workers.iter().any(|class| taken_by(class, before));
                require!(10, !somebody, "{id} was blocked although somebody covers {:?}", before.requires);
                BlockingReason::WaitingForCapableWorker
            }
            Request::BlockExecution(call) => match call.reason {
                AdmissionReason::WaitingForQuota => BlockingReason::WaitingForQuota,
                AdmissionReason::WaitingForBudget => BlockingReason::WaitingForBudget,
            },
            Request::FireDue(_) => {
                self.was_due(before)?;
                require!(10, after.delay_until.is_none(), "{id} was blocked by a timer without a cause");
                BlockingReason::WaitingForCapableWorker
            }
            Request::AddEdges(_) | Request::AddMembers(_) => {
                // Another block may wait behind the edge; an operator's hold stays.
                let waits = before.blocking_reason.is_none_or(|reason| {
                    use BlockingReason::{WaitingForBudget, WaitingForCapableWorker, WaitingForQuota};
                    matches!(reason, WaitingForCapableWorker | WaitingForBudget | WaitingForQuota)
                });
                require!(10, waits, "{id} was blocked by an edge while {:?}", before.blocking_reason);
                BlockingReason::WaitingForDependencies
            }
            other => return Err(Violation::new(41, format!("{} blocked {id}", other.name()))),
        };
        let fits = after.phase == LifecyclePhase::Runnable
            && after.blocking_reason == Some(reason)
            && after.granted_until.is_none();
        require!(10, fits, "{id} must wait for {reason}, is {} {:?}", after.state, after.blocking_reason);
        shadow.grant = None;
        Ok(())
    }

    fn ready(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        let (id, now) = (self.id, self.step.now);
        match self.step.request {
            Request::FireDue(_) => self.was_due(before)?,
            Request::ReviewRoutes(call) => {
                let waited = before.blocking_reason == Some(BlockingReason::WaitingForCapableWorker);
                let somebody = call.workers.iter().any(|class| taken_by(class, before));
                require!(10, waited && somebody, "{id} became ready although nobody covers {:?}", before.requires);
            }
            Request::ReleaseGrant(_) | Request::UnblockExecution(_) => {}
            Request::UnblockBudget(call) => self.had_room(before, call)?,
            other => {
                return Err(Violation::new(41, format!("{} made {id} ready", other.name())));
            }
        }
        shadow.grant = None;
        settled(id, after, now, before.delay_until)
    }

    /// A delay or a grant has ended.
    fn was_due(&self, before: &Execution) -> Check {
        let (id, now) = (self.id, self.step.now);
        let due = [before.delay_until, before.granted_until].into_iter().flatten().any(|at| at <= now);
        require!(
            15,
            due && before.blocking_reason.is_none(),
            "{id} was moved at {now}, it was to wait until {:?}",
            before.delay_until
        );
        Ok(())
    }

    fn granted(&self, shadow: &mut Shadow, before: &Execution, after: &Execution) -> Check {
        self.may_start_in_flow(before)?;
        let (id, now) = (self.id, self.step.now);
        let (grant_id, instance, ttl_ms): (Uuid, &String, i64) = match self.step.request {
            Request::IssueGrants(call) => {
                let at = self.rank();
                (call.grant_ids[at], &call.instance, call.ttl_ms)
            }
            Request::GrantReclaim(call) => (call.grant_id, &call.instance, call.ttl_ms),
            other => return Err(Violation::new(41, format!("{} granted {id}", other.name()))),
        };
        require!(1, eligible(before), "{id} was granted while {} {:?}", before.state, before.blocking_reason);
        require!(15, shadow.may_start(before, now), "{id} was granted past its deadline");
        require!(15, after.granted_until == Some(now + ttl_ms), "{id} is granted until {:?}", after.granted_until);
        let grant_id = numbered(grant_id, shadow.granted.len());
        require!(32, !shadow.granted.contains(&grant_id), "{id} has the grant {grant_id} for the second time");
        shadow.granted.push(grant_id);
        shadow.grant = Some((grant_id, instance.clone()));
        Ok(())
    }

    /// The claim's lease that the execution has. An id that still holds another execution is skipped.
    fn leased_as(&self, call: &ClaimExecutions, after: &Execution) -> Result<usize, Violation> {
        let id = self.id;
        let lease_id = after.lease.as_ref().map(|lease| lease.lease_id);
        let Some(at) = call.lease_ids.iter().position(|asked| Some(*asked) == lease_id) else {
            return Err(Violation::new(1, format!("{id} has the lease {lease_id:?}, which its claim did not ask for")));
        };
        let mut others = self.checker.live_in(self.step.partition()).filter(|(other, ..)| **other != id);
        let twice = others.any(|(_, shadow, _)| {
            let held = |lease: &&LastLease| lease.ended.is_none() && lease.instance == call.instance;
            shadow.lease.as_ref().filter(held).map(|lease| lease.fence.lease_id) == lease_id
        });
        require!(1, !twice, "{id} has the lease {lease_id:?}, which holds another execution too");
        Ok(at)
    }

    /// Number of earlier events of this type in the call.
    fn rank(&self) -> usize {
        let earlier = self.step.events.iter().take_while(|event| !std::ptr::eq(*event, self.event));
        earlier.filter(|event| event.r#type == self.event.r#type).count()
    }

    fn time_of(&self, name: &str) -> Result<i64, Violation> {
        let value = self.event.data.get(name);
        value
            .and_then(EventValue::as_i64)
            .ok_or_else(|| Violation::new(14, format!("{name} of {} is {value:?}, not an integer", self.id)))
    }
}

/// The id of an execution's grant after `count` others: the number is added to its last four digits.
fn numbered(id: Uuid, count: usize) -> Uuid {
    let number = id.as_u128();
    Uuid::from_u128((number & !0xffff) | ((number + count as u128) & 0xffff))
}

/// The shortest and longest wait the policy allows after this many failures.
fn bounds(retry: &Retry, failures: i64) -> (i64, i64) {
    let longest = match &retry.backoff {
        Some(backoff) if backoff.r#type == BackoffType::Fixed => backoff.delay_ms.unwrap_or(1_000),
        backoff => {
            let of = |value: Option<i64>, default| value.unwrap_or(default);
            let (initial, factor, max) = backoff
                .as_ref()
                .map_or((1_000, 2, 60_000), |b| (of(b.initial_ms, 1_000), of(b.factor, 2), of(b.max_ms, 60_000)));
            (1..failures).fold(initial, |delay, _| delay.saturating_mul(factor).min(max)).min(max)
        }
    };
    if retry.jitter == Some(Jitter::None) { (longest, longest) } else { (0, longest) }
}
