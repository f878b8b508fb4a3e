//! The waits of an execution: its waitpoints, its signals, and what its attempt gets when it goes on.

use std::collections::BTreeMap;

use ff_core::condition::{self, Arrived, Condition, Evaluation, Matcher, Over};
use ff_core::types::{SignalId, SuspensionId, WaitpointId};
use ff_script::Bytes;
use ff_script::generated::{
    ApproverState, ConditionNode, ConditionOp, ConditionProgress, CountOver, NewWaitpoint, OpenWaitpoint,
    PastSuspension, Resume, ResumeCause, Signal, SignalEffect, SuspensionReason, TimeoutBehavior, WaitpointState,
};

/// Closed waitpoints that an execution keeps.
const WAITPOINTS_KEPT: usize = 100;

/// Past suspensions that an execution keeps.
const SUSPENSIONS_KEPT: usize = 32;

/// All waiting state of one execution.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    pub known: BTreeMap<WaitpointId, Waitpoint>,
    /// In order of opening.
    pub open: Vec<WaitpointId>,
    /// In order of closing.
    pub closed: Vec<WaitpointId>,
    /// Waitpoints that expired before the suspend, but were signalled in time.
    pub answered: Vec<WaitpointId>,
    /// In order of arrival.
    pub signals: Vec<Signal>,
    pub ids: BTreeMap<SignalId, Heard>,
    /// By waitpoint, approver and idempotency key.
    pub keys: BTreeMap<(WaitpointId, Option<String>, String), (SignalId, i64)>,
    /// Why the attempt goes on, and by which signals.
    pub woken: Option<(SuspensionId, ResumeCause, Vec<usize>)>,
    pub continuation: Option<Bytes>,
    /// The suspend that needed no wait, and the signals that had already arrived.
    pub satisfied: Option<(SuspensionId, Vec<usize>)>,
    pub past: Vec<PastSuspension>,
}

/// A stored signal and its effect.
#[derive(Clone, Debug)]
pub struct Heard {
    pub waitpoint: WaitpointId,
    /// `None` if it resumed the execution.
    pub effect: Option<SignalEffect>,
}

/// Where signals for one execution arrive.
#[derive(Clone, Debug)]
pub struct Waitpoint {
    pub key: String,
    pub state: WaitpointState,
    pub attempt: i64,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub uses: Option<i64>,
    pub allowed: Option<Vec<String>>,
    /// Opened by an escalation: any signal resumes.
    pub review: bool,
    pub suspension: Option<SuspensionId>,
    pub tokens: Vec<TokenState>,
    pub closed: Option<(i64, &'static str)>,
    pub signals: i64,
    /// Signals that arrived before the suspend.
    pub early: Vec<usize>,
}

#[derive(Clone, Debug)]
pub struct TokenState {
    pub digest: String,
    pub approver: Option<String>,
    pub uses_left: Option<i64>,
    pub answered: bool,
}

/// The wait of a suspended execution.
#[derive(Clone, Debug)]
pub struct Suspension {
    pub id: SuspensionId,
    pub reason: SuspensionReason,
    pub since: i64,
    pub until: Option<i64>,
    pub behavior: TimeoutBehavior,
    pub condition: Condition,
    pub review: Option<WaitpointId>,
    /// The signals that arrived for it, in order of arrival.
    pub offered: Vec<usize>,
}

impl Waitpoint {
    pub fn approvers(&self) -> Vec<ApproverState> {
        let state = |token: &TokenState| ApproverState {
            approver: token.approver.clone(),
            uses_left: token.uses_left,
            answered: token.answered,
        };
        self.tokens.iter().map(state).collect()
    }
}

impl Waits {
    /// Opens a waitpoint. With a suspension it belongs to it; without one it is pending.
    pub fn open(&mut self, new: &NewWaitpoint, review: bool, suspension: Option<SuspensionId>, attempt: i64, now: i64) {
        let token = |token: &ff_script::generated::Token| TokenState {
            digest: token.digest.clone(),
            approver: token.approver.clone(),
            uses_left: new.uses,
            answered: false,
        };
        let waitpoint = Waitpoint {
            key: new.key.clone(),
            state: if suspension.is_some() { WaitpointState::Active } else { WaitpointState::Pending },
            attempt,
            created_at: now,
            expires_at: new.expires_in_ms.map(|ms| now + ms),
            uses: new.uses,
            allowed: new.allowed_signals.clone().filter(|names| !names.is_empty()),
            review,
            suspension,
            tokens: new.tokens.iter().map(token).collect(),
            closed: None,
            signals: 0,
            early: Vec::new(),
        };
        self.known.insert(new.waitpoint_id, waitpoint);
        self.open.push(new.waitpoint_id);
    }

    /// Closes the open waitpoints for which `fits` is true. Early signals of an expired one still count for a suspend.
    pub fn close(&mut self, why: &'static str, now: i64, fits: impl Fn(WaitpointId, &Waitpoint) -> bool) {
        for id in self.open.clone() {
            let waitpoint = self.known.get_mut(&id).expect("an open waitpoint is known");
            if !fits(id, waitpoint) {
                continue;
            }
            if waitpoint.state == WaitpointState::Pending && !waitpoint.early.is_empty() {
                if why == "expired" {
                    self.answered.push(id);
                } else {
                    waitpoint.early.clear();
                }
            }
            (waitpoint.state, waitpoint.closed) = (WaitpointState::Closed, Some((now, why)));
            self.open.retain(|open| *open != id);
            self.closed.push(id);
            if self.closed.len() > WAITPOINTS_KEPT {
                self.known.remove(&self.closed.remove(0));
            }
        }
    }

    pub fn forget_answered(&mut self, only: Option<WaitpointId>) {
        for id in self.answered.clone() {
            if only.is_none_or(|only| only == id) {
                self.answered.retain(|other| *other != id);
                if let Some(waitpoint) = self.known.get_mut(&id) {
                    waitpoint.early.clear();
                }
            }
        }
    }

    /// The first time at which one of them expires.
    pub fn due_at(&self) -> Option<i64> {
        self.open.iter().filter_map(|id| self.known[id].expires_at).min()
    }

    pub fn arrive(&mut self, mut signal: Signal, now: i64) -> usize {
        let last = self.signals.last().map_or(0, |last| time_of(&last.id));
        signal.id = format!("{}-{}", now.max(last), self.signals.len() + 1);
        signal.received_at = now;
        self.signals.push(signal);
        self.signals.len() - 1
    }

    pub fn picked(&self, numbers: &[usize]) -> Vec<Signal> {
        numbers.iter().map(|number| self.signals[*number].clone()).collect()
    }

    pub fn file(&mut self, wait: &Suspension, attempt_index: i64, now: i64, cause: &str, actor: Option<&str>) {
        self.past.push(PastSuspension {
            actor: actor.map(str::to_owned),
            ..PastSuspension::new(wait.id, wait.reason, attempt_index, wait.since, now, cause.to_owned())
        });
        if self.past.len() > SUSPENSIONS_KEPT {
            self.past.remove(0);
        }
    }

    /// No part of a wait outlives its attempt.
    pub fn forget(&mut self) {
        self.forget_answered(None);
        (self.woken, self.continuation, self.satisfied) = (None, None, None);
    }

    /// The data for the worker that continues.
    pub fn resume(&self) -> Option<Resume> {
        let (id, cause, numbers) = self.woken.as_ref()?;
        let continuation = self.continuation.clone();
        Some(Resume { continuation, ..Resume::new(*id, *cause, self.picked(numbers), false) })
    }

    pub fn typed_open(&self) -> Vec<OpenWaitpoint> {
        let typed = |id: &WaitpointId| {
            let waitpoint = &self.known[id];
            OpenWaitpoint {
                expires_at: waitpoint.expires_at,
                ..OpenWaitpoint::new(*id, waitpoint.key.clone(), waitpoint.state)
            }
        };
        self.open.iter().map(typed).collect()
    }

    /// Evaluates the suspension's condition with its signals.
    pub fn evaluate(&self, wait: &Suspension) -> Evaluation {
        let arrived = |number: &usize| {
            let signal = &self.signals[*number];
            let waitpoint_id = signal.waitpoint_id.expect("only signals at waitpoints are offered");
            Arrived {
                name: signal.name.clone(),
                waitpoint_key: signal.waitpoint_key.clone().expect("its waitpoint has a key"),
                waitpoint_id,
                // Approvers are tokens; a waitpoint without labels has one token.
                approver_token: signal.approver.clone().unwrap_or_else(|| waitpoint_id.to_string()),
            }
        };
        condition::evaluate(&wait.condition, &wait.offered.iter().map(arrived).collect::<Vec<_>>())
    }

    /// The progress of each part of the condition.
    pub fn progress(&self, wait: &Suspension) -> Vec<ConditionProgress> {
        let (nodes, taken) = (wait.condition.flatten(), self.evaluate(wait).taken);
        let mut satisfied = vec![false; nodes.len()];
        for at in (0..nodes.len()).rev() {
            let mut below = (0..nodes.len()).filter(|child| nodes[*child].parent == Some(at)).map(|c| satisfied[c]);
            satisfied[at] = match nodes[at].op {
                condition::Op::Signal => !taken[at].is_empty(),
                condition::Op::Count => taken[at].len() >= nodes[at].n.expect("a count says how many") as usize,
                condition::Op::AnyOf => below.any(|done| done),
                condition::Op::AllOf => below.all(|done| done),
            };
        }
        nodes
            .into_iter()
            .enumerate()
            .map(|(at, node)| ConditionProgress {
                parent: node.parent.map(|parent| parent as i64),
                name: node.name,
                waitpoint: node.waitpoint,
                n: node.n.map(i64::from),
                over: node.over.map(over_word),
                ..ConditionProgress::new(op_word(node.op), taken[at].len() as i64, satisfied[at])
            })
            .collect()
    }
}

fn time_of(id: &str) -> i64 {
    id.split_once('-').and_then(|(ms, _)| ms.parse().ok()).expect("an id is two numbers")
}

fn op_word(op: condition::Op) -> ConditionOp {
    match op {
        condition::Op::Signal => ConditionOp::Signal,
        condition::Op::AnyOf => ConditionOp::AnyOf,
        condition::Op::AllOf => ConditionOp::AllOf,
        condition::Op::Count => ConditionOp::Count,
    }
}

fn over_word(over: Over) -> CountOver {
    match over {
        Over::Signals => CountOver::Signals,
        Over::Waitpoints => CountOver::Waitpoints,
        Over::Approvers => CountOver::Approvers,
    }
}

/// The condition of a list of nodes. The nodes are in pre-order and have passed the checks.
pub fn condition_of(nodes: &[ConditionNode]) -> Condition {
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
            n: node.n.expect("checked") as u32,
            over: match node.over.expect("checked") {
                CountOver::Signals => Over::Signals,
                CountOver::Waitpoints => Over::Waitpoints,
                CountOver::Approvers => Over::Approvers,
            },
            of: Some(Matcher { name: node.name.clone(), waitpoint: node.waitpoint.clone() }),
        },
    }
}
