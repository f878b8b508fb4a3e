//! Waitpoints and their signals: who may send, what counts, and the reply to a repeated signal.

use std::collections::BTreeSet;

use ff_core::types::{ExecutionId, WaitpointId};
use ff_script::generated::{
    CloseWaitpoint, CloseWaitpointReply, CreateWaitpoint, CreateWaitpointReply, DeliverSignal, DeliverSignalReply,
    DescribeWaitpoint, DescribeWaitpointReply, ExecutionWaitpoints, ExecutionWaitpointsReply, ListWaitpoints,
    ListWaitpointsReply, ReadSignals, ReadSignalsReply, ReissueToken, ReissueTokenReply, ResumeCause, Signal,
    SignalEffect, Waitpoint as View, WaitpointPosition, WaitpointState,
};

use super::execution::{Execution, Stage};
use super::suspend::new_waitpoint_problem;
use super::waits::{Heard, TokenState, Waitpoint};
use super::{Answer, Model, Refusal, invalid, refused};

/// How long the idempotency key of a signal is kept.
const KEY_TTL_MS: i64 = 86_400_000;

/// Signals of one page.
const PAGE: usize = 256;

impl Model {
    /// A waitpoint with its execution.
    pub fn waitpoint(&self, id: WaitpointId) -> Option<(&Execution, &Waitpoint)> {
        self.executions.values().find_map(|execution| Some((execution, execution.waits.known.get(&id)?)))
    }

    pub fn create_waitpoint(&mut self, call: &CreateWaitpoint) -> Answer<CreateWaitpointReply> {
        let (id, now, new) = (call.execution_id, self.now, &call.waitpoint);
        self.live(id, &call.fence)?;
        if let Some((owner, known)) = self.waitpoint(new.waitpoint_id) {
            if owner.id != id || known.key != new.key {
                return Err(invalid("waitpoint.waitpoint_id", "is taken"));
            }
            return Ok(CreateWaitpointReply::Created { expires_at: known.expires_at, replayed: true });
        }
        let waits = &self.executions[&id].waits;
        let keys: BTreeSet<&str> = waits.open.iter().map(|w| waits.known[w].key.as_str()).collect();
        if let Some((field, problem)) = new_waitpoint_problem(new, &keys, waits.open.len()) {
            return Err(invalid(&format!("waitpoint.{field}"), &problem));
        }
        if new.tokens.is_empty() {
            return Err(invalid("waitpoint.tokens", "must hold a token"));
        }
        self.edit(id, |execution| {
            let attempt = execution.running().expect("its lease lives").index;
            execution.waits.open(new, false, None, attempt, now);
        });
        Ok(CreateWaitpointReply::Created { expires_at: new.expires_in_ms.map(|ms| now + ms), replayed: false })
    }

    pub fn close_waitpoint(&mut self, call: &CloseWaitpoint) -> Answer<CloseWaitpointReply> {
        let (id, now) = (call.execution_id, self.now);
        self.live(id, &call.fence)?;
        let Some(known) = self.executions[&id].waits.known.get(&call.waitpoint_id) else {
            return Err(not_found(call.waitpoint_id));
        };
        if known.state == WaitpointState::Closed {
            if !known.early.is_empty() {
                self.edit(id, |execution| execution.waits.forget_answered(Some(call.waitpoint_id)));
            }
            return Ok(CloseWaitpointReply::Closed { replayed: true });
        }
        self.edit(id, |execution| execution.waits.close("closed", now, |w, _| w == call.waitpoint_id));
        Ok(CloseWaitpointReply::Closed { replayed: false })
    }

    pub fn deliver(&mut self, call: &DeliverSignal) -> Answer<DeliverSignalReply> {
        let (id, now) = (call.execution_id, self.now);
        let not_open = || refused("waitpoint_not_open", &[]);
        let execution = self.get(id).map_err(|_| not_open())?;
        let waitpoint = execution.waits.known.get(&call.waitpoint_id).ok_or_else(not_open)?;
        let token = waitpoint.tokens.iter().find(|token| token.digest == call.token_digest).ok_or_else(not_open)?;
        if let Some(heard) = execution.waits.ids.get(&call.signal_id) {
            let signal_id = call.signal_id;
            return match heard.effect {
                _ if heard.waitpoint != call.waitpoint_id => Err(not_open()),
                Some(effect) => Ok(DeliverSignalReply::Accepted { effect, signal_id }),
                None => Ok(DeliverSignalReply::TriggeredResume { signal_id }),
            };
        }
        let key = call.idempotency_key.clone().map(|key| (call.waitpoint_id, token.approver.clone(), key));
        if let Some((signal_id, at)) = key.as_ref().and_then(|key| execution.waits.keys.get(key))
            && at + KEY_TTL_MS > now
        {
            return Ok(DeliverSignalReply::Duplicate { signal_id: *signal_id });
        }
        if !takes_signals(execution, waitpoint, now) || token.uses_left == Some(0) {
            return Err(not_open());
        }
        if waitpoint.allowed.as_ref().is_some_and(|names| !names.contains(&call.name)) {
            let detail = [("field", Some("name".to_owned())), ("name", Some(call.name.clone()))];
            return Err(refused("signal_not_allowed", &detail));
        }
        let signal = Signal {
            waitpoint_id: Some(call.waitpoint_id),
            waitpoint_key: Some(waitpoint.key.clone()),
            approver: token.approver.clone(),
            payload: call.payload.clone(),
            payload_encoding: call.payload_encoding.clone(),
            category: call.category.clone(),
            source: call.source.clone(),
            source_identity: call.source_identity.clone(),
            correlation_id: call.correlation_id.clone(),
            ..Signal::new(String::new(), call.signal_id, call.name.clone(), now)
        };
        let (effect, numbers) = self.edit(id, |execution| {
            let counted = count(execution, call, signal, now);
            let heard = Heard { waitpoint: call.waitpoint_id, effect: counted.0 };
            execution.waits.ids.insert(call.signal_id, heard);
            if let Some(key) = key {
                execution.waits.keys.insert(key, (call.signal_id, now));
            }
            counted
        });
        let signal_id = call.signal_id;
        Ok(match effect {
            Some(effect) => DeliverSignalReply::Accepted { effect, signal_id },
            None => {
                self.wake(id, ResumeCause::Signal, numbers, None);
                DeliverSignalReply::TriggeredResume { signal_id }
            }
        })
    }

    pub fn reissue(&mut self, call: &ReissueToken) -> Answer<ReissueTokenReply> {
        let (id, now) = (call.execution_id, self.now);
        let found = self.waitpoint(call.waitpoint_id).filter(|(owner, _)| owner.id == id);
        let Some((_, waitpoint)) = found else { return Err(not_found(call.waitpoint_id)) };
        if waitpoint.state == WaitpointState::Closed || waitpoint.expires_at.is_some_and(|at| at <= now) {
            return Err(refused("waitpoint_not_open", &[]));
        }
        let (expires_at, uses, key) = (waitpoint.expires_at, waitpoint.uses, waitpoint.key.clone());
        let token = waitpoint.tokens.iter().position(|token| token.approver == call.approver);
        if token.is_none() && !waitpoint.tokens.is_empty() {
            return Err(invalid("approver", "is not an approver of this waitpoint"));
        }
        if let Some(same) = token.map(|at| &waitpoint.tokens[at]).filter(|token| token.digest == call.digest) {
            return Ok(ReissueTokenReply::Reissued { expires_at, uses_left: same.uses_left });
        }
        let uses_left = self.edit(id, |execution| {
            execution.note("reissue_token", &call.actor, Some(&key), now);
            let tokens = &mut execution.waits.known.get_mut(&call.waitpoint_id).expect("found above").tokens;
            let at = token.unwrap_or_else(|| {
                let first = TokenState {
                    digest: String::new(),
                    approver: call.approver.clone(),
                    uses_left: uses,
                    answered: false,
                };
                tokens.push(first);
                0
            });
            tokens[at].digest = call.digest.clone();
            tokens[at].uses_left
        });
        Ok(ReissueTokenReply::Reissued { expires_at, uses_left })
    }

    pub fn describe_waitpoint(&self, call: &DescribeWaitpoint) -> Answer<DescribeWaitpointReply> {
        let (owner, _) = self.waitpoint(call.waitpoint_id).ok_or_else(|| not_found(call.waitpoint_id))?;
        Ok(DescribeWaitpointReply::Found { waitpoint: view(owner, call.waitpoint_id) })
    }

    pub fn execution_waitpoints(&self, call: &ExecutionWaitpoints) -> Answer<ExecutionWaitpointsReply> {
        let execution = self.get(call.execution_id)?;
        let all = execution.waits.closed.iter().chain(&execution.waits.open);
        Ok(ExecutionWaitpointsReply::Found { waitpoints: all.map(|w| view(execution, *w)).collect() })
    }

    pub fn list_waitpoints(&self, call: &ListWaitpoints) -> Answer<ListWaitpointsReply> {
        let mut all: Vec<(i64, String, ExecutionId, WaitpointId)> = self
            .executions
            .values()
            .flat_map(|e| {
                e.waits.open.iter().map(|w| (e.waits.known[w].created_at, w.to_string(), e.id, *w)).collect::<Vec<_>>()
            })
            .collect();
        all.sort();
        let limit = call.limit as usize;
        let after = call.after.as_ref();
        let here = all.iter().filter(|(at, w, _, _)| {
            after.is_some_and(|after| *at == after.created_at && *w > after.waitpoint_id.to_string())
        });
        let later = all.iter().filter(|(at, _, _, _)| after.is_none_or(|after| *at > after.created_at));
        let entries: Vec<_> = here.chain(later.take(limit + 1)).collect();
        let (mut items, mut last) = (Vec::new(), None);
        for (created_at, _, id, waitpoint_id) in &entries {
            if items.len() >= limit {
                return Ok(ListWaitpointsReply::Page { items, last, more: true });
            }
            let execution = &self.executions[id];
            if call.namespace.as_ref().is_none_or(|namespace| *namespace == execution.said.namespace) {
                items.push(view(execution, *waitpoint_id));
            }
            last = Some(WaitpointPosition { created_at: *created_at, waitpoint_id: *waitpoint_id });
        }
        Ok(ListWaitpointsReply::Page { items, last, more: entries.len() > limit })
    }

    pub fn read_signals(&self, call: &ReadSignals) -> Answer<ReadSignalsReply> {
        let waits = &self.get(call.execution_id)?.waits;
        let place = |id: &str| {
            let (ms, number) = id.split_once('-').expect("an id is two numbers");
            (ms.parse::<i64>().expect("a number"), number.parse::<i64>().expect("a number"))
        };
        let all: Vec<Signal> = if call.resume_only {
            let satisfied = waits.satisfied.as_ref().map(|(_, numbers)| numbers);
            let numbers = satisfied.or(waits.woken.as_ref().map(|(_, _, numbers)| numbers));
            let after = call.after.as_ref().map_or(0, |after| place(after).1);
            waits.picked(numbers.map_or(&[], Vec::as_slice)).into_iter().filter(|s| place(&s.id).1 > after).collect()
        } else {
            let after = call.after.as_ref().map_or((0, 0), |after| place(after));
            waits.signals.iter().filter(|s| place(&s.id) > after).cloned().collect()
        };
        let limit = PAGE.min(call.limit as usize);
        Ok(ReadSignalsReply::Page { more: all.len() > limit, signals: all.into_iter().take(limit).collect() })
    }
}

fn not_found(id: WaitpointId) -> Refusal {
    refused("waitpoint_not_found", &[("waitpoint_id", Some(id.to_string()))])
}

/// It is pending under the attempt that created it, or part of the current wait.
fn takes_signals(execution: &Execution, waitpoint: &Waitpoint, now: i64) -> bool {
    if waitpoint.expires_at.is_some_and(|at| at <= now) {
        return false;
    }
    match (&execution.stage, waitpoint.state) {
        (Stage::Running(running), WaitpointState::Pending) => running.index == waitpoint.attempt,
        (Stage::Suspended(suspended), WaitpointState::Active) => waitpoint.suspension == Some(suspended.wait.id),
        _ => false,
    }
}

/// Uses the token and stores the signal. Returns its effect; or `None` and the signals that end the wait.
fn count(
    execution: &mut Execution,
    call: &DeliverSignal,
    signal: Signal,
    now: i64,
) -> (Option<SignalEffect>, Vec<usize>) {
    let number = execution.waits.arrive(signal, now);
    let waitpoint = execution.waits.known.get_mut(&call.waitpoint_id).expect("found above");
    waitpoint.signals += 1;
    let token =
        waitpoint.tokens.iter_mut().find(|token| token.digest == call.token_digest).expect("the token was found");
    token.uses_left = token.uses_left.map(|left| left - 1);
    token.answered = true;
    if waitpoint.state == WaitpointState::Pending {
        waitpoint.early.push(number);
        return (Some(SignalEffect::Buffered), Vec::new());
    }
    if waitpoint.review {
        return (None, vec![number]);
    }
    let Stage::Suspended(suspended) = &mut execution.stage else {
        unreachable!("an active waitpoint is part of a wait")
    };
    suspended.wait.offered.push(number);
    let wait = &suspended.wait;
    let evaluation = execution.waits.evaluate(wait);
    if evaluation.satisfied {
        return (None, evaluation.satisfying().iter().map(|at| wait.offered[*at]).collect());
    }
    let counted = evaluation.taken.iter().flatten().any(|at| *at == wait.offered.len() - 1);
    (Some(if counted { SignalEffect::Counted } else { SignalEffect::Unused }), Vec::new())
}

fn view(execution: &Execution, id: WaitpointId) -> View {
    let waitpoint = &execution.waits.known[&id];
    let current = execution.suspended().map(|s| &s.wait).filter(|wait| waitpoint.suspension == Some(wait.id));
    View {
        waitpoint_id: id,
        execution_id: execution.id,
        namespace: execution.said.namespace.clone(),
        lane: execution.lane.clone(),
        kind: execution.said.kind.clone(),
        key: waitpoint.key.clone(),
        state: waitpoint.state,
        suspension_id: waitpoint.suspension,
        reason: current.map(|wait| wait.reason),
        created_at: waitpoint.created_at,
        expires_at: waitpoint.expires_at,
        closed_at: waitpoint.closed.map(|(at, _)| at),
        closed_reason: waitpoint.closed.map(|(_, why)| why.to_owned()),
        allowed_signals: waitpoint.allowed.clone(),
        approvers: waitpoint.approvers(),
        signals: waitpoint.signals,
        condition: current.map_or_else(Vec::new, |wait| execution.waits.progress(wait)),
    }
}
