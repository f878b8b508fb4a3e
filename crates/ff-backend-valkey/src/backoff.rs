//! Growing pauses between retries, randomised so that callers do not retry at the same time.

use std::time::Duration;

use rand::Rng;

const FIRST_MS: u64 = 10;
const LAST_MS: u64 = 200;

/// The pauses of one call: 5 to 10 ms at first, 100 to 200 ms at the end.
pub(crate) struct Backoff {
    ceiling_ms: u64,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff { ceiling_ms: FIRST_MS }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let pause = rand::rng().random_range(self.ceiling_ms / 2..=self.ceiling_ms);
        self.ceiling_ms = (self.ceiling_ms * 2).min(LAST_MS);
        Duration::from_millis(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_between_5_and_200_ms() {
        let mut backoff = Backoff::new();
        for _ in 0..100 {
            let pause = backoff.next();
            assert!((5..=200).contains(&pause.as_millis()), "{pause:?}");
        }
        assert!(backoff.next().as_millis() >= 100);
    }
}
