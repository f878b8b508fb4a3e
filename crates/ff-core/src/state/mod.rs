//! The state of an execution as one sum type, read from the stored words in one place.
//!
//! The store keeps a few words (`lifecycle_phase`, `blocking_reason`, `terminal_outcome`, `attempt_state`) and times.
//! Most of their combinations are meaningless. [`State::read`] accepts the meaningful ones and rejects the rest by
//! rule.

mod stored;
mod words;

pub use stored::{Impossible, StoredState};
pub use words::{AttemptState, BlockingReason, LifecyclePhase, Outcome, PublicState};

use crate::types::TimestampMs;

/// The state of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not running. It still needs its turn, a time or a condition before a claim.
    Runnable(Runnable),
    /// A worker holds a lease on it.
    Active {
        /// When the lease expires unless it is renewed.
        lease_expires_at: TimestampMs,
    },
    /// Its attempt waits for signals and holds no worker.
    Suspended {
        /// When the suspension times out; `None` if it does not.
        until: Option<TimestampMs>,
    },
    /// It has ended; only a replay moves it again.
    Terminal(Outcome),
}

/// Why an execution that is not running waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runnable {
    /// The next fitting claim takes it.
    Eligible {
        /// The claim continues the current attempt instead of starting one.
        continues: bool,
    },
    /// Reserved for one claim.
    Granted {
        /// When it becomes eligible again if it is not claimed.
        until: TimestampMs,
        /// The claim continues the current attempt instead of starting one.
        continues: bool,
    },
    /// It becomes eligible at a time.
    Delayed { until: TimestampMs },
    /// It becomes eligible when a condition clears.
    Blocked { reason: BlockingReason },
}

impl State {
    /// The phase stored for this state.
    #[must_use]
    pub const fn phase(&self) -> LifecyclePhase {
        match self {
            State::Runnable(_) => LifecyclePhase::Runnable,
            State::Active { .. } => LifecyclePhase::Active,
            State::Suspended { .. } => LifecyclePhase::Suspended,
            State::Terminal(_) => LifecyclePhase::Terminal,
        }
    }

    /// The one word people see.
    #[must_use]
    pub const fn public(&self) -> PublicState {
        match self {
            State::Runnable(Runnable::Eligible { continues: true } | Runnable::Granted { continues: true, .. }) => {
                PublicState::Resumable
            }
            State::Runnable(Runnable::Eligible { .. } | Runnable::Granted { .. }) => PublicState::Waiting,
            State::Runnable(Runnable::Delayed { .. }) => PublicState::Delayed,
            State::Runnable(Runnable::Blocked { reason }) => match reason {
                BlockingReason::WaitingForQuota | BlockingReason::WaitingForBudget => PublicState::RateLimited,
                BlockingReason::WaitingForDependencies | BlockingReason::WaitingForChildren => {
                    PublicState::WaitingChildren
                }
                BlockingReason::WaitingForCapableWorker | BlockingReason::HeldByOperator => PublicState::Waiting,
            },
            State::Active { .. } => PublicState::Active,
            State::Suspended { .. } => PublicState::Suspended,
            State::Terminal(outcome) => match outcome {
                Outcome::Success => PublicState::Completed,
                Outcome::Failed => PublicState::Failed,
                Outcome::Cancelled => PublicState::Cancelled,
                Outcome::Expired => PublicState::Expired,
                Outcome::Skipped => PublicState::Skipped,
            },
        }
    }

    /// True when a worker holds a lease.
    #[must_use]
    pub const fn is_owned(&self) -> bool {
        matches!(self, State::Active { .. })
    }

    /// True when the next fitting claim takes it.
    #[must_use]
    pub const fn is_eligible(&self) -> bool {
        matches!(self, State::Runnable(Runnable::Eligible { .. }))
    }

    /// True when it has ended.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, State::Terminal(_))
    }
}
