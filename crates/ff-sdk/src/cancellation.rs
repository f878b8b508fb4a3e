//! Tells a handler that it should stop, and why.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Why a handler should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelReason {
    /// The lease can no longer be trusted, or is gone: another worker may run the same execution already.
    LeaseLost,
    /// The execution is to be cancelled.
    CancelRequested,
    /// The engine asks for the execution back, to run it elsewhere.
    YieldRequested,
    /// This worker is going down and its grace is over.
    Shutdown,
    /// A report met the hard limit of a budget, which ended the lease.
    HardBreach,
}

impl CancelReason {
    /// The reason as one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CancelReason::LeaseLost => "lease_lost",
            CancelReason::CancelRequested => "cancel_requested",
            CancelReason::YieldRequested => "yield_requested",
            CancelReason::Shutdown => "shutdown",
            CancelReason::HardBreach => "hard_breach",
        }
    }
}

impl std::fmt::Display for CancelReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Fires once, with the first reason; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct TaskCancellation {
    token: CancellationToken,
    reason: Arc<OnceLock<CancelReason>>,
    lost: CancellationToken,
}

impl TaskCancellation {
    /// Waits until the handler should stop.
    pub async fn cancelled(&self) -> CancelReason {
        self.token.cancelled().await;
        self.reason().unwrap_or(CancelReason::LeaseLost)
    }

    /// True once the handler should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// The first reason; nothing while the handler may go on.
    #[must_use]
    pub fn reason(&self) -> Option<CancelReason> {
        self.reason.get().copied()
    }

    /// True once the lease is not to be trusted any more, whatever was asked before.
    #[must_use]
    pub fn is_lease_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// The token for libraries that take one.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(crate) fn fire(&self, reason: CancelReason) {
        if matches!(reason, CancelReason::LeaseLost | CancelReason::HardBreach) {
            self.lost.cancel();
        }
        if self.reason.set(reason).is_ok() {
            self.token.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_stays_and_a_lost_lease_is_never_hidden() {
        let cancellation = TaskCancellation::default();
        assert!(!cancellation.is_cancelled());
        cancellation.fire(CancelReason::YieldRequested);
        cancellation.fire(CancelReason::LeaseLost);
        assert_eq!(cancellation.cancelled().await, CancelReason::YieldRequested);
        assert!(cancellation.is_lease_lost() && cancellation.token().is_cancelled());
    }
}
