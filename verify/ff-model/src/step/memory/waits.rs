//! How steps about waits and streams become calls.

use ff_core::types::{AttemptId, ExecutionId, LeaseId, SignalId, SuspensionId, WaitpointId};
use ff_script::Bytes;
use ff_script::generated::{
    AppendFrames, ClaimExecutions, CloseWaitpoint, CreateWaitpoint, DeliverSignal, DescribeWaitpoint,
    ExecutionWaitpoints, FailSuspension, Fence, FollowStream, FrameMode, LaneState, ListWaitpoints, NewFrame,
    NewSummary, NewWaitpoint, NextDue, ReadSignals, ReadStream, ReadSummary, ReissueToken, ResumeExecution,
    StreamOptions, Submission, SubmitExecution, SuspendExecution, SuspensionReason, TimeoutBehavior, Token,
    WaitpointPosition,
};
use uuid::Uuid;

use super::{Memory, text};
use crate::model::{Execution, Model};
use crate::op::Op;
use crate::step::wait::{APPROVERS, KEYS, NAMES, Opening, Sending, Waiting, Writing};
use crate::step::{Act, Pick, Proof};

impl Memory {
    /// Returns a call that most steps need first: something must run, or must wait.
    fn first(&mut self, act: &Act, model: &Model) -> Option<Op> {
        let (pick, needs_waiter) = match act {
            Act::Suspend { of, .. } | Act::CreateWaitpoint { of, .. } | Act::Append { of, .. } => (of, false),
            Act::Signal { which, .. } | Act::Reissue { which, .. } | Act::DescribeWaitpoint { which } => (which, true),
            Act::Resume { of } | Act::FailSuspension { of } => (of, true),
            _ => return None,
        };
        if pick.0 % 16 == 0 || (needs_waiter && model.executions.values().any(|e| !e.waits.open.is_empty())) {
            return None;
        }
        let at_work = model.executions.values().find(|e| e.running().is_some_and(|r| r.until > model.now));
        if let Some(execution) = at_work {
            if !needs_waiter {
                return None;
            }
            let fence = *execution.fence().expect("it runs");
            let opening = Opening { approvers: 3, ..Opening::plain((pick.0 % 3) as u8) };
            let waitpoint = self.opened(&opening);
            return Some(if pick.0 % 4 == 1 {
                CreateWaitpoint::new(execution.id, fence, waitpoint).into()
            } else {
                let waiting = Waiting::plain(pick.0);
                let call = self.suspend(&waiting, execution.id, fence, model);
                SuspendExecution { waitpoints: vec![waitpoint], ..call }.into()
            });
        }
        let open_lane =
            |e: &Execution| model.lanes.get(&e.path()).is_some_and(|lane| lane.definition.state == LaneState::Active);
        let free = |e: &&Execution| e.is_eligible() && e.may_start(model.now) && !e.needs_admission() && open_lane(e);
        let ready = model.executions.values().filter(free).max_by_key(|e| e.paused().is_some());
        let Some(ready) = ready else {
            let id = ExecutionId::from_uuid(self.mint());
            let body = "0".repeat(32);
            let stream = (pick.0 % 4 > 1).then_some(StreamOptions { max_frames: Some(3) });
            let plain = Submission::new(id, "other".to_owned(), "main".to_owned(), "plain".to_owned(), body);
            return Some(SubmitExecution { submission: Submission { stream, ..plain } }.into());
        };
        let call = ClaimExecutions {
            capabilities: super::capabilities(7),
            kinds: None,
            attempt_ids: vec![AttemptId::from_uuid(self.mint()), AttemptId::from_uuid(self.mint())],
            lease_ids: vec![self.lease(None), self.lease(None)],
            instance: super::instance((pick.0 % 3) as u8),
            lane: ready.lane.clone(),
            lease_ttl_ms: 60_000,
            max: 2,
            namespace: ready.said.namespace.clone(),
            worker_id: "model".to_owned(),
        };
        Some(call.into())
    }

    /// A running execution and its fence.
    fn at_work(&mut self, of: Pick, proof: Proof, model: &Model) -> (ExecutionId, Fence) {
        let now = model.now;
        let at_work = model.executions.values().filter(|e| e.running().is_some_and(|r| r.until > now));
        let at_work: Vec<&Execution> = at_work.collect();
        if of.0.is_multiple_of(8) || at_work.is_empty() || !matches!(proof, Proof::Current) {
            return self.leased(of, proof, model);
        }
        // Prefers one that already has a signal.
        let early = |e: &&&Execution| e.waits.open.iter().any(|w| !e.waits.known[w].early.is_empty());
        let signalled = at_work.iter().find(early).filter(|_| !of.0.is_multiple_of(4));
        let execution = signalled.unwrap_or(&at_work[usize::from(of.0 / 8) % at_work.len()]);
        (execution.id, *execution.fence().expect("it runs"))
    }

    pub(super) fn wait_op(&mut self, act: &Act, model: &Model) -> Option<Op> {
        let actor = "ops".to_owned();
        if let Some(first) = self.first(act, model) {
            return Some(first);
        }
        Some(match act {
            Act::Suspend { of, proof, waiting } => {
                let (execution_id, fence) = self.at_work(*of, *proof, model);
                let call = self.suspend(waiting, execution_id, fence, model);
                self.suspends.push(call.clone());
                call.into()
            }
            Act::SuspendAgain { which } => {
                match self.suspends.iter().rev().nth(usize::from(which.0) % self.suspends.len().clamp(1, 6)) {
                    Some(call) => call.clone().into(),
                    None => NextDue {}.into(),
                }
            }
            Act::CreateWaitpoint { of, proof, opening } => {
                let (execution_id, fence) = self.at_work(*of, *proof, model);
                CreateWaitpoint::new(execution_id, fence, self.opened(opening)).into()
            }
            Act::CloseWaitpoint { of, proof, which } => {
                let (execution_id, fence) = self.at_work(*of, *proof, model);
                let open = model.executions.get(&execution_id).map_or(&[][..], |e| &e.waits.open);
                let waitpoint_id =
                    open.first().copied().filter(|_| which.0 % 4 != 0).unwrap_or_else(|| self.some_waitpoint(*which));
                CloseWaitpoint { execution_id, fence, waitpoint_id }.into()
            }
            Act::Signal { which, sending } => {
                let call = self.signal(*which, sending, model);
                self.signals.push(call.clone());
                call.into()
            }
            Act::SignalAgain { which, change } => {
                let known =
                    self.signals.iter().rev().nth(usize::from(which.0) % self.signals.len().clamp(1, 8)).cloned();
                let Some(mut call) = known else { return Some(NextDue {}.into()) };
                match change {
                    // Only the key, or only the id, is known.
                    0 => call.signal_id = SignalId::from_uuid(self.mint()),
                    1 => call.idempotency_key = Some(format!("key {}", which.0 % 3)),
                    2 => call.waitpoint_id = self.some_waitpoint(*which),
                    _ => {}
                }
                call.into()
            }
            Act::Resume { of } => {
                let execution_id = self.find(*of, model, |e| e.suspended().is_some());
                ResumeExecution { actor, execution_id, reason: text(Some((of.0 % 3) as u8)) }.into()
            }
            Act::FailSuspension { of } => {
                let execution_id = self.find(*of, model, |e| e.suspended().is_some());
                FailSuspension { actor, category: "refused".to_owned(), execution_id, reason: "no".to_owned() }.into()
            }
            Act::Reissue { which, approver } => self.reissue(*which, *approver, model).into(),
            Act::ListWaitpoints { after, limit, everywhere } => {
                let after = after.map(|pick| {
                    let waitpoint_id = self.waitpoint(pick, model).1;
                    let created_at = model.waitpoint(waitpoint_id).map_or(model.now, |(_, w)| w.created_at);
                    WaitpointPosition { created_at, waitpoint_id }
                });
                let namespace = (!everywhere).then(|| "default".to_owned());
                ListWaitpoints { after, limit: *limit, namespace }.into()
            }
            Act::DescribeWaitpoint { which } => {
                DescribeWaitpoint { waitpoint_id: self.waitpoint(*which, model).1 }.into()
            }
            Act::ExecutionWaitpoints { of } => {
                let execution_id = self.find(*of, model, |e| !e.waits.known.is_empty());
                ExecutionWaitpoints { execution_id }.into()
            }
            Act::ReadSignals { of, resume_only, after, limit } => {
                let execution_id = self.find(*of, model, |e| !e.waits.signals.is_empty());
                let signals = model.executions.get(&execution_id).map_or(&[][..], |e| &e.waits.signals);
                let after = after.and_then(|pick| signals.get(usize::from(pick.0) % signals.len().max(1)));
                let after = after.map(|signal| signal.id.clone());
                ReadSignals { after, ..ReadSignals::new(execution_id, *limit, *resume_only) }.into()
            }
            _ => return None,
        })
    }

    pub(super) fn stream_op(&mut self, act: &Act, model: &Model) -> Option<Op> {
        if let Some(first) = self.first(act, model) {
            return Some(first);
        }
        Some(match act {
            Act::Append { of, proof, writing } => {
                let (execution_id, fence) = self.at_work(*of, *proof, model);
                let call = AppendFrames { fence, ..self.frames(writing, execution_id, model) };
                self.appends.push(call.clone());
                call.into()
            }
            Act::AppendAgain { which } => {
                match self.appends.iter().rev().nth(usize::from(which.0) % self.appends.len().clamp(1, 6)) {
                    Some(call) => call.clone().into(),
                    None => NextDue {}.into(),
                }
            }
            Act::ReadStream { of, index, from, to, after, limit } => {
                let execution_id = self.find(*of, model, |e| !e.streams.of.is_empty());
                let frames = model
                    .executions
                    .get(&execution_id)
                    .and_then(|e| e.streams.of.get(&index.or(e.latest_attempt())?))
                    .map_or(&[][..], |stream| &stream.frames);
                let id = |pick: Pick| match frames.get(usize::from(pick.0) % (frames.len() + 1)) {
                    Some(frame) => frame.id.clone(),
                    // A time near the last frames, as a reader writes it, with or without a number.
                    None => {
                        let number = if pick.0.is_multiple_of(2) { u64::MAX } else { u64::from(pick.0) % 9 };
                        format!("{}-{number}", model.now - i64::from(pick.0 % 5) * 100)
                    }
                };
                let (first, last) = (from.map(id), to.map(id));
                let (first, after) = if *after { (None, first) } else { (first, None) };
                let limit = *limit;
                ReadStream { execution_id, after, attempt_index: *index, from: first, limit, to: last }.into()
            }
            Act::ReadSummary { of, index } => {
                let execution_id = self.find(*of, model, |e| !e.streams.of.is_empty());
                ReadSummary { attempt_index: *index, execution_id }.into()
            }
            Act::Follow { of } => FollowStream { execution_id: self.find(*of, model, |e| e.ended().is_none()) }.into(),
            _ => return None,
        })
    }

    /// Any earlier waitpoint id, or one that never existed.
    fn some_waitpoint(&self, pick: Pick) -> WaitpointId {
        let known = self.waitpoints.get(usize::from(pick.0) % (self.waitpoints.len() + 1));
        known.copied().unwrap_or_else(|| WaitpointId::from_uuid(Uuid::from_u64_pair(7, 7)))
    }

    /// A waitpoint and its execution; mostly one that accepts signals.
    fn waitpoint(&self, pick: Pick, model: &Model) -> (ExecutionId, WaitpointId) {
        let number = usize::from(pick.0);
        let open = model.executions.values().flat_map(|e| e.waits.open.iter().map(|w| (e.id, *w)));
        let open: Vec<(ExecutionId, WaitpointId)> = open.collect();
        if number % 8 != 0 && !open.is_empty() {
            return open[number / 8 % open.len()];
        }
        let id = self.some_waitpoint(pick);
        let owner = model.waitpoint(id).map(|(owner, _)| owner.id);
        (owner.unwrap_or_else(|| ExecutionId::from_uuid(Uuid::from_u64_pair(1, 1))), id)
    }

    fn digest(&mut self) -> String {
        self.minted += 1;
        format!("{:064x}", self.minted)
    }

    fn opened(&mut self, opening: &Opening) -> NewWaitpoint {
        let fresh = WaitpointId::from_uuid(self.mint());
        let id = opening.again.map_or(fresh, |pick| self.some_waitpoint(pick));
        let labels: Vec<Option<&str>> = match opening.approvers {
            0 => vec![None],
            8 => vec![],
            9 => vec![Some("ann"), Some("ann")],
            bits => (0..3).filter(|bit| bits >> bit & 1 == 1).map(|bit| Some(APPROVERS[bit])).collect(),
        };
        let tokens = labels
            .into_iter()
            .map(|label| Token { approver: label.map(str::to_owned), ..Token::new(self.digest()) })
            .collect::<Vec<_>>();
        self.tokens.extend(tokens.iter().map(|token| (id, token.digest.clone())));
        self.waitpoints.push(id);
        let allowed = (0..3).filter(|bit| opening.allowed >> bit & 1 == 1).map(|bit| NAMES[bit].to_owned());
        NewWaitpoint {
            expires_in_ms: opening.expires_in_ms,
            allowed_signals: Some(allowed.collect::<Vec<_>>()).filter(|names| !names.is_empty()),
            uses: opening.uses,
            ..NewWaitpoint::new(id, KEYS[usize::from(opening.key)].to_owned(), tokens)
        }
    }

    fn suspend(
        &mut self,
        waiting: &Waiting,
        execution_id: ExecutionId,
        fence: Fence,
        model: &Model,
    ) -> SuspendExecution {
        let mut new: Vec<NewWaitpoint> = waiting.new.iter().map(|opening| self.opened(opening)).collect();
        let otherwise = waiting.otherwise.as_ref().map(|opening| self.opened(opening));
        let open = model.executions.get(&execution_id).map_or(&[][..], |e| &e.waits.open);
        let answered = model.executions.get(&execution_id).map_or(&[][..], |e| &e.waits.answered);
        if !waiting.odd.is_multiple_of(8) {
            // Mostly unused keys.
            let taken = |key: &str| open.iter().any(|w| model.waitpoint(*w).is_some_and(|(_, w)| w.key == key));
            let mut free = KEYS.into_iter().filter(|key| !taken(key));
            new = new.into_iter().filter_map(|w| Some(NewWaitpoint { key: free.next()?.to_owned(), ..w })).collect();
        }
        let adopt = waiting.adopt.map(|bits| {
            let known = open.iter().chain(answered).enumerate().filter(|(at, _)| bits >> (at % 4) & 1 == 1);
            let mut ids: Vec<WaitpointId> = known.map(|(_, id)| *id).collect();
            if bits > 250 {
                ids.push(self.some_waitpoint(Pick(u16::from(bits))));
            }
            ids
        });
        let mut condition = waiting.condition.as_ref().map_or_else(Vec::new, super::super::wait::Tree::nodes);
        if let Some(last) = condition.last_mut() {
            match waiting.odd {
                0 => last.parent = None,
                1 => last.parent = Some(7),
                2 => last.n = None,
                3 => last.n = Some(2),
                4 => last.waitpoint = Some("nowhere".to_owned()),
                _ => {}
            }
        }
        let review = WaitpointId::from_uuid(self.mint());
        self.waitpoints.push(review);
        let suspension_id = SuspensionId::from_uuid(self.mint());
        let known = self.suspends.last().map(|call| call.suspension_id).filter(|_| waiting.odd == 5);
        SuspendExecution {
            adopt,
            otherwise,
            continuation: super::payload(waiting.continuation),
            review_waitpoint_id: (waiting.odd % 16 != 6).then_some(review),
            timeout_ms: waiting.timeout_ms,
            ..SuspendExecution::new(
                condition,
                execution_id,
                fence,
                SuspensionReason::ALL[usize::from(waiting.reason)],
                known.unwrap_or(suspension_id),
                TimeoutBehavior::ALL[usize::from(waiting.behavior)],
                new,
            )
        }
    }

    fn signal(&mut self, which: Pick, sending: &Sending, model: &Model) -> DeliverSignal {
        let (mut execution_id, waitpoint_id) = self.waitpoint(which, model);
        let number = usize::from(which.0 / 64);
        let tokens = model.waitpoint(waitpoint_id).map_or(&[][..], |(_, w)| &w.tokens);
        let current = tokens.get(number % tokens.len().max(1)).map(|token| token.digest.clone());
        let old = |same: bool| {
            let known = self.tokens.iter().filter(|(id, _)| (*id == waitpoint_id) == same).map(|(_, digest)| digest);
            let known: Vec<&String> = known.collect();
            known.get(number % known.len().max(1)).map(|digest| (*digest).clone())
        };
        let token = match sending.wrong {
            0 => old(true),
            1 => old(false),
            2 => Some("ab".repeat(32)),
            _ => current,
        };
        if sending.wrong == 3 {
            // Another execution that runs or waits.
            let right = execution_id;
            execution_id = self.find(Pick(which.0 | 1), model, |e| {
                e.id != right && (e.running().is_some() || e.suspended().is_some())
            });
        }
        // Mostly an allowed name.
        let allowed = model.waitpoint(waitpoint_id).and_then(|(_, w)| w.allowed.as_ref());
        let name = match allowed {
            Some(names) if sending.extras & 3 != 0 => names[usize::from(sending.name) % names.len()].clone(),
            _ => NAMES[usize::from(sending.name)].to_owned(),
        };
        let signal_id = SignalId::from_uuid(self.mint());
        let said = |bit: u8, text: &str| (sending.extras >> bit & 1 == 1).then(|| text.to_owned());
        DeliverSignal {
            payload: super::payload(sending.payload),
            payload_encoding: said(2, "raw"),
            category: said(3, "human"),
            source: said(4, "web"),
            // The caller's own claim of identity never counts.
            source_identity: said(5, APPROVERS[usize::from(sending.extras % 3)]),
            correlation_id: said(6, "c-1"),
            idempotency_key: sending.key.map(|key| format!("key {key}")),
            ..DeliverSignal::new(execution_id, name, signal_id, token.unwrap_or_else(|| "cd".repeat(32)), waitpoint_id)
        }
    }

    fn reissue(&mut self, which: Pick, approver: u8, model: &Model) -> ReissueToken {
        let (execution_id, waitpoint_id) = self.waitpoint(which, model);
        let tokens = model.waitpoint(waitpoint_id).map_or(&[][..], |(_, w)| &w.tokens);
        let known = tokens.get(usize::from(approver) % tokens.len().max(1));
        let label = if approver == 7 { Some("eve".to_owned()) } else { known.and_then(|token| token.approver.clone()) };
        let same = known.map(|token| token.digest.clone()).filter(|_| approver == 6);
        let digest = same.unwrap_or_else(|| self.digest());
        self.tokens.push((waitpoint_id, digest.clone()));
        ReissueToken { approver: label, ..ReissueToken::new("ops".to_owned(), digest, execution_id, waitpoint_id) }
    }

    /// Frames for the running attempt; the caller sets the fence.
    fn frames(&mut self, writing: &Writing, execution_id: ExecutionId, model: &Model) -> AppendFrames {
        let execution = model.executions.get(&execution_id);
        let stream = execution.and_then(|e| e.streams.of.get(&e.running()?.index));
        let (next, version) = stream.map_or((0, 0), |stream| (stream.next, stream.version));
        let frame = |number: usize| NewFrame {
            payload: super::payload(writing.payload.wrapping_add(number as u8)),
            payload_encoding: (number % 3 == 1).then(|| "raw".to_owned()),
            correlation_id: (number % 4 == 2).then(|| format!("c-{number}")),
            ..NewFrame::new(
                ["delta", "log"][number % 2].to_owned(),
                [FrameMode::Durable, FrameMode::Live, FrameMode::Summary, FrameMode::Durable]
                    [usize::from(writing.modes >> (number % 4 * 2) & 3)],
            )
        };
        let first_sequence = match writing.sequence {
            0 => None,
            1 => Some((next - 3).max(0)),
            2 => Some(next + 1),
            _ => Some(next),
        };
        let summary = match writing.summary {
            0 | 3.. => None,
            1 => Some((version - 1).max(0)),
            _ => Some(version),
        };
        let request_id = writing.request.map(|pick| {
            let again = (pick.0 % 3 == 0).then_some(pick);
            self.request(again)
        });
        let nobody = Fence {
            attempt_id: AttemptId::from_uuid(Uuid::nil()),
            lease_id: LeaseId::from_uuid(Uuid::nil()),
            lease_epoch: 0,
        };
        AppendFrames {
            first_sequence,
            request_id,
            summary: summary.map(|version| NewSummary {
                document: Bytes(format!("{{\"v\":{}}}", version + 1).into_bytes()),
                version,
            }),
            ..AppendFrames::new(execution_id, nobody, (0..writing.count).map(frame).collect())
        }
    }
}
