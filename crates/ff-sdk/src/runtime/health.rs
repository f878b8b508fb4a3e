//! Whether the claim loop is going.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A loop that has not come round for this long is wedged; a turn takes 10 s at most when all is well.
const WEDGED_AFTER: Duration = Duration::from_secs(40);
/// Claims that fail for this long are a problem of this worker's world.
const FAILING_AFTER: Duration = Duration::from_secs(30);

/// What a health check says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// The loop is going, or has nothing to do.
    Green,
    /// Something is wrong, in words.
    Red(String),
}

impl Health {
    /// True when nothing is wrong.
    #[must_use]
    pub fn is_green(&self) -> bool {
        matches!(self, Health::Green)
    }
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    NotStarted,
    /// A claim is under way, or about to be.
    Claiming { since: Instant },
    /// Every permit is taken: waiting is right.
    Full,
    /// Going down.
    Draining,
    /// It ended.
    Stopped { why: Option<String> },
}

#[derive(Debug, Default)]
struct Inner {
    phase: Phase,
    failing: Option<(Instant, String)>,
}

/// Answers health checks; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct HealthHandle(Arc<Mutex<Inner>>);

impl HealthHandle {
    /// How the runtime is.
    #[must_use]
    pub fn check(&self) -> Health {
        self.check_at(Instant::now())
    }

    fn check_at(&self, now: Instant) -> Health {
        let inner = self.inner();
        match &inner.phase {
            Phase::Claiming { since } if now - *since > WEDGED_AFTER => {
                return Health::Red(format!("the claim loop has not come round for {} s", (now - *since).as_secs()));
            }
            Phase::Stopped { why: Some(why) } => return Health::Red(why.clone()),
            _ => {}
        }
        match &inner.failing {
            Some((since, error)) if now - *since > FAILING_AFTER => {
                Health::Red(format!("claims have failed for {} s: {error}", (now - *since).as_secs()))
            }
            _ => Health::Green,
        }
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn claiming(&self) {
        self.inner().phase = Phase::Claiming { since: Instant::now() };
    }

    pub(super) fn full(&self) {
        self.inner().phase = Phase::Full;
    }

    pub(super) fn draining(&self) {
        self.inner().phase = Phase::Draining;
    }

    pub(super) fn stopped(&self, why: Option<String>) {
        self.inner().phase = Phase::Stopped { why };
    }

    pub(super) fn claimed(&self) {
        self.inner().failing = None;
    }

    pub(super) fn failed(&self, error: &str) {
        let mut inner = self.inner();
        let since = inner.failing.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        inner.failing = Some((since, error.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wedged_loop_turns_red_and_a_full_worker_does_not() {
        let health = HealthHandle::default();
        assert!(health.check().is_green());
        health.claiming();
        let now = Instant::now();
        assert!(health.check_at(now + WEDGED_AFTER - Duration::from_secs(1)).is_green());
        let late = now + WEDGED_AFTER + Duration::from_secs(1);
        assert_eq!(health.check_at(late), Health::Red("the claim loop has not come round for 41 s".to_owned()));
        health.full();
        assert!(health.check_at(late).is_green());
    }

    #[test]
    fn claims_that_fail_for_long_turn_it_red_until_one_works() {
        let health = HealthHandle::default();
        health.failed("gone");
        let late = Instant::now() + FAILING_AFTER + Duration::from_secs(1);
        health.failed("still gone");
        assert_eq!(health.check_at(late), Health::Red("claims have failed for 31 s: still gone".to_owned()));
        health.claimed();
        assert!(health.check_at(late).is_green());
    }
}
