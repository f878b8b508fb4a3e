//! Keeps a worker's leases: renews them together, and says when one can no longer be trusted.
//!
//! **Invariant:** a handler is told to stop before anyone else can hold its lease. A lease is trusted for four fifths of its TTL
//! after the moment the last acknowledged renewal was *sent*, by this machine's monotonic clock; the store counts from a later moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ff_core::EngineError;
use ff_core::types::LeaseId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::backend::{Backend, Identity, LeaseRef, Renewal};
use crate::cancellation::{CancelReason, TaskCancellation};

/// After this many failed renewals in a row a lease counts as unhealthy.
pub(crate) const UNHEALTHY_AFTER: u32 = 3;
/// A lease whose start is not known to be recent is renewed this soon.
const UNKNOWN_AGE_WAIT: Duration = Duration::from_millis(100);
/// How long a request to all partitions takes to reach the leases, as a rule.
const ASK_SOON: Duration = Duration::from_millis(200);

/// One lease as this process knows it.
pub(crate) struct Lease {
    pub(crate) at: LeaseRef,
    pub(crate) ttl: Duration,
    pub(crate) cancellation: TaskCancellation,
    times: Mutex<Times>,
}

struct Times {
    /// When the last acknowledged renewal, or the claim, was sent.
    acknowledged: Instant,
    due: Instant,
    failures: u32,
    in_flight: bool,
}

impl Lease {
    /// A lease from a claim that was sent at `sent` and answered now.
    pub(crate) fn new(at: LeaseRef, ttl: Duration, sent: Instant) -> Arc<Self> {
        let now = Instant::now();
        // A claim that waited for work got its lease at an unknown moment: it counts from now, and a renewal follows soon.
        let waited = now - sent > ttl / 6;
        let due = if waited { now + UNKNOWN_AGE_WAIT.min(ttl / 6) } else { sent + third_of(ttl) };
        let acknowledged = if waited { now } else { sent };
        let times = Times { acknowledged, due, failures: 0, in_flight: false };
        Arc::new(Self { at, ttl, cancellation: TaskCancellation::default(), times: Mutex::new(times) })
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when nobody else can hold it.
    pub(crate) fn trusted_until(&self) -> Instant {
        self.times().acknowledged + self.ttl * 4 / 5
    }

    pub(crate) fn is_trusted(&self) -> bool {
        Instant::now() < self.trusted_until()
    }

    pub(crate) fn failures(&self) -> u32 {
        self.times().failures
    }

    /// Takes a renewal's answer in; false when the lease is over.
    pub(crate) fn settle(&self, sent: Instant, answer: &Renewal) -> bool {
        let mut times = self.times();
        times.in_flight = false;
        match answer {
            Renewal::Renewed { cancel_requested, yield_requested } => {
                times.acknowledged = times.acknowledged.max(sent);
                times.failures = 0;
                times.due = sent + third_of(self.ttl);
                drop(times);
                if *cancel_requested {
                    self.cancellation.fire(CancelReason::CancelRequested);
                } else if *yield_requested {
                    self.cancellation.fire(CancelReason::YieldRequested);
                }
                true
            }
            Renewal::Refused(error) if is_final(error) => {
                tracing::info!(execution = %self.at.execution_id, %error, "the lease is over");
                drop(times);
                self.cancellation.fire(CancelReason::LeaseLost);
                false
            }
            Renewal::Refused(_) | Renewal::Unanswered(_) => {
                times.failures = times.failures.saturating_add(1);
                times.due = Instant::now() + jittered(self.ttl / 12);
                tracing::warn!(execution = %self.at.execution_id, failures = times.failures, ?answer, "a lease could not be renewed");
                true
            }
        }
    }
}

/// Renewal stops for good on these: the lease will not come back.
fn is_final(error: &EngineError) -> bool {
    !error.is_retryable() && !matches!(error, EngineError::Transport { .. })
}

/// A third of the TTL, a tenth earlier at random, so that leases taken together drift apart over processes.
fn third_of(ttl: Duration) -> Duration {
    jittered(ttl / 3)
}

fn jittered(duration: Duration) -> Duration {
    duration.mul_f64(rand::random_range(0.9..=1.0))
}

/// All leases of one worker.
#[derive(Default)]
pub(crate) struct Keeper {
    leases: Mutex<HashMap<LeaseId, Arc<Lease>>>,
    changed: Arc<Notify>,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

impl Keeper {
    fn leases(&self) -> MutexGuard<'_, HashMap<LeaseId, Arc<Lease>>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, lease: Arc<Lease>) {
        self.leases().insert(lease.at.lease_id, lease);
        self.changed.notify_one();
    }

    pub(crate) fn remove(&self, lease_id: LeaseId) {
        self.leases().remove(&lease_id);
        self.changed.notify_one();
    }

    #[cfg(feature = "embedded")]
    pub(crate) fn is_empty(&self) -> bool {
        self.leases().is_empty()
    }

    /// Tells every handler to stop for this reason.
    pub(crate) fn fire_all(&self, reason: CancelReason) {
        for lease in self.leases().values() {
            lease.cancellation.fire(reason);
        }
    }

    /// Asks the engine about every lease soon, whatever is due: it may want some of them back.
    pub(crate) fn renew_soon(&self) {
        let soon = Instant::now() + ASK_SOON;
        for lease in self.leases().values() {
            let mut times = lease.times();
            times.due = times.due.min(soon);
        }
        self.changed.notify_one();
    }

    /// Stops renewing everything: the process counts as dead.
    #[cfg(feature = "embedded")]
    pub(crate) fn abandon_all(&self) {
        for (_, lease) in self.leases().drain() {
            lease.times().acknowledged = Instant::now() - lease.ttl;
            lease.cancellation.fire(CancelReason::LeaseLost);
        }
        self.changed.notify_one();
    }

    /// Renews whatever is due, one batch at a time, for as long as the worker or one of its tasks lives.
    pub(crate) async fn run(keeper: Weak<Self>, backend: Arc<dyn Backend>, who: Arc<Identity>) {
        while let Some(this) = keeper.upgrade() {
            let now = Instant::now();
            let batch = this.take_due(now);
            if !batch.is_empty() {
                let (this, backend, who) = (Arc::clone(&this), Arc::clone(&backend), Arc::clone(&who));
                // Apart from this loop: deadlines pass while a renewal is under way.
                tokio::spawn(async move { this.renew(backend.as_ref(), &who, batch).await });
            }
            let (next, changed) = (this.next_event(now), Arc::clone(&this.changed));
            drop(this);
            match next {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = changed.notified() => {}
                },
                None => changed.notified().await,
            }
        }
    }

    /// Fires what can no longer be trusted, and takes every lease that is due or nearly so.
    fn take_due(&self, now: Instant) -> Vec<Arc<Lease>> {
        let mut leases = self.leases();
        leases.retain(|_, lease| {
            let trusted = now < lease.trusted_until();
            if !trusted {
                tracing::warn!(execution = %lease.at.execution_id, "a lease was not renewed in time and is not trusted any more");
                lease.cancellation.fire(CancelReason::LeaseLost);
            }
            trusted
        });
        let due = leases.values().any(|lease| {
            let times = lease.times();
            !times.in_flight && times.due <= now
        });
        if !due {
            return Vec::new();
        }
        let soon = |lease: &&Arc<Lease>| {
            let mut times = lease.times();
            let take = !times.in_flight && times.due <= now + lease.ttl / 12;
            times.in_flight |= take;
            take
        };
        leases.values().filter(soon).cloned().collect()
    }

    fn next_event(&self, now: Instant) -> Option<Instant> {
        let next = |lease: &Arc<Lease>| {
            let trusted = lease.trusted_until();
            let times = lease.times();
            if times.in_flight { trusted } else { trusted.min(times.due) }
        };
        self.leases().values().map(next).min().map(|at| at.max(now))
    }

    async fn renew(&self, backend: &dyn Backend, who: &Identity, batch: Vec<Arc<Lease>>) {
        let refs: Vec<LeaseRef> = batch.iter().map(|lease| lease.at).collect();
        let sent = Instant::now();
        let limit = batch.iter().map(|lease| lease.ttl / 3).min().unwrap_or_default();
        let answers = match tokio::time::timeout(limit, backend.reach().renew(who, &refs)).await {
            Ok(answers) => answers,
            Err(_) => vec![Renewal::Unanswered(format!("no answer within {limit:?}")); refs.len()],
        };
        for (lease, answer) in batch.iter().zip(&answers) {
            if !lease.settle(sent, answer) {
                self.leases().remove(&lease.at.lease_id);
            }
        }
        self.changed.notify_one();
    }

    /// Renews everything now, for a clock that a test moves.
    #[cfg(feature = "embedded")]
    pub(crate) async fn renew_all(&self, backend: &dyn Backend, who: &Identity) {
        let batch: Vec<Arc<Lease>> = self.leases().values().cloned().collect();
        if !batch.is_empty() {
            self.renew(backend, who, batch).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use ff_core::error::StateKind;
    use ff_core::types::{AttemptId, ExecutionId, LeaseEpoch};

    use super::*;

    const TTL: Duration = Duration::from_secs(30);
    const FINE: Renewal = Renewal::Renewed { cancel_requested: false, yield_requested: false };

    fn lease() -> Arc<Lease> {
        let at = LeaseRef {
            execution_id: ExecutionId::mint(),
            attempt_id: AttemptId::mint(),
            lease_id: LeaseId::mint(),
            lease_epoch: LeaseEpoch::new(1),
        };
        Lease::new(at, TTL, Instant::now())
    }

    fn keeper(lease: &Arc<Lease>) -> Keeper {
        let keeper = Keeper::default();
        keeper.add(Arc::clone(lease));
        keeper
    }

    #[test]
    fn a_lease_is_renewed_every_third_of_its_ttl() {
        let lease = lease();
        let keeper = keeper(&lease);
        let start = Instant::now();
        assert!(keeper.take_due(start).is_empty());
        let later = start + TTL / 3;
        assert_eq!(keeper.take_due(later).len(), 1);
        assert!(keeper.take_due(later).is_empty(), "one renewal at a time");
        assert!(lease.settle(later, &FINE));
        assert!(keeper.take_due(later).is_empty());
        assert_eq!(keeper.take_due(later + TTL / 3).len(), 1);
    }

    #[test]
    fn the_token_fires_when_the_last_acknowledged_renewal_is_four_fifths_old() {
        let lease = lease();
        let keeper = keeper(&lease);
        let end = lease.trusted_until();
        keeper.take_due(end - Duration::from_millis(1));
        assert!(!lease.cancellation.is_cancelled() && lease.is_trusted());
        keeper.take_due(end);
        assert_eq!(lease.cancellation.reason(), Some(CancelReason::LeaseLost));
        assert!(keeper.leases().is_empty());
    }

    #[test]
    fn a_renewal_counts_from_the_moment_it_was_sent() {
        let lease = lease();
        let sent = Instant::now() + TTL / 6;
        lease.settle(sent, &FINE);
        assert_eq!(lease.trusted_until(), sent + TTL * 4 / 5);
        // An older answer that comes late takes nothing back.
        lease.settle(sent - TTL / 6, &FINE);
        assert_eq!(lease.trusted_until(), sent + TTL * 4 / 5);
    }

    #[test]
    fn three_failures_in_a_row_are_unhealthy_and_one_success_forgives_them() {
        let lease = lease();
        for expected in 1..=UNHEALTHY_AFTER {
            assert!(lease.settle(Instant::now(), &Renewal::Unanswered("gone".to_owned())));
            assert_eq!(lease.failures(), expected);
        }
        lease.settle(Instant::now(), &FINE);
        assert_eq!(lease.failures(), 0);
    }

    #[test]
    fn a_typed_refusal_ends_renewal_for_good() {
        for kind in [StateKind::StaleLease, StateKind::LeaseExpired, StateKind::LeaseRevoked] {
            let lease = lease();
            assert!(!lease.settle(Instant::now(), &Renewal::Refused(EngineError::State(kind))));
            assert_eq!(lease.cancellation.reason(), Some(CancelReason::LeaseLost));
        }
        let gone = lease();
        assert!(!gone.settle(Instant::now(), &Renewal::Refused(EngineError::NotFound { entity: "execution" })));
    }

    #[test]
    fn requests_of_the_engine_have_reasons_of_their_own() {
        for (cancel_requested, yield_requested, reason) in [
            (true, false, CancelReason::CancelRequested),
            (false, true, CancelReason::YieldRequested),
            (true, true, CancelReason::CancelRequested),
        ] {
            let lease = lease();
            assert!(lease.settle(Instant::now(), &Renewal::Renewed { cancel_requested, yield_requested }));
            assert_eq!(lease.cancellation.reason(), Some(reason));
            assert!(!lease.cancellation.is_lease_lost());
        }
    }
}
