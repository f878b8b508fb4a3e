//! The source of the host's time: the machine's clock or a test.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock behind `TIME` and stream ids.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since the Unix epoch.
    fn now_us(&self) -> i64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_us(&self) -> i64 {
        // A clock before 1970 reads as 0. Stream ids still increase, because they never fall below the last one.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_micros() as i64)
    }
}

/// A clock that moves only when it is told to.
#[derive(Debug, Default)]
pub struct VirtualClock(AtomicI64);

impl VirtualClock {
    /// A clock that shows this number of milliseconds since the epoch.
    pub fn at_ms(now_ms: i64) -> Self {
        VirtualClock(AtomicI64::new(now_ms * 1_000))
    }

    /// Sets the clock to this number of milliseconds since the epoch.
    pub fn set_ms(&self, now_ms: i64) {
        self.0.store(now_ms * 1_000, Ordering::SeqCst);
    }

    /// Moves the clock forward.
    pub fn advance_ms(&self, by_ms: i64) {
        self.0.fetch_add(by_ms * 1_000, Ordering::SeqCst);
    }

    /// Milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.now_us() / 1_000
    }
}

impl Clock for VirtualClock {
    fn now_us(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
