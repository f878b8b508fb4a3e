//! What the checker knows about one execution beyond the store's description.

use ff_core::types::ExecutionId;
use ff_script::generated::*;
use ff_script::{Bytes, Kinds};
use uuid::Uuid;

use super::flows::is_kin;
use super::limits::Usage;
use super::waits::Ledger;

/// An idempotency key and its execution.
pub(crate) struct Key {
    pub partition: u16,
    pub execution_id: ExecutionId,
    pub body_digest: String,
    pub until_ms: i64,
}

/// How a lease ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    Fail,
    Retry(i64),
    Delay(i64),
    Yield,
    Cancel,
    Suspend,
    WaitChildren,
    Expired,
    Revoked,
    /// By the reply to a report of its usage.
    Breach,
    /// By an operator, a deadline or a timeout: not by a call of the worker.
    Other,
}

/// The latest lease.
#[derive(Clone, Debug)]
pub(crate) struct LastLease {
    pub fence: Fence,
    pub instance: String,
    pub ttl_ms: i64,
    pub renewals: i64,
    /// `None` while it lives.
    pub ended: Option<End>,
}

pub(crate) struct Shadow {
    pub submission: Submission,
    /// The last description; `None` once it was retired.
    pub seen: Option<Execution>,
    /// The highest epoch so far.
    pub epoch: i64,
    /// Attempts started so far.
    pub attempts: i64,
    /// Failed attempts since the last replay.
    pub failures: i64,
    /// Why the next attempt starts, unless it is the first.
    pub next: Option<AttemptType>,
    /// Whether an attempt started since the last replay.
    pub started: bool,
    pub lease: Option<LastLease>,
    pub cancel_by: Option<i64>,
    pub grant: Option<(Uuid, String)>,
    /// Every grant id of the execution so far.
    pub granted: Vec<Uuid>,
    /// Its flow was stopped, so it does not start any more.
    pub stopped: bool,
    pub waits: Ledger,
    pub usage: Usage,
}

impl Shadow {
    pub fn new(submission: Submission, seen: Execution) -> Self {
        Shadow {
            submission,
            seen: Some(seen),
            epoch: 0,
            attempts: 0,
            failures: 0,
            next: None,
            started: false,
            lease: None,
            cancel_by: None,
            grant: None,
            granted: Vec::new(),
            stopped: false,
            waits: Ledger::default(),
            usage: Usage::default(),
        }
    }

    /// When the execution next needs a timer, computed independently of the library.
    pub fn wake_at(&self, seen: &Execution) -> Option<i64> {
        let mut times = vec![seen.deadline_at];
        // A waiting attempt keeps the cancel that was requested.
        if seen.phase != LifecyclePhase::Terminal {
            times.push(self.cancel_by);
            times.push(seen.waitpoints.iter().filter_map(|open| open.expires_at).min());
        }
        match seen.phase {
            // A member is kept while its flow runs, a child while its parent does. Their retention is checked
            // elsewhere.
            LifecyclePhase::Terminal if is_kin(seen) => return seen.retire_at,
            LifecyclePhase::Terminal => return seen.ended_at.map(|at| at + seen.retention_ms),
            LifecyclePhase::Active => {
                times.push(seen.lease.as_ref().map(|lease| lease.expires_at));
                times.push(seen.attempt_deadline_at);
            }
            LifecyclePhase::Runnable => {
                if !self.started {
                    times.push(seen.start_by);
                }
                if seen.blocking_reason.is_none() {
                    times.push(seen.delay_until);
                    times.push(seen.granted_until);
                }
            }
            LifecyclePhase::Suspended => times.push(seen.suspension.as_ref().and_then(|wait| wait.timeout_at)),
        }
        times.into_iter().flatten().min()
    }

    /// True if nothing forbids a start now.
    pub fn may_start(&self, seen: &Execution, now: i64) -> bool {
        !self.stopped
            && seen.deadline_at.is_none_or(|at| now < at)
            && self.cancel_by.is_none_or(|at| now < at)
            && (self.started || seen.start_by.is_none_or(|at| now < at))
    }

    /// Number of leases lost in a row before this one.
    pub fn lost_in_a_row(&self, seen: &Execution) -> i64 {
        if self.lease.as_ref().is_some_and(|lease| lease.renewals >= 3) { 0 } else { seen.reclaim_count }
    }

    /// Whether the policy allows another attempt after this many failures.
    pub fn may_retry(&self, seen: &Execution, failures: i64, category: &str) -> bool {
        let retry = &seen.retry;
        let holds = |list: &Option<Vec<String>>| list.as_ref().map(|list| list.iter().any(|c| c == category));
        failures < retry.max_attempts.unwrap_or(3)
            && holds(&retry.never_on) != Some(true)
            && holds(&retry.retry_on) != Some(false)
    }
}

/// Eligible: in a queue, not blocked and not granted.
pub(crate) fn eligible(seen: &Execution) -> bool {
    seen.phase == LifecyclePhase::Runnable
        && seen.blocking_reason.is_none()
        && seen.delay_until.is_none()
        && seen.granted_until.is_none()
}

pub(crate) fn needs_admission(seen: &Execution) -> bool {
    !seen.quotas.is_empty() || !seen.budgets.is_empty()
}

pub(crate) fn covered(requires: &[String], capabilities: &[String]) -> bool {
    requires.iter().all(|token| capabilities.contains(token))
}

/// The kinds that a claim names; `None` is all.
pub(crate) fn kinds_of(packed: Option<&Bytes>) -> Option<Vec<String>> {
    Some(Kinds::unpacked(packed?)?.names().to_vec())
}

/// True when work of this kind is among those.
pub(crate) fn among(kind: &str, kinds: Option<&Vec<String>>) -> bool {
    kinds.is_none_or(|kinds| kinds.iter().any(|known| known == kind))
}

/// True when workers of a sort take an execution.
pub(crate) fn taken_by(class: &WorkerClass, seen: &Execution) -> bool {
    among(&seen.kind, class.kinds.as_ref()) && covered(&seen.requires, &class.capabilities)
}

/// The fields in which two descriptions differ.
pub(crate) fn diff(before: Option<&Execution>, after: Option<&Execution>) -> String {
    match (before, after) {
        (Some(before), Some(after)) => {
            let (before, after) = (format!("{before:#?}"), format!("{after:#?}"));
            let different: Vec<String> = before
                .lines()
                .zip(after.lines())
                .filter(|(b, a)| b != a)
                .take(6)
                .map(|(b, a)| format!("{} → {}", b.trim(), a.trim()))
                .collect();
            different.join("; ")
        }
        (None, Some(_)) => "it exists now".to_owned(),
        (Some(_), None) => "it is gone".to_owned(),
        (None, None) => "no difference".to_owned(),
    }
}
