//! The host's time, as far as this process has heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ff_core::types::TimestampMs;
use tokio::time::Instant;

/// Follows the host's clock by the times its replies carry, so that sleeping does not trust the local one.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    ahead_ms: Arc<AtomicI64>,
}

impl Clock {
    /// A reply said what time it is.
    pub fn heard(&self, host_now_ms: i64) {
        self.ahead_ms.store(host_now_ms - TimestampMs::now().as_millis(), Ordering::Relaxed);
    }

    /// The host's time now, in milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        TimestampMs::now().as_millis() + self.ahead_ms.load(Ordering::Relaxed)
    }

    /// When the host's clock will show `at_ms`.
    #[must_use]
    pub fn instant(&self, at_ms: i64) -> Instant {
        let ahead = at_ms.saturating_sub(self.now_ms());
        Instant::now() + Duration::from_millis(u64::try_from(ahead).unwrap_or_default())
    }
}
