//! One execution in the model: its submission, its state, and its history.

use std::collections::BTreeMap;

use ff_core::types::ExecutionId;
use ff_script::Bytes;
use ff_script::generated::{
    Attempt, AttemptState, AttemptType, BlockingReason, BudgetRef, Execution as View, Failure, Fence, Lease,
    LifecyclePhase, OperatorAction, Outcome, Progress, PublicState, QuotaRef, Retry, Suspension as SuspensionView,
    Task,
};
use uuid::Uuid;

use super::lane::Turn;
use super::retry::Policy;
use super::stream::Streams;
use super::waits::{Suspension, Waits};

/// Attempts that a description shows; older ones are only counted.
const ATTEMPTS_SHOWN: usize = 8;

/// Operator actions that are kept.
const ACTIONS_KEPT: usize = 100;

/// The submission with all defaults filled in; it never changes.
#[derive(Clone, Debug)]
pub struct Said {
    pub namespace: String,
    pub kind: String,
    pub input: Bytes,
    pub input_encoding: String,
    pub created_at: i64,
    pub start_within_ms: Option<i64>,
    pub attempt_timeout_ms: Option<i64>,
    pub max_reclaims: i64,
    pub max_replays: i64,
    pub requires: Vec<String>,
    pub prefers: Vec<String>,
    pub fairness_key: Option<String>,
    pub budgets: Vec<BudgetRef>,
    pub quotas: Vec<QuotaRef>,
    pub fallbacks: Vec<Bytes>,
    pub retention_ms: i64,
    pub max_frames: i64,
    pub trace_parent: Option<String>,
    pub completion_webhook: Option<String>,
    pub retry: Policy,
    pub body_digest: String,
}

/// The state of an execution.
#[derive(Clone, Debug)]
pub enum Stage {
    Waiting(Waiting),
    Running(Box<Running>),
    Suspended(Box<Suspended>),
    Ended(Ended),
}

/// It waits to run: now, later, after a block, or for the worker that reserved it.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub delay: Option<i64>,
    pub block: Option<Block>,
    pub grant: Option<Granted>,
    /// The type of the next attempt.
    pub next: AttemptType,
    /// The attempt to continue, instead of a new one.
    pub continues: Option<Box<Paused>>,
}

impl Waiting {
    /// Nothing blocks an attempt of this type.
    pub fn next(next: AttemptType) -> Waiting {
        Waiting { delay: None, block: None, grant: None, next, continues: None }
    }
}

/// It waits for signals and holds no worker.
#[derive(Clone, Debug)]
pub struct Suspended {
    pub paused: Paused,
    pub wait: Suspension,
}

/// An attempt between two leases.
#[derive(Clone, Debug)]
pub struct Paused {
    /// The fence of the last lease.
    pub fence: Fence,
    pub instance: String,
    pub index: i64,
    pub kind: AttemptType,
    pub started_at: i64,
    /// The remaining run time of the attempt.
    pub time_left: Option<i64>,
    pub cancel: Option<(i64, Option<String>)>,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub reason: BlockingReason,
    pub detail: BTreeMap<String, String>,
    pub since: i64,
}

#[derive(Clone, Debug)]
pub struct Granted {
    /// The requested id, counted on for each earlier grant.
    pub id: Uuid,
    pub asked_as: Uuid,
    pub instance: String,
    pub until: i64,
    /// The holder sets it must enter to start, such as the slots of a limited lane.
    pub holder_sets: Option<Vec<String>>,
}

/// A worker runs it.
#[derive(Clone, Debug)]
pub struct Running {
    pub fence: Fence,
    pub instance: String,
    pub worker_id: String,
    pub until: i64,
    pub ttl_ms: i64,
    pub renewals: i64,
    pub cancel: Option<(i64, Option<String>)>,
    pub yield_asked: bool,
    pub index: i64,
    pub kind: AttemptType,
    pub started_at: i64,
    pub timeout_at: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct Ended {
    pub outcome: Outcome,
    pub at: i64,
    pub result: Option<(Bytes, String)>,
    pub failure: Option<Failure>,
}

/// How a lease ended, as far as its holder may repeat the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Completed,
    Failed,
    Retried {
        at: i64,
    },
    Cancelled,
    Delayed {
        until: i64,
    },
    Yielded,
    Suspended,
    Expired {
        at: i64,
    },
    Revoked,
    /// An end that the holder did not cause: a deadline, an attempt timeout, an operator's cancel.
    Other,
}

#[derive(Clone, Debug)]
pub struct Execution {
    pub id: ExecutionId,
    pub said: Said,
    pub lane: String,
    pub priority: i64,
    pub score: i64,
    /// Its turn, from when it was last scored in a fair lane.
    pub turn: Option<Turn>,
    pub tags: BTreeMap<String, String>,
    pub deadline: Option<i64>,
    /// The time by which it must start; `None` once it has started.
    pub start_by: Option<i64>,
    pub updated_at: i64,
    pub stage: Stage,
    pub attempts: Vec<Attempt>,
    /// The last lease that ended, and how it ended.
    pub past: Option<(Fence, Ending)>,
    pub failures: i64,
    pub lost_in_a_row: i64,
    pub replays: i64,
    pub tier: Option<i64>,
    pub progress: Option<Progress>,
    pub actions: Vec<OperatorAction>,
    pub awaited: bool,
    /// How often it was granted.
    pub grants: u16,
    pub waits: Waits,
    pub streams: Streams,
}

impl Execution {
    pub fn path(&self) -> String {
        format!("{}/{}", self.said.namespace, self.lane)
    }

    pub fn phase(&self) -> LifecyclePhase {
        match self.stage {
            Stage::Waiting(_) => LifecyclePhase::Runnable,
            Stage::Running(_) => LifecyclePhase::Active,
            Stage::Suspended(_) => LifecyclePhase::Suspended,
            Stage::Ended(_) => LifecyclePhase::Terminal,
        }
    }

    pub fn waiting(&self) -> Option<&Waiting> {
        match &self.stage {
            Stage::Waiting(waiting) => Some(waiting),
            _ => None,
        }
    }

    pub fn waiting_mut(&mut self) -> Option<&mut Waiting> {
        match &mut self.stage {
            Stage::Waiting(waiting) => Some(waiting),
            _ => None,
        }
    }

    pub fn running(&self) -> Option<&Running> {
        match &self.stage {
            Stage::Running(running) => Some(running),
            _ => None,
        }
    }

    pub fn running_mut(&mut self) -> Option<&mut Running> {
        match &mut self.stage {
            Stage::Running(running) => Some(running),
            _ => None,
        }
    }

    pub fn suspended(&self) -> Option<&Suspended> {
        match &self.stage {
            Stage::Suspended(suspended) => Some(suspended),
            _ => None,
        }
    }

    /// The attempt, if it is between two leases.
    pub fn paused(&self) -> Option<&Paused> {
        match &self.stage {
            Stage::Suspended(suspended) => Some(&suspended.paused),
            Stage::Waiting(waiting) => waiting.continues.as_deref(),
            _ => None,
        }
    }

    pub fn latest_attempt(&self) -> Option<i64> {
        let current = self.current_attempt().map(|attempt| attempt.index);
        current.or(self.attempts.last().map(|attempt| attempt.index))
    }

    pub fn ended(&self) -> Option<&Ended> {
        match &self.stage {
            Stage::Ended(ended) => Some(ended),
            _ => None,
        }
    }

    pub fn blocked_by(&self) -> Option<BlockingReason> {
        self.waiting()?.block.as_ref().map(|block| block.reason)
    }

    /// Any capable worker could start it: it waits for nothing, not even for the worker that reserved it.
    pub fn is_eligible(&self) -> bool {
        self.waiting().is_some_and(|w| w.delay.is_none() && w.block.is_none() && w.grant.is_none())
    }

    /// It is eligible, granted or active, so it is in the queue of its requirement set.
    pub fn is_queued(&self) -> bool {
        match &self.stage {
            Stage::Waiting(w) => w.delay.is_none() && w.block.is_none(),
            Stage::Running(_) => true,
            Stage::Suspended(_) | Stage::Ended(_) => false,
        }
    }

    /// Nothing starts after its deadline, its queue time, or the grace period of a cancel.
    pub fn may_start(&self, now: i64) -> bool {
        let cancelled = self.paused().and_then(|paused| paused.cancel.as_ref()).is_some_and(|(by, _)| *by <= now);
        !cancelled && self.deadline.is_none_or(|at| at > now) && self.start_by.is_none_or(|at| at > now)
    }

    pub fn needs_admission(&self) -> bool {
        !self.said.budgets.is_empty() || !self.said.quotas.is_empty()
    }

    /// The valid fence: that of the live lease, or of the last one.
    pub fn fence(&self) -> Option<&Fence> {
        match &self.stage {
            Stage::Running(running) => Some(&running.fence),
            _ => self.past.as_ref().map(|(fence, _)| fence),
        }
    }

    pub fn epoch(&self) -> i64 {
        self.fence().map_or(0, |fence| fence.lease_epoch)
    }

    pub fn state(&self) -> PublicState {
        match &self.stage {
            Stage::Running(_) => PublicState::Active,
            Stage::Suspended(_) => PublicState::Suspended,
            Stage::Ended(ended) => match ended.outcome {
                Outcome::Success => PublicState::Completed,
                Outcome::Failed => PublicState::Failed,
                Outcome::Cancelled => PublicState::Cancelled,
                Outcome::Expired => PublicState::Expired,
                Outcome::Skipped => PublicState::Skipped,
            },
            Stage::Waiting(waiting) => match waiting.block.as_ref().map(|block| block.reason) {
                Some(BlockingReason::WaitingForQuota | BlockingReason::WaitingForBudget) => PublicState::RateLimited,
                Some(BlockingReason::WaitingForDependencies | BlockingReason::WaitingForChildren) => {
                    PublicState::WaitingChildren
                }
                Some(BlockingReason::WaitingForCapableWorker | BlockingReason::HeldByOperator) => PublicState::Waiting,
                None if waiting.delay.is_some() => PublicState::Delayed,
                None if waiting.continues.is_some() => PublicState::Resumable,
                None => PublicState::Waiting,
            },
        }
    }

    /// When something is due without a call.
    pub fn wakes_at(&self) -> Option<i64> {
        let mut times = Vec::new();
        match &self.stage {
            Stage::Ended(ended) => return Some(ended.at + self.said.retention_ms),
            Stage::Running(running) => {
                times.extend([
                    self.deadline,
                    Some(running.until),
                    running.timeout_at,
                    running.cancel.as_ref().map(|(by, _)| *by),
                    self.waits.due_at(),
                ]);
            }
            Stage::Suspended(suspended) => {
                let cancel = suspended.paused.cancel.as_ref().map(|(by, _)| *by);
                times.extend([self.deadline, suspended.wait.until, cancel, self.waits.due_at()]);
            }
            Stage::Waiting(waiting) => {
                times.push(self.deadline);
                times.push(waiting.continues.as_ref().and_then(|paused| paused.cancel.as_ref()).map(|(by, _)| *by));
                times.push(self.start_by);
                if waiting.block.is_none() {
                    times.push(waiting.delay);
                    times.push(waiting.grant.as_ref().map(|grant| grant.until));
                }
            }
        }
        times.into_iter().flatten().min()
    }

    pub fn note(&mut self, action: &str, actor: &str, reason: Option<&str>, now: i64) {
        self.actions.push(OperatorAction {
            action: action.to_owned(),
            actor: actor.to_owned(),
            at: now,
            reason: reason.map(str::to_owned),
        });
        if self.actions.len() > ACTIONS_KEPT {
            self.actions.remove(0);
        }
    }

    /// Ends the attempt, and its lease if it has one. The caller sets the new state.
    pub fn end_attempt(&mut self, ending: Ending, state: AttemptState, failure: Option<Failure>, now: i64) {
        self.end_attempt_by(None, ending, state, failure, now);
    }

    fn end_attempt_by(
        &mut self,
        actor: Option<&str>,
        ending: Ending,
        state: AttemptState,
        failure: Option<Failure>,
        now: i64,
    ) {
        let current = self.current_attempt().unwrap_or_else(|| panic!("{} has no attempt to end", self.id));
        if let Some(running) = self.running() {
            self.past = Some((running.fence, ending));
        }
        self.waits.close("attempt_ended", now, |_, _| true);
        if let Stage::Suspended(suspended) = &self.stage {
            self.waits.file(&suspended.wait, current.index, now, state.as_str(), actor);
        }
        self.waits.forget();
        self.streams.closed();
        self.attempts.push(Attempt { state, ended_at: Some(now), failure, ..current });
    }

    /// The only way to a terminal state.
    pub fn end(
        &mut self,
        outcome: Outcome,
        how: Option<(Ending, AttemptState)>,
        failure: Option<Failure>,
        result: Option<(Bytes, String)>,
        now: i64,
    ) {
        self.end_by(None, outcome, how, failure, result, now);
    }

    /// An operator ends it.
    pub fn end_by(
        &mut self,
        actor: Option<&str>,
        outcome: Outcome,
        how: Option<(Ending, AttemptState)>,
        failure: Option<Failure>,
        result: Option<(Bytes, String)>,
        now: i64,
    ) {
        if self.current_attempt().is_some() {
            let (ending, state) = how.expect("the end of a running execution has an attempt state");
            self.end_attempt_by(actor, ending, state, failure.clone(), now);
        }
        self.awaited = false;
        self.stage = Stage::Ended(Ended { outcome, at: now, result, failure });
    }

    /// The open attempt, as descriptions show it.
    fn current_attempt(&self) -> Option<Attempt> {
        let (fence, instance, index, kind, started_at, state) = match (self.running(), self.paused()) {
            (Some(r), _) => (&r.fence, &r.instance, r.index, r.kind, r.started_at, AttemptState::Started),
            (None, Some(p)) => (&p.fence, &p.instance, p.index, p.kind, p.started_at, AttemptState::Suspended),
            (None, None) => return None,
        };
        Some(Attempt {
            index,
            attempt_id: fence.attempt_id,
            r#type: kind,
            state,
            worker_instance: instance.clone(),
            started_at,
            ended_at: None,
            lease_epoch: fence.lease_epoch,
            failure: None,
            frames: self.streams.count(index),
        })
    }

    pub fn attempt(&self, index: i64) -> Option<Attempt> {
        self.attempts.iter().cloned().chain(self.current_attempt()).find(|attempt| attempt.index == index)
    }

    /// The task that its worker gets.
    pub fn task(&self) -> Task {
        let running = self.running().expect("only a running execution is a task");
        Task {
            execution_id: self.id,
            attempt_index: running.index,
            attempt_id: running.fence.attempt_id,
            attempt_type: running.kind,
            lease_id: running.fence.lease_id,
            lease_epoch: running.fence.lease_epoch,
            lease_expires_at: running.until,
            namespace: self.said.namespace.clone(),
            lane: self.lane.clone(),
            kind: self.said.kind.clone(),
            input: self.said.input.clone(),
            input_encoding: self.said.input_encoding.clone(),
            tags: self.tags.clone(),
            priority: self.priority,
            created_at: self.said.created_at,
            fallback_index: self.tier,
            fallback: self.tier.map(|tier| self.said.fallbacks[tier as usize].clone()),
            trace_parent: self.said.trace_parent.clone(),
            deadline_at: self.deadline,
            attempt_deadline_at: running.timeout_at,
            resume: self.waits.resume(),
            frames: self.streams.count(running.index),
            passed: None,
            flow_id: None,
            parent_id: None,
            key: None,
            steps: Vec::new(),
            steps_more: false,
        }
    }

    /// The whole description.
    pub fn view(&self) -> View {
        let (waiting, running, ended) = (self.waiting(), self.running(), self.ended());
        let block = waiting.and_then(|w| w.block.as_ref());
        let current = self.current_attempt();
        let spilled = (self.attempts.len() + usize::from(current.is_some())).saturating_sub(ATTEMPTS_SHOWN);
        View {
            execution_id: self.id,
            namespace: self.said.namespace.clone(),
            lane: self.lane.clone(),
            kind: self.said.kind.clone(),
            state: self.state(),
            phase: self.phase(),
            blocking_reason: block.map(|block| block.reason),
            blocking_detail: block.map(|block| block.detail.clone()),
            blocked_since: block.map(|block| block.since),
            usage: None,
            steps: 0,
            step_bytes: 0,
            forked_from: None,
            forks: Vec::new(),
            outcome: ended.map(|ended| ended.outcome),
            attempt_state: current.as_ref().or(self.attempts.last()).map(|attempt| attempt.state),
            continues: waiting.is_some_and(|waiting| waiting.continues.is_some()),
            granted_until: waiting.and_then(|w| w.grant.as_ref()).map(|grant| grant.until),
            priority: self.priority,
            score: self.score,
            created_at: self.said.created_at,
            updated_at: self.updated_at,
            ended_at: ended.map(|ended| ended.at),
            retire_at: ended.map(|ended| ended.at + self.said.retention_ms),
            delay_until: waiting.and_then(|w| w.delay),
            deadline_at: self.deadline,
            start_by: self.start_by,
            attempt_deadline_at: running.and_then(|r| r.timeout_at),
            tags: self.tags.clone(),
            requires: self.said.requires.clone(),
            prefers: self.said.prefers.clone(),
            fairness_key: self.said.fairness_key.clone(),
            input: self.said.input.clone(),
            input_encoding: self.said.input_encoding.clone(),
            result: ended.and_then(|ended| ended.result.as_ref()).map(|(bytes, _)| bytes.clone()),
            result_encoding: ended.and_then(|ended| ended.result.as_ref()).map(|(_, encoding)| encoding.clone()),
            failure: ended.and_then(|ended| ended.failure.clone()),
            attempts: self.attempts[spilled..].iter().cloned().chain(current).collect(),
            attempts_spilled: spilled as i64,
            lease: running.map(|r| Lease {
                worker_id: r.worker_id.clone(),
                worker_instance: r.instance.clone(),
                lease_id: r.fence.lease_id,
                lease_epoch: r.fence.lease_epoch,
                expires_at: r.until,
                cancel_requested: r.cancel.is_some(),
                yield_requested: r.yield_asked,
            }),
            progress: self.progress.clone(),
            retry: Retry::from(&self.said.retry),
            attempt_timeout_ms: self.said.attempt_timeout_ms,
            max_reclaims: self.said.max_reclaims,
            max_replays: self.said.max_replays,
            reclaim_count: self.lost_in_a_row,
            replay_count: self.replays,
            fallback_index: self.tier,
            fallbacks: self.said.fallbacks.clone(),
            budgets: self.said.budgets.clone(),
            quotas: self.said.quotas.clone(),
            retention_ms: self.said.retention_ms,
            max_frames: self.said.max_frames,
            trace_parent: self.said.trace_parent.clone(),
            completion_webhook: self.said.completion_webhook.clone(),
            operator_actions: self.actions.clone(),
            suspension: self.suspended().map(|Suspended { wait, .. }| SuspensionView {
                timeout_at: wait.until,
                ..SuspensionView::new(
                    wait.id,
                    wait.reason,
                    wait.since,
                    wait.behavior,
                    self.waits.typed_open(),
                    self.waits.progress(wait),
                )
            }),
            waitpoints: self.waits.typed_open(),
            past_suspensions: self.waits.past.clone(),
            signals: self.waits.signals.len() as i64,
            flow_id: None,
            parent_id: None,
            key: None,
            inbound: None,
            nested: None,
            fired: None,
            children: 0,
            children_open: 0,
        }
    }
}
