//! How long to wait after a failure, and after the next one.

use std::time::Duration;

/// Exponential waiting with full jitter above a floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffPolicy {
    /// The first wait.
    pub initial: Duration,
    /// By what each next one grows.
    pub factor: f64,
    /// The longest wait.
    pub max: Duration,
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        Self { initial: Duration::from_millis(100), factor: 2.0, max: Duration::from_secs(10) }
    }
}

impl BackoffPolicy {
    /// The same wait every time, up to jitter.
    #[must_use]
    pub fn fixed(delay: Duration) -> Self {
        Self { initial: delay, factor: 1.0, max: delay }
    }

    /// The longest wait after this many failures in a row (1 = the first).
    #[must_use]
    pub fn ceiling(&self, failures: u32) -> Duration {
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.factor.max(1.0).powi(exponent);
        Duration::from_secs_f64(grown.min(self.max.as_secs_f64()))
    }

    /// A wait after this many failures in a row: between half the ceiling and the ceiling.
    #[must_use]
    pub fn delay(&self, failures: u32) -> Duration {
        self.ceiling(failures).mul_f64(rand::random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_maximum_and_stay_there() {
        let policy = BackoffPolicy::default();
        let ceilings: Vec<u64> = (1..=9).map(|n| policy.ceiling(n).as_millis() as u64).collect();
        assert_eq!(ceilings, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        assert_eq!(policy.ceiling(u32::MAX), policy.max);
        for failures in 1..20 {
            let delay = policy.delay(failures);
            assert!(
                delay <= policy.ceiling(failures) && delay >= policy.ceiling(failures) / 2 - Duration::from_nanos(1)
            );
        }
        assert_eq!(BackoffPolicy::fixed(Duration::from_secs(1)).ceiling(7), Duration::from_secs(1));
    }
}
