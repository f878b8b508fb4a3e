//! Failed credentials, counted by address. They slow further failures only: who shows a good token is never kept waiting.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const FAILURES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses remembered at once; beyond them the ones whose window is over are forgotten, then all.
const ADDRESSES_MAX: usize = 10_000;

/// Counts failures.
#[derive(Default)]
pub struct Failures(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl Failures {
    /// Notes a failure; the time to wait when this address has had too many.
    pub fn note(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= ADDRESSES_MAX && !seen.contains_key(&address) {
            seen.retain(|_, (since, _)| now.duration_since(*since) < WINDOW);
            if seen.len() >= ADDRESSES_MAX {
                seen.clear();
            }
        }
        let (since, count) = seen.entry(address).or_insert((now, 0));
        if now.duration_since(*since) >= WINDOW {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        (*count > FAILURES_MAX).then(|| WINDOW.saturating_sub(now.duration_since(*since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_failures_a_minute_are_told_apart_from_the_eleventh() {
        let (failures, now) = (Failures::default(), Instant::now());
        let (one, other) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        for _ in 0..10 {
            assert_eq!(failures.note(one, now), None);
        }
        assert_eq!(failures.note(one, now + Duration::from_secs(20)), Some(Duration::from_secs(40)));
        assert_eq!(failures.note(other, now), None);
        assert_eq!(failures.note(one, now + WINDOW), None);
    }
}
