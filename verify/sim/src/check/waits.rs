//! The checker's knowledge of an execution's waits and streams: who may signal, what counts, why it went on, what was
//! written.

use std::collections::BTreeMap;

use ff_core::condition::{Arrived, Condition, Evaluation, Matcher, Over, evaluate};
use ff_core::types::{ExecutionId, LeaseId, SignalId, SuspensionId, WaitpointId};
use ff_script::Bytes;
use ff_script::generated::*;

use super::shadow::End;
use super::verdict::Verdict::{self, Event as Emit, Quiet, Refuse};
use super::verdict::{Standing, refused};
use super::{Check, Checker, Shadow, Step, require};
use crate::request::{Outcome, Reply, Request};

/// How long the idempotency key of a signal is kept.
const KEY_TTL_MS: i64 = 86_400_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    points: BTreeMap<WaitpointId, Point>,
    signals: Vec<Arrival>,
    keys: BTreeMap<(WaitpointId, Option<String>, String), (SignalId, i64)>,
    wait: Option<Wait>,
    /// Why the attempt goes on, and the signals that its worker must get.
    woken: Option<(SuspensionId, ResumeCause, Vec<usize>)>,
    continuation: Option<Bytes>,
    satisfied: Option<(SuspensionId, Vec<usize>)>,
    /// The remaining run time of the attempt when it goes on.
    pub time_left: Option<i64>,
    /// The frames of each attempt.
    pub frames: BTreeMap<i64, Vec<NewFrame>>,
}

#[derive(Clone, Debug)]
struct Point {
    key: String,
    tokens: Vec<Holder>,
    uses: Option<i64>,
    expires_at: Option<i64>,
    allowed: Option<Vec<String>>,
    attempt: i64,
    suspension: Option<SuspensionId>,
    review: bool,
    open: bool,
    /// Signals that arrived before the suspend and count for it.
    early: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Holder {
    digest: String,
    approver: Option<String>,
    uses_left: Option<i64>,
}

#[derive(Clone, Debug)]
struct Arrival {
    signal_id: SignalId,
    name: String,
    waitpoint: Option<WaitpointId>,
    approver: Option<String>,
    payload: Option<Bytes>,
    answer: &'static str,
}

#[derive(Clone, Debug)]
struct Wait {
    id: SuspensionId,
    condition: Condition,
    offered: Vec<usize>,
    behavior: TimeoutBehavior,
    review: Option<WaitpointId>,
    until: Option<i64>,
}

impl Ledger {
    fn evaluate(&self, condition: &Condition, offered: &[usize]) -> Evaluation {
        let arrived = |number: &usize| {
            let arrival = &self.signals[*number];
            let id = arrival.waitpoint.expect("only signals at waitpoints are offered");
            Arrived {
                name: arrival.name.clone(),
                waitpoint_key: self.points[&id].key.clone(),
                waitpoint_id: id,
                approver_token: arrival.approver.clone().unwrap_or_else(|| id.to_string()),
            }
        };
        evaluate(condition, &offered.iter().map(arrived).collect::<Vec<_>>())
    }

    fn early(&self) -> Vec<usize> {
        let mut early: Vec<usize> = self.points.values().flat_map(|point| point.early.iter().copied()).collect();
        early.sort_unstable();
        early
    }

    fn open_point(
        &mut self,
        new: &NewWaitpoint,
        attempt: i64,
        suspension: Option<SuspensionId>,
        review: bool,
        now: i64,
    ) {
        let holder = |token: &Token| Holder {
            digest: token.digest.clone(),
            approver: token.approver.clone(),
            uses_left: new.uses,
        };
        let point = Point {
            key: new.key.clone(),
            tokens: new.tokens.iter().map(holder).collect(),
            uses: new.uses,
            expires_at: new.expires_in_ms.map(|ms| now + ms),
            allowed: new.allowed_signals.clone(),
            attempt,
            suspension,
            review,
            open: true,
            early: Vec::new(),
        };
        self.points.insert(new.waitpoint_id, point);
    }

    fn is_satisfied(&self, call: &SuspendExecution) -> bool {
        let early = self.early();
        !early.is_empty() && self.evaluate(&condition_of(&call.condition), &early).satisfied
    }

    /// What the worker that continues must get.
    pub fn check_resume(&self, id: ExecutionId, told: Option<&Resume>) -> Check {
        let Some((suspension_id, cause, numbers)) = &self.woken else {
            require!(28, told.is_none(), "{id} got a resume that did not happen: {told:?}");
            return Ok(());
        };
        let Some(told) = told else {
            return Err(super::Violation::new(28, format!("{id} goes on without being told why")));
        };
        require!(
            28,
            told.suspension_id == *suspension_id && told.cause == *cause,
            "{id} was told {:?} of {}, it was {cause:?} of {suspension_id}",
            told.cause,
            told.suspension_id
        );
        require!(13, told.continuation == self.continuation, "the continuation of {id} changed");
        self.check_signals(id, &told.signals, numbers)
    }

    fn check_signals(&self, id: ExecutionId, told: &[Signal], numbers: &[usize]) -> Check {
        let ids: Vec<SignalId> = numbers.iter().map(|number| self.signals[*number].signal_id).collect();
        let found: Vec<SignalId> = told.iter().map(|signal| signal.signal_id).collect();
        require!(27, found == ids, "{id} got the signals {found:?}, but they were {ids:?}");
        for (signal, number) in told.iter().zip(numbers) {
            let arrival = &self.signals[*number];
            require!(
                26,
                signal.approver == arrival.approver,
                "{id}: {:?} approved with the token of {:?}",
                signal.approver,
                arrival.approver
            );
            require!(13, signal.payload == arrival.payload, "a signal of {id} lost bytes");
        }
        Ok(())
    }

    /// The attempt waits for its children; `time_left` is its remaining run time.
    pub fn sets_aside(&mut self, wait_id: SuspensionId, time_left: Option<i64>) {
        self.time_left = time_left;
        self.satisfied = None;
        self.woken = Some((wait_id, ResumeCause::Children, Vec::new()));
    }

    /// The attempt waits for a budget. The wait is named by the lease that it ended.
    pub fn parks(&mut self, lease_id: LeaseId, time_left: Option<i64>) {
        self.time_left = time_left;
        self.satisfied = None;
        self.woken = Some((SuspensionId::from_uuid(*lease_id.as_uuid()), ResumeCause::Budget, Vec::new()));
    }

    /// The signal with this id.
    fn known(&self, id: SignalId) -> Option<&Arrival> {
        self.signals.iter().find(|arrival| arrival.signal_id == id && arrival.waitpoint.is_some())
    }

    pub fn frame_count(&self, attempt: i64) -> i64 {
        self.frames.get(&attempt).map_or(0, |frames| frames.len() as i64)
    }
}

impl Checker {
    /// The expected replies of calls about waits and streams.
    pub(super) fn wait_verdict(&self, step: &Step<'_>) -> Option<Verdict> {
        let now = step.now;
        let seen = |id: &ExecutionId| self.executions.get(id).and_then(|s| Some((s, s.seen.as_ref()?)));
        Some(match step.request {
            Request::SuspendExecution(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => {
                    let ledger = &self.executions[&call.execution_id].waits;
                    if ledger.satisfied.as_ref().is_some_and(|(id, _)| *id == call.suspension_id) {
                        Quiet("AlreadySatisfied")
                    } else if call.waitpoints.iter().any(|new| self.point(new.waitpoint_id).is_some()) {
                        Refuse("invalid_argument")
                    } else if ledger.is_satisfied(call) {
                        Emit("AlreadySatisfied", &["execution.already_satisfied"])
                    } else {
                        Emit("Suspended", &["execution.suspended"])
                    }
                }
                Standing::Ended(End::Suspend) => Quiet("Suspended"),
                other => refused(other),
            },
            Request::CreateWaitpoint(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current if self.point(call.waitpoint.waitpoint_id).is_some() => Quiet("Created"),
                Standing::Current => Emit("Created", &["waitpoint.created"]),
                other => refused(other),
            },
            Request::CloseWaitpoint(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => match self.executions[&call.execution_id].waits.points.get(&call.waitpoint_id) {
                    None => Refuse("waitpoint_not_found"),
                    Some(point) if point.open => Emit("Closed", &["waitpoint.closed"]),
                    Some(_) => Quiet("Closed"),
                },
                other => refused(other),
            },
            Request::AppendFrames(call) => match self.standing(call.execution_id, &call.fence, now) {
                Standing::Current => {
                    let shadow = &self.executions[&call.execution_id];
                    let next = shadow.waits.frame_count(shadow.attempts - 1);
                    let too_far = call.first_sequence.is_some_and(|first| first > next);
                    if too_far { Refuse("frames_missing") } else { Quiet("Appended") }
                }
                other => refused(other),
            },
            Request::DeliverSignal(call) => match seen(&call.execution_id) {
                Some((shadow, seen)) => shadow.waits.deliver(seen, call, now),
                None => Refuse("waitpoint_not_open"),
            },
            Request::ResumeExecution(call) => match seen(&call.execution_id) {
                None => Refuse("execution_not_found"),
                Some((_, seen)) if seen.phase == LifecyclePhase::Suspended => Emit("Resumed", &["execution.resumed"]),
                Some(_) => Refuse("execution_not_suspended"),
            },
            Request::FailSuspension(call) => match seen(&call.execution_id) {
                None => Refuse("execution_not_found"),
                Some((_, seen)) if seen.phase == LifecyclePhase::Suspended => Emit("Failed", &["execution.failed"]),
                Some(_) => Refuse("execution_not_suspended"),
            },
            Request::ReissueToken(call) => {
                let point = seen(&call.execution_id).and_then(|(s, _)| s.waits.points.get(&call.waitpoint_id));
                match point {
                    None => Refuse("waitpoint_not_found"),
                    Some(point) if !point.open || point.expires_at.is_some_and(|at| at <= now) => {
                        Refuse("waitpoint_not_open")
                    }
                    Some(point) => match point.tokens.iter().find(|token| token.approver == call.approver) {
                        Some(token) if token.digest == call.digest => Quiet("Reissued"),
                        None if !point.tokens.is_empty() => Refuse("invalid_argument"),
                        _ => Emit("Reissued", &["waitpoint.token_reissued"]),
                    },
                }
            }
            Request::ReadStream(call) => match seen(&call.execution_id) {
                None => Refuse("execution_not_found"),
                Some((shadow, _)) if call.attempt_index.is_some_and(|at| at > shadow.attempts) => {
                    Refuse("attempt_not_found")
                }
                Some(_) => Quiet("Page"),
            },
            _ => return None,
        })
    }

    fn point(&self, id: WaitpointId) -> Option<&Point> {
        self.executions.values().filter(|shadow| shadow.seen.is_some()).find_map(|shadow| shadow.waits.points.get(&id))
    }

    /// Checks the content of replies about waits and streams.
    pub(super) fn check_wait_reply(&self, step: &Step<'_>, reply: &Reply) -> Check {
        match (step.request, reply) {
            (Request::ReadStream(call), Reply::ReadStream(page)) => self.check_page(step, call, page),
            (
                Request::AppendFrames(call),
                Reply::AppendFrames(AppendFramesReply::Appended { ids, next_sequence, .. }),
            ) => {
                let shadow = &self.executions[&call.execution_id];
                let next = shadow.waits.frame_count(shadow.attempts - 1);
                let first = call.first_sequence.unwrap_or(next);
                let count = call.frames.len() as i64;
                let expected = next.max(first + count);
                require!(
                    35,
                    ids.len() as i64 == count && *next_sequence == expected,
                    "{} frames from {first} on, {} ids, the next is said to be {next_sequence}, it is {expected}",
                    count,
                    ids.len()
                );
                Ok(())
            }
            (
                Request::SuspendExecution(call),
                Reply::SuspendExecution(SuspendExecutionReply::AlreadySatisfied { signals, .. }),
            ) => {
                let ledger = &self.executions[&call.execution_id].waits;
                let numbers = match &ledger.satisfied {
                    Some((id, numbers)) if *id == call.suspension_id => numbers.clone(),
                    _ => ledger.satisfying(&condition_of(&call.condition), &ledger.early()),
                };
                ledger.check_signals(call.execution_id, signals, &numbers)
            }
            (Request::DeliverSignal(call), Reply::DeliverSignal(DeliverSignalReply::Duplicate { signal_id })) => {
                let ledger = &self.executions[&call.execution_id].waits;
                let holder = ledger.points[&call.waitpoint_id].holder(&call.token_digest);
                let approver = holder.and_then(|holder| holder.approver.clone());
                let key = call.idempotency_key.clone().unwrap_or_default();
                let first = ledger.keys.get(&(call.waitpoint_id, approver, key)).map(|(id, _)| *id);
                require!(25, first == Some(*signal_id), "a duplicate was reported as {signal_id}, but is {first:?}");
                Ok(())
            }
            (Request::ConsumeGrant(_), Reply::ConsumeGrant(ConsumeGrantReply::Claimed { task })) => {
                self.executions[&task.execution_id].waits.check_resume(task.execution_id, task.resume.as_ref())
            }
            _ => Ok(()),
        }
    }

    /// A page contains exactly what follows the reader's cursor.
    fn check_page(&self, step: &Step<'_>, call: &ReadStream, page: &ReadStreamReply) -> Check {
        let ReadStreamReply::Page { frames, more, attempt_index, closed_at, .. } = page;
        let id = call.execution_id;
        let shadow = &self.executions[&id];
        let Some(index) = call.attempt_index.or((shadow.attempts > 0).then(|| shadow.attempts - 1)) else {
            return Ok(());
        };
        if index >= shadow.attempts {
            require!(35, frames.is_empty() && attempt_index.is_none(), "{id}: frames of an attempt yet to come");
            return Ok(());
        }
        let none = Vec::new();
        let all = shadow.waits.frames.get(&index).unwrap_or(&none);
        let from = call.after.as_ref().map_or(0, |after| sequence_of(after) + 1);
        let expected: Vec<(i64, &NewFrame)> =
            all.iter().enumerate().map(|(at, frame)| (at as i64, frame)).filter(|(at, _)| *at >= from).collect();
        let limit = call.limit as usize;
        let same = frames.len() == expected.len().min(limit)
            && frames.iter().zip(&expected).all(|(frame, (at, new))| {
                frame.sequence == *at && frame.r#type == new.r#type && frame.payload == new.payload
            });
        require!(
            35,
            same && *more == (expected.len() > limit),
            "{id} attempt {index} after {:?}: read {:?}, written {}",
            call.after,
            frames.iter().map(|frame| frame.sequence).collect::<Vec<_>>(),
            all.len()
        );
        let seen = shadow.seen.as_ref().expect("it was read");
        let ended = seen.attempts.iter().find(|attempt| attempt.index == index).map(|attempt| attempt.ended_at);
        if let Some(ended) = ended {
            require!(35, *closed_at == ended, "{id} attempt {index} closed at {closed_at:?}, ended at {ended:?}");
        }
        let _ = step;
        Ok(())
    }

    /// Records the changes of a committed call about waits, after its events were checked.
    pub(super) fn note_waits(&mut self, step: &Step<'_>, verdicts: &[(Option<ExecutionId>, Verdict)]) {
        if !step.outcome.committed() || matches!(step.outcome, Outcome::Refused(_)) {
            return;
        }
        let accepted = matches!(verdicts.first(), Some((_, Emit(..))));
        let now = step.now;
        match step.request {
            Request::CreateWaitpoint(call) if accepted => {
                let shadow = self.executions.get_mut(&call.execution_id).expect("it was accepted");
                let attempt = shadow.attempts - 1;
                shadow.waits.open_point(&call.waitpoint, attempt, None, false, now);
            }
            Request::SuspendExecution(call) if accepted => {
                self.executions.get_mut(&call.execution_id).expect("it was accepted").suspended_with(call, now);
            }
            Request::DeliverSignal(call) => {
                let verdict = verdicts.first().map(|(_, verdict)| verdict);
                if let Some(Emit(answer, _)) = verdict {
                    self.executions.get_mut(&call.execution_id).expect("it was accepted").waits.take(call, answer, now);
                }
            }
            Request::ReissueToken(call) if accepted => {
                let shadow = self.executions.get_mut(&call.execution_id).expect("it was accepted");
                let point = shadow.waits.points.get_mut(&call.waitpoint_id).expect("it was accepted");
                match point.tokens.iter_mut().find(|token| token.approver == call.approver) {
                    Some(token) => token.digest.clone_from(&call.digest),
                    None => point.tokens.push(Holder {
                        digest: call.digest.clone(),
                        approver: call.approver.clone(),
                        uses_left: point.uses,
                    }),
                }
            }
            Request::AppendFrames(call) if matches!(verdicts.first(), Some((_, Quiet("Appended")))) => {
                let shadow = self.executions.get_mut(&call.execution_id).expect("it was accepted");
                let frames = shadow.waits.frames.entry(shadow.attempts - 1).or_default();
                let first = call.first_sequence.map_or(frames.len(), |first| first as usize);
                let known = frames.len().saturating_sub(first);
                frames.extend(call.frames.iter().skip(known).cloned());
            }
            _ => {}
        }
    }
}

impl Shadow {
    fn suspended_with(&mut self, call: &SuspendExecution, now: i64) {
        let (attempt, ledger) = (self.attempts - 1, &mut self.waits);
        let condition = condition_of(&call.condition);
        let offered = ledger.early();
        for point in ledger.points.values_mut() {
            point.early.clear();
        }
        if ledger.evaluate(&condition, &offered).satisfied && !offered.is_empty() {
            let numbers = ledger.satisfying(&condition, &offered);
            ledger.satisfied = Some((call.suspension_id, numbers));
            // Created and closed in one call.
            for new in &call.waitpoints {
                ledger.open_point(new, attempt, Some(call.suspension_id), false, now);
                ledger.points.get_mut(&new.waitpoint_id).expect("just made").open = false;
            }
            return;
        }
        for new in &call.waitpoints {
            ledger.open_point(new, attempt, Some(call.suspension_id), false, now);
        }
        for point in ledger.points.values_mut().filter(|point| point.open) {
            point.suspension = Some(call.suspension_id);
        }
        ledger.woken = None;
        ledger.satisfied = None;
        ledger.continuation.clone_from(&call.continuation);
        ledger.wait = Some(Wait {
            id: call.suspension_id,
            condition,
            offered,
            behavior: call.timeout_behavior,
            review: call.review_waitpoint_id,
            until: call.timeout_ms.map(|ms| now + ms),
        });
    }

    /// Compares a wait after an event with its known state before.
    pub(super) fn check_waits(
        &mut self,
        id: ExecutionId,
        event: &Event,
        before: &Execution,
        after: &Execution,
        now: i64,
    ) -> Check {
        let kind = event.r#type.as_str();
        let phase = after.phase;
        let by_children = event.data.get("cause").is_some_and(|cause| cause.as_str() == Some("children"));
        let wanted = match phase {
            LifecyclePhase::Active => WaitpointState::Pending,
            LifecyclePhase::Suspended => WaitpointState::Active,
            // An attempt that waits for children or a budget keeps its waitpoints.
            LifecyclePhase::Runnable if after.continues && (kind != "execution.resumed" || by_children) => {
                WaitpointState::Pending
            }
            _ => {
                require!(
                    29,
                    after.waitpoints.is_empty(),
                    "{id} is {phase} and has open waitpoints: {:?}",
                    after.waitpoints
                );
                WaitpointState::Closed
            }
        };
        require!(
            29,
            after.waitpoints.iter().all(|open| open.state == wanted),
            "{id} is {phase} and its waitpoints are {:?}",
            after.waitpoints
        );
        let opens = matches!(kind, "waitpoint.created" | "execution.suspended" | "execution.escalated");
        for open in &after.waitpoints {
            let known = self.waits.points.get(&open.waitpoint_id);
            require!(29, opens || known.is_some_and(|point| point.open), "{kind} opened {} of {id}", open.waitpoint_id);
        }
        let expired = kind == "waitpoint.expired" && before.phase != LifecyclePhase::Suspended;
        for (waitpoint, point) in &mut self.waits.points {
            let open = after.waitpoints.iter().any(|open| open.waitpoint_id == *waitpoint);
            if point.open && !open {
                point.open = false;
                let late = point.expires_at.is_some_and(|at| at <= now);
                require!(15, kind != "waitpoint.expired" || late, "{waitpoint} of {id} expired before its time");
                // A signal that arrived in time counts for a suspend, even if the waitpoint is closed by then.
                if !expired && kind != "execution.suspended" && kind != "execution.already_satisfied" {
                    point.early.clear();
                }
            }
        }
        let more = after.past_suspensions.len() as i64 - before.past_suspensions.len() as i64;
        let ends = before.phase == LifecyclePhase::Suspended && phase != LifecyclePhase::Suspended;
        if before.past_suspensions.len() < 32 {
            require!(28, more == i64::from(ends), "{kind} filed {more} suspensions of {id}");
        }
        if ends {
            let suspension = before.suspension.as_ref().map(|suspension| suspension.suspension_id);
            let filed = after.past_suspensions.last();
            require!(
                28,
                filed.map(|past| past.suspension_id) == suspension && filed.is_some_and(|past| past.ended_at == now),
                "{id} ended {suspension:?}, filed {filed:?}"
            );
            let causes = after.past_suspensions.iter().filter(|past| Some(past.suspension_id) == suspension).count();
            require!(28, causes == 1, "{suspension:?} of {id} has {causes} causes");
        }
        if kind == "execution.suspended" {
            self.waits.time_left = before.attempt_deadline_at.map(|at| (at - now).max(1));
        }
        if kind == "execution.resumed" && !by_children {
            self.check_cause(id, event, after, now)?;
        }
        if kind == "execution.escalated" {
            self.check_escalation(id, after, now)?;
        }
        let running = after.attempts.last().is_some_and(|attempt| attempt.ended_at.is_none());
        if !running {
            let ledger = &mut self.waits;
            (ledger.woken, ledger.satisfied, ledger.continuation, ledger.wait) = (None, None, None, None);
            ledger.points.values_mut().for_each(|point| point.early.clear());
        }
        for attempt in &after.attempts {
            let written = self.waits.frame_count(attempt.index);
            require!(
                36,
                attempt.frames == written,
                "attempt {} of {id} counts {} frames, {written} were written",
                attempt.index,
                attempt.frames
            );
        }
        Ok(())
    }

    /// A resume has one cause, and it is the right one.
    fn check_cause(&mut self, id: ExecutionId, event: &Event, after: &Execution, now: i64) -> Check {
        let cause = event.data.get("cause").and_then(EventValue::as_str).unwrap_or("");
        let filed = after.past_suspensions.last().map_or("", |past| past.cause.as_str());
        require!(28, filed == cause, "{id} was resumed by {cause}, filed is {filed}");
        require!(9, after.continues, "{id} was resumed and would start a new attempt");
        let Some(wait) = self.waits.wait.take() else {
            return Err(super::Violation::new(28, format!("{id} was resumed and did not wait")));
        };
        match cause {
            "timeout" => {
                let due = wait.until.is_some_and(|at| at <= now) || after.waitpoints.is_empty();
                require!(15, due, "{id} was resumed by a timeout at {now}, it was to wait until {:?}", wait.until);
                self.waits.signals.push(Arrival {
                    signal_id: SignalId::from_uuid(*wait.id.as_uuid()),
                    name: "timeout".to_owned(),
                    waitpoint: None,
                    approver: None,
                    payload: None,
                    answer: "",
                });
                let last = self.waits.signals.len() - 1;
                self.waits.woken = Some((wait.id, ResumeCause::Timeout, vec![last]));
            }
            "operator" => self.waits.woken = Some((wait.id, ResumeCause::Operator, Vec::new())),
            // The signal is recorded after the event was checked.
            _ => self.waits.wait = Some(wait),
        }
        Ok(())
    }

    fn check_escalation(&mut self, id: ExecutionId, after: &Execution, now: i64) -> Check {
        let attempt = self.attempts - 1;
        let Some(wait) = &mut self.waits.wait else {
            return Err(super::Violation::new(28, format!("{id} was escalated and does not wait")));
        };
        require!(15, wait.behavior == TimeoutBehavior::Escalate, "{id} was escalated against its behavior");
        let due = wait.until.is_none_or(|at| at <= now);
        require!(15, due, "{id} was escalated at {now}, it was to wait until {:?}", wait.until);
        wait.until = None;
        let (review, suspension) = (wait.review, wait.id);
        let open =
            after.waitpoints.iter().any(|open| Some(open.waitpoint_id) == review && open.key == "operator_review");
        require!(29, open, "{id} was escalated, but no waitpoint is open: {:?}", after.waitpoints);
        let review = review.expect("it is open");
        let new = NewWaitpoint::new(review, "operator_review".to_owned(), Vec::new());
        self.waits.open_point(&new, attempt, Some(suspension), true, now);
        Ok(())
    }
}

impl Point {
    fn holder(&self, digest: &str) -> Option<&Holder> {
        self.tokens.iter().find(|holder| holder.digest == digest)
    }
}

impl Ledger {
    fn satisfying(&self, condition: &Condition, offered: &[usize]) -> Vec<usize> {
        self.evaluate(condition, offered).satisfying().iter().map(|at| offered[*at]).collect()
    }

    fn deliver(&self, seen: &Execution, call: &DeliverSignal, now: i64) -> Verdict {
        const NOT_OPEN: Verdict = Refuse("waitpoint_not_open");
        let Some(point) = self.points.get(&call.waitpoint_id) else { return NOT_OPEN };
        let Some(holder) = point.holder(&call.token_digest) else { return NOT_OPEN };
        if let Some(known) = self.known(call.signal_id) {
            return if known.waitpoint == Some(call.waitpoint_id) { Quiet(known.answer) } else { NOT_OPEN };
        }
        let key = call.idempotency_key.clone().map(|key| (call.waitpoint_id, holder.approver.clone(), key));
        if key.and_then(|key| self.keys.get(&key)).is_some_and(|(_, at)| at + KEY_TTL_MS > now) {
            return Quiet("Duplicate");
        }
        let takes = match seen.phase {
            LifecyclePhase::Active => point.suspension.is_none(),
            // It waits for its children, and so do its waitpoints.
            LifecyclePhase::Runnable if seen.continues => point.suspension.is_none(),
            LifecyclePhase::Suspended => point.suspension == self.wait.as_ref().map(|wait| wait.id),
            _ => false,
        };
        let current = seen.attempts.last().is_some_and(|attempt| attempt.index == point.attempt);
        let in_time = point.expires_at.is_none_or(|at| now < at);
        if !point.open || !takes || !current || !in_time || holder.uses_left == Some(0) {
            return NOT_OPEN;
        }
        if point.allowed.as_ref().is_some_and(|names| !names.contains(&call.name)) {
            return Refuse("signal_not_allowed");
        }
        if seen.phase != LifecyclePhase::Suspended {
            return Emit("Accepted", &["waitpoint.signalled"]);
        }
        let mut after = self.clone();
        after.signals.push(arrival(call, holder.approver.clone(), ""));
        let wait = self.wait.as_ref().expect("it is suspended");
        let offered: Vec<usize> = wait.offered.iter().copied().chain([self.signals.len()]).collect();
        if point.review || after.evaluate(&wait.condition, &offered).satisfied {
            Emit("TriggeredResume", &["execution.resumed"])
        } else {
            Emit("Accepted", &["waitpoint.signalled"])
        }
    }

    /// A signal was accepted.
    fn take(&mut self, call: &DeliverSignal, answer: &'static str, now: i64) {
        let number = self.signals.len();
        let point = self.points.get_mut(&call.waitpoint_id).expect("it was accepted");
        let holder =
            point.tokens.iter_mut().find(|holder| holder.digest == call.token_digest).expect("it was accepted");
        holder.uses_left = holder.uses_left.map(|left| left - 1);
        let (approver, review) = (holder.approver.clone(), point.review);
        if point.suspension.is_none() {
            point.early.push(number);
        }
        if let Some(key) = &call.idempotency_key {
            self.keys.insert((call.waitpoint_id, approver.clone(), key.clone()), (call.signal_id, now));
        }
        self.signals.push(arrival(call, approver, answer));
        if let Some(wait) = &mut self.wait {
            wait.offered.push(number);
        }
        if answer == "TriggeredResume" {
            let wait = self.wait.take().expect("it waited");
            let numbers = if review { vec![number] } else { self.satisfying(&wait.condition, &wait.offered) };
            self.woken = Some((wait.id, ResumeCause::Signal, numbers));
        }
    }
}

fn arrival(call: &DeliverSignal, approver: Option<String>, answer: &'static str) -> Arrival {
    Arrival {
        signal_id: call.signal_id,
        name: call.name.clone(),
        waitpoint: Some(call.waitpoint_id),
        approver,
        payload: call.payload.clone(),
        answer,
    }
}

fn sequence_of(id: &str) -> i64 {
    id.rsplit_once('-').and_then(|(_, number)| number.parse().ok()).unwrap_or(-1)
}

/// The condition of a list of nodes in pre-order.
fn condition_of(nodes: &[ConditionNode]) -> Condition {
    if nodes.is_empty() { Condition::default() } else { subtree(nodes, 0) }
}

fn subtree(nodes: &[ConditionNode], at: usize) -> Condition {
    let node = &nodes[at];
    let below = || {
        let children = nodes.iter().enumerate().filter(|(_, child)| child.parent == Some(at as i64));
        children.map(|(child, _)| subtree(nodes, child)).collect()
    };
    match node.op {
        ConditionOp::Signal => Condition::Signal { name: node.name.clone(), waitpoint: node.waitpoint.clone() },
        ConditionOp::AnyOf => Condition::AnyOf(below()),
        ConditionOp::AllOf => Condition::AllOf(below()),
        ConditionOp::Count => Condition::Count {
            n: node.n.unwrap_or(1) as u32,
            over: match node.over {
                Some(CountOver::Approvers) => Over::Approvers,
                Some(CountOver::Waitpoints) => Over::Waitpoints,
                _ => Over::Signals,
            },
            of: Some(Matcher { name: node.name.clone(), waitpoint: node.waitpoint.clone() }),
        },
    }
}
