//! The fenced calls of a lease's holder: renew, complete, fail, cancel, delay, yield, progress.

use ff_core::types::ExecutionId;
use ff_script::Bytes;
use ff_script::generated::{
    AttemptState, AttemptType, CancelAttempt, CancelAttemptReply, CompleteExecution, CompleteExecutionReply,
    DelayExecution, DelayExecutionReply, FailExecution, FailExecutionReply, Failure, Fence, Outcome, Progress,
    RenewLease, RenewLeaseReply, UpdateProgress, UpdateProgressReply, YieldExecution, YieldExecutionReply,
};

use super::execution::{Ending, Execution, Stage, Waiting};
use super::{Answer, Model, Refusal, invalid, refused};

/// Renewals of one attempt after which earlier losses no longer count.
const RENEWALS_THAT_RESET: i64 = 3;

/// What a fence allows.
pub(super) enum Standing {
    Live,
    /// The lease ended in this way.
    Past(Ending),
}

/// A failed attempt, with the data that the retry policy needs.
pub(super) struct Failing<'a> {
    pub state: AttemptState,
    pub reason: &'a str,
    pub category: &'a str,
    pub retryable: bool,
    pub retry_after_ms: Option<i64>,
    pub draw: i64,
    /// The holder reported the failure itself, and may repeat the call.
    pub by_holder: bool,
}

impl Model {
    pub(super) fn standing(&self, id: ExecutionId, fence: &Fence) -> Answer<Standing> {
        let execution = self.get(id)?;
        let running = execution.running();
        if execution.fence() != Some(fence) {
            return Err(refused(
                "stale_lease",
                &[
                    ("presented_epoch", Some(fence.lease_epoch.to_string())),
                    ("current_epoch", Some(execution.epoch().to_string())),
                    ("worker_instance", running.map(|r| r.instance.clone())),
                    ("lease_expires_at", running.map(|r| r.until.to_string())),
                ],
            ));
        }
        match (running, &execution.past) {
            (Some(running), _) if self.now >= running.until => Err(expired(running.until)),
            (Some(_), _) => Ok(Standing::Live),
            (None, Some((_, ending))) => Ok(Standing::Past(ending.clone())),
            (None, None) => unreachable!("a fence matched"),
        }
    }

    /// The refusal for a lease whose end differs from the one its holder repeats.
    pub(super) fn ended(&self, id: ExecutionId, ending: &Ending) -> Refusal {
        match ending {
            Ending::Expired { at } => expired(*at),
            Ending::Revoked => refused("lease_revoked", &[]),
            _ => {
                let execution = &self.executions[&id];
                let fence = execution.fence().expect("it had a lease");
                refused(
                    "execution_not_active",
                    &[
                        ("lifecycle_phase", Some(execution.phase().to_string())),
                        ("terminal_outcome", execution.ended().map(|ended| ended.outcome.to_string())),
                        ("lease_epoch", Some(fence.lease_epoch.to_string())),
                        ("attempt_id", Some(fence.attempt_id.to_string())),
                    ],
                )
            }
        }
    }

    pub(super) fn live(&self, id: ExecutionId, fence: &Fence) -> Answer<()> {
        match self.standing(id, fence)? {
            Standing::Live => Ok(()),
            Standing::Past(ending) => Err(self.ended(id, &ending)),
        }
    }

    pub fn renew(&mut self, call: &RenewLease) -> Answer<RenewLeaseReply> {
        self.live(call.execution_id, &call.fence)?;
        let now = self.now;
        Ok(self.edit(call.execution_id, |execution| {
            let running = execution.running_mut().expect("its lease lives");
            running.ttl_ms = call.lease_ttl_ms.unwrap_or(running.ttl_ms);
            running.until = now + running.ttl_ms;
            running.renewals += 1;
            RenewLeaseReply::Renewed {
                lease_expires_at: running.until,
                cancel_requested: running.cancel.is_some(),
                yield_requested: running.yield_asked,
            }
        }))
    }

    pub fn progress(&mut self, call: &UpdateProgress) -> Answer<UpdateProgressReply> {
        self.live(call.execution_id, &call.fence)?;
        self.edit(call.execution_id, |execution| {
            execution.progress = Some(Progress { pct: call.pct, message: call.message.clone() });
        });
        Ok(UpdateProgressReply::Noted)
    }

    pub fn complete(&mut self, call: &CompleteExecution) -> Answer<CompleteExecutionReply> {
        let id = call.execution_id;
        match self.standing(id, &call.fence)? {
            Standing::Past(Ending::Completed) => return Ok(CompleteExecutionReply::Replayed),
            Standing::Past(ending) => return Err(self.ended(id, &ending)),
            Standing::Live => {}
        }
        let now = self.now;
        let result: Option<(Bytes, String)> =
            call.result.clone().map(|bytes| (bytes, call.result_encoding.clone().unwrap_or_else(|| "json".to_owned())));
        self.edit(id, |execution| {
            execution.end(Outcome::Success, Some((Ending::Completed, AttemptState::Succeeded)), None, result, now);
        });
        Ok(CompleteExecutionReply::Completed)
    }

    pub fn fail(&mut self, call: &FailExecution) -> Answer<FailExecutionReply> {
        let id = call.execution_id;
        match self.standing(id, &call.fence)? {
            Standing::Past(Ending::Failed) => return Ok(FailExecutionReply::Failed { replayed: true }),
            Standing::Past(Ending::Retried { at }) => {
                return Ok(FailExecutionReply::RetryScheduled { delay_until: at, replayed: true });
            }
            Standing::Past(ending) => return Err(self.ended(id, &ending)),
            Standing::Live => {}
        }
        let failing = Failing {
            state: AttemptState::Failed,
            reason: &call.reason,
            category: &call.category,
            retryable: call.retryable.unwrap_or(true),
            retry_after_ms: call.retry_after_ms,
            draw: call.draw,
            by_holder: true,
        };
        Ok(match self.attempt_failed(id, &failing) {
            Some(at) => FailExecutionReply::RetryScheduled { delay_until: at, replayed: false },
            None => FailExecutionReply::Failed { replayed: false },
        })
    }

    /// Retries by the policy and returns the time, or ends the execution.
    pub(super) fn attempt_failed(&mut self, id: ExecutionId, failing: &Failing<'_>) -> Option<i64> {
        let now = self.now;
        let failure = Failure { reason: failing.reason.to_owned(), category: failing.category.to_owned() };
        let at = self.edit(id, |execution| {
            execution.failures += 1;
            let policy = &execution.said.retry;
            if !failing.retryable || !policy.allows(execution.failures, failing.category) {
                let ending = if failing.by_holder { Ending::Failed } else { Ending::Other };
                execution.end(Outcome::Failed, Some((ending, failing.state)), Some(failure), None, now);
                return None;
            }
            let at = now + failing.retry_after_ms.unwrap_or_else(|| policy.wait_ms(execution.failures, failing.draw));
            let ending = if failing.by_holder { Ending::Retried { at } } else { Ending::Other };
            execution.end_attempt(ending, failing.state, Some(failure), now);
            execution.lost_in_a_row = 0;
            let last_tier = execution.said.fallbacks.len() as i64 - 1;
            if last_tier >= 0 {
                execution.tier = Some(execution.tier.map_or(0, |tier| tier + 1).min(last_tier));
            }
            let delay = Some(at).filter(|at| *at > now);
            execution.stage = Stage::Waiting(Waiting { delay, ..Waiting::next(AttemptType::Retry) });
            Some(at)
        })?;
        self.settle(id);
        Some(at)
    }

    pub fn cancel_attempt(&mut self, call: &CancelAttempt) -> Answer<CancelAttemptReply> {
        let id = call.execution_id;
        match self.standing(id, &call.fence)? {
            Standing::Past(Ending::Cancelled) => return Ok(CancelAttemptReply::Replayed),
            Standing::Past(ending) => return Err(self.ended(id, &ending)),
            Standing::Live => {}
        }
        let now = self.now;
        self.edit(id, |execution| {
            let asked = execution.running().and_then(|r| r.cancel.as_ref()).and_then(|(_, reason)| reason.clone());
            let reason = call.reason.clone().or(asked).unwrap_or_default();
            let failure = Failure { reason, category: "cancelled".to_owned() };
            execution.end(
                Outcome::Cancelled,
                Some((Ending::Cancelled, AttemptState::Cancelled)),
                Some(failure),
                None,
                now,
            );
        });
        Ok(CancelAttemptReply::Cancelled)
    }

    pub fn delay(&mut self, call: &DelayExecution) -> Answer<DelayExecutionReply> {
        if call.delay_until.is_some() == call.delay_ms.is_some() {
            return Err(invalid("delay_until", "give delay_until or delay_ms, one of them"));
        }
        let id = call.execution_id;
        match self.standing(id, &call.fence)? {
            Standing::Past(Ending::Delayed { until }) => {
                return Ok(DelayExecutionReply::Delayed { delay_until: until, replayed: true });
            }
            Standing::Past(ending) => return Err(self.ended(id, &ending)),
            Standing::Live => {}
        }
        let until = call.delay_until.or(call.delay_ms.map(|ms| self.now + ms)).expect("one of them is given");
        self.hand_back(id, Ending::Delayed { until }, Some(until), 0);
        Ok(DelayExecutionReply::Delayed { delay_until: until, replayed: false })
    }

    pub fn yield_back(&mut self, call: &YieldExecution) -> Answer<YieldExecutionReply> {
        let id = call.execution_id;
        match self.standing(id, &call.fence)? {
            Standing::Past(Ending::Yielded) => return Ok(YieldExecutionReply::Replayed),
            Standing::Past(ending) => return Err(self.ended(id, &ending)),
            Standing::Live => {}
        }
        self.hand_back(id, Ending::Yielded, None, 0);
        Ok(YieldExecutionReply::Yielded)
    }

    /// The attempt is interrupted and the execution waits again. `losses` is added to the losses in a row.
    fn hand_back(&mut self, id: ExecutionId, ending: Ending, delay: Option<i64>, losses: i64) {
        let now = self.now;
        self.edit(id, |execution| {
            execution.lost_in_a_row = losses_in_a_row(execution) + losses;
            execution.end_attempt(ending, AttemptState::Interrupted, None, now);
            let delay = delay.filter(|at| *at > now);
            execution.stage = Stage::Waiting(Waiting { delay, ..Waiting::next(AttemptType::Reclaim) });
        });
        self.settle(id);
    }

    /// A lease was lost: the execution is available again at once, or ends if that happened too often in a row.
    pub(super) fn lose(&mut self, id: ExecutionId, ending: Ending) {
        let now = self.now;
        let execution = &self.executions[&id];
        let losses = losses_in_a_row(execution);
        if losses < execution.said.max_reclaims {
            return self.hand_back(id, ending, None, 1);
        }
        let failure =
            Failure { reason: format!("lease lost {} times in a row", losses + 1), category: "poisoned".to_owned() };
        self.edit(id, |execution| {
            execution.end(Outcome::Failed, Some((ending, AttemptState::Interrupted)), Some(failure), None, now);
        });
    }
}

/// Leases lost in a row before the running one. Enough renewals reset the count.
fn losses_in_a_row(execution: &Execution) -> i64 {
    let running = execution.running().expect("only a running execution has a lease to lose");
    if running.renewals >= RENEWALS_THAT_RESET { 0 } else { execution.lost_in_a_row }
}

fn expired(at: i64) -> Refusal {
    refused("lease_expired", &[("expired_at", Some(at.to_string()))])
}
