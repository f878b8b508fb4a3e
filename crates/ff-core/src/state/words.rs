//! The words in which a state is stored and shown.

use crate::text_enum::text_enum;

text_enum! {
    /// The coarse phase of an execution.
    LifecyclePhase as "lifecycle phase" {
        /// Waiting for a claim, a time or a condition.
        Runnable = "runnable",
        /// Leased to a worker.
        Active = "active",
        /// Waiting for signals.
        Suspended = "suspended",
        /// Ended.
        Terminal = "terminal",
    }
}

text_enum! {
    /// Why a runnable execution cannot be claimed.
    BlockingReason as "blocking reason" {
        /// No live worker covers its requirements.
        WaitingForCapableWorker = "waiting_for_capable_worker",
        /// A quota refused it.
        WaitingForQuota = "waiting_for_quota",
        /// A budget has nothing left for it.
        WaitingForBudget = "waiting_for_budget",
        /// Its inbound edges are not satisfied yet.
        WaitingForDependencies = "waiting_for_dependencies",
        /// It waits for the children it spawned.
        WaitingForChildren = "waiting_for_children",
        /// An operator holds it.
        HeldByOperator = "held_by_operator",
    }
}

text_enum! {
    /// How an execution ended.
    Outcome as "outcome" {
        /// It completed.
        Success = "success",
        /// It failed for good.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// Its deadline or queue time passed.
        Expired = "expired",
        /// Its dependencies can no longer be met.
        Skipped = "skipped",
    }
}

text_enum! {
    /// The state of the latest attempt.
    AttemptState as "attempt state" {
        /// It runs under a lease.
        Started = "started",
        /// It waits without a worker and will be continued.
        Suspended = "suspended",
        /// It completed.
        Succeeded = "succeeded",
        /// It failed.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// Its lease was lost, revoked or handed back.
        Interrupted = "interrupted",
        /// It ran longer than it may.
        TimedOut = "timed_out",
    }
}

impl AttemptState {
    /// True when the attempt is over and the next claim starts another one.
    #[must_use]
    pub const fn is_over(self) -> bool {
        !matches!(self, AttemptState::Started | AttemptState::Suspended)
    }
}

text_enum! {
    /// The state people see, derived by [`super::State::public`].
    PublicState as "state" {
        /// Waiting for its turn, a capable worker or an operator.
        Waiting = "waiting",
        /// Waiting for a time.
        Delayed = "delayed",
        /// Waiting for a quota or a budget.
        RateLimited = "rate_limited",
        /// Waiting for dependencies or children.
        WaitingChildren = "waiting_children",
        /// Running.
        Active = "active",
        /// Waiting for signals.
        Suspended = "suspended",
        /// Waiting for its turn to continue an attempt.
        Resumable = "resumable",
        /// Ended with success.
        Completed = "completed",
        /// Ended with failure.
        Failed = "failed",
        /// Ended by a cancel.
        Cancelled = "cancelled",
        /// Ended by a deadline.
        Expired = "expired",
        /// Never ran, and never will.
        Skipped = "skipped",
    }
}
