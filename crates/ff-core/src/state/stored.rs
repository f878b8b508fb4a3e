//! Reads a [`State`] from the stored words and times.

use std::fmt;

use super::{AttemptState, BlockingReason, LifecyclePhase, Outcome, Runnable, State};
use crate::types::TimestampMs;

/// The state of an execution as stored, each field unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredState {
    pub lifecycle_phase: LifecyclePhase,
    /// Why it cannot be claimed; only if runnable.
    pub blocking_reason: Option<BlockingReason>,
    /// How it ended; only if terminal.
    pub terminal_outcome: Option<Outcome>,
    /// State of its latest attempt; `None` before the first claim.
    pub attempt_state: Option<AttemptState>,
    /// When the delay of an execution ends; only if runnable, and kept during a block.
    pub delay_until: Option<TimestampMs>,
    /// When a claim grant ends; only if eligible.
    pub granted_until: Option<TimestampMs>,
    /// When the lease expires; always set if active.
    pub lease_expires_at: Option<TimestampMs>,
    /// When the suspension times out; only if suspended.
    pub suspended_until: Option<TimestampMs>,
}

/// A combination of stored fields that no transition produces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("impossible state: {rule} ({stored})")]
pub struct Impossible {
    /// The broken rule.
    pub rule: &'static str,
    /// The stored field at fault.
    pub field: &'static str,
    pub stored: StoredState,
}

impl State {
    /// The state of these fields, or the rule they break.
    pub fn read(stored: &StoredState) -> Result<State, Impossible> {
        let refuse = |field, rule| Err(Impossible { rule, field, stored: *stored });
        let phase = stored.lifecycle_phase;

        if stored.terminal_outcome.is_some() && phase != LifecyclePhase::Terminal {
            return refuse("terminal_outcome", "only a terminal execution has an outcome");
        }
        if stored.blocking_reason.is_some() && phase != LifecyclePhase::Runnable {
            return refuse("blocking_reason", "only a runnable execution is blocked");
        }
        if stored.delay_until.is_some() && phase != LifecyclePhase::Runnable {
            return refuse("delay_until", "only a runnable execution is delayed");
        }
        if stored.granted_until.is_some() && phase != LifecyclePhase::Runnable {
            return refuse("granted_until", "only a runnable execution is granted");
        }
        if stored.lease_expires_at.is_some() && phase != LifecyclePhase::Active {
            return refuse("lease_expires_at", "only an active execution is leased");
        }
        if stored.suspended_until.is_some() && phase != LifecyclePhase::Suspended {
            return refuse("suspended_until", "only a suspended execution times out of a suspension");
        }

        match phase {
            LifecyclePhase::Runnable => {
                let continues = match stored.attempt_state {
                    Some(AttemptState::Started) => {
                        return refuse("attempt_state", "a runnable execution has no running attempt");
                    }
                    Some(AttemptState::Suspended) => true,
                    _ => false,
                };
                match (stored.blocking_reason, stored.delay_until, stored.granted_until) {
                    (Some(_), _, Some(_)) => refuse("granted_until", "a blocked execution is not granted"),
                    (None, Some(_), Some(_)) => refuse("granted_until", "a delayed execution is not granted"),
                    (Some(reason), _, None) => Ok(State::Runnable(Runnable::Blocked { reason })),
                    (None, Some(until), None) => Ok(State::Runnable(Runnable::Delayed { until })),
                    (None, None, Some(until)) => Ok(State::Runnable(Runnable::Granted { until, continues })),
                    (None, None, None) => Ok(State::Runnable(Runnable::Eligible { continues })),
                }
            }
            LifecyclePhase::Active => match (stored.attempt_state, stored.lease_expires_at) {
                (Some(AttemptState::Started), Some(lease_expires_at)) => Ok(State::Active { lease_expires_at }),
                (Some(AttemptState::Started), None) => refuse("lease_expires_at", "an active execution is leased"),
                _ => refuse("attempt_state", "an active execution has a running attempt"),
            },
            LifecyclePhase::Suspended => match stored.attempt_state {
                Some(AttemptState::Suspended) => Ok(State::Suspended { until: stored.suspended_until }),
                _ => refuse("attempt_state", "a suspended execution has a suspended attempt"),
            },
            LifecyclePhase::Terminal => match (stored.terminal_outcome, stored.attempt_state) {
                (None, _) => refuse("terminal_outcome", "a terminal execution has an outcome"),
                (_, Some(attempt)) if !attempt.is_over() => {
                    refuse("attempt_state", "a terminal execution has no open attempt")
                }
                (Some(Outcome::Success), attempt) if attempt != Some(AttemptState::Succeeded) => {
                    refuse("attempt_state", "a successful execution has a succeeded attempt")
                }
                (Some(outcome), _) => Ok(State::Terminal(outcome)),
            },
        }
    }
}

impl fmt::Display for StoredState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lifecycle_phase {}", self.lifecycle_phase)?;
        let fields: [(&str, Option<&dyn fmt::Display>); 7] = [
            ("blocking_reason", self.blocking_reason.as_ref().map(|value| value as _)),
            ("terminal_outcome", self.terminal_outcome.as_ref().map(|value| value as _)),
            ("attempt_state", self.attempt_state.as_ref().map(|value| value as _)),
            ("delay_until", self.delay_until.as_ref().map(|value| value as _)),
            ("granted_until", self.granted_until.as_ref().map(|value| value as _)),
            ("lease_expires_at", self.lease_expires_at.as_ref().map(|value| value as _)),
            ("suspended_until", self.suspended_until.as_ref().map(|value| value as _)),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                write!(f, ", {name} {value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::PublicState;
    use super::*;

    fn stored(lifecycle_phase: LifecyclePhase, attempt_state: Option<AttemptState>) -> StoredState {
        StoredState {
            lifecycle_phase,
            blocking_reason: None,
            terminal_outcome: None,
            attempt_state,
            delay_until: None,
            granted_until: None,
            lease_expires_at: None,
            suspended_until: None,
        }
    }

    #[test]
    fn each_possible_combination_has_its_public_state() {
        use AttemptState as A;
        use BlockingReason as B;
        use LifecyclePhase as P;
        let at = Some(TimestampMs(7));
        let runnable = stored(P::Runnable, None);
        let blocked = |reason| StoredState { blocking_reason: Some(reason), ..runnable };
        let ended = |outcome, attempt| StoredState { terminal_outcome: Some(outcome), ..stored(P::Terminal, attempt) };
        let table = [
            (runnable, PublicState::Waiting),
            (stored(P::Runnable, Some(A::Interrupted)), PublicState::Waiting),
            (stored(P::Runnable, Some(A::Succeeded)), PublicState::Waiting),
            (stored(P::Runnable, Some(A::Suspended)), PublicState::Resumable),
            (StoredState { granted_until: at, ..runnable }, PublicState::Waiting),
            (StoredState { granted_until: at, ..stored(P::Runnable, Some(A::Suspended)) }, PublicState::Resumable),
            (StoredState { delay_until: at, ..runnable }, PublicState::Delayed),
            (StoredState { delay_until: at, ..blocked(B::HeldByOperator) }, PublicState::Waiting),
            (blocked(B::WaitingForQuota), PublicState::RateLimited),
            (blocked(B::WaitingForBudget), PublicState::RateLimited),
            (blocked(B::WaitingForDependencies), PublicState::WaitingChildren),
            (blocked(B::WaitingForChildren), PublicState::WaitingChildren),
            (blocked(B::WaitingForCapableWorker), PublicState::Waiting),
            (StoredState { lease_expires_at: at, ..stored(P::Active, Some(A::Started)) }, PublicState::Active),
            (stored(P::Suspended, Some(A::Suspended)), PublicState::Suspended),
            (StoredState { suspended_until: at, ..stored(P::Suspended, Some(A::Suspended)) }, PublicState::Suspended),
            (ended(Outcome::Success, Some(A::Succeeded)), PublicState::Completed),
            (ended(Outcome::Failed, Some(A::Failed)), PublicState::Failed),
            (ended(Outcome::Cancelled, None), PublicState::Cancelled),
            (ended(Outcome::Cancelled, Some(A::Succeeded)), PublicState::Cancelled),
            (ended(Outcome::Expired, Some(A::TimedOut)), PublicState::Expired),
            (ended(Outcome::Skipped, None), PublicState::Skipped),
        ];
        for (fields, public) in table {
            let state = State::read(&fields).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(state.public(), public, "{fields}");
            assert_eq!(state.phase(), fields.lifecycle_phase);
        }
    }

    #[test]
    fn an_impossible_combination_is_named() {
        use AttemptState as A;
        use LifecyclePhase as P;
        let at = Some(TimestampMs(7));
        let active = StoredState { lease_expires_at: at, ..stored(P::Active, Some(A::Started)) };
        let success = Some(Outcome::Success);
        let table = [
            (StoredState { terminal_outcome: success, ..active }, "terminal_outcome"),
            (StoredState { blocking_reason: Some(BlockingReason::WaitingForQuota), ..active }, "blocking_reason"),
            (StoredState { delay_until: at, ..active }, "delay_until"),
            (StoredState { granted_until: at, ..active }, "granted_until"),
            (StoredState { suspended_until: at, ..active }, "suspended_until"),
            (StoredState { lease_expires_at: None, ..active }, "lease_expires_at"),
            (StoredState { attempt_state: None, ..active }, "attempt_state"),
            (StoredState { lease_expires_at: at, ..stored(P::Runnable, None) }, "lease_expires_at"),
            (stored(P::Runnable, Some(A::Started)), "attempt_state"),
            (StoredState { delay_until: at, granted_until: at, ..stored(P::Runnable, None) }, "granted_until"),
            (stored(P::Suspended, Some(A::Started)), "attempt_state"),
            (stored(P::Terminal, None), "terminal_outcome"),
            (StoredState { terminal_outcome: success, ..stored(P::Terminal, None) }, "attempt_state"),
            (StoredState { terminal_outcome: success, ..stored(P::Terminal, Some(A::Started)) }, "attempt_state"),
        ];
        for (fields, field) in table {
            let error = State::read(&fields).expect_err(&fields.to_string());
            assert_eq!(error.field, field, "{error}");
        }
        let error = State::read(&stored(P::Suspended, Some(A::Started))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "impossible state: a suspended execution has a suspended attempt \
             (lifecycle_phase suspended, attempt_state started)"
        );
    }
}
